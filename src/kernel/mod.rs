//! Kernels: the loops that decode, scan and encode headers for blocks of rows.
//!
//! ```text
//!            rows of a column, of a record batch, of one message
//!                              │
//!              Block: up to 64 rows, 64 KiB           arrow::rows::RowSource::append
//!                              │
//!   ┌──────────────────────────▼───────────────────────────┐
//!   │ kernel (decode, select, validate, encode, convert)   │
//!   │   for each row                                       │
//!   │     regular header: lengths of 1 byte    ──▶ output  │
//!   │     longer header:  lengths of 2 bytes   ──▶ output  │
//!   │     other header: WireLayout::irregular  ──▶ output  │
//!   └────────┬─────────────────────────────────┬───────────┘
//!            │ all rows done                   │ a row that is not readable, or too near the end
//!            ▼                                 ▼ of the buffer: its output is rolled back
//!        next block               arrow::run::OutputRows::append_row, which alone creates errors;
//!                                 the next block begins after that row
//! ```
//!
//! Decoded values go to a growing column of bytes, or of views of the input ([`views`]): the same loop, two writers.
//!
//! A kernel is a function over `(rows, output)` that returns how many rows it appended. It never reports an error: it
//! stops before the row that it cannot read. On x86-64 each kernel is compiled twice, for the baseline and for AVX2,
//! and [`dispatch`] chooses at run time.
//!
//! Before changing a loop, read this: cold code does not belong in the inner loop (a call there spills every register);
//! copies have a fixed size and no length test; a check for each block is not repeated for each header.

use std::marker::PhantomData;
use std::ptr::NonNull;

pub mod bitmap;
pub mod buffer;
pub mod decode;
pub mod edit;
pub mod encode;
pub mod keys;
pub mod layout;
pub mod lists;
pub mod scan;
pub mod typed_layout;
pub mod varint_layout;
pub mod views;

#[cfg(test)]
#[path = "../../tests/rust/units/kernel.rs"]
mod tests;

/// Maximum number of rows in a block: one for each bit of a 64-bit word.
pub const ROWS: usize = u64::BITS as usize;

/// Maximum number of bytes of a block with several rows.
pub const BYTES: usize = 64 << 10;

/// Number of bytes of one copy.
pub const COPY: usize = 64;

/// Number of readable bytes after each row of a block. A header that begins in the row may be read up to here before
/// its end is compared with the end of the row. The longest is a typed header: two types, two lengths of four bytes, a
/// key of 255 bytes and one copy from the start of its value.
pub const SLACK: usize = 5 + 255 + 5 + COPY;

/// Bytes of a row's headers, which have `SLACK` bytes after them in their buffer.
#[derive(Clone, Copy)]
pub struct Span<'a> {
    start: NonNull<u8>,
    len: usize,
    bytes: PhantomData<&'a [u8]>,
}

impl<'a> Span<'a> {
    /// Returns the bytes `start..end` of a buffer; `None` if fewer than `SLACK` bytes follow them.
    #[inline(always)]
    pub fn new(buffer: &'a [u8], start: usize, end: usize) -> Option<Self> {
        if start > end || end > buffer.len().checked_sub(SLACK)? {
            return None;
        }
        let len = end - start;
        // SAFETY: the start is in the buffer. A pointer into the buffer, unlike one into the row, may read bytes after
        // the row.
        let start = unsafe { NonNull::from(buffer).cast::<u8>().add(start) };
        Some(Span { start, len, bytes: PhantomData })
    }

    /// First byte. `len() + SLACK` bytes are readable from here on.
    #[inline(always)]
    pub fn start(self) -> *const u8 {
        self.start.as_ptr()
    }

    /// Address after the last byte. `SLACK` bytes are readable from here on.
    #[inline(always)]
    pub fn end(self) -> *const u8 {
        self.start().wrapping_add(self.len)
    }

    #[inline(always)]
    pub fn len(self) -> usize {
        self.len
    }

    /// Bytes of the row, without the readable bytes after it.
    #[inline]
    pub fn bytes(self) -> &'a [u8] {
        // SAFETY: `new` checked that the buffer has these bytes, which live for `'a`.
        unsafe { std::slice::from_raw_parts(self.start(), self.len) }
    }
}

/// The rows of one call of a kernel; `None` for a row without a message.
pub struct RowBlock<'a> {
    rows: [Option<Span<'a>>; ROWS],
    len: usize,
    /// Upper bound of the bytes of all rows, for which kernels reserve memory.
    bytes: usize,
}

impl<'a> RowBlock<'a> {
    #[inline(always)]
    pub fn clear(&mut self) {
        (self.len, self.bytes) = (0, 0);
    }

    /// Whether a row of this many bytes still fits this block, which may have `rows` rows.
    #[inline(always)]
    pub fn has_room(&self, rows: usize, bytes: usize) -> bool {
        self.len < rows.min(ROWS) && (self.len == 0 || self.bytes.saturating_add(bytes) <= BYTES)
    }

    #[inline(always)]
    pub fn push(&mut self, row: Option<Span<'a>>) {
        self.rows[self.len] = row;
        self.len += 1;
        self.count_bytes(row.map_or(0, Span::len));
    }

    /// Adds to the number of bytes, for parts of messages other than headers.
    #[inline(always)]
    pub fn count_bytes(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// Truncates to this many rows.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Removes rows from the front.
    pub fn skip(&mut self, rows: usize) {
        self.rows.copy_within(rows..self.len, 0);
        self.len -= rows;
    }

    /// Keeps the rows whose bits are set. The number of bytes remains an upper bound.
    pub fn retain(&mut self, selected: u64) {
        let mut kept = 0;
        for row in (0..self.len).filter(|row| selected >> row & 1 == 1) {
            self.rows[kept] = self.rows[row];
            kept += 1;
        }
        self.len = kept;
    }

    pub fn copy_from(&mut self, other: &Self) {
        (self.rows, self.len, self.bytes) = (other.rows, other.len, other.bytes);
    }

    #[inline(always)]
    pub fn rows(&self) -> &[Option<Span<'a>>] {
        &self.rows[..self.len]
    }

    /// Upper bound of the bytes of all rows.
    pub fn byte_len(&self) -> usize {
        self.bytes
    }
}

impl Default for RowBlock<'_> {
    fn default() -> Self {
        RowBlock { rows: [None; ROWS], len: 0, bytes: 0 }
    }
}

/// Clears a vector and reuses its memory for elements with another lifetime.
pub fn recycle<T, U>(mut memory: Vec<T>) -> Vec<U> {
    memory.clear();
    memory.into_iter().map(|_| unreachable!("it was cleared")).collect()
}

/// Distance between the header being read and the bytes that are prefetched.
#[cfg(all(target_arch = "x86_64", not(miri)))]
const AHEAD: usize = 1 << 10;

/// Prefetches `AHEAD` bytes; never faults. This only pays for long values, because the processor fetches short headers
/// itself.
#[inline(always)]
fn fetch_ahead(from: *const u8) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch has no visible effect, and does not fail for any address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(from.wrapping_add(AHEAD).cast()) };
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = from;
}

/// Copies 64 bytes.
///
/// # Safety
///
/// 64 bytes are readable at `from` and writable at `to`, and the two do not overlap.
#[inline(always)]
unsafe fn copy(from: *const u8, to: *mut u8) {
    // SAFETY: the caller's contract.
    unsafe { to.copy_from_nonoverlapping(from, COPY) }
}

/// Copies `len` bytes as copies of 64 bytes, the last of which may write up to 63 bytes more.
///
/// # Safety
///
/// `len` rounded up to 64 bytes, and at least 64, are readable at `from` and writable at `to`, and the two do not
/// overlap.
#[inline(always)]
unsafe fn copy_long(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: the caller's contract; the loop ends with the copy that contains the last byte.
    unsafe {
        copy(from, to);
        let mut done = COPY;
        while done < len {
            copy(from.add(done), to.add(done));
            done += COPY;
        }
    }
}

/// Returns whether one of the first `len` bytes is not ASCII.
///
/// # Safety
///
/// `COPY` bytes are readable at `bytes`; `len` is at most 63.
#[inline(always)]
unsafe fn has_high_bit(bytes: *const u8, len: usize) -> bool {
    const HIGH: u64 = 0x8080_8080_8080_8080;
    /// High bits of `COPY` bytes, then zeros.
    const MASK: [u64; 2 * COPY / 8] = {
        let mut mask = [0; 2 * COPY / 8];
        let mut word = 0;
        while word < COPY / 8 {
            mask[word] = HIGH;
            word += 1;
        }
        mask
    };
    // SAFETY: the caller's contract; of the mask's 128 bytes, 64 are read, the first of them at `64 - len`.
    let (bytes, mask) = unsafe {
        let mask = MASK.as_ptr().cast::<u8>().add(COPY - len);
        (bytes.cast::<[u64; COPY / 8]>().read_unaligned(), mask.cast::<[u64; COPY / 8]>().read_unaligned())
    };
    bytes.iter().zip(mask).fold(0, |high, (bytes, mask)| high | bytes & mask) != 0
}

/// Writes a number of at most 16 bytes in reverse order.
///
/// # Safety
///
/// 16 bytes are readable at `from` and writable at `to`; `len` is between 1 and 16.
#[inline(always)]
unsafe fn write_reversed(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: the caller's contract.
    unsafe {
        let number = u128::from_le_bytes(from.cast::<[u8; 16]>().read()) << (8 * (16 - len));
        to.cast::<[u8; 16]>().write(number.to_be_bytes());
    }
}

/// Defines a function whose body is compiled for the baseline and, on x86-64, for AVX2; the variant is chosen at run
/// time.
macro_rules! dispatch {
    (
        $(#[$meta:meta])*
        pub fn $name:ident<$($life:lifetime,)* $($generic:ident: $bound:path),*>($($arg:ident: $type:ty),* $(,)?) -> $out:ty
            $body:block
    ) => {
        $(#[$meta])*
        pub fn $name<$($life,)* $($generic: $bound),*>($($arg: $type),*) -> $out {
            #[inline(always)]
            fn body<$($life,)* $($generic: $bound),*>($($arg: $type),*) -> $out $body

            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
                fn with_avx2<$($life,)* $($generic: $bound),*>($($arg: $type),*) -> $out {
                    body::<$($generic),*>($($arg),*)
                }
                if $crate::kernel::has_avx2() {
                    // SAFETY: the processor has these features.
                    return unsafe { with_avx2::<$($generic),*>($($arg),*) };
                }
            }
            body::<$($generic),*>($($arg),*)
        }
    };
}
pub(crate) use dispatch;

#[cfg(all(test, target_arch = "x86_64"))]
thread_local! {
    /// Whether this thread runs the kernels for the baseline on every processor.
    static ONLY_BASELINE: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Whether the processor has the features that the AVX2 kernels are compiled for.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub fn has_avx2() -> bool {
    #[cfg(test)]
    if ONLY_BASELINE.get() {
        return false;
    }
    is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("lzcnt")
        && is_x86_feature_detected!("popcnt")
}
