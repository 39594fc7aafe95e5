//! Calls from Python into the core: the GIL is released, errors become exceptions, panics become errors.

use std::panic::{AssertUnwindSafe, catch_unwind};

use pyo3::prelude::*;

use super::errors::internal_error;
use crate::error::Error;

pub fn without_gil<T: Send>(py: Python<'_>, work: impl FnOnce() -> Result<T, Error> + Send) -> PyResult<T> {
    Ok(catch_panic(|| py.detach(work))??)
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
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| internal_error(panic_text(&panic)))
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no reason given")
}
