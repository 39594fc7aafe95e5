//! What a run over rows hands them to.

use crate::mode::{Fast, Mode, Stop};
use crate::short::{Short, ShortRow};
use crate::walk::{FieldValue, Presence, Sink};

/// How many of all rows are done.
#[derive(Debug, Clone, Copy)]
pub struct Share {
    pub done: usize,
    pub all: usize,
}

impl Share {
    /// How much there will be in the end of what there is so much of now, and a little more.
    pub fn in_the_end(self, now: usize) -> usize {
        let each = now as f64 / self.done as f64;
        ((each * self.all as f64 * 1.125) as usize).saturating_add(64)
    }
}

/// A sink of many rows. Between `begin_row` and the next one, `abort_row` puts it back to where it was.
pub trait RowSink<'a>: Sink<'a> {
    fn begin_row(&mut self);

    fn end_row<M: Mode>(&mut self, headers: Presence, mode: &mut M) -> Result<(), Stop>;

    fn abort_row(&mut self);

    /// A row without a message, or one of which nothing is kept.
    fn null_row(&mut self);

    /// Takes rows that lie as nearly all do, as few or as many as it likes, and says how many: the other functions see the
    /// rest. No offset may pass the largest.
    #[inline(always)]
    fn leap<F: AsRef<[FieldValue<'a>]>, H: Short<'a>>(
        &mut self,
        _rows: impl Iterator<Item = ShortRow<F, H>>,
        _fast: &mut Fast,
        _max_offset: usize,
    ) -> usize {
        0
    }

    /// The same of a sink that knows where the rows are.
    fn leap_from(&mut self, _row: usize) -> usize {
        0
    }

    /// Makes room for all rows, when so many of them are done.
    fn expect(&mut self, _share: Share) {}

    /// The largest offset used so far.
    fn max_offset(&self) -> usize;

    /// Whether a row with faults keeps the parts without, when faults become nulls.
    fn keeps_parts(&self) -> bool;
}
