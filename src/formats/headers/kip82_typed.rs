//! `kip82-typed`: headers with string keys and typed values, as the first KIP-82 draft has them.
//!
//! ```text
//!   header   ┌───────────────┬───────────┬─────────────────┬───────────┬───────┐
//!            │ int32 key_len │ key UTF-8 │ int32 value_len │ byte type │ value │
//!            └───────────────┴───────────┴─────────────────┴───────────┴───────┘
//!                                                           ◀── value_len ────▶
//! ```
//!
//! Big-endian, repeated to the end of the block. A value length of 0 is null, without a kind.
//!
//! There is no reference implementation. Where the draft contradicts itself its table of type codes holds: a boolean is
//! one byte after its kind, and a char one UTF-16 unit.

use crate::cursor::Cursor;
use crate::header::{Header, KeyForm};
use crate::kernel::frame::Kip82;
use crate::kind::{Kind, Kinds, Scalar};
use crate::mode::{Mode, Result};
use crate::value::{ByteOrder, Checks};
use crate::walk::{Block, Carries, ReadOptions, Sink};

use super::{check_len, check_total, describe, describe_typed, read_text_key, text_of_key, unknown_type, walk_to_end};

pub struct Kip82Typed;

/// Two lengths.
const LENGTHS: usize = 8;

impl Block for Kip82Typed {
    const NAME: &'static str = "kip82-typed";
    const SOURCE: &'static str = "KIP-82 draft, typed string keys";
    const LAYOUT: &'static str =
        "int32 key_len, key UTF-8, int32 value_len (0: null), type byte, value; big-endian, repeated to the end";
    const KEYS: KeyForm = KeyForm::Text;
    const KINDS: Kinds = Kinds::Kip82;
    const ORDER: ByteOrder = ByteOrder::Big;
    const CARRIES: Carries = Carries { checks: Checks::Value, ..Carries::ALL };

    type Frame = Kip82;

    #[inline]
    fn walk<'a, M: Mode, S: Sink<'a>>(cursor: Cursor<'a>, options: ReadOptions, mode: &mut M, sink: &mut S) -> Result {
        walk_to_end(cursor, options, mode, sink, read_header)
    }

    fn encoded_len<M: Mode>(headers: &[Header<'_>], mode: &mut M) -> Result<usize> {
        let mut len = 0;
        for header in headers {
            let key = text_of_key(header).len();
            let value = header.value.map_or(0, |value| 1 + value.len());
            check_len("key", key, mode)?;
            check_len("value", value, mode)?;
            len += LENGTHS + key + value;
        }
        check_total(len, mode)
    }

    fn encode_into(headers: &[Header<'_>], out: &mut Vec<u8>) {
        for header in headers {
            let key = text_of_key(header);
            out.extend_from_slice(&(key.len() as i32).to_be_bytes());
            out.extend_from_slice(key);
            match (header.value, header.kind.and_then(|kind| Self::KINDS.code(kind))) {
                (Some(value), Some(code)) => {
                    out.extend_from_slice(&(1 + value.len() as i32).to_be_bytes());
                    out.push(code);
                    out.extend_from_slice(value);
                }
                _ => out.extend_from_slice(&0i32.to_be_bytes()),
            }
        }
    }
}

/// One header; `None` when it could not be read and the walk goes on.
#[inline(always)] // One copy for each mode, in its loop: a header passed through memory costs more than reading it.
fn read_header<'a, M: Mode>(cursor: &mut Cursor<'a>, index: usize, mode: &mut M) -> Result<Option<Header<'a>>> {
    let key_len = cursor.length32("key length", mode)?;
    let key = read_text_key(cursor, key_len, None, mode)?;
    let value_len = cursor.length32("value length", mode)?;
    let kind_at = cursor.at();
    let at = kind_at + 1;
    let Some((&code, value)) = cursor.take(value_len, "value", mode)?.split_first() else {
        return Ok(key.map(|key| Header { index, key, kind: None, value: None, at: Some(kind_at) }));
    };
    let kind = Kip82Typed::KINDS.kind(code);
    mode.label(kind_at, at, "value type", || kind.map_or_else(|| code.to_string(), |kind| kind.name().into_owned()));
    let Some(kind) = kind else {
        mode.label(at, cursor.at(), "value", || describe(value));
        unknown_type("value type", code, kind_at, mode)?;
        return Ok(None);
    };
    mode.label(at, cursor.at(), "value", || describe_typed(kind, value, ByteOrder::Big));
    if let Err(misfit) = Checks::Value.check(kind, value) {
        let nothing = kind == Kind::Named(Scalar::Bool) && value.is_empty();
        mode.soft(misfit.code, Some(at + misfit.within), || match nothing {
            true => "a boolean without its byte holds no value".into(),
            false => misfit.message,
        })?;
        return Ok(None);
    }
    Ok(key.map(|key| Header { index, key, kind: Some(kind), value: Some(value), at: Some(at) }))
}
