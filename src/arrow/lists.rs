//! [`Lists`]: offsets of a growing list column.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, ListArray};
use arrow_buffer::NullBuffer;
use arrow_schema::FieldRef;

use super::binary;
use crate::kernel::buffer::{Progress, extend_ends};
use crate::memory;
use crate::number::offset;

/// End of each list among the elements, after a first offset of 0.
pub struct Lists(pub Vec<i32>);

impl Default for Lists {
    fn default() -> Self {
        Lists(vec![0])
    }
}

impl Lists {
    #[inline]
    pub fn count(&self) -> usize {
        self.0.len() - 1
    }

    /// Ends the list of the next row at this many elements.
    #[inline]
    pub fn push(&mut self, elements: usize) {
        memory::push(&mut self.0, offset(elements));
    }

    /// Appends this many empty lists.
    pub fn push_empty(&mut self, elements: usize, rows: usize) {
        memory::reserve(&mut self.0, rows);
        self.0.extend(std::iter::repeat_n(offset(elements), rows));
    }

    /// Truncates to this many rows; returns the number of their elements.
    pub fn truncate(&mut self, rows: usize) -> usize {
        self.0.truncate(rows.saturating_add(1));
        self.0.last().map_or(0, |end| *end as usize)
    }

    /// Appends the lists of another column, whose elements follow `elements` others.
    pub fn extend(&mut self, other: &Self, elements: usize, progress: Progress) {
        extend_ends(&mut self.0, &other.0, offset(elements), progress);
    }

    /// Removes the rows from `from` on, except those in the given ranges, and returns the ranges of elements to keep.
    pub fn retain(&mut self, from: usize, kept: &[Range<usize>]) -> Vec<Range<usize>> {
        let Lists(ends) = self;
        let elements = kept.iter().map(|rows| ends[rows.start] as usize..ends[rows.end] as usize).collect();
        let (mut next, mut end) = (from, ends[from]);
        for rows in kept {
            let shift = ends[rows.start] - end;
            for row in rows.clone() {
                next += 1;
                end = ends[row + 1] - shift;
                ends[next] = end;
            }
        }
        ends.truncate(next + 1);
        elements
    }

    pub fn finish(self, element: FieldRef, elements: ArrayRef, nulls: Option<NullBuffer>) -> ArrayRef {
        Arc::new(ListArray::new(element, binary::list_offsets(self.0), elements, nulls))
    }
}
