//! [`ListRows`] and [`StructRows`]: rows of lists of headers, and of structs of the fields of messages.

use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::types::{ByteArrayType, Decimal128Type};
use arrow_array::{
    Array, BooleanArray, Decimal128Array, GenericByteArray, Int8Array, Int32Array, Int64Array, StringArray, StructArray,
};
use arrow_buffer::NullBuffer;

use super::input::{Bytes, ListInput, Texts, not_binary};
use super::rows::{Appended, Buffers, MessageRows, Next, Parsed, RowSource};
use super::sink::{Row, RowSink, parse_row};
use super::{binary, schema, shapes};
use crate::error::{Code, Error};
use crate::field::{FieldType, FieldValue};
use crate::format_info::FormatInfo;
use crate::header::{Header, Key, KeyForm, TypedKey};
use crate::kernel::encode::max_bytes;
use crate::kernel::layout::Layout;
use crate::kernel::lists::{Bits, Columns, ListBlock, Names, Strings};
use crate::log::{EitherLog, Log, Result};
use crate::sink::{Presence, Sink};
use crate::value::ByteOrder;
use crate::value_type::ValueType;

pub(super) type BoxedRows<'a, S> = Box<dyn RowSource<'a, S> + 'a>;

/// Serialized messages, or else the lists of headers of a column, and the byte order of typed values.
pub(super) fn messages_or_lists<'a, S: RowSink<'a> + 'a>(
    messages: Option<MessageRows<'a, S>>,
    column: &'a dyn Array,
    format: &'static FormatInfo,
) -> Result<(BoxedRows<'a, S>, ByteOrder), Error> {
    match (messages, ListInput::of(column)) {
        (Some(messages), _) => Ok((Box::new(messages), format.order)),
        (None, Some(_)) => Ok((Box::new(ListRows::new(column, format)?), ByteOrder::Big)),
        (None, None) => Err(not_binary(column, format)),
    }
}

/// A column of keys in one of their forms.
#[derive(Clone, Copy)]
enum KeyColumn<'a> {
    Text(Texts<'a>),
    Int(&'a Int32Array),
    Typed { types: Texts<'a>, bits: Bytes<'a> },
}

impl<'a> KeyColumn<'a> {
    /// Finds the keys of a format with this form; typed keys may also be text.
    fn of(elements: &'a StructArray, form: KeyForm) -> Option<Self> {
        let key = elements.column_by_name("key")?;
        match (form, elements.column_by_name("key_type")) {
            (KeyForm::Text | KeyForm::Typed, None) => Texts::of(key).map(KeyColumn::Text),
            (KeyForm::Int, None) => key.as_primitive_opt().map(KeyColumn::Int),
            (KeyForm::Typed, Some(types)) => Some(KeyColumn::Typed { types: Texts::of(types)?, bits: Bytes::of(key)? }),
            (KeyForm::Text | KeyForm::Int, Some(_)) => None,
        }
    }

    /// Columns of headers for kernels; `None` if kernels do not read their types, or a key is null.
    fn kernel_columns(
        self,
        types: Option<Texts<'a>>,
        values: Bytes<'a>,
        elements: &'a StructArray,
        range: Range<usize>,
    ) -> Option<Columns<'a>> {
        let Bytes::Small(values) = values else { return None };
        let (key_types, keys, nulls) = match self {
            KeyColumn::Text(Texts::Small(keys)) => (None, strings(keys, &range), keys.null_count()),
            KeyColumn::Typed { types: Texts::Small(types), bits: Bytes::Small(bits) } => {
                (Some(names(types, &range)), strings(bits, &range), types.null_count() + bits.null_count())
            }
            _ => return None,
        };
        let types = match types {
            None => None,
            Some(Texts::Small(types)) => Some(names(types, &range)),
            Some(_) => return None,
        };
        let has_value = values.nulls().map(bits);
        let has_no_nulls = nulls == 0 && elements.null_count() == 0;
        let values = strings(values, &range);
        has_no_nulls.then(|| Columns::new(key_types, keys, types, values, has_value, range)).flatten()
    }
}

fn strings<'a, T: ByteArrayType<Offset = i32>>(array: &'a GenericByteArray<T>, range: &Range<usize>) -> Strings<'a> {
    Strings { offsets: binary::offsets(array.offsets(), range.clone()), bytes: array.value_data() }
}

fn names<'a>(array: &'a StringArray, range: &Range<usize>) -> Names<'a> {
    Names { names: strings(array, range), has_type: array.nulls().map(bits) }
}

fn bits(nulls: &NullBuffer) -> Bits<'_> {
    Bits { bytes: nulls.validity(), offset: nulls.offset() }
}

/// Rows that are lists of header structs.
pub struct ListRows<'a> {
    array: &'a dyn Array,
    lists: ListInput<'a>,
    elements: &'a StructArray,
    keys: KeyColumn<'a>,
    types: Option<Texts<'a>>,
    values: Bytes<'a>,
    /// The columns of all headers, if kernels can read their types.
    columns: Option<Columns<'a>>,
    /// Message of the error for a null key.
    no_key: &'static str,
    layout: Layout,
}

impl<'a> ListRows<'a> {
    /// Finds keys, types and values by their names.
    pub fn new(array: &'a dyn Array, format: &FormatInfo) -> Result<Self, Error> {
        let mismatch = || schema::mismatch(&schema::headers_type(format, false), array.data_type());
        let lists = ListInput::of(array).ok_or_else(mismatch)?;
        let elements = lists.elements().ok_or_else(mismatch)?;
        let known = ["key_type", "key", "type", "value"];
        if elements.column_names().iter().any(|name| !known.contains(name)) {
            return Err(mismatch());
        }
        let keys = KeyColumn::of(elements, format.keys).ok_or_else(mismatch)?;
        let values = elements.column_by_name("value").and_then(|column| Bytes::of(column)).ok_or_else(mismatch)?;
        let types = match elements.column_by_name("type") {
            Some(column) => Some(Texts::of(column).ok_or_else(mismatch)?),
            None => None,
        };
        let columns = keys.kernel_columns(types, values, elements, lists.element_range());
        let no_key = elements.fields().iter().find_map(|field| shapes::why_null(field)).unwrap_or("the key is null");
        Ok(ListRows { array, lists, elements, keys, types, values, columns, no_key, layout: format.wire_layout })
    }

    /// Parses the headers of a row. It is generic over the representation of keys, so that the loop does not branch on
    /// it.
    #[inline(always)]
    fn parse_keys<K: Copy, R: Log, S: Sink<'a>>(
        &self,
        elements: Range<usize>,
        log: &mut R,
        sink: &mut S,
        get: impl Fn(usize, &mut R) -> Result<Option<K>>,
        key: impl Fn(K) -> Key<'a>,
    ) -> Result {
        for (index, element) in elements.enumerate() {
            log.enter_header(Some(index));
            if self.elements.is_null(element) {
                null_key(log, "the key is null")?;
                continue;
            }
            let Some(key_parts) = get(element, log)? else { continue };
            // The header is built in place, because passing a key through memory costs more than finding it.
            let mut header = Header {
                index,
                key: key(key_parts),
                value_type: None,
                value: self.values.get(element),
                value_offset: None,
            };
            log.name_header(&header.key);
            header.value_type = match self.types.and_then(|types| types.get(element)) {
                None => None,
                Some(name) => match ValueType::parse(name) {
                    Some(value_type) => Some(value_type),
                    None => {
                        unknown_type(log)?;
                        continue;
                    }
                },
            };
            sink.header(header, log)?;
        }
        log.enter_header(None);
        Ok(())
    }
}

#[cold]
fn null_key<R: Log>(log: &mut R, why: &'static str) -> Result {
    log.error(Code::NullKey, None, || why.into())
}

#[cold]
fn unknown_type<R: Log>(log: &mut R) -> Result {
    log.error(Code::UnknownType, None, || "the name of the type is unknown".into())
}

#[inline(always)]
fn or_null<K, R: Log>(key: Option<K>, log: &mut R, why: &'static str) -> Result<Option<K>> {
    if key.is_none() {
        null_key(log, why)?;
    }
    Ok(key)
}

impl<'a, S: RowSink<'a>> RowSource<'a, S> for ListRows<'a> {
    fn column(&self) -> &'a dyn Array {
        self.array
    }

    /// A null list is a message without a headers field, not a missing message.
    fn nulls(&self) -> Option<&'a NullBuffer> {
        None
    }

    fn append(&self, buffers: &mut Buffers<'a>, next: Next, to: &mut Row<'_, 'a, S>) -> Option<Appended> {
        let Row { sink, found } = to;
        let (columns, room) = (self.columns?, sink.room(self.layout, next.max_offset)?);
        let lists = buffers.lists.get_or_insert_with(|| ListBlock::new(columns));
        Some(match self.lists.fill(next.rows, lists) {
            offered @ 1.. if max_bytes(self.layout, lists) <= room => {
                Appended { offered, appended: sink.append_lists(self.layout, found, lists, next.progress) }
            }
            _ => Appended::NONE,
        })
    }

    fn parse(&self, row: usize, _: &mut Buffers<'a>, log: EitherLog<'_>, to: &mut Row<'_, 'a, S>) -> Parsed {
        parse_row!(log, to, |log, to| self.parse_row(row, log, to))
    }
}

impl<'a> ListRows<'a> {
    pub(super) fn parse_row<R: Log, S: Sink<'a>>(&self, row: usize, log: &mut R, sink: &mut S) -> Parsed {
        let Some(elements) = self.lists.get(row) else { return Ok(Presence::Absent) };
        match self.keys {
            KeyColumn::Text(texts) => {
                self.parse_keys(
                    elements,
                    log,
                    sink,
                    |element, log| or_null(texts.get(element), log, self.no_key),
                    Key::from,
                )?;
            }
            KeyColumn::Int(numbers) => {
                let get = |element| numbers.is_valid(element).then(|| numbers.value(element));
                self.parse_keys(elements, log, sink, |element, log| or_null(get(element), log, self.no_key), Key::Int)?;
            }
            KeyColumn::Typed { types, bits } => {
                let get = |element, log: &mut R| {
                    let (Some(name), Some(bits)) = (types.get(element), bits.get(element)) else {
                        return or_null(None, log, self.no_key);
                    };
                    match ValueType::parse(name) {
                        Some(value_type) => Ok(Some((value_type, bits))),
                        None => unknown_type(log).map(|()| None),
                    }
                };
                let key = |(value_type, bits)| Key::Typed(TypedKey::new(value_type, bits, ByteOrder::Big));
                self.parse_keys(elements, log, sink, get, key)?;
            }
        }
        Ok(Presence::Whole)
    }
}

/// Rows that are structs of the fields of messages, in any order.
pub struct StructRows<'a> {
    structs: &'a StructArray,
    headers: ListRows<'a>,
    fields: Vec<FieldColumn<'a>>,
}

enum FieldColumn<'a> {
    Bool(&'a BooleanArray),
    Int8(&'a Int8Array),
    Int64(&'a Int64Array),
    Decimal(&'a Decimal128Array),
    Text(Texts<'a>),
    Bytes(Bytes<'a>),
}

impl<'a> FieldColumn<'a> {
    fn of(field_type: FieldType, column: &'a dyn Array) -> Option<Self> {
        match field_type {
            FieldType::Headers => None,
            FieldType::Bool => column.as_boolean_opt().map(FieldColumn::Bool),
            FieldType::Int8 => column.as_primitive_opt().map(FieldColumn::Int8),
            FieldType::Int64 | FieldType::Natural => column.as_primitive_opt().map(FieldColumn::Int64),
            FieldType::Uint64 => {
                column.as_primitive_opt::<Decimal128Type>().filter(|array| array.scale() == 0).map(FieldColumn::Decimal)
            }
            FieldType::Text => Texts::of(column).map(FieldColumn::Text),
            FieldType::Binary | FieldType::Id => Bytes::of(column).map(FieldColumn::Bytes),
        }
    }

    fn get<R: Log>(&self, row: usize, log: &mut R) -> Result<FieldValue<'a>> {
        let value = match self {
            FieldColumn::Bool(array) => array.is_valid(row).then(|| FieldValue::Bool(array.value(row))),
            FieldColumn::Int8(array) => array.is_valid(row).then(|| FieldValue::Int64(array.value(row).into())),
            FieldColumn::Int64(array) => array.is_valid(row).then(|| FieldValue::Int64(array.value(row))),
            FieldColumn::Decimal(array) if array.is_valid(row) => match u64::try_from(array.value(row)) {
                Ok(number) => Some(FieldValue::Uint64(number)),
                Err(_) => {
                    return Err(log.fatal(Code::OutOfRange, None, || "the number does not fit uint64".into()));
                }
            },
            FieldColumn::Decimal(_) => None,
            FieldColumn::Text(texts) => texts.get(row).map(FieldValue::Text),
            FieldColumn::Bytes(bytes) => bytes.get(row).map(FieldValue::Binary),
        };
        Ok(value.unwrap_or(FieldValue::Null))
    }
}

impl<'a> StructRows<'a> {
    /// Finds the fields of a format by their names.
    pub fn new(array: &'a dyn Array, format: &FormatInfo) -> Result<Self, Error> {
        let expected = schema::decoded_type(format, false);
        let mismatch = || schema::mismatch(&expected, array.data_type());
        let structs = array.as_struct_opt().ok_or_else(mismatch)?;
        if structs.num_columns() != format.fields.len() {
            return Err(mismatch());
        }
        let (mut headers, mut fields) = (None, Vec::new());
        for field in format.fields {
            let column = structs.column_by_name(field.name).ok_or_else(mismatch)?;
            match field.field_type {
                FieldType::Headers => {
                    headers = Some(ListRows::new(column, format)?);
                }
                field_type => fields.push(FieldColumn::of(field_type, column).ok_or_else(mismatch)?),
            }
        }
        Ok(StructRows { structs, headers: headers.ok_or_else(mismatch)?, fields })
    }
}

impl<'a, S: RowSink<'a>> RowSource<'a, S> for StructRows<'a> {
    fn column(&self) -> &'a dyn Array {
        self.structs
    }

    fn parse(&self, row: usize, _: &mut Buffers<'a>, log: EitherLog<'_>, to: &mut Row<'_, 'a, S>) -> Parsed {
        parse_row!(log, to, |log, to| {
            let mut fields = [FieldValue::Null; MAX_FIELDS];
            for (value, column) in fields.iter_mut().zip(&self.fields) {
                *value = column.get(row, log)?;
            }
            to.fields(&fields[..self.fields.len()]);
            self.headers.parse_row(row, log, to)
        })
    }
}

/// Maximum number of fields of a message in all formats.
const MAX_FIELDS: usize = 16;
