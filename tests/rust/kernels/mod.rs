//! Columns read and written by kernels: nulls, slices, layouts, error policies, limits of offsets.

mod messages;
mod refusals;
mod typed;

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BinaryViewArray, Int64Array, LargeBinaryArray, StringArray, StructArray,
};
use letterhead::arrow::select::{Repeat, Selection};
use letterhead::arrow::{Apply, Decode, Encode, Input, Operation, Select, Validate};
use letterhead::encoding::Encoding;
use letterhead::error::{Code, Error};
use letterhead::format::Format;
use letterhead::header::RequestedKey;
use letterhead::log::{OnError, OnLoss};
use letterhead::options::WriteOptions;
use letterhead::type_option::TypeOption;
use letterhead::types::Type;

/// Headers of a row: `n = int32(row)`, and `row` headers `route`.
fn block(row: usize) -> Vec<u8> {
    let mut out = vec![(1 + row as u8) * 2, 2, b'n', 8];
    out.extend((row as i32).to_be_bytes());
    for _ in 0..row {
        out.extend(b"\x0aroute\x02x");
    }
    out
}

const BAD: &[u8] = b"\x02\x02n\x04ab";

fn serialized_rows() -> BinaryArray {
    let blocks: Vec<_> = (0..4).map(block).collect();
    BinaryArray::from_opt_vec(vec![
        Some(&blocks[0]),
        None,
        Some(&blocks[1]),
        Some(BAD),
        Some(b""),
        Some(&blocks[2]),
        Some(b"\x02\x01\x00\x00"),
    ])
}

fn apply<V: Operation>(operation: &V, column: &dyn Array) -> Result<ArrayRef, Error> {
    Format::Kafka.visit(Apply(operation, Input::new(column))).map(|output| output.column)
}

fn selections() -> Vec<Selection> {
    let selection = |output: &str, of: &str, repeat| {
        Selection::new(output, RequestedKey::Text(output.into()), Type::parse(of).unwrap(), repeat)
    };
    vec![selection("n", "int32", Repeat::Last), selection("route", "string", Repeat::All)]
}

fn located(error: Error) -> (Code, Option<usize>) {
    match error {
        Error::Headers(_, located) => (located.error.code, located.row),
        other => panic!("{other}"),
    }
}

#[test]
fn every_layout_of_bytes_gives_the_same() {
    let small = serialized_rows();
    let large: LargeBinaryArray = small.iter().collect();
    let view: BinaryViewArray = small.iter().collect();
    let operation = Decode { on_error: OnError::Column, ..Decode::default() };
    let expected = apply(&operation, &small).unwrap();
    assert_eq!(&expected, &apply(&operation, &large).unwrap());
    assert_eq!(&expected, &apply(&operation, &view).unwrap());
}

#[test]
fn slice_returns_rows_of_whole_column() {
    let operation = Decode { on_error: OnError::Null, ..Decode::default() };
    let whole = apply(&operation, &serialized_rows()).unwrap();
    for start in 0..serialized_rows().len() {
        let part = apply(&operation, &serialized_rows().slice(start, serialized_rows().len() - start)).unwrap();
        assert_eq!(part.to_data(), whole.slice(start, part.len()).to_data(), "{start}");
    }
}

#[test]
fn the_first_bad_row_is_raised() {
    assert_eq!(located(apply(&Decode::default(), &serialized_rows()).unwrap_err()), (Code::NegativeLength, Some(6)));
    let select = Select { selections: selections(), ..Select::default() };
    assert_eq!(located(apply(&select, &serialized_rows()).unwrap_err()), (Code::WrongSize, Some(3)));
}

#[test]
fn non_utf8_key_is_reported_before_later_errors() {
    // Keys that are not ASCII are validated only after later rows were read.
    let mut blocks: Vec<Vec<u8>> = (0..400).map(|row| block(row % 8)).collect();
    blocks[3] = vec![2, 4, 0xc3, 0x28, 1];
    blocks[5] = vec![2, 4, 0xc3, 0xa9, 1];
    blocks[9] = vec![2];
    let serialized_rows = BinaryArray::from_vec(blocks.iter().map(Vec::as_slice).collect());
    assert_eq!(located(apply(&Decode::default(), &serialized_rows).unwrap_err()), (Code::KeyNotUtf8, Some(3)));
    let options = Decode { on_error: OnError::Null, ..Decode::default() };
    let made = apply(&options, &serialized_rows).unwrap();
    let null: Vec<usize> = (0..made.len()).filter(|row| made.is_null(*row)).collect();
    assert_eq!(null, [3, 9]);
    let errors = apply(&Validate::default(), &serialized_rows).unwrap();
    let whole: Vec<usize> = (0..errors.len()).filter(|row| errors.is_valid(*row)).collect();
    assert_eq!(whole, [3, 9]);
}

#[test]
fn select_gives_typed_columns_and_lists() {
    let select = Select { selections: selections(), on_error: OnError::Null, ..Select::default() };
    let made = apply(&select, &serialized_rows()).unwrap();
    let numbers: Vec<_> = made.as_struct().column(0).as_primitive::<Int32Type>().iter().collect();
    assert_eq!(numbers, [Some(0), None, Some(1), None, None, Some(2), None]);
    let routes = made.as_struct().column(1).as_list::<i32>();
    let lens: Vec<_> = (0..routes.len()).map(|row| routes.is_valid(row).then(|| routes.value_length(row))).collect();
    assert_eq!(lens, [Some(0), None, Some(1), Some(0), Some(0), Some(2), None]);
}

#[test]
fn select_from_lists_equals_select_from_bytes() {
    let good = BinaryArray::from_vec(vec![b"".as_slice(), BAD, b""]);
    let lists = apply(&Decode::default(), &good).unwrap();
    let select = Select { selections: selections(), on_error: OnError::Column, ..Select::default() };
    let (from_bytes, from_lists) = (apply(&select, &good).unwrap(), apply(&select, &lists).unwrap());
    assert_eq!(from_bytes.as_struct().column(0), from_lists.as_struct().column(0));
    assert_eq!(from_bytes.as_struct().column(1), from_lists.as_struct().column(1));
    let byte = |made: &ArrayRef| {
        let errors = made.as_struct().column(2).as_list::<i32>().value(1);
        let bytes = errors.as_struct().column(2).as_primitive::<Int64Type>();
        bytes.is_valid(0).then(|| bytes.value(0))
    };
    // A list has no byte positions.
    assert_eq!((byte(&from_bytes), byte(&from_lists)), (Some(4), None));
}

#[test]
fn validate_is_null_for_valid_row() {
    let errors = apply(&Validate::default(), &serialized_rows()).unwrap();
    let bad: Vec<_> = (0..errors.len()).filter(|row| errors.is_valid(*row)).collect();
    assert_eq!(bad, [6]);
}

#[test]
fn a_wrong_type_names_both() {
    let text = StringArray::from(vec!["a"]);
    let error = apply(&Decode::default(), &text).unwrap_err().to_string();
    assert_eq!(error, "the column is string, and kafka is read from binary, large_binary or binary_view");
    let error = apply(&Encode::default(), &text).unwrap_err().to_string();
    assert_eq!(error, "the column is string, and what fits is list<element: struct<key: string, value: binary>>");
}

#[test]
fn column_is_split_before_offset_overflow() {
    let blocks: Vec<_> = (0..40).map(|row| block(row % 5)).collect();
    let serialized_rows = BinaryArray::from_vec(blocks.iter().map(Vec::as_slice).collect());
    let (mut from, mut parts) = (0, Vec::new());
    while from < serialized_rows.len() {
        let input = Input::new(&serialized_rows).from_row(from).with_max_offset(64);
        let output = Format::Kafka.visit(Apply(&Decode::default(), input)).unwrap();
        assert!(output.until > from);
        assert_eq!(output.column.len(), output.until - from);
        parts.push(output.column);
        from = output.until;
    }
    assert!(parts.len() > 5);
    let whole = apply(&Decode::default(), &serialized_rows).unwrap();
    let mut row = 0;
    for part in parts {
        assert_eq!(part.to_data(), whole.slice(row, part.len()).to_data());
        row += part.len();
    }
}

#[test]
fn single_row_over_largest_offset_is_error() {
    let serialized_rows = BinaryArray::from_vec(vec![b"", &block(60)]);
    let input = Input::new(&serialized_rows).from_row(1).with_max_offset(64);
    let error = Format::Kafka.visit(Apply(&Decode::default(), input)).err().unwrap();
    assert_eq!(located(error), (Code::TooLarge, Some(1)));
}

fn messages_with(payloads: Vec<Option<&[u8]>>) -> StructArray {
    let blocks: Vec<_> = (0..payloads.len()).map(block).collect();
    let headers =
        apply(&Decode::default(), &BinaryArray::from_vec(blocks.iter().map(Vec::as_slice).collect())).unwrap();
    let field =
        |name: &str, array: &ArrayRef| Arc::new(arrow_schema::Field::new(name, array.data_type().clone(), true));
    let timestamps: ArrayRef = Arc::new(Int64Array::from_iter_values((0..payloads.len()).map(|row| row as i64)));
    let payloads: ArrayRef = Arc::new(BinaryArray::from_opt_vec(payloads));
    // The columns are in another order than in the table, because fields are found by name.
    StructArray::from(vec![
        (field("payload", &payloads), payloads),
        (field("timestamp", &timestamps), timestamps),
        (field("headers", &headers), headers),
    ])
}

fn write(column: &dyn Array, on_loss: OnLoss) -> Result<ArrayRef, Error> {
    let operation = Encode { options: WriteOptions { on_loss, ..WriteOptions::default() }, ..Encode::default() };
    Format::StreamsTimestamped.visit(Apply(&operation, Input::new(column))).map(|output| output.column)
}

#[test]
fn messages_are_written_from_structs_and_read_back() {
    let structs = messages_with(vec![Some(b"a"), Some(b""), Some(b"ccc")]);
    let serialized_rows = write(&structs, OnLoss::Raise).unwrap();
    let read =
        Format::StreamsTimestamped.visit(Apply(&Decode::default(), Input::new(&serialized_rows))).unwrap().column;
    for name in ["headers", "timestamp", "payload"] {
        assert_eq!(read.as_struct().column_by_name(name), structs.column_by_name(name), "{name}");
    }
}

#[test]
fn a_null_payload_is_a_null_value_and_its_headers_are_a_loss() {
    let structs = messages_with(vec![Some(b"a"), None]);
    assert_eq!(located(write(&structs, OnLoss::Raise).unwrap_err()), (Code::NullNotCarried, Some(1)));
    let dropped = write(&structs, OnLoss::Drop).unwrap();
    assert!(dropped.is_valid(0) && dropped.is_null(1));
    let reported = write(&structs, OnLoss::Report).unwrap();
    let (data, losses) = (reported.as_struct().column(0), reported.as_struct().column(1));
    assert_eq!(data, &dropped);
    assert!(losses.is_null(0) && losses.is_valid(1));
}

#[test]
fn typed_value_needs_encoding_in_untyped_format() {
    let key: ArrayRef = Arc::new(StringArray::from(vec!["retry"]));
    let value_type: ArrayRef = Arc::new(StringArray::from(vec!["int16"]));
    let value: ArrayRef = Arc::new(BinaryArray::from_vec(vec![&[1, 2]]));
    let field =
        |name: &str, array: &ArrayRef| Arc::new(arrow_schema::Field::new(name, array.data_type().clone(), true));
    let headers = StructArray::from(vec![
        (field("key", &key), key),
        (field("type", &value_type), value_type),
        (field("value", &value), value),
    ]);
    let element = Arc::new(arrow_schema::Field::new("element", headers.data_type().clone(), true));
    let lists =
        arrow_array::ListArray::new(element, arrow_buffer::OffsetBuffer::from_lengths([1]), Arc::new(headers), None);
    let encode = |types, on_loss| {
        apply(
            &Encode { options: WriteOptions { types, on_loss, ..WriteOptions::default() }, ..Encode::default() },
            &lists,
        )
    };
    assert_eq!(located(encode(TypeOption::Unset, OnLoss::Raise).unwrap_err()), (Code::TypeNotCarried, Some(0)));
    let bytes = |made: ArrayRef| made.as_binary::<i32>().value(0).to_vec();
    assert_eq!(bytes(encode(TypeOption::Untyped(Encoding::Text), OnLoss::Raise).unwrap()), b"\x02\x0aretry\x06258");
    let little = Encoding::Bytes(letterhead::value::ByteOrder::Little);
    assert_eq!(bytes(encode(TypeOption::Untyped(little), OnLoss::Raise).unwrap()), b"\x02\x0aretry\x04\x02\x01");
    assert_eq!(bytes(encode(TypeOption::Unset, OnLoss::Drop).unwrap()), b"");
}
