//! The verbs on columns as Python calls them: options by name, then one call.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::capsule::{Of, Schema, Work, apply};
use super::errors::to_exception;
use super::given::{GivenKey, GivenKinds, argument, named, read_options, write_options};
use crate::arrow::amqp::ReadAmqp;
use crate::arrow::messages::Messages;
use crate::arrow::run::OnError;
use crate::arrow::select::{Repeat, Want};
use crate::arrow::types::Dialect;
use crate::arrow::{Convert, Decode, Encode, Select, Validate};
use crate::error::Error;
use crate::format::Format;
use crate::types::Type;
use crate::walk::ReadOptions;

/// `(output, key, type, repeat, required)`
pub type Spec = (String, GivenKey, String, String, bool);

fn on_error(name: &str) -> Result<OnError, Error> {
    named("errors value", name, &[("raise", OnError::Raise), ("null", OnError::Null), ("column", OnError::Column)])
}

pub fn wants(columns: Vec<Spec>) -> Result<Vec<Want>, Error> {
    let want = |(output, key, of, repeat, required): Spec| {
        let key = key.wanted()?;
        Ok(Want { output, key, of: Type::parse(&of)?, repeat: Repeat::named(&repeat)?, required })
    };
    columns.into_iter().map(want).collect()
}

fn dialect_named(name: &str) -> Result<Dialect, Error> {
    named("dialect", name, &[("arrow", Dialect::Arrow), ("spark", Dialect::Spark)])
}

fn or_raise<T>(py: Python<'_>, result: Result<T, Error>) -> PyResult<T> {
    result.map_err(|error| to_exception(py, error))
}

/// Bytes to headers and fields.
#[pyfunction]
#[pyo3(signature = (
    column, format, *, errors="raise", lenient=false, strict_kinds=false, text_keys=false, limits=None, max_offset=None
))]
#[allow(clippy::too_many_arguments)] // The signature of a Python function: its options go by name.
pub fn decode_column<'py>(
    py: Python<'py>,
    column: &Bound<'py, PyAny>,
    #[pyo3(from_py_with = argument::format)] format: &str,
    #[pyo3(from_py_with = argument::errors)] errors: &str,
    #[pyo3(from_py_with = argument::lenient)] lenient: bool,
    #[pyo3(from_py_with = argument::strict_kinds)] strict_kinds: bool,
    #[pyo3(from_py_with = argument::text_keys)] text_keys: bool,
    limits: Option<&Bound<'py, PyAny>>,
    max_offset: Option<usize>,
) -> PyResult<Bound<'py, PyAny>> {
    let format = or_raise(py, Format::named(format))?;
    let options = read_options(py, lenient, strict_kinds, text_keys, limits)?;
    let verb = Decode { options, on_error: or_raise(py, on_error(errors))? };
    apply(py, column, Box::new(Of(verb, format)), max_offset)
}

/// Headers and fields to bytes.
#[pyfunction]
#[pyo3(signature = (
    column, format, *, on_loss="raise", kinds=None, null_headers="empty", canonical=false, max_offset=None
))]
#[allow(clippy::too_many_arguments)] // The signature of a Python function: its options go by name.
pub fn encode_column<'py>(
    py: Python<'py>,
    column: &Bound<'py, PyAny>,
    #[pyo3(from_py_with = argument::format)] format: &str,
    #[pyo3(from_py_with = argument::on_loss)] on_loss: &str,
    kinds: Option<GivenKinds>,
    #[pyo3(from_py_with = argument::null_headers)] null_headers: &str,
    #[pyo3(from_py_with = argument::canonical)] canonical: bool,
    max_offset: Option<usize>,
) -> PyResult<Bound<'py, PyAny>> {
    let format = or_raise(py, Format::named(format))?;
    let verb = Encode { options: or_raise(py, write_options(on_loss, kinds, null_headers, canonical))? };
    apply(py, column, Box::new(Of(verb, format)), max_offset)
}

/// Bytes to bytes of another format.
#[pyfunction]
#[pyo3(signature = (
    column, format, target, *, on_loss="raise", kinds=None, null_headers="empty", canonical=false, errors="raise",
    lenient=false, strict_kinds=false, limits=None, max_offset=None
))]
#[allow(clippy::too_many_arguments)] // The signature of a Python function: its options go by name.
pub fn convert_column<'py>(
    py: Python<'py>,
    column: &Bound<'py, PyAny>,
    #[pyo3(from_py_with = argument::format)] format: &str,
    #[pyo3(from_py_with = argument::target)] target: &str,
    #[pyo3(from_py_with = argument::on_loss)] on_loss: &str,
    kinds: Option<GivenKinds>,
    #[pyo3(from_py_with = argument::null_headers)] null_headers: &str,
    #[pyo3(from_py_with = argument::canonical)] canonical: bool,
    #[pyo3(from_py_with = argument::errors)] errors: &str,
    #[pyo3(from_py_with = argument::lenient)] lenient: bool,
    #[pyo3(from_py_with = argument::strict_kinds)] strict_kinds: bool,
    limits: Option<&Bound<'py, PyAny>>,
    max_offset: Option<usize>,
) -> PyResult<Bound<'py, PyAny>> {
    let format = or_raise(py, Format::named(format))?;
    let verb = Convert {
        target: or_raise(py, Format::named(target))?,
        read: read_options(py, lenient, strict_kinds, false, limits)?,
        write: or_raise(py, write_options(on_loss, kinds, null_headers, canonical))?,
        on_error: or_raise(py, on_error(errors))?,
    };
    apply(py, column, Box::new(Of(verb, format)), max_offset)
}

/// Cells of many messages to a row a message.
#[pyfunction]
#[pyo3(signature = (
    column, format, *, columns=None, headers=Vec::new(), errors="raise", lenient=false, strict_kinds=false,
    text_keys=false, dialect="arrow", limits=None, max_offset=None
))]
#[allow(clippy::too_many_arguments)] // The signature of a Python function: its options go by name.
pub fn messages_column<'py>(
    py: Python<'py>,
    column: &Bound<'py, PyAny>,
    #[pyo3(from_py_with = argument::format)] format: &str,
    columns: Option<Vec<String>>,
    headers: Vec<Spec>,
    #[pyo3(from_py_with = argument::errors)] errors: &str,
    #[pyo3(from_py_with = argument::lenient)] lenient: bool,
    #[pyo3(from_py_with = argument::strict_kinds)] strict_kinds: bool,
    #[pyo3(from_py_with = argument::text_keys)] text_keys: bool,
    #[pyo3(from_py_with = argument::dialect)] dialect: &str,
    limits: Option<&Bound<'py, PyAny>>,
    max_offset: Option<usize>,
) -> PyResult<Bound<'py, PyAny>> {
    let format = or_raise(py, Format::named(format))?;
    let verb = Messages {
        columns,
        wants: or_raise(py, wants(headers))?,
        dialect: or_raise(py, dialect_named(dialect))?,
        options: read_options(py, lenient, strict_kinds, text_keys, limits)?,
        on_error: or_raise(py, on_error(errors))?,
    };
    apply(py, column, Box::new(Of(verb, format)), max_offset)
}

/// Bytes or lists of headers to typed columns.
#[pyfunction]
#[pyo3(signature = (
    column, format, columns, *, errors="raise", lenient=false, strict_kinds=false, dialect="arrow", limits=None,
    max_offset=None
))]
#[allow(clippy::too_many_arguments)] // The signature of a Python function: its options go by name.
pub fn select_column<'py>(
    py: Python<'py>,
    column: &Bound<'py, PyAny>,
    #[pyo3(from_py_with = argument::format)] format: &str,
    columns: Vec<Spec>,
    #[pyo3(from_py_with = argument::errors)] errors: &str,
    #[pyo3(from_py_with = argument::lenient)] lenient: bool,
    #[pyo3(from_py_with = argument::strict_kinds)] strict_kinds: bool,
    #[pyo3(from_py_with = argument::dialect)] dialect: &str,
    limits: Option<&Bound<'py, PyAny>>,
    max_offset: Option<usize>,
) -> PyResult<Bound<'py, PyAny>> {
    let format = or_raise(py, Format::named(format))?;
    let verb = Select {
        wants: or_raise(py, wants(columns))?,
        dialect: or_raise(py, dialect_named(dialect))?,
        options: read_options(py, lenient, strict_kinds, false, limits)?,
        on_error: or_raise(py, on_error(errors))?,
    };
    apply(py, column, Box::new(Of(verb, format)), max_offset)
}

/// Bytes or lists of headers to their faults.
#[pyfunction]
#[pyo3(signature = (column, format, *, lenient=false, strict_kinds=false, limits=None, max_offset=None))]
pub fn validate_column<'py>(
    py: Python<'py>,
    column: &Bound<'py, PyAny>,
    #[pyo3(from_py_with = argument::format)] format: &str,
    #[pyo3(from_py_with = argument::lenient)] lenient: bool,
    #[pyo3(from_py_with = argument::strict_kinds)] strict_kinds: bool,
    limits: Option<&Bound<'py, PyAny>>,
    max_offset: Option<usize>,
) -> PyResult<Bound<'py, PyAny>> {
    let format = or_raise(py, Format::named(format))?;
    let options = read_options(py, lenient, strict_kinds, false, limits)?;
    apply(py, column, Box::new(Of(Validate { options }, format)), max_offset)
}

/// AMQP primitives to values of a type.
#[pyfunction]
#[pyo3(signature = (column, of, *, errors="raise", dialect="arrow", max_offset=None))]
pub fn amqp_column<'py>(
    py: Python<'py>,
    column: &Bound<'py, PyAny>,
    of: &str,
    #[pyo3(from_py_with = argument::errors)] errors: &str,
    #[pyo3(from_py_with = argument::dialect)] dialect: &str,
    max_offset: Option<usize>,
) -> PyResult<Bound<'py, PyAny>> {
    let work = ReadAmqp {
        of: or_raise(py, Type::parse(&format!("{of}:amqp")))?,
        dialect: or_raise(py, dialect_named(dialect))?,
        on_error: or_raise(py, on_error(errors))?,
    };
    apply(py, column, Box::new(work), max_offset)
}

/// The type that a verb gives, before any row is read. `columns` are those of select, and the headers of messages, whose
/// other columns are `fields`.
#[pyfunction]
#[pyo3(signature = (
    verb, format, *, target=None, columns=None, fields=None, errors="raise", dialect="arrow", on_loss="raise",
    text_keys=false
))]
#[allow(clippy::too_many_arguments)] // The signature of a Python function: its options go by name.
pub fn schema(
    py: Python<'_>,
    verb: &str,
    #[pyo3(from_py_with = argument::format)] format: &str,
    target: Option<&str>,
    columns: Option<Vec<Spec>>,
    fields: Option<Vec<String>>,
    #[pyo3(from_py_with = argument::errors)] errors: &str,
    #[pyo3(from_py_with = argument::dialect)] dialect: &str,
    #[pyo3(from_py_with = argument::on_loss)] on_loss: &str,
    #[pyo3(from_py_with = argument::text_keys)] text_keys: bool,
) -> PyResult<Schema> {
    let format = or_raise(py, Format::named(format))?;
    let wants = or_raise(py, wants(columns.unwrap_or_default()))?;
    let dialect = or_raise(py, dialect_named(dialect))?;
    let on_error = or_raise(py, on_error(errors))?;
    let write = or_raise(py, write_options(on_loss, None, "empty", false))?;
    let options = ReadOptions { text_keys, ..ReadOptions::default() };
    let work: Box<dyn Work> = match verb {
        "decode" => Box::new(Of(Decode { options, on_error }, format)),
        "encode" => Box::new(Of(Encode { options: write }, format)),
        "convert" => {
            let target = or_raise(py, Format::named(target.unwrap_or_default()))?;
            Box::new(Of(Convert { target, read: options, write, on_error }, format))
        }
        "messages" => Box::new(Of(Messages { columns: fields, wants, dialect, options, on_error }, format)),
        "select" => Box::new(Of(Select { wants, dialect, options, on_error }, format)),
        "validate" => Box::new(Of(Validate::default(), format)),
        other => return Err(PyValueError::new_err(format!("unknown verb '{other}'"))),
    };
    Ok(Schema { of: or_raise(py, work.output_type())? })
}
