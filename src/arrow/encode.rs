//! encode: headers, and the fields of an envelope, into cells of bytes.

use arrow_array::ArrayRef;

use super::column::{Runs, Validity};
use super::run::RowSink;
use crate::header::Header;
use crate::mode::{Mode, Stop};
use crate::op::write::Writer;
use crate::walk::{Envelope, FieldValue, Presence, Sealed, Sink, WriteOptions};

/// Cells as they grow, and the message at hand.
pub struct CellSink<'a, E> {
    writer: Writer<'a, E>,
    cells: Runs,
    valid: Validity,
    mark: (usize, usize),
}

impl<E: Envelope> CellSink<'_, E> {
    pub fn new(options: WriteOptions) -> Self {
        let writer = Writer::new(options);
        CellSink { writer, cells: Runs::with_capacity(0), valid: Validity::default(), mark: (0, 0) }
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
        self.mark = (self.cells.count(), self.cells.byte_len());
    }

    #[inline]
    fn end_row<M: Mode>(&mut self, headers: Presence, mode: &mut M) -> Result<(), Stop> {
        let sealed = self.writer.seal(headers, mode, self.cells.bytes_mut())?;
        self.cells.end_run();
        self.valid.push(sealed == Sealed::Written);
        Ok(())
    }

    fn abort_row(&mut self) {
        self.writer.clear();
        self.cells.truncate(self.mark.0, self.mark.1);
        self.valid.truncate(self.mark.0);
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
