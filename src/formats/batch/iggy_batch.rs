//! `iggy-batch`: messages of Apache Iggy 0.11, as clients send them and polls return them.
//!
//! ```text
//!   batch header, 256 bytes
//!    0 ┌──────────────────┬─────────────────┬────────────────────┬──────────────────────┐
//!      │ u64 partition_id │ u64 base_offset │ u64 base_timestamp │ u64 origin_timestamp │
//!   32 ├──────────────────┼─────────────────┴──┬───────────┬─────┴────────────────────────┤
//!      │ u64 batch_length │ u64 batch_checksum │ u32 count │ 0 or, at 52, a producer; 0 … │
//!      └──────────────────┴────────────────────┴───────────┴──────────────────────────────┘
//!   frame, 48 bytes, then its payload and its headers
//!    0 ┌──────────────┬──────────────────────────────────────┐
//!      │ u64 checksum │ u128 id                              │
//!   24 ├──────────────┴───┬─────────────────────┬────────────┤
//!      │ u32 offset_delta │ u32 timestamp_delta │ u32 headers_len │ u32 payload_len │ u64 0 │
//!   48 ├─────────┬────────┴───┬─────────────────┴────────────┘
//!      │ payload │ iggy block │
//!      └─────────┴────────────┘
//! ```
//!
//! Little-endian, times in microseconds. The length counts the header. The checksum of a frame is XXH3-64 of the rest
//! of the frame, payload and headers; that of a batch covers its header up to the length, its count, its producer, if
//! any, and the checksums of its frames. The server stamps a batch once: all its messages have `base_timestamp`. A poll
//! returns `u32 partition, u64 current_offset, u32 count` before its batches, later releases 24 bytes more. The first
//! batch is found by a valid checksum, or at least by a valid length and reserved zeros.
//!
//! Differences from the reference implementation (`iggy_binary_protocol` 0.11.1): those of the headers.

use std::hash::Hasher;

use twox_hash::XxHash3_64;

use crate::cursor::{Cursor, too_short};
use crate::error::{Code, format_count};
use crate::field::{Field, FieldType, FieldValue, Role};
use crate::formats::checksum::mismatch;
use crate::formats::headers::iggy::Iggy;
use crate::formats::message::iggy_message::open_parts;
use crate::formats::message::signed;
use crate::log::{CollectErrors, Log, Result, Stop};
use crate::options::ReadOptions;
use crate::traits::{BatchFormat, FramePosition, MessageFormat, MessageReceiver, Opened, Receiver};
use crate::value::ByteOrder::Little;

pub struct IggyBatch;

pub struct Frame;

const HEADER_LEN: usize = 256;
const FRAME_LEN: usize = 48;
/// Possible lengths of the prefix of a poll.
const PREFIXES: [usize; 3] = [0, 16, 40];

// Offsets in a batch header.
const LENGTH: usize = 32;
const CHECKSUM: usize = 40;
const COUNT: usize = 48;
const PRODUCER: usize = 52;
const RESERVED: usize = 72;

impl BatchFormat for IggyBatch {
    const NAME: &'static str = "iggy-batch";
    const SOURCE: &'static str = "Apache Iggy 0.11: batch as sent and as polled";
    const LAYOUT: &'static str = "[polled prefix], then 256-byte batch headers, each with its 48-byte frames";
    type Message = Frame;
    type Fields<'a> = [FieldValue<'a>; 6];

    fn messages<'a, V: MessageReceiver<Batch = Self>>(
        mut cursor: Cursor<'a>,
        _: ReadOptions,
        log: &mut CollectErrors,
        receiver: &mut Receiver<'_, 'a, V>,
    ) -> Result {
        let mut resumed = receiver.resume();
        if cursor.offset() == 0 && resumed.is_none() {
            let prefix = prefix_len(cursor.peek_rest());
            cursor.bytes(prefix, "polled prefix", log)?;
        }
        while cursor.remaining() > 0 {
            read_batch(&mut cursor, resumed.take(), log, receiver)?;
        }
        Ok(())
    }
}

/// Offset of the first batch; 0 if none is found, so that errors refer to the first bytes.
fn prefix_len(data: &[u8]) -> usize {
    if PREFIXES.contains(&data.len()) && data.get(12..16).is_none_or(|count| count == [0; 4]) {
        return data.len(); // A poll without messages.
    }
    let begins = |looks_right: fn(&[u8]) -> bool| {
        PREFIXES.into_iter().find(|offset| data.get(*offset..).is_some_and(looks_right))
    };
    begins(checksum_holds).or_else(|| begins(is_plausible)).unwrap_or(0)
}

/// Returns the first batch, if its length and reserved bytes are valid.
fn plausible(bytes: &[u8]) -> Option<&[u8]> {
    let len = usize::try_from(number(bytes, LENGTH)?).ok().filter(|len| *len >= HEADER_LEN)?;
    let batch = bytes.get(..len)?;
    batch[RESERVED..HEADER_LEN].iter().all(|byte| *byte == 0).then_some(batch)
}

fn is_plausible(bytes: &[u8]) -> bool {
    plausible(bytes).is_some()
}

fn checksum_holds(bytes: &[u8]) -> bool {
    let holds = |batch| Some(batch_checksum(batch)? == number(batch, CHECKSUM)?);
    plausible(bytes).and_then(holds).unwrap_or(false)
}

fn number(bytes: &[u8], offset: usize) -> Option<u64> {
    bytes.get(offset..offset + 8)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
}

/// Computes the checksum of a batch; `None` if the length of a frame is invalid.
fn batch_checksum(batch: &[u8]) -> Option<u64> {
    let mut hasher = XxHash3_64::new();
    hasher.write(batch.get(..CHECKSUM)?);
    hasher.write(batch.get(COUNT..PRODUCER)?);
    if *batch.get(PRODUCER)? == 1 {
        // Flag, id, epoch and sequence of the producer, without the zeros between them.
        for part in [52..53, 56..66, 68..72] {
            hasher.write(batch.get(part)?);
        }
    }
    let mut frames = batch.get(HEADER_LEN..)?;
    while !frames.is_empty() {
        hasher.write(frames.get(..8)?);
        let len = |offset: usize| {
            frames.get(offset..offset + 4)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes) as usize)
        };
        frames = frames.get(FRAME_LEN.checked_add(len(32)?)?.checked_add(len(36)?)?..)?;
    }
    Some(hasher.finish())
}

/// Base values of a batch, to which frames add deltas.
struct Base {
    offset: u64,
    timestamp: u64,
    origin: u64,
}

fn read_batch<'a, V: MessageReceiver<Batch = IggyBatch>>(
    cursor: &mut Cursor<'a>,
    resumed: Option<FramePosition>,
    log: &mut CollectErrors,
    receiver: &mut Receiver<'_, 'a, V>,
) -> Result {
    // Errors of the batch belong to its first message.
    log.begin_message();
    let earlier_errors = log.errors().len();
    let start = cursor.offset();
    let (base, count, count_offset, mut frames) = open_batch(cursor, resumed.is_none(), log)?;
    receiver.enter(start..cursor.offset());
    let first = resumed.unwrap_or_default();
    let begin = frames.offset();
    frames.skip(first.offset);
    let mut read = first.count;
    while frames.remaining() > 0 {
        if read > first.count {
            log.begin_message();
        }
        let opened = open_frame(&mut frames, &base, log)?;
        read += 1;
        if let Err(stop) = receiver.message(&opened.fields, opened.headers, log) {
            receiver.stop_before(FramePosition { offset: frames.offset() - begin, count: read, ..first });
            return Err(stop);
        }
    }
    if read != count as usize {
        if read > first.count {
            log.begin_message();
        }
        log.error(Code::CountTooLarge, Some(count_offset), || {
            format!("the batch announces {} and has {read}", format_count(count as usize, "message"))
        })?;
        receiver.unreadable(log)?;
        return Err(Stop);
    }
    if read == first.count {
        match log.errors().len() > earlier_errors {
            true => receiver.unreadable(log)?,
            false => log.cancel_message(),
        }
    }
    Ok(())
}

/// Reads the header of a batch: base values, the number of frames and the offset of that number; also returns the
/// frames.
fn open_batch<'a, R: Log>(
    cursor: &mut Cursor<'a>,
    verify: bool,
    log: &mut R,
) -> Result<(Base, u32, usize, Cursor<'a>)> {
    let whole = cursor.peek_rest();
    let mut header = cursor.split(HEADER_LEN, "batch header", log)?;
    header.number::<u64, _>("partition id", Little, log)?;
    let base = Base {
        offset: header.number("base offset", Little, log)?,
        timestamp: header.number("base timestamp", Little, log)?,
        origin: header.number("origin timestamp", Little, log)?,
    };
    let len_offset = header.offset();
    let len: u64 = header.number("batch length", Little, log)?;
    let checksum_offset = header.offset();
    let checksum: u64 = header.number("batch checksum", Little, log)?;
    let count_offset = header.offset();
    let count = header.number("message count", Little, log)?;
    check_zeros(&mut header, log)?;
    let sized = usize::try_from(len).unwrap_or(usize::MAX);
    if sized < HEADER_LEN {
        let stored = format_count(sized, "byte");
        return Err(log.fatal(Code::WrongSize, Some(len_offset), || {
            format!("batch of {stored} where its header takes {HEADER_LEN}")
        }));
    }
    if sized > whole.len() {
        return Err(log.fatal(Code::Truncated, Some(len_offset), || too_short("the batch", sized, whole.len())));
    }
    let frames = cursor.split(sized - HEADER_LEN, "frames", log)?;
    match Some(&whole[..sized]).filter(|_| verify).and_then(batch_checksum) {
        Some(computed) if computed != checksum => {
            log.error(Code::BadCrc, Some(checksum_offset), || mismatch(checksum, computed))?;
        }
        _ => {}
    }
    Ok((base, count, count_offset, frames))
}

/// Reads the rest of a batch header: a producer or zeros, then zeros.
fn check_zeros<R: Log>(header: &mut Cursor<'_>, log: &mut R) -> Result {
    let producer_offset = header.offset();
    let flag: u8 = header.number("producer flag", Little, log)?;
    let producer = header.bytes(RESERVED - PRODUCER - 1, "producer", log)?;
    let is_set = |bytes: &[u8]| bytes.iter().any(|byte| *byte != 0);
    let not_zero = || "the reserved bytes are not 0".to_string();
    match flag {
        // Between flag and id, and between epoch and sequence.
        1 if is_set(&producer[..3]) || is_set(&producer[13..15]) => {
            log.error(Code::BadAttributes, Some(producer_offset), not_zero)?;
        }
        0 if is_set(producer) => log.error(Code::BadAttributes, Some(producer_offset), not_zero)?,
        0 | 1 => {}
        _ => log.error(Code::BadAttributes, Some(producer_offset), || format!("producer flag {flag} is unknown"))?,
    }
    let reserved_offset = header.offset();
    if is_set(header.bytes(header.remaining(), "reserved", log)?) {
        log.error(Code::BadAttributes, Some(reserved_offset), not_zero)?;
    }
    Ok(())
}

fn open_frame<'a, R: Log>(data: &mut Cursor<'a>, base: &Base, log: &mut R) -> Result<Opened<'a, [FieldValue<'a>; 6]>> {
    let start = data.offset();
    let whole = data.peek_rest();
    let checksum: u64 = data.number("checksum", Little, log)?;
    let id: u128 = data.number("id", Little, log)?;
    let offset: u32 = data.number("offset delta", Little, log)?;
    let timestamp: u32 = data.number("timestamp delta", Little, log)?;
    let (payload, headers) = open_parts(data, log)?;
    let computed = XxHash3_64::oneshot(&whole[8..data.offset() - start]);
    if computed != checksum {
        log.error(Code::BadCrc, Some(start), || mismatch(checksum, computed))?;
    }
    let from = |base: u64, delta: u32| base.saturating_add(delta.into());
    let fields = [
        signed(from(base.offset, offset), "offset", start, log)?,
        // The server stamps a batch once; frames have different origin timestamps.
        signed(base.timestamp, "timestamp", start, log)?,
        signed(from(base.origin, timestamp), "origin timestamp", start, log)?,
        FieldValue::Id(id.to_be_bytes()),
        FieldValue::Uint64(checksum),
        FieldValue::Binary(payload),
    ];
    Ok(Opened { headers: Some(headers), fields })
}

impl MessageFormat for Frame {
    const NAME: &'static str = IggyBatch::NAME;
    const FIELDS: &'static [Field] = &[
        Field::new("offset", FieldType::Natural, Role::Offset),
        Field::new("timestamp", FieldType::Natural, Role::Micros),
        Field::new("origin_timestamp", FieldType::Natural, Role::Origin),
        Field::new("id", FieldType::Id, Role::Id),
        Field::new("checksum", FieldType::Uint64, Role::Derived),
        Field::HEADERS,
        Field::new("payload", FieldType::Binary, Role::Value),
    ];

    type Headers = Iggy;
    type Fields<'a> = [FieldValue<'a>; 6];
}
