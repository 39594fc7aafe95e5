//! Rows that can be walked: cells of a format, lists of headers, and envelopes as structs.

use std::marker::PhantomData;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, Int64Array, StructArray};
use arrow_schema::DataType;

use super::input::{Bytes, Lists, Texts};
use super::schema;
use crate::error::{Code, Error};
use crate::header::{Header, Key, KeyForm};
use crate::kind::Kind;
use crate::mode::{Mode, Stop};
use crate::walk::{Block, Envelope, FieldType, FieldValue, Presence, ReadOptions, Sink, walk_cell};

/// Rows of a column, each a message's headers and fields.
pub trait Rows<'a> {
    fn row_count(&self) -> usize;

    /// There is no message in this row.
    fn is_null(&self, row: usize) -> bool;

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
}

impl<'a, E: Envelope> Rows<'a> for CellRows<'a, E> {
    fn row_count(&self) -> usize {
        self.cells.row_count()
    }

    #[inline]
    fn is_null(&self, row: usize) -> bool {
        self.cells.get(row).is_none()
    }

    #[inline]
    fn walk<M: Mode, S: Sink<'a>>(&self, row: usize, mode: &mut M, sink: &mut S) -> Result<Presence, Stop> {
        let Some(cell) = self.cells.get(row) else { return Ok(Presence::Absent) };
        walk_cell::<E, M, S>(cell, self.options, mode, sink)
    }
}

/// Headers that are a list of structs already.
pub struct ListRows<'a> {
    lists: Lists<'a>,
    elements: &'a StructArray,
    keys: Texts<'a>,
    kinds: Option<Texts<'a>>,
    values: Bytes<'a>,
}

impl<'a> ListRows<'a> {
    /// Finds keys, kinds and values by their names; `wanted` is the type that the error names.
    pub fn new(array: &'a dyn Array, keys: KeyForm, wanted: &DataType) -> Result<Self, Error> {
        let misfit = || schema::misfit(wanted, array.data_type());
        let lists = Lists::of(array).ok_or_else(misfit)?;
        let elements = lists.elements().ok_or_else(misfit)?;
        let known = ["key", "kind", "value"];
        if elements.column_names().iter().any(|name| !known.contains(name)) || keys != KeyForm::Text {
            return Err(misfit());
        }
        let keys = elements.column_by_name("key").and_then(|column| Texts::of(column)).ok_or_else(misfit)?;
        let values = elements.column_by_name("value").and_then(|column| Bytes::of(column)).ok_or_else(misfit)?;
        let kinds = match elements.column_by_name("kind") {
            Some(column) => Some(Texts::of(column).ok_or_else(misfit)?),
            None => None,
        };
        Ok(ListRows { lists, elements, keys, kinds, values })
    }

    fn header<M: Mode>(&self, index: usize, place: usize, mode: &mut M) -> Result<Option<Header<'a>>, Stop> {
        let key = if self.elements.is_valid(place) { self.keys.get(place) } else { None };
        let Some(key) = key else {
            mode.soft(Code::NullKey, None, || "the key is null".into())?;
            return Ok(None);
        };
        let key = Key::from(key);
        mode.name_header(&key);
        let kind = match self.kinds.and_then(|kinds| kinds.get(place)) {
            None => None,
            Some(name) => match Kind::parse(name) {
                Some(kind) => Some(kind),
                None => {
                    mode.soft(Code::UnknownKind, None, || format!("unknown kind '{name}'"))?;
                    return Ok(None);
                }
            },
        };
        Ok(Some(Header { index, key, kind, value: self.values.get(place), at: None }))
    }
}

impl<'a> Rows<'a> for ListRows<'a> {
    fn row_count(&self) -> usize {
        self.lists.row_count()
    }

    /// A null list is a message without a headers field, not a missing message.
    fn is_null(&self, _row: usize) -> bool {
        false
    }

    #[inline]
    fn walk<M: Mode, S: Sink<'a>>(&self, row: usize, mode: &mut M, sink: &mut S) -> Result<Presence, Stop> {
        let Some(places) = self.lists.get(row) else { return Ok(Presence::Absent) };
        for (index, place) in places.enumerate() {
            mode.enter_header(Some(index));
            if let Some(header) = self.header(index, place, mode)? {
                sink.header(header, mode)?;
            }
        }
        mode.enter_header(None);
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
    Int64(&'a Int64Array),
    Binary(Bytes<'a>),
}

impl<'a> StructRows<'a> {
    /// Finds the fields of `E` by their names.
    pub fn new<E: Envelope>(array: &'a dyn Array) -> Result<Self, Error> {
        let wanted = schema::decoded_type::<E>();
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
                    headers = Some(ListRows::new(column, E::Block::KEYS, &schema::headers_type::<E::Block>())?);
                }
                FieldType::Int64 => {
                    fields.push(FieldColumn::Int64(column.as_primitive_opt::<Int64Type>().ok_or_else(misfit)?));
                }
                FieldType::Binary => fields.push(FieldColumn::Binary(Bytes::of(column).ok_or_else(misfit)?)),
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
            *value = match column {
                FieldColumn::Int64(array) if array.is_valid(row) => FieldValue::Int64(array.value(row)),
                FieldColumn::Int64(_) => FieldValue::Null,
                FieldColumn::Binary(bytes) => bytes.get(row).map_or(FieldValue::Null, FieldValue::Binary),
            };
        }
        sink.fields(&fields[..self.fields.len()]);
        self.headers.walk(row, mode, sink)
    }
}

/// More fields than any envelope has.
const MAX_FIELDS: usize = 16;
