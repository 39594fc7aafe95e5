//! A crate that forbids unsafe code, compiled against this crate: it can use the operations, but none of the internals
//! on which the memory safety of kernels depends.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Code that caused undefined behaviour when an item was public, and the compiler's error code now that it is private.
const REFUSED: &[(&str, &str)] = &[
    ("pub use letterhead::kernel::RowBlock;", "E0603"),
    ("pub use letterhead::kernel::buffer::{BinaryValues, Utf8};", "E0603"),
    ("pub use letterhead::kernel::encode::max_bytes;", "E0603"),
    ("pub use letterhead::kernel::varint_layout::VarintLayout;", "E0603"),
    ("pub use letterhead::kernel::keys::KeySet;", "E0603"),
    ("pub use letterhead::kernel::lists::Columns;", "E0603"),
    ("pub use letterhead::kernel::scan::SelectedValues;", "E0603"),
    ("pub use letterhead::kernel::views::Views;", "E0603"),
    ("pub use letterhead::arrow::binary::text;", "E0603"),
    ("pub use letterhead::arrow::column::Column;", "E0603"),
    ("pub use letterhead::arrow::decode::ListSink;", "E0603"),
    ("pub use letterhead::arrow::filter::FilterSink;", "E0603"),
    ("pub use letterhead::arrow::rows::RowSource;", "E0603"),
    ("pub use letterhead::arrow::select::SelectSink;", "E0603"),
    ("pub use letterhead::arrow::sink::RowSink;", "E0603"),
    ("pub fn grown(input: letterhead::arrow::Input<'_>) -> usize { input.max_offset }", "E0616"),
];

const ACCEPTED: &str = "
    pub use letterhead::arrow::filter::{Filter, Test};
    pub use letterhead::arrow::filtered::Filtered;
    pub use letterhead::arrow::messages::Messages;
    pub use letterhead::arrow::select::{Repeat, Selection};
    pub use letterhead::arrow::{Apply, Convert, Decode, Encode, Input, Operation, Output, Select, Validate};
    pub fn whole(input: Input<'_>) -> Input<'_> { input.from_row(1).after(2).with_max_offset(3).with_threads(0) }
";

/// The newest build of this crate next to the test program, and its directory.
fn library() -> Option<(PathBuf, PathBuf)> {
    let folder = env::current_exe().ok()?.parent()?.to_path_buf();
    let is_library = |path: &PathBuf| {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        name.starts_with("libletterhead") && name.ends_with(".rlib")
    };
    let files = fs::read_dir(&folder).ok()?.filter_map(|entry| Some(entry.ok()?.path())).filter(is_library);
    let newest = files.max_by_key(|path| path.metadata().and_then(|data| data.modified()).ok())?;
    Some((newest, folder))
}

/// Compiles a crate, and returns the errors of the compiler.
fn check(code: &str, name: &str) -> Option<String> {
    let (library, folder) = library()?;
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&out).unwrap();
    let source = out.join("lib.rs");
    fs::write(&source, format!("#![forbid(unsafe_code)]\n{code}\n")).unwrap();
    // The compiler that built this program is in the directory of its cargo.
    let mut command = Command::new(Path::new(&env::var_os("CARGO")?).with_file_name("rustc"));
    command
        .args(["--edition", "2024", "--crate-type", "lib", "--emit", "metadata", "--out-dir"])
        .arg(&out)
        .arg(&source);
    command.arg("--extern").arg(format!("letterhead={}", library.display()));
    let checked = command.arg("-L").arg(format!("dependency={}", folder.display())).output().ok()?;
    let errors = String::from_utf8_lossy(&checked.stderr).into_owned();
    assert_eq!(checked.status.success(), !errors.contains("error"), "{errors}");
    Some(errors)
}

#[test]
#[cfg_attr(any(miri, address_sanitizer), ignore = "a compiler is called")]
fn safe_code_cannot_change_what_kernels_trust() {
    let errors = check(ACCEPTED, "accepted").expect("a build of this crate and its compiler");
    assert!(!errors.contains("error"), "{errors}");
    let lines: Vec<_> = REFUSED.iter().map(|(line, _)| *line).collect();
    let errors = check(&lines.join("\n"), "refused").unwrap();
    let reported: Vec<_> = errors.split("\nerror").collect();
    for (number, (line, code)) in REFUSED.iter().enumerate() {
        let place = format!("lib.rs:{}:", number + 2);
        let is_refused = |error: &&str| error.contains(&place) && error.contains(&format!("[{code}]"));
        assert!(reported.iter().any(is_refused), "{line}\n{errors}");
    }
}
