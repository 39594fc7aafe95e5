//! `iggy-2023`: the headers of Apache Iggy 0.0.30 to 0.8.1, string keys and typed values.
//!
//! ```text
//!   header   ┌─────────────┬───────────┬─────────┬───────────────┬───────┐
//!            │ u32 key_len │ key UTF-8 │ u8 type │ u32 value_len │ value │
//!            └─────────────┴───────────┴─────────┴───────────────┴───────┘
//!              1–255                     1–15      1–255
//! ```
//!
//! Little-endian, repeated to the end of the headers.
//!
//! Differences from the reference implementation (`iggy` 0.6.210): bytes that make it panic are errors, repeats are
//! kept and keys are not lower-cased. As there, a value may have another size than its type; reading it as the type
//! fails.

use crate::cursor::Cursor;
use crate::error::Code;
use crate::header::{Header, KeyForm};
use crate::kernel::layout::ReadableLayout;
use crate::kernel::typed_layout::{TypedLayout, Types};
use crate::log::{Log, Result};
use crate::traits::{Carries, HeadersFormat, ReadOptions, Sink};
use crate::value::{ByteOrder, Checks};
use crate::value_type::TypeCodes;

use super::iggy_shared::{MAX_PART, MIN_PART, read_len, read_type, read_value, write_bits};
use super::{parse_to_end, read_text_key, text_of_key};

pub struct Iggy2023;

/// Two lengths and a type.
const FIXED: usize = 9;

/// The most bytes that the values of a request may have.
const MAX_VALUES: usize = 100_000;

impl Types for Iggy2023 {
    const LAYOUT: ReadableLayout = ReadableLayout::Iggy2023;
    const TYPED_KEYS: bool = false;
    const CODES: TypeCodes = Self::TYPES;
}

impl HeadersFormat for Iggy2023 {
    const NAME: &'static str = "iggy-2023";
    const SOURCE: &'static str = "Apache Iggy 0.0.30 to 0.8.1: message headers";
    const LAYOUT: &'static str =
        "u32 key_len, key UTF-8, u8 type, u32 value_len, value; little-endian, repeated to the end";
    const KEYS: KeyForm = KeyForm::Text;
    const TYPES: TypeCodes = TypeCodes::IggyNamed;
    const ORDER: ByteOrder = ByteOrder::Little;
    const CARRIES: Carries = Carries { nulls: false, part_len: (MIN_PART, MAX_PART), checks: Checks::Nothing };

    type Layout = TypedLayout<Iggy2023>;
    // The values of a row that is not longer have no more bytes either.
    const MAX_WRITTEN: usize = MAX_VALUES;

    #[inline]
    fn parse<'a, R: Log, S: Sink<'a>>(cursor: Cursor<'a>, options: ReadOptions, log: &mut R, sink: &mut S) -> Result {
        parse_to_end(cursor, options, log, sink, read_header)
    }

    fn encoded_len<R: Log>(headers: &[Header<'_>], log: &mut R) -> Result<usize> {
        let values: usize = headers.iter().map(|header| header.value.map_or(0, <[u8]>::len)).sum();
        if values > MAX_VALUES {
            return Err(
                log.fatal(Code::TooLarge, None, || format!("the values take {values} bytes, more than {MAX_VALUES}"))
            );
        }
        Ok(headers.iter().map(written_len).sum())
    }

    fn encode_into(headers: &[Header<'_>], out: &mut Vec<u8>) {
        for header in headers {
            let key = text_of_key(header);
            out.extend_from_slice(&(key.len() as u32).to_le_bytes());
            out.extend_from_slice(key);
            write_bits(out, Self::TYPES, header.value_type, header.value.unwrap_or_default());
        }
    }
}

fn written_len(header: &Header<'_>) -> usize {
    FIXED + text_of_key(header).len() + header.value.map_or(0, <[u8]>::len)
}

/// One header; `None` if it could not be read and parsing continues.
#[inline(always)] // One copy for each mode, in its loop: a header passed through memory costs more than reading it.
fn read_header<'a, R: Log>(cursor: &mut Cursor<'a>, index: usize, log: &mut R) -> Result<Option<Header<'a>>> {
    let (key_len, key_fits) = read_len(cursor, "key", "key length", log)?;
    let key = read_text_key(cursor, key_len, None, log)?;
    let value_type = read_type(cursor, TypeCodes::IggyNamed, "value type", log)?;
    let value = read_value(cursor, value_type, log)?;
    let (Some(key), Some(value_type), Some((value, at)), true) = (key, value_type, value, key_fits) else {
        return Ok(None);
    };
    Ok(Some(Header { index, key, value_type: Some(value_type), value: Some(value), at: Some(at) }))
}
