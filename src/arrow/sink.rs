//! [`RowSink`]: what a run appends rows to, and the traits of the sinks to which kernels append blocks.

use crate::kernel::RowBlock;
use crate::kernel::buffer::Progress;
use crate::kernel::layout::WireLayout;
use crate::kernel::lists::ListBlock;
use crate::log::{Log, Result};
use crate::traits::{FieldValue, Presence, Sink};

/// A sink of many rows. Between `begin_row` and the next one, `abort_row` puts it back to where it was.
pub trait RowSink<'a>: Sink<'a> + Send {
    /// A row has several columns, and those without an error are kept where errors become nulls.
    const KEEPS_PARTS: bool;

    /// Appends the rows of another sink that was made in the same way. Their offsets together are below the limit.
    fn extend(&mut self, other: &Self, progress: Progress);

    fn begin_row(&mut self);

    fn end_row<R: Log>(&mut self, headers: Presence, log: &mut R) -> Result;

    fn abort_row(&mut self);

    /// A row without a message, or one of which nothing is kept.
    fn null_row(&mut self);

    /// The largest offset used so far.
    fn max_offset(&self) -> usize;
}

/// A sink to which kernels append blocks of serialized messages.
pub trait BlockSink<'a>: RowSink<'a> {
    /// The input bytes of a layout that kernels can append before an output passes an offset; `None` if the options need
    /// the slow path.
    fn room<F: WireLayout>(&self, max_offset: usize) -> Option<usize>;

    /// The fields of a row that is added to the next block; `None` if there is no message.
    fn open_row(&mut self, fields: Option<&[FieldValue<'a>]>);

    /// Appends rows of a block up to the first that needs the slow path, and returns how many. Rows have at most
    /// `limit` headers.
    fn append<F: WireLayout>(&mut self, block: &RowBlock<'a>, limit: usize, progress: Progress) -> usize;
}

/// A sink to which kernels append blocks of lists of headers.
pub trait ListsSink<'a>: RowSink<'a> {
    /// As [`BlockSink::room`].
    fn room_for_lists<F: WireLayout>(&self, max_offset: usize) -> Option<usize>;

    /// As [`BlockSink::append`].
    fn append_lists<F: WireLayout>(&mut self, lists: &ListBlock<'a>, progress: Progress) -> usize;
}
