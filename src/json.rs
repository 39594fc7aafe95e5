//! Reads values that are JSON, as Spring Kafka writes headers of Java objects: scalars, and strings with or without
//! quotes.
//!
//! ```text
//!   int32:json      42   "42"                     JSON numbers; Jackson also reads them in quotes
//!   float64:json    2.5   "NaN"   "-Infinity"     numbers that JSON lacks are in quotes
//!   string:json     "text/plain"   acme           text that is not a JSON string is the value itself
//!   int32:json      null   ""                     null
//!   binary:json     [65, -61]   "Qcs="            bytes: a list of numbers, with or without a sign, or Base64 as in
//! Jackson
//! ```

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::base_encoding::BaseEncoding;
use crate::encoding::{bad_text, is_number, read_text};
use crate::error::Code;
use crate::value::{ByteOrder, InvalidValue, Value, invalid, read_bytes};
use crate::value_type::Scalar;

/// Reads a value; `None` is a JSON null.
pub fn read(scalar: Scalar, bytes: &[u8]) -> Result<Option<Value<'_>>, Box<InvalidValue>> {
    if scalar == Scalar::String {
        let text = read_bytes(scalar, ByteOrder::Big, bytes)?;
        // The quotes of a text are optional, and a text without them may begin with a quote.
        return Ok(Some(match unquote(bytes) {
            Some(unquoted) => Value::Text(Cow::Owned(unquoted)),
            None => text,
        }));
    }
    if scalar == Scalar::Binary {
        return read_list(bytes.trim_ascii());
    }
    let Some(text) = unquote(bytes.trim_ascii()) else {
        return match bytes.trim_ascii() {
            b"null" => Ok(None),
            // Quotes of text are optional, but a number must be valid JSON: not `007`, `.5` or `NaN`.
            plain if is_number(scalar) && serde_json::from_slice::<&RawValue>(plain).is_err() => Err(bad_text(scalar)),
            plain => read_text(scalar, plain).map(Some),
        };
    };
    let text = if scalar == Scalar::Char { text.as_str() } else { text.trim_ascii() };
    let text = match (scalar, text) {
        (_, "" | "null") => return Ok(None),
        (Scalar::Float32 | Scalar::Float64, "INF") => "Infinity",
        (Scalar::Float32 | Scalar::Float64, "-INF") => "-Infinity",
        (_, text) => text,
    };
    Ok(Some(read_text(scalar, text.as_bytes())?.into_owned()))
}

/// Reads bytes: a list of signed numbers, as Java's bytes are, or of unsigned ones, but not of both.
fn read_list(text: &[u8]) -> Result<Option<Value<'_>>, Box<InvalidValue>> {
    if text == b"null" {
        return Ok(None);
    }
    let bad = || invalid(Code::BadText, || "the text is not a JSON list of bytes, or Base64 in quotes".into());
    let bytes = match unquote(text) {
        Some(base64) => BaseEncoding::Base64.read(base64.as_bytes()).map_err(|_| bad())?,
        None => {
            let numbers: Vec<i16> = serde_json::from_slice(text).map_err(|_| bad())?;
            let is_in = |low, high| numbers.iter().all(|number| (low..=high).contains(number));
            if !is_in(0, 255) && !is_in(-128, 127) {
                return Err(bad());
            }
            numbers.into_iter().map(|number| number.to_le_bytes()[0]).collect()
        }
    };
    Ok(Some(Value::Bytes(Cow::Owned(bytes))))
}

/// Returns the text of a JSON string followed by nothing but white space; `None` for anything else.
fn unquote(bytes: &[u8]) -> Option<String> {
    let string = bytes.starts_with(b"\"").then(|| bytes.trim_ascii_end())?;
    serde_json::from_slice(string).ok()
}

#[cfg(test)]
#[path = "../tests/rust/units/json.rs"]
mod tests;
