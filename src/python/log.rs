//! Kafka logs: finds the positions of batches, for planning reads, and writes batches.

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use super::arguments::{MessageArgument, argument, parse_choice, read_options, size, write_options};
use super::c_interface;
use super::gil::{enter, without_gil, without_gil_if_long};
use super::objects::bytes_object;
use crate::arrow::produce::{Produce, ProducedBatch};
use crate::codec::Codec;
use crate::error::Error;
use crate::format::Format;
use crate::formats::batch::log_index::heads;
use crate::formats::batch::partitioner::Partitioner;
use crate::formats::batch::record_batch;
use crate::op::batch::write;

/// `(position, size, base_offset, last_offset, magic, attributes, max_timestamp, producer_id, count)`
type Head = (usize, usize, i64, i64, i8, i16, i64, i64, i32);

/// Finds the complete batches that begin in a buffer from `start` on, until they have `most` bytes; also returns the
/// offset of the first byte after them. The log has `beyond` more bytes after the buffer.
#[pyfunction]
#[pyo3(signature = (data, start=0, most=None, beyond=0))]
pub fn record_batches(
    data: PyBuffer<u8>,
    start: usize,
    most: Option<usize>,
    beyond: usize,
) -> PyResult<(Vec<Head>, usize)> {
    enter(|| {
        let log = SharedBytes::new(data)?;
        let most = most.unwrap_or(usize::MAX);
        let batches = heads(log.len(), beyond, start, most, |offset, header| log.copy(offset, header));
        let tuple = |head: &crate::formats::batch::log_index::Head| {
            let offsets = (head.base_offset, head.last_offset);
            let (max, producer) = (head.max_timestamp, head.producer_id);
            (head.position, head.size, offsets.0, offsets.1, head.magic, head.attributes, max, producer, head.count)
        };
        Ok((batches.heads.iter().map(tuple).collect(), batches.end))
    })
}

/// Decompresses the record batch at the beginning of these bytes. A compressed set of an older format is replaced by
/// its messages.
#[pyfunction]
#[pyo3(signature = (data, read=None))]
pub fn uncompressed<'py>(
    py: Python<'py>,
    data: &[u8],
    read: Option<Bound<'py, PyTuple>>,
) -> PyResult<Bound<'py, PyBytes>> {
    enter(|| {
        let limits = read_options(py, read)?.limits;
        let bytes = without_gil_if_long(py, data.len(), || record_batch::decompress_batch(data, limits))?;
        bytes_object(py, &bytes)
    })
}

/// Returns a record batch with a recomputed checksum.
#[pyfunction]
pub fn with_checksum<'py>(py: Python<'py>, data: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    enter(|| bytes_object(py, &record_batch::with_checksum(data)))
}

/// Returns a record batch with the id and epoch of a producer, and the sequence of its first record.
#[pyfunction]
pub fn with_producer<'py>(
    py: Python<'py>,
    data: &[u8],
    producer_id: i64,
    #[pyo3(from_py_with = argument::extract)] producer_epoch: i16,
    #[pyo3(from_py_with = argument::extract)] sequence: i32,
) -> PyResult<Bound<'py, PyBytes>> {
    enter(|| {
        let sealed = || record_batch::with_producer(data, producer_id, producer_epoch, sequence);
        bytes_object(py, &without_gil_if_long(py, data.len(), sealed)?)
    })
}

/// Partition, the indexes of its rows as native 32-bit integers, and a record batch of them.
type Produced<'py> = (i32, Bound<'py, PyBytes>, Option<Bound<'py, PyBytes>>);

/// Encodes rows as record batches, from the columns `key`, `value`, `headers`, `timestamp` and `partition`.
#[pyfunction]
#[pyo3(signature = (rows, partitions, *, partitioner, keyless, codec, level, batch_bytes, batch_rows, record_bytes))]
#[expect(clippy::too_many_arguments, reason = "one for each setting of a producer")]
pub fn partition_batches<'py>(
    py: Python<'py>,
    rows: &Bound<'py, PyAny>,
    #[pyo3(from_py_with = argument::extract)] partitions: u32,
    #[pyo3(from_py_with = argument::partitioner)] partitioner: &str,
    #[pyo3(from_py_with = argument::extract)] keyless: u32,
    #[pyo3(from_py_with = argument::codec)] codec: &str,
    #[pyo3(from_py_with = argument::extract)] level: Option<i32>,
    batch_bytes: usize,
    batch_rows: usize,
    record_bytes: usize,
) -> PyResult<Vec<Produced<'py>>> {
    enter(|| {
        let rows = c_interface::import_batch(rows)?;
        let produce = Produce {
            partitions,
            partitioner: parse_choice("partitioner", partitioner, &Partitioner::NAMES)?,
            keyless,
            codec: codec_of(codec)?,
            level,
            batch_bytes,
            batch_rows,
            record_bytes,
        };
        let produced = without_gil(py, || produce.apply(&rows))?;
        let tuple = |batch: ProducedBatch| {
            let rows: Vec<u8> = batch.rows.iter().flat_map(|row| row.to_ne_bytes()).collect();
            let bytes = batch.bytes.map(|bytes| bytes_object(py, &bytes)).transpose()?;
            Ok((batch.partition, bytes_object(py, &rows)?, bytes))
        };
        produced.into_iter().map(tuple).collect()
    })
}

fn codec_of(name: &str) -> Result<Codec, Error> {
    parse_choice("codec", name, &Codec::ALL.map(|codec| (codec.name(), codec)))
}

/// Writes dicts of the fields of messages as one batch.
#[pyfunction]
#[pyo3(signature = (messages, format, codec, options=None))]
pub fn batch<'py>(
    py: Python<'py>,
    #[pyo3(from_py_with = argument::extract)] messages: Vec<Bound<'py, PyAny>>,
    #[pyo3(from_py_with = argument::format)] format: Format,
    #[pyo3(from_py_with = argument::codec)] codec: &str,
    options: Option<Bound<'py, PyTuple>>,
) -> PyResult<Bound<'py, PyBytes>> {
    enter(|| {
        let codec = codec_of(codec)?;
        let options = write_options(options)?;
        let info = format.info();
        let read_message = |dict: &Bound<'py, PyAny>| MessageArgument::of(dict, info);
        let arguments = messages.iter().map(read_message).collect::<PyResult<Vec<_>>>()?;
        let messages = arguments.iter().map(|argument| argument.encode(info.name, options.clone()));
        let messages = messages.collect::<PyResult<Vec<_>>>()?;
        let size = messages.iter().map(size).sum();
        bytes_object(py, &without_gil_if_long(py, size, || write(format, messages, codec))?)
    })
}

/// Bytes of a mapped file, which other processes may change. No Rust reference may point to them.
struct SharedBytes(PyBuffer<u8>);

impl SharedBytes {
    fn new(buffer: PyBuffer<u8>) -> PyResult<Self> {
        match buffer.is_c_contiguous() {
            true => Ok(SharedBytes(buffer)),
            false => Err(PyValueError::new_err("the buffer is not contiguous")),
        }
    }

    fn len(&self) -> usize {
        self.0.item_count()
    }

    /// Copies the bytes from `offset` on.
    fn copy(&self, offset: usize, to: &mut [u8]) {
        assert!(offset <= self.len() && to.len() <= self.len() - offset);
        // SAFETY: the buffer keeps its memory, which is contiguous, as `new` checked. The bytes that are read are
        // inside it, and the target is memory of our own.
        unsafe { std::ptr::copy_nonoverlapping(self.0.buf_ptr().cast::<u8>().add(offset), to.as_mut_ptr(), to.len()) }
    }
}
