//! Adapts headers to a target, independently of the source format: only the header and the constants of the target
//! matter.

use std::borrow::Cow;

use crate::encoding::{Encoding, text_of};
use crate::error::{Code, Loss, bad_length};
use crate::format_info::Constraints;
use crate::header::{Header, Key, KeyForm};
use crate::log::{Log, Result};
use crate::value::ByteOrder;
use crate::value_type::{Scalar, TypeCodes, ValueType};

/// Returns the loss of a dropped header.
pub fn lost(index: usize, key: &Key<'_>, code: Code, message: String) -> Loss {
    Loss { code, message, header: Some(index), key: Some(key.to_string()), value_type: None, written: None }
}

/// Whether the target supports a key. In a format with typed keys, text is a string, and an integer an int32.
#[inline]
pub fn is_key_of(form: KeyForm, types: TypeCodes, key: &Key<'_>) -> bool {
    match (form, key) {
        (KeyForm::Typed, Key::Typed(typed)) => types.code(typed.value_type).is_some(),
        (KeyForm::Typed, _) | (KeyForm::Text, Key::Text(_)) | (KeyForm::Int, Key::Int(_)) => true,
        _ => false,
    }
}

/// Converts a key to the form of the target; `None` if the header is dropped.
pub fn key_for<'a, R: Log>(form: KeyForm, from: KeyForm, header: &Header<'a>, log: &mut R) -> Result<Option<Key<'a>>> {
    const STRING: ValueType = ValueType::Named(Scalar::String);
    const INT32: ValueType = ValueType::Named(Scalar::Int32);
    const NO_DECIMAL: (Option<ValueType>, &str) = (None, "the key is no decimal int32");
    let is = |value_type: ValueType| (Some(value_type), "");
    // Key to write, and the parts of the message about a loss: the type of the key, and the end of the text.
    let (key, loss) = match (form, &header.key) {
        (KeyForm::Text, Key::Int(number)) => (Some(Key::from(number.to_string())), Some(is(INT32))),
        // Text also replaces types that the target lacks.
        (KeyForm::Text | KeyForm::Typed, Key::Typed(typed)) => match text_of(typed.value_type, &typed.bits()) {
            Some(text) => (Some(Key::from(text)), typed.string().is_none().then(|| is(typed.value_type))),
            None => (None, Some((Some(typed.value_type), " and has no text form"))),
        },
        (KeyForm::Int, Key::Text(text)) => match decimal(text.as_bytes()) {
            // In a format with typed keys, the text "7" and the number 7 are different keys.
            Some(number) => (Some(Key::Int(number)), (from == KeyForm::Typed).then(|| is(STRING))),
            None => (None, Some(NO_DECIMAL)),
        },
        (KeyForm::Int, Key::Typed(typed)) => {
            let is_text_or_integer = typed.string().is_some() || is_integer(typed.value_type);
            let text = text_of(typed.value_type, &typed.bits()).filter(|_| is_text_or_integer);
            match text.and_then(|text| decimal(text.as_bytes())) {
                Some(number) => (Some(Key::Int(number)), (typed.value_type != INT32).then(|| is(typed.value_type))),
                None => (None, Some(NO_DECIMAL)),
            }
        }
        (_, same) => (Some(same.clone()), None),
    };
    if let Some((value_type, rest)) = loss {
        let written = key.as_ref().map(|_| match form {
            KeyForm::Text => "text",
            KeyForm::Typed => "string",
            KeyForm::Int => "int32",
        });
        log.loss(false, || {
            let message =
                value_type.map_or_else(|| rest.into(), |value_type| format!("the key is {}{rest}", value_type.name()));
            Loss { written, ..lost(header.index, &header.key, Code::KeyNotCarried, message) }
        })?;
    }
    Ok(key)
}

/// Parses an integer that is in canonical form.
fn decimal(text: &[u8]) -> Option<i32> {
    let number: i32 = std::str::from_utf8(text).ok()?.parse().ok()?;
    (number.to_string().as_bytes() == text).then_some(number)
}

fn is_integer(value_type: ValueType) -> bool {
    use Scalar::*;
    matches!(
        value_type,
        ValueType::Named(Int8 | Int16 | Int32 | Int64 | Int128 | Uint8 | Uint16 | Uint32 | Uint64 | Uint128)
    )
}

/// Whether the target accepts the length of a key or value (`part`).
#[inline]
pub fn part_fits<R: Log>(
    constraints: Constraints,
    part: &str,
    header: &Header<'_>,
    len: usize,
    log: &mut R,
) -> Result<bool> {
    if constraints.fits(len) {
        return Ok(true);
    }
    log.loss(false, || {
        let (code, message) = bad_length(part, len, constraints.part_len.1);
        lost(header.index, &header.key, code, message)
    })?;
    Ok(false)
}

/// Substitute type, its bytes, and their encoding, for a target that lacks the type of a value. `bits` are big-endian;
/// `None` if they cannot be written.
pub fn substitute(value_type: ValueType, bits: Cow<'_, [u8]>) -> Option<(Scalar, Cow<'_, [u8]>, Encoding)> {
    match value_type {
        ValueType::Named(Scalar::Char) => {
            text_of(value_type, &bits).map(|text| (Scalar::String, Cow::Owned(text.into_bytes()), Encoding::Text))
        }
        _ => Some((Scalar::Binary, bits, Encoding::Bytes(ByteOrder::Big))),
    }
}
