//! [`Validate`]: only the errors of messages, of lists of headers, or of batches.

use arrow_array::Array;
use arrow_schema::DataType;

use super::input::{Bytes, binary_column};
use super::layouts::read_rows;
use super::list_rows::messages_or_lists;
use super::rows::{Buffers, MessageRows, Parsed, RowSource};
use super::run::{OutputRows, run};
use super::sink::{Row, RowSink};
use super::{Input, Operation, Output, schema};
use crate::error::{Direction, Error, ErrorDetail};
use crate::format_info::FormatInfo;
use crate::kernel::RowBlock;
use crate::kernel::buffer::Progress;
use crate::kernel::layout::Layout;
use crate::kernel::lists::{self, ListBlock};
use crate::kernel::scan::{self, Scratch};
use crate::log::{EitherLog, OnError, Result, Stop};
use crate::op::inspect::batch_errors;
use crate::options::ReadOptions;
use crate::sink::Presence;
use crate::traits::{BatchFormat, MessageFormat};

/// Reports the errors of messages, lists of headers or batches.
#[derive(Debug, Clone, Copy, Default)]
pub struct Validate {
    pub options: ReadOptions,
}

impl Validate {
    #[inline(never)]
    fn run_rows<'a>(
        &self,
        rows: &dyn RowSource<'a, ErrorsOnly>,
        input: Input<'a>,
        format: &'static FormatInfo,
    ) -> Result<Output, Error> {
        let plan = input.plan(format.name, Direction::Decode, OnError::Column, self.options.limits);
        let OutputRows { report_columns, until, .. } = run(rows, input.from, &plan, &|| Ok(ErrorsOnly::default()))?;
        Ok(Output { column: report_columns.errors.finish(), until })
    }
}

impl Operation for Validate {
    const DROPS_FIELDS: bool = true;

    fn output_type(&self, _: &'static FormatInfo) -> Result<DataType, Error> {
        Ok(schema::errors_type())
    }

    fn apply_batch<B: BatchFormat>(&self, input: Input<'_>) -> Result<Output, Error> {
        let batches = binary_column(input.column, &B::INFO)?;
        let rows = BatchRows { batches, options: self.options, errors_of: batch_errors::<B> };
        self.run_rows(&rows, input, &B::INFO)
    }

    fn apply<E: MessageFormat>(&self, input: Input<'_>) -> Result<Output, Error> {
        let messages = MessageRows::of::<E>(input.column, self.options);
        self.run_rows(&*messages_or_lists(messages, input.column, &E::INFO)?.0, input, &E::INFO)
    }
}

/// Batches, of which only the errors are read.
pub struct BatchRows<'a> {
    pub batches: Bytes<'a>,
    pub options: ReadOptions,
    pub errors_of: fn(&[u8], ReadOptions) -> Vec<ErrorDetail>,
}

impl<'a, S: RowSink<'a>> RowSource<'a, S> for BatchRows<'a> {
    fn column(&self) -> &'a dyn Array {
        self.batches.array()
    }

    fn parse(&self, row: usize, _: &mut Buffers<'a>, log: EitherLog<'_>, _: &mut Row<'_, 'a, S>) -> Parsed {
        let (Some(data), EitherLog::Collect(log)) = (self.batches.get(row), log) else { return Err(Stop) };
        log.add_errors((self.errors_of)(data, self.options));
        Ok(Presence::Absent)
    }
}

/// Sink without rows.
#[derive(Default)]
pub struct ErrorsOnly(Scratch);

impl<'a> RowSink<'a> for ErrorsOnly {
    type Found = ();

    const KEEPS_PARTS: bool = false;

    fn extend(&mut self, _other: &Self, _progress: Progress) {}

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
