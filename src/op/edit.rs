//! [`Edit`] changes some headers of a message, and [`Editor`] applies it to messages of a format. Headers that it does not
//! name are copied as they are.

mod splice;

use std::borrow::Cow;
use std::collections::HashMap;

use crate::error::{Code, Error, bad_length};
use crate::header::{Header, Key, RequestedKey, TypedKey};
use crate::kernel::edit::Hit;
use crate::log::{CollectErrors, Log, OnLoss, Result};
use crate::memory;
use crate::op::mask::Mask;
use crate::op::write::check_target;
use crate::traits::{Contents, Encoded, FieldValue, Info, Presence, Role};
use crate::value::{ByteOrder, bits_of};
use crate::value_type::{Scalar, ValueType};

pub use splice::{Piece, RowEdit};

const STRING: ValueType = ValueType::Named(Scalar::String);

/// Up to so many entries, comparing keys one by one takes less time than a table.
const FEW_ENTRIES: usize = 16;

/// Bytes that any format writes around the key and the value of a header, at most.
const MAX_FRAMING: usize = 32;

/// The value that a header gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NewValue {
    /// Bits, most significant byte first; `None` is null.
    Constant(Option<ValueType>, Option<Vec<u8>>),
    /// Made of the value that is replaced, which is not null.
    Masked(Mask),
    /// From a column beside the messages.
    Column(usize),
}

/// The change to the headers with a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    Keep,
    Drop,
    /// Every value but null is replaced.
    Replace(NewValue),
    /// The first gets the value, and the others are dropped; without any, one is appended.
    Set(NewValue),
}

/// The headers with a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub key: RequestedKey,
    pub renamed: Option<RequestedKey>,
    pub change: Change,
}

/// An edit of headers. Entries are found by the keys that headers had before it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Edit {
    pub entries: Vec<Entry>,
    /// Headers without an entry are dropped.
    pub drops_others: bool,
    /// In order, after all others.
    pub appended: Vec<(RequestedKey, NewValue)>,
    /// Sets and appends nothing where a column has a null.
    pub skips_nulls: bool,
}

impl Edit {
    /// Whether new values are in columns beside the messages.
    pub fn has_columns(&self) -> bool {
        let is_column = |value: &NewValue| matches!(value, NewValue::Column(_));
        let changed = self.entries.iter().any(|entry| match &entry.change {
            Change::Replace(value) | Change::Set(value) => is_column(value),
            Change::Keep | Change::Drop => false,
        });
        changed || self.appended.iter().any(|(_, value)| is_column(value))
    }
}

/// The values of columns beside a message.
pub trait NewValues {
    /// The value of a column; in a list, the one for the header that is the `nth` with its key. `None` where there are
    /// fewer.
    fn get(&self, column: usize, nth: usize) -> Option<NewBits<'_>>;
}

/// A type, if the column has one, and bits; without bits, it is null.
pub type NewBits<'v> = (Option<ValueType>, Option<&'v [u8]>);

/// The type and the bits of a value to write.
type WrittenBits<'v> = (Option<ValueType>, Option<Cow<'v, [u8]>>);

/// An [`Edit`] for messages of a format.
pub struct Editor<'e> {
    edit: &'e Edit,
    format: &'static Info,
    entries: Vec<Written<'e>>,
    appended: Vec<Written<'e>>,
    /// Headers may be dropped or added: the number of headers may change.
    changes_count: bool,
    /// Headers may be added to a message that has none of the keys.
    adds: bool,
    /// The number of a header among the headers with its key matters.
    counts: bool,
    /// The entries by their keys, if there are many.
    places: Option<HashMap<&'e RequestedKey, usize>>,
}

/// The key under which a header is written, and its value.
struct Written<'e> {
    key: Key<'e>,
    value: Option<&'e NewValue>,
    ready: Ready<'e>,
}

/// The bytes of a header that are known before its message is.
enum Ready<'e> {
    /// All of them.
    Constant(Vec<u8>),
    /// With values of the lengths that a mask makes, the longest first. In every format, the value is last.
    Masked(&'e Mask, [Vec<u8>; 2]),
    /// Its value is known with the message.
    Nothing,
}

/// Counters for the headers of one message.
#[derive(Default)]
pub struct Counts {
    /// Headers of an entry so far.
    nth: Vec<usize>,
}

impl<'e> Editor<'e> {
    /// Rejects keys that the format cannot have, and values that it cannot carry.
    pub fn new(edit: &'e Edit, format: &'static Info) -> Result<Self, Error> {
        check_target(format)?;
        let written = |key: &'e RequestedKey, value: Option<&'e NewValue>| {
            let key = writable_key(key, format)?;
            let ready = match value {
                Some(NewValue::Constant(value_type, bits)) => {
                    check(format, *value_type, bits.as_deref())
                        .map_err(|(_, message)| Error::Value(format!("{}: header {key}: {message}", format.name)))?;
                    Ready::Constant(header_bytes(format, &key, *value_type, bits.as_deref()))
                }
                Some(NewValue::Masked(mask)) => {
                    let text = format.types.is_typed().then_some(STRING);
                    let lengths = mask.texts().map(|value| header_bytes(format, &key, text, Some(value)));
                    Ready::Masked(mask, lengths)
                }
                _ => Ready::Nothing,
            };
            Ok(Written { key, value, ready })
        };
        let entry = |entry: &'e Entry| {
            entry.key.check(format.name, format.keys)?;
            match &entry.change {
                Change::Keep | Change::Drop => match &entry.renamed {
                    Some(renamed) => written(renamed, None),
                    None => Ok(Written { key: key_of(&entry.key), value: None, ready: Ready::Nothing }),
                },
                Change::Replace(value) | Change::Set(value) => {
                    written(entry.renamed.as_ref().unwrap_or(&entry.key), Some(value))
                }
            }
        };
        let is_set = |entry: &Entry| matches!(entry.change, Change::Set(_));
        let sets = edit.entries.iter().any(is_set);
        let drops = edit.drops_others || edit.entries.iter().any(|entry| entry.change == Change::Drop);
        let is_column = |entry: &Entry| matches!(entry.change, Change::Replace(NewValue::Column(_)));
        let places = || edit.entries.iter().enumerate().map(|(place, entry)| (&entry.key, place)).collect();
        Ok(Editor {
            edit,
            format,
            places: (edit.entries.len() > FEW_ENTRIES).then(places),
            changes_count: drops || sets || !edit.appended.is_empty(),
            adds: sets || !edit.appended.is_empty(),
            counts: sets || edit.entries.iter().any(is_column),
            entries: edit.entries.iter().map(entry).collect::<Result<_, Error>>()?,
            appended: edit
                .appended
                .iter()
                .map(|(key, value)| written(key, Some(value)))
                .collect::<Result<_, Error>>()?,
        })
    }

    pub fn edit(&self) -> &'e Edit {
        self.edit
    }

    /// The format of the messages.
    pub fn format(&self) -> &'static Info {
        self.format
    }

    /// Whether a message with these hits is changed at all.
    pub fn touches<V: NewValues>(&self, hits: &[Hit], values: &V) -> bool {
        let changes = |hit: &Hit| match hit.place {
            None => true,
            Some(place) => match &self.edit.entries[place] {
                Entry { renamed: Some(_), .. } => true,
                Entry { change: Change::Keep, .. } => false,
                Entry { change: Change::Replace(_), .. } => !hit.is_null,
                Entry { change: Change::Set(value), .. } => !self.is_skipped(Some(value), values),
                Entry { change: Change::Drop, .. } => true,
            },
        };
        hits.iter().any(changes) || self.added(hits).any(|written| !self.is_skipped(written.value, values))
    }

    /// The headers that are written after the others.
    fn added<'h>(&'h self, hits: &'h [Hit]) -> impl Iterator<Item = &'h Written<'e>> {
        let is_hit = (self.edit.entries.len() > FEW_ENTRIES).then(|| {
            let mut is_hit = vec![false; self.edit.entries.len()];
            hits.iter().filter_map(|hit| hit.place).for_each(|place| is_hit[place] = true);
            is_hit
        });
        let is_unset = move |(place, (entry, _)): &(usize, (&Entry, &Written<'_>))| {
            matches!(entry.change, Change::Set(_))
                && !match &is_hit {
                    Some(is_hit) => is_hit[*place],
                    None => hits.iter().any(|hit| hit.place == Some(*place)),
                }
        };
        let pairs = self.edit.entries.iter().zip(&self.entries).enumerate().filter(is_unset);
        pairs.map(|(_, (_, written))| written).chain(&self.appended)
    }

    fn is_skipped<V: NewValues>(&self, value: Option<&NewValue>, values: &V) -> bool {
        match value {
            Some(NewValue::Column(column)) if self.edit.skips_nulls => {
                matches!(values.get(*column, 0), Some((_, None)))
            }
            _ => false,
        }
    }

    /// Decides whether a header stays, is dropped, or is written anew.
    #[inline]
    fn decide<V: NewValues>(&self, hit: &Hit, nth: usize, values: &V) -> Decision<'_, 'e> {
        let Some(place) = hit.place else { return Decision::Drop };
        let (entry, written) = (&self.edit.entries[place], &self.entries[place]);
        match &entry.change {
            Change::Drop => Decision::Drop,
            Change::Set(value) if self.is_skipped(Some(value), values) => Decision::Stay,
            Change::Set(_) if nth > 0 => Decision::Drop,
            Change::Set(_) => Decision::Write(written, written.value),
            Change::Replace(_) if !hit.is_null => Decision::Write(written, written.value),
            Change::Keep | Change::Replace(_) if entry.renamed.is_some() => Decision::Write(written, None),
            Change::Keep | Change::Replace(_) => Decision::Stay,
        }
    }

    /// The type and the bits of a new value.
    fn value<'v, R: Log, V: NewValues>(
        &self,
        written: &Written<'_>,
        value: Option<&'v NewValue>,
        original: Option<&'v Original<'_>>,
        values: &'v V,
        nth: usize,
        log: &mut R,
    ) -> Result<WrittenBits<'v>> {
        let format = self.format;
        let text = format.types.is_typed().then_some(STRING);
        let (value_type, bits) = match (value, original) {
            (None, Some(original)) => return Ok(original.written()),
            (Some(NewValue::Constant(value_type, bits)), _) => (*value_type, bits.as_deref().map(Cow::Borrowed)),
            (Some(NewValue::Masked(mask)), Some(original)) => {
                (text, original.bits.as_deref().map(|bits| mask.apply(original.value_type, bits)))
            }
            (Some(NewValue::Column(column)), _) => {
                let Some((value_type, bits)) = values.get(*column, nth) else {
                    return Err(log.fatal(Code::WrongSize, None, || {
                        format!("header {}: fewer new values than headers", written.key)
                    }));
                };
                // Bytes without a type keep the type of the value that they replace.
                let kept = original.and_then(|original| original.value_type);
                let binary = ValueType::Named(Scalar::Binary);
                let value_type = text.map(|_| value_type.or(kept).unwrap_or(binary)).filter(|_| bits.is_some());
                (value_type, bits.map(Cow::Borrowed))
            }
            (None | Some(NewValue::Masked(_)), None) => unreachable!("only a header that exists is renamed or masked"),
        };
        match check(format, value_type, bits.as_deref()) {
            Ok(()) => Ok((value_type, bits)),
            Err((code, message)) => Err(log.fatal(code, None, || format!("header {}: {message}", written.key))),
        }
    }

    /// Appends an edited message that has other fields around its headers.
    pub fn rewrite<R: Log, V: NewValues>(
        &self,
        message: &ReadMessage<'_>,
        values: &V,
        counts: &mut Counts,
        log: &mut R,
        out: &mut Vec<u8>,
    ) -> Result<Encoded> {
        let ReadMessage { data, headers, fields, presence } = *message;
        let hits: Vec<_> = headers.iter().filter_map(|header| self.hit(header)).collect();
        if !self.touches(&hits, values) {
            memory::extend(out, data);
            return Ok(Encoded::Message);
        }
        counts.clear(self.entries.len());
        let format = self.format;
        let originals: Vec<_> = headers.iter().map(|header| Original::of(header, format.order)).collect();
        let mut edited: Vec<(Key<'_>, WrittenBits<'_>)> = Vec::new();
        for (header, original) in headers.iter().zip(&originals) {
            let decision = match self.hit(header) {
                Some(hit) => {
                    let nth = counts.next(&hit);
                    (self.decide(&hit, nth, values), nth)
                }
                None => (Decision::Stay, 0),
            };
            match decision {
                (Decision::Stay, _) => edited.push((header.key.clone(), original.written())),
                (Decision::Drop, _) => {}
                (Decision::Write(written, value), nth) => {
                    let value = self.value(written, value, Some(original), values, nth, log)?;
                    edited.push((written.key.clone(), value));
                }
            }
        }
        for written in self.added(&hits).filter(|written| !self.is_skipped(written.value, values)) {
            edited.push((written.key.clone(), self.value(written, written.value, None, values, 0, log)?));
        }
        let headers: Vec<_> =
            edited.iter().map(|(key, (value_type, bits))| new_header(key, *value_type, bits.as_deref())).collect();
        // Computed fields, such as checksums, belong to the original message.
        let others = format.fields.iter().filter(|field| field.role != Role::Headers);
        let fields: Vec<_> = others
            .zip(fields)
            .map(|(field, value)| if field.role == Role::Derived { FieldValue::Null } else { *value })
            .collect();
        let has_headers_field = presence != Presence::Absent || !headers.is_empty();
        let mut writing = CollectErrors::new(OnLoss::Raise, 1);
        let contents = Contents { fields: &fields, headers: &headers, has_headers_field };
        let encoded = format.encode(contents, &mut writing, out);
        // Nobody agreed to a loss, so that what the message cannot carry is an error of its row.
        let lost = writing.take_losses().into_iter().map(|loss| (loss.code, loss.message));
        match writing.take_errors().into_iter().map(|error| (error.code, error.message)).chain(lost).next() {
            Some((code, message)) => Err(log.fatal(code, None, || message)),
            None => encoded,
        }
    }

    /// The hit of a header that the edit may change. Its `start` is for the caller to set.
    pub fn hit(&self, header: &Header<'_>) -> Option<Hit> {
        let place = match &self.places {
            Some(places) => places.get(&RequestedKey::from(&header.key)).copied(),
            None => self.edit.entries.iter().position(|entry| entry.key.is(&header.key)),
        };
        if place.is_none() && !self.edit.drops_others {
            return None;
        }
        let value = header.value_offset.unwrap_or(0);
        let end = value + header.value.map_or(0, <[u8]>::len);
        let is_null = header.value.is_none();
        Some(Hit { row: 0, place, start: 0, value, end, is_null, value_type: header.value_type })
    }
}

/// A message that was read.
#[derive(Clone, Copy)]
pub struct ReadMessage<'a> {
    pub data: &'a [u8],
    pub headers: &'a [Header<'a>],
    pub fields: &'a [FieldValue<'a>],
    pub presence: Presence,
}

enum Decision<'w, 'e> {
    Stay,
    Drop,
    /// With this value, or with its own.
    Write(&'w Written<'e>, Option<&'e NewValue>),
}

impl Counts {
    fn clear(&mut self, entries: usize) {
        self.nth.clear();
        self.nth.resize(entries, 0);
    }

    /// How many headers of the entry came before.
    fn next(&mut self, hit: &Hit) -> usize {
        let Some(nth) = hit.place.and_then(|place| self.nth.get_mut(place)) else { return 0 };
        *nth += 1;
        *nth - 1
    }
}

/// The type and the bits of a value as it was.
struct Original<'a> {
    value_type: Option<ValueType>,
    bits: Option<Cow<'a, [u8]>>,
}

impl<'a> Original<'a> {
    fn new(value_type: Option<ValueType>, bytes: &'a [u8], is_null: bool, order: ByteOrder) -> Self {
        let bits = value_type.map_or(Cow::Borrowed(bytes), |value_type| bits_of(value_type, bytes, order));
        Original { value_type, bits: (!is_null).then_some(bits) }
    }

    fn of(header: &Header<'a>, order: ByteOrder) -> Self {
        let (bytes, is_null) = (header.value.unwrap_or_default(), header.value.is_none());
        Original::new(header.value_type, bytes, is_null, order)
    }

    fn written(&self) -> WrittenBits<'_> {
        (self.value_type, self.bits.as_deref().map(Cow::Borrowed))
    }
}

/// A requested key as the key of a header.
pub fn key_of(key: &RequestedKey) -> Key<'_> {
    match key {
        RequestedKey::Text(text) => Key::from(text.as_str()),
        RequestedKey::Int(number) => Key::Int(*number),
        RequestedKey::Typed(value_type, bits) => Key::Typed(TypedKey::new(*value_type, bits, ByteOrder::Big)),
    }
}

/// As `key_of`; rejects a key that the format cannot have.
pub fn writable_key<'k>(key: &'k RequestedKey, format: &Info) -> Result<Key<'k>, Error> {
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
fn push_header(format: &Info, key: &Key<'_>, value_type: Option<ValueType>, bits: Option<&[u8]>, out: &mut Vec<u8>) {
    let len = key.byte_len().saturating_add(bits.map_or(0, <[u8]>::len));
    memory::reserve(out, len.saturating_add(MAX_FRAMING));
    (format.write_header)(&new_header(key, value_type, bits), out);
}

fn header_bytes(format: &Info, key: &Key<'_>, value_type: Option<ValueType>, bits: Option<&[u8]>) -> Vec<u8> {
    let mut bytes = Vec::new();
    push_header(format, key, value_type, bits, &mut bytes);
    bytes
}

/// Rejects a value that a format cannot carry, with the reason.
fn check(format: &Info, value_type: Option<ValueType>, bits: Option<&[u8]>) -> Result<(), (Code, String)> {
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
