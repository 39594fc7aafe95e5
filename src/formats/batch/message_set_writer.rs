//! Writes a message set of the KIP-82 drafts or of Kafka's formats 0 and 1: messages one after another, or one
//! compressed message that contains them.

use std::mem;

use super::Builder;
use crate::codec::{Codec, compress, compress_legacy};
use crate::error::{Code, ErrorDetail};
use crate::field::FieldValue;
use crate::format_info::{Contents, FormatInfo};
use crate::formats::message::kip82_message;
use crate::formats::message::legacy::{ATTRIBUTES, CODEC_BITS, LOG_APPEND_BIT, MAGIC, OFFSET, TIMESTAMP};
use crate::formats::message::number_or;
use crate::log::CollectErrors;
use crate::memory;

/// Properties shared by all messages of a compressed set.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Common {
    magic: i64,
    /// Timestamp of all messages, with log append time.
    appended: Option<i64>,
}

impl Common {
    fn of(fields: &[FieldValue<'_>]) -> Common {
        let magic = number_or(fields[MAGIC], kip82_message::MAGIC.into());
        let appended = magic > 0 && number_or(fields[ATTRIBUTES], 0).to_le_bytes()[0] & LOG_APPEND_BIT != 0;
        Common { magic, appended: appended.then(|| timestamp_of(fields)) }
    }
}

fn timestamp_of(fields: &[FieldValue<'_>]) -> i64 {
    number_or(fields[TIMESTAMP], -1)
}

/// Codecs of message sets, which do not support Zstandard.
pub const CODECS: [Codec; 4] = [Codec::None, Codec::Gzip, Codec::Snappy, Codec::Lz4];

pub struct MessageSetBuilder {
    /// Format of the messages.
    format: &'static FormatInfo,
    codec: Codec,
    common: Common,
    first_offset: i64,
    last_offset: Option<i64>,
    largest_timestamp: i64,
    messages: Vec<u8>,
}

impl MessageSetBuilder {
    /// Begins a set whose first message will have these fields.
    pub fn new(format: &'static FormatInfo, first: &[FieldValue<'_>], codec: Codec) -> Self {
        MessageSetBuilder {
            format,
            codec,
            common: Common::of(first),
            first_offset: number_or(first[OFFSET], 0),
            last_offset: None,
            largest_timestamp: timestamp_of(first),
            messages: Vec::new(),
        }
    }
}

impl Builder for MessageSetBuilder {
    fn prepare(&mut self, fields: &mut [FieldValue<'_>]) -> Result<(), ErrorDetail> {
        let reject = |code, message: String| Err(ErrorDetail::of_message(code, message));
        let next = self.last_offset.map_or(self.first_offset, |last| last.wrapping_add(1));
        let offset = number_or(fields[OFFSET], next);
        if let Some(last) = self.last_offset.filter(|last| offset <= *last) {
            return reject(Code::OutOfRange, format!("offset {offset} is not after {last}"));
        }
        if number_or(fields[ATTRIBUTES], 0).to_le_bytes()[0] & CODEC_BITS != 0 {
            return reject(Code::BadAttributes, "a compressed set is no message of a set: give its messages".into());
        }
        let mut written = offset;
        if self.codec != Codec::None {
            let Common { magic, appended } = Common::of(fields);
            if magic != self.common.magic {
                let message = format!("magic {magic} inside a set of magic {}", self.common.magic);
                return reject(Code::BadMagic, message);
            }
            if appended != self.common.appended {
                let message = "a compressed set has one timestamp type, and with log append time one timestamp";
                return reject(Code::FieldNotCarried, message.into());
            }
            if magic > 0 {
                written = offset.wrapping_sub(self.first_offset);
            }
        }
        self.largest_timestamp = self.largest_timestamp.max(timestamp_of(fields));
        fields[OFFSET] = FieldValue::Int64(written);
        self.last_offset = Some(offset);
        Ok(())
    }

    fn push(&mut self, message: &[u8]) {
        memory::extend(&mut self.messages, message);
    }

    fn finish(&mut self) -> Result<Vec<u8>, ErrorDetail> {
        let Common { magic, appended } = self.common;
        let compressed = match (self.codec, magic) {
            (Codec::None, _) => return Ok(mem::take(&mut self.messages)),
            (codec, 0) => compress_legacy(codec, &self.messages),
            (codec, _) => compress(codec, &self.messages),
        };
        let value = compressed.map_err(|error| ErrorDetail::of_message(Code::BadCompression, error.to_string()))?;
        let bits = self.codec as i64 | if appended.is_some() { LOG_APPEND_BIT.into() } else { 0 };
        let fields = [
            FieldValue::Int64(self.last_offset.unwrap_or(self.first_offset)),
            FieldValue::Null,
            FieldValue::Int64(magic),
            FieldValue::Int64(bits),
            FieldValue::Int64(appended.unwrap_or(self.largest_timestamp)),
            FieldValue::Null,
            FieldValue::Binary(&value),
            FieldValue::Null,
        ];
        let (mut log, mut out) = (CollectErrors::default(), Vec::new());
        let contents = Contents { fields: &fields, headers: &[], has_headers_field: false };
        let _ = self.format.encode(contents, &mut log, &mut out);
        log.take_errors().pop().map_or(Ok(out), Err)
    }
}
