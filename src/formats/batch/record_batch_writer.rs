//! Writes a record batch, as a producer does.

use super::Builder;
use super::record_batch::{
    CONTROL, CONTROL_BIT, HEADER_LEN, MAGIC, NONE, OFFSET, PRODUCER_EPOCH, PRODUCER_ID, RecordBatch, SEQUENCE,
    TIMESTAMP, TIMESTAMP_TYPE, TRANSACTIONAL, TRANSACTIONAL_BIT,
};
use crate::codec::{Codec, compress};
use crate::error::{Code, ErrorDetail};
use crate::formats::checksum::crc32c;
use crate::formats::message::legacy::{FRAME_LEN, LOG_APPEND_BIT};
use crate::formats::message::number_or;
use crate::memory;
use crate::number::fitting;
use crate::traits::FieldValue;

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
    common: Common,
    base_offset: i64,
    last_offset: i64,
    base_timestamp: i64,
    largest_timestamp: i64,
    base_sequence: i32,
    count: i32,
    records: Vec<u8>,
}

impl Builder for RecordBatchBuilder {
    type Batch = RecordBatch;
    const CODECS: &'static [Codec] = &Codec::ALL;

    fn new(first: &[FieldValue<'_>], codec: Codec) -> Result<Self, ErrorDetail> {
        let out_of_range = |message: &str| ErrorDetail::of_message(Code::OutOfRange, message);
        let sequence = i32::try_from(number_or(first[SEQUENCE], NONE));
        let sequence = sequence.map_err(|_| out_of_range("the sequence does not fit 32 bits"))?;
        let timestamp = number_or(first[TIMESTAMP], NONE);
        Ok(RecordBatchBuilder {
            codec,
            common: Common::of(first).ok_or_else(|| out_of_range("the producer epoch does not fit 16 bits"))?,
            base_offset: number_or(first[OFFSET], 0),
            last_offset: number_or(first[OFFSET], 0).wrapping_sub(1),
            base_timestamp: timestamp,
            largest_timestamp: timestamp,
            base_sequence: sequence,
            count: 0,
            records: Vec::new(),
        })
    }

    fn prepare(&mut self, fields: &mut [FieldValue<'_>]) -> Result<(), ErrorDetail> {
        let reject = |code, message: String| Err(ErrorDetail::of_message(code, message));
        let offset = number_or(fields[OFFSET], self.last_offset.wrapping_add(1));
        if offset <= self.last_offset || offset < self.base_offset {
            return reject(Code::OutOfRange, format!("offset {offset} is not after {}", self.last_offset));
        }
        let delta = offset.wrapping_sub(self.base_offset);
        let sequence = match i64::from(self.base_sequence) {
            NONE => NONE,
            base => (base + delta) & i64::from(i32::MAX),
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
        memory::extend(&mut self.records, message);
    }

    fn finish(self) -> Result<Vec<u8>, ErrorDetail> {
        let records = compress(self.codec, &self.records)
            .map_err(|error| ErrorDetail::of_message(Code::BadCompression, error.to_string()))?;
        let len = HEADER_LEN - FRAME_LEN + records.len();
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
        let mut covered = memory::vec_of(len);
        covered.extend_from_slice(&attributes.to_be_bytes());
        covered.extend_from_slice(&last_delta.to_be_bytes());
        covered.extend_from_slice(&self.base_timestamp.to_be_bytes());
        covered.extend_from_slice(&self.largest_timestamp.to_be_bytes());
        covered.extend_from_slice(&producer_id.to_be_bytes());
        covered.extend_from_slice(&producer_epoch.to_be_bytes());
        covered.extend_from_slice(&self.base_sequence.to_be_bytes());
        covered.extend_from_slice(&self.count.to_be_bytes());
        covered.extend_from_slice(&records);
        let mut out = memory::vec_of(FRAME_LEN + len);
        out.extend_from_slice(&self.base_offset.to_be_bytes());
        out.extend_from_slice(&length.to_be_bytes());
        // The broker that appends a batch sets its leader epoch.
        out.extend_from_slice(&(-1i32).to_be_bytes());
        out.extend_from_slice(&MAGIC.to_be_bytes());
        out.extend_from_slice(&crc32c(&covered).to_be_bytes());
        out.extend_from_slice(&covered);
        Ok(out)
    }
}
