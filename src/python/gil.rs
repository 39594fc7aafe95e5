//! Calls from Python into the core: the GIL is released, errors become exceptions, panics become errors.

use std::cell::RefCell;

use pyo3::prelude::*;

use crate::error::Error;
use crate::interrupt::watch;
use crate::panics;

thread_local! {
    /// The exception of a signal that came while the core worked, as `KeyboardInterrupt`.
    static SIGNAL: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// Runs work of the core. The handlers of signals run meanwhile; the exception of one ends the work.
pub fn without_gil<T: Send>(py: Python<'_>, work: impl FnOnce() -> Result<T, Error> + Send) -> PyResult<T> {
    let done = catch_panic(|| py.detach(|| watch(run_signal_handlers, work)));
    match SIGNAL.take() {
        Some(signal) => Err(signal),
        None => Ok(done??),
    }
}

/// Whether a handler raised an exception. Python runs them in its main thread alone.
fn run_signal_handlers() -> bool {
    // Without an interpreter, which is going away, there is nobody to interrupt the work.
    let handled = Python::try_attach(|py| py.check_signals()).unwrap_or(Ok(()));
    handled.map_err(|signal| SIGNAL.set(Some(signal))).is_err()
}

/// Runs work of the core on a message of this many bytes; for few of them, releasing the GIL would cost more.
pub fn without_gil_if_long<T: Send>(
    py: Python<'_>,
    size: usize,
    work: impl FnOnce() -> Result<T, Error> + Send,
) -> PyResult<T> {
    const LONG: usize = 1 << 16;
    if size >= LONG { without_gil(py, work) } else { Ok(catch_panic(work)??) }
}

/// Runs work of the core that creates Python objects.
pub fn catch_panic<T>(work: impl FnOnce() -> T) -> PyResult<T> {
    Ok(panics::catch_panic(work)?)
}

/// Panics where panics are caught: only tests call it, and only a debug build has it.
#[cfg(debug_assertions)]
#[pyfunction]
pub fn provoke_panic(py: Python<'_>) -> PyResult<()> {
    without_gil(py, || panic!("provoked"))
}
