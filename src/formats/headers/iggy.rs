//! `iggy`: the headers of Apache Iggy since 0.8.2, typed keys and typed values.
//!
//! ```text
//!   header   ┌─────────────┬─────────────┬─────┬─────────┬───────────────┬───────┐
//!            │ u8 key_type │ u32 key_len │ key │ u8 type │ u32 value_len │ value │
//!            └─────────────┴─────────────┴─────┴─────────┴───────────────┴───────┘
//!              1–255         1–255               1–255     1–255
//! ```
//!
//! Little-endian, repeated to the end of the block. Kind codes from 16 on have no name yet and pass through.
//!
//! Differences from the reference implementation (`iggy_common` 0.11.1): repeats and the order on the wire are kept.
//! As there, a value of fixed width has just as many bytes, while a boolean other than 0 and 1 and a string that is not
//! UTF-8 pass, and show when they are read as one.

use std::borrow::Cow;
use std::cmp::Ordering;

use crate::cursor::Cursor;
use crate::error::{Code, counted};
use crate::header::{Header, Key, KeyForm, TypedKey};
use crate::kernel::frame::{Typed, Types};
use crate::kind::{Kind, Kinds, Scalar};
use crate::mode::{Mode, Result};
use crate::value::{ByteOrder, Checks, bits_of};
use crate::walk::{Block, Carries, ReadOptions, Sink};

use super::iggy_parts::{LEAST_PART, MOST_PART, read_kind, read_len, read_value, write_bits};
use super::{describe_typed, walk_to_end};

pub struct Iggy;

/// Two kinds and two lengths.
const FIXED: usize = 10;

/// The most bytes that the headers of a message may take.
const MAX_BLOCK: usize = 100_000;

impl Types for Iggy {
    const TYPED_KEYS: bool = true;
    const CODES: Kinds = Self::KINDS;
}

impl Block for Iggy {
    const NAME: &'static str = "iggy";
    const SOURCE: &'static str = "Apache Iggy 0.8.2 and later: typed keys and values";
    const LAYOUT: &'static str =
        "u8 key_type, u32 key_len, key, u8 type, u32 value_len, value; little-endian, repeated to the end";
    const KEYS: KeyForm = KeyForm::Typed;
    const KINDS: Kinds = Kinds::Iggy;
    const ORDER: ByteOrder = ByteOrder::Little;
    const CARRIES: Carries = Carries { nulls: false, part_len: (LEAST_PART, MOST_PART), checks: Checks::Size };
    const CANONICAL: Option<fn(&Header<'_>, &Header<'_>) -> Ordering> = Some(by_kind_and_bytes);

    type Frame = Typed<Iggy>;
    const MOST_WRITTEN: usize = MAX_BLOCK;

    #[inline]
    fn walk<'a, M: Mode, S: Sink<'a>>(cursor: Cursor<'a>, options: ReadOptions, mode: &mut M, sink: &mut S) -> Result {
        let kinds = if options.strict_types { Kinds::IggyNamed } else { Kinds::Iggy };
        walk_to_end(cursor, options, mode, sink, |cursor, index, mode| read_header(cursor, index, kinds, mode))
    }

    fn encoded_len<M: Mode>(headers: &[Header<'_>], mode: &mut M) -> Result<usize> {
        let len = headers.iter().map(written_len).sum();
        if len > MAX_BLOCK {
            return Err(
                mode.hard(Code::TooLarge, None, || format!("the headers take {len} bytes, more than {MAX_BLOCK}"))
            );
        }
        Ok(len)
    }

    fn encode_into(headers: &[Header<'_>], out: &mut Vec<u8>) {
        out.reserve(headers.iter().map(written_len).sum());
        for header in headers {
            let (kind, bits) = typed_key(&header.key);
            write_bits(out, Self::KINDS, Some(kind), &bits);
            write_bits(out, Self::KINDS, header.kind, header.value.unwrap_or_default());
        }
    }
}

/// One header; `None` when it could not be read and the walk goes on.
#[inline(always)] // One copy for each mode, in its loop: a header passed through memory costs more than reading it.
fn read_header<'a, M: Mode>(
    cursor: &mut Cursor<'a>,
    index: usize,
    kinds: Kinds,
    mode: &mut M,
) -> Result<Option<Header<'a>>> {
    let key_type = read_kind(cursor, kinds, "key type", mode)?;
    let (key_len, key_fits) = read_len(cursor, "key", "key length", mode)?;
    let key_at = cursor.at();
    let bytes = cursor.take(key_len, "key", mode)?;
    mode.label(key_at, cursor.at(), "key", || match key_type {
        Some(kind) => describe_typed(kind, bytes, ByteOrder::Little),
        None => counted(bytes.len(), "byte"),
    });
    let key = match key_type {
        Some(kind) if key_fits => match Checks::Size.check(kind, bytes) {
            Ok(()) => {
                let key = Key::Typed(TypedKey::new(kind, bytes, ByteOrder::Little));
                mode.name_header(&key);
                Some(key)
            }
            Err(misfit) => {
                mode.soft(misfit.code, Some(key_at), || format!("key of {}", misfit.message))?;
                None
            }
        },
        _ => None,
    };
    let kind = read_kind(cursor, kinds, "value type", mode)?;
    let value = read_value(cursor, kind, mode)?;
    let (Some(kind), Some((value, at))) = (kind, value) else { return Ok(None) };
    if let Err(misfit) = Checks::Size.check(kind, value) {
        mode.soft(misfit.code, Some(at), || misfit.message)?;
        return Ok(None);
    }
    Ok(key.map(|key| Header { index, key, kind: Some(kind), value: Some(value), at: Some(at) }))
}

/// The order of the crate's sorted map: kind codes, then bytes as they lie on the wire.
fn by_kind_and_bytes(left: &Header<'_>, right: &Header<'_>) -> Ordering {
    let place = |header: &Header<'_>| {
        let (kind, bits) = typed_key(&header.key);
        (Iggy::KINDS.code(kind), bits_of(kind, &bits, ByteOrder::Little).into_owned())
    };
    place(left).cmp(&place(right))
}

/// How many bytes a header takes.
fn written_len(header: &Header<'_>) -> usize {
    FIXED + header.key.byte_len() + header.value.map_or(0, <[u8]>::len)
}

/// The kind and the bits of a key, whose form may be that of another format.
fn typed_key<'k>(key: &'k Key<'_>) -> (Kind, Cow<'k, [u8]>) {
    match key {
        Key::Typed(typed) => (typed.kind, typed.bits()),
        Key::Text(text) => (Kind::Named(Scalar::String), Cow::Borrowed(text.as_bytes())),
        Key::Int(number) => (Kind::Named(Scalar::Int32), Cow::Owned(number.to_be_bytes().to_vec())),
    }
}
