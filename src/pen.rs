//! Writing where room was made before: lengths, and runs of which more is copied than they have.

use std::{ptr, slice};

use crate::chunk::{Run, WIDE};
use crate::varint;

/// The end of growing bytes. What was written is of them when it is dropped.
pub struct Pen<'o> {
    out: &'o mut Vec<u8>,
    /// Where the bytes begin: kept here, for what is written might be anything.
    start: *mut u8,
    len: usize,
    /// They stay shorter than this, as `WIDE` bytes of room are not counted: where there are fewer, none are.
    room: usize,
}

/// How long bytes stay shorter than, where they are not moved.
#[inline(always)]
fn room_in(out: &Vec<u8>) -> usize {
    (out.capacity() + 1).saturating_sub(WIDE)
}

impl<'o> Pen<'o> {
    #[inline(always)]
    pub fn new(out: &'o mut Vec<u8>) -> Self {
        Pen { start: out.as_mut_ptr(), len: out.len(), room: room_in(out), out }
    }

    /// How many bytes there are.
    #[inline(always)]
    pub fn byte_len(&self) -> usize {
        self.len
    }

    /// Makes room for so many bytes more.
    #[inline(always)]
    pub fn reserve(&mut self, most: usize) {
        if self.len + most >= self.room {
            self.grow(most);
        }
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, most: usize) {
        // SAFETY: so much was written.
        unsafe { self.out.set_len(self.len) };
        // A run is copied with what lies behind it.
        self.out.reserve(most + WIDE);
        self.start = self.out.as_mut_ptr();
        self.room = room_in(self.out);
    }

    /// What was written from a place on.
    pub fn written(&self, from: usize) -> &[u8] {
        assert!(from <= self.len);
        // SAFETY: so much was written.
        unsafe { slice::from_raw_parts(self.start.add(from), self.len - from) }
    }

    /// Back to an earlier length.
    #[inline]
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
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

    /// Writes some bytes.
    ///
    /// # Safety
    ///
    /// There is room for them.
    #[inline(always)]
    pub unsafe fn bytes<const N: usize>(&mut self, bytes: [u8; N]) {
        debug_assert!(self.len + N + WIDE <= self.out.capacity());
        // SAFETY: the room is behind what was written.
        unsafe { self.start.add(self.len).cast::<[u8; N]>().write(bytes) };
        self.len += N;
    }

    /// Writes a run of at most 16 bytes, the last first: what comes too much is pushed out at the other end.
    ///
    /// # Safety
    ///
    /// There is room for it, and it has at least one byte.
    #[inline(always)]
    pub unsafe fn run_reversed(&mut self, run: Run<'_>) {
        const BYTES: usize = size_of::<u128>();
        debug_assert!((1..=BYTES).contains(&run.len()));
        let number = u128::from_le_bytes(*run.chunk()) << (8 * (BYTES - run.len()));
        // SAFETY: as for this function.
        unsafe { self.start(number.to_be_bytes(), run.len()) };
    }

    /// Writes the first bytes of an array.
    ///
    /// # Safety
    ///
    /// There is room for them.
    #[inline(always)]
    pub unsafe fn start<const N: usize>(&mut self, bytes: [u8; N], len: usize) {
        const { assert!(N <= WIDE) };
        debug_assert!(len <= N && self.len + len + WIDE <= self.out.capacity());
        // SAFETY: the room is behind what was written, and has `WIDE` bytes more than was asked for.
        unsafe { self.start.add(self.len).cast::<[u8; N]>().write(bytes) };
        self.len += len;
    }

    /// Writes bytes behind which there need not be others.
    ///
    /// # Safety
    ///
    /// There is room for them.
    #[inline(always)]
    pub unsafe fn slice(&mut self, bytes: &[u8]) {
        debug_assert!(self.len + bytes.len() + WIDE <= self.out.capacity());
        // SAFETY: the room is behind what was written, and what is read twice is written twice.
        unsafe {
            let (from, to, len) = (bytes.as_ptr(), self.start.add(self.len), bytes.len());
            match len {
                0 => {}
                1..4 => {
                    to.write(*from);
                    to.add(len / 2).write(*from.add(len / 2));
                    to.add(len - 1).write(*from.add(len - 1));
                }
                4..8 => both_ends::<4>(from, to, len),
                8..16 => both_ends::<8>(from, to, len),
                16..32 => both_ends::<16>(from, to, len),
                32..=64 => both_ends::<32>(from, to, len),
                _ => ptr::copy_nonoverlapping(from, to, len),
            }
        }
        self.len += bytes.len();
    }

    /// Writes bytes, the last first.
    ///
    /// # Safety
    ///
    /// There is room for them.
    #[inline(always)]
    pub unsafe fn reversed(&mut self, bytes: &[u8]) {
        // SAFETY: as for this function.
        unsafe {
            if let Ok(number) = bytes.try_into() {
                self.bytes(u32::from_le_bytes(number).to_be_bytes());
            } else if let Ok(number) = bytes.try_into() {
                self.bytes(u64::from_le_bytes(number).to_be_bytes());
            } else {
                bytes.iter().rev().for_each(|byte| self.byte(*byte));
            }
        }
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
}

/// Copies the first and the last `N` of at least so many bytes: as one size that is known, twice.
#[inline(always)]
unsafe fn both_ends<const N: usize>(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: both lie within the bytes.
    unsafe {
        ptr::copy_nonoverlapping(from, to, N);
        ptr::copy_nonoverlapping(from.add(len - N), to.add(len - N), N);
    }
}

impl Drop for Pen<'_> {
    #[inline(always)]
    fn drop(&mut self) {
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
        let mut pen = Pen::new(&mut out);
        pen.reserve(counts.len() * varint::MAX_LEN);
        for count in counts {
            // SAFETY: there is room for the longest of each.
            unsafe { pen.count(count) };
            varint::write_count(count, &mut expected);
        }
        drop(pen);
        assert_eq!(out, expected);
    }

    #[test]
    fn bytes_of_any_length_are_written() {
        let bytes: Vec<u8> = (0..200).collect();
        for len in 0..bytes.len() {
            let mut out = Vec::new();
            let mut pen = Pen::new(&mut out);
            pen.reserve(2 * len + 3);
            // SAFETY: there is room for all of them.
            unsafe {
                pen.slice(&bytes[..len]);
                pen.bytes([7, 8, 9]);
                pen.reversed(&bytes[..len]);
            }
            drop(pen);
            let reversed: Vec<u8> = bytes[..len].iter().rev().copied().collect();
            assert_eq!(out, [&bytes[..len], &[7, 8, 9], &reversed].concat());
        }
    }

    #[test]
    fn a_run_without_bytes_has_room_too() {
        for capacity in [0, 1, WIDE - 1, WIDE] {
            let mut out = Vec::with_capacity(capacity);
            let mut pen = Pen::new(&mut out);
            pen.reserve(0);
            // SAFETY: there is room for no byte, and `WIDE` lie behind the run.
            unsafe { pen.run(Run::new(&[7; WIDE], 0, 0)) };
            drop(pen);
            assert!(out.is_empty() && out.capacity() >= WIDE, "{capacity}");
        }
    }

    #[test]
    fn what_was_written_stays_when_there_has_to_be_more_room() {
        let mut out = vec![7];
        let mut pen = Pen::new(&mut out);
        for byte in 0..1000 {
            pen.reserve(1);
            // SAFETY: there is room for one.
            unsafe { pen.byte(byte as u8) };
        }
        assert_eq!(pen.byte_len(), 1001);
        pen.truncate(4);
        pen.truncate(9);
        drop(pen);
        assert_eq!(out, [7, 0, 1, 2]);
    }
}
