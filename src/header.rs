//! One parsed [`Header`], and keys in the forms of all formats.

use std::borrow::Cow;
use std::fmt;
use std::str::Utf8Error;

use crate::encoding::text_of;
use crate::error::Error;
use crate::value::{ByteOrder, Checks, InvalidValue, bits_of};
use crate::value_type::{Scalar, ValueType};

/// Key of a header, in one of the three forms of the formats.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Key<'a> {
    Text(Text<'a>),
    Int(i32),
    Typed(TypedKey<'a>),
}

/// Typed key, and its bytes in the format's order. As a typed key, text is a string and an integer an int32.
#[derive(Debug, Clone, Copy)]
pub struct TypedKey<'a> {
    pub value_type: ValueType,
    bytes: &'a [u8],
    order: ByteOrder,
}

impl<'a> TypedKey<'a> {
    pub fn new(value_type: ValueType, bytes: &'a [u8], order: ByteOrder) -> Self {
        TypedKey { value_type, bytes, order }
    }

    /// The bytes in the format's order.
    #[inline]
    pub fn bytes(self) -> &'a [u8] {
        self.bytes
    }

    /// Bytes with the most significant byte first.
    pub fn bits(self) -> Cow<'a, [u8]> {
        bits_of(self.value_type, self.bytes, self.order)
    }

    /// Whether the bytes are allowed for their type.
    #[inline]
    pub fn check(self, checks: Checks) -> Result<(), Box<InvalidValue>> {
        checks.check(self.value_type, self.bytes)
    }

    /// The bytes of a string key, which need not be UTF-8.
    #[inline]
    pub fn string(self) -> Option<&'a [u8]> {
        (self.value_type == ValueType::Named(Scalar::String)).then_some(self.bytes)
    }

    pub fn text(self) -> Option<&'a str> {
        self.string().and_then(|bytes| std::str::from_utf8(bytes).ok())
    }
}

impl PartialEq for TypedKey<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.value_type == other.value_type && self.bits() == other.bits()
    }
}

impl Eq for TypedKey<'_> {}

impl Key<'_> {
    #[inline]
    pub fn byte_len(&self) -> usize {
        match self {
            Key::Text(text) => text.as_bytes().len(),
            Key::Int(number) => size_of_val(number),
            Key::Typed(typed) => typed.bytes.len(),
        }
    }

    /// Whether the key is text or a typed string with exactly these bytes.
    #[inline]
    pub fn is_text(&self, expected: &[u8]) -> bool {
        match self {
            Key::Text(text) => text.as_bytes() == expected,
            Key::Typed(typed) => typed.string() == Some(expected),
            Key::Int(_) => false,
        }
    }
}

impl<'a> From<&'a str> for Key<'a> {
    #[inline]
    fn from(text: &'a str) -> Self {
        Key::Text(Text(Cow::Borrowed(text.as_bytes())))
    }
}

impl From<String> for Key<'_> {
    fn from(text: String) -> Self {
        Key::Text(Text(Cow::Owned(text.into_bytes())))
    }
}

/// Bytes that are UTF-8, on which unsafe code relies. They are not a `str`, because sinks copy and compare bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text<'a>(Cow<'a, [u8]>);

impl<'a> Text<'a> {
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Result<Self, Utf8Error> {
        // Keys are short, and nearly all are ASCII. This check costs a fraction of the general one.
        if !is_ascii(bytes) {
            std::str::from_utf8(bytes)?;
        }
        Ok(Text(Cow::Borrowed(bytes)))
    }

    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    #[inline]
    pub fn into_bytes(self) -> Cow<'a, [u8]> {
        self.0
    }
}

#[inline]
fn is_ascii(bytes: &[u8]) -> bool {
    const HIGH_BITS: u64 = 0x8080_8080_8080_8080;
    match bytes.last_chunk::<8>() {
        Some(last) => {
            let (words, _) = bytes.as_chunks::<8>();
            let bits = words.iter().fold(u64::from_ne_bytes(*last), |bits, word| bits | u64::from_ne_bytes(*word));
            bits & HIGH_BITS == 0
        }
        None => bytes.iter().fold(0, |bits, byte| bits | byte) < 0x80,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyForm {
    Text,
    Int,
    Typed,
}

impl KeyForm {
    pub fn name(self) -> &'static str {
        match self {
            KeyForm::Text => "text",
            KeyForm::Int => "int",
            KeyForm::Typed => "typed",
        }
    }
}

/// Key requested by the user.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum RequestedKey {
    /// Text, or a typed string.
    Text(String),
    Int(i32),
    /// A key of any other type, or a string that is not UTF-8.
    Typed(ValueType, Vec<u8>),
}

impl From<&Key<'_>> for RequestedKey {
    fn from(key: &Key<'_>) -> Self {
        match key {
            Key::Text(_) => RequestedKey::Text(key.to_string()),
            Key::Int(number) => RequestedKey::Int(*number),
            Key::Typed(typed) => match typed.text() {
                Some(text) => RequestedKey::Text(text.to_string()),
                None => RequestedKey::Typed(typed.value_type, typed.bits().into_owned()),
            },
        }
    }
}

impl RequestedKey {
    /// A typed key whose most significant byte comes first. A string that is UTF-8 is text.
    pub fn typed(value_type: ValueType, bits: &[u8]) -> Self {
        RequestedKey::from(&Key::Typed(TypedKey::new(value_type, bits, ByteOrder::Big)))
    }

    /// Whether a key equals the requested one.
    #[inline(always)] // Called for every header.
    pub fn is(&self, key: &Key<'_>) -> bool {
        match (self, key) {
            (RequestedKey::Text(requested), key) => key.is_text(requested.as_bytes()),
            (RequestedKey::Int(requested), Key::Int(number)) => requested == number,
            (RequestedKey::Typed(value_type, requested), Key::Typed(typed)) => {
                *value_type == typed.value_type && *requested == *typed.bits()
            }
            _ => false,
        }
    }

    /// Rejects a key that no header of a format can have.
    pub fn check(&self, format: &str, form: KeyForm) -> Result<(), Error> {
        let has = match (self, form) {
            (RequestedKey::Text(_), KeyForm::Text | KeyForm::Typed)
            | (RequestedKey::Int(_), KeyForm::Int)
            | (RequestedKey::Typed(..), KeyForm::Typed) => return Ok(()),
            (_, KeyForm::Text) => "text keys",
            (_, KeyForm::Int) => "integer keys",
            (_, KeyForm::Typed) => "typed keys: give lh.Int32(3)",
        };
        Err(Error::Value(format!("key {self}: {format} has {has}")))
    }
}

impl fmt::Display for RequestedKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RequestedKey::Text(text) => out.write_str(text),
            RequestedKey::Int(number) => write!(out, "{number}"),
            RequestedKey::Typed(value_type, bits) => {
                Key::Typed(TypedKey::new(*value_type, bits, ByteOrder::Big)).fmt(out)
            }
        }
    }
}

/// Parsed header. Its index in the message, and the offset of its value in the data, are used in errors of sinks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header<'a> {
    pub index: usize,
    pub key: Key<'a>,
    pub value_type: Option<ValueType>,
    pub value: Option<&'a [u8]>,
    pub value_offset: Option<usize>,
}

impl fmt::Display for Key<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Key::Text(text) => out.write_str(&String::from_utf8_lossy(text.as_bytes())),
            Key::Int(number) => write!(out, "{number}"),
            Key::Typed(typed) => match typed.text() {
                Some(text) => out.write_str(text),
                None => {
                    let bits = typed.bits();
                    write!(out, "{}:", typed.value_type.name())?;
                    match text_of(typed.value_type, &bits) {
                        Some(text) => out.write_str(&text),
                        None => bits.iter().try_for_each(|byte| write!(out, "{byte:02x}")),
                    }
                }
            },
        }
    }
}
