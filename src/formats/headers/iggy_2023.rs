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
//! kept and keys are not lower-cased. As in that implementation, a value may have another size than its type, but
//! cannot be read as that type.

use crate::cursor::Cursor;
use crate::format_info::{Constraints, WrittenLimit};
use crate::header::{Header, KeyForm};
use crate::kernel::typed_layout::{PART_LEN, TypedLayout};
use crate::log::{Log, Result};
use crate::options::ReadOptions;
use crate::sink::Sink;
use crate::traits::HeadersFormat;
use crate::value::{ByteOrder, Checks};
use crate::value_type::TypeCodes;

use super::iggy_shared;

pub struct Iggy2023;

impl HeadersFormat for Iggy2023 {
    const NAME: &'static str = "iggy-2023";
    const SOURCE: &'static str = "Apache Iggy 0.0.30 to 0.8.1: message headers";
    const LAYOUT: &'static str =
        "u32 key_len, key UTF-8, u8 type, u32 value_len, value; little-endian, repeated to the end";
    const KEYS: KeyForm = KeyForm::Text;
    const TYPES: TypeCodes = TypeCodes::IggyNamed;
    const ORDER: ByteOrder = ByteOrder::Little;
    const CONSTRAINTS: Constraints = Constraints { nulls: false, part_len: PART_LEN, checks: Checks::Nothing };

    type Layout = TypedLayout<Iggy2023>;
    /// Limit on the bytes of values in a request, and so in a message.
    const MAX_WRITTEN: WrittenLimit = WrittenLimit::Values(100_000);

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
