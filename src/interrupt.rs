//! Interruption of long work: the work calls [`is_requested`] between its blocks, and stops when that returns true.
//!
//! The thread that calls [`watch`] checks whether to stop. Threads that it starts call [`follow`] and share its flag.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Number of calls of [`is_requested`] for each check of the watch and the clock: a check takes as long as a row.
const CALLS: u32 = 16;

pub const INTERVAL: Duration = Duration::from_millis(100);

/// Function that returns whether the work should stop.
type StopCheck = fn() -> bool;

struct Watch {
    /// Check of the thread that called [`watch`]; `None` in its workers.
    check: Option<StopCheck>,
    checked: Instant,
    stop: Arc<AtomicBool>,
}

thread_local! {
    static WATCH: RefCell<Option<Watch>> = const { RefCell::new(None) };
    /// Calls of [`is_requested`] since the watch was checked.
    static CALLS_SINCE_CHECK: Cell<u32> = const { Cell::new(0) };
}

/// Runs work, and calls `should_stop` from time to time.
pub fn watch<T>(should_stop: StopCheck, work: impl FnOnce() -> T) -> T {
    run(Some(Watch { check: Some(should_stop), checked: Instant::now(), stop: Arc::default() }), work)
}

/// Stop flag shared with workers.
pub struct StopFlag(Option<Arc<AtomicBool>>);

/// Stop flag of this thread, for threads that do a part of its work.
pub fn stop_flag() -> StopFlag {
    StopFlag(WATCH.with_borrow(|watch| watch.as_ref().map(|watch| Arc::clone(&watch.stop))))
}

/// Runs work that stops with the thread that owns the flag.
pub fn follow<T>(flag: &StopFlag, work: impl FnOnce() -> T) -> T {
    let stop = flag.0.as_ref().map(Arc::clone);
    run(stop.map(|stop| Watch { check: None, checked: Instant::now(), stop }), work)
}

fn run<T>(watch: Option<Watch>, work: impl FnOnce() -> T) -> T {
    /// Restores the previous watch, also after a panic.
    struct PreviousWatch(Option<Watch>);

    impl Drop for PreviousWatch {
        fn drop(&mut self) {
            WATCH.set(self.0.take());
        }
    }

    let _before = PreviousWatch(WATCH.replace(watch));
    check_next();
    work()
}

/// Returns whether the work must stop. Once true, it stays true.
#[inline]
pub fn is_requested() -> bool {
    let calls = CALLS_SINCE_CHECK.get() + 1;
    CALLS_SINCE_CHECK.set(calls % CALLS);
    calls == CALLS && is_requested_now()
}

/// Like [`is_requested`], but checks the watch in every call, for work with long steps.
#[cold]
pub fn is_requested_now() -> bool {
    let is_requested = WATCH.with_borrow_mut(|watch| {
        let Some(watch) = watch else { return false };
        update(watch);
        watch.stop.load(Relaxed)
    });
    if is_requested {
        check_next();
    }
    is_requested
}

/// Makes the next call of [`is_requested`] check the watch.
fn check_next() {
    CALLS_SINCE_CHECK.set(CALLS - 1);
}

/// Updates the stop flag if the last check was at least `INTERVAL` ago.
fn update(watch: &mut Watch) {
    let Some(should_stop) = watch.check else { return };
    if !watch.stop.load(Relaxed) && watch.checked.elapsed() >= INTERVAL {
        watch.stop.store(should_stop(), Relaxed);
        watch.checked = Instant::now();
    }
}
