//! `streams`: session aggregations and versioned values of Kafka Streams stores that keep headers (KIP-1271).
//!
//! ```text
//!   ┌──────────────┬───────────────────┬─────────┐
//!   │ varint size  │ kafka block       │ payload │
//!   └──────────────┴───────────────────┴─────────┘
//!                   ◀──── size ───────▶
//! ```
//!
//! No headers are size 0. A null payload is a tombstone, which has no bytes at all.
//!
//! Differences from the reference implementation (`AggregationWithHeadersDeserializer`): those of the headers.

use crate::cursor::Cursor;
use crate::error::{Code, Loss};
use crate::field::{Field, FieldType, FieldValue, Role};
use crate::format_info::{Contents, Encoded};
use crate::formats::headers::kafka::Kafka;
use crate::header::Header;
use crate::log::{Log, Result};
use crate::memory;
use crate::options::ReadOptions;
use crate::traits::{HeadersFormat, MessageFormat, Open, Opened};
use crate::varint;

pub struct Streams;

impl MessageFormat for Streams {
    const NAME: &'static str = "streams";
    const SOURCE: &'static str = "KIP-1271: session aggregations and versioned values";
    const LAYOUT: &'static str = "varint size, kafka block, payload";
    const FIELDS: &'static [Field] = &[Field::HEADERS, Field::new("payload", FieldType::Binary, Role::StoredValue)];

    type Headers = Kafka;
    type Fields<'a> = [FieldValue<'a>; 1];

    #[inline(always)]
    fn open<'a, R: Log>(mut cursor: Cursor<'a>, options: ReadOptions, log: &mut R) -> Open<'a, Self> {
        let headers = open_headers(&mut cursor, options, log)?;
        Ok(Opened { headers: Some(headers), fields: [open_payload(&mut cursor, log)?] })
    }

    fn encode<R: Log>(message: Contents<'_>, log: &mut R, out: &mut Vec<u8>) -> Result<Encoded> {
        let FieldValue::Binary(payload) = message.fields[0] else { return encode_tombstone(message.headers, log) };
        encode_headers(message.headers, payload.len(), log, out)?;
        out.extend_from_slice(payload);
        Ok(Encoded::Message)
    }
}

/// Reads the size of the headers, and the headers.
#[inline(always)]
pub fn open_headers<'a, R: Log>(cursor: &mut Cursor<'a>, options: ReadOptions, log: &mut R) -> Result<Cursor<'a>> {
    let size = cursor.length("headers size", options.lenient, log)?;
    cursor.split(size, "headers block", log)
}

/// Reads the payload, which extends to the end.
#[inline]
pub fn open_payload<'a, R: Log>(cursor: &mut Cursor<'a>, log: &mut R) -> Result<FieldValue<'a>> {
    cursor.bytes(cursor.remaining(), "payload", log).map(FieldValue::Binary)
}

/// Writes the size and the headers, and reserves `after` more bytes.
pub fn encode_headers<R: Log>(headers: &[Header<'_>], after: usize, log: &mut R, out: &mut Vec<u8>) -> Result {
    let len = Kafka::encoded_len(headers, log)?;
    memory::reserve(out, varint::MAX_LEN + len + after);
    varint::write_count(len, out);
    Kafka::encode_into(headers, out);
    Ok(())
}

/// Writes a tombstone, which has no bytes. Headers are lost.
pub fn encode_tombstone<R: Log>(headers: &[Header<'_>], log: &mut R) -> Result<Encoded> {
    if !headers.is_empty() {
        log.loss(false, || {
            Loss::of_message(
                Code::NullNotCarried,
                format!("the payload is null, so its headers cannot be written ({})", headers.len()),
            )
        })?;
    }
    Ok(Encoded::Null)
}
