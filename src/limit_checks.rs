//! Checks of a parse against its [`Limits`], which report an excess to the log.

use crate::codec::{Codec, CodecError, decompress_into};
use crate::error::{Code, Direction, Error, format_count};
use crate::limits::{HEADERS, Limit, Limits, MESSAGE_BYTES, OUTPUT_BYTES, RECORDS};
use crate::log::{BatchCounts, CollectErrors, Log, Result, Stop};

impl Limits {
    /// Rejects a message for its size.
    #[inline(always)] // Called once per row, where only the comparison matters.
    pub fn check_message_bytes<R: Log>(&self, len: usize, log: &mut R) -> Result {
        if len <= self.message_bytes {
            return Ok(());
        }
        Err(too_many(log, self.message_bytes, MESSAGE_BYTES, self.message_bytes, || {
            format!("the input has {}, over", format_count(len, "byte"))
        }))
    }

    /// Checks the size of a message like `check_message_bytes`, but returns the error instead of logging it.
    pub fn check_size(&self, len: usize, format: &'static str) -> Result<(), Error> {
        let mut log = CollectErrors::default();
        let checked = self.check_message_bytes(len, &mut log);
        log.finish_parse(checked, Direction::Decode, format)
    }

    /// Rejects a number of headers, which is stated at `byte`.
    #[inline(always)] // Called once per row.
    pub fn check_count<R: Log>(&self, count: usize, byte: usize, log: &mut R) -> Result {
        if count <= self.headers {
            return Ok(());
        }
        Err(too_many(log, byte, HEADERS, self.headers, || format!("{} declared, over", format_count(count, "header"))))
    }

    /// Rejects the header with this index, in formats that do not declare the number of headers.
    #[inline(always)] // Called once per header.
    pub fn check_header<R: Log>(&self, index: usize, byte: usize, log: &mut R) -> Result {
        if index < self.headers {
            return Ok(());
        }
        Err(too_many(log, byte, HEADERS, self.headers, || "more headers than".into()))
    }

    /// Counts the bytes of a message of a batch, and rejects it if the value exceeds its limit of records or of bytes.
    ///
    /// The error has no position: no single byte of the value, which may be compressed, is wrong.
    #[inline] // Called once per record.
    pub fn check_message(&self, bytes: usize, log: &mut CollectErrors) -> Result {
        log.count_output(bytes);
        let BatchCounts { messages, output_bytes, .. } = log.counts();
        match messages <= self.records && output_bytes <= self.output_bytes {
            true => Ok(()),
            false => Err(self.value_too_large(log)),
        }
    }

    /// Decompresses records of a value to the beginning of a buffer, and returns their length. All compressed data of a
    /// value counts together. After data that exceeds the limit, nothing more is decompressed.
    pub fn decompress(
        &self,
        codec: Codec,
        bytes: &[u8],
        lz4_legacy: bool,
        byte: usize,
        log: &mut CollectErrors,
        buffer: &mut Vec<u8>,
    ) -> Result<usize> {
        let left = self.decompressed_bytes.saturating_sub(log.counts().decompressed_bytes);
        let (code, error) = match decompress_into(codec, bytes, lz4_legacy, left, buffer) {
            Ok(len) => {
                log.count_decompressed(len);
                return Ok(len);
            }
            Err(error @ CodecError::Corrupt(_)) => (Code::BadCompression, error),
            Err(CodecError::TooLarge { .. }) => {
                log.count_decompressed(left);
                (Code::DecompressedTooLarge, CodecError::TooLarge { limit: self.decompressed_bytes })
            }
        };
        Err(log.fatal(code, Some(byte), || error.to_string()))
    }

    #[cold]
    fn value_too_large(&self, log: &mut CollectErrors) -> Stop {
        log.end_over_limit(match log.counts().messages > self.records {
            true => RECORDS.describe_excess("the value has more records than", self.records),
            false => OUTPUT_BYTES.describe_excess("the records of the value take more bytes than", self.output_bytes),
        })
    }
}

#[cold]
fn too_many<R: Log>(log: &mut R, byte: usize, limit: Limit, max: usize, excess: impl FnOnce() -> String) -> Stop {
    log.fatal(Code::LimitExceeded, Some(byte), || limit.describe_excess(&excess(), max))
}
