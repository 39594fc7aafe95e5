//! Reads AMQP 1.0 primitives, which Azure Event Hubs and IoT Hub write as values of headers.
//!
//! ```text
//!   ┌──────┬───────────────────────┐   ┌──────┬──────────────┬─────────┐   ┌──────┐
//!   │ code │ 1, 2, 4, 8, 16 bytes  │   │ code │ length, 1, 4 │ content │   │ code │
//!   └──────┴───────────────────────┘   └──────┴──────────────┴─────────┘   └──────┘
//!     long, uuid, timestamp, …            string, symbol, binary              true, uint 0, null, …
//! ```
//!
//! The code specifies the type and its encoding; numbers are big-endian. A `long` of 7 is `55 07` or `81 00 00 00 00 00
//! 00 00 07`. Described types, lists, maps, arrays and decimals are rejected by name.
//!
//! Source: OASIS, AMQP Version 1.0, Part 1: Types, section 1.6.

use std::borrow::Cow;

use crate::error::{Code, format_count};
use crate::value::{ByteOrder, InvalidValue, Value, invalid, read_bytes};
use crate::value_type::Scalar;

/// Layout of the bytes after a code.
#[derive(Clone, Copy)]
enum Body {
    /// A fixed number of bytes; 0 if the code is the value.
    Fixed(usize),
    /// A length of this many bytes, and the content.
    Sized(usize),
}

/// Encoding of a primitive: AMQP's type name, and letterhead's type, which is `None` for null.
#[derive(Clone, Copy)]
struct Constructor {
    name: &'static str,
    scalar: Option<Scalar>,
    body: Body,
}

macro_rules! constructors {
    ($($code:literal $name:literal $scalar:expr, $body:expr;)*) => {
        const fn constructor(code: u8) -> Option<Constructor> {
            match code {
                $($code => Some(Constructor { name: $name, scalar: $scalar, body: $body }),)*
                _ => None,
            }
        }
    };
}

use Body::{Fixed, Sized};

constructors! {
    // code name       ours                       body
    0x40 "null"        None,                      Fixed(0);
    0x56 "boolean"     Some(Scalar::Bool),        Fixed(1);
    0x41 "boolean"     Some(Scalar::Bool),        Fixed(0);
    0x42 "boolean"     Some(Scalar::Bool),        Fixed(0);
    0x50 "ubyte"       Some(Scalar::Uint8),       Fixed(1);
    0x60 "ushort"      Some(Scalar::Uint16),      Fixed(2);
    0x70 "uint"        Some(Scalar::Uint32),      Fixed(4);
    0x52 "uint"        Some(Scalar::Uint32),      Fixed(1);
    0x43 "uint"        Some(Scalar::Uint32),      Fixed(0);
    0x80 "ulong"       Some(Scalar::Uint64),      Fixed(8);
    0x53 "ulong"       Some(Scalar::Uint64),      Fixed(1);
    0x44 "ulong"       Some(Scalar::Uint64),      Fixed(0);
    0x51 "byte"        Some(Scalar::Int8),        Fixed(1);
    0x61 "short"       Some(Scalar::Int16),       Fixed(2);
    0x71 "int"         Some(Scalar::Int32),       Fixed(4);
    0x54 "int"         Some(Scalar::Int32),       Fixed(1);
    0x81 "long"        Some(Scalar::Int64),       Fixed(8);
    0x55 "long"        Some(Scalar::Int64),       Fixed(1);
    0x72 "float"       Some(Scalar::Float32),     Fixed(4);
    0x82 "double"      Some(Scalar::Float64),     Fixed(8);
    0x73 "char"        Some(Scalar::Char),        Fixed(4);
    0x83 "timestamp"   Some(Scalar::TimestampMs), Fixed(8);
    0x98 "uuid"        Some(Scalar::Uuid),        Fixed(16);
    0xa0 "binary"      Some(Scalar::Binary),      Sized(1);
    0xb0 "binary"      Some(Scalar::Binary),      Sized(4);
    0xa1 "string"      Some(Scalar::String),      Sized(1);
    0xb1 "string"      Some(Scalar::String),      Sized(4);
    0xa3 "symbol"      Some(Scalar::String),      Sized(1);
    0xb3 "symbol"      Some(Scalar::String),      Sized(4);
}

static CONSTRUCTORS: [Option<Constructor>; 256] = {
    let mut table = [None; 256];
    // No primitive has the code 0.
    let mut code = u8::MAX;
    while code > 0 {
        table[code as usize] = constructor(code);
        code -= 1;
    }
    table
};

/// Names of AMQP types that are not single values.
fn unsupported_type(code: u8) -> Option<&'static str> {
    Some(match code {
        0x00 => "a described type",
        0x74 => "a decimal32",
        0x84 => "a decimal64",
        0x94 => "a decimal128",
        0x45 | 0xc0 | 0xd0 => "a list",
        0xc1 | 0xd1 => "a map",
        0xe0 | 0xf0 => "an array",
        _ => return None,
    })
}

/// Whether AMQP has a primitive that this type can read.
pub fn has(scalar: Scalar) -> bool {
    CONSTRUCTORS.iter().flatten().any(|constructor| constructor.scalar == Some(scalar))
}

/// A primitive whose code and length are valid.
enum Opened<'a> {
    Null,
    /// The code, the number of bytes before the content, and the content.
    Value(u8, usize, &'a [u8]),
}

/// Parses the code and the length of a primitive of the expected type; `None` for another type or a wrong length.
#[inline]
fn open(scalar: Scalar, bytes: &[u8]) -> Option<Opened<'_>> {
    let (&code, rest) = bytes.split_first()?;
    let constructor = CONSTRUCTORS[usize::from(code)].as_ref()?;
    if constructor.scalar.is_some_and(|declared| declared != scalar) {
        return None;
    }
    let (head, content) = match constructor.body {
        Fixed(width) => (1, (rest.len() == width).then_some(rest)?),
        Sized(1) => (2, rest.split_first().and_then(|(len, rest)| (rest.len() == usize::from(*len)).then_some(rest))?),
        Sized(_) => (5, long_content(rest)?),
    };
    Some(if constructor.scalar.is_none() { Opened::Null } else { Opened::Value(code, head, content) })
}

#[inline]
fn long_content(rest: &[u8]) -> Option<&[u8]> {
    let (len, content) = rest.split_first_chunk()?;
    (content.len() as u64 == u64::from(u32::from_be_bytes(*len))).then_some(content)
}

/// Reads a primitive of the expected type; `None` is AMQP's null.
pub fn read<'a>(scalar: Scalar, bytes: &'a [u8]) -> Result<Option<Value<'a>>, Box<InvalidValue>> {
    match open(scalar, bytes) {
        Some(Opened::Value(code, head, content)) => {
            value(scalar, code, content).map(Some).map_err(|invalid| invalid.shift(head))
        }
        Some(Opened::Null) => Ok(None),
        None => Err(open_error(scalar, bytes)),
    }
}

/// Reason why a primitive was not opened.
#[cold]
fn open_error(scalar: Scalar, bytes: &[u8]) -> Box<InvalidValue> {
    let Some((&code, rest)) = bytes.split_first() else {
        return invalid(Code::Truncated, || "no bytes where AMQP has at least the code of a type".into());
    };
    let Some(constructor) = &CONSTRUCTORS[usize::from(code)] else {
        return invalid(Code::UnknownType, || match unsupported_type(code) {
            Some(name) => format!("the value is {name}, which is no single value"),
            None => format!("the value is of code {code:#04x}, which AMQP does not have"),
        });
    };
    if constructor.scalar.is_some_and(|declared| declared != scalar) {
        return invalid(Code::WrongType, || {
            format!("the value is {} and {} was requested", constructor.name, scalar.name())
        });
    }
    wrong_end(constructor, rest)
}

fn value<'a>(scalar: Scalar, code: u8, content: &'a [u8]) -> Result<Value<'a>, Box<InvalidValue>> {
    match (scalar, content) {
        (Scalar::Bool, []) => Ok(Value::Bool(code == TRUE)),
        (Scalar::Char, _) => character(content)
            .map(|character| Value::Text(Cow::Owned(character.to_string())))
            .ok_or_else(|| invalid(Code::OutOfRange, || "the number is no character of Unicode".into())),
        (Scalar::Int32 | Scalar::Int64, [_]) => Ok(Value::Int(signed(content))),
        (Scalar::Uint32, [] | [_]) => Ok(Value::Int(unsigned(content) as i64)),
        (Scalar::Uint64, [] | [_]) => Ok(Value::Wide(unsigned(content).into())),
        _ => read_bytes(scalar, ByteOrder::Big, content),
    }
}

/// Code of the boolean `true`, which has no content.
const TRUE: u8 = 0x41;

/// Reads an unsigned number of at most the width of its type. An empty encoding is 0.
#[inline]
fn unsigned(content: &[u8]) -> u64 {
    match *content {
        [a] => a.into(),
        [a, b] => u16::from_be_bytes([a, b]).into(),
        [a, b, c, d] => u32::from_be_bytes([a, b, c, d]).into(),
        [a, b, c, d, e, f, g, h] => u64::from_be_bytes([a, b, c, d, e, f, g, h]),
        _ => 0,
    }
}

/// Reads a signed number; otherwise like [`unsigned`].
#[inline]
fn signed(content: &[u8]) -> i64 {
    match *content {
        [a] => (a as i8).into(),
        [a, b] => i16::from_be_bytes([a, b]).into(),
        [a, b, c, d] => i32::from_be_bytes([a, b, c, d]).into(),
        [a, b, c, d, e, f, g, h] => i64::from_be_bytes([a, b, c, d, e, f, g, h]),
        _ => 0,
    }
}

/// Reads a character: a code point in AMQP, but a UTF-16 unit in other formats.
#[inline]
fn character(content: &[u8]) -> Option<char> {
    char::from_u32(u32::from_be_bytes(content.try_into().ok()?))
}

fn wrong_end(constructor: &Constructor, rest: &[u8]) -> Box<InvalidValue> {
    let truncated = |message: String| invalid(Code::Truncated, || message).shift(1);
    let end = match constructor.body {
        Fixed(width) => width,
        Sized(width) => {
            let Some(len) = rest.get(..width) else { return truncated("the bytes end inside the length".into()) };
            let len = len.iter().fold(0, |len, byte| len << 8 | usize::from(*byte));
            let available = rest.len() - width;
            if len > available {
                return truncated(format!("{} announced and {available} there", format_count(len, "byte")));
            }
            width + len
        }
    };
    match rest.len().checked_sub(end) {
        None => truncated(format!("the bytes end inside the {}", constructor.name)),
        Some(more) => {
            let message = || format!("{} after the {}", format_count(more, "byte"), constructor.name);
            invalid(Code::TrailingBytes, message).shift(1 + end)
        }
    }
}
