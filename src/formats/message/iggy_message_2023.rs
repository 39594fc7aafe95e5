//! `iggy-message-2023`: one message as clients of Apache Iggy 0.0.30 to 0.6 send it.
//!
//! ```text
//!   ┌─────────┬─────────────────┬─────────────────┬─────────────────┬─────────┐
//!   │ u128 id │ u32 headers_len │ iggy-2023 block │ u32 payload_len │ payload │
//!   └─────────┴─────────────────┴─────────────────┴─────────────────┴─────────┘
//!                                ◀─ headers_len ─▶                   ◀─ …_len ─▶
//! ```
//!
//! Little-endian. Differences from the reference implementation (`iggy` 0.6.210): those of the headers.

use super::{id_of, payload_of};
use crate::cursor::Cursor;
use crate::field::{Field, FieldType, FieldValue, Role};
use crate::format_info::{Contents, Encoded};
use crate::formats::headers::iggy_2023::Iggy2023;
use crate::log::{Log, Result};
use crate::memory;
use crate::number::fitting;
use crate::options::ReadOptions;
use crate::traits::{HeadersFormat, MessageFormat, Open, Opened};
use crate::value::ByteOrder;

pub struct IggyMessage2023;

const FIXED: usize = 24;

impl MessageFormat for IggyMessage2023 {
    const NAME: &'static str = "iggy-message-2023";
    const SOURCE: &'static str = "Apache Iggy 0.0.30 to 0.6: message as sent";
    const LAYOUT: &'static str = "u128 id, u32 headers_len, iggy-2023 block, u32 payload_len, payload; little-endian";
    const FIELDS: &'static [Field] = &[
        Field::new("id", FieldType::Id, Role::Id),
        Field::HEADERS,
        Field::new("payload", FieldType::Binary, Role::Value),
    ];

    type Headers = Iggy2023;
    type Fields<'a> = [FieldValue<'a>; 2];

    fn open<'a, R: Log>(mut cursor: Cursor<'a>, _: ReadOptions, log: &mut R) -> Open<'a, Self> {
        let id: u128 = cursor.number("id", ByteOrder::Little, log)?;
        let (headers, payload, whole) = open_body(&mut cursor, log)?;
        if whole {
            cursor.nothing_after("payload", log)?;
        }
        Ok(Opened { headers: Some(headers), fields: [FieldValue::Id(id.to_be_bytes()), payload] })
    }

    fn encode<R: Log>(message: Contents<'_>, log: &mut R, out: &mut Vec<u8>) -> Result<Encoded> {
        let mut id = id_of(message.fields[0], log)?;
        let payload = payload_of(message.fields[1], log)?;
        let len = Iggy2023::encoded_len(message.headers, log)?;
        memory::reserve(out, FIXED + len + payload.len());
        id.reverse();
        out.extend_from_slice(&id);
        out.extend_from_slice(&fitting::<u32, _>(len).to_le_bytes());
        Iggy2023::encode_into(message.headers, out);
        out.extend_from_slice(&fitting::<u32, _>(payload.len()).to_le_bytes());
        out.extend_from_slice(payload);
        Ok(Encoded::Message)
    }
}

/// Reads the headers and the payload; also returns whether the payload is complete.
pub fn open_body<'a, R: Log>(cursor: &mut Cursor<'a>, log: &mut R) -> Result<(Cursor<'a>, FieldValue<'a>, bool)> {
    let len = cursor.number::<u32, _>("headers length", ByteOrder::Little, log)? as usize;
    let headers = cursor.split(len, "headers block", log)?;
    let Some(len) = cursor.number_or_error::<u32, _>("payload length", ByteOrder::Little, log)? else {
        return Ok((headers, FieldValue::Null, false));
    };
    let payload = cursor.take_or_error(len as usize, "payload", log)?;
    Ok((headers, payload.map_or(FieldValue::Null, FieldValue::Binary), payload.is_some()))
}
