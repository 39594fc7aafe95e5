//! Values read from bytes: [`read_bytes`], the bits of a type, and the error for bytes that are not a value.
//!
//! ```text
//!   int32    ┌──┬──┬──┬──┐  the bits of a type: big-endian, whatever the byte order of the format
//!            └──┴──┴──┴──┘
//! ```

use std::borrow::Cow;

use crate::error::{Code, format_count};
use crate::value_type::{Scalar, ValueType};

pub const HALF_PAIR: &str = "half of a surrogate pair is no character";

/// Byte order of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ByteOrder {
    #[default]
    Big,
    Little,
}

/// Value read from bytes. Integers of many widths share a variant, after a check of their range.
#[derive(Debug, Clone, PartialEq)]
pub enum Value<'a> {
    Bool(bool),
    Int(i64),
    /// `uint64` and the integers of 128 bits.
    Wide(i128),
    Float32(f32),
    Float64(f64),
    Text(Cow<'a, str>),
    Bytes(Cow<'a, [u8]>),
}

impl Value<'_> {
    /// Returns the value without a borrow of its bytes.
    pub fn into_owned(self) -> Value<'static> {
        match self {
            Value::Bool(flag) => Value::Bool(flag),
            Value::Int(number) => Value::Int(number),
            Value::Wide(number) => Value::Wide(number),
            Value::Float32(number) => Value::Float32(number),
            Value::Float64(number) => Value::Float64(number),
            Value::Text(text) => Value::Text(Cow::Owned(text.into_owned())),
            Value::Bytes(bytes) => Value::Bytes(Cow::Owned(bytes.into_owned())),
        }
    }
}

/// Reason why bytes are not a value of a type: the code, the byte within the value, the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidValue {
    pub code: Code,
    pub byte: usize,
    pub message: String,
}

impl InvalidValue {
    /// Adds the number of bytes before the value to the position of the error.
    pub fn shift(mut self: Box<Self>, bytes: usize) -> Box<Self> {
        self.byte += bytes;
        self
    }
}

#[cold]
pub fn invalid(code: Code, message: impl FnOnce() -> String) -> Box<InvalidValue> {
    Box::new(InvalidValue { code, byte: 0, message: message() })
}

/// Returns the bytes of a type with this width in big-endian order.
pub fn read_fixed<const N: usize>(
    scalar: Scalar,
    order: ByteOrder,
    bytes: &[u8],
) -> Result<[u8; N], Box<InvalidValue>> {
    let mut array: [u8; N] = bytes.try_into().map_err(|_| wrong_size(scalar, bytes.len()))?;
    if order == ByteOrder::Little {
        array.reverse();
    }
    Ok(array)
}

#[cold]
pub fn wrong_size(scalar: Scalar, len: usize) -> Box<InvalidValue> {
    let (name, width) = (scalar.name(), scalar.width().unwrap_or_default());
    invalid(Code::WrongSize, || format!("{} where {name} takes {width}", format_count(len, "byte")))
}

pub fn read_bytes<'a>(scalar: Scalar, order: ByteOrder, bytes: &'a [u8]) -> Result<Value<'a>, Box<InvalidValue>> {
    macro_rules! int {
        ($type:ty) => {
            Ok(Value::Int(<$type>::from_be_bytes(read_fixed(scalar, order, bytes)?) as i64))
        };
    }
    match scalar {
        Scalar::String => std::str::from_utf8(bytes).map(|text| Value::Text(Cow::Borrowed(text))).map_err(|error| {
            let byte = error.valid_up_to();
            Box::new(InvalidValue { code: Code::ValueNotUtf8, byte, message: "the value is not UTF-8".into() })
        }),
        Scalar::Binary => Ok(Value::Bytes(Cow::Borrowed(bytes))),
        Scalar::Bool => match read_fixed::<1>(scalar, order, bytes)? {
            [0] => Ok(Value::Bool(false)),
            [1] => Ok(Value::Bool(true)),
            [_] => Err(invalid(Code::BadBool, || "the byte is not a boolean: 0 or 1".into())),
        },
        Scalar::Char => {
            let unit = u16::from_be_bytes(read_fixed(scalar, order, bytes)?);
            let character =
                char::from_u32(u32::from(unit)).ok_or_else(|| invalid(Code::OutOfRange, || HALF_PAIR.into()))?;
            Ok(Value::Text(Cow::Owned(character.to_string())))
        }
        Scalar::Int8 => int!(i8),
        Scalar::Int16 => int!(i16),
        Scalar::Int32 => int!(i32),
        Scalar::Int64 | Scalar::TimestampMs => int!(i64),
        Scalar::Int128 => Ok(Value::Wide(i128::from_be_bytes(read_fixed(scalar, order, bytes)?))),
        Scalar::Uint8 => int!(u8),
        Scalar::Uint16 => int!(u16),
        Scalar::Uint32 => int!(u32),
        Scalar::Uint64 => Ok(Value::Wide(u64::from_be_bytes(read_fixed(scalar, order, bytes)?).into())),
        Scalar::Uint128 => {
            // A number above `i128::MAX` has more than 38 digits, as `i128::MAX` has, so both lead to the same error.
            let number = u128::from_be_bytes(read_fixed(scalar, order, bytes)?);
            Ok(Value::Wide(i128::try_from(number).unwrap_or(i128::MAX)))
        }
        Scalar::Float32 => Ok(Value::Float32(f32::from_be_bytes(read_fixed(scalar, order, bytes)?))),
        Scalar::Float64 => Ok(Value::Float64(f64::from_be_bytes(read_fixed(scalar, order, bytes)?))),
        Scalar::Uuid => {
            let digits = uuid_digits(read_fixed(scalar, order, bytes)?);
            Ok(Value::Text(Cow::Owned(digits.iter().map(|digit| char::from(*digit)).collect())))
        }
    }
}

/// The two hexadecimal digits of every byte, in lower case.
pub static HEX_DIGITS: [[u8; 2]; 256] = {
    let (mut table, mut byte) = ([[0; 2]; 256], 0);
    while byte < table.len() {
        table[byte] = [b"0123456789abcdef"[byte >> 4], b"0123456789abcdef"[byte & 15]];
        byte += 1;
    }
    table
};

/// Characters of a UUID's text.
pub const UUID_LEN: usize = 36;

/// The text of a UUID, in ASCII.
#[inline]
pub fn uuid_digits(bytes: [u8; 16]) -> [u8; UUID_LEN] {
    /// Offsets of the two digits of each byte in the text.
    const DIGIT_OFFSETS: [usize; 16] = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34];
    let mut text = [b'-'; UUID_LEN];
    for (offset, byte) in DIGIT_OFFSETS.into_iter().zip(bytes) {
        text[offset..offset + 2].copy_from_slice(&HEX_DIGITS[usize::from(byte)]);
    }
    text
}

/// Converts a UUID between the byte order of RFC 9562 and that of .NET's `Guid`, whose first three groups are
/// little-endian.
pub fn guid_order(mut bytes: [u8; 16]) -> [u8; 16] {
    bytes[..4].reverse();
    bytes[4..6].reverse();
    bytes[6..8].reverse();
    bytes
}

/// How strictly a format validates typed values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checks {
    /// Any bytes are valid.
    Nothing,
    /// A value of fixed width has exactly that many bytes.
    Size,
    /// Like `Size`; also, a boolean is 0 or 1, and a string is UTF-8.
    Value,
}

impl Checks {
    /// Whether the bytes, in either order, are allowed for this type.
    #[inline]
    pub fn check(self, value_type: ValueType, bytes: &[u8]) -> Result<(), Box<InvalidValue>> {
        let ValueType::Named(scalar) = value_type else { return Ok(()) };
        if self == Checks::Nothing {
            return Ok(());
        }
        if scalar.width().is_some_and(|width| width != bytes.len()) {
            return Err(wrong_size(scalar, bytes.len()));
        }
        match scalar {
            Scalar::Bool | Scalar::String if self == Checks::Value => {
                read_bytes(scalar, ByteOrder::Big, bytes).map(|_| ())
            }
            _ => Ok(()),
        }
    }
}

/// Converts the bytes of a value to big-endian order.
#[inline]
pub fn bits_of(value_type: ValueType, bytes: &[u8], order: ByteOrder) -> Cow<'_, [u8]> {
    match order {
        ByteOrder::Little if value_type.width().is_some() && bytes.len() > 1 => {
            Cow::Owned(bytes.iter().rev().copied().collect())
        }
        _ => Cow::Borrowed(bytes),
    }
}
