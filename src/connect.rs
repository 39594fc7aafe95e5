//! Reads values with their schema, as Kafka Connect's `JsonConverter` writes headers while `schemas.enable` is on, its
//! default.
//!
//! ```text
//!   {"schema": {"type": "int32", "optional": false}, "payload": 42}
//!   {"schema": {"type": "bytes", "optional": false}, "payload": "QcM="}     Base64
//!   {"schema": {"type": "double", "optional": false}, "payload": "NaN"}     numbers that JSON lacks are in quotes
//!   {"schema": null, "payload": 5}                                          type of the JSON value
//! ```

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use crate::encoding::bad_text;
use crate::error::Code;
use crate::json;
use crate::value::{InvalidValue, Value, invalid};
use crate::value_type::Scalar;

type Object<'a> = BTreeMap<String, &'a RawValue>;

/// Reads a value and the type that its schema names; `None` is a null.
pub fn read(bytes: &[u8]) -> Result<Option<(Scalar, Value<'_>)>, Box<InvalidValue>> {
    let object = serde_json::from_slice::<Object<'_>>(bytes).ok().filter(|object| object.len() == 2);
    let fields = object.and_then(|object| Some((*object.get("schema")?, *object.get("payload")?)));
    let Some((schema, payload)) = fields else {
        return Err(invalid(Code::BadText, || "the text is not a JSON object of a schema and a payload".into()));
    };
    let payload = payload.get().as_bytes();
    let stored = match schema.get() {
        _ if payload == b"null" => return Ok(None),
        "null" => type_of_json(payload),
        schema => type_of_schema(schema),
    };
    let Some(stored) = stored else {
        return Err(invalid(Code::WrongType, || "the schema is not one of a single value".into()));
    };
    let fits = match stored {
        Scalar::String | Scalar::Binary => payload.starts_with(b"\""),
        Scalar::Float32 | Scalar::Float64 => {
            !payload.starts_with(b"\"") || matches!(payload, b"\"NaN\"" | b"\"Infinity\"" | b"\"-Infinity\"")
        }
        _ => !payload.starts_with(b"\""),
    };
    match fits {
        true => Ok(json::read(stored, payload)?.map(|value| (stored, value))),
        false => Err(bad_text(stored)),
    }
}

fn type_of_schema(schema: &str) -> Option<Scalar> {
    let schema: Object<'_> = serde_json::from_str(schema).ok()?;
    let name: String = serde_json::from_str(schema.get("type")?.get()).ok()?;
    Some(match name.as_str() {
        "boolean" => Scalar::Bool,
        "int8" => Scalar::Int8,
        "int16" => Scalar::Int16,
        "int32" => Scalar::Int32,
        "int64" => Scalar::Int64,
        "float" => Scalar::Float32,
        "double" => Scalar::Float64,
        "string" => Scalar::String,
        "bytes" => Scalar::Binary,
        _ => return None,
    })
}

/// Returns the type in which Connect reads a value without a schema.
fn type_of_json(payload: &[u8]) -> Option<Scalar> {
    match payload.first()? {
        b'"' => Some(Scalar::String),
        b't' | b'f' => Some(Scalar::Bool),
        b'{' | b'[' => None,
        _ if payload.iter().any(|byte| matches!(byte, b'.' | b'e' | b'E')) => Some(Scalar::Float64),
        _ => Some(Scalar::Int64),
    }
}
