//! [`find`] lists the headers of a block of rows that an edit may change, and their positions. [`crate::op::edit`]
//! changes them.

use std::marker::PhantomData;

use super::keys::KeySet;
use super::layout::{Begin, RawHeader, TEXT, WireLayout};
use super::scan::{RowVisitor, Scratch, scan_block};
use super::{RowBlock, Span, dispatch};
use crate::memory;
use crate::value_type::ValueType;

/// A header that an edit may change. Offsets count from the start of its row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FoundHeader {
    pub row: usize,
    /// Index of the edit's entry with its key; `None` without one.
    pub entry: Option<usize>,
    pub start: usize,
    pub value: usize,
    /// End of the value and of the header.
    pub end: usize,
    pub is_null: bool,
    pub value_type: Option<ValueType>,
}

dispatch! {
    /// Appends the headers with one of these keys, or with any other key if `others`, to `found`. Returns the number of
    /// rows before the first that needs the slow path; headers of later rows may have been appended.
    pub fn find<'a, F: WireLayout>(
        block: &RowBlock<'a>,
        limit: usize,
        scratch: &mut Scratch,
        keys: &KeySet,
        others: bool,
        found: &mut Vec<FoundHeader>,
    ) -> usize {
        let mut visitor =
            FindHeaders { rows: block.rows(), next: 0, start: 0, end: 0, keys, others, found, layout: PhantomData::<fn() -> F> };
        // SAFETY: the visitor keeps nothing but offsets, in memory that grows.
        unsafe { scan_block::<F, _>(block, limit, scratch, &mut visitor) }
    }
}

struct FindHeaders<'f, 'a, F> {
    rows: &'f [Option<Span<'a>>],
    /// Index of the next row.
    next: usize,
    /// Addresses of the start of the current row, and of the end of its last header.
    start: usize,
    end: usize,
    keys: &'f KeySet,
    others: bool,
    found: &'f mut Vec<FoundHeader>,
    layout: PhantomData<fn() -> F>,
}

impl<'a, F: WireLayout> RowVisitor<'a> for FindHeaders<'_, 'a, F> {
    #[inline(always)]
    unsafe fn null(&mut self) -> bool {
        self.next += 1;
        true
    }

    #[inline(always)]
    unsafe fn begin(&mut self, begin: Begin) {
        self.start = self.rows[self.next].map_or(0, |row| row.start().addr());
        self.end = self.start + begin.offset;
        self.next += 1;
    }

    #[inline(always)]
    unsafe fn header(&mut self, row: usize, header: RawHeader) -> bool {
        let FindHeaders { start: row_start, end: last_end, keys, others, found, .. } = self;
        let RawHeader { key, key_len, key_type, value, value_len, is_null, value_type } = header;
        let (start, value) = (*last_end - *row_start, value.addr() - *row_start);
        let end = value + value_len;
        let header = |entry| FoundHeader { row, entry, start, value, end, is_null, value_type };
        let mut is_other = *others;
        // SAFETY: the caller's contract: at least `COPY` bytes are readable at the key.
        unsafe {
            keys.find::<F>(key, key_len, key_type.or(Some(TEXT)), |requested| {
                memory::push(found, header(Some(requested.index)));
                is_other = false;
                true
            });
        }
        if is_other {
            memory::push(found, header(None));
        }
        *last_end = *row_start + end;
        true
    }
}
