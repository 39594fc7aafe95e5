//! Writes JSON text: numbers without loss of digits, times, bytes, and text with invisible characters escaped.

use std::fmt::Display;
use std::io::Write as _;

use chrono::{DateTime, Datelike as _, NaiveDate};

use crate::base_encoding::write_base64;
use crate::encoding::is_other_nan;
use crate::memory;
use crate::value::{ByteOrder, Value, read_bytes};
use crate::value_type::{Scalar, ValueType};

/// Options for times and text.
#[derive(Debug, Clone, Copy, Default)]
pub struct JsonOptions {
    /// Whether times are milliseconds since 1970, instead of ISO 8601.
    pub epoch_ms: bool,
    /// Whether characters beyond ASCII are escaped, for terminals with other encodings than UTF-8.
    pub ascii: bool,
}

/// Largest integer up to which all integers are exact as doubles, which most JSON readers use for numbers.
const MAX_EXACT: u128 = (1 << 53) - 1;

/// Maximum length of a number, a time or an escape.
const MAX_NUMBER: usize = 64;

/// Unit of a column of times, and whether the column has a time zone, so that its values are in UTC.
#[derive(Clone, Copy)]
pub(super) struct Clock {
    pub per_second: i64,
    pub digits: usize,
    pub is_utc: bool,
}

/// A growing JSON text.
pub(super) struct Buffer {
    pub bytes: Vec<u8>,
    pub options: JsonOptions,
}

impl Buffer {
    #[inline]
    pub fn raw(&mut self, bytes: &[u8]) {
        memory::extend(&mut self.bytes, bytes);
    }

    fn display(&mut self, value: impl Display) {
        memory::reserve(&mut self.bytes, MAX_NUMBER);
        // Writing to memory does not fail.
        let _ = write!(self.bytes, "{value}");
    }

    pub fn null(&mut self) {
        self.raw(b"null");
    }

    pub fn integer(&mut self, number: i128) {
        self.exact(number.unsigned_abs() <= MAX_EXACT, number);
    }

    /// Writes a number, or a string of its digits if it is not exact as a double.
    fn exact(&mut self, is_exact: bool, number: impl Display) {
        match is_exact {
            true => self.display(number),
            false => self.display(format_args!("\"{number}\"")),
        }
    }

    pub fn float64(&mut self, number: f64) {
        match number.is_finite() {
            true => self.display(format_args!("{number:?}")),
            false => self.raw(not_finite(number)),
        }
    }

    /// Writes the shortest digits that identify the `float32`.
    pub fn float32(&mut self, number: f32) {
        match number.is_finite() {
            true => self.display(format_args!("{number:?}")),
            false => self.raw(not_finite(number.into())),
        }
    }

    pub fn time(&mut self, time: i64, clock: Clock) {
        let whole = DateTime::from_timestamp(time.div_euclid(clock.per_second), 0);
        let Some(whole) = whole.filter(|whole| !self.options.epoch_ms && (1..=9999).contains(&whole.year())) else {
            return self.milliseconds(time, clock);
        };
        self.display(format_args!("\"{:?}", whole.naive_utc()));
        if clock.digits > 0 {
            let (fraction, digits) = (time.rem_euclid(clock.per_second), clock.digits);
            self.display(format_args!(".{fraction:0digits$}"));
        }
        self.raw(if clock.is_utc { b"Z\"" } else { b"\"" });
    }

    /// Writes a date from days since 1970; days outside of the calendar are written as numbers.
    pub fn date(&mut self, days: i32) {
        match NaiveDate::from_epoch_days(days) {
            Some(date) => self.display(format_args!("\"{:04}-{:02}-{:02}\"", date.year(), date.month(), date.day())),
            None => self.integer(days.into()),
        }
    }

    /// Writes milliseconds since 1970, with decimals for smaller units. Times beyond the range in which a double holds
    /// twice the number of units, and so preserves all digits, are written as strings.
    fn milliseconds(&mut self, time: i64, clock: Clock) {
        let per_millisecond = (clock.per_second / 1000).unsigned_abs();
        if per_millisecond <= 1 {
            return self.integer(i128::from(time) * i128::from(1000 / clock.per_second));
        }
        let (sign, units) = (if time < 0 { "-" } else { "" }, time.unsigned_abs());
        let (whole, fraction) = (units / per_millisecond, units % per_millisecond);
        if fraction == 0 {
            return self.integer((time / per_millisecond.cast_signed()).into());
        }
        let digits = clock.digits - 3;
        self.exact(u128::from(units) * 2 <= MAX_EXACT, format_args!("{sign}{whole}.{fraction:0digits$}"));
    }

    /// Writes a key or value with a type.
    pub fn typed_value(&mut self, type_name: &str, bits: &[u8]) {
        let value = Scalar::from_name(type_name).and_then(|scalar| {
            let value = read_bytes(scalar, ByteOrder::Big, bits).ok()?;
            Some((scalar, value))
        });
        if let Some((Scalar::String, Value::Text(text))) = &value {
            return self.text(text);
        }
        self.raw(b"{\"type\":");
        self.text(type_name);
        let value = value.filter(|(scalar, _)| !is_other_nan(ValueType::Named(*scalar), bits));
        let value = match value {
            Some((scalar @ Scalar::Binary, _)) => text_of(bits).map(|text| (scalar, Value::Text(text.into()))),
            value => value,
        };
        let Some((scalar, value)) = value else {
            self.raw(b",\"base64\":\"");
            self.base64_digits(bits);
            return self.raw(b"\"}");
        };
        self.raw(b",\"value\":");
        match value {
            _ if scalar == Scalar::Uint128 => {
                // A value of this type was read, so it has 16 bytes.
                let number = bits.iter().fold(0, |number: u128, byte| number << 8 | u128::from(*byte));
                self.exact(number <= MAX_EXACT, number);
            }
            Value::Bool(flag) => self.display(flag),
            Value::Int(number) => self.integer(number.into()),
            Value::Wide(number) => self.integer(number),
            Value::Float32(number) => self.float32(number),
            Value::Float64(number) => self.float64(number),
            Value::Text(text) => self.text(&text),
            Value::Bytes(_) => unreachable!("bytes became text, or base64"),
        }
        self.raw(b"}");
    }

    pub fn base64(&mut self, bytes: &[u8]) {
        self.raw(b"{\"base64\":\"");
        self.base64_digits(bytes);
        self.raw(b"\"}");
    }

    fn base64_digits(&mut self, bytes: &[u8]) {
        write_base64(bytes, &mut self.bytes);
    }

    #[inline]
    pub fn text_or_base64(&mut self, bytes: &[u8]) {
        if is_plain(bytes) {
            return self.plain(bytes);
        }
        match text_of(bytes) {
            Some(text) => self.escaped_text(text),
            None => self.base64(bytes),
        }
    }

    #[inline]
    pub fn text(&mut self, text: &str) {
        match is_plain(text.as_bytes()) {
            true => self.plain(text.as_bytes()),
            false => self.escaped_text(text),
        }
    }

    #[inline]
    fn plain(&mut self, text: &[u8]) {
        memory::reserve(&mut self.bytes, text.len() + 2);
        self.raw(b"\"");
        self.raw(text);
        self.raw(b"\"");
    }

    fn escaped_text(&mut self, text: &str) {
        self.raw(b"\"");
        let mut copied = 0;
        for (offset, char) in text.char_indices() {
            let is_plain = match char {
                '"' | '\\' => false,
                ' '..='~' => true,
                _ => char > '~' && !self.options.ascii && !is_invisible(char),
            };
            if !is_plain {
                self.raw(&text.as_bytes()[copied..offset]);
                self.escape(char);
                copied = offset + char.len_utf8();
            }
        }
        self.raw(&text.as_bytes()[copied..]);
        self.raw(b"\"");
    }

    fn escape(&mut self, char: char) {
        match char {
            '"' => self.raw(b"\\\""),
            '\\' => self.raw(b"\\\\"),
            '\n' => self.raw(b"\\n"),
            '\r' => self.raw(b"\\r"),
            '\t' => self.raw(b"\\t"),
            _ => {
                for unit in char.encode_utf16(&mut [0; 2]) {
                    self.display(format_args!("\\u{unit:04x}"));
                }
            }
        }
    }
}

fn not_finite(number: f64) -> &'static [u8] {
    match number {
        f64::INFINITY => b"\"Infinity\"",
        f64::NEG_INFINITY => b"\"-Infinity\"",
        _ => b"\"NaN\"",
    }
}

/// The bytes as text, if they are UTF-8 without control characters other than tabs and line breaks. Binary numbers
/// mostly contain control characters, so that all numbers of a column are written alike.
#[inline]
fn text_of(bytes: &[u8]) -> Option<&str> {
    let visible = |byte: u8| (byte >= b' ') & (byte != 0x7f) | matches!(byte, b'\t' | b'\n' | b'\r');
    let is_visible = bytes.iter().fold(true, |all, byte| all & visible(*byte));
    simdutf8::basic::from_utf8(bytes).ok().filter(|_| is_visible)
}

/// Whether bytes are ASCII that needs no escapes, tested for eight bytes at a time.
#[inline]
fn is_plain(bytes: &[u8]) -> bool {
    let (words, tail) = bytes.as_chunks::<8>();
    let words = words.iter().fold(0, |marks, word| marks | marks_of_others(*word));
    let last = bytes.last_chunk::<8>().copied().unwrap_or_else(|| {
        let mut padded = [b' '; 8];
        padded[..tail.len()].copy_from_slice(tail);
        padded
    });
    words | marks_of_others(last) == 0
}

/// Returns a nonzero number if any of eight bytes is a control character, a quote, a backslash, or beyond ASCII.
#[inline]
fn marks_of_others(word: [u8; 8]) -> u64 {
    const EACH: u64 = u64::from_ne_bytes([1; 8]);
    let word = u64::from_ne_bytes(word);
    // A subtraction borrows from the highest bit of a byte below the number, or of a byte that is zero.
    let below = |number: u64| word.wrapping_sub(EACH * number) & !word;
    let equal = |byte: u8| {
        let zero = word ^ (EACH * u64::from(byte));
        zero.wrapping_sub(EACH) & !zero
    };
    (below(0x20) | equal(b'"') | equal(b'\\') | equal(0x7f) | word) & (EACH << 7)
}

/// Whether a character beyond ASCII is invisible or ambiguous: Unicode's categories Cc, Cf, Zl, Zp, Zs and Co, and
/// unassigned tags.
fn is_invisible(char: char) -> bool {
    const RANGES: &[(u32, u32)] = &[
        (0x7f, 0xa0),
        (0xad, 0xad),
        (0x600, 0x605),
        (0x61c, 0x61c),
        (0x6dd, 0x6dd),
        (0x70f, 0x70f),
        (0x890, 0x891),
        (0x8e2, 0x8e2),
        (0x1680, 0x1680),
        (0x180e, 0x180e),
        (0x2000, 0x200f),
        (0x2028, 0x202f),
        (0x205f, 0x2064),
        (0x2066, 0x206f),
        (0x3000, 0x3000),
        (0xe000, 0xf8ff),
        (0xfeff, 0xfeff),
        (0xfff9, 0xfffb),
        (0x110bd, 0x110bd),
        (0x110cd, 0x110cd),
        (0x13430, 0x1343f),
        (0x1bca0, 0x1bca3),
        (0x1d173, 0x1d17a),
        (0xe0000, 0x10ffff),
    ];
    let code = u32::from(char);
    let next = RANGES.partition_point(|(_, last)| *last < code);
    RANGES.get(next).is_some_and(|(first, _)| *first <= code)
}
