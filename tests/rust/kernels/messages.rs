//! The operation that expands batches to rows of messages.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, BinaryArray};
use letterhead::arrow::filter::{Comparison, Filter, Literal, Operand, Quantifier, Step, Test};
use letterhead::arrow::messages::Messages;
use letterhead::arrow::select::{Repeat, Selection};
use letterhead::arrow::{Apply, Input, Validate};
use letterhead::error::{Code, Error};
use letterhead::format::Format::Kip82MessageInt as One;
use letterhead::format::Format::Kip82MessagesInt as Sets;
use letterhead::header::RequestedKey;
use letterhead::limits::Limits;
use letterhead::log::OnError;
use letterhead::options::{ReadOptions, WriteOptions};
use letterhead::types::Type;

use crate::columns::{apply, apply_to, faults_at, heads_at};
use crate::common::{Head, Held, HeldKey, Message, write};

/// A message with this offset, and with the header 7 whose value is the same number.
fn message(offset: i32) -> Vec<u8> {
    let head = Head { key: HeldKey::Int(7), value_type: None, value: Some(offset.to_be_bytes().to_vec()) };
    let mut fields = vec![Held::Null; 8];
    (fields[0], fields[6]) = (Held::Number(offset.into()), Held::Bytes(b"value".to_vec()));
    write(One, &Message { headers: Some(vec![head]), fields }, WriteOptions::default()).unwrap().unwrap()
}

/// Offsets in a message: the length of its header's value, and the magic.
const VALUE_LENGTH: usize = 38;
const MAGIC: usize = 16;

/// A message with an unreadable header.
fn broken_header(offset: i32) -> Vec<u8> {
    with(message(offset), VALUE_LENGTH, 0x80)
}

fn unknown_magic(offset: i32) -> Vec<u8> {
    with(message(offset), MAGIC, 9)
}

fn with(mut serialized: Vec<u8>, at: usize, byte: u8) -> Vec<u8> {
    serialized[at] = byte;
    serialized
}

fn serialized_rows() -> Vec<Vec<u8>> {
    vec![[message(0), message(1)].concat(), vec![], message(2), [message(3), message(4), message(5)].concat()]
}

fn column<'a>(made: &'a ArrayRef, name: &str) -> &'a ArrayRef {
    made.as_struct().column_by_name(name).unwrap_or_else(|| panic!("no column {name}"))
}

fn numbers(made: &ArrayRef, name: &str) -> Vec<Option<i64>> {
    column(made, name).as_primitive::<Int64Type>().iter().collect()
}

fn some(numbers: impl IntoIterator<Item = i64>) -> Vec<Option<i64>> {
    numbers.into_iter().map(Some).collect()
}

fn selection(repeat: Repeat) -> Selection {
    let of = Type::parse("int32").unwrap();
    Selection::new("seven", RequestedKey::Int(7), of, repeat)
}

#[test]
fn a_row_is_a_message_with_the_row_of_its_batch() {
    let made = apply(Sets, &Messages::default(), &serialized_rows()).unwrap();
    assert_eq!(numbers(&made, "row"), some([0, 0, 2, 3, 3, 3]));
    assert_eq!(numbers(&made, "offset"), some(0..6));
    assert_eq!(heads_at(column(&made, "headers"), 4).unwrap()[0].value, Some(vec![0, 0, 0, 4]));
}

#[test]
fn null_value_has_no_messages_and_stream_rows_are_counted() {
    let serialized_rows = serialized_rows();
    let column = BinaryArray::from_opt_vec(vec![None, Some(&serialized_rows[0]), None, Some(&serialized_rows[2])]);
    let made = apply_to(Sets, &Messages::default(), &column).unwrap();
    assert_eq!(numbers(&made, "row"), some([1, 1, 3]));
    let input = Input::new(&column).after(100);
    let made = Sets.visit(Apply(&Messages::default(), input)).unwrap().column;
    assert_eq!(numbers(&made, "row"), some([101, 101, 103]));
}

#[test]
fn columns_are_the_requested_ones_in_their_order() {
    let operation = Messages { columns: Some(vec!["value".into(), "row".into()]), ..Messages::default() };
    let made = apply(Sets, &operation, &serialized_rows()).unwrap();
    assert_eq!(made.as_struct().column_names(), ["value", "row"]);
    let none = Messages { columns: Some(vec![]), ..Messages::default() };
    assert_eq!(apply(Sets, &none, &serialized_rows()).unwrap().len(), 6);
    let wrong = Messages { columns: Some(vec!["vaule".into()]), ..Messages::default() };
    let error = Sets.visit(Apply(&wrong, Input::new(&BinaryArray::from_vec(vec![])))).err().unwrap();
    assert!(matches!(&error, Error::Value(text) if text.contains("did you mean 'value'?")), "{error}");
}

#[test]
fn requested_headers_are_columns_after_the_fields() {
    let operation = Messages {
        columns: Some(vec!["offset".into()]),
        selections: vec![selection(Repeat::Last)],
        ..Messages::default()
    };
    let made = apply(Sets, &operation, &serialized_rows()).unwrap();
    assert_eq!(made.as_struct().column_names(), ["offset", "seven"]);
    let seven: Vec<_> = column(&made, "seven").as_primitive::<Int32Type>().iter().flatten().collect();
    assert_eq!(seven, [0, 1, 2, 3, 4, 5]);
    let all = Messages { selections: vec![selection(Repeat::All)], ..Messages::default() };
    let made = apply(Sets, &all, &serialized_rows()).unwrap();
    assert!((0..6).all(|row| column(&made, "seven").as_list::<i32>().value_length(row) == 1));
}

fn damaged() -> Vec<Vec<u8>> {
    let cut = [message(6), message(7)].concat();
    let cut = cut[..cut.len() - 1].to_vec();
    vec![message(0), [message(1), broken_header(2), unknown_magic(3), message(4)].concat(), cut, message(8)]
}

#[test]
fn the_first_error_is_raised_with_its_row() {
    let (row, error) = apply(Sets, &Messages::default(), &damaged()).unwrap_err();
    let at = message(1).len();
    assert_eq!((row, error.code, error.byte, error.header), (1, Code::BadCrc, Some(at + 12), None));
    assert!(error.message.starts_with("message 1: "), "{}", error.message);
}

#[test]
fn bad_messages_are_null_rows_among_whole_ones() {
    let operation =
        Messages { on_error: OnError::Null, selections: vec![selection(Repeat::Last)], ..Messages::default() };
    let made = apply(Sets, &operation, &damaged()).unwrap();
    assert_eq!(numbers(&made, "row"), some([0, 1, 1, 1, 1, 2, 2, 3]));
    let offsets = [Some(0), Some(1), None, None, Some(4), Some(6), None, Some(8)];
    assert_eq!(numbers(&made, "offset"), offsets);
    let headers = column(&made, "headers");
    let nulls: Vec<_> = (0..8).filter(|row| headers.is_null(*row)).collect();
    assert_eq!(nulls, [2, 3, 6]);
    let seven: Vec<_> = column(&made, "seven").as_primitive::<Int32Type>().iter().collect();
    assert_eq!(seven, [Some(0), Some(1), None, None, Some(4), Some(6), None, Some(8)]);
}

#[test]
fn errors_are_returned_beside_readable_values() {
    let operation = Messages { on_error: OnError::Column, ..Messages::default() };
    let made = apply(Sets, &operation, &damaged()).unwrap();
    assert_eq!(numbers(&made, "row"), some([0, 1, 1, 1, 1, 2, 2, 3]));
    // The frame around a broken header is readable.
    let offsets = [Some(0), Some(1), Some(2), None, Some(4), Some(6), None, Some(8)];
    assert_eq!(numbers(&made, "offset"), offsets);
    let errors =
        |row| -> Vec<String> { faults_at(column(&made, "error"), row).into_iter().map(|(code, ..)| code).collect() };
    assert_eq!(errors(2), ["bad_crc", "negative_length"]);
    assert_eq!(errors(3), ["bad_magic"]);
    assert_eq!(errors(6), ["truncated"]);
    assert!([0, 1, 4, 5, 7].into_iter().all(|row| column(&made, "error").is_null(row)));
    let validated = apply(Sets, &Validate::default(), &damaged()).unwrap();
    let counts: Vec<_> = (0..4).map(|row| faults_at(&validated, row).len()).collect();
    assert_eq!(counts, [0, 3, 1, 0]);
}

#[test]
fn a_slice_gives_the_messages_of_its_rows() {
    let serialized_rows = serialized_rows();
    let column = BinaryArray::from_vec(serialized_rows.iter().map(Vec::as_slice).collect());
    let made = apply_to(Sets, &Messages::default(), &column.slice(2, 2)).unwrap();
    assert_eq!((numbers(&made, "row"), numbers(&made, "offset")), (some([0, 1, 1, 1]), some(2..6)));
}

#[test]
fn value_with_too_many_messages_moves_to_next_chunk() {
    let serialized_rows: Vec<_> =
        (0..20).map(|serialized| (0..3).flat_map(|n| message(serialized * 3 + n)).collect::<Vec<_>>()).collect();
    let column = BinaryArray::from_vec(serialized_rows.iter().map(Vec::as_slice).collect());
    let whole = apply_to(Sets, &Messages::default(), &column).unwrap();
    let (mut from, mut offsets, mut chunks) = (0, vec![], 0);
    while from < column.len() {
        let input = Input::new(&column).from_row(from).with_max_offset(50);
        let output = Sets.visit(Apply(&Messages::default(), input)).unwrap();
        assert_eq!(output.column.len() % 3, 0);
        assert!(output.until > from);
        offsets.extend(numbers(&output.column, "offset"));
        (from, chunks) = (output.until, chunks + 1);
    }
    assert!(chunks > 3, "{chunks}");
    assert_eq!(offsets, numbers(&whole, "offset"));
}

#[test]
fn single_value_over_largest_offset_is_error() {
    let serialized = (0..5).flat_map(message).collect::<Vec<_>>();
    let column = BinaryArray::from_vec(vec![b"", &serialized]);
    let input = Input::new(&column).from_row(1).with_max_offset(20);
    match Sets.visit(Apply(&Messages::default(), input)).err() {
        Some(Error::Headers(_, located)) => assert_eq!((located.error.code, located.row), (Code::TooLarge, Some(1))),
        other => panic!("{other:?}"),
    }
}

/// Batches for several threads. From row `damaged_from` on, every seventh batch has errors.
fn many(damaged_from: usize) -> Vec<Vec<u8>> {
    let batch = |row: usize| -> Vec<u8> {
        let messages = (0..8).map(|n| message((row * 8 + n) as i32)).collect::<Vec<_>>().concat();
        let is_damaged = row >= damaged_from && row.is_multiple_of(7);
        if is_damaged { [messages, broken_header(1), unknown_magic(2)].concat() } else { messages }
    };
    (0..1500).map(batch).collect()
}

/// Output chunks up to the end or an error, read with this number of threads.
fn chunks(column: &BinaryArray, operation: &Messages, threads: usize, cut: usize) -> (Vec<ArrayRef>, Option<Error>) {
    let (mut from, mut chunks) = (0, vec![]);
    while from < column.len() {
        let input = Input::new(column).from_row(from).after(10).with_max_offset(cut).with_threads(threads);
        match Sets.visit(Apply(operation, input)) {
            Ok(output) => {
                chunks.push(output.column);
                from = output.until;
            }
            Err(error) => return (chunks, Some(error)),
        }
    }
    (chunks, None)
}

#[test]
fn threads_change_neither_messages_nor_chunks_nor_errors() {
    let limits = Limits { reports: 100, ..Limits::DEFAULT };
    let options = [ReadOptions::default(), ReadOptions { limits, ..ReadOptions::default() }];
    let test = Test::Compare(Comparison::Lt, Literal::Int(6000));
    let steps = vec![Step::Test(Operand::Header(0), Quantifier::Any, test)];
    let filter = Arc::new(Filter { selections: vec![selection(Repeat::Last)], fields: vec![], steps });
    for (damaged_from, cut) in [(usize::MAX, usize::MAX), (usize::MAX, 20_000), (1000, usize::MAX), (0, 20_000)] {
        let batches = many(damaged_from);
        let column = BinaryArray::from_vec(batches.iter().map(Vec::as_slice).collect());
        for on_error in [OnError::Raise, OnError::Null, OnError::Column] {
            for (options, filter) in options.iter().flat_map(|options| [(options, None), (options, Some(&filter))]) {
                let (options, filter) = (*options, filter.cloned());
                let selections = vec![selection(Repeat::Last)];
                let operation = Messages { selections, options, on_error, filter, ..Messages::default() };
                let (one, two) = (chunks(&column, &operation, 1, cut), chunks(&column, &operation, 2, cut));
                assert_eq!(one.1, two.1, "{damaged_from} {cut} {on_error:?}");
                assert_eq!(one.0, two.0, "{damaged_from} {cut} {on_error:?}");
                let is_cut = cut < usize::MAX && operation.filter.is_none() && on_error != OnError::Raise;
                assert!(!is_cut || one.0.len() > 2);
            }
        }
    }
}
