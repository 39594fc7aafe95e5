//! `kip82-wrapper`: a value with its headers, as the alternative to KIP-82 wraps them on the client's side.
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
use crate::formats::headers::kip82_int::Kip82Int;
use crate::header::Header;
use crate::mode::{Mode, Result};
use crate::value::ByteOrder;
use crate::walk::{Block, Contents, Envelope, Field, FieldType, FieldValue, Open, Opened, ReadOptions, Role, Sealed};

pub struct Kip82Wrapper;

const MAGIC: i8 = 0;

/// The magic and two lengths.
const FIXED: usize = 9;

impl Envelope for Kip82Wrapper {
    const NAME: &'static str = "kip82-wrapper";
    const SOURCE: &'static str = "KIP-82 alternative, value message wrapper";
    const LAYOUT: &'static str = "int8 magic 0, int32 headers_len, kip82-int block, int32 value_len or -1, value";
    const FIELDS: &'static [Field] = &[Field::HEADERS, Field::new("value", FieldType::Binary, Role::Payload)];

    type Block = Kip82Int;
    type Fields<'a> = [FieldValue<'a>; 1];

    fn open<'a, M: Mode>(cursor: Cursor<'a>, _: ReadOptions, mode: &mut M) -> Open<'a, Self> {
        let (block, value) = open_wrapper(cursor, mode)?;
        Ok(Opened { block: Some(block), fields: [value] })
    }

    fn seal<M: Mode>(message: Contents<'_>, mode: &mut M, out: &mut Vec<u8>) -> Result<Sealed> {
        seal_wrapper(message.fields[0], message.headers, mode, out)?;
        Ok(Sealed::Written)
    }
}

/// The block and the value of a wrapper that goes to the end of the cursor.
pub(super) fn open_wrapper<'a, M: Mode>(mut cursor: Cursor<'a>, mode: &mut M) -> Result<(Cursor<'a>, FieldValue<'a>)> {
    let at = cursor.at();
    let magic: i8 = cursor.number("magic", ByteOrder::Big, mode)?;
    if magic != MAGIC {
        return Err(mode.hard(Code::BadMagic, Some(at), || format!("magic {magic} is unknown: a wrapper has 0")));
    }
    let len = cursor.length32("headers length", mode)?;
    let block = cursor.split(len, "headers block", mode)?;
    let Some(value) = nullable_bytes(&mut cursor, "value length", "value", mode)? else {
        return Ok((block, FieldValue::Null));
    };
    cursor.nothing_after("value", mode)?;
    Ok((block, value))
}

/// Writes a wrapper.
pub(super) fn seal_wrapper<M: Mode>(
    value: FieldValue<'_>,
    headers: &[Header<'_>],
    mode: &mut M,
    out: &mut Vec<u8>,
) -> Result {
    let len = Kip82Int::encoded_len(headers, mode)?;
    let value = bytes_of(value);
    out.reserve(FIXED + len + value.map_or(0, <[u8]>::len));
    out.extend_from_slice(&MAGIC.to_be_bytes());
    out.extend_from_slice(&(len as i32).to_be_bytes());
    Kip82Int::encode_into(headers, out);
    write_nullable(value, out);
    Ok(())
}
