//! Calls from Python into the core: the GIL is released, errors become exceptions, panics become errors.

use std::cell::RefCell;

use pyo3::prelude::*;

use crate::error::Error;
use crate::interrupt::watch;
use crate::panics::catch_panic;

thread_local! {
    /// Exception of a signal handler while the core worked, such as `KeyboardInterrupt`.
    static SIGNAL: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// Runs the body of a function or method that Python calls, and converts a panic to an error. Every such body begins
/// with this function. Arguments are converted earlier, by [`argument`](super::arguments::argument), which also calls
/// it.
#[inline(always)]
pub fn enter<T>(body: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    catch_panic(body)?
}

/// Runs work of the core without the GIL. Signal handlers run meanwhile, and an exception of one ends the work.
pub fn without_gil<T: Send>(py: Python<'_>, work: impl FnOnce() -> Result<T, Error> + Send) -> PyResult<T> {
    let (mut work, mut result) = (Some(work), None);
    detach(py, &mut || result = work.take().map(|work| work()))?;
    Ok(result.expect("the work was done")?)
}

/// Compiled once, not for each kind of work.
fn detach(py: Python<'_>, work: &mut (dyn FnMut() + Send)) -> PyResult<()> {
    let done = catch_panic(|| py.detach(|| watch(run_signal_handlers, work)));
    match SIGNAL.take() {
        Some(signal) => Err(signal),
        None => Ok(done?),
    }
}

/// Runs signal handlers, and returns whether one raised an exception. Python only runs them in its main thread.
fn run_signal_handlers() -> bool {
    // When the interpreter is shutting down, there are no signals to handle.
    let handled = Python::try_attach(|py| py.check_signals()).unwrap_or(Ok(()));
    handled.map_err(|signal| SIGNAL.set(Some(signal))).is_err()
}

/// Runs work of the core on a message of this many bytes. For short messages, the GIL is kept, because releasing it
/// would cost more.
pub fn without_gil_if_long<T: Send>(
    py: Python<'_>,
    size: usize,
    work: impl FnOnce() -> Result<T, Error> + Send,
) -> PyResult<T> {
    const LONG: usize = 1 << 16;
    if size >= LONG { without_gil(py, work) } else { Ok(work()?) }
}
