//! Growing columns of the errors of rows, and of what their target format cannot carry: lists of structs, null for a
//! row without either.

use std::borrow::Cow;
use std::marker::PhantomData;

use arrow_array::ArrayRef;
use arrow_schema::{DataType, Fields};

use super::binary::ViewInput;
use super::column::{Column, Data};
use super::schema;
use crate::error::{Code, ErrorDetail, Loss};
use crate::kernel::buffer::Progress;
use crate::log::{LEAST_REPORTS, OnError, Report, truncate_list};
use crate::value::Value;

/// A row with errors.
#[derive(Debug, Clone, Copy)]
pub struct FailedRow {
    /// There are bytes after an error that could not be read.
    pub is_broken: bool,
    /// Error outside of the headers, such as a wrong checksum: no part of the message can be trusted.
    pub is_damaged: bool,
    /// The sink has ended the row, with nulls in place of what has errors.
    pub is_appended: bool,
    /// The row has several columns.
    pub keeps_parts: bool,
}

/// What happens to a row with errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowAction {
    Keep,
    Null,
    Drop,
    Raise,
}

impl FailedRow {
    /// Whether a null takes the place of the row, if it is not raised.
    pub fn is_null(self, policy: OnError) -> bool {
        !self.is_appended || policy.is_null() && (self.is_broken || self.is_damaged || !self.keeps_parts)
    }

    /// Whether only the headers of a row that becomes null have errors.
    pub fn keeps_fields(self) -> bool {
        self.is_appended && !self.is_damaged
    }

    /// `is_selected`: a filter selects the row, or the null in its place; `is_excluded`: it excludes the row, whose errors
    /// do not concern it.
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

/// Column in errors of the condition that a filter evaluates.
const CONDITION: &str = "where";

/// The result of a condition for a row with errors.
#[derive(Debug, Clone, Copy)]
pub struct Verdict {
    pub is_selected: bool,
    /// No header can change the result.
    pub is_certain: bool,
}

impl Verdict {
    /// Column of an error in the row: the condition, if the error leaves it undecided.
    pub fn column_of(self, column: Option<&str>, is_incomplete: bool) -> Option<&str> {
        match column {
            None | Some(CONDITION) => {
                let is_decided = self.is_selected && (self.is_certain || !is_incomplete);
                (!is_decided).then_some(CONDITION)
            }
            output => output,
        }
    }

    /// Names the condition in errors that left it undecided, and in no others.
    pub fn attribute(self, errors: &mut [ErrorDetail]) {
        for error in errors {
            let column = self.column_of(error.column.as_deref(), error.code == Code::Incomplete);
            error.column = column.map(str::to_owned);
        }
    }
}

/// Whether a condition that is not true was decided: the row is excluded, whatever errors its output columns have.
pub fn is_excluded(errors: &[ErrorDetail], is_selected: bool) -> bool {
    let is_undecided = |error: &ErrorDetail| matches!(error.column.as_deref(), None | Some(CONDITION));
    !is_selected && !errors.iter().any(is_undecided)
}

/// The errors and losses that a run has found.
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

    /// Cuts the errors and losses of the next row where all rows together have too many.
    pub fn truncate(&self, errors: &mut Vec<ErrorDetail>, losses: &mut Vec<Loss>, max_reports: usize) {
        self.errors.truncate(errors, max_reports);
        self.losses.truncate(losses, max_reports);
    }

    /// Whether no row of another run is cut when it comes after these.
    pub fn keeps_all(&self, other: &ReportColumns, max_reports: usize) -> bool {
        self.errors.keeps_all(&other.errors, max_reports) && self.losses.keeps_all(&other.losses, max_reports)
    }

    /// Appends the findings of another run over the rows after these.
    pub fn extend(&mut self, other: &ReportColumns, progress: Progress) {
        self.errors.extend(&other.errors, progress);
        self.losses.extend(&other.losses, progress);
    }

    /// At least the bytes of each text column.
    pub fn text_len(&self) -> usize {
        self.errors.text_len.max(self.losses.text_len)
    }
}

pub type ErrorColumn = ReportColumn<ErrorDetail>;
pub type LossColumn = ReportColumn<Loss>;

/// What every row of a column keeps, however many others there are: more than what is wrong with a row of real data, or lost
/// in its conversion, and in memory in proportion to the bytes that it is about.
const ROW_REPORTS: usize = 64;

/// The most fields of text.
const TEXTS: usize = 5;

/// The fields of text in their order, the index of a header, and a byte.
type ReportValues<'a> = ([Option<&'a str>; TEXTS], Option<usize>, Option<usize>);

/// An error or a loss as a struct of `FIELDS`: texts, one index of a header (int32), at most one byte offset (int64).
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

/// A growing column of lists of structs.
pub struct ReportColumn<R> {
    lists: Column,
    text_len: usize,
    /// Details beyond the first [`ROW_REPORTS`] of each row.
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
    /// Whether these would take a column past an offset.
    pub fn would_pass(&self, reports: &[R], max_offset: usize) -> bool {
        self.text_len + reports.iter().map(text_len).sum::<usize>() > max_offset
    }

    /// Cuts the details of the next row, which keeps its first [`ROW_REPORTS`] in any case.
    pub fn truncate(&self, reports: &mut Vec<R>, max_reports: usize)
    where
        R: Report,
    {
        let most = max_reports.saturating_sub(self.further).max(max_reports.min(ROW_REPORTS)).max(LEAST_REPORTS);
        if reports.len() > most {
            truncate_list(reports, most, max_reports);
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

    /// Appends rows without details.
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

/// The bytes that a detail adds to any one column of text at most.
fn text_len(report: &impl ReportFields) -> usize {
    report.values().0.into_iter().flatten().map(str::len).max().unwrap_or(0)
}

#[cfg(test)]
#[path = "../../tests/rust/units/arrow_errors.rs"]
mod tests;
