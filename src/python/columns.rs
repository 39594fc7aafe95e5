//! Typed columns passed from Python, and functions on columns that are not operations of a format.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::arguments::{KeyArgument, argument, parse_choice};
use super::c_interface;
use super::capsule::{self, Notes, Shared};
use super::gil::{enter, without_gil};
use super::objects::bytes_object;
use super::options::on_error;
use crate::arrow::Work;
use crate::arrow::amqp::ReadAmqp;
use crate::arrow::json_lines::{JsonOptions, json_lines as write_lines};
use crate::arrow::select::{DefaultValue, Repeat, Selection};
use crate::arrow::types::{Dialect, common_number, common_type, ddl, parse_alternatives};
use crate::error::Error;
use crate::kernel::buffer::MAX_OFFSET;
use crate::types::Type;

/// Mirrors `letterhead.fields.ColumnSpec`. The default is a type, and text that this type parses.
#[derive(FromPyObject)]
pub struct ColumnSpec {
    pub name: String,
    pub key: KeyArgument,
    #[pyo3(attribute("type"))]
    pub type_: String,
    pub repeat: String,
    pub required: bool,
    pub default: Option<(String, String)>,
    pub split: Option<String>,
}

pub fn selections(columns: Vec<ColumnSpec>) -> Result<Vec<Selection>, Error> {
    let repeats = [("last", Repeat::Last), ("first", Repeat::First), ("all", Repeat::All), ("error", Repeat::Error)];
    let selection = |ColumnSpec { name, key, type_, repeat, required, default, split }: ColumnSpec| {
        if split.as_ref().is_some_and(String::is_empty) {
            return Err(Error::Value("split= must not be empty".into()));
        }
        let (type_, others) = parse_alternatives(&type_)?;
        Ok(Selection {
            output: name,
            key: key.into_requested()?,
            type_,
            others,
            repeat: parse_choice("repeat", &repeat, &repeats)?,
            required,
            default: default.map(default_value).transpose()?,
            split: split.map(String::into_bytes),
        })
    };
    columns.into_iter().map(selection).collect()
}

fn default_value((type_name, text): (String, String)) -> Result<DefaultValue, Error> {
    let default = DefaultValue { type_: Type::parse(&type_name)?, text: text.into_bytes() };
    match default.type_.read(&default.text, Dialect::Spark) {
        Ok(_) => Ok(default),
        Err(invalid) => Err(Error::Value(format!("default= is not a value of the type: {}", invalid.message))),
    }
}

/// Raises `ValueError` for text that is not a value of the type.
#[pyfunction]
pub fn check_default(type_name: &str, text: &str) -> PyResult<()> {
    enter(|| Ok(default_value((type_name.to_owned(), text.to_owned())).map(drop)?))
}

/// Checks a type, or several separated by ` | `. Returns the name of their common type, without a suffix, and its name
/// in Spark.
#[pyfunction]
pub fn check_type(text: &str) -> PyResult<(String, String)> {
    enter(|| {
        let (first, others) = parse_alternatives(text)?;
        let types = [&[first], &others[..]].concat();
        let name = match common_number(&types) {
            Some(scalar) => scalar.name().to_owned(),
            None => first.name().split(':').next().unwrap_or_default().to_owned(),
        };
        let spark = common_type(&types, Dialect::Spark).unwrap_or_else(|| first.arrow(Dialect::Spark));
        Ok((name, ddl(&spark)))
    })
}

/// Converts AMQP primitives to values of a type.
#[pyfunction]
#[pyo3(signature = (column, type_name, *, errors="raise", dialect="arrow", max_offset=None))]
pub fn amqp_column<'py>(
    column: &Bound<'py, PyAny>,
    type_name: &str,
    #[pyo3(from_py_with = argument::errors)] errors: &str,
    #[pyo3(from_py_with = argument::dialect)] dialect: &str,
    max_offset: Option<usize>,
) -> PyResult<Bound<'py, PyAny>> {
    enter(|| {
        let type_ = Type::parse(&format!("{type_name}:amqp"))?;
        let work = Arc::new(ReadAmqp { type_, dialect: dialect_of(dialect)?, on_error: on_error(errors)? });
        let data_type = work.output_type()?;
        capsule::apply(
            column,
            Shared { work, threads: 1, max_offset: max_offset.unwrap_or(MAX_OFFSET) },
            &data_type,
            Notes::default(),
        )
    })
}

/// Writes a record batch, or a column of structs, as JSON lines.
#[pyfunction]
#[pyo3(signature = (rows, *, epoch_ms=false, ascii_only=false))]
pub fn json_lines<'py>(
    py: Python<'py>,
    rows: &Bound<'py, PyAny>,
    epoch_ms: bool,
    ascii_only: bool,
) -> PyResult<Bound<'py, PyBytes>> {
    enter(|| {
        let rows = c_interface::import_batch(rows)?;
        let options = JsonOptions { epoch_ms, ascii: ascii_only };
        let lines = without_gil(py, || write_lines(&rows, options))?;
        bytes_object(py, &lines)
    })
}

pub fn dialect_of(name: &str) -> Result<Dialect, Error> {
    parse_choice("dialect", name, &[("arrow", Dialect::Arrow), ("spark", Dialect::Spark)])
}
