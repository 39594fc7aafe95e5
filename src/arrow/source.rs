//! The bytes that runs are cut from, so that a short run can be copied as a chunk of fixed size.

use crate::chunk::WIDE;

/// The buffer behind the cells of a column. Every run in it but those near the end has more bytes behind it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Source<'a> {
    bytes: &'a [u8],
    /// How many chunks lie in the buffer, one from each byte but the last few.
    chunks: usize,
}

impl<'a> Source<'a> {
    pub fn new(buffer: &'a [u8]) -> Self {
        Source { bytes: buffer, chunks: (buffer.len() + 1).saturating_sub(WIDE) }
    }

    /// The chunk that begins with a run; `None` near the end, and for a run that lies elsewhere.
    #[inline(always)]
    pub fn chunk<const N: usize>(self, run: &[u8]) -> Option<&'a [u8; N]> {
        const { assert!(N <= WIDE) };
        let at = run.as_ptr().addr().wrapping_sub(self.bytes.as_ptr().addr());
        // SAFETY: the chunk that begins there ends in the buffer.
        (at < self.chunks).then(|| unsafe { &*self.bytes.as_ptr().add(at).cast() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_lies_in_the_buffer_or_there_is_none() {
        let buffer: Vec<u8> = (0..100).collect();
        let source = Source::new(&buffer);
        for at in 0..=buffer.len() {
            let chunk = source.chunk::<WIDE>(&buffer[at..]);
            assert_eq!(chunk.map(|chunk| &chunk[..]), buffer.get(at..at + WIDE), "{at}");
        }
        assert_eq!(source.chunk::<8>(&[1, 2, 3]), None);
        assert_eq!(Source::default().chunk::<8>(&buffer), None);
        assert_eq!(Source::new(&buffer[..WIDE - 1]).chunk::<8>(&buffer), None);
    }
}
