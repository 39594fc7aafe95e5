//! Logs of Kafka: where their batches stand, so that a reader can plan before it reads.

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::gate::held;
use crate::op::record_batches::heads;

/// `(position, size, base_offset, last_offset, magic, attributes, max_timestamp, producer_id, count)`
type Head = (usize, usize, i64, i64, i8, i16, i64, i64, i32);

/// The whole batches of a buffer from `start` on, until they take `most` bytes, and the first byte of none of them.
#[pyfunction]
#[pyo3(signature = (data, start=0, most=None))]
pub fn record_batches(
    py: Python<'_>,
    data: PyBuffer<u8>,
    start: usize,
    most: Option<usize>,
) -> PyResult<(Vec<Head>, usize)> {
    if !data.is_c_contiguous() {
        return Err(PyValueError::new_err("the buffer is not contiguous"));
    }
    let (log, len) = (data.buf_ptr().cast::<u8>(), data.item_count());
    let found = held(|| heads(len, start, most.unwrap_or(usize::MAX), |at, header| copy(log, len, at, header)))?;
    let told = |head: &crate::op::record_batches::Head| {
        let offsets = (head.base_offset, head.last_offset);
        let (max, producer) = (head.max_timestamp, head.producer_id);
        (head.position, head.size, offsets.0, offsets.1, head.magic, head.attributes, max, producer, head.count)
    };
    Ok((found.heads.iter().map(told).collect(), found.end))
}

/// Copies bytes of a buffer that is held while this runs. They may be those of a file that another process writes: no
/// reference to them is made.
fn copy(log: *const u8, len: usize, at: usize, header: &mut [u8]) {
    assert!(at <= len && header.len() <= len - at);
    // SAFETY: the source is `len` bytes long, and what is read ends in it; the target is memory of our own.
    unsafe { std::ptr::copy_nonoverlapping(log.add(at), header.as_mut_ptr(), header.len()) }
}
