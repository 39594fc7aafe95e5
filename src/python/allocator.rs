//! The allocator of the module.
//!
//! Columns are large and short-lived. The system's allocator would return their pages to the kernel after each batch,
//! and faulting in new pages for the next batch would cost more than the work itself.

use libmimalloc_sys::{mi_option_set, mi_option_t};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// `mi_option_purge_delay` of mimalloc 2, the time for which unused pages are kept. The crate does not define it.
const PURGE_DELAY: mi_option_t = 15;

/// Purge delay. mimalloc multiplies it by ten for large areas, which covers the wait for a query's next batch.
const MILLISECONDS: i64 = 1_000;

/// Keeps pages between two batches, unless `MIMALLOC_PURGE_DELAY` is set.
pub fn keep_pages() {
    if std::env::var_os("MIMALLOC_PURGE_DELAY").is_none() {
        // SAFETY: the call only stores a number.
        unsafe { mi_option_set(PURGE_DELAY, MILLISECONDS as _) };
    }
}
