//! Messages of Kafka's formats 0 and 1, the predecessors of record batches. The KIP-82 drafts extend them.
//!
//! ```text
//!   ┌──────────────┬────────────┬─────────┬────────────┬─────────────────┬─────────────────┬─────┬───────┐
//!   │ int64 offset │ int32 size │ u32 crc │ int8 magic │ int8 attributes │ int64 timestamp │ key │ value │
//!   └──────────────┴────────────┴─────────┴────────────┴─────────────────┴─────────────────┴─────┴───────┘
//!                                ◀────────────────────────────── size ──────────────────────────────▶
//! ```
//!
//! Big-endian; key and value after an int32 length, -1 for null; the CRC-32 covers magic to the end. Magic 0 has no
//! timestamp. Attribute bits 0–2 are the codec, bit 3 (from magic 1 on) the type of the timestamp.

use super::nullable_bytes;
use crate::cursor::Cursor;
use crate::error::Code;
use crate::field::FieldValue;
use crate::formats::checksum::{crc32, mismatch};
use crate::log::{Log, Result};
use crate::traits::Opened;
use crate::value::ByteOrder::Big;

pub const CODEC_BITS: u8 = 0x07;
pub const LOG_APPEND_BIT: u8 = 0x08;

/// Length of the frame's prefix, which `size` excludes.
pub const FRAME_LEN: usize = 12;

/// Offset of the magic in a message after its frame, and in a record batch.
pub const MAGIC_OFFSET: usize = 4;
pub const ATTRIBUTES_OFFSET: usize = 5;

// Indexes of fields.
pub const OFFSET: usize = 0;
pub const MAGIC: usize = 2;
pub const ATTRIBUTES: usize = 3;
pub const TIMESTAMP: usize = 4;
pub const KEY: usize = 5;
pub const VALUE: usize = 6;
pub const TOMBSTONE: usize = 7;

/// Offset, checksum, magic, attributes, timestamp, key, value, and whether the value is null.
pub type LegacyFields<'a> = [FieldValue<'a>; 8];

/// A message after its frame, and the offset of the frame.
pub struct Framed<'a> {
    pub offset: i64,
    pub message: Cursor<'a>,
}

/// Reads a frame, and moves the cursor to the end of its message.
pub fn open_frame<'a, R: Log>(cursor: &mut Cursor<'a>, log: &mut R) -> Result<Framed<'a>> {
    let offset = cursor.number("offset", Big, log)?;
    let size = cursor.length32("message size", log)?;
    Ok(Framed { offset, message: cursor.split(size, "message", log)? })
}

/// A message, and the offset of its value, which is `None` if the message ends within the length of the value.
pub struct Message<'a> {
    pub opened: Opened<'a, LegacyFields<'a>>,
    pub value_offset: Option<usize>,
}

pub fn open_message<'a, R: Log>(frame: Framed<'a>, log: &mut R) -> Result<Message<'a>> {
    Head::open(frame, None, log)?.finish(log, open_body)
}

/// A message up to its attributes, and the bytes after them.
pub(super) struct Head<'a> {
    offset: i64,
    crc: u32,
    pub magic: i8,
    attributes: i8,
    pub attributes_offset: usize,
    rest: Cursor<'a>,
}

impl<'a> Head<'a> {
    /// Reads a head. `later` is the magic of a later format, and the attribute bits that it defines.
    pub fn open<R: Log>(frame: Framed<'a>, later: Option<(i8, u8)>, log: &mut R) -> Result<Head<'a>> {
        let Framed { offset, message: mut rest } = frame;
        let crc_offset = rest.offset();
        let crc: u32 = rest.number("crc", Big, log)?;
        let covered = rest.peek_rest();
        let magic_offset = rest.offset();
        let magic: i8 = rest.number("magic", Big, log)?;
        let defined = match (magic, later) {
            (0, _) => CODEC_BITS,
            (1, _) => CODEC_BITS | LOG_APPEND_BIT,
            (_, Some((later, bits))) if later == magic => bits,
            _ => return Err(log.fatal(Code::BadMagic, Some(magic_offset), || unknown_magic(magic))),
        };
        let computed = crc32(covered);
        if computed != crc {
            log.error(Code::BadCrc, Some(crc_offset), || mismatch(crc, computed))?;
        }
        let attributes_offset = rest.offset();
        let attributes: i8 = rest.number("attributes", Big, log)?;
        let undefined = attributes as u8 & !defined;
        if undefined != 0 {
            log.error(Code::BadAttributes, Some(attributes_offset), || undefined_bits(undefined))?;
        }
        Ok(Head { offset, crc, magic, attributes, attributes_offset, rest })
    }

    pub fn bits(&self) -> u8 {
        self.attributes as u8
    }

    /// Reads timestamp and key; `body` reads the rest.
    pub fn finish<R: Log>(
        mut self,
        log: &mut R,
        body: impl FnOnce(&mut Cursor<'a>, &mut R) -> Result<Body<'a>>,
    ) -> Result<Message<'a>> {
        let timestamp = match self.magic {
            0 => FieldValue::Null,
            _ => FieldValue::Int64(self.rest.number("timestamp", Big, log)?),
        };
        let key = match self.rest.nullable_length32("key length", log)? {
            None => FieldValue::Null,
            Some(len) => FieldValue::Binary(self.rest.bytes(len, "key", log)?),
        };
        let Body { headers, value, value_offset } = body(&mut self.rest, log)?;
        let fields = [
            FieldValue::Int64(self.offset),
            FieldValue::Int64(self.crc.into()),
            FieldValue::Int64(self.magic.into()),
            FieldValue::Int64(self.attributes.into()),
            timestamp,
            key,
            value.unwrap_or(FieldValue::Null),
            // For an unreadable value, it is unknown whether it is null.
            value.map_or(FieldValue::Null, |value| FieldValue::Bool(value == FieldValue::Null)),
        ];
        Ok(Message { opened: Opened { headers, fields }, value_offset })
    }
}

/// Fields after the key; `value` is `None` if it is unreadable.
pub(super) struct Body<'a> {
    pub headers: Option<Cursor<'a>>,
    pub value: Option<FieldValue<'a>>,
    pub value_offset: Option<usize>,
}

/// Reads a value, which ends the message.
pub(super) fn open_body<'a, R: Log>(rest: &mut Cursor<'a>, log: &mut R) -> Result<Body<'a>> {
    const LENGTH_LEN: usize = 4;
    let value_offset = (rest.remaining() >= LENGTH_LEN).then(|| rest.offset() + LENGTH_LEN);
    let value = nullable_bytes(rest, "value length", "value", log)?;
    if value.is_some() {
        rest.nothing_after("value", log)?;
    }
    Ok(Body { headers: None, value, value_offset })
}

pub fn unknown_magic(magic: impl Into<i64>) -> String {
    format!("magic {} is unknown: 0, 1 and 2 are known", magic.into())
}

pub(super) fn undefined_bits(bits: u8) -> String {
    format!("attribute bits 0x{bits:02x} are not defined")
}
