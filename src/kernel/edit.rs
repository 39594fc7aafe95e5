//! [`find`] lists the headers of a block of rows that an edit changes, and their positions. [`crate::op::edit`] writes the
//! new headers, and copies the bytes between them.

use super::keys::KeySet;
use super::layout::{RawHeader, TEXT, WireLayout};
use super::scan::{RowVisitor, Scratch, scan_block};
use super::{RowBlock, Span, dispatch};
use crate::memory;
use crate::value_type::ValueType;

/// A header to change, with offsets from the start of its row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hit {
    pub row: usize,
    /// The caller's number of the key; `None` for a header with another key.
    pub place: Option<usize>,
    /// End of the previous header; the row's start for the first.
    pub start: usize,
    pub value: usize,
    /// Where the value and the header end.
    pub end: usize,
    pub is_null: bool,
    pub value_type: Option<ValueType>,
}

dispatch! {
    /// Appends the headers with one of these keys, or with any other key where `others`, to `hits`. Returns how many rows
    /// precede the first that has to be left to the slow path; hits of later rows may have been appended.
    pub fn find<'a, F: WireLayout>(
        block: &RowBlock<'a>,
        limit: usize,
        scratch: &mut Scratch,
        keys: &KeySet,
        others: bool,
        hits: &mut Vec<Hit>,
    ) -> usize {
        let mut visitor = FindHeaders { rows: block.rows(), next: 0, start: 0, end: 0, keys, others, hits };
        // SAFETY: the visitor keeps nothing but offsets, in memory that grows.
        unsafe { scan_block::<F, _>(block, limit, scratch, &mut Layout(&mut visitor, std::marker::PhantomData::<fn() -> F>)) }
    }
}

struct FindHeaders<'f, 'a> {
    rows: &'f [Option<Span<'a>>],
    /// The row that begins next.
    next: usize,
    /// The addresses of the current row, and of the end of its last header.
    start: usize,
    end: usize,
    keys: &'f KeySet,
    others: bool,
    hits: &'f mut Vec<Hit>,
}

/// The visitor of rows in a layout.
struct Layout<'v, 'f, 'a, F>(&'v mut FindHeaders<'f, 'a>, std::marker::PhantomData<fn() -> F>);

impl<'a, F: WireLayout> RowVisitor<'a> for Layout<'_, '_, 'a, F> {
    #[inline(always)]
    unsafe fn null(&mut self) -> bool {
        self.0.next += 1;
        true
    }

    #[inline(always)]
    unsafe fn begin(&mut self, _headers: Option<usize>) {
        let find = &mut *self.0;
        find.start = find.rows[find.next].map_or(0, |row| row.start().addr());
        find.end = find.start;
        find.next += 1;
    }

    #[inline(always)]
    unsafe fn header(&mut self, row: usize, header: RawHeader) -> bool {
        let FindHeaders { start, end: last, keys, others, hits, .. } = &mut *self.0;
        let RawHeader { key, key_len, key_type, value, value_len, is_null, value_type } = header;
        let value = value.addr();
        let (from, end) = (*last - *start, value + value_len - *start);
        let hit = |place| Hit { row, place, start: from, value: value - *start, end, is_null, value_type };
        let mut is_other = *others;
        // SAFETY: the caller's contract: at least `COPY` bytes are readable at the key.
        unsafe {
            keys.find::<F>(key, key_len, key_type.or(Some(TEXT)), |requested| {
                memory::push(hits, hit(Some(requested.index)));
                is_other = false;
                true
            });
        }
        if is_other {
            memory::push(hits, hit(None));
        }
        *last = value + value_len;
        true
    }
}
