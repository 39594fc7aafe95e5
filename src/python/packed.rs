//! Validated headers that stay in their bytes until they are accessed.

use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyIterator, PyList, PyString, PyTuple};

use super::gil::catch_panic;
use super::objects::{Maker, value_object};
use crate::format::Format;
use crate::header::Header;
use crate::log::{Log, Stop};
use crate::op::values::{LastSink, ReadMessage};
use crate::traits::{ReadOptions, Sink};
use crate::value::ByteOrder;

/// Headers in their bytes. Each access parses them again, which costs less than creating the objects of all headers.
///
/// Keys are str; the headers themselves are the list.
#[pyclass(frozen, module = "letterhead._native")]
pub struct Packed {
    data: Py<PyBytes>,
    format: Format,
    order: ByteOrder,
    options: ReadOptions,
    count: usize,
    /// The same list for every access: a change to it is visible everywhere.
    list: PyOnceLock<Py<PyList>>,
}

impl Packed {
    /// Headers that were parsed to their end, in this format and with these options.
    pub fn new(data: Bound<'_, PyBytes>, format: Format, options: ReadOptions, count: usize) -> Self {
        let order = format.info().order;
        Packed { data: data.unbind(), format, order, options, count, list: PyOnceLock::new() }
    }

    fn parse<'a, S: Sink<'a>>(&'a self, py: Python<'a>, fresh: impl Fn() -> S) -> PyResult<S> {
        let read = ReadMessage { data: self.data.as_bytes(py), options: self.options, fresh };
        let (sink, _) = catch_panic(|| self.format.visit(read))??;
        Ok(sink)
    }

    /// The last header with a key.
    fn last_header<'py>(&'py self, key: &Bound<'py, PyString>) -> PyResult<Option<Header<'py>>> {
        // No message has half of a surrogate pair.
        let Ok(wanted) = key.to_str() else { return Ok(None) };
        Ok(self.parse(key.py(), || LastSink { wanted: wanted.as_bytes(), found: None })?.found)
    }

    /// The last value of a key.
    fn found<'py>(&'py self, key: &Bound<'py, PyString>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.last_header(key)?.map(|header| value_object(key.py(), &header, self.order)).transpose()
    }
}

#[pymethods]
impl Packed {
    fn __len__(&self) -> usize {
        self.count
    }

    /// The headers of `list`.
    fn __iter__<'py>(&'py self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        self.list(py)?.try_iter()
    }

    fn __contains__(&self, key: &Bound<'_, PyString>) -> PyResult<bool> {
        Ok(self.last_header(key)?.is_some())
    }

    /// The last value of a key, or a KeyError.
    #[pyo3(signature = (key, /))]
    fn last<'py>(&'py self, key: &Bound<'py, PyString>) -> PyResult<Bound<'py, PyAny>> {
        self.found(key)?.ok_or_else(|| PyKeyError::new_err(key.clone().unbind()))
    }

    /// The last value of a key, or the default.
    #[pyo3(signature = (key, default, /))]
    fn get<'py>(&'py self, key: &Bound<'py, PyString>, default: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        Ok(self.found(key)?.unwrap_or(default))
    }

    /// All values of a key.
    #[pyo3(signature = (key, /))]
    fn all<'py>(&'py self, key: &Bound<'py, PyString>) -> PyResult<Bound<'py, PyList>> {
        let py = key.py();
        let Ok(wanted) = key.to_str() else { return Ok(PyList::empty(py)) };
        let result = self.parse(py, || {
            Making::new(0, |header| match header.key.is_text(wanted.as_bytes()) {
                true => value_object(py, header, self.order).map(Some),
                false => Ok(None),
            })
        })?;
        result.list(py)
    }

    /// The keys of all headers, repeats included.
    fn keys<'py>(&'py self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let result = self.parse(py, || {
            let mut maker = Maker::new(py, self.order);
            Making::new(self.count, move |header| maker.key(&header.key).map(Some))
        })?;
        result.list(py)
    }

    /// The headers as plain tuples of key and value, in a new list.
    fn pairs<'py>(&'py self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let result = self.parse(py, || {
            let mut maker = Maker::new(py, self.order);
            Making::new(self.count, move |header| Ok(Some(PyTuple::new(py, maker.pair(header)?)?.into_any())))
        })?;
        result.list(py)
    }

    /// The headers: the same list on every access.
    fn list<'py>(&'py self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        if let Some(list) = self.list.get(py) {
            return Ok(list.bind(py).clone());
        }
        let result = self.parse(py, || {
            let mut maker = Maker::new(py, self.order);
            Making::new(self.count, move |header| maker.header(header).map(Some))
        })?;
        let result = result.list(py)?.unbind();
        // Making it may have let another thread run, which made one too: the first is kept. `get_or_init` would release
        // the GIL.
        let kept = self.list.set(py, result.clone_ref(py)).is_ok();
        let list = if kept { &result } else { self.list.get(py).unwrap_or(&result) };
        Ok(list.bind(py).clone())
    }
}

/// Makes an object of each header that has one.
struct Making<'py, F> {
    make: F,
    objects: Vec<Bound<'py, PyAny>>,
    failed: Option<PyErr>,
}

impl<'py, F: FnMut(&Header<'_>) -> PyResult<Option<Bound<'py, PyAny>>>> Making<'py, F> {
    fn new(count: usize, make: F) -> Self {
        Making { make, objects: Vec::with_capacity(count), failed: None }
    }

    fn list(self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        match self.failed {
            Some(error) => Err(error),
            None => PyList::new(py, self.objects),
        }
    }
}

impl<'a, 'py, F: FnMut(&Header<'_>) -> PyResult<Option<Bound<'py, PyAny>>>> Sink<'a> for Making<'py, F> {
    #[inline]
    fn header<R: Log>(&mut self, header: Header<'a>, _log: &mut R) -> Result<(), Stop> {
        if self.failed.is_none() {
            match (self.make)(&header) {
                Ok(object) => self.objects.extend(object),
                Err(error) => self.failed = Some(error),
            }
        }
        Ok(())
    }
}
