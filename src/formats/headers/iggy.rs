//! `iggy`: the headers of Apache Iggy since 0.8.2, typed keys and typed values.
//!
//! ```text
//!   header   ┌─────────────┬─────────────┬─────┬─────────┬───────────────┬───────┐
//!            │ u8 key_type │ u32 key_len │ key │ u8 type │ u32 value_len │ value │
//!            └─────────────┴─────────────┴─────┴─────────┴───────────────┴───────┘
//!              1–255         1–255               1–255     1–255
//! ```
//!
//! Little-endian, repeated to the end of the headers. Type codes from 16 on have no name yet, and are accepted.
//!
//! Differences from the reference implementation (`iggy_common` 0.11.1): repeats and the order on the wire are kept. As
//! in that implementation, a value of fixed width must have that width, while a boolean other than 0 and 1 and a string
//! that is not UTF-8 are accepted, and rejected only when they are read as such.

use std::cmp::Ordering;

use crate::cursor::Cursor;
use crate::format_info::{Constraints, WrittenLimit};
use crate::header::{Header, KeyForm};
use crate::kernel::typed_layout::{PART_LEN, TypedLayout};
use crate::log::{Log, Result};
use crate::options::ReadOptions;
use crate::sink::Sink;
use crate::traits::HeadersFormat;
use crate::value::{ByteOrder, Checks, bits_of};
use crate::value_type::TypeCodes;

use super::iggy_shared::{self, type_and_bits};

pub struct Iggy;

impl HeadersFormat for Iggy {
    const NAME: &'static str = "iggy";
    const SOURCE: &'static str = "Apache Iggy 0.8.2 and later: typed keys and values";
    const LAYOUT: &'static str =
        "u8 key_type, u32 key_len, key, u8 type, u32 value_len, value; little-endian, repeated to the end";
    const KEYS: KeyForm = KeyForm::Typed;
    const TYPES: TypeCodes = TypeCodes::Iggy;
    const ORDER: ByteOrder = ByteOrder::Little;
    const CONSTRAINTS: Constraints = Constraints { nulls: false, part_len: PART_LEN, checks: Checks::Size };
    const CANONICAL: Option<fn(&Header<'_>, &Header<'_>) -> Ordering> = Some(by_type_and_bytes);

    type Layout = TypedLayout<Iggy>;
    /// Maximum number of bytes of the headers of a message.
    const MAX_WRITTEN: WrittenLimit = WrittenLimit::Headers(100_000);

    #[inline]
    fn parse<'a, R: Log, S: Sink<'a>>(cursor: Cursor<'a>, options: ReadOptions, log: &mut R, sink: &mut S) -> Result {
        iggy_shared::parse::<Self, R, S>(cursor, options, log, sink)
    }

    fn encoded_len<R: Log>(headers: &[Header<'_>], log: &mut R) -> Result<usize> {
        iggy_shared::encoded_len::<Self, R>(headers, log)
    }

    fn write_header(header: &Header<'_>, out: &mut Vec<u8>) {
        iggy_shared::write_header::<Self>(header, out);
    }
}

/// Order of the sorted map in the `iggy` crate: by type codes, then by bytes on the wire.
fn by_type_and_bytes(left: &Header<'_>, right: &Header<'_>) -> Ordering {
    let sort_key = |header: &Header<'_>| {
        let (value_type, bits) = type_and_bits(&header.key);
        (Iggy::TYPES.code(value_type), bits_of(value_type, &bits, ByteOrder::Little).into_owned())
    };
    sort_key(left).cmp(&sort_key(right))
}
