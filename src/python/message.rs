//! The verbs on one message as Python calls them.

use arrow_array::BinaryArray;
use arrow_array::cast::AsArray;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};

use super::columns::{Spec, wants, write_options};
use super::errors::{FaultTuple, fault_tuple, to_exception};
use super::gate::released;
use super::scalar::to_object;
use crate::arrow::{Apply, Input, Select};
use crate::error::Error;
use crate::format::Format;
use crate::header::Header;
use crate::kind::{Dialect, Kind};
use crate::op::inspect::Inspect;
use crate::op::values::DecodeMessage;
use crate::op::write::EncodeMessage;
use crate::walk::{FieldType, FieldValue, Is, ReadOptions};

/// `(key, kind, value)`
type HeaderTuple = (String, Option<String>, Option<Vec<u8>>);

/// A block to its headers, an envelope to its fields.
#[pyfunction]
#[pyo3(signature = (data, format, *, lenient=false))]
pub fn decode<'py>(py: Python<'py>, data: &[u8], format: &str, lenient: bool) -> PyResult<Bound<'py, PyAny>> {
    let format = Format::named(format).map_err(|error| to_exception(py, error))?;
    let options = ReadOptions { lenient };
    // Too short a work to let the GIL go for, but not one that may panic outside the gate.
    let message = released(py, || format.visit(DecodeMessage { cell: data, options }))?;
    let headers = match &message.headers {
        None => py.None().into_bound(py),
        Some(headers) => {
            let tuples = headers.iter().map(|header| header_tuple(py, header)).collect::<PyResult<Vec<_>>>()?;
            PyList::new(py, tuples)?.into_any()
        }
    };
    let info = format.info();
    if info.is == Is::Block {
        return Ok(headers);
    }
    let fields = PyDict::new(py);
    let mut values = message.fields.iter();
    for field in info.fields {
        match field.of {
            FieldType::Headers => fields.set_item(field.name, &headers)?,
            FieldType::Int64 | FieldType::Binary => match values.next() {
                Some(FieldValue::Int64(number)) => fields.set_item(field.name, number)?,
                Some(FieldValue::Binary(bytes)) => fields.set_item(field.name, PyBytes::new(py, bytes))?,
                Some(FieldValue::Null) | None => fields.set_item(field.name, py.None())?,
            },
        }
    }
    Ok(fields.into_any())
}

fn header_tuple<'py>(
    py: Python<'py>,
    header: &Header<'_>,
) -> PyResult<(String, Option<String>, Option<Bound<'py, PyBytes>>)> {
    let kind = header.kind.map(Kind::name);
    Ok((header.key.to_string(), kind, header.value.map(|value| PyBytes::new(py, value))))
}

/// Headers, or a dict of an envelope's fields, to bytes; None where the format has no cell for it.
#[pyfunction]
#[pyo3(signature = (message, format, *, on_loss="raise", kinds=None, null_headers="empty"))]
pub fn encode<'py>(
    py: Python<'py>,
    message: &Bound<'py, PyAny>,
    format: &str,
    on_loss: &str,
    kinds: Option<&str>,
    null_headers: &str,
) -> PyResult<Option<Bound<'py, PyBytes>>> {
    let format = Format::named(format).map_err(|error| to_exception(py, error))?;
    let options = write_options(on_loss, kinds, null_headers).map_err(|error| to_exception(py, error))?;
    let info = format.info();
    let mut owned = OwnedMessage::default();
    if info.is == Is::Block {
        owned.headers = message.extract()?;
    } else {
        let given = message.cast::<PyDict>()?;
        for field in info.fields {
            let value = given.get_item(field.name)?;
            match field.of {
                FieldType::Headers => owned.headers = value.map(|value| value.extract()).transpose()?.flatten(),
                FieldType::Int64 => {
                    let number = value.map(|value| value.extract::<Option<i64>>()).transpose()?.flatten();
                    owned.fields.push(OwnedField::Int64(number));
                }
                FieldType::Binary => {
                    let bytes = value.map(|value| value.extract::<Option<Vec<u8>>>()).transpose()?.flatten();
                    owned.fields.push(OwnedField::Binary(bytes));
                }
            }
        }
    }
    let made = released(py, || {
        let headers = owned.headers()?;
        format.visit(EncodeMessage { headers, fields: owned.fields(), options })
    })?;
    Ok(made.map(|bytes| PyBytes::new(py, &bytes)))
}

/// A message as Python handed it over.
#[derive(Default)]
struct OwnedMessage {
    headers: Option<Vec<HeaderTuple>>,
    fields: Vec<OwnedField>,
}

enum OwnedField {
    Int64(Option<i64>),
    Binary(Option<Vec<u8>>),
}

impl OwnedMessage {
    fn headers(&self) -> Result<Option<Vec<Header<'_>>>, Error> {
        let Some(headers) = &self.headers else { return Ok(None) };
        headers.iter().enumerate().map(|(index, tuple)| header(index, tuple)).collect::<Result<_, _>>().map(Some)
    }

    fn fields(&self) -> Vec<FieldValue<'_>> {
        self.fields.iter().map(OwnedField::value).collect()
    }
}

impl OwnedField {
    fn value(&self) -> FieldValue<'_> {
        match self {
            OwnedField::Int64(number) => number.map_or(FieldValue::Null, FieldValue::Int64),
            OwnedField::Binary(bytes) => bytes.as_deref().map_or(FieldValue::Null, FieldValue::Binary),
        }
    }
}

fn header(index: usize, (key, kind, value): &HeaderTuple) -> Result<Header<'_>, Error> {
    let kind = match kind {
        None => None,
        Some(name) => match Kind::parse(name) {
            Some(kind) => Some(kind),
            None => return Err(Error::Value(format!("header {index}: unknown kind '{name}'"))),
        },
    };
    Ok(Header { index, key: key.as_str().into(), kind, value: value.as_deref(), at: None })
}

/// Some headers of a message as a dict of Python values.
#[pyfunction]
#[pyo3(signature = (data, format, columns, *, lenient=false))]
pub fn select<'py>(
    py: Python<'py>,
    data: &[u8],
    format: &str,
    columns: Vec<Spec>,
    lenient: bool,
) -> PyResult<Bound<'py, PyDict>> {
    let format = Format::named(format).map_err(|error| to_exception(py, error))?;
    let wants = wants(columns).map_err(|error| to_exception(py, error))?;
    let verb = Select { wants, dialect: Dialect::Arrow, options: ReadOptions { lenient }, ..Select::default() };
    let cell = BinaryArray::from_vec(vec![data]);
    let made = released(py, || format.visit(Apply(&verb, Input::new(&cell))).map_err(without_row))?;
    let row = PyDict::new(py);
    let columns = made.column.as_struct();
    for (name, column) in columns.column_names().iter().zip(columns.columns()) {
        row.set_item(name, to_object(py, column, 0)?)?;
    }
    Ok(row)
}

/// One message has no rows to count.
fn without_row(error: Error) -> Error {
    match error {
        Error::Headers(direction, mut located) => {
            located.row = None;
            Error::Headers(direction, located)
        }
        other => other,
    }
}

/// Everything that is wrong with a message.
#[pyfunction]
#[pyo3(signature = (data, format, *, lenient=false))]
pub fn validate(py: Python<'_>, data: &[u8], format: &str, lenient: bool) -> PyResult<Vec<FaultTuple>> {
    let format = Format::named(format).map_err(|error| to_exception(py, error))?;
    let options = ReadOptions { lenient };
    let found = released(py, || Ok(format.visit(Inspect { cell: data, options })))?;
    Ok(found.faults.into_iter().map(fault_tuple).collect())
}

/// Every byte of a message with the field it belongs to, and everything that is wrong.
#[pyfunction]
#[pyo3(signature = (data, format, *, lenient=false))]
pub fn inspect<'py>(py: Python<'py>, data: &[u8], format: &str, lenient: bool) -> PyResult<Bound<'py, PyDict>> {
    let format = Format::named(format).map_err(|error| to_exception(py, error))?;
    let options = ReadOptions { lenient };
    let found = released(py, || Ok(format.visit(Inspect { cell: data, options })))?;
    let labels: Vec<_> =
        found.labels.into_iter().map(|label| (label.start, label.end, label.field, label.header, label.text)).collect();
    let parts = PyDict::new(py);
    parts.set_item("labels", labels)?;
    parts.set_item("faults", found.faults.into_iter().map(fault_tuple).collect::<Vec<_>>())?;
    Ok(parts)
}
