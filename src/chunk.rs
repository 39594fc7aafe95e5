//! Chunks of a fixed size, and what can be said of the bytes in one at once.

use std::marker::PhantomData;
use std::{ptr, slice};

/// How many bytes a chunk has. Most keys and values are shorter: copying them as one chunk, and forgetting what came too
/// much, costs a fraction of copying just as many bytes.
pub const CHUNK: usize = 32;

/// The longest chunk that is ever asked for.
pub const WIDE: usize = 64;

/// Whether the first bytes of a chunk are ASCII; not if it has fewer of them.
#[inline(always)]
pub fn is_ascii(chunk: &[u8; CHUNK], len: usize) -> bool {
    // In 64 bits, as nothing may be left of the 32.
    len <= CHUNK && (u64::from(high_bits(chunk)) << (CHUNK - len)) as u32 == 0
}

/// Whether the first bytes of two chunks are the same; not if they have fewer of them.
#[inline(always)]
pub fn are_alike(one: &[u8; CHUNK], other: &[u8; CHUNK], len: usize) -> bool {
    len <= CHUNK && (u64::from(differing(one, other)) << (CHUNK - len)) as u32 == 0
}

/// A bit for each place where two chunks differ, the first in the lowest bit.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn differing(one: &[u8; CHUNK], other: &[u8; CHUNK]) -> u32 {
    use std::arch::x86_64::{__m128i, _mm_cmpeq_epi8, _mm_loadu_si128, _mm_movemask_epi8};
    // SAFETY: SSE2 is part of every x86-64; all loads lie within the 32 bytes and need no alignment.
    unsafe {
        let (one, other) = (one.as_ptr().cast::<__m128i>(), other.as_ptr().cast::<__m128i>());
        let same = |at| _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_loadu_si128(one.add(at)), _mm_loadu_si128(other.add(at))));
        !(same(0) as u32 | (same(1) as u32) << 16)
    }
}

/// A bit for each place where two chunks differ, the first in the lowest bit.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn differing(one: &[u8; CHUNK], other: &[u8; CHUNK]) -> u32 {
    one.iter().zip(other).rev().fold(0, |bits, (one, other)| bits << 1 | u32::from(one != other))
}

/// A bit for each byte that is no ASCII, the first in the lowest bit.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn high_bits(chunk: &[u8; CHUNK]) -> u32 {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_movemask_epi8};
    // SAFETY: SSE2 is part of every x86-64; both loads lie within the 32 bytes and need no alignment.
    unsafe {
        let first = chunk.as_ptr().cast::<__m128i>();
        let low = _mm_movemask_epi8(_mm_loadu_si128(first)) as u32;
        let high = _mm_movemask_epi8(_mm_loadu_si128(first.add(1))) as u32;
        low | high << 16
    }
}

/// A bit for each byte that is no ASCII, the first in the lowest bit.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn high_bits(chunk: &[u8; CHUNK]) -> u32 {
    chunk.iter().rev().fold(0, |bits, byte| bits << 1 | u32::from(byte >> 7))
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
    pub unsafe fn new(bytes: &'a [u8], at: usize, len: usize) -> Self {
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
    pub fn is_ascii(self) -> bool {
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

    #[test]
    fn the_first_bytes_are_looked_at_and_no_others() {
        for place in 0..CHUNK {
            let mut chunk = [b'a'; CHUNK];
            chunk[place] = 0x80;
            for len in 0..=CHUNK {
                assert_eq!(is_ascii(&chunk, len), len <= place, "{place} {len}");
            }
        }
        assert!(is_ascii(&[0x7f; CHUNK], CHUNK));
        assert!(!is_ascii(&[0x7f; CHUNK], CHUNK + 1));
    }

    #[test]
    fn the_first_bytes_are_compared_and_no_others() {
        for place in 0..CHUNK {
            let (one, mut other) = ([b'a'; CHUNK], [b'a'; CHUNK]);
            other[place] = b'b';
            for len in 0..=CHUNK {
                assert_eq!(are_alike(&one, &other, len), len <= place, "{place} {len}");
            }
        }
        assert!(are_alike(&[7; CHUNK], &[7; CHUNK], CHUNK));
        assert!(!are_alike(&[7; CHUNK], &[7; CHUNK], CHUNK + 1));
    }
}
