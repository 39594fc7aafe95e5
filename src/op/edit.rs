//! [`Edit`] changes some headers of a message, and [`Editor`] applies it to messages of a format, by the transform
//! [`Editor::apply`]. Unnamed headers are copied unchanged.

mod transform;

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use crate::error::{Code, Error, bad_length};
use crate::field::{FieldValue, Role};
use crate::format_info::{Contents, Encoded, FormatInfo};
use crate::header::{Header, Key, RequestedKey, TypedKey};
use crate::kernel::edit::FoundHeader;
use crate::log::{CollectErrors, OnLoss, Stop};
use crate::memory;
use crate::op::mask::Mask;
use crate::op::write::check_target;
use crate::value::ByteOrder;
use crate::value_type::{Scalar, ValueType};

pub use transform::ByteOutput;

use transform::HeaderOutput;

const STRING: ValueType = ValueType::Named(Scalar::String);

/// Number of entries up to which comparing keys one by one is faster than a table.
const FEW_ENTRIES: usize = 16;

/// Maximum number of bytes that any format writes around the key and the value of a header.
const MAX_FRAMING: usize = 32;

/// New value of a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NewValue {
    /// Big-endian bytes; `None` is null.
    Constant(Option<ValueType>, Option<Vec<u8>>),
    /// Text derived from the replaced value, which is not null.
    Masked(Mask),
    /// Index of the column with the value.
    Column(usize),
}

/// Change to the headers with a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    Keep,
    Drop,
    /// Every non-null value is replaced.
    Replace(NewValue),
    /// The first header with the key gets the value, and the others are dropped. If none has the key, one is appended.
    Set(NewValue),
}

/// Change of the headers with a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub key: RequestedKey,
    pub renamed: Option<RequestedKey>,
    pub change: Change,
}

/// Edit of headers. Its entries refer to keys before the edit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Edit {
    pub entries: Vec<Entry>,
    /// Headers without an entry are dropped.
    pub drops_others: bool,
    /// New headers, in order, after all others.
    pub appended: Vec<(RequestedKey, NewValue)>,
    /// Whether a null in a column sets and appends nothing.
    pub skips_nulls: bool,
}

impl Change {
    fn value(&self) -> Option<&NewValue> {
        match self {
            Change::Keep | Change::Drop => None,
            Change::Replace(value) | Change::Set(value) => Some(value),
        }
    }
}

impl Edit {
    /// Whether new values are in columns.
    pub fn has_columns(&self) -> bool {
        let entries = self.entries.iter().filter_map(|entry| entry.change.value());
        let mut values = entries.chain(self.appended.iter().map(|(_, value)| value));
        values.any(|value| matches!(value, NewValue::Column(_)))
    }
}

/// Function that returns the new value for the `nth` header with a key, from a column and a row: a type, if the column
/// has one, and bytes, which a null lacks. `None` if the list of the row is shorter.
pub type NewValues<'v, 'd> = &'v dyn Fn(usize, usize) -> Option<(Option<ValueType>, Option<&'d [u8]>)>;

/// Type of a value and its big-endian bytes; without bytes, it is null.
type TypedBits<'v> = (Option<ValueType>, Option<Cow<'v, [u8]>>);

/// Reason why a value cannot be written.
pub type Refusal = (Code, String);

/// An [`Edit`] for messages of a format.
pub struct Editor<'e> {
    pub edit: &'e Edit,
    /// The format of the messages.
    pub format: &'static FormatInfo,
    /// New header for each entry of the edit.
    entries: Vec<NewHeader<'e>>,
    appended: Vec<NewHeader<'e>>,
    /// Whether headers may be added to a message that has none of the keys.
    adds: bool,
    /// Whether the position of a header among the headers with its key matters.
    counts: bool,
    /// Index of each entry by its key, if there are many.
    entry_by_key: Option<HashMap<&'e RequestedKey, usize>>,
}

/// Key and value with which a header is written.
struct NewHeader<'e> {
    key: Key<'e>,
    value: Option<&'e NewValue>,
    prepared: Prepared<'e>,
}

/// Serialized parts of a header that do not depend on the message.
enum Prepared<'e> {
    Constant(Vec<u8>),
    /// Headers with values of the possible lengths of masked text, the longest first. In every format, the value comes
    /// last.
    Masked(&'e Mask, [Vec<u8>; 2]),
    /// The value depends on the message.
    Nothing,
}

impl<'e> Editor<'e> {
    /// Rejects keys and values that the format does not support.
    pub fn new(edit: &'e Edit, format: &'static FormatInfo) -> Result<Self, Error> {
        check_target(format)?;
        let new_header = |key: &'e RequestedKey, value: Option<&'e NewValue>| {
            let key = writable_key(key, format)?;
            let prepared = match value {
                Some(NewValue::Constant(value_type, bits)) => {
                    check(format, *value_type, bits.as_deref())
                        .map_err(|(_, message)| Error::Value(format!("{}: header {key}: {message}", format.name)))?;
                    Prepared::Constant(header_bytes(format, &key, *value_type, bits.as_deref()))
                }
                Some(NewValue::Masked(mask)) => {
                    let text = format.types.is_typed().then_some(STRING);
                    Prepared::Masked(mask, mask.texts().map(|value| header_bytes(format, &key, text, Some(value))))
                }
                _ => Prepared::Nothing,
            };
            Ok(NewHeader { key, value, prepared })
        };
        let entry = |entry: &'e Entry| {
            entry.key.check(format.name, format.keys)?;
            match (entry.change.value(), &entry.renamed) {
                (None, None) => Ok(NewHeader { key: key_of(&entry.key), value: None, prepared: Prepared::Nothing }),
                (value, renamed) => new_header(renamed.as_ref().unwrap_or(&entry.key), value),
            }
        };
        let sets = edit.entries.iter().any(|entry| matches!(entry.change, Change::Set(_)));
        let entry_by_key = || edit.entries.iter().enumerate().map(|(index, entry)| (&entry.key, index)).collect();
        Ok(Editor {
            edit,
            format,
            entry_by_key: (edit.entries.len() > FEW_ENTRIES).then(entry_by_key),
            adds: sets || !edit.appended.is_empty(),
            counts: sets || edit.has_columns(),
            entries: edit.entries.iter().map(entry).collect::<Result<_, Error>>()?,
            appended: edit
                .appended
                .iter()
                .map(|(key, value)| new_header(key, Some(value)))
                .collect::<Result<_, Error>>()?,
        })
    }

    /// Offset of the first header of a message that consists of headers only.
    pub fn headers_start(&self, data: &[u8]) -> usize {
        match self.format.wire_layout.max_count > 0 {
            true => data.iter().position(|byte| *byte < 0x80).map_or(0, |last| last + 1),
            false => 0,
        }
    }

    /// Finds a header that the edit may change, in a range of the input of [`Editor::apply`].
    #[inline]
    pub fn find(&self, header: &Header<'_>, range: Range<usize>) -> Option<FoundHeader> {
        let entry = match &self.entry_by_key {
            Some(entries) => entries.get(&RequestedKey::from(&header.key)).copied(),
            None => self.edit.entries.iter().position(|entry| entry.key.is(&header.key)),
        };
        let Range { start, end } = range;
        let (value, is_null) = (header.value_offset.unwrap_or(0), header.value.is_none());
        let found = FoundHeader { row: 0, entry, start, value, end, is_null, value_type: header.value_type };
        (entry.is_some() || self.edit.drops_others).then_some(found)
    }

    /// Whether a value is null and therefore not set.
    fn is_skipped(&self, value: Option<&NewValue>, values: NewValues<'_, '_>) -> bool {
        match value {
            Some(NewValue::Column(column)) if self.edit.skips_nulls => {
                matches!(values(*column, 0), Some((_, None)))
            }
            _ => false,
        }
    }

    /// Type and bytes of a new value, which may depend on the replaced value.
    fn new_value<'d>(
        &self,
        key: &Key<'_>,
        value: &'d NewValue,
        original: Option<TypedBits<'d>>,
        values: NewValues<'_, 'd>,
        nth: usize,
    ) -> Result<TypedBits<'d>, Refusal> {
        let format = self.format;
        let text = format.types.is_typed().then_some(STRING);
        let (value_type, bits) = match value {
            NewValue::Constant(value_type, bits) => (*value_type, bits.as_deref().map(Cow::Borrowed)),
            NewValue::Masked(mask) => {
                let (value_type, bits) = original.unwrap_or_default();
                (text, bits.map(|bits| mask.apply(value_type, &bits)))
            }
            NewValue::Column(column) => {
                let Some((value_type, bits)) = values(*column, nth) else {
                    return Err((Code::WrongSize, format!("header {key}: fewer new values than headers")));
                };
                // Untyped bytes keep the type of the replaced value.
                let kept = original.and_then(|(value_type, _)| value_type);
                let binary = ValueType::Named(Scalar::Binary);
                let value_type = text.map(|_| value_type.or(kept).unwrap_or(binary)).filter(|_| bits.is_some());
                (value_type, bits.map(Cow::Borrowed))
            }
        };
        check(format, value_type, bits.as_deref())
            .map_err(|(code, message)| (code, format!("header {key}: {message}")))?;
        Ok((value_type, bits))
    }

    /// Appends an edited message that has other fields around its headers.
    pub fn write_message<'d>(
        &'d self,
        data: &[u8],
        contents: Contents<'d>,
        found: &[FoundHeader],
        values: NewValues<'_, 'd>,
        counts: &mut Vec<usize>,
        out: &mut Vec<u8>,
    ) -> Result<Encoded, Refusal> {
        let (format, Contents { fields, headers, has_headers_field }) = (self.format, contents);
        let mut output = HeaderOutput { order: format.order, headers, edited: Vec::new() };
        if !self.apply(found, headers.len(), values, counts, &mut output)? {
            memory::extend(out, data);
            return Ok(Encoded::Message);
        }
        let edited = output.edited.iter();
        let headers: Vec<_> =
            edited.map(|(key, (value_type, bits))| new_header(key, *value_type, bits.as_deref())).collect();
        // Computed fields, such as checksums, belong to the original message.
        let others = format.fields.iter().filter(|field| field.role != Role::Headers);
        let fields: Vec<_> = others
            .zip(fields)
            .map(|(field, value)| if field.role == Role::Derived { FieldValue::Null } else { *value })
            .collect();
        let has_headers_field = has_headers_field || !headers.is_empty();
        let mut log = CollectErrors::new(OnLoss::Raise, 1);
        let encoded = format.encode(Contents { fields: &fields, headers: &headers, has_headers_field }, &mut log, out);
        // The caller has not agreed to losses, so data that the message cannot hold is an error of its row.
        let lost = log.take_losses().into_iter().map(|loss| (loss.code, loss.message));
        match log.take_errors().into_iter().map(|error| (error.code, error.message)).chain(lost).next() {
            Some(refusal) => Err(refusal),
            None => encoded.map_err(|Stop| unreachable!("a log that collects errors has the reason")),
        }
    }
}

/// Converts a requested key to the key of a header.
pub fn key_of(key: &RequestedKey) -> Key<'_> {
    match key {
        RequestedKey::Text(text) => Key::from(text.as_str()),
        RequestedKey::Int(number) => Key::Int(*number),
        RequestedKey::Typed(value_type, bits) => Key::Typed(TypedKey::new(*value_type, bits, ByteOrder::Big)),
    }
}

/// Calls `key_of`, and rejects a key that the format does not support.
pub fn writable_key<'k>(key: &'k RequestedKey, format: &FormatInfo) -> Result<Key<'k>, Error> {
    key.check(format.name, format.keys)?;
    let len = key_of(key).byte_len();
    if !format.constraints.fits(len) {
        let (_, message) = bad_length("key", len, format.constraints.part_len.1);
        return Err(Error::Value(format!("{}: header {key}: {message}", format.name)));
    }
    Ok(key_of(key))
}

fn new_header<'a>(key: &Key<'a>, value_type: Option<ValueType>, value: Option<&'a [u8]>) -> Header<'a> {
    Header { index: 0, key: key.clone(), value_type, value, value_offset: None }
}

/// Appends a header.
fn push_header(
    format: &FormatInfo,
    key: &Key<'_>,
    value_type: Option<ValueType>,
    bits: Option<&[u8]>,
    out: &mut Vec<u8>,
) {
    let len = key.byte_len().saturating_add(bits.map_or(0, <[u8]>::len));
    memory::reserve(out, len.saturating_add(MAX_FRAMING));
    (format.write_header)(&new_header(key, value_type, bits), out);
}

fn header_bytes(format: &FormatInfo, key: &Key<'_>, value_type: Option<ValueType>, bits: Option<&[u8]>) -> Vec<u8> {
    let mut bytes = Vec::new();
    push_header(format, key, value_type, bits, &mut bytes);
    bytes
}

/// Rejects a value that a format does not support.
fn check(format: &FormatInfo, value_type: Option<ValueType>, bits: Option<&[u8]>) -> Result<(), Refusal> {
    let constraints = format.constraints;
    let Some(bits) = bits else {
        return if constraints.nulls { Ok(()) } else { Err((Code::NullNotCarried, "the value is null".into())) };
    };
    if !constraints.fits(bits.len()) {
        return Err(bad_length("value", bits.len(), constraints.part_len.1));
    }
    match (value_type, format.types.is_typed()) {
        (None, false) => Ok(()),
        (Some(value_type), true) if format.types.code(value_type).is_some() => {
            crate::value::Checks::Value.check(value_type, bits).map_err(|invalid| (invalid.code, invalid.message))
        }
        (Some(value_type), _) => {
            let bytes = if format.types.is_typed() { "" } else { ": pass its bytes, such as lh.Int64(3).bits" };
            Err((Code::TypeNotCarried, format!("{} has no values of type {}{bytes}", format.name, value_type.name())))
        }
        (None, true) => Err((Code::UnknownType, format!("{} values need a type", format.name))),
    }
}
