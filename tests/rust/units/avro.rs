//! Avro values that are rejected, and schemas without columns.

use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{Array, ListArray, StringArray, StructArray};
use arrow_schema::{DataType, Field};
use letterhead::arrow::avro::{AvroWriter, WriterSchema};
use letterhead::error::{Code, ErrorDetail};
use letterhead::varint::{write, zigzag};

fn code(schema: &str, value: &[u8]) -> Option<Code> {
    WriterSchema::parse(schema).unwrap().check(value).err().map(|error| error.code)
}

fn refused(schema: &str) -> String {
    WriterSchema::parse(schema).unwrap_err().to_string()
}

const UUID: &str = r#"{"type": "string", "logicalType": "uuid"}"#;

#[test]
fn values_are_accepted() {
    assert_eq!(code(r#""null""#, b""), None);
    assert_eq!(code(r#""boolean""#, b"\x01"), None);
    assert_eq!(code(r#""int""#, b"\xff\xff\xff\xff\x0f"), None);
    assert_eq!(code(r#""long""#, b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), None);
    assert_eq!(code(r#"["null", "string"]"#, b"\x02\x02a"), None);
    assert_eq!(code(r#"{"type": "array", "items": "int"}"#, b"\x04\x00\x00\x03\x04\x02\x02\x00"), None);
    assert_eq!(code(r#"{"type": "map", "values": "int"}"#, b"\x02\x02a\x02\x00"), None);
    assert_eq!(code(r#"{"type": "fixed", "name": "f", "size": 2}"#, b"ab"), None);
    assert_eq!(code(UUID, b"\x4889791762-2336-4186-9674-299b90a802e2"), None);
}

#[test]
fn a_truncated_value_is_rejected() {
    for (schema, value) in [
        (r#""boolean""#, &b""[..]),
        (r#""int""#, b"\x80"),
        (r#""double""#, b"1234567"),
        (r#""string""#, b"\x04a"),
        (r#"{"type": "array", "items": "int"}"#, b"\x04\x00"),
        (r#"{"type": "array", "items": "int"}"#, b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00"),
    ] {
        assert_eq!(code(schema, value), Some(Code::Truncated), "{schema}");
    }
}

#[test]
fn trailing_bytes_are_rejected() {
    assert_eq!(code(r#""int""#, b"\x02\x02"), Some(Code::TrailingBytes));
}

#[test]
fn a_number_wider_than_its_type_is_rejected() {
    assert_eq!(code(r#""int""#, b"\x80\x80\x80\x80\x10"), Some(Code::OutOfRange));
    assert_eq!(code(r#""long""#, b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"), Some(Code::OutOfRange));
    assert_eq!(code(r#""long""#, &[0xff; 11]), Some(Code::OutOfRange));
}

#[test]
fn a_negative_length_is_rejected() {
    assert_eq!(code(r#""bytes""#, b"\x01"), Some(Code::NegativeLength));
}

#[test]
fn another_boolean_is_rejected() {
    assert_eq!(code(r#""boolean""#, b"\x02"), Some(Code::BadBool));
}

#[test]
fn non_utf8_text_is_rejected() {
    assert_eq!(code(r#""string""#, b"\x02\xff"), Some(Code::ValueNotUtf8));
    assert_eq!(code(r#"{"type": "map", "values": "int"}"#, b"\x02\x02\xff\x02\x00"), Some(Code::KeyNotUtf8));
}

#[test]
fn an_unknown_branch_or_symbol_is_rejected() {
    for value in [&b"\x04\x00"[..], b"\x01\x00"] {
        assert_eq!(code(r#"["null", "int"]"#, value), Some(Code::UnknownType));
    }
    for value in [&b"\x02"[..], b"\x01"] {
        assert_eq!(code(r#"{"type": "enum", "name": "e", "symbols": ["A"]}"#, value), Some(Code::OutOfRange));
    }
}

#[test]
fn block_of_wrong_size_is_rejected() {
    assert_eq!(code(r#"{"type": "array", "items": "int"}"#, b"\x01\x04\x02\x00"), Some(Code::WrongSize));
}

#[test]
fn time_outside_day_is_rejected() {
    let times = r#"{"type": "int", "logicalType": "time-millis"}"#;
    for (time, expected) in
        [(0, None), (86_399_999, None), (86_400_000, Some(Code::OutOfRange)), (-1, Some(Code::OutOfRange))]
    {
        let mut value = Vec::new();
        write(zigzag(time), &mut value);
        assert_eq!(code(times, &value), expected, "{time}");
    }
}

#[test]
fn a_decimal_with_more_digits_than_its_precision_is_rejected() {
    let decimal =
        |precision: usize| format!(r#"{{"type": "bytes", "logicalType": "decimal", "precision": {precision}}}"#);
    for (number, precision) in [(99, 2), (-99, 2), (9_999_999, 7), (-9_999_999, 7), (i64::MAX, 19)] {
        let bytes = number.to_be_bytes();
        let value = [&[16], &bytes[..]].concat();
        assert_eq!(code(&decimal(precision), &value), None, "{number}");
        assert_eq!(code(&decimal(precision - 1), &value), Some(Code::OutOfRange), "{number}");
    }
    assert_eq!(code(&decimal(2), b"\x04\x00\x64"), Some(Code::OutOfRange)); // 100
    assert_eq!(code(&decimal(2), b"\x00"), None);
    assert_eq!(code(&decimal(76), &[&[0x44], &[0x7f; 34][..]].concat()), Some(Code::OutOfRange));
}

#[test]
fn a_duration_that_arrow_cannot_hold_is_rejected() {
    let duration = r#"{"type": "fixed", "name": "d", "size": 12, "logicalType": "duration"}"#;
    assert_eq!(code(duration, b"\xff\xff\xff\x7f\0\0\0\0\0\0\0\xff"), None);
    assert_eq!(code(duration, b"\0\0\0\x80\0\0\0\0\0\0\0\0"), Some(Code::OutOfRange));
    assert_eq!(code(duration, b"\0\0\0\0\0\0\0\x80\0\0\0\0"), Some(Code::OutOfRange));
}

#[test]
fn non_uuid_text_is_rejected() {
    for value in
        [&b"\x4889791762_2336-4186-9674-299b90a802e2"[..], b"\x48x9791762-2336-4186-9674-299b90a802e2", b"\x00"]
    {
        assert_eq!(code(UUID, value), Some(Code::BadText));
    }
}

#[test]
fn schemas_without_columns_are_rejected() {
    let node = r#"{"type": "record", "name": "Node", "fields": [{"name": "next", "type": ["null", "Node"]}]}"#;
    assert!(refused(node).contains("contains itself"));
    assert!(refused(r#"{"type": "array", "items": "null"}"#).contains("no bytes"));
    assert!(refused(r#""Other""#).contains("does not define"));
    assert!(refused("{").contains("not JSON"));
    assert!(refused("[]").contains("no types"));
    let twice = r#"{"type": "fixed", "name": "F", "size": 1}"#;
    assert!(refused(&format!("[{twice}, {twice}]")).contains("twice"));
}

#[test]
fn a_schema_that_grows_without_bounds_is_rejected() {
    let mut type_ = r#""int""#.to_string();
    for level in 0..40 {
        let name = format!("R{level}");
        type_ = format!(
            r#"{{"type": "record", "name": "{name}", "fields": [{{"name": "a", "type": {type_}}}, {{"name": "b", "type": "R{}"}}]}}"#,
            level - 1
        );
        if level == 0 {
            type_ = type_.replace(r#", {"name": "b", "type": "R-1"}"#, "");
        }
    }
    assert!(refused(&type_).contains("too many types"), "{}", refused(&type_));
}

#[test]
fn a_name_is_found_in_its_namespace() {
    let schema = r#"{"type": "record", "name": "a.R", "fields": [
        {"name": "f", "type": {"type": "fixed", "name": "F", "size": 1}},
        {"name": "g", "type": "F"},
        {"name": "h", "type": "a.F"},
        {"name": "i", "type": {"type": "fixed", "name": "F", "namespace": "b", "size": 2}},
        {"name": "j", "type": "b.F"}]}"#;
    assert_eq!(code(schema, b"fghiijj"), None);
    assert_eq!(code(schema, b"fghiij"), Some(Code::Truncated));
}

fn written(rows: &StructArray, schema: &str) -> Result<Vec<Vec<u8>>, Vec<(usize, Code)>> {
    let encoded = AvroWriter::new(schema).unwrap().encode(rows).unwrap();
    let errors = |errors: Vec<(usize, ErrorDetail)>| errors.into_iter().map(|(row, error)| (row, error.code)).collect();
    encoded.map(|values| values.iter().flatten().map(<[u8]>::to_vec).collect()).map_err(errors)
}

fn lists(lists: Vec<Option<Vec<Option<i32>>>>) -> StructArray {
    let lists = ListArray::from_iter_primitive::<Int32Type, _, _>(lists);
    let field = Field::new("a", lists.data_type().clone(), true);
    StructArray::new(vec![field].into(), vec![Arc::new(lists)], None)
}

const LISTS: &str = r#"{"type": "record", "name": "R", "fields": [
    {"name": "a", "type": ["null", {"type": "array", "items": "int"}]}]}"#;

#[test]
fn rows_of_slice_are_written() {
    let rows = lists(vec![None, Some(vec![Some(1)]), None, Some(vec![Some(-1), Some(2)])]);
    let expected = vec![b"\x00".to_vec(), b"\x02\x04\x01\x04\x00".to_vec()];
    assert_eq!(written(&rows.slice(2, 2), LISTS), Ok(expected));
}

#[test]
fn a_null_where_the_schema_needs_a_value_is_refused() {
    let rows = lists(vec![None, Some(vec![Some(1)]), Some(vec![Some(1), None]), Some(vec![None])]);
    let errors = vec![(2, Code::WrongType), (3, Code::WrongType)];
    assert_eq!(written(&rows, LISTS), Err(errors));
    let errors = vec![(0, Code::WrongType), (1, Code::WrongType)];
    assert_eq!(written(&rows.slice(2, 2), LISTS), Err(errors));
}

#[test]
fn a_written_value_that_readers_refuse_is_an_error() {
    let schema = format!(r#"{{"type": "record", "name": "R", "fields": [{{"name": "a", "type": {UUID}}}]}}"#);
    let text = Arc::new(StringArray::from(vec!["89791762-2336-4186-9674-299b90a802e2", "x"]));
    let rows = StructArray::new(vec![Field::new("a", DataType::Utf8, false)].into(), vec![text], None);
    assert_eq!(written(&rows, &schema), Err(vec![(1, Code::BadText)]));
    assert_eq!(written(&rows.slice(0, 1), &schema).unwrap()[0].len(), 37);
}
