//! What a target can carry of a header: computed from what its block says of itself and the header at hand, never from a
//! pair of formats.

use std::borrow::Cow;

use crate::ask::Spelled;
use crate::error::{Code, Loss, longer, no_bytes};
use crate::header::{Header, Key, KeyForm};
use crate::kind::{Kind, Kinds, Scalar};
use crate::mode::{Mode, Result};
use crate::spelling::{Spelling, text_of};
use crate::value::ByteOrder;
use crate::walk::Carries;

/// Why a character is not a string.
pub const HALF_PAIR: &str = "half of a surrogate pair is no character";

/// A loss of a header, which is left out.
pub fn lost(index: usize, key: &Key<'_>, code: Code, message: String) -> Loss {
    Loss { code, message, header: Some(index), key: Some(key.to_string()), kind: None, written: None }
}

/// Whether a key is one that the target can have. Where keys are typed, text is a string and an integer an int32.
#[inline]
pub fn is_key_of(form: KeyForm, kinds: Kinds, key: &Key<'_>) -> bool {
    match (form, key) {
        (KeyForm::Typed, Key::Typed(typed)) => kinds.code(typed.kind).is_some(),
        (KeyForm::Typed, _) | (KeyForm::Text, Key::Text(_)) | (KeyForm::Int, Key::Int(_)) => true,
        _ => false,
    }
}

/// The key in the form of the target; `None` when the header is left out.
pub fn key_for<'a, M: Mode>(
    form: KeyForm,
    from: KeyForm,
    header: &Header<'a>,
    mode: &mut M,
) -> Result<Option<Key<'a>>> {
    let lost = |message: String| lost(header.index, &header.key, Code::KeyNotCarried, message);
    let key = &header.key;
    match (form, key) {
        (KeyForm::Text, Key::Int(number)) => {
            mode.loss(false, || Loss { written: Some("text"), ..lost("the key is int32".into()) })?;
            Ok(Some(Key::from(number.to_string())))
        }
        // Text, too, is what stands for a kind that the target has not.
        (KeyForm::Text | KeyForm::Typed, Key::Typed(typed)) => match text_of(typed.kind, &typed.bits()) {
            Some(text) => {
                if typed.string().is_none() {
                    let of = || format!("the key is {}", typed.kind.name());
                    let written = if form == KeyForm::Text { "text" } else { "string" };
                    mode.loss(false, || Loss { written: Some(written), ..lost(of()) })?;
                }
                Ok(Some(Key::from(text)))
            }
            None => {
                mode.loss(false, || lost(format!("the key is {} and has no text form", typed.kind.name())))?;
                Ok(None)
            }
        },
        (KeyForm::Int, Key::Text(text)) => match decimal(text.as_bytes()) {
            Some(number) => {
                if from == KeyForm::Typed {
                    mode.loss(false, || string_to_int(lost))?;
                }
                Ok(Some(Key::Int(number)))
            }
            None => {
                mode.loss(false, || lost(NO_DECIMAL.into()))?;
                Ok(None)
            }
        },
        (KeyForm::Int, Key::Typed(typed)) => {
            let kind = typed.kind;
            let number = text_of(kind, &typed.bits()).and_then(|text| decimal(text.as_bytes()));
            let plain = kind == Kind::Named(Scalar::Int32);
            match number.filter(|_| typed.string().is_some() || is_integer(kind)) {
                Some(number) => {
                    if !plain {
                        let of = || format!("the key is {}", kind.name());
                        mode.loss(false, || Loss { written: Some("int32"), ..lost(of()) })?;
                    }
                    Ok(Some(Key::Int(number)))
                }
                None => {
                    mode.loss(false, || lost(NO_DECIMAL.into()))?;
                    Ok(None)
                }
            }
        }
        (_, same) => Ok(Some(same.clone())),
    }
}

/// Where keys are typed, text that spells a number is not that number.
fn string_to_int(lost: impl Fn(String) -> Loss) -> Loss {
    Loss { written: Some("int32"), ..lost("the key is string".into()) }
}

const NO_DECIMAL: &str = "the key is no decimal int32";

/// The number that is written just so.
fn decimal(text: &[u8]) -> Option<i32> {
    let number: i32 = std::str::from_utf8(text).ok()?.parse().ok()?;
    (number.to_string().as_bytes() == text).then_some(number)
}

fn is_integer(kind: Kind) -> bool {
    use Scalar::*;
    matches!(kind, Kind::Named(Int8 | Int16 | Int32 | Int64 | Int128 | Uint8 | Uint16 | Uint32 | Uint64 | Uint128))
}

/// Whether the key has a length that the target takes.
#[inline]
pub fn key_fits<M: Mode>(carries: Carries, header: &Header<'_>, mode: &mut M) -> Result<bool> {
    let len = match &header.key {
        Key::Text(text) => text.as_bytes().len(),
        Key::Typed(typed) => typed.byte_len(),
        Key::Int(_) => return Ok(true),
    };
    part_fits(carries, "key", Code::EmptyKey, header, len, mode)
}

/// Whether a value of this length is one that the target takes.
#[inline]
pub fn value_fits<M: Mode>(carries: Carries, header: &Header<'_>, len: usize, mode: &mut M) -> Result<bool> {
    part_fits(carries, "value", Code::EmptyValue, header, len, mode)
}

/// Whether a part of this length is one that the target takes.
#[inline]
pub fn length_fits(carries: Carries, len: usize) -> bool {
    (carries.part_len.0..=carries.part_len.1).contains(&len)
}

#[inline]
fn part_fits<M: Mode>(
    carries: Carries,
    part: &str,
    empty: Code,
    header: &Header<'_>,
    len: usize,
    mode: &mut M,
) -> Result<bool> {
    if length_fits(carries, len) {
        return Ok(true);
    }
    let (_, most) = carries.part_len;
    mode.loss(false, || {
        let (code, message) = match len {
            0 => (empty, no_bytes(part)),
            _ => (Code::TooLong, longer(part, len, most)),
        };
        lost(header.index, &header.key, code, message)
    })?;
    Ok(false)
}

/// A value under the kinds of the target.
pub enum Kinded<'a> {
    /// The target has the kind.
    Same(Cow<'a, [u8]>),
    /// It has not, and this is written; `back` gives the kind again.
    Other { scalar: Scalar, bits: Cow<'a, [u8]>, back: String },
    /// There is nothing to write.
    Nothing,
}

/// The value as a target with kinds can write it. `bits` are big-endian.
pub fn kind_for(kinds: Kinds, kind: Kind, bits: Cow<'_, [u8]>) -> Kinded<'_> {
    if kinds.code(kind).is_some() {
        return Kinded::Same(bits);
    }
    match kind {
        Kind::Named(Scalar::Char) => match text_of(kind, &bits) {
            Some(text) => Kinded::Other {
                scalar: Scalar::String,
                bits: Cow::Owned(text.into_bytes()),
                back: Spelled { kind, spelling: Spelling::Text }.name(),
            },
            None => Kinded::Nothing,
        },
        kind => Kinded::Other {
            scalar: Scalar::Binary,
            bits,
            back: Spelled { kind, spelling: Spelling::Bytes(ByteOrder::Big) }.name(),
        },
    }
}
