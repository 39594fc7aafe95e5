//! [`Charset`]: text in character sets other than UTF-8.
//!
//! ```text
//!   string:utf-16le   41 00 3d d8 e6 dc   .NET's `Encoding.Unicode`, Java's `UTF_16LE`; `utf-16be` has the other order
//!   string:latin-1    41 e9               ISO 8859-1: each byte is the code point of a character
//! ```
//!
//! No byte order mark is expected: U+FEFF is read as a character. U+FFFE, the mark in the wrong order, is rejected, as
//! in Java.

use crate::error::Code;
use crate::memory;
use crate::value::{ByteOrder, InvalidValue, invalid};

/// A character set and its encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Charset {
    Utf16(ByteOrder),
    Latin1,
}

/// Byte order mark when read in the wrong order.
const REVERSED_MARK: char = '\u{fffe}';

impl Charset {
    pub const ALL: [Charset; 3] = [Charset::Utf16(ByteOrder::Little), Charset::Utf16(ByteOrder::Big), Charset::Latin1];

    pub fn from_name(name: &str) -> Option<Charset> {
        Charset::ALL.into_iter().find(|charset| charset.name() == name)
    }

    pub fn name(self) -> &'static str {
        match self {
            Charset::Utf16(ByteOrder::Little) => "utf-16le",
            Charset::Utf16(ByteOrder::Big) => "utf-16be",
            Charset::Latin1 => "latin-1",
        }
    }

    /// Decodes text; half of a surrogate pair is an error.
    pub fn read(self, bytes: &[u8]) -> Result<String, Box<InvalidValue>> {
        let text = match self {
            Charset::Utf16(order) => utf16_text(bytes, order),
            Charset::Latin1 => Some(bytes.iter().copied().map(char::from).collect()),
        };
        text.ok_or_else(|| invalid(Code::BadText, || format!("the value is not {}", self.name())))
    }

    /// Appends the bytes of text; a character outside the set is an error.
    pub fn write(self, text: &str, out: &mut Vec<u8>) -> Result<(), Box<InvalidValue>> {
        let lacks = |character: char| match self {
            Charset::Utf16(_) => character == REVERSED_MARK,
            Charset::Latin1 => character > '\u{ff}',
        };
        if text.chars().any(lacks) {
            return Err(invalid(Code::OutOfRange, || format!("the text has a character that {} lacks", self.name())));
        }
        memory::reserve(out, text.len().saturating_mul(2));
        match self {
            Charset::Utf16(ByteOrder::Little) => out.extend(text.encode_utf16().flat_map(u16::to_le_bytes)),
            Charset::Utf16(ByteOrder::Big) => out.extend(text.encode_utf16().flat_map(u16::to_be_bytes)),
            Charset::Latin1 => out.extend(text.chars().map(|character| character as u8)),
        }
        Ok(())
    }
}

fn utf16_text(bytes: &[u8], order: ByteOrder) -> Option<String> {
    let (units, rest) = bytes.as_chunks::<2>();
    let units = units.iter().map(|unit| match order {
        ByteOrder::Little => u16::from_le_bytes(*unit),
        ByteOrder::Big => u16::from_be_bytes(*unit),
    });
    let text = char::decode_utf16(units).collect::<Result<String, _>>().ok()?;
    (rest.is_empty() && !text.contains(REVERSED_MARK)).then_some(text)
}

#[cfg(test)]
#[path = "../tests/rust/units/charset.rs"]
mod tests;
