//! Growing columns that kernels append to: [`BinaryValues`], and [`Utf8`] for text.

use std::alloc::{Layout, realloc};
use std::mem::ManuallyDrop;
use std::ops::{Deref, Range};
use std::slice;

use super::{COPY, copy, copy_long, write_reversed};
use crate::header::Text;
use crate::memory;
use crate::number::offset;
use crate::value_type::{MAX_NAME_LEN, ValueType};

/// Maximum offset of a column with 32-bit offsets, and of views; maximum length of one of their values.
pub const MAX_OFFSET: usize = i32::MAX as usize;

/// A growing column of byte strings: consecutive bytes, and offsets of their ends.
pub struct BinaryValues {
    offsets: Vec<i32>,
    bytes: Vec<u8>,
    /// Number of values before the first whose end may be too large for an offset. That value must be removed.
    fitting: usize,
}

impl Default for BinaryValues {
    fn default() -> Self {
        BinaryValues { offsets: vec![0], bytes: Vec::new(), fitting: usize::MAX }
    }
}

/// A growing column of values that kernels append to.
///
/// # Safety
///
/// `writer` reserves memory for the values, and for the bytes that its `ValueWriter` may write after a value.
pub unsafe trait Values {
    type Writer<'w>: ValueWriter
    where
        Self: 'w;

    fn count(&self) -> usize;

    /// Appends a value.
    fn push(&mut self, value: &[u8]);

    /// Truncates to this many values.
    fn truncate(&mut self, count: usize);

    /// Returns a writer that appends at most `count` values of at most `bytes` bytes together.
    fn writer(&mut self, count: usize, bytes: usize, progress: Progress) -> Self::Writer<'_>;
}

/// Appends to a growing column of values, in memory that was reserved.
///
/// # Safety
///
/// A value that is appended has the bytes that were passed, `count` is the number of values, and each function reads
/// and writes only what its contract allows.
pub unsafe trait ValueWriter {
    fn count(&self) -> usize;

    /// Appends a value without bytes.
    ///
    /// # Safety
    ///
    /// The writer was made for this value.
    unsafe fn push_empty(&mut self);

    /// Appends a value of at most 63 bytes.
    ///
    /// # Safety
    ///
    /// The writer was made for this value; `COPY` bytes are readable at `from`.
    unsafe fn push_short(&mut self, from: *const u8, len: usize);

    /// Appends a value of any length.
    ///
    /// # Safety
    ///
    /// The writer was made for this value; `len` bytes rounded up to `COPY`, and at least `COPY`, are readable at
    /// `from`.
    unsafe fn push_long(&mut self, from: *const u8, len: usize);

    /// Appends at most 16 bytes in reverse order.
    ///
    /// # Safety
    ///
    /// The writer was made for this value; 16 bytes are readable at `from`; `len` is between 1 and 16.
    unsafe fn push_reversed(&mut self, from: *const u8, len: usize);
}

/// Share of the input that was processed, to estimate the memory for the rest.
#[derive(Debug, Clone, Copy, Default)]
pub struct Progress {
    /// Number of input bytes that were processed.
    pub bytes: usize,
    /// Number of all input bytes.
    pub all: usize,
}

impl Progress {
    /// Estimated final length of an output of this length so far: based on the share of processed input, plus a
    /// sixteenth.
    fn estimate(self, len: usize) -> usize {
        match self.bytes {
            0 => len,
            progress => (len as u128 * self.all.max(progress) as u128 * 17 / 16 / progress as u128) as usize,
        }
    }

    /// Reserves memory for `more` elements. If the vector must grow, it grows to the estimated final length.
    #[inline(always)]
    pub fn reserve<T>(self, out: &mut Vec<T>, more: usize) {
        if out.capacity() - out.len() < more {
            self.grow(out, more);
        }
    }

    #[cold]
    #[inline(never)]
    fn grow<T>(self, out: &mut Vec<T>, more: usize) {
        let len = out.len();
        let rest = self.estimate(len).saturating_sub(len).saturating_add(more);
        // If the estimate cannot be allocated, there may be memory for `more` elements.
        if rest < len / 8 || out.try_reserve_exact(rest).is_err() {
            memory::reserve(out, more);
        }
    }
}

impl BinaryValues {
    /// Appends the bytes of a value in reverse order.
    #[inline]
    pub fn push_reversed(&mut self, value: &[u8]) {
        memory::reserve(&mut self.bytes, value.len());
        self.bytes.extend(value.iter().rev());
        self.end_value();
    }

    /// Appends a value, whose bytes `write` appends to the buffer; appends nothing if `write` fails.
    #[inline]
    pub fn push_written<T, E>(&mut self, write: impl FnOnce(&mut Vec<u8>) -> Result<T, E>) -> Result<T, E> {
        let before = self.bytes.len();
        let written = write(&mut self.bytes);
        assert!(self.bytes.len() >= before, "bytes of other values were removed");
        match &written {
            Ok(_) => self.end_value(),
            Err(_) => self.bytes.truncate(before),
        }
        written
    }

    /// Appends values, whose bytes `write` appends to the buffer, and whose ends it appends to `ends`, counted from the
    /// first appended byte.
    pub fn push_written_values(&mut self, ends: &mut Vec<usize>, write: impl FnOnce(&mut Vec<u8>, &mut Vec<usize>)) {
        let (before, count) = (self.bytes.len(), self.count());
        ends.clear();
        write(&mut self.bytes, ends);
        let added = self.bytes.len().checked_sub(before).expect("bytes of other values were removed");
        assert!(ends.is_sorted() && ends.last().copied().unwrap_or(0) == added, "values end where their bytes end");
        memory::reserve(&mut self.offsets, ends.len());
        self.offsets.extend(ends.iter().map(|end| offset(before + end)));
        self.check_end(count);
    }

    #[inline]
    fn end_value(&mut self) {
        self.check_end(self.count());
        memory::push(&mut self.offsets, offset(self.bytes.len()));
    }

    /// Notes whether values after the first `before` have ends that are too large for an offset.
    #[inline(always)]
    fn check_end(&mut self, before: usize) {
        if self.bytes.len() > MAX_OFFSET {
            self.fitting = self.fitting.min(before);
        }
    }

    #[inline]
    pub fn byte_len(&self) -> usize {
        self.bytes.len()
    }

    pub fn reserve(&mut self, values: usize, bytes: usize) {
        memory::reserve_exact(&mut self.offsets, values);
        memory::reserve_exact(&mut self.bytes, bytes.saturating_add(COPY));
    }

    /// Reserves memory for values. Buffers that must grow, grow to the estimated final length.
    #[inline(always)]
    pub fn reserve_rest(&mut self, count: usize, bytes: usize, progress: Progress) {
        progress.reserve(&mut self.offsets, count);
        progress.reserve(&mut self.bytes, bytes.saturating_add(COPY));
    }

    /// Appends the values of another column.
    pub fn extend(&mut self, other: &BinaryValues, progress: Progress) {
        let base = offset(self.bytes.len());
        progress.reserve(&mut self.bytes, other.bytes.len() + COPY);
        extend_past_caches(&mut self.bytes, &other.bytes);
        assert_eq!(other.fitting, usize::MAX, "a value that is too large was not removed");
        self.check_end(self.count());
        extend_ends(&mut self.offsets, &other.offsets, base, progress);
    }

    /// Removes the values from `from` on, except those in the given ranges, which are sorted and do not overlap.
    pub fn retain(&mut self, from: usize, kept: &[Range<usize>]) {
        let (mut count, mut len, mut next) = (from, self.offsets[from] as usize, from);
        for range in kept {
            assert!(next <= range.start && range.start <= range.end, "ranges overlap");
            next = range.end;
            let (start, end) = (self.offsets[range.start] as usize, self.offsets[range.end] as usize);
            self.bytes.copy_within(start..end, len);
            for value in range.clone() {
                count += 1;
                self.offsets[count] = offset(self.offsets[value + 1] as usize - start + len);
            }
            len += end - start;
        }
        self.truncate(count);
    }

    /// Index of the first value from `from` on that is not UTF-8. Earlier values were validated before.
    pub fn first_not_text(&self, from: usize) -> Option<usize> {
        let start = self.offsets[from] as usize;
        let bytes = &self.bytes[start..];
        if bytes.is_ascii() {
            return None;
        }
        let ends = &self.offsets[from..];
        let begins = |end: &i32| bytes.get(*end as usize - start).is_none_or(|byte| byte & 0xc0 != 0x80);
        if simdutf8::basic::from_utf8(bytes).is_ok() && ends.iter().all(begins) {
            return None;
        }
        let value = |ends: &[i32]| &bytes[ends[0] as usize - start..ends[1] as usize - start];
        ends.windows(2).position(|ends| std::str::from_utf8(value(ends)).is_err()).map(|index| from + index)
    }

    #[inline]
    pub fn get(&self, value: usize) -> &[u8] {
        &self.bytes[self.offsets[value] as usize..self.offsets[value + 1] as usize]
    }

    /// The offsets of the values, the first of which is 0, and their bytes.
    pub fn into_parts(self) -> (Vec<i32>, Vec<u8>) {
        assert_eq!(self.fitting, usize::MAX, "a value that is too large was not removed");
        (shrunk(self.offsets), shrunk(self.bytes))
    }
}

/// Shrinks a vector that uses less than half of its memory. The standard library would abort the process if the
/// allocator has to copy the elements and has no memory for the copy.
pub fn shrunk<T: Copy>(elements: Vec<T>) -> Vec<T> {
    let (len, capacity) = (elements.len(), elements.capacity());
    let Ok(layout) = Layout::array::<T>(capacity) else { return elements };
    let size = len * size_of::<T>();
    if size == 0 || capacity / 2 <= len {
        return elements;
    }
    let mut elements = ManuallyDrop::new(elements);
    // SAFETY: the vector allocated its memory with this layout, and `size` is not 0 and smaller.
    let moved = unsafe { realloc(elements.as_mut_ptr().cast(), layout, size) }.cast::<T>();
    let (start, capacity) = match moved.is_null() {
        // The allocation failed, so the elements are still at their old address.
        true => (elements.as_mut_ptr(), capacity),
        false => (moved, len),
    };
    // SAFETY: the first `len` elements are at `start`, in memory for `capacity` of them that nothing else owns.
    unsafe { Vec::from_raw_parts(start, len, capacity) }
}

// SAFETY: the writer has memory for all values and bytes, and `COPY` bytes more.
unsafe impl Values for BinaryValues {
    type Writer<'w> = Writer<'w>;

    #[inline]
    fn count(&self) -> usize {
        self.offsets.len() - 1
    }

    #[inline]
    fn push(&mut self, value: &[u8]) {
        memory::extend(&mut self.bytes, value);
        self.end_value();
    }

    fn truncate(&mut self, values: usize) {
        self.offsets.truncate(values.saturating_add(1));
        if values <= self.fitting {
            self.fitting = usize::MAX;
            let end = self.offsets.last().map_or(0, |end| *end as usize);
            self.bytes.truncate(end);
        }
    }

    #[inline(always)]
    fn writer(&mut self, values: usize, bytes: usize, progress: Progress) -> Writer<'_> {
        self.reserve_rest(values, bytes, progress);
        let (count, len) = (self.offsets.len(), self.bytes.len());
        Writer { ends: self.offsets.as_mut_ptr(), count, start: self.bytes.as_mut_ptr(), len, values: self }
    }
}

/// Growing column of text. Kernels validate the bytes that they append; other code can only append `str`.
#[derive(Default)]
pub struct Utf8<V>(pub(super) V);

impl<V> Deref for Utf8<V> {
    type Target = V;

    #[inline]
    fn deref(&self) -> &V {
        &self.0
    }
}

impl<V: Values> Utf8<V> {
    #[inline]
    pub fn push(&mut self, text: &str) {
        self.0.push(text.as_bytes());
    }

    /// Appends the text of a key.
    #[inline]
    pub fn push_key(&mut self, key: &Text<'_>) {
        self.0.push(key.as_bytes());
    }

    pub fn truncate(&mut self, count: usize) {
        self.0.truncate(count);
    }

    pub fn into_inner(self) -> V {
        self.0
    }
}

impl Utf8<BinaryValues> {
    /// Appends the name of a type, or an empty value.
    #[inline]
    pub fn push_name(&mut self, value_type: Option<ValueType>) {
        let (name, len) = value_type.map_or(([0; MAX_NAME_LEN], 0), ValueType::padded_name);
        let before = self.0.bytes.len();
        // A copy of a fixed size needs no call of memcpy.
        memory::extend(&mut self.0.bytes, &name);
        self.0.bytes.truncate(before + len);
        self.0.end_value();
    }

    pub fn extend(&mut self, other: &Self, progress: Progress) {
        self.0.extend(&other.0, progress);
    }

    pub fn retain(&mut self, from: usize, kept: &[Range<usize>]) {
        self.0.retain(from, kept);
    }
}

/// Appends many bytes with stores that bypass the caches, so that the target is not read before it is written.
#[cfg(all(target_arch = "x86_64", not(miri)))]
fn extend_past_caches(to: &mut Vec<u8>, bytes: &[u8]) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_sfence, _mm_stream_si128};

    memory::reserve(to, bytes.len());
    let head = to.spare_capacity_mut().as_ptr().align_offset(16).min(bytes.len());
    let (head, rest) = bytes.split_at(head);
    let (lanes, tail) = rest.as_chunks::<16>();
    to.extend_from_slice(head);
    let target = to.spare_capacity_mut().as_mut_ptr().cast::<__m128i>();
    // SAFETY: memory for all bytes was reserved, so that the lanes fit after the head, where the target is
    // aligned to 16 bytes if there are any lanes. All of them are written before the length counts them.
    unsafe {
        for (number, lane) in lanes.iter().enumerate() {
            _mm_stream_si128(target.add(number), _mm_loadu_si128(lane.as_ptr().cast()));
        }
        // Makes these bytes visible to other threads before later writes.
        _mm_sfence();
        to.set_len(to.len() + lanes.as_flattened().len());
    }
    to.extend_from_slice(tail);
}

#[cfg(any(not(target_arch = "x86_64"), miri))]
fn extend_past_caches(to: &mut Vec<u8>, bytes: &[u8]) {
    to.extend_from_slice(bytes);
}

/// Appends the offsets of another column, except the first, after `base` bytes or elements.
pub fn extend_ends(ends: &mut Vec<i32>, others: &[i32], base: i32, progress: Progress) {
    progress.reserve(ends, others.len());
    // A value whose end wraps is removed before it is read.
    ends.extend(others[1..].iter().map(|end| end.wrapping_add(base)));
}

/// Appends to a growing column of byte strings. When the writer is dropped, the appended bytes become part of the
/// column, except after a panic, when they may not be valid for it.
pub struct Writer<'r> {
    values: &'r mut BinaryValues,
    ends: *mut i32,
    count: usize,
    start: *mut u8,
    len: usize,
}

impl Writer<'_> {
    /// End of the bytes, where the next value begins. `COPY` bytes beyond the reserved bytes are writable.
    #[inline(always)]
    pub fn end(&mut self) -> *mut u8 {
        // SAFETY: `len` is at most the capacity of the bytes.
        unsafe { self.start.add(self.len) }
    }

    /// Ends a value of bytes that were written to `end`.
    ///
    /// # Safety
    ///
    /// The bytes were written, and the writer was made for this value and these bytes.
    #[inline(always)]
    pub unsafe fn end_value(&mut self, len: usize) {
        self.len += len;
        debug_assert!(self.len <= self.values.bytes.capacity() && self.count < self.values.offsets.capacity());
        // SAFETY: room for the value was reserved. Drop detects wrapped offsets.
        unsafe { self.ends.add(self.count).write(offset(self.len)) };
        self.count += 1;
    }

    /// Appends a value of at most 8 bytes.
    ///
    /// # Safety
    ///
    /// The writer was made for this value and its bytes.
    #[inline(always)]
    pub unsafe fn push_padded(&mut self, (bytes, len): ([u8; 8], usize)) {
        // SAFETY: `COPY` bytes are writable at the end, of which `len` are kept.
        unsafe {
            self.end().cast::<[u8; 8]>().write_unaligned(bytes);
            self.end_value(len);
        }
    }
}

// SAFETY: a value is the first `len` of the bytes that are copied, and `end_value` counts it.
unsafe impl ValueWriter for Writer<'_> {
    #[inline(always)]
    fn count(&self) -> usize {
        self.count - 1
    }

    #[inline(always)]
    unsafe fn push_empty(&mut self) {
        // SAFETY: the caller's contract.
        unsafe { self.end_value(0) };
    }

    #[inline(always)]
    unsafe fn push_short(&mut self, from: *const u8, len: usize) {
        // SAFETY: the caller's contract; `COPY` bytes are writable at the end.
        unsafe {
            copy(from, self.end());
            self.end_value(len);
        }
    }

    #[inline(always)]
    unsafe fn push_long(&mut self, from: *const u8, len: usize) {
        // SAFETY: the caller's contract; `COPY` bytes are writable after those of the value.
        unsafe {
            copy_long(from, self.end(), len);
            self.end_value(len);
        }
    }

    #[inline(always)]
    unsafe fn push_reversed(&mut self, from: *const u8, len: usize) {
        debug_assert!((1..=16).contains(&len));
        // SAFETY: the caller's contract; `COPY` bytes are writable at the end.
        unsafe {
            write_reversed(from, self.end(), len);
            self.end_value(len);
        }
    }
}

impl Drop for Writer<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        let before = self.values.count();
        // SAFETY: this many offsets and bytes were written: `end_value` counts them.
        unsafe {
            self.values.offsets.set_len(self.count);
            self.values.bytes.set_len(self.len);
        }
        self.values.check_end(before);
    }
}

/// Appends to a growing buffer of bytes, in memory that was reserved.
pub struct Tail<'b> {
    bytes: &'b mut Vec<u8>,
    start: *mut u8,
    len: usize,
}

impl<'b> Tail<'b> {
    /// Reserves memory for `max` bytes, and for one copy beyond.
    #[inline(always)]
    pub fn new(bytes: &'b mut Vec<u8>, max: usize) -> Self {
        memory::reserve(bytes, max.saturating_add(COPY));
        Tail { start: bytes.as_mut_ptr(), len: bytes.len(), bytes }
    }

    /// End of the bytes, where the next one is written.
    #[inline(always)]
    pub fn end(&mut self) -> *mut u8 {
        // SAFETY: `len` is at most the capacity of the bytes.
        unsafe { self.start.add(self.len) }
    }

    /// Keeps this many bytes that were written to `end`.
    ///
    /// # Safety
    ///
    /// The bytes were written, and the tail was made for them.
    #[inline(always)]
    pub unsafe fn keep(&mut self, len: usize) {
        self.len += len;
        debug_assert!(self.len <= self.bytes.capacity());
    }

    /// Bytes of the buffer from offset `from` on.
    pub fn since(&self, from: usize) -> &[u8] {
        assert!(from <= self.len);
        // SAFETY: this many bytes were written.
        unsafe { slice::from_raw_parts(self.start.add(from), self.len - from) }
    }
}

impl Drop for Tail<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: this many bytes were written.
        unsafe { self.bytes.set_len(self.len) };
    }
}
