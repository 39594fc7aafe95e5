//! Python arguments as the core takes them.

use std::sync::OnceLock;

use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyInt, PyList, PyString, PyTuple, PyType};

use crate::encoding::Encoding;
use crate::error::{Code, Direction, Error, ErrorDetail, unknown_name};
use crate::format::{Format, Info};
use crate::header::{Header, Key, RequestedKey, TypedKey};
use crate::limits::Limits;
use crate::log::OnLoss;
use crate::traits::{FieldType, FieldValue, ReadOptions, Role, WriteOptions};
use crate::type_option::{EncodedType, Occurrences, TypeOption};
use crate::value::ByteOrder;
use crate::value_type::{Scalar, ValueType};

/// A key: text, an integer, or `(type, bits)`.
#[derive(FromPyObject)]
pub enum KeyArgument {
    Text(PyBackedStr),
    Int(i32),
    Typed(PyBackedStr, PyBackedBytes),
}

impl KeyArgument {
    fn key(&self) -> Result<Key<'_>, Error> {
        Ok(match self {
            KeyArgument::Text(text) => Key::from(&**text),
            KeyArgument::Int(number) => Key::Int(*number),
            KeyArgument::Typed(value_type, bits) => {
                Key::Typed(TypedKey::new(type_named(value_type)?, bits, ByteOrder::Big))
            }
        })
    }

    pub fn wanted(self) -> Result<RequestedKey, Error> {
        Ok(match self {
            KeyArgument::Text(text) => RequestedKey::Text(text.to_string()),
            KeyArgument::Int(number) => RequestedKey::Int(number),
            KeyArgument::Typed(value_type, bits) => RequestedKey::Typed(type_named(&value_type)?, bits.to_vec()),
        })
    }
}

fn type_named(name: &str) -> Result<ValueType, Error> {
    let types = Scalar::ALL.iter().filter(|scalar| scalar.is_wire_type()).map(|scalar| scalar.name());
    ValueType::parse(name).ok_or_else(|| unknown_name("type", name, types))
}

/// `(key, type, value)`
type HeaderTuple = (KeyArgument, Option<PyBackedStr>, Option<PyBackedBytes>);

/// Headers as a list of `(key, type, value)`, or of `(key, value)` as in `letterhead.Headers`.
fn header_tuples(headers: &Bound<'_, PyAny>, format: &'static str) -> PyResult<Vec<HeaderTuple>> {
    let list = headers.cast::<PyList>()?;
    let mut parsed = Vec::with_capacity(list.len());
    for (index, header) in list.iter().enumerate() {
        parsed.push(match header.cast::<PyTuple>() {
            Ok(pair) if pair.len() == 2 => pair_tuple(pair, index, format)?,
            _ => header.extract()?,
        });
    }
    Ok(parsed)
}

/// Headers that can be written from where they are in Python: keys are text, values are null, bytes or of a class such
/// as `letterhead.Int32`. Nearly all headers are of this form.
pub struct TextHeaders<'py>(Vec<TextHeader<'py>>);

struct TextHeader<'py> {
    key: Bound<'py, PyString>,
    value_type: Option<ValueType>,
    value: Option<Bound<'py, PyBytes>>,
}

impl<'py> TextHeaders<'py> {
    /// The headers of a list of pairs or of a dict; `None` if some header has another form.
    pub fn of(headers: &Bound<'py, PyAny>) -> PyResult<Option<Self>> {
        if let Ok(list) = headers.cast::<PyList>() {
            let mut parsed = Vec::with_capacity(list.len());
            for pair in list {
                let Ok(pair) = pair.cast_into::<PyTuple>() else { return Ok(None) };
                if pair.len() != 2 {
                    return Ok(None);
                }
                let Some(header) = TextHeader::of(pair.get_item(0)?, pair.get_item(1)?)? else { return Ok(None) };
                parsed.push(header);
            }
            return Ok(Some(TextHeaders(parsed)));
        }
        let Ok(dict) = headers.cast_exact::<PyDict>() else { return Ok(None) };
        // All items first: looking at a value may run Python code, which may change the dict.
        let pairs: Vec<_> = dict.iter().collect();
        let mut parsed = Vec::with_capacity(pairs.len());
        for (key, value) in pairs {
            let Some(header) = TextHeader::of(key, value)? else { return Ok(None) };
            parsed.push(header);
        }
        Ok(Some(TextHeaders(parsed)))
    }

    /// The headers for the core; `None` if some key has no UTF-8 form.
    pub fn headers(&self) -> Option<Vec<Header<'_>>> {
        let mut headers = Vec::with_capacity(self.0.len());
        for (index, TextHeader { key, value_type, value }) in self.0.iter().enumerate() {
            let key = Key::from(key.to_str().ok()?);
            headers.push(Header {
                index,
                key,
                value_type: *value_type,
                value: value.as_ref().map(|bytes| bytes.as_bytes()),
                at: None,
            });
        }
        Some(headers)
    }
}

impl<'py> TextHeader<'py> {
    fn of(key: Bound<'py, PyAny>, value: Bound<'py, PyAny>) -> PyResult<Option<Self>> {
        let Ok(key) = key.cast_into::<PyString>() else { return Ok(None) };
        if value.is_none() {
            return Ok(Some(TextHeader { key, value_type: None, value: None }));
        }
        let value = match value.cast_into_exact::<PyBytes>() {
            Ok(bytes) => return Ok(Some(TextHeader { key, value_type: None, value: Some(bytes) })),
            Err(other) => other.into_inner(),
        };
        let Some(value_type) = type_of_class(&value.get_type())? else { return Ok(None) };
        let bits = value.getattr(intern!(key.py(), "_bits"))?.cast_into::<PyBytes>().ok();
        Ok(bits.map(|bits| TextHeader { key, value_type: Some(value_type), value: Some(bits) }))
    }
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

/// A key and a value; their classes determine their types.
fn pair_tuple(pair: &Bound<'_, PyTuple>, index: usize, format: &'static str) -> PyResult<HeaderTuple> {
    let (key, value) = (pair.get_borrowed_item(0)?, pair.get_borrowed_item(1)?);
    let key = if let Ok(text) = key.cast::<PyString>() {
        let text = PyBackedStr::try_from(text.to_owned());
        KeyArgument::Text(text.map_err(|_| half_pair(index, format))?)
    } else if key.is_instance_of::<PyInt>() {
        KeyArgument::Int(key.extract()?)
    } else {
        let (value_type, bits) = typed_parts(&key)?;
        KeyArgument::Typed(value_type, bits)
    };
    if value.is_none() {
        return Ok((key, None, None));
    }
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return Ok((key, None, Some(bytes.to_owned().into())));
    }
    let (value_type, bits) = typed_parts(&value)?;
    Ok((key, Some(value_type), Some(bits)))
}

/// The type and the bits of a `letterhead.Value`.
fn typed_parts(value: &Bound<'_, PyAny>) -> PyResult<(PyBackedStr, PyBackedBytes)> {
    let py = value.py();
    Ok((value.getattr(intern!(py, "_type"))?.extract()?, value.getattr(intern!(py, "_bits"))?.extract()?))
}

#[cold]
fn half_pair(index: usize, format: &'static str) -> PyErr {
    let message = "a key with half of a surrogate pair has no UTF-8 form";
    let error = ErrorDetail { header: Some(index), ..ErrorDetail::of_message(Code::KeyNotUtf8, message) };
    error.located(Direction::Encode, format, None).into()
}

/// The option `types`: a word, or pairs of a key and the type of its values.
#[derive(FromPyObject)]
pub enum TypesArgument {
    Word(String),
    Each(Vec<(KeyArgument, OccurrencesArgument)>),
}

/// One type for all occurrences of a key, or one for each.
#[derive(FromPyObject)]
pub enum OccurrencesArgument {
    All(String),
    InOrder(Vec<String>),
}

impl TypesArgument {
    pub fn type_option(self) -> Result<TypeOption, Error> {
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
                let pair = |(key, times): (KeyArgument, OccurrencesArgument)| Ok((key.wanted()?, times.times()?));
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

/// Arguments that PyO3 would refuse without their name.
pub mod argument {
    use super::*;

    macro_rules! arguments {
        ($($name:ident: $take:ident -> $type:ty)*) => {$(
            #[allow(clippy::needless_lifetimes, reason = "texts live as long as what was given, flags need not")]
            pub fn $name<'a>(argument: &'a Bound<'_, PyAny>) -> PyResult<$type> {
                $take(argument, stringify!($name))
            }
        )*};
    }

    arguments! {
        format: known_format -> Format
        target: known_format -> Format
        errors: text -> &'a str
        error_column: text -> &'a str
        on_loss: text -> &'a str
        null_headers: text -> &'a str
        dialect: text -> &'a str
        codec: text -> &'a str
        lenient: flag -> bool
        strict_types: flag -> bool
        text_keys: flag -> bool
        canonical: flag -> bool
        views: flag -> bool
    }

    fn text<'a>(argument: &'a Bound<'_, PyAny>, name: &str) -> PyResult<&'a str> {
        argument.cast::<PyString>().map_err(|_| wrong_type(argument, name, "str"))?.to_str()
    }

    fn known_format(argument: &Bound<'_, PyAny>, name: &str) -> PyResult<Format> {
        Ok(Format::named(text(argument, name)?)?)
    }

    fn flag(argument: &Bound<'_, PyAny>, name: &str) -> PyResult<bool> {
        argument.extract().map_err(|_| wrong_type(argument, name, "bool"))
    }

    #[cold]
    fn wrong_type(argument: &Bound<'_, PyAny>, name: &str, wanted: &str) -> PyErr {
        match argument.get_type().name() {
            Ok(of) => PyTypeError::new_err(format!("{name} must be {wanted}, not {of}")),
            Err(error) => error,
        }
    }
}

/// Finds a value by the name a user gave.
pub fn named<T: Copy>(option: &str, name: &str, known: &[(&str, T)]) -> Result<T, Error> {
    let found = known.iter().find(|(text, _)| *text == name).map(|(_, value)| *value);
    found.ok_or_else(|| unknown_name(option, name, known.iter().map(|(text, _)| *text)))
}

/// The options of a reader: `limits` is a `letterhead.Limits`, or None for the limits of the process.
pub fn read_options(
    py: Python<'_>,
    lenient: bool,
    strict_types: bool,
    limits: Option<&Bound<'_, PyAny>>,
) -> PyResult<ReadOptions> {
    Ok(ReadOptions { lenient, strict_types, text_keys: false, limits: limits_or_default(py, limits)? })
}

/// The limits; unset ones are those of the process.
pub fn limits_or_default(py: Python<'_>, limits: Option<&Bound<'_, PyAny>>) -> PyResult<Limits> {
    // Read once: reading a message costs less than reading a variable of the environment.
    static OF_PROCESS: OnceLock<Result<Limits, Error>> = OnceLock::new();
    let of_process = OF_PROCESS.get_or_init(|| Limits::from_variables(|name| std::env::var_os(name)));
    let of_process = of_process.clone()?;
    let Some(limits) = limits else { return Ok(of_process) };
    let limit = |name, otherwise: usize| match limits.getattr_opt(name)? {
        Some(number) => Ok(number.extract::<Option<usize>>()?.unwrap_or(otherwise)),
        None => {
            let class = limits.get_type().name()?;
            Err(PyTypeError::new_err(format!("limits must be letterhead.Limits, not {class}")))
        }
    };
    Ok(Limits {
        message_bytes: limit(intern!(py, "message_bytes"), of_process.message_bytes)?,
        headers: limit(intern!(py, "headers"), of_process.headers)?,
        decompressed_bytes: limit(intern!(py, "decompressed_bytes"), of_process.decompressed_bytes)?,
        records: limit(intern!(py, "records"), of_process.records)?,
        output_bytes: limit(intern!(py, "output_bytes"), of_process.output_bytes)?,
    })
}

pub fn write_options(
    on_loss: &str,
    types: Option<TypesArgument>,
    null_headers: &str,
    canonical: bool,
) -> Result<WriteOptions, Error> {
    let losses = [("raise", OnLoss::Raise), ("drop", OnLoss::Drop), ("report", OnLoss::Report)];
    Ok(WriteOptions {
        on_loss: named("on_loss value", on_loss, &losses)?,
        types: types.map(TypesArgument::type_option).transpose()?.unwrap_or_default(),
        refuse_null_headers: named("null_headers value", null_headers, &[("empty", false), ("raise", true)])?,
        canonical,
    })
}

/// A message passed from Python.
#[derive(Default)]
pub struct MessageArgument {
    headers: Option<Vec<HeaderTuple>>,
    fields: Vec<FieldArgument>,
}

enum FieldArgument {
    Null,
    Bool(bool),
    Int64(i64),
    Uint64(u64),
    Text(PyBackedStr),
    Bytes(PyBackedBytes),
}

impl MessageArgument {
    /// The headers of a headers format: null, a list of them, or a dict as users pass it.
    pub fn from_headers(message: &Bound<'_, PyAny>, format: &'static str) -> PyResult<Self> {
        let headers = if message.is_none() {
            None
        } else if message.is_instance_of::<PyDict>() {
            let pairs = message.py().import("letterhead.headers")?.getattr("pairs_of")?.call1((message,))?;
            Some(header_tuples(&pairs, format)?)
        } else {
            Some(header_tuples(message, format)?)
        };
        Ok(MessageArgument { headers, fields: Vec::new() })
    }

    pub fn from_dict(message: &Bound<'_, PyAny>, info: Info) -> PyResult<Self> {
        let dict = message.cast::<PyDict>()?;
        let mut result = MessageArgument::default();
        for field in info.fields {
            let value = dict.get_item(field.name)?.filter(|value| !value.is_none());
            match (field.role, value) {
                (Role::Headers, value) => {
                    result.headers = value.map(|value| header_tuples(&value, info.name)).transpose()?
                }
                (_, None) => result.fields.push(FieldArgument::Null),
                (_, Some(value)) => result.fields.push(FieldArgument::of(field.of, &value)?),
            }
        }
        Ok(result)
    }

    pub fn headers(&self) -> Result<Option<Vec<Header<'_>>>, Error> {
        let Some(headers) = &self.headers else { return Ok(None) };
        headers.iter().enumerate().map(|(index, tuple)| header(index, tuple)).collect::<Result<_, _>>().map(Some)
    }

    /// About how many bytes there are to copy.
    pub fn size(&self) -> usize {
        let value_len = |(_, _, value): &HeaderTuple| value.as_ref().map_or(0, |bytes| bytes.len());
        let headers: usize = self.headers.iter().flatten().map(value_len).sum();
        let field_len = |field: &FieldArgument| if let FieldArgument::Bytes(bytes) = field { bytes.len() } else { 0 };
        headers + self.fields.iter().map(field_len).sum::<usize>()
    }

    pub fn fields(&self) -> Vec<FieldValue<'_>> {
        self.fields.iter().map(FieldArgument::value).collect()
    }
}

impl FieldArgument {
    fn of(of: FieldType, value: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(match of {
            FieldType::Bool => FieldArgument::Bool(value.extract()?),
            FieldType::Int8 | FieldType::Int64 | FieldType::Natural => FieldArgument::Int64(value.extract()?),
            FieldType::Uint64 => FieldArgument::Uint64(value.extract()?),
            FieldType::Text => FieldArgument::Text(value.extract()?),
            FieldType::Binary | FieldType::Id | FieldType::Headers => FieldArgument::Bytes(value.extract()?),
        })
    }

    fn value(&self) -> FieldValue<'_> {
        match self {
            FieldArgument::Null => FieldValue::Null,
            FieldArgument::Bool(flag) => FieldValue::Bool(*flag),
            FieldArgument::Int64(number) => FieldValue::Int64(*number),
            FieldArgument::Uint64(number) => FieldValue::Uint64(*number),
            FieldArgument::Text(text) => FieldValue::Text(text),
            FieldArgument::Bytes(bytes) => FieldValue::Binary(bytes),
        }
    }
}

fn header(index: usize, (key, value_type, value): &HeaderTuple) -> Result<Header<'_>, Error> {
    let value_type = value_type.as_deref().map(type_named).transpose()?;
    Ok(Header { index, key: key.key()?, value_type, value: value.as_deref(), at: None })
}
