//! Chunks of a fixed size, and what can be said of the bytes in one at once.

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
}
