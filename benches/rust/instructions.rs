//! One job on one batch, some times: what `benches/instructions.py` counts the instructions of.
//!
//! ```text
//! instructions JOB BATCH TIMES    prints the number of headers of the batch
//! ```

mod batches;

use std::env;
use std::hint::black_box;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BinaryArray};
use letterhead::arrow::edit::EditColumn;
use letterhead::arrow::filter::{Comparison, Filter, Literal, Operand, Quantifier, Step, Test};
use letterhead::arrow::filtered::Filtered;
use letterhead::arrow::messages::Messages;
use letterhead::arrow::{Apply, Convert, Decode, Encode, Input, Operation, Validate};
use letterhead::codec::Codec;
use letterhead::encoding::Encoding;
use letterhead::field::FieldValue;
use letterhead::format::Format;
use letterhead::header::{Header, RequestedKey};
use letterhead::log::{OnError, OnLoss};
use letterhead::op::batch::write;
use letterhead::op::edit::{Change, Edit, Entry, NewValue};
use letterhead::op::mask::Mask;
use letterhead::op::write::EncodeMessage;
use letterhead::options::{ReadOptions, WriteOptions};
use letterhead::type_option::TypeOption;
use letterhead::value::ByteOrder;
use letterhead::varint;

use batches::{BATCHES, ROWS, apply, batch, check_amounts, select_three};

/// Records of a batch.
const RECORDS: usize = 160;
/// The condition `amount < MOST` selects so many rows of the regular batch.
const MOST: usize = ROWS / 20;

/// What the jobs are done on.
struct Columns {
    serialized_rows: ArrayRef,
    lists: ArrayRef,
    iggy: ArrayRef,
    iggy_lists: ArrayRef,
    kip82: ArrayRef,
    streams: ArrayRef,
    record_batches: ArrayRef,
}

/// What the target cannot carry is left out.
fn convert(target: Format, types: TypeOption) -> Convert {
    let write = WriteOptions { types, on_loss: OnLoss::Drop, ..Default::default() };
    Convert { target, read: Default::default(), write, on_error: Default::default() }
}

fn apply_to(operation: &impl Operation, format: Format, column: &ArrayRef) -> ArrayRef {
    format.visit(Apply(operation, Input::new(column))).unwrap().column
}

/// Decodes the rows in which `amount` is small.
fn decode_where() -> Filtered<Decode> {
    let selections = vec![select_three().selections.swap_remove(0)];
    let test = Test::Compare(Comparison::Lt, Literal::Int(MOST as i128));
    let steps = vec![Step::Test(Operand::Header(0), Quantifier::Any, test)];
    let filter = Arc::new(Filter { selections, fields: vec![], steps });
    Filtered { operation: Decode::default(), filter, options: ReadOptions::default(), on_error: OnError::default() }
}

/// Drops, masks, renames and replaces a header each, and adds one.
fn edit() -> EditColumn {
    let constant = || NewValue::Constant(None, Some(b"new value".to_vec()));
    let entry = |key: &str, renamed: Option<&str>, change| Entry {
        key: RequestedKey::Text(key.into()),
        renamed: renamed.map(|key| RequestedKey::Text(key.into())),
        change,
    };
    let entries = vec![
        entry("traceparent", None, Change::Replace(NewValue::Masked(Mask::LastFour))),
        entry("schema-id", None, Change::Drop),
        entry("tenant", None, Change::Replace(constant())),
        entry("amount", Some("total"), Change::Keep),
        entry("region", None, Change::Set(constant())),
    ];
    let edit = Arc::new(Edit { entries, ..Edit::default() });
    EditColumn { edit, options: ReadOptions::default(), on_error: OnError::default(), seen: None }
}

/// Offset and three headers of each message.
fn select_messages() -> Messages {
    let columns = Some(vec!["offset".into()]);
    Messages { columns, selections: select_three().selections, ..Default::default() }
}

/// The headers in messages of streams, each with a payload.
fn streams(serialized_rows: &ArrayRef) -> ArrayRef {
    let rows = serialized_rows.as_binary::<i32>();
    let message = |headers: &[u8]| {
        let mut bytes = Vec::new();
        varint::write_count(headers.len(), &mut bytes);
        [&bytes, headers, b"payload"].concat()
    };
    let messages: Vec<_> = rows.iter().map(|row| message(row.expect("a row"))).collect();
    Arc::new(BinaryArray::from_vec(messages.iter().map(Vec::as_slice).collect()))
}

/// The message of a row of headers.
fn message(row: &ArrayRef) -> EncodeMessage<'_> {
    let (keys, values) = (row.as_struct().column(0).as_string::<i32>(), row.as_struct().column(1).as_binary::<i32>());
    let headers = keys.iter().zip(values).enumerate().map(|(index, (key, value))| Header {
        index,
        key: key.expect("a key").into(),
        value_type: None,
        value,
        value_offset: None,
    });
    let mut fields = vec![FieldValue::Null; 10];
    fields[4] = FieldValue::Binary(b"value");
    EncodeMessage { headers: Some(headers.collect()), fields, options: Default::default() }
}

/// Record batches of these rows.
fn record_batches(lists: &ArrayRef) -> ArrayRef {
    let rows: Vec<_> = lists.as_list::<i32>().iter().map(|row| row.expect("a row")).collect();
    let batch =
        |rows: &[ArrayRef]| write(Format::RecordBatch, rows.iter().map(message).collect(), Codec::None).unwrap();
    let batches: Vec<_> = rows.chunks(RECORDS).map(batch).collect();
    Arc::new(BinaryArray::from_vec(batches.iter().map(Vec::as_slice).collect()))
}

/// The jobs by their names.
fn run(job: &str, columns: &Columns) -> ArrayRef {
    let Columns { serialized_rows, lists, iggy, iggy_lists, kip82, streams, record_batches } = columns;
    match job {
        "decode where" => apply(&decode_where(), serialized_rows),
        "decode kip82-typed" => apply_to(&Decode::default(), Format::Kip82Typed, kip82),
        "decode streams" => apply_to(&Decode::default(), Format::Streams, streams),
        "messages of record-batch" => apply_to(&Messages::default(), Format::RecordBatch, record_batches),
        "select from record-batch" => apply_to(&select_messages(), Format::RecordBatch, record_batches),
        "convert to kip82-typed" => apply(&convert(Format::Kip82Typed, TypeOption::Binary), serialized_rows),
        "convert to iggy" => apply(&convert(Format::Iggy, TypeOption::Binary), serialized_rows),
        "convert from iggy" => {
            let as_bits = TypeOption::Untyped(Encoding::Bytes(ByteOrder::Big));
            apply_to(&convert(Format::Kafka, as_bits), Format::Iggy, iggy)
        }
        "edit" => apply(&edit(), serialized_rows),
        "edit streams" => apply_to(&edit(), Format::Streams, streams),
        "decode iggy" => apply_to(&Decode::default(), Format::Iggy, iggy),
        "encode iggy" => apply_to(&Encode::default(), Format::Iggy, iggy_lists),
        "decode" => apply(&Decode::default(), serialized_rows),
        "encode" => apply(&Encode::default(), lists),
        "select" => apply(&select_three(), serialized_rows),
        "select from lists" => apply(&select_three(), lists),
        "validate" => apply(&Validate::default(), serialized_rows),
        other => panic!("no job {other}"),
    }
}

fn main() {
    let arguments: Vec<String> = env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let [job, name, times] = &arguments[..] else {
        // Cargo runs it with the other benchmarks, which have nothing to do with it.
        return;
    };
    assert!(BATCHES.contains(&name.as_str()), "no batch {name}");
    let batch = batch(name);
    let lists = apply(&Decode::default(), &batch.serialized_rows);
    assert_eq!(&apply(&Encode::default(), &lists), &batch.serialized_rows);
    if name == "regular" {
        check_amounts(&apply(&select_three(), &batch.serialized_rows), &batch);
    }
    let iggy = apply(&convert(Format::Iggy, TypeOption::Binary), &batch.serialized_rows);
    let iggy_lists = apply_to(&Decode::default(), Format::Iggy, &iggy);
    let kip82 = apply(&convert(Format::Kip82Typed, TypeOption::Binary), &batch.serialized_rows);
    let streams = streams(&batch.serialized_rows);
    let record_batches = record_batches(&lists);
    let columns =
        Columns { serialized_rows: batch.serialized_rows, lists, iggy, iggy_lists, kip82, streams, record_batches };
    assert_eq!(run("decode where", &columns).len(), if name == "regular" { MOST } else { 0 });
    assert_eq!(run("messages of record-batch", &columns).len(), ROWS);
    let headers = run("decode streams", &columns).as_struct().column_by_name("headers").expect("headers").clone();
    assert_eq!(&headers, &columns.lists);
    for _ in 0..times.parse().expect("a number of times") {
        black_box(run(job, black_box(&columns)));
    }
    println!("{}", batch.headers);
}
