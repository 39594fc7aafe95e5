//! `streams`: session aggregations and versioned values of Kafka Streams stores that keep headers (KIP-1271).
//!
//! ```text
//!   ┌──────────────┬───────────────────┬─────────┐
//!   │ varint size  │ kafka block       │ payload │
//!   └──────────────┴───────────────────┴─────────┘
//!                   ◀──── size ───────▶
//! ```
//!
//! No headers are size 0 and no block. A null payload is a tombstone: there is no cell.
//!
//! Differences from the reference implementation (`AggregationWithHeadersDeserializer`): those of the block.

use crate::cursor::Cursor;
use crate::error::{Code, Loss};
use crate::formats::headers::kafka::Kafka;
use crate::header::Header;
use crate::mode::{Mode, Result};
use crate::varint;
use crate::walk::{Block, Contents, Envelope, Field, FieldType, FieldValue, Open, Opened, ReadOptions, Role, Sealed};

pub struct Streams;

impl Envelope for Streams {
    const NAME: &'static str = "streams";
    const SOURCE: &'static str = "KIP-1271: session aggregations and versioned values";
    const LAYOUT: &'static str = "varint size, kafka block, payload";
    const FIELDS: &'static [Field] = &[Field::HEADERS, Field::new("payload", FieldType::Binary, Role::Payload)];

    type Block = Kafka;
    type Fields<'a> = [FieldValue<'a>; 1];

    fn open<'a, M: Mode>(mut cursor: Cursor<'a>, options: ReadOptions, mode: &mut M) -> Open<'a, Self> {
        let block = open_block(&mut cursor, options, mode)?;
        Ok(Opened { block: Some(block), fields: [open_payload(&mut cursor, mode)?] })
    }

    fn seal<M: Mode>(message: Contents<'_>, mode: &mut M, out: &mut Vec<u8>) -> Result<Sealed> {
        let FieldValue::Binary(payload) = message.fields[0] else { return seal_tombstone(message.headers, mode) };
        seal_block(message.headers, payload.len(), mode, out)?;
        out.extend_from_slice(payload);
        Ok(Sealed::Written)
    }
}

/// The size and the block that it delimits.
pub(super) fn open_block<'a, M: Mode>(
    cursor: &mut Cursor<'a>,
    options: ReadOptions,
    mode: &mut M,
) -> Result<Cursor<'a>> {
    let size = cursor.length("headers size", options.lenient, mode)?;
    cursor.split(size, "headers block", mode)
}

/// Everything that is left.
pub(super) fn open_payload<'a, M: Mode>(cursor: &mut Cursor<'a>, mode: &mut M) -> Result<FieldValue<'a>> {
    cursor.bytes(cursor.remaining(), "payload", mode).map(FieldValue::Binary)
}

/// Writes the size and the block, with room for `after` bytes more.
pub(super) fn seal_block<M: Mode>(headers: &[Header<'_>], after: usize, mode: &mut M, out: &mut Vec<u8>) -> Result {
    let len = Kafka::encoded_len(headers, mode)?;
    out.reserve(varint::MAX_LEN + len + after);
    varint::write_count(len, out);
    Kafka::encode_into(headers, out);
    Ok(())
}

/// A tombstone has no cell, and so no place for headers.
pub(super) fn seal_tombstone<M: Mode>(headers: &[Header<'_>], mode: &mut M) -> Result<Sealed> {
    if !headers.is_empty() {
        mode.loss(false, || {
            Loss::of_message(
                Code::NullNotCarried,
                format!("the payload is null, so there is no cell for its headers ({})", headers.len()),
            )
        })?;
    }
    Ok(Sealed::Null)
}
