//! Creates Python objects of the headers and fields of a message.

use std::ptr;

use pyo3::IntoPyObjectExt;
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple, PyType};

use super::recent::{Origin, OriginPart, Recent};
use crate::field::{FieldValue, Role};
use crate::format_info::FormatInfo;
use crate::header::{Header, Key, RequestedKey};
use crate::value::{ByteOrder, bits_of};
use crate::value_type::ValueType;

/// Converts bytes to Python's `bytes`. For a large object, `PyBytes::new` would panic if memory cannot be allocated.
pub fn bytes_object<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    const MANY: usize = 1 << 16;
    if bytes.len() < MANY {
        return Ok(PyBytes::new(py, bytes));
    }
    PyBytes::new_with(py, bytes.len(), |copy| {
        copy.copy_from_slice(bytes);
        Ok(())
    })
}

/// Creates `letterhead.Headers` from headers, or None if the message has no headers field.
pub fn headers_object<'py>(
    py: Python<'py>,
    headers: Option<&[Header<'_>]>,
    order: ByteOrder,
) -> PyResult<Bound<'py, PyAny>> {
    let Some(headers) = headers else { return Ok(py.None().into_bound(py)) };
    let mut maker = Maker::new(py, order);
    let result = headers.iter().map(|header| maker.header(header)).collect::<PyResult<Vec<_>>>()?;
    headers_of(PyList::new(py, result)?.into_any())
}

/// Creates `letterhead.Headers` from a list or a `Packed`.
pub fn headers_of(items: Bound<'_, PyAny>) -> PyResult<Bound<'_, PyAny>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let py = items.py();
    let class = CLASS.import(py, "letterhead.headers", "Headers")?;
    // SAFETY: the class is written in Python, and its only base in C is `object`, whose objects are complete when they
    // are allocated. The result is a new reference, or null with an exception set.
    let result = unsafe {
        let result = ffi::PyType_GenericNew(class.as_type_ptr(), ptr::null_mut(), ptr::null_mut());
        Bound::from_owned_ptr_or_err(py, result)?
    };
    result.setattr(intern!(py, "_items"), items)?;
    Ok(result)
}

pub fn fields_dict<'py>(
    py: Python<'py>,
    info: &FormatInfo,
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
        Some(FieldValue::Binary(bytes)) => Ok(bytes_object(py, bytes)?.into_any()),
        Some(FieldValue::Id(id)) => Ok(PyBytes::new(py, id).into_any()),
    }
}

/// Creates the objects of headers.
pub struct Maker<'py> {
    py: Python<'py>,
    recent: Recent,
    order: ByteOrder,
}

impl<'py> Maker<'py> {
    pub fn new(py: Python<'py>, order: ByteOrder) -> Self {
        Maker { py, recent: Recent::take(), order }
    }

    #[inline]
    pub fn header(&mut self, header: &Header<'_>) -> PyResult<Bound<'py, PyAny>> {
        let Maker { py, recent, order } = self;
        let Key::Text(key) = &header.key else { return new_header(*py, self.pair(header)?) };
        let key = key.as_bytes();
        let (value, part) = match header.value {
            Some(value) => (value, OriginPart::Value(header.value_type.map(|value_type| (value_type, *order)))),
            None => (&[][..], OriginPart::Null),
        };
        recent.get(*py, Origin { key, value, part }, |recent| {
            new_header(*py, [text_object(*py, recent, key)?, value_object(*py, header, *order)?])
        })
    }

    /// Creates the key and the value of a header.
    #[inline]
    pub fn pair(&mut self, header: &Header<'_>) -> PyResult<[Bound<'py, PyAny>; 2]> {
        Ok([self.key(&header.key)?, value_object(self.py, header, self.order)?])
    }

    /// Creates a key: text, an integer, or a `letterhead.Value`. A typed string that is UTF-8 is text.
    #[inline]
    pub fn key(&mut self, key: &Key<'_>) -> PyResult<Bound<'py, PyAny>> {
        match key {
            Key::Text(text) => text_object(self.py, &mut self.recent, text.as_bytes()),
            Key::Int(number) => number.into_bound_py_any(self.py),
            Key::Typed(typed) => match typed.text() {
                Some(text) => text_object(self.py, &mut self.recent, text.as_bytes()),
                None => typed_object(self.py, typed.value_type, &typed.bits()),
            },
        }
    }
}

/// Creates a text key, which the parser has verified to be UTF-8.
#[inline]
fn text_object<'py>(py: Python<'py>, recent: &mut Recent, key: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    recent.get(py, Origin { key, value: &[], part: OriginPart::Key }, |_| {
        Ok(PyString::new(py, &String::from_utf8_lossy(key)).into_any())
    })
}

/// Creates a `letterhead.Header`, a named tuple.
fn new_header<'py>(py: Python<'py>, [key, value]: [Bound<'py, PyAny>; 2]) -> PyResult<Bound<'py, PyAny>> {
    /// The class, and `tuple.__new__` if tuples have to be created by it.
    static HEADER: PyOnceLock<(Py<PyType>, Option<Py<PyAny>>)> = PyOnceLock::new();
    let (class, new) = HEADER.get_or_try_init(py, || {
        let class = py.import("letterhead.headers")?.getattr("Header")?.cast_into::<PyType>()?;
        // From Python 3.14 on a tuple contains its hash, which only `tuple.__new__` sets.
        let is_plain = py.version_info() < (3, 14) && class.is_subclass_of::<PyTuple>()?;
        let new = if is_plain { None } else { Some(py.get_type::<PyTuple>().getattr("__new__")?.unbind()) };
        PyResult::Ok((class.unbind(), new))
    })?;
    if let Some(new) = new {
        return new.bind(py).call1((class, (key, value)));
    }
    // SAFETY: the class is derived from `tuple`, which up to Python 3.13 consists of the number of items and the items.
    // `PyType_GenericAlloc` allocates two null items, which `PyTuple_SetItem` sets, as `tuple.__new__` does. The
    // allocation is a new reference, or null with an exception set. There is no other reference to it, and 0 and 1 are
    // below its number of items, as `PyTuple_SetItem` requires; it takes the reference that `into_ptr` releases.
    unsafe {
        let result = Bound::from_owned_ptr_or_err(py, ffi::PyType_GenericAlloc(class.as_ptr().cast(), 2))?;
        for (index, object) in [(0, key), (1, value)] {
            if ffi::PyTuple_SetItem(result.as_ptr(), index, object.into_ptr()) != 0 {
                return Err(PyErr::fetch(py));
            }
        }
        Ok(result)
    }
}

/// Creates the value of a header: None, bytes, or a `letterhead.Value`.
#[inline]
pub fn value_object<'py>(py: Python<'py>, header: &Header<'_>, order: ByteOrder) -> PyResult<Bound<'py, PyAny>> {
    match (header.value, header.value_type) {
        (None, _) => Ok(py.None().into_bound(py)),
        (Some(value), None) => Ok(bytes_object(py, value)?.into_any()),
        (Some(value), Some(value_type)) => typed_object(py, value_type, &bits_of(value_type, value, order)),
    }
}

fn typed_object<'py>(py: Python<'py>, value_type: ValueType, bits: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    static MAKE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    MAKE.import(py, "letterhead.values", "value_from_message")?.call1((value_type.name(), bytes_object(py, bits)?))
}

pub fn requested_object<'py>(py: Python<'py>, key: &RequestedKey) -> PyResult<Bound<'py, PyAny>> {
    match key {
        RequestedKey::Text(text) => text.into_bound_py_any(py),
        RequestedKey::Int(number) => number.into_bound_py_any(py),
        RequestedKey::Typed(value_type, bits) => (value_type.name(), PyBytes::new(py, bits)).into_bound_py_any(py),
    }
}
