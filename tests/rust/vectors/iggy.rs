//! Vectors of headers that the crates of Apache Iggy wrote.

use letterhead::arrow::types::Dialect;
use letterhead::encoding::Encoding;
use letterhead::error::{Code, ErrorDetail};
use letterhead::format::Format;
use letterhead::options::{ReadOptions, WriteOptions};
use letterhead::types::{Coding, Type};
use letterhead::value::ByteOrder;
use letterhead::value_type::{Scalar, ValueType};
use serde_json::Value;

use super::{array, bytes, lines};
use crate::common::{self, Head, HeldKey, LENIENT, Message, STRICT, STRICT_KINDS};

const CANONICAL: fn() -> WriteOptions = || WriteOptions { canonical: true, ..WriteOptions::default() };

/// Converts a value of the crates to big-endian order: values of fixed width are little-endian there.
fn bits(value_type: ValueType, mut bytes: Vec<u8>) -> Vec<u8> {
    if value_type.width().is_some() {
        bytes.reverse();
    }
    bytes
}

fn field(value: &Value) -> (ValueType, Vec<u8>) {
    let value_type = match value["kind"].as_str().expect("a kind") {
        "raw" => ValueType::Named(Scalar::Binary),
        name => ValueType::parse(name).expect("a known kind"),
    };
    (value_type, bits(value_type, bytes(&value["hex"])))
}

pub fn heads(entries: &Value) -> Vec<Head> {
    let head = |entry: &Value| {
        let (key_type, key) = field(&entry["key"]);
        let (value_type, value) = field(&entry["value"]);
        Head { key: HeldKey::typed(key_type, &key), value_type: Some(value_type), value: Some(value) }
    };
    array(entries).iter().map(head).collect()
}

fn read_block(format: Format, serialized: &[u8], options: ReadOptions) -> Result<Vec<Head>, ErrorDetail> {
    common::read(format, serialized, options)
        .map(|mut messages| messages.remove(0).headers.expect("a block has headers"))
}

fn write_block(format: Format, headers: &[Head], options: WriteOptions) -> Vec<u8> {
    common::write(format, &Message::block(headers.to_vec()), options)
        .expect("whole headers")
        .expect("a block has a value")
}

/// Headers that the crates keep: the last of each key.
fn unique(headers: &[Head]) -> Vec<Head> {
    let is_last = |place: &usize| headers[place + 1..].iter().all(|later| later.key != headers[*place].key);
    (0..headers.len()).filter(is_last).map(|place| headers[place].clone()).collect()
}

/// Sort key of a header in the output of the crates: the type code of the key, then the bytes on the wire.
fn place(head: &Head) -> (u8, Vec<u8>) {
    let (value_type, key) = match &head.key {
        HeldKey::Text(text) => (ValueType::Named(Scalar::String), text.as_bytes().to_vec()),
        HeldKey::Int(number) => (ValueType::Named(Scalar::Int32), number.to_be_bytes().to_vec()),
        HeldKey::Typed(value_type, key) => (*value_type, key.clone()),
    };
    let ValueType::Named(scalar) = value_type else { panic!("the crates know no other kinds") };
    (scalar.iggy().expect("a code"), bits(value_type, key))
}

pub fn sorted(mut headers: Vec<Head>) -> Vec<Head> {
    headers.sort_by_key(place);
    headers
}

#[test]
fn seed_headers() {
    let lines = lines("iggy_seed_headers");
    assert_eq!(lines.len(), 218);
    for line in &lines {
        let (serialized, expected) = (bytes(&line["bytes"]), heads(&line["entries"]));
        for options in [STRICT, LENIENT, STRICT_KINDS] {
            assert_eq!(read_block(Format::Iggy2023, &serialized, options).as_ref(), Ok(&expected), "{line}");
            assert_eq!(read_block(Format::IggyAuto, &serialized, options).as_ref(), Ok(&expected), "{line}");
        }
        assert_eq!(write_block(Format::Iggy2023, &expected, WriteOptions::default()), serialized, "{line}");
    }
}

#[test]
fn tlv_headers() {
    let lines = lines("iggy_tlv_headers");
    assert_eq!(lines.len(), 359);
    let mut reordered = 0;
    for line in &lines {
        let (serialized, expected) = (bytes(&line["bytes"]), heads(&line["entries"]));
        for format in [Format::Iggy, Format::IggyAuto] {
            for options in [STRICT, LENIENT, STRICT_KINDS] {
                assert_eq!(read_block(format, &serialized, options).as_ref(), Ok(&expected), "{line}");
            }
        }
        assert_eq!(write_block(Format::Iggy, &expected, WriteOptions::default()), serialized, "{line}");
        let given = line.get("input").map_or(expected, heads);
        assert_eq!(write_block(Format::Iggy, &given, CANONICAL()), serialized, "{line}");
        // Without `canonical`, headers keep their order.
        let plain = write_block(Format::Iggy, &given, WriteOptions::default());
        assert_eq!(read_block(Format::Iggy, &plain, STRICT).as_ref(), Ok(&given), "{line}");
        reordered += usize::from(plain != serialized);
    }
    assert_eq!(reordered, 59);
}

/// A value can be read as its type only if it has the size of the type.
pub fn assert_sizes_show(headers: &[Head]) -> usize {
    let mut wrong = 0;
    for head in headers {
        let (Some(ValueType::Named(scalar)), Some(value)) = (head.value_type, &head.value) else { continue };
        let of = Type { scalar, coding: Coding::Plain(Encoding::Bytes(ByteOrder::Big)), base: None };
        let invalid = of.read(value, Dialect::Arrow).err().map(|invalid| invalid.code);
        let fits = scalar.width().is_none_or(|width| width == value.len());
        assert_eq!(invalid == Some(Code::WrongSize), !fits, "{head:?}");
        wrong += usize::from(!fits);
    }
    wrong
}

#[test]
fn seed_malformed() {
    let lines = lines("iggy_seed_malformed");
    assert_eq!(lines.len(), 352);
    let (mut panics, mut collapsed, mut wrong_sizes) = (0, 0, 0);
    for line in &lines {
        let serialized = bytes(&line["bytes"]);
        let read = read_block(Format::Iggy2023, &serialized, STRICT);
        for options in [LENIENT, STRICT_KINDS] {
            assert_eq!(read_block(Format::Iggy2023, &serialized, options), read, "{line}");
        }
        let Some(ok) = line["expect"].get("ok") else {
            // Bytes that make the crate panic are an error here.
            panics += usize::from(line["expect"].get("panic").is_some());
            assert!(read.is_err(), "{line}");
            continue;
        };
        let read = read.unwrap_or_else(|error| panic!("{error:?}: {line}"));
        assert_eq!(sorted(unique(&read)), heads(ok), "{line}");
        collapsed += usize::from(unique(&read).len() < read.len());
        wrong_sizes += usize::from(assert_sizes_show(&read) > 0);
        assert_eq!(write_block(Format::Iggy2023, &read, WriteOptions::default()), serialized, "{line}");
    }
    assert_eq!((panics, collapsed, wrong_sizes), (66, 2, 104));
}

#[test]
fn tlv_malformed() {
    let lines = lines("iggy_tlv_malformed");
    assert_eq!(lines.len(), 501);
    let (mut collapsed, mut unnamed, mut wrong_sizes) = (0, 0, 0);
    for line in &lines {
        let serialized = bytes(&line["bytes"]);
        let (read, named) =
            (read_block(Format::Iggy, &serialized, STRICT), read_block(Format::Iggy, &serialized, STRICT_KINDS));
        assert_eq!(read_block(Format::Iggy, &serialized, LENIENT), read, "{line}");
        let Some(pairs) = line["expect_wire"]["ok"].as_u64() else {
            assert!(read.is_err() && named.is_err(), "{line}");
            continue;
        };
        if let Some(ok) = line["expect"].get("ok") {
            let read = read.unwrap_or_else(|error| panic!("{error:?}: {line}"));
            assert_eq!(named.as_ref(), Ok(&read), "{line}");
            assert_eq!(read.len() as u64, pairs, "{line}");
            assert_eq!(sorted(unique(&read)), heads(ok), "{line}");
            collapsed += usize::from(unique(&read).len() < read.len());
            assert_eq!(write_block(Format::Iggy, &read, WriteOptions::default()), serialized, "{line}");
            continue;
        }
        // The typed readers of the crate reject types without a name, and values that do not have the size of their
        // type.
        let named = named.expect_err("refused").code;
        match read {
            Ok(read) => {
                assert_eq!((named, read.len() as u64), (Code::UnknownType, pairs), "{line}");
                unnamed += 1;
            }
            Err(error) => {
                assert_eq!((error.code, named), (Code::WrongSize, Code::WrongSize), "{line}");
                wrong_sizes += 1;
            }
        }
    }
    assert_eq!((collapsed, unnamed, wrong_sizes), (2, 14, 209));
}

/// Length of each value: `value_len`, except for the last value, or a list of lengths.
fn value_lens(line: &Value) -> Vec<usize> {
    let len = |value: &Value| value.as_u64().expect("a length") as usize;
    if let Some(lens) = line["value_lens"].as_array() {
        return lens.iter().map(len).collect();
    }
    let mut lens = vec![len(&line["value_len"]); len(&line["n"])];
    *lens.last_mut().expect("at least one") = len(&line["last_value_len"]);
    lens
}

#[test]
fn limits() {
    let lines = lines("iggy_limits");
    assert_eq!(lines.len(), 18);
    for line in &lines {
        let seed = line["op"] == "seed_limit";
        let format = if seed { Format::Iggy2023 } else { Format::Iggy };
        let head = |(index, len): (usize, usize)| {
            let key = HeldKey::Text(format!("k{index:05}"));
            let value = (0..len).map(|byte| (index * 7 + byte) as u8).collect();
            Head { key, value_type: Some(ValueType::Named(Scalar::Binary)), value: Some(value) }
        };
        let headers: Vec<_> = value_lens(line).into_iter().enumerate().map(head).collect();
        let written = common::write(format, &Message::block(headers.clone()), WriteOptions::default());
        // The older crate limits the sum of the values of a request; here, of one message.
        let values: u64 = value_lens(line).iter().map(|len| *len as u64).sum();
        let verdict = if seed { &line["send_messages_validate"] } else { &line["build"] };
        if verdict != "ok" && line["messages"] != 2 {
            assert_eq!(written.map_err(|error| error.code), Err(Code::TooLarge), "{line}");
            continue;
        }
        let serialized = written.expect("within the limit").expect("a block has a value");
        let len = if seed { &line["header_bytes_per_message"] } else { &line["header_bytes"] };
        assert_eq!(serialized.len() as u64, len.as_u64().expect("a length"), "{line}");
        if seed {
            assert_eq!(Some(values), line["value_bytes_per_message"].as_u64(), "{line}");
        }
        assert_eq!(read_block(format, &serialized, STRICT), Ok(headers), "{line}");
    }
}
