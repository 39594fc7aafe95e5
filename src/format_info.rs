//! [`FormatInfo`]: a format as a value: its name, its properties, and its functions.

use std::cmp::Ordering;

use crate::cursor::Cursor;
use crate::field::{Field, FieldValue};
use crate::header::{Header, KeyForm};
use crate::kernel::layout::Layout;
use crate::log::{EitherLog, Log, Result};
use crate::options::ReadOptions;
use crate::sink::{AnySink, Presence};
use crate::value::{ByteOrder, Checks};
use crate::value_type::TypeCodes;

/// The row of a format in the table.
#[derive(Debug, Clone, Copy)]
pub struct FormatInfo {
    pub name: &'static str,
    pub class: Class,
    pub source: &'static str,
    pub layout: &'static str,
    pub fields: &'static [Field],
    pub keys: KeyForm,
    pub types: TypeCodes,
    pub order: ByteOrder,
    pub constraints: Constraints,
    /// Whether `encode` and `convert` can write it.
    pub is_target: bool,
    /// The order of headers, if the format defines one.
    pub canonical: Option<HeaderOrder>,
    pub max_written: WrittenLimit,
    /// Layout of headers, which selects the kernels.
    pub wire_layout: Layout,
    /// [`crate::traits::HeadersFormat::parse`].
    pub parse_headers: for<'a> fn(Cursor<'a>, ReadOptions, EitherLog<'_>, AnySink<'_, 'a>) -> Result,
    /// [`crate::traits::parse_message`].
    pub parse: for<'a> fn(Cursor<'a>, ReadOptions, EitherLog<'_>, AnySink<'_, 'a>) -> Result<Presence>,
    /// [`crate::traits::HeadersFormat::write_header`].
    pub write_header: fn(&Header<'_>, &mut Vec<u8>),
    /// [`crate::traits::MessageFormat::encode`].
    pub encode: fn(Contents<'_>, EitherLog<'_>, &mut Vec<u8>) -> Result<Encoded>,
}

impl FormatInfo {
    /// Appends a message. Nothing is written on failure.
    pub fn encode<R: Log>(&self, contents: Contents<'_>, log: &mut R, out: &mut Vec<u8>) -> Result<Encoded> {
        (self.encode)(contents, log.either(), out)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    Headers,
    Message,
    Batch,
}

impl Class {
    pub fn name(self) -> &'static str {
        match self {
            Class::Headers => "headers",
            Class::Message => "message",
            Class::Batch => "batch",
        }
    }
}

/// Constraints on the headers that a format can hold. Data that violates them is reported as a loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Constraints {
    pub nulls: bool,
    /// Minimum and maximum length of a key, and of a value.
    pub part_len: (usize, usize),
    /// How strictly the format validates typed values.
    pub checks: Checks,
}

impl Constraints {
    /// Whether a key or value may have this length.
    #[inline]
    pub fn fits(self, len: usize) -> bool {
        (self.part_len.0..=self.part_len.1).contains(&len)
    }

    /// No constraints, except that lengths fit 31 bits.
    pub const ALL: Constraints = Constraints { nulls: true, part_len: (0, i32::MAX as usize), checks: Checks::Nothing };
}

/// An order of headers.
pub type HeaderOrder = fn(&Header<'_>, &Header<'_>) -> Ordering;

/// Limit on the encoded length of a message's headers, or on the total length of their values.
#[derive(Debug, Clone, Copy)]
pub enum WrittenLimit {
    Headers(usize),
    Values(usize),
}

impl WrittenLimit {
    /// Headers of up to this many bytes are always accepted.
    pub const fn max_bytes(self) -> usize {
        match self {
            WrittenLimit::Headers(max) | WrittenLimit::Values(max) => max,
        }
    }

    /// Rejects headers whose encoded length exceeds the limit. `values` returns the total length of their values.
    #[inline(always)]
    pub fn check(self, len: usize, values: impl FnOnce() -> usize) -> Result<(), String> {
        if len <= self.max_bytes() {
            return Ok(());
        }
        let (part, len) = match self {
            WrittenLimit::Headers(_) => ("headers", len),
            WrittenLimit::Values(_) => ("values", values()),
        };
        match len <= self.max_bytes() {
            true => Ok(()),
            false => Err(format!("the {part} take {len} bytes, more than {}", self.max_bytes())),
        }
    }
}

/// A message to write: its fields in the order of the table, without the headers, and the headers.
#[derive(Clone, Copy)]
pub struct Contents<'m> {
    pub fields: &'m [FieldValue<'m>],
    pub headers: &'m [Header<'m>],
    /// False for a null list of headers, which differs from an empty list.
    pub has_headers_field: bool,
}

/// Whether a message was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoded {
    Message,
    /// The format writes this message as a null.
    Null,
}
