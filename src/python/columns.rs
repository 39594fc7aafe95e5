//! The operations on columns as Python calls them: options by name, then one call.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict};

use super::capsule::{self, Of, Schema, Work};
use super::errors::to_exception;
use super::given::{GivenKey, GivenKinds, argument, given_limits, named, write_options};
use crate::arrow::amqp::ReadAmqp;
use crate::arrow::messages::Messages;
use crate::arrow::run::{MAX_OFFSET, OnError};
use crate::arrow::select::{Repeat, Want};
use crate::arrow::types::Dialect;
use crate::arrow::{Convert, Decode, Encode, Select, Validate};
use crate::error::Error;
use crate::format::Format;
use crate::types::Type;
use crate::walk::{ReadOptions, WriteOptions};

/// `(output, key, type, repeat, required)`
pub type Spec = (String, GivenKey, String, String, bool);

pub fn wants(columns: Vec<Spec>) -> Result<Vec<Want>, Error> {
    let want = |(output, key, of, repeat, required): Spec| {
        let key = key.wanted()?;
        Ok(Want { output, key, of: Type::parse(&of)?, repeat: Repeat::named(&repeat)?, required })
    };
    columns.into_iter().map(want).collect()
}

/// The options of all operations on columns; an operation reads those that it has.
pub struct Options {
    read: ReadOptions,
    write: WriteOptions,
    on_error: OnError,
    dialect: Dialect,
    views: bool,
    pub threads: usize,
    /// Where an output column is cut: [`MAX_OFFSET`] but in tests.
    pub max_offset: usize,
    wants: Vec<Want>,
    /// The fields of messages to return; `None` for all.
    fields: Option<Vec<String>>,
    target: Option<Format>,
}

impl Options {
    fn of(py: Python<'_>, given: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let (mut lenient, mut strict_types, mut text_keys, mut limits) = (false, false, false, None);
        let (mut on_loss, mut types, mut null_headers, mut canonical) =
            ("raise".to_owned(), None, "empty".to_owned(), false);
        let mut options = Options {
            read: ReadOptions::default(),
            write: WriteOptions::default(),
            on_error: OnError::Raise,
            dialect: Dialect::Arrow,
            views: false,
            threads: 1,
            max_offset: MAX_OFFSET,
            wants: Vec::new(),
            fields: None,
            target: None,
        };
        for (name, value) in given.into_iter().flatten() {
            let name: String = name.extract()?;
            match name.as_str() {
                "errors" => options.on_error = raised(py, on_error(argument::errors(&value)?))?,
                "lenient" => lenient = argument::lenient(&value)?,
                "strict_types" => strict_types = argument::strict_types(&value)?,
                "text_keys" => text_keys = argument::text_keys(&value)?,
                "limits" => limits = Some(value).filter(|limits| !limits.is_none()),
                "on_loss" => on_loss = argument::on_loss(&value)?.to_owned(),
                "types" => types = value.extract::<Option<GivenKinds>>()?,
                "null_headers" => null_headers = argument::null_headers(&value)?.to_owned(),
                "canonical" => canonical = argument::canonical(&value)?,
                "dialect" => options.dialect = raised(py, dialect_named(argument::dialect(&value)?))?,
                "views" => options.views = argument::views(&value)?,
                "threads" => options.threads = threads(&value)?,
                "columns" => options.wants = raised(py, wants(value.extract()?))?,
                "fields" => options.fields = value.extract()?,
                "target" => options.target = Some(raised(py, Format::named(argument::target(&value)?))?),
                "max_offset" => options.max_offset = value.extract::<usize>()?.min(MAX_OFFSET),
                _ => return Err(PyTypeError::new_err(format!("unexpected option '{name}'"))),
            }
        }
        options.read = ReadOptions { lenient, strict_types, text_keys, limits: given_limits(py, limits.as_ref())? };
        options.write = raised(py, write_options(&on_loss, types, &null_headers, canonical))?;
        Ok(options)
    }

    /// What an operation does to a column of a format.
    fn work(&self, operation: &str, format: Format) -> PyResult<Box<dyn Work>> {
        let Options { read, on_error, dialect, views, .. } = *self;
        let (wants, write) = (self.wants.clone(), self.write.clone());
        Ok(match operation {
            "decode" => Box::new(Of(Decode { options: read, on_error, views }, format)),
            "encode" => Box::new(Of(Encode { options: write }, format)),
            "convert" => {
                let target = self.target.ok_or_else(|| PyTypeError::new_err("convert needs a target"))?;
                Box::new(Of(Convert { target, read, write, on_error }, format))
            }
            "messages" => {
                let columns = self.fields.clone();
                Box::new(Of(Messages { columns, wants, dialect, options: read, on_error }, format))
            }
            "select" => Box::new(Of(Select { wants, dialect, options: read, on_error, views }, format)),
            "validate" => Box::new(Of(Validate { options: read }, format)),
            other => return Err(PyValueError::new_err(format!("unknown operation '{other}'"))),
        })
    }
}

fn on_error(name: &str) -> Result<OnError, Error> {
    named("errors value", name, &[("raise", OnError::Raise), ("null", OnError::Null), ("column", OnError::Column)])
}

fn dialect_named(name: &str) -> Result<Dialect, Error> {
    named("dialect", name, &[("arrow", Dialect::Arrow), ("spark", Dialect::Spark)])
}

fn threads(given: &Bound<'_, PyAny>) -> PyResult<usize> {
    let number = if given.is_instance_of::<PyBool>() { None } else { given.extract::<i64>().ok() };
    match number {
        Some(number @ 1..) => Ok(usize::try_from(number).unwrap_or(usize::MAX)),
        Some(number) => Err(PyValueError::new_err(format!("threads must be at least 1, not {number}"))),
        None => Err(PyTypeError::new_err(format!("threads must be int, not {}", given.get_type().name()?))),
    }
}

fn raised<T>(py: Python<'_>, result: Result<T, Error>) -> PyResult<T> {
    result.map_err(|error| to_exception(py, error))
}

/// Applies an operation to a column: `decode`, `encode`, `convert` with `target`, `select` with `columns`, `messages` with
/// `fields` and `columns`, or `validate`.
#[pyfunction]
#[pyo3(signature = (operation, column, format, **options))]
pub fn apply<'py>(
    py: Python<'py>,
    operation: &str,
    column: &Bound<'py, PyAny>,
    #[pyo3(from_py_with = argument::format)] format: &str,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let format = raised(py, Format::named(format))?;
    let options = Options::of(py, options)?;
    capsule::apply(py, column, options.work(operation, format)?, &options)
}

/// AMQP primitives to values of a type.
#[pyfunction]
#[pyo3(signature = (column, of, **options))]
pub fn amqp_column<'py>(
    py: Python<'py>,
    column: &Bound<'py, PyAny>,
    of: &str,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let options = Options::of(py, options)?;
    let of = raised(py, Type::parse(&format!("{of}:amqp")))?;
    let work = ReadAmqp { of, dialect: options.dialect, on_error: options.on_error };
    capsule::apply(py, column, Box::new(work), &options)
}

/// The type that an operation returns, before any row is read.
#[pyfunction]
#[pyo3(signature = (operation, format, **options))]
pub fn schema(
    py: Python<'_>,
    operation: &str,
    #[pyo3(from_py_with = argument::format)] format: &str,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Schema> {
    let format = raised(py, Format::named(format))?;
    let work = Options::of(py, options)?.work(operation, format)?;
    Ok(Schema { of: raised(py, work.output_type())? })
}
