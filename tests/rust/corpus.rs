//! Runs every input that the fuzzer stored in `fuzz/kept` again, on stable Rust.

#[path = "../../fuzz/src/targets/mod.rs"]
mod targets;

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use targets::Target;

fn kept() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/kept")
}

/// Inputs of a target for a format, one line of hexadecimal digits each; none if there is no file.
fn inputs(target: &Target, subject: &str) -> Vec<Vec<u8>> {
    let text = fs::read_to_string(kept().join(target.name).join(format!("{subject}.hex"))).unwrap_or_default();
    let byte = |digits: &[u8]| u8::from_str_radix(str::from_utf8(digits).expect("ASCII"), 16).expect("hex");
    text.lines().map(|line| line.as_bytes().chunks(2).map(byte).collect()).collect()
}

fn every_input_holds(target: &Target) {
    let mut count = 0;
    for subject in (target.subjects)() {
        for input in inputs(target, subject) {
            let held = catch_unwind(AssertUnwindSafe(|| (target.check)(subject, &input)));
            assert!(held.is_ok(), "{} of {subject}: {input:02x?}", target.name);
            count += 1;
        }
    }
    assert!(count > 10, "{}: {count} inputs are kept", target.name);
}

#[test]
fn decode() {
    every_input_holds(&targets::decode::TARGET);
}

#[test]
fn columns() {
    every_input_holds(&targets::columns::TARGET);
}

#[test]
fn roundtrip() {
    every_input_holds(&targets::roundtrip::TARGET);
}

#[test]
fn batches() {
    every_input_holds(&targets::batches::TARGET);
}

#[test]
fn codecs() {
    every_input_holds(&targets::codecs::TARGET);
}

#[test]
fn convert() {
    every_input_holds(&targets::convert::TARGET);
}

#[test]
fn select() {
    every_input_holds(&targets::select::TARGET);
}

#[test]
fn filter() {
    every_input_holds(&targets::filter::TARGET);
}

#[test]
fn stored() {
    every_input_holds(&targets::stored::TARGET);
}

#[test]
fn log() {
    every_input_holds(&targets::log::TARGET);
}

#[test]
fn imported() {
    every_input_holds(&targets::imported::TARGET);
}

#[test]
fn edit() {
    every_input_holds(&targets::edit::TARGET);
}

#[test]
fn pack() {
    every_input_holds(&targets::pack::TARGET);
}

#[test]
fn json() {
    every_input_holds(&targets::json::TARGET);
}

#[test]
fn corpus_covers_only_existing_targets_and_formats() {
    for target in fs::read_dir(kept()).expect("inputs are kept") {
        let directory = target.expect("a directory").path();
        let name = directory.file_name().expect("a name").to_string_lossy();
        let target = targets::ALL.iter().find(|target| target.name == name).unwrap_or_else(|| panic!("{name}"));
        for file in fs::read_dir(&directory).expect("a directory") {
            let path = file.expect("a file").path();
            let stem = path.file_stem().expect("a name").to_string_lossy();
            assert!((target.subjects)().contains(&&*stem), "{}", path.display());
        }
    }
}
