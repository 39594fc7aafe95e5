//! Parsing shared by both layouts of Iggy's headers: lengths of four bytes, types of one, and keys and values of at
//! most 255 bytes.

use crate::cursor::Cursor;
use crate::error::bad_length;
use crate::log::{Log, Result};
use crate::value::ByteOrder;
use crate::value_type::{TypeCodes, ValueType};

use super::{describe, describe_typed, unknown_type};

/// The fewest and the most bytes of a key and of a value in Iggy.
pub const MIN_PART: usize = 1;
pub const MAX_PART: usize = 255;

/// A type byte of Iggy; `None` and a reported error if it is unknown.
#[inline(always)]
pub fn read_type<R: Log>(
    cursor: &mut Cursor<'_>,
    types: TypeCodes,
    field: &'static str,
    log: &mut R,
) -> Result<Option<ValueType>> {
    let at = cursor.at();
    let code = cursor.take(1, field, log)?[0];
    let value_type = types.value_type(code);
    log.label(at, at + 1, field, || {
        value_type.map_or_else(|| code.to_string(), |value_type| value_type.name().into_owned())
    });
    if value_type.is_none() {
        unknown_type(field, code, at, log)?;
    }
    Ok(value_type)
}

/// A length of Iggy, and whether it is one that a key or value may have.
#[inline(always)]
pub fn read_len<R: Log>(
    cursor: &mut Cursor<'_>,
    part: &'static str,
    field: &'static str,
    log: &mut R,
) -> Result<(usize, bool)> {
    let at = cursor.at();
    let len = cursor.number::<u32, _>(field, ByteOrder::Little, log)? as usize;
    let fits = (MIN_PART..=MAX_PART).contains(&len);
    if !fits {
        let (code, message) = bad_length(part, len, MAX_PART);
        log.error(code, Some(at), || message)?;
    }
    Ok((len, fits))
}

/// A value of Iggy and where it begins; `None` when its length is none that a value may have.
#[inline(always)]
pub fn read_value<'a, R: Log>(
    cursor: &mut Cursor<'a>,
    value_type: Option<ValueType>,
    log: &mut R,
) -> Result<Option<(&'a [u8], usize)>> {
    let (len, fits) = read_len(cursor, "value", "value length", log)?;
    let at = cursor.at();
    let value = cursor.take(len, "value", log)?;
    log.label(at, cursor.at(), "value", || match value_type {
        Some(value_type) => describe_typed(value_type, value, ByteOrder::Little),
        None => describe(value),
    });
    Ok(fits.then_some((value, at)))
}

/// Writes `u8 type, u32 length, value` of Iggy from bits, most significant byte first.
pub fn write_bits(out: &mut Vec<u8>, types: TypeCodes, value_type: Option<ValueType>, bits: &[u8]) {
    let Some((value_type, code)) = value_type.and_then(|value_type| Some((value_type, types.code(value_type)?))) else {
        unreachable!("a writer passes only values with a type of the format")
    };
    out.push(code);
    out.extend_from_slice(&(bits.len() as u32).to_le_bytes());
    match value_type.width() {
        Some(_) => out.extend(bits.iter().rev()),
        None => out.extend_from_slice(bits),
    }
}
