//! `iggy-2023`: the headers of Apache Iggy 0.0.30 to 0.8.1, string keys and typed values.
//!
//! ```text
//!   header   ┌─────────────┬───────────┬─────────┬───────────────┬───────┐
//!            │ u32 key_len │ key UTF-8 │ u8 type │ u32 value_len │ value │
//!            └─────────────┴───────────┴─────────┴───────────────┴───────┘
//!              1–255                     1–15      1–255
//! ```
//!
//! Little-endian, repeated to the end of the block.
//!
//! Differences from the reference implementation (`iggy` 0.6.210): bytes that make it panic are faults, repeats are kept
//! and keys are not lower-cased. As there, a value may have another size than its kind: that shows when it is read as one.

use crate::cursor::Cursor;
use crate::error::Code;
use crate::header::{Header, KeyForm};
use crate::kernel::frame::{Typed, Types};
use crate::kind::Kinds;
use crate::mode::{Mode, Result};
use crate::value::{ByteOrder, Checks};
use crate::walk::{Block, Carries, ReadOptions, Sink};

use super::iggy_parts::{LEAST_PART, MOST_PART, read_kind, read_len, read_value, write_bits};
use super::{read_text_key, text_of_key, walk_to_end};

pub struct Iggy2023;

/// Two lengths and a kind.
const FIXED: usize = 9;

/// The most bytes that the values of a request may have.
const MAX_VALUES: usize = 100_000;

impl Types for Iggy2023 {
    const TYPED_KEYS: bool = false;
    const CODES: Kinds = Self::KINDS;
}

impl Block for Iggy2023 {
    const NAME: &'static str = "iggy-2023";
    const SOURCE: &'static str = "Apache Iggy 0.0.30 to 0.8.1: message headers";
    const LAYOUT: &'static str =
        "u32 key_len, key UTF-8, u8 type, u32 value_len, value; little-endian, repeated to the end";
    const KEYS: KeyForm = KeyForm::Text;
    const KINDS: Kinds = Kinds::IggyNamed;
    const ORDER: ByteOrder = ByteOrder::Little;
    const CARRIES: Carries = Carries { nulls: false, part_len: (LEAST_PART, MOST_PART), checks: Checks::Nothing };

    type Frame = Typed<Iggy2023>;
    // The values of a row that is not longer have no more bytes either.
    const MOST_WRITTEN: usize = MAX_VALUES;

    #[inline]
    fn walk<'a, M: Mode, S: Sink<'a>>(cursor: Cursor<'a>, options: ReadOptions, mode: &mut M, sink: &mut S) -> Result {
        walk_to_end(cursor, options, mode, sink, read_header)
    }

    fn encoded_len<M: Mode>(headers: &[Header<'_>], mode: &mut M) -> Result<usize> {
        let values: usize = headers.iter().map(|header| header.value.map_or(0, <[u8]>::len)).sum();
        if values > MAX_VALUES {
            return Err(
                mode.hard(Code::TooLarge, None, || format!("the values take {values} bytes, more than {MAX_VALUES}"))
            );
        }
        Ok(headers.iter().map(written_len).sum())
    }

    fn encode_into(headers: &[Header<'_>], out: &mut Vec<u8>) {
        out.reserve(headers.iter().map(written_len).sum());
        for header in headers {
            let key = text_of_key(header);
            out.extend_from_slice(&(key.len() as u32).to_le_bytes());
            out.extend_from_slice(key);
            write_bits(out, Self::KINDS, header.kind, header.value.unwrap_or_default());
        }
    }
}

/// How many bytes a header takes.
fn written_len(header: &Header<'_>) -> usize {
    FIXED + text_of_key(header).len() + header.value.map_or(0, <[u8]>::len)
}

/// One header; `None` when it could not be read and the walk goes on.
#[inline(always)] // One copy for each mode, in its loop: a header passed through memory costs more than reading it.
fn read_header<'a, M: Mode>(cursor: &mut Cursor<'a>, index: usize, mode: &mut M) -> Result<Option<Header<'a>>> {
    let (key_len, key_fits) = read_len(cursor, "key", "key length", mode)?;
    let key = read_text_key(cursor, key_len, None, mode)?;
    let kind = read_kind(cursor, Kinds::IggyNamed, "value type", mode)?;
    let value = read_value(cursor, kind, mode)?;
    let (Some(key), Some(kind), Some((value, at)), true) = (key, kind, value, key_fits) else { return Ok(None) };
    Ok(Some(Header { index, key, kind: Some(kind), value: Some(value), at: Some(at) }))
}
