//! [`BaseEncoding`]: bytes that are written as Base64 or hexadecimal digits, as by MirrorMaker, HTTP bridges and AWS
//! Lambda.
//!
//! ```text
//!   int32:base64         AAAAAw==    RFC 4648, in the standard or the URL-safe alphabet, padded or not
//!   int32:hex            00000003    in either case
//!   timestamp:iso:hex                for any type, after its own suffix
//! ```
//!
//! Source: RFC 4648, sections 3.5, 4, 5 and 8. Bits after the last byte must be 0, so that two texts of the same bytes
//! differ only in alphabet, case and padding.

use base64::alphabet::{STANDARD, URL_SAFE};
use base64::engine::{self, DecodePaddingMode, Engine as _, GeneralPurpose, GeneralPurposeConfig};

use crate::error::Code;
use crate::memory;
use crate::number::fitting;
use crate::value::{HEX_DIGITS, InvalidValue, invalid};

/// A text encoding of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BaseEncoding {
    Base64,
    Hex,
}

impl BaseEncoding {
    pub const ALL: [BaseEncoding; 2] = [BaseEncoding::Base64, BaseEncoding::Hex];

    pub fn name(self) -> &'static str {
        match self {
            BaseEncoding::Base64 => "base64",
            BaseEncoding::Hex => "hex",
        }
    }

    /// Splits off the last suffix, if it is the name of an encoding.
    pub fn split(text: &str) -> Option<(&str, BaseEncoding)> {
        let (name, suffix) = text.rsplit_once(':')?;
        Some((name, BaseEncoding::ALL.into_iter().find(|base| base.name() == suffix)?))
    }

    /// Decodes text.
    pub fn read(self, text: &[u8]) -> Result<Vec<u8>, Box<InvalidValue>> {
        let (bytes, message) = match self {
            BaseEncoding::Base64 => (from_base64(text), "the text is not Base64"),
            BaseEncoding::Hex => (from_hex(text), "the text is not pairs of hex digits"),
        };
        bytes.ok_or_else(|| invalid(Code::BadText, || message.into()))
    }

    /// Appends the text of bytes: padded Base64 in the standard alphabet, or digits in lower case.
    pub fn write(self, bytes: &[u8], out: &mut Vec<u8>) {
        match self {
            BaseEncoding::Base64 => write_base64(bytes, out),
            BaseEncoding::Hex => {
                memory::reserve(out, bytes.len().saturating_mul(2));
                out.extend(bytes.iter().flat_map(|byte| HEX_DIGITS[usize::from(*byte)]));
            }
        }
    }
}

fn from_base64(text: &[u8]) -> Option<Vec<u8>> {
    const CONFIG: GeneralPurposeConfig =
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    static IN_STANDARD: GeneralPurpose = GeneralPurpose::new(&STANDARD, CONFIG);
    static IN_URL_SAFE: GeneralPurpose = GeneralPurpose::new(&URL_SAFE, CONFIG);
    if text.ends_with(b"=") && !text.len().is_multiple_of(4) {
        return None;
    }
    IN_STANDARD.decode(text).or_else(|_| IN_URL_SAFE.decode(text)).ok()
}

/// Appends bytes as Base64, in the standard alphabet and padded.
pub fn write_base64(bytes: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    let digits = bytes.len().div_ceil(3).saturating_mul(4);
    memory::reserve(out, digits);
    out.resize(start + digits, 0);
    let written = engine::general_purpose::STANDARD.encode_slice(bytes, &mut out[start..]);
    debug_assert_eq!(written, Ok(digits));
}

fn from_hex(text: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(fitting::<u8, _>);
    let (pairs, rest) = text.as_chunks::<2>();
    let bytes = || pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).collect();
    if rest.is_empty() { bytes() } else { None }
}

#[cfg(test)]
#[path = "../tests/rust/units/base_encoding.rs"]
mod tests;
