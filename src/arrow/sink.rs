//! [`RowSink`], to which rows are appended, one by one or in blocks by kernels.

use crate::field::FieldValue;
use crate::header::Header;
use crate::kernel::RowBlock;
use crate::kernel::buffer::Progress;
use crate::kernel::layout::Layout;
use crate::kernel::lists::ListBlock;
use crate::log::{Log, Result};
use crate::sink::{Presence, Sink};

/// Sink of many rows, which can be truncated to an earlier number of rows.
pub trait RowSink<'a>: Send {
    /// References to values of the current rows, whose memory is reused for other rows.
    type Found: Default;

    /// Whether rows have several columns, so that an error becomes null in its own column only.
    const KEEPS_PARTS: bool;

    fn header<R: Log>(&mut self, _found: &mut Self::Found, _header: Header<'a>, _log: &mut R) -> Result {
        Ok(())
    }

    /// Receives the fields of a row, like [`Sink::fields`].
    fn fields(&mut self, _fields: &[FieldValue<'a>]) {}

    /// Appends the rows of another sink that was created in the same way. The sum of their offsets is below the limit.
    fn extend(&mut self, other: &Self, progress: Progress);

    /// Clears the values of the previous row, which has ended or was removed.
    fn begin_row(&mut self, _found: &mut Self::Found) {}

    fn end_row<R: Log>(&mut self, _found: &mut Self::Found, _headers: Presence, _log: &mut R) -> Result {
        Ok(())
    }

    fn row_count(&self) -> usize;

    /// Truncates to this many rows, and removes an unfinished row.
    fn truncate(&mut self, rows: usize);

    /// Appends a row without a message, or without any value.
    fn null_row(&mut self);

    /// Replaces the values from headers in the last row by nulls; returns false if a row consists of its headers.
    fn null_headers(&mut self) -> bool {
        false
    }

    /// Largest offset so far.
    fn max_offset(&self) -> usize;

    /// Whether a condition selects the last row; `None` without a condition.
    fn is_selected(&self) -> Option<bool> {
        None
    }

    /// Whether the fields alone make the condition select the last row.
    fn is_selected_by_fields(&self) -> bool {
        false
    }

    /// Number of input bytes of a layout that kernels can append before an output exceeds an offset; `None` if they
    /// append no blocks, or the options need the slow path.
    fn room(&self, _layout: Layout, _max_offset: usize) -> Option<usize> {
        None
    }

    /// Appends serialized messages, whose fields were all received, up to the first that needs the slow path, and
    /// returns their number. Messages have at most `limit` headers.
    fn append(
        &mut self,
        _layout: Layout,
        _found: &mut Self::Found,
        _block: &RowBlock<'a>,
        _limit: usize,
        _progress: Progress,
    ) -> usize {
        0
    }

    /// Appends lists of headers, like `append`.
    fn append_lists(
        &mut self,
        _layout: Layout,
        _found: &mut Self::Found,
        _lists: &ListBlock<'a>,
        _progress: Progress,
    ) -> usize {
        0
    }
}

/// Sink, and the values of the row being parsed into it.
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

/// Parses a row with either log.
macro_rules! parse_row {
    ($log:expr, $to:expr, |$each:ident, $sink:ident| $parse:expr) => {
        match $log {
            $crate::log::EitherLog::FailFast($each) => {
                let $sink = &mut *$to;
                $parse
            }
            $crate::log::EitherLog::Collect($each) => {
                let $sink = &mut $crate::sink::AnySink($to);
                $parse
            }
        }
    };
}
pub(super) use parse_row;
