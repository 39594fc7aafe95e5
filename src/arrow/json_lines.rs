//! [`json_lines`] writes the rows of a record batch as JSON lines.
//!
//! ```text
//!   text, bytes that are text           "acme"
//!   other bytes                         {"base64":"AP8="}
//!   integers                            5, or "9007199254740993" beyond what a double holds
//!   decimals                            "12.50"
//!   float64                             2.5, or "NaN", "Infinity", "-Infinity"
//!   timestamp                           "2026-01-01T08:30:00.000Z", or milliseconds since 1970
//!   date                                "2026-01-01"
//!   list, struct                        [...], {...}
//!   headers                             [{"key":"tenant","value":"acme"},{"key":"route","value":null}]
//!   headers with types                  [{"key":"retry","value":{"type":"int32","value":3}}]
//! ```
//!
//! A header of type `string` is written as its text; a value whose bits are not valid for its type has `base64` instead
//! of `value`. Invisible characters, such as those that control a terminal or the direction of text, are escaped.

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, BooleanArray, PrimitiveArray, StructArray};
use arrow_schema::{DataType, TimeUnit};

use crate::arrow::input::{Bytes, ListInput, Texts};
pub use crate::arrow::json_text::JsonOptions;
use crate::arrow::json_text::{Buffer, Clock};
use crate::arrow::schema::type_name;
use crate::error::{Error, interrupted};
use crate::interrupt;

/// Number of rows between two checks for an interrupt.
const ROWS: usize = 256;

/// Returns a line for each row: a JSON object of its columns.
pub fn json_lines(rows: &StructArray, options: JsonOptions) -> Result<Vec<u8>, Error> {
    let writer = Node::of(rows, options)?;
    let mut out = Buffer { bytes: Vec::new(), options };
    for row in 0..rows.len() {
        if row % ROWS == 0 && interrupt::is_requested() {
            return Err(interrupted());
        }
        writer.write(row, &mut out);
        out.raw(b"\n");
    }
    Ok(out.bytes)
}

/// Writes the number of a row, or null.
type WriteNumber<'a> = Box<dyn Fn(usize, &mut Buffer) + 'a>;

/// Returns the time of a row; `None` if it is null.
type ReadTime<'a> = Box<dyn Fn(usize) -> Option<i64> + 'a>;

/// Column, with a variant for each way of writing its values.
enum Node<'a> {
    Null,
    Bool(&'a BooleanArray),
    Text(Texts<'a>),
    Bytes(Bytes<'a>),
    Number(WriteNumber<'a>),
    Time(ReadTime<'a>, Clock),
    List(ListInput<'a>, Box<Node<'a>>),
    Struct(&'a StructArray, Vec<Member<'a>>),
    Header(&'a StructArray, Box<HeaderNode<'a>>),
}

/// A field of an object, with the bytes before its value: `,"name":`.
struct Member<'a> {
    label: Vec<u8>,
    node: Node<'a>,
}

/// An element of a list of headers.
struct HeaderNode<'a> {
    key: TypedNode<'a>,
    value: TypedNode<'a>,
}

/// Keys or values of headers, with their types if the format has types.
struct TypedNode<'a> {
    node: Node<'a>,
    types: Option<Texts<'a>>,
}

impl<'a> Node<'a> {
    fn of(array: &'a dyn Array, options: JsonOptions) -> Result<Node<'a>, Error> {
        macro_rules! numbers {
            ($($variant:pat => $type:ty, $write:ident;)*) => {
                match array.data_type() {
                    $($variant => Some(number::<$type>(array, |number, out| out.$write(number.into()))),)*
                    _ => None,
                }
            };
        }
        if let Some(texts) = Texts::of(array) {
            return Ok(Node::Text(texts));
        }
        if let Some(bytes) = Bytes::of(array) {
            return Ok(Node::Bytes(bytes));
        }
        if let Some(lists) = ListInput::of(array) {
            return Ok(Node::List(lists, Box::new(Node::of(lists.values(), options)?)));
        }
        let numbers = numbers! {
            DataType::Int8 => Int8Type, integer;
            DataType::Int16 => Int16Type, integer;
            DataType::Int32 => Int32Type, integer;
            DataType::Int64 => Int64Type, integer;
            DataType::UInt8 => UInt8Type, integer;
            DataType::UInt16 => UInt16Type, integer;
            DataType::UInt32 => UInt32Type, integer;
            DataType::UInt64 => UInt64Type, integer;
            DataType::Decimal128(_, 0) => Decimal128Type, integer;
            DataType::Float64 => Float64Type, float64;
            DataType::Float32 => Float32Type, float32;
        };
        if let Some(node) = numbers {
            return Ok(node);
        }
        Ok(match array.data_type() {
            DataType::Null => Node::Null,
            DataType::Boolean => Node::Bool(array.as_boolean()),
            DataType::Decimal128(..) => {
                let numbers = array.as_primitive::<Decimal128Type>();
                Node::Number(Box::new(move |row, out| match array.is_valid(row) {
                    // Most readers would round a JSON number.
                    true => out.text(&numbers.value_as_string(row)),
                    false => out.null(),
                }))
            }
            DataType::Date32 => number::<Date32Type>(array, |days, out| out.date(days)),
            DataType::Timestamp(unit, zone) => time(array, *unit, zone.is_some()),
            DataType::Struct(_) => {
                let array = array.as_struct();
                match HeaderNode::of(array, options)? {
                    Some(header) => Node::Header(array, Box::new(header)),
                    None => Node::Struct(array, members(array, options)?),
                }
            }
            other => {
                return Err(Error::Type(format!("a column is {}, which JSON lines do not take", type_name(other))));
            }
        })
    }

    fn write(&self, row: usize, out: &mut Buffer) {
        match self {
            Node::Null => out.null(),
            Node::Bool(array) => match array.is_valid(row) {
                true => out.raw(if array.value(row) { b"true" } else { b"false" }),
                false => out.null(),
            },
            Node::Text(texts) => match texts.get(row) {
                Some(text) => out.text(text),
                None => out.null(),
            },
            Node::Bytes(bytes) => match bytes.get(row) {
                Some(bytes) => out.text_or_base64(bytes),
                None => out.null(),
            },
            Node::Number(write) => write(row, out),
            Node::Time(times, clock) => match times(row) {
                Some(time) => out.time(time, *clock),
                None => out.null(),
            },
            Node::List(lists, element) => match lists.get(row) {
                Some(elements) => {
                    out.raw(b"[");
                    for (number, index) in elements.enumerate() {
                        if number > 0 {
                            out.raw(b",");
                        }
                        element.write(index, out);
                    }
                    out.raw(b"]");
                }
                None => out.null(),
            },
            Node::Struct(array, members) => {
                if array.is_null(row) {
                    return out.null();
                }
                if members.is_empty() {
                    out.raw(b"{");
                }
                for member in members {
                    out.raw(&member.label);
                    member.node.write(row, out);
                }
                out.raw(b"}");
            }
            Node::Header(array, header) => {
                if array.is_null(row) {
                    return out.null();
                }
                out.raw(b"{\"key\":");
                header.key.write(row, out);
                out.raw(b",\"value\":");
                header.value.write(row, out);
                out.raw(b"}");
            }
        }
    }
}

fn members<'a>(array: &'a StructArray, options: JsonOptions) -> Result<Vec<Member<'a>>, Error> {
    let columns = array.fields().iter().zip(array.columns()).enumerate();
    columns
        .map(|(number, (field, column))| {
            let mut label = Buffer { bytes: Vec::new(), options };
            label.raw(if number == 0 { b"{" } else { b"," });
            label.text(field.name());
            label.raw(b":");
            Ok(Member { label: label.bytes, node: Node::of(column, options)? })
        })
        .collect()
}

fn number<'a, T: ArrowPrimitiveType>(array: &'a dyn Array, write: impl Fn(T::Native, &mut Buffer) + 'a) -> Node<'a> {
    let array: &'a PrimitiveArray<T> = array.as_primitive();
    Node::Number(Box::new(move |row, out| match array.is_valid(row) {
        true => write(array.value(row), out),
        false => out.null(),
    }))
}

fn time(array: &dyn Array, unit: TimeUnit, is_utc: bool) -> Node<'_> {
    fn times<'a, T: ArrowPrimitiveType<Native = i64>>(array: &'a dyn Array) -> ReadTime<'a> {
        let array: &'a PrimitiveArray<T> = array.as_primitive();
        Box::new(move |row| array.is_valid(row).then(|| array.value(row)))
    }
    let (times, per_second, digits) = match unit {
        TimeUnit::Second => (times::<TimestampSecondType>(array), 1, 0),
        TimeUnit::Millisecond => (times::<TimestampMillisecondType>(array), 1000, 3),
        TimeUnit::Microsecond => (times::<TimestampMicrosecondType>(array), 1_000_000, 6),
        TimeUnit::Nanosecond => (times::<TimestampNanosecondType>(array), 1_000_000_000, 9),
    };
    Node::Time(times, Clock { per_second, digits, is_utc })
}

impl<'a> HeaderNode<'a> {
    /// Returns `None` if the struct has fields other than a key, a binary value, and their types.
    fn of(array: &'a StructArray, options: JsonOptions) -> Result<Option<Self>, Error> {
        let types = |name| array.column_by_name(name).and_then(|column| Texts::of(column));
        let (Some(key), Some(value)) = (array.column_by_name("key"), array.column_by_name("value")) else {
            return Ok(None);
        };
        let (key_types, value_types) = (types("key_type"), types("type"));
        let columns = 2 + usize::from(key_types.is_some()) + usize::from(value_types.is_some());
        let is_key = key.data_type().is_integer() || Texts::of(key).is_some() || Bytes::of(key).is_some();
        if columns != array.num_columns() || !is_key || Bytes::of(value).is_none() {
            return Ok(None);
        }
        let key = TypedNode { node: Node::of(key, options)?, types: key_types };
        Ok(Some(HeaderNode { key, value: TypedNode { node: Node::of(value, options)?, types: value_types } }))
    }
}

impl TypedNode<'_> {
    fn write(&self, row: usize, out: &mut Buffer) {
        match (&self.node, self.types) {
            (Node::Bytes(bytes), Some(types)) => match (bytes.get(row), types.get(row)) {
                (None, _) => out.null(),
                (Some(bits), Some(name)) => out.typed_value(name, bits),
                // A value without a type is written as Base64, because a JSON string would be read as a value of type
                // `string`.
                (Some(bits), None) => out.base64(bits),
            },
            _ => self.node.write(row, out),
        }
    }
}
