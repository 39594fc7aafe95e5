//! `record-batch`: record batches of Kafka, from log segments and from Produce and Fetch requests.
//!
//! ```text
//!   ┌─────────────────┬──────────────┬──────────────────┬──────────────┬─────────┬────────────────┐
//!   │ int64 base      │ int32 length │ int32 leader     │ int8 magic 2 │ u32 crc │ int16          │
//!   │ offset          │              │ epoch            │              │         │ attributes     │
//!   ├─────────────────┴──────┬───────┴──────────┬───────┴──────────────┴──┬──────┴────────────────┤
//!   │ int32 last offset delta│ int64 base       │ int64 largest           │ int64 producer id     │
//!   │                        │ timestamp        │ timestamp               │                       │
//!   ├────────────────────────┼──────────────────┼─────────────┬───────────┴───────────────────────┘
//!   │ int16 producer epoch   │ int32 base       │ int32 count │ records, in a codec
//!   │                        │ sequence         │             │
//!   └────────────────────────┴──────────────────┴─────────────┘
//!   record  varint length, int8 attributes, varint64 timestamp delta, varint offset delta,
//!           varint key length or -1, key, varint value length or -1, value, kafka headers
//! ```
//!
//! Big-endian; the length counts from the leader epoch, the CRC-32C covers attributes to the end, and the codec all
//! records together. Attribute bits 0–2 are the codec, 3 the type of the timestamp, 4 a transaction, 5 a control batch,
//! 6 a delete horizon instead of the base timestamp. With log append time, all records have the largest timestamp.
//! Message formats 0 and 1, which older brokers wrote, are read too.
//!
//! Differences from the reference implementation (`MemoryRecords` of Kafka 4.3.1): a batch that is cut off at the end
//! is an error, which `lenient` ignores; a batch whose checksum does not match returns no record; records are parsed as
//! strictly as headers, and a header count is required.

use super::message_set::{SetLayout, open_set, read_framed, read_frames, unknown_codec};
use crate::codec::Codec;
use crate::cursor::Cursor;
use crate::error::{Code, Direction, Error, format_count};
use crate::field::{Field, FieldType, FieldValue, Role};
use crate::format_info::{Contents, Encoded};
use crate::formats::checksum::{crc32, crc32c, mismatch};
use crate::formats::headers::kafka::Kafka;
use crate::formats::message::legacy::{
    self, CODEC_BITS, Framed, LOG_APPEND_BIT, MAGIC_OFFSET, Message, open_message, unknown_magic,
};
use crate::formats::message::{bytes_of, number_or};
use crate::kernel::SLACK;
use crate::limits::Limits;
use crate::log::{CollectErrors, FailFast, Log, OnLoss, Result, Stop};
use crate::memory;
use crate::number::fitting;
use crate::options::ReadOptions;
use crate::traits::{
    self, BatchFormat, FramePosition, HeadersFormat, MessageFormat, MessageReceiver, Opened, Receiver,
};
use crate::value::ByteOrder::Big;
use crate::varint;

pub struct RecordBatch;

pub struct Record;

pub const MAGIC: i8 = 2;
pub const TRANSACTIONAL_BIT: i16 = 0x10;
pub const CONTROL_BIT: i16 = 0x20;

/// Stored number of a missing producer, epoch, sequence or timestamp.
pub const NONE: i64 = -1;
const NO_SEQUENCE: i32 = -1;

/// Length of the header of a batch.
pub const HEADER_LEN: usize = 61;

// Offsets in that header.
pub const LENGTH_OFFSET: usize = 8;
const CRC_OFFSET: usize = 17;
pub const ATTRIBUTES_OFFSET: usize = 21;
pub const PRODUCER_OFFSET: usize = 43;

// Indexes of fields, in the order of the table without its headers.
pub const OFFSET: usize = 0;
pub const TIMESTAMP: usize = 1;
pub const TIMESTAMP_TYPE: usize = 2;
const KEY: usize = 3;
const VALUE: usize = 4;
pub const PRODUCER_ID: usize = 5;
pub const PRODUCER_EPOCH: usize = 6;
pub const SEQUENCE: usize = 7;
pub const TRANSACTIONAL: usize = 8;
pub const CONTROL: usize = 9;

/// Fields except the headers, in the order of the table.
type Values<'a> = [FieldValue<'a>; 10];

/// Fields of a record, which fit one cache line, so that a sink that drops most records copies little.
#[derive(Clone, Copy)]
pub struct RecordFields<'a> {
    offset: i64,
    timestamp: i64,
    producer_id: i64,
    key: Option<&'a [u8]>,
    value: Option<&'a [u8]>,
    /// -1 for none.
    sequence: i32,
    producer_epoch: i16,
    /// Attributes of the batch, and [`NO_TIMESTAMP`].
    attributes: i16,
}

/// Attribute bit for records without a timestamp, which come from messages of format 0. Kafka does not use this bit.
const NO_TIMESTAMP: i16 = i16::MIN;

impl RecordFields<'_> {
    fn has(&self, attribute: i16) -> bool {
        self.attributes & attribute != 0
    }
}

impl<'a> traits::MessageFields<'a> for RecordFields<'a> {
    type Values = Values<'a>;

    #[inline(always)]
    fn values(&self) -> Values<'a> {
        [
            self.value(OFFSET),
            self.value(TIMESTAMP),
            self.value(TIMESTAMP_TYPE),
            self.value(KEY),
            self.value(VALUE),
            self.value(PRODUCER_ID),
            self.value(PRODUCER_EPOCH),
            self.value(SEQUENCE),
            self.value(TRANSACTIONAL),
            self.value(CONTROL),
        ]
    }

    #[inline(always)]
    fn value(&self, index: usize) -> FieldValue<'a> {
        match index {
            OFFSET => FieldValue::Int64(self.offset),
            TIMESTAMP | TIMESTAMP_TYPE if self.has(NO_TIMESTAMP) => FieldValue::Null,
            TIMESTAMP => FieldValue::Int64(self.timestamp),
            TIMESTAMP_TYPE => FieldValue::Int64(self.has(LOG_APPEND_BIT.into()).into()),
            KEY => self.key.map_or(FieldValue::Null, FieldValue::Binary),
            VALUE => self.value.map_or(FieldValue::Null, FieldValue::Binary),
            PRODUCER_ID => nullable(self.producer_id),
            PRODUCER_EPOCH => nullable(self.producer_epoch.into()),
            SEQUENCE => nullable(self.sequence.into()),
            TRANSACTIONAL => FieldValue::Bool(self.has(TRANSACTIONAL_BIT)),
            _ => FieldValue::Bool(self.has(CONTROL_BIT)),
        }
    }

    #[inline(always)]
    fn byte_len(&self) -> usize {
        self.key.map_or(0, <[u8]>::len) + self.value.map_or(0, <[u8]>::len)
    }
}

impl BatchFormat for RecordBatch {
    const NAME: &'static str = "record-batch";
    const SOURCE: &'static str = "Apache Kafka 4.3.1: record batches, message formats 0, 1 and 2";
    const LAYOUT: &'static str =
        "61-byte batch headers, each with its records, compressed together; older message sets";
    type Message = Record;
    type Fields<'a> = RecordFields<'a>;

    fn messages<'a, V: MessageReceiver<Batch = Self>>(
        cursor: Cursor<'a>,
        options: ReadOptions,
        log: &mut CollectErrors,
        receiver: &mut Receiver<'_, 'a, V>,
    ) -> Result {
        read_frames(cursor, options.lenient, log, receiver, |frame, log, receiver| {
            match frame.message.peek(MAGIC_OFFSET).map(|magic| magic as i8) {
                Some(0 | 1) => return read_framed::<LegacyRecords, V>(frame, options.limits, log, receiver),
                Some(MAGIC) => return read_batch(frame, options.limits, log, receiver),
                Some(other) => {
                    let byte = frame.message.offset() + MAGIC_OFFSET;
                    log.error(Code::BadMagic, Some(byte), || unknown_magic(other))?;
                }
                None => {
                    let (byte, size) = (frame.message.offset(), frame.message.remaining());
                    let message = || format!("a batch of {} has no magic", format_count(size, "byte"));
                    log.error(Code::WrongSize, Some(byte), message)?;
                }
            }
            receiver.unreadable(log)
        })
    }
}

/// Base values and properties shared by the records of a batch.
struct BatchHeader {
    base_offset: i64,
    base_timestamp: i64,
    /// Timestamp of all records, with log append time.
    appended: Option<i64>,
    producer_id: i64,
    producer_epoch: i16,
    base_sequence: i32,
    attributes: i16,
    count: i32,
    count_offset: usize,
}

fn read_batch<'a, V: MessageReceiver<Batch = RecordBatch>>(
    frame: Framed<'a>,
    limits: Limits,
    log: &mut CollectErrors,
    receiver: &mut Receiver<'_, 'a, V>,
) -> Result {
    let resumed = receiver.resume();
    let Ok((header, records, attributes_offset)) = open_batch(frame, resumed.is_none(), log) else {
        return receiver.unreadable(log);
    };
    let codec = header.attributes.to_le_bytes()[0] & CODEC_BITS;
    // Kafka does not decompress a batch without records.
    let is_empty = header.count == 0 && records.remaining() == 0;
    let first = resumed.unwrap_or_default();
    if codec == 0 || is_empty {
        return read_records(&header, records, first, log, receiver);
    }
    let mut buffer = receiver.take_buffer();
    let content = match resumed {
        Some(position) => Ok(position.content_len),
        None => decompress_records(codec, records, limits, attributes_offset, log, &mut buffer),
    };
    let read = match content {
        Err(Stop) => receiver.unreadable(log),
        Ok(len) => {
            // The kernels read beyond the records.
            let readable = len + SLACK;
            let more = readable.saturating_sub(buffer.len());
            memory::reserve(&mut buffer, more);
            buffer.resize(readable.max(buffer.len()), 0);
            let content = &buffer[..readable];
            receiver.with_temporary(|receiver| {
                log.with_error_byte(records.offset(), |log| {
                    let first = FramePosition { content_len: len, ..first };
                    read_records(&header, Cursor::within(content, 0..len), first, log, receiver)
                })
            })
        }
    };
    receiver.return_buffer(buffer);
    read
}

/// Reads the header of a batch; also returns its records and the offset of its attributes.
fn open_batch<'a, R: Log>(frame: Framed<'a>, verify: bool, log: &mut R) -> Result<(BatchHeader, Cursor<'a>, usize)> {
    let Framed { offset: base_offset, message: mut batch } = frame;
    let _: i32 = batch.number("leader epoch", Big, log)?;
    let _: i8 = batch.number("magic", Big, log)?;
    let crc_offset = batch.offset();
    let crc: u32 = batch.number("crc", Big, log)?;
    let computed = if verify { crc32c(batch.peek_rest()) } else { crc };
    if computed != crc {
        // The content of the batch is not trusted.
        return Err(log.fatal(Code::BadCrc, Some(crc_offset), || mismatch(crc, computed)));
    }
    let attributes_offset = batch.offset();
    let attributes: i16 = batch.number("attributes", Big, log)?;
    let _: i32 = batch.number("last offset delta", Big, log)?;
    let base_timestamp: i64 = batch.number("base timestamp", Big, log)?;
    let largest_timestamp: i64 = batch.number("largest timestamp", Big, log)?;
    let producer_id: i64 = batch.number("producer id", Big, log)?;
    let producer_epoch: i16 = batch.number("producer epoch", Big, log)?;
    let base_sequence: i32 = batch.number("base sequence", Big, log)?;
    let count_offset = batch.offset();
    let count: i32 = batch.number("record count", Big, log)?;
    if count < 0 {
        return Err(log.fatal(Code::NegativeCount, Some(count_offset), || format!("record count {count} is negative")));
    }
    let header = BatchHeader {
        base_offset,
        base_timestamp,
        appended: (attributes.to_le_bytes()[0] & LOG_APPEND_BIT != 0).then_some(largest_timestamp),
        producer_id,
        producer_epoch,
        base_sequence,
        attributes,
        count,
        count_offset,
    };
    Ok((header, batch, attributes_offset))
}

/// Decompresses the records to the beginning of a buffer; returns their length.
fn decompress_records(
    codec: u8,
    records: Cursor<'_>,
    limits: Limits,
    byte: usize,
    log: &mut CollectErrors,
    buffer: &mut Vec<u8>,
) -> Result<usize> {
    let Some(codec) = Codec::from_attributes(codec) else { return Err(unknown_codec(codec, byte, log)) };
    let bytes = records.peek_rest();
    log.label(records.offset(), records.offset() + bytes.len(), "records", || codec.name().into());
    limits.decompress(codec, bytes, false, records.offset(), log, buffer)
}

/// Returns a batch with a recomputed checksum, so that its records can be read although the stored checksum is wrong.
pub fn with_checksum(data: &[u8]) -> Vec<u8> {
    let mut batch = Vec::new();
    memory::extend(&mut batch, data);
    if batch.len() >= HEADER_LEN && batch[legacy::FRAME_LEN + MAGIC_OFFSET] == MAGIC as u8 {
        set_checksum(&mut batch);
    } else if batch.len() > legacy::FRAME_LEN + 4 {
        let (head, covered) = batch.split_at_mut(legacy::FRAME_LEN + 4);
        head[legacy::FRAME_LEN..].copy_from_slice(&crc32(covered).to_be_bytes());
    }
    batch
}

/// Sets the checksum of a batch, which has at least a header.
pub fn set_checksum(batch: &mut [u8]) {
    let crc = crc32c(&batch[ATTRIBUTES_OFFSET..]);
    batch[CRC_OFFSET..][..4].copy_from_slice(&crc.to_be_bytes());
}

/// Returns a batch in the form of an idempotent producer: with its id, its epoch, and the sequence of the first record.
pub fn with_producer(data: &[u8], producer_id: i64, producer_epoch: i16, sequence: i32) -> Result<Vec<u8>, Error> {
    if data.len() < HEADER_LEN {
        return Err(Error::Value(format!("a record batch has at least {HEADER_LEN} bytes")));
    }
    let mut batch = Vec::new();
    memory::extend(&mut batch, data);
    batch[PRODUCER_OFFSET..][..8].copy_from_slice(&producer_id.to_be_bytes());
    batch[PRODUCER_OFFSET + 8..][..2].copy_from_slice(&producer_epoch.to_be_bytes());
    batch[PRODUCER_OFFSET + 10..][..4].copy_from_slice(&sequence.to_be_bytes());
    set_checksum(&mut batch);
    Ok(batch)
}

/// Decompresses the batch at the beginning of these bytes. A compressed set of an older format is replaced by its
/// messages.
pub fn decompress_batch(data: &[u8], limits: Limits) -> Result<Vec<u8>, Error> {
    let mut log = CollectErrors::default();
    let opened = open_compressed(data, limits, &mut log);
    log.finish_parse(opened, Direction::Decode, RecordBatch::NAME)
}

fn open_compressed(data: &[u8], limits: Limits, log: &mut CollectErrors) -> Result<Vec<u8>> {
    let frame = legacy::open_frame(&mut Cursor::new(data), log)?;
    if frame.message.peek(MAGIC_OFFSET) != Some(MAGIC as u8) {
        return open_set(LegacyRecords::open(frame, log)?, limits, log);
    }
    let (header, records, attributes_offset) = open_batch(frame, true, log)?;
    let mut buffer = Vec::new();
    match header.attributes.to_le_bytes()[0] & CODEC_BITS {
        0 => memory::extend(&mut buffer, records.peek_rest()),
        codec => {
            let len = decompress_records(codec, records, limits, attributes_offset, log, &mut buffer)?;
            buffer.truncate(len);
        }
    }
    let mut batch = memory::vec_of(HEADER_LEN + buffer.len());
    batch.extend_from_slice(&data[..HEADER_LEN]);
    batch.extend_from_slice(&buffer);
    let len: i32 = fitting(batch.len() - legacy::FRAME_LEN);
    batch[LENGTH_OFFSET..][..4].copy_from_slice(&len.to_be_bytes());
    batch[ATTRIBUTES_OFFSET + 1] &= !CODEC_BITS;
    set_checksum(&mut batch);
    Ok(batch)
}

/// Passes the records of a batch to the receiver, from `first` on. An invalid record does not end reading; an invalid
/// length does.
fn read_records<'a, V: MessageReceiver<Batch = RecordBatch>>(
    batch: &BatchHeader,
    mut records: Cursor<'a>,
    first: FramePosition,
    log: &mut CollectErrors,
    receiver: &mut Receiver<'_, 'a, V>,
) -> Result {
    let begin = records.offset();
    records.skip(first.offset);
    let first_index: i32 = fitting(first.count); // It is below the number of records, an `i32`.
    let mut fast = FailFast::new(OnLoss::Raise);
    let mut is_first = true;
    let mut next_message = |log: &mut CollectErrors| {
        if !std::mem::replace(&mut is_first, false) {
            log.begin_message();
        }
    };
    for index in first_index..batch.count {
        next_message(log);
        if records.remaining() == 0 {
            let message =
                || format!("the batch announces {} and has {index}", format_count(batch.count as usize, "record"));
            log.error(Code::CountTooLarge, Some(batch.count_offset), message)?;
            return receiver.unreadable(log);
        }
        if !log.has_labels() {
            let mut ahead = records;
            if let Ok(opened) =
                next_record(&mut ahead, &mut fast).and_then(|record| open_record(batch, record, &mut fast))
            {
                records = ahead;
                if let Err(stop) = receiver.message(&opened.fields, opened.headers, log) {
                    receiver.stop_before(FramePosition {
                        offset: records.offset() - begin,
                        count: index as usize + 1,
                        ..first
                    });
                    return Err(stop);
                }
                continue;
            }
        }
        // The record is parsed again, for errors and labels.
        let Ok(record) = next_record(&mut records, log) else { return receiver.unreadable(log) };
        match open_record(batch, record, log) {
            Ok(opened) => receiver.message(&opened.fields, opened.headers, log)?,
            Err(Stop) => receiver.unreadable(log)?,
        }
    }
    match records.remaining() {
        0 if batch.count == first_index => log.cancel_message(),
        0 => {}
        left => {
            next_message(log);
            let message = || format!("{} left after the last record", format_count(left, "byte"));
            log.error(Code::TrailingBytes, Some(records.offset()), message)?;
            receiver.unreadable(log)?;
        }
    }
    Ok(())
}

#[inline(always)]
fn next_record<'a, R: Log>(records: &mut Cursor<'a>, log: &mut R) -> Result<Cursor<'a>> {
    let len = records.length("record length", false, log)?;
    records.split(len, "record", log)
}

// Inlined, so that the variants of fields are known to the sink at compile time.
#[inline(always)]
fn open_record<'a, R: Log>(
    batch: &BatchHeader,
    mut record: Cursor<'a>,
    log: &mut R,
) -> Result<Opened<'a, RecordFields<'a>>> {
    // Kafka has not defined any attributes of a record yet.
    let _: i8 = record.number("record attributes", Big, log)?;
    let timestamp_delta = record.varlong("timestamp delta", log)?;
    let offset_delta = record.varint("offset delta", false, log)?;
    let key = nullable_bytes(&mut record, "key length", "key", log)?;
    let value = nullable_bytes(&mut record, "value length", "value", log)?;
    if record.remaining() == 0 {
        return Err(
            log.fatal(Code::Truncated, Some(record.offset()), || "the record ends before its header count".into())
        );
    }
    let sequence = match batch.base_sequence {
        base if base < 0 => NO_SEQUENCE,
        // Sequences wrap from the largest to 0.
        base => base.wrapping_add(offset_delta) & i32::MAX,
    };
    let fields = RecordFields {
        offset: batch.base_offset.wrapping_add(offset_delta.into()),
        timestamp: batch.appended.unwrap_or(batch.base_timestamp.wrapping_add(timestamp_delta)),
        producer_id: batch.producer_id,
        key,
        value,
        sequence,
        producer_epoch: batch.producer_epoch,
        attributes: batch.attributes & !NO_TIMESTAMP,
    };
    Ok(Opened { headers: Some(record), fields })
}

/// Reads `varint length or -1, bytes`.
#[inline(always)]
fn nullable_bytes<'a, R: Log>(
    record: &mut Cursor<'a>,
    length: &'static str,
    field: &'static str,
    log: &mut R,
) -> Result<Option<&'a [u8]>> {
    let Some(len) = record.nullable_length(length, false, log)? else { return Ok(None) };
    record.bytes(len, field, log).map(Some)
}

fn nullable(number: i64) -> FieldValue<'static> {
    if number == NONE { FieldValue::Null } else { FieldValue::Int64(number) }
}

/// Layout of messages of formats 0 and 1, which are returned as records.
struct LegacyRecords;

impl SetLayout for LegacyRecords {
    type Batch = RecordBatch;

    fn open<'a, R: Log>(frame: Framed<'a>, log: &mut R) -> Result<Message<'a>> {
        open_message(frame, log)
    }

    fn fields<'a>(fields: legacy::LegacyFields<'a>, set: Option<u8>) -> RecordFields<'a> {
        // Messages of a compressed set have the timestamp type of the set.
        let attributes = set.unwrap_or(number_or(fields[legacy::ATTRIBUTES], 0).to_le_bytes()[0]) & LOG_APPEND_BIT;
        let has_timestamp = fields[legacy::TIMESTAMP] != FieldValue::Null;
        RecordFields {
            offset: number_or(fields[legacy::OFFSET], 0),
            timestamp: number_or(fields[legacy::TIMESTAMP], NONE),
            producer_id: NONE,
            key: bytes_of(fields[legacy::KEY]),
            value: bytes_of(fields[legacy::VALUE]),
            sequence: NO_SEQUENCE,
            producer_epoch: -1,
            attributes: i16::from(attributes) | if has_timestamp { 0 } else { NO_TIMESTAMP },
        }
    }
}

impl MessageFormat for Record {
    const NAME: &'static str = RecordBatch::NAME;
    const FIELDS: &'static [Field] = &[
        Field::new("offset", FieldType::Int64, Role::Offset),
        Field::new("timestamp", FieldType::Int64, Role::Millis),
        Field::new("timestamp_type", FieldType::Int8, Role::Derived),
        Field::new("key", FieldType::Binary, Role::Key),
        Field::new("value", FieldType::Binary, Role::Value),
        Field::HEADERS,
        Field::new("producer_id", FieldType::Int64, Role::Derived),
        Field::new("producer_epoch", FieldType::Int64, Role::Derived),
        Field::new("sequence", FieldType::Int64, Role::Derived),
        Field::new("transactional", FieldType::Bool, Role::Derived),
        Field::new("control", FieldType::Bool, Role::Derived),
    ];

    type Headers = Kafka;
    type Fields<'a> = Values<'a>;

    fn encode<R: Log>(message: Contents<'_>, log: &mut R, out: &mut Vec<u8>) -> Result<Encoded> {
        let offset = number_or(message.fields[OFFSET], 0);
        let Ok(offset_delta) = i32::try_from(offset) else {
            return Err(log.fatal(Code::OutOfRange, None, || format!("offset {offset} is too far from the first")));
        };
        let headers = match Kafka::encoded_len(message.headers, log)? {
            // A record always has a count.
            0 => 1,
            len => len,
        };
        let (key, value) = (bytes_of(message.fields[KEY]), bytes_of(message.fields[VALUE]));
        let timestamp_delta = number_or(message.fields[TIMESTAMP], 0);
        write_record((timestamp_delta, offset_delta), [key, value], headers, out).map_err(|len| {
            log.fatal(Code::TooLarge, None, || format!("the record takes {len} bytes, more than 2 GiB"))
        })?;
        match message.headers {
            [] => out.push(0),
            _ => Kafka::encode_into(message.headers, out),
        }
        Ok(Encoded::Message)
    }
}

/// Writes a record up to its headers, which take this many bytes, and reserves memory for them. If the record takes more
/// than 2 GiB, writes nothing and returns its length.
#[inline]
pub fn write_record(
    (timestamp_delta, offset_delta): (i64, i32),
    [key, value]: [Option<&[u8]>; 2],
    headers: usize,
    out: &mut Vec<u8>,
) -> Result<(), usize> {
    let (timestamp_delta, offset_delta) = (varint::zigzag_64(timestamp_delta), varint::zigzag(offset_delta));
    let field_len = |bytes: Option<&[u8]>| bytes.map_or(1, |bytes| varint::count_len(bytes.len()) + bytes.len());
    let len =
        1 + varint::len(timestamp_delta) + varint::len(offset_delta) + field_len(key) + field_len(value) + headers;
    if len > i32::MAX as usize {
        return Err(len);
    }
    memory::reserve(out, varint::MAX_LEN + len);
    varint::write_count(len, out);
    out.push(0);
    varint::write(timestamp_delta, out);
    varint::write(offset_delta, out);
    for field in [key, value] {
        match field {
            None => varint::write(varint::zigzag(-1), out),
            Some(bytes) => {
                varint::write_count(bytes.len(), out);
                out.extend_from_slice(bytes);
            }
        }
    }
    Ok(())
}
