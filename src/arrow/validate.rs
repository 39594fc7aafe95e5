//! validate: walk everything, keep nothing but the faults.

use super::sink::RowSink;
use crate::mode::{Fast, Mode, Stop};
use crate::short::{Short, ShortRow};
use crate::walk::{Discard, FieldValue, Presence};

impl<'a> RowSink<'a> for Discard {
    fn leap<F: AsRef<[FieldValue<'a>]>, H: Short<'a>>(
        &mut self,
        rows: impl Iterator<Item = ShortRow<F, H>>,
        fast: &mut Fast,
        _max_offset: usize,
    ) -> usize {
        let is_whole = |row: ShortRow<F, H>| match row {
            ShortRow::Null => true,
            ShortRow::Message(_, headers) => headers.each(fast, self).is_ok(),
        };
        rows.map(is_whole).take_while(|whole| *whole).count()
    }

    fn begin_row(&mut self) {}

    fn end_row<M: Mode>(&mut self, _headers: Presence, _mode: &mut M) -> Result<(), Stop> {
        Ok(())
    }

    fn abort_row(&mut self) {}

    fn null_row(&mut self) {}

    fn max_offset(&self) -> usize {
        0
    }

    fn keeps_parts(&self) -> bool {
        false
    }
}
