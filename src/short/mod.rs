//! Headers that lie as nearly all do, which a sink takes in a loop of its own: with room made for all of them at once, and
//! one test a header. In a block ([`block`]) and in columns ([`columns`]) alike.
//!
//! Whatever else there may be is for the walk that names it: what is not whole stops here without a word.

use std::marker::PhantomData;
use std::{ptr, slice};

use crate::chunk::{CHUNK, WIDE, is_ascii};
use crate::mode::{Mode, Stop};

pub mod block;
pub mod columns;

/// The headers of a row.
pub trait Short<'a> {
    /// There can be such headers at all.
    const ARE_THERE: bool = true;

    fn count(&self) -> usize;

    /// All keys and all values together have at most so many bytes.
    fn byte_len(&self) -> usize;

    /// Hands them over one by one, in order: never more headers and bytes than it says. Of a row that stops nothing may be
    /// kept.
    fn each<M: Mode, T: Take<'a>>(self, mode: &mut M, to: &mut T) -> Result<(), Stop>;
}

/// What takes such headers. No closure: those are not always made a part of the loop, and a header that is passed through
/// memory costs more than all the rest.
pub trait Take<'a> {
    /// It looks at the keys itself, many at a time, to see that they are text.
    const SEES_TEXT: bool = false;

    fn take(&mut self, header: ShortHeader<'a>);
}

/// Where there are never such headers.
pub struct Nothing;

impl<'a> Short<'a> for Nothing {
    const ARE_THERE: bool = false;

    fn count(&self) -> usize {
        0
    }

    fn byte_len(&self) -> usize {
        0
    }

    fn each<M: Mode, T: Take<'a>>(self, _mode: &mut M, _to: &mut T) -> Result<(), Stop> {
        Ok(())
    }
}

/// A row of such headers.
pub enum ShortRow<F, H> {
    /// There is no message.
    Null,
    /// The other fields of the message, and its headers.
    Message(F, H),
}

/// A header as it lies.
#[derive(Clone, Copy)]
pub struct ShortHeader<'a> {
    pub index: usize,
    pub key: Run<'a>,
    pub value: Option<Run<'a>>,
    /// Where the value begins in the cell, if it has one.
    pub at: Option<usize>,
}

/// Bytes that more bytes lie behind: `WIDE` of them can be read from the first one on.
#[derive(Clone, Copy)]
pub struct Run<'a> {
    start: *const u8,
    len: usize,
    lives: PhantomData<&'a [u8]>,
}

impl<'a> Run<'a> {
    /// The run of `len` bytes that begins at a place in some bytes.
    ///
    /// # Safety
    ///
    /// The run lies in the bytes, or is never asked for its own, and `WIDE` bytes lie from its beginning on.
    #[inline(always)]
    unsafe fn new(bytes: &'a [u8], at: usize, len: usize) -> Self {
        debug_assert!(at + WIDE <= bytes.len());
        // SAFETY: the beginning lies in the bytes.
        Run { start: unsafe { bytes.as_ptr().add(at) }, len, lives: PhantomData }
    }

    #[expect(clippy::len_without_is_empty, reason = "nobody asks")]
    #[inline(always)]
    pub fn len(self) -> usize {
        self.len
    }

    #[inline(always)]
    pub fn bytes(self) -> &'a [u8] {
        // SAFETY: the run lies in bytes that live so long.
        unsafe { slice::from_raw_parts(self.start, self.len) }
    }

    /// What begins with the run, whatever it belongs to.
    #[inline(always)]
    pub fn chunk<const N: usize>(self) -> &'a [u8; N] {
        const { assert!(N <= WIDE) };
        // SAFETY: `WIDE` bytes lie there.
        unsafe { &*self.start.cast() }
    }

    /// Whether all of its bytes are ASCII; of a long one nobody looks.
    #[inline(always)]
    fn is_ascii(self) -> bool {
        const { assert!(2 * CHUNK <= WIDE) };
        match self.len.checked_sub(CHUNK) {
            None => is_ascii(self.chunk(), self.len),
            Some(rest) => {
                // SAFETY: two chunks lie there.
                let second = unsafe { &*self.start.add(CHUNK).cast() };
                is_ascii(self.chunk(), CHUNK) && is_ascii(second, rest)
            }
        }
    }

    /// Copies the run, of a short one a chunk with what lies behind it.
    ///
    /// # Safety
    ///
    /// There is room for the run, and for `WIDE` bytes.
    #[inline(always)]
    pub unsafe fn copy_to(self, to: *mut u8) {
        // SAFETY: as for this function; what was made here lies elsewhere.
        unsafe {
            if self.len <= WIDE {
                ptr::copy_nonoverlapping(self.start, to, WIDE);
            } else {
                copy_long(self.start, self.len, to);
            }
        }
    }
}

/// Copies many bytes. By itself: beside a copy of fixed size, the two are made one of a size that has to be looked at.
#[cold]
#[inline(never)]
unsafe fn copy_long(from: *const u8, len: usize, to: *mut u8) {
    // SAFETY: as for `Run::copy_to`.
    unsafe { ptr::copy_nonoverlapping(from, to, len) };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Does something with each header.
    pub struct Each<F>(pub F);

    impl<'a, F: FnMut(ShortHeader<'a>)> Take<'a> for Each<F> {
        fn take(&mut self, header: ShortHeader<'a>) {
            (self.0)(header);
        }
    }
}
