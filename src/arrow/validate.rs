//! validate: reads everything and keeps nothing but the errors.

use super::sink::RowSink;
use crate::header::Header;
use crate::kernel::Block;
use crate::kernel::buffer::Seen;
use crate::kernel::frame::Frame;
use crate::kernel::lists::{self, Lists};
use crate::kernel::scan::{self, Scratch};
use crate::mode::{Mode, Stop};
use crate::walk::{Presence, Sink};

/// Keeps nothing of the rows.
#[derive(Default)]
pub struct Nothing(Scratch);

impl<'a> Sink<'a> for Nothing {
    #[inline]
    fn header<M: Mode>(&mut self, _header: Header<'a>, _mode: &mut M) -> Result<(), Stop> {
        Ok(())
    }
}

impl<'a> RowSink<'a> for Nothing {
    fn extend(&mut self, _other: &Self, _seen: Seen) {}

    fn begin_row(&mut self) {}

    fn end_row<M: Mode>(&mut self, _headers: Presence, _mode: &mut M) -> Result<(), Stop> {
        Ok(())
    }

    fn abort_row(&mut self) {}

    fn null_row(&mut self) {}

    fn room<F: Frame>(&self, _max_offset: usize) -> Option<usize> {
        Some(usize::MAX)
    }

    fn append<F: Frame>(&mut self, block: &Block<'a>, most: usize, _seen: Seen) -> usize {
        scan::validate::<F>(block, most, &mut self.0)
    }

    fn append_lists<F: Frame>(&mut self, lists: &Lists<'a>, _seen: Seen) -> usize {
        lists::validate::<F>(lists)
    }

    fn max_offset(&self) -> usize {
        0
    }

    fn keeps_parts(&self) -> bool {
        false
    }
}
