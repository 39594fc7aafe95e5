//! [`MessageBlock`]: opened messages of a batch, which wait for a kernel to read their headers.

use super::filter::{bit_ranges, ones};
use crate::cursor::Cursor;
use crate::kernel::RowBlock;
use crate::traits::{BatchFormat, FieldsOf};

/// Messages for one call of a kernel.
pub(super) struct MessageBlock<'a, B: BatchFormat> {
    pub rows: RowBlock<'a>,
    pub headers: Vec<Cursor<'a>>,
    pub fields: Vec<FieldsOf<'a, B>>,
    /// Number of each message in its value, counted from 1.
    pub numbers: Vec<usize>,
    /// Position reported for every error if the messages were decompressed.
    pub error_byte: Option<usize>,
}

impl<B: BatchFormat> Default for MessageBlock<'_, B> {
    fn default() -> Self {
        let (headers, fields, numbers) = (Vec::new(), Vec::new(), Vec::new());
        MessageBlock { rows: RowBlock::default(), headers, fields, numbers, error_byte: None }
    }
}

impl<'a, B: BatchFormat> MessageBlock<'a, B> {
    pub fn clear(&mut self) {
        self.rows.clear();
        self.headers.clear();
        self.fields.clear();
        self.numbers.clear();
    }

    /// Keeps the messages whose bits are set. The number of bytes stays an upper bound.
    pub fn retain(&mut self, selected: u64) {
        let all = self.headers.len();
        if selected & ones(all) == ones(all) {
            return;
        }
        let mut kept = 0;
        for range in bit_ranges(selected & ones(all)) {
            if range.start > kept {
                self.fields.copy_within(range.clone(), kept);
                self.headers.copy_within(range.clone(), kept);
                self.numbers.copy_within(range.clone(), kept);
            }
            kept += range.len();
        }
        self.fields.truncate(kept);
        self.headers.truncate(kept);
        self.numbers.truncate(kept);
        self.rows.retain(selected);
    }

    /// Moves the messages from `first` on to another block.
    pub fn split_off(&mut self, first: usize, rest: &mut Self) {
        rest.clear();
        rest.error_byte = self.error_byte;
        rest.fields.extend(self.fields.drain(first..));
        rest.headers.extend(self.headers.drain(first..));
        rest.numbers.extend(self.numbers.drain(first..));
        rest.rows.copy_from(&self.rows);
        rest.rows.skip(first);
        self.rows.truncate(first);
    }

    /// Removes messages from the front.
    pub fn skip(&mut self, rows: usize) {
        self.fields.drain(..rows);
        self.rows.skip(rows);
        self.headers.drain(..rows);
        self.numbers.drain(..rows);
    }
}
