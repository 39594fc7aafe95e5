//! Writing where room was made before: lengths, and runs of which more is copied than they have.

use crate::chunk::WIDE;
use crate::short::Run;
use crate::varint;

/// The end of growing bytes, for which room was made. What was written is of them when it is finished.
pub struct Pen<'o> {
    out: &'o mut Vec<u8>,
    /// Where the bytes begin: kept here, for what is written might be anything.
    start: *mut u8,
    len: usize,
}

impl<'o> Pen<'o> {
    /// Makes room for so many bytes.
    #[inline(always)]
    pub fn new(out: &'o mut Vec<u8>, most: usize) -> Self {
        // A run is copied with what lies behind it.
        out.reserve(most + WIDE);
        Pen { start: out.as_mut_ptr(), len: out.len(), out }
    }

    /// Writes a byte.
    ///
    /// # Safety
    ///
    /// There is room for it.
    #[inline(always)]
    pub unsafe fn byte(&mut self, byte: u8) {
        debug_assert!(self.len + WIDE < self.out.capacity());
        // SAFETY: the room is behind what was written.
        unsafe { self.start.add(self.len).write(byte) };
        self.len += 1;
    }

    /// Writes a length or a count as a zig-zag varint, in at most five bytes.
    ///
    /// # Safety
    ///
    /// There is room for it.
    #[inline(always)]
    pub unsafe fn count(&mut self, count: usize) {
        let mut bits = varint::zigzag(count as i32);
        while bits >= 0x80 {
            // SAFETY: as for this function.
            unsafe { self.byte(bits as u8 | 0x80) };
            bits >>= 7;
        }
        // SAFETY: as for this function.
        unsafe { self.byte(bits as u8) };
    }

    /// Writes a run.
    ///
    /// # Safety
    ///
    /// There is room for it.
    #[inline(always)]
    pub unsafe fn run(&mut self, run: Run<'_>) {
        debug_assert!(self.len + run.len() + WIDE <= self.out.capacity());
        // SAFETY: the room is behind what was written, and has `WIDE` bytes more than was asked for.
        unsafe { run.copy_to(self.start.add(self.len)) };
        self.len += run.len();
    }

    /// Makes what was written a part of the bytes. Without this, nothing was.
    #[inline(always)]
    pub fn finish(self) {
        // SAFETY: so much was written.
        unsafe { self.out.set_len(self.len) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_written_as_anywhere_else() {
        let counts = [0, 1, 63, 64, 8_191, 8_192, 1 << 20, i32::MAX as usize];
        let (mut out, mut expected) = (vec![7], vec![7]);
        let mut pen = Pen::new(&mut out, counts.len() * varint::MAX_LEN);
        for count in counts {
            // SAFETY: there is room for the longest of each.
            unsafe { pen.count(count) };
            varint::write_count(count, &mut expected);
        }
        pen.finish();
        assert_eq!(out, expected);
    }

    #[test]
    fn what_is_not_finished_was_not_written() {
        let mut out = vec![7];
        let mut pen = Pen::new(&mut out, 1);
        // SAFETY: there is room for one.
        unsafe { pen.byte(8) };
        assert_eq!(out, [7]);
    }
}
