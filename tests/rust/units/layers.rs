//! Modules import only modules of lower layers, so that every layer can be read and tested without those above it.

use std::fs;
use std::path::Path;

/// The layers, lowest first. Modules of one layer may import each other.
const LAYERS: &[&[&str]] = &[
    &["error", "number", "varint", "interrupt", "memory", "panics", "codec", "limits"],
    &["value_type"],
    &["value"],
    &["encoding", "amqp", "base_encoding", "charset", "connect", "json", "text_form"],
    &["header", "types"],
    &["type_option", "log"],
    &["limit_checks"],
    &["kernel"],
    &["cursor"],
    &["field", "options"],
    &["sink"],
    &["format_info"],
    &["traits"],
    &["formats::checksum"],
    &["formats::headers"],
    &["formats::message"],
    &["formats::batch"],
    &["format"],
    &["op"],
    &["arrow"],
    &["python"],
];

/// Modules of drafts that were never implemented: other formats must not depend on these modules.
const DRAFTS: &[&str] = &["kip82_", "message_set_writer"];

fn layer(path: &str) -> usize {
    let is_in =
        |module: &&str| path == *module || path.strip_prefix(*module).is_some_and(|rest| rest.starts_with("::"));
    LAYERS.iter().position(|layer| layer.iter().any(is_in)).unwrap_or_else(|| panic!("{path}: no layer"))
}

/// Path of every module, and its code without comments. Modules that only list others are excluded.
fn modules() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let (mut folders, mut found) = (vec![root.clone()], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let module = path.strip_prefix(&root).unwrap().with_extension("");
            let module = module.iter().map(|part| part.to_str().unwrap()).collect::<Vec<_>>().join("::");
            let module = module.trim_end_matches("::mod").to_string();
            if !matches!(module.as_str(), "lib" | "formats") {
                let text = fs::read_to_string(&path).unwrap();
                let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
                found.push((module, code.collect::<Vec<_>>().join("\n")));
            }
        }
    }
    assert!(found.len() > 50, "{}", found.len());
    found
}

/// Modules that code names.
fn imports(code: &str) -> impl Iterator<Item = &str> {
    let is_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    code.split("crate::").skip(1).map(move |rest| rest.split(|c| !is_path(c)).next().unwrap_or_default())
}

#[test]
fn modules_import_lower_layers_only() {
    for (module, code) in modules() {
        for path in imports(&code) {
            let path = path.trim_end_matches(':');
            assert!(layer(path) <= layer(&module), "{module} imports {path}, which is in a higher layer");
        }
    }
}

#[test]
fn formats_do_not_depend_on_drafts() {
    let is_draft = |path: &str| path.split("::").any(|part| DRAFTS.iter().any(|draft| part.starts_with(draft)));
    for (module, code) in modules().iter().filter(|(module, _)| module.starts_with("formats::") && !is_draft(module)) {
        let draft = imports(code).find(|path| is_draft(path));
        assert_eq!(draft, None, "{module} imports a draft");
    }
}

#[test]
fn only_columns_and_python_import_arrow() {
    for (module, code) in modules().iter().filter(|(module, _)| layer(module) < layer("arrow")) {
        let found =
            ["arrow_array", "arrow_buffer", "arrow_data", "arrow_schema"].iter().find(|name| code.contains(**name));
        assert_eq!(found, None, "{module} imports Arrow");
    }
}
