//! Growing columns of the errors of rows, and of what their target format cannot carry: lists of structs, null for a row
//! without either.

use std::sync::Arc;

use arrow_array::builder::{ArrayBuilder, BooleanBufferBuilder, Int32Builder, Int64Builder, StringBuilder};
use arrow_array::{Array, ArrayRef, ListArray, StructArray};
use arrow_buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::Fields;

use super::schema;
use crate::error::{ErrorDetail, Loss};

/// The errors and losses that a run has found.
#[derive(Default)]
pub struct Findings {
    pub errors: ErrorColumn,
    pub losses: LossColumn,
}

impl Findings {
    /// Appends rows without errors and losses to the requested columns.
    pub fn push_whole(&mut self, rows: usize, errors: bool, losses: bool) {
        if errors {
            self.errors.push_whole(rows);
        }
        if losses {
            (0..rows).for_each(|_| self.losses.push(&[]));
        }
    }

    pub fn would_pass(&self, errors: &[ErrorDetail], losses: &[Loss], max_offset: usize) -> bool {
        let losses: usize = losses.iter().map(loss_text_len).sum();
        self.errors.would_pass(errors, max_offset) || self.losses.rows.text_len + losses > max_offset
    }

    /// Appends the findings of another run over the rows after these.
    pub fn extend(&mut self, other: Findings) {
        self.errors.extend(other.errors);
        self.losses.extend(other.losses);
    }

    /// What `would_pass` compares with an offset.
    pub fn text_len(&self) -> usize {
        self.errors.text_len().max(self.losses.rows.text_len)
    }
}

/// Where the lists of the rows end, and which rows have one.
struct ListEnds {
    offsets: Vec<i32>,
    valid: BooleanBufferBuilder,
    text_len: usize,
}

impl Default for ListEnds {
    fn default() -> Self {
        ListEnds { offsets: vec![0], valid: BooleanBufferBuilder::new(0), text_len: 0 }
    }
}

impl ListEnds {
    #[inline]
    fn end_row(&mut self, elements: usize, valid: bool) {
        self.offsets.push(elements as i32);
        self.valid.append(valid);
    }

    fn end_whole(&mut self, elements: usize, rows: usize) {
        self.offsets.resize(self.offsets.len() + rows, elements as i32);
        self.valid.append_n(rows, false);
    }

    fn extend(&mut self, other: &ListEnds, elements: usize) {
        self.offsets.extend(other.offsets[1..].iter().map(|end| end + elements as i32));
        self.valid.append_packed_range(0..other.valid.len(), other.valid.as_slice());
        self.text_len += other.text_len;
    }

    fn finish(mut self, fields: Fields, columns: Vec<ArrayRef>) -> ArrayRef {
        let structs = StructArray::new(fields, columns, None);
        let element = schema::nullable("element", structs.data_type().clone());
        let offsets = OffsetBuffer::new(ScalarBuffer::from(self.offsets));
        let valid = NullBuffer::new(self.valid.finish());
        Arc::new(ListArray::new(element, offsets, Arc::new(structs), Some(valid)))
    }
}

/// `list<struct<code, message, byte_offset, header, key, column>>`
#[derive(Default)]
pub struct ErrorColumn {
    rows: ListEnds,
    codes: StringBuilder,
    messages: StringBuilder,
    bytes: Int64Builder,
    headers: Int32Builder,
    keys: StringBuilder,
    columns: StringBuilder,
}

impl ErrorColumn {
    pub fn would_pass(&self, errors: &[ErrorDetail], max_offset: usize) -> bool {
        self.rows.text_len + errors.iter().map(error_text_len).sum::<usize>() > max_offset
    }

    /// At least the bytes of each text column.
    pub fn text_len(&self) -> usize {
        self.rows.text_len
    }

    #[inline]
    pub fn push(&mut self, errors: &[ErrorDetail]) {
        for error in errors {
            self.push_error(error);
        }
        self.rows.end_row(self.codes.len(), !errors.is_empty());
    }

    pub fn push_whole(&mut self, rows: usize) {
        self.rows.end_whole(self.codes.len(), rows);
    }

    fn extend(&mut self, mut other: ErrorColumn) {
        self.rows.extend(&other.rows, self.codes.len());
        append(&mut self.codes, &mut other.codes);
        append(&mut self.messages, &mut other.messages);
        self.bytes.append_array(&other.bytes.finish());
        self.headers.append_array(&other.headers.finish());
        append(&mut self.keys, &mut other.keys);
        append(&mut self.columns, &mut other.columns);
    }

    fn push_error(&mut self, error: &ErrorDetail) {
        self.rows.text_len += error_text_len(error);
        self.codes.append_value(error.code.name());
        self.messages.append_value(&error.message);
        self.bytes.append_option(error.byte.map(|byte| byte as i64));
        self.headers.append_option(index(error.header));
        self.keys.append_option(error.key.as_deref());
        self.columns.append_option(error.column.as_deref());
    }

    pub fn finish(mut self) -> ArrayRef {
        let columns: Vec<ArrayRef> = vec![
            Arc::new(self.codes.finish()),
            Arc::new(self.messages.finish()),
            Arc::new(self.bytes.finish()),
            Arc::new(self.headers.finish()),
            Arc::new(self.keys.finish()),
            Arc::new(self.columns.finish()),
        ];
        self.rows.finish(schema::error_fields(), columns)
    }
}

/// `list<struct<code, message, header, key, type, written>>`
#[derive(Default)]
pub struct LossColumn {
    rows: ListEnds,
    codes: StringBuilder,
    messages: StringBuilder,
    headers: Int32Builder,
    keys: StringBuilder,
    types: StringBuilder,
    written: StringBuilder,
}

impl LossColumn {
    #[inline]
    pub fn push(&mut self, losses: &[Loss]) {
        for loss in losses {
            self.push_loss(loss);
        }
        self.rows.end_row(self.codes.len(), !losses.is_empty());
    }

    fn extend(&mut self, mut other: LossColumn) {
        self.rows.extend(&other.rows, self.codes.len());
        append(&mut self.codes, &mut other.codes);
        append(&mut self.messages, &mut other.messages);
        self.headers.append_array(&other.headers.finish());
        append(&mut self.keys, &mut other.keys);
        append(&mut self.types, &mut other.types);
        append(&mut self.written, &mut other.written);
    }

    fn push_loss(&mut self, loss: &Loss) {
        self.rows.text_len += loss_text_len(loss);
        self.codes.append_value(loss.code.name());
        self.messages.append_value(&loss.message);
        self.headers.append_option(index(loss.header));
        self.keys.append_option(loss.key.as_deref());
        self.types.append_option(loss.value_type.as_deref());
        self.written.append_option(loss.written);
    }

    pub fn finish(mut self) -> ArrayRef {
        let columns: Vec<ArrayRef> = vec![
            Arc::new(self.codes.finish()),
            Arc::new(self.messages.finish()),
            Arc::new(self.headers.finish()),
            Arc::new(self.keys.finish()),
            Arc::new(self.types.finish()),
            Arc::new(self.written.finish()),
        ];
        self.rows.finish(schema::loss_fields(), columns)
    }
}

fn append(texts: &mut StringBuilder, others: &mut StringBuilder) {
    texts.append_array(&others.finish()).expect("the caller has compared the bytes of both with the largest offset");
}

fn index(header: Option<usize>) -> Option<i32> {
    header.and_then(|header| i32::try_from(header).ok())
}

/// An upper bound of the bytes that an error adds to any one text column.
fn error_text_len(error: &ErrorDetail) -> usize {
    longest([Some(&error.message), error.key.as_ref(), error.column.as_ref()])
}

/// An upper bound of what a loss adds to any one text column.
fn loss_text_len(loss: &Loss) -> usize {
    longest([Some(&loss.message), loss.key.as_ref(), loss.value_type.as_ref()])
}

fn longest(texts: [Option<&String>; 3]) -> usize {
    texts.into_iter().flatten().map(String::len).max().unwrap_or(0).max(1)
}
