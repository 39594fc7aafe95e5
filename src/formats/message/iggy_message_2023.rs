//! `iggy-message-2023`: one message as clients of Apache Iggy 0.0.30 to 0.6 send it.
//!
//! ```text
//!   ┌─────────┬─────────────────┬─────────────────┬─────────────────┬─────────┐
//!   │ u128 id │ u32 headers_len │ iggy-2023 block │ u32 payload_len │ payload │
//!   └─────────┴─────────────────┴─────────────────┴─────────────────┴─────────┘
//!                                ◀─ headers_len ─▶                   ◀─ …_len ─▶
//! ```
//!
//! Little-endian. Differences from the reference implementation (`iggy` 0.6.210): those of the block.

use super::{id_of, payload_of};
use crate::cursor::Cursor;
use crate::formats::headers::iggy_2023::Iggy2023;
use crate::mode::{Mode, Result};
use crate::value::ByteOrder;
use crate::walk::{Block, Contents, Envelope, Field, FieldType, FieldValue, Open, Opened, ReadOptions, Role, Sealed};

pub struct IggyMessage2023;

const FIXED: usize = 24;

impl Envelope for IggyMessage2023 {
    const NAME: &'static str = "iggy-message-2023";
    const SOURCE: &'static str = "Apache Iggy 0.0.30 to 0.6: message as sent";
    const LAYOUT: &'static str = "u128 id, u32 headers_len, iggy-2023 block, u32 payload_len, payload; little-endian";
    const FIELDS: &'static [Field] = &[
        Field::new("id", FieldType::Id, Role::Id),
        Field::HEADERS,
        Field::new("payload", FieldType::Binary, Role::Payload),
    ];

    type Block = Iggy2023;
    type Fields<'a> = [FieldValue<'a>; 2];

    fn open<'a, M: Mode>(mut cursor: Cursor<'a>, _: ReadOptions, mode: &mut M) -> Open<'a, Self> {
        let id: u128 = cursor.number("id", ByteOrder::Little, mode)?;
        let (block, payload, whole) = open_body(&mut cursor, mode)?;
        if whole {
            cursor.nothing_after("payload", mode)?;
        }
        Ok(Opened { block: Some(block), fields: [FieldValue::Id(id.to_be_bytes()), payload] })
    }

    fn seal<M: Mode>(message: Contents<'_>, mode: &mut M, out: &mut Vec<u8>) -> Result<Sealed> {
        let mut id = id_of(message.fields[0], mode)?;
        let payload = payload_of(message.fields[1], mode)?;
        let len = Iggy2023::encoded_len(message.headers, mode)?;
        out.reserve(FIXED + len + payload.len());
        id.reverse();
        out.extend_from_slice(&id);
        out.extend_from_slice(&(len as u32).to_le_bytes());
        Iggy2023::encode_into(message.headers, out);
        out.extend_from_slice(&(payload.len() as u32).to_le_bytes());
        out.extend_from_slice(payload);
        Ok(Sealed::Written)
    }
}

/// The block, the payload after it, and whether the payload was there.
pub fn open_body<'a, M: Mode>(cursor: &mut Cursor<'a>, mode: &mut M) -> Result<(Cursor<'a>, FieldValue<'a>, bool)> {
    let len = cursor.number::<u32, _>("headers length", ByteOrder::Little, mode)? as usize;
    let block = cursor.split(len, "headers block", mode)?;
    let Some(len) = cursor.number_or_fault::<u32, _>("payload length", ByteOrder::Little, mode)? else {
        return Ok((block, FieldValue::Null, false));
    };
    let payload = cursor.take_or_fault(len as usize, "payload", mode)?;
    Ok((block, payload.map_or(FieldValue::Null, FieldValue::Binary), payload.is_some()))
}
