//! [`Produce`] converts columns to the record batches that a producer sends.

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{Array, Int32Array, StructArray, TimestampMillisecondArray};

use super::input::Bytes;
use crate::codec::Codec;
use crate::error::{Direction, Error, ErrorDetail, interrupted};
use crate::formats::batch::Builder;
use crate::formats::batch::partitioner::Partitioner;
use crate::formats::batch::record_batch::RecordBatch;
use crate::formats::batch::record_batch_writer::{PlainRecord, RecordBatchBuilder};
use crate::interrupt;
use crate::memory;
use crate::number::position;
use crate::traits::BatchFormat;

/// Headers of a record without headers, which the format `kafka` also writes as no bytes.
const NO_HEADERS: &[u8] = &[0];

/// Number of consecutive records without a key that go to the same partition, so that batches are large.
const KEYLESS_RUN: usize = 1000;

/// Maximum length of a record. The length of a batch with such a record still fits 31 bits.
const MAX_RECORD: usize = 1 << 30;

/// Number of rows between two checks for an interrupt.
const ROWS: usize = 256;

/// Options for dividing records into batches.
#[derive(Debug, Clone, Copy)]
pub struct Produce {
    /// Number of partitions of the topic.
    pub partitions: u32,
    pub partitioner: Partitioner,
    /// Partition of the first record that may go to any partition.
    pub keyless: u32,
    pub codec: Codec,
    pub level: Option<i32>,
    /// Length of a batch before compression. A larger record gets a separate batch.
    pub batch_bytes: usize,
    pub batch_rows: usize,
    /// Maximum length of a record.
    pub record_bytes: usize,
}

/// Batch of rows of one partition, in order.
pub struct ProducedBatch {
    pub partition: i32,
    pub rows: Vec<i32>,
    /// `None` if the batch has only one row, which is too large or has a partition that does not exist.
    pub bytes: Option<Vec<u8>>,
}

struct Records<'a> {
    keys: Option<Bytes<'a>>,
    values: Option<Bytes<'a>>,
    headers: Option<Bytes<'a>>,
    timestamps: &'a TimestampMillisecondArray,
    partitions: Option<&'a Int32Array>,
}

impl<'a> Records<'a> {
    fn of(rows: &'a StructArray) -> Result<Records<'a>, Error> {
        let bytes = |name: &str| {
            let wrong = || Error::Type(format!("column {name} is not binary"));
            rows.column_by_name(name).map(|column| Bytes::of(column).ok_or_else(wrong)).transpose()
        };
        let timestamps = rows.column_by_name("timestamp").and_then(|column| column.as_primitive_opt());
        let partitions = rows.column_by_name("partition").map(|column| {
            let wrong = || Error::Type("column partition is not int32".into());
            column.as_primitive_opt::<Int32Type>().ok_or_else(wrong)
        });
        let timestamps: &TimestampMillisecondArray =
            timestamps.ok_or_else(|| Error::Type("column timestamp is no timestamp in milliseconds".into()))?;
        if timestamps.null_count() > 0 || rows.len() > i32::MAX as usize {
            return Err(Error::Type("a record has no timestamp, or there are too many".into()));
        }
        Ok(Records {
            keys: bytes("key")?,
            values: bytes("value")?,
            headers: bytes("headers")?,
            timestamps,
            partitions: partitions.transpose()?,
        })
    }

    fn key(&self, row: usize) -> Option<&'a [u8]> {
        self.keys.and_then(|keys| keys.get(row))
    }

    fn get(&self, row: usize) -> PlainRecord<'a> {
        let headers = self.headers.and_then(|headers| headers.get(row));
        PlainRecord {
            timestamp: self.timestamps.value(row),
            key: self.key(row),
            value: self.values.and_then(|values| values.get(row)),
            headers: headers.filter(|headers| !headers.is_empty()).unwrap_or(NO_HEADERS),
        }
    }
}

impl Produce {
    /// Returns the batches of a struct with the columns `key`, `value`, `headers`, `timestamp` and `partition`. Headers
    /// are serialized as `kafka`. Rows of a partition keep their order.
    pub fn apply(&self, rows: &StructArray) -> Result<Vec<ProducedBatch>, Error> {
        let records = Records::of(rows)?;
        let mut order = self.partitions_of(&records, rows.len());
        order.sort_by_key(|(partition, _)| *partition);
        let mut batches = Vec::new();
        for of_partition in order.chunk_by(|one, other| one.0 == other.0) {
            self.append(&records, of_partition, &mut batches)?;
        }
        Ok(batches)
    }

    /// Returns the partition of each row.
    fn partitions_of(&self, records: &Records<'_>, len: usize) -> Vec<(i32, i32)> {
        let mut order = memory::vec_of(len);
        let mut keyless = 0;
        for (row, index) in (0..len).zip(0..) {
            let named = records.partitions.filter(|column| column.is_valid(row)).map(|column| column.value(row));
            let partition = named.unwrap_or_else(|| {
                let hash = self.partitioner.hash(records.key(row)).map(u64::from);
                let hash = hash.unwrap_or_else(|| {
                    keyless += 1;
                    u64::from(self.keyless) + ((keyless - 1) / KEYLESS_RUN) as u64
                });
                i32::try_from(hash % u64::from(self.partitions.max(1))).unwrap_or(-1)
            });
            order.push((partition, index));
        }
        order
    }

    /// Adds the batches of one partition, whose rows are in order.
    fn append(
        &self,
        records: &Records<'_>,
        order: &[(i32, i32)],
        batches: &mut Vec<ProducedBatch>,
    ) -> Result<(), Error> {
        let Some(&(partition, _)) = order.first() else { return Ok(()) };
        let exists = u32::try_from(partition).is_ok_and(|number| number < self.partitions);
        let max_len = self.record_bytes.min(MAX_RECORD);
        let mut open: Option<(RecordBatchBuilder, Vec<i32>)> = None;
        for (number, &(_, row)) in order.iter().enumerate() {
            if number % ROWS == 0 && interrupt::is_requested() {
                return Err(interrupted());
            }
            let record = records.get(position(row));
            let is_writable = exists && record.max_len() <= max_len;
            let full = open.as_ref().is_some_and(|(batch, rows)| {
                batch.size() + record.max_len() > self.batch_bytes || rows.len() >= self.batch_rows
            });
            if full || !is_writable {
                close(partition, &mut open, batches)?;
            }
            if is_writable {
                let (batch, rows) = open.get_or_insert_with(|| {
                    (RecordBatchBuilder::open(self.codec, self.level, record.timestamp), Vec::new())
                });
                batch.append(record);
                memory::push(rows, row);
            } else {
                memory::push(batches, ProducedBatch { partition, rows: vec![row], bytes: None });
            }
        }
        close(partition, &mut open, batches)
    }
}

/// Finishes the open batch.
fn close(
    partition: i32,
    open: &mut Option<(RecordBatchBuilder, Vec<i32>)>,
    batches: &mut Vec<ProducedBatch>,
) -> Result<(), Error> {
    if let Some((mut batch, rows)) = open.take() {
        let failed = |error: ErrorDetail| error.into_error(Direction::Encode, RecordBatch::NAME, None);
        let bytes = Some(batch.finish().map_err(failed)?);
        memory::push(batches, ProducedBatch { partition, rows, bytes });
    }
    Ok(())
}
