//! [`Nothing`] parses everything and keeps only errors.

use super::sink::RowSink;
use crate::kernel::RowBlock;
use crate::kernel::buffer::Progress;
use crate::kernel::frame::Frame;
use crate::kernel::lists::{self, Lists};
use crate::kernel::scan::{self, Scratch};
use crate::log::{Log, Result};
use crate::traits::{Presence, Sink};

/// Keeps nothing of the rows.
#[derive(Default)]
pub struct Nothing(Scratch);

impl Sink<'_> for Nothing {}

impl<'a> RowSink<'a> for Nothing {
    fn extend(&mut self, _other: &Self, _seen: Progress) {}

    fn begin_row(&mut self) {}

    fn end_row<R: Log>(&mut self, _headers: Presence, _log: &mut R) -> Result {
        Ok(())
    }

    fn abort_row(&mut self) {}

    fn null_row(&mut self) {}

    fn room<F: Frame>(&self, _max_offset: usize) -> Option<usize> {
        Some(usize::MAX)
    }

    fn append<F: Frame>(&mut self, block: &RowBlock<'a>, limit: usize, _seen: Progress) -> usize {
        scan::validate::<F>(block, limit, &mut self.0)
    }

    fn append_lists<F: Frame>(&mut self, lists: &Lists<'a>, _seen: Progress) -> usize {
        lists::validate::<F>(lists)
    }

    fn max_offset(&self) -> usize {
        0
    }
}
