//! [`share`] divides rows among threads, and [`on_each`] whole items.
//!
//! ```text
//!   rows      ├──────────┼─────────┼──────┼─────────┼─────────── ⋯
//!              first      other     first  other
//! ```
//!
//! Parts are copied soon after they were produced. The first thread repeats the rows of a part that failed or does not
//! fit the output, so that errors, and the row at which an output is full, are the same as with one thread.

use std::collections::VecDeque;
use std::ops::{Range, RangeInclusive};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use crate::error::{Error, interrupted};
use crate::interrupt;
use crate::panics::catch_panic;

/// Number of parts of each thread, if there are enough rows, so that all threads end at nearly the same time.
const PARTS: usize = 16;

/// Maximum number of parts of each thread that wait to be appended, which bounds their memory.
const WAITING: usize = 4;

/// Number of steps in which the first thread processes as many rows as a part has.
const STEPS: usize = 4;

/// Calls `append` for ranges of the rows, in order, until it returns false or an error. Other threads call `make` for
/// later ranges of `sizes` rows. The second argument of `append` tells whether `make` returned true for the range.
pub fn share(
    rows: Range<usize>,
    threads: usize,
    sizes: RangeInclusive<usize>,
    make: &(dyn Fn(Range<usize>) -> bool + Sync),
    append: &mut dyn FnMut(Range<usize>, bool) -> Result<bool, Error>,
) -> Result<(), Error> {
    let count = rows.len();
    if threads == 1 || count < 2 * sizes.start() {
        return append(rows, false).map(drop);
    }
    let len = (count / threads.saturating_mul(PARTS)).clamp(*sizes.start(), *sizes.end());
    let threads = threads.min(count.div_ceil(len));
    let state = State { front: rows.start, claimed: rows.start, claims: VecDeque::new(), ended: false };
    let shared =
        Shared { state: Mutex::new(state), changed: Condvar::new(), len, end: rows.end, max_claims: threads * WAITING };
    let stop_flag = interrupt::stop_flag();
    let work = || interrupt::follow(&stop_flag, || shared.make_parts(make));
    thread::scope(|scope| {
        let _end = End(&shared);
        // If the system cannot start more threads, fewer do the work.
        for _ in 1..threads {
            if thread::Builder::new().spawn_scoped(scope, work).is_err() {
                break;
            }
        }
        shared.append_all(append)
    })
}

/// Minimum number of bytes of a chunk that pays for a thread.
#[cfg(feature = "python")]
const CHUNK_BYTES: usize = 1 << 16;

/// Whether threads end at nearly the same time if each of them works on a whole chunk of one of these sizes.
#[cfg(feature = "python")]
pub fn divides(threads: usize, sizes: impl Iterator<Item = usize>) -> bool {
    let (largest, all) = sizes.fold((0, 0), |(largest, all), size: usize| (largest.max(size), all + size));
    threads > 1 && largest >= CHUNK_BYTES && largest.saturating_mul(threads) <= all + all / 4
}

/// Does the work on each item, the first on this thread and each other on a separate thread. Items whose thread cannot
/// be started, or panics, are skipped.
#[cfg(feature = "python")]
pub fn on_each<I: Send>(items: &mut [I], work: &(dyn Fn(&mut I) + Sync)) {
    let Some((first, others)) = items.split_first_mut() else { return };
    let stop_flag = interrupt::stop_flag();
    let part = &|item: &mut I| drop(catch_panic(|| interrupt::follow(&stop_flag, || work(item))));
    thread::scope(|scope| {
        let start = |item| thread::Builder::new().spawn_scoped(scope, move || part(item));
        let started: Vec<_> = others.iter_mut().map(start).collect();
        work(first);
        started.into_iter().flatten().for_each(|thread| drop(thread.join()));
    });
}

struct Shared {
    state: Mutex<State>,
    /// Signals that a part was produced or taken, or that the first thread has ended.
    changed: Condvar,
    /// Number of rows of a part.
    len: usize,
    end: usize,
    max_claims: usize,
}

/// Ends the other threads when dropped, even after a panic.
struct End<'s>(&'s Shared);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.lock().ended = true;
        self.0.changed.notify_all();
    }
}

struct State {
    /// First row that the first thread has not begun to append.
    front: usize,
    /// First row after all claims.
    claimed: usize,
    /// Parts that are in progress or not yet appended, in the order of their rows.
    claims: VecDeque<Claim>,
    ended: bool,
}

struct Claim {
    rows: Range<usize>,
    /// Whether the part was produced; if not, the first thread repeats its rows. `None` while a thread works on it.
    is_made: Option<bool>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // No code panics between two related changes, so that the state is valid after a panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_while(&self, condition: impl FnMut(&mut State) -> bool) -> MutexGuard<'_, State> {
        self.changed.wait_while(self.lock(), condition).unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends rows and parts, in the first thread.
    fn append_all(&self, append: &mut dyn FnMut(Range<usize>, bool) -> Result<bool, Error>) -> Result<(), Error> {
        loop {
            let is_next = |state: &mut State| state.claims.front().is_some_and(|claim| claim.rows.start == state.front);
            let is_unfinished = |state: &mut State| is_next(state) && state.claims[0].is_made.is_none();
            let mut state = self.lock();
            while is_unfinished(&mut state) {
                drop(state);
                if interrupt::is_requested_now() {
                    return Err(interrupted());
                }
                state = self.lock();
                if is_unfinished(&mut state) {
                    let waited = self.changed.wait_timeout(state, interrupt::INTERVAL);
                    state = waited.unwrap_or_else(PoisonError::into_inner).0;
                }
            }
            let claim = if is_next(&mut state) { state.claims.pop_front() } else { None };
            let (rows, is_made) = match claim {
                Some(Claim { rows, is_made }) => (rows, is_made == Some(true)),
                None => {
                    let end = state.claims.front().map_or(self.end, |claim| claim.rows.start);
                    (state.front..end.min(state.front + self.len.div_ceil(STEPS)), false)
                }
            };
            state.front = rows.end;
            drop(state);
            self.changed.notify_all();
            let is_last = rows.end == self.end;
            if !append(rows, is_made)? || is_last {
                return Ok(());
            }
        }
    }

    /// Produces parts, in any other thread.
    fn make_parts(&self, make: &(dyn Fn(Range<usize>) -> bool + Sync)) {
        while let Some(rows) = self.claim() {
            // The first thread meets the same panic when it repeats the rows.
            let is_made = catch_panic(|| make(rows.clone())).unwrap_or_default();
            let mut state = self.lock();
            if let Some(claim) = state.claims.iter_mut().find(|claim| claim.rows == rows) {
                claim.is_made = Some(is_made);
            }
            self.changed.notify_all();
        }
    }

    /// Claims the rows of the next part, far enough ahead of the first thread that the part is produced before that
    /// thread needs it. The rows between parts are left to the first thread, which would otherwise have to wait.
    fn claim(&self) -> Option<Range<usize>> {
        let mut state = self.wait_while(|state| state.claims.len() >= self.max_claims && !state.ended);
        let claimed = state.claimed.max(state.front);
        let in_claims: usize = state.claims.iter().map(|claim| claim.rows.len()).sum();
        let unclaimed = claimed - state.front - in_claims;
        let start = claimed + self.len.saturating_sub(unclaimed);
        if state.ended || start >= self.end {
            return None;
        }
        let rows = start..self.end.min(start + self.len);
        state.claimed = rows.end;
        state.claims.push_back(Claim { rows: rows.clone(), is_made: None });
        Some(rows)
    }
}
