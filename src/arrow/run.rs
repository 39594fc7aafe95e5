//! One run over rows: fast walk, roll back and exact walk of a row that fails, error policy, cutting. Written once.

use super::faults::FaultColumn;
use super::rows::Rows;
use crate::error::{Code, Direction, Error, Fault, Located};
use crate::mode::{Exact, Fast, Mode, OnLoss, Stop};
use crate::walk::{Presence, Sink};

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
    pub on_error: OnError,
    pub on_loss: OnLoss,
    /// Rows that came before this column, in chunks of the same stream.
    pub rows_before: usize,
    /// An output column may not grow past this many bytes or elements.
    pub max_offset: usize,
}

/// A sink of many rows. Between `begin_row` and the next one, `abort_row` puts it back to where it was.
pub trait RowSink<'a>: Sink<'a> {
    fn begin_row(&mut self);

    fn end_row<M: Mode>(&mut self, headers: Presence, mode: &mut M) -> Result<(), Stop>;

    fn abort_row(&mut self);

    /// A row without a message, or one of which nothing is kept.
    fn null_row(&mut self);

    /// The largest offset used so far.
    fn max_offset(&self) -> usize;

    /// Whether a row with faults keeps the parts without, when faults become nulls.
    fn keeps_parts(&self) -> bool;
}

/// Runs from row `from` on; gives the row at which the output is full, or the number of rows.
pub fn run<'a, R: Rows<'a>, S: RowSink<'a>>(
    rows: &R,
    from: usize,
    plan: &Plan,
    sink: &mut S,
    faults: &mut FaultColumn,
) -> Result<usize, Error> {
    for row in from..rows.row_count() {
        sink.begin_row();
        let found = run_row(rows, row, plan, sink)?;
        if sink.max_offset() > plan.max_offset || faults.would_pass(&found, plan.max_offset) {
            sink.abort_row();
            if row == from {
                return Err(too_large(plan, row));
            }
            return Ok(row);
        }
        faults.push(&found);
    }
    Ok(rows.row_count())
}

/// One row. What comes back is for the column of faults; what the policy raises is an error.
#[inline]
fn run_row<'a, R: Rows<'a>, S: RowSink<'a>>(
    rows: &R,
    row: usize,
    plan: &Plan,
    sink: &mut S,
) -> Result<Vec<Fault>, Error> {
    if rows.is_null(row) {
        sink.null_row();
        return Ok(Vec::new());
    }
    let mut fast = Fast { on_loss: plan.on_loss };
    let walked = rows.walk(row, &mut fast, sink).and_then(|headers| sink.end_row(headers, &mut fast));
    match walked {
        Ok(()) => Ok(Vec::new()),
        Err(Stop) => run_row_exactly(rows, row, plan, sink),
    }
}

#[cold]
fn run_row_exactly<'a, R: Rows<'a>, S: RowSink<'a>>(
    rows: &R,
    row: usize,
    plan: &Plan,
    sink: &mut S,
) -> Result<Vec<Fault>, Error> {
    sink.abort_row();
    let mut exact = Exact::new(plan.on_loss);
    let headers = match rows.walk(row, &mut exact, sink) {
        Err(Stop) => Presence::Broken,
        Ok(Presence::Whole) if exact.faults.iter().any(|fault| fault.header.is_some()) => Presence::Damaged,
        Ok(headers) => headers,
    };
    exact.enter_header(None);
    let ended = sink.end_row(headers, &mut exact);
    let raise = |direction, fault: Fault| {
        let row = Some(plan.rows_before + row);
        Err(Error::Headers(direction, Box::new(Located { format: plan.format, row, fault })))
    };
    if exact.faults.is_empty() {
        return match (plan.on_loss, exact.losses.is_empty()) {
            (OnLoss::Raise, false) => raise(Direction::Convert, exact.losses.swap_remove(0)),
            _ => Ok(exact.losses),
        };
    }
    match plan.on_error {
        OnError::Raise => raise(plan.direction, exact.faults.swap_remove(0)),
        OnError::Null if exact.broken || !sink.keeps_parts() => {
            sink.abort_row();
            sink.null_row();
            Ok(Vec::new())
        }
        OnError::Null => Ok(Vec::new()),
        OnError::Column => {
            if ended.is_err() {
                sink.abort_row();
                sink.null_row();
            }
            Ok(exact.faults)
        }
    }
}

fn too_large(plan: &Plan, row: usize) -> Error {
    let fault = Fault::of_message(Code::TooLarge, "this row alone passes the 2 GiB of an Arrow column");
    Error::Headers(plan.direction, Box::new(Located { format: plan.format, row: Some(plan.rows_before + row), fault }))
}
