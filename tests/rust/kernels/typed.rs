//! Columns of formats whose keys or values have types.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, BinaryArray, ListArray, StringArray, StructArray};
use arrow_buffer::OffsetBuffer;
use arrow_schema::Field;
use letterhead::arrow::select::{Repeat, Selection};
use letterhead::arrow::{Apply, Decode, Encode, Input, Operation, Select};
use letterhead::error::{Code, Error};
use letterhead::format::Format::{self, Iggy, Iggy2023, Kafka, Kip82Int, Kip82Typed};
use letterhead::header::RequestedKey;
use letterhead::internals::type_name;
use letterhead::log::OnError;
use letterhead::options::WriteOptions;
use letterhead::type_option::{EncodedType, Occurrences, TypeOption};
use letterhead::types::Type;
use letterhead::value_type::{Scalar, ValueType};

use crate::columns::{apply, apply_to, faults_at, heads_at};
use crate::common::{Head, HeldKey, Message, STRICT, STRICT_KINDS, write};

fn head(key: HeldKey, value_type: Scalar, bits: &[u8]) -> Head {
    Head { key, value_type: Some(ValueType::Named(value_type)), value: Some(bits.to_vec()) }
}

fn serialized(format: Format, heads: &[Head]) -> Vec<u8> {
    write(format, &Message::block(heads.to_vec()), WriteOptions::default()).expect("whole").expect("a value")
}

/// An `int32` with a text key, and a string with a number as its key.
fn two() -> [Head; 2] {
    [head("n".into(), Scalar::Int32, &[0, 0, 1, 2]), head(HeldKey::Int(7), Scalar::String, b"seven")]
}

#[test]
fn every_format_has_type_from_its_table() {
    let headers = |key: &str, value_type: &str| format!("list<element: struct<{key}{value_type}value: binary>>");
    let (text, int) = ("key: string, ", "key: int32, ");
    let (typed, value_type) = ("key_type: string, key: binary, ", "type: string, ");
    let message = "offset: int64, crc: int64, magic: int8, attributes: int8, timestamp: int64, key: binary, ";
    let tail = "value: binary, tombstone: bool";
    let of = |format: Format| -> String {
        let block = match format.info().keys {
            letterhead::header::KeyForm::Text if format.info().types.is_typed() => headers(text, value_type),
            letterhead::header::KeyForm::Text => headers(text, ""),
            letterhead::header::KeyForm::Int => headers(int, ""),
            letterhead::header::KeyForm::Typed => headers(typed, value_type),
        };
        match format.info().name {
            "streams" => format!("struct<headers: {block}, payload: binary>"),
            "streams-timestamped" => format!("struct<headers: {block}, timestamp: int64, payload: binary>"),
            "kip82-wrapper" => format!("struct<headers: {block}, value: binary>"),
            name if name.starts_with("kip82-message") => format!("struct<{message}headers: {block}, {tail}>"),
            "iggy-message-2023" => format!("struct<id: binary, headers: {block}, payload: binary>"),
            "iggy-message" => format!(
                "struct<checksum: decimal128(20, 0), id: binary, offset: int64, timestamp: int64, \
                 origin_timestamp: int64, headers: {block}, payload: binary>"
            ),
            _ => block,
        }
    };
    for format in Format::ALL {
        match Decode::default().output_type(format.info()) {
            Ok(found) => assert_eq!(type_name(&found), of(*format)),
            Err(error) => {
                assert_eq!(error, Error::Value(format!("{} is a batch: read it with messages", format.info().name)))
            }
        }
    }
}

#[test]
fn typed_values_are_bits_whatever_their_order_on_the_wire() {
    for format in [Iggy, Iggy2023, Kip82Typed] {
        let serialized_rows = [serialized(format, &two()[..1])];
        let made = apply(format, &Decode::default(), &serialized_rows).unwrap();
        assert_eq!(heads_at(&made, 0), Some(two()[..1].to_vec()));
        let value = made.as_list::<i32>().value(0).as_struct().column_by_name("value").cloned().unwrap();
        assert_eq!(value.as_binary::<i32>().value(0), [0, 0, 1, 2]);
    }
}

#[test]
fn text_keys_are_given_as_text_and_others_refused() {
    let with_text_keys = letterhead::options::ReadOptions { text_keys: true, ..STRICT };
    let operation = Decode { options: with_text_keys, on_error: OnError::Column, views: false };
    let bad = head(HeldKey::Typed(ValueType::Named(Scalar::String), vec![0xff]), Scalar::String, b"v");
    let serialized_rows = [&two()[..1], &two(), &[bad]].map(|heads| serialized(Iggy, heads));
    let made = apply(Iggy, &operation, &serialized_rows).unwrap();
    let lists = made.as_struct().column(0);
    assert_eq!(type_name(lists.data_type()), "list<element: struct<key: string, type: string, value: binary>>");
    assert_eq!(heads_at(lists, 0), Some(two()[..1].to_vec()));
    let errors: Vec<_> = (1..3).map(|row| faults_at(made.as_struct().column(1), row)).collect();
    let said: Vec<_> = errors.iter().map(|errors| (errors[0].0.as_str(), errors[0].1.as_str(), errors[0].3)).collect();
    assert_eq!(
        said,
        [
            ("wrong_type", "the key is int32 and text keys were requested", Some(1)),
            ("key_not_utf8", "the key is not UTF-8", Some(0)),
        ]
    );
}

#[test]
fn strict_types_hold_for_columns() {
    let heads = [Head { key: "k".into(), value_type: Some(ValueType::Unnamed(200)), value: Some(vec![1]) }];
    let serialized_rows = [serialized(Iggy, &heads)];
    assert_eq!(heads_at(&apply(Iggy, &Decode::default(), &serialized_rows).unwrap(), 0), Some(heads.to_vec()));
    let strict = Decode { options: STRICT_KINDS, ..Decode::default() };
    assert_eq!(apply(Iggy, &strict, &serialized_rows).unwrap_err().1.code, Code::UnknownType);
}

fn selection(key: RequestedKey, of: &str) -> Selection {
    Selection::new("out", key, Type::parse(of).unwrap(), Repeat::Last)
}

#[test]
fn select_takes_types_that_the_input_fits_and_rejects_others() {
    for format in [Iggy, Iggy2023, Kip82Typed] {
        let serialized_rows = [serialized(format, &two()[..1])];
        let select =
            |of| Select { selections: vec![selection(RequestedKey::Text("n".into()), of)], ..Select::default() };
        // The requested encoding applies to formats without types.
        for of in ["int32", "int32:le", "int32:text"] {
            let made = apply(format, &select(of), &serialized_rows).unwrap();
            assert_eq!(made.as_struct().column(0).as_primitive::<Int32Type>().value(0), 258);
        }
        let wide = apply(format, &select("int64"), &serialized_rows).unwrap();
        assert_eq!(wide.as_struct().column(0).as_primitive::<Int64Type>().value(0), 258);
        let strict = Select { options: STRICT_KINDS, ..select("int64") };
        for (operation, requested) in [(strict, "int64"), (select("string"), "string")] {
            let (row, error) = apply(format, &operation, &serialized_rows).unwrap_err();
            assert_eq!((row, error.code, error.header), (0, Code::WrongType, Some(0)));
            assert_eq!(error.message, format!("the value is int32 and {requested} was requested"));
        }
    }
}

#[test]
fn select_finds_keys_of_every_form() {
    let typed =
        [head(HeldKey::Typed(ValueType::Named(Scalar::Uint8), vec![7]), Scalar::Int64, &[0, 0, 0, 0, 0, 0, 0, 5])];
    let wanted = RequestedKey::Typed(ValueType::Named(Scalar::Uint8), vec![7]);
    let made = apply(
        Iggy,
        &Select { selections: vec![selection(wanted, "int64")], ..Select::default() },
        &[serialized(Iggy, &typed)],
    );
    assert_eq!(made.unwrap().as_struct().column(0).as_primitive::<Int64Type>().value(0), 5);
    let int = [Head { key: HeldKey::Int(7), value_type: None, value: Some(vec![0, 0, 0, 9]) }];
    let operation = Select { selections: vec![selection(RequestedKey::Int(7), "int32")], ..Select::default() };
    let made = apply(Kip82Int, &operation, &[serialized(Kip82Int, &int)]).unwrap();
    assert_eq!(made.as_struct().column(0).as_primitive::<Int32Type>().value(0), 9);
}

#[test]
fn select_refuses_a_key_that_no_header_could_have() {
    let refused = |format: Format, key: RequestedKey| {
        let operation = Select { selections: vec![selection(key, "binary")], ..Select::default() };
        match format.visit(Apply(&operation, Input::new(&BinaryArray::from_vec(vec![])))).err() {
            Some(Error::Value(text)) => text,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(refused(Kafka, RequestedKey::Int(7)), "key 7: kafka has text keys");
    assert_eq!(refused(Kip82Int, RequestedKey::Text("n".into())), "key n: kip82-int has integer keys");
    let typed = RequestedKey::Typed(ValueType::Named(Scalar::Binary), vec![0xff]);
    assert_eq!(refused(Iggy2023, typed), "key binary:ff: iggy-2023 has text keys");
    assert_eq!(refused(Iggy, RequestedKey::Int(7)), "key 7: iggy has typed keys: give lh.Int32(3)");
}

/// Lists of one header each, from columns of keys, types and values.
fn lists(keys: ArrayRef, types: Option<Vec<Option<&str>>>, values: Vec<Option<&[u8]>>) -> ListArray {
    let field = |name: &str, array: &ArrayRef| Arc::new(Field::new(name, array.data_type().clone(), true));
    let count = keys.len();
    let values: ArrayRef = Arc::new(BinaryArray::from_opt_vec(values));
    let mut columns = vec![(field("key", &keys), keys)];
    if let Some(types) = types {
        let types: ArrayRef = Arc::new(StringArray::from(types));
        columns.push((field("type", &types), types));
    }
    columns.push((field("value", &values), values));
    let headers = StructArray::from(columns);
    let element = Arc::new(Field::new("element", headers.data_type().clone(), true));
    ListArray::new(element, OffsetBuffer::from_lengths(vec![1; count]), Arc::new(headers), None)
}

fn texts(keys: &[&str]) -> ArrayRef {
    Arc::new(StringArray::from(keys.to_vec()))
}

fn encode(format: Format, column: &ListArray, types: TypeOption) -> Result<Vec<Vec<u8>>, (usize, Code)> {
    let operation = Encode { options: WriteOptions { types, ..WriteOptions::default() }, ..Encode::default() };
    let made = apply_to(format, &operation, column).map_err(|(row, error)| (row, error.code))?;
    Ok(made.as_binary::<i32>().iter().map(|serialized| serialized.expect("a value").to_vec()).collect())
}

#[test]
fn text_keys_are_written_where_keys_are_typed() {
    let column = lists(texts(&["n"]), Some(vec![Some("int32")]), vec![Some(&[0, 0, 1, 2])]);
    assert_eq!(encode(Iggy, &column, TypeOption::Unset), Ok(vec![serialized(Iggy, &two()[..1])]));
}

#[test]
fn values_without_types_get_the_requested_ones() {
    let column = lists(texts(&["n", "n"]), None, vec![Some(&[0, 0, 1, 2]), Some(b"258")]);
    for format in [Iggy, Iggy2023, Kip82Typed] {
        assert_eq!(encode(format, &column, TypeOption::Unset), Err((0, Code::UnknownType)));
        let binary = |bytes: &[u8]| serialized(format, &[head("n".into(), Scalar::Binary, bytes)]);
        let written = vec![binary(&[0, 0, 1, 2]), binary(b"258")];
        assert_eq!(encode(format, &column, TypeOption::Binary), Ok(written));
        let each = |text: &str| {
            let times = Occurrences::All(EncodedType::parse(text).unwrap());
            TypeOption::ByKey([(RequestedKey::Text("n".into()), times)].into_iter().collect())
        };
        let int = serialized(format, &two()[..1]);
        assert_eq!(encode(format, &column.slice(0, 1), each("int32")), Ok(vec![int.clone()]));
        assert_eq!(encode(format, &column.slice(1, 1), each("int32:text")), Ok(vec![int]));
        assert_eq!(encode(format, &column, each("int32")), Err((1, Code::WrongSize)));
        assert_eq!(encode(format, &column, each("int32:text")), Err((0, Code::BadText)));
    }
}

#[test]
fn type_can_be_requested_for_each_occurrence_of_key() {
    let heads = [head("n".into(), Scalar::Int32, &[0, 0, 0, 1]), head("n".into(), Scalar::String, b"x")];
    let bare = heads.clone().map(|head| Head { value_type: None, ..head });
    let nth = ["int32", "string"].map(|text| EncodedType::parse(text).unwrap()).to_vec();
    let types = TypeOption::ByKey([(RequestedKey::Text("n".into()), Occurrences::InOrder(nth))].into_iter().collect());
    let options = WriteOptions { types, ..WriteOptions::default() };
    let written = write(Iggy2023, &Message::block(bare.to_vec()), options);
    assert_eq!(written, Ok(Some(serialized(Iggy2023, &heads))));
}

#[test]
fn an_unknown_type_name_is_rejected() {
    let column = lists(texts(&["n"]), Some(vec![Some("int33")]), vec![Some(&[1])]);
    assert_eq!(encode(Iggy, &column, TypeOption::Unset), Err((0, Code::UnknownType)));
}

#[test]
fn bits_of_wrong_size_are_rejected_where_readers_check() {
    let column = lists(texts(&["n"]), Some(vec![Some("int32")]), vec![Some(&[1, 2, 3])]);
    for format in [Iggy, Kip82Typed] {
        assert_eq!(encode(format, &column, TypeOption::Unset), Err((0, Code::WrongSize)));
    }
    assert!(encode(Iggy2023, &column, TypeOption::Unset).is_ok());
}

#[test]
fn canonical_sorts_by_type_code_and_then_by_serialized_bytes() {
    let heads = [("b", 2), ("a", 1), ("b", 1)].map(|(key, value)| head(key.into(), Scalar::Uint8, &[value]));
    let ints = [256, 1].map(|key| head(HeldKey::Int(key), Scalar::Uint8, &[0]));
    let given = [&ints[1..], &heads, &ints[..1]].concat();
    let sorted = [&heads[1..2], &heads[..1], &heads[2..], &ints].concat();
    let options = WriteOptions { canonical: true, ..WriteOptions::default() };
    let written = write(Iggy, &Message::block(given.clone()), options);
    assert_eq!(written, Ok(Some(serialized(Iggy, &sorted))));
    // Headers are sorted within each row of a column.
    let column = apply(Iggy, &Decode::default(), &[serialized(Iggy, &given), serialized(Iggy, &given)]).unwrap();
    let operation =
        Encode { options: WriteOptions { canonical: true, ..WriteOptions::default() }, ..Encode::default() };
    let made = apply_to(Iggy, &operation, &column).unwrap();
    assert!(made.as_binary::<i32>().iter().all(|written| written == Some(&serialized(Iggy, &sorted))));
}
