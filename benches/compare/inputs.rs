//! Columns to compare the two versions on. Only the old version is used to make them.

use std::error::Error;
use std::fs;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BinaryArray};
use arrow_buffer::{Buffer, OffsetBuffer};
use letterhead_old::codec::Codec;
use letterhead_old::header::Header;
use letterhead_old::op::record_batch::Builder;
use letterhead_old::op::write::EncodeMessage;
use letterhead_old::walk::FieldValue;
use serde_json::Value;

use super::{Operation, old};

/// Generated values come five to a row, in rows of 64 MiB together, but 80,000 at most.
const HEADERS_WITH_VALUES: usize = 5;
const GENERATED_BYTES: usize = 64 << 20;
const GENERATED_ROWS: usize = 80_000;

/// Bytes of the value of each record in a record batch.
const RECORD_VALUE: [u8; 100] = [b'v'; 100];

/// Header blocks, and the keys and types of three headers in them.
pub struct Corpus {
    pub name: String,
    pub blocks: ArrayRef,
    pub select: Vec<(String, String)>,
}

impl Corpus {
    /// Reads a corpus that `benches/limits/corpus.py` has written.
    pub fn read(folder: &str, name: &str, index: &Value) -> Result<Corpus, Box<dyn Error>> {
        let bytes = fs::read(format!("{folder}/{name}.bin"))?;
        let number = |at: usize| i32::from_be_bytes(bytes[4 * at..][..4].try_into().unwrap()) as usize;
        let rows = number(0);
        let offsets = OffsetBuffer::from_lengths((1..=rows).map(number));
        let blocks = BinaryArray::new(offsets, Buffer::from_vec(bytes).slice(4 + 4 * rows), None);
        let select = serde_json::from_value(index["corpora"][name]["select"].clone())?;
        Ok(Corpus { name: name.to_owned(), blocks: Arc::new(blocks), select })
    }
}

/// Slices of so many rows.
pub fn cut(column: &ArrayRef, rows: usize) -> Vec<ArrayRef> {
    let starts = (0..column.len()).step_by(rows);
    starts.map(|start| column.slice(start, rows.min(column.len() - start))).collect()
}

/// Header blocks with values of so many bytes.
pub fn with_values_of(value_bytes: usize, quick: bool) -> ArrayRef {
    let rows = match quick {
        true => 100,
        false => (GENERATED_BYTES / (HEADERS_WITH_VALUES * (value_bytes + 16))).min(GENERATED_ROWS),
    };
    let block = |row: usize| {
        let mut block = Vec::new();
        varint(HEADERS_WITH_VALUES, &mut block);
        for header in 0..HEADERS_WITH_VALUES {
            let key = format!("header-{header:05}");
            varint(key.len(), &mut block);
            block.extend_from_slice(key.as_bytes());
            varint(value_bytes, &mut block);
            block.resize(block.len() + value_bytes, row as u8);
        }
        block
    };
    Arc::new(BinaryArray::from_iter_values((0..rows).map(block)))
}

/// A zigzag varint that is not negative.
fn varint(number: usize, out: &mut Vec<u8>) {
    let mut left = 2 * number;
    while left >= 0x80 {
        out.push(left as u8 | 0x80);
        left >>= 7;
    }
    out.push(left as u8);
}

/// Uncompressed record batches of about so many bytes each, as a log segment has them: a batch is a row. The records have
/// these header blocks, a key of 8 bytes and a value of 100.
pub fn record_batches(blocks: &ArrayRef, batch_bytes: usize) -> ArrayRef {
    let lists = old::run(&Operation::Decode)(blocks);
    let lists = lists.as_list::<i32>();
    let headers = lists.values().as_struct();
    let (keys, values) = (headers.column(0).as_string::<i32>(), headers.column(1).as_binary::<i32>());
    let mut batches = Vec::new();
    let mut open: Option<(Builder, usize)> = None;
    for (row, ends) in lists.value_offsets().windows(2).enumerate() {
        let key = (row as u64).to_be_bytes();
        let mut fields = vec![FieldValue::Null; 10];
        fields[0] = FieldValue::Int64(row as i64);
        fields[1] = FieldValue::Int64(1_700_000_000_000 + row as i64);
        fields[3] = FieldValue::Binary(&key);
        fields[4] = FieldValue::Binary(&RECORD_VALUE);
        let header = |(index, place): (usize, i32)| Header {
            index,
            key: keys.value(place as usize).into(),
            kind: None,
            value: values.is_valid(place as usize).then(|| values.value(place as usize)),
            at: None,
        };
        let (mut batch, size) = open.take().unwrap_or_else(|| (Builder::new(&fields, Codec::None).unwrap(), 0));
        let headers = Some((ends[0]..ends[1]).enumerate().map(header).collect());
        batch.push(EncodeMessage { headers, fields, options: Default::default() }).unwrap();
        let size = size + blocks.as_binary::<i32>().value_length(row) as usize + key.len() + RECORD_VALUE.len() + 10;
        match size < batch_bytes && row + 1 < lists.len() {
            true => open = Some((batch, size)),
            false => batches.push(batch.finish().unwrap()),
        }
    }
    Arc::new(BinaryArray::from_iter_values(batches))
}
