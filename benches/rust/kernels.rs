//! The kernels on one core, with no Python: decode, select, validate, encode.
//!
//! Two batches of 16,000 rows. `regular`: five headers in the same order in every row (a trace, a schema id, a tenant, an
//! amount, a null). `vectors`: the cells of the vectors, repeated: every layout differs from its neighbour. Each benchmark
//! checks its answer first. `memcpy` copies as many bytes as the decode of the batch reads and writes, into memory that
//! was touched before.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, BinaryArray};
use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use letterhead::arrow::select::{Repeat, Want};
use letterhead::arrow::{Apply, Decode, Encode, Input, Select, Validate, Verb};
use letterhead::format::Format;
use letterhead::header;
use letterhead::op::write::EncodeMessage;
use letterhead::types::Type;

const ROWS: usize = 16_000;

fn main() {
    divan::main();
}

/// A batch and what it holds.
struct Batch {
    cells: ArrayRef,
    headers: usize,
    amounts: i64,
}

fn regular() -> Batch {
    let row = |row: usize| {
        let trace = format!("00-{row:032x}-{row:016x}-01");
        let (id, amount) = ((row as i32).to_be_bytes(), (row as i64).to_be_bytes());
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
            kind: None,
            value: *value,
            at: None,
        });
        let message = EncodeMessage { headers: Some(headers.collect()), fields: vec![], options: Default::default() };
        Format::Kafka.visit(message).unwrap().unwrap()
    };
    let cells: Vec<_> = (0..ROWS).map(row).collect();
    let cells = BinaryArray::from_vec(cells.iter().map(Vec::as_slice).collect());
    Batch { cells: Arc::new(cells), headers: ROWS * 5, amounts: (0..ROWS as i64).sum() }
}

fn vectors() -> Batch {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors/headers.jsonl");
    let text = fs::read_to_string(path).expect("the vectors are part of the project");
    // Text is enough here: the tests read these lines as JSON.
    let digits = text.lines().filter_map(|line| line.split("\"hex\":\"").nth(1)?.split('"').next());
    let unhex = |hex: &str| -> Vec<u8> {
        (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
    };
    let cells: Vec<_> = digits.map(unhex).filter(|cell| cell.len() < 4096).collect();
    let cells = BinaryArray::from_vec(cells.iter().cycle().take(ROWS).map(Vec::as_slice).collect());
    let cells: ArrayRef = Arc::new(cells);
    let headers = apply(&Decode::default(), &cells).as_list::<i32>().values().len();
    Batch { cells, headers, amounts: 0 }
}

const BATCHES: [&str; 2] = ["regular", "vectors"];

fn batch(name: &str) -> Batch {
    if name == "regular" { regular() } else { vectors() }
}

fn apply(verb: &impl Verb, column: &ArrayRef) -> ArrayRef {
    Format::Kafka.visit(Apply(verb, Input::new(column))).unwrap().column
}

fn bench(bencher: Bencher<'_, '_>, batch: &Batch, verb: &(impl Verb + Sync), column: &ArrayRef) {
    bencher.counter(ItemsCount::new(batch.headers)).bench(|| apply(black_box(verb), black_box(column)));
}

#[divan::bench(args = BATCHES)]
fn decode(bencher: Bencher, name: &str) {
    let batch = batch(name);
    let made = apply(&Decode::default(), &batch.cells);
    assert_eq!(apply(&Encode::default(), &made).len(), ROWS);
    assert_eq!(made.as_list::<i32>().values().len(), batch.headers);
    bench(bencher, &batch, &Decode::default(), &batch.cells);
}

#[divan::bench(args = BATCHES)]
fn encode(bencher: Bencher, name: &str) {
    let batch = batch(name);
    let lists = apply(&Decode::default(), &batch.cells);
    assert_eq!(&apply(&Encode::default(), &lists), &batch.cells);
    bench(bencher, &batch, &Encode::default(), &lists);
}

#[divan::bench(args = BATCHES)]
fn validate(bencher: Bencher, name: &str) {
    let batch = batch(name);
    assert_eq!(apply(&Validate::default(), &batch.cells).null_count(), ROWS);
    bench(bencher, &batch, &Validate::default(), &batch.cells);
}

fn select_three() -> Select {
    let want = |key: &str, of: &str| Want {
        output: key.into(),
        key: header::WantedKey::Text(key.into()),
        of: Type::parse(of).unwrap(),
        repeat: Repeat::Last,
        required: false,
    };
    Select {
        wants: vec![want("amount", "int64"), want("tenant", "string"), want("schema-id", "int32")],
        ..Default::default()
    }
}

fn check_amounts(made: &ArrayRef, batch: &Batch) {
    let sum: i64 = made.as_struct().column(0).as_primitive::<Int64Type>().iter().flatten().sum();
    assert_eq!(sum, batch.amounts);
}

#[divan::bench]
fn select_three_from_bytes(bencher: Bencher) {
    let batch = regular();
    check_amounts(&apply(&select_three(), &batch.cells), &batch);
    bench(bencher, &batch, &select_three(), &batch.cells);
}

#[divan::bench]
fn select_three_from_lists(bencher: Bencher) {
    let batch = regular();
    let lists = apply(&Decode::default(), &batch.cells);
    check_amounts(&apply(&select_three(), &lists), &batch);
    bench(bencher, &batch, &select_three(), &lists);
}

#[divan::bench(args = BATCHES)]
fn memcpy(bencher: Bencher, name: &str) {
    let batch = batch(name);
    let written = apply(&Decode::default(), &batch.cells).get_buffer_memory_size();
    let bytes = (batch.cells.get_buffer_memory_size() + written) / 2;
    let (from, mut to) = (vec![1u8; bytes], vec![0u8; bytes]);
    to.copy_from_slice(&from);
    assert_eq!(to, from);
    bencher.counter(ItemsCount::new(batch.headers)).bench_local(|| {
        to.copy_from_slice(black_box(&from));
        black_box(&to);
    });
}
