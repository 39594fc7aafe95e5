//! Arrow types of the outputs of operations, derived from the table of formats.
//!
//! Spark reads them without a cast: all fields are nullable, children of lists are named `element`, and offsets have 32
//! bits.

use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Fields, TimeUnit};

use crate::arrow::types::Dialect;
use crate::error::Error;
use crate::field::{self, FieldType};
use crate::format_info::{Class, FormatInfo};
use crate::header::KeyForm;
use crate::log::OnError;
use crate::value_type::Scalar;

pub fn nullable(name: &str, data_type: DataType) -> FieldRef {
    Arc::new(Field::new(name, data_type, true))
}

pub fn list_of(data_type: DataType) -> DataType {
    DataType::List(nullable("element", data_type))
}

/// Fields of a header; `text_keys`: typed keys are text.
pub fn header_fields(format: &FormatInfo, text_keys: bool) -> Fields {
    let mut fields = match format.keys {
        KeyForm::Int => vec![nullable("key", DataType::Int32)],
        KeyForm::Typed if !text_keys => vec![nullable("key_type", DataType::Utf8), nullable("key", DataType::Binary)],
        KeyForm::Text | KeyForm::Typed => vec![nullable("key", DataType::Utf8)],
    };
    if format.types.is_typed() {
        fields.push(nullable("type", DataType::Utf8));
    }
    fields.push(nullable("value", DataType::Binary));
    fields.into()
}

pub fn headers_type(format: &FormatInfo, text_keys: bool) -> DataType {
    list_of(DataType::Struct(header_fields(format, text_keys)))
}

/// Replaces text and binary types by views; in headers, only for values.
pub fn with_views(data_type: &DataType) -> DataType {
    let viewed = |field: &FieldRef| nullable(field.name(), with_views(field.data_type()));
    match data_type {
        DataType::Utf8 => DataType::Utf8View,
        DataType::Binary => DataType::BinaryView,
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(viewed).collect()),
        DataType::List(element) => match element.data_type() {
            DataType::Struct(fields) => {
                let is_value = |field: &FieldRef| field.name() == "value";
                let field = |field| if is_value(field) { viewed(field) } else { Arc::clone(field) };
                list_of(DataType::Struct(fields.iter().map(field).collect()))
            }
            data_type => list_of(with_views(data_type)),
        },
        other => other.clone(),
    }
}

pub fn field_type(field_type: FieldType) -> Option<DataType> {
    Some(match field_type {
        FieldType::Headers => return None,
        FieldType::Bool => DataType::Boolean,
        FieldType::Int8 => DataType::Int8,
        FieldType::Int64 | FieldType::Natural => DataType::Int64,
        // Spark's only type for unsigned 64-bit numbers.
        FieldType::Uint64 => Scalar::Uint64.arrow(Dialect::Spark),
        FieldType::Text => DataType::Utf8,
        FieldType::Binary | FieldType::Id => DataType::Binary,
    })
}

/// The fields of a decoded message, including the headers.
pub fn message_fields(format: &FormatInfo, text_keys: bool) -> Vec<FieldRef> {
    let data_type =
        |field: &field::Field| field_type(field.field_type).unwrap_or_else(|| headers_type(format, text_keys));
    format.fields.iter().map(|field| nullable(field.name, data_type(field))).collect()
}

pub fn decoded_type(format: &FormatInfo, text_keys: bool) -> DataType {
    match format.class {
        Class::Headers => headers_type(format, text_keys),
        Class::Message | Class::Batch => DataType::Struct(message_fields(format, text_keys).into()),
    }
}

pub fn error_fields() -> Fields {
    let types = [DataType::Utf8, DataType::Utf8, DataType::Int64, DataType::Int32, DataType::Utf8, DataType::Utf8];
    let names = ["code", "message", "byte_offset", "header", "key", "column"];
    names.into_iter().zip(types).map(|(name, data_type)| nullable(name, data_type)).collect()
}

pub fn loss_fields() -> Fields {
    let data_type = |name| if name == "header" { DataType::Int32 } else { DataType::Utf8 };
    ["code", "message", "header", "key", "type", "written"]
        .into_iter()
        .map(|name| nullable(name, data_type(name)))
        .collect()
}

/// Type of a column of losses, which is null for rows without losses.
pub fn losses_type() -> DataType {
    list_of(DataType::Struct(loss_fields()))
}

/// Type of a column of errors, which is null for rows without errors.
pub fn errors_type() -> DataType {
    list_of(DataType::Struct(error_fields()))
}

/// Adds the field of errors, if they are a column, to the fields of a result.
pub fn with_errors(mut fields: Vec<FieldRef>, on_error: OnError) -> Vec<FieldRef> {
    if on_error.is_column() {
        fields.push(nullable("error", errors_type()));
    }
    fields
}

/// Error that names the actual and the expected type.
pub fn mismatch(expected: &DataType, actual: &DataType) -> Error {
    Error::Type(format!("the column is {}, and what fits is {}", type_name(actual), type_name(expected)))
}

/// The name of a type in pyarrow's notation.
pub fn type_name(data_type: &DataType) -> String {
    match data_type {
        DataType::List(element) => format!("list<{}: {}>", element.name(), type_name(element.data_type())),
        DataType::LargeList(element) => format!("large_list<{}: {}>", element.name(), type_name(element.data_type())),
        DataType::Struct(fields) => {
            let fields: Vec<_> = fields.iter().map(|f| format!("{}: {}", f.name(), type_name(f.data_type()))).collect();
            format!("struct<{}>", fields.join(", "))
        }
        DataType::Utf8 => "string".into(),
        DataType::LargeUtf8 => "large_string".into(),
        DataType::Utf8View => "string_view".into(),
        DataType::LargeBinary => "large_binary".into(),
        DataType::BinaryView => "binary_view".into(),
        DataType::Boolean => "bool".into(),
        DataType::Timestamp(unit, None) => format!("timestamp[{}]", unit_name(*unit)),
        DataType::Timestamp(unit, Some(zone)) => format!("timestamp[{}, tz={zone}]", unit_name(*unit)),
        DataType::Time32(unit) => format!("time32[{}]", unit_name(*unit)),
        DataType::Time64(unit) => format!("time64[{}]", unit_name(*unit)),
        DataType::Duration(unit) => format!("duration[{}]", unit_name(*unit)),
        DataType::Date32 => "date32[day]".into(),
        DataType::Date64 => "date64[ms]".into(),
        DataType::FixedSizeBinary(size) => format!("fixed_size_binary[{size}]"),
        DataType::FixedSizeList(element, size) => {
            format!("fixed_size_list<{}: {}>[{size}]", element.name(), type_name(element.data_type()))
        }
        DataType::ListView(element) => format!("list_view<{}: {}>", element.name(), type_name(element.data_type())),
        DataType::LargeListView(element) => {
            format!("large_list_view<{}: {}>", element.name(), type_name(element.data_type()))
        }
        DataType::Dictionary(indices, values) => {
            format!("dictionary<values={}, indices={}>", type_name(values), type_name(indices))
        }
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(fields) => {
                let types: Vec<_> = fields.iter().map(|field| type_name(field.data_type())).collect();
                format!("map<{}>", types.join(", "))
            }
            entries => format!("map<{}>", type_name(entries)),
        },
        DataType::RunEndEncoded(_, values) => format!("run_end_encoded<{}>", type_name(values.data_type())),
        DataType::Union(fields, _) => {
            let field = |field: &FieldRef| format!("{}: {}", field.name(), type_name(field.data_type()));
            format!("union<{}>", fields.iter().map(|(_, member)| field(member)).collect::<Vec<_>>().join(", "))
        }
        // Types without field names.
        other => other.to_string().to_lowercase(),
    }
}

fn unit_name(unit: TimeUnit) -> &'static str {
    match unit {
        TimeUnit::Second => "s",
        TimeUnit::Millisecond => "ms",
        TimeUnit::Microsecond => "us",
        TimeUnit::Nanosecond => "ns",
    }
}
