//! [`encode`] and [`convert`] write the headers of a block of rows in a layout and append them to a binary column.

use std::marker::PhantomData;

use super::buffer::{BinaryValues, Progress, Values as _, Writer};
use super::layout::{Begin, Layout, RawHeader, Rules, WireLayout};
use super::lists::ListBlock;
use super::scan::{RowVisitor, Scratch, scan_block};
use super::varint_layout::MAX_IN_BYTE;
use super::{RowBlock, dispatch};

/// Maximum number of bytes that encoding these rows appends, saturated at `usize::MAX`.
pub fn max_bytes(layout: Layout, lists: &ListBlock<'_>) -> usize {
    max_written(layout, lists.byte_len(), lists.header_count(), lists.row_count())
}

/// Maximum number of bytes of keys, values, their framing and the counts of rows.
fn max_written(layout: Layout, bytes: usize, headers: usize, rows: usize) -> usize {
    let (framing, counts) = (headers.saturating_mul(layout.max_framing), rows.saturating_mul(layout.max_count));
    bytes.saturating_add(framing).saturating_add(counts)
}

dispatch! {
    /// Encodes rows up to the first that needs the slow path, and returns the number of encoded rows. Rows without a
    /// list are encoded as no headers.
    pub fn encode<F: WireLayout>(lists: &ListBlock<'_>, rules: Rules, progress: Progress, out: &mut BinaryValues) -> usize {
        let (rows, bytes) = (lists.row_count(), max_bytes(F::LAYOUT, lists));
        // SAFETY: the writer was made for these rows.
        unsafe { lists.for_each_row::<F, _>(&mut EncodeHeaders::<F, true>::new(out.writer(rows, bytes, progress), rules)) }
    }
}

/// Maximum number of bytes that converting a block of one layout to another appends, saturated at `usize::MAX`.
pub fn max_converted_len(source: Layout, target: Layout, block: &RowBlock<'_>) -> usize {
    max_written(target, block.byte_len(), block.byte_len() / source.min_len, block.rows().len())
}

dispatch! {
    /// Writes rows of layout `S` in layout `F`, up to the first that needs the slow path, such as a row without a
    /// message. Returns the number of written rows.
    pub fn convert<S: WireLayout, F: WireLayout>(
        block: &RowBlock<'_>,
        limit: usize,
        rules: Rules,
        scratch: &mut Scratch,
        progress: Progress,
        out: &mut BinaryValues,
    ) -> usize {
        if F::TYPED && !S::TYPED && rules.default_type.is_none() {
            return 0;
        }
        let (before, rules) = (out.count(), Rules { refuses_nulls: true, ..rules });
        let to = out.writer(block.rows().len(), max_converted_len(S::LAYOUT, F::LAYOUT, block), progress);
        // SAFETY: the writer was made for this block.
        let done = unsafe {
            match S::MAX_COUNT {
                0 => scan_block::<S, _>(block, limit, scratch, &mut EncodeHeaders::<F, false>::new(to, rules)),
                _ => scan_block::<S, _>(block, limit, scratch, &mut EncodeHeaders::<F, true>::new(to, rules)),
            }
        };
        out.truncate(before + done);
        done
    }
}

/// Writes the rows for which its writer was created. `COUNTED`: the number of headers of a row is known at its start.
struct EncodeHeaders<'w, F, const COUNTED: bool> {
    to: Writer<'w>,
    /// Start of the row, and of its next header.
    row: *mut u8,
    next: *mut u8,
    /// Headers of the row so far, unless their number is known at its start.
    headers: usize,
    rules: Rules,
    layout: PhantomData<F>,
}

impl<'w, F, const COUNTED: bool> EncodeHeaders<'w, F, COUNTED> {
    fn new(mut to: Writer<'w>, rules: Rules) -> Self {
        let row = to.end();
        EncodeHeaders { to, row, next: row, headers: 0, rules, layout: PhantomData }
    }
}

impl<'a, F: WireLayout, const COUNTED: bool> RowVisitor<'a> for EncodeHeaders<'_, F, COUNTED> {
    #[inline(always)]
    unsafe fn null(&mut self) -> bool {
        // SAFETY: the caller's contract.
        unsafe {
            self.begin(Begin { offset: 0, count: Some(0) });
            !self.rules.refuses_nulls && self.end()
        }
    }

    #[inline(always)]
    unsafe fn begin(&mut self, begin: Begin) {
        self.row = self.to.end();
        self.headers = 0;
        // SAFETY: the writer was made for a count of each row. An unknown count is written as 1, which takes one byte.
        let len = unsafe { F::write_count(self.row, begin.count.unwrap_or(1)) };
        self.next = self.row.wrapping_add(len);
    }

    #[inline(always)]
    unsafe fn header(&mut self, _row: usize, header: RawHeader) -> bool {
        if !COUNTED {
            self.headers += 1;
        }
        // SAFETY: the writer was made for all keys and values of the block and for the framing of each header, and has
        // `COPY` bytes more; the caller's contract.
        match unsafe { F::write(self.next, &header, self.rules) } {
            Some(len) => {
                self.next = self.next.wrapping_add(len);
                true
            }
            None => false,
        }
    }

    #[inline(always)]
    unsafe fn end(&mut self) -> bool {
        if !COUNTED && F::MAX_COUNT > 0 {
            match self.headers {
                0 => self.next = self.row,
                // SAFETY: as in `begin`; this many headers have a count of one byte.
                headers @ 1..=MAX_IN_BYTE => _ = unsafe { F::write_count(self.row, headers) },
                _ => return false,
            }
        }
        let len = self.next.addr() - self.row.addr();
        if len > self.rules.max_bytes {
            return false;
        }
        // SAFETY: this many bytes of the row were written.
        unsafe { self.to.end_value(len) };
        true
    }
}
