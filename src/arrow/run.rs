//! One run over rows: blocks through the kernels, other rows one by one, error policy, cutting at 2 GiB.

use super::faults::Findings;
use super::rows::Rows;
use super::sink::RowSink;
use crate::error::{Code, Direction, Error, Fault, Located, Loss};
use crate::kernel::ROWS;
use crate::kernel::buffer::Seen;
use crate::mode::{Exact, Fast, Mode, OnLoss, Stop, no_reason};
use crate::walk::Presence;

/// What becomes of a row that does not decode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnError {
    #[default]
    Raise,
    Null,
    Column,
}

/// The largest offset that a 32-bit column can hold.
pub const MAX_OFFSET: usize = i32::MAX as usize;

/// What a run is told.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    pub format: &'static str,
    pub direction: Direction,
    /// The format and direction of what goes wrong when a row ends, where that is another one.
    pub target: Option<&'static str>,
    pub on_error: OnError,
    pub on_loss: OnLoss,
    /// Rows that came before this column, in chunks of the same stream.
    pub rows_before: usize,
    /// An output column may not grow past this many bytes or elements.
    pub max_offset: usize,
}

/// What a run made, and the row at which the output was full, or the number of rows.
pub struct Ran<S> {
    pub sink: S,
    pub findings: Findings,
    pub until: usize,
    /// The largest offset that was compared with `max_offset`.
    pub reach: usize,
}

impl<'a, S: RowSink<'a>> Ran<S> {
    fn new(sink: S, findings: Findings, until: usize) -> Self {
        let reach = sink.max_offset().max(findings.text_len());
        Ran { sink, findings, until, reach }
    }
}

/// Runs from row `from` on into a new sink: blocks of rows through the kernels, and the rows between them one by one.
pub fn run<'a, R: Rows<'a>, S: RowSink<'a>>(
    rows: &R,
    from: usize,
    plan: &Plan,
    make: impl Fn() -> Result<S, Error>,
) -> Result<Ran<S>, Error> {
    let mut sink = make()?;
    let mut findings = Findings::default();
    let (end, before) = (rows.row_count(), rows.before(from));
    let all = rows.before(end) - before;
    let mut block = rows.block();
    let mut row = from;
    // Rows of the next block: fewer behind one that a kernel could not read, so that many of these cost little.
    let mut step = ROWS;
    while row < end {
        let seen = Seen { bytes: rows.before(row) - before, all };
        let (given, taken) = rows.append(&mut block, row..end.min(row + step), plan.max_offset, seen, &mut sink);
        findings.push_whole(taken, plan.on_error == OnError::Column, plan.on_loss == OnLoss::Report);
        row += taken;
        if given > 0 && given == taken {
            step = (2 * step).min(ROWS);
            continue;
        }
        if given > 0 {
            step = 1;
        }
        sink.begin_row();
        let found = run_row(rows, row, plan, &mut sink)?;
        let (faults, losses) = found.as_deref().map_or((&[][..], &[][..]), |(faults, losses)| (faults, losses));
        if sink.max_offset() > plan.max_offset || findings.would_pass(faults, losses, plan.max_offset) {
            sink.abort_row();
            if row == from {
                return Err(too_large(plan, row));
            }
            return Ok(Ran::new(sink, findings, row));
        }
        if plan.on_error == OnError::Column {
            findings.faults.push(faults);
        }
        if plan.on_loss == OnLoss::Report {
            findings.losses.push(losses);
        }
        row += 1;
    }
    Ok(Ran::new(sink, findings, rows.row_count()))
}

/// What is said about one row in its columns of faults and losses; nothing about nearly all of them.
type Found = Option<Box<(Vec<Fault>, Vec<Loss>)>>;

/// One row. What comes back is for the columns of findings; what the policy raises is an error.
#[inline]
fn run_row<'a, R: Rows<'a>, S: RowSink<'a>>(rows: &R, row: usize, plan: &Plan, sink: &mut S) -> Result<Found, Error> {
    if rows.is_null(row) {
        sink.null_row();
        return Ok(None);
    }
    let mut fast = Fast::new(plan.on_loss);
    let walked = rows.walk(row, &mut fast, sink).and_then(|headers| sink.end_row(headers, &mut fast));
    match walked {
        Ok(()) => Ok(None),
        Err(Stop) => run_row_exactly(rows, row, plan, sink),
    }
}

#[cold]
fn run_row_exactly<'a, R: Rows<'a>, S: RowSink<'a>>(
    rows: &R,
    row: usize,
    plan: &Plan,
    sink: &mut S,
) -> Result<Found, Error> {
    sink.abort_row();
    let mut exact = Exact::new(plan.on_loss);
    let walk = rows.walk(row, &mut exact, sink);
    let headers = match walk {
        Err(Stop) => Presence::Broken,
        Ok(Presence::Whole) if exact.faults.iter().any(|fault| fault.header.is_some()) => Presence::Damaged,
        Ok(headers) => headers,
    };
    exact.enter_header(None);
    let walked = exact.faults.len();
    // What is written in another format has to be read first: of a message that was not there is nothing to end.
    let ended = match plan.target {
        Some(_) if walked > 0 => Err(Stop),
        _ => sink.end_row(headers, &mut exact),
    };
    let fail = |direction, format, fault: Fault| {
        let row = Some(plan.rows_before + row);
        Err(Error::Headers(direction, Box::new(Located { format, row, fault })))
    };
    let Some(first) = exact.faults.first() else {
        let format = plan.target.unwrap_or(plan.format);
        if walk.is_err() || ended.is_err() {
            return Err(no_reason(format));
        }
        exact.refuse_losses(format).map_err(|error| error.in_row(plan.rows_before + row))?;
        return Ok(Some(Box::new((Vec::new(), exact.losses))));
    };
    match plan.on_error {
        OnError::Raise => match plan.target {
            Some(target) if walked == 0 => fail(Direction::Encode, target, first.clone()),
            _ => fail(plan.direction, plan.format, first.clone()),
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
            Ok(Some(Box::new((exact.faults, Vec::new()))))
        }
    }
}

fn too_large(plan: &Plan, row: usize) -> Error {
    let fault = Fault::of_message(Code::TooLarge, "this row alone passes the 2 GiB of an Arrow column");
    let direction = if plan.target.is_some() { Direction::Convert } else { plan.direction };
    Error::Headers(direction, Box::new(Located { format: plan.format, row: Some(plan.rows_before + row), fault }))
}
