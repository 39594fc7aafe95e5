//! Message sets of the KIP-82 drafts and of Kafka's formats 0 and 1: messages written one after another, or as one
//! compressed message that holds them.

use crate::codec::{Codec, compress, compress_legacy};
use crate::error::{Code, Direction, Error, Fault, Located};
use crate::format::Visitor;
use crate::formats::batch::kip82_messages::DraftLayout;
use crate::formats::message::kip82_message::{
    ATTRIBUTES, CODEC_BITS, Kip82Message, LOG_APPEND_BIT, MAGIC, MAGIC_FIELD, OFFSET, TIMESTAMP,
};
use crate::formats::message::number_or;
use crate::op::write::EncodeMessage;
use crate::walk::{FieldValue, WriteOptions};

/// The codecs of these formats: zstd came with record batches.
const CODECS: [Codec; 4] = [Codec::None, Codec::Gzip, Codec::Snappy, Codec::Lz4];

/// Writes messages as one set.
pub fn write<L: DraftLayout>(messages: Vec<EncodeMessage<'_>>, codec: Codec) -> Result<Vec<u8>, Error> {
    if !CODECS.contains(&codec) {
        let known = CODECS.map(Codec::name).join(", ");
        return Err(Error::Value(format!("{} has no codec {}: choose one of {known}", L::SET_NAME, codec.name())));
    }
    let Some(first) = messages.first() else {
        return Err(Error::Value("a set has one message at least, and none was given".into()));
    };
    let mut set = Set::new(&first.fields, codec);
    for (row, message) in messages.into_iter().enumerate() {
        set.push::<L>(message).map_err(|error| error.in_row(row))?;
    }
    set.finish::<L>()
}

fn refused<L: DraftLayout>(code: Code, message: String) -> Error {
    let fault = Fault::of_message(code, message);
    Error::Headers(Direction::Encode, Box::new(Located { format: L::SET_NAME, row: None, fault }))
}

/// What the messages of a compressed set have in common, by their fields.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Common {
    magic: i64,
    /// With log append time, the timestamp of every message.
    appended: Option<i64>,
}

impl Common {
    fn of(fields: &[FieldValue<'_>]) -> Common {
        let magic = number_or(fields[MAGIC_FIELD], MAGIC.into());
        let appended = magic > 0 && number_or(fields[ATTRIBUTES], 0) as u8 & LOG_APPEND_BIT != 0;
        Common { magic, appended: appended.then(|| timestamp_of(fields)) }
    }
}

fn timestamp_of(fields: &[FieldValue<'_>]) -> i64 {
    number_or(fields[TIMESTAMP], -1)
}

/// A set as it is written, message by message.
struct Set {
    codec: Codec,
    common: Common,
    first_offset: i64,
    last_offset: Option<i64>,
    largest_timestamp: i64,
    messages: Vec<u8>,
}

impl Set {
    fn new(first: &[FieldValue<'_>], codec: Codec) -> Set {
        Set {
            codec,
            common: Common::of(first),
            first_offset: number_or(first[OFFSET], 0),
            last_offset: None,
            largest_timestamp: timestamp_of(first),
            messages: Vec::new(),
        }
    }

    /// Adds a message; without an offset it gets the one after the message before it.
    fn push<L: DraftLayout>(&mut self, mut message: EncodeMessage<'_>) -> Result<(), Error> {
        let fields = &mut message.fields;
        let refuse = |code, message: String| Err(refused::<L>(code, message));
        let next = self.last_offset.map_or(self.first_offset, |last| last.wrapping_add(1));
        let offset = number_or(fields[OFFSET], next);
        if let Some(last) = self.last_offset.filter(|last| offset <= *last) {
            return refuse(Code::OutOfRange, format!("offset {offset} is not after {last}"));
        }
        if number_or(fields[ATTRIBUTES], 0) as u8 & CODEC_BITS != 0 {
            return refuse(Code::BadAttributes, "a compressed set is no message of a set: give its messages".into());
        }
        let mut written = offset;
        if self.codec != Codec::None {
            let Common { magic, appended } = Common::of(fields);
            if magic != self.common.magic {
                let message = format!("magic {magic} inside a set of magic {}", self.common.magic);
                return refuse(Code::BadMagic, message);
            }
            if appended != self.common.appended {
                let message = "a compressed set has one timestamp type, and with log append time one timestamp";
                return refuse(Code::FieldNotCarried, message.into());
            }
            if magic > 0 {
                written = offset.wrapping_sub(self.first_offset);
            }
        }
        self.largest_timestamp = self.largest_timestamp.max(timestamp_of(fields));
        fields[OFFSET] = FieldValue::Int64(written);
        self.messages.extend(message.visit::<Kip82Message<L>>()?.unwrap_or_default());
        self.last_offset = Some(offset);
        Ok(())
    }

    /// The bytes of the set: its messages, or the one message that holds them.
    fn finish<L: DraftLayout>(self) -> Result<Vec<u8>, Error> {
        let Common { magic, appended } = self.common;
        let compressed = match (self.codec, magic) {
            (Codec::None, _) => return Ok(self.messages),
            (codec, 0) => compress_legacy(codec, &self.messages),
            (codec, _) => compress(codec, &self.messages),
        };
        let value = compressed.map_err(|fault| refused::<L>(Code::BadCompression, fault.to_string()))?;
        let bits = self.codec as i64 | if appended.is_some() { LOG_APPEND_BIT.into() } else { 0 };
        let fields = vec![
            FieldValue::Int64(self.last_offset.unwrap_or(self.first_offset)),
            FieldValue::Null,
            FieldValue::Int64(magic),
            FieldValue::Int64(bits),
            FieldValue::Int64(appended.unwrap_or(self.largest_timestamp)),
            FieldValue::Null,
            FieldValue::Binary(&value),
            FieldValue::Null,
        ];
        let outer = EncodeMessage { headers: Some(Vec::new()), fields, options: WriteOptions::default() };
        Ok(outer.visit::<Kip82Message<L>>()?.unwrap_or_default())
    }
}
