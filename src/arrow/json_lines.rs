//! JSON lines from the rows of a record batch: [`json_lines`].
//!
//! ```text
//!   text, bytes that are text           "acme"
//!   other bytes                         {"base64":"AP8="}
//!   integers                            5, or "9007199254740993" beyond what a double holds
//!   float64                             2.5, or "NaN", "Infinity", "-Infinity"
//!   timestamp                           "2026-01-01T08:30:00.000Z", or milliseconds since 1970
//!   list, struct                        [...], {...}
//!   headers                             [{"key":"tenant","value":"acme"},{"key":"route","value":null}]
//!   headers with types                  [{"key":"retry","value":{"type":"int32","value":3}}]
//! ```
//!
//! A header of type `string` is written as its text; a value whose bits are not valid for its type has `base64` instead of
//! `value`. Characters that are not visible, such as those that control a terminal or the direction of text, are escaped.

use std::fmt::Display;
use std::io::Write as _;

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, BooleanArray, PrimitiveArray, StructArray};
use arrow_schema::{DataType, TimeUnit};

use crate::arrow::input::{Bytes, ListInput, Texts};
use crate::arrow::schema::type_name;
use crate::error::{Error, interrupted};
use crate::interrupt;
use crate::value::{ByteOrder, Value, read_bytes};
use crate::value_type::Scalar;

/// How times and text are written.
#[derive(Debug, Clone, Copy, Default)]
pub struct JsonOptions {
    /// Times are milliseconds since 1970, instead of ISO 8601.
    pub epoch_ms: bool,
    /// Characters beyond ASCII are escaped, for terminals that have other encodings than UTF-8.
    pub ascii: bool,
}

/// Integers up to this one are exact as doubles, which is how most readers of JSON hold numbers.
const MAX_EXACT: u128 = (1 << 53) - 1;

/// Rows between two checks for an interrupt.
const ROWS: usize = 256;

/// Returns a line for each row: an object of its columns.
pub fn json_lines(rows: &StructArray, options: JsonOptions) -> Result<Vec<u8>, Error> {
    let writer = Node::of(rows, options)?;
    let mut out = Buffer { bytes: Vec::new(), options };
    for row in 0..rows.len() {
        if row % ROWS == 0 && interrupt::is_requested() {
            return Err(interrupted());
        }
        writer.write(row, &mut out);
        out.raw(b"\n");
    }
    Ok(out.bytes)
}

/// Writes the number of a row, or null.
type WriteNumber<'a> = Box<dyn Fn(usize, &mut Buffer) + 'a>;

/// Returns the time of a row; `None` if it is null.
type ReadTime<'a> = Box<dyn Fn(usize) -> Option<i64> + 'a>;

/// A column and how its values are written.
enum Node<'a> {
    Null,
    Bool(&'a BooleanArray),
    Text(Texts<'a>),
    Bytes(Bytes<'a>),
    Number(WriteNumber<'a>),
    Time(ReadTime<'a>, Clock),
    List(ListInput<'a>, Box<Node<'a>>),
    Struct(&'a StructArray, Vec<Member<'a>>),
    Header(&'a StructArray, Box<HeaderNode<'a>>),
}

/// A field of an object, with the bytes before its value: `,"name":`.
struct Member<'a> {
    label: Vec<u8>,
    node: Node<'a>,
}

/// An element of a list of headers.
struct HeaderNode<'a> {
    key: Part<'a>,
    value: Part<'a>,
}

/// A key or a value of headers, with its type where a format has types.
struct Part<'a> {
    node: Node<'a>,
    types: Option<Texts<'a>>,
}

/// The unit of a column of times, and whether it has a time zone; Arrow's values are UTC then.
#[derive(Clone, Copy)]
struct Clock {
    per_second: i64,
    digits: usize,
    is_utc: bool,
}

impl<'a> Node<'a> {
    fn of(array: &'a dyn Array, options: JsonOptions) -> Result<Node<'a>, Error> {
        macro_rules! numbers {
            ($($variant:pat => $of:ty, $write:ident;)*) => {
                match array.data_type() {
                    $($variant => Some(number::<$of>(array, |number, out| out.$write(number.into()))),)*
                    _ => None,
                }
            };
        }
        if let Some(texts) = Texts::of(array) {
            return Ok(Node::Text(texts));
        }
        if let Some(bytes) = Bytes::of(array) {
            return Ok(Node::Bytes(bytes));
        }
        if let Some(lists) = ListInput::of(array) {
            return Ok(Node::List(lists, Box::new(Node::of(lists.values(), options)?)));
        }
        let numbers = numbers! {
            DataType::Int8 => Int8Type, integer;
            DataType::Int16 => Int16Type, integer;
            DataType::Int32 => Int32Type, integer;
            DataType::Int64 => Int64Type, integer;
            DataType::UInt8 => UInt8Type, integer;
            DataType::UInt16 => UInt16Type, integer;
            DataType::UInt32 => UInt32Type, integer;
            DataType::UInt64 => UInt64Type, integer;
            DataType::Decimal128(_, 0) => Decimal128Type, integer;
            DataType::Float64 => Float64Type, float64;
            DataType::Float32 => Float32Type, float32;
        };
        if let Some(node) = numbers {
            return Ok(node);
        }
        Ok(match array.data_type() {
            DataType::Null => Node::Null,
            DataType::Boolean => Node::Bool(array.as_boolean()),
            DataType::Timestamp(unit, zone) => time(array, *unit, zone.is_some()),
            DataType::Struct(_) => {
                let array = array.as_struct();
                match HeaderNode::of(array, options)? {
                    Some(header) => Node::Header(array, Box::new(header)),
                    None => Node::Struct(array, members(array, options)?),
                }
            }
            other => {
                return Err(Error::Type(format!("a column is {}, which JSON lines do not take", type_name(other))));
            }
        })
    }

    fn write(&self, row: usize, out: &mut Buffer) {
        match self {
            Node::Null => out.null(),
            Node::Bool(array) => match array.is_valid(row) {
                true => out.raw(if array.value(row) { b"true" } else { b"false" }),
                false => out.null(),
            },
            Node::Text(texts) => match texts.get(row) {
                Some(text) => out.text(text),
                None => out.null(),
            },
            Node::Bytes(bytes) => match bytes.get(row) {
                Some(bytes) => out.text_or_base64(bytes),
                None => out.null(),
            },
            Node::Number(write) => write(row, out),
            Node::Time(times, clock) => match times(row) {
                Some(time) => out.time(time, *clock),
                None => out.null(),
            },
            Node::List(lists, element) => match lists.get(row) {
                Some(places) => {
                    out.raw(b"[");
                    for (number, place) in places.enumerate() {
                        if number > 0 {
                            out.raw(b",");
                        }
                        element.write(place, out);
                    }
                    out.raw(b"]");
                }
                None => out.null(),
            },
            Node::Struct(array, members) => {
                if array.is_null(row) {
                    return out.null();
                }
                if members.is_empty() {
                    out.raw(b"{");
                }
                for member in members {
                    out.raw(&member.label);
                    member.node.write(row, out);
                }
                out.raw(b"}");
            }
            Node::Header(array, header) => {
                if array.is_null(row) {
                    return out.null();
                }
                out.raw(b"{\"key\":");
                header.key.write(row, out);
                out.raw(b",\"value\":");
                header.value.write(row, out);
                out.raw(b"}");
            }
        }
    }
}

fn members<'a>(array: &'a StructArray, options: JsonOptions) -> Result<Vec<Member<'a>>, Error> {
    let columns = array.fields().iter().zip(array.columns()).enumerate();
    columns
        .map(|(number, (field, column))| {
            let mut label = Buffer { bytes: Vec::new(), options };
            label.raw(if number == 0 { b"{" } else { b"," });
            label.text(field.name());
            label.raw(b":");
            Ok(Member { label: label.bytes, node: Node::of(column, options)? })
        })
        .collect()
}

fn number<'a, T: ArrowPrimitiveType>(array: &'a dyn Array, write: impl Fn(T::Native, &mut Buffer) + 'a) -> Node<'a> {
    let array: &'a PrimitiveArray<T> = array.as_primitive();
    Node::Number(Box::new(move |row, out| match array.is_valid(row) {
        true => write(array.value(row), out),
        false => out.null(),
    }))
}

fn time(array: &dyn Array, unit: TimeUnit, is_utc: bool) -> Node<'_> {
    fn times<'a, T: ArrowPrimitiveType<Native = i64>>(array: &'a dyn Array) -> ReadTime<'a> {
        let array: &'a PrimitiveArray<T> = array.as_primitive();
        Box::new(move |row| array.is_valid(row).then(|| array.value(row)))
    }
    let (times, per_second, digits) = match unit {
        TimeUnit::Second => (times::<TimestampSecondType>(array), 1, 0),
        TimeUnit::Millisecond => (times::<TimestampMillisecondType>(array), 1000, 3),
        TimeUnit::Microsecond => (times::<TimestampMicrosecondType>(array), 1_000_000, 6),
        TimeUnit::Nanosecond => (times::<TimestampNanosecondType>(array), 1_000_000_000, 9),
    };
    Node::Time(times, Clock { per_second, digits, is_utc })
}

impl<'a> HeaderNode<'a> {
    /// `None` if the struct has other fields than a key, a value of bytes, and their types.
    fn of(array: &'a StructArray, options: JsonOptions) -> Result<Option<Self>, Error> {
        let types = |name| array.column_by_name(name).and_then(|column| Texts::of(column));
        let (Some(key), Some(value)) = (array.column_by_name("key"), array.column_by_name("value")) else {
            return Ok(None);
        };
        let (key_types, value_types) = (types("key_type"), types("type"));
        let columns = 2 + usize::from(key_types.is_some()) + usize::from(value_types.is_some());
        let is_key = key.data_type().is_integer() || Texts::of(key).is_some() || Bytes::of(key).is_some();
        if columns != array.num_columns() || !is_key || Bytes::of(value).is_none() {
            return Ok(None);
        }
        let key = Part { node: Node::of(key, options)?, types: key_types };
        Ok(Some(HeaderNode { key, value: Part { node: Node::of(value, options)?, types: value_types } }))
    }
}

impl Part<'_> {
    fn write(&self, row: usize, out: &mut Buffer) {
        match (&self.node, self.types) {
            (Node::Bytes(bytes), Some(types)) => match (bytes.get(row), types.get(row)) {
                (None, _) => out.null(),
                (Some(bits), Some(of)) => out.typed(of, bits),
                // Text without a type would be read as a string.
                (Some(bits), None) => out.base64(bits),
            },
            _ => self.node.write(row, out),
        }
    }
}

/// JSON that is being written.
struct Buffer {
    bytes: Vec<u8>,
    options: JsonOptions,
}

impl Buffer {
    #[inline]
    fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    fn display(&mut self, value: impl Display) {
        // Writing to memory does not fail.
        let _ = write!(self.bytes, "{value}");
    }

    fn null(&mut self) {
        self.raw(b"null");
    }

    fn integer(&mut self, number: i128) {
        self.exact(number.unsigned_abs() <= MAX_EXACT, number);
    }

    /// A number, or its digits as a string where a double is another number.
    fn exact(&mut self, is_exact: bool, number: impl Display) {
        match is_exact {
            true => self.display(number),
            false => self.display(format_args!("\"{number}\"")),
        }
    }

    fn float64(&mut self, number: f64) {
        match number.is_finite() {
            true => self.display(format_args!("{number:?}")),
            false => self.raw(not_finite(number)),
        }
    }

    /// The shortest digits that are this number as a `float32`.
    fn float32(&mut self, number: f32) {
        match number.is_finite() {
            true => self.display(format_args!("{number:?}")),
            false => self.raw(not_finite(number.into())),
        }
    }

    fn time(&mut self, time: i64, clock: Clock) {
        let days = time.div_euclid(clock.per_second).div_euclid(86_400);
        let (year, month, day) = date(days);
        if self.options.epoch_ms || !(1..=9999).contains(&year) {
            return self.milliseconds(time, clock);
        }
        let seconds = time.div_euclid(clock.per_second).rem_euclid(86_400);
        let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        self.display(format_args!("\"{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}"));
        if clock.digits > 0 {
            let (fraction, digits) = (time.rem_euclid(clock.per_second), clock.digits);
            self.display(format_args!(".{fraction:0digits$}"));
        }
        self.raw(if clock.is_utc { b"Z\"" } else { b"\"" });
    }

    /// Milliseconds since 1970, with decimals if the time has a part of one. A double keeps both if it holds twice the number
    /// of units.
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

    /// A key or value with a type.
    fn typed(&mut self, of: &str, bits: &[u8]) {
        let value = Scalar::named(of).and_then(|scalar| {
            let value = read_bytes(scalar, ByteOrder::Big, bits).ok()?;
            Some((scalar, value))
        });
        if let Some((Scalar::String, Value::Text(text))) = &value {
            return self.text(text);
        }
        self.raw(b"{\"type\":");
        self.text(of);
        match value {
            Some((Scalar::Uint128, _)) => {
                // A value of this type was read, so it has 16 bytes.
                let number = bits.iter().fold(0, |number: u128, byte| number << 8 | u128::from(*byte));
                self.member_value();
                self.exact(number <= MAX_EXACT, number);
            }
            Some((_, Value::Bool(flag))) => {
                self.member_value();
                self.display(flag);
            }
            Some((_, Value::Int(number))) => {
                self.member_value();
                self.integer(number.into());
            }
            Some((_, Value::Wide(number))) => {
                self.member_value();
                self.integer(number);
            }
            Some((_, Value::Float32(number))) if !number.is_nan() || number.to_bits() == f32::NAN.to_bits() => {
                self.member_value();
                self.float32(number);
            }
            Some((_, Value::Float64(number))) if !number.is_nan() || number.to_bits() == f64::NAN.to_bits() => {
                self.member_value();
                self.float64(number);
            }
            Some((_, Value::Text(text))) => {
                self.member_value();
                self.text(&text);
            }
            _ => match text_of(bits).filter(|_| of == Scalar::Binary.name()) {
                Some(text) => {
                    self.member_value();
                    self.text(text);
                }
                None => self.member_base64(bits),
            },
        }
        self.raw(b"}");
    }

    fn member_value(&mut self) {
        self.raw(b",\"value\":");
    }

    fn member_base64(&mut self, bytes: &[u8]) {
        self.raw(b",\"base64\":\"");
        self.base64_digits(bytes);
        self.raw(b"\"");
    }

    fn base64(&mut self, bytes: &[u8]) {
        self.raw(b"{\"base64\":\"");
        self.base64_digits(bytes);
        self.raw(b"\"}");
    }

    fn base64_digits(&mut self, bytes: &[u8]) {
        const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let digits = |[first, second, third]: [u8; 3]| {
            let bits = u32::from(first) << 16 | u32::from(second) << 8 | u32::from(third);
            [18, 12, 6, 0].map(|shift| DIGITS[(bits >> shift & 63) as usize])
        };
        let (chunks, rest) = bytes.as_chunks::<3>();
        self.bytes.extend(chunks.iter().flat_map(|chunk| digits(*chunk)));
        if !rest.is_empty() {
            let mut last = [0; 3];
            last[..rest.len()].copy_from_slice(rest);
            let mut last = digits(last);
            last[rest.len() + 1..].fill(b'=');
            self.raw(&last);
        }
    }

    #[inline]
    fn text_or_base64(&mut self, bytes: &[u8]) {
        if is_plain(bytes) {
            return self.plain(bytes);
        }
        match text_of(bytes) {
            Some(text) => self.escaped(text),
            None => self.base64(bytes),
        }
    }

    #[inline]
    fn text(&mut self, text: &str) {
        match is_plain(text.as_bytes()) {
            true => self.plain(text.as_bytes()),
            false => self.escaped(text),
        }
    }

    #[inline]
    fn plain(&mut self, text: &[u8]) {
        self.bytes.reserve(text.len() + 2);
        self.raw(b"\"");
        self.raw(text);
        self.raw(b"\"");
    }

    fn escaped(&mut self, text: &str) {
        self.raw(b"\"");
        let mut copied = 0;
        for (at, char) in text.char_indices() {
            let is_plain = match char {
                '"' | '\\' => false,
                ' '..='~' => true,
                _ => char > '~' && !self.options.ascii && !is_invisible(char),
            };
            if !is_plain {
                self.raw(&text.as_bytes()[copied..at]);
                self.escape(char);
                copied = at + char.len_utf8();
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

/// The text that bytes are: UTF-8 without control characters other than those of lines. Numbers have such characters in most
/// cases, and all numbers of a column should look alike.
#[inline]
fn text_of(bytes: &[u8]) -> Option<&str> {
    let visible = |byte: u8| (byte >= b' ') & (byte != 0x7f) | matches!(byte, b'\t' | b'\n' | b'\r');
    let is_visible = bytes.iter().fold(true, |all, byte| all & visible(*byte));
    simdutf8::basic::from_utf8(bytes).ok().filter(|_| is_visible)
}

/// Whether bytes are ASCII that JSON and terminals take as it is, eight at a time.
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

/// Not zero if any of eight bytes is a control character, a quote, a backslash, or beyond ASCII.
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

/// Whether a character beyond ASCII controls a terminal, the direction or the lines of text, is a space that looks like
/// another one, or has no meaning of its own: Unicode's categories Cc, Cf, Zl, Zp, Zs and Co, and unassigned tags.
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
        (0x13430, 0x13438),
        (0x1bca0, 0x1bca3),
        (0x1d173, 0x1d17a),
        (0xe0000, 0x10ffff),
    ];
    let code = u32::from(char);
    let next = RANGES.partition_point(|(_, last)| *last < code);
    RANGES.get(next).is_some_and(|(first, _)| *first <= code)
}

/// The year, month and day of a day since 1970, in the Gregorian calendar.
///
/// Years begin in March here, so that the day that some years lack is the last one; 400 years have 146,097 days.
fn date(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}
