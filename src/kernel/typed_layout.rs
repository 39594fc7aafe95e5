//! The layouts of `iggy` and `iggy-2023`, and the layout of `kip82-typed`, which kernels only write.
//!
//! ```text
//!   Typed    ┌──────┬────────┬─────┬──────┬────────┬───────┐   lengths of four bytes, little-endian, 1–255;
//!            │ type │ length │ key │ type │ length │ value │   the first type only where keys have types
//!            └──────┴────────┴─────┴──────┴────────┴───────┘
//!   Kip82    ┌────────┬─────┬────────┬──────┬───────┐   lengths of four bytes, big-endian; the second counts the type,
//!            │ length │ key │ length │ type │ value │   and is 0 for null
//!            └────────┴─────┴────────┴──────┴───────┘
//! ```

use super::layout::{Begin, HeaderVisitor, LayoutName, RawHeader, Rules, TEXT, WireLayout, pass_long};
use super::{copy_long, write_reversed};
use crate::number::length;
use crate::value::Checks;
use crate::value_type::{Scalar, TypeCodes, ValueType};

/// A layout with types.
pub trait Types: 'static {
    const TYPED_KEYS: bool;
    const CODES: TypeCodes;
}

/// Headers of `iggy` and `iggy-2023`.
pub struct TypedLayout<T>(std::marker::PhantomData<T>);

/// Minimum and maximum length of a key, and of a value.
pub const PART_LEN: (usize, usize) = (1, 255);

/// Length of a type and a length.
const HEAD: usize = 5;

#[inline(always)]
fn fits(len: usize) -> bool {
    (PART_LEN.0..=PART_LEN.1).contains(&len)
}

impl<T: Types> TypedLayout<T> {
    /// Reads the length of a key or of a value.
    ///
    /// # Safety
    ///
    /// Four bytes are readable.
    #[inline(always)]
    unsafe fn len(start: *const u8) -> Option<usize> {
        // SAFETY: the caller's contract.
        let len = u32::from_le_bytes(unsafe { start.cast::<[u8; 4]>().read() }) as usize;
        fits(len).then_some(len)
    }

    /// Reads a regular header, whose value may end after the row.
    ///
    /// # Safety
    ///
    /// As for [`WireLayout::header`].
    #[inline(always)]
    unsafe fn regular(start: *const u8) -> Option<RawHeader> {
        // SAFETY: `start` is in the row or at its end, and at most `SLACK` bytes after it are read: two heads of five
        // bytes and a key of at most 255.
        let header = unsafe {
            let (key_type, key_head) = match T::TYPED_KEYS {
                true => (Some(T::CODES.value_type(*start)?), start.add(1)),
                false => (None, start),
            };
            let key_len = Self::len(key_head)?;
            let key = key_head.add(4);
            let value_head = key.add(key_len);
            let value_type = Some(T::CODES.value_type(*value_head)?);
            let value_len = Self::len(value_head.add(1))?;
            RawHeader { key, key_len, key_type, value: value_head.add(HEAD), value_len, is_null: false, value_type }
        };
        // The slow path handles values whose size differs from that of their type, where this is allowed.
        let has_size = |value_type: Option<ValueType>, len: usize| {
            value_type.and_then(ValueType::width).is_none_or(|width| width == len)
        };
        let is_regular = has_size(header.value_type, header.value_len) && has_size(header.key_type, header.key_len);
        is_regular.then_some(header)
    }
}

// SAFETY: `header` compares the end of the value with the end of the row before it passes a header on, and passes
// none as short. A header has two lengths of at most 255 and the bytes between them.
unsafe impl<T: Types> WireLayout for TypedLayout<T> {
    const NAME: LayoutName = if T::TYPED_KEYS { LayoutName::Iggy } else { LayoutName::Iggy2023 };
    const TYPED: bool = true;
    const TYPED_KEYS: bool = T::TYPED_KEYS;
    const MIN_LEN: usize = Self::MAX_FRAMING + 2 * PART_LEN.0;
    const MAX_FRAMING: usize = if T::TYPED_KEYS { 2 * HEAD } else { 2 * HEAD - 1 };

    #[inline(always)]
    unsafe fn begin(_start: *const u8, _len: usize) -> Option<Begin> {
        Some(Begin { offset: 0, count: None })
    }

    #[inline(always)]
    unsafe fn header<K: HeaderVisitor>(start: *const u8, end: *const u8, visitor: &mut K) -> Option<*const u8> {
        // SAFETY: the caller's contract.
        unsafe { pass_long(start, Self::regular(start)?, end, visitor) }
    }

    #[inline(always)]
    unsafe fn write(to: *mut u8, header: &RawHeader, rules: Rules) -> Option<usize> {
        if header.is_null || !fits(header.key_len) || !fits(header.value_len) {
            // Other errors of typed keys and values are left to the slow path.
            let has_types = header.key_type.is_some() || header.value_type.is_some();
            return (rules.drops && !has_types).then_some(0);
        }
        // SAFETY: the caller's contract.
        unsafe {
            let key_len = match T::TYPED_KEYS {
                true => Self::write_part(to, header.key_type.unwrap_or(TEXT), header.key, header.key_len)?,
                false => {
                    to.cast::<[u8; 4]>().write(length(header.key_len).to_le_bytes());
                    copy_long(header.key, to.add(4), header.key_len);
                    4 + header.key_len
                }
            };
            let value_type = header.value_type.or(rules.default_type)?;
            Some(key_len + Self::write_part(to.add(key_len), value_type, header.value, header.value_len)?)
        }
    }
}

impl<T: Types> TypedLayout<T> {
    /// Writes a type, a length, and a key or value. Numbers are big-endian in a list and little-endian here.
    ///
    /// # Safety
    ///
    /// As for [`WireLayout::write`].
    #[inline(always)]
    unsafe fn write_part(to: *mut u8, value_type: ValueType, from: *const u8, len: usize) -> Option<usize> {
        let code = T::CODES.code(value_type)?;
        let width = value_type.width();
        if width.is_some_and(|width| width != len) {
            return None;
        }
        // SAFETY: the caller's contract; a number has between 1 and 16 bytes.
        unsafe {
            to.write(code);
            to.add(1).cast::<[u8; 4]>().write(length(len).to_le_bytes());
            if width.is_some() {
                write_reversed(from, to.add(HEAD), len);
            } else {
                copy_long(from, to.add(HEAD), len);
            }
        }
        Some(HEAD + len)
    }
}

/// The headers of `kip82-typed`, which the slow path reads: `int32 key_len, key, int32 value_len, type, value`,
/// big-endian.
pub struct Kip82Layout;

// SAFETY: this layout finds no headers; a written header has the length of its framing, key and value.
unsafe impl WireLayout for Kip82Layout {
    const NAME: LayoutName = LayoutName::Kip82;
    const TYPED: bool = true;
    const MAX_FRAMING: usize = 9;

    #[inline(always)]
    unsafe fn write(to: *mut u8, header: &RawHeader, rules: Rules) -> Option<usize> {
        let RawHeader { key_len, value_len, .. } = *header;
        // SAFETY: the caller's contract: the key, the value, nine bytes and `COPY` more are writable; the value is
        // readable.
        unsafe {
            to.cast::<[u8; 4]>().write(length(key_len).to_be_bytes());
            copy_long(header.key, to.add(4), key_len);
            let value_head = to.add(4 + key_len);
            if header.is_null {
                value_head.cast::<[u8; 4]>().write([0; 4]);
                return Some(8 + key_len);
            }
            let value_type = header.value_type.or(rules.default_type)?;
            let code = TypeCodes::Kip82.code(value_type)?;
            let is_checked = value_type == ValueType::Named(Scalar::Binary)
                || Checks::Value.check(value_type, std::slice::from_raw_parts(header.value, value_len)).is_ok();
            if !is_checked {
                return None;
            }
            value_head.cast::<[u8; 4]>().write(length(1 + value_len).to_be_bytes());
            value_head.add(4).write(code);
            copy_long(header.value, value_head.add(5), value_len);
        }
        Some(9 + key_len + value_len)
    }
}
