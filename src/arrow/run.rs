//! [`run`] appends rows to a sink: kernels for blocks, row by row otherwise; error policy, limit of 2 GiB, threads.

use std::ops::Range;

use arrow_buffer::NullBuffer;

use super::errors::{Decision, FailedRow, Findings};
use super::input::Bytes;
use super::rows::{Appended, Next, RowSource};
use super::sink::RowSink;
use super::threads;
use crate::error::{Code, Direction, Error, ErrorDetail, Loss, interrupted};
use crate::interrupt;
use crate::kernel::ROWS;
use crate::kernel::buffer::Progress;
use crate::log::{CollectErrors, Fast, Log, OnError, OnLoss, Stop, no_reason};
use crate::traits::Presence;

/// The largest offset that a 32-bit column can hold.
pub const MAX_OFFSET: usize = i32::MAX as usize;

/// The options of a run.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    pub format: &'static str,
    pub direction: Direction,
    /// The format that errors name when writing a row fails, where it is not the format that is read.
    pub target: Option<&'static str>,
    pub on_error: OnError,
    pub on_loss: OnLoss,
    /// Rows that came before this column, in chunks of the same stream.
    pub rows_before: usize,
    /// An output column may not grow past this many bytes or elements.
    pub max_offset: usize,
    /// Threads that share the rows.
    pub threads: usize,
    /// The most errors, and losses, of all rows together, beside the first of each row.
    pub reports: usize,
}

/// The result of a run, and the row at which the output was full, or the number of rows.
pub struct RunResult<S> {
    pub sink: S,
    pub findings: Findings,
    pub until: usize,
}

/// Appends all rows from `from` on to new sinks: blocks by the kernels, the rows between them one by one.
pub fn run<'a, R: RowSource<'a, S>, S: RowSink<'a>>(
    rows: &R,
    from: usize,
    plan: &Plan,
    make: impl Fn() -> Result<S, Error> + Sync,
) -> Result<RunResult<S>, Error> {
    let all = from..rows.column().len();
    let mut whole = Run::new(rows, plan, all.clone(), make()?);
    let part = |range: Range<usize>| {
        let mut part = Run::new(rows, plan, range.clone(), make().ok()?);
        part.advance(range.end).is_ok_and(|is_whole| is_whole).then_some(part.ran)
    };
    let mut append = |range: Range<usize>, part: Option<RunResult<S>>| match part {
        Some(part) if whole.fits(&part) => {
            whole.extend(part);
            Ok(true)
        }
        _ => whole.advance(range.end),
    };
    threads::share(all, plan.threads, &part, &mut append)?;
    Ok(whole.ran)
}

/// A run over a range of rows, up to `ran.until`.
struct Run<'r, 'a, R: RowSource<'a, S>, S> {
    rows: &'r R,
    plan: &'r Plan,
    range: Range<usize>,
    nulls: Option<&'a NullBuffer>,
    /// The column, if it is of bytes.
    bytes: Option<Bytes<'a>>,
    block: R::Block,
    /// Rows of the next block: fewer after one that a kernel could not read, so that many of these cost little.
    step: usize,
    ran: RunResult<S>,
}

/// The errors and losses of one row for the columns of them; nearly all rows have none.
type RowReports = Option<Box<(Vec<ErrorDetail>, Vec<Loss>)>>;

impl<'r, 'a, R: RowSource<'a, S>, S: RowSink<'a>> Run<'r, 'a, R, S> {
    fn new(rows: &'r R, plan: &'r Plan, range: Range<usize>, sink: S) -> Self {
        let ran = RunResult { sink, findings: Findings::default(), until: range.start };
        let (nulls, bytes) = (rows.nulls(), Bytes::of(rows.column()));
        Run { rows, plan, range, nulls, bytes, block: rows.block(), step: ROWS, ran }
    }

    /// How much of the range is processed, in bytes or rows.
    fn progress(&self) -> Progress {
        let before = |row| self.bytes.map_or(row, |bytes| bytes.before(row));
        let start = before(self.range.start);
        Progress { bytes: before(self.ran.until) - start, all: before(self.range.end) - start }
    }

    /// Whether no output passes its limit when a part is appended.
    fn fits(&self, part: &RunResult<S>) -> bool {
        let reach = |ran: &RunResult<S>| ran.sink.max_offset().max(ran.findings.text_len());
        let is_short = reach(&self.ran).saturating_add(reach(part)) <= self.plan.max_offset;
        is_short && self.ran.findings.keeps_all(&part.findings, self.plan.reports)
    }

    /// Appends what was made of the next rows.
    fn extend(&mut self, part: RunResult<S>) {
        let progress = self.progress();
        self.ran.sink.extend(&part.sink, progress);
        self.ran.findings.extend(part.findings);
        self.ran.until = part.until;
    }

    /// Goes on up to a row; returns false where the output is full before it.
    fn advance(&mut self, end: usize) -> Result<bool, Error> {
        let plan = self.plan;
        while self.ran.until < end {
            if interrupt::is_requested() {
                return Err(interrupted());
            }
            let rows = self.ran.until..end.min(self.ran.until + self.step);
            let next = Next { rows, max_offset: plan.max_offset, progress: self.progress() };
            let Appended { offered, appended } = self.rows.append(&mut self.block, next, &mut self.ran.sink);
            self.ran.findings.push_whole(appended, plan.on_error == OnError::Column, plan.on_loss == OnLoss::Report);
            self.ran.until += appended;
            if offered > 0 && offered == appended {
                self.step = (2 * self.step).min(ROWS);
                continue;
            }
            if offered > 0 {
                self.step = 1;
            }
            self.ran.sink.begin_row();
            let mut reports = self.slow_path()?;
            let RunResult { sink, findings, until: row } = &mut self.ran;
            let are_too_long = reports.as_deref_mut().is_some_and(|(errors, losses)| {
                findings.cut(errors, losses, plan.reports);
                findings.would_pass(errors, losses, plan.max_offset)
            });
            if are_too_long || sink.max_offset() > plan.max_offset {
                sink.abort_row();
                if *row > self.range.start {
                    return Ok(false);
                }
                let direction = if plan.target.is_some() { Direction::Convert } else { plan.direction };
                return Err(too_large(direction, plan.format, plan.rows_before + *row));
            }
            let (errors, losses) = reports.as_deref().map_or((&[][..], &[][..]), |(errors, losses)| (errors, losses));
            if plan.on_error == OnError::Column {
                findings.errors.push(errors);
            }
            if plan.on_loss == OnLoss::Report {
                findings.losses.push(losses);
            }
            *row += 1;
        }
        Ok(true)
    }

    /// Reads the next row. Returns what belongs into the columns of errors and losses, or the error that the policy
    /// raises.
    #[inline]
    fn slow_path(&mut self) -> Result<RowReports, Error> {
        let RunResult { sink, until: row, .. } = &mut self.ran;
        if self.nulls.is_some_and(|nulls| nulls.is_null(*row)) {
            sink.null_row();
            return Ok(None);
        }
        let mut fast = Fast::new(self.plan.on_loss);
        let parsed = self.rows.parse(*row, &mut self.block, &mut fast, sink);
        match parsed.and_then(|headers| sink.end_row(headers, &mut fast)) {
            Ok(()) => Ok(None),
            Err(Stop) => self.collect_errors(),
        }
    }

    /// Reads the row again, for its errors.
    #[cold]
    fn collect_errors(&mut self) -> Result<RowReports, Error> {
        let (plan, RunResult { sink, until: row, .. }) = (self.plan, &mut self.ran);
        sink.abort_row();
        let mut log = CollectErrors::new(plan.on_loss, plan.reports);
        let parse = self.rows.parse(*row, &mut self.block, &mut log, sink);
        let headers = match parse {
            Err(Stop) => Presence::Broken,
            Ok(Presence::Whole) if log.has_header_errors() => Presence::Damaged,
            Ok(headers) => headers,
        };
        log.enter_header(None);
        let is_readable = log.errors().is_empty();
        // A message is converted only if it was read: a partial one is not written.
        let ended = match plan.target {
            Some(_) if !is_readable => Err(Stop),
            _ => sink.end_row(headers, &mut log),
        };
        let row = Some(plan.rows_before + *row);
        let Some(first) = log.errors().first() else {
            let format = plan.target.unwrap_or(plan.format);
            if parse.is_err() || ended.is_err() {
                return Err(no_reason(format));
            }
            log.reject_losses(format).map_err(|error| error.in_row(row))?;
            return Ok(Some(Box::new((Vec::new(), log.take_losses()))));
        };
        let failed = FailedRow {
            is_broken: log.is_broken(),
            is_appended: ended.is_ok() && plan.target.is_none(),
            keeps_parts: S::KEEPS_PARTS,
        };
        match failed.decide(plan.on_error, true) {
            Decision::Raise => {
                let (direction, format) = match plan.target {
                    Some(target) if is_readable => (Direction::Encode, target),
                    _ => (plan.direction, plan.format),
                };
                return Err(first.clone().located(direction, format, row));
            }
            Decision::Keep => {}
            Decision::Null | Decision::Drop => {
                sink.abort_row();
                sink.null_row();
            }
        }
        let is_reported = plan.on_error == OnError::Column;
        Ok(is_reported.then(|| Box::new((log.take_errors(), Vec::new()))))
    }
}

pub fn too_large(direction: Direction, format: &'static str, row: usize) -> Error {
    let error = ErrorDetail::of_message(Code::TooLarge, "this row alone passes the 2 GiB of an Arrow column");
    error.located(direction, format, Some(row))
}
