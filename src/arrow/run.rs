//! [`run`] appends rows to a sink: blocks by kernels, other rows one by one. It applies the error policy, the limit of
//! 2 GiB and threads. Rows of a column and messages of a batch that kernels cannot read go through
//! [`OutputRows::append_row`].

use std::ops::{Range, RangeInclusive};
use std::sync::{Mutex, PoisonError};

use arrow_buffer::NullBuffer;

use super::errors::{FailedRow, ReportColumns, RowAction, Verdict, is_excluded};
use super::input::Bytes;
use super::rows::{Appended, Buffers, Next, Parsed, RowSource};
use super::sink::{Row, RowSink};
use super::threads;
use crate::error::{Code, Direction, Error, ErrorDetail, Loss, interrupted};
use crate::interrupt;
use crate::kernel::ROWS;
use crate::kernel::buffer::Progress;
use crate::log::{CollectErrors, EitherLog, FailFast, Log, OnError, OnLoss, Stop, no_reason};
use crate::sink::Presence;

/// Number of rows of a part: enough to pay for a thread, few enough that the part stays in the cache until it is
/// appended.
const PART_ROWS: RangeInclusive<usize> = 1 << 10..=1 << 13;

/// The options of a run.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    pub format: &'static str,
    pub direction: Direction,
    /// Format to name in errors of writing a row, if it differs from the format that is read.
    pub target: Option<&'static str>,
    pub on_error: OnError,
    pub on_loss: OnLoss,
    /// Number of rows before this column, in earlier chunks of the stream.
    pub rows_before: usize,
    /// Maximum number of bytes or elements of an output column.
    pub max_offset: usize,
    /// Number of threads that share the rows.
    pub threads: usize,
    /// Maximum number of errors, and of losses, of all rows together, beyond the reports that each row keeps.
    pub max_reports: usize,
}

/// Rows appended to a sink, with their errors and losses.
pub struct OutputRows<S> {
    pub sink: S,
    /// Number of rows of the sink before the current one.
    mark: usize,
    pub report_columns: ReportColumns,
    /// Input row before which the rows end: an output column was full, or the input has no more rows.
    pub until: usize,
}

/// Function that parses a row into a sink. It is called again, with another log, for a row with errors.
pub type ParseRow<'p, 'a, S> = dyn FnMut(EitherLog<'_>, &mut Row<'_, 'a, S>) -> Parsed + 'p;

/// Outcome of appending a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowEnd {
    Appended,
    /// A condition excludes the row.
    Excluded,
    /// An output column is full, and the row was removed.
    Full,
}

impl<S> OutputRows<S> {
    pub fn new(sink: S, from: usize) -> Self {
        OutputRows { sink, mark: 0, report_columns: ReportColumns::default(), until: from }
    }

    #[inline]
    pub fn begin_row<'a>(&mut self, found: &mut S::Found)
    where
        S: RowSink<'a>,
    {
        self.sink.begin_row(found);
        self.mark = self.sink.row_count();
    }

    /// Removes the current row.
    fn abort_row<'a>(&mut self, found: &mut S::Found)
    where
        S: RowSink<'a>,
    {
        self.sink.truncate(self.mark);
        self.sink.begin_row(found);
    }

    /// Appends a row without kernels. `row` is its number in errors, which `log` collects.
    #[inline]
    pub fn append_row<'a>(
        &mut self,
        plan: &Plan,
        row: usize,
        found: &mut S::Found,
        parse: &mut impl FnMut(EitherLog<'_>, &mut Row<'_, 'a, S>) -> Parsed,
        log: Option<&mut CollectErrors>,
    ) -> Result<RowEnd, Error>
    where
        S: RowSink<'a>,
    {
        self.begin_row(found);
        let mut fast = FailFast::new(plan.on_loss);
        let parsed = parse(EitherLog::FailFast(&mut fast), &mut Row { sink: &mut self.sink, found });
        match parsed.and_then(|headers| self.sink.end_row(found, headers, &mut fast)) {
            Ok(()) if self.sink.is_selected() == Some(false) => {
                self.abort_row(found);
                Ok(RowEnd::Excluded)
            }
            Ok(()) => Ok(self.end_row(plan, found)),
            Err(Stop) => {
                let mut own = None;
                let log = log.unwrap_or_else(|| own.insert(CollectErrors::new(plan.on_loss, plan.max_reports)));
                self.append_failed_row(plan, row, found, parse, log)
            }
        }
    }

    /// Appends a row that was begun and has errors. The log may contain some of them.
    #[cold]
    pub fn append_failed_row<'a>(
        &mut self,
        plan: &Plan,
        row: usize,
        found: &mut S::Found,
        parse: &mut ParseRow<'_, 'a, S>,
        log: &mut CollectErrors,
    ) -> Result<RowEnd, Error>
    where
        S: RowSink<'a>,
    {
        self.abort_row(found);
        let has_frame_errors = !log.errors().is_empty();
        let ((parsed, is_readable, ended), is_broken) = log.inside_frame(|log| {
            let parsed = parse(EitherLog::Collect(log), &mut Row { sink: &mut self.sink, found });
            let headers = match parsed {
                Err(Stop) => Presence::Broken,
                Ok(Presence::Whole) if log.has_header_errors() => Presence::Damaged,
                Ok(headers) => headers,
            };
            log.enter_header(None);
            let is_readable = log.errors().is_empty();
            // A partially read message is not written.
            let ended = match plan.target {
                Some(_) if !is_readable => Err(Stop),
                _ => self.sink.end_row(found, headers, log),
            };
            (parsed, is_readable, ended)
        });
        if log.errors().is_empty() {
            let format = plan.target.unwrap_or(plan.format);
            if parsed.is_err() || ended.is_err() {
                return Err(no_reason(format));
            }
            log.reject_losses(format).map_err(|error| error.in_row(Some(row)))?;
            return Ok(self.end_reported_row(plan, found, Vec::new(), log.take_losses()));
        }
        let is_appended = ended.is_ok() && plan.target.is_none();
        let failed = FailedRow { is_broken, has_frame_errors, is_appended, keeps_parts: S::KEEPS_PARTS };
        let (direction, format) = match plan.target {
            Some(target) if is_readable => (Direction::Encode, target),
            _ => (plan.direction, plan.format),
        };
        self.apply_policy(plan, found, failed, log.take_errors(), |error| {
            error.into_error(direction, format, Some(row))
        })
    }

    /// Appends a row that is entirely unreadable.
    #[cold]
    pub fn append_unreadable_row<'a>(
        &mut self,
        plan: &Plan,
        row: usize,
        found: &mut S::Found,
        errors: Vec<ErrorDetail>,
    ) -> Result<RowEnd, Error>
    where
        S: RowSink<'a>,
    {
        self.begin_row(found);
        let failed =
            FailedRow { is_broken: true, has_frame_errors: true, is_appended: false, keeps_parts: S::KEEPS_PARTS };
        self.apply_policy(plan, found, failed, errors, |error| error.into_error(plan.direction, plan.format, Some(row)))
    }

    /// Raises, keeps or drops a row with errors.
    fn apply_policy<'a>(
        &mut self,
        plan: &Plan,
        found: &mut S::Found,
        failed: FailedRow,
        mut errors: Vec<ErrorDetail>,
        locate: impl FnOnce(ErrorDetail) -> Error,
    ) -> Result<RowEnd, Error>
    where
        S: RowSink<'a>,
    {
        if failed.is_null(plan.on_error) && !(failed.keeps_fields() && self.sink.null_headers()) {
            self.abort_row(found);
            self.sink.null_row();
        }
        let condition = self.sink.is_selected();
        let is_selected = condition.unwrap_or(true);
        let action = failed.decide(plan.on_error, is_selected, is_excluded(&errors, is_selected));
        if condition.is_some() && plan.on_error.is_column() {
            let is_certain = plan.on_error.is_null() || self.sink.is_selected_by_fields();
            Verdict { is_selected, is_certain }.attribute(&mut errors);
        }
        match action {
            RowAction::Raise => Err(errors.into_iter().next().map_or_else(|| no_reason(plan.format), locate)),
            RowAction::Drop => {
                self.abort_row(found);
                Ok(RowEnd::Excluded)
            }
            RowAction::Keep | RowAction::Null => {
                let is_reported = plan.on_error.is_column();
                Ok(self.end_reported_row(plan, found, if is_reported { errors } else { Vec::new() }, Vec::new()))
            }
        }
    }

    /// Keeps the row that the sink has ended, or removes it if it does not fit.
    #[inline]
    fn end_row<'a>(&mut self, plan: &Plan, found: &mut S::Found) -> RowEnd
    where
        S: RowSink<'a>,
    {
        if self.sink.max_offset() > plan.max_offset {
            self.abort_row(found);
            return RowEnd::Full;
        }
        self.report_columns.push_whole(1, plan.on_error.is_column(), plan.on_loss == OnLoss::Report);
        RowEnd::Appended
    }

    /// Like `end_row`, but also appends the errors and losses of the row.
    fn end_reported_row<'a>(
        &mut self,
        plan: &Plan,
        found: &mut S::Found,
        mut errors: Vec<ErrorDetail>,
        mut losses: Vec<Loss>,
    ) -> RowEnd
    where
        S: RowSink<'a>,
    {
        let OutputRows { sink, report_columns, .. } = &mut *self;
        report_columns.truncate(&mut errors, &mut losses, plan.max_reports);
        if report_columns.would_pass(&errors, &losses, plan.max_offset) || sink.max_offset() > plan.max_offset {
            self.abort_row(found);
            return RowEnd::Full;
        }
        if plan.on_error.is_column() {
            report_columns.errors.push(&errors);
        }
        if plan.on_loss == OnLoss::Report {
            report_columns.losses.push(&losses);
        }
        RowEnd::Appended
    }

    /// Whether the next rows can be appended without exceeding a limit.
    pub fn fits<'a>(&self, next: &Self, plan: &Plan) -> bool
    where
        S: RowSink<'a>,
    {
        let reach = |rows: &Self| rows.sink.max_offset().max(rows.report_columns.text_len());
        let is_short = reach(self).saturating_add(reach(next)) <= plan.max_offset;
        is_short && self.report_columns.keeps_all(&next.report_columns, plan.max_reports)
    }

    /// Appends the next rows.
    pub fn extend<'a>(&mut self, next: Self, progress: Progress)
    where
        S: RowSink<'a>,
    {
        self.sink.extend(&next.sink, progress);
        self.report_columns.extend(&next.report_columns, progress);
        self.until = next.until;
    }
}

/// Appends all rows from `from` on to new sinks: blocks by kernels, the rows between them one by one.
pub fn run<'a, S: RowSink<'a>>(
    rows: &dyn RowSource<'a, S>,
    from: usize,
    plan: &Plan,
    make: &(dyn Fn() -> Result<S, Error> + Sync),
) -> Result<OutputRows<S>, Error> {
    let all = from..rows.column().len();
    let mut whole = RowRun::new(rows, plan, all.clone(), make()?);
    let part = |range| Some(Box::new(RowRun::new(rows, plan, range, make().ok()?)) as _);
    share(all, plan, PART_ROWS, &mut whole, &part)?;
    Ok(whole.rows)
}

/// Processing of a range of the input, to which the rows of the next range can be appended.
pub trait RangeRun<'a, S: RowSink<'a>> {
    fn rows(&self) -> &OutputRows<S>;

    fn into_rows(self: Box<Self>) -> OutputRows<S>;

    /// Processes rows up to `end`; returns false if the output is full before.
    fn advance(&mut self, end: usize) -> Result<bool, Error>;

    /// Appends the rows of the next range, which another thread has processed.
    fn append(&mut self, next: OutputRows<S>);
}

/// Shares a range among the threads of a plan. Runs created by `make` process parts of `sizes` rows. `whole` appends
/// these parts, or processes a part itself if it cannot append it.
pub fn share<'r, 'a, S: RowSink<'a>>(
    all: Range<usize>,
    plan: &Plan,
    sizes: RangeInclusive<usize>,
    whole: &mut dyn RangeRun<'a, S>,
    make: &(dyn Fn(Range<usize>) -> Option<Box<dyn RangeRun<'a, S> + 'r>> + Sync),
) -> Result<(), Error> {
    let parts = Mutex::new(Vec::new());
    let lock = || parts.lock().unwrap_or_else(PoisonError::into_inner);
    let make_part = |range: Range<usize>| {
        let Some(mut part) = make(range.clone()) else { return false };
        let is_whole = part.advance(range.end).is_ok_and(|is_whole| is_whole);
        if is_whole {
            lock().push((range.start, part.into_rows()));
        }
        is_whole
    };
    let mut append = |range: Range<usize>, is_made: bool| {
        let part = if is_made { lock().extract_if(.., |(start, _)| *start == range.start).next() } else { None };
        match part {
            Some((_, part)) if whole.rows().fits(&part, plan) => {
                whole.append(part);
                Ok(true)
            }
            _ => whole.advance(range.end),
        }
    };
    threads::share(all, plan.threads, sizes, &make_part, &mut append)
}

/// Processing of a range of rows, up to `rows.until`.
struct RowRun<'r, 'a, S: RowSink<'a>> {
    source: &'r dyn RowSource<'a, S>,
    plan: &'r Plan,
    range: Range<usize>,
    nulls: Option<&'a NullBuffer>,
    /// The column, if it is binary.
    bytes: Option<Bytes<'a>>,
    buffers: Buffers<'a>,
    /// Number of rows of the next block, which is smaller after a row that a kernel could not read.
    step: usize,
    /// Whether the sink can append several rows at once.
    has_blocks: bool,
    rows: OutputRows<S>,
    found: S::Found,
}

impl<'r, 'a, S: RowSink<'a>> RowRun<'r, 'a, S> {
    fn new(source: &'r dyn RowSource<'a, S>, plan: &'r Plan, range: Range<usize>, sink: S) -> Self {
        let (nulls, bytes) = (source.nulls(), Bytes::of(source.column()));
        let (buffers, rows, found) = (Buffers::default(), OutputRows::new(sink, range.start), S::Found::default());
        RowRun { source, plan, range, nulls, bytes, buffers, step: ROWS, has_blocks: true, rows, found }
    }

    /// Lets the sink append a block of rows; returns false if the next row must be parsed.
    #[inline]
    fn append_block(&mut self, end: usize) -> bool {
        let rows = self.rows.until..end.min(self.rows.until + self.step);
        let next = Next { rows, max_offset: self.plan.max_offset, progress: self.progress() };
        let RowRun { source, plan, buffers, rows, found, .. } = self;
        let Some(Appended { offered, appended }) =
            source.append(buffers, next, &mut Row { sink: &mut rows.sink, found })
        else {
            self.has_blocks = false;
            return false;
        };
        rows.report_columns.push_whole(appended, plan.on_error.is_column(), plan.on_loss == OnLoss::Report);
        rows.until += appended;
        let is_whole = offered > 0 && offered == appended;
        if offered > 0 {
            self.step = if is_whole { (2 * self.step).min(ROWS) } else { 1 };
        }
        is_whole
    }

    /// Progress through the range, in bytes or rows.
    fn progress(&self) -> Progress {
        let before = |row| self.bytes.map_or(row, |bytes| bytes.before(row));
        let start = before(self.range.start);
        Progress { bytes: before(self.rows.until) - start, all: before(self.range.end) - start }
    }
}

impl<'a, S: RowSink<'a>> RangeRun<'a, S> for RowRun<'_, 'a, S> {
    fn rows(&self) -> &OutputRows<S> {
        &self.rows
    }

    fn into_rows(self: Box<Self>) -> OutputRows<S> {
        self.rows
    }

    fn append(&mut self, next: OutputRows<S>) {
        let progress = self.progress();
        self.rows.extend(next, progress);
    }

    fn advance(&mut self, end: usize) -> Result<bool, Error> {
        let plan = self.plan;
        while self.rows.until < end {
            if interrupt::is_requested() {
                return Err(interrupted());
            }
            if self.has_blocks && self.append_block(end) {
                continue;
            }
            let RowRun { source, buffers, rows, found, .. } = self;
            let row = rows.until;
            let ended = if self.nulls.is_some_and(|nulls| nulls.is_null(row)) {
                rows.begin_row(found);
                rows.sink.null_row();
                rows.end_row(plan, found)
            } else {
                let mut parse = |log: EitherLog<'_>, to: &mut Row<'_, 'a, S>| source.parse(row, &mut *buffers, log, to);
                rows.append_row(plan, plan.rows_before + row, found, &mut parse, None)?
            };
            if ended == RowEnd::Full {
                if row > self.range.start {
                    return Ok(false);
                }
                let direction = if plan.target.is_some() { Direction::Convert } else { plan.direction };
                return Err(too_large(direction, plan.format, plan.rows_before + row));
            }
            rows.until += 1;
        }
        Ok(true)
    }
}

pub fn too_large(direction: Direction, format: &'static str, row: usize) -> Error {
    let error = ErrorDetail::of_message(Code::TooLarge, "this row alone passes the 2 GiB of an Arrow column");
    error.into_error(direction, format, Some(row))
}
