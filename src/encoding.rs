//! Encodings of values in formats without types: bits in either byte order, or text.
//!
//! ```text
//!   int32       ┌──┬──┬──┬──┐  most significant byte first or last
//!               └──┴──┴──┴──┘
//!   int32:text  "-42"          ASCII digits
//! ```

use std::borrow::Cow;
use std::str::FromStr;

use crate::error::Code;
use crate::number::fitting;
use crate::value::{ByteOrder, Checks, InvalidValue, Value, bits_of, invalid, read_bytes, read_fixed, wrong_size};
use crate::value_type::{Scalar, ValueType};

/// Encoding of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    Bytes(ByteOrder),
    Text,
}

/// Number of digits of the five groups of a UUID.
const UUID_GROUPS: [usize; 5] = [8, 4, 4, 4, 12];

pub fn read_text<'a>(scalar: Scalar, bytes: &'a [u8]) -> Result<Value<'a>, Box<InvalidValue>> {
    let text = std::str::from_utf8(bytes).map_err(|_| bad_text(scalar))?;
    let value = match scalar {
        Scalar::Bool => truth(text).map(Value::Bool),
        Scalar::Char => {
            let mut characters = text.chars();
            let is_unit = characters.next().is_some_and(|one| u32::from(one) <= 0xffff) && characters.next().is_none();
            is_unit.then_some(Value::Text(Cow::Borrowed(text)))
        }
        Scalar::Float32 => return float_value(scalar, text, f32::is_infinite).map(Value::Float32),
        Scalar::Float64 => return float_value(scalar, text, f64::is_infinite).map(Value::Float64),
        Scalar::Uuid => uuid_from_text(text).map(|text| Value::Text(Cow::Owned(text))),
        Scalar::String | Scalar::Binary => unreachable!("`Type::parse` rejects suffixes of these"),
        _ => return int_text(scalar, text),
    };
    value.ok_or_else(|| bad_text(scalar))
}

/// Parses a boolean as Java, Python or SQL write it.
fn truth(text: &str) -> Option<bool> {
    match text {
        "true" | "True" | "TRUE" => Some(true),
        "false" | "False" | "FALSE" => Some(false),
        _ => None,
    }
}

/// Whether values are integers, or times, which are stored as integers.
pub fn is_integer(scalar: Scalar) -> bool {
    use Scalar::*;
    scalar.width().is_some() && !matches!(scalar, Bool | Char | Float32 | Float64 | Uuid)
}

/// Whether values are numbers, which have digits as text.
pub fn is_number(scalar: Scalar) -> bool {
    is_integer(scalar) || matches!(scalar, Scalar::Float32 | Scalar::Float64)
}

/// Reads a two's complement of any number of bytes in big-endian order, as written by Java's `BigInteger`.
pub fn read_varlen<'a>(scalar: Scalar, bytes: &[u8]) -> Result<Value<'a>, Box<InvalidValue>> {
    let Some(first) = bytes.first() else {
        return Err(invalid(Code::WrongSize, || format!("no bytes where {} has at least one", scalar.name())));
    };
    let sign = if *first >= 0x80 { 0xff } else { 0 };
    let padding = bytes.len().saturating_sub(16);
    if bytes[..padding].iter().any(|byte| *byte != sign) || (bytes[padding] >= 0x80) != (sign == 0xff) {
        return Err(does_not_fit(scalar));
    }
    let mut wide = [sign; 16];
    wide[16 - (bytes.len() - padding)..].copy_from_slice(&bytes[padding..]);
    in_range(scalar, i128::from_be_bytes(wide))
}

/// Checks the range of a number, and returns it as a value of an integer type.
pub fn in_range<'a>(scalar: Scalar, number: i128) -> Result<Value<'a>, Box<InvalidValue>> {
    let (low, high) = int_range(scalar);
    if !(low..=high).contains(&number) {
        return Err(does_not_fit(scalar));
    }
    Ok(match i64::try_from(number) {
        Ok(number) if !matches!(scalar, Scalar::Uint64 | Scalar::Int128 | Scalar::Uint128) => Value::Int(number),
        _ => Value::Wide(number),
    })
}

#[cold]
pub fn bad_text(scalar: Scalar) -> Box<InvalidValue> {
    invalid(Code::BadText, || match scalar {
        Scalar::Bool => "the text does not spell bool: true, True, TRUE, false, False or FALSE".into(),
        _ => format!("the text does not spell {}", scalar.name()),
    })
}

fn int_text<'a>(scalar: Scalar, text: &str) -> Result<Value<'a>, Box<InvalidValue>> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    if !is_digits(digits) {
        return Err(bad_text(scalar));
    }
    // A number beyond 128 bits fails to parse, and is out of range for every type.
    text.parse().map_err(|_| does_not_fit(scalar)).and_then(|number| in_range(scalar, number))
}

/// Whether one integer type contains all numbers of another.
pub fn contains_integers(wide: Scalar, narrow: Scalar) -> bool {
    let ((low, high), (min, max)) = (int_range(wide), int_range(narrow));
    low <= min && max <= high
}

fn int_range(scalar: Scalar) -> (i128, i128) {
    let unsigned = matches!(scalar, Scalar::Uint8 | Scalar::Uint16 | Scalar::Uint32 | Scalar::Uint64 | Scalar::Uint128);
    let bits = scalar.width().unwrap_or_default() * 8;
    match (unsigned, bits) {
        (true, 128) => (0, i128::MAX),
        (true, _) => (0, (1 << bits) - 1),
        (false, _) => (i128::MIN >> (128 - bits), i128::MAX >> (128 - bits)),
    }
}

/// Parses a float, rounded to the nearest one. Digits that round to infinity are out of range; only the word `Infinity`
/// is accepted.
fn float_value<N: FromStr + Copy>(
    scalar: Scalar,
    text: &str,
    is_infinite: fn(N) -> bool,
) -> Result<N, Box<InvalidValue>> {
    let number = float_text(text).and_then(|text| text.parse().ok()).ok_or_else(|| bad_text(scalar))?;
    match is_infinite(number) && !text.ends_with("Infinity") {
        true => Err(does_not_fit(scalar)),
        false => Ok(number),
    }
}

/// Text of a number, `[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?`, or `NaN`, `Infinity` or `-Infinity`, if
/// `parse` accepts it.
fn float_text(text: &str) -> Option<&str> {
    let number = text.strip_prefix(['+', '-']).unwrap_or(text);
    let is_number = number.starts_with(|first: char| first.is_ascii_digit() || first == '.');
    (is_number || matches!(text, "NaN" | "Infinity" | "-Infinity")).then_some(text)
}

fn uuid_from_text(text: &str) -> Option<String> {
    is_uuid(text.as_bytes()).then(|| text.to_ascii_lowercase())
}

/// Whether text is five groups of hexadecimal digits in any case, with hyphens between them.
pub fn is_uuid(text: &[u8]) -> bool {
    let mut groups = text.split(|byte| *byte == b'-');
    let fits = UUID_GROUPS
        .iter()
        .all(|len| groups.next().is_some_and(|group| group.len() == *len && group.iter().all(u8::is_ascii_hexdigit)));
    fits && groups.next().is_none()
}

/// Returns the bytes of a typed value from its encoding without types; the inverse of [`encode_value`].
pub fn decode_value(
    value_type: ValueType,
    bytes: &[u8],
    encoding: Encoding,
) -> Result<Cow<'_, [u8]>, Box<InvalidValue>> {
    let ValueType::Named(scalar) = value_type else { return Ok(Cow::Borrowed(bytes)) };
    match encoding {
        Encoding::Bytes(order) => {
            Checks::Value.check(value_type, bytes)?;
            Ok(bits_of(value_type, bytes, order))
        }
        Encoding::Text => text_bits(scalar, bytes).map(Cow::Owned),
    }
}

fn text_bits(scalar: Scalar, bytes: &[u8]) -> Result<Vec<u8>, Box<InvalidValue>> {
    if scalar == Scalar::Uint128
        && let Some(number) = parse_wide_unsigned(bytes)
    {
        return Ok(number.to_be_bytes().to_vec());
    }
    let narrowed = |number: i128| number.to_be_bytes()[16 - scalar.width().unwrap_or(16)..].to_vec();
    Ok(match read_text(scalar, bytes)? {
        Value::Bool(flag) => vec![u8::from(flag)],
        Value::Int(number) => narrowed(number.into()),
        Value::Wide(number) => narrowed(number),
        Value::Float32(number) => number.to_be_bytes().to_vec(),
        Value::Float64(number) => number.to_be_bytes().to_vec(),
        // `read_text` has checked that these are pairs of hexadecimal digits, and dashes.
        Value::Text(text) if scalar == Scalar::Uuid => {
            let digit = |digit: char| digit.to_digit(16).map(fitting::<u8, _>);
            let digits: Vec<_> = text.chars().filter_map(digit).collect();
            digits.as_chunks::<2>().0.iter().map(|[high, low]| high << 4 | low).collect()
        }
        // `read_text` has checked that this is one character of at most U+FFFF.
        Value::Text(text) => text.encode_utf16().flat_map(u16::to_be_bytes).collect(),
        Value::Bytes(_) => unreachable!("`Type::parse` rejects suffixes of binary"),
    })
}

/// Parses an unsigned number of 128 bits, which `read_text` cannot represent.
fn parse_wide_unsigned(bytes: &[u8]) -> Option<u128> {
    std::str::from_utf8(bytes).ok().filter(|text| is_digits(text))?.parse().ok()
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cold]
fn does_not_fit(scalar: Scalar) -> Box<InvalidValue> {
    invalid(Code::OutOfRange, || format!("the number does not fit {}", scalar.name()))
}

/// Returns the bytes of a typed value for a format without types. `bits` are big-endian. Fails if they are not a value
/// of the type.
pub fn encode_value<'a>(
    value_type: ValueType,
    bits: &'a [u8],
    encoding: Encoding,
) -> Result<Cow<'a, [u8]>, Box<InvalidValue>> {
    let scalar = match value_type {
        ValueType::Unnamed(_) | ValueType::Named(Scalar::String | Scalar::Binary) => return Ok(Cow::Borrowed(bits)),
        ValueType::Named(scalar) => scalar,
    };
    if scalar.width().is_some_and(|width| width != bits.len()) {
        return Err(wrong_size(scalar, bits.len()));
    }
    Ok(match encoding {
        Encoding::Bytes(ByteOrder::Big) => Cow::Borrowed(bits),
        Encoding::Bytes(ByteOrder::Little) => Cow::Owned(bits.iter().rev().copied().collect()),
        Encoding::Text => Cow::Owned(text_of_scalar(scalar, bits)?.into_bytes()),
    })
}

/// Returns the text from which `name:text` parses the same value; `None` if the value has no text. `bits` are
/// big-endian.
pub fn text_of(value_type: ValueType, bits: &[u8]) -> Option<String> {
    match value_type {
        ValueType::Named(Scalar::Binary) | ValueType::Unnamed(_) => None,
        ValueType::Named(scalar) => text_of_scalar(scalar, bits).ok(),
    }
}

fn text_of_scalar(scalar: Scalar, bits: &[u8]) -> Result<String, Box<InvalidValue>> {
    if scalar == Scalar::Uint128 {
        // A column cannot hold the number, but text can.
        return Ok(u128::from_be_bytes(read_fixed(scalar, ByteOrder::Big, bits)?).to_string());
    }
    Ok(match read_bytes(scalar, ByteOrder::Big, bits)? {
        Value::Bool(flag) => flag.to_string(),
        Value::Int(number) => number.to_string(),
        Value::Wide(number) => number.to_string(),
        Value::Float32(number) => number.to_string().replace("inf", "Infinity"),
        Value::Float64(number) => number.to_string().replace("inf", "Infinity"),
        Value::Text(text) => text.into_owned(),
        Value::Bytes(_) => unreachable!("binary has no text, and nobody asks for it"),
    })
}

/// Whether bits are a NaN other than that of the text `NaN`. `bits` are big-endian.
pub fn is_other_nan(value_type: ValueType, bits: &[u8]) -> bool {
    match value_type {
        ValueType::Named(Scalar::Float32) => {
            bits.try_into().is_ok_and(|bits| f32::from_be_bytes(bits).is_nan() && bits != f32::NAN.to_be_bytes())
        }
        ValueType::Named(Scalar::Float64) => {
            bits.try_into().is_ok_and(|bits| f64::from_be_bytes(bits).is_nan() && bits != f64::NAN.to_be_bytes())
        }
        _ => false,
    }
}
