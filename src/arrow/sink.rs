//! [`RowSink`]: what rows are appended to, and the traits of the sinks to which kernels append blocks.

use crate::header::Header;
use crate::kernel::RowBlock;
use crate::kernel::buffer::Progress;
use crate::kernel::layout::WireLayout;
use crate::kernel::lists::ListBlock;
use crate::log::{Log, Result};
use crate::traits::{FieldValue, Presence, Sink};

/// A sink of many rows, which can be put back to an earlier number of them.
pub trait RowSink<'a>: Send {
    /// References to the values of the rows that are read now; reused for other rows with the same lifetime.
    type Found: Default;

    /// A row has several columns, and those without an error are kept where errors become nulls.
    const KEEPS_PARTS: bool;

    fn header<R: Log>(&mut self, _found: &mut Self::Found, _header: Header<'a>, _log: &mut R) -> Result {
        Ok(())
    }

    /// As [`Sink::fields`].
    fn fields(&mut self, _fields: &[FieldValue<'a>]) {}

    /// Appends the rows of another sink that was made in the same way. Their offsets together are below the limit.
    fn extend(&mut self, other: &Self, progress: Progress);

    /// Forgets what was found in a row that has ended, or was taken back.
    fn begin_row(&mut self, found: &mut Self::Found);

    fn end_row<R: Log>(&mut self, found: &mut Self::Found, headers: Presence, log: &mut R) -> Result;

    fn row_count(&self) -> usize;

    /// Back to this many rows, without what was appended of the next.
    fn truncate(&mut self, rows: usize);

    /// A row without a message, or one of which nothing is kept.
    fn null_row(&mut self);

    /// Nulls what the headers of the row that has ended gave; false where a row is no more than its headers.
    fn null_headers(&mut self) -> bool {
        false
    }

    /// The largest offset used so far.
    fn max_offset(&self) -> usize;

    /// Whether a condition selects the row that has ended; `None` without a condition.
    fn is_selected(&self) -> Option<bool> {
        None
    }

    /// Whether the condition selects the row that has ended for its fields alone.
    fn is_selected_by_fields(&self) -> bool {
        false
    }
}

/// A sink, and what was found in the row that is parsed into it.
pub struct Row<'r, 'a, S: RowSink<'a>> {
    pub sink: &'r mut S,
    pub found: &'r mut S::Found,
}

impl<'a, S: RowSink<'a>> Sink<'a> for Row<'_, 'a, S> {
    #[inline(always)]
    fn header<R: Log>(&mut self, header: Header<'a>, log: &mut R) -> Result {
        self.sink.header(self.found, header, log)
    }

    #[inline]
    fn fields(&mut self, fields: &[FieldValue<'a>]) {
        self.sink.fields(fields);
    }
}

/// Parses a row with a log that is known at run time.
macro_rules! parse_row {
    ($log:expr, $to:expr, |$each:ident, $sink:ident| $parse:expr) => {
        match $log {
            $crate::log::EitherLog::FailFast($each) => {
                let $sink = &mut *$to;
                $parse
            }
            $crate::log::EitherLog::Collect($each) => {
                let $sink = &mut $crate::traits::AnySink($to);
                $parse
            }
        }
    };
}
pub(super) use parse_row;

/// A sink to which kernels append blocks of serialized messages.
pub trait BlockSink<'a>: RowSink<'a> {
    /// The input bytes of a layout that kernels can append before an output passes an offset; `None` if the options need
    /// the slow path.
    fn room<F: WireLayout>(&self, max_offset: usize) -> Option<usize>;

    /// The fields of a row that is added to the next block; `None` if there is no message.
    fn open_row(&mut self, fields: Option<&[FieldValue<'a>]>);

    /// Appends rows of a block up to the first that needs the slow path, and returns how many. Rows have at most
    /// `limit` headers.
    fn append<F: WireLayout>(
        &mut self,
        found: &mut Self::Found,
        block: &RowBlock<'a>,
        limit: usize,
        progress: Progress,
    ) -> usize;
}

/// A sink to which kernels append blocks of lists of headers.
pub trait ListsSink<'a>: RowSink<'a> {
    /// As [`BlockSink::room`].
    fn room_for_lists<F: WireLayout>(&self, max_offset: usize) -> Option<usize>;

    /// As [`BlockSink::append`].
    fn append_lists<F: WireLayout>(
        &mut self,
        found: &mut Self::Found,
        lists: &ListBlock<'a>,
        progress: Progress,
    ) -> usize;
}
