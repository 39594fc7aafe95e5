//! Runs the targets, each input for one format.
//!
//! The targets do not depend on a fuzzer: `tests/rust/corpus.rs` runs them on the kept inputs, on stable Rust.

#[path = "../../tests/rust/columns.rs"]
pub mod columns;
#[path = "../../tests/rust/common.rs"]
pub mod common;
#[path = "../../tests/rust/sealing.rs"]
pub mod sealing;
pub mod targets;

use std::env;
use std::sync::OnceLock;

use targets::Target;

/// The format to fuzz, so that its executions are counted. Without it, the first byte of an input chooses the format.
pub const FORMAT_VARIABLE: &str = "LETTERHEAD_FUZZ_FORMAT";

/// Runs one input.
pub fn fuzz(target: &Target, data: &[u8]) {
    static SUBJECTS: OnceLock<(Vec<&'static str>, Option<&'static str>)> = OnceLock::new();
    let (subjects, chosen) = SUBJECTS.get_or_init(|| {
        let subjects = (target.subjects)();
        let chosen = env::var(FORMAT_VARIABLE).ok().map(|name| {
            let found = subjects.iter().find(|subject| **subject == name);
            *found.unwrap_or_else(|| panic!("{FORMAT_VARIABLE}={name}: {} knows {}", target.name, subjects.join(", ")))
        });
        (subjects, chosen)
    });
    match (chosen, data.split_first()) {
        (Some(subject), _) => (target.check)(subject, data),
        (None, Some((first, rest))) => (target.check)(subjects[usize::from(*first) % subjects.len()], rest),
        (None, None) => {}
    }
}
