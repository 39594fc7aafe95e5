//! decode: headers into a list column, the envelope's fields beside it.

use std::marker::PhantomData;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, ListArray, StructArray};
use arrow_buffer::{OffsetBuffer, ScalarBuffer};

use super::column::{Column, Runs, Validity};
use super::run::RowSink;
use super::schema;
use crate::header::{Header, Key};
use crate::kind::Scalar;
use crate::mode::{Mode, Stop};
use crate::value::{ByteOrder, Value};
use crate::walk::{Block, Envelope, FieldType, FieldValue, Presence, Sink};

/// The list column of all headers and the columns of the other fields, as they grow.
pub struct ListSink<E> {
    keys: Runs,
    kinds: Option<Runs>,
    values: Runs,
    has_value: Validity,
    lists: Vec<i32>,
    has_list: Validity,
    fields: Vec<Column>,
    has_message: Validity,
    mark: Mark,
    format: PhantomData<E>,
}

/// How long everything was before the row at hand.
#[derive(Default)]
struct Mark {
    rows: usize,
    headers: usize,
    key_bytes: usize,
    kind_bytes: usize,
    value_bytes: usize,
    field_bytes: Vec<usize>,
}

impl<E: Envelope> ListSink<E> {
    /// `cell_bytes` is what the input holds: keys and values together cannot take more.
    pub fn new(cell_bytes: usize) -> Self {
        let fields: Vec<_> = E::FIELDS
            .iter()
            .filter_map(|field| match field.of {
                FieldType::Headers => None,
                FieldType::Int64 => Some(Column::new(Scalar::Int64.arrow(Default::default()))),
                FieldType::Binary => Some(Column::new(Scalar::Binary.arrow(Default::default()))),
            })
            .collect();
        ListSink {
            keys: Runs::with_capacity(cell_bytes / 2),
            kinds: E::Block::KINDS.then(|| Runs::with_capacity(0)),
            values: Runs::with_capacity(cell_bytes / 2),
            has_value: Validity::default(),
            lists: vec![0],
            has_list: Validity::default(),
            mark: Mark { field_bytes: vec![0; fields.len()], ..Mark::default() },
            fields,
            has_message: Validity::default(),
            format: PhantomData,
        }
    }

    fn push_fields(&mut self, values: &[FieldValue<'_>]) {
        for (column, value) in self.fields.iter_mut().zip(values) {
            column.push(match value {
                FieldValue::Null => None,
                FieldValue::Int64(number) => Some(Value::Int(*number)),
                FieldValue::Binary(bytes) => Some(Value::Bytes(bytes)),
            });
        }
    }

    fn end_list(&mut self, valid: bool, has_message: bool) {
        for column in &mut self.fields {
            // An envelope that could not be opened handed over no fields.
            if column.count() == self.mark.rows {
                column.push(None);
            }
        }
        self.lists.push(self.keys.count() as i32);
        self.has_list.push(valid);
        self.has_message.push(has_message);
    }

    fn drop_headers(&mut self) {
        self.keys.truncate(self.mark.headers, self.mark.key_bytes);
        if let Some(kinds) = &mut self.kinds {
            kinds.truncate(self.mark.headers, self.mark.kind_bytes);
        }
        self.values.truncate(self.mark.headers, self.mark.value_bytes);
        self.has_value.truncate(self.mark.headers);
    }

    /// The fields of the envelope in the order of its table, and whether there is a message at all.
    pub fn finish(self) -> (Vec<ArrayRef>, Validity) {
        let mut columns = vec![self.keys.finish_text(None)];
        columns.extend(self.kinds.map(|kinds| kinds.finish_text(None)));
        columns.push(self.values.finish_bytes(self.has_value.finish()));
        let headers = StructArray::new(schema::header_fields::<E::Block>(), columns, None);
        let element = schema::nullable("element", headers.data_type().clone());
        let offsets = OffsetBuffer::new(ScalarBuffer::from(self.lists));
        let lists: ArrayRef = Arc::new(ListArray::new(element, offsets, Arc::new(headers), self.has_list.finish()));
        let mut fields = self.fields.into_iter().map(Column::finish);
        let mut lists = Some(lists);
        let columns = E::FIELDS.iter().filter_map(|field| match field.of {
            FieldType::Headers => lists.take(),
            _ => fields.next(),
        });
        (columns.collect(), self.has_message)
    }
}

impl<'a, E: Envelope> Sink<'a> for ListSink<E> {
    #[inline]
    fn header<M: Mode>(&mut self, header: Header<'a>, _mode: &mut M) -> Result<(), Stop> {
        match &header.key {
            Key::Text(text) => self.keys.push(text.as_bytes()),
            Key::Int(_) | Key::Typed(..) => unreachable!("no format of the table has such keys"),
        }
        if let (Some(kinds), Some(kind)) = (&mut self.kinds, header.kind) {
            kinds.push(kind.name().as_bytes());
        }
        let value = header.value.unwrap_or_default();
        if header.kind.is_some() && E::Block::ORDER == ByteOrder::Little {
            // A typed value is its bits, most significant byte first, whichever format it came from.
            self.values.bytes_mut().extend(value.iter().rev());
            self.values.end_run();
        } else {
            self.values.push(value);
        }
        self.has_value.push(header.value.is_some());
        Ok(())
    }

    #[inline]
    fn fields(&mut self, fields: &[FieldValue<'a>]) {
        self.push_fields(fields);
    }
}

impl<'a, E: Envelope> RowSink<'a> for ListSink<E> {
    #[inline]
    fn begin_row(&mut self) {
        let mark = &mut self.mark;
        mark.rows = self.has_list.count();
        mark.headers = self.keys.count();
        mark.key_bytes = self.keys.byte_len();
        mark.kind_bytes = self.kinds.as_ref().map_or(0, Runs::byte_len);
        mark.value_bytes = self.values.byte_len();
        for (bytes, column) in mark.field_bytes.iter_mut().zip(&self.fields) {
            *bytes = column.byte_len();
        }
    }

    #[inline]
    fn end_row<M: Mode>(&mut self, headers: Presence, _mode: &mut M) -> Result<(), Stop> {
        let whole = headers == Presence::Whole;
        if !whole {
            self.drop_headers();
        }
        self.end_list(whole, true);
        Ok(())
    }

    fn abort_row(&mut self) {
        self.drop_headers();
        self.lists.truncate(self.mark.rows + 1);
        self.has_list.truncate(self.mark.rows);
        self.has_message.truncate(self.mark.rows);
        for (bytes, column) in self.mark.field_bytes.iter().zip(&mut self.fields) {
            column.truncate(self.mark.rows, *bytes);
        }
    }

    fn null_row(&mut self) {
        self.end_list(false, false);
    }

    #[inline]
    fn max_offset(&self) -> usize {
        let fields = self.fields.iter().map(Column::byte_len).max().unwrap_or(0);
        self.keys.byte_len().max(self.values.byte_len()).max(self.keys.count()).max(fields)
    }

    fn keeps_parts(&self) -> bool {
        false
    }
}
