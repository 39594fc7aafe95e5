//! One header as a walk hands it over.

use std::borrow::Cow;
use std::fmt;
use std::str::Utf8Error;

use crate::kind::Kind;

/// The key of a header, in the three forms that formats have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Key<'a> {
    Text(Text<'a>),
    Int(i32),
    Typed(Kind, &'a [u8]),
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

/// Bytes that were seen to be UTF-8. They stay bytes: sinks copy and compare them, and only people read them as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text<'a>(Cow<'a, [u8]>);

impl<'a> Text<'a> {
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Result<Self, Utf8Error> {
        // Keys are short, and nearly all are ASCII: this costs a fraction of the general check.
        if !is_ascii(bytes) {
            std::str::from_utf8(bytes)?;
        }
        Ok(Text(Cow::Borrowed(bytes)))
    }

    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

#[inline]
fn is_ascii(bytes: &[u8]) -> bool {
    const HIGH_BITS: u64 = 0x8080_8080_8080_8080;
    match bytes.last_chunk::<8>() {
        Some(last) => {
            let (words, _) = bytes.as_chunks::<8>();
            let seen = words.iter().fold(u64::from_ne_bytes(*last), |seen, word| seen | u64::from_ne_bytes(*word));
            seen & HIGH_BITS == 0
        }
        None => bytes.iter().fold(0, |seen, byte| seen | byte) < 0x80,
    }
}

/// Which form the keys of a format have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyForm {
    Text,
    Int,
    Typed,
}

/// One header as a walk hands it over: its place among its fellows, and where its value begins in the cell, for faults
/// that a sink finds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header<'a> {
    pub index: usize,
    pub key: Key<'a>,
    pub kind: Option<Kind>,
    pub value: Option<&'a [u8]>,
    pub at: Option<usize>,
}

impl fmt::Display for Key<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Key::Text(text) => out.write_str(&String::from_utf8_lossy(text.as_bytes())),
            Key::Int(number) => write!(out, "{number}"),
            Key::Typed(kind, bytes) => write!(out, "{}", kind.show(bytes)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_short_check_agrees_with_the_general_one() {
        for len in 0..40 {
            let plain = vec![b'a'; len];
            assert!(Text::new(&plain).is_ok());
            for place in 0..len {
                let mut bytes = plain.clone();
                bytes[place] = 0xff;
                assert_eq!(Text::new(&bytes).err(), std::str::from_utf8(&bytes).err(), "{len} {place}");
            }
        }
        assert!(Text::new("señal-📦".as_bytes()).is_ok());
    }
}
