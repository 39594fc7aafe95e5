//! Operations on columns as Python classes. Arguments are checked when an object is created, and pickled with it.

use std::sync::Arc;

use arrow_schema::DataType;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyList, PyTuple};

use super::arguments::{argument, limits_or_default};
use super::capsule::{self, Notes, Schema, Shared, Stream};
use super::columns::{ColumnSpec, dialect_of, selections};
use super::edit::{EditEntries, EditedKeys, edit as edit_of};
use super::filter::filter;
use super::gil::enter;
use super::options::{Arguments, DecodeOptions, ERROR_COLUMN, WriteOptions, or_default, passed};
use crate::arrow::edit::EditColumn;
use crate::arrow::filter::Filter;
use crate::arrow::filtered::Matches;
use crate::arrow::messages::Messages;
use crate::arrow::pack::{Pack as PackColumns, PackedColumn};
use crate::arrow::select::Selection;
use crate::arrow::types::parse_alternatives;
use crate::arrow::work::{ErrorsNamed, FormatOperation, filter_rows};
use crate::arrow::{self, Work};
use crate::error::Error;
use crate::format::Format;
use crate::kernel::buffer::MAX_OFFSET;
use crate::log::OnError;

/// A function from a column of messages to a column of results.
#[pyclass(frozen, subclass, extends = Arguments, module = "letterhead._native")]
pub struct ColumnOperation {
    work: Arc<dyn Work>,
    data_type: DataType,
    /// Whether an error gets a note about the option that keeps the other rows.
    has_remedy: bool,
    edited: Option<Py<EditedKeys>>,
    #[pyo3(get)]
    limits: Option<Py<PyAny>>,
    #[pyo3(get)]
    format: &'static str,
}

#[pymethods]
impl ColumnOperation {
    /// Applies the operation to a column. The result is an object of pyarrow if the column is one, and of the core
    /// otherwise.
    #[pyo3(signature = (column, *, threads=1))]
    fn __call__<'py>(
        &self,
        column: &Bound<'py, PyAny>,
        #[pyo3(from_py_with = argument::threads)] threads: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        enter(|| {
            let py = column.py();
            let helpers = py.import("letterhead._arrow_types")?;
            let result = self.call(column, threads, MAX_OFFSET, self.has_remedy)?;
            match helpers.call_method1("is_pyarrow", (column,))?.is_truthy()? {
                true => helpers.call_method1("to_pyarrow", (result,)),
                false => Ok(result),
            }
        })
    }

    /// Applies the operation, and returns an object of the core. Errors get no note.
    #[pyo3(signature = (column, *, threads=1, max_offset=None))]
    fn apply<'py>(
        &self,
        column: &Bound<'py, PyAny>,
        #[pyo3(from_py_with = argument::threads)] threads: usize,
        max_offset: Option<usize>,
    ) -> PyResult<Bound<'py, PyAny>> {
        enter(|| self.call(column, threads, max_offset.unwrap_or(MAX_OFFSET), false))
    }

    /// Returns the results for the chunks of a stream as arrays of pyarrow, which are created one by one.
    fn chunks<'py>(&self, stream: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        enter(|| {
            let py = stream.py();
            let results = self.call(stream, 1, MAX_OFFSET, self.has_remedy)?;
            if !results.is_instance_of::<Stream>() {
                return Err(PyTypeError::new_err("chunks() reads a stream: call the operation with an array"));
            }
            py.import("builtins")?.call_method1("map", (py.import("pyarrow")?.getattr("array")?, results))
        })
    }

    /// Type of the result, as an object of pyarrow.
    fn result_type<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        enter(|| {
            py.import("pyarrow")?
                .call_method1("field", (Schema { data_type: self.data_type.clone() },))?
                .getattr("type")
        })
    }

    /// Type of the result, which any Arrow library imports.
    #[getter]
    fn schema(&self) -> PyResult<Schema> {
        enter(|| Ok(Schema { data_type: self.data_type.clone() }))
    }
}

impl ColumnOperation {
    fn call<'py>(
        &self,
        column: &Bound<'py, PyAny>,
        threads: usize,
        max_offset: usize,
        has_remedy: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = column.py();
        py.import("letterhead._arrow_types")?.call_method1("check_column", (column,))?;
        let edited = self.edited.as_ref().map(|edited| edited.clone_ref(py));
        let shared = Shared { work: Arc::clone(&self.work), threads, max_offset };
        capsule::apply(column, shared, &self.data_type, Notes { edited, has_remedy })
    }
}

/// Creates the base of an operation, and rejects arguments that do not apply to the format or the options.
fn operation(
    py: Python<'_>,
    arguments: PyClassInitializer<Arguments>,
    work: Arc<dyn Work>,
    format: Format,
    options: Option<&DecodeOptions>,
    edited: Option<Py<EditedKeys>>,
) -> PyResult<PyClassInitializer<ColumnOperation>> {
    let work = match options.filter(|options| options.error_column != ERROR_COLUMN) {
        Some(options) => Arc::new(ErrorsNamed { work, name: options.error_column.clone() }),
        None => work,
    };
    let has_remedy = options.is_some_and(|options| options.on_error == OnError::Raise);
    let data_type = work.output_type()?;
    let limits = options.and_then(|options| options.limits.as_ref()).map(|limits| limits.clone_ref(py));
    Ok(arguments.add_subclass(ColumnOperation {
        work,
        data_type,
        has_remedy,
        edited,
        limits,
        format: format.info().name,
    }))
}

/// Decodes every message: a headers format into a list of headers, a message format into a struct of its fields.
#[pyclass(frozen, extends = ColumnOperation, module = "letterhead._native")]
pub struct Decode;

#[pymethods]
impl Decode {
    #[new]
    #[pyo3(signature = (format, options=None, r#where=None, views=false))]
    fn new<'py>(
        py: Python<'py>,
        #[pyo3(from_py_with = argument::format)] format: Format,
        options: Option<Bound<'py, DecodeOptions>>,
        r#where: Option<Bound<'py, PyAny>>,
        #[pyo3(from_py_with = argument::views)] views: bool,
    ) -> PyResult<PyClassInitializer<Self>> {
        enter(|| {
            let options = or_default(py, options)?;
            let (read, on_error) = (options.get().read(py)?, options.get().on_error);
            let (condition, filter) = filter_of(r#where, format, None)?;
            let work = filter_rows(arrow::Decode { options: read, on_error, views }, format, filter, read, on_error);
            let passed =
                passed!(py, "format": format.info().name, "options": &options, "where": condition, "views": views);
            Ok(operation(py, passed, work, format, Some(options.get()), None)?.add_subclass(Decode))
        })
    }
}

/// Reads some headers of every message into typed columns, with types of the dialect.
#[pyclass(frozen, extends = ColumnOperation, module = "letterhead._native")]
pub struct Select;

#[pymethods]
impl Select {
    #[new]
    #[pyo3(signature = (format, columns, options=None, r#where=None, views=false, dialect="arrow"))]
    fn new<'py>(
        py: Python<'py>,
        #[pyo3(from_py_with = argument::format)] format: Format,
        columns: Bound<'py, PyAny>,
        options: Option<Bound<'py, DecodeOptions>>,
        r#where: Option<Bound<'py, PyAny>>,
        #[pyo3(from_py_with = argument::views)] views: bool,
        #[pyo3(from_py_with = argument::dialect)] dialect: &str,
    ) -> PyResult<PyClassInitializer<Self>> {
        enter(|| {
            let options = or_default(py, options)?;
            let (read, on_error) = (options.get().read(py)?, options.get().on_error);
            let (columns, selections) = columns_of(&columns, dialect, options.get(), &[])?;
            let (condition, filter) = filter_of(r#where, format, Some(&columns))?;
            let select = arrow::Select { selections, dialect: dialect_of(dialect)?, options: read, on_error, views };
            let work = filter_rows(select, format, filter, read, on_error);
            let passed = passed!(py, "format": format.info().name, "columns": columns, "options": &options,
                "where": condition, "views": views, "dialect": dialect);
            Ok(operation(py, passed, work, format, Some(options.get()), None)?.add_subclass(Select))
        })
    }
}

/// Encodes lists of headers, or structs of the fields of a message format.
#[pyclass(frozen, extends = ColumnOperation, module = "letterhead._native")]
pub struct Encode;

#[pymethods]
impl Encode {
    #[new]
    #[pyo3(signature = (format, options=None))]
    fn new<'py>(
        py: Python<'py>,
        #[pyo3(from_py_with = argument::format)] format: Format,
        options: Option<Bound<'py, WriteOptions>>,
    ) -> PyResult<PyClassInitializer<Self>> {
        enter(|| {
            let options = or_default(py, options)?;
            let encode = arrow::Encode { options: options.get().write.clone(), limits: limits_or_default(py, None)? };
            let passed = passed!(py, "format": format.info().name, "options": &options);
            Ok(operation(py, passed, Arc::new(FormatOperation(encode, format)), format, None, None)?
                .add_subclass(Encode))
        })
    }
}

/// Converts every message to another format.
#[pyclass(frozen, extends = ColumnOperation, module = "letterhead._native")]
pub struct Convert;

#[pymethods]
impl Convert {
    #[new]
    #[pyo3(signature = (format, target, reading=None, writing=None))]
    fn new<'py>(
        py: Python<'py>,
        #[pyo3(from_py_with = argument::format)] format: Format,
        #[pyo3(from_py_with = argument::target)] target: Format,
        reading: Option<Bound<'py, DecodeOptions>>,
        writing: Option<Bound<'py, WriteOptions>>,
    ) -> PyResult<PyClassInitializer<Self>> {
        enter(|| {
            let (reading, writing) = (or_default(py, reading)?, or_default(py, writing)?);
            let (read, on_error) = (reading.get().read(py)?, reading.get().on_error);
            let convert = arrow::Convert { target, read, write: writing.get().write.clone(), on_error };
            let passed = passed!(py, "format": format.info().name, "target": target.info().name,
                "reading": &reading, "writing": &writing);
            let work = Arc::new(FormatOperation(convert, format));
            Ok(operation(py, passed, work, format, Some(reading.get()), None)?.add_subclass(Convert))
        })
    }
}

/// Reads every batch into one row for each of its messages: fields, then typed columns of headers.
#[pyclass(frozen, extends = ColumnOperation, module = "letterhead._native")]
pub struct ExplodeBatches {
    #[pyo3(get)]
    headers: Py<PyTuple>,
}

#[pymethods]
impl ExplodeBatches {
    #[new]
    #[pyo3(signature = (format, columns=None, headers=None, options=None, r#where=None, dialect="arrow"))]
    fn new<'py>(
        py: Python<'py>,
        #[pyo3(from_py_with = argument::format)] format: Format,
        columns: Option<Bound<'py, PyAny>>,
        headers: Option<Bound<'py, PyAny>>,
        options: Option<Bound<'py, DecodeOptions>>,
        r#where: Option<Bound<'py, PyAny>>,
        #[pyo3(from_py_with = argument::dialect)] dialect: &str,
    ) -> PyResult<PyClassInitializer<Self>> {
        enter(|| {
            let options = or_default(py, options)?;
            let fields = py.import("letterhead._names")?.call_method1("names_of", (columns,))?;
            let columns = fields.extract::<Option<Vec<String>>>()?;
            let headers = headers.unwrap_or_else(|| PyTuple::empty(py).into_any());
            let (headers, selections) =
                columns_of(&headers, dialect, options.get(), columns.as_deref().unwrap_or_default())?;
            let (condition, filter) = filter_of(r#where, format, Some(&headers))?;
            let messages = Messages {
                columns,
                selections,
                dialect: dialect_of(dialect)?,
                options: options.get().read(py)?,
                on_error: options.get().on_error,
                filter: filter.map(Arc::new),
            };
            let passed = passed!(py, "format": format.info().name, "columns": fields, "headers": &headers,
                "options": &options, "where": condition, "dialect": dialect);
            let base =
                operation(py, passed, Arc::new(FormatOperation(messages, format)), format, Some(options.get()), None)?;
            Ok(base.add_subclass(ExplodeBatches { headers: headers.unbind() }))
        })
    }
}

/// Lists all errors of every message; null for a valid message.
#[pyclass(frozen, extends = ColumnOperation, module = "letterhead._native")]
pub struct Validate;

#[pymethods]
impl Validate {
    #[new]
    #[pyo3(signature = (format, options=None))]
    fn new<'py>(
        py: Python<'py>,
        #[pyo3(from_py_with = argument::format)] format: Format,
        options: Option<Bound<'py, DecodeOptions>>,
    ) -> PyResult<PyClassInitializer<Self>> {
        enter(|| {
            let options = or_default(py, options)?;
            let validate = arrow::Validate { options: options.get().read(py)? };
            let passed = passed!(py, "format": format.info().name, "options": &options);
            let work = Arc::new(FormatOperation(validate, format));
            Ok(operation(py, passed, work, format, Some(options.get()), None)?.add_subclass(Validate))
        })
    }
}

/// Tests a condition on each message: a struct of the field `selected` and, if requested, errors.
#[pyclass(frozen, extends = ColumnOperation, module = "letterhead._native")]
pub struct Where;

#[pymethods]
impl Where {
    #[new]
    #[pyo3(signature = (format, r#where, options=None))]
    fn new<'py>(
        py: Python<'py>,
        #[pyo3(from_py_with = argument::format)] format: Format,
        r#where: Option<Bound<'py, PyAny>>,
        options: Option<Bound<'py, DecodeOptions>>,
    ) -> PyResult<PyClassInitializer<Self>> {
        enter(|| {
            let options = or_default(py, options)?;
            let (condition, Some(filter)) = filter_of(r#where, format, None)? else {
                return Err(PyTypeError::new_err("where must be a condition, not None"));
            };
            let (read, on_error) = (options.get().read(py)?, options.get().on_error);
            let work = Arc::new(FormatOperation(Matches { filter: Arc::new(filter), options: read, on_error }, format));
            let passed = passed!(py, "format": format.info().name, "where": condition, "options": &options);
            Ok(operation(py, passed, work, format, Some(options.get()), None)?.add_subclass(Where))
        })
    }
}

/// Changes headers of every message, from bytes to bytes. This is the part of an edit that the core applies.
#[pyclass(frozen, extends = ColumnOperation, module = "letterhead._native")]
pub struct Edit;

#[pymethods]
impl Edit {
    #[new]
    #[pyo3(signature = (format, edit, options=None, edited=None))]
    fn new<'py>(
        py: Python<'py>,
        #[pyo3(from_py_with = argument::format)] format: Format,
        edit: Bound<'py, PyAny>,
        options: Option<Bound<'py, DecodeOptions>>,
        edited: Option<Py<EditedKeys>>,
    ) -> PyResult<PyClassInitializer<Self>> {
        enter(|| {
            let options = or_default(py, options)?;
            let column = EditColumn {
                edit: Arc::new(edit_of(edit.extract::<EditEntries>()?)?),
                options: options.get().read(py)?,
                on_error: options.get().on_error,
                seen: edited.as_ref().map(|edited| Arc::clone(&edited.get().seen)),
            };
            let passed = passed!(py, "format": format.info().name, "edit": edit, "options": &options);
            let work = Arc::new(FormatOperation(column, format));
            Ok(operation(py, passed, work, format, Some(options.get()), edited)?.add_subclass(Edit))
        })
    }
}

/// Creates lists of headers from the columns of structs, which are values or lists of headers. Of alternative types,
/// the first one is written.
#[pyclass(frozen, extends = ColumnOperation, module = "letterhead._native")]
pub struct Pack;

#[pymethods]
impl Pack {
    #[new]
    #[pyo3(signature = (format, columns, skips_nulls=true, truncates=false))]
    fn new<'py>(
        py: Python<'py>,
        #[pyo3(from_py_with = argument::format)] format: Format,
        columns: Bound<'py, PyAny>,
        skips_nulls: bool,
        truncates: bool,
    ) -> PyResult<PyClassInitializer<Self>> {
        enter(|| {
            let packed = |spec: Option<ColumnSpec>| {
                let Some(ColumnSpec { key, type_, repeat, split, .. }) = spec else { return Ok(PackedColumn::Headers) };
                let (type_, _) = parse_alternatives(&type_)?;
                let split = split.map(String::into_bytes);
                Ok(PackedColumn::Values { key: key.into_requested()?, type_, lists: repeat == "all", split })
            };
            let specs = columns.extract::<Vec<Option<ColumnSpec>>>()?;
            let packed = specs.into_iter().map(packed).collect::<Result<_, Error>>()?;
            let passed = passed!(py, "format": format.info().name, "columns": columns, "skips_nulls": skips_nulls,
                "truncates": truncates);
            let pack = PackColumns { columns: packed, skips_nulls, truncates };
            Ok(operation(py, passed, Arc::new(FormatOperation(pack, format)), format, None, None)?.add_subclass(Pack))
        })
    }
}

/// Converts typed columns to a tuple of `letterhead.fields.ColumnSpec`, and to the core's selections. Output columns
/// must have distinct names.
fn columns_of<'py>(
    columns: &Bound<'py, PyAny>,
    dialect: &str,
    options: &DecodeOptions,
    fields: &[String],
) -> PyResult<(Bound<'py, PyTuple>, Vec<Selection>)> {
    let helpers = columns.py().import("letterhead.fields")?;
    let specs = match columns.cast_exact::<PyTuple>() {
        Ok(specs) => specs.clone(),
        Err(_) => {
            let specs = helpers.call_method(
                "normalise",
                (columns,),
                Some(&[("sql", dialect == "spark")].into_py_dict(columns.py())?),
            )?;
            specs.cast_into::<PyList>()?.to_tuple()
        }
    };
    let selections = selections(specs.extract()?)?;
    // A field that is requested twice is returned twice.
    let fields = fields.iter().enumerate().filter(|(index, field)| !fields[..*index].contains(field));
    let names = fields.map(|(_, field)| field).chain(selections.iter().map(|selection| &selection.output));
    let names = PyList::new(columns.py(), names.collect::<Vec<_>>())?;
    helpers.call_method1("check_distinct", (names, &options.errors, &options.error_column))?;
    Ok((specs, selections))
}

/// Converts a condition to a `letterhead.where.program.Filter`, and to a filter of the core.
fn filter_of<'py>(
    condition: Option<Bound<'py, PyAny>>,
    format: Format,
    columns: Option<&Bound<'py, PyTuple>>,
) -> PyResult<(Option<Bound<'py, PyAny>>, Option<Filter>)> {
    let Some(condition) = condition else { return Ok((None, None)) };
    let py = condition.py();
    let columns = columns.map_or_else(|| PyTuple::empty(py), Clone::clone);
    let resolve = py.import("letterhead.where.program")?.getattr("filter_of")?;
    let resolved = resolve.call1((condition, format.info().name, columns))?;
    let program = filter(resolved.getattr("program")?.extract()?)?;
    Ok((Some(resolved), Some(program)))
}
