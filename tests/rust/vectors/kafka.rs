//! Vectors that Kafka 4.3.1 wrote.

use letterhead::error::Code;
use letterhead::format::Format;
use letterhead::log::OnLoss;
use letterhead::options::{ReadOptions, WriteOptions};
use letterhead::varint::{self, ParsedVarint};
use serde_json::Value;

use super::{array, bytes, hex, json, text};
use crate::common::{self, Head, Held, LENIENT, Message, STRICT};

fn lines(name: &str) -> Vec<Value> {
    text(name).lines().map(|line| json(&without_lone_surrogates(line))).collect()
}

/// Replaces lone halves of surrogate pairs by question marks, as Java writes them. Rust strings cannot contain them.
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

/// A number written as text.
fn number(value: &Value) -> i64 {
    value.as_str().expect("a number as text").parse().expect("a number")
}

fn heads(value: &Value) -> Vec<Head> {
    let head = |header: &Value| {
        let key = header["key"].as_str().expect("a key").into();
        Head { key, value_type: None, value: hex(&header["value"]) }
    };
    array(value).iter().map(head).collect()
}

fn payload(bytes: Option<Vec<u8>>) -> Held {
    bytes.map_or(Held::Null, Held::Bytes)
}

/// A value of a Streams store; only one of the two layouts has a timestamp.
fn envelope(headers: Vec<Head>, timestamp: Option<i64>, bytes: Option<Vec<u8>>) -> Message {
    let timestamp = timestamp.map(|number| Held::Number(number.into()));
    Message { headers: Some(headers), fields: timestamp.into_iter().chain([payload(bytes)]).collect() }
}

fn decode(serialized: &[u8], format: Format, options: ReadOptions) -> Result<Message, Code> {
    common::read(format, serialized, options).map(|mut messages| messages.remove(0)).map_err(|error| error.code)
}

fn encode(message: &Message, format: Format, on_loss: OnLoss) -> Result<Option<Vec<u8>>, Code> {
    let options = WriteOptions { on_loss, ..WriteOptions::default() };
    common::write(format, message, options).map_err(|error| error.code)
}

fn assert_read_by_both(serialized: &[u8], format: Format, expected: &Message) {
    assert_eq!(decode(serialized, format, STRICT).as_ref(), Ok(expected));
    assert_eq!(decode(serialized, format, LENIENT).as_ref(), Ok(expected));
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
    assert_eq!(varint::read_64(&out), ParsedVarint::Read { bits, len: out.len(), lost: false }, "{line}");
}

fn varint_is_read(line: &Value) {
    let (value_type, data) = (line["kind"].as_str().unwrap(), bytes(&line["decode_hex"]));
    // Reads a varint of the width that the vector names, and converts it to 64 bits.
    let read = if value_type == "varlong" {
        match varint::read_64(&data) {
            ParsedVarint::Read { bits, len, .. } => Ok((varint::unzigzag_64(bits), len)),
            failed => Err(failed == ParsedVarint::TooLong),
        }
    } else {
        match varint::read(&data) {
            ParsedVarint::Read { bits, len, .. } if value_type == "varint" => Ok((varint::unzigzag(bits).into(), len)),
            ParsedVarint::Read { bits, len, .. } => Ok((i64::from(bits as i32), len)),
            failed => Err(failed == ParsedVarint::TooLong),
        }
    };
    if line["error"].is_null() {
        let value: i64 = number(&line["value"]);
        // Java has no unsigned integers: a varint of 32 bits is listed as either.
        let value = if value_type == "unsigned_varint" { i64::from(value as u32 as i32) } else { value };
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
        let headers = if line["headers"].is_null() { vec![] } else { heads(&line["headers"]) };
        let expected = bytes(&line["hex"]);
        let message = Message::block(headers.clone());
        assert_eq!(encode(&message, Format::Kafka, OnLoss::Raise), Ok(Some(expected.clone())), "{line}");
        let decoded = if line["decoded"].is_null() { headers } else { heads(&line["decoded"]) };
        assert_read_by_both(&expected, Format::Kafka, &Message::block(decoded));
    }
}

fn raw_key(line: &Value) {
    let data = bytes(&line["decode_hex"]);
    let whole = line["reencoded"] == line["decode_hex"];
    let strict = decode(&data, Format::Kafka, STRICT).err();
    assert_eq!(strict, (!whole).then_some(Code::KeyNotUtf8), "{line}");
    let read = decode(&data, Format::Kafka, LENIENT).unwrap();
    assert_eq!(read.heads(), heads(&line["decoded"]), "{line}");
    assert_eq!(encode(&read, Format::Kafka, OnLoss::Raise), Ok(hex(&line["reencoded"])), "{line}");
}

#[test]
fn value_timestamp_headers() {
    let lines = lines("value_timestamp_headers");
    assert_eq!(lines.len(), 271);
    for line in &lines {
        envelope_line(line, Format::StreamsTimestamped, "value");
    }
}

#[test]
fn aggregation_with_headers() {
    let lines = lines("aggregation_with_headers");
    assert_eq!(lines.len(), 172);
    for line in lines.iter().filter(|line| line["error"].is_null()) {
        envelope_line(line, Format::Streams, "aggregation");
    }
}

fn envelope_line(line: &Value, format: Format, payload: &str) {
    let timed = format == Format::StreamsTimestamped;
    let Some(expected) = hex(&line["hex"]) else {
        let tombstone = envelope(vec![], timed.then_some(0), None);
        assert_eq!(encode(&tombstone, format, OnLoss::Raise), Ok(None), "{line}");
        return;
    };
    let timestamp = timed.then(|| number(&line["timestamp"]));
    let mut message = envelope(heads(&line["headers"]), timestamp, hex(&line[payload]));
    assert_eq!(encode(&message, format, OnLoss::Raise), Ok(Some(expected.clone())), "{line}");
    if line["decoded_headers"].is_array() {
        message.headers = Some(heads(&line["decoded_headers"]));
    }
    assert_read_by_both(&expected, format, &message);
}

#[test]
fn malformed() {
    let models = [
        ("HeadersDeserializer.deserialize", Format::Kafka, None),
        ("ValueTimestampHeadersDeserializer.deserialize", Format::StreamsTimestamped, Some("value")),
        ("AggregationWithHeadersDeserializer.deserialize", Format::Streams, Some("aggregation")),
    ];
    let lines = lines("malformed");
    assert_eq!(lines.len(), 402);
    let mut refused = 0;
    for line in &lines {
        let input = bytes(&line["input"]);
        for (model, format, payload) in models {
            let java = &line["targets"][model];
            let (strict, lenient) = (decode(&input, format, STRICT), decode(&input, format, LENIENT));
            let Some(ok) = java.get("ok") else {
                assert!(java["error"].is_object(), "{line}");
                assert!(strict.is_err() && lenient.is_err(), "{model} throws: {line}");
                continue;
            };
            let headers = heads(&ok["headers"]);
            let expected = match payload {
                None => Message::block(headers),
                Some(name) => envelope(headers, ok.get("timestamp").map(number), hex(&ok[name])),
            };
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
    // The sum of the table in the README of the vectors.
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
        let headers = if record { heads(&line["headers"]) } else { vec![] };
        let timestamp = if record { number(&line["timestamp"]) } else { -1 };
        let payload = hex(&line[if record { "value" } else { "input" }]);
        let loses = payload.is_none() && !headers.is_empty();
        for (format, name) in [Format::StreamsTimestamped, Format::Streams].into_iter().zip(names) {
            let timestamp = (format == Format::StreamsTimestamped).then_some(timestamp);
            let message = envelope(headers.clone(), timestamp, payload.clone());
            assert_eq!(encode(&message, format, OnLoss::Drop), Ok(hex(&line[name])), "{line}");
            let raised = if loses { Err(Code::NullNotCarried) } else { Ok(hex(&line[name])) };
            assert_eq!(encode(&message, format, OnLoss::Raise), raised, "{line}");
        }
    }
}
