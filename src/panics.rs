//! Panics of the core as errors: [`catch_panic`], and [`keep_quiet`], which stops caught panics from being printed.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{self, AssertUnwindSafe, PanicHookInfo, catch_unwind};

use crate::error::Error;
use crate::memory::Refused;

thread_local! {
    /// Depth of calls of [`catch_panic`] on this thread.
    static CATCHING: Cell<usize> = const { Cell::new(0) };
    /// File, line and column of the panic that unwinds to [`catch_panic`].
    static LOCATION: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs work, and returns its panic as an error: [`Error::Memory`], or the text of the panic. The text has a location
/// if [`keep_quiet`] was called.
pub fn catch_panic<T>(work: impl FnOnce() -> T) -> Result<T, Error> {
    CATCHING.set(CATCHING.get() + 1);
    let done = catch_unwind(AssertUnwindSafe(work));
    CATCHING.set(CATCHING.get() - 1);
    done.map_err(error_of)
}

#[cold]
#[inline(never)] // Compiled once, not for each function that Python calls.
fn error_of(panic: Box<dyn Any + Send>) -> Error {
    let panic = match panic.downcast::<Refused>() {
        Ok(refused) => return Error::Memory(*refused),
        Err(panic) => panic,
    };
    // Dereferenced, because the box itself also implements `Any`.
    let panic = &*panic;
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no reason given");
    Error::Internal(match LOCATION.take() {
        Some(location) => format!("{text} ({location})"),
        None => text.into(),
    })
}

/// Replaces the panic hook by one that does not print panics that [`catch_panic`] catches. A second panic, before the
/// first was caught, aborts the process, and is printed.
pub fn keep_quiet() {
    let print = panic::take_hook();
    panic::set_hook(Box::new(move |panic: &PanicHookInfo<'_>| {
        let location = panic.location().map(ToString::to_string).unwrap_or_default();
        let is_caught = CATCHING.get() > 0;
        if !is_caught || LOCATION.replace(Some(location)).is_some() {
            print(panic);
        }
    }));
}
