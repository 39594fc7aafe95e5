//! [`Packed`]: validated headers that are converted to objects only when they are accessed.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::OnceLock;

use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyIterator, PyList, PyString, PyTuple};

use super::gil::enter;
use super::objects::{Maker, value_object};
use crate::header::{Header, Key, Text, TypedKey};
use crate::log::{Log, Result};
use crate::memory;
use crate::number::fitting;
use crate::sink::Sink;
use crate::value::ByteOrder;
use crate::value_type::ValueType;

/// Headers in their bytes, and the position of each. Objects are created on access, only of the requested headers.
///
/// Keys are `str`; `list` contains the headers.
#[pyclass(frozen, module = "letterhead._native")]
pub struct Packed {
    data: Py<PyBytes>,
    order: ByteOrder,
    headers: Vec<Position>,
    /// List that every access returns, so that a change to it is visible everywhere.
    list: PyOnceLock<Py<PyList>>,
    /// Indexes of the headers of each key, after the first lookup among many headers.
    indexes: OnceLock<HashMap<Box<[u8]>, Vec<u32>>>,
}

/// Maximum number of headers for which comparing keys one by one is faster than a hash table.
const FEW_HEADERS: usize = 32;

/// Position of a header in its message.
struct Position {
    key: KeyPosition,
    value: Option<ByteRange>,
    value_type: Option<ValueType>,
}

enum KeyPosition {
    Text(ByteRange),
    /// Text that is not in the message, because bytes that are not UTF-8 were replaced.
    Replaced(Box<[u8]>),
    Int(i32),
    Typed(ValueType, ByteRange),
}

/// A start and a length.
#[derive(Clone, Copy)]
struct ByteRange(u32, u32);

impl ByteRange {
    /// Returns the range of borrowed bytes in their message.
    #[inline]
    fn of(bytes: &[u8], message: &[u8]) -> Self {
        ByteRange(fitting(bytes.as_ptr().addr() - message.as_ptr().addr()), fitting(bytes.len()))
    }

    #[inline]
    fn bytes(self, message: &[u8]) -> &[u8] {
        message.get(self.0 as usize..).and_then(|rest| rest.get(..self.1 as usize)).unwrap_or_default()
    }
}

impl Position {
    #[inline]
    fn key<'a>(&'a self, message: &'a [u8], order: ByteOrder) -> Key<'a> {
        match &self.key {
            KeyPosition::Text(range) => text_key(range.bytes(message)),
            KeyPosition::Replaced(text) => text_key(text),
            KeyPosition::Int(number) => Key::Int(*number),
            KeyPosition::Typed(value_type, range) => {
                Key::Typed(TypedKey::new(*value_type, range.bytes(message), order))
            }
        }
    }

    /// Whether the key is this text or a typed string with this text.
    #[inline]
    fn has_key(&self, expected: &[u8], message: &[u8], order: ByteOrder) -> bool {
        match &self.key {
            KeyPosition::Text(range) => range.bytes(message) == expected,
            _ => self.key(message, order).is_text(expected),
        }
    }

    #[inline]
    fn header<'a>(&'a self, message: &'a [u8], order: ByteOrder) -> Header<'a> {
        let value = self.value.map(|value| value.bytes(message));
        Header { index: 0, key: self.key(message, order), value_type: self.value_type, value, value_offset: None }
    }
}

/// Returns a key that was parsed as text.
#[inline]
fn text_key(bytes: &[u8]) -> Key<'_> {
    Key::Text(Text::new(bytes).expect("the message does not change"))
}

/// Records the positions of the headers of a message, which has fewer than 4 GiB.
pub struct Positions<'a> {
    message: &'a [u8],
    headers: Vec<Position>,
}

impl<'a> Positions<'a> {
    pub fn new(message: &'a [u8]) -> Self {
        // Memory for the headers of most messages.
        Positions { message, headers: Vec::with_capacity((message.len() / 8).min(16)) }
    }
}

impl<'a> Sink<'a> for Positions<'a> {
    #[inline]
    fn header<R: Log>(&mut self, header: Header<'a>, _log: &mut R) -> Result {
        let key = match header.key {
            Key::Text(text) => match text.into_bytes() {
                Cow::Borrowed(bytes) => KeyPosition::Text(ByteRange::of(bytes, self.message)),
                Cow::Owned(bytes) => KeyPosition::Replaced(bytes.into()),
            },
            Key::Int(number) => KeyPosition::Int(number),
            Key::Typed(typed) => KeyPosition::Typed(typed.value_type, ByteRange::of(typed.bytes(), self.message)),
        };
        let value = header.value.map(|value| ByteRange::of(value, self.message));
        memory::push(&mut self.headers, Position { key, value, value_type: header.value_type });
        Ok(())
    }
}

impl Packed {
    pub fn new(data: Bound<'_, PyBytes>, order: ByteOrder, positions: Positions<'_>) -> Self {
        let headers = positions.headers;
        Packed { data: data.unbind(), order, headers, list: PyOnceLock::new(), indexes: OnceLock::new() }
    }

    /// Returns the headers whose key is this text.
    fn of_key<'a>(&'a self, key: &'a Bound<'_, PyString>) -> impl DoubleEndedIterator<Item = Header<'a>> {
        let message = self.data.as_bytes(key.py());
        // No message contains a key with half of a surrogate pair.
        let requested = key.to_str().ok().map(str::as_bytes);
        let has_key = move |header: &&Position| requested.is_some_and(|key| header.has_key(key, message, self.order));
        let (few, indexes) = match self.headers.len() > FEW_HEADERS {
            true => (&[][..], requested.and_then(|key| self.indexes_by_key(message).get(key))),
            false => (&self.headers[..], None),
        };
        let many = indexes.into_iter().flatten().map(|index| &self.headers[*index as usize]);
        many.chain(few.iter().filter(has_key)).map(move |header| header.header(message, self.order))
    }

    /// Indexes of the headers of each text key.
    fn indexes_by_key(&self, message: &[u8]) -> &HashMap<Box<[u8]>, Vec<u32>> {
        self.indexes.get_or_init(|| {
            let mut indexes: HashMap<Box<[u8]>, Vec<u32>> = HashMap::with_capacity(self.headers.len());
            for (index, header) in (0..).zip(&self.headers) {
                let key = match header.key(message, self.order) {
                    Key::Text(text) => text.into_bytes().into(),
                    Key::Typed(typed) => match typed.string() {
                        Some(bytes) => bytes.into(),
                        None => continue,
                    },
                    Key::Int(_) => continue,
                };
                indexes.entry(key).or_default().push(index);
            }
            indexes
        })
    }

    /// Returns the last value of a key.
    fn value_of<'py>(&self, key: &Bound<'py, PyString>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let last = self.of_key(key).next_back();
        last.map(|header| value_object(key.py(), &header, self.order)).transpose()
    }

    /// Creates a list with an object for each header.
    fn objects<'py>(
        &self,
        py: Python<'py>,
        make: impl Fn(&mut Maker<'py>, &Header<'_>) -> PyResult<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let message = self.data.as_bytes(py);
        let mut maker = Maker::new(py, self.order);
        let objects = self.headers.iter().map(|header| make(&mut maker, &header.header(message, self.order)));
        PyList::new(py, objects.collect::<PyResult<Vec<_>>>()?)
    }
}

#[pymethods]
impl Packed {
    fn __len__(&self) -> PyResult<usize> {
        enter(|| Ok(self.headers.len()))
    }

    /// The headers of `list`.
    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        enter(|| self.list(py)?.try_iter())
    }

    fn __contains__(&self, key: &Bound<'_, PyString>) -> PyResult<bool> {
        enter(|| Ok(self.of_key(key).next().is_some()))
    }

    /// The last value of a key, or a KeyError.
    #[pyo3(signature = (key, /))]
    fn last<'py>(&self, key: &Bound<'py, PyString>) -> PyResult<Bound<'py, PyAny>> {
        enter(|| self.value_of(key)?.ok_or_else(|| PyKeyError::new_err(key.clone().unbind())))
    }

    /// The last value of a key, or the default.
    #[pyo3(signature = (key, default, /))]
    fn get<'py>(&self, key: &Bound<'py, PyString>, default: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        enter(|| Ok(self.value_of(key)?.unwrap_or(default)))
    }

    /// All values of a key.
    #[pyo3(signature = (key, /))]
    fn all<'py>(&self, key: &Bound<'py, PyString>) -> PyResult<Bound<'py, PyList>> {
        enter(|| {
            let values = self.of_key(key).map(|header| value_object(key.py(), &header, self.order));
            PyList::new(key.py(), values.collect::<PyResult<Vec<_>>>()?)
        })
    }

    /// The keys of all headers, repeats included.
    fn keys<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        enter(|| self.objects(py, |maker, header| maker.key(&header.key)))
    }

    /// The headers as plain tuples of key and value, in a new list.
    fn pairs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        enter(|| self.objects(py, |maker, header| Ok(PyTuple::new(py, maker.pair(header)?)?.into_any())))
    }

    /// The headers: the same list on every access.
    fn list<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        enter(|| {
            if let Some(list) = self.list.get(py) {
                return Ok(list.bind(py).clone());
            }
            let result = self.objects(py, Maker::header)?.unbind();
            // Another thread may have created the list meanwhile; the first one is kept. `get_or_init` would release
            // the GIL.
            let kept = self.list.set(py, result.clone_ref(py)).is_ok();
            let list = if kept { &result } else { self.list.get(py).unwrap_or(&result) };
            Ok(list.bind(py).clone())
        })
    }
}
