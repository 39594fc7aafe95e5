//! The layout of `kafka`.
//!
//! ```text
//!   ┌───────┬────────┬─────┬────────┬───────┬┄   zig-zag varints; a value length of -1 is null
//!   │ count │ length │ key │ length │ value │
//!   └───────┴────────┴─────┴────────┴───────┴┄
//! ```

use super::layout::{Begin, HeaderOffsets, HeaderVisitor, LayoutName, RawHeader, Rules, TEXT, WireLayout, pass_long};
use super::{COPY, copy, copy_long, has_high_bit, write_reversed};
use crate::number;
use crate::number::byte;
use crate::value::ByteOrder;
use crate::value_type::{Scalar, ValueType};
use crate::varint::{self, ParsedVarint};

/// Headers of `kafka`.
pub struct VarintLayout;

/// Bits that are clear in a non-negative length of one byte.
const LONG_OR_NEGATIVE: u8 = 0x81;

/// Largest count of headers that takes one byte.
pub const MAX_IN_BYTE: usize = 63;

/// Byte of the length -1.
const NULL: u8 = 0x01;

/// Reads a length of two bytes; `None` if it is negative or has another number of bytes.
///
/// # Safety
///
/// Two bytes are readable at `start`.
#[inline(always)]
unsafe fn two_byte_length(start: *const u8) -> Option<usize> {
    // SAFETY: the caller's contract.
    let bits = usize::from(u16::from_le_bytes(unsafe { start.cast::<[u8; 2]>().read() }));
    (bits & 0x8081 == 0x0080).then_some((bits & 0x7f | bits >> 8 << 7) >> 1)
}

// SAFETY: `header` compares the end of the value with the end of the row before it passes the header on, and the key
// ends where the length of the value begins; lengths of one byte are at most 63. `irregular` takes key and value from
// the row's slice.
unsafe impl WireLayout for VarintLayout {
    const NAME: LayoutName = LayoutName::Varint;
    const MIN_LEN: usize = 2;
    const MAX_COUNT: usize = varint::MAX_LEN;
    const MAX_FRAMING: usize = 2 * varint::MAX_LEN;

    #[inline(always)]
    unsafe fn begin(start: *const u8, len: usize) -> Option<Begin> {
        if len == 0 {
            return Some(Begin { offset: 0, count: Some(0) });
        }
        // SAFETY: the row and the bytes after it are readable. A count that extends beyond the row is detected at the
        // end of the headers.
        unsafe {
            let first = *start;
            match first & LONG_OR_NEGATIVE {
                0 => Some(Begin { offset: 1, count: Some(usize::from(first >> 1)) }),
                _ => two_byte_length(start).filter(|_| len >= 2).map(|count| Begin { offset: 2, count: Some(count) }),
            }
        }
    }

    #[inline(always)]
    unsafe fn header<T: HeaderVisitor>(start: *const u8, end: *const u8, visitor: &mut T) -> Option<*const u8> {
        // SAFETY: `start` is in the row or at its end. A key of at most 63 bytes ends, with the length after it, at
        // most 66 bytes further on, and a value of at most 63 bytes another 63, which is inside `SLACK`. A longer key
        // is compared with the end of the row before the length after it is read.
        unsafe {
            let first = *start;
            if first & LONG_OR_NEGATIVE == 0 {
                let (key, key_len) = (start.add(1), usize::from(first >> 1));
                let value_head = key.add(key_len);
                let second = *value_head;
                let value = value_head.add(1);
                if second & LONG_OR_NEGATIVE == 0 {
                    let value_len = usize::from(second >> 1);
                    let next = value.add(value_len);
                    let is_passed = next <= end && visitor.short(key, key_len, value, value_len, false);
                    return if is_passed { Some(next) } else { None };
                }
                if second == NULL {
                    let is_passed = value <= end && visitor.short(key, key_len, value, 0, true);
                    return if is_passed { Some(value) } else { None };
                }
                let value_len = two_byte_length(value_head)?;
                return pass_long(
                    start,
                    RawHeader::untyped(key, key_len, value_head.add(2), value_len, false),
                    end,
                    visitor,
                );
            }
            let key_len = two_byte_length(start)?;
            if 2 + key_len >= end.addr() - start.addr() {
                return None;
            }
            let key = start.add(2);
            let value_head = key.add(key_len);
            let second = *value_head;
            let (value, value_len, is_null) = match second {
                NULL => (value_head.add(1), 0, true),
                byte if byte & LONG_OR_NEGATIVE == 0 => (value_head.add(1), usize::from(byte >> 1), false),
                _ => (value_head.add(2), two_byte_length(value_head)?, false),
            };
            pass_long(start, RawHeader::untyped(key, key_len, value, value_len, is_null), end, visitor)
        }
    }

    fn irregular(rest: &[u8]) -> Option<HeaderOffsets> {
        let (key, key_len) = length(rest, 0)?;
        let key_len = key_len?;
        let (value, value_len) = length(rest, key + key_len)?;
        Some(HeaderOffsets { key, key_len, value, value_len: value_len.unwrap_or(0), is_null: value_len.is_none() })
    }

    #[inline(always)]
    unsafe fn write_count(to: *mut u8, headers: usize) -> usize {
        // SAFETY: the caller's contract.
        if headers == 0 { 0 } else { unsafe { write_length(to, headers) } }
    }

    #[inline(always)]
    unsafe fn write(to: *mut u8, header: &RawHeader, rules: Rules) -> Option<usize> {
        let (key_len, value_len) = (header.key_len, header.value_len);
        // SAFETY: the caller's contract: the key, the value, two lengths and `COPY` bytes are writable.
        unsafe {
            if let Some(value_type) = header.value_type {
                return write_untyped(to, header, value_type, rules.untyped?);
            }
            if (key_len | value_len) < 64 {
                to.write(byte(key_len << 1));
                copy(header.key, to.add(1));
                let value_head = to.add(1 + key_len);
                value_head.write(if header.is_null { NULL } else { byte(value_len << 1) });
                copy(header.value, value_head.add(1));
                return Some(2 + key_len + value_len);
            }
            let mut len = write_length(to, header.key_len);
            copy_long(header.key, to.add(len), header.key_len);
            len += header.key_len;
            if header.is_null {
                to.add(len).write(NULL);
                return Some(len + 1);
            }
            len += write_length(to.add(len), value_len);
            copy_long(header.value, to.add(len), value_len);
            Some(len + value_len)
        }
    }
}

/// Writes a header of `iggy` or `iggy-2023` without its types; `None` if the row needs the slow path.
///
/// # Safety
///
/// As for [`WireLayout::write`]; the value was found by [`TypedLayout`].
#[inline(always)]
unsafe fn write_untyped(to: *mut u8, header: &RawHeader, value_type: ValueType, order: ByteOrder) -> Option<usize> {
    let RawHeader { key, key_len, value, value_len, .. } = *header;
    // SAFETY: the caller's contract: key and value, two lengths and `COPY` bytes are writable, and `COPY` bytes are
    // readable at each of key and value; a value with a width has between 1 and 16 bytes.
    unsafe {
        let is_text = |text, len| {
            len < COPY && !has_high_bit(text, len)
                || simdutf8::basic::from_utf8(std::slice::from_raw_parts(text, len)).is_ok()
        };
        if header.key_type.is_some_and(|key_type| key_type != TEXT || !is_text(key, key_len)) {
            return None;
        }
        let is_value = match value_type {
            TEXT => is_text(value, value_len),
            ValueType::Named(Scalar::Bool) => *value <= 1,
            _ => true,
        };
        if !is_value {
            return None;
        }
        let mut len = write_length(to, key_len);
        copy_long(key, to.add(len), key_len);
        len += key_len;
        len += write_length(to.add(len), value_len);
        if order == ByteOrder::Big && value_type.width().is_some() {
            write_reversed(value, to.add(len), value_len);
        } else {
            copy_long(value, to.add(len), value_len);
        }
        Some(len + value_len)
    }
}

/// Writes a length as a zig-zag varint, and returns its number of bytes, at most five.
///
/// # Safety
///
/// Five bytes are writable.
#[inline(always)]
unsafe fn write_length(to: *mut u8, len: usize) -> usize {
    // SAFETY: the caller's contract; 32 bits have at most five groups of seven.
    unsafe {
        if len < 64 {
            to.write(byte(len << 1));
            return 1;
        }
        let mut bits = varint::zigzag(number::length(len));
        let mut written = 0;
        while bits >= 0x80 {
            to.add(written).write((bits & 0x7f) as u8 | 0x80);
            bits >>= 7;
            written += 1;
        }
        to.add(written).write((bits & 0x7f) as u8);
        written + 1
    }
}

/// Reads a length of any number of bytes; returns its end, and the length, or `None` for -1. The following bytes of
/// this length are inside the row.
fn length(row: &[u8], offset: usize) -> Option<(usize, Option<usize>)> {
    let rest = row.get(offset..)?;
    let ParsedVarint::Read { bits, len, lost: false } = varint::read(rest) else { return None };
    match varint::unzigzag(bits) {
        -1 => Some((offset + len, None)),
        value => {
            let counted = usize::try_from(value).ok()?;
            (counted <= rest.len() - len).then_some((offset + len, Some(counted)))
        }
    }
}
