//! Message sets of formats 0 and 1 that Kafka 4.3.1 wrote, read with all three layouts.

use letterhead::format::Format;
use serde_json::Value;

use super::{array, bytes, hex, lines};
use crate::common::{self, Held, LENIENT, Message, STRICT, other_fields};

const SETS: [Format; 3] = [Format::Kip82Messages, Format::Kip82MessagesInt, Format::Kip82MessagesWrapper];

#[test]
fn message_sets_of_magic_0_and_1() {
    let lines = lines("record_batches");
    assert_eq!(lines.len(), 57);
    let sets: Vec<_> = lines.iter().filter(|line| line["batches"][0]["magic"] != 2).collect();
    assert_eq!(sets.len(), 16);
    for line in sets {
        let serialized = bytes(&line["hex"]);
        let records = array(&line["batches"])
            .iter()
            .flat_map(|batch| array(&batch["records"]).iter().map(move |record| (batch, record)));
        let expected: Vec<_> = records.map(|(batch, record)| told(batch, record)).collect();
        for format in SETS {
            for options in [STRICT, LENIENT] {
                let read =
                    common::read(format, &serialized, options).unwrap_or_else(|error| panic!("{error:?}: {line}"));
                let read: Vec<_> = read.iter().map(|message| seen(message, format)).collect();
                assert_eq!(read, expected, "{line}");
            }
        }
    }
}

#[test]
fn a_batch_of_magic_2_is_no_message_set() {
    let lines = lines("record_batches");
    let batches: Vec<_> = lines.iter().filter(|line| line["batches"][0]["magic"] == 2).collect();
    assert_eq!(batches.len(), 41);
    for line in batches {
        for format in SETS {
            assert!(common::read(format, &bytes(&line["hex"]), STRICT).is_err(), "{line}");
        }
    }
}

/// Fields of a record as Kafka reports them, by our field names.
fn told(batch: &Value, record: &Value) -> [(&'static str, Held); 7] {
    let number = |value: &Value| Held::Number(value.as_str().expect("text").parse().expect("a number"));
    let bytes = |value: &Value| hex(value).map_or(Held::Null, Held::Bytes);
    let magic = batch["magic"].as_i64().expect("a number");
    [
        ("offset", number(&record["offset"])),
        ("magic", Held::Number(magic.into())),
        ("timestamp", if magic == 0 { Held::Null } else { number(&record["timestamp"]) }),
        ("key", bytes(&record["key"])),
        ("value", bytes(&record["value"])),
        ("tombstone", Held::Bool(record["value"].is_null())),
        ("headers", Held::Null),
    ]
}

fn seen(message: &Message, format: Format) -> [(&'static str, Held); 7] {
    let field = |name: &'static str| {
        let place = other_fields(format).position(|field| field.name == name).expect("a field");
        (name, message.fields[place].clone())
    };
    assert_eq!(message.headers, None);
    let headers = ("headers", Held::Null);
    [field("offset"), field("magic"), field("timestamp"), field("key"), field("value"), field("tombstone"), headers]
}
