//! `kip82-wrapper`: a value and its headers in a wrapper that clients write, from the alternative to KIP-82.
//!
//! ```text
//!   ┌────────────┬───────────────────┬─────────────────┬──────────────────────────┬───────┐
//!   │ int8 magic │ int32 headers_len │ kip82-int block │ int32 value_len, -1=null │ value │
//!   └────────────┴───────────────────┴─────────────────┴──────────────────────────┴───────┘
//!     0                               ◀─ headers_len ─▶
//! ```
//!
//! Big-endian. There is no reference implementation.

use super::{bytes_of, nullable_bytes, write_nullable};
use crate::cursor::Cursor;
use crate::error::Code;
use crate::field::{Field, FieldType, FieldValue, Role};
use crate::format_info::{Contents, Encoded};
use crate::formats::headers::kip82_int::Kip82Int;
use crate::header::Header;
use crate::log::{Log, Result};
use crate::memory;
use crate::number::fitting;
use crate::options::ReadOptions;
use crate::traits::{HeadersFormat, MessageFormat, Open, Opened};
use crate::value::ByteOrder;

pub struct Kip82Wrapper;

const MAGIC: i8 = 0;

/// Length of the magic and two lengths.
const FIXED: usize = 9;

impl MessageFormat for Kip82Wrapper {
    const NAME: &'static str = "kip82-wrapper";
    const SOURCE: &'static str = "KIP-82 alternative, value message wrapper";
    const LAYOUT: &'static str = "int8 magic 0, int32 headers_len, kip82-int block, int32 value_len or -1, value";
    const FIELDS: &'static [Field] = &[Field::HEADERS, Field::new("value", FieldType::Binary, Role::Value)];

    type Headers = Kip82Int;
    type Fields<'a> = [FieldValue<'a>; 1];

    fn open<'a, R: Log>(cursor: Cursor<'a>, _: ReadOptions, log: &mut R) -> Open<'a, Self> {
        let (headers, value) = open_wrapper(cursor, log)?;
        Ok(Opened { headers: Some(headers), fields: [value] })
    }

    fn encode<R: Log>(message: Contents<'_>, log: &mut R, out: &mut Vec<u8>) -> Result<Encoded> {
        encode_wrapper(message.fields[0], message.headers, log, out)?;
        Ok(Encoded::Message)
    }
}

/// Reads the headers and the value of a wrapper that extends to the end of the cursor.
pub fn open_wrapper<'a, R: Log>(mut cursor: Cursor<'a>, log: &mut R) -> Result<(Cursor<'a>, FieldValue<'a>)> {
    let start = cursor.offset();
    let magic: i8 = cursor.number("magic", ByteOrder::Big, log)?;
    if magic != MAGIC {
        return Err(log.fatal(Code::BadMagic, Some(start), || format!("magic {magic} is unknown: a wrapper has 0")));
    }
    let len = cursor.length32("headers length", log)?;
    let headers = cursor.split(len, "headers block", log)?;
    let Some(value) = nullable_bytes(&mut cursor, "value length", "value", log)? else {
        return Ok((headers, FieldValue::Null));
    };
    cursor.nothing_after("value", log)?;
    Ok((headers, value))
}

pub fn encode_wrapper<R: Log>(value: FieldValue<'_>, headers: &[Header<'_>], log: &mut R, out: &mut Vec<u8>) -> Result {
    let len = Kip82Int::encoded_len(headers, log)?;
    let value = bytes_of(value);
    memory::reserve(out, FIXED + len + value.map_or(0, <[u8]>::len));
    out.extend_from_slice(&MAGIC.to_be_bytes());
    out.extend_from_slice(&fitting::<i32, _>(len).to_be_bytes());
    Kip82Int::encode_into(headers, out);
    write_nullable("value", value, log, out)
}
