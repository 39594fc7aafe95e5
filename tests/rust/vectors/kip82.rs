//! Vectors that were written by hand from the drafts of KIP-82.

use letterhead::error::ErrorDetail;
use letterhead::field::FieldType;
use letterhead::format::Format;
use letterhead::options::WriteOptions;
use letterhead::value_type::ValueType;
use serde_json::Value;

use super::{array, bytes, hex, lines};
use crate::common::{self, Head, Held, HeldKey, LENIENT, Message, STRICT, other_fields};

fn all_lines(name: &str, count: usize) {
    let lines = lines(name);
    assert_eq!(lines.len(), count);
    for line in &lines {
        let format = Format::from_name(line["format"].as_str().expect("a format")).expect("a known one");
        match line["op"].as_str().expect("an op") {
            "both" => {
                reads(line, format);
                writes(line, format);
            }
            "decode" | "messages" => reads(line, format),
            "encode" => refuses(line, format),
            other => panic!("{other}: {line}"),
        }
    }
}

#[test]
fn kip82_typed() {
    all_lines("kip82_typed", 113);
}

#[test]
fn kip82_int() {
    all_lines("kip82_int", 60);
}

#[test]
fn kip82_wrapper() {
    all_lines("kip82_wrapper", 56);
}

#[test]
fn kip82_message() {
    all_lines("kip82_message", 96);
}

#[test]
fn kip82_message_int() {
    all_lines("kip82_message_int", 93);
}

#[test]
fn kip82_message_wrapper() {
    all_lines("kip82_message_wrapper", 94);
}

#[test]
fn kip82_messages() {
    all_lines("kip82_messages", 69);
}

#[test]
fn kip82_messages_int() {
    all_lines("kip82_messages_int", 69);
}

#[test]
fn kip82_messages_wrapper() {
    all_lines("kip82_messages_wrapper", 70);
}

fn reads(line: &Value, format: Format) {
    let serialized = bytes(&line["bytes"]);
    let options = if line["lenient"] == true { LENIENT } else { STRICT };
    let expected: Vec<_> = match (line.get("message"), line.get("messages")) {
        (Some(one), None) => vec![message(one, format)],
        (None, Some(several)) => array(several).iter().map(|value| message(value, format)).collect(),
        _ => return refuses_to_read(line, format, &serialized),
    };
    assert_eq!(common::read(format, &serialized, options).as_ref(), Ok(&expected), "{line}");
    assert_eq!(common::errors(format, &serialized, options), [], "{line}");
    assert_eq!(common::read(format, &serialized, LENIENT), Ok(expected), "{line}");
}

fn refuses_to_read(line: &Value, format: Format, serialized: &[u8]) {
    let expected: Vec<_> = match line.get("errors") {
        Some(several) => array(several).iter().map(told).collect(),
        None => vec![told(&line["error"])],
    };
    let errors = common::errors(format, serialized, STRICT);
    assert_eq!(errors.iter().map(seen).collect::<Vec<_>>(), expected, "{line}");
    assert_eq!(common::read(format, serialized, STRICT).as_ref(), Err(&errors[0]), "{line}");
}

fn writes(line: &Value, format: Format) {
    let written = common::write(format, &message(&line["message"], format), WriteOptions::default());
    assert_eq!(written, Ok(hex(&line["bytes"])), "{line}");
}

fn refuses(line: &Value, format: Format) {
    let error =
        common::write(format, &message(&line["message"], format), WriteOptions::default()).expect_err("refused");
    let (code, _, header, _) = told(&line["error"]);
    let (found, byte, at, _) = seen(&error);
    assert_eq!((found, byte, at), (code, None, header), "{line}");
}

/// Code, byte, header and message of an error.
type Told = (String, Option<usize>, Option<usize>, String);

/// Error of the vectors, with the word "kind" replaced by "type".
fn told(error: &Value) -> Told {
    let place = |name: &str| error[name].as_u64().map(|place| place as usize);
    let text = |name: &str| error[name].as_str().unwrap_or("").replace("kind", "type");
    (text("code"), place("byte"), place("header"), text("message"))
}

fn seen(error: &ErrorDetail) -> Told {
    (error.code.name().into(), error.byte, error.header, error.message.to_string())
}

fn message(value: &Value, format: Format) -> Message {
    let headers = value["headers"].as_array().map(|headers| headers.iter().map(head).collect());
    Message { headers, fields: other_fields(format).map(|field| held(&value[field.name], field.field_type)).collect() }
}

fn head(value: &Value) -> Head {
    let key = match value["key"].as_i64() {
        Some(number) => HeldKey::Int(number.try_into().expect("an int32")),
        None => value["key"].as_str().expect("text").into(),
    };
    let value_type =
        value["kind"].as_str().map(|name| ValueType::parse(&name.replace("kind-", "type-")).expect("a kind"));
    Head { key, value_type, value: hex(&value["value"]) }
}

fn held(value: &Value, of: FieldType) -> Held {
    match (value, of) {
        (Value::Null, _) => Held::Null,
        (Value::Bool(flag), _) => Held::Bool(*flag),
        (Value::Number(number), _) => Held::Number(number.as_i64().expect("64 bits").into()),
        (text, FieldType::Binary) => Held::Bytes(bytes(text)),
        (other, of) => panic!("{other} as {of:?}"),
    }
}
