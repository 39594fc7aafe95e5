//! [`Operation`]: an operation on columns, with its [`Input`] and its [`Output`].

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, StructArray};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, Fields};

use super::errors::ReportColumns;
use super::run::Plan;
use crate::error::{Direction, Error};
use crate::format_info::FormatInfo;
use crate::kernel::buffer::MAX_OFFSET;
use crate::limits::Limits;
use crate::log::{OnError, OnLoss};
use crate::op::batch_needs_messages;
use crate::traits::{BatchFormat, MessageFormat};

/// Input column of an operation, and the first row.
#[derive(Clone, Copy)]
pub struct Input<'a> {
    pub(super) column: &'a dyn Array,
    /// First row to read, at most the number of rows.
    pub(super) from: usize,
    /// Number of rows of the stream before this column, for errors.
    pub(super) rows_before: usize,
    /// Maximum offset of an output column, at most [`MAX_OFFSET`].
    pub(super) max_offset: usize,
    /// Number of threads that share the rows, at least one.
    pub(super) threads: usize,
    /// Number of inputs that are processed at the same time, each on a thread; at least one.
    pub(super) at_once: usize,
}

impl<'a> Input<'a> {
    pub fn new(column: &'a dyn Array) -> Self {
        Input { column, from: 0, rows_before: 0, max_offset: MAX_OFFSET, threads: 1, at_once: 1 }
    }

    /// Skips the rows before this one.
    pub fn from_row(self, row: usize) -> Self {
        Input { from: row.min(self.column.len()), ..self }
    }

    /// Numbers rows in errors after this many earlier rows of the stream.
    pub fn after(self, rows: usize) -> Self {
        Input { rows_before: rows, ..self }
    }

    /// Shares the rows among threads.
    pub fn with_threads(self, threads: usize) -> Self {
        Input { threads: threads.max(1), ..self }
    }

    /// Sets the number of threads that work on an input at the same time. These threads share the limit of decompressed
    /// bytes.
    pub fn at_once(self, threads: usize) -> Self {
        Input { at_once: threads.max(1), ..self }
    }

    /// Ends an output column before an offset exceeds this one, or 31 bits.
    pub fn with_max_offset(self, max_offset: usize) -> Self {
        Input { max_offset: max_offset.min(MAX_OFFSET), ..self }
    }

    pub(super) fn plan(&self, format: &'static str, direction: Direction, on_error: OnError, limits: Limits) -> Plan {
        let Input { rows_before, max_offset, threads, .. } = *self;
        let (on_loss, max_reports) = (OnLoss::Raise, limits.reports);
        Plan { format, direction, target: None, on_error, on_loss, rows_before, max_offset, threads, max_reports }
    }
}

/// Result of an operation, which ends before row `until` if an output column was full.
pub struct Output {
    pub column: ArrayRef,
    pub until: usize,
}

impl Output {
    /// Builds a column of the given type from the columns of a result, its losses and its errors.
    pub(super) fn new(
        data_type: DataType,
        mut columns: Vec<ArrayRef>,
        nulls: Option<NullBuffer>,
        plan: &Plan,
        report_columns: ReportColumns,
        rows: Range<usize>,
    ) -> Self {
        if plan.on_loss == OnLoss::Report {
            columns.push(report_columns.losses.finish());
        }
        let errors = plan.on_error.is_column().then(|| report_columns.errors.finish());
        let nulls = match (nulls, &errors) {
            // A row with errors is never null.
            (Some(nulls), Some(errors)) => {
                Some((0..nulls.len()).map(|row| nulls.is_valid(row) || errors.is_valid(row)).collect())
            }
            (nulls, _) => nulls,
        };
        columns.extend(errors);
        let column = match data_type {
            DataType::Struct(fields) => struct_of(fields, columns, nulls, rows.len()),
            _ => columns.swap_remove(0),
        };
        Output { column, until: rows.end }
    }
}

/// Operation on columns, whose output type is known before any row is read.
pub trait Operation {
    /// Direction that the error names if the result is too large.
    const DIRECTION: Direction = Direction::Decode;

    /// Whether the result depends only on keys and values of headers, so that their other fields are ignored.
    const DROPS_FIELDS: bool = false;

    /// Returns the type of the result, or rejects the options or a format that this operation does not read.
    fn output_type(&self, format: &'static FormatInfo) -> Result<DataType, Error>;

    fn apply<E: MessageFormat>(&self, input: Input<'_>) -> Result<Output, Error>;

    fn apply_batch<B: BatchFormat>(&self, _input: Input<'_>) -> Result<Output, Error> {
        Err(batch_needs_messages(B::NAME))
    }
}

pub(super) fn struct_of(
    fields: impl Into<Fields>,
    columns: Vec<ArrayRef>,
    nulls: Option<NullBuffer>,
    rows: usize,
) -> ArrayRef {
    match columns.is_empty() {
        true => Arc::new(StructArray::new_empty_fields(rows, nulls)),
        false => Arc::new(StructArray::new(fields.into(), columns, nulls)),
    }
}
