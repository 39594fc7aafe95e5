//! [`Views`]: values as Arrow views. Values up to 12 bytes are inside the view, longer ones are an offset in a buffer
//! of the input.
//!
//! ```text
//!   ┌────────┬─────────────────────────────┐   up to 12 bytes
//!   │ length │ bytes, then zeros           │
//!   └────────┴─────────────────────────────┘
//!   ┌────────┬─────────┬────────┬──────────┐   more; four bytes each, little-endian
//!   │ length │ first 4 │ buffer │ offset   │
//!   └────────┴─────────┴────────┴──────────┘
//! ```

use std::slice;
use std::sync::Arc;

use super::buffer::{MAX_OFFSET, Progress, Utf8, ValueWriter, Values};
use crate::memory;
use crate::number::fitting;

/// Maximum length of a value inside a view.
const INLINE: usize = 12;

/// Mask of the length of a view, and of the number of its buffer.
const LOW_WORD: u128 = u32::MAX as u128;

/// Address range of a buffer of the input.
#[derive(Debug, Clone, Copy)]
pub struct Window {
    start: usize,
    len: usize,
    buffer: u32,
}

impl Window {
    /// Returns the windows of the buffers, sorted by start, with the indexes that views contain.
    pub fn all<'b>(buffers: impl Iterator<Item = &'b [u8]>) -> Arc<[Window]> {
        let window = |(number, bytes): (usize, &[u8])| Window {
            start: bytes.as_ptr().addr(),
            len: bytes.len(),
            buffer: fitting(number),
        };
        let mut windows: Vec<_> = buffers.enumerate().map(window).collect();
        windows.sort_by_key(|window| window.start);
        windows.into()
    }

    /// The offset of bytes in the buffer, if all of them are inside.
    #[inline(always)]
    fn offset(self, start: usize, len: usize) -> Option<usize> {
        let offset = start.wrapping_sub(self.start);
        (offset <= self.len.min(MAX_OFFSET) && len <= self.len - offset).then_some(offset)
    }
}

/// A growing column of views.
pub struct Views {
    views: Vec<u128>,
    /// Longer values outside the windows. Views refer to this buffer by the number after the last window.
    own: Vec<u8>,
    windows: Arc<[Window]>,
    /// Index of the window that contains the last value.
    last: usize,
    refers: bool,
    /// Number of values before the first whose offset may be too large. That value must be removed.
    fitting: usize,
}

/// The buffers of a finished column.
pub struct ViewParts {
    pub views: Vec<u128>,
    pub own: Vec<u8>,
    pub windows: Arc<[Window]>,
    /// Whether a view, perhaps one that was removed, refers to the input.
    pub refers: bool,
}

impl Views {
    /// Creates an empty column of values that are mostly inside these windows.
    pub fn new(windows: Arc<[Window]>) -> Self {
        Views { views: Vec::new(), own: Vec::new(), windows, last: 0, refers: false, fitting: usize::MAX }
    }

    /// Appends the bytes of a value in reverse order.
    pub fn push_reversed(&mut self, value: &[u8]) {
        let reversed: Vec<u8> = value.iter().rev().copied().collect();
        self.push(&reversed);
    }

    /// Appends the values of another column with the same windows.
    pub fn extend(&mut self, other: &Views, progress: Progress) {
        assert!(Arc::ptr_eq(&self.windows, &other.windows), "views of another input");
        let own = self.own_buffer();
        // Added to the offset of a value outside the windows.
        let base = (self.own.len() as u128) << 96;
        let moved = |view: &u128| {
            let is_own = *view & LOW_WORD > INLINE as u128 && *view >> 64 & LOW_WORD == u128::from(own);
            if is_own { view.wrapping_add(base) } else { *view }
        };
        assert_eq!(other.fitting, usize::MAX, "a value that is too large was not taken back");
        self.check_end(other.own.len());
        progress.reserve(&mut self.views, other.views.len());
        self.views.extend(other.views.iter().map(moved));
        memory::extend(&mut self.own, &other.own);
        self.refers |= other.refers;
    }

    /// Number of bytes outside the input.
    pub fn byte_len(&self) -> usize {
        self.own.len()
    }

    pub fn into_parts(self) -> ViewParts {
        assert_eq!(self.fitting, usize::MAX, "a value that is too large was not taken back");
        let Views { views, own, windows, refers, .. } = self;
        ViewParts { views, own, windows, refers }
    }

    #[inline]
    fn view(&mut self, value: &[u8]) -> u128 {
        let len = value.len();
        if len <= INLINE {
            let mut bytes = [0; 16];
            bytes[4..4 + len].copy_from_slice(value);
            return u128::from_le_bytes(bytes) | len as u128;
        }
        let first = u32::from_le_bytes([value[0], value[1], value[2], value[3]]);
        let (buffer, offset) = self.locate(value);
        len as u128 | u128::from(first) << 32 | u128::from(buffer) << 64 | (offset as u128) << 96
    }

    /// The buffer of a value and the offset in it.
    #[inline(always)]
    fn locate(&mut self, value: &[u8]) -> (u32, usize) {
        let (start, len) = (value.as_ptr().addr(), value.len());
        if let Some(window) = self.windows.get(self.last)
            && let Some(offset) = window.offset(start, len)
        {
            self.refers = true;
            return (window.buffer, offset);
        }
        self.locate_elsewhere(value)
    }

    #[cold]
    #[inline(never)]
    fn locate_elsewhere(&mut self, value: &[u8]) -> (u32, usize) {
        let (start, len) = (value.as_ptr().addr(), value.len());
        let after = self.windows.partition_point(|window| window.start <= start);
        if let Some(index) = after.checked_sub(1)
            && let Some(offset) = self.windows[index].offset(start, len).filter(|_| len <= MAX_OFFSET)
        {
            (self.last, self.refers) = (index, true);
            return (self.windows[index].buffer, offset);
        }
        let offset = self.own.len();
        self.check_end(len);
        memory::extend(&mut self.own, value);
        // A value whose offset is too large is removed before the view is read.
        (self.own_buffer(), offset & u32::MAX as usize)
    }

    /// Number of the own buffer, which follows the buffers of the windows.
    fn own_buffer(&self) -> u32 {
        fitting(self.windows.len())
    }

    /// Notes whether the end of the next values, of this many bytes, is too large for an offset.
    fn check_end(&mut self, bytes: usize) {
        if bytes > MAX_OFFSET.saturating_sub(self.own.len()) {
            self.fitting = self.fitting.min(self.views.len());
        }
    }
}

impl Utf8<Views> {
    /// Creates an empty column of text that is mostly inside these windows.
    pub fn new(windows: Arc<[Window]>) -> Self {
        Utf8(Views::new(windows))
    }

    /// Appends the values of another column, like [`Views::extend`].
    pub fn extend(&mut self, other: &Self, progress: Progress) {
        self.0.extend(&other.0, progress);
    }
}

// SAFETY: the writer has memory for all views, and writes nothing after a view.
unsafe impl Values for Views {
    type Writer<'w> = ViewWriter<'w>;

    #[inline]
    fn count(&self) -> usize {
        self.views.len()
    }

    #[inline]
    fn push(&mut self, value: &[u8]) {
        let view = self.view(value);
        memory::push(&mut self.views, view);
    }

    /// Truncates to this many values. Bytes outside the input remain, without a view that refers to them.
    fn truncate(&mut self, count: usize) {
        self.views.truncate(count);
        if count <= self.fitting {
            self.fitting = usize::MAX;
        }
    }

    #[inline(always)]
    fn writer(&mut self, count: usize, _bytes: usize, progress: Progress) -> ViewWriter<'_> {
        progress.reserve(&mut self.views, count);
        ViewWriter { start: self.views.as_mut_ptr(), count: self.views.len(), views: self }
    }
}

/// Appends to a growing column of views. When the writer is dropped, the appended views become part of the column.
pub struct ViewWriter<'w> {
    views: &'w mut Views,
    start: *mut u128,
    count: usize,
}

impl ViewWriter<'_> {
    /// # Safety
    ///
    /// The writer was made for this value.
    #[inline(always)]
    unsafe fn push(&mut self, view: u128) {
        debug_assert!(self.count < self.views.views.capacity());
        // SAFETY: room for the view was reserved.
        unsafe { self.start.add(self.count).write(view) };
        self.count += 1;
    }
}

// SAFETY: a view has the bytes that were passed or refers to them, and `push` counts it.
unsafe impl ValueWriter for ViewWriter<'_> {
    #[inline(always)]
    fn count(&self) -> usize {
        self.count
    }

    #[inline(always)]
    unsafe fn push_empty(&mut self) {
        // SAFETY: the caller's contract.
        unsafe { self.push(0) };
    }

    #[inline(always)]
    unsafe fn push_short(&mut self, from: *const u8, len: usize) {
        // SAFETY: the caller's contract; `COPY` bytes are readable, which are more than the 16 that are read.
        unsafe {
            if len <= INLINE {
                let head = u128::from_le_bytes(from.cast::<[u8; 16]>().read());
                self.push(len as u128 | (head & ((1 << (8 * len)) - 1)) << 32);
            } else {
                self.push_long(from, len);
            }
        }
    }

    #[inline(always)]
    unsafe fn push_long(&mut self, from: *const u8, len: usize) {
        // SAFETY: the caller's contract: the bytes are readable, and the writer was made for the value.
        unsafe {
            let view = self.views.view(slice::from_raw_parts(from, len));
            self.push(view);
        }
    }

    #[inline(always)]
    unsafe fn push_reversed(&mut self, from: *const u8, len: usize) {
        debug_assert!((1..=16).contains(&len));
        // SAFETY: the caller's contract: 16 bytes are readable, of which the lowest `len` are moved to the front.
        // The writer was made for the value.
        unsafe {
            let number = u128::from_le_bytes(from.cast::<[u8; 16]>().read()) << (8 * (16 - len));
            let view = self.views.view(&number.to_be_bytes()[..len]);
            self.push(view);
        }
    }
}

impl Drop for ViewWriter<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        // SAFETY: this many views were written: `push` counts them.
        unsafe { self.views.views.set_len(self.count) };
    }
}
