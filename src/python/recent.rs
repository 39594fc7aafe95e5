//! [`Recent`]: a cache of the Python objects of recent keys and headers. Most of them occur again in the next message.
//!
//! Each thread has a table of its own, so that no thread waits for another. Its size is bounded.

use std::cell::Cell;

use pyo3::prelude::*;

use crate::number::fitting;
use crate::value::ByteOrder;
use crate::value_type::ValueType;

/// Number of objects that are kept for each thread.
const SLOTS: usize = 512;

/// Maximum total length of a key and a value that are kept.
const MAX_LEN: usize = 64;

/// Data from which an object is created. Objects are immutable, so that one object serves all equal origins.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Origin<'a> {
    pub key: &'a [u8],
    /// Empty for a key alone and for a null.
    pub value: &'a [u8],
    pub part: OriginPart,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum OriginPart {
    Key,
    Null,
    Value(Option<(ValueType, ByteOrder)>),
}

/// Entry of the table. It contains the bytes, so that a comparison only reads the table.
struct Slot {
    last_hash: u64,
    /// Compared first, because most comparisons fail.
    hash: u64,
    part: OriginPart,
    key_len: u8,
    len: u8,
    /// The key, followed by the value.
    bytes: [u8; MAX_LEN],
    object: Option<Py<PyAny>>,
}

impl Slot {
    const EMPTY: Slot =
        Slot { last_hash: 0, hash: 0, part: OriginPart::Null, key_len: 0, len: 0, bytes: [0; MAX_LEN], object: None };

    /// Returns the object, if it was created from this origin.
    #[inline]
    fn object_of(&self, hash: u64, origin: Origin<'_>) -> Option<&Py<PyAny>> {
        let is_origin = self.hash == hash && {
            let (key, value) = self.bytes[..usize::from(self.len)].split_at(usize::from(self.key_len));
            Origin { key, value, part: self.part } == origin
        };
        self.object.as_ref().filter(|_| is_origin)
    }

    /// Stores the object of an origin of at most `MAX_LEN` bytes.
    fn keep(&mut self, hash: u64, origin: Origin<'_>, object: Py<PyAny>) {
        let Origin { key, value, part } = origin;
        let len = key.len() + value.len();
        self.bytes[..key.len()].copy_from_slice(key);
        self.bytes[key.len()..len].copy_from_slice(value);
        (self.hash, self.part, self.key_len, self.len) = (hash, part, fitting(key.len()), fitting(len));
        self.object = Some(object);
    }
}

type Table = Box<[Slot]>;

thread_local! {
    static TABLE: Cell<Option<Table>> = const { Cell::new(None) };
}

/// Table of this thread, which drop returns to the thread. Python code that runs meanwhile, such as a finalizer, starts
/// a new table.
pub struct Recent(Table);

impl Recent {
    pub fn take() -> Self {
        let table = TABLE.try_with(Cell::take).ok().flatten();
        Recent(table.unwrap_or_else(|| (0..SLOTS).map(|_| Slot::EMPTY).collect()))
    }

    /// Returns the object that was created from this origin, or a new one.
    #[inline]
    pub fn get<'py>(
        &mut self,
        py: Python<'py>,
        origin: Origin<'_>,
        create: impl FnOnce(&mut Self) -> PyResult<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if origin.key.len() + origin.value.len() > MAX_LEN {
            return create(self);
        }
        let hash = origin.hash();
        let slot_index: usize = fitting(hash >> (u64::BITS - SLOTS.ilog2()));
        if let Some(object) = self.0[slot_index].object_of(hash, origin) {
            return Ok(object.bind(py).clone());
        }
        let object = create(self)?;
        let slot = &mut self.0[slot_index];
        // Stored at the second occurrence, because unique identifiers never recur, and would replace objects that do.
        if std::mem::replace(&mut slot.last_hash, hash) == hash {
            slot.keep(hash, origin, object.clone().unbind());
        }
        Ok(object)
    }
}

impl Drop for Recent {
    fn drop(&mut self) {
        let table = std::mem::take(&mut self.0);
        // A thread that is ending does not keep the table.
        let _ = TABLE.try_with(|cell| cell.set(Some(table)));
    }
}

impl Origin<'_> {
    #[inline]
    fn hash(&self) -> u64 {
        let part = match self.part {
            OriginPart::Key => 0,
            OriginPart::Null => 1,
            OriginPart::Value(_) => 2,
        };
        (spread(self.key).rotate_left(29) ^ spread(self.value) ^ part).wrapping_mul(SPREAD)
    }
}

const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Hashes the length, the first and the last bytes.
#[inline]
fn spread(bytes: &[u8]) -> u64 {
    let (first, last) = match (bytes.first_chunk::<8>(), bytes.last_chunk::<8>()) {
        (Some(first), Some(last)) => (u64::from_le_bytes(*first), u64::from_le_bytes(*last)),
        _ => (bytes.iter().fold(0, |bits, byte| bits << 8 | u64::from(*byte)), 0),
    };
    (first.wrapping_mul(SPREAD) ^ last).wrapping_mul(SPREAD).wrapping_add(bytes.len() as u64)
}
