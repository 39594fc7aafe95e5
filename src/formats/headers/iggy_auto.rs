//! `iggy-auto`: reads both layouts of Apache Iggy's headers, distinguished by the second byte.
//!
//! A key has at most 255 bytes. In `iggy-2023` its length comes first, so the second byte is 0; in `iggy` the second
//! byte is the lowest of the length, which is never 0.

use crate::cursor::Cursor;
use crate::format_info::Constraints;
use crate::header::{Header, KeyForm};
use crate::kernel::layout::NoKernels;
use crate::log::{Log, Result};
use crate::options::ReadOptions;
use crate::sink::Sink;
use crate::traits::HeadersFormat;
use crate::value::ByteOrder;
use crate::value_type::TypeCodes;

use super::iggy::Iggy;
use super::iggy_2023::Iggy2023;

pub struct IggyAuto;

impl HeadersFormat for IggyAuto {
    const NAME: &'static str = "iggy-auto";
    const SOURCE: &'static str = "Apache Iggy, either layout";
    const LAYOUT: &'static str = "iggy or iggy-2023, as the second byte tells";
    const KEYS: KeyForm = Iggy::KEYS;
    const TYPES: TypeCodes = Iggy::TYPES;
    const ORDER: ByteOrder = ByteOrder::Little;
    const CONSTRAINTS: Constraints = Iggy::CONSTRAINTS;
    const IS_TARGET: bool = false;

    type Layout = NoKernels;

    #[inline]
    fn parse<'a, R: Log, S: Sink<'a>>(cursor: Cursor<'a>, options: ReadOptions, log: &mut R, sink: &mut S) -> Result {
        match cursor.peek(1) {
            Some(0) => Iggy2023::parse(cursor, options, log, sink),
            _ => Iggy::parse(cursor, options, log, sink),
        }
    }

    fn encoded_len<R: Log>(headers: &[Header<'_>], log: &mut R) -> Result<usize> {
        Iggy::encoded_len(headers, log)
    }

    fn write_header(header: &Header<'_>, out: &mut Vec<u8>) {
        Iggy::write_header(header, out);
    }
}
