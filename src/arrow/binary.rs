//! Runs of bytes and validity as Arrow arrays.

use std::sync::Arc;

use arrow_array::{ArrayRef, BinaryArray, StringArray};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};

use crate::kernel::buffer::{Runs, Validity};

fn parts(runs: Runs) -> (OffsetBuffer<i32>, Buffer) {
    let (offsets, bytes) = runs.into_parts();
    debug_assert!(offsets[0] == 0 && offsets.is_sorted());
    // SAFETY: the offsets begin with 0 and are lengths of bytes that only grew between them.
    let offsets = unsafe { OffsetBuffer::new_unchecked(ScalarBuffer::from(offsets)) };
    (offsets, Buffer::from_vec(bytes))
}

/// A column of text.
///
/// # Safety
///
/// Every run is UTF-8.
pub unsafe fn text(runs: Runs, nulls: Option<NullBuffer>) -> ArrayRef {
    let (offsets, bytes) = parts(runs);
    debug_assert!(StringArray::try_new(offsets.clone(), bytes.clone(), nulls.clone()).is_ok());
    // SAFETY: the caller's contract, and the last offset is the number of bytes.
    Arc::new(unsafe { StringArray::new_unchecked(offsets, bytes, nulls) })
}

/// A column of bytes.
pub fn binary(runs: Runs, nulls: Option<NullBuffer>) -> ArrayRef {
    let (offsets, bytes) = parts(runs);
    Arc::new(BinaryArray::new(offsets, bytes, nulls))
}

/// `None` where every place holds a value.
pub fn nulls(validity: Validity) -> Option<NullBuffer> {
    let count = validity.count();
    validity.into_bits().map(|words| NullBuffer::new(BooleanBuffer::new(Buffer::from_vec(words), 0, count)))
}
