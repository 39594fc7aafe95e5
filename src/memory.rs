//! Memory whose size depends on the data. [`reserve`] and similar functions end the call with [`Refused`] if memory
//! cannot be allocated, such as under a limit of the process. The standard library would abort the process.
//!
//! A failed allocation unwinds to [`catch_panic`](crate::panics::catch_panic), like a panic, so that loops have no
//! error to pass on.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// Failed allocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    pub bytes: usize,
    /// Output column that needed the memory, if there are several.
    pub column: Option<String>,
}

impl fmt::Display for Refused {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Refused { bytes, column } = self;
        match column {
            Some(column) => write!(out, "no memory for the {bytes} bytes of column {column}")?,
            None => write!(out, "no memory for {bytes} bytes")?,
        }
        out.write_str(": pass fewer rows at a time, or raise the limit of the process")
    }
}

/// Reserves memory for `more` elements, and if possible doubles the capacity.
#[inline(always)]
pub fn reserve<T>(out: &mut Vec<T>, more: usize) {
    if out.capacity() - out.len() < more {
        grow(out, more);
    }
}

#[cold]
#[inline(never)]
fn grow<T>(out: &mut Vec<T>, more: usize) {
    if out.try_reserve(more).is_err() {
        reserve_tightly(out, more);
    }
}

/// Reserves memory for `more` elements, and if possible for an eighth of the present number as well.
#[cold]
#[inline(never)]
pub fn reserve_tightly<T>(out: &mut Vec<T>, more: usize) {
    if out.try_reserve_exact(more.saturating_add(out.len() / 8)).is_err() {
        reserve_exact(out, more);
    }
}

/// Reserves memory for exactly `more` elements.
pub fn reserve_exact<T>(out: &mut Vec<T>, more: usize) {
    if out.try_reserve_exact(more).is_err() {
        refuse(out.len().saturating_add(more).saturating_mul(size_of::<T>()));
    }
}

/// Returns an empty vector with memory for elements.
pub fn vec_of<T>(elements: usize) -> Vec<T> {
    let mut out = Vec::new();
    reserve_exact(&mut out, elements);
    out
}

#[inline(always)]
pub fn push<T>(out: &mut Vec<T>, element: T) {
    // The compiler removes the second check of the capacity in this branch.
    if out.len() < out.capacity() {
        out.push(element);
    } else {
        push_grown(out, element);
    }
}

#[cold]
#[inline(never)]
fn push_grown<T>(out: &mut Vec<T>, element: T) {
    grow(out, 1);
    out.push(element);
}

#[inline(always)]
pub fn extend<T: Clone>(out: &mut Vec<T>, elements: &[T]) {
    reserve(out, elements.len());
    out.extend_from_slice(elements);
}

/// Checks that this much memory is available, before another library allocates it and would abort the process.
pub fn probe(bytes: usize) {
    drop(vec_of::<u8>(bytes));
}

/// Ends the call after an allocation of this many bytes failed.
#[cold]
pub fn refuse(bytes: usize) -> ! {
    resume_unwind(Box::new(Refused { bytes, column: None }))
}

/// Caught panic, such as that of a failed allocation, for the caller to resume.
pub struct CaughtPanic(Box<dyn std::any::Any + Send>);

/// Runs work that appends to columns, and catches a failed allocation or a panic, so that the caller can name the
/// column.
#[inline(always)]
pub fn catch_refusal<T>(work: impl FnOnce() -> T) -> Result<T, CaughtPanic> {
    catch_unwind(AssertUnwindSafe(work)).map_err(CaughtPanic)
}

impl CaughtPanic {
    /// Resumes the panic, and names the column if memory could not be allocated.
    #[cold]
    pub fn resume(mut self, column: &str) -> ! {
        if let Some(refused) = self.0.downcast_mut::<Refused>() {
            refused.column.get_or_insert_with(|| column.to_owned());
        }
        resume_unwind(self.0)
    }
}
