//! [`Limits`] on the input: its bytes and headers, the records and bytes that it expands to, and the number of reports
//! about it. They bound the memory that untrusted bytes can use; the defaults only affect hostile input.

use std::ffi::OsString;

use crate::error::Error;

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
    // Twice as many as fit into the largest message that Kafka accepts by default. This many headers take 30 MB of
    // columns, or 125 MB of objects.
    headers HEADERS "LETTERHEAD_MAX_HEADERS" "headers" 1_000_000;
    /// Decompressed bytes of one value, over all batches or compressed sets in it.
    decompressed_bytes DECOMPRESSED_BYTES "LETTERHEAD_MAX_DECOMPRESSED_BYTES" "bytes" 64 << 20;
    /// Records of one value, which is a batch or several batches one after another.
    // A log segment of Kafka has 1 GiB by default. Records of 107 bytes reach both limits at once.
    records RECORDS "LETTERHEAD_MAX_RECORDS" "records" 10_000_000;
    /// Bytes of keys, values, ids and headers of all records of one value together.
    output_bytes OUTPUT_BYTES "LETTERHEAD_MAX_OUTPUT_BYTES" "bytes" 1 << 30;
    /// Errors, losses or labels that one call lists. Every row of a column keeps its first 64.
    // About 3 MB of objects: more reports than anyone reads.
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
