//! What the core makes of one message, as Python has it.

use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};

use crate::format::Info;
use crate::header::{Header, Key, WantedKey};
use crate::value::{ByteOrder, bits_of};
use crate::walk::{FieldValue, Role};

/// A list of `(key, kind, value)`, or None where the message has no headers.
pub fn headers_object<'py>(
    py: Python<'py>,
    headers: Option<&[Header<'_>]>,
    order: ByteOrder,
) -> PyResult<Bound<'py, PyAny>> {
    let Some(headers) = headers else { return Ok(py.None().into_bound(py)) };
    let tuples = headers.iter().map(|header| header_tuple(py, header, order)).collect::<PyResult<Vec<_>>>()?;
    Ok(PyList::new(py, tuples)?.into_any())
}

/// A dict of the fields of an envelope.
pub fn fields_dict<'py>(
    py: Python<'py>,
    info: Info,
    headers: &Bound<'py, PyAny>,
    fields: &[FieldValue<'_>],
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    let mut values = fields.iter();
    for field in info.fields {
        match field.role {
            Role::Headers => dict.set_item(field.name, headers)?,
            _ => dict.set_item(field.name, field_object(py, values.next())?)?,
        }
    }
    Ok(dict)
}

fn field_object<'py>(py: Python<'py>, value: Option<&FieldValue<'_>>) -> PyResult<Bound<'py, PyAny>> {
    match value {
        None | Some(FieldValue::Null) => Ok(py.None().into_bound(py)),
        Some(FieldValue::Bool(flag)) => flag.into_bound_py_any(py),
        Some(FieldValue::Int64(number)) => number.into_bound_py_any(py),
        Some(FieldValue::Uint64(number)) => number.into_bound_py_any(py),
        Some(FieldValue::Text(text)) => text.into_bound_py_any(py),
        Some(FieldValue::Binary(bytes)) => Ok(PyBytes::new(py, bytes).into_any()),
        Some(FieldValue::Id(id)) => Ok(PyBytes::new(py, id).into_any()),
    }
}

/// `(key, kind, value)`
type HeaderTuple<'py> = (Bound<'py, PyAny>, Option<Bound<'py, PyAny>>, Option<Bound<'py, PyBytes>>);

fn header_tuple<'py>(py: Python<'py>, header: &Header<'_>, order: ByteOrder) -> PyResult<HeaderTuple<'py>> {
    let kind = header.kind.map(|kind| kind.name().into_bound_py_any(py)).transpose()?;
    let value = header.value.map(|value| match header.kind {
        Some(kind) => PyBytes::new(py, &bits_of(kind, value, order)),
        None => PyBytes::new(py, value),
    });
    Ok((key_object(py, &header.key)?, kind, value))
}

/// Text, an integer, or `(kind, bits)`; a typed string that is UTF-8 is text.
fn key_object<'py>(py: Python<'py>, key: &Key<'_>) -> PyResult<Bound<'py, PyAny>> {
    match key {
        Key::Text(_) => key.to_string().into_bound_py_any(py),
        Key::Int(number) => number.into_bound_py_any(py),
        Key::Typed(typed) => match typed.text() {
            Some(text) => text.into_bound_py_any(py),
            None => (typed.kind.name(), PyBytes::new(py, &typed.bits())).into_bound_py_any(py),
        },
    }
}

/// The same for a key that was asked for.
pub fn wanted_object<'py>(py: Python<'py>, key: &WantedKey) -> PyResult<Bound<'py, PyAny>> {
    match key {
        WantedKey::Text(text) => text.into_bound_py_any(py),
        WantedKey::Int(number) => number.into_bound_py_any(py),
        WantedKey::Typed(kind, bits) => (kind.name(), PyBytes::new(py, bits)).into_bound_py_any(py),
    }
}
