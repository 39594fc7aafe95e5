//! [`KeySet`]: the requested keys. A key is looked up by its length, in a hash table in which most other keys have no
//! entry, and by one masked comparison.

use super::layout::{TEXT, WireLayout};
use crate::header::RequestedKey;
use crate::number::fitting;
use crate::value::{ByteOrder, bits_of};
use crate::value_type::ValueType;

/// Bytes that are compared at once.
const WORD: usize = 16;

/// Policy for headers with a requested key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// The last value of a row goes to a lane.
    Last,
    /// The first value of a row goes to a lane.
    First,
    /// All values, in their order.
    All,
}

/// A requested key.
#[derive(Debug, Clone)]
pub struct Requested {
    /// Bytes of the key as in the input.
    pub key: Vec<u8>,
    /// Type of the key, in layouts with typed keys.
    pub key_type: Option<ValueType>,
    pub keep: Keep,
    /// Only type that a lane accepts, in layouts with typed values.
    pub value_type: Option<ValueType>,
    /// Index that the caller assigned to the key.
    pub index: usize,
}

impl Requested {
    /// Requests every header with a key. `order` is the byte order of the input. Returns `None` for an integer key,
    /// which kernels do not support.
    pub fn all(key: &RequestedKey, order: ByteOrder, index: usize) -> Option<Self> {
        let (key_type, key) = match key {
            RequestedKey::Text(text) => (TEXT, text.as_bytes().to_vec()),
            RequestedKey::Typed(value_type, bits) => (*value_type, bits_of(*value_type, bits, order).into_owned()),
            RequestedKey::Int(_) => return None,
        };
        Some(Requested { key, key_type: Some(key_type), keep: Keep::All, value_type: None, index })
    }
}

pub struct KeySet {
    /// Bitmask over the lengths of the requested keys, modulo 64.
    lens: u64,
    /// Index of the first entry for the first bits of a hash, or `NONE`. The table has at least twice as many slots as
    /// keys.
    table: Vec<u32>,
    /// Number of low bits of a hash that are ignored.
    shift: u32,
    entries: Vec<Entry>,
}

pub(super) struct Entry {
    /// First bytes of the key, padded with zeros.
    head: u128,
    requested: Requested,
    /// Index of the next entry with this hash, or `NONE`.
    next: u32,
}

/// Marks the end of a chain of entries: tables are too small to have this index.
const NONE: u32 = u32::MAX;

/// Minimum number of slots of a table: most keys of messages have no entry.
const MIN_SLOTS: usize = 256;

/// Masks for the first bytes of a word, by their number.
const MASKS: [u128; WORD + 1] = {
    let mut masks = [0; WORD + 1];
    let mut len = 1;
    while len <= WORD {
        masks[len] = u128::MAX >> (8 * (WORD - len));
        len += 1;
    }
    masks
};

/// The first bytes of a key, padded with zeros.
///
/// # Safety
///
/// `WORD` bytes are readable at `key`.
#[inline(always)]
unsafe fn head(key: *const u8, len: usize) -> u128 {
    // SAFETY: the caller's contract.
    u128::from_le_bytes(unsafe { key.cast::<[u8; WORD]>().read() }) & MASKS[len.min(WORD)]
}

#[inline(always)]
fn bit_of(len: usize) -> u64 {
    1 << (len % 64)
}

/// Hashes the first bytes of a key. Keys such as `x-header-0001` differ only in the last of these bytes.
#[inline(always)]
fn hash(head: u128) -> u64 {
    ((head & 0xffff_ffff_ffff_ffff) as u64).wrapping_add((head >> 64) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Slot of a key in a table whose length is two to the power of `64 - shift`.
#[inline(always)]
fn slot_of(head: u128, shift: u32) -> usize {
    fitting(hash(head) >> shift)
}

impl KeySet {
    /// Creates the set; `None` if there are too many keys.
    pub fn new(requested: Vec<Requested>) -> Option<Self> {
        let slots = requested.len().checked_mul(2)?.next_power_of_two().max(MIN_SLOTS);
        let (table, shift) = (vec![NONE; slots], u64::BITS - slots.ilog2());
        let mut keys = KeySet { lens: 0, table, shift, entries: Vec::with_capacity(requested.len()) };
        for requested in requested {
            keys.lens |= bit_of(requested.key.len());
            let mut word = [0; WORD];
            word.iter_mut().zip(&requested.key).for_each(|(to, byte)| *to = *byte);
            let head = u128::from_le_bytes(word);
            let slot = &mut keys.table[slot_of(head, shift)];
            let index = u32::try_from(keys.entries.len()).ok().filter(|index| *index != NONE)?;
            let next = std::mem::replace(slot, index);
            keys.entries.push(Entry { head, requested, next });
        }
        Some(keys)
    }

    /// Returns false only if no requested key has this length. Lengths that differ by a multiple of 64 are not told
    /// apart.
    #[inline(always)]
    pub(super) fn has_key_of_len(&self, len: usize) -> bool {
        self.lens & bit_of(len) != 0
    }

    /// Calls `visit` with each entry for a key; returns false as soon as `visit` does.
    ///
    /// # Safety
    ///
    /// `len` bytes are readable at `key`, and at least 16.
    #[inline(always)]
    pub(super) unsafe fn find<F: WireLayout>(
        &self,
        key: *const u8,
        len: usize,
        key_type: Option<ValueType>,
        mut visit: impl FnMut(&Requested) -> bool,
    ) -> bool {
        if !self.has_key_of_len(len) {
            return true;
        }
        // SAFETY: the caller's contract.
        let head = unsafe { head(key, len) };
        let mut next = self.table[slot_of(head, self.shift)];
        while let Some(entry) = self.entries.get(next as usize) {
            let requested = &entry.requested;
            // SAFETY: the caller's contract; both keys have `len` bytes.
            let is_same = entry.head == head
                && requested.key.len() == len
                && (len <= WORD || unsafe { std::slice::from_raw_parts(key, len) } == requested.key)
                && (!F::TYPED_KEYS || key_type == requested.key_type);
            if is_same && !visit(requested) {
                return false;
            }
            next = entry.next;
        }
        true
    }
}
