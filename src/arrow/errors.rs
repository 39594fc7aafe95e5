//! [`ReportColumn`]: a growing column of the errors, or of the losses, of rows. A row is a list of structs, or null
//! without reports.

use std::borrow::Cow;
use std::marker::PhantomData;

use arrow_array::ArrayRef;
use arrow_schema::{DataType, Fields};

use super::binary::ViewInput;
use super::column::{Column, Data};
use super::schema;
use crate::error::{Code, ErrorDetail, Loss};
use crate::kernel::buffer::Progress;
use crate::log::{MIN_REPORTS, OnError, Report, truncate_list};
use crate::value::Value;

/// A row with errors.
#[derive(Debug, Clone, Copy)]
pub struct FailedRow {
    /// Whether bytes after an error could not be read.
    pub is_broken: bool,
    /// Whether an error is outside of the headers, such as a wrong checksum, so that no part of the message can be
    /// trusted.
    pub has_frame_errors: bool,
    /// Whether the sink has already ended the row, with nulls for values with errors.
    pub is_appended: bool,
    /// Whether the row has several columns.
    pub keeps_parts: bool,
}

/// Treatment of a row with errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowAction {
    Keep,
    Null,
    Drop,
    Raise,
}

impl FailedRow {
    /// Whether the row becomes null, if its error is not raised.
    pub fn is_null(self, policy: OnError) -> bool {
        !self.is_appended || policy.is_null() && (self.is_broken || self.has_frame_errors || !self.keeps_parts)
    }

    /// Whether only the headers of the row have errors, so that the other fields are kept when the row becomes null.
    pub fn keeps_fields(self) -> bool {
        self.is_appended && !self.has_frame_errors
    }

    /// Decides what happens to the row. `is_selected`: a filter selects the row, or selects the null that replaces it.
    /// `is_excluded`: the filter excludes the row, so its errors are ignored.
    pub fn decide(self, policy: OnError, is_selected: bool, is_excluded: bool) -> RowAction {
        match policy {
            _ if is_excluded => RowAction::Drop,
            OnError::Raise => RowAction::Raise,
            OnError::Null if !is_selected => RowAction::Drop,
            _ if self.is_null(policy) => RowAction::Null,
            _ => RowAction::Keep,
        }
    }
}

/// Column name for errors in the condition of a filter.
const CONDITION: &str = "where";

/// Result of a condition for a row with errors.
#[derive(Debug, Clone, Copy)]
pub struct Verdict {
    pub is_selected: bool,
    /// Whether no header can change the result.
    pub is_certain: bool,
}

impl Verdict {
    /// Column to name in an error of the row: the condition if the error leaves the condition undecided.
    pub fn column_of(self, column: Option<&str>, is_incomplete: bool) -> Option<&str> {
        match column {
            None | Some(CONDITION) => {
                let is_decided = self.is_selected && (self.is_certain || !is_incomplete);
                (!is_decided).then_some(CONDITION)
            }
            output => output,
        }
    }

    /// Sets `column` to the name of the condition in each error that left the condition undecided.
    pub fn attribute(self, errors: &mut [ErrorDetail]) {
        for error in errors {
            let column = self.column_of(error.column.as_deref(), error.code == Code::Incomplete);
            error.column = column.map(str::to_owned);
        }
    }
}

/// Whether a condition excludes a row, whatever errors its output columns have.
pub fn is_excluded(errors: &[ErrorDetail], is_selected: bool) -> bool {
    let is_undecided = |error: &ErrorDetail| matches!(error.column.as_deref(), None | Some(CONDITION));
    !is_selected && !errors.iter().any(is_undecided)
}

/// The errors and losses of rows.
#[derive(Default)]
pub struct ReportColumns {
    pub errors: ErrorColumn,
    pub losses: LossColumn,
}

impl ReportColumns {
    pub fn push_whole(&mut self, rows: usize, errors: bool, losses: bool) {
        if errors {
            self.errors.push_whole(rows);
        }
        if losses {
            self.losses.push_whole(rows);
        }
    }

    pub fn would_pass(&self, errors: &[ErrorDetail], losses: &[Loss], max_offset: usize) -> bool {
        self.errors.would_pass(errors, max_offset) || self.losses.would_pass(losses, max_offset)
    }

    /// Truncates the errors and losses of the next row if all rows together have too many.
    pub fn truncate(&self, errors: &mut Vec<ErrorDetail>, losses: &mut Vec<Loss>, max_reports: usize) {
        self.errors.truncate(errors, max_reports);
        self.losses.truncate(losses, max_reports);
    }

    /// Whether the reports of the next rows can be appended without truncating any.
    pub fn keeps_all(&self, other: &ReportColumns, max_reports: usize) -> bool {
        self.errors.keeps_all(&other.errors, max_reports) && self.losses.keeps_all(&other.losses, max_reports)
    }

    /// Appends the reports of the next rows.
    pub fn extend(&mut self, other: &ReportColumns, progress: Progress) {
        self.errors.extend(&other.errors, progress);
        self.losses.extend(&other.losses, progress);
    }

    /// Upper bound of the bytes of each text column.
    pub fn text_len(&self) -> usize {
        self.errors.text_len.max(self.losses.text_len)
    }
}

pub type ErrorColumn = ReportColumn<ErrorDetail>;
pub type LossColumn = ReportColumn<Loss>;

/// Number of reports that every row keeps, regardless of the total. Rows of real data have fewer errors and losses, and
/// the memory is proportional to the bytes of the row.
const ROW_REPORTS: usize = 64;

/// Maximum number of text fields.
const TEXTS: usize = 5;

/// Text fields in order, the index of a header, and a byte position.
type ReportValues<'a> = ([Option<&'a str>; TEXTS], Option<usize>, Option<usize>);

/// Error or loss as a struct of `FIELDS`: texts, the index of a header (int32), and at most one byte position (int64).
pub trait ReportFields {
    const FIELDS: fn() -> Fields;

    fn values(&self) -> ReportValues<'_>;
}

/// `code, message, byte_offset, header, key, column`
impl ReportFields for ErrorDetail {
    const FIELDS: fn() -> Fields = schema::error_fields;

    fn values(&self) -> ReportValues<'_> {
        let ErrorDetail { code, message, byte, header, key, column } = self;
        ([Some(code.name()), Some(message), key.as_deref(), column.as_deref(), None], *header, *byte)
    }
}

/// `code, message, header, key, type, written`
impl ReportFields for Loss {
    const FIELDS: fn() -> Fields = schema::loss_fields;

    fn values(&self) -> ReportValues<'_> {
        let Loss { code, message, header, key, value_type, written } = self;
        ([Some(code.name()), Some(message), key.as_deref(), value_type.as_deref(), *written], *header, None)
    }
}

/// A growing column of lists of errors or losses.
pub struct ReportColumn<R> {
    lists: Column,
    text_len: usize,
    /// Number of reports beyond the first [`ROW_REPORTS`] of each row.
    further: usize,
    report: PhantomData<fn(R)>,
}

impl<R: ReportFields> Default for ReportColumn<R> {
    fn default() -> Self {
        let lists = Column::new(schema::list_of(DataType::Struct(R::FIELDS())), &ViewInput::default());
        ReportColumn { lists, text_len: 0, further: 0, report: PhantomData }
    }
}

impl<R: ReportFields> ReportColumn<R> {
    /// Whether the text of a column would exceed `max_offset` with these reports.
    pub fn would_pass(&self, reports: &[R], max_offset: usize) -> bool {
        self.text_len + reports.iter().map(text_len).sum::<usize>() > max_offset
    }

    /// Truncates the reports of the next row, which keeps its first [`ROW_REPORTS`].
    pub fn truncate(&self, reports: &mut Vec<R>, max_reports: usize)
    where
        R: Report,
    {
        let max_len = max_reports.saturating_sub(self.further).max(max_reports.min(ROW_REPORTS)).max(MIN_REPORTS);
        if reports.len() > max_len {
            truncate_list(reports, max_len, max_reports);
        }
    }

    fn keeps_all(&self, other: &Self, max_reports: usize) -> bool {
        other.further == 0 || self.further.saturating_add(other.further) < max_reports
    }

    #[inline]
    pub fn push(&mut self, reports: &[R]) {
        self.further += reports.len().saturating_sub(ROW_REPORTS);
        for report in reports {
            self.text_len += text_len(report);
            let (texts, header, byte) = report.values();
            let mut texts = texts.into_iter();
            for column in self.lists.values_mut().fields_mut() {
                column.push(match column.parts().0 {
                    Data::Int64(_) => byte.map(|byte| Value::Int(byte as i64)),
                    Data::Int32(_) => {
                        header.and_then(|header| i32::try_from(header).ok()).map(|header| Value::Int(header.into()))
                    }
                    _ => texts.next().flatten().map(|text| Value::Text(Cow::Borrowed(text))),
                });
            }
        }
        self.lists.end_list(!reports.is_empty());
    }

    /// Appends rows without reports.
    pub fn push_whole(&mut self, rows: usize) {
        self.lists.push_null_lists(rows);
    }

    fn extend(&mut self, other: &Self, progress: Progress) {
        self.lists.extend(&other.lists, progress);
        self.text_len += other.text_len;
        self.further += other.further;
    }

    pub fn finish(self) -> ArrayRef {
        self.lists.finish()
    }
}

/// Maximum number of bytes that a report adds to one column of text.
fn text_len(report: &impl ReportFields) -> usize {
    report.values().0.into_iter().flatten().map(str::len).max().unwrap_or(0)
}

#[cfg(test)]
#[path = "../../tests/rust/units/arrow_errors.rs"]
mod tests;
