//! What the bytes of one value mean when they are read as a type, and how a kind's bits are written without kinds.
//!
//! ```text
//!   type     name[:be|le|text|amqp]
//!   int32    ┌──┬──┬──┬──┐  most significant byte first (`:be`, the default) or last (`:le`)
//!            └──┴──┴──┴──┘
//!   int32:text   "-42"       ASCII digits
//!   int32:amqp   71 ff ff ff d6, 54 d6   an AMQP 1.0 primitive, which says how it is written: see [`amqp`]
//! ```

use std::borrow::Cow;

use crate::amqp;
use crate::error::{Code, Error, counted, unknown_name};
use crate::kind::{DECIMAL_PRECISION, Dialect, Kind, Scalar};

/// Which byte of a number comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ByteOrder {
    #[default]
    Big,
    Little,
}

/// How the bytes of a value spell it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spelling {
    Bytes(ByteOrder),
    Text,
}

/// How a value is to be read: in a spelling, or as an AMQP primitive, which says its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coding {
    Spelled(Spelling),
    Amqp,
}

/// A type as a user names it: `int64`, `int64:le`, `uuid:text`, `string:amqp`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Type {
    pub scalar: Scalar,
    pub coding: Coding,
}

/// A value read from bytes. Integers of many widths share a variant: their range was checked by then.
#[derive(Debug, Clone, PartialEq)]
pub enum Value<'a> {
    Bool(bool),
    Int(i64),
    /// What 64 bits with a sign cannot hold: `uint64` and the integers of 128 bits.
    Wide(i128),
    Float32(f32),
    Float64(f64),
    Text(Cow<'a, str>),
    Bytes(&'a [u8]),
}

/// Why bytes are not a value of a type: the code, the byte within the value, the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misfit {
    pub code: Code,
    pub within: usize,
    pub message: String,
}

impl Type {
    /// Reads `name[:be|le|text|amqp]`.
    pub fn parse(text: &str) -> Result<Type, Error> {
        let (name, suffix) = match text.split_once(':') {
            Some((name, suffix)) => (name, Some(suffix)),
            None => (text, None),
        };
        let scalar = Scalar::named(name)
            .ok_or_else(|| unknown_name("type", name, Scalar::ALL.iter().map(|scalar| scalar.name())))?;
        let coding = match suffix {
            None | Some("be") => Coding::Spelled(Spelling::Bytes(ByteOrder::Big)),
            Some("le") => Coding::Spelled(Spelling::Bytes(ByteOrder::Little)),
            Some("text") => Coding::Spelled(Spelling::Text),
            Some("amqp") => Coding::Amqp,
            Some(other) => {
                return Err(unknown_name("suffix of a type", other, ["be", "le", "text", "amqp"].into_iter()));
            }
        };
        match coding {
            Coding::Amqp if !amqp::has(scalar) => Err(Error::Value(format!("type '{text}': AMQP has no {name}"))),
            Coding::Spelled(_) if suffix.is_some() && scalar.width().is_none() => {
                Err(Error::Value(format!("type '{text}': {name} takes no suffix but amqp")))
            }
            _ => Ok(Type { scalar, coding }),
        }
    }

    /// Whether a value of this kind may be read as this type.
    pub fn accepts(self, kind: Kind) -> bool {
        match (self.scalar, kind) {
            (_, Kind::Named(Scalar::Binary)) if self.coding == Coding::Amqp => true,
            (Scalar::Uuid, Kind::Named(Scalar::Binary)) | (Scalar::TimestampMs, Kind::Named(Scalar::Int64)) => true,
            (scalar, Kind::Named(named)) => scalar == named,
            (_, Kind::Unnamed(_)) => false,
        }
    }

    /// The type that a value of a kind it accepts is read as; the bits of one that has a width lie in the given order.
    #[inline]
    pub fn under(self, kind: Kind, order: ByteOrder) -> Type {
        match kind {
            // Bytes are what whoever asks says they are.
            Kind::Named(Scalar::Binary) => self,
            _ => Type { scalar: self.scalar, coding: Coding::Spelled(Spelling::Bytes(order)) },
        }
    }

    /// Reads the bytes of a value; `None` is a null of AMQP. The message of a misfit is built only when there is one.
    #[inline]
    pub fn read<'a>(self, bytes: &'a [u8], dialect: Dialect) -> Result<Option<Value<'a>>, Box<Misfit>> {
        let value = match self.coding {
            Coding::Spelled(Spelling::Bytes(order)) => read_bytes(self.scalar, order, bytes)?,
            Coding::Spelled(Spelling::Text) => read_text(self.scalar, bytes)?,
            Coding::Amqp => return self.read_amqp(bytes, dialect),
        };
        self.fit(value, dialect).map(Some)
    }

    fn read_amqp<'a>(self, bytes: &'a [u8], dialect: Dialect) -> Result<Option<Value<'a>>, Box<Misfit>> {
        match amqp::read(self.scalar, bytes)? {
            Some(value) => self.fit(value, dialect).map(Some).map_err(|misfit| misfit.behind(1)),
            None => Ok(None),
        }
    }

    /// Checks an integer against the column it goes into.
    #[inline]
    fn fit(self, value: Value<'_>, dialect: Dialect) -> Result<Value<'_>, Box<Misfit>> {
        match value {
            Value::Wide(number) if number.unsigned_abs() >= 10u128.pow(u32::from(DECIMAL_PRECISION)) => {
                Err(misfit(Code::OutOfRange, || "the number has more than 38 digits".into()))
            }
            Value::Int(millis) if self.scalar == Scalar::TimestampMs && dialect == Dialect::Spark => {
                match millis.checked_mul(1000) {
                    Some(micros) => Ok(Value::Int(micros)),
                    None => Err(misfit(Code::OutOfRange, || "the time does not fit 64 bits of microseconds".into())),
                }
            }
            value => Ok(value),
        }
    }
}

impl Misfit {
    /// The same, where so many bytes of the value come before those that were read.
    pub fn behind(mut self: Box<Self>, bytes: usize) -> Box<Self> {
        self.within += bytes;
        self
    }
}

#[cold]
pub(crate) fn misfit(code: Code, message: impl FnOnce() -> String) -> Box<Misfit> {
    Box::new(Misfit { code, within: 0, message: message() })
}

fn sized<const N: usize>(scalar: Scalar, order: ByteOrder, bytes: &[u8]) -> Result<[u8; N], Box<Misfit>> {
    let mut array: [u8; N] = bytes.try_into().map_err(|_| wrong_size(scalar, bytes.len()))?;
    if order == ByteOrder::Little {
        array.reverse();
    }
    Ok(array)
}

#[cold]
fn wrong_size(scalar: Scalar, len: usize) -> Box<Misfit> {
    let (name, width) = (scalar.name(), scalar.width().unwrap_or_default());
    misfit(Code::WrongSize, || format!("{} where {name} takes {width}", counted(len, "byte")))
}

pub(crate) fn read_bytes<'a>(scalar: Scalar, order: ByteOrder, bytes: &'a [u8]) -> Result<Value<'a>, Box<Misfit>> {
    macro_rules! int {
        ($of:ty) => {
            Ok(Value::Int(<$of>::from_be_bytes(sized(scalar, order, bytes)?) as i64))
        };
    }
    match scalar {
        Scalar::String => std::str::from_utf8(bytes).map(|text| Value::Text(Cow::Borrowed(text))).map_err(|error| {
            let within = error.valid_up_to();
            Box::new(Misfit { code: Code::ValueNotUtf8, within, message: "the value is not UTF-8".into() })
        }),
        Scalar::Binary => Ok(Value::Bytes(bytes)),
        Scalar::Bool => match sized::<1>(scalar, order, bytes)? {
            [0] => Ok(Value::Bool(false)),
            [1] => Ok(Value::Bool(true)),
            [other] => Err(misfit(Code::BadBool, || format!("{other} is not a boolean: 0 or 1"))),
        },
        Scalar::Char => {
            let unit = u16::from_be_bytes(sized(scalar, order, bytes)?);
            let character = char::from_u32(u32::from(unit))
                .ok_or_else(|| misfit(Code::OutOfRange, || "half of a surrogate pair is no character".into()))?;
            Ok(Value::Text(Cow::Owned(character.to_string())))
        }
        Scalar::Int8 => int!(i8),
        Scalar::Int16 => int!(i16),
        Scalar::Int32 => int!(i32),
        Scalar::Int64 | Scalar::TimestampMs => int!(i64),
        Scalar::Int128 => Ok(Value::Wide(i128::from_be_bytes(sized(scalar, order, bytes)?))),
        Scalar::Uint8 => int!(u8),
        Scalar::Uint16 => int!(u16),
        Scalar::Uint32 => int!(u32),
        Scalar::Uint64 => Ok(Value::Wide(u64::from_be_bytes(sized(scalar, order, bytes)?).into())),
        Scalar::Uint128 => {
            // Past i128 there are more than 38 digits anyway, which is the same fault.
            let number = u128::from_be_bytes(sized(scalar, order, bytes)?);
            Ok(Value::Wide(i128::try_from(number).unwrap_or(i128::MAX)))
        }
        Scalar::Float32 => Ok(Value::Float32(f32::from_be_bytes(sized(scalar, order, bytes)?))),
        Scalar::Float64 => Ok(Value::Float64(f64::from_be_bytes(sized(scalar, order, bytes)?))),
        Scalar::Uuid => Ok(Value::Text(Cow::Owned(uuid_text(sized(scalar, order, bytes)?)))),
    }
}

/// The five groups of a UUID's text, in digits.
const UUID_GROUPS: [usize; 5] = [8, 4, 4, 4, 12];

/// Characters of a UUID's text.
pub const UUID_LEN: usize = 36;

fn uuid_text(bytes: [u8; 16]) -> String {
    uuid_digits(bytes).iter().map(|digit| char::from(*digit)).collect()
}

/// The text of a UUID, in ASCII.
#[inline]
pub fn uuid_digits(bytes: [u8; 16]) -> [u8; UUID_LEN] {
    /// The two digits of every byte.
    const DIGITS: [[u8; 2]; 256] = {
        let (mut table, mut byte) = ([[0; 2]; 256], 0);
        while byte < table.len() {
            table[byte] = [b"0123456789abcdef"[byte >> 4], b"0123456789abcdef"[byte & 15]];
            byte += 1;
        }
        table
    };
    /// Where the digits of each byte stand.
    const PLACES: [usize; 16] = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34];
    let mut text = [b'-'; UUID_LEN];
    for (place, byte) in PLACES.into_iter().zip(bytes) {
        text[place..place + 2].copy_from_slice(&DIGITS[usize::from(byte)]);
    }
    text
}

fn read_text<'a>(scalar: Scalar, bytes: &'a [u8]) -> Result<Value<'a>, Box<Misfit>> {
    let text = std::str::from_utf8(bytes).map_err(|_| bad_text(scalar))?;
    match scalar {
        Scalar::Bool => match text {
            "true" => Ok(Value::Bool(true)),
            "false" => Ok(Value::Bool(false)),
            _ => Err(bad_text(scalar)),
        },
        Scalar::Char => {
            let mut characters = text.chars();
            match (characters.next(), characters.next()) {
                (Some(one), None) if u32::from(one) <= 0xffff => Ok(Value::Text(Cow::Borrowed(text))),
                _ => Err(bad_text(scalar)),
            }
        }
        Scalar::Float32 => {
            float_text(text).and_then(|t| t.parse().ok()).map(Value::Float32).ok_or_else(|| bad_text(scalar))
        }
        Scalar::Float64 => {
            float_text(text).and_then(|t| t.parse().ok()).map(Value::Float64).ok_or_else(|| bad_text(scalar))
        }
        Scalar::Uuid => uuid_from_text(text).map(|t| Value::Text(Cow::Owned(t))).ok_or_else(|| bad_text(scalar)),
        Scalar::String | Scalar::Binary => unreachable!("`Type::parse` gives these no suffix"),
        _ => int_text(scalar, text),
    }
}

#[cold]
fn bad_text(scalar: Scalar) -> Box<Misfit> {
    misfit(Code::BadText, || format!("the text does not spell {}", scalar.name()))
}

fn int_text<'a>(scalar: Scalar, text: &str) -> Result<Value<'a>, Box<Misfit>> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    if !is_digits(digits) {
        return Err(bad_text(scalar));
    }
    let (low, high) = int_range(scalar);
    // A number past 128 bits parses to nothing, and is out of every range.
    match text.parse::<i128>() {
        Ok(number) if (low..=high).contains(&number) => match i64::try_from(number) {
            Ok(number) if !is_wide(scalar) => Ok(Value::Int(number)),
            _ => Ok(Value::Wide(number)),
        },
        _ => Err(does_not_fit(scalar)),
    }
}

fn is_wide(scalar: Scalar) -> bool {
    matches!(scalar, Scalar::Uint64 | Scalar::Int128 | Scalar::Uint128)
}

fn int_range(scalar: Scalar) -> (i128, i128) {
    let unsigned = matches!(scalar, Scalar::Uint8 | Scalar::Uint16 | Scalar::Uint32 | Scalar::Uint64 | Scalar::Uint128);
    let bits = scalar.width().unwrap_or_default() as u32 * 8;
    match (unsigned, bits) {
        (true, 128) => (0, i128::MAX),
        (true, _) => (0, (1 << bits) - 1),
        (false, _) => (i128::MIN >> (128 - bits), i128::MAX >> (128 - bits)),
    }
}

/// The text if it is `[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?`, `NaN`, `Infinity` or `-Infinity`.
fn float_text(text: &str) -> Option<&str> {
    if matches!(text, "NaN" | "Infinity" | "-Infinity") {
        return Some(text);
    }
    let number = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = match number.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (number, None),
    };
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let spelled = digits(whole) && digits(fraction) && !(whole.is_empty() && fraction.is_empty());
    let scaled = exponent.is_none_or(|exponent| {
        let number = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        !number.is_empty() && digits(number)
    });
    (spelled && scaled).then_some(text)
}

fn uuid_from_text(text: &str) -> Option<String> {
    let mut groups = text.split('-');
    let fits = UUID_GROUPS.iter().all(|len| {
        groups.next().is_some_and(|group| group.len() == *len && group.bytes().all(|byte| byte.is_ascii_hexdigit()))
    });
    (fits && groups.next().is_none()).then(|| text.to_ascii_lowercase())
}

/// How closely a format looks at the bytes of a value that has a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checks {
    /// Any bytes will do.
    Nothing,
    /// A kind of fixed width has just as many bytes.
    Size,
    /// And a boolean is 0 or 1, and a string UTF-8.
    Value,
}

impl Checks {
    /// Whether the bytes, in whatever order, may stand under this kind.
    #[inline]
    pub fn check(self, kind: Kind, bytes: &[u8]) -> Result<(), Box<Misfit>> {
        let Kind::Named(scalar) = kind else { return Ok(()) };
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

/// The bits of a value that lies in the given order: most significant byte first.
#[inline]
pub fn bits_of(kind: Kind, bytes: &[u8], order: ByteOrder) -> Cow<'_, [u8]> {
    match order {
        ByteOrder::Little if kind.width().is_some() && bytes.len() > 1 => {
            Cow::Owned(bytes.iter().rev().copied().collect())
        }
        _ => Cow::Borrowed(bytes),
    }
}

/// The bits of a value of the given kind that is spelled without kinds: what [`untyped`] undoes.
pub fn typed(kind: Kind, bytes: &[u8], spelling: Spelling) -> Result<Cow<'_, [u8]>, Box<Misfit>> {
    let Kind::Named(scalar) = kind else { return Ok(Cow::Borrowed(bytes)) };
    match spelling {
        Spelling::Bytes(order) => {
            Checks::Value.check(kind, bytes)?;
            Ok(bits_of(kind, bytes, order))
        }
        Spelling::Text => text_bits(scalar, bytes).map(Cow::Owned),
    }
}

fn text_bits(scalar: Scalar, bytes: &[u8]) -> Result<Vec<u8>, Box<Misfit>> {
    if scalar == Scalar::Uint128
        && let Some(number) = wide_unsigned(bytes)
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
        // One character of at most U+FFFF: `read_text` saw to it.
        Value::Text(text) => text.encode_utf16().flat_map(u16::to_be_bytes).collect(),
        Value::Bytes(_) => unreachable!("`Type::parse` gives binary no suffix"),
    })
}

/// The number of a text of digits that fits 128 bits, half of which `read_text` has no room for.
fn wide_unsigned(bytes: &[u8]) -> Option<u128> {
    std::str::from_utf8(bytes).ok().filter(|text| is_digits(text))?.parse().ok()
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cold]
fn does_not_fit(scalar: Scalar) -> Box<Misfit> {
    misfit(Code::OutOfRange, || format!("the number does not fit {}", scalar.name()))
}

/// The bytes of a typed value for a format without kinds. `bits` are big-endian.
///
/// A misfit when the bits are not a value of the kind.
pub fn untyped<'a>(kind: Kind, bits: &'a [u8], spelling: Spelling) -> Result<Cow<'a, [u8]>, Box<Misfit>> {
    let scalar = match kind {
        Kind::Unnamed(_) | Kind::Named(Scalar::String | Scalar::Binary) => return Ok(Cow::Borrowed(bits)),
        Kind::Named(scalar) => scalar,
    };
    if scalar.width().is_some_and(|width| width != bits.len()) {
        return Err(wrong_size(scalar, bits.len()));
    }
    Ok(match spelling {
        Spelling::Bytes(ByteOrder::Big) => Cow::Borrowed(bits),
        Spelling::Bytes(ByteOrder::Little) => Cow::Owned(bits.iter().rev().copied().collect()),
        Spelling::Text => Cow::Owned(spell(scalar, bits)?.into_bytes()),
    })
}

/// The text of a value that has one: what `name:text` reads back as the same value. `bits` are big-endian.
pub fn text_of(kind: Kind, bits: &[u8]) -> Option<String> {
    match kind {
        Kind::Named(Scalar::Binary) | Kind::Unnamed(_) => None,
        Kind::Named(scalar) => spell(scalar, bits).ok(),
    }
}

fn spell(scalar: Scalar, bits: &[u8]) -> Result<String, Box<Misfit>> {
    if scalar == Scalar::Uint128 {
        // Wider than what a column can hold, but not than text.
        return Ok(u128::from_be_bytes(sized(scalar, ByteOrder::Big, bits)?).to_string());
    }
    Ok(match read_bytes(scalar, ByteOrder::Big, bits)? {
        Value::Bool(flag) => flag.to_string(),
        Value::Int(number) => number.to_string(),
        Value::Wide(number) => number.to_string(),
        Value::Float32(number) => special_float(f64::from(number)).unwrap_or_else(|| number.to_string()),
        Value::Float64(number) => special_float(number).unwrap_or_else(|| number.to_string()),
        Value::Text(text) => text.into_owned(),
        Value::Bytes(_) => unreachable!("binary has no text, and nobody asks for it"),
    })
}

/// Whether bits are a NaN that its text does not give back. `bits` are big-endian.
pub fn is_other_nan(kind: Kind, bits: &[u8]) -> bool {
    match kind {
        Kind::Named(Scalar::Float32) => {
            bits.try_into().is_ok_and(|bits| f32::from_be_bytes(bits).is_nan() && bits != f32::NAN.to_be_bytes())
        }
        Kind::Named(Scalar::Float64) => {
            bits.try_into().is_ok_and(|bits| f64::from_be_bytes(bits).is_nan() && bits != f64::NAN.to_be_bytes())
        }
        _ => false,
    }
}

fn special_float(number: f64) -> Option<String> {
    match number {
        n if n.is_nan() => Some("NaN".into()),
        f64::INFINITY => Some("Infinity".into()),
        f64::NEG_INFINITY => Some("-Infinity".into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<'a>(name: &str, bytes: &'a [u8]) -> Result<Value<'a>, Code> {
        let read = Type::parse(name).unwrap().read(bytes, Dialect::Arrow);
        read.map(|value| value.expect("only AMQP has a null")).map_err(|misfit| misfit.code)
    }

    #[test]
    fn byte_order_is_part_of_the_type() {
        assert_eq!(read("int32", &[0, 0, 0, 3]), Ok(Value::Int(3)));
        assert_eq!(read("int32:le", &[3, 0, 0, 0]), Ok(Value::Int(3)));
        assert_eq!(read("int16", &[0xff, 0xfe]), Ok(Value::Int(-2)));
        assert_eq!(read("uint16", &[0xff, 0xfe]), Ok(Value::Int(65534)));
        assert_eq!(read("int32", &[0, 3]), Err(Code::WrongSize));
    }

    #[test]
    fn integers_in_text_keep_to_digits_and_range() {
        assert_eq!(read("int8:text", b"-128"), Ok(Value::Int(-128)));
        assert_eq!(read("int8:text", b"128"), Err(Code::OutOfRange));
        assert_eq!(read("uint8:text", b"-0"), Ok(Value::Int(0)));
        assert_eq!(read("uint8:text", b"-1"), Err(Code::OutOfRange));
        assert_eq!(read("int64:text", &[b'0'; 99]), Ok(Value::Int(0)));
        assert_eq!(read("int64:text", &[b'9'; 99]), Err(Code::OutOfRange));
        for wrong in ["", "-", "+1", " 1", "1 ", "1_0", "0x1", "\u{0661}"] {
            assert_eq!(read("int64:text", wrong.as_bytes()), Err(Code::BadText), "{wrong:?}");
        }
    }

    #[test]
    fn floats_in_text_keep_to_the_grammar() {
        for right in ["1", "1.", ".5", "-1e5", "+2.5E-3", "NaN", "Infinity", "-Infinity"] {
            assert!(read("float64:text", right.as_bytes()).is_ok(), "{right:?}");
        }
        for wrong in ["", ".", "e5", "1e", "inf", "nan", "+Infinity", "1f", "0x1p3", "1 "] {
            assert_eq!(read("float64:text", wrong.as_bytes()), Err(Code::BadText), "{wrong:?}");
        }
        assert_eq!(read("float32:text", b"1e99"), Ok(Value::Float32(f32::INFINITY)));
    }

    #[test]
    fn half_a_surrogate_pair_is_no_character() {
        assert_eq!(read("char", &[0xd8, 0x00]), Err(Code::OutOfRange));
        assert_eq!(read("char", &[0x00, 0xe9]), Ok(Value::Text("é".into())));
        assert_eq!(read("char:text", "📦".as_bytes()), Err(Code::BadText));
    }

    #[test]
    fn a_wide_integer_past_38_digits_is_out_of_range() {
        assert_eq!(read("uint128", &[0xff; 16]), Err(Code::OutOfRange));
        assert_eq!(read("int128", &[0xff; 16]), Ok(Value::Wide(-1)));
        assert_eq!(read("int128:text", &[b'9'; 38]), Ok(Value::Wide(10i128.pow(38) - 1)));
        assert_eq!(read("int128:text", &[b'9'; 39]), Err(Code::OutOfRange));
    }

    #[test]
    fn a_uuid_is_lower_case_text() {
        assert_eq!(&uuid_digits([0xaf; 16]), b"afafafaf-afaf-afaf-afaf-afafafafafaf");
        let bytes: Vec<u8> = (0..16).collect();
        let text = "00010203-0405-0607-0809-0a0b0c0d0e0f";
        assert_eq!(read("uuid", &bytes), Ok(Value::Text(text.into())));
        assert_eq!(read("uuid:text", text.to_uppercase().as_bytes()), Ok(Value::Text(text.into())));
        assert_eq!(read("uuid:text", b"0001020304050607-0809-0a0b0c0d0e0f"), Err(Code::BadText));
    }

    #[test]
    fn spark_counts_microseconds() {
        let far = Type::parse("timestamp_ms").unwrap();
        assert_eq!(far.read(&5i64.to_be_bytes(), Dialect::Spark), Ok(Some(Value::Int(5000))));
        assert_eq!(far.read(&i64::MAX.to_be_bytes(), Dialect::Spark).unwrap_err().code, Code::OutOfRange);
        assert_eq!(far.read(&i64::MAX.to_be_bytes(), Dialect::Arrow), Ok(Some(Value::Int(i64::MAX))));
        let amqp = Type::parse("timestamp_ms:amqp").unwrap();
        let bytes = [&[0x83][..], &i64::MAX.to_be_bytes()].concat();
        let misfit = amqp.read(&bytes, Dialect::Spark).unwrap_err();
        assert_eq!((misfit.code, misfit.within), (Code::OutOfRange, 1));
    }

    #[test]
    fn the_kind_decides_but_bytes_may_be_amqp() {
        let amqp = Type::parse("int64:amqp").unwrap();
        let (long, binary) = (Kind::Named(Scalar::Int64), Kind::Named(Scalar::Binary));
        assert!(amqp.accepts(long) && amqp.accepts(binary) && !amqp.accepts(Kind::Named(Scalar::Int32)));
        assert_eq!(amqp.under(long, ByteOrder::Little), Type::parse("int64:le").unwrap());
        assert_eq!(amqp.under(binary, ByteOrder::Little), amqp);
        assert!(!Type::parse("int64").unwrap().accepts(binary));
    }

    #[test]
    fn a_suffix_only_where_there_is_a_spelling_to_choose() {
        assert!(Type::parse("string:be").is_err());
        assert!(Type::parse("string:amqp").is_ok());
        assert!(Type::parse("uint128:amqp").is_err());
        assert!(Type::parse("int32:big").is_err());
        let Err(Error::Value(text)) = Type::parse("itn32") else { panic!("accepted") };
        assert!(text.contains("did you mean 'int32'?"), "{text}");
    }

    #[test]
    fn typed_values_are_spelled_as_asked_and_read_back() {
        for (name, bits) in [("int32", vec![0, 0, 1, 2]), ("float64", 0.1f64.to_be_bytes().to_vec()), ("bool", vec![1])]
        {
            let kind = Kind::parse(name).unwrap();
            for (suffix, spelling) in [
                ("be", Spelling::Bytes(ByteOrder::Big)),
                ("le", Spelling::Bytes(ByteOrder::Little)),
                ("text", Spelling::Text),
            ] {
                let written = untyped(kind, &bits, spelling).unwrap();
                assert_eq!(read(&format!("{name}:{suffix}"), &written), read(name, &bits), "{name}:{suffix}");
            }
            let short = untyped(kind, &[], Spelling::Bytes(ByteOrder::Big)).unwrap_err();
            assert_eq!(short.code, Code::WrongSize);
        }
    }
}
