//! The one gate between Python and the core: the GIL is released, errors become exceptions, panics stay inside.

use std::panic::{AssertUnwindSafe, catch_unwind};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use super::errors::to_exception;
use crate::error::Error;

/// Runs work of the core without the GIL.
pub fn released<T: Send>(py: Python<'_>, work: impl FnOnce() -> Result<T, Error> + Send) -> PyResult<T> {
    let done = py.detach(|| catch_unwind(AssertUnwindSafe(work)));
    match done {
        Ok(result) => result.map_err(|error| to_exception(py, error)),
        Err(panic) => Err(PyRuntimeError::new_err(format!("letterhead failed inside: {}", panic_text(&panic)))),
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no reason given")
}
