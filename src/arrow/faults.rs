//! A growing column of faults: `list<struct<code, message, byte, header, key, column>>`, null where a row is whole.

use std::sync::Arc;

use arrow_array::builder::{ArrayBuilder, BooleanBufferBuilder, Int32Builder, Int64Builder, StringBuilder};
use arrow_array::{Array, ArrayRef, ListArray, StructArray};
use arrow_buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};

use super::schema;
use crate::error::Fault;

pub struct FaultColumn {
    offsets: Vec<i32>,
    valid: BooleanBufferBuilder,
    codes: StringBuilder,
    messages: StringBuilder,
    bytes: Int64Builder,
    headers: Int32Builder,
    keys: StringBuilder,
    columns: StringBuilder,
    text_len: usize,
}

impl Default for FaultColumn {
    fn default() -> Self {
        FaultColumn {
            offsets: vec![0],
            valid: BooleanBufferBuilder::new(0),
            codes: StringBuilder::new(),
            messages: StringBuilder::new(),
            bytes: Int64Builder::new(),
            headers: Int32Builder::new(),
            keys: StringBuilder::new(),
            columns: StringBuilder::new(),
            text_len: 0,
        }
    }
}

impl FaultColumn {
    /// Whether these faults would take the column past an offset.
    pub fn would_pass(&self, faults: &[Fault], max_offset: usize) -> bool {
        self.text_len + faults.iter().map(text_len).sum::<usize>() > max_offset
    }

    /// The faults of one row.
    #[inline]
    pub fn push(&mut self, faults: &[Fault]) {
        for fault in faults {
            self.push_fault(fault);
        }
        self.offsets.push(self.codes.len() as i32);
        self.valid.append(!faults.is_empty());
    }

    fn push_fault(&mut self, fault: &Fault) {
        self.text_len += text_len(fault);
        self.codes.append_value(fault.code.name());
        self.messages.append_value(&fault.message);
        self.bytes.append_option(fault.byte.map(|byte| byte as i64));
        self.headers.append_option(fault.header.and_then(|header| i32::try_from(header).ok()));
        self.keys.append_option(fault.key.as_deref());
        self.columns.append_option(fault.column.as_deref());
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
        let faults = StructArray::new(schema::fault_fields(), columns, None);
        let element = schema::nullable("element", faults.data_type().clone());
        let offsets = OffsetBuffer::new(ScalarBuffer::from(self.offsets));
        let valid = NullBuffer::new(self.valid.finish());
        Arc::new(ListArray::new(element, offsets, Arc::new(faults), Some(valid)))
    }
}

/// An upper bound of what a fault adds to any one text column.
fn text_len(fault: &Fault) -> usize {
    let optional = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    fault.message.len().max(optional(&fault.key)).max(optional(&fault.column)).max(1)
}
