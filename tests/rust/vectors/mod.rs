//! Compares every line of the vectors with the core.

mod iggy;
mod iggy_messages;
mod kafka;
mod kip82;
mod message_sets;
mod record_batches;

use std::fs;
use std::path::Path;

use serde_json::Value;

fn text(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors").join(format!("{name}.jsonl"));
    fs::read_to_string(path).expect("the vectors are part of the project")
}

fn lines(name: &str) -> Vec<Value> {
    text(name).lines().map(json).collect()
}

fn json(line: &str) -> Value {
    serde_json::from_str(line).expect("JSON")
}

/// Bytes in hexadecimal digits, or null.
fn hex(value: &Value) -> Option<Vec<u8>> {
    let digits = value.as_str()?;
    Some((0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect())
}

fn bytes(value: &Value) -> Vec<u8> {
    hex(value).expect("bytes in hex")
}

fn array(value: &Value) -> &[Value] {
    value.as_array().expect("a list")
}
