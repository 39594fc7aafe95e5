//! encode: headers, and the fields of an envelope, into cells of bytes.

use arrow_array::ArrayRef;

use super::column::{Runs, Validity};
use super::run::{MAX_OFFSET, RowSink, Share};
use crate::error::Error;
use crate::header::Header;
use crate::mode::{Mode, Stop};
use crate::op::write::{Origin, Writer};
use crate::walk::{Envelope, FieldValue, Presence, Sealed, Sink, WriteOptions};

/// Cells as they grow, and the message at hand.
pub struct CellSink<'a, E> {
    writer: Writer<'a, E>,
    cells: Runs,
    valid: Validity,
    /// How many cells there were before the row at hand.
    mark: usize,
}

impl<E: Envelope> CellSink<'_, E> {
    /// Refuses options that make no sense for the format.
    pub fn new(options: WriteOptions, origin: Origin) -> Result<Self, Error> {
        let writer = Writer::new(options, origin)?;
        Ok(CellSink { writer, cells: Runs::default(), valid: Validity::default(), mark: 0 })
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
        let sealed = self.writer.seal(headers, mode, self.cells.bytes_mut())?;
        self.cells.end_run();
        self.valid.push(sealed == Sealed::Written);
        Ok(())
    }

    fn expect(&mut self, share: Share) {
        self.cells.expect(share, MAX_OFFSET);
    }

    fn abort_row(&mut self) {
        self.writer.clear();
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
