//! `kip82-messages`, `kip82-messages-int`, `kip82-messages-wrapper`: message sets, as the KIP-82 drafts would have them
//! in a log and in a request, and as Kafka has them in formats 0 and 1.
//!
//! ```text
//!   ┌─────────┬─────────┬ ─ ─            a compressed message: the codec in its attributes, a set in its value
//!   │ message │ message │
//!   └─────────┴─────────┴ ─ ─
//! ```
//!
//! Offsets inside a compressed set are absolute in magic 0 and relative to its first message from magic 1 on, where the
//! outer offset is that of the last one. With log append time the outer timestamp is that of all.
//!
//! Differences from the reference implementation (`MemoryRecords` of Kafka 4.3.1, magic 0 and 1): a message that is cut
//! off at the end is a fault, which `lenient` lets go.

use std::marker::PhantomData;

use crate::codec::{Codec, CodecFault, decompress};
use crate::cursor::Cursor;
use crate::error::Code;
use crate::formats::message::kip82_message::{
    ATTRIBUTES, CODEC_BITS, FRAME_LEN, Fields, Framed, Int, Kip82Message, LOG_APPEND_BIT, Layout, MAGIC_FIELD as MAGIC,
    Message, OFFSET, TIMESTAMP, Typed, VALUE, Wrapped, open_frame, open_message,
};
use crate::formats::message::{bytes_of, number_or};
use crate::limits::Limits;
use crate::mode::{Exact, Mode, Stop};
use crate::walk::{Batch, FieldValue, Messages, Noting, Opened, ReadOptions};

/// A set of messages in one of the layouts.
pub struct Kip82Messages<L>(PhantomData<L>);

/// How the messages of a set are handed over.
pub trait SetLayout: Layout {
    /// Fields in the order of the table of whose set it is.
    type Handed<'a>: AsRef<[FieldValue<'a>]>;

    /// `set` is the attributes of the compressed set that a message is in.
    fn handed<'a>(fields: Fields<'a>, set: Option<u8>) -> Self::Handed<'a>;
}

/// A layout of the drafts, with the names of its sets.
pub trait DraftLayout: SetLayout {
    const SET_NAME: &'static str;
    const SET_SOURCE: &'static str;
    const SET_LAYOUT: &'static str;
}

macro_rules! handed_as_they_are {
    ($($layout:ty)*) => {$(
        impl SetLayout for $layout {
            type Handed<'a> = Fields<'a>;

            fn handed<'a>(fields: Fields<'a>, _set: Option<u8>) -> Fields<'a> {
                fields
            }
        }
    )*};
}

handed_as_they_are! { Typed Int Wrapped }

impl DraftLayout for Typed {
    const SET_NAME: &'static str = "kip82-messages";
    const SET_SOURCE: &'static str = "KIP-82 draft, typed string keys: message set";
    const SET_LAYOUT: &'static str = "kip82-message, repeated to the end; a compressed one holds a set of its own";
}

impl DraftLayout for Int {
    const SET_NAME: &'static str = "kip82-messages-int";
    const SET_SOURCE: &'static str = "KIP-82 draft, integer keys: message set";
    const SET_LAYOUT: &'static str = "kip82-message-int, repeated to the end; a compressed one holds a set of its own";
}

impl DraftLayout for Wrapped {
    const SET_NAME: &'static str = "kip82-messages-wrapper";
    const SET_SOURCE: &'static str = "KIP-82 alternative, value message wrapper: message set";
    const SET_LAYOUT: &'static str =
        "kip82-message-wrapper, repeated to the end; a compressed one holds a set of its own";
}

impl<L: DraftLayout> Batch for Kip82Messages<L> {
    const NAME: &'static str = L::SET_NAME;
    const SOURCE: &'static str = L::SET_SOURCE;
    const LAYOUT: &'static str = L::SET_LAYOUT;
    type Message = Kip82Message<L>;

    fn messages<'a, M: Noting, V: Messages<'a>>(
        mut cursor: Cursor<'a>,
        options: ReadOptions,
        mode: &mut M,
        each: &mut V,
    ) -> Result<(), Stop> {
        while cursor.remaining() > 0 {
            if options.lenient && is_cut_off(&cursor) {
                return Ok(());
            }
            mode.begin_message();
            let frame = open_frame(&mut cursor, mode)?;
            read_framed::<L, M, V>(frame, options.limits, mode, each)?;
        }
        Ok(())
    }
}

/// Hands over the message in a frame, or those of the set in it.
pub fn read_framed<'a, L: SetLayout, M: Noting, V: Messages<'a>>(
    frame: Framed<'a>,
    limits: Limits,
    mode: &mut M,
    each: &mut V,
) -> Result<(), Stop> {
    let attributes_at = frame.message.at() + ATTRIBUTES_WITHIN;
    match open_message::<L, M>(frame, mode) {
        Err(Stop) => each.unreadable(mode),
        Ok(Message { opened, value_at }) => match number_or(opened.fields[ATTRIBUTES], 0) as u8 & CODEC_BITS {
            0 => each.message(L::handed(opened.fields, None).as_ref(), opened.block, mode),
            codec => {
                // A set of which not even the length is there is nowhere in the cell, and that was noted.
                let Some(value_at) = value_at else { return each.unreadable(mode) };
                match decompressed(&opened, codec, limits, attributes_at, value_at, mode) {
                    Err(Stop) => each.unreadable(mode),
                    Ok(set) => each.within(&set, |each| expand::<L, M, _>(&set, &opened, value_at, mode, each)),
                }
            }
        },
    }
}

/// Where the attributes stand in a message: after its checksum and its magic.
const ATTRIBUTES_WITHIN: usize = 5;

/// Whether the cell ends inside the next message.
pub fn is_cut_off(cursor: &Cursor<'_>) -> bool {
    let rest = cursor.peek_rest();
    let size = rest.get(8..FRAME_LEN).and_then(|size| size.first_chunk()).map(|size| i32::from_be_bytes(*size));
    match size.map(usize::try_from) {
        None => true,
        Some(Ok(size)) => rest.len() - FRAME_LEN < size,
        Some(Err(_)) => false,
    }
}

/// The bytes of a compressed message's set.
fn decompressed<M: Noting>(
    outer: &Opened<'_, Fields<'_>>,
    codec: u8,
    limits: Limits,
    attributes_at: usize,
    value_at: usize,
    mode: &mut M,
) -> Result<Vec<u8>, Stop> {
    let codec = match Codec::from_attributes(codec) {
        Some(known @ (Codec::Gzip | Codec::Snappy | Codec::Lz4)) => known,
        _ => return Err(unknown_codec(codec, attributes_at, mode)),
    };
    let value = bytes_of(outer.fields[VALUE]).unwrap_or_default();
    let legacy = number_or(outer.fields[MAGIC], 0) == 0;
    decompress(codec, value, legacy, limits.decompressed_bytes).map_err(|fault| bad_compression(fault, value_at, mode))
}

pub fn unknown_codec<M: Mode>(codec: u8, at: usize, mode: &mut M) -> Stop {
    mode.hard(Code::UnknownCodec, Some(at), || format!("codec {codec} is unknown"))
}

/// Notes why bytes that stand there could not be decompressed.
pub fn bad_compression<M: Mode>(fault: CodecFault, at: usize, mode: &mut M) -> Stop {
    let code = match fault {
        CodecFault::Corrupt(_) => Code::BadCompression,
        CodecFault::TooLarge { .. } => Code::DecompressedTooLarge,
    };
    mode.hard(code, Some(at), || fault.to_string())
}

/// Hands over the messages of a compressed one.
fn expand<'a, L: SetLayout, M: Noting, V: Messages<'a>>(
    set: &'a [u8],
    outer: &Opened<'_, Fields<'_>>,
    value_at: usize,
    mode: &mut M,
    each: &mut V,
) -> Result<(), Stop> {
    mode.noted().messages -= 1;
    in_place_of(mode, value_at, |inner| {
        // What is wrong with the outer message is wrong with the first one in it, which takes its number.
        expand_set::<L, V>(set, outer, inner, each)
    })
}

/// Reads what was compressed: places in it mean nothing to who has the cell, so its faults stand where it does.
pub fn in_place_of<M: Noting>(
    mode: &mut M,
    at: usize,
    read: impl FnOnce(&mut Exact) -> Result<(), Stop>,
) -> Result<(), Stop> {
    let outer = mode.noted();
    let mut inner = Exact::new(outer.on_loss);
    inner.place = Some(at);
    inner.faults = std::mem::take(&mut outer.faults);
    (inner.messages, inner.output_bytes) = (outer.messages, outer.output_bytes);
    let done = read(&mut inner);
    (outer.messages, outer.output_bytes) = (inner.messages, inner.output_bytes);
    outer.over_limit = inner.over_limit;
    outer.faults = inner.faults;
    done
}

fn expand_set<'a, L: SetLayout, V: Messages<'a>>(
    set: &'a [u8],
    outer: &Opened<'_, Fields<'_>>,
    mode: &mut Exact,
    each: &mut V,
) -> Result<(), Stop> {
    let magic = number_or(outer.fields[MAGIC], 0);
    let base = match magic {
        0 => 0,
        _ => number_or(outer.fields[OFFSET], 0).wrapping_sub(last_offset(set)),
    };
    let attributes = number_or(outer.fields[ATTRIBUTES], 0) as u8;
    let appended = magic > 0 && attributes & LOG_APPEND_BIT != 0;
    let mut cursor = Cursor::new(set);
    let mut empty = true;
    while cursor.remaining() > 0 {
        empty = false;
        mode.begin_message();
        // A frame that breaks ends the set, and not what comes after the outer message.
        let Ok(frame) = open_frame(&mut cursor, mode) else { return each.unreadable(mode) };
        let opened = open_message::<L, _>(frame, mode).and_then(|message| {
            refuse_in_set(&message.opened, magic, mode)?;
            Ok(message.opened)
        });
        let Ok(mut inner) = opened else {
            each.unreadable(mode)?;
            continue;
        };
        inner.fields[OFFSET] = FieldValue::Int64(number_or(inner.fields[OFFSET], 0).wrapping_add(base));
        if appended {
            inner.fields[TIMESTAMP] = FieldValue::Int64(number_or(outer.fields[TIMESTAMP], 0));
        }
        each.message(L::handed(inner.fields, Some(attributes)).as_ref(), inner.block, mode)?;
    }
    if empty && !mode.faults.is_empty() {
        // There is no message to tell of what is wrong with the outer one.
        mode.begin_message();
        each.unreadable(mode)?;
    }
    Ok(())
}

/// A message of a compressed set is of the same magic, and no such set itself.
fn refuse_in_set(inner: &Opened<'_, Fields<'_>>, magic: i64, mode: &mut Exact) -> Result<(), Stop> {
    let found = number_or(inner.fields[MAGIC], 0);
    if found != magic {
        return Err(mode.hard(Code::BadMagic, None, || format!("magic {found} inside a set of magic {magic}")));
    }
    if number_or(inner.fields[ATTRIBUTES], 0) as u8 & CODEC_BITS != 0 {
        return Err(mode.hard(Code::BadAttributes, None, || "a compressed set inside a compressed set".into()));
    }
    Ok(())
}

/// The offset of the last message that is there as a whole; 0 when there is none.
fn last_offset(set: &[u8]) -> i64 {
    let (mut rest, mut last) = (set, 0);
    while let Some((frame, after)) = rest.split_first_chunk::<FRAME_LEN>() {
        let (offset, size) = frame.split_at(8);
        let size = size.first_chunk().map(|size| i32::from_be_bytes(*size)).unwrap_or(-1);
        let Some(after) = usize::try_from(size).ok().and_then(|size| after.get(size..)) else { break };
        last = offset.first_chunk().map(|offset| i64::from_be_bytes(*offset)).unwrap_or_default();
        rest = after;
    }
    last
}
