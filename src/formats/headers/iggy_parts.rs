//! What both layouts of Iggy's headers have in common: lengths of four bytes, kinds of one, and keys and values of at most
//! 255 bytes.

use crate::cursor::Cursor;
use crate::error::bad_length;
use crate::kind::{Kind, Kinds};
use crate::mode::{Mode, Result};
use crate::value::ByteOrder;

use super::{describe, describe_typed, unknown_type};

/// The fewest and the most bytes of a key and of a value in Iggy.
pub const LEAST_PART: usize = 1;
pub const MOST_PART: usize = 255;

/// A kind byte of Iggy; `None` and a noted fault when it is not one.
#[inline(always)]
pub fn read_kind<M: Mode>(
    cursor: &mut Cursor<'_>,
    kinds: Kinds,
    field: &'static str,
    mode: &mut M,
) -> Result<Option<Kind>> {
    let at = cursor.at();
    let code = cursor.take(1, field, mode)?[0];
    let kind = kinds.kind(code);
    mode.label(at, at + 1, field, || kind.map_or_else(|| code.to_string(), |kind| kind.name().into_owned()));
    if kind.is_none() {
        unknown_type(field, code, at, mode)?;
    }
    Ok(kind)
}

/// A length of Iggy, and whether it is one that a key or value may have.
#[inline(always)]
pub fn read_len<M: Mode>(
    cursor: &mut Cursor<'_>,
    part: &'static str,
    field: &'static str,
    mode: &mut M,
) -> Result<(usize, bool)> {
    let at = cursor.at();
    let len = cursor.number::<u32, _>(field, ByteOrder::Little, mode)? as usize;
    let fits = (LEAST_PART..=MOST_PART).contains(&len);
    if !fits {
        let (code, message) = bad_length(part, len, MOST_PART);
        mode.soft(code, Some(at), || message)?;
    }
    Ok((len, fits))
}

/// A value of Iggy and where it begins; `None` when its length is none that a value may have.
#[inline(always)]
pub fn read_value<'a, M: Mode>(
    cursor: &mut Cursor<'a>,
    kind: Option<Kind>,
    mode: &mut M,
) -> Result<Option<(&'a [u8], usize)>> {
    let (len, fits) = read_len(cursor, "value", "value length", mode)?;
    let at = cursor.at();
    let value = cursor.take(len, "value", mode)?;
    mode.label(at, cursor.at(), "value", || match kind {
        Some(kind) => describe_typed(kind, value, ByteOrder::Little),
        None => describe(value),
    });
    Ok(fits.then_some((value, at)))
}

/// Writes `u8 type, u32 length, value` of Iggy from bits, most significant byte first.
pub fn write_bits(out: &mut Vec<u8>, kinds: Kinds, kind: Option<Kind>, bits: &[u8]) {
    let Some((kind, code)) = kind.and_then(|kind| Some((kind, kinds.code(kind)?))) else {
        unreachable!("the gate hands over values with a type of this block's")
    };
    out.push(code);
    out.extend_from_slice(&(bits.len() as u32).to_le_bytes());
    match kind.width() {
        Some(_) => out.extend(bits.iter().rev()),
        None => out.extend_from_slice(bits),
    }
}
