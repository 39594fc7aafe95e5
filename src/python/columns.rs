//! The operations on columns, as Python calls them: [`apply`], with options by name.

use std::sync::Arc;

use arrow_array::StructArray;
use arrow_array::cast::AsArray;
use arrow_schema::{DataType, Fields};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyString};

use super::arguments::{KeyArgument, argument, limits_or_default, named, on_loss, refuses_nulls, type_option};
use super::c_interface;
use super::capsule::{self, FormatOperation, Schema};
use super::edit::{EditedKeys, edit};
use super::filter::filter;
use super::gil::{enter, without_gil};
use super::objects::bytes_object;
use crate::arrow::amqp::ReadAmqp;
use crate::arrow::edit::EditColumn;
use crate::arrow::filter::Filter;
use crate::arrow::filtered::{Filtered, Matches};
use crate::arrow::json_lines::{JsonOptions, json_lines as write_lines};
use crate::arrow::messages::Messages;
use crate::arrow::pack::{Pack, Packed};
use crate::arrow::run::MAX_OFFSET;
use crate::arrow::schema::nullable;
use crate::arrow::select::{DefaultValue, Repeat, Selection};
use crate::arrow::types::{Dialect, common_number, common_type, ddl, parse_alternatives};
use crate::arrow::{Convert, Decode, Encode, Input, Operation, Output, Select, Validate, Work};
use crate::error::{Direction, Error};
use crate::format::Format;
use crate::log::OnError;
use crate::op::edit::Edit;
use crate::traits::{ReadOptions, WriteOptions};
use crate::types::Type;

/// The default name of the column of errors.
const ERROR_COLUMN: &str = "error";

/// `(output, key, type, repeat, required, default, split)`; the default is the text of a value and the type that reads it.
pub type Spec = (String, KeyArgument, String, String, bool, Option<(String, String)>, Option<String>);

pub fn selections(columns: Vec<Spec>) -> Result<Vec<Selection>, Error> {
    let repeats = [("last", Repeat::Last), ("first", Repeat::First), ("all", Repeat::All), ("error", Repeat::Error)];
    let selection = |(output, key, of, repeat, required, default, split): Spec| {
        if split.as_ref().is_some_and(String::is_empty) {
            return Err(Error::Value("split= must not be empty".into()));
        }
        let (of, others) = parse_alternatives(&of)?;
        Ok(Selection {
            output,
            key: key.requested()?,
            of,
            others,
            repeat: named("repeat", &repeat, &repeats)?,
            required,
            default: default.map(default_value).transpose()?,
            split: split.map(String::into_bytes),
        })
    };
    columns.into_iter().map(selection).collect()
}

fn default_value((of, text): (String, String)) -> Result<DefaultValue, Error> {
    let default = DefaultValue { of: Type::parse(&of)?, text: text.into_bytes() };
    match default.of.read(&default.text, Dialect::Spark) {
        Ok(_) => Ok(default),
        Err(invalid) => Err(Error::Value(format!("default= is not a value of the type: {}", invalid.message))),
    }
}

/// Checks a type, or several with ` | ` between them. Returns the name of the type that has all values, without a suffix, and
/// its name in Spark.
#[pyfunction]
pub fn check_type(text: &str) -> PyResult<(String, String)> {
    enter(|| {
        let (of, others) = parse_alternatives(text)?;
        let types = [&[of], &others[..]].concat();
        let name = match common_number(&types) {
            Some(scalar) => scalar.name().to_owned(),
            None => of.name().split(':').next().unwrap_or_default().to_owned(),
        };
        let spark = common_type(&types, Dialect::Spark).unwrap_or_else(|| of.arrow(Dialect::Spark));
        Ok((name, ddl(&spark)))
    })
}

/// The options of all operations on columns; an operation reads those that it has.
#[derive(Default)]
pub struct Options {
    read: ReadOptions,
    write: WriteOptions,
    on_error: OnError,
    error_column: Option<String>,
    dialect: Dialect,
    views: bool,
    pub threads: usize,
    /// The offset at which an output column is cut: [`MAX_OFFSET`], except in tests.
    pub max_offset: usize,
    selections: Vec<Selection>,
    /// The fields of messages to return; `None` for all.
    record_fields: Option<Vec<String>>,
    target: Option<Format>,
    /// Which messages are read; `None` for all.
    filter: Option<Arc<Filter>>,
    edit: Option<Arc<Edit>>,
    /// Reports which keys of an edit had no header.
    pub edited: Option<Py<EditedKeys>>,
    pack: Option<Pack>,
}

impl Options {
    fn of(py: Python<'_>, argument: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let mut options = Options { threads: 1, max_offset: MAX_OFFSET, ..Options::default() };
        options.read.limits = limits_or_default(py, None)?;
        for (name, value) in argument.into_iter().flatten() {
            match name.cast::<PyString>()?.to_str()? {
                "errors" => options.on_error = on_error(argument::errors(&value)?)?,
                "error_column" => {
                    let name = argument::error_column(&value)?;
                    options.error_column = (name != ERROR_COLUMN).then(|| name.to_owned());
                }
                "lenient" => options.read.lenient = argument::lenient(&value)?,
                "strict_types" => options.read.strict_types = argument::strict_types(&value)?,
                "text_keys" => options.read.text_keys = argument::text_keys(&value)?,
                "limits" => options.read.limits = limits_or_default(py, Some(&value))?,
                "on_loss" => options.write.on_loss = on_loss(argument::on_loss(&value)?)?,
                "types" => options.write.types = type_option(value.extract()?)?,
                "nulls" => options.write.refuse_null_headers = refuses_nulls(argument::nulls(&value)?)?,
                "canonical" => options.write.canonical = argument::canonical(&value)?,
                "dialect" => {
                    let dialects = [("arrow", Dialect::Arrow), ("spark", Dialect::Spark)];
                    options.dialect = named("dialect", argument::dialect(&value)?, &dialects)?;
                }
                "views" => options.views = argument::views(&value)?,
                "threads" => options.threads = threads(&value)?,
                "header_columns" => options.selections = selections(value.extract()?)?,
                "record_fields" => options.record_fields = value.extract()?,
                "where" => {
                    let argument = value.extract::<Option<_>>()?;
                    options.filter = argument.map(filter).transpose()?.map(Arc::new);
                }
                "edit" => options.edit = Some(Arc::new(edit(value.extract()?)?)),
                "edited" => options.edited = value.extract()?,
                "pack" => options.pack = Some(pack(value.extract()?)?),
                "target" => options.target = Some(argument::target(&value)?),
                "max_offset" => options.max_offset = value.extract::<usize>()?.min(MAX_OFFSET),
                name => return Err(PyTypeError::new_err(format!("unexpected option '{name}'"))),
            }
        }
        if options.error_column.is_some() && options.on_error != OnError::Column {
            return Err(PyValueError::new_err("error_column= names the column of errors='column'"));
        }
        Ok(options)
    }

    fn work(&self, operation: &str, format: Format) -> PyResult<Box<dyn Work>> {
        let Options { read, on_error, dialect, views, .. } = *self;
        let (selections, write) = (self.selections.clone(), self.write.clone());
        let filter = self.filter.clone();
        let work: Box<dyn Work> = match operation {
            "decode" => filtered(Decode { options: read, on_error, views }, format, filter, read, on_error),
            "encode" => Box::new(FormatOperation(Encode { options: write, limits: read.limits }, format)),
            "convert" => {
                let target = self.target.ok_or_else(|| PyTypeError::new_err("convert needs a target"))?;
                Box::new(FormatOperation(Convert { target, read, write, on_error }, format))
            }
            "edit" => {
                let edit = self.edit.clone().ok_or_else(|| PyTypeError::new_err("edit needs an edit"))?;
                let seen = self.edited.as_ref().map(|edited| Arc::clone(&edited.get().seen));
                Box::new(FormatOperation(EditColumn { edit, options: read, on_error, seen }, format))
            }
            "messages" => {
                let columns = self.record_fields.clone();
                let messages = Messages { columns, selections, dialect, options: read, on_error, filter };
                Box::new(FormatOperation(messages, format))
            }
            "pack" => {
                let pack = self.pack.clone().ok_or_else(|| PyTypeError::new_err("pack needs columns"))?;
                Box::new(FormatOperation(pack, format))
            }
            "select" => {
                let select = Select { selections, dialect, options: read, on_error, views };
                filtered(select, format, filter, read, on_error)
            }
            "where" => {
                let filter = filter.ok_or_else(|| PyTypeError::new_err("where needs a condition"))?;
                Box::new(FormatOperation(Matches { filter, options: read, on_error }, format))
            }
            "validate" => Box::new(FormatOperation(Validate { options: read }, format)),
            other => return Err(PyValueError::new_err(format!("unknown operation '{other}'"))),
        };
        Ok(match &self.error_column {
            Some(name) => Box::new(ErrorsNamed { work, name: name.clone() }),
            None => work,
        })
    }
}

/// An operation on the rows that a filter selects, or on all.
fn filtered<O: Operation + Send + Sync + 'static>(
    operation: O,
    format: Format,
    filter: Option<Arc<Filter>>,
    options: ReadOptions,
    on_error: OnError,
) -> Box<dyn Work> {
    match filter {
        Some(filter) => Box::new(FormatOperation(Filtered { operation, filter, options, on_error }, format)),
        None => Box::new(FormatOperation(operation, format)),
    }
}

/// Work whose last column, the errors, gets another name.
struct ErrorsNamed {
    work: Box<dyn Work>,
    name: String,
}

impl ErrorsNamed {
    fn fields(&self, of: &Fields) -> Result<Fields, Error> {
        if of.iter().any(|field| *field.name() == self.name) {
            let name = &self.name;
            return Err(Error::Value(format!("two columns '{name}' would be made: give error_column= another name")));
        }
        let renamed = of.last().map(|errors| nullable(&self.name, errors.data_type().clone()));
        Ok(of.iter().take(of.len().saturating_sub(1)).cloned().chain(renamed).collect())
    }
}

impl Work for ErrorsNamed {
    fn place(&self) -> (Direction, &'static str) {
        self.work.place()
    }

    fn output_type(&self) -> Result<DataType, Error> {
        Ok(match self.work.output_type()? {
            DataType::Struct(fields) => DataType::Struct(self.fields(&fields)?),
            other => other,
        })
    }

    fn apply(&self, input: Input<'_>) -> Result<Output, Error> {
        let output = self.work.apply(input)?;
        let Some(result) = output.column.as_struct_opt() else { return Ok(output) };
        let (fields, columns, nulls) = result.clone().into_parts();
        Ok(Output { column: Arc::new(StructArray::new(self.fields(&fields)?, columns, nulls)), ..output })
    }
}

/// `(key, type, is_list, split)`: of alternatives, values are written as the first.
type PackedArgument = (Option<KeyArgument>, Option<String>, bool, Option<String>);

/// The columns, without key and type for lists of headers; and whether nulls are skipped.
type PackArgument = (Vec<PackedArgument>, bool, bool);

fn pack((columns, skips_nulls, truncates): PackArgument) -> Result<Pack, Error> {
    let packed = |(key, of, lists, split): PackedArgument| match (key, of) {
        (Some(key), Some(of)) => {
            let (of, _) = parse_alternatives(&of)?;
            Ok(Packed::Values { key: key.requested()?, of, lists, split: split.map(String::into_bytes) })
        }
        _ => Ok(Packed::Headers),
    };
    let columns = columns.into_iter().map(packed).collect::<Result<_, Error>>()?;
    Ok(Pack { columns, skips_nulls, truncates })
}

fn on_error(name: &str) -> Result<OnError, Error> {
    named("errors value", name, &[("raise", OnError::Raise), ("null", OnError::Null), ("column", OnError::Column)])
}

fn threads(argument: &Bound<'_, PyAny>) -> PyResult<usize> {
    let number = if argument.is_instance_of::<PyBool>() { None } else { argument.extract::<i64>().ok() };
    match number {
        Some(number @ 1..) => Ok(usize::try_from(number).unwrap_or(usize::MAX)),
        Some(number) => Err(PyValueError::new_err(format!("threads must be at least 1, not {number}"))),
        None => Err(PyTypeError::new_err(format!("threads must be int, not {}", argument.get_type().name()?))),
    }
}

/// Applies an operation to a column: `decode`, `encode`, `convert` with `target`, `edit` with `edit`, `select` with
/// `header_columns`, `messages` with `record_fields` and `header_columns`, `pack` with `pack`, or `validate`.
#[pyfunction]
#[pyo3(signature = (operation, column, format, **options))]
pub fn apply<'py>(
    py: Python<'py>,
    operation: &str,
    column: &Bound<'py, PyAny>,
    #[pyo3(from_py_with = argument::format)] format: Format,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    enter(|| {
        let options = Options::of(py, options)?;
        capsule::apply(py, column, options.work(operation, format)?, &options)
    })
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
    enter(|| {
        let options = Options::of(py, options)?;
        let of = Type::parse(&format!("{of}:amqp"))?;
        let work = ReadAmqp { of, dialect: options.dialect, on_error: options.on_error };
        capsule::apply(py, column, Box::new(work), &options)
    })
}

/// A record batch, or a column of structs, as lines of JSON.
#[pyfunction]
#[pyo3(signature = (rows, *, epoch_ms=false, ascii=false))]
pub fn json_lines<'py>(
    py: Python<'py>,
    rows: &Bound<'py, PyAny>,
    epoch_ms: bool,
    ascii: bool,
) -> PyResult<Bound<'py, PyBytes>> {
    enter(|| {
        let c_interface::Column::Array(array) = c_interface::import(rows)? else {
            return Err(PyTypeError::new_err("JSON lines are written of one record batch, not of a stream"));
        };
        let rows =
            array.as_struct_opt().ok_or_else(|| PyTypeError::new_err("JSON lines are written of a record batch"))?;
        let options = JsonOptions { epoch_ms, ascii };
        let lines = without_gil(py, || write_lines(rows, options))?;
        bytes_object(py, &lines)
    })
}

/// The type that an operation returns, before any row is read.
#[pyfunction]
#[pyo3(signature = (operation, format, **options))]
pub fn schema(
    py: Python<'_>,
    operation: &str,
    #[pyo3(from_py_with = argument::format)] format: Format,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Schema> {
    enter(|| {
        let work = Options::of(py, options)?.work(operation, format)?;
        Ok(Schema { of: work.output_type()? })
    })
}
