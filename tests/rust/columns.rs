//! Reads rows of columns as the messages and errors that tests compare.
#![allow(dead_code)] // Each test uses only some of these functions.

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Int8Type, Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, BinaryArray, StructArray};
use arrow_schema::DataType;
use letterhead::arrow::{Apply, Input, Operation};
use letterhead::error::{Error, ErrorDetail};
use letterhead::format::Format;
use letterhead::value_type::ValueType;

use crate::common::{Head, Held, HeldKey, Message, other_fields};

/// Applies an operation to a column of these values. A raised error is returned with its row.
pub fn apply<V: Operation>(
    format: Format,
    operation: &V,
    serialized_rows: &[Vec<u8>],
) -> Result<ArrayRef, (usize, ErrorDetail)> {
    let column = BinaryArray::from_vec(serialized_rows.iter().map(Vec::as_slice).collect());
    apply_to(format, operation, &column)
}

pub fn apply_to<V: Operation>(
    format: Format,
    operation: &V,
    column: &dyn Array,
) -> Result<ArrayRef, (usize, ErrorDetail)> {
    match format.visit(Apply(operation, Input::new(column))) {
        Ok(output) => {
            assert_eq!(output.until, column.len());
            Ok(output.column)
        }
        Err(Error::Headers(_, located)) => Err((located.row.expect("a column has rows"), located.error)),
        Err(other) => panic!("{other}"),
    }
}

/// Message in a row of a struct column of a message or batch format.
pub fn message_at(structs: &StructArray, row: usize, format: Format) -> Message {
    let column = |name: &str| structs.column_by_name(name).unwrap_or_else(|| panic!("no column {name}"));
    let fields = other_fields(format).map(|field| held_at(column(field.name), row)).collect();
    Message { headers: heads_at(column("headers"), row), fields }
}

fn held_at(column: &ArrayRef, row: usize) -> Held {
    if column.is_null(row) {
        return Held::Null;
    }
    match column.data_type() {
        DataType::Boolean => Held::Bool(column.as_boolean().value(row)),
        DataType::Int8 => Held::Number(number::<Int8Type>(column, row)),
        DataType::Int64 => Held::Number(number::<Int64Type>(column, row)),
        DataType::Decimal128(20, 0) => Held::Number(number::<Decimal128Type>(column, row)),
        DataType::Utf8 => Held::Text(column.as_string::<i32>().value(row).into()),
        DataType::Binary => Held::Bytes(column.as_binary::<i32>().value(row).to_vec()),
        other => panic!("no field has the type {other}"),
    }
}

/// The integer of a row that is not null.
pub fn number<T: ArrowPrimitiveType<Native: Into<i128>>>(column: &dyn Array, row: usize) -> i128 {
    column.as_primitive::<T>().value(row).into()
}

/// Headers of a row; `None` if the list is null.
pub fn heads_at(lists: &ArrayRef, row: usize) -> Option<Vec<Head>> {
    let lists = lists.as_list::<i32>();
    if lists.is_null(row) {
        return None;
    }
    let elements = lists.value(row);
    let structs = elements.as_struct();
    let column = |name: &str| structs.column_by_name(name);
    let value_type = |name: &str, place: usize| {
        let types = column(name)?.as_string::<i32>();
        types.is_valid(place).then(|| ValueType::parse(types.value(place)).expect("a kind"))
    };
    let bytes = |name: &str, place: usize| {
        let bytes = column(name)?.as_binary::<i32>();
        bytes.is_valid(place).then(|| bytes.value(place).to_vec())
    };
    let key = |place: usize| {
        let keys = column("key").expect("headers have keys");
        match keys.data_type() {
            DataType::Utf8 => keys.as_string::<i32>().value(place).into(),
            DataType::Int32 => HeldKey::Int(keys.as_primitive::<Int32Type>().value(place)),
            _ => HeldKey::typed(value_type("key_type", place).expect("a kind"), &bytes("key", place).expect("a key")),
        }
    };
    let head = |place| Head { key: key(place), value_type: value_type("type", place), value: bytes("value", place) };
    Some((0..structs.len()).map(head).collect())
}

/// Error as a row of the error column: code as text, message, byte, header and key.
pub type Told = (String, String, Option<i64>, Option<i32>, Option<String>);

pub fn told(error: &ErrorDetail) -> Told {
    let (byte, header) = (error.byte.map(|byte| byte as i64), error.header.map(|header| header as i32));
    (error.code.name().into(), error.message.clone(), byte, header, error.key.clone())
}

/// Removes the number of the message from the text of an error, as a column of errors does.
pub fn without_number((code, message, byte, header, key): Told) -> Told {
    let message = match message.strip_prefix("message ").and_then(|rest| rest.split_once(": ")) {
        Some((number, rest)) if number.bytes().all(|byte| byte.is_ascii_digit()) => rest.into(),
        _ => message,
    };
    (code, message, byte, header, key)
}

/// Errors of a row.
pub fn faults_at(lists: &ArrayRef, row: usize) -> Vec<Told> {
    let lists = lists.as_list::<i32>();
    if lists.is_null(row) {
        return vec![];
    }
    let elements = lists.value(row);
    let structs = elements.as_struct();
    let text = |name: &str, place: usize| {
        let texts = structs.column_by_name(name).expect("a fault has it").as_string::<i32>();
        texts.is_valid(place).then(|| texts.value(place).to_string())
    };
    let error = |place| {
        let bytes = structs.column_by_name("byte_offset").expect("a fault has it").as_primitive::<Int64Type>();
        let headers = structs.column_by_name("header").expect("a fault has it").as_primitive::<Int32Type>();
        (
            text("code", place).expect("a fault has a code"),
            text("message", place).expect("a fault has a message"),
            bytes.is_valid(place).then(|| bytes.value(place)),
            headers.is_valid(place).then(|| headers.value(place)),
            text("key", place),
        )
    };
    (0..structs.len()).map(error).collect()
}
