//! [`Lists`]: where the lists of a growing column end, and which rows have one.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array as _, ArrayRef, ListArray};

use super::{binary, schema};
use crate::kernel::bitmap::Validity;
use crate::kernel::buffer::{Progress, extend_ends};
use crate::memory;

/// Lists that grow, and can be rolled back. Their items are columns beside them.
pub struct Lists {
    /// Number of items before the end of each list, the first being 0.
    pub ends: Vec<i32>,
    pub valid: Validity,
}

impl Default for Lists {
    fn default() -> Self {
        Lists { ends: vec![0], valid: Validity::default() }
    }
}

impl Lists {
    #[inline]
    pub fn count(&self) -> usize {
        self.ends.len() - 1
    }

    /// Items of the lists that have ended.
    #[inline]
    pub fn item_count(&self) -> usize {
        self.ends.last().map_or(0, |end| *end as usize)
    }

    pub fn items(&self, rows: &Range<usize>) -> Range<usize> {
        self.ends[rows.start] as usize..self.ends[rows.end] as usize
    }

    /// Ends the list of the next row after so many items.
    #[inline]
    pub fn push(&mut self, items: usize, is_valid: bool) {
        memory::push(&mut self.ends, items as i32);
        self.valid.push(is_valid);
    }

    /// Ends this many rows without a list after so many items.
    pub fn push_nulls(&mut self, items: usize, rows: usize) {
        memory::reserve(&mut self.ends, rows);
        self.ends.extend(std::iter::repeat_n(items as i32, rows));
        for first in (0..rows).step_by(64) {
            self.valid.push_word(0, 64.min(rows - first));
        }
    }

    /// Back to this many rows; returns the number of their items.
    pub fn truncate(&mut self, rows: usize) -> usize {
        self.ends.truncate(rows + 1);
        self.valid.truncate(rows);
        self.item_count()
    }

    /// Appends the lists of another column, whose items come after so many others.
    pub fn extend(&mut self, other: &Self, items: usize, progress: Progress) {
        extend_ends(&mut self.ends, &other.ends, items as i32, progress);
        self.valid.extend(&other.valid);
    }

    /// Removes the rows from one on, except those in some ranges, and returns the ranges of the items to keep.
    pub fn retain(&mut self, from: usize, kept: &[Range<usize>]) -> Vec<Range<usize>> {
        let items = kept.iter().map(|rows| self.items(rows)).collect();
        let (mut next, mut end) = (from, self.ends[from]);
        for rows in kept {
            let shift = self.ends[rows.start] - end;
            for row in rows.clone() {
                next += 1;
                end = self.ends[row + 1] - shift;
                self.ends[next] = end;
            }
        }
        self.ends.truncate(next + 1);
        self.valid.retain(from, kept);
        items
    }

    pub fn finish(self, items: ArrayRef) -> ArrayRef {
        let element = schema::nullable("element", items.data_type().clone());
        Arc::new(ListArray::new(element, binary::list_offsets(self.ends), items, binary::nulls(self.valid)))
    }
}
