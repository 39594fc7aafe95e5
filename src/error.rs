//! Errors of messages: a closed list of codes, and [`ErrorDetail`] with the reason, the byte and the header.

use std::fmt;

use crate::memory::Refused;

use strsim::osa_distance;

macro_rules! codes {
    ($($variant:ident $name:literal $meaning:literal)*) => {
        /// The code of an error. The list is closed: documentation and tests are derived from it.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Code { $($variant),* }

        impl Code {
            /// Every code, in the order of the documentation.
            pub const ALL: &'static [Code] = &[$(Code::$variant),*];

            /// The public name.
            pub fn name(self) -> &'static str {
                match self { $(Code::$variant => $name),* }
            }

            /// One line of documentation.
            pub fn meaning(self) -> &'static str {
                match self { $(Code::$variant => $meaning),* }
            }
        }
    };
}

codes! {
    Truncated "truncated" "the bytes end inside a field"
    VarintTooLong "varint_too_long" "a varint goes on after its fifth byte"
    VarintLostBits "varint_lost_bits" "the fifth byte of a varint carries bits that a 32-bit number cannot hold"
    NegativeLength "negative_length" "a length is negative and does not mean null"
    NegativeCount "negative_count" "the number of headers is negative"
    CountTooLarge "count_too_large" "more headers are announced than the bytes could hold"
    TrailingBytes "trailing_bytes" "bytes are left after the last header, or after a value"
    KeyNotUtf8 "key_not_utf8" "a key is not UTF-8"
    ValueNotUtf8 "value_not_utf8" "a value read as a string is not UTF-8"
    NullKey "null_key" "a header has no key"
    EmptyKey "empty_key" "a key has no bytes where the format requires at least one"
    EmptyValue "empty_value" "a value has no bytes where the format requires at least one"
    TooLong "too_long" "a key or value is longer than the format allows"
    TooLarge "too_large" "the headers of a message, or a column, are larger than the format or Arrow can carry"
    UnknownType "unknown_type" "a type code that the format does not define"
    WrongType "wrong_type" "a value has another type than the requested one"
    WrongSize "wrong_size" "a value has another number of bytes than its type"
    BadBool "bad_bool" "a boolean is neither 0 nor 1"
    BadText "bad_text" "a text is not a value of its type"
    OutOfRange "out_of_range" "a value does not fit the type it is read as"
    BadMagic "bad_magic" "an unknown magic byte"
    BadCrc "bad_crc" "a checksum does not match"
    BadAttributes "bad_attributes" "attribute bits that the format does not define"
    UnknownCodec "unknown_codec" "a compression codec that the format does not define"
    BadCompression "bad_compression" "compressed data cannot be read"
    DecompressedTooLarge "decompressed_too_large" "decompressed data would exceed the limit"
    RepeatedKey "repeated_key" "a key occurs more than once where one value was requested"
    TypeNotCarried "type_not_carried" "the target has no types, and how to write the value was not specified"
    NullNotCarried "null_not_carried" "the target has no way to write this null"
    LimitExceeded "limit_exceeded" "a limit that can be raised is exceeded"
    NotInOrder "not_in_order" "keys or offsets that should be in order are not"
    MissingKey "missing_key" "a required header is absent"
    Incomplete "incomplete" "headers that were not read may replace the value of a column"
    NullField "null_field" "a field of the message is null and the format has no null for it"
    KeyNotCarried "key_not_carried" "the target's keys are of another type"
    FieldNotCarried "field_not_carried" "the target does not have a field"
}

/// Error of a message. The caller adds format and row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorDetail {
    pub code: Code,
    /// Lower case, no full stop, never a user's bytes.
    pub message: String,
    /// Byte in the message, 0-based.
    pub byte: Option<usize>,
    /// Header in the message, 0-based.
    pub header: Option<usize>,
    pub key: Option<String>,
    /// Output column with the error.
    pub column: Option<String>,
}

impl ErrorDetail {
    /// An error of a whole message, without byte and header.
    pub fn of_message(code: Code, message: impl Into<String>) -> ErrorDetail {
        ErrorDetail { code, message: message.into(), byte: None, header: None, key: None, column: None }
    }

    /// Converts to an error with a format, and with a row if there are several messages.
    pub fn into_error(self, direction: Direction, format: &'static str, row: Option<usize>) -> Error {
        Error::Headers(direction, Box::new(Located { format, row, error: self }))
    }
}

/// Data of a message that the target format cannot hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loss {
    pub code: Code,
    /// Lower case, no full stop, never a user's bytes.
    pub message: String,
    /// Header in the message, 0-based; `None` for a field.
    pub header: Option<usize>,
    pub key: Option<String>,
    /// Type option that restores the type of the value.
    pub value_type: Option<String>,
    /// Replacement that was written; `None` if the data was dropped.
    pub written: Option<&'static str>,
}

impl Loss {
    /// A loss of data other than a header, without a replacement.
    pub fn of_message(code: Code, message: impl Into<String>) -> Loss {
        Loss { code, message: message.into(), header: None, key: None, value_type: None, written: None }
    }
}

impl From<Loss> for ErrorDetail {
    fn from(loss: Loss) -> ErrorDetail {
        let Loss { code, message, header, key, .. } = loss;
        ErrorDetail { code, message, byte: None, header, key, column: None }
    }
}

/// An error with its format and row, as an exception shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Located {
    pub format: &'static str,
    pub row: Option<usize>,
    pub error: ErrorDetail,
}

impl fmt::Display for Located {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let error = &self.error;
        write!(out, "{}: ", self.format)?;
        if let Some(column) = &error.column {
            write!(out, "column {column}: ")?;
        }
        out.write_str(&error.message)?;
        // Positions, which differ from row to row, come last, so that errors with the same reason can be grouped by
        // text.
        let positions = [("header", error.header), ("byte", error.byte), ("row", self.row)];
        let mut before = " (";
        for (name, position) in positions {
            if let Some(position) = position {
                write!(out, "{before}{name} {position}")?;
                before = ", ";
            }
        }
        out.write_str(if before == ", " { ")" } else { "" })
    }
}

/// The direction of the operation that failed, which determines the exception.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    Decode,
    Encode,
    Convert,
}

/// Reason why a call failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// A message is invalid and the caller requested exceptions.
    Headers(Direction, Box<Located>),
    /// An argument is wrong, such as an Arrow type or a misspelt name.
    Type(String),
    Value(String),
    /// Memory for data could not be allocated.
    Memory(Refused),
    /// A bug of this library.
    Internal(String),
}

impl Error {
    /// The row of the invalid message, if there are several messages.
    pub fn row(&self) -> Option<usize> {
        match self {
            Error::Headers(_, located) => located.row,
            Error::Type(_) | Error::Value(_) | Error::Memory(_) | Error::Internal(_) => None,
        }
    }

    /// Sets the row of the error; `None` for a single message.
    pub fn in_row(mut self, row: Option<usize>) -> Error {
        if let Error::Headers(_, located) = &mut self {
            located.row = row;
        }
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Headers(_, located) => located.fmt(out),
            Error::Memory(refused) => refused.fmt(out),
            Error::Type(text) | Error::Value(text) | Error::Internal(text) => out.write_str(text),
        }
    }
}

impl std::error::Error for Error {}

/// Error of interrupted work. The caller replaces it by the reason of the interrupt.
pub fn interrupted() -> Error {
    Error::Internal("the call was interrupted".into())
}

/// Formats a count with its unit: `1 byte`, `2 bytes`.
pub fn format_count(count: usize, unit: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {unit}{plural}")
}

/// Error of a key or value (`part`) that is empty or longer than its format allows.
#[cold]
pub fn bad_length(part: &str, len: usize, max: usize) -> (Code, String) {
    match (len, part) {
        (0, "key") => (Code::EmptyKey, "the key has no bytes".into()),
        (0, _) => (Code::EmptyValue, format!("the {part} has no bytes")),
        _ => (Code::TooLong, format!("{part} of {} is longer than {max}", format_count(len, "byte"))),
    }
}

/// Name nearest to a misspelt one, if it is near enough. Case is ignored.
pub fn suggestion<'a>(wrong: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let wrong = wrong.to_lowercase();
    names
        .map(|name| (osa_distance(&wrong, &name.to_lowercase()), name))
        .filter(|(far, name)| *far <= 1 + name.len() / 3)
        .min_by_key(|(far, _)| *far)
        .map(|(_, name)| name)
}

/// Error of an unlisted name, with the nearest name and the list.
pub fn unknown_name<'a>(option: &str, wrong: &str, names: impl Iterator<Item = &'a str> + Clone) -> Error {
    let list = names.clone().collect::<Vec<_>>().join(", ");
    let hint = suggestion(wrong, names).map(|near| format!(": did you mean '{near}'?")).unwrap_or_default();
    let plural = if option.ends_with('s') { "" } else { "s" };
    Error::Value(format!("unknown {option} '{wrong}'{hint} ({option}{plural}: {list})"))
}
