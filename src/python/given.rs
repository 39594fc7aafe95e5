//! What Python hands over, as the core takes it.

use std::sync::OnceLock;

use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyInt, PyList, PyString, PyTuple, PyType};

use super::errors::to_exception;
use crate::ask::{Asked, Spelled, Times};
use crate::error::{Code, Direction, Error, Fault, Located, unknown_name};
use crate::format::Info;
use crate::header::{Header, Key, TypedKey, WantedKey};
use crate::kind::{Kind, Scalar};
use crate::limits::Limits;
use crate::mode::OnLoss;
use crate::spelling::Spelling;
use crate::value::ByteOrder;
use crate::walk::{FieldType, FieldValue, ReadOptions, Role, WriteOptions};

/// A key: text, an integer, or `(kind, bits)`.
#[derive(FromPyObject)]
pub enum GivenKey {
    Text(PyBackedStr),
    Int(i32),
    Typed(PyBackedStr, PyBackedBytes),
}

impl GivenKey {
    fn key(&self) -> Result<Key<'_>, Error> {
        Ok(match self {
            GivenKey::Text(text) => Key::from(&**text),
            GivenKey::Int(number) => Key::Int(*number),
            GivenKey::Typed(kind, bits) => Key::Typed(TypedKey::new(kind_named(kind)?, bits, ByteOrder::Big)),
        })
    }

    pub fn wanted(self) -> Result<WantedKey, Error> {
        Ok(match self {
            GivenKey::Text(text) => WantedKey::Text(text.to_string()),
            GivenKey::Int(number) => WantedKey::Int(number),
            GivenKey::Typed(kind, bits) => WantedKey::Typed(kind_named(&kind)?, bits.to_vec()),
        })
    }
}

/// Finds a kind by its name.
fn kind_named(name: &str) -> Result<Kind, Error> {
    let kinds = Scalar::ALL.iter().filter(|scalar| scalar.is_kind()).map(|scalar| scalar.name());
    Kind::parse(name).ok_or_else(|| unknown_name("type", name, kinds))
}

/// `(key, kind, value)`
type HeaderTuple = (GivenKey, Option<PyBackedStr>, Option<PyBackedBytes>);

/// Headers as a list of `(key, kind, value)`, or of `(key, value)` as `letterhead.Headers` has them.
fn given_headers(headers: &Bound<'_, PyAny>, format: &'static str) -> PyResult<Vec<HeaderTuple>> {
    let list = headers.cast::<PyList>()?;
    let mut given = Vec::with_capacity(list.len());
    for (index, header) in list.iter().enumerate() {
        given.push(match header.cast::<PyTuple>() {
            Ok(pair) if pair.len() == 2 => given_pair(pair, index, format)?,
            _ => header.extract()?,
        });
    }
    Ok(given)
}

/// Headers that can be written from where they are in Python: keys are text, values are null, bytes or of a class such as
/// `letterhead.Int32`. Nearly all headers are of this form.
pub struct TextHeaders<'py>(Vec<TextHeader<'py>>);

struct TextHeader<'py> {
    key: Bound<'py, PyString>,
    kind: Option<Kind>,
    value: Option<Bound<'py, PyBytes>>,
}

impl<'py> TextHeaders<'py> {
    /// The headers of a list of pairs or of a dict; `None` if some header has another form.
    pub fn of(headers: &Bound<'py, PyAny>) -> PyResult<Option<Self>> {
        if let Ok(list) = headers.cast::<PyList>() {
            let mut given = Vec::with_capacity(list.len());
            for pair in list {
                let Ok(pair) = pair.cast_into::<PyTuple>() else { return Ok(None) };
                if pair.len() != 2 {
                    return Ok(None);
                }
                let Some(header) = TextHeader::of(pair.get_item(0)?, pair.get_item(1)?)? else { return Ok(None) };
                given.push(header);
            }
            return Ok(Some(TextHeaders(given)));
        }
        let Ok(dict) = headers.cast_exact::<PyDict>() else { return Ok(None) };
        // All items first: looking at a value may run Python code, which may change the dict.
        let pairs: Vec<_> = dict.iter().collect();
        let mut given = Vec::with_capacity(pairs.len());
        for (key, value) in pairs {
            let Some(header) = TextHeader::of(key, value)? else { return Ok(None) };
            given.push(header);
        }
        Ok(Some(TextHeaders(given)))
    }

    /// The headers as the core takes them; `None` if some key has no UTF-8 form.
    pub fn headers(&self) -> Option<Vec<Header<'_>>> {
        let mut headers = Vec::with_capacity(self.0.len());
        for (index, TextHeader { key, kind, value }) in self.0.iter().enumerate() {
            let key = Key::from(key.to_str().ok()?);
            headers.push(Header {
                index,
                key,
                kind: *kind,
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
            return Ok(Some(TextHeader { key, kind: None, value: None }));
        }
        let value = match value.cast_into_exact::<PyBytes>() {
            Ok(bytes) => return Ok(Some(TextHeader { key, kind: None, value: Some(bytes) })),
            Err(other) => other.into_inner(),
        };
        let Some(kind) = kind_of_class(&value.get_type())? else { return Ok(None) };
        let bits = value.getattr(intern!(key.py(), "_bits"))?.cast_into::<PyBytes>().ok();
        Ok(bits.map(|bits| TextHeader { key, kind: Some(kind), value: Some(bits) }))
    }
}

/// The kind of a class such as `letterhead.Int32`; `None` of any other class.
fn kind_of_class(class: &Bound<'_, PyType>) -> PyResult<Option<Kind>> {
    static CLASSES: PyOnceLock<Vec<(Py<PyType>, Kind)>> = PyOnceLock::new();
    let py = class.py();
    let classes = CLASSES.get_or_try_init(py, || {
        let values = py.import("letterhead.values")?;
        let classes = values.getattr("_CLASSES")?.cast_into::<PyDict>()?;
        let kinds = Scalar::ALL.iter().filter(|scalar| scalar.is_kind());
        let class = |scalar: &Scalar| -> PyResult<_> {
            let class = classes.as_any().get_item(scalar.name())?.cast_into::<PyType>()?;
            Ok((class.unbind(), Kind::Named(*scalar)))
        };
        kinds.map(class).collect::<PyResult<Vec<_>>>()
    })?;
    Ok(classes.iter().find(|(known, _)| known.is(class)).map(|(_, kind)| *kind))
}

/// A key and a value, either of which says itself what kind it has.
fn given_pair(pair: &Bound<'_, PyTuple>, index: usize, format: &'static str) -> PyResult<HeaderTuple> {
    let (key, value) = (pair.get_borrowed_item(0)?, pair.get_borrowed_item(1)?);
    let key = if let Ok(text) = key.cast::<PyString>() {
        let text = PyBackedStr::try_from(text.to_owned());
        GivenKey::Text(text.map_err(|_| half_pair(key.py(), index, format))?)
    } else if key.is_instance_of::<PyInt>() {
        GivenKey::Int(key.extract()?)
    } else {
        let (kind, bits) = given_typed(&key)?;
        GivenKey::Typed(kind, bits)
    };
    if value.is_none() {
        return Ok((key, None, None));
    }
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return Ok((key, None, Some(bytes.to_owned().into())));
    }
    let (kind, bits) = given_typed(&value)?;
    Ok((key, Some(kind), Some(bits)))
}

/// The kind and the bits of a `letterhead.Value`.
fn given_typed(value: &Bound<'_, PyAny>) -> PyResult<(PyBackedStr, PyBackedBytes)> {
    let py = value.py();
    Ok((value.getattr(intern!(py, "_type"))?.extract()?, value.getattr(intern!(py, "_bits"))?.extract()?))
}

#[cold]
fn half_pair(py: Python<'_>, index: usize, format: &'static str) -> PyErr {
    let message = "a key with half of a surrogate pair has no UTF-8 form".into();
    let fault = Fault { code: Code::KeyNotUtf8, message, byte: None, header: Some(index), key: None, column: None };
    to_exception(py, Error::Headers(Direction::Encode, Box::new(Located { format, row: None, fault })))
}

/// How values get or lose their kinds: a word, or pairs of a key and the kind of its values.
#[derive(FromPyObject)]
pub enum GivenKinds {
    Word(String),
    Each(Vec<(GivenKey, GivenTimes)>),
}

/// One kind for all times a key stands, or one for each.
#[derive(FromPyObject)]
pub enum GivenTimes {
    Every(String),
    Nth(Vec<String>),
}

impl GivenKinds {
    pub fn asked(self) -> Result<Asked, Error> {
        let words = [
            ("be", Asked::Spelled(Spelling::Bytes(ByteOrder::Big))),
            ("le", Asked::Spelled(Spelling::Bytes(ByteOrder::Little))),
            ("text", Asked::Spelled(Spelling::Text)),
            ("binary", Asked::Binary),
        ];
        match self {
            GivenKinds::Word(word) => match words.iter().find(|(known, _)| *known == word) {
                Some((_, asked)) => Ok(asked.clone()),
                None => Err(unknown_name("types value", &word, words.iter().map(|(known, _)| *known))),
            },
            GivenKinds::Each(pairs) => {
                let pair = |(key, times): (GivenKey, GivenTimes)| Ok((key.wanted()?, times.times()?));
                pairs.into_iter().map(pair).collect::<Result<_, Error>>().map(Asked::Each)
            }
        }
    }
}

impl GivenTimes {
    fn times(self) -> Result<Times, Error> {
        match self {
            GivenTimes::Every(name) => Spelled::parse(&name).map(Times::Every),
            GivenTimes::Nth(names) => {
                names.iter().map(|name| Spelled::parse(name)).collect::<Result<_, _>>().map(Times::Nth)
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
            pub fn $name<'a>(given: &'a Bound<'_, PyAny>) -> PyResult<$type> {
                $take(given, stringify!($name))
            }
        )*};
    }

    arguments! {
        format: text -> &'a str
        target: text -> &'a str
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

    fn text<'a>(given: &'a Bound<'_, PyAny>, name: &str) -> PyResult<&'a str> {
        given.cast::<PyString>().map_err(|_| refused(given, name, "str"))?.to_str()
    }

    fn flag(given: &Bound<'_, PyAny>, name: &str) -> PyResult<bool> {
        given.extract().map_err(|_| refused(given, name, "bool"))
    }

    #[cold]
    fn refused(given: &Bound<'_, PyAny>, name: &str, wanted: &str) -> PyErr {
        match given.get_type().name() {
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

/// What a reader is told: `limits` is a `letterhead.Limits`, or the limits of the process.
pub fn read_options(
    py: Python<'_>,
    lenient: bool,
    strict_types: bool,
    text_keys: bool,
    limits: Option<&Bound<'_, PyAny>>,
) -> PyResult<ReadOptions> {
    Ok(ReadOptions { lenient, strict_types, text_keys, limits: given_limits(py, limits)? })
}

/// Limits as Python has them, each that is not said being that of the process.
pub fn given_limits(py: Python<'_>, limits: Option<&Bound<'_, PyAny>>) -> PyResult<Limits> {
    // Of a process, not of a call: reading a message costs less than asking for a variable.
    static OF_PROCESS: OnceLock<Result<Limits, Error>> = OnceLock::new();
    let of_process = OF_PROCESS.get_or_init(|| Limits::from_variables(|name| std::env::var_os(name)));
    let of_process = of_process.clone().map_err(|error| to_exception(py, error))?;
    let Some(limits) = limits else { return Ok(of_process) };
    let said = |name, otherwise: usize| match limits.getattr_opt(name)? {
        Some(number) => Ok(number.extract::<Option<usize>>()?.unwrap_or(otherwise)),
        None => {
            let given = limits.get_type().name()?;
            Err(PyTypeError::new_err(format!("limits must be letterhead.Limits, not {given}")))
        }
    };
    Ok(Limits {
        message_bytes: said(intern!(py, "message_bytes"), of_process.message_bytes)?,
        headers: said(intern!(py, "headers"), of_process.headers)?,
        decompressed_bytes: said(intern!(py, "decompressed_bytes"), of_process.decompressed_bytes)?,
        records: said(intern!(py, "records"), of_process.records)?,
        output_bytes: said(intern!(py, "output_bytes"), of_process.output_bytes)?,
    })
}

/// What a writer is told.
pub fn write_options(
    on_loss: &str,
    kinds: Option<GivenKinds>,
    null_headers: &str,
    canonical: bool,
) -> Result<WriteOptions, Error> {
    let losses = [("raise", OnLoss::Raise), ("drop", OnLoss::Drop), ("report", OnLoss::Report)];
    Ok(WriteOptions {
        on_loss: named("on_loss value", on_loss, &losses)?,
        kinds: kinds.map(GivenKinds::asked).transpose()?.unwrap_or_default(),
        refuse_null_headers: named("null_headers value", null_headers, &[("empty", false), ("raise", true)])?,
        canonical,
    })
}

/// A message as Python handed it over.
#[derive(Default)]
pub struct GivenMessage {
    headers: Option<Vec<HeaderTuple>>,
    fields: Vec<GivenField>,
}

enum GivenField {
    Null,
    Bool(bool),
    Int64(i64),
    Uint64(u64),
    Text(PyBackedStr),
    Bytes(PyBackedBytes),
}

impl GivenMessage {
    /// The headers of a headers format: null, a list of them, or a dict as users pass it.
    pub fn of_block(message: &Bound<'_, PyAny>, format: &'static str) -> PyResult<Self> {
        let headers = if message.is_none() {
            None
        } else if message.is_instance_of::<PyDict>() {
            let pairs = message.py().import("letterhead.headers")?.getattr("pairs_of")?.call1((message,))?;
            Some(given_headers(&pairs, format)?)
        } else {
            Some(given_headers(message, format)?)
        };
        Ok(GivenMessage { headers, fields: Vec::new() })
    }

    /// A dict of an envelope's fields.
    pub fn of_envelope(message: &Bound<'_, PyAny>, info: Info) -> PyResult<Self> {
        let given = message.cast::<PyDict>()?;
        let mut made = GivenMessage::default();
        for field in info.fields {
            let value = given.get_item(field.name)?.filter(|value| !value.is_none());
            match (field.role, value) {
                (Role::Headers, value) => {
                    made.headers = value.map(|value| given_headers(&value, info.name)).transpose()?
                }
                (_, None) => made.fields.push(GivenField::Null),
                (_, Some(value)) => made.fields.push(GivenField::of(field.of, &value)?),
            }
        }
        Ok(made)
    }

    pub fn headers(&self) -> Result<Option<Vec<Header<'_>>>, Error> {
        let Some(headers) = &self.headers else { return Ok(None) };
        let mut made = Vec::with_capacity(headers.len());
        for (index, tuple) in headers.iter().enumerate() {
            made.push(header(index, tuple)?);
        }
        Ok(Some(made))
    }

    /// About how many bytes there are to copy.
    pub fn size(&self) -> usize {
        let value_len = |(_, _, value): &HeaderTuple| value.as_ref().map_or(0, |bytes| bytes.len());
        let headers: usize = self.headers.iter().flatten().map(value_len).sum();
        let field_len = |field: &GivenField| if let GivenField::Bytes(bytes) = field { bytes.len() } else { 0 };
        headers + self.fields.iter().map(field_len).sum::<usize>()
    }

    pub fn fields(&self) -> Vec<FieldValue<'_>> {
        self.fields.iter().map(GivenField::value).collect()
    }
}

impl GivenField {
    fn of(of: FieldType, value: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(match of {
            FieldType::Bool => GivenField::Bool(value.extract()?),
            FieldType::Int8 | FieldType::Int64 | FieldType::Natural => GivenField::Int64(value.extract()?),
            FieldType::Uint64 => GivenField::Uint64(value.extract()?),
            FieldType::Text => GivenField::Text(value.extract()?),
            FieldType::Binary | FieldType::Id | FieldType::Headers => GivenField::Bytes(value.extract()?),
        })
    }

    fn value(&self) -> FieldValue<'_> {
        match self {
            GivenField::Null => FieldValue::Null,
            GivenField::Bool(flag) => FieldValue::Bool(*flag),
            GivenField::Int64(number) => FieldValue::Int64(*number),
            GivenField::Uint64(number) => FieldValue::Uint64(*number),
            GivenField::Text(text) => FieldValue::Text(text),
            GivenField::Bytes(bytes) => FieldValue::Binary(bytes),
        }
    }
}

fn header(index: usize, (key, kind, value): &HeaderTuple) -> Result<Header<'_>, Error> {
    let kind = kind.as_deref().map(kind_named).transpose()?;
    Ok(Header { index, key: key.key()?, kind, value: value.as_deref(), at: None })
}
