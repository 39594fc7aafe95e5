//! `streams-timestamped`: key-value and window values of Kafka Streams stores that keep headers (KIP-1271).
//!
//! ```text
//!   ┌──────────────┬───────────────────┬─────────────────┬─────────┐
//!   │ varint size  │ kafka block       │ int64 timestamp │ payload │
//!   └──────────────┴───────────────────┴─────────────────┴─────────┘
//!                   ◀──── size ───────▶  big-endian, ms
//! ```
//!
//! Differences from the reference implementation (`ValueTimestampHeadersDeserializer`): those of the headers.

use super::streams::{encode_headers, encode_tombstone, open_headers, open_payload};
use crate::cursor::Cursor;
use crate::error::Code;
use crate::field::{Field, FieldType, FieldValue, Role};
use crate::format_info::{Contents, Encoded};
use crate::formats::headers::kafka::Kafka;
use crate::log::{Log, Result};
use crate::options::ReadOptions;
use crate::traits::{MessageFormat, Open, Opened};
use crate::value::ByteOrder;

pub struct StreamsTimestamped;

const TIMESTAMP_LEN: usize = 8;

impl MessageFormat for StreamsTimestamped {
    const NAME: &'static str = "streams-timestamped";
    const SOURCE: &'static str = "KIP-1271: key-value and window values";
    const LAYOUT: &'static str = "varint size, kafka block, int64 timestamp (ms, big-endian), payload";
    const FIELDS: &'static [Field] = &[
        Field::HEADERS,
        Field::new("timestamp", FieldType::Int64, Role::Millis),
        Field::new("payload", FieldType::Binary, Role::StoredValue),
    ];

    type Headers = Kafka;
    type Fields<'a> = [FieldValue<'a>; 2];

    #[inline(always)]
    fn open<'a, R: Log>(mut cursor: Cursor<'a>, options: ReadOptions, log: &mut R) -> Open<'a, Self> {
        let headers = open_headers(&mut cursor, options, log)?;
        let fields = match cursor.number_or_error("timestamp", ByteOrder::Big, log)? {
            Some(timestamp) => [FieldValue::Int64(timestamp), open_payload(&mut cursor, log)?],
            None => [FieldValue::Null, FieldValue::Null],
        };
        Ok(Opened { headers: Some(headers), fields })
    }

    fn encode<R: Log>(message: Contents<'_>, log: &mut R, out: &mut Vec<u8>) -> Result<Encoded> {
        let FieldValue::Binary(payload) = message.fields[1] else { return encode_tombstone(message.headers, log) };
        let FieldValue::Int64(timestamp) = message.fields[0] else {
            return Err(log.fatal(Code::NullField, None, || "the timestamp is null and the payload is not".into()));
        };
        encode_headers(message.headers, TIMESTAMP_LEN + payload.len(), log, out)?;
        out.extend_from_slice(&timestamp.to_be_bytes());
        out.extend_from_slice(payload);
        Ok(Encoded::Message)
    }
}
