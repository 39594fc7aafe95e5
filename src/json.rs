//! Values that are JSON, as Spring Kafka writes headers of Java objects: scalars, and strings with or without quotes.
//!
//! ```text
//!   int32:json      42   "42"                     JSON numbers; Jackson also reads them in quotes
//!   float64:json    2.5   "NaN"   "-Infinity"     what JSON cannot spell is in quotes
//!   string:json     "text/plain"   acme           text that is not a JSON string is the value itself
//!   int32:json      null   ""                     null
//! ```

use std::borrow::Cow;

use crate::encoding::read_text;
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
            plain => read_text(scalar, plain).map(Some),
        };
    };
    let text = if scalar == Scalar::Char { text.as_str() } else { text.trim_ascii() };
    let text = match (scalar, text) {
        (_, "" | "null") => return Ok(None),
        (Scalar::Bool, "TRUE" | "True") => "true",
        (Scalar::Bool, "FALSE" | "False") => "false",
        (Scalar::Float32 | Scalar::Float64, "INF") => "Infinity",
        (Scalar::Float32 | Scalar::Float64, "-INF") => "-Infinity",
        (_, text) => text,
    };
    Ok(Some(match read_text(scalar, text.as_bytes())? {
        Value::Text(text) => Value::Text(Cow::Owned(text.into_owned())),
        Value::Bool(flag) => Value::Bool(flag),
        Value::Int(number) => Value::Int(number),
        Value::Wide(number) => Value::Wide(number),
        Value::Float32(number) => Value::Float32(number),
        Value::Float64(number) => Value::Float64(number),
        Value::Bytes(_) => unreachable!("`Type::parse` rejects JSON of binary"),
    }))
}

/// The text of a JSON string, after which only white space may follow; `None` for anything else.
fn unquoted(bytes: &[u8]) -> Option<String> {
    let inside = std::str::from_utf8(bytes).ok()?.trim_ascii_end().strip_prefix('"')?.strip_suffix('"')?;
    let mut text = String::with_capacity(inside.len());
    let mut rest = inside.chars();
    while let Some(next) = rest.next() {
        text.push(match next {
            '\\' => escaped(&mut rest)?,
            '"' | '\0'..='\x1f' => return None,
            plain => plain,
        });
    }
    Some(text)
}

/// The character of an escape whose backslash was read.
fn escaped(rest: &mut std::str::Chars<'_>) -> Option<char> {
    Some(match rest.next()? {
        mark @ ('"' | '\\' | '/') => mark,
        'b' => '\x08',
        'f' => '\x0c',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'u' => match unit(rest)? {
            high @ 0xd800..=0xdbff => {
                let low = (rest.next()? == '\\' && rest.next()? == 'u').then(|| unit(rest)).flatten()?;
                char::decode_utf16([high, low]).next()?.ok()?
            }
            unit => char::from_u32(unit.into())?,
        },
        _ => return None,
    })
}

/// Four hexadecimal digits.
fn unit(rest: &mut std::str::Chars<'_>) -> Option<u16> {
    let mut unit = 0;
    for _ in 0..4 {
        unit = unit << 4 | rest.next()?.to_digit(16)? as u16;
    }
    Some(unit)
}

#[cfg(test)]
#[path = "../tests/rust/units/json.rs"]
mod tests;
