//! Conversions to narrower number types. Each function states why the number fits.

#![allow(clippy::cast_possible_truncation, reason = "each function says why its number fits")]

use std::fmt::Debug;

/// Converts a number that the caller has compared with the range of its type; panics if it does not fit.
#[inline]
#[track_caller]
pub fn fitting<T, N: TryInto<T, Error: Debug>>(number: N) -> T {
    number.try_into().expect("a number that was checked fits its type")
}

/// Position in a buffer, from an offset of an array. An import checks that offsets are in their buffer.
#[inline(always)]
pub fn position(offset: impl Into<i64>) -> usize {
    let offset = offset.into();
    debug_assert!(usize::try_from(offset).is_ok());
    offset as usize
}

/// Offset after this many bytes or elements. [`crate::kernel::buffer::BinaryValues`], or the limit of the rows, detects
/// an offset that wraps, and removes its row before it is read.
#[inline(always)]
pub fn offset(len: usize) -> i32 {
    len as i32
}

/// Length of a key or value. Kernels read only rows whose length fits an offset.
#[inline(always)]
pub fn length(len: usize) -> i32 {
    debug_assert!(i32::try_from(len).is_ok());
    len as i32
}

/// Converts a number that the caller has compared with the largest byte.
#[inline(always)]
pub fn byte(number: usize) -> u8 {
    debug_assert!(u8::try_from(number).is_ok());
    number as u8
}
