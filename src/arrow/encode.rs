//! encode: headers, and the fields of an envelope, into cells of bytes.

use arrow_array::ArrayRef;

use super::binary::Runs;
use super::run::MAX_OFFSET;
use super::sink::{RowSink, Share};
use super::validity::Validity;
use crate::ask::Asked;
use crate::error::Error;
use crate::header::Header;
use crate::mode::{Fast, Mode, OnLoss, Stop};
use crate::op::write::{Origin, Writer};
use crate::pen::Pen;
use crate::short::{Short, ShortRow};
use crate::walk::{Block, Envelope, FieldValue, Is, Presence, Sealed, Sink, WriteOptions};

/// Cells as they grow, and the message at hand.
pub struct CellSink<'a, E> {
    writer: Writer<'a, E>,
    cells: Runs,
    valid: Validity,
    /// How many cells there were before the row at hand.
    mark: usize,
    /// Nobody asks what becomes of each header, and nothing is said of some of them.
    may_leap: bool,
}

impl<E: Envelope> CellSink<'_, E> {
    /// Refuses options that make no sense for the format.
    pub fn new(options: WriteOptions, origin: Origin) -> Result<Self, Error> {
        let plainly = options.on_loss != OnLoss::Report && !options.canonical;
        let may_leap = E::IS == Is::Block && plainly && !matches!(options.kinds, Asked::Each(_));
        Ok(CellSink {
            writer: Writer::new(options, origin)?,
            cells: Runs::default(),
            valid: Validity::default(),
            mark: 0,
            may_leap,
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

    fn leap<F: AsRef<[FieldValue<'a>]>, H: Short<'a>>(
        &mut self,
        rows: impl Iterator<Item = ShortRow<F, H>>,
        fast: &mut Fast,
        max_offset: usize,
    ) -> usize {
        if !self.may_leap {
            return 0;
        }
        let (ends, bytes) = self.cells.parts_mut();
        let mut pen = Pen::new(bytes);
        let mut taken = 0;
        for row in rows {
            let ShortRow::Message(_, headers) = row else { break };
            let before = pen.byte_len();
            match E::Block::encode_short(headers, self.writer.options(), fast, &mut pen) {
                Some(Ok(())) if pen.byte_len() <= max_offset => ends.push(pen.byte_len() as i32),
                _ => {
                    pen.truncate(before);
                    break;
                }
            }
            taken += 1;
        }
        self.valid.push_all(taken);
        taken
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
