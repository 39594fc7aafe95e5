//! What the core makes of one message, as Python has it.

use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple, PyType};

use super::keys::Keys;
use crate::format::Info;
use crate::header::{Header, Key, WantedKey};
use crate::kind::Kind;
use crate::value::{ByteOrder, bits_of};
use crate::walk::{FieldValue, Role};

/// `letterhead.Headers` of headers that were read, or None where the message has none.
pub fn headers_object<'py>(
    py: Python<'py>,
    headers: Option<&[Header<'_>]>,
    order: ByteOrder,
) -> PyResult<Bound<'py, PyAny>> {
    let Some(headers) = headers else { return Ok(py.None().into_bound(py)) };
    let mut maker = Maker::new(header_class(py)?, order);
    let made = headers.iter().map(|header| maker.header(header)).collect::<PyResult<Vec<_>>>()?;
    headers_of(PyList::new(py, made)?.into_any())
}

/// `letterhead.Headers` of a list, or of headers that are still in their bytes.
pub fn headers_of(items: Bound<'_, PyAny>) -> PyResult<Bound<'_, PyAny>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let py = items.py();
    let class = CLASS.import(py, "letterhead.headers", "Headers")?;
    let made = New::of(class).make(class, &PyTuple::empty(py))?;
    made.setattr(intern!(py, "_items"), items)?;
    Ok(made)
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

/// `letterhead.Header`, a named tuple.
pub fn header_class(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let class = CLASS.get_or_try_init(py, || {
        let class = py.import("letterhead.headers")?.getattr("Header")?.cast_into::<PyType>()?;
        // What is made of it is laid out as a tuple.
        match class.is_subclass_of::<PyTuple>()? {
            true => Ok(class.unbind()),
            false => Err(PyTypeError::new_err("letterhead.headers.Header is no tuple")),
        }
    })?;
    Ok(class.bind(py))
}

/// Makes headers one after the other.
pub struct Maker<'py> {
    class: &'py Bound<'py, PyType>,
    new: New,
    /// The arguments of `new`: one tuple, of a pair.
    args: Bound<'py, PyTuple>,
    keys: Keys,
    order: ByteOrder,
}

impl<'py> Maker<'py> {
    pub fn new(class: &'py Bound<'py, PyType>, order: ByteOrder) -> Self {
        let (py, args) = (class.py(), PyTuple::empty(class.py()));
        Maker { class, new: New::of(&py.get_type::<PyTuple>()), args, keys: Keys::new(), order }
    }

    /// A `letterhead.Header`.
    #[inline]
    pub fn header(&mut self, header: &Header<'_>) -> PyResult<Bound<'py, PyAny>> {
        let [key, value] = self.pair(header)?;
        self.hand_over(key, value)?;
        self.new.make(self.class, &self.args)
    }

    /// The key and the value of a header.
    #[inline]
    pub fn pair(&mut self, header: &Header<'_>) -> PyResult<[Bound<'py, PyAny>; 2]> {
        Ok([self.key(&header.key)?, value_object(self.class.py(), header, self.order)?])
    }

    /// Puts a pair into the arguments: into the pair that was there before if nobody else has it, as `zip` does.
    #[inline]
    fn hand_over(&mut self, key: Bound<'py, PyAny>, value: Bound<'py, PyAny>) -> PyResult<()> {
        let py = self.class.py();
        let before = if self.args.is_empty() { None } else { self.args.get_borrowed_item(0).ok() };
        match before.map(|pair| pair.as_ptr()) {
            // SAFETY: a tuple of two that only the arguments hold; `PyTuple_SetItem` takes over what it is given.
            Some(pair) if unsafe { ffi::Py_REFCNT(pair) } == 1 => {
                // SAFETY: as above.
                let set =
                    |place, object: Bound<'py, PyAny>| unsafe { ffi::PyTuple_SetItem(pair, place, object.into_ptr()) };
                if set(0, key) != 0 || set(1, value) != 0 {
                    return Err(PyErr::fetch(py));
                }
            }
            _ => self.args = PyTuple::new(py, [PyTuple::new(py, [key, value])?])?,
        }
        Ok(())
    }

    /// Text, an integer, or a `letterhead.Value`; a typed string that is UTF-8 is text.
    #[inline]
    pub fn key(&mut self, key: &Key<'_>) -> PyResult<Bound<'py, PyAny>> {
        let py = self.class.py();
        match key {
            Key::Text(text) => Ok(self.keys.text(py, text.as_bytes()).into_any()),
            Key::Int(number) => number.into_bound_py_any(py),
            Key::Typed(typed) => match typed.text() {
                Some(text) => Ok(self.keys.text(py, text.as_bytes()).into_any()),
                None => typed_object(py, typed.kind, &typed.bits()),
            },
        }
    }
}

/// The value of a header: None, bytes, or a `letterhead.Value`.
#[inline]
pub fn value_object<'py>(py: Python<'py>, header: &Header<'_>, order: ByteOrder) -> PyResult<Bound<'py, PyAny>> {
    match (header.value, header.kind) {
        (None, _) => Ok(py.None().into_bound(py)),
        (Some(value), None) => Ok(PyBytes::new(py, value).into_any()),
        (Some(value), Some(kind)) => typed_object(py, kind, &bits_of(kind, value, order)),
    }
}

/// A `letterhead.Value` of bits that came in a message.
fn typed_object<'py>(py: Python<'py>, kind: Kind, bits: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    static MAKE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    MAKE.import(py, "letterhead.values", "of_message")?.call1((kind.name(), PyBytes::new(py, bits)))
}

/// How the objects of a class are made, without a lookup of `__new__` and what it costs to call that.
struct New(ffi::newfunc);

impl New {
    fn of(class: &Bound<'_, PyType>) -> New {
        // SAFETY: this slot of a type holds a function of this type; a class of Python always has one, and so has tuple.
        unsafe {
            let slot = ffi::PyType_GetSlot(class.as_type_ptr(), ffi::Py_tp_new);
            assert!(!slot.is_null());
            New(std::mem::transmute::<*mut std::ffi::c_void, ffi::newfunc>(slot))
        }
    }

    /// An object of the class that this is of, or of one derived from it that is laid out alike.
    #[inline]
    fn make<'py>(&self, class: &Bound<'py, PyType>, args: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
        // SAFETY: called as `__new__` calls it: with a class, a tuple of arguments that outlives the call, and no keywords.
        // It gives a new reference, or null and an exception.
        unsafe {
            let made = (self.0)(class.as_type_ptr(), args.as_ptr(), std::ptr::null_mut());
            Bound::from_owned_ptr_or_err(class.py(), made)
        }
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
