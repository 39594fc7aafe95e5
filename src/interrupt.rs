//! Lets a caller end long work: the work calls [`is_requested`] between its blocks, and stops where that returns true.
//!
//! The thread that calls [`watch`] asks; threads that it starts [`follow`] it.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// How many calls of [`is_requested`] share one reading of the clock, which costs as much as a row.
const CALLS: u32 = 16;

pub const INTERVAL: Duration = Duration::from_millis(100);

/// Whether to stop, for whoever runs the work.
type Ask = fn() -> bool;

struct Watch {
    /// `None` in a thread that follows another.
    ask: Option<Ask>,
    calls: u32,
    asked: Instant,
    stop: Arc<AtomicBool>,
}

thread_local! {
    static WATCH: RefCell<Option<Watch>> = const { RefCell::new(None) };
}

/// Runs work that is asked from time to time whether to stop.
pub fn watch<T>(ask: Ask, work: impl FnOnce() -> T) -> T {
    run(Some(Watch { ask: Some(ask), calls: 0, asked: Instant::now(), stop: Arc::default() }), work)
}

/// What threads follow.
pub struct Followed(Option<Arc<AtomicBool>>);

/// The watch of this thread, for threads that do a part of its work.
pub fn followed() -> Followed {
    Followed(WATCH.with_borrow(|watch| watch.as_ref().map(|watch| Arc::clone(&watch.stop))))
}

/// Runs work that stops with the thread that it is a part of.
pub fn follow<T>(followed: &Followed, work: impl FnOnce() -> T) -> T {
    let stop = followed.0.as_ref().map(Arc::clone);
    run(stop.map(|stop| Watch { ask: None, calls: 0, asked: Instant::now(), stop }), work)
}

fn run<T>(watch: Option<Watch>, work: impl FnOnce() -> T) -> T {
    /// Ends the watch, also by a panic.
    struct Before(Option<Watch>);

    impl Drop for Before {
        fn drop(&mut self) {
            WATCH.set(self.0.take());
        }
    }

    let _before = Before(WATCH.replace(watch));
    work()
}

/// Whether the work has to stop, which stays so.
#[inline]
pub fn is_requested() -> bool {
    WATCH.with_borrow_mut(|watch| {
        let Some(watch) = watch else { return false };
        watch.calls += 1;
        if watch.calls >= CALLS {
            watch.calls = 0;
            look(watch);
        }
        watch.stop.load(Relaxed)
    })
}

/// As [`is_requested`], where so much time has passed that the clock is looked at anyway.
pub fn is_requested_now() -> bool {
    WATCH.with_borrow_mut(|watch| {
        let Some(watch) = watch else { return false };
        look(watch);
        watch.stop.load(Relaxed)
    })
}

#[cold]
fn look(watch: &mut Watch) {
    let Some(ask) = watch.ask else { return };
    if !watch.stop.load(Relaxed) && watch.asked.elapsed() >= INTERVAL {
        watch.stop.store(ask(), Relaxed);
        watch.asked = Instant::now();
    }
}
