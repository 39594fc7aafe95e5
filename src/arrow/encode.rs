//! encode: headers, and the fields of an envelope, into cells of bytes.

use std::mem;

use arrow_array::ArrayRef;

use super::column::{Runs, Validity};
use super::run::{MAX_OFFSET, RowSink, Share};
use crate::error::Error;
use crate::header::Header;
use crate::mode::{Mode, OnLoss, Stop};
use crate::op::write::{Origin, Writer};
use crate::short::Short;
use crate::walk::{Block, Envelope, FieldValue, Is, Presence, Sealed, Sink, WriteOptions};

/// Cells as they grow, and the message at hand.
pub struct CellSink<'a, E> {
    writer: Writer<'a, E>,
    cells: Runs,
    valid: Validity,
    /// How many cells there were before the row at hand.
    mark: usize,
    /// The headers of the row at hand were written already.
    is_written: bool,
    /// They may be: nobody asks what becomes of each.
    may_be_written: bool,
}

impl<E: Envelope> CellSink<'_, E> {
    /// Refuses options that make no sense for the format.
    pub fn new(options: WriteOptions, origin: Origin) -> Result<Self, Error> {
        let may_be_written = E::IS == Is::Block && options.on_loss != OnLoss::Report;
        Ok(CellSink {
            writer: Writer::new(options, origin)?,
            cells: Runs::default(),
            valid: Validity::default(),
            mark: 0,
            is_written: false,
            may_be_written,
        })
    }

    pub fn finish(self) -> ArrayRef {
        self.cells.finish_bytes(self.valid.finish())
    }
}

impl<'a, E: Envelope> Sink<'a> for CellSink<'a, E> {
    #[inline]
    fn header<M: Mode>(&mut self, header: Header<'a>, mode: &mut M) -> Result<(), Stop> {
        self.writer.header(header, mode)
    }

    #[inline(always)]
    fn short<H: Short<'a>, M: Mode>(&mut self, headers: H, mode: &mut M) -> Option<Result<(), Stop>> {
        if !self.may_be_written {
            return None;
        }
        let done = E::Block::encode_short(headers, mode, self.cells.bytes_mut())?;
        self.is_written = done.is_ok();
        Some(done)
    }

    #[inline]
    fn fields(&mut self, fields: &[FieldValue<'a>]) {
        self.writer.fields(fields);
    }
}

impl<'a, E: Envelope> RowSink<'a> for CellSink<'a, E> {
    #[inline]
    fn begin_row(&mut self) {
        self.writer.clear();
        self.mark = self.cells.count();
    }

    #[inline]
    fn end_row<M: Mode>(&mut self, headers: Presence, mode: &mut M) -> Result<(), Stop> {
        let sealed = match mem::take(&mut self.is_written) {
            true => Sealed::Written,
            false => self.writer.seal(headers, mode, self.cells.bytes_mut())?,
        };
        self.cells.end_run();
        self.valid.push(sealed == Sealed::Written);
        Ok(())
    }

    fn expect(&mut self, share: Share) {
        self.cells.expect(share, MAX_OFFSET);
    }

    fn abort_row(&mut self) {
        self.writer.clear();
        self.is_written = false;
        self.cells.truncate(self.mark);
        self.valid.truncate(self.mark);
    }

    fn null_row(&mut self) {
        self.cells.end_run();
        self.valid.push(false);
    }

    #[inline]
    fn max_offset(&self) -> usize {
        self.cells.byte_len()
    }

    fn keeps_parts(&self) -> bool {
        false
    }
}
