//! The batches of the benchmarks in Rust.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, BinaryArray};
use letterhead::arrow::select::{Repeat, Selection};
use letterhead::arrow::{Apply, Decode, Input, Operation, Select};
use letterhead::format::Format;
use letterhead::header;
use letterhead::op::write::EncodeMessage;
use letterhead::types::Type;

pub const ROWS: usize = 16_000;

/// A batch and what it holds.
pub struct BatchFormat {
    pub serialized_rows: ArrayRef,
    pub headers: usize,
    pub amounts: i64,
}

fn regular() -> BatchFormat {
    let row = |row: usize| {
        let trace = format!("00-{row:032x}-{row:016x}-01");
        let (id, amount) = (i32::try_from(row).expect("few rows").to_be_bytes(), (row as i64).to_be_bytes());
        let values: [(&str, Option<&[u8]>); 5] = [
            ("traceparent", Some(trace.as_bytes())),
            ("schema-id", Some(&id)),
            ("tenant", Some(b"acme")),
            ("amount", Some(&amount)),
            ("n", None),
        ];
        let headers = values.iter().enumerate().map(|(index, (key, value))| header::Header {
            index,
            key: (*key).into(),
            value_type: None,
            value: *value,
            value_offset: None,
        });
        let message = EncodeMessage { headers: Some(headers.collect()), fields: vec![], options: Default::default() };
        message.encode(Format::Kafka.info()).unwrap().unwrap()
    };
    let serialized_rows: Vec<_> = (0..ROWS).map(row).collect();
    let serialized_rows = BinaryArray::from_vec(serialized_rows.iter().map(Vec::as_slice).collect());
    BatchFormat { serialized_rows: Arc::new(serialized_rows), headers: ROWS * 5, amounts: (0..ROWS as i64).sum() }
}

fn vectors() -> BatchFormat {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors/headers.jsonl");
    let text = fs::read_to_string(path).expect("the vectors are part of the project");
    // Text is enough here: the tests read these lines as JSON.
    let digits = text.lines().filter_map(|line| line.split("\"hex\":\"").nth(1)?.split('"').next());
    let unhex = |hex: &str| -> Vec<u8> {
        (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
    };
    let values: Vec<_> = digits.map(unhex).filter(|value| value.len() < 4096).collect();
    let values = BinaryArray::from_vec(values.iter().cycle().take(ROWS).map(Vec::as_slice).collect());
    let values: ArrayRef = Arc::new(values);
    let headers = apply(&Decode::default(), &values).as_list::<i32>().values().len();
    BatchFormat { serialized_rows: values, headers, amounts: 0 }
}

pub const BATCHES: [&str; 2] = ["regular", "vectors"];

pub fn batch(name: &str) -> BatchFormat {
    if name == "regular" { regular() } else { vectors() }
}

pub fn apply(operation: &impl Operation, column: &ArrayRef) -> ArrayRef {
    Format::Kafka.visit(Apply(operation, Input::new(column))).unwrap().column
}

pub fn select_three() -> Select {
    let selection = |key: &str, of: &str| {
        Selection::new(key, header::RequestedKey::Text(key.into()), Type::parse(of).unwrap(), Repeat::Last)
    };
    Select {
        selections: vec![selection("amount", "int64"), selection("tenant", "string"), selection("schema-id", "int32")],
        ..Default::default()
    }
}

/// Sees that `select_three` found the amounts of a batch.
pub fn check_amounts(made: &ArrayRef, batch: &BatchFormat) {
    let sum: i64 = made.as_struct().column(0).as_primitive::<Int64Type>().iter().flatten().sum();
    assert_eq!(sum, batch.amounts);
}
