//! [`run`] appends rows to a sink: kernels for blocks, row by row otherwise; error policy, limit of 2 GiB, threads.

use std::ops::Range;

use super::errors::Findings;
use super::rows::Rows;
use super::sink::RowSink;
use super::threads;
use crate::error::{Code, Direction, Error, ErrorDetail, Loss};
use crate::kernel::ROWS;
use crate::kernel::buffer::Seen;
use crate::log::{Exact, Fast, Log, OnLoss, Stop, no_reason};
use crate::traits::Presence;

/// How rows that do not decode are treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnError {
    #[default]
    Raise,
    Null,
    Column,
}

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
}

/// The result of a run, and the row at which the output was full, or the number of rows.
pub struct RunResult<S> {
    pub sink: S,
    pub findings: Findings,
    pub until: usize,
}

/// Appends all rows from `from` on to new sinks: blocks by the kernels, the rows between them one by one.
pub fn run<'a, R: Rows<'a>, S: RowSink<'a>>(
    rows: &R,
    from: usize,
    plan: &Plan,
    make: impl Fn() -> Result<S, Error> + Sync,
) -> Result<RunResult<S>, Error> {
    let all = from..rows.row_count();
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
struct Run<'r, 'a, R: Rows<'a>, S> {
    rows: &'r R,
    plan: &'r Plan,
    from: usize,
    /// How much of the input precedes the first row, and is in all rows of the range.
    before: usize,
    all: usize,
    block: R::Block,
    /// Rows of the next block: fewer after one that a kernel could not read, so that many of these cost little.
    step: usize,
    ran: RunResult<S>,
}

impl<'r, 'a, R: Rows<'a>, S: RowSink<'a>> Run<'r, 'a, R, S> {
    fn new(rows: &'r R, plan: &'r Plan, range: Range<usize>, sink: S) -> Self {
        let before = rows.before(range.start);
        Run {
            rows,
            plan,
            from: range.start,
            before,
            all: rows.before(range.end) - before,
            block: rows.block(),
            step: ROWS,
            ran: RunResult { sink, findings: Findings::default(), until: range.start },
        }
    }

    fn seen(&self) -> Seen {
        Seen { bytes: self.rows.before(self.ran.until) - self.before, all: self.all }
    }

    /// Whether no output passes its limit when a part is appended.
    fn fits(&self, part: &RunResult<S>) -> bool {
        let reach = |ran: &RunResult<S>| ran.sink.max_offset().max(ran.findings.text_len());
        reach(&self.ran).saturating_add(reach(part)) <= self.plan.max_offset
    }

    /// Appends what was made of the next rows.
    fn extend(&mut self, part: RunResult<S>) {
        let seen = self.seen();
        self.ran.sink.extend(&part.sink, seen);
        self.ran.findings.extend(part.findings);
        self.ran.until = part.until;
    }

    /// Goes on up to a row; returns false where the output is full before it.
    fn advance(&mut self, end: usize) -> Result<bool, Error> {
        while self.ran.until < end {
            let seen = self.seen();
            let Run { rows, plan, block, step, ran: RunResult { sink, findings, until: row }, .. } = self;
            let (offered, taken) = rows.append(block, *row..end.min(*row + *step), plan.max_offset, seen, sink);
            findings.push_whole(taken, plan.on_error == OnError::Column, plan.on_loss == OnLoss::Report);
            *row += taken;
            if offered > 0 && offered == taken {
                *step = (2 * *step).min(ROWS);
                continue;
            }
            if offered > 0 {
                *step = 1;
            }
            sink.begin_row();
            let found = run_row(*rows, *row, block, plan, sink)?;
            let (errors, losses) = found.as_deref().map_or((&[][..], &[][..]), |(errors, losses)| (errors, losses));
            if sink.max_offset() > plan.max_offset || findings.would_pass(errors, losses, plan.max_offset) {
                sink.abort_row();
                if *row > self.from {
                    return Ok(false);
                }
                let direction = if plan.target.is_some() { Direction::Convert } else { plan.direction };
                return Err(too_large(direction, plan.format, plan.rows_before + *row));
            }
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
}

/// The errors and losses of one row for the columns of them; nearly all rows have none.
type Found = Option<Box<(Vec<ErrorDetail>, Vec<Loss>)>>;

/// Reads one row. Returns what belongs into the columns of errors and losses, or the error that the policy raises.
#[inline]
fn run_row<'a, R: Rows<'a>, S: RowSink<'a>>(
    rows: &R,
    row: usize,
    block: &mut R::Block,
    plan: &Plan,
    sink: &mut S,
) -> Result<Found, Error> {
    if rows.is_null(row) {
        sink.null_row();
        return Ok(None);
    }
    let mut fast = Fast::new(plan.on_loss);
    let parsed = rows.parse(row, block, &mut fast, sink).and_then(|headers| sink.end_row(headers, &mut fast));
    match parsed {
        Ok(()) => Ok(None),
        Err(Stop) => run_row_exactly(rows, row, block, plan, sink),
    }
}

#[cold]
fn run_row_exactly<'a, R: Rows<'a>, S: RowSink<'a>>(
    rows: &R,
    row: usize,
    block: &mut R::Block,
    plan: &Plan,
    sink: &mut S,
) -> Result<Found, Error> {
    sink.abort_row();
    let mut exact = Exact::new(plan.on_loss);
    let parse = rows.parse(row, block, &mut exact, sink);
    let headers = match parse {
        Err(Stop) => Presence::Broken,
        Ok(Presence::Whole) if exact.errors.iter().any(|error| error.header.is_some()) => Presence::Damaged,
        Ok(headers) => headers,
    };
    exact.enter_header(None);
    let parsed = exact.errors.len();
    // A message is converted only if it was read: a partial one is not written.
    let ended = match plan.target {
        Some(_) if parsed > 0 => Err(Stop),
        _ => sink.end_row(headers, &mut exact),
    };
    let row = plan.rows_before + row;
    let Some(first) = exact.errors.first() else {
        let format = plan.target.unwrap_or(plan.format);
        if parse.is_err() || ended.is_err() {
            return Err(no_reason(format));
        }
        exact.reject_losses(format).map_err(|error| error.in_row(Some(row)))?;
        return Ok(Some(Box::new((Vec::new(), exact.losses))));
    };
    match plan.on_error {
        OnError::Raise => match plan.target {
            Some(target) if parsed == 0 => Err(first.clone().located(Direction::Encode, target, Some(row))),
            _ => Err(first.clone().located(plan.direction, plan.format, Some(row))),
        },
        OnError::Null if exact.broken || !sink.keeps_parts() => {
            sink.abort_row();
            sink.null_row();
            Ok(None)
        }
        OnError::Null => Ok(None),
        OnError::Column => {
            // Of a message that was only partly read there is nothing to write.
            if ended.is_err() || plan.target.is_some() {
                sink.abort_row();
                sink.null_row();
            }
            Ok(Some(Box::new((exact.errors, Vec::new()))))
        }
    }
}

pub fn too_large(direction: Direction, format: &'static str, row: usize) -> Error {
    let error = ErrorDetail::of_message(Code::TooLarge, "this row alone passes the 2 GiB of an Arrow column");
    error.located(direction, format, Some(row))
}
