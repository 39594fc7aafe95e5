//! `kip82-message`, `kip82-message-int`, `kip82-message-wrapper`: one message as the KIP-82 drafts put it into a log.
//!
//! ```text
//!   ┌──────────────┬────────────┬────────┬────────────┬─────────────────┬─────────────────┬─────┬───────────┬───────┐
//!   │ int64 offset │ int32 size │ u32 crc│ int8 magic │ int8 attributes │ int64 timestamp │ key │ [headers] │ value │
//!   └──────────────┴────────────┴────────┴────────────┴─────────────────┴─────────────────┴─────┴───────────┴───────┘
//!                                ◀──────────────────────────── size ─────────────────────────────────────────────▶
//! ```
//!
//! Big-endian; key and value behind an int32 length, -1 for null; the CRC-32 covers magic to the end. Magic 0 has no
//! timestamp, and neither 0 nor 1 has headers. Attribute bits 0–2 are the codec, bit 3 the type of the timestamp. Bit 4
//! says in the first two layouts that headers follow the key behind an int32 length; in the third, whose value is a
//! `kip82-wrapper`, that the message deletes its key. The drafts exclude each other: each layout has a name of its own.
//!
//! There is no reference implementation of magic 2; 0 and 1 are Kafka's.

use std::marker::PhantomData;

use super::kip82_wrapper::{open_wrapper, seal_wrapper};
use super::{bytes_of, nullable_bytes, number_or, write_nullable};
use crate::cursor::Cursor;
use crate::error::{Code, Loss, counted};
use crate::formats::headers::kip82_int::Kip82Int;
use crate::formats::headers::kip82_typed::Kip82Typed;
use crate::header::Header;
use crate::mode::{Mode, Stop};
use crate::value::ByteOrder;
use crate::walk::{Block, Envelope, Field, FieldType, FieldValue, Is, Opened, ReadOptions, Role, Sealed};

/// What the three layouts differ in.
pub trait Layout: 'static {
    const NAME: &'static str;
    const SOURCE: &'static str;
    const LAYOUT: &'static str;
    /// The value is a wrapper, in which the headers are.
    const WRAPPED: bool;
    type Block: Block;
}

pub struct Typed;
pub struct Int;
pub struct Wrapped;

impl Layout for Typed {
    const NAME: &'static str = "kip82-message";
    const SOURCE: &'static str = "KIP-82 draft, typed string keys: message format 2";
    const LAYOUT: &'static str = "int64 offset, int32 size, crc32, int8 magic, int8 attributes, int64 timestamp, key, \
                                  [kip82-typed block], value";
    const WRAPPED: bool = false;
    type Block = Kip82Typed;
}

impl Layout for Int {
    const NAME: &'static str = "kip82-message-int";
    const SOURCE: &'static str = "KIP-82 draft, integer keys: message format 2";
    const LAYOUT: &'static str = "int64 offset, int32 size, crc32, int8 magic, int8 attributes, int64 timestamp, key, \
                                  [kip82-int block], value";
    const WRAPPED: bool = false;
    type Block = Kip82Int;
}

impl Layout for Wrapped {
    const NAME: &'static str = "kip82-message-wrapper";
    const SOURCE: &'static str = "KIP-82 alternative, value message wrapper: message format 2";
    const LAYOUT: &'static str =
        "int64 offset, int32 size, crc32, int8 magic, int8 attributes, int64 timestamp, key, kip82-wrapper";
    const WRAPPED: bool = true;
    type Block = Kip82Int;
}

/// A message in one of the layouts.
pub struct Kip82Message<L>(PhantomData<L>);

/// The message format of the drafts.
pub const MAGIC: i8 = 2;

pub const CODEC_BITS: u8 = 0x07;
pub const LOG_APPEND_BIT: u8 = 0x08;
/// "Headers follow", or "tombstone".
const BIT_4: u8 = 0x10;

/// Offset and size, which the size does not count.
pub const FRAME_LEN: usize = 12;
const CRC_LEN: usize = 4;

// Places of fields, in the order of the table without its headers.
pub const OFFSET: usize = 0;
pub const MAGIC_FIELD: usize = 2;
pub const ATTRIBUTES: usize = 3;
pub const TIMESTAMP: usize = 4;
pub const KEY: usize = 5;
pub const VALUE: usize = 6;
const TOMBSTONE: usize = 7;

/// Fields but the headers, in the order of the table.
pub type Fields<'a> = [FieldValue<'a>; 8];

/// In the wrapper layout a tombstone is told apart from a null value.
const WRAPPED_FIELDS: &[Field] = &fields(Role::Tombstone);
const PLAIN_FIELDS: &[Field] = &fields(Role::Deletes);

const fn fields(tombstone: Role) -> [Field; 9] {
    [
        Field::new("offset", FieldType::Int64, Role::Offset),
        Field::new("crc", FieldType::Int64, Role::Derived),
        Field::new("magic", FieldType::Int8, Role::Magic),
        Field::new("attributes", FieldType::Int8, Role::Attributes),
        Field::new("timestamp", FieldType::Int64, Role::Millis),
        Field::new("key", FieldType::Binary, Role::Key),
        Field::HEADERS,
        Field::new("value", FieldType::Binary, Role::Payload),
        Field::new("tombstone", FieldType::Bool, tombstone),
    ]
}

impl<L: Layout> Envelope for Kip82Message<L> {
    const NAME: &'static str = L::NAME;
    const IS: Is = Is::Envelope;
    const SOURCE: &'static str = L::SOURCE;
    const LAYOUT: &'static str = L::LAYOUT;
    const FIELDS: &'static [Field] = if L::WRAPPED { WRAPPED_FIELDS } else { PLAIN_FIELDS };

    type Block = L::Block;
    type Fields<'a> = Fields<'a>;

    fn open<'a, M: Mode>(mut cursor: Cursor<'a>, _: ReadOptions, mode: &mut M) -> Result<Opened<'a, Fields<'a>>, Stop> {
        let frame = open_frame(&mut cursor, mode)?;
        let message = open_message::<L, M>(frame, mode);
        cursor.nothing_after("message", mode)?;
        Ok(message?.opened)
    }

    fn seal<M: Mode>(
        fields: &[FieldValue<'_>],
        headers: &[Header<'_>],
        mode: &mut M,
        out: &mut Vec<u8>,
    ) -> Result<Sealed, Stop> {
        let start = out.len();
        seal_message::<L, M>(fields, headers, mode, out).inspect_err(|_| out.truncate(start))?;
        Ok(Sealed::Written)
    }
}

/// A message without its frame, and the offset that the frame states.
pub struct Framed<'a> {
    pub offset: i64,
    pub message: Cursor<'a>,
}

/// The frame at the cursor, which steps over the message in it.
pub fn open_frame<'a, M: Mode>(cursor: &mut Cursor<'a>, mode: &mut M) -> Result<Framed<'a>, Stop> {
    let offset = cursor.number("offset", ByteOrder::Big, mode)?;
    let size = cursor.length32("message size", mode)?;
    Ok(Framed { offset, message: cursor.split(size, "message", mode)? })
}

/// A message, and where its value begins in the cell; nowhere when the message ends in the length before it.
pub struct Message<'a> {
    pub opened: Opened<'a, Fields<'a>>,
    pub value_at: Option<usize>,
}

/// The message in a frame.
pub fn open_message<'a, L: Layout, M: Mode>(
    Framed { offset, mut message }: Framed<'a>,
    mode: &mut M,
) -> Result<Message<'a>, Stop> {
    let crc_at = message.at();
    let crc: u32 = message.number("crc", ByteOrder::Big, mode)?;
    let covered = message.peek_rest();
    let magic_at = message.at();
    let magic: i8 = message.number("magic", ByteOrder::Big, mode)?;
    let undefined = match magic {
        0 => !CODEC_BITS,
        1 => !(CODEC_BITS | LOG_APPEND_BIT),
        MAGIC => !(CODEC_BITS | LOG_APPEND_BIT | BIT_4),
        other => {
            return Err(mode.hard(Code::BadMagic, Some(magic_at), || unknown_magic(other)));
        }
    };
    let made = crc32(covered);
    if made != crc {
        mode.soft(Code::BadCrc, Some(crc_at), || bad_crc(crc, made))?;
    }
    let attributes_at = message.at();
    let attributes: i8 = message.number("attributes", ByteOrder::Big, mode)?;
    let bits = attributes as u8;
    if bits & undefined != 0 {
        mode.soft(Code::BadAttributes, Some(attributes_at), || undefined_bits(bits & undefined))?;
    }
    if !L::WRAPPED && magic == MAGIC && bits & CODEC_BITS != 0 && bits & BIT_4 != 0 {
        mode.soft(Code::BadAttributes, Some(attributes_at), || HEADERS_OF_A_SET.into())?;
    }
    let timestamp = match magic {
        0 => FieldValue::Null,
        _ => FieldValue::Int64(message.number("timestamp", ByteOrder::Big, mode)?),
    };
    let key = match message.nullable_length32("key length", mode)? {
        None => FieldValue::Null,
        Some(len) => {
            let at = message.at();
            let key = message.take(len, "key", mode)?;
            mode.label(at, message.at(), "key", || counted(len, "byte"));
            FieldValue::Binary(key)
        }
    };
    let (block, value, value_at) = match (L::WRAPPED, magic) {
        (false, MAGIC) => {
            let block = match bits & BIT_4 {
                0 => message.nothing(),
                _ => open_headers(&mut message, mode)?,
            };
            let value_at = after_length(&message);
            (Some(block), open_value(&mut message, mode)?, value_at)
        }
        (true, MAGIC) if bits & CODEC_BITS == 0 => open_wrapped(&mut message, mode)?,
        _ => {
            let value_at = after_length(&message);
            (None, open_value(&mut message, mode)?, value_at)
        }
    };
    let tombstone = match (L::WRAPPED, magic, value) {
        (true, MAGIC, _) => FieldValue::Bool(bits & BIT_4 != 0),
        (_, _, Some(value)) => FieldValue::Bool(value == FieldValue::Null),
        // What could not be read is not known to be null.
        (_, _, None) => FieldValue::Null,
    };
    let fields = [
        FieldValue::Int64(offset),
        FieldValue::Int64(crc.into()),
        FieldValue::Int64(magic.into()),
        FieldValue::Int64(attributes.into()),
        timestamp,
        key,
        value.unwrap_or(FieldValue::Null),
        tombstone,
    ];
    Ok(Message { opened: Opened { block, fields }, value_at })
}

const HEADERS_OF_A_SET: &str = "a compressed set has no headers of its own";

/// Of the length before a value.
const LENGTH_LEN: usize = 4;

/// Where what comes after a length begins.
fn after_length(message: &Cursor<'_>) -> Option<usize> {
    (message.remaining() >= LENGTH_LEN).then(|| message.at() + LENGTH_LEN)
}

/// The block after the key.
fn open_headers<'a, M: Mode>(message: &mut Cursor<'a>, mode: &mut M) -> Result<Cursor<'a>, Stop> {
    let at = message.at();
    let len = message.length32("headers length", mode)?;
    if len == 0 {
        let message = || "bit 4 says that headers follow, and they have no bytes".into();
        mode.soft(Code::BadAttributes, Some(at), message)?;
    }
    message.split(len, "headers block", mode)
}

/// The value, which ends the message; `None` when it could not be read.
fn open_value<'a, M: Mode>(message: &mut Cursor<'a>, mode: &mut M) -> Result<Option<FieldValue<'a>>, Stop> {
    let Some(value) = nullable_bytes(message, "value length", "value", mode)? else { return Ok(None) };
    message.nothing_after("value", mode)?;
    Ok(Some(value.map_or(FieldValue::Null, FieldValue::Binary)))
}

/// Headers, value and the place of it.
type Wrapper<'a> = (Option<Cursor<'a>>, Option<FieldValue<'a>>, Option<usize>);

/// The value that is a wrapper or null, which ends the message.
fn open_wrapped<'a, M: Mode>(message: &mut Cursor<'a>, mode: &mut M) -> Result<Wrapper<'a>, Stop> {
    let len = message.nullable_length32("value length", mode)?;
    let value_at = Some(message.at());
    let Some(len) = len else {
        message.nothing_after("value", mode)?;
        return Ok((None, Some(FieldValue::Null), value_at));
    };
    let (block, value) = open_wrapper(message.split(len, "value", mode)?, mode)?;
    message.nothing_after("value", mode)?;
    Ok((Some(block), Some(value), value_at))
}

fn seal_message<L: Layout, M: Mode>(
    fields: &[FieldValue<'_>],
    headers: &[Header<'_>],
    mode: &mut M,
    out: &mut Vec<u8>,
) -> Result<(), Stop> {
    let magic = number_or(fields[MAGIC_FIELD], MAGIC.into());
    if !(0..=i64::from(MAGIC)).contains(&magic) {
        return Err(mode.hard(Code::BadMagic, None, || unknown_magic(magic)));
    }
    let magic = magic as i8;
    let tombstone = fields[TOMBSTONE] == FieldValue::Bool(true);
    let undefined = match magic {
        0 => !(CODEC_BITS | BIT_4),
        _ => !(CODEC_BITS | LOG_APPEND_BIT | BIT_4),
    };
    let mut bits = number_or(fields[ATTRIBUTES], 0) as u8;
    if bits & undefined != 0 {
        return Err(mode.hard(Code::BadAttributes, None, || undefined_bits(bits & undefined)));
    }
    let headers = match (magic, headers.is_empty()) {
        (_, true) | (MAGIC, _) => headers,
        _ => {
            mode.loss(false, || Loss::of_message(Code::FieldNotCarried, format!("magic {magic} has no headers")))?;
            &[]
        }
    };
    if bits & CODEC_BITS != 0 && !headers.is_empty() {
        return Err(mode.hard(Code::BadAttributes, None, || HEADERS_OF_A_SET.into()));
    }
    let marked = if L::WRAPPED { tombstone } else { !headers.is_empty() };
    bits = (bits & !BIT_4) | if marked && magic == MAGIC { BIT_4 } else { 0 };

    out.extend_from_slice(&number_or(fields[OFFSET], 0).to_be_bytes());
    let size_at = out.len();
    out.extend_from_slice(&[0; FRAME_LEN - 8 + CRC_LEN]);
    let covered_at = out.len();
    out.extend_from_slice(&magic.to_be_bytes());
    out.push(bits);
    if magic > 0 {
        out.extend_from_slice(&number_or(fields[TIMESTAMP], -1).to_be_bytes());
    }
    write_nullable(bytes_of(fields[KEY]), out);
    match (L::WRAPPED && magic == MAGIC && bits & CODEC_BITS == 0, fields[VALUE]) {
        (true, FieldValue::Null) if headers.is_empty() => write_nullable(None, out),
        (true, value) => {
            let len_at = out.len();
            out.extend_from_slice(&[0; 4]);
            seal_wrapper(value, headers, mode, out)?;
            let len = (out.len() - len_at - 4) as i32;
            out[len_at..len_at + 4].copy_from_slice(&len.to_be_bytes());
        }
        (false, value) => {
            if !headers.is_empty() {
                let len = L::Block::encoded_len(headers, mode)?;
                out.extend_from_slice(&(len as i32).to_be_bytes());
                L::Block::encode_into(headers, out);
            }
            write_nullable(bytes_of(value), out);
        }
    }
    let size = out.len() - size_at - 4;
    let Ok(size) = i32::try_from(size) else {
        return Err(mode.hard(Code::TooLarge, None, || format!("the message takes {size} bytes, more than 2 GiB")));
    };
    let crc = crc32(&out[covered_at..]);
    out[size_at..size_at + 4].copy_from_slice(&size.to_be_bytes());
    out[size_at + 4..covered_at].copy_from_slice(&crc.to_be_bytes());
    Ok(())
}

/// The checksum of these formats and of Iggy's payloads.
pub fn crc32(bytes: &[u8]) -> u32 {
    crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32IsoHdlc, bytes) as u32
}

/// What is wrong with a checksum that does not hold.
pub fn bad_crc(given: u32, made: u32) -> String {
    format!("the checksum is {given:08x} and the bytes give {made:08x}")
}

fn unknown_magic(magic: impl Into<i64>) -> String {
    format!("magic {} is unknown: 0, 1 and 2 are known", magic.into())
}

fn undefined_bits(bits: u8) -> String {
    format!("attribute bits 0x{bits:02x} are not defined")
}
