//! `iggy-auto`: reads both layouts of Apache Iggy's headers, told apart by the second byte.
//!
//! A key has at most 255 bytes. In `iggy-2023` its length comes first, so the second byte is 0; in `iggy` the second byte
//! is the lowest of the length, which is never 0.

use crate::cursor::Cursor;
use crate::header::{Header, KeyForm};
use crate::kernel::frame::Exact;
use crate::kind::Kinds;
use crate::mode::{Mode, Result};
use crate::value::ByteOrder;
use crate::walk::{Block, Carries, ReadOptions, Sink};

use super::iggy::Iggy;
use super::iggy_2023::Iggy2023;

pub struct IggyAuto;

impl Block for IggyAuto {
    const NAME: &'static str = "iggy-auto";
    const SOURCE: &'static str = "Apache Iggy, either layout";
    const LAYOUT: &'static str = "iggy or iggy-2023, told apart by the second byte";
    const KEYS: KeyForm = Iggy::KEYS;
    const KINDS: Kinds = Iggy::KINDS;
    const ORDER: ByteOrder = ByteOrder::Little;
    const CARRIES: Carries = Iggy::CARRIES;
    const IS_TARGET: bool = false;

    type Frame = Exact;

    #[inline]
    fn walk<'a, M: Mode, S: Sink<'a>>(cursor: Cursor<'a>, options: ReadOptions, mode: &mut M, sink: &mut S) -> Result {
        match cursor.peek(1) {
            Some(0) => Iggy2023::walk(cursor, options, mode, sink),
            _ => Iggy::walk(cursor, options, mode, sink),
        }
    }

    fn encoded_len<M: Mode>(headers: &[Header<'_>], mode: &mut M) -> Result<usize> {
        Iggy::encoded_len(headers, mode)
    }

    fn encode_into(headers: &[Header<'_>], out: &mut Vec<u8>) {
        Iggy::encode_into(headers, out);
    }
}
