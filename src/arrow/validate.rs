//! [`ErrorsOnly`]: a sink without rows, for operations that only report errors.

use super::layouts::read_rows;
use super::sink::RowSink;
use crate::kernel::RowBlock;
use crate::kernel::buffer::Progress;
use crate::kernel::layout::Layout;
use crate::kernel::lists::{self, ListBlock};
use crate::kernel::scan::{self, Scratch};
use crate::log::{Log, Result};
use crate::traits::Presence;

/// Sink without rows.
#[derive(Default)]
pub struct ErrorsOnly(Scratch);

impl<'a> RowSink<'a> for ErrorsOnly {
    type Found = ();

    const KEEPS_PARTS: bool = false;

    fn extend(&mut self, _other: &Self, _progress: Progress) {}

    fn begin_row(&mut self, _: &mut ()) {}

    fn end_row<R: Log>(&mut self, _: &mut (), _headers: Presence, _log: &mut R) -> Result {
        Ok(())
    }

    fn row_count(&self) -> usize {
        0
    }

    fn truncate(&mut self, _rows: usize) {}

    fn null_row(&mut self) {}

    fn max_offset(&self) -> usize {
        0
    }

    fn room(&self, _layout: Layout, _max_offset: usize) -> Option<usize> {
        Some(usize::MAX)
    }

    fn append(&mut self, layout: Layout, _: &mut (), block: &RowBlock<'a>, limit: usize, _progress: Progress) -> usize {
        read_rows!(layout.name, F => scan::validate::<F>(block, limit, &mut self.0))
    }

    fn append_lists(&mut self, layout: Layout, _: &mut (), lists: &ListBlock<'a>, _progress: Progress) -> usize {
        read_rows!(layout.of_lists(), F => lists::validate::<F>(lists))
    }
}
