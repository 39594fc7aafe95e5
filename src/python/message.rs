//! Operations on one message, which Python calls.

use std::sync::Mutex;

use arrow_array::BinaryArray;
use arrow_array::cast::AsArray;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple};

use super::arguments::{
    self, MessageArgument, TypesArgument, argument, limits_or_default, read_options, size, type_option, write_options,
};
use super::columns::{ColumnSpec, selections};
use super::errors::{ErrorTuple, LossTuple, error_tuple, loss_tuple};
use super::gil::{enter, without_gil, without_gil_if_long};
use super::objects::{bytes_object, fields_dict, headers_object, headers_of, requested_object};
use super::packed::{Packed, Positions};
use super::scalar::to_object;
use crate::arrow::types::Dialect;
use crate::arrow::{Apply, Input, Select};
use crate::field::FieldValue;
use crate::format::Format;
use crate::format_info::Class;
use crate::header::Header;
use crate::memory;
use crate::op::convert::convert_message;
use crate::op::inspect::{Inspect, Inspection};
use crate::op::messages::{Bookmark, MessageHeaders, ReadMessages};
use crate::op::not_a_batch;
use crate::op::values::{ParseMessage, gather_message};
use crate::op::write::TypeHint;
use crate::options::{ReadOptions, WriteOptions};
use crate::panics::catch_panic;
use crate::sink::Presence;

/// Decodes headers to `letterhead.Headers`, which are parsed on access, and a message to a dict of its fields.
///
/// `decode` and `encode` are the fastest functions. Their options are separate arguments, because a tuple would have to
/// be built and read.
#[pyfunction]
#[pyo3(signature = (data, format, lenient=false, strict_types=false, limits=None))]
pub fn decode<'py>(
    py: Python<'py>,
    data: Bound<'py, PyBytes>,
    #[pyo3(from_py_with = argument::format)] format: Format,
    #[pyo3(from_py_with = argument::lenient)] lenient: bool,
    #[pyo3(from_py_with = argument::strict_types)] strict_types: bool,
    limits: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    enter(|| {
        let limits = limits_or_default(py, limits)?;
        let options = ReadOptions { lenient, strict_types, text_keys: false, limits };
        let info = format.info();
        let bytes = data.as_bytes();
        // Positions have 32 bits. The objects of a larger message, which default limits do not allow, are created at
        // once.
        if info.class == Class::Headers && u32::try_from(bytes.len()).is_ok() {
            let read = ParseMessage { data: bytes, options, fresh: || Positions::new(bytes) };
            let (positions, _) = without_gil_if_long(py, bytes.len(), || format.visit(read))?;
            return headers_of(Bound::new(py, Packed::new(data.clone(), info.order, positions))?.into_any());
        }
        let (message, presence) = without_gil_if_long(py, bytes.len(), || gather_message(info, bytes, options))?;
        let headers = (presence != Presence::Absent).then_some(&message.headers[..]);
        let headers = headers_object(py, headers, info.order)?;
        match info.class {
            Class::Headers => Ok(headers),
            _ => Ok(fields_dict(py, info, &headers, &message.fields)?.into_any()),
        }
    })
}

/// Reads the messages of a batch, a few at a time. With `parse_headers=False`, the headers are bytes that are not
/// validated.
#[pyfunction]
#[pyo3(signature = (data, format, read=None, *, parse_headers=true))]
pub fn messages(
    py: Python<'_>,
    data: Py<PyBytes>,
    #[pyo3(from_py_with = argument::format)] format: Format,
    read: Option<Bound<'_, PyTuple>>,
    parse_headers: bool,
) -> PyResult<MessageReader> {
    enter(|| {
        if format.info().class != Class::Batch {
            return Err(not_a_batch(format.info().name).into());
        }
        let options = read_options(py, read)?;
        let state = Mutex::new(Some(Bookmark::default()));
        Ok(MessageReader { data, format, options, parse_headers, state })
    })
}

/// Iterator over lists of messages, each of which is a dict of its fields, and the error after them, if any.
#[pyclass(frozen, module = "letterhead._native")]
pub struct MessageReader {
    data: Py<PyBytes>,
    format: Format,
    options: ReadOptions,
    parse_headers: bool,
    /// `None` after the end.
    state: Mutex<Option<Bookmark>>,
}

/// Approximate Python overhead for each header.
fn object_size(header: &Header<'_>) -> usize {
    const OBJECTS: usize = 128;
    OBJECTS + header.key.byte_len() + header.value.map_or(0, <[u8]>::len)
}

/// Maximum number of messages, and of their bytes, in one list. A larger message gets a separate list.
const MAX_LIST_MESSAGES: usize = 1 << 11;
const MAX_LIST_BYTES: usize = 1 << 18;

#[pymethods]
impl MessageReader {
    fn __iter__(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        enter(|| Ok(slf))
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<(Bound<'py, PyList>, Option<PyErr>)>> {
        enter(|| {
            let Ok(mut state) = self.state.try_lock() else {
                return Err(PyValueError::new_err("the messages are being read by another thread: read them in one"));
            };
            // The bookmark is taken out, so that reading ends after an exception.
            let Some(mut bookmark) = state.take() else { return Ok(None) };
            let (info, list, mut failed) = (self.format.info(), PyList::empty(py), None);
            let mut size = 0;
            let append = |headers: Option<MessageHeaders<'_>>, fields: &[FieldValue<'_>]| {
                size += fields.iter().map(FieldValue::byte_len).sum::<usize>();
                let headers = match headers {
                    Some(MessageHeaders::Bytes(bytes)) => {
                        size += bytes.len();
                        bytes_object(py, bytes).map(Bound::into_any)
                    }
                    Some(MessageHeaders::Parsed(headers)) => {
                        size += headers.iter().map(object_size).sum::<usize>();
                        headers_object(py, Some(headers), info.order)
                    }
                    None => headers_object(py, None, info.order),
                };
                let dict = headers.and_then(|headers| fields_dict(py, info, &headers, fields));
                match dict.and_then(|dict| list.append(dict)) {
                    Ok(()) => list.len() < MAX_LIST_MESSAGES && size < MAX_LIST_BYTES,
                    Err(error) => {
                        failed = Some(error);
                        false
                    }
                }
            };
            let (data, options, parse_headers) = (self.data.as_bytes(py), self.options, self.parse_headers);
            let read = ReadMessages { data, options, parse_headers, bookmark: &mut bookmark, receive: append };
            // The GIL is kept, because objects are created as messages are read.
            let done = catch_panic(|| self.format.visit(read))?;
            if let Some(error) = failed {
                return Err(error);
            }
            match done {
                Ok(true) => *state = Some(bookmark),
                Ok(false) if list.is_empty() => return Ok(None),
                Ok(false) => {}
                Err(error) => return Ok(Some((list, Some(error.into())))),
            }
            Ok(Some((list, None)))
        })
    }
}

/// Encodes headers, or a dict of a message's fields; None if the format writes no bytes for it.
#[pyfunction]
#[pyo3(signature = (message, format, on_loss="raise", types=None, nulls="skip", canonical=false))]
pub fn encode<'py>(
    py: Python<'py>,
    message: &Bound<'py, PyAny>,
    #[pyo3(from_py_with = argument::format)] format: Format,
    #[pyo3(from_py_with = argument::on_loss)] on_loss: &str,
    #[pyo3(from_py_with = argument::extract)] types: Option<TypesArgument>,
    #[pyo3(from_py_with = argument::nulls)] nulls: &str,
    #[pyo3(from_py_with = argument::canonical)] canonical: bool,
) -> PyResult<Option<Bound<'py, PyBytes>>> {
    enter(|| {
        let (on_loss, types) = (arguments::on_loss(on_loss)?, type_option(types)?);
        let refuse_null_headers = arguments::refuses_nulls(nulls)?;
        let options = WriteOptions { on_loss, types, refuse_null_headers, canonical };
        let info = format.info();
        let argument = MessageArgument::of(message, info)?;
        let message = argument.encode(info.name, options)?;
        let result = without_gil_if_long(py, size(&message), || message.encode(info))?;
        result.map(|bytes| bytes_object(py, &bytes)).transpose()
    })
}

/// Converts a message to another format; also returns the losses, and the types that restore the values. The data is
/// None if the target writes no bytes for it.
#[pyfunction]
#[pyo3(signature = (data, format, target, read=None, write=None))]
pub fn convert<'py>(
    py: Python<'py>,
    data: &[u8],
    #[pyo3(from_py_with = argument::format)] format: Format,
    #[pyo3(from_py_with = argument::target)] target: Format,
    read: Option<Bound<'py, PyTuple>>,
    write: Option<Bound<'py, PyTuple>>,
) -> PyResult<ConvertedTuple<'py>> {
    enter(|| {
        let (write, read) = (write_options(write)?, read_options(py, read)?);
        let result = without_gil(py, || convert_message(data, format, target, read, write))?;
        let losses = result.losses.into_iter().map(loss_tuple).collect();
        let back = |back: TypeHint| Ok((requested_object(py, &back.key)?, back.value_type, back.lost));
        let type_hints = result.type_hints.into_iter().map(back).collect::<PyResult<_>>()?;
        Ok((result.data.map(|bytes| bytes_object(py, &bytes)).transpose()?, losses, type_hints))
    })
}

/// A type option that restores a type: `(key, type, lost)`.
type TypeHintTuple<'py> = (Bound<'py, PyAny>, String, bool);

/// `(data, losses, types)`
type ConvertedTuple<'py> = (Option<Bound<'py, PyBytes>>, Vec<LossTuple>, Vec<TypeHintTuple<'py>>);

/// Reads selected headers of a message to a dict of Python values.
#[pyfunction]
#[pyo3(signature = (data, format, columns, read=None))]
pub fn select<'py>(
    py: Python<'py>,
    data: &[u8],
    #[pyo3(from_py_with = argument::format)] format: Format,
    #[pyo3(from_py_with = argument::extract)] columns: Vec<ColumnSpec>,
    read: Option<Bound<'py, PyTuple>>,
) -> PyResult<Bound<'py, PyDict>> {
    enter(|| {
        let selections = selections(columns)?;
        let options = read_options(py, read)?;
        let operation = Select { selections, dialect: Dialect::Arrow, options, ..Select::default() };
        // Checked before the message is copied.
        options.limits.check_size(data.len(), format.info().name)?;
        memory::probe(data.len().saturating_mul(2));
        let data = BinaryArray::from_vec(vec![data]);
        let result =
            without_gil(py, || format.visit(Apply(&operation, Input::new(&data))).map_err(|error| error.in_row(None)))?;
        let row = PyDict::new(py);
        let columns = result.column.as_struct();
        for (name, column) in columns.column_names().iter().zip(columns.columns()) {
            row.set_item(name, to_object(py, column, 0)?)?;
        }
        Ok(row)
    })
}

/// Returns all errors of a message.
#[pyfunction]
#[pyo3(signature = (data, format, read=None))]
pub fn validate<'py>(
    py: Python<'py>,
    data: &[u8],
    #[pyo3(from_py_with = argument::format)] format: Format,
    read: Option<Bound<'py, PyTuple>>,
) -> PyResult<Vec<ErrorTuple>> {
    enter(|| {
        let inspection = take_apart(py, data, format, read_options(py, read)?)?;
        Ok(inspection.errors.into_iter().map(error_tuple).collect())
    })
}

/// Labels every byte of a message with its field, and returns all errors.
#[pyfunction]
#[pyo3(signature = (data, format, read=None))]
pub fn inspect<'py>(
    py: Python<'py>,
    data: &[u8],
    #[pyo3(from_py_with = argument::format)] format: Format,
    read: Option<Bound<'py, PyTuple>>,
) -> PyResult<Bound<'py, PyDict>> {
    enter(|| {
        let inspection = take_apart(py, data, format, read_options(py, read)?)?;
        let labels: Vec<_> = inspection
            .labels
            .into_iter()
            .map(|label| (label.start, label.end, label.field, label.header, label.text))
            .collect();
        let parts = PyDict::new(py);
        parts.set_item("labels", labels)?;
        parts.set_item("errors", inspection.errors.into_iter().map(error_tuple).collect::<Vec<_>>())?;
        Ok(parts)
    })
}

fn take_apart(py: Python<'_>, data: &[u8], format: Format, options: ReadOptions) -> PyResult<Inspection> {
    without_gil(py, || Ok(format.visit(Inspect { data, options })))
}
