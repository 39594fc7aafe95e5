//! Interrupted work.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread::{scope, sleep};
use std::time::Duration;

use letterhead::interrupt::{INTERVAL, follow, is_requested, is_requested_now, stop_flag, watch};

#[test]
fn unwatched_work_is_never_stopped() {
    assert!(!is_requested_now());
    watch(|| true, || ());
    assert!(!is_requested_now());
}

#[test]
fn work_is_asked_after_a_while_and_a_request_stays() {
    static STOP: AtomicBool = AtomicBool::new(false);
    watch(
        || STOP.swap(false, Relaxed),
        || {
            assert!(!is_requested());
            STOP.store(true, Relaxed);
            while !is_requested_now() {
                sleep(Duration::from_millis(5));
            }
            assert!(is_requested());
        },
    );
    assert!(!is_requested());
}

#[test]
fn work_is_not_asked_by_the_way() {
    static ASKED: AtomicUsize = AtomicUsize::new(0);
    watch(
        || {
            ASKED.fetch_add(1, Relaxed);
            false
        },
        || (0..1000).for_each(|_| assert!(!is_requested())),
    );
    assert!(ASKED.load(Relaxed) < 100);
}

#[test]
fn a_request_is_seen_within_sixteen_calls() {
    let sees = || (0..16).any(|_| is_requested());
    watch(
        || true,
        || {
            sees();
            sleep(INTERVAL);
            assert!(sees());
        },
    );
}

#[test]
fn threads_stop_with_the_one_that_they_follow() {
    let stops = |first_asks: bool| {
        let stop_flag = stop_flag();
        sleep(Duration::from_millis(150));
        assert_eq!(first_asks && is_requested_now(), first_asks);
        scope(|scope| scope.spawn(|| (follow(&stop_flag, is_requested), is_requested())).join().unwrap())
    };
    assert_eq!(watch(|| true, || stops(true)), (true, false));
    assert_eq!(watch(|| true, || stops(false)), (false, false), "only the first thread asks");
}
