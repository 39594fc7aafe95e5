//! Message sets: messages of Kafka's formats 0 and 1 one after another, some of which may be compressed sets.
//!
//! ```text
//!   ┌─────────┬─────────┬ ─ ─            a compressed message has the codec in its attributes and a set as its value
//!   │ message │ message │
//!   └─────────┴─────────┴ ─ ─
//! ```
//!
//! Offsets inside a compressed set are absolute in magic 0 and relative to its first message from magic 1 on, where the
//! outer offset is the offset of the last one. With log append time, all messages have the outer timestamp.

use crate::codec::Codec;
use crate::cursor::Cursor;
use crate::error::Code;
use crate::field::FieldValue;
use crate::formats::message::legacy::{
    ATTRIBUTES, ATTRIBUTES_OFFSET, CODEC_BITS, FRAME_LEN, Framed, LOG_APPEND_BIT, LegacyFields, MAGIC, MAGIC_OFFSET,
    Message, OFFSET, TIMESTAMP, VALUE, open_frame,
};
use crate::formats::message::{bytes_of, number_or};
use crate::limits::Limits;
use crate::log::{CollectErrors, FailFast, Log, OnLoss, Result, Stop};
use crate::traits::{BatchFormat, FieldsOf, FramePosition, MessageReceiver, Opened, Receiver};

/// Offset of the attributes of the first message.
const FRAMED_ATTRIBUTES_OFFSET: usize = FRAME_LEN + ATTRIBUTES_OFFSET;

/// Layout of the messages of a set, and their conversion to fields of a batch format.
pub trait SetLayout {
    type Batch: BatchFormat;

    fn open<'a, R: Log>(frame: Framed<'a>, log: &mut R) -> Result<Message<'a>>;

    /// Converts the fields of a message; `set` contains the attributes of the compressed set around it.
    fn fields<'a>(fields: LegacyFields<'a>, set: Option<u8>) -> FieldsOf<'a, Self::Batch>;
}

/// Passes the message of a frame, or the messages of a compressed set, to the receiver.
pub fn read_framed<'a, L: SetLayout, V: MessageReceiver<Batch = L::Batch>>(
    frame: Framed<'a>,
    limits: Limits,
    log: &mut CollectErrors,
    receiver: &mut Receiver<'_, 'a, V>,
) -> Result {
    let attributes_offset = frame.message.offset() + ATTRIBUTES_OFFSET;
    let earlier_errors = log.errors().len();
    match L::open(frame, log) {
        Err(Stop) => receiver.unreadable(log),
        Ok(Message { opened, value_offset }) => match number_or(opened.fields[ATTRIBUTES], 0).to_le_bytes()[0]
            & CODEC_BITS
        {
            0 => receiver.message(&L::fields(opened.fields, None), opened.headers, log),
            codec => {
                // The error of a missing value length was reported.
                let Some(value_offset) = value_offset else { return receiver.unreadable(log) };
                let (resumed, mut buffer) = (receiver.resume(), receiver.take_buffer());
                let content = match resumed {
                    Some(position) => Ok(position.content_len),
                    None => decompress_set(&opened, codec, limits, attributes_offset, value_offset, log, &mut buffer),
                };
                let read = match content {
                    Err(Stop) => receiver.unreadable(log),
                    Ok(len) => {
                        let set = &buffer[..len];
                        let first = FramePosition { content_len: len, ..resumed.unwrap_or_default() };
                        let has_errors = log.errors().len() > earlier_errors;
                        receiver.with_temporary(|receiver| {
                            expand::<L, _>(set, &opened, value_offset, first, has_errors, log, receiver)
                        })
                    }
                };
                receiver.return_buffer(buffer);
                read
            }
        },
    }
}

/// Decompresses the messages of a compressed set; returns no bytes for an uncompressed message.
pub fn open_set(outer: Message<'_>, limits: Limits, log: &mut CollectErrors) -> Result<Vec<u8>> {
    match (number_or(outer.opened.fields[ATTRIBUTES], 0).to_le_bytes()[0] & CODEC_BITS, outer.value_offset) {
        (0, _) | (_, None) => Ok(Vec::new()),
        (codec, Some(value_offset)) => {
            let mut set = Vec::new();
            let len =
                decompress_set(&outer.opened, codec, limits, FRAMED_ATTRIBUTES_OFFSET, value_offset, log, &mut set)?;
            set.truncate(len);
            Ok(set)
        }
    }
}

/// Calls `read` for every frame. With `lenient`, a truncated frame ends the data.
pub fn read_frames<'a, V: MessageReceiver>(
    mut cursor: Cursor<'a>,
    lenient: bool,
    log: &mut CollectErrors,
    receiver: &mut Receiver<'_, 'a, V>,
    mut read: impl FnMut(Framed<'a>, &mut CollectErrors, &mut Receiver<'_, 'a, V>) -> Result,
) -> Result {
    while cursor.remaining() > 0 && !(lenient && is_cut_off(cursor)) {
        // Errors of a batch belong to its first message.
        log.begin_message();
        let start = cursor.offset();
        let frame = open_frame(&mut cursor, log)?;
        receiver.enter(start..cursor.offset());
        read(frame, log, receiver)?;
    }
    Ok(())
}

/// Whether the data ends inside the next message.
fn is_cut_off(mut cursor: Cursor<'_>) -> bool {
    let mut log = CollectErrors::default();
    open_frame(&mut cursor, &mut log).is_err() && log.errors().iter().all(|error| error.code == Code::Truncated)
}

/// Decompresses the set of a compressed message to the beginning of a buffer; returns its length.
fn decompress_set(
    outer: &Opened<'_, LegacyFields<'_>>,
    codec: u8,
    limits: Limits,
    attributes_offset: usize,
    value_offset: usize,
    log: &mut CollectErrors,
    buffer: &mut Vec<u8>,
) -> Result<usize> {
    let codec = match Codec::from_attributes(codec) {
        Some(known @ (Codec::Gzip | Codec::Snappy | Codec::Lz4)) => known,
        _ => return Err(unknown_codec(codec, attributes_offset, log)),
    };
    let value = bytes_of(outer.fields[VALUE]).unwrap_or_default();
    let legacy = number_or(outer.fields[MAGIC], 0) == 0;
    limits.decompress(codec, value, legacy, value_offset, log, buffer)
}

pub fn unknown_codec<R: Log>(codec: u8, byte: usize, log: &mut R) -> Stop {
    log.fatal(Code::UnknownCodec, Some(byte), || format!("codec {codec} is unknown"))
}

/// Passes the inner messages of a compressed set to the receiver, from `first` on. `has_errors`: the outer message has
/// errors.
fn expand<'a, L: SetLayout, V: MessageReceiver<Batch = L::Batch>>(
    set: &'a [u8],
    outer: &Opened<'_, LegacyFields<'_>>,
    value_offset: usize,
    first: FramePosition,
    has_errors: bool,
    log: &mut CollectErrors,
    receiver: &mut Receiver<'_, 'a, V>,
) -> Result {
    log.cancel_message();
    log.with_error_byte(value_offset, |inner| {
        // Errors of the outer message are assigned to the first inner message, which gets its number.
        expand_set::<L, V>(set, outer, first, has_errors, inner, receiver)
    })
}

fn expand_set<'a, L: SetLayout, V: MessageReceiver<Batch = L::Batch>>(
    set: &'a [u8],
    outer: &Opened<'_, LegacyFields<'_>>,
    first: FramePosition,
    has_errors: bool,
    log: &mut CollectErrors,
    receiver: &mut Receiver<'_, 'a, V>,
) -> Result {
    let magic = number_or(outer.fields[MAGIC], 0);
    let base = match magic {
        0 => 0,
        _ => number_or(outer.fields[OFFSET], 0).wrapping_sub(last_offset(set)),
    };
    let attributes = number_or(outer.fields[ATTRIBUTES], 0).to_le_bytes()[0];
    let appended = magic > 0 && attributes & LOG_APPEND_BIT != 0;
    let mut cursor = Cursor::new(set);
    cursor.skip(first.offset);
    let mut empty = true;
    while cursor.remaining() > 0 {
        empty = false;
        log.begin_message();
        // A broken frame ends the set, but not the messages after the outer one.
        let Ok(frame) = open_frame(&mut cursor, log) else { return receiver.unreadable(log) };
        let opened = reject_other_magic(&frame, magic, log).and_then(|()| L::open(frame, log)).and_then(|message| {
            reject_set(&message.opened, log)?;
            Ok(message.opened)
        });
        let Ok(mut inner) = opened else {
            receiver.unreadable(log)?;
            continue;
        };
        inner.fields[OFFSET] = FieldValue::Int64(number_or(inner.fields[OFFSET], 0).wrapping_add(base));
        if appended {
            inner.fields[TIMESTAMP] = FieldValue::Int64(number_or(outer.fields[TIMESTAMP], 0));
        }
        if let Err(stop) = receiver.message(&L::fields(inner.fields, Some(attributes)), inner.headers, log) {
            receiver.stop_before(FramePosition { offset: cursor.offset(), ..first });
            return Err(stop);
        }
    }
    if empty && has_errors {
        // The set is empty, so the errors of the outer message get a separate message.
        log.begin_message();
        receiver.unreadable(log)?;
    }
    Ok(())
}

/// Rejects a message whose magic differs from that of its compressed set.
fn reject_other_magic(frame: &Framed<'_>, magic: i64, log: &mut CollectErrors) -> Result {
    match frame.message.peek(MAGIC_OFFSET).map(|byte| i64::from(byte as i8)) {
        Some(inner) if inner != magic => {
            Err(log.fatal(Code::BadMagic, None, || format!("magic {inner} inside a set of magic {magic}")))
        }
        _ => Ok(()),
    }
}

/// Rejects a compressed set within a compressed set.
fn reject_set(inner: &Opened<'_, LegacyFields<'_>>, log: &mut CollectErrors) -> Result {
    if number_or(inner.fields[ATTRIBUTES], 0).to_le_bytes()[0] & CODEC_BITS != 0 {
        return Err(log.fatal(Code::BadAttributes, None, || "a compressed set inside a compressed set".into()));
    }
    Ok(())
}

/// Offset of the last complete message; 0 if there is none.
fn last_offset(set: &[u8]) -> i64 {
    let (mut cursor, mut log, mut last) = (Cursor::new(set), FailFast::new(OnLoss::Raise), 0);
    while let Ok(frame) = open_frame(&mut cursor, &mut log) {
        last = frame.offset;
    }
    last
}
