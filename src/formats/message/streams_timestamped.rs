//! `streams-timestamped`: key-value and window values of Kafka Streams stores that keep headers (KIP-1271).
//!
//! ```text
//!   ┌──────────────┬───────────────────┬─────────────────┬─────────┐
//!   │ varint size  │ kafka block       │ int64 timestamp │ payload │
//!   └──────────────┴───────────────────┴─────────────────┴─────────┘
//!                   ◀──── size ───────▶  big-endian, ms
//! ```
//!
//! Differences from the reference implementation (`ValueTimestampHeadersDeserializer`): those of the block.

use super::streams::{open_block, open_payload, seal_block, seal_tombstone};
use crate::cursor::Cursor;
use crate::error::Code;
use crate::formats::headers::kafka::Kafka;
use crate::mode::{Mode, Result};
use crate::value::ByteOrder;
use crate::walk::{Contents, Envelope, Field, FieldType, FieldValue, Open, Opened, ReadOptions, Role, Sealed};

pub struct StreamsTimestamped;

const TIMESTAMP_LEN: usize = 8;

impl Envelope for StreamsTimestamped {
    const NAME: &'static str = "streams-timestamped";
    const SOURCE: &'static str = "KIP-1271: key-value and window values";
    const LAYOUT: &'static str = "varint size, kafka block, int64 timestamp (ms, big-endian), payload";
    const FIELDS: &'static [Field] = &[
        Field::HEADERS,
        Field::new("timestamp", FieldType::Int64, Role::Millis),
        Field::new("payload", FieldType::Binary, Role::Payload),
    ];

    type Block = Kafka;
    type Fields<'a> = [FieldValue<'a>; 2];

    fn open<'a, M: Mode>(mut cursor: Cursor<'a>, options: ReadOptions, mode: &mut M) -> Open<'a, Self> {
        let block = open_block(&mut cursor, options, mode)?;
        let fields = match cursor.number_or_fault("timestamp", ByteOrder::Big, mode)? {
            Some(timestamp) => [FieldValue::Int64(timestamp), open_payload(&mut cursor, mode)?],
            None => [FieldValue::Null, FieldValue::Null],
        };
        Ok(Opened { block: Some(block), fields })
    }

    fn seal<M: Mode>(message: Contents<'_>, mode: &mut M, out: &mut Vec<u8>) -> Result<Sealed> {
        let FieldValue::Binary(payload) = message.fields[1] else { return seal_tombstone(message.headers, mode) };
        let FieldValue::Int64(timestamp) = message.fields[0] else {
            return Err(mode.hard(Code::NullField, None, || "the timestamp is null and the payload is not".into()));
        };
        seal_block(message.headers, TIMESTAMP_LEN + payload.len(), mode, out)?;
        out.extend_from_slice(&timestamp.to_be_bytes());
        out.extend_from_slice(payload);
        Ok(Sealed::Written)
    }
}
