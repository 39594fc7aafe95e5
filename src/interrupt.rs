//! Lets a caller end long work: the work calls [`is_requested`] between its blocks, and stops where that returns true.
//!
//! The thread that calls [`watch`] asks; threads that it starts [`follow`] it.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// [`is_requested`] checks the watch and the clock in one of so many calls, because that takes as long as a row.
const CALLS: u32 = 16;

pub const INTERVAL: Duration = Duration::from_millis(100);

/// Whether to stop, for whoever runs the work.
type StopCheck = fn() -> bool;

struct Watch {
    /// `None` in a thread that follows another.
    check: Option<StopCheck>,
    checked: Instant,
    stop: Arc<AtomicBool>,
}

thread_local! {
    static WATCH: RefCell<Option<Watch>> = const { RefCell::new(None) };
    /// Calls of [`is_requested`] since the watch was checked.
    static CALLS_SINCE_CHECK: Cell<u32> = const { Cell::new(0) };
}

/// Runs work that is asked from time to time whether to stop.
pub fn watch<T>(should_stop: StopCheck, work: impl FnOnce() -> T) -> T {
    run(Some(Watch { check: Some(should_stop), checked: Instant::now(), stop: Arc::default() }), work)
}

/// What threads follow.
pub struct StopFlag(Option<Arc<AtomicBool>>);

/// The watch of this thread, for threads that do a part of its work.
pub fn stop_flag() -> StopFlag {
    StopFlag(WATCH.with_borrow(|watch| watch.as_ref().map(|watch| Arc::clone(&watch.stop))))
}

/// Runs work that stops with the thread that it is a part of.
pub fn follow<T>(flag: &StopFlag, work: impl FnOnce() -> T) -> T {
    let stop = flag.0.as_ref().map(Arc::clone);
    run(stop.map(|stop| Watch { check: None, checked: Instant::now(), stop }), work)
}

fn run<T>(watch: Option<Watch>, work: impl FnOnce() -> T) -> T {
    /// Ends the watch, also by a panic.
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

/// Returns whether the work has to stop. Once it has to, this stays true.
#[inline]
pub fn is_requested() -> bool {
    let calls = CALLS_SINCE_CHECK.get() + 1;
    CALLS_SINCE_CHECK.set(calls % CALLS);
    calls == CALLS && is_requested_now()
}

/// As [`is_requested`], but checks the watch in every call: for work that takes longer than that between two calls.
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

/// Asks whether to stop, if the last time is long enough ago.
fn update(watch: &mut Watch) {
    let Some(should_stop) = watch.check else { return };
    if !watch.stop.load(Relaxed) && watch.checked.elapsed() >= INTERVAL {
        watch.stop.store(should_stop(), Relaxed);
        watch.checked = Instant::now();
    }
}
