//! Writes a record batch, as a producer does.

use super::Builder;
use super::record_batch::{
    CONTROL, CONTROL_BIT, HEADER_LEN, MAGIC, NONE, OFFSET, PRODUCER_EPOCH, PRODUCER_ID, SEQUENCE, TIMESTAMP,
    TIMESTAMP_TYPE, TRANSACTIONAL, TRANSACTIONAL_BIT, set_checksum, write_record,
};
use crate::codec::{Codec, compress_at};
use crate::error::{Code, ErrorDetail};
use crate::field::FieldValue;
use crate::formats::message::legacy::{FRAME_LEN, LOG_APPEND_BIT};
use crate::formats::message::number_or;
use crate::memory;
use crate::number::fitting;
use crate::varint;

/// Properties shared by all records of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Common {
    appended: bool,
    producer_id: i64,
    producer_epoch: i16,
    transactional: bool,
    control: bool,
}

impl Common {
    fn of(fields: &[FieldValue<'_>]) -> Option<Common> {
        let flag = |field| field == FieldValue::Bool(true);
        Some(Common {
            appended: number_or(fields[TIMESTAMP_TYPE], 0) == 1,
            producer_id: number_or(fields[PRODUCER_ID], NONE),
            producer_epoch: i16::try_from(number_or(fields[PRODUCER_EPOCH], NONE)).ok()?,
            transactional: flag(fields[TRANSACTIONAL]),
            control: flag(fields[CONTROL]),
        })
    }
}

pub struct RecordBatchBuilder {
    codec: Codec,
    level: Option<i32>,
    common: Common,
    base_offset: i64,
    last_offset: i64,
    base_timestamp: i64,
    largest_timestamp: i64,
    base_sequence: i32,
    count: i32,
    /// Room for the header, and the records.
    content: Vec<u8>,
}

/// Record with the values of its columns.
#[derive(Clone, Copy)]
pub struct PlainRecord<'a> {
    pub timestamp: i64,
    pub key: Option<&'a [u8]>,
    pub value: Option<&'a [u8]>,
    /// Headers in the format `kafka`.
    pub headers: &'a [u8],
}

impl PlainRecord<'_> {
    /// Maximum length of the record in any batch.
    pub fn max_len(&self) -> usize {
        let bytes = |bytes: Option<&[u8]>| bytes.map_or(0, <[u8]>::len);
        bytes(self.key) + bytes(self.value) + self.headers.len() + MAX_OVERHEAD
    }
}

/// Lengths, attributes and deltas of a record.
const MAX_OVERHEAD: usize = 1 + varint::MAX_LEN_64 + 4 * varint::MAX_LEN;

impl RecordBatchBuilder {
    /// Begins the batch of a producer, whose first record will have this timestamp.
    pub fn open(codec: Codec, level: Option<i32>, timestamp: i64) -> Self {
        let mut content = memory::vec_of(HEADER_LEN);
        content.resize(HEADER_LEN, 0);
        RecordBatchBuilder {
            codec,
            level,
            common: Common {
                appended: false,
                producer_id: NONE,
                producer_epoch: -1,
                transactional: false,
                control: false,
            },
            base_offset: 0,
            last_offset: -1,
            base_timestamp: timestamp,
            largest_timestamp: timestamp,
            base_sequence: -1,
            count: 0,
            content,
        }
    }

    /// Begins a batch whose first record will have these fields.
    pub fn new(first: &[FieldValue<'_>], codec: Codec) -> Result<Self, ErrorDetail> {
        let out_of_range = |message: &str| ErrorDetail::of_message(Code::OutOfRange, message);
        let sequence = i32::try_from(number_or(first[SEQUENCE], NONE));
        let sequence = sequence.map_err(|_| out_of_range("the sequence does not fit 32 bits"))?;
        let timestamp = number_or(first[TIMESTAMP], NONE);
        Ok(RecordBatchBuilder {
            common: Common::of(first).ok_or_else(|| out_of_range("the producer epoch does not fit 16 bits"))?,
            base_offset: number_or(first[OFFSET], 0),
            last_offset: number_or(first[OFFSET], 0).wrapping_sub(1),
            base_sequence: sequence,
            ..RecordBatchBuilder::open(codec, None, timestamp)
        })
    }

    /// Length of the batch before compression.
    pub fn size(&self) -> usize {
        self.content.len()
    }

    /// Adds a record with the next offset. The caller has checked that its length fits 31 bits.
    pub fn append(&mut self, record: PlainRecord<'_>) {
        let PlainRecord { timestamp, key, value, headers } = record;
        self.last_offset += 1;
        self.largest_timestamp = self.largest_timestamp.max(timestamp);
        let deltas = (timestamp.wrapping_sub(self.base_timestamp), self.count);
        self.count += 1;
        write_record(deltas, [key, value], headers.len(), &mut self.content).expect("the caller checked the length");
        self.content.extend_from_slice(headers);
    }
}

impl Builder for RecordBatchBuilder {
    fn prepare(&mut self, fields: &mut [FieldValue<'_>]) -> Result<(), ErrorDetail> {
        let reject = |code, message: String| Err(ErrorDetail::of_message(code, message));
        let offset = number_or(fields[OFFSET], self.last_offset.wrapping_add(1));
        if offset <= self.last_offset || offset < self.base_offset {
            return reject(Code::OutOfRange, format!("offset {offset} is not after {}", self.last_offset));
        }
        let delta = offset.wrapping_sub(self.base_offset);
        let sequence = match i64::from(self.base_sequence) {
            NONE => NONE,
            base => base.wrapping_add(delta) & i64::from(i32::MAX),
        };
        if Common::of(fields) != Some(self.common) || number_or(fields[SEQUENCE], sequence) != sequence {
            let message = "timestamp type, producer, sequence or flags are not those of the batch's first record";
            return reject(Code::FieldNotCarried, message.into());
        }
        let timestamp = number_or(fields[TIMESTAMP], NONE);
        if self.common.appended && timestamp != self.base_timestamp {
            return reject(Code::FieldNotCarried, "with log append time all records have one timestamp".into());
        }
        self.largest_timestamp = self.largest_timestamp.max(timestamp);
        fields[OFFSET] = FieldValue::Int64(delta);
        fields[TIMESTAMP] = FieldValue::Int64(timestamp.wrapping_sub(self.base_timestamp));
        self.last_offset = offset;
        self.count += 1;
        Ok(())
    }

    fn push(&mut self, message: &[u8]) {
        memory::extend(&mut self.content, message);
    }

    fn finish(&mut self) -> Result<Vec<u8>, ErrorDetail> {
        let mut out = match self.codec {
            Codec::None => std::mem::take(&mut self.content),
            codec => {
                let (header, records) = self.content.split_at(HEADER_LEN);
                let records = compress_at(codec, self.level, records)
                    .map_err(|error| ErrorDetail::of_message(Code::BadCompression, error.to_string()))?;
                let mut out = memory::vec_of(HEADER_LEN + records.len());
                out.extend_from_slice(header);
                out.extend_from_slice(&records);
                out
            }
        };
        let len = out.len() - FRAME_LEN;
        let Ok(length) = i32::try_from(len) else {
            let message = format!("the batch takes {len} bytes, more than 2 GiB");
            return Err(ErrorDetail::of_message(Code::TooLarge, message));
        };
        // Records have deltas of 32 bits.
        let last_delta: i32 = fitting(self.last_offset.wrapping_sub(self.base_offset));
        let codec = self.codec as i16;
        let Common { appended, producer_id, producer_epoch, transactional, control } = self.common;
        let bit = |is: bool, bit: i16| if is { bit } else { 0 };
        let attributes = codec
            | bit(appended, LOG_APPEND_BIT.into())
            | bit(transactional, TRANSACTIONAL_BIT)
            | bit(control, CONTROL_BIT);
        let mut header = Vec::with_capacity(HEADER_LEN);
        header.extend_from_slice(&self.base_offset.to_be_bytes());
        header.extend_from_slice(&length.to_be_bytes());
        // The broker that appends a batch sets its leader epoch.
        header.extend_from_slice(&(-1i32).to_be_bytes());
        header.extend_from_slice(&MAGIC.to_be_bytes());
        header.extend_from_slice(&0u32.to_be_bytes());
        header.extend_from_slice(&attributes.to_be_bytes());
        header.extend_from_slice(&last_delta.to_be_bytes());
        header.extend_from_slice(&self.base_timestamp.to_be_bytes());
        header.extend_from_slice(&self.largest_timestamp.to_be_bytes());
        header.extend_from_slice(&producer_id.to_be_bytes());
        header.extend_from_slice(&producer_epoch.to_be_bytes());
        header.extend_from_slice(&self.base_sequence.to_be_bytes());
        header.extend_from_slice(&self.count.to_be_bytes());
        out[..HEADER_LEN].copy_from_slice(&header);
        set_checksum(&mut out);
        Ok(out)
    }
}
