//! Python objects of columns, streams and types, which other libraries import as PyCapsules.

use std::collections::VecDeque;
use std::iter::Fuse;
use std::sync::{Arc, Mutex};

use arrow_array::{Array, ArrayRef, new_empty_array};
use arrow_data::ArrayData;
use arrow_schema::{ArrowError, DataType, Field, FieldRef};
use pyo3::exceptions::{PyMemoryError, PyStopIteration, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use super::c_interface::{self, ImportedStream, export_array, export_stream, export_type, import, import_one};
use super::edit::EditedKeys;
use super::gil::{enter, without_gil};
use crate::arrow::checks::check_values;
use crate::arrow::input::Bytes;
use crate::arrow::shapes::plain;
use crate::arrow::types::{ddl, quote};
use crate::arrow::work::Imported;
use crate::arrow::{Input, Output, Work, threads};
use crate::error::{Code, Error, ErrorDetail};
use crate::format::Format;
use crate::kernel::buffer::MAX_OFFSET;

/// Arrow array for any library that imports one.
#[pyclass(frozen, module = "letterhead._native")]
pub struct Column {
    pub array: ArrayRef,
}

#[pymethods]
impl Column {
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        slf: &Bound<'py, Self>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        enter(|| {
            let py = slf.py();
            if let Some(capsules) = export_requested("array", slf, requested_schema)? {
                return Ok(capsules);
            }
            let array = &slf.get().array;
            Ok(export_array(py, &unnamed(array.data_type()), array)?.into_pyobject(py)?.into_any())
        })
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        enter(|| export_type(py, &unnamed(self.array.data_type())))
    }

    fn __len__(&self) -> PyResult<usize> {
        enter(|| Ok(self.array.len()))
    }

    fn __repr__(&self) -> PyResult<String> {
        enter(|| Ok(format!("<letterhead column of {} rows: {}>", self.array.len(), self.array.data_type())))
    }
}

/// Arrow arrays that are created on request: by iteration, or once as an Arrow stream.
#[pyclass(frozen, module = "letterhead._native")]
pub struct Stream {
    field: FieldRef,
    chunks: Mutex<State>,
}

/// State of a stream. Iteration only ends after the stream was read to its end.
enum State {
    Available(Chunks),
    /// A thread is creating the next chunk.
    InUse,
    Exported,
    Ended,
}

#[pymethods]
impl Stream {
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        slf: &Bound<'py, Self>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        enter(|| {
            let (py, this) = (slf.py(), slf.get());
            let mut chunks = this.take(State::Exported)?.ok_or_else(ended_error)?;
            if requested_schema.is_some() {
                // The cast reads a separate stream, from which no other code can take chunks.
                let stream = Stream { field: this.field.clone(), chunks: Mutex::new(State::Available(chunks)) };
                let stream = Bound::new(py, stream)?;
                if let Some(capsule) = export_requested("stream", &stream, requested_schema)? {
                    return Ok(capsule);
                }
                chunks = stream.get().take(State::Exported)?.ok_or_else(ended_error)?;
            }
            Ok(export_stream(py, &this.field, Box::new(Unattached(chunks)))?.into_any())
        })
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        enter(|| export_type(py, &self.field))
    }

    /// A second `for` raises, while `next` repeats the end, as every iterator does.
    fn __iter__(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        enter(|| match *slf.get().lock()? {
            State::Ended => Err(ended_error()),
            State::Exported => Err(PyValueError::new_err(EXPORTED)),
            State::Available(_) | State::InUse => Ok(slf.clone()),
        })
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Column> {
        enter(|| {
            // The chunks are taken out of the mutex while this thread creates the next one: a second thread that waited
            // for the lock while holding the GIL would block this thread.
            let mut chunks = self.take(State::InUse)?.ok_or_else(|| PyStopIteration::new_err(()))?;
            let result = without_gil(py, || chunks.next_chunk());
            let result = chunks.notes.note_remedy(py, result);
            // The chunks are also put back after an error, which later calls repeat.
            let reported = if matches!(result, Ok(None)) { chunks.notes.end(py) } else { Ok(()) };
            *self.lock()? = if matches!(result, Ok(None)) { State::Ended } else { State::Available(chunks) };
            reported?;
            result?.map(|array| Column { array }).ok_or_else(|| PyStopIteration::new_err(()))
        })
    }
}

impl Stream {
    /// Takes the chunks out and replaces the state; `None` after the end.
    fn take(&self, left: State) -> PyResult<Option<Chunks>> {
        let mut state = self.lock()?;
        let before = std::mem::replace(&mut *state, left);
        let refused = match before {
            State::Available(chunks) => return Ok(Some(chunks)),
            State::InUse => Err("another thread is reading the stream: read it in one thread, or make one for each"),
            State::Exported => Err(EXPORTED),
            State::Ended => Ok(None),
        };
        *state = before;
        refused.map_err(PyValueError::new_err)
    }

    fn lock(&self) -> PyResult<std::sync::MutexGuard<'_, State>> {
        self.chunks.lock().map_err(|_| PyValueError::new_err("the stream broke while it was read"))
    }
}

const EXPORTED: &str = "the stream was exported, and is read elsewhere: make it again to read it again";

fn ended_error() -> PyErr {
    PyValueError::new_err("the stream was read to its end: make it again to read it again")
}

/// The output type of an operation, known before any row is read.
#[pyclass(frozen, module = "letterhead._native")]
pub struct Schema {
    pub data_type: DataType,
}

#[pymethods]
impl Schema {
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        enter(|| export_type(py, &unnamed(&self.data_type)))
    }

    /// The type in Spark's DDL; for a struct, its columns.
    #[getter]
    fn ddl(&self) -> PyResult<String> {
        enter(|| {
            Ok({
                match &self.data_type {
                    DataType::Struct(fields) => {
                        let columns =
                            fields.iter().map(|field| format!("{} {}", quote(field.name()), ddl(field.data_type())));
                        columns.collect::<Vec<_>>().join(", ")
                    }
                    other => ddl(other),
                }
            })
        })
    }
}

/// Exports data in the type that a consumer requests; `None` without a request, or if no library can cast.
fn export_requested<'py, T: pyo3::PyTypeInfo>(
    function: &str,
    column: &Bound<'py, T>,
    schema: Option<Bound<'py, PyCapsule>>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let Some(schema) = schema else { return Ok(None) };
    let cast = column.py().import("letterhead._requested")?.call_method1(function, (column, schema))?;
    Ok((!cast.is_none()).then_some(cast))
}

fn unnamed(data_type: &DataType) -> FieldRef {
    Arc::new(Field::new("", data_type.clone(), true))
}

/// Work that threads share. The work ends before an output column exceeds `max_offset`.
pub struct Shared {
    pub work: Arc<dyn Work>,
    pub threads: usize,
    pub max_offset: usize,
}

/// Notes to the user, in addition to the result.
#[derive(Default)]
pub struct Notes {
    /// Reports the keys of an edit that had no header, after all rows were read.
    pub edited: Option<Py<EditedKeys>>,
    /// Whether the error of a row gets a note about the option that keeps the other rows.
    pub has_remedy: bool,
}

impl Notes {
    /// Reports the notes once, after the last row.
    fn end(&mut self, py: Python<'_>) -> PyResult<()> {
        self.edited.take().map_or(Ok(()), |edited| edited.get().report(py))
    }

    fn note_remedy<T>(&self, py: Python<'_>, result: PyResult<T>) -> PyResult<T> {
        if let (true, Err(error)) = (self.has_remedy, &result) {
            py.import("letterhead.operations.remedies")?.call_method1("note_remedy", (error.value(py),))?;
        }
        result
    }
}

impl Shared {
    fn apply(&self, input: Input<'_>) -> Result<Output, Error> {
        self.work.apply(input.with_max_offset(self.max_offset))
    }

    /// Processes a whole array, whose result cannot be divided.
    fn apply_whole(&self, array: &ArrayRef) -> Result<ArrayRef, Error> {
        let output = self.apply(Input::new(array).with_threads(self.threads))?;
        if output.until == array.len() {
            return Ok(output.column);
        }
        let error = ErrorDetail::of_message(
            Code::TooLarge,
            "the result passes the 2 GiB that one Arrow array can hold here: pass a stream or a chunked array",
        );
        let (direction, format) = self.work.error_context();
        Err(error.into_error(direction, format, Some(output.until)))
    }
}

/// Work on the chunks of a stream. Threads work on whole chunks if these have similar sizes, and otherwise share the
/// rows of each chunk.
struct Chunks {
    source: Fuse<ImportedStream>,
    shared: Shared,
    rows_before: usize,
    /// Chunks that were read ahead, at most one per thread, and the error that ended reading.
    ahead: VecDeque<Result<Chunk, Error>>,
    failed: bool,
    notes: Notes,
}

/// A chunk of the input.
struct Chunk {
    column: ArrayRef,
    /// The next row.
    from: usize,
    rows_before: usize,
    /// The result, if a thread has processed the chunk ahead of its turn.
    output: Option<Output>,
    /// Whether the offsets and views were checked in the current call. The owner may change the chunk between calls.
    is_checked: bool,
}

impl Chunk {
    fn check(&mut self) -> Result<(), Error> {
        if !std::mem::replace(&mut self.is_checked, true) {
            check_values(&self.column.to_data()).map_err(Error::Type)?;
        }
        Ok(())
    }

    fn input(&self) -> Input<'_> {
        Input::new(&self.column).from_row(self.from).after(self.rows_before)
    }

    /// Approximate number of bytes: of binary values, or of rows of average length.
    fn size(&self) -> usize {
        let rows = self.column.len();
        let bytes = Bytes::of(&self.column).map_or(0, |bytes| bytes.before(rows) - bytes.before(0));
        bytes.max(rows.saturating_mul(64))
    }
}

impl Chunks {
    fn new(source: ImportedStream, shared: Shared, notes: Notes) -> Self {
        Chunks { source: source.fuse(), shared, rows_before: 0, ahead: VecDeque::new(), failed: false, notes }
    }

    fn into_stream<'py>(self, py: Python<'py>, data_type: &DataType) -> PyResult<Bound<'py, PyAny>> {
        Ok(Stream { field: unnamed(data_type), chunks: Mutex::new(State::Available(self)) }
            .into_pyobject(py)?
            .into_any())
    }

    /// Returns the next chunk. After an error, it fails again, because the rows of the failed chunk would be missing.
    fn next_chunk(&mut self) -> Result<Option<ArrayRef>, Error> {
        // Set first, so that a panic counts as an error.
        if std::mem::replace(&mut self.failed, true) {
            let message = "the stream failed at an earlier chunk and ends there: make it again to read it again";
            return Err(Error::Value(message.into()));
        }
        let result = self.work_on_next()?;
        self.failed = false;
        Ok(result)
    }

    fn work_on_next(&mut self) -> Result<Option<ArrayRef>, Error> {
        if self.ahead.is_empty() {
            self.read_ahead();
            self.work_ahead();
        }
        let Some(next) = self.ahead.pop_front() else { return Ok(None) };
        let mut chunk = next?;
        let output = match chunk.output.take() {
            Some(output) => output,
            None => {
                chunk.check()?;
                self.shared.apply(chunk.input().with_threads(self.shared.threads))?
            }
        };
        if output.until < chunk.column.len() {
            chunk.from = output.until;
            self.ahead.push_front(Ok(chunk));
        }
        self.ahead.iter_mut().flatten().for_each(|chunk| chunk.is_checked = false);
        Ok(Some(output.column))
    }

    /// Reads a chunk for each thread.
    fn read_ahead(&mut self) {
        while self.ahead.len() < self.shared.threads.min(MAX_AHEAD) && self.ahead.back().is_none_or(Result::is_ok) {
            let Some(read) = self.source.next() else { break };
            let rows_before = self.rows_before;
            self.rows_before += read.as_ref().map_or(0, |column| column.len());
            let read = read.map_err(|error| Error::Value(format!("the stream failed: {error}")));
            let shaped = read.and_then(|column| self.shared.work.reshape(column));
            let chunk = |column| Chunk { column, from: 0, rows_before, output: None, is_checked: true };
            self.ahead.push_back(shaped.map(chunk));
        }
    }

    /// Processes all chunks at once, if that is faster than sharing the rows of each.
    fn work_ahead(&mut self) {
        let Chunks { shared, ahead, .. } = self;
        let mut chunks: Vec<_> = ahead.iter_mut().flatten().collect();
        if threads::divides(shared.threads, chunks.iter().map(|chunk| chunk.size())) {
            // A failed chunk is processed again in its turn, and then returns its error.
            let count = chunks.len();
            threads::on_each(&mut chunks, &|chunk| chunk.output = shared.apply(chunk.input().at_once(count)).ok());
        }
    }
}

/// Maximum number of chunks that are read ahead, for any number of threads.
const MAX_AHEAD: usize = 64;

/// Chunks as a C stream, which a consumer may read with or without the GIL. The GIL is released while chunks are
/// created.
struct Unattached(Chunks);

impl Iterator for Unattached {
    type Item = Result<ArrayRef, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let attached = Python::try_attach(|py| {
            let chunk = without_gil(py, || self.0.next_chunk()).map_err(|error| exported_error(py, &error))?;
            if chunk.is_none() {
                self.0.notes.end(py).map_err(|error| exported_error(py, &error))?;
            }
            Ok(chunk)
        });
        match attached {
            Some(Ok(array)) => array.map(Ok),
            Some(Err(error)) => Some(Err(error)),
            // The interpreter is shutting down, and there is no GIL to release.
            None => self.0.next_chunk().map_err(|error| ArrowError::ExternalError(Box::new(error))).transpose(),
        }
    }
}

/// Converts an exception for a C stream, whose error codes distinguish only out-of-memory errors.
fn exported_error(py: Python<'_>, error: &PyErr) -> ArrowError {
    let text = error.to_string();
    match error.is_instance_of::<PyMemoryError>(py) {
        true => ArrowError::MemoryError(text),
        false => ArrowError::ExternalError(text.into()),
    }
}

/// Applies work, whose result has the given type, to anything with `__arrow_c_array__` or `__arrow_c_stream__`.
pub fn apply<'py>(
    column: &Bound<'py, PyAny>,
    shared: Shared,
    data_type: &DataType,
    mut notes: Notes,
) -> PyResult<Bound<'py, PyAny>> {
    let py = column.py();
    match import(column)? {
        c_interface::ImportedColumn::Array(array) => {
            let result = without_gil(py, || shared.apply_whole(&shared.work.reshape(array)?));
            let array = notes.note_remedy(py, result)?;
            notes.end(py)?;
            Ok(Column { array }.into_pyobject(py)?.into_any())
        }
        c_interface::ImportedColumn::Stream(source) => {
            // A wrong type raises now, rather than when the first chunk is read.
            let empty = new_empty_array(source.data_type());
            without_gil(py, || shared.work.apply(Input::new(&shared.work.reshape(empty)?)).map(drop))?;
            Chunks::new(source, shared, notes).into_stream(py, data_type)
        }
    }
}

/// Imports and validates a column before it is passed to a library that does not validate it.
#[pyfunction]
pub fn checked<'py>(py: Python<'py>, column: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    enter(|| match import(column)? {
        c_interface::ImportedColumn::Array(array) => Ok(Column { array }.into_pyobject(py)?.into_any()),
        c_interface::ImportedColumn::Stream(source) => {
            let data_type = source.data_type().clone();
            let work = Arc::new(Imported(data_type.clone()));
            let shared = Shared { work, threads: 1, max_offset: MAX_OFFSET };
            Chunks::new(source, shared, Notes::default()).into_stream(py, &data_type)
        }
    })
}

/// Converts an array of headers in any shape to the lists that operations read. Other arrays are returned unchanged.
#[pyfunction]
#[pyo3(signature = (column, drops_fields=false))]
pub fn header_lists<'py>(
    py: Python<'py>,
    column: &Bound<'py, PyAny>,
    drops_fields: bool,
) -> PyResult<Bound<'py, PyAny>> {
    enter(|| {
        let array = import_one(column)?;
        Ok(Column { array: plain(array, Format::Kafka.info(), drops_fields)? }.into_pyobject(py)?.into_any())
    })
}

/// Returns the addresses of the buffers of a column and its children, which prove that nothing was copied.
#[pyfunction]
pub fn buffer_addresses(column: &Bound<'_, PyAny>) -> PyResult<Vec<usize>> {
    enter(|| {
        fn gather(data: &ArrayData, out: &mut Vec<usize>) {
            out.extend(data.nulls().map(|nulls| nulls.buffer().as_ptr() as usize));
            out.extend(data.buffers().iter().map(|buffer| buffer.as_ptr() as usize));
            data.child_data().iter().for_each(|child| gather(child, out));
        }
        let mut out = Vec::new();
        gather(&import_one(column)?.to_data(), &mut out);
        Ok(out)
    })
}
