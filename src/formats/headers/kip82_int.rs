//! `kip82-int`: headers with integer keys, as the second KIP-82 draft and the message wrapper have them.
//!
//! ```text
//!   header   ┌───────────┬──────────────────────────┬───────┐
//!            │ int32 key │ int32 value_len, -1=null │ value │
//!            └───────────┴──────────────────────────┴───────┘
//! ```
//!
//! Big-endian, repeated to the end of the block. The order on the wire is kept, and keys repeat.
//!
//! There is no reference implementation.

use crate::cursor::Cursor;
use crate::header::{Header, Key, KeyForm};
use crate::kernel::frame::Exact;
use crate::kind::Kinds;
use crate::mode::{Mode, Result};
use crate::value::ByteOrder;
use crate::walk::{Block, Carries, ReadOptions, Sink};

use super::{check_len, check_total, read_nullable, walk_to_end};

pub struct Kip82Int;

/// A key and a length.
const FIXED: usize = 8;

impl Block for Kip82Int {
    const NAME: &'static str = "kip82-int";
    const SOURCE: &'static str = "KIP-82 draft, integer keys";
    const LAYOUT: &'static str = "int32 key, int32 value_len or -1, value; big-endian, repeated to the end";
    const KEYS: KeyForm = KeyForm::Int;
    const KINDS: Kinds = Kinds::None;
    const ORDER: ByteOrder = ByteOrder::Big;
    const CARRIES: Carries = Carries::ALL;

    type Frame = Exact;

    #[inline]
    fn walk<'a, M: Mode, S: Sink<'a>>(cursor: Cursor<'a>, options: ReadOptions, mode: &mut M, sink: &mut S) -> Result {
        walk_to_end(cursor, options, mode, sink, read_header)
    }

    fn encoded_len<M: Mode>(headers: &[Header<'_>], mode: &mut M) -> Result<usize> {
        let mut len = 0;
        for header in headers {
            let value = header.value.map_or(0, <[u8]>::len);
            check_len("value", value, mode)?;
            len += FIXED + value;
        }
        check_total(len, mode)
    }

    fn encode_into(headers: &[Header<'_>], out: &mut Vec<u8>) {
        for header in headers {
            let Key::Int(key) = header.key else { unreachable!("the gate hands over keys of this block's form") };
            out.extend_from_slice(&key.to_be_bytes());
            out.extend_from_slice(&header.value.map_or(-1, |value| value.len() as i32).to_be_bytes());
            out.extend_from_slice(header.value.unwrap_or_default());
        }
    }
}

#[inline(always)] // One copy for each mode, in its loop: a header passed through memory costs more than reading it.
fn read_header<'a, M: Mode>(cursor: &mut Cursor<'a>, index: usize, mode: &mut M) -> Result<Option<Header<'a>>> {
    let key = Key::Int(cursor.number("key", ByteOrder::Big, mode)?);
    mode.name_header(&key);
    let len = cursor.nullable_length32("value length", mode)?;
    let at = cursor.at();
    let value = read_nullable(cursor, len, mode)?;
    Ok(Some(Header { index, key, kind: None, value, at: Some(at) }))
}
