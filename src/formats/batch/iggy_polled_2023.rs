//! `iggy-polled-2023`: messages that servers of Apache Iggy 0.0.30 to 0.6 return to a poll.
//!
//! ```text
//!   era A  ┌────────────┬───────────────┬─────────┬─────────────────────────────────────────────────────────┐
//!          │ u64 offset │ u64 timestamp │ u128 id │ u32 headers_len, iggy-2023 block, u32 payload_len, payload │
//!          └────────────┴───────────────┴─────────┴─────────────────────────────────────────────────────────┘
//!   era B  ┌────────────┬──────────┬───────────────┬─────────┬──────────────┬─ ─
//!          │ u64 offset │ u8 state │ u64 timestamp │ u128 id │ u32 checksum │ headers and payload as above
//!          └────────────┴──────────┴───────────────┴─────────┴──────────────┴─ ─
//! ```
//!
//! Little-endian, times in microseconds, repeated to the end. Era A is the document of 2023, era B (0.0.40 and later)
//! adds a state and the CRC-32 of the payload. Data belongs to the era in whose layout its messages have known states
//! and end exactly at the end of the data. If both layouts fit, checksums decide; if neither fits, the first message
//! decides.
//!
//! Differences from the reference implementation (`iggy` 0.6.210): those of the headers.

use crate::cursor::Cursor;
use crate::error::Code;
use crate::field::{Field, FieldType, FieldValue, Role};
use crate::formats::checksum::{crc32, mismatch};
use crate::formats::headers::iggy_2023::Iggy2023;
use crate::formats::message::iggy_message_2023::open_body;
use crate::formats::message::signed;
use crate::log::{CollectErrors, Log, Result, Stop};
use crate::options::ReadOptions;
use crate::traits::{BatchFormat, FramePosition, MessageFormat, MessageReceiver, Opened, Receiver};
use crate::value::ByteOrder::Little;

pub struct IggyPolled2023;

pub struct PolledMessage;

const STATES: [(u8, &str); 4] = [(1, "available"), (10, "unavailable"), (20, "poisoned"), (30, "marked_for_deletion")];

impl BatchFormat for IggyPolled2023 {
    const NAME: &'static str = "iggy-polled-2023";
    const SOURCE: &'static str = "Apache Iggy 0.0.30 to 0.6: messages as polled";
    const LAYOUT: &'static str = "u64 offset, [u8 state], u64 timestamp, u128 id, [u32 checksum], u32 headers_len, \
                                  iggy-2023 block, u32 payload_len, payload; repeated to the end";
    type Message = PolledMessage;
    type Fields<'a> = [FieldValue<'a>; 6];

    fn messages<'a, V: MessageReceiver<Batch = Self>>(
        mut cursor: Cursor<'a>,
        _: ReadOptions,
        log: &mut CollectErrors,
        receiver: &mut Receiver<'_, 'a, V>,
    ) -> Result {
        let with_state = receiver.resume().map_or_else(|| has_state(cursor), |position| position.has_state);
        while cursor.remaining() > 0 {
            log.begin_message();
            let (opened, whole) = open_polled(&mut cursor, with_state, log)?;
            receiver.enter(cursor.offset()..cursor.offset());
            if let Err(stop) = receiver.message(&opened.fields, opened.headers, log) {
                receiver.stop_before(FramePosition { has_state: with_state, ..FramePosition::default() });
                return Err(stop);
            }
            if !whole {
                // The position of the next message is unknown.
                return Err(Stop);
            }
        }
        Ok(())
    }
}

/// Whether the messages have the layout of era B.
fn has_state(cursor: Cursor<'_>) -> bool {
    let (with_state, without) = (Filled::by(cursor, true), Filled::by(cursor, false));
    match (with_state.to_the_end, without.to_the_end) {
        (true, true) => with_state.checksums_hold,
        (fills, false) => fills || with_state.messages > 0,
        (false, true) => false,
    }
}

/// Result of parsing data as messages of one era.
struct Filled {
    messages: usize,
    to_the_end: bool,
    checksums_hold: bool,
}

impl Filled {
    fn by(mut cursor: Cursor<'_>, with_state: bool) -> Filled {
        let mut log = CollectErrors::default();
        let mut filled = Filled { messages: 0, to_the_end: false, checksums_hold: true };
        while cursor.remaining() > 0 {
            let opened = open_polled(&mut cursor, with_state, &mut log);
            let known = |fields: &[FieldValue<'_>; 6]| !with_state || fields[STATE] != FieldValue::Null;
            match opened {
                Ok((opened, true)) if known(&opened.fields) => filled.messages += 1,
                _ => return filled,
            }
            filled.checksums_hold &= !log.errors().iter().any(|error| error.code == Code::BadCrc);
            log.clear_errors();
        }
        filled.to_the_end = true;
        filled
    }
}

/// Index of the state among the fields.
const STATE: usize = 1;

/// Reads a message; also returns whether its payload is complete.
fn open_polled<'a, R: Log>(
    cursor: &mut Cursor<'a>,
    with_state: bool,
    log: &mut R,
) -> Result<(Opened<'a, [FieldValue<'a>; 6]>, bool)> {
    let start = cursor.offset();
    let offset = cursor.number("offset", Little, log)?;
    let offset = signed(offset, "offset", start, log)?;
    let state = if with_state { open_state(cursor, log)? } else { FieldValue::Null };
    let start = cursor.offset();
    let timestamp = cursor.number("timestamp", Little, log)?;
    let timestamp = signed(timestamp, "timestamp", start, log)?;
    let id: u128 = cursor.number("id", Little, log)?;
    let crc_offset = cursor.offset();
    let crc: Option<u32> = if with_state { Some(cursor.number("checksum", Little, log)?) } else { None };
    let (headers, payload, whole) = open_body(cursor, log)?;
    if let (Some(crc), FieldValue::Binary(payload)) = (crc, payload) {
        let computed = crc32(payload);
        if computed != crc {
            log.error(Code::BadCrc, Some(crc_offset), || mismatch(crc, computed))?;
        }
    }
    let checksum = crc.map_or(FieldValue::Null, |crc| FieldValue::Int64(crc.into()));
    let fields = [offset, state, timestamp, FieldValue::Id(id.to_be_bytes()), checksum, payload];
    Ok((Opened { headers: Some(headers), fields }, whole))
}

fn open_state<'a, R: Log>(cursor: &mut Cursor<'a>, log: &mut R) -> Result<FieldValue<'a>> {
    let start = cursor.offset();
    let code: u8 = cursor.number("state", Little, log)?;
    match STATES.iter().find(|(known, _)| *known == code) {
        Some((_, name)) => Ok(FieldValue::Text(name)),
        None => {
            log.error(Code::BadAttributes, Some(start), || format!("state {code} is unknown"))?;
            Ok(FieldValue::Null)
        }
    }
}

impl MessageFormat for PolledMessage {
    const NAME: &'static str = IggyPolled2023::NAME;
    const FIELDS: &'static [Field] = &[
        Field::new("offset", FieldType::Natural, Role::Offset),
        Field::new("state", FieldType::Text, Role::State),
        Field::new("timestamp", FieldType::Natural, Role::Micros),
        Field::new("id", FieldType::Id, Role::Id),
        Field::new("checksum", FieldType::Int64, Role::Derived),
        Field::HEADERS,
        Field::new("payload", FieldType::Binary, Role::Value),
    ];

    type Headers = Iggy2023;
    type Fields<'a> = [FieldValue<'a>; 6];
}
