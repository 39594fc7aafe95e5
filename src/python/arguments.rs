//! Conversion of Python arguments to types of the core.

use std::sync::OnceLock;

use pyo3::CastIntoError;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyBytes, PyDict, PyInt, PyList, PyString, PyTuple, PyType};

use super::gil::enter;
use crate::encoding::Encoding;
use crate::error::{Code, Direction, Error, ErrorDetail, unknown_name};
use crate::field::{FieldType, FieldValue, Role};
use crate::format::Format;
use crate::format_info::{Class, FormatInfo};
use crate::header::{Header, Key, RequestedKey, TypedKey};
use crate::limits::Limits;
use crate::log::OnLoss;
use crate::op::write::EncodeMessage;
use crate::options::{ReadOptions, WriteOptions};
use crate::type_option::{EncodedType, Occurrences, TypeOption};
use crate::value::ByteOrder;
use crate::value_type::{Scalar, ValueType};

/// Key: text, an integer, or `(type, bits)`.
#[derive(FromPyObject)]
pub enum KeyArgument {
    Text(PyBackedStr),
    Int(i32),
    Typed(PyBackedStr, PyBackedBytes),
}

impl KeyArgument {
    pub fn into_requested(self) -> Result<RequestedKey, Error> {
        Ok(match self {
            KeyArgument::Text(text) => RequestedKey::Text(text.to_string()),
            KeyArgument::Int(number) => RequestedKey::Int(number),
            KeyArgument::Typed(value_type, bits) => RequestedKey::typed(parse_type_name(&value_type)?, &bits),
        })
    }
}

pub fn parse_type_name(name: &str) -> Result<ValueType, Error> {
    let types = Scalar::ALL.iter().filter(|scalar| scalar.is_wire_type()).map(|scalar| scalar.name());
    ValueType::parse(name).ok_or_else(|| unknown_name("type", name, types))
}

/// Headers passed from Python. Keys and values are not copied.
pub struct HeadersArgument<'py>(Vec<HeaderArgument<'py>>);

struct HeaderArgument<'py> {
    key: KeyObject<'py>,
    value: ValueObject<'py>,
}

enum KeyObject<'py> {
    Text(Bound<'py, PyString>),
    Int(i32),
    Typed(ValueType, Bound<'py, PyBytes>),
}

/// Type, for typed values, and bytes of a value.
type ValueObject<'py> = (Option<ValueType>, Option<Bound<'py, PyBytes>>);

impl<'py> HeadersArgument<'py> {
    /// Reads a list of pairs in the form of `letterhead.Headers`, or a dict.
    pub fn of(headers: &Bound<'py, PyAny>) -> PyResult<Self> {
        let Ok(dict) = headers.cast::<PyDict>() else {
            let list = headers.cast::<PyList>()?;
            let mut parsed = Vec::with_capacity(list.len());
            for pair in list {
                let (key, value) = pair.extract()?;
                let value = match plain_value(value)? {
                    Ok(value) => value,
                    Err(value) => typed_parts(&value).map(|(value_type, bits)| (Some(value_type), Some(bits)))?,
                };
                parsed.push(HeaderArgument { key: KeyObject::of(key)?, value });
            }
            return Ok(HeadersArgument(parsed));
        };
        // Collected first, because inspecting a value may run Python code that changes the dict.
        let pairs: Vec<_> = dict.iter().collect();
        let mut parsed = Vec::with_capacity(pairs.len());
        for (key, value) in pairs {
            let (Ok(key), Ok(value)) = (key.cast_into::<PyString>(), plain_value(value)?) else {
                let pairs = headers.py().import("letterhead.headers")?.getattr("pairs_of")?.call1((headers,))?;
                return HeadersArgument::of(&pairs);
            };
            parsed.push(HeaderArgument { key: KeyObject::Text(key), value });
        }
        Ok(HeadersArgument(parsed))
    }

    /// Converts the headers; fails for a key without a UTF-8 form.
    pub fn headers(&self, format: &'static str) -> PyResult<Vec<Header<'_>>> {
        let mut headers = Vec::with_capacity(self.0.len());
        for (index, HeaderArgument { key, value: (value_type, value) }) in self.0.iter().enumerate() {
            let key = match key {
                KeyObject::Text(text) => Key::from(text.to_str().map_err(|_| half_pair(index, format))?),
                KeyObject::Int(number) => Key::Int(*number),
                KeyObject::Typed(value_type, bits) => {
                    Key::Typed(TypedKey::new(*value_type, bits.as_bytes(), ByteOrder::Big))
                }
            };
            let value = value.as_ref().map(|bytes| bytes.as_bytes());
            headers.push(Header { index, key, value_type: *value_type, value, value_offset: None });
        }
        Ok(headers)
    }
}

impl<'py> KeyObject<'py> {
    fn of(key: Bound<'py, PyAny>) -> PyResult<Self> {
        match key.cast_into::<PyString>().map_err(CastIntoError::into_inner) {
            Ok(text) => Ok(KeyObject::Text(text)),
            Err(key) if key.is_instance_of::<PyInt>() => Ok(KeyObject::Int(key.extract()?)),
            Err(key) => typed_parts(&key).map(|(value_type, bits)| KeyObject::Typed(value_type, bits)),
        }
    }
}

/// Converts null, bytes or a value of a class such as `letterhead.Int32`; returns any other object unchanged.
fn plain_value<'py>(value: Bound<'py, PyAny>) -> PyResult<Result<ValueObject<'py>, Bound<'py, PyAny>>> {
    if value.is_none() {
        return Ok(Ok((None, None)));
    }
    let value = match value.cast_into_exact::<PyBytes>() {
        Ok(bytes) => return Ok(Ok((None, Some(bytes)))),
        Err(other) => other.into_inner(),
    };
    let Some(value_type) = type_of_class(&value.get_type())? else { return Ok(Err(value)) };
    let bits = value.getattr(intern!(value.py(), "_bits"))?.cast_into()?;
    Ok(Ok((Some(value_type), Some(bits))))
}

/// Type and bytes of a `letterhead.Value`.
fn typed_parts<'py>(value: &Bound<'py, PyAny>) -> PyResult<(ValueType, Bound<'py, PyBytes>)> {
    let py = value.py();
    let value_type = match type_of_class(&value.get_type())? {
        Some(value_type) => value_type,
        None => parse_type_name(value.getattr(intern!(py, "_type"))?.cast::<PyString>()?.to_str()?)?,
    };
    Ok((value_type, value.getattr(intern!(py, "_bits"))?.cast_into()?))
}

/// The type of a class such as `letterhead.Int32`; `None` for any other class.
fn type_of_class(class: &Bound<'_, PyType>) -> PyResult<Option<ValueType>> {
    static CLASSES: PyOnceLock<Vec<(Py<PyType>, ValueType)>> = PyOnceLock::new();
    let py = class.py();
    let classes = CLASSES.get_or_try_init(py, || {
        let values = py.import("letterhead.values")?;
        let classes = values.getattr("_CLASSES")?.cast_into::<PyDict>()?;
        let types = Scalar::ALL.iter().filter(|scalar| scalar.is_wire_type());
        let class = |scalar: &Scalar| -> PyResult<_> {
            let class = classes.as_any().get_item(scalar.name())?.cast_into::<PyType>()?;
            Ok((class.unbind(), ValueType::Named(*scalar)))
        };
        types.map(class).collect::<PyResult<Vec<_>>>()
    })?;
    Ok(classes.iter().find(|(known, _)| known.is(class)).map(|(_, value_type)| *value_type))
}

#[cold]
fn half_pair(index: usize, format: &'static str) -> PyErr {
    let message = "a key with half of a surrogate pair has no UTF-8 form";
    let error = ErrorDetail { header: Some(index), ..ErrorDetail::of_message(Code::KeyNotUtf8, message) };
    error.into_error(Direction::Encode, format, None).into()
}

/// Option `types`: a name, or pairs of a key and the type of its values.
#[derive(FromPyObject)]
pub enum TypesArgument {
    Word(String),
    Each(Vec<(KeyArgument, OccurrencesArgument)>),
}

/// Type for all occurrences of a key, or one for each.
#[derive(FromPyObject)]
pub enum OccurrencesArgument {
    All(String),
    InOrder(Vec<String>),
}

impl TypesArgument {
    fn type_option(self) -> Result<TypeOption, Error> {
        let words = [
            ("be", TypeOption::Untyped(Encoding::Bytes(ByteOrder::Big))),
            ("le", TypeOption::Untyped(Encoding::Bytes(ByteOrder::Little))),
            ("text", TypeOption::Untyped(Encoding::Text)),
            ("binary", TypeOption::Binary),
        ];
        match self {
            TypesArgument::Word(word) => match words.iter().find(|(known, _)| *known == word) {
                Some((_, type_option)) => Ok(type_option.clone()),
                None => Err(unknown_name("types value", &word, words.iter().map(|(known, _)| *known))),
            },
            TypesArgument::Each(pairs) => {
                let pair =
                    |(key, times): (KeyArgument, OccurrencesArgument)| Ok((key.into_requested()?, times.times()?));
                pairs.into_iter().map(pair).collect::<Result<_, Error>>().map(TypeOption::ByKey)
            }
        }
    }
}

impl OccurrencesArgument {
    fn times(self) -> Result<Occurrences, Error> {
        match self {
            OccurrencesArgument::All(name) => EncodedType::parse(&name).map(Occurrences::All),
            OccurrencesArgument::InOrder(names) => {
                names.iter().map(|name| EncodedType::parse(name)).collect::<Result<_, _>>().map(Occurrences::InOrder)
            }
        }
    }
}

/// Conversions of arguments, which run before the body of a function. Unlike PyO3's own, they name the argument in
/// errors.
pub mod argument {
    use super::*;

    macro_rules! arguments {
        ($($(#[$attribute:meta])* $name:ident: $take:ident -> $type:ty)*) => {$(
            $(#[$attribute])*
            #[allow(clippy::needless_lifetimes, reason = "texts live as long as the argument, flags need not")]
            pub fn $name<'a>(argument: &'a Bound<'_, PyAny>) -> PyResult<$type> {
                enter(|| $take(argument, stringify!($name)))
            }
        )*};
    }

    arguments! {
        format: known_format -> Format
        target: known_format -> Format
        errors: text -> &'a str
        error_column: text -> &'a str
        on_loss: text -> &'a str
        nulls: text -> &'a str
        dialect: text -> &'a str
        codec: text -> &'a str
        partitioner: text -> &'a str
        lenient: flag -> bool
        strict_types: flag -> bool
        text_keys: flag -> bool
        canonical: flag -> bool
        views: flag -> bool
        threads: at_least_one -> usize
    }

    /// Converts an argument to any other type.
    pub fn extract<'py, T: FromPyObjectOwned<'py>>(argument: &Bound<'py, PyAny>) -> PyResult<T> {
        enter(|| argument.extract().map_err(Into::into))
    }

    fn text<'a>(argument: &'a Bound<'_, PyAny>, name: &str) -> PyResult<&'a str> {
        argument.cast::<PyString>().map_err(|_| wrong_type(argument, name, "str"))?.to_str()
    }

    fn known_format(argument: &Bound<'_, PyAny>, name: &str) -> PyResult<Format> {
        Ok(Format::from_name(text(argument, name)?)?)
    }

    fn at_least_one(argument: &Bound<'_, PyAny>, name: &str) -> PyResult<usize> {
        let number = if argument.is_instance_of::<PyBool>() { None } else { argument.extract::<i64>().ok() };
        match number {
            Some(number @ 1..) => Ok(usize::try_from(number).unwrap_or(usize::MAX)),
            Some(number) => Err(PyValueError::new_err(format!("{name} must be at least 1, not {number}"))),
            None => Err(wrong_type(argument, name, "int")),
        }
    }

    fn flag(argument: &Bound<'_, PyAny>, name: &str) -> PyResult<bool> {
        argument.extract().map_err(|_| wrong_type(argument, name, "bool"))
    }

    #[cold]
    fn wrong_type(argument: &Bound<'_, PyAny>, name: &str, expected: &str) -> PyErr {
        match argument.get_type().name() {
            Ok(actual) => PyTypeError::new_err(format!("{name} must be {expected}, not {actual}")),
            Err(error) => error,
        }
    }
}

/// Returns the value of a name in `known`, or an error that names the option.
pub fn parse_choice<T: Copy>(option: &str, name: &str, known: &[(&str, T)]) -> Result<T, Error> {
    let value = known.iter().find(|(text, _)| *text == name).map(|(_, value)| *value);
    value.ok_or_else(|| unknown_name(option, name, known.iter().map(|(text, _)| *text)))
}

/// Returns the limits of a `letterhead.Limits`. The process-wide limits replace unset ones, or all of them if there is
/// no object.
pub fn limits_or_default(py: Python<'_>, limits: Option<&Bound<'_, PyAny>>) -> PyResult<Limits> {
    // Read once, because reading an environment variable costs more than reading a message.
    static PROCESS_LIMITS: OnceLock<Result<Limits, Error>> = OnceLock::new();
    let process_limits = PROCESS_LIMITS.get_or_init(|| Limits::from_variables(|name| std::env::var_os(name)));
    let process_limits = process_limits.clone()?;
    let Some(limits) = limits.filter(|limits| !limits.is_none()) else { return Ok(process_limits) };
    let limit = |name, otherwise: usize| match limits.getattr_opt(name)? {
        Some(number) => Ok(number.extract::<Option<usize>>()?.unwrap_or(otherwise)),
        None => {
            let class = limits.get_type().name()?;
            Err(PyTypeError::new_err(format!("limits must be letterhead.Limits, not {class}")))
        }
    };
    Ok(Limits {
        message_bytes: limit(intern!(py, "message_bytes"), process_limits.message_bytes)?,
        headers: limit(intern!(py, "headers"), process_limits.headers)?,
        decompressed_bytes: limit(intern!(py, "decompressed_bytes"), process_limits.decompressed_bytes)?,
        records: limit(intern!(py, "records"), process_limits.records)?,
        output_bytes: limit(intern!(py, "output_bytes"), process_limits.output_bytes)?,
        reports: limit(intern!(py, "reports"), process_limits.reports)?,
        arrow_batch_bytes: limit(intern!(py, "arrow_batch_bytes"), process_limits.arrow_batch_bytes)?,
    })
}

/// Parses the options of a reader of one message: `(lenient, strict_types, limits)`, or None for the defaults.
pub fn read_options(py: Python<'_>, argument: Option<Bound<'_, PyTuple>>) -> PyResult<ReadOptions> {
    let Some(argument) = argument else {
        return Ok(ReadOptions { limits: limits_or_default(py, None)?, ..ReadOptions::default() });
    };
    let (lenient, strict_types, limits): (Bound<'_, PyAny>, Bound<'_, PyAny>, Bound<'_, PyAny>) = argument.extract()?;
    Ok(ReadOptions {
        lenient: argument::lenient(&lenient)?,
        strict_types: argument::strict_types(&strict_types)?,
        text_keys: false,
        limits: limits_or_default(py, Some(&limits))?,
    })
}

/// Parses the options of a writer of messages: `(on_loss, types, nulls, canonical)`, or None for the defaults.
pub fn write_options(argument: Option<Bound<'_, PyTuple>>) -> PyResult<WriteOptions> {
    let Some(argument) = argument else { return Ok(WriteOptions::default()) };
    let (loss, types, nulls, canonical): (Bound<'_, PyAny>, _, Bound<'_, PyAny>, Bound<'_, PyAny>) =
        argument.extract()?;
    Ok(WriteOptions {
        on_loss: on_loss(argument::on_loss(&loss)?)?,
        types: type_option(types)?,
        refuse_null_headers: refuses_nulls(argument::nulls(&nulls)?)?,
        canonical: argument::canonical(&canonical)?,
    })
}

pub fn on_loss(name: &str) -> Result<OnLoss, Error> {
    parse_choice("on_loss value", name, &[("raise", OnLoss::Raise), ("drop", OnLoss::Drop), ("report", OnLoss::Report)])
}

/// Whether null lists of headers are rejected.
pub fn refuses_nulls(name: &str) -> Result<bool, Error> {
    parse_choice("nulls value", name, &[("skip", false), ("raise", true)])
}

pub fn type_option(types: Option<TypesArgument>) -> Result<TypeOption, Error> {
    types.map_or(Ok(TypeOption::Unset), TypesArgument::type_option)
}

/// Message passed from Python: headers, and the values of the other fields with their types.
pub struct MessageArgument<'py> {
    headers: Option<HeadersArgument<'py>>,
    fields: Vec<(FieldType, Option<Bound<'py, PyAny>>)>,
}

impl<'py> MessageArgument<'py> {
    /// Reads headers for a headers format, and a dict of the fields of a message for others.
    pub fn of(message: &Bound<'py, PyAny>, info: &FormatInfo) -> PyResult<Self> {
        let headers_of = |headers: &Bound<'py, PyAny>| match headers.is_none() {
            true => Ok(None),
            false => HeadersArgument::of(headers).map(Some),
        };
        if info.class == Class::Headers {
            return Ok(MessageArgument { headers: headers_of(message)?, fields: Vec::new() });
        }
        let dict = message.cast::<PyDict>()?;
        let mut result = MessageArgument { headers: None, fields: Vec::with_capacity(info.fields.len()) };
        for field in info.fields {
            match (field.role, dict.get_item(field.name)?) {
                (Role::Headers, Some(headers)) => result.headers = headers_of(&headers)?,
                (Role::Headers, None) => {}
                (_, value) => result.fields.push((field.field_type, value)),
            }
        }
        Ok(result)
    }

    /// Converts the message.
    pub fn encode(&self, format: &'static str, options: WriteOptions) -> PyResult<EncodeMessage<'_>> {
        let headers = self.headers.as_ref().map(|headers| headers.headers(format)).transpose()?;
        let fields = self
            .fields
            .iter()
            .map(|(field_type, value)| field_value(*field_type, value.as_ref()))
            .collect::<PyResult<_>>()?;
        Ok(EncodeMessage { headers, fields, options })
    }
}

fn field_value<'a>(field_type: FieldType, value: Option<&'a Bound<'_, PyAny>>) -> PyResult<FieldValue<'a>> {
    let Some(value) = value.filter(|value| !value.is_none()) else { return Ok(FieldValue::Null) };
    Ok(match field_type {
        FieldType::Bool => FieldValue::Bool(value.extract()?),
        FieldType::Int8 | FieldType::Int64 | FieldType::Natural => FieldValue::Int64(value.extract()?),
        FieldType::Uint64 => FieldValue::Uint64(value.extract()?),
        FieldType::Text => FieldValue::Text(value.cast::<PyString>()?.to_str()?),
        FieldType::Binary | FieldType::Id | FieldType::Headers => {
            FieldValue::Binary(value.cast::<PyBytes>()?.as_bytes())
        }
    })
}

/// Approximate number of bytes to copy.
pub fn size(message: &EncodeMessage<'_>) -> usize {
    let values = message.headers.iter().flatten().filter_map(|header| header.value).map(<[u8]>::len);
    values.chain(message.fields.iter().map(FieldValue::byte_len)).sum()
}
