//! `kip82-typed`: headers with string keys and typed values, from the first KIP-82 draft.
//!
//! ```text
//!   header   ┌───────────────┬───────────┬─────────────────┬───────────┬───────┐
//!            │ int32 key_len │ key UTF-8 │ int32 value_len │ byte type │ value │
//!            └───────────────┴───────────┴─────────────────┴───────────┴───────┘
//!                                                           ◀── value_len ────▶
//! ```
//!
//! Big-endian, repeated to the end of the headers. A value length of 0 is null, without a type.
//!
//! There is no reference implementation. Where the draft contradicts itself, its table of type codes is used: a boolean
//! is one byte after its type, and a char one UTF-16 unit.

use crate::cursor::Cursor;
use crate::format_info::Constraints;
use crate::header::{Header, KeyForm};
use crate::kernel::typed_layout::Kip82Layout;
use crate::log::{Log, Result};
use crate::number::fitting;
use crate::options::ReadOptions;
use crate::sink::Sink;
use crate::traits::HeadersFormat;
use crate::value::{ByteOrder, Checks};
use crate::value_type::{Scalar, TypeCodes, ValueType};

use super::{check_len, check_total, describe, describe_typed, parse_to_end, read_text_key, text_of_key, unknown_type};

pub struct Kip82Typed;

/// Bytes of the length fields of a key and a value.
const LENGTHS: usize = 8;

impl HeadersFormat for Kip82Typed {
    const NAME: &'static str = "kip82-typed";
    const SOURCE: &'static str = "KIP-82 draft, typed string keys";
    const LAYOUT: &'static str =
        "int32 key_len, key UTF-8, int32 value_len (0: null), type byte, value; big-endian, repeated to the end";
    const KEYS: KeyForm = KeyForm::Text;
    const TYPES: TypeCodes = TypeCodes::Kip82;
    const ORDER: ByteOrder = ByteOrder::Big;
    const CONSTRAINTS: Constraints = Constraints { checks: Checks::Value, ..Constraints::ALL };

    type Layout = Kip82Layout;

    #[inline]
    fn parse<'a, R: Log, S: Sink<'a>>(
        mut cursor: Cursor<'a>,
        options: ReadOptions,
        log: &mut R,
        sink: &mut S,
    ) -> Result {
        parse_to_end!(cursor, options, log, sink, |index| read_header(&mut cursor, index, log))
    }

    fn encoded_len<R: Log>(headers: &[Header<'_>], log: &mut R) -> Result<usize> {
        let mut len = 0;
        for header in headers {
            let key = text_of_key(header).len();
            let value = header.value.map_or(0, |value| 1 + value.len());
            check_len("key", key, log)?;
            check_len("value", value, log)?;
            len += LENGTHS + key + value;
        }
        check_total(len, log)
    }

    fn write_header(header: &Header<'_>, out: &mut Vec<u8>) {
        let key = text_of_key(header);
        out.extend_from_slice(&fitting::<i32, _>(key.len()).to_be_bytes());
        out.extend_from_slice(key);
        match (header.value, header.value_type.and_then(|value_type| Self::TYPES.code(value_type))) {
            (Some(value), Some(code)) => {
                out.extend_from_slice(&fitting::<i32, _>(1 + value.len()).to_be_bytes());
                out.push(code);
                out.extend_from_slice(value);
            }
            _ => out.extend_from_slice(&0i32.to_be_bytes()),
        }
    }
}

/// Reads a header; `None` if it is invalid and parsing continues.
#[inline(always)] // Inlined into the loop of each log: passing a header through memory costs more than reading it.
fn read_header<'a, R: Log>(cursor: &mut Cursor<'a>, index: usize, log: &mut R) -> Result<Option<Header<'a>>> {
    let key_len = cursor.length32("key length", log)?;
    let key = read_text_key(cursor, key_len, None, log)?;
    let value_len = cursor.length32("value length", log)?;
    let type_offset = cursor.offset();
    let start = type_offset + 1;
    let Some((&code, value)) = cursor.take(value_len, "value", log)?.split_first() else {
        return Ok(key.map(|key| Header {
            index,
            key,
            value_type: None,
            value: None,
            value_offset: Some(type_offset),
        }));
    };
    let value_type = Kip82Typed::TYPES.value_type(code);
    log.label(type_offset, start, "value type", || {
        value_type.map_or_else(|| code.to_string(), |value_type| value_type.name().into_owned())
    });
    let Some(value_type) = value_type else {
        log.label(start, cursor.offset(), "value", || describe(value));
        unknown_type("value type", code, type_offset, log)?;
        return Ok(None);
    };
    log.label(start, cursor.offset(), "value", || describe_typed(value_type, value, ByteOrder::Big));
    if let Err(invalid) = Checks::Value.check(value_type, value) {
        let nothing = value_type == ValueType::Named(Scalar::Bool) && value.is_empty();
        log.error(invalid.code, Some(start + invalid.byte), || match nothing {
            true => "a boolean without its byte holds no value".into(),
            false => invalid.message,
        })?;
        return Ok(None);
    }
    Ok(key.map(|key| Header {
        index,
        key,
        value_type: Some(value_type),
        value: Some(value),
        value_offset: Some(start),
    }))
}
