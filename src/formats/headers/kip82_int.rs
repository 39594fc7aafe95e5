//! `kip82-int`: headers with integer keys, from the second KIP-82 draft and the message wrapper.
//!
//! ```text
//!   header   ┌───────────┬──────────────────────────┬───────┐
//!            │ int32 key │ int32 value_len, -1=null │ value │
//!            └───────────┴──────────────────────────┴───────┘
//! ```
//!
//! Big-endian, repeated to the end of the headers. The order on the wire is kept, and keys repeat.
//!
//! There is no reference implementation.

use crate::cursor::Cursor;
use crate::format_info::Constraints;
use crate::header::{Header, Key, KeyForm};
use crate::kernel::layout::NoKernels;
use crate::log::{Log, Result};
use crate::number::fitting;
use crate::options::ReadOptions;
use crate::sink::Sink;
use crate::traits::HeadersFormat;
use crate::value::ByteOrder;
use crate::value_type::TypeCodes;

use super::{check_len, check_total, parse_to_end, read_nullable};

pub struct Kip82Int;

/// Length of a key and of the length of a value.
const FIXED: usize = 8;

impl HeadersFormat for Kip82Int {
    const NAME: &'static str = "kip82-int";
    const SOURCE: &'static str = "KIP-82 draft, integer keys";
    const LAYOUT: &'static str = "int32 key, int32 value_len or -1, value; big-endian, repeated to the end";
    const KEYS: KeyForm = KeyForm::Int;
    const TYPES: TypeCodes = TypeCodes::None;
    const ORDER: ByteOrder = ByteOrder::Big;
    const CONSTRAINTS: Constraints = Constraints::ALL;

    type Layout = NoKernels;

    #[inline]
    fn parse<'a, R: Log, S: Sink<'a>>(
        mut cursor: Cursor<'a>,
        options: ReadOptions,
        log: &mut R,
        sink: &mut S,
    ) -> Result {
        parse_to_end!(cursor, options, log, sink, |index| read_header(&mut cursor, index, log))
    }

    fn encoded_len<R: Log>(headers: &[Header<'_>], log: &mut R) -> Result<usize> {
        let mut len = 0;
        for header in headers {
            let value = header.value.map_or(0, <[u8]>::len);
            check_len("value", value, log)?;
            len += FIXED + value;
        }
        check_total(len, log)
    }

    fn write_header(header: &Header<'_>, out: &mut Vec<u8>) {
        let Key::Int(key) = header.key else { unreachable!("a writer passes only keys of this form") };
        out.extend_from_slice(&key.to_be_bytes());
        out.extend_from_slice(&header.value.map_or(-1i32, |value| fitting(value.len())).to_be_bytes());
        out.extend_from_slice(header.value.unwrap_or_default());
    }
}

#[inline(always)] // Inlined into the loop of each log: passing a header through memory costs more than reading it.
fn read_header<'a, R: Log>(cursor: &mut Cursor<'a>, index: usize, log: &mut R) -> Result<Option<Header<'a>>> {
    let key = Key::Int(cursor.number("key", ByteOrder::Big, log)?);
    log.name_header(&key);
    let len = cursor.nullable_length32("value length", log)?;
    let start = cursor.offset();
    let value = read_nullable(cursor, len, log)?;
    Ok(Some(Header { index, key, value_type: None, value, value_offset: Some(start) }))
}
