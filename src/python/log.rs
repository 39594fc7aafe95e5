//! Logs of Kafka: where their batches stand, so that a reader can plan before it reads, and batches to put into them.

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::errors::to_exception;
use super::gate::{held, released_if_long};
use super::given::{GivenKinds, GivenMessage, argument, named, write_options};
use crate::codec::Codec;
use crate::error::Error;
use crate::format::Format;
use crate::op::record_batch::Builder;
use crate::op::record_batches::heads;
use crate::op::write::EncodeMessage;

/// `(position, size, base_offset, last_offset, magic, attributes, max_timestamp, producer_id, count)`
type Head = (usize, usize, i64, i64, i8, i16, i64, i64, i32);

/// The whole batches of a buffer from `start` on, until they take `most` bytes, and the first byte of none of them.
#[pyfunction]
#[pyo3(signature = (data, start=0, most=None))]
pub fn record_batches(data: PyBuffer<u8>, start: usize, most: Option<usize>) -> PyResult<(Vec<Head>, usize)> {
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

/// Dicts of the fields of records as one batch.
#[pyfunction]
#[pyo3(signature = (messages, codec, *, on_loss="raise", kinds=None, null_headers="empty"))]
pub fn record_batch<'py>(
    py: Python<'py>,
    messages: Vec<Bound<'py, PyAny>>,
    #[pyo3(from_py_with = argument::codec)] codec: &str,
    #[pyo3(from_py_with = argument::on_loss)] on_loss: &str,
    kinds: Option<GivenKinds>,
    #[pyo3(from_py_with = argument::null_headers)] null_headers: &str,
) -> PyResult<Bound<'py, PyBytes>> {
    let or_raise = |error| to_exception(py, error);
    let codec = named("codec", codec, &Codec::ALL.map(|codec| (codec.name(), codec))).map_err(or_raise)?;
    let options = write_options(on_loss, kinds, null_headers, false).map_err(or_raise)?;
    let info = Format::RecordBatch.info();
    let of_dict = |dict: &Bound<'py, PyAny>| GivenMessage::of_envelope(dict, info);
    let given = messages.iter().map(of_dict).collect::<PyResult<Vec<_>>>()?;
    let size = given.iter().map(GivenMessage::size).sum();
    let made = released_if_long(py, size, || {
        let Some(first) = given.first() else {
            return Err(Error::Value("a batch has one record at least, and none was given".into()));
        };
        let mut builder = Builder::new(&first.fields(), codec)?;
        for (row, message) in given.iter().enumerate() {
            let encode =
                EncodeMessage { headers: message.headers()?, fields: message.fields(), options: options.clone() };
            builder.push(encode).map_err(|error| error.in_row(row))?;
        }
        builder.finish()
    })?;
    Ok(PyBytes::new(py, &made))
}

/// Copies bytes of a buffer that is held while this runs. They may be those of a file that another process writes: no
/// reference to them is made.
fn copy(log: *const u8, len: usize, at: usize, header: &mut [u8]) {
    assert!(at <= len && header.len() <= len - at);
    // SAFETY: the source is `len` bytes long, and what is read ends in it; the target is memory of our own.
    unsafe { std::ptr::copy_nonoverlapping(log.add(at), header.as_mut_ptr(), header.len()) }
}
