//! Conversions to smaller types of numbers: one function for each reason why nothing is lost.

use std::fmt::Debug;

/// Converts a number that was compared with the range of its type; panics if it was not.
#[inline]
#[track_caller]
pub fn fitting<T, N: TryInto<T, Error: Debug>>(number: N) -> T {
    number.try_into().expect("a number that was checked fits its type")
}

/// Offset after so many bytes or elements. One that wraps is detected by [`crate::kernel::buffer::Runs`], or by the limit of the
/// rows, and is taken back before it is read.
#[inline(always)]
pub fn offset(len: usize) -> i32 {
    len as i32
}
