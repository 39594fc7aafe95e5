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
use crate::formats::headers::kafka::Kafka;
use crate::header::Header;
use crate::report::{Report, Result};
use crate::traits::{
    Contents, Field, FieldType, FieldValue, HeadersFormat, MessageFormat, Open, Opened, ReadOptions, Role, Sealed,
};
use crate::varint;

pub struct Streams;

impl MessageFormat for Streams {
    const NAME: &'static str = "streams";
    const SOURCE: &'static str = "KIP-1271: session aggregations and versioned values";
    const LAYOUT: &'static str = "varint size, kafka block, payload";
    const FIELDS: &'static [Field] = &[Field::HEADERS, Field::new("payload", FieldType::Binary, Role::Payload)];

    type Headers = Kafka;
    type Fields<'a> = [FieldValue<'a>; 1];

    fn open<'a, R: Report>(mut cursor: Cursor<'a>, options: ReadOptions, report: &mut R) -> Open<'a, Self> {
        let headers = open_headers(&mut cursor, options, report)?;
        Ok(Opened { headers: Some(headers), fields: [open_payload(&mut cursor, report)?] })
    }

    fn seal<R: Report>(message: Contents<'_>, report: &mut R, out: &mut Vec<u8>) -> Result<Sealed> {
        let FieldValue::Binary(payload) = message.fields[0] else { return seal_tombstone(message.headers, report) };
        seal_headers(message.headers, payload.len(), report, out)?;
        out.extend_from_slice(payload);
        Ok(Sealed::Written)
    }
}

/// The headers after their size.
pub(super) fn open_headers<'a, R: Report>(
    cursor: &mut Cursor<'a>,
    options: ReadOptions,
    report: &mut R,
) -> Result<Cursor<'a>> {
    let size = cursor.length("headers size", options.lenient, report)?;
    cursor.split(size, "headers block", report)
}

/// Everything that is left.
pub(super) fn open_payload<'a, R: Report>(cursor: &mut Cursor<'a>, report: &mut R) -> Result<FieldValue<'a>> {
    cursor.bytes(cursor.remaining(), "payload", report).map(FieldValue::Binary)
}

/// Writes the size and the headers, and reserves `after` bytes more.
pub(super) fn seal_headers<R: Report>(
    headers: &[Header<'_>],
    after: usize,
    report: &mut R,
    out: &mut Vec<u8>,
) -> Result {
    let len = Kafka::encoded_len(headers, report)?;
    out.reserve(varint::MAX_LEN + len + after);
    varint::write_count(len, out);
    Kafka::encode_into(headers, out);
    Ok(())
}

/// A tombstone has no bytes, and so no place for headers.
pub(super) fn seal_tombstone<R: Report>(headers: &[Header<'_>], report: &mut R) -> Result<Sealed> {
    if !headers.is_empty() {
        report.loss(false, || {
            Loss::of_message(
                Code::NullNotCarried,
                format!("the payload is null, so there is no cell for its headers ({})", headers.len()),
            )
        })?;
    }
    Ok(Sealed::Null)
}
