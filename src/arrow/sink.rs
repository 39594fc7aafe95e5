//! [`RowSink`]: what a run appends rows to.

use crate::kernel::RowBlock;
use crate::kernel::buffer::Progress;
use crate::kernel::frame::Frame;
use crate::kernel::lists::Lists;
use crate::log::{Log, Result};
use crate::traits::{FieldValue, Presence, Sink};

/// A sink of many rows. Between `begin_row` and the next one, `abort_row` puts it back to where it was.
pub trait RowSink<'a>: Sink<'a> + Send {
    /// Appends the rows of another sink that was made in the same way. Their offsets together are below the limit.
    fn extend(&mut self, other: &Self, progress: Progress);

    fn begin_row(&mut self);

    fn end_row<R: Log>(&mut self, headers: Presence, log: &mut R) -> Result;

    fn abort_row(&mut self);

    /// A row without a message, or one of which nothing is kept.
    fn null_row(&mut self);

    /// The input bytes of a layout that kernels can append before an output passes an offset; `None` if this sink
    /// takes no blocks of this layout.
    fn room<F: Frame>(&self, _max_offset: usize) -> Option<usize> {
        None
    }

    /// The fields of a row that is added to the next block; `None` if there is no message.
    fn open_row(&mut self, _fields: Option<&[FieldValue<'a>]>) {}

    /// Appends rows of a block up to the first that needs the exact routine, and returns how many. Rows have at most
    /// `limit` headers.
    fn append<F: Frame>(&mut self, _block: &RowBlock<'a>, _limit: usize, _seen: Progress) -> usize {
        0
    }

    /// As `append`, of rows of lists.
    fn append_lists<F: Frame>(&mut self, _lists: &Lists<'a>, _seen: Progress) -> usize {
        0
    }

    /// As `append`, of rows of layout `S` that are written in layout `F`.
    fn append_converted<S: Frame, F: Frame>(&mut self, _block: &RowBlock<'a>, _limit: usize, _seen: Progress) -> usize {
        0
    }

    /// Appends rows from the sink's own input, if it has one, and returns how many.
    fn append_from(&mut self, _row: usize) -> usize {
        0
    }

    /// The largest offset used so far.
    fn max_offset(&self) -> usize;

    /// Whether the valid columns of a row with errors are kept when errors become nulls.
    fn keeps_parts(&self) -> bool {
        false
    }
}
