//! Parser, kernels and writer of both layouts of Iggy's headers, generic over the constants of [`HeadersFormat`]. Keys
//! have types if they are [`KeyForm::Typed`].

use std::borrow::Cow;

use crate::cursor::Cursor;
use crate::error::{Code, bad_length};
use crate::header::{Header, Key, KeyForm, TypedKey};
use crate::kernel::layout::WireLayout;
use crate::kernel::typed_layout::Types;
use crate::log::{Log, Result};
use crate::number::fitting;
use crate::options::ReadOptions;
use crate::sink::Sink;
use crate::traits::HeadersFormat;
use crate::value_type::{Scalar, TypeCodes, ValueType};

use super::{describe, describe_typed, parse_to_end, read_text_key, text_of_key, unknown_type};

impl<F: HeadersFormat> Types for F {
    const TYPED_KEYS: bool = matches!(F::KEYS, KeyForm::Typed);
    const CODES: TypeCodes = F::TYPES;
}

#[inline]
pub fn parse<'a, F: HeadersFormat, R: Log, S: Sink<'a>>(
    mut cursor: Cursor<'a>,
    options: ReadOptions,
    log: &mut R,
    sink: &mut S,
) -> Result {
    let types = if options.strict_types { TypeCodes::IggyNamed } else { F::TYPES };
    parse_to_end!(cursor, options, log, sink, |index| read_header::<F, R>(&mut cursor, index, types, log))
}

/// Names of the fields of a key or a value in errors.
struct Names {
    part: &'static str,
    type_code: &'static str,
    len: &'static str,
    /// Prefix of messages about invalid bytes.
    prefix: &'static str,
}

const KEY: Names = Names { part: "key", type_code: "key type", len: "key length", prefix: "key of " };
const VALUE: Names = Names { part: "value", type_code: "value type", len: "value length", prefix: "" };

/// Reads a header; `None` if it is invalid and parsing continues.
#[inline(always)] // Inlined into the loop of each log: passing a header through memory costs more than reading it.
fn read_header<'a, F: HeadersFormat, R: Log>(
    cursor: &mut Cursor<'a>,
    index: usize,
    types: TypeCodes,
    log: &mut R,
) -> Result<Option<Header<'a>>> {
    let key = match F::KEYS {
        KeyForm::Typed => read_part::<F, R>(cursor, types, KEY, log)?
            .map(|(key_type, bytes, _)| Key::Typed(TypedKey::new(key_type, bytes, F::ORDER)))
            .inspect(|key| log.name_header(key)),
        KeyForm::Text | KeyForm::Int => {
            let (len, fits) = read_len::<F, R>(cursor, KEY, log)?;
            read_text_key(cursor, len, None, log)?.filter(|_| fits)
        }
    };
    let value = read_part::<F, R>(cursor, types, VALUE, log)?;
    let (Some(key), Some((value_type, value, start))) = (key, value) else { return Ok(None) };
    Ok(Some(Header { index, key, value_type: Some(value_type), value: Some(value), value_offset: Some(start) }))
}

/// Reads a type, a length and bytes, and returns the type, the bytes and their offset. Reports an error and returns
/// `None` if they are not a value of the type.
#[inline(always)]
fn read_part<'a, F: HeadersFormat, R: Log>(
    cursor: &mut Cursor<'a>,
    types: TypeCodes,
    names: Names,
    log: &mut R,
) -> Result<Option<(ValueType, &'a [u8], usize)>> {
    let type_offset = cursor.offset();
    let code = cursor.take(1, names.type_code, log)?[0];
    let value_type = types.value_type(code);
    log.label(type_offset, type_offset + 1, names.type_code, || {
        value_type.map_or_else(|| code.to_string(), |value_type| value_type.name().into_owned())
    });
    if value_type.is_none() {
        unknown_type(names.type_code, code, type_offset, log)?;
    }
    let (part, prefix) = (names.part, names.prefix);
    let (len, fits) = read_len::<F, R>(cursor, names, log)?;
    let start = cursor.offset();
    let bytes = cursor.take(len, part, log)?;
    log.label(start, cursor.offset(), part, || match value_type {
        Some(value_type) => describe_typed(value_type, bytes, F::ORDER),
        None => describe(bytes),
    });
    let (Some(value_type), true) = (value_type, fits) else { return Ok(None) };
    match F::CONSTRAINTS.checks.check(value_type, bytes) {
        Ok(()) => Ok(Some((value_type, bytes, start))),
        Err(invalid) => log.error(invalid.code, Some(start), || format!("{prefix}{}", invalid.message)).map(|()| None),
    }
}

/// Reads the length of a key or value; also returns whether it is allowed.
#[inline(always)]
fn read_len<F: HeadersFormat, R: Log>(cursor: &mut Cursor<'_>, names: Names, log: &mut R) -> Result<(usize, bool)> {
    let start = cursor.offset();
    let len = cursor.number::<u32, _>(names.len, F::ORDER, log)? as usize;
    let fits = F::CONSTRAINTS.fits(len);
    if !fits {
        let (code, message) = bad_length(names.part, len, F::CONSTRAINTS.part_len.1);
        log.error(code, Some(start), || message)?;
    }
    Ok((len, fits))
}

/// Length of headers when written.
pub fn encoded_len<F: HeadersFormat, R: Log>(headers: &[Header<'_>], log: &mut R) -> Result<usize> {
    let values: usize = headers.iter().map(|header| header.value.map_or(0, <[u8]>::len)).sum();
    let keys: usize = headers.iter().map(|header| header.key.byte_len()).sum();
    let len = headers.len() * F::Layout::MAX_FRAMING + keys + values;
    match F::MAX_WRITTEN.check(len, || values) {
        Ok(()) => Ok(len),
        Err(message) => Err(log.fatal(Code::TooLarge, None, || message)),
    }
}

pub fn write_header<F: HeadersFormat>(header: &Header<'_>, out: &mut Vec<u8>) {
    match F::KEYS {
        KeyForm::Typed => {
            let (key_type, bits) = type_and_bits(&header.key);
            write_part(out, F::TYPES, Some(key_type), &bits);
        }
        KeyForm::Text | KeyForm::Int => {
            let key = text_of_key(header);
            out.extend_from_slice(&fitting::<u32, _>(key.len()).to_le_bytes());
            out.extend_from_slice(key);
        }
    }
    write_part(out, F::TYPES, header.value_type, header.value.unwrap_or_default());
}

/// Type and bytes of a key, which may come from another format.
pub fn type_and_bits<'k>(key: &'k Key<'_>) -> (ValueType, Cow<'k, [u8]>) {
    match key {
        Key::Typed(typed) => (typed.value_type, typed.bits()),
        Key::Text(text) => (ValueType::Named(Scalar::String), Cow::Borrowed(text.as_bytes())),
        Key::Int(number) => (ValueType::Named(Scalar::Int32), Cow::Owned(number.to_be_bytes().to_vec())),
    }
}

/// Writes `u8 type, u32 length, value` from bits in big-endian order.
fn write_part(out: &mut Vec<u8>, types: TypeCodes, value_type: Option<ValueType>, bits: &[u8]) {
    let Some((value_type, code)) = value_type.and_then(|value_type| Some((value_type, types.code(value_type)?))) else {
        unreachable!("a writer passes only values with a type of the format")
    };
    out.push(code);
    out.extend_from_slice(&fitting::<u32, _>(bits.len()).to_le_bytes());
    match value_type.width() {
        Some(_) => out.extend(bits.iter().rev()),
        None => out.extend_from_slice(bits),
    }
}
