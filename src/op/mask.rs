//! [`Mask`]: functions that mask a value.

use std::borrow::Cow;
use std::fmt;

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Digest, Sha256};

use crate::memory;
use crate::value::HEX_DIGITS;
use crate::value_type::{Scalar, ValueType};

/// Text of `redact`, and the text that `last4` writes before the last bytes.
const STARS: [&[u8]; 2] = [b"***", b"****"];

/// Minimum length of a value whose last four bytes are shown.
const MIN_SHOWN: usize = 8;

/// A function that replaces a value by text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mask {
    /// SHA-256 as hexadecimal digits.
    Hash,
    /// HMAC-SHA-256 as hexadecimal digits.
    Hmac(HmacKey),
    /// Three stars.
    Redact,
    /// Four stars, followed by the last four bytes if the value has at least eight bytes and ends in printable ASCII.
    LastFour,
}

/// Secret key, which `Debug` does not print.
#[derive(Clone)]
pub struct HmacKey {
    key: Vec<u8>,
    /// State after hashing the key, which is the same for every value.
    keyed: Hmac<Sha256>,
}

impl HmacKey {
    pub fn new(key: &[u8]) -> Self {
        let keyed = Hmac::new_from_slice(key).expect("HMAC takes keys of any length");
        HmacKey { key: key.to_vec(), keyed }
    }

    /// HMAC of a value as hexadecimal digits.
    fn digits(&self, bits: &[u8]) -> [u8; 64] {
        let mut code = self.keyed.clone();
        code.update(bits);
        hex_digits(&code.finalize().into_bytes())
    }
}

impl fmt::Debug for HmacKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("HmacKey(...)")
    }
}

impl PartialEq for HmacKey {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for HmacKey {}

impl Mask {
    /// Sample texts of the two lengths that the mask produces, the longest first.
    pub(super) fn texts(&self) -> [&'static [u8]; 2] {
        match self {
            Mask::Hash | Mask::Hmac(_) => [&[b'0'; 64], &[b'0'; 64]],
            Mask::Redact => [STARS[0], STARS[0]],
            Mask::LastFour => [b"****0000", STARS[1]],
        }
    }

    /// Appends one of two serialized headers, which contain the values of [`Mask::texts`], with the masked text
    /// instead.
    #[inline]
    pub(super) fn write(&self, headers: &[Vec<u8>; 2], value_type: Option<ValueType>, bits: &[u8], out: &mut Vec<u8>) {
        match self {
            Mask::Redact => memory::extend(out, &headers[0]),
            Mask::LastFour => match last_four(value_type, bits) {
                Some(last) => {
                    memory::extend(out, &headers[0][..headers[0].len() - last.len()]);
                    memory::extend(out, last);
                }
                None => memory::extend(out, &headers[1]),
            },
            Mask::Hash | Mask::Hmac(_) => {
                let digits = if let Mask::Hmac(key) = self { key.digits(bits) } else { hash(bits) };
                memory::extend(out, &headers[0][..headers[0].len() - digits.len()]);
                memory::extend(out, &digits);
            }
        }
    }

    /// Returns the text that replaces a value of these bytes.
    pub(super) fn apply(&self, value_type: Option<ValueType>, bits: &[u8]) -> Cow<'static, [u8]> {
        match self {
            Mask::Hash => Cow::Owned(hash(bits).to_vec()),
            Mask::Hmac(key) => Cow::Owned(key.digits(bits).to_vec()),
            Mask::Redact => Cow::Borrowed(STARS[0]),
            Mask::LastFour => match last_four(value_type, bits) {
                Some(last) => Cow::Owned([STARS[1], last].concat()),
                None => Cow::Borrowed(STARS[1]),
            },
        }
    }
}

/// Last four bytes of a value, if they may be shown.
#[inline]
fn last_four(value_type: Option<ValueType>, bits: &[u8]) -> Option<&[u8; 4]> {
    let is_text = matches!(value_type, None | Some(ValueType::Named(Scalar::String | Scalar::Binary)));
    let is_printable = |last: &&[u8; 4]| last.iter().all(|byte| (b' '..=b'~').contains(byte));
    bits.last_chunk::<4>().filter(|_| is_text && bits.len() >= MIN_SHOWN).filter(is_printable)
}

/// SHA-256 as hexadecimal digits.
fn hash(bits: &[u8]) -> [u8; 64] {
    hex_digits(&Sha256::digest(bits))
}

fn hex_digits(bytes: &[u8]) -> [u8; 64] {
    let mut digits = [0; 64];
    for (pair, byte) in digits.chunks_exact_mut(2).zip(bytes) {
        pair.copy_from_slice(&HEX_DIGITS[usize::from(*byte)]);
    }
    digits
}

#[cfg(test)]
#[path = "../../tests/rust/units/mask.rs"]
mod tests;
