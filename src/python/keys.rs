//! Keys of text as Python strings. The same few keys stand in message after message, so those met last are kept.

use std::sync::{Mutex, MutexGuard};

use pyo3::prelude::*;
use pyo3::types::PyString;

/// How many keys are kept, in all.
const SLOTS: usize = 256;

/// The longest key that is kept, in bytes.
const MOST: usize = 32;

/// What is kept is bounded, whatever the messages hold: a key that comes to a slot takes the place of the one there.
static KEPT: Mutex<[Option<Slot>; SLOTS]> = Mutex::new([const { None }; SLOTS]);

struct Slot {
    len: usize,
    bytes: [u8; MOST],
    text: Py<PyString>,
}

/// Makes keys, from those that are kept where it can.
pub struct Keys {
    /// `None` while another thread makes keys, or this one further up: nobody waits, and every key is made anew.
    kept: Option<MutexGuard<'static, [Option<Slot>; SLOTS]>>,
}

impl Keys {
    pub fn new() -> Self {
        Keys { kept: KEPT.try_lock().ok() }
    }

    /// The string of a key, of which the walk has seen that it is UTF-8.
    #[inline]
    pub fn text<'py>(&mut self, py: Python<'py>, key: &[u8]) -> Bound<'py, PyString> {
        match &mut self.kept {
            Some(kept) if key.len() <= MOST => {
                let slot = &mut kept[slot_of(key)];
                match slot {
                    Some(slot) if slot.bytes[..slot.len] == *key => slot.text.bind(py).clone(),
                    _ => keep(py, slot, key),
                }
            }
            _ => made(py, key),
        }
    }
}

#[cold]
fn keep<'py>(py: Python<'py>, slot: &mut Option<Slot>, key: &[u8]) -> Bound<'py, PyString> {
    let text = made(py, key);
    let mut bytes = [0; MOST];
    bytes[..key.len()].copy_from_slice(key);
    *slot = Some(Slot { len: key.len(), bytes, text: text.clone().unbind() });
    text
}

fn made<'py>(py: Python<'py>, key: &[u8]) -> Bound<'py, PyString> {
    PyString::new(py, &String::from_utf8_lossy(key))
}

/// Where a key is kept: by its length and its first and last bytes.
#[inline]
fn slot_of(key: &[u8]) -> usize {
    const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
    let (first, last) = match (key.first_chunk::<8>(), key.last_chunk::<8>()) {
        (Some(first), Some(last)) => (u64::from_le_bytes(*first), u64::from_le_bytes(*last)),
        _ => (key.iter().fold(0, |bits, byte| bits << 8 | u64::from(*byte)), 0),
    };
    let mixed = (first.wrapping_mul(SPREAD) ^ last).wrapping_mul(SPREAD).wrapping_add(key.len() as u64);
    (mixed.wrapping_mul(SPREAD) >> (u64::BITS - SLOTS.ilog2())) as usize
}
