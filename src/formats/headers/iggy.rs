//! `iggy`: the headers of Apache Iggy since 0.8.2, typed keys and typed values.
//!
//! ```text
//!   header   ┌─────────────┬─────────────┬─────┬─────────┬───────────────┬───────┐
//!            │ u8 key_type │ u32 key_len │ key │ u8 type │ u32 value_len │ value │
//!            └─────────────┴─────────────┴─────┴─────────┴───────────────┴───────┘
//!              1–255         1–255               1–255     1–255
//! ```
//!
//! Little-endian, repeated to the end of the headers. Type codes from 16 on have no name yet and pass through.
//!
//! Differences from the reference implementation (`iggy_common` 0.11.1): repeats and the order on the wire are kept.
//! As there, a value of fixed width has just as many bytes, while a boolean other than 0 and 1 and a string that is not
//! UTF-8 pass, and show when they are read as one.

use std::borrow::Cow;
use std::cmp::Ordering;

use crate::cursor::Cursor;
use crate::error::{Code, counted};
use crate::header::{Header, Key, KeyForm, TypedKey};
use crate::kernel::layout::ReadableLayout;
use crate::kernel::typed_layout::{TypedLayout, Types};
use crate::log::{Log, Result};
use crate::traits::{Carries, HeadersFormat, ReadOptions, Sink};
use crate::value::{ByteOrder, Checks, bits_of};
use crate::value_type::{Scalar, TypeCodes, ValueType};

use super::iggy_shared::{MAX_PART, MIN_PART, read_len, read_type, read_value, write_bits};
use super::{describe_typed, parse_to_end};

pub struct Iggy;

/// Two types and two lengths.
const FIXED: usize = 10;

/// The most bytes that the headers of a message may take.
const MAX_BLOCK: usize = 100_000;

impl Types for Iggy {
    const LAYOUT: ReadableLayout = ReadableLayout::Iggy;
    const TYPED_KEYS: bool = true;
    const CODES: TypeCodes = Self::TYPES;
}

impl HeadersFormat for Iggy {
    const NAME: &'static str = "iggy";
    const SOURCE: &'static str = "Apache Iggy 0.8.2 and later: typed keys and values";
    const LAYOUT: &'static str =
        "u8 key_type, u32 key_len, key, u8 type, u32 value_len, value; little-endian, repeated to the end";
    const KEYS: KeyForm = KeyForm::Typed;
    const TYPES: TypeCodes = TypeCodes::Iggy;
    const ORDER: ByteOrder = ByteOrder::Little;
    const CARRIES: Carries = Carries { nulls: false, part_len: (MIN_PART, MAX_PART), checks: Checks::Size };
    const CANONICAL: Option<fn(&Header<'_>, &Header<'_>) -> Ordering> = Some(by_type_and_bytes);

    type Layout = TypedLayout<Iggy>;
    const MAX_WRITTEN: usize = MAX_BLOCK;

    #[inline]
    fn parse<'a, R: Log, S: Sink<'a>>(cursor: Cursor<'a>, options: ReadOptions, log: &mut R, sink: &mut S) -> Result {
        let types = if options.strict_types { TypeCodes::IggyNamed } else { TypeCodes::Iggy };
        parse_to_end(cursor, options, log, sink, |cursor, index, log| read_header(cursor, index, types, log))
    }

    fn encoded_len<R: Log>(headers: &[Header<'_>], log: &mut R) -> Result<usize> {
        let len = headers.iter().map(written_len).sum();
        if len > MAX_BLOCK {
            return Err(
                log.fatal(Code::TooLarge, None, || format!("the headers take {len} bytes, more than {MAX_BLOCK}"))
            );
        }
        Ok(len)
    }

    fn encode_into(headers: &[Header<'_>], out: &mut Vec<u8>) {
        for header in headers {
            let (value_type, bits) = typed_key(&header.key);
            write_bits(out, Self::TYPES, Some(value_type), &bits);
            write_bits(out, Self::TYPES, header.value_type, header.value.unwrap_or_default());
        }
    }
}

/// One header; `None` if it could not be read and parsing continues.
#[inline(always)] // One copy for each mode, in its loop: a header passed through memory costs more than reading it.
fn read_header<'a, R: Log>(
    cursor: &mut Cursor<'a>,
    index: usize,
    types: TypeCodes,
    log: &mut R,
) -> Result<Option<Header<'a>>> {
    let key_type = read_type(cursor, types, "key type", log)?;
    let (key_len, key_fits) = read_len(cursor, "key", "key length", log)?;
    let key_at = cursor.at();
    let bytes = cursor.take(key_len, "key", log)?;
    log.label(key_at, cursor.at(), "key", || match key_type {
        Some(value_type) => describe_typed(value_type, bytes, ByteOrder::Little),
        None => counted(bytes.len(), "byte"),
    });
    let key = match key_type {
        Some(value_type) if key_fits => match Checks::Size.check(value_type, bytes) {
            Ok(()) => {
                let key = Key::Typed(TypedKey::new(value_type, bytes, ByteOrder::Little));
                log.name_header(&key);
                Some(key)
            }
            Err(invalid) => {
                log.error(invalid.code, Some(key_at), || format!("key of {}", invalid.message))?;
                None
            }
        },
        _ => None,
    };
    let value_type = read_type(cursor, types, "value type", log)?;
    let value = read_value(cursor, value_type, log)?;
    let (Some(value_type), Some((value, at))) = (value_type, value) else { return Ok(None) };
    if let Err(invalid) = Checks::Size.check(value_type, value) {
        log.error(invalid.code, Some(at), || invalid.message)?;
        return Ok(None);
    }
    Ok(key.map(|key| Header { index, key, value_type: Some(value_type), value: Some(value), at: Some(at) }))
}

/// The order of the crate's sorted map: type codes, then bytes on the wire.
fn by_type_and_bytes(left: &Header<'_>, right: &Header<'_>) -> Ordering {
    let place = |header: &Header<'_>| {
        let (value_type, bits) = typed_key(&header.key);
        (Iggy::TYPES.code(value_type), bits_of(value_type, &bits, ByteOrder::Little).into_owned())
    };
    place(left).cmp(&place(right))
}

fn written_len(header: &Header<'_>) -> usize {
    FIXED + header.key.byte_len() + header.value.map_or(0, <[u8]>::len)
}

/// The type and the bits of a key, which may come from another format.
fn typed_key<'k>(key: &'k Key<'_>) -> (ValueType, Cow<'k, [u8]>) {
    match key {
        Key::Typed(typed) => (typed.value_type, typed.bits()),
        Key::Text(text) => (ValueType::Named(Scalar::String), Cow::Borrowed(text.as_bytes())),
        Key::Int(number) => (ValueType::Named(Scalar::Int32), Cow::Owned(number.to_be_bytes().to_vec())),
    }
}
