//! Every line of the vectors, against the core.

use std::fs;
use std::path::Path;

use letterhead::error::{Code, Error};
use letterhead::format::Format;
use letterhead::header::{Header, Key};
use letterhead::mode::OnLoss;
use letterhead::op::values::DecodeMessage;
use letterhead::op::write::EncodeMessage;
use letterhead::varint::{self, Varint};
use letterhead::walk::{FieldValue, ReadOptions, WriteOptions};
use serde_json::Value;

type Pairs = Vec<(String, Option<Vec<u8>>)>;

/// A message in memory of its own, comparable with what a vector says.
#[derive(Debug, Clone, PartialEq)]
struct Message {
    headers: Pairs,
    timestamp: Option<i64>,
    payload: Option<Vec<u8>>,
}

fn lines(name: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors").join(format!("{name}.jsonl"));
    let text = fs::read_to_string(path).expect("the vectors are part of the project");
    text.lines().map(|line| serde_json::from_str(&without_lone_surrogates(line)).expect("JSON")).collect()
}

/// Java strings may hold half of a surrogate pair, which Java then writes as a question mark. No Rust string can.
fn without_lone_surrogates(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some(at) = rest.find("\\u") {
        let unit = |at: usize| rest.get(at + 2..at + 6).and_then(|hex| u16::from_str_radix(hex, 16).ok());
        let first = unit(at).expect("four digits");
        let second = rest[at + 6..].starts_with("\\u").then(|| unit(at + 6)).flatten();
        let pair = (0xd800..0xdc00).contains(&first) && second.is_some_and(|unit| (0xdc00..0xe000).contains(&unit));
        let len = if pair { 12 } else { 6 };
        out.push_str(&rest[..at]);
        if (0xd800..0xe000).contains(&first) && !pair {
            out.push('?');
        } else {
            out.push_str(&rest[at..at + len]);
        }
        rest = &rest[at + len..];
    }
    out.push_str(rest);
    out
}

fn hex(value: &Value) -> Option<Vec<u8>> {
    let digits = value.as_str()?;
    Some((0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect())
}

fn bytes(value: &Value) -> Vec<u8> {
    hex(value).expect("bytes in hex")
}

fn number(value: &Value) -> i64 {
    value.as_str().expect("a number as text").parse().expect("a number")
}

fn pairs(value: &Value) -> Pairs {
    let pair = |header: &Value| (header["key"].as_str().unwrap().to_string(), hex(&header["value"]));
    value.as_array().expect("headers").iter().map(pair).collect()
}

fn decode(cell: &[u8], format: &str, lenient: bool) -> Result<Message, Code> {
    let options = ReadOptions { lenient };
    let read = match Format::named(format).unwrap().visit(DecodeMessage { cell, options }) {
        Ok(read) => read,
        Err(Error::Headers(_, located)) => return Err(located.fault.code),
        Err(other) => panic!("{other}"),
    };
    let headers = read.headers.expect("these formats always have a headers field");
    let headers = headers.iter().map(|header| (header.key.to_string(), header.value.map(<[u8]>::to_vec))).collect();
    let mut message = Message { headers, timestamp: None, payload: None };
    for field in read.fields {
        match field {
            FieldValue::Int64(number) => message.timestamp = Some(number),
            FieldValue::Binary(bytes) => message.payload = Some(bytes.to_vec()),
            FieldValue::Null => panic!("no field of these is null when it is read"),
        }
    }
    Ok(message)
}

fn encode(message: &Message, format: &str, on_loss: OnLoss) -> Result<Option<Vec<u8>>, Code> {
    let header = |(index, (key, value)): (usize, &(String, Option<Vec<u8>>))| Header {
        index,
        key: Key::from(key.clone()),
        kind: None,
        value: None.or(value.as_ref().map(|value| &*value.clone().leak())),
        at: None,
    };
    let payload = message.payload.as_deref().map_or(FieldValue::Null, FieldValue::Binary);
    let fields = match format {
        "kafka" => vec![],
        "streams" => vec![payload],
        _ => vec![message.timestamp.map_or(FieldValue::Null, FieldValue::Int64), payload],
    };
    let headers = Some(message.headers.iter().enumerate().map(header).collect());
    let options = WriteOptions { on_loss, ..WriteOptions::default() };
    match Format::named(format).unwrap().visit(EncodeMessage { headers, fields, options }) {
        Ok(written) => Ok(written),
        Err(Error::Headers(_, located)) => Err(located.fault.code),
        Err(other) => panic!("{other}"),
    }
}

fn block(headers: Pairs) -> Message {
    Message { headers, timestamp: None, payload: None }
}

fn assert_read_by_both(cell: &[u8], format: &str, expected: &Message) {
    assert_eq!(decode(cell, format, false).as_ref(), Ok(expected));
    assert_eq!(decode(cell, format, true).as_ref(), Ok(expected));
}

#[test]
fn varints() {
    let lines = lines("varints");
    assert_eq!(lines.len(), 1745);
    for line in &lines {
        if line["hex"].is_string() {
            varint_is_written(line);
        } else {
            varint_is_read(line);
        }
    }
}

fn varint_is_written(line: &Value) {
    let (value, expected) = (line["value"].as_str().unwrap(), bytes(&line["hex"]));
    let bits: u64 = match line["kind"].as_str().unwrap() {
        "varint" => varint::zigzag(value.parse().unwrap()).into(),
        "varlong" => varint::zigzag_64(value.parse().unwrap()),
        "unsigned_varint" => value.parse::<u32>().unwrap().into(),
        _ => value.parse().unwrap(),
    };
    let mut out = Vec::new();
    varint::write(bits, &mut out);
    assert_eq!(out, expected, "{line}");
    assert_eq!(varint::len(bits) as u64, line["size"].as_u64().unwrap(), "{line}");
    assert_eq!(varint::read_64(&out), Varint::Read { bits, len: out.len(), lost: false }, "{line}");
}

fn varint_is_read(line: &Value) {
    let (kind, data) = (line["kind"].as_str().unwrap(), bytes(&line["decode_hex"]));
    // As wide as the kind says, then one shape for all.
    let read = if kind == "varlong" {
        match varint::read_64(&data) {
            Varint::Read { bits, len, .. } => Ok((varint::unzigzag_64(bits), len)),
            failed => Err(failed == Varint::TooLong),
        }
    } else {
        match varint::read(&data) {
            Varint::Read { bits, len, .. } if kind == "varint" => Ok((varint::unzigzag(bits).into(), len)),
            Varint::Read { bits, len, .. } => Ok((i64::from(bits as i32), len)),
            failed => Err(failed == Varint::TooLong),
        }
    };
    if line["error"].is_null() {
        let value: i64 = number(&line["value"]);
        // Java has no unsigned integers: a varint of 32 bits is listed as either.
        let value = if kind == "unsigned_varint" { i64::from(value as u32 as i32) } else { value };
        assert_eq!(read, Ok((value, line["consumed"].as_u64().unwrap() as usize)), "{line}");
    } else {
        let too_long = line["error"]["exception"] == "java.lang.IllegalArgumentException";
        assert_eq!(read, Err(too_long), "{line}");
    }
}

#[test]
fn headers() {
    let lines = lines("headers");
    assert_eq!(lines.len(), 240);
    for line in &lines {
        if line["decode_hex"].is_string() {
            raw_key(line);
            continue;
        }
        let headers = if line["headers"].is_null() { vec![] } else { pairs(&line["headers"]) };
        let expected = bytes(&line["hex"]);
        assert_eq!(encode(&block(headers.clone()), "kafka", OnLoss::Raise), Ok(Some(expected.clone())), "{line}");
        let decoded = if line["decoded"].is_null() { headers } else { pairs(&line["decoded"]) };
        assert_read_by_both(&expected, "kafka", &block(decoded));
    }
}

fn raw_key(line: &Value) {
    let data = bytes(&line["decode_hex"]);
    let whole = line["reencoded"] == line["decode_hex"];
    let strict = decode(&data, "kafka", false).err();
    assert_eq!(strict, (!whole).then_some(Code::KeyNotUtf8), "{line}");
    let read = decode(&data, "kafka", true).unwrap();
    assert_eq!(read.headers, pairs(&line["decoded"]), "{line}");
    assert_eq!(encode(&read, "kafka", OnLoss::Raise), Ok(hex(&line["reencoded"])), "{line}");
}

#[test]
fn value_timestamp_headers() {
    let lines = lines("value_timestamp_headers");
    assert_eq!(lines.len(), 271);
    for line in &lines {
        envelope_line(line, "streams-timestamped", "value");
    }
}

#[test]
fn aggregation_with_headers() {
    let lines = lines("aggregation_with_headers");
    assert_eq!(lines.len(), 172);
    for line in lines.iter().filter(|line| line["error"].is_null()) {
        envelope_line(line, "streams", "aggregation");
    }
}

fn envelope_line(line: &Value, format: &str, payload: &str) {
    let Some(expected) = hex(&line["hex"]) else {
        let tombstone = Message { headers: vec![], timestamp: Some(0), payload: None };
        assert_eq!(encode(&tombstone, format, OnLoss::Raise), Ok(None), "{line}");
        return;
    };
    let timestamp = (format == "streams-timestamped").then(|| number(&line["timestamp"]));
    let mut message = Message { headers: pairs(&line["headers"]), timestamp, payload: hex(&line[payload]) };
    assert_eq!(encode(&message, format, OnLoss::Raise), Ok(Some(expected.clone())), "{line}");
    if line["decoded_headers"].is_array() {
        message.headers = pairs(&line["decoded_headers"]);
    }
    assert_read_by_both(&expected, format, &message);
}

#[test]
fn malformed() {
    let models = [
        ("HeadersDeserializer.deserialize", "kafka", None),
        ("ValueTimestampHeadersDeserializer.deserialize", "streams-timestamped", Some("value")),
        ("AggregationWithHeadersDeserializer.deserialize", "streams", Some("aggregation")),
    ];
    let lines = lines("malformed");
    assert_eq!(lines.len(), 402);
    let mut refused = 0;
    for line in &lines {
        let input = bytes(&line["input"]);
        for (model, format, payload) in models {
            let java = &line["targets"][model];
            let (strict, lenient) = (decode(&input, format, false), decode(&input, format, true));
            let Some(ok) = java.get("ok") else {
                assert!(java["error"].is_object(), "{line}");
                assert!(strict.is_err() && lenient.is_err(), "{model} throws: {line}");
                continue;
            };
            let timestamp = ok.get("timestamp").map(number);
            let payload = payload.and_then(|name| hex(&ok[name]));
            let expected = Message { headers: pairs(&ok["headers"]), timestamp, payload };
            assert_eq!(lenient.as_ref(), Ok(&expected), "{model}: {line}");
            match strict {
                Ok(strict) => assert_eq!(strict, expected, "{model}: {line}"),
                Err(Code::TrailingBytes | Code::NegativeCount | Code::VarintLostBits | Code::KeyNotUtf8) => {
                    refused += 1
                }
                Err(code) => panic!("{model} reads and strict says {code:?}: {line}"),
            }
        }
    }
    // The table in the README of the vectors, added up.
    assert_eq!(refused, 94 + 8 + 8 + 43 + 9 + 7 + 2 + 1 + 1 + 1 + 9 + 9);
}

#[test]
fn conversions() {
    let lines = lines("conversions");
    assert_eq!(lines.len(), 61);
    for line in &lines {
        let record = line["kind"] == "record_converter";
        let names = if record {
            ["rawValueToHeadersValue", "rawValueToSessionHeadersValue"]
        } else {
            ["HeadersBytesStore.convertFromPlainToHeaderFormat", "HeadersBytesStore.convertToHeaderFormat"]
        };
        let message = Message {
            headers: if record { pairs(&line["headers"]) } else { vec![] },
            timestamp: Some(if record { number(&line["timestamp"]) } else { -1 }),
            payload: hex(&line[if record { "value" } else { "input" }]),
        };
        for (format, name) in ["streams-timestamped", "streams"].into_iter().zip(names) {
            assert_eq!(encode(&message, format, OnLoss::Drop), Ok(hex(&line[name])), "{line}");
            let loses = message.payload.is_none() && !message.headers.is_empty();
            let raised = if loses { Err(Code::NullNotCarried) } else { Ok(hex(&line[name])) };
            assert_eq!(encode(&message, format, OnLoss::Raise), raised, "{line}");
        }
    }
}
