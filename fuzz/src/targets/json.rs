//! Rows as JSON lines: a reader of JSON finds the keys and values of all headers, and no character controls a terminal.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, StructArray};
use arrow_schema::{Field, Fields};
use letterhead::arrow::Decode;
use letterhead::arrow::json_lines::{JsonOptions, json_lines};
use letterhead::format_info::Class;
use letterhead::log::OnError;
use letterhead::options::ReadOptions;
use letterhead::value_type::ValueType;
use serde_json::Value;

use super::serialized_rows::{BEHIND, Layout};
use super::{Shape, Target, formats_of_one, named, seal};
use crate::columns::{apply_to, heads_at};
use crate::common::HeldKey;

pub const TARGET: Target = Target { name: "json", subjects: formats_of_one, check };

fn check(name: &str, data: &[u8]) {
    let (format, Some((shape, data))) = (named(name), Shape::split(data)) else { return };
    let mut serialized = data.to_vec();
    if shape.bit(5) {
        seal::seal(format, &mut serialized);
    }
    let options = ReadOptions { text_keys: false, ..shape.options() };
    let column = Layout::of(shape.bits(6, 2)).column(&[Some(&serialized), None, Some(&serialized)], &BEHIND);
    let decode = Decode { options, on_error: OnError::Null, views: false };
    let decoded = apply_to(format, &decode, &column).expect("nothing is raised");
    let rows = match format.info().class {
        Class::Headers => beside(decoded),
        Class::Message | Class::Batch => decoded.as_struct().clone(),
    };
    let (epoch_ms, ascii) = (shape.bit(3), shape.bit(4));
    let text = String::from_utf8(json_lines(&rows, JsonOptions { epoch_ms, ascii }).expect("these are written"))
        .expect("UTF-8");
    assert!(text.chars().all(|char| char == '\n' || !char.is_control() && (!ascii || char.is_ascii())));
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(lines.len(), rows.len());
    let headers = rows.column_by_name("headers").expect("every message has headers");
    for (row, line) in lines.iter().enumerate() {
        if rows.is_null(row) {
            assert!(line.is_null());
            continue;
        }
        let heads = heads_at(headers, row);
        assert_eq!(line["headers"].is_null(), heads.is_none());
        let elements = line["headers"].as_array().map(Vec::as_slice).unwrap_or_default();
        let heads = heads.unwrap_or_default();
        assert_eq!(elements.len(), heads.len());
        for (element, head) in elements.iter().zip(&heads) {
            match &head.key {
                HeldKey::Text(text) => assert_eq!(element["key"], **text),
                HeldKey::Int(number) if element["key"].is_i64() => assert_eq!(element["key"], *number),
                HeldKey::Int(number) => assert_eq!(element["key"]["value"], *number),
                HeldKey::Typed(value_type, bits) => same(&element["key"], Some(*value_type), bits),
            }
            match &head.value {
                None => assert!(element["value"].is_null()),
                Some(bits) => same(&element["value"], head.value_type, bits),
            }
        }
    }
}

fn beside(headers: ArrayRef) -> StructArray {
    let fields = Fields::from(vec![Field::new("headers", headers.data_type().clone(), true)]);
    StructArray::new(fields, vec![Arc::clone(&headers)], None)
}

/// Text and base64 digits contain the bits, and a value with a type names its type.
fn same(value: &Value, value_type: Option<ValueType>, bits: &[u8]) {
    if let Some(text) = value.as_str() {
        assert_eq!(text.as_bytes(), bits);
        return;
    }
    let type_name = value.get("type").map(|name| name.as_str().expect("a name").to_string());
    assert_eq!(type_name, value_type.map(|value_type| value_type.name().to_string()));
    match value.get("base64") {
        Some(digits) => assert_eq!(decoded(digits.as_str().expect("digits")), bits),
        None => assert!(!value["value"].is_null()),
    }
}

fn decoded(digits: &str) -> Vec<u8> {
    const DIGITS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    assert!(digits.len().is_multiple_of(4));
    let digits = digits.trim_end_matches('=');
    let bits = digits.chars().flat_map(|digit| {
        let bits = DIGITS.find(digit).expect("a digit");
        (0..6).rev().map(move |place| bits >> place & 1)
    });
    let bits: Vec<_> = bits.collect();
    bits.chunks_exact(8).map(|bits| bits.iter().fold(0, |byte, bit| byte << 1 | *bit as u8)).collect()
}
