//! `kip82-message`, `kip82-message-int`, `kip82-message-wrapper`: one message of a log in the KIP-82 drafts.
//!
//! ```text
//!   ┌──────────────┬────────────┬────────┬────────────┬─────────────────┬─────────────────┬─────┬───────────┬───────┐
//!   │ int64 offset │ int32 size │ u32 crc│ int8 magic │ int8 attributes │ int64 timestamp │ key │ [headers] │ value │
//!   └──────────────┴────────────┴────────┴────────────┴─────────────────┴─────────────────┴─────┴───────────┴───────┘
//!                                ◀──────────────────────────── size ─────────────────────────────────────────────▶
//! ```
//!
//! Big-endian; key and value after an int32 length, -1 for null; the CRC-32 covers magic to the end. Magic 0 has no
//! timestamp, and neither 0 nor 1 has headers. Attribute bits 0–2 are the codec, bit 3 the type of the timestamp. In
//! the first two layouts, bit 4 means that headers follow the key after an int32 length. In the third, whose value is a
//! `kip82-wrapper`, bit 4 means that the message deletes its key. The drafts exclude each other, so each layout is a
//! separate format.
//!
//! There is no reference implementation of magic 2; 0 and 1 are Kafka's.

use std::marker::PhantomData;

use super::kip82_wrapper::{encode_wrapper, open_wrapper};
use super::legacy::{
    self, ATTRIBUTES, Body, CODEC_BITS, FRAME_LEN, Framed, Head, KEY, LOG_APPEND_BIT, LegacyFields, Message, OFFSET,
    TIMESTAMP, TOMBSTONE, VALUE, open_body, open_frame, undefined_bits, unknown_magic,
};
use super::{bytes_of, number_or, write_nullable};
use crate::cursor::Cursor;
use crate::error::{Code, Loss};
use crate::field::{Field, FieldType, FieldValue, Role};
use crate::format_info::{Contents, Encoded};
use crate::formats::checksum::crc32;
use crate::formats::headers::kip82_int::Kip82Int;
use crate::formats::headers::kip82_typed::Kip82Typed;
use crate::log::{Log, Result};
use crate::memory;
use crate::number::{fitting, offset};
use crate::options::ReadOptions;
use crate::traits::{HeadersFormat, MessageFormat, Opened};

/// The differences between the three layouts.
pub trait Layout: 'static {
    const NAME: &'static str;
    const SOURCE: &'static str;
    const LAYOUT: &'static str;
    // The format of a set of such messages.
    const SET_NAME: &'static str;
    const SET_SOURCE: &'static str;
    const SET_LAYOUT: &'static str;
    /// Whether the value is a wrapper that contains the headers.
    const WRAPPED: bool;
    type Headers: HeadersFormat;
}

macro_rules! layouts {
    ($($layout:ident $name:literal $set:literal $source:literal $parts:literal, $wrapped:literal, $headers:ty;)*) => {$(
        pub struct $layout;

        impl Layout for $layout {
            const NAME: &'static str = $name;
            const SOURCE: &'static str = concat!($source, ": message format 2");
            const LAYOUT: &'static str = concat!(
                "int64 offset, int32 size, crc32, int8 magic, int8 attributes, int64 timestamp, key, ", $parts
            );
            const SET_NAME: &'static str = $set;
            const SET_SOURCE: &'static str = concat!($source, ": message set");
            const SET_LAYOUT: &'static str =
                concat!($name, ", repeated to the end; a compressed one holds a set of its own");
            const WRAPPED: bool = $wrapped;
            type Headers = $headers;
        }
    )*};
}

layouts! {
    Typed "kip82-message" "kip82-messages" "KIP-82 draft, typed string keys" "[kip82-typed block], value", false, Kip82Typed;
    Int "kip82-message-int" "kip82-messages-int" "KIP-82 draft, integer keys" "[kip82-int block], value", false, Kip82Int;
    Wrapped "kip82-message-wrapper" "kip82-messages-wrapper" "KIP-82 alternative, value message wrapper" "kip82-wrapper", true, Kip82Int;
}

pub struct Kip82Message<L>(PhantomData<L>);

/// The message format of the drafts.
pub const MAGIC: i8 = 2;

/// Attribute bit for "headers follow" or "tombstone".
const BIT_4: u8 = 0x10;

const CRC_LEN: usize = 4;

/// The wrapper layout distinguishes a tombstone from a null value.
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
        Field::new("value", FieldType::Binary, Role::Value),
        Field::new("tombstone", FieldType::Bool, tombstone),
    ]
}

impl<L: Layout> MessageFormat for Kip82Message<L> {
    const NAME: &'static str = L::NAME;
    const SOURCE: &'static str = L::SOURCE;
    const LAYOUT: &'static str = L::LAYOUT;
    const FIELDS: &'static [Field] = if L::WRAPPED { WRAPPED_FIELDS } else { PLAIN_FIELDS };

    type Headers = L::Headers;
    type Fields<'a> = LegacyFields<'a>;

    fn open<'a, R: Log>(mut cursor: Cursor<'a>, _: ReadOptions, log: &mut R) -> Result<Opened<'a, LegacyFields<'a>>> {
        let frame = open_frame(&mut cursor, log)?;
        let message = open_message::<L, R>(frame, log);
        cursor.nothing_after("message", log)?;
        Ok(message?.opened)
    }

    fn encode<R: Log>(message: Contents<'_>, log: &mut R, out: &mut Vec<u8>) -> Result<Encoded> {
        let start = out.len();
        encode_message::<L, R>(message, log, out).inspect_err(|_| out.truncate(start))?;
        Ok(Encoded::Message)
    }
}

pub fn open_message<'a, L: Layout, R: Log>(frame: Framed<'a>, log: &mut R) -> Result<Message<'a>> {
    let head = Head::open(frame, Some((MAGIC, CODEC_BITS | LOG_APPEND_BIT | BIT_4)), log)?;
    if head.magic != MAGIC {
        return head.finish(log, open_body);
    }
    let (is_set, bit_4) = (head.bits() & CODEC_BITS != 0, head.bits() & BIT_4 != 0);
    if L::WRAPPED {
        let mut message = head.finish(log, if is_set { open_body } else { open_wrapped })?;
        message.opened.fields[TOMBSTONE] = FieldValue::Bool(bit_4);
        return Ok(message);
    }
    if is_set && bit_4 {
        log.error(Code::BadAttributes, Some(head.attributes_offset), || HEADERS_OF_A_SET.into())?;
    }
    head.finish(log, |rest, log| {
        let headers = if bit_4 { open_headers(rest, log)? } else { rest.empty() };
        Ok(Body { headers: Some(headers), ..open_body(rest, log)? })
    })
}

const HEADERS_OF_A_SET: &str = "a compressed set has no headers of its own";

/// Reads the headers after the key.
fn open_headers<'a, R: Log>(message: &mut Cursor<'a>, log: &mut R) -> Result<Cursor<'a>> {
    let start = message.offset();
    let len = message.length32("headers length", log)?;
    if len == 0 {
        let message = || "bit 4 says that headers follow, and they have no bytes".into();
        log.error(Code::BadAttributes, Some(start), message)?;
    }
    message.split(len, "headers block", log)
}

/// Reads a value that is a wrapper or null, and ends the message.
fn open_wrapped<'a, R: Log>(message: &mut Cursor<'a>, log: &mut R) -> Result<Body<'a>> {
    let len = message.nullable_length32("value length", log)?;
    let value_offset = Some(message.offset());
    let (headers, value) = match len {
        None => (None, FieldValue::Null),
        Some(len) => {
            let (headers, value) = open_wrapper(message.split(len, "value", log)?, log)?;
            (Some(headers), value)
        }
    };
    message.nothing_after("value", log)?;
    Ok(Body { headers, value: Some(value), value_offset })
}

fn encode_message<L: Layout, R: Log>(message: Contents<'_>, log: &mut R, out: &mut Vec<u8>) -> Result {
    let Contents { fields, headers, has_headers_field } = message;
    let magic = number_or(fields[legacy::MAGIC], MAGIC.into());
    let Some(magic) = i8::try_from(magic).ok().filter(|magic| (0..=MAGIC).contains(magic)) else {
        return Err(log.fatal(Code::BadMagic, None, || unknown_magic(magic)));
    };
    let tombstone = fields[TOMBSTONE] == FieldValue::Bool(true);
    let undefined = match magic {
        0 => !(CODEC_BITS | BIT_4),
        _ => !(CODEC_BITS | LOG_APPEND_BIT | BIT_4),
    };
    let mut bits = number_or(fields[ATTRIBUTES], 0).to_le_bytes()[0];
    if bits & undefined != 0 {
        return Err(log.fatal(Code::BadAttributes, None, || undefined_bits(bits & undefined)));
    }
    let headers = match (magic, headers.is_empty()) {
        (_, true) | (MAGIC, _) => headers,
        _ => {
            log.loss(false, || Loss::of_message(Code::FieldNotCarried, format!("magic {magic} has no headers")))?;
            &[]
        }
    };
    if bits & CODEC_BITS != 0 && !headers.is_empty() {
        return Err(log.fatal(Code::BadAttributes, None, || HEADERS_OF_A_SET.into()));
    }
    let marked = if L::WRAPPED { tombstone } else { !headers.is_empty() };
    bits = (bits & !BIT_4) | if marked && magic == MAGIC { BIT_4 } else { 0 };

    out.extend_from_slice(&number_or(fields[OFFSET], 0).to_be_bytes());
    let size_offset = out.len();
    out.extend_from_slice(&[0; FRAME_LEN - 8 + CRC_LEN]);
    let covered_offset = out.len();
    out.extend_from_slice(&magic.to_be_bytes());
    out.push(bits);
    if magic > 0 {
        out.extend_from_slice(&number_or(fields[TIMESTAMP], -1).to_be_bytes());
    }
    write_nullable("key", bytes_of(fields[KEY]), log, out)?;
    // A null value without a wrapper deletes the key, even if bit 4 is clear.
    let deletes = tombstone || !has_headers_field;
    match (L::WRAPPED && magic == MAGIC && bits & CODEC_BITS == 0, fields[VALUE]) {
        (true, FieldValue::Null) if headers.is_empty() && deletes => write_nullable("value", None, log, out)?,
        (true, value) => {
            let len_offset = out.len();
            out.extend_from_slice(&[0; 4]);
            encode_wrapper(value, headers, log, out)?;
            let len = offset(out.len() - len_offset - 4); // If it wraps, the size of the message is rejected below.
            out[len_offset..len_offset + 4].copy_from_slice(&len.to_be_bytes());
        }
        (false, value) => {
            if !headers.is_empty() {
                let len = L::Headers::encoded_len(headers, log)?;
                memory::reserve(out, len.saturating_add(4));
                out.extend_from_slice(&fitting::<i32, _>(len).to_be_bytes());
                L::Headers::encode_into(headers, out);
            }
            write_nullable("value", bytes_of(value), log, out)?;
        }
    }
    let size = out.len() - size_offset - 4;
    let Ok(size) = i32::try_from(size) else {
        return Err(log.fatal(Code::TooLarge, None, || format!("the message takes {size} bytes, more than 2 GiB")));
    };
    let crc = crc32(&out[covered_offset..]);
    out[size_offset..size_offset + 4].copy_from_slice(&size.to_be_bytes());
    out[size_offset + 4..covered_offset].copy_from_slice(&crc.to_be_bytes());
    Ok(())
}
