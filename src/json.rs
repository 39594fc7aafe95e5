//! Values that are JSON, as Spring Kafka writes headers of Java objects: scalars, and strings with or without quotes.
//!
//! ```text
//!   int32:json      42   "42"                     JSON numbers; Jackson also reads them in quotes
//!   float64:json    2.5   "NaN"   "-Infinity"     what JSON cannot spell is in quotes
//!   string:json     "text/plain"   acme           text that is not a JSON string is the value itself
//!   int32:json      null   ""                     null
//! ```

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::encoding::{bad_text, is_number, read_text};
use crate::value::{ByteOrder, InvalidValue, Value, read_bytes};
use crate::value_type::Scalar;

/// Whether a type can be read from JSON.
pub fn has(scalar: Scalar) -> bool {
    scalar != Scalar::Binary
}

/// Reads a value; `None` is a null of JSON.
pub fn read(scalar: Scalar, bytes: &[u8]) -> Result<Option<Value<'_>>, Box<InvalidValue>> {
    if scalar == Scalar::String {
        let text = read_bytes(scalar, ByteOrder::Big, bytes)?;
        // A sender that writes text as it is may begin it with a quote.
        return Ok(Some(match unquoted(bytes) {
            Some(unquoted) => Value::Text(Cow::Owned(unquoted)),
            None => text,
        }));
    }
    let Some(text) = unquoted(bytes.trim_ascii()) else {
        return match bytes.trim_ascii() {
            b"null" => Ok(None),
            // Text does not need its quotes, but a number is one of JSON: not `007`, `.5` or `NaN`.
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

/// The text of a JSON string, after which only white space may follow; `None` for anything else.
fn unquoted(bytes: &[u8]) -> Option<String> {
    let string = bytes.starts_with(b"\"").then(|| bytes.trim_ascii_end())?;
    serde_json::from_slice(string).ok()
}

#[cfg(test)]
#[path = "../tests/rust/units/json.rs"]
mod tests;
