//! Record sets of all message formats that Kafka 4.3.1 wrote, compared with the records that Kafka reads from them.

use letterhead::format::Format;
use serde_json::Value;

use super::{array, bytes, hex, lines};
use crate::common::{self, Held, HeldKey, LENIENT, Message, STRICT, other_fields};

#[test]
fn every_record_set() {
    let lines = lines("record_batches");
    assert_eq!(lines.len(), 57);
    let mut refused = vec![];
    for line in &lines {
        let serialized = bytes(&line["hex"]);
        let expected: Vec<_> = array(&line["batches"]).iter().flat_map(told).collect();
        let read = common::read(Format::RecordBatch, &serialized, LENIENT);
        match read {
            Ok(read) => {
                assert!(array(&line["batches"]).iter().all(|batch| batch["valid"] == true), "{}", line["id"]);
                assert_eq!(read.iter().map(seen).collect::<Vec<_>>(), expected, "{}", line["id"]);
            }
            Err(error) => {
                assert!(
                    array(&line["batches"]).iter().any(|batch| batch["valid"] == false),
                    "{error:?} {}",
                    line["id"]
                );
                refused.push(error.code.name());
            }
        }
        // Kafka ignores a truncated batch at the end.
        let cut = line["id"].as_str().is_some_and(|id| id.contains("partial"));
        if cut {
            assert_eq!(common::read(Format::RecordBatch, &serialized, STRICT).unwrap_err().code.name(), "truncated");
        }
    }
    println!("{refused:?}");
}

type Told = Vec<(&'static str, Held)>;

/// Records of a batch as Kafka reports them, by our field names.
fn told(batch: &Value) -> Vec<Told> {
    let whole = |value: &Value| value.as_str().map_or_else(|| value.as_i64(), |text| text.parse().ok());
    let number = |value: &Value| whole(value).map_or(Held::Null, |number| Held::Number(number.into()));
    let some =
        |value: &Value| whole(value).filter(|number| *number != -1).map_or(Held::Null, |n| Held::Number(n.into()));
    let run = |value: &Value| hex(value).map_or(Held::Null, Held::Bytes);
    let flag = |value: &Value| Held::Bool(value.as_bool().unwrap_or(false));
    let old = batch["magic"] == 0;
    let value_type =
        if old { Held::Null } else { Held::Number(i128::from(batch["timestamp_type"] == "LogAppendTime")) };
    let record = |record: &Value| {
        vec![
            ("offset", number(&record["offset"])),
            ("timestamp", if old { Held::Null } else { number(&record["timestamp"]) }),
            ("timestamp_type", value_type.clone()),
            ("key", run(&record["key"])),
            ("value", run(&record["value"])),
            ("producer_id", some(&batch["producer_id"])),
            ("producer_epoch", some(&batch["producer_epoch"])),
            ("sequence", some(&record["sequence"])),
            ("transactional", flag(&batch["transactional"])),
            ("control", flag(&batch["control"])),
            ("headers", if batch["magic"] == 2 { headers(&record["headers"]) } else { Held::Null }),
        ]
    };
    array(&batch["records"]).iter().map(record).collect()
}

/// Headers as one value that can be compared.
fn headers(given: &Value) -> Held {
    let heads = array(given).iter().map(|head| {
        let key = head["key"].as_str().expect("text").as_bytes().to_vec();
        piece(&key, hex(&head["value"]))
    });
    Held::Bytes(heads.flatten().collect())
}

fn piece(key: &[u8], value: Option<Vec<u8>>) -> Vec<u8> {
    let value_len = value.as_ref().map_or(-1, |value| value.len() as i32);
    let mut out = [(key.len() as i32).to_be_bytes(), value_len.to_be_bytes()].concat();
    out.extend(key);
    out.extend(value.unwrap_or_default());
    out
}

fn seen(message: &Message) -> Told {
    let mut fields: Vec<_> = other_fields(Format::RecordBatch)
        .zip(&message.fields)
        .map(|(field, held)| (field.name, held.clone()))
        .collect();
    let heads = message.headers.as_ref().map_or(Held::Null, |heads| {
        let of = |head: &common::Head| match &head.key {
            HeldKey::Text(key) => piece(key.as_bytes(), head.value.clone()),
            other => panic!("{other:?} in a block of text keys"),
        };
        Held::Bytes(heads.iter().flat_map(of).collect())
    });
    fields.push(("headers", heads));
    fields
}
