//! One operation on a column by several threads: [`apply`].
//!
//! ```text
//!   rows ──▶ ranges ──▶ each thread takes the next range and applies the operation to it
//!                              │ its array, still in the cache
//!                              ▼
//!            joined behind the arrays of the ranges before it, in the order of the rows
//! ```
//!
//! The result is that of one thread. The error of the first range that fails is returned. Where one thread would end the
//! output before the last row, because an offset passes its limit, one thread does the work.

use std::any::Any;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::binary::ViewInput;
use super::input::Bytes;
use super::join::Joined;
use super::{Input, Output};
use crate::error::{Code, Error};
use crate::kernel::buffer::Seen;

/// Rows of a range: enough to pay for a thread, few enough that their output stays in the cache until it is joined.
const ROWS: RangeInclusive<usize> = 1 << 10..=1 << 12;

/// Ranges of each thread, where there are enough rows: the last ones that threads take end at nearly the same time.
const RANGES: usize = 16;

/// What a range became; what it panicked with.
type Made = thread::Result<Result<Output, Error>>;

/// Applies an operation to the rows of the input, from its first row on.
pub fn apply(
    operation: &(dyn Fn(Input<'_>) -> Result<Output, Error> + Sync),
    input: Input<'_>,
    threads: usize,
) -> Result<Output, Error> {
    let end = input.column.len();
    let all = end - input.from;
    if threads == 1 || all < 2 * ROWS.start() {
        return operation(input);
    }
    let rows = (all / threads.saturating_mul(RANGES)).clamp(*ROWS.start(), *ROWS.end());
    let ranges = all.div_ceil(rows);
    let next = AtomicUsize::new(0);
    let joining = Mutex::new(Joining::new(all, input));
    let run = || loop {
        let place = next.fetch_add(1, Ordering::Relaxed);
        if place >= ranges {
            break;
        }
        let from = input.from + place * rows;
        let column = input.column.slice(from, rows.min(end - from));
        let range = Input { column: &column, from: 0, rows_before: input.rows_before + from, ..input };
        let made = catch_unwind(AssertUnwindSafe(|| operation(range)));
        // Another thread that panicked with the lock ends the scope.
        let Ok(mut joining) = joining.lock() else { break };
        if !joining.take(place, column.len(), made) {
            break;
        }
    };
    thread::scope(|scope| {
        // Where the system has no more threads, those that there are do the work.
        for _ in 1..threads.min(ranges) {
            if thread::Builder::new().spawn_scoped(scope, run).is_err() {
                break;
            }
        }
        run();
    });
    let joining = joining.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    match (joining.end, joining.joined) {
        (None, Some(joined)) => Ok(Output { column: joined.finish(), until: end, reach: joining.reach }),
        (Some(End::Error(error)), _) => Err(error),
        (Some(End::Panic(panic)), _) => resume_unwind(panic),
        (Some(End::Full), _) | (None, None) => operation(input),
    }
}

/// Why ranges are not joined any more.
enum End {
    Error(Error),
    Panic(Box<dyn Any + Send>),
    /// An offset may pass its limit.
    Full,
}

/// What the ranges became, joined as far as all ranges before are.
struct Joining {
    /// The range to join next, and those that were faster.
    next: usize,
    early: BTreeMap<usize, (usize, Made)>,
    joined: Option<Joined>,
    /// Rows that were joined, and rows in all.
    rows: usize,
    all: usize,
    reach: usize,
    max_offset: usize,
    /// What views in the result refer to.
    views: ViewInput,
    /// Some range failed: the ranges behind it are not needed.
    failed: bool,
    end: Option<End>,
}

impl Joining {
    fn new(all: usize, input: Input<'_>) -> Self {
        let max_offset = input.max_offset;
        let views = Bytes::of_values(input.column).map(ViewInput::new).unwrap_or_default();
        Joining {
            next: 0,
            early: BTreeMap::new(),
            joined: None,
            rows: 0,
            all,
            reach: 0,
            max_offset,
            views,
            failed: false,
            end: None,
        }
    }

    /// Takes what a range of so many rows became; returns whether more ranges are needed.
    fn take(&mut self, place: usize, rows: usize, made: Made) -> bool {
        self.failed |= !matches!(made, Ok(Ok(_)));
        self.early.insert(place, (rows, made));
        while self.end.is_none()
            && let Some((rows, made)) = self.early.remove(&self.next)
        {
            self.next += 1;
            self.end = self.join(rows, made).err();
        }
        !self.failed && self.end.is_none()
    }

    fn join(&mut self, rows: usize, made: Made) -> Result<(), End> {
        let output = match made.map_err(End::Panic)? {
            Ok(output) => output,
            // A row that is too large for a column of its own range is refused, or put off, by one thread.
            Err(Error::Headers(_, located)) if located.fault.code == Code::TooLarge => return Err(End::Full),
            Err(error) => return Err(End::Error(error)),
        };
        // No column of the whole is longer than the longest of each range together.
        self.reach = self.reach.saturating_add(output.reach);
        if output.until < rows || self.reach > self.max_offset {
            return Err(End::Full);
        }
        let new = || Joined::new(output.column.data_type(), &self.views);
        let joined = self.joined.get_or_insert_with(new);
        joined.append(&output.column, Seen { bytes: self.rows, all: self.all });
        self.rows += rows;
        Ok(())
    }
}
