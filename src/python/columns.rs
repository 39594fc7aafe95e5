//! The verbs on columns as Python calls them: options by name, then one call.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::capsule::{AnyVerb, Schema, apply};
use super::errors::to_exception;
use crate::arrow::run::OnError;
use crate::arrow::select::{Repeat, Want};
use crate::arrow::{Decode, Encode, Select, Validate};
use crate::error::{Error, unknown_name};
use crate::format::Format;
use crate::kind::Dialect;
use crate::mode::OnLoss;
use crate::value::{ByteOrder, Spelling, Type};
use crate::walk::{ReadOptions, WriteOptions};

/// `(output, key, type, repeat, required)`
pub type Spec = (String, String, String, String, bool);

/// Finds a value by the name a user gave.
fn named<T: Copy>(option: &str, name: &str, known: &[(&str, T)]) -> Result<T, Error> {
    let found = known.iter().find(|(text, _)| *text == name).map(|(_, value)| *value);
    found.ok_or_else(|| unknown_name(option, name, known.iter().map(|(text, _)| *text)))
}

fn on_error(name: &str) -> Result<OnError, Error> {
    named("errors value", name, &[("raise", OnError::Raise), ("null", OnError::Null), ("column", OnError::Column)])
}

pub fn write_options(on_loss: &str, kinds: Option<&str>, null_headers: &str) -> Result<WriteOptions, Error> {
    let losses = [("raise", OnLoss::Raise), ("drop", OnLoss::Drop), ("report", OnLoss::Report)];
    let spellings =
        [("be", Spelling::Bytes(ByteOrder::Big)), ("le", Spelling::Bytes(ByteOrder::Little)), ("text", Spelling::Text)];
    Ok(WriteOptions {
        on_loss: named("on_loss value", on_loss, &losses)?,
        kinds: kinds.map(|name| named("kinds value", name, &spellings)).transpose()?,
        refuse_null_headers: named("null_headers value", null_headers, &[("empty", false), ("raise", true)])?,
    })
}

pub fn wants(columns: Vec<Spec>) -> Result<Vec<Want>, Error> {
    let want = |(output, key, of, repeat, required): Spec| {
        Ok(Want { output, key, of: Type::parse(&of)?, repeat: Repeat::named(&repeat)?, required })
    };
    columns.into_iter().map(want).collect()
}

fn select_verb(columns: Vec<Spec>, errors: &str, lenient: bool, dialect: &str) -> Result<Select, Error> {
    let dialect = named("dialect", dialect, &[("arrow", Dialect::Arrow), ("spark", Dialect::Spark)])?;
    Ok(Select { wants: wants(columns)?, dialect, options: ReadOptions { lenient }, on_error: on_error(errors)? })
}

fn or_raise<T>(py: Python<'_>, result: Result<T, Error>) -> PyResult<T> {
    result.map_err(|error| to_exception(py, error))
}

/// Bytes to headers and fields.
#[pyfunction]
#[pyo3(signature = (column, format, *, errors="raise", lenient=false, max_offset=None))]
pub fn decode_column<'py>(
    py: Python<'py>,
    column: &Bound<'py, PyAny>,
    format: &str,
    errors: &str,
    lenient: bool,
    max_offset: Option<usize>,
) -> PyResult<Bound<'py, PyAny>> {
    let format = or_raise(py, Format::named(format))?;
    let verb = Decode { options: ReadOptions { lenient }, on_error: or_raise(py, on_error(errors))? };
    apply(py, column, format, Box::new(verb), max_offset)
}

/// Headers and fields to bytes.
#[pyfunction]
#[pyo3(signature = (column, format, *, on_loss="raise", kinds=None, null_headers="empty", max_offset=None))]
pub fn encode_column<'py>(
    py: Python<'py>,
    column: &Bound<'py, PyAny>,
    format: &str,
    on_loss: &str,
    kinds: Option<&str>,
    null_headers: &str,
    max_offset: Option<usize>,
) -> PyResult<Bound<'py, PyAny>> {
    let format = or_raise(py, Format::named(format))?;
    let verb = Encode { options: or_raise(py, write_options(on_loss, kinds, null_headers))? };
    apply(py, column, format, Box::new(verb), max_offset)
}

/// Bytes or lists of headers to typed columns.
#[pyfunction]
#[pyo3(signature = (column, format, columns, *, errors="raise", lenient=false, dialect="arrow", max_offset=None))]
#[allow(clippy::too_many_arguments)] // The signature of a Python function: its options go by name.
pub fn select_column<'py>(
    py: Python<'py>,
    column: &Bound<'py, PyAny>,
    format: &str,
    columns: Vec<Spec>,
    errors: &str,
    lenient: bool,
    dialect: &str,
    max_offset: Option<usize>,
) -> PyResult<Bound<'py, PyAny>> {
    let format = or_raise(py, Format::named(format))?;
    let verb = or_raise(py, select_verb(columns, errors, lenient, dialect))?;
    apply(py, column, format, Box::new(verb), max_offset)
}

/// Bytes or lists of headers to their faults.
#[pyfunction]
#[pyo3(signature = (column, format, *, lenient=false, max_offset=None))]
pub fn validate_column<'py>(
    py: Python<'py>,
    column: &Bound<'py, PyAny>,
    format: &str,
    lenient: bool,
    max_offset: Option<usize>,
) -> PyResult<Bound<'py, PyAny>> {
    let format = or_raise(py, Format::named(format))?;
    apply(py, column, format, Box::new(Validate { options: ReadOptions { lenient } }), max_offset)
}

/// The type that a verb gives, before any row is read.
#[pyfunction]
#[pyo3(signature = (verb, format, *, columns=None, errors="raise", dialect="arrow", on_loss="raise"))]
pub fn schema(
    py: Python<'_>,
    verb: &str,
    format: &str,
    columns: Option<Vec<Spec>>,
    errors: &str,
    dialect: &str,
    on_loss: &str,
) -> PyResult<Schema> {
    let format = or_raise(py, Format::named(format))?;
    let verb: Box<dyn AnyVerb> = match verb {
        "decode" => Box::new(Decode { options: ReadOptions::default(), on_error: or_raise(py, on_error(errors))? }),
        "encode" => Box::new(Encode { options: or_raise(py, write_options(on_loss, None, "empty"))? }),
        "select" => Box::new(or_raise(py, select_verb(columns.unwrap_or_default(), errors, false, dialect))?),
        "validate" => Box::new(Validate::default()),
        other => return Err(PyValueError::new_err(format!("unknown verb '{other}'"))),
    };
    Ok(Schema { of: verb.output_type(format) })
}
