//! [`Limits`] on the input: its bytes and headers, the records and bytes that it expands to, and the number of reports
//! about it. They bound the memory that untrusted bytes can use; the defaults only affect hostile input.

use std::ffi::OsString;

use crate::codec::{Codec, CodecError, decompress_into};
use crate::error::{Code, Direction, Error, format_count};
use crate::log::{BatchCounts, CollectErrors, Log, Result, Stop};

macro_rules! limits {
    ($($(#[$doc:meta])* $field:ident $constant:ident $variable:literal $counts:literal $default:expr;)*) => {
        /// Maximum amounts of data that are read.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub struct Limits { $($(#[$doc])* pub $field: usize),* }

        $(pub const $constant: Limit = Limit { name: stringify!($field), variable: $variable, counts: $counts };)*

        impl Limits {
            pub const DEFAULT: Limits = Limits { $($field: $default),* };

            /// Returns the defaults, replaced by the environment variables that are set.
            pub fn from_variables(get: impl Fn(&str) -> Option<OsString>) -> Result<Limits, Error> {
                Ok(Limits { $($field: $constant.in_variable(get($variable), $default)?),* })
            }
        }
    };
}

limits! {
    /// Bytes of a message, checked before it is parsed.
    // The maximum of a value in an Arrow column with 32-bit offsets.
    message_bytes MESSAGE_BYTES "LETTERHEAD_MAX_MESSAGE_BYTES" "bytes" i32::MAX as usize;
    /// Headers of a message.
    // Twice the number that fits into the largest message that Kafka accepts by default; 30 MB of columns, or 125 MB of
    // objects.
    headers HEADERS "LETTERHEAD_MAX_HEADERS" "headers" 1_000_000;
    /// The most decompressed bytes of one value, over all batches or compressed sets in it.
    decompressed_bytes DECOMPRESSED_BYTES "LETTERHEAD_MAX_DECOMPRESSED_BYTES" "bytes" 64 << 20;
    /// Records of one value that holds many: a batch, or several batches one after another.
    // A log segment of Kafka has 1 GiB by default. Records of 107 bytes reach both limits at once.
    records RECORDS "LETTERHEAD_MAX_RECORDS" "records" 10_000_000;
    /// Bytes of keys, values, ids and headers of these records together.
    output_bytes OUTPUT_BYTES "LETTERHEAD_MAX_OUTPUT_BYTES" "bytes" 1 << 30;
    /// Errors, losses or labels that one call lists. Every row of a column keeps its first 64.
    // About 3 MB of objects, and more than a person reads.
    reports REPORTS "LETTERHEAD_MAX_REPORTS" "reports" 10_000;
    /// Bytes of an Arrow batch that leaves a reader. The package applies this limit; the core does not.
    arrow_batch_bytes ARROW_BATCH_BYTES "LETTERHEAD_MAX_ARROW_BATCH_BYTES" "bytes" 64 << 20;
}

impl Default for Limits {
    fn default() -> Self {
        Limits::DEFAULT
    }
}

/// Limit with its public name, the environment variable that sets it, and its unit.
#[derive(Debug, Clone, Copy)]
pub struct Limit {
    pub name: &'static str,
    pub variable: &'static str,
    counts: &'static str,
}

impl Limit {
    fn in_variable(&self, value: Option<OsString>, default: usize) -> Result<usize, Error> {
        let Some(value) = value else { return Ok(default) };
        let text = value.to_string_lossy();
        let number = text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten();
        number.ok_or_else(|| {
            let Limit { variable, counts, .. } = self;
            Error::Value(format!("{variable} is '{text}', not a whole number of {counts}"))
        })
    }

    /// Describes an excess of the limit, with the remedy.
    pub fn describe_excess(&self, excess: &str, max: usize) -> String {
        format!("{excess} the limit of {max}: raise {} in limits= or {}", self.name, self.variable)
    }
}

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
    #[inline(always)] // Called once per row, as above.
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

    /// Rejects a message of a batch, of this many bytes, if the data has too many records, or they take too many bytes.
    ///
    /// The error has no byte, because the data as a whole, which may be compressed, is too large.
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
