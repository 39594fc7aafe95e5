//! Rows that can be walked: cells of a format, lists of headers, and envelopes as structs.

use std::cell::Cell;
use std::marker::PhantomData;
use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::types::{ByteArrayType, Decimal128Type};
use arrow_array::{
    Array, BooleanArray, Decimal128Array, GenericByteArray, Int8Array, Int32Array, Int64Array, StringArray, StructArray,
};
use arrow_buffer::NullBuffer;
use arrow_schema::DataType;

use super::input::{Bytes, Lists, Texts};
use super::schema;
use super::short;
use super::sink::RowSink;
use super::source::Source;
use crate::error::{Code, Error};
use crate::header::{Header, Key, KeyForm, TypedKey};
use crate::kind::Kind;
use crate::mode::{Fast, Mode, Stop};
use crate::op::convert::{Reader, hand_over};
use crate::op::values::MessageSink;
use crate::short::Short;
use crate::short::columns::{Bits, Columns, Names, Parts};
use crate::value::ByteOrder;
use crate::walk::{Block, Envelope, Field, FieldType, FieldValue, Presence, ReadOptions, Sink, walk_cell};

/// Rows of a column, each a message's headers and fields.
pub trait Rows<'a> {
    fn row_count(&self) -> usize;

    /// There is no message in this row.
    fn is_null(&self, row: usize) -> bool;

    /// Hands rows that lie as nearly all do to a sink, up to the first that has to be walked, and says how many it took.
    #[inline(always)]
    fn leap<S: RowSink<'a>>(&self, _rows: Range<usize>, _fast: &mut Fast, _sink: &mut S, _max_offset: usize) -> usize {
        0
    }

    /// Hands the fields and headers of a row to the sink.
    fn walk<M: Mode, S: Sink<'a>>(&self, row: usize, mode: &mut M, sink: &mut S) -> Result<Presence, Stop>;
}

/// Cells of bytes in a format.
pub struct CellRows<'a, E> {
    cells: Bytes<'a>,
    options: ReadOptions,
    format: PhantomData<E>,
}

impl<'a, E: Envelope> CellRows<'a, E> {
    pub fn new(cells: Bytes<'a>, options: ReadOptions) -> Self {
        CellRows { cells, options, format: PhantomData }
    }

    fn short(&self) -> short::In<E> {
        short::In(self.options, PhantomData)
    }
}

impl<'a, E: Envelope> Rows<'a> for CellRows<'a, E> {
    fn row_count(&self) -> usize {
        self.cells.row_count()
    }

    #[inline]
    fn is_null(&self, row: usize) -> bool {
        self.cells.is_null(row)
    }

    #[inline(always)]
    fn leap<S: RowSink<'a>>(&self, rows: Range<usize>, fast: &mut Fast, sink: &mut S, max_offset: usize) -> usize {
        let strictly = !<E::Block as Block>::Short::HAVE_KINDS || !self.options.strict_kinds;
        match self.cells {
            _ if !<E::Block as Block>::Short::ARE_THERE || self.options.lenient || !strictly => 0,
            Bytes::Small(cells) => sink.leap(short::cells(cells, rows, self.short()), fast, max_offset),
            Bytes::Large(cells) => sink.leap(short::cells(cells, rows, self.short()), fast, max_offset),
            Bytes::View(_) => 0,
        }
    }

    #[inline]
    fn walk<M: Mode, S: Sink<'a>>(&self, row: usize, mode: &mut M, sink: &mut S) -> Result<Presence, Stop> {
        let Some(cell) = self.cells.cursor(row) else { return Ok(Presence::Absent) };
        walk_cell::<E, M, S>(cell, self.options, mode, sink)
    }
}

/// Cells of bytes in a format, with the fields of another.
pub struct ConvertedRows<'a> {
    cells: Bytes<'a>,
    options: ReadOptions,
    source: Box<dyn Reader>,
    target: &'static [Field],
    /// The message at hand, kept for its memory.
    message: Cell<MessageSink<'a>>,
}

impl<'a> ConvertedRows<'a> {
    pub fn new(cells: Bytes<'a>, options: ReadOptions, source: Box<dyn Reader>, target: &'static [Field]) -> Self {
        ConvertedRows { cells, options, source, target, message: Cell::default() }
    }

    fn short(&self) -> short::With<'_> {
        short::With(self.options, self.source.as_ref())
    }
}

impl<'a> Rows<'a> for ConvertedRows<'a> {
    fn row_count(&self) -> usize {
        self.cells.row_count()
    }

    fn is_null(&self, row: usize) -> bool {
        self.cells.is_null(row)
    }

    fn leap<S: RowSink<'a>>(&self, rows: Range<usize>, fast: &mut Fast, sink: &mut S, max_offset: usize) -> usize {
        match self.cells {
            Bytes::Small(cells) => sink.leap(short::cells(cells, rows, self.short()), fast, max_offset),
            Bytes::Large(cells) => sink.leap(short::cells(cells, rows, self.short()), fast, max_offset),
            Bytes::View(_) => 0,
        }
    }

    fn walk<M: Mode, S: Sink<'a>>(&self, row: usize, mode: &mut M, sink: &mut S) -> Result<Presence, Stop> {
        let Some(cell) = self.cells.cursor(row) else { return Ok(Presence::Absent) };
        let mut message = self.message.take();
        message.clear();
        let presence = self.source.gather(cell, self.options, mode.either(), &mut message)?;
        hand_over(&mut message, self.source.fields(), self.target, mode, sink)?;
        self.message.set(message);
        Ok(presence)
    }
}

/// A column of keys in one of their forms.
#[derive(Clone, Copy)]
enum Keys<'a> {
    Text(Texts<'a>),
    Int(&'a Int32Array),
    Typed { kinds: Texts<'a>, bits: Bytes<'a> },
}

impl<'a> Keys<'a> {
    /// Finds keys that a format with keys of this form can have; text also does where they are typed.
    fn of(elements: &'a StructArray, form: KeyForm) -> Option<Self> {
        let key = elements.column_by_name("key")?;
        match (form, elements.column_by_name("key_kind")) {
            (KeyForm::Text | KeyForm::Typed, None) => Texts::of(key).map(Keys::Text),
            (KeyForm::Int, None) => key.as_primitive_opt().map(Keys::Int),
            (KeyForm::Typed, Some(kinds)) => Some(Keys::Typed { kinds: Texts::of(kinds)?, bits: Bytes::of(key)? }),
            (KeyForm::Text | KeyForm::Int, Some(_)) => None,
        }
    }

    /// The headers as columns of text and bytes, where these are such columns and no key is null.
    fn beside(self, kinds: Option<Texts<'a>>, values: Bytes<'a>, elements: &'a StructArray) -> Option<Columns<'a>> {
        let Bytes::Small(values) = values else { return None };
        let (key_kinds, keys, nulls) = match self {
            Keys::Text(Texts::Small(keys)) => (None, parts(keys), keys.null_count()),
            Keys::Typed { kinds: Texts::Small(kinds), bits: Bytes::Small(bits) } => {
                (Some(names(kinds)), parts(bits), kinds.null_count() + bits.null_count())
            }
            _ => return None,
        };
        let kinds = match kinds {
            None => None,
            Some(Texts::Small(kinds)) => Some(names(kinds)),
            Some(_) => return None,
        };
        (nulls == 0 && elements.null_count() == 0).then(|| Columns {
            key_kinds,
            keys,
            kinds,
            values: parts(values),
            has_value: values.nulls().map(bits),
        })
    }
}

fn parts<T: ByteArrayType<Offset = i32>>(array: &GenericByteArray<T>) -> Parts<'_> {
    Parts { offsets: array.value_offsets(), bytes: array.value_data() }
}

fn names(array: &StringArray) -> Names<'_> {
    Names { names: parts(array), has_kind: array.nulls().map(bits) }
}

fn bits(nulls: &NullBuffer) -> Bits<'_> {
    Bits { bytes: nulls.validity(), offset: nulls.offset() }
}

/// Headers that are a list of structs already.
pub struct ListRows<'a> {
    lists: Lists<'a>,
    elements: &'a StructArray,
    keys: Keys<'a>,
    kinds: Option<Texts<'a>>,
    values: Bytes<'a>,
    /// All headers, where they lie as nearly all do.
    columns: Option<Columns<'a>>,
}

impl<'a> ListRows<'a> {
    /// Finds keys, kinds and values by their names; `wanted` is the type that the error names.
    pub fn new(array: &'a dyn Array, keys: KeyForm, wanted: &DataType) -> Result<Self, Error> {
        let misfit = || schema::misfit(wanted, array.data_type());
        let lists = Lists::of(array).ok_or_else(misfit)?;
        let elements = lists.elements().ok_or_else(misfit)?;
        let known = ["key_kind", "key", "kind", "value"];
        if elements.column_names().iter().any(|name| !known.contains(name)) {
            return Err(misfit());
        }
        let keys = Keys::of(elements, keys).ok_or_else(misfit)?;
        let values = elements.column_by_name("value").and_then(|column| Bytes::of(column)).ok_or_else(misfit)?;
        let kinds = match elements.column_by_name("kind") {
            Some(column) => Some(Texts::of(column).ok_or_else(misfit)?),
            None => None,
        };
        let columns = keys.beside(kinds, values, elements);
        Ok(ListRows { lists, elements, keys, kinds, values, columns })
    }

    /// Where values lie, if it is known.
    pub fn source(&self) -> Source<'a> {
        self.values.source()
    }

    /// The headers of a row, whose keys are got one by one: in one of a few ways, so that no loop has to ask which.
    #[inline(always)]
    fn walk_keys<K: Copy, M: Mode, S: Sink<'a>>(
        &self,
        places: Range<usize>,
        mode: &mut M,
        sink: &mut S,
        get: impl Fn(usize, &mut M) -> Result<Option<K>, Stop>,
        key: impl Fn(K) -> Key<'a>,
    ) -> Result<(), Stop> {
        for (index, place) in places.enumerate() {
            mode.enter_header(Some(index));
            if self.elements.is_null(place) {
                null_key(mode)?;
                continue;
            }
            let Some(found) = get(place, mode)? else { continue };
            // Made where it stays: a key that is passed through memory costs more than finding it.
            let mut header = Header { index, key: key(found), kind: None, value: self.values.get(place), at: None };
            mode.name_header(&header.key);
            header.kind = match self.kinds.and_then(|kinds| kinds.get(place)) {
                None => None,
                Some(name) => match Kind::parse(name) {
                    Some(kind) => Some(kind),
                    None => {
                        unknown_kind(name, mode)?;
                        continue;
                    }
                },
            };
            sink.header(header, mode)?;
        }
        mode.enter_header(None);
        Ok(())
    }
}

#[cold]
fn null_key<M: Mode>(mode: &mut M) -> Result<(), Stop> {
    mode.soft(Code::NullKey, None, || "the key is null".into())
}

#[cold]
fn unknown_kind<M: Mode>(name: &str, mode: &mut M) -> Result<(), Stop> {
    mode.soft(Code::UnknownKind, None, || format!("unknown kind '{name}'"))
}

/// A key, or that there is none.
#[inline(always)]
fn or_null<K, M: Mode>(key: Option<K>, mode: &mut M) -> Result<Option<K>, Stop> {
    if key.is_none() {
        null_key(mode)?;
    }
    Ok(key)
}

impl<'a> Rows<'a> for ListRows<'a> {
    fn row_count(&self) -> usize {
        self.lists.row_count()
    }

    /// A null list is a message without a headers field, not a missing message.
    fn is_null(&self, _row: usize) -> bool {
        false
    }

    #[inline(always)]
    fn leap<S: RowSink<'a>>(&self, rows: Range<usize>, fast: &mut Fast, sink: &mut S, max_offset: usize) -> usize {
        match self.columns {
            Some(columns) if columns.have_kinds() => {
                sink.leap(short::lists::<true>(self.lists, columns, rows), fast, max_offset)
            }
            Some(columns) => sink.leap(short::lists::<false>(self.lists, columns, rows), fast, max_offset),
            None => 0,
        }
    }

    #[inline]
    fn walk<M: Mode, S: Sink<'a>>(&self, row: usize, mode: &mut M, sink: &mut S) -> Result<Presence, Stop> {
        let Some(places) = self.lists.get(row) else { return Ok(Presence::Absent) };
        match self.keys {
            Keys::Text(texts) => {
                self.walk_keys(places, mode, sink, |place, mode| or_null(texts.get(place), mode), Key::from)?;
            }
            Keys::Int(numbers) => {
                let get = |place| numbers.is_valid(place).then(|| numbers.value(place));
                self.walk_keys(places, mode, sink, |place, mode| or_null(get(place), mode), Key::Int)?;
            }
            Keys::Typed { kinds, bits } => {
                let get = |place, mode: &mut M| {
                    let (Some(name), Some(bits)) = (kinds.get(place), bits.get(place)) else {
                        return or_null(None, mode);
                    };
                    match Kind::parse(name) {
                        Some(kind) => Ok(Some((kind, bits))),
                        None => unknown_kind(name, mode).map(|()| None),
                    }
                };
                let key = |(kind, bits)| Key::Typed(TypedKey::new(kind, bits, ByteOrder::Big));
                self.walk_keys(places, mode, sink, get, key)?;
            }
        }
        Ok(Presence::Whole)
    }
}

/// Envelopes as structs of their fields, in any order.
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
    fn of(of: FieldType, column: &'a dyn Array) -> Option<Self> {
        match of {
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

    fn get<M: Mode>(&self, row: usize, mode: &mut M) -> Result<FieldValue<'a>, Stop> {
        let value = match self {
            FieldColumn::Bool(array) => array.is_valid(row).then(|| FieldValue::Bool(array.value(row))),
            FieldColumn::Int8(array) => array.is_valid(row).then(|| FieldValue::Int64(array.value(row).into())),
            FieldColumn::Int64(array) => array.is_valid(row).then(|| FieldValue::Int64(array.value(row))),
            FieldColumn::Decimal(array) if array.is_valid(row) => match u64::try_from(array.value(row)) {
                Ok(number) => Some(FieldValue::Uint64(number)),
                Err(_) => {
                    return Err(mode.hard(Code::OutOfRange, None, || "the number does not fit uint64".into()));
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
    /// Finds the fields of `E` by their names.
    pub fn new<E: Envelope>(array: &'a dyn Array) -> Result<Self, Error> {
        let wanted = schema::decoded_type::<E>(false);
        let misfit = || schema::misfit(&wanted, array.data_type());
        let structs = array.as_struct_opt().ok_or_else(misfit)?;
        if structs.num_columns() != E::FIELDS.len() {
            return Err(misfit());
        }
        let (mut headers, mut fields) = (None, Vec::new());
        for field in E::FIELDS {
            let column = structs.column_by_name(field.name).ok_or_else(misfit)?;
            match field.of {
                FieldType::Headers => {
                    let wanted = schema::headers_type::<E::Block>(false);
                    headers = Some(ListRows::new(column, E::Block::KEYS, &wanted)?);
                }
                of => fields.push(FieldColumn::of(of, column).ok_or_else(misfit)?),
            }
        }
        Ok(StructRows { structs, headers: headers.ok_or_else(misfit)?, fields })
    }
}

impl<'a> Rows<'a> for StructRows<'a> {
    fn row_count(&self) -> usize {
        self.structs.len()
    }

    fn is_null(&self, row: usize) -> bool {
        self.structs.is_null(row)
    }

    fn walk<M: Mode, S: Sink<'a>>(&self, row: usize, mode: &mut M, sink: &mut S) -> Result<Presence, Stop> {
        let mut fields = [FieldValue::Null; MAX_FIELDS];
        for (value, column) in fields.iter_mut().zip(&self.fields) {
            *value = column.get(row, mode)?;
        }
        sink.fields(&fields[..self.fields.len()]);
        self.headers.walk(row, mode, sink)
    }
}

/// More fields than any envelope has.
const MAX_FIELDS: usize = 16;
