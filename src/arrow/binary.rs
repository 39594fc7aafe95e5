//! Growing runs of bytes behind offsets: what binary and text columns are made of.

use std::sync::Arc;
use std::{ptr, slice};

use arrow_array::{ArrayRef, BinaryArray, StringArray};
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};

use super::sink::Share;
use super::source::Source;
use crate::chunk::{Run, WIDE};
use crate::pen::Pen;

/// Runs of bytes behind offsets.
pub struct Runs {
    offsets: Vec<i32>,
    bytes: Vec<u8>,
}

impl Default for Runs {
    fn default() -> Self {
        Runs { offsets: vec![0], bytes: Vec::new() }
    }
}

impl Runs {
    /// Makes room for what will come, which cannot be more than `most` bytes.
    pub fn expect(&mut self, share: Share, most: usize) {
        reserve(&mut self.offsets, share, most);
        reserve(&mut self.bytes, share, most + WIDE);
    }

    /// Makes room for so many runs more, and for so many bytes.
    pub(super) fn reserve(&mut self, runs: usize, bytes: usize) {
        self.offsets.reserve_exact(runs);
        // A short run is copied with what lies behind it.
        self.bytes.reserve_exact(bytes + WIDE);
    }

    #[inline]
    pub fn push(&mut self, run: &[u8]) {
        self.bytes.extend_from_slice(run);
        // A row that passes the largest offset is aborted before anyone reads what this wrapped to.
        self.offsets.push(self.bytes.len() as i32);
    }

    /// A run that may lie in the source.
    #[inline(always)]
    pub fn push_from<const N: usize>(&mut self, source: Source<'_>, run: &[u8]) {
        match source.chunk::<N>(run) {
            Some(chunk) if run.len() <= N => {
                self.push_start(chunk, run.len());
                self.end_run();
            }
            _ => self.push(run),
        }
    }

    /// A run of at most as many bytes as the array has.
    #[inline]
    pub fn push_padded<const N: usize>(&mut self, (bytes, len): ([u8; N], usize)) {
        self.push_start(&bytes, len);
        self.end_run();
    }

    /// A run whose bytes come last first, and which may lie in the source.
    #[inline(always)]
    pub fn push_reversed(&mut self, source: Source<'_>, run: &[u8]) {
        const BYTES: usize = size_of::<u128>();
        match source.chunk(run) {
            Some(chunk) if (1..=BYTES).contains(&run.len()) => {
                // The first byte becomes the last that counts; what came too much is pushed out at the other end.
                let number = u128::from_le_bytes(*chunk) << (8 * (BYTES - run.len()));
                self.push_start(&number.to_be_bytes(), run.len());
            }
            _ => self.bytes.extend(run.iter().rev()),
        }
        self.end_run();
    }

    /// The first bytes of an array, all of which are copied: a size that is known costs less than one that fits.
    #[inline(always)]
    pub(super) fn push_start<const N: usize>(&mut self, bytes: &[u8; N], len: usize) {
        assert!(len <= N);
        self.bytes.reserve(N);
        let end = self.bytes.len() + len;
        // SAFETY: there is room for the whole array, and the part that is kept was written.
        unsafe {
            ptr::copy_nonoverlapping(bytes.as_ptr(), self.bytes.as_mut_ptr().add(self.bytes.len()), N);
            self.bytes.set_len(end);
        }
    }

    /// The end of the runs, for many that are pushed without a look at the room for each.
    #[inline(always)]
    pub fn tail(&mut self) -> Tail<'_> {
        let (count, room) = (self.offsets.len(), self.offsets.capacity());
        Tail { at: self.offsets.as_mut_ptr(), count, room, offsets: &mut self.offsets, pen: Pen::new(&mut self.bytes) }
    }

    /// Where runs end, and their bytes, for whoever writes both.
    #[inline(always)]
    pub fn parts_mut(&mut self) -> (&mut Vec<i32>, &mut Vec<u8>) {
        (&mut self.offsets, &mut self.bytes)
    }

    /// Ends a run whose bytes were written, through `bytes_mut` or here.
    #[inline]
    pub fn end_run(&mut self) {
        self.offsets.push(self.bytes.len() as i32);
    }

    pub fn bytes_mut(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    #[inline]
    pub fn count(&self) -> usize {
        self.offsets.len() - 1
    }

    #[inline]
    pub fn byte_len(&self) -> usize {
        self.bytes.len()
    }

    /// Back to this many runs, and to no bytes of another one.
    pub fn truncate(&mut self, runs: usize) {
        self.offsets.truncate(runs + 1);
        // Of the runs that stay none passes the largest offset.
        let end = self.offsets.last().map_or(0, |end| *end as usize);
        self.bytes.truncate(end);
    }

    fn parts(mut self) -> (OffsetBuffer<i32>, Buffer) {
        give_back(&mut self.bytes);
        give_back(&mut self.offsets);
        debug_assert!(self.offsets[0] == 0 && self.offsets.is_sorted());
        // SAFETY: the offsets begin with 0 and are lengths of what only grew between them.
        let offsets = unsafe { OffsetBuffer::new_unchecked(ScalarBuffer::from(self.offsets)) };
        (offsets, Buffer::from_vec(self.bytes))
    }

    /// The runs as text, each of which was seen to be UTF-8.
    pub fn finish_text(self, nulls: Option<NullBuffer>) -> ArrayRef {
        let (offsets, bytes) = self.parts();
        debug_assert!(StringArray::try_new(offsets.clone(), bytes.clone(), nulls.clone()).is_ok());
        // SAFETY: every run was seen to be UTF-8 before it was pushed, and the last offset is the number of bytes.
        Arc::new(unsafe { StringArray::new_unchecked(offsets, bytes, nulls) })
    }

    pub fn finish_bytes(self, nulls: Option<NullBuffer>) -> ArrayRef {
        let (offsets, bytes) = self.parts();
        Arc::new(BinaryArray::new(offsets, bytes, nulls))
    }
}

/// The end of growing runs. What was pushed is of the runs when it is dropped.
pub struct Tail<'r> {
    offsets: &'r mut Vec<i32>,
    /// Where the offsets begin, how many there are, and how many there may be.
    at: *mut i32,
    count: usize,
    room: usize,
    pen: Pen<'r>,
}

/// How long a tail was before the row at hand.
#[derive(Clone, Copy)]
pub struct TailMark {
    count: usize,
    bytes: usize,
}

impl Tail<'_> {
    /// Makes room for so many runs more, of so many bytes together.
    #[inline(always)]
    pub fn reserve(&mut self, runs: usize, bytes: usize) {
        self.pen.reserve(bytes);
        if self.count + runs > self.room {
            self.grow(runs);
        }
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, runs: usize) {
        // SAFETY: so many were written.
        unsafe { self.offsets.set_len(self.count) };
        self.offsets.reserve(runs);
        (self.at, self.room) = (self.offsets.as_mut_ptr(), self.offsets.capacity());
    }

    /// How many runs there are.
    #[inline(always)]
    pub fn count(&self) -> usize {
        self.count - 1
    }

    /// How many bytes they have together.
    #[inline(always)]
    pub fn byte_len(&self) -> usize {
        self.pen.byte_len()
    }

    #[inline(always)]
    pub fn mark(&self) -> TailMark {
        TailMark { count: self.count, bytes: self.pen.byte_len() }
    }

    /// Back to where it was.
    pub fn back_to(&mut self, mark: TailMark) {
        self.count = self.count.min(mark.count);
        self.pen.truncate(mark.bytes);
    }

    pub fn bytes_since(&self, mark: TailMark) -> usize {
        self.pen.byte_len() - mark.bytes
    }

    /// Whether each run from there on is UTF-8: together they are, and none begins inside a character.
    #[inline(never)]
    pub fn are_text_since(&self, mark: TailMark) -> bool {
        let bytes = self.pen.written(mark.bytes);
        if bytes.is_ascii() {
            return true;
        }
        let begins = |end: &i32| bytes.get(*end as usize - mark.bytes).is_none_or(|byte| byte & 0xc0 != 0x80);
        simdutf8::basic::from_utf8(bytes).is_ok() && self.ends(mark.count - 1).iter().all(begins)
    }

    /// Where the runs end, from one of them on.
    fn ends(&self, from: usize) -> &[i32] {
        // SAFETY: so many were written.
        unsafe { slice::from_raw_parts(self.at.add(from), self.count - from) }
    }

    /// Appends a run; of a short one, a chunk is copied, whose rest is written over.
    ///
    /// # Safety
    ///
    /// Room was made for one run more and for its bytes.
    #[inline(always)]
    pub unsafe fn push(&mut self, run: Run<'_>) {
        // SAFETY: as for this function.
        unsafe {
            self.pen.run(run);
            self.push_empty();
        }
    }

    /// Appends a run whose bytes come last first.
    ///
    /// # Safety
    ///
    /// Room was made for one run more and for its bytes, of which there are at least one and at most 16.
    #[inline(always)]
    pub unsafe fn push_reversed(&mut self, run: Run<'_>) {
        // SAFETY: as for this function.
        unsafe {
            self.pen.run_reversed(run);
            self.push_empty();
        }
    }

    /// Appends a run of at most as many bytes as the array has.
    ///
    /// # Safety
    ///
    /// Room was made for one run more and for its bytes.
    #[inline(always)]
    pub unsafe fn push_padded<const N: usize>(&mut self, (bytes, len): ([u8; N], usize)) {
        // SAFETY: as for this function.
        unsafe {
            self.pen.start(bytes, len);
            self.push_empty();
        }
    }

    /// Appends a run without bytes.
    ///
    /// # Safety
    ///
    /// Room was made for one run more.
    #[inline(always)]
    pub unsafe fn push_empty(&mut self) {
        debug_assert!(self.count < self.offsets.capacity());
        // SAFETY: the room is behind what was written. What wraps is aborted, as in `Runs::push`.
        unsafe { self.at.add(self.count).write(self.pen.byte_len() as i32) };
        self.count += 1;
    }
}

impl Drop for Tail<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: so many were written.
        unsafe { self.offsets.set_len(self.count) };
    }
}

/// Makes room for what will come, which cannot be more than `most`.
pub fn reserve<T>(column: &mut Vec<T>, share: Share, most: usize) {
    let in_the_end = share.in_the_end(column.len()).min(most);
    // Where there is not so much memory, there may be enough for what really comes.
    let _ = column.try_reserve_exact(in_the_end.saturating_sub(column.len()));
}

/// Gives memory back that was not needed, if it is worth the copy.
fn give_back<T>(column: &mut Vec<T>) {
    if column.capacity() / 4 * 3 > column.len() {
        column.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_copied_alike_from_anywhere() {
        let buffer: Vec<u8> = (0..200).map(|byte: u8| byte.wrapping_mul(7)).collect();
        for source in [Source::new(&buffer), Source::default()] {
            for len in 0..=80 {
                for at in [0, 1, 100, buffer.len() - len] {
                    let run = &buffer[at..at + len];
                    let mut runs = Runs::default();
                    runs.push_from::<32>(source, run);
                    runs.push_from::<64>(source, run);
                    runs.push_reversed(source, run);
                    let reversed: Vec<u8> = run.iter().rev().copied().collect();
                    assert_eq!(runs.bytes, [run, run, &reversed].concat(), "{at} {len}");
                    assert_eq!(runs.offsets, [0, len as i32, 2 * len as i32, 3 * len as i32]);
                }
            }
        }
    }

    #[test]
    fn room_is_made_for_no_more_than_there_can_be() {
        let mut runs = Runs::default();
        runs.push(&[7; 1000]);
        runs.expect(Share { done: 1, all: 1_000_000_000 }, 5000);
        assert!(runs.bytes.capacity() < 10_000 && runs.offsets.capacity() < 10_000);
    }
}
