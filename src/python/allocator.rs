//! The allocator of the module.
//!
//! Columns are large and short-lived. The system's allocator returns their pages to the kernel after each batch, and
//! the next batch pays for every page again: more than the work itself.

use libmimalloc_sys::{mi_option_set, mi_option_t};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// `mi_option_purge_delay` of mimalloc 2, which the crate does not name: how long unused pages are kept.
const PURGE_DELAY: mi_option_t = 15;

/// Pages stay for ten times as long as this, mimalloc's factor for large areas: a query requests its next batch within it.
const MILLISECONDS: i64 = 1_000;

/// Keeps pages between two batches, unless `MIMALLOC_PURGE_DELAY` is set.
pub fn keep_pages() {
    if std::env::var_os("MIMALLOC_PURGE_DELAY").is_none() {
        // SAFETY: it stores a number.
        unsafe { mi_option_set(PURGE_DELAY, MILLISECONDS as _) };
    }
}
