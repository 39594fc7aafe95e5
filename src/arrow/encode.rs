//! encode: headers, and the other fields of messages, into a binary column.

use arrow_array::ArrayRef;

use super::binary;
use super::sink::RowSink;
use crate::ask::Asked;
use crate::error::Error;
use crate::header::Header;
use crate::kernel::Block as Rows;
use crate::kernel::buffer::{Runs, Seen, Validity, Values as _};
use crate::kernel::encode;
use crate::kernel::frame::{Frame, Rules};
use crate::kernel::lists::Lists;
use crate::kernel::scan::Scratch;
use crate::kind::{Kind, Scalar};
use crate::mode::{Mode, OnLoss, Stop};
use crate::op::write::{Origin, Writer};
use crate::spelling::Spelling;
use crate::walk::{Block, Envelope, FieldValue, Is, Presence, Sealed, Sink, WriteOptions};

/// A growing column of serialized messages, and the message that is being written.
pub struct CellSink<'a, E> {
    writer: Writer<'a, E>,
    cells: Runs,
    valid: Validity,
    /// How many rows there were before this one.
    mark: usize,
    /// What the kernel does with each header; `None` where the options ask for more than it knows.
    rules: Option<Rules>,
    scratch: Scratch,
}

impl<E: Envelope> CellSink<'_, E> {
    /// Refuses options that make no sense for the format.
    pub fn new(options: WriteOptions, origin: Origin) -> Result<Self, Error> {
        let plainly = options.on_loss != OnLoss::Report && !options.canonical;
        let is_simple = E::IS == Is::Block && plainly && !matches!(options.kinds, Asked::Each(_));
        let rules = is_simple.then(|| Rules {
            given: (options.kinds == Asked::Binary).then_some(Kind::Named(Scalar::Binary)),
            untyped: match options.kinds {
                Asked::Spelled(Spelling::Bytes(order)) => Some(order),
                _ => None,
            },
            drops: options.on_loss == OnLoss::Drop,
            refuses_nulls: options.refuse_null_headers,
            most_bytes: E::Block::MOST_WRITTEN,
        });
        Ok(CellSink {
            writer: Writer::new(options, origin)?,
            cells: Runs::default(),
            valid: Validity::default(),
            mark: 0,
            rules,
            scratch: Scratch::default(),
        })
    }

    pub fn finish(self) -> ArrayRef {
        binary::binary(self.cells, binary::nulls(self.valid))
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
    fn extend(&mut self, other: &Self, seen: Seen) {
        self.cells.extend(&other.cells, seen);
        self.valid.extend(&other.valid);
    }

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

    fn room<F: Frame>(&self, max_offset: usize) -> Option<usize> {
        self.rules.filter(|_| F::WRITES).map(|_| max_offset.saturating_sub(self.cells.byte_len()))
    }

    fn append_lists<F: Frame>(&mut self, lists: &Lists<'a>, seen: Seen) -> usize {
        let Some(rules) = self.rules else { return 0 };
        let fits = if F::TYPED { lists.has_types() || rules.given.is_some() } else { !lists.is_typed() };
        if !fits {
            return 0;
        }
        let done = encode::encode::<F>(lists, rules, seen, &mut self.cells);
        self.valid.push_all(done);
        done
    }

    fn append_converted<S: Frame, F: Frame>(&mut self, block: &Rows<'a>, most: usize, seen: Seen) -> usize {
        let fits = |rules: &Rules| match (S::TYPED, F::TYPED) {
            (false, false) => true,
            (false, true) => rules.given.is_some(),
            (true, false) => rules.untyped.is_some(),
            (true, true) => false,
        };
        let Some(rules) = self.rules.filter(fits) else { return 0 };
        let done = encode::convert::<S, F>(block, most, rules, &mut self.scratch, seen, &mut self.cells);
        self.valid.push_all(done);
        done
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
