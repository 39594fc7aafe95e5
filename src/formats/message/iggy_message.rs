//! `iggy-message`: one message of Apache Iggy 0.8.3 to 0.10. Later releases return it as the bytes of a message.
//!
//! ```text
//!    0 ┌──────────────┬──────────────────────────────┐
//!      │ u64 checksum │ u128 id                      │
//!   24 ├──────────────┼───────────────┬──────────────┴───────┐
//!      │ u64 offset   │ u64 timestamp │ u64 origin_timestamp │
//!   48 ├──────────────┴──┬────────────┴────┬───────┬─────────┤
//!      │ u32 headers_len │ u32 payload_len │ u64 0 │
//!   64 ├─────────────────┴─────┬───────────┴───────┘
//!      │ payload               │ iggy block │
//!      └───────────────────────┴────────────┘
//! ```
//!
//! Little-endian, times in microseconds. The checksum is not verified: releases differ in what it covers.
//! Differences from the reference implementation (`IggyMessage`): those of the headers.

use super::{id_of, payload_of, signed, unsigned};
use crate::cursor::Cursor;
use crate::error::Code;
use crate::field::{Field, FieldType, FieldValue, Role};
use crate::format_info::{Contents, Encoded};
use crate::formats::headers::iggy::Iggy;
use crate::log::{Log, Result};
use crate::memory;
use crate::number::fitting;
use crate::options::ReadOptions;
use crate::traits::{HeadersFormat, MessageFormat, Open, Opened};
use crate::value::ByteOrder;

pub struct IggyMessage;

const HEADER_LEN: usize = 64;

impl MessageFormat for IggyMessage {
    const NAME: &'static str = "iggy-message";
    const SOURCE: &'static str = "Apache Iggy 0.8.3 to 0.10: 64-byte message header";
    const LAYOUT: &'static str = "u64 checksum, u128 id, u64 offset, u64 timestamp, u64 origin_timestamp, \
                                  u32 headers_len, u32 payload_len, u64 0, payload, iggy block; little-endian";
    const FIELDS: &'static [Field] = &[
        Field::new("checksum", FieldType::Uint64, Role::Derived),
        Field::new("id", FieldType::Id, Role::Id),
        Field::new("offset", FieldType::Natural, Role::Offset),
        Field::new("timestamp", FieldType::Natural, Role::Micros),
        Field::new("origin_timestamp", FieldType::Natural, Role::Origin),
        Field::HEADERS,
        Field::new("payload", FieldType::Binary, Role::Value),
    ];

    type Headers = Iggy;
    type Fields<'a> = [FieldValue<'a>; 6];

    fn open<'a, R: Log>(mut cursor: Cursor<'a>, _: ReadOptions, log: &mut R) -> Open<'a, Self> {
        let checksum = cursor.number("checksum", ByteOrder::Little, log)?;
        let id: u128 = cursor.number("id", ByteOrder::Little, log)?;
        let mut numbers = [FieldValue::Null; 3];
        for (number, field) in numbers.iter_mut().zip(["offset", "timestamp", "origin timestamp"]) {
            let start = cursor.offset();
            let value = cursor.number(field, ByteOrder::Little, log)?;
            *number = signed(value, field, start, log)?;
        }
        let (payload, headers) = open_parts(&mut cursor, log)?;
        cursor.nothing_after("headers", log)?;
        let [offset, timestamp, origin] = numbers;
        let id = FieldValue::Id(id.to_be_bytes());
        let fields = [FieldValue::Uint64(checksum), id, offset, timestamp, origin, FieldValue::Binary(payload)];
        Ok(Opened { headers: Some(headers), fields })
    }

    fn encode<R: Log>(message: Contents<'_>, log: &mut R, out: &mut Vec<u8>) -> Result<Encoded> {
        let checksum = unsigned(message.fields[0], "checksum", log)?;
        let mut id = id_of(message.fields[1], log)?;
        let offset = unsigned(message.fields[2], "offset", log)?;
        let timestamp = unsigned(message.fields[3], "timestamp", log)?;
        let origin = unsigned(message.fields[4], "origin timestamp", log)?;
        let payload = payload_of(message.fields[5], log)?;
        let len = Iggy::encoded_len(message.headers, log)?;
        memory::reserve(out, HEADER_LEN + payload.len() + len);
        id.reverse();
        out.extend_from_slice(&checksum.to_le_bytes());
        out.extend_from_slice(&id);
        for number in [offset, timestamp, origin] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(&fitting::<u32, _>(len).to_le_bytes());
        out.extend_from_slice(&fitting::<u32, _>(payload.len()).to_le_bytes());
        out.extend_from_slice(&[0; 8]);
        out.extend_from_slice(payload);
        Iggy::encode_into(message.headers, out);
        Ok(Encoded::Message)
    }
}

/// Reads the lengths of headers and payload, the reserved bytes, the payload and the headers.
pub fn open_parts<'a, R: Log>(cursor: &mut Cursor<'a>, log: &mut R) -> Result<(&'a [u8], Cursor<'a>)> {
    let headers_len = cursor.number::<u32, _>("headers length", ByteOrder::Little, log)? as usize;
    let payload_len = cursor.number::<u32, _>("payload length", ByteOrder::Little, log)? as usize;
    let start = cursor.offset();
    if cursor.number::<u64, _>("reserved", ByteOrder::Little, log)? != 0 {
        log.error(Code::BadAttributes, Some(start), || "the reserved bytes are not 0".into())?;
    }
    Ok((cursor.bytes(payload_len, "payload", log)?, cursor.split(headers_len, "headers block", log)?))
}
