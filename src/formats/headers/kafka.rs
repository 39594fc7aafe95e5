//! `kafka`: the headers of a Kafka record (KIP-82 as shipped, message format 2) and the `headers_bytes` of KIP-1271.
//!
//! ```text
//!   block    ┌────────────────┬────────┬────────┬ ─ ─
//!            │ varint count   │ header │ header │
//!            └────────────────┴────────┴────────┴ ─ ─
//!   header   ┌────────────────┬───────────┬──────────────────────────┬───────┐
//!            │ varint key_len │ key UTF-8 │ varint value_len, -1=null│ value │
//!            └────────────────┴───────────┴──────────────────────────┴───────┘
//! ```
//!
//! All varints are zig-zag. No headers are written as zero bytes; a count of 0 is also accepted.
//!
//! Differences from the reference implementation (`HeadersDeserializer` of Kafka Streams 4.3.1), which `lenient`
//! removes: a negative count and bytes after the last header are errors instead of being ignored, and a key that is not
//! UTF-8 is an error instead of being replaced.

use crate::cursor::Cursor;
use crate::error::{Code, format_count};
use crate::format_info::Constraints;
use crate::header::{Header, KeyForm};
use crate::kernel::varint_layout::VarintLayout;
use crate::log::{Log, Result};
use crate::options::ReadOptions;
use crate::sink::Sink;
use crate::traits::HeadersFormat;
use crate::value::ByteOrder;
use crate::value_type::TypeCodes;
use crate::varint;

use super::{check_len, check_total, read_nullable, read_text_key, text_of_key};

pub struct Kafka;

/// Encoded length of a null value.
const NULL: u8 = 1;

/// Minimum length of a header: a key length and a value length.
const MIN_HEADER_LEN: usize = 2;

impl HeadersFormat for Kafka {
    const NAME: &'static str = "kafka";
    const SOURCE: &'static str = "KIP-82 as shipped (record format 2), KIP-1271 headers_bytes";
    const LAYOUT: &'static str =
        "varint count, then varint key_len, key UTF-8, varint value_len or -1, value; zig-zag varints";
    const KEYS: KeyForm = KeyForm::Text;
    const TYPES: TypeCodes = TypeCodes::None;
    const ORDER: ByteOrder = ByteOrder::Big;
    const CONSTRAINTS: Constraints = Constraints::ALL;

    type Layout = VarintLayout;

    #[inline]
    fn parse<'a, R: Log, S: Sink<'a>>(mut data: Cursor<'a>, options: ReadOptions, log: &mut R, sink: &mut S) -> Result {
        if data.remaining() == 0 {
            return Ok(());
        }
        let start = data.offset();
        let count = data.varint("header count", options.lenient, log)?;
        if options.lenient && count <= 0 {
            return Ok(());
        }
        let count = usize::try_from(count)
            .map_err(|_| log.fatal(Code::NegativeCount, Some(start), || format!("header count {count} is negative")))?;
        let left = data.remaining();
        if count > left / MIN_HEADER_LEN {
            return Err(log.fatal(Code::CountTooLarge, Some(start), || {
                let (count, left) = (format_count(count, "header"), format_count(left, "byte"));
                format!("{count} declared and {left} left for them")
            }));
        }
        options.limits.check_count(count, start, log)?;
        for index in 0..count {
            log.enter_header(Some(index));
            if let Some(header) = read_header(&mut data, index, options.lenient, log)? {
                sink.header(header, log)?;
            }
        }
        log.enter_header(None);
        if data.remaining() != 0 && !options.lenient {
            return Err(log.fatal(Code::TrailingBytes, Some(data.offset()), || {
                format!("{} left after the last header", format_count(data.remaining(), "byte"))
            }));
        }
        Ok(())
    }

    fn encoded_len<R: Log>(headers: &[Header<'_>], log: &mut R) -> Result<usize> {
        if headers.is_empty() {
            return Ok(0);
        }
        let mut len = varint::count_len(headers.len());
        for (index, header) in headers.iter().enumerate() {
            log.enter_header(Some(index));
            let key = text_of_key(header);
            for (field, part) in [("key", Some(key)), ("value", header.value)] {
                let part_len = part.map_or(0, <[u8]>::len);
                check_len(field, part_len, log)?;
                len += part_len + part.map_or(1, |part| varint::count_len(part.len()));
            }
        }
        log.enter_header(None);
        check_total(len, log)
    }

    fn write_header(header: &Header<'_>, out: &mut Vec<u8>) {
        let key = text_of_key(header);
        varint::write_count(key.len(), out);
        out.extend_from_slice(key);
        match header.value {
            Some(value) => {
                varint::write_count(value.len(), out);
                out.extend_from_slice(value);
            }
            None => out.push(NULL),
        }
    }
}

/// Reads a header; `None` if its key is invalid and parsing continues.
#[inline(always)] // Inlined into the loop of each log: passing a header through memory costs more than reading it.
fn read_header<'a, R: Log>(
    cursor: &mut Cursor<'a>,
    index: usize,
    lenient: bool,
    log: &mut R,
) -> Result<Option<Header<'a>>> {
    let key_len = cursor.length("key length", lenient, log)?;
    // With `lenient`, bytes that are not UTF-8 are replaced as in Java.
    let instead = lenient.then_some(replace_as_java as fn(&[u8]) -> String);
    let key = read_text_key(cursor, key_len, instead, log)?;
    let value_len = cursor.nullable_length("value length", lenient, log)?;
    let start = cursor.offset();
    let value = read_nullable(cursor, value_len, log)?;
    Ok(key.map(|key| Header { index, key, value_type: None, value, value_offset: Some(start) }))
}

/// Decodes as Java's `String(bytes, UTF_8)` does: each malformed sequence becomes U+FFFD, and the three bytes of an
/// encoded surrogate are one such sequence.
fn replace_as_java(mut bytes: &[u8]) -> String {
    let mut out = String::new();
    loop {
        let error = match std::str::from_utf8(bytes) {
            Ok(text) => {
                out.push_str(text);
                return out;
            }
            Err(error) => error,
        };
        let (valid, bad) = bytes.split_at(error.valid_up_to());
        out.push_str(&String::from_utf8_lossy(valid));
        out.push(char::REPLACEMENT_CHARACTER);
        let skipped = match bad {
            [0xed, 0xa0..=0xbf, 0x80..=0xbf, ..] => 3,
            [0xed, 0xa0..=0xbf, ..] => 2,
            _ => error.error_len().unwrap_or(bad.len()),
        };
        bytes = &bad[skipped..];
    }
}
