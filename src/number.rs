//! Conversions to smaller types of numbers: one function for each reason why nothing is lost.

#![allow(clippy::cast_possible_truncation, reason = "each function says why its number fits")]

use std::fmt::Debug;

/// Converts a number that was compared with the range of its type; panics if it was not.
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

/// Offset after so many bytes or elements. One that wraps is detected by [`crate::kernel::buffer::BinaryValues`], or by the limit of the
/// rows, and is taken back before it is read.
#[inline(always)]
pub fn offset(len: usize) -> i32 {
    len as i32
}

/// Length of a part of a row, of which kernels read only rows that an offset can hold.
#[inline(always)]
pub fn length(len: usize) -> i32 {
    debug_assert!(i32::try_from(len).is_ok());
    len as i32
}

/// A number that the caller compared with the largest byte.
#[inline(always)]
pub fn byte(number: usize) -> u8 {
    debug_assert!(u8::try_from(number).is_ok());
    number as u8
}
