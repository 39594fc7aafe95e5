//! [`Field`]: a field of a message other than its headers, and its value.

/// The Arrow type of a message's field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldType {
    Headers,
    Bool,
    Int8,
    Int64,
    /// Non-negative number of 63 bits.
    Natural,
    Uint64,
    Text,
    Binary,
    /// 16 bytes, most significant first.
    Id,
}

/// Meaning of a field. Conversion matches fields of two formats by their meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Headers,
    Value,
    Key,
    Offset,
    Id,
    State,
    /// Milliseconds since the epoch.
    Millis,
    /// Microseconds since the epoch.
    Micros,
    /// Creation time of the message in microseconds since the epoch.
    Origin,
    /// Value in a state store. A null is written as no bytes, and deletes the key.
    StoredValue,
    /// The message deletes its key, whether it has a value or not.
    Tombstone,
    /// The message has no value, and so deletes its key.
    Deletes,
    Magic,
    Attributes,
    /// Computed from other fields, or part of the batch. Other formats have no such field.
    Derived,
}

impl Role {
    pub fn is_value(self) -> bool {
        matches!(self, Role::Value | Role::StoredValue)
    }
}

/// Field of a message, as listed in the table of formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    pub name: &'static str,
    pub field_type: FieldType,
    pub role: Role,
}

impl Field {
    pub const HEADERS: Field = Field { name: "headers", field_type: FieldType::Headers, role: Role::Headers };

    pub const fn new(name: &'static str, field_type: FieldType, role: Role) -> Field {
        Field { name, field_type, role }
    }
}

/// The value of a field other than the headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldValue<'a> {
    Null,
    Bool(bool),
    Int64(i64),
    Uint64(u64),
    Text(&'a str),
    Binary(&'a [u8]),
    Id([u8; 16]),
}

impl FieldValue<'_> {
    /// Number of bytes of a binary value or an id; 0 for other values.
    #[inline(always)]
    pub fn byte_len(&self) -> usize {
        match self {
            FieldValue::Binary(bytes) => bytes.len(),
            FieldValue::Id(id) => id.len(),
            _ => 0,
        }
    }
}
