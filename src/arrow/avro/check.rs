//! Avro's binary encoding: [`WriterSchema::check`] verifies a value before it is converted to columns.
//!
//! ```text
//! int, long      zig-zag varint of 32 or 64 bits
//! bytes, string  long length, bytes
//! array, map     blocks until one of 0 items: long count, items; or -count, long bytes, items
//! union          long branch, value
//! enum           int symbol
//! record         its fields, without a separator
//! ```
//!
//! Differences from other readers: a boolean must be 0 or 1, text must be UTF-8, a decimal must not have more digits
//! than its precision, a time must be within one day, the stated size of a block must be the size of its items, and no
//! bytes may follow the value. Recursive types, and arrays of items without bytes, have no Arrow columns and are
//! rejected.

use std::collections::HashMap;
use std::str::from_utf8;

use arrow_array::types::{Decimal256Type, DecimalType};
use arrow_buffer::i256;
use arrow_schema::DECIMAL256_MAX_PRECISION;
use serde_json::{Map, Value};

use crate::cursor::too_short;
use crate::encoding::is_uuid;
use crate::error::{Code, Error, ErrorDetail, format_count};
use crate::varint::{ParsedVarint, read_64, unzigzag_64};

/// Maximum number of types in a schema with all named types expanded.
const MAX_TYPES: usize = 100_000;

/// Number of bytes of Arrow's widest decimal.
const MAX_DECIMAL_BYTES: usize = 32;

const MILLIS_OF_DAY: i64 = 86_400_000;
const MICROS_OF_DAY: i64 = 1000 * MILLIS_OF_DAY;

/// Schema of written values, for checks.
#[derive(Debug)]
pub struct WriterSchema {
    types: Vec<Type>,
    root: usize,
}

#[derive(Debug)]
enum Type {
    Null,
    Boolean,
    Int,
    Long,
    /// Float, double or fixed, with the number of bytes.
    Fixed(usize),
    Bytes,
    String,
    /// An int or a long in `0..end`.
    Time {
        is_long: bool,
        end: i64,
    },
    /// Precision, and the number of bytes of a fixed.
    Decimal {
        precision: usize,
        size: Option<usize>,
    },
    Duration,
    /// UUID as text.
    Uuid,
    Enum(usize),
    Array(usize),
    Map(usize),
    Union(Vec<usize>),
    Record(Vec<usize>),
}

impl WriterSchema {
    /// Parses a schema whose references to other schemas are part of the text.
    pub fn parse(schema: &str) -> Result<WriterSchema, Error> {
        let json = serde_json::from_str(schema).map_err(|_| invalid("it is not JSON"))?;
        let mut parser = Parser { types: Vec::new(), sizes: Vec::new(), names: HashMap::new() };
        let root = parser.parse(&json, "")?;
        Ok(WriterSchema { types: parser.types, root })
    }

    /// Returns the first error of a value.
    pub fn check(&self, value: &[u8]) -> Result<(), ErrorDetail> {
        let mut reader = Reader { value, next: 0 };
        self.check_type(self.root, &mut reader)?;
        match value.len() - reader.next {
            0 => Ok(()),
            left => {
                let message = format!("{} left after the value", format_count(left, "byte"));
                Err(error(Code::TrailingBytes, message, reader.next))
            }
        }
    }

    fn check_type(&self, type_: usize, reader: &mut Reader<'_>) -> Result<(), ErrorDetail> {
        let start = reader.next;
        match &self.types[type_] {
            Type::Null => {}
            Type::Boolean => {
                let byte = reader.take(1, "a boolean")?[0];
                if byte > 1 {
                    return Err(error(Code::BadBool, format!("a boolean is {byte}, neither 0 nor 1"), start));
                }
            }
            Type::Int => {
                reader.int("an int")?;
            }
            Type::Long => {
                reader.long("a long")?;
            }
            Type::Fixed(size) => {
                reader.take(*size, "a fixed, float or double")?;
            }
            Type::Bytes => {
                reader.bytes()?;
            }
            Type::String => {
                let text = reader.bytes()?;
                if from_utf8(text).is_err() {
                    return Err(error(Code::ValueNotUtf8, "a string is not UTF-8", start));
                }
            }
            Type::Uuid => {
                if !is_uuid(reader.bytes()?) {
                    return Err(error(Code::BadText, "a string is not a UUID", start));
                }
            }
            Type::Time { is_long, end } => {
                let time = if *is_long { reader.long("a time")? } else { i64::from(reader.int("a time")?) };
                if !(0..*end).contains(&time) {
                    return Err(error(Code::OutOfRange, "a time is not on one day", start));
                }
            }
            Type::Decimal { precision, size } => {
                let digits = match size {
                    Some(size) => reader.take(*size, "a decimal")?,
                    None => reader.bytes()?,
                };
                if !fits(digits, *precision) {
                    let message = format!("a decimal has more than {}", format_count(*precision, "digit"));
                    return Err(error(Code::OutOfRange, message, start));
                }
            }
            Type::Duration => {
                let bytes = reader.take(12, "a duration")?;
                // Arrow's months and days are signed.
                if bytes[3] > 0x7f || bytes[7] > 0x7f {
                    return Err(error(Code::OutOfRange, "a duration has 2^31 months or days, or more", start));
                }
            }
            Type::Enum(symbols) => {
                let symbol = reader.int("an enum")?;
                if usize::try_from(symbol).map_or(true, |symbol| symbol >= *symbols) {
                    let has = format_count(*symbols, "symbol");
                    return Err(error(Code::OutOfRange, format!("an enum of {has} has symbol {symbol}"), start));
                }
            }
            Type::Union(branches) => {
                let branch = reader.long("a union")?;
                let Some(type_) = usize::try_from(branch).ok().and_then(|branch| branches.get(branch)) else {
                    let has = format_count(branches.len(), "type");
                    return Err(error(Code::UnknownType, format!("a union of {has} has type {branch}"), start));
                };
                self.check_type(*type_, reader)?;
            }
            Type::Record(fields) => {
                for field in fields {
                    self.check_type(*field, reader)?;
                }
            }
            Type::Array(item) => self.check_blocks(reader, |reader| self.check_type(*item, reader))?,
            Type::Map(value) => self.check_blocks(reader, |reader| {
                let start = reader.next;
                if from_utf8(reader.bytes()?).is_err() {
                    return Err(error(Code::KeyNotUtf8, "a key of a map is not UTF-8", start));
                }
                self.check_type(*value, reader)
            })?,
        }
        Ok(())
    }

    fn check_blocks(
        &self,
        reader: &mut Reader<'_>,
        mut check_item: impl FnMut(&mut Reader<'_>) -> Result<(), ErrorDetail>,
    ) -> Result<(), ErrorDetail> {
        loop {
            let start = reader.next;
            let count = reader.long("the count of a block")?;
            if count == 0 {
                return Ok(());
            }
            let size = if count < 0 { Some(reader.long("the size of a block")?) } else { None };
            let first = reader.next;
            // Every item has at least one byte, so the loop ends at the end of the value at the latest.
            for _ in 0..count.unsigned_abs() {
                check_item(reader)?;
            }
            if size.is_some_and(|size| u64::try_from(size) != Ok((reader.next - first) as u64)) {
                return Err(error(Code::WrongSize, "a block has another size than its items", start));
            }
        }
    }
}

struct Reader<'a> {
    value: &'a [u8],
    next: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize, what: &str) -> Result<&'a [u8], ErrorDetail> {
        let left = self.value.len() - self.next;
        if len > left {
            return Err(error(Code::Truncated, too_short(what, len, left), self.next));
        }
        let taken = &self.value[self.next..self.next + len];
        self.next += len;
        Ok(taken)
    }

    #[inline]
    fn long(&mut self, what: &str) -> Result<i64, ErrorDetail> {
        let rest = &self.value[self.next..];
        if let Some(&byte) = rest.first()
            && byte < 0x80
        {
            self.next += 1;
            return Ok(unzigzag_64(u64::from(byte)));
        }
        match read_64(rest) {
            ParsedVarint::Read { bits, len, lost: false } => {
                self.next += len;
                Ok(unzigzag_64(bits))
            }
            ParsedVarint::Truncated => Err(error(Code::Truncated, format!("{what} ends inside its varint"), self.next)),
            _ => Err(error(Code::OutOfRange, format!("{what} does not fit 64 bits"), self.next)),
        }
    }

    #[inline]
    fn int(&mut self, what: &str) -> Result<i32, ErrorDetail> {
        let start = self.next;
        let value = self.long(what)?;
        i32::try_from(value).map_err(|_| error(Code::OutOfRange, format!("{what} does not fit 32 bits"), start))
    }

    fn bytes(&mut self) -> Result<&'a [u8], ErrorDetail> {
        let start = self.next;
        let len = self.long("a length")?;
        if len < 0 {
            return Err(error(Code::NegativeLength, format!("length {len} is negative"), start));
        }
        self.take(usize::try_from(len).unwrap_or(usize::MAX), "a string or bytes")
    }
}

/// Whether a number in two's complement has at most this many digits.
fn fits(big_endian: &[u8], precision: usize) -> bool {
    let sign = if big_endian.first().is_some_and(|first| first & 0x80 != 0) { 0xff } else { 0 };
    let start = big_endian.iter().position(|byte| *byte != sign).unwrap_or(big_endian.len());
    let significant = &big_endian[start..];
    let is_wide = significant.len() == MAX_DECIMAL_BYTES && significant[0] & 0x80 != sign & 0x80;
    if significant.len() > MAX_DECIMAL_BYTES || is_wide {
        return false;
    }
    let mut bytes = [sign; MAX_DECIMAL_BYTES];
    bytes[MAX_DECIMAL_BYTES - significant.len()..].copy_from_slice(significant);
    let precision = u8::try_from(precision).unwrap_or(u8::MAX).min(DECIMAL256_MAX_PRECISION);
    precision > 0 && Decimal256Type::is_valid_decimal_precision(i256::from_be_bytes(bytes), precision)
}

struct Parser {
    types: Vec<Type>,
    /// Number of types in each expanded type, and the minimum number of bytes of a value.
    sizes: Vec<(usize, usize)>,
    /// Named types; `None` while the type itself is being parsed.
    names: HashMap<String, Option<usize>>,
}

impl Parser {
    fn parse(&mut self, schema: &Value, namespace: &str) -> Result<usize, Error> {
        match schema {
            Value::String(name) => self.named(name, namespace),
            Value::Array(branches) => {
                let branches = self.all(branches, namespace)?;
                if branches.is_empty() {
                    return Err(invalid("a union has no types"));
                }
                let types = self.count(&branches)?;
                let len = branches.iter().map(|branch| self.sizes[*branch].1).min().unwrap_or(0);
                Ok(self.add(Type::Union(branches), types, len.saturating_add(1)))
            }
            Value::Object(object) => self.object(object, namespace),
            _ => Err(invalid("a type is neither a name, a union nor an object")),
        }
    }

    fn all<'v>(&mut self, schemas: impl IntoIterator<Item = &'v Value>, namespace: &str) -> Result<Vec<usize>, Error> {
        schemas.into_iter().map(|schema| self.parse(schema, namespace)).collect()
    }

    fn add(&mut self, type_: Type, types: usize, len: usize) -> usize {
        self.types.push(type_);
        self.sizes.push((types, len));
        self.types.len() - 1
    }

    fn count(&self, types: &[usize]) -> Result<usize, Error> {
        let count = types.iter().fold(1, |count: usize, type_| count.saturating_add(self.sizes[*type_].0));
        if count > MAX_TYPES { Err(invalid("it has too many types")) } else { Ok(count) }
    }

    fn named(&mut self, name: &str, namespace: &str) -> Result<usize, Error> {
        let (type_, len) = match name {
            "null" => (Type::Null, 0),
            "boolean" => (Type::Boolean, 1),
            "int" => (Type::Int, 1),
            "long" => (Type::Long, 1),
            "float" => (Type::Fixed(4), 4),
            "double" => (Type::Fixed(8), 8),
            "bytes" => (Type::Bytes, 1),
            "string" => (Type::String, 1),
            _ => {
                let known = self.names.get(&full_name(name, namespace)).or_else(|| self.names.get(name));
                return match known {
                    Some(Some(type_)) => Ok(*type_),
                    Some(None) => Err(invalid("a type contains itself, which columns cannot")),
                    None => Err(invalid("it refers to a type that it does not define")),
                };
            }
        };
        Ok(self.add(type_, 1, len))
    }

    fn object(&mut self, object: &Map<String, Value>, namespace: &str) -> Result<usize, Error> {
        let text = |key: &str| object.get(key).and_then(Value::as_str);
        let Some(type_) = object.get("type") else { return Err(invalid("an object has no type")) };
        let logical = text("logicalType");
        let precision = || object.get("precision").and_then(Value::as_u64).and_then(|digits| digits.try_into().ok());
        let Some(name) = type_.as_str() else { return self.parse(type_, namespace) };
        match (name, logical) {
            ("int", Some("time-millis")) => Ok(self.add(Type::Time { is_long: false, end: MILLIS_OF_DAY }, 1, 1)),
            ("long", Some("time-micros")) => Ok(self.add(Type::Time { is_long: true, end: MICROS_OF_DAY }, 1, 1)),
            ("string", Some("uuid")) => Ok(self.add(Type::Uuid, 1, 1)),
            ("bytes", Some("decimal")) => match precision() {
                Some(precision) => Ok(self.add(Type::Decimal { precision, size: None }, 1, 1)),
                None => self.named(name, namespace),
            },
            ("array", _) => {
                let item =
                    self.parse(object.get("items").ok_or_else(|| invalid("an array has no items"))?, namespace)?;
                if self.sizes[item].1 == 0 {
                    return Err(invalid("the items of an array have no bytes"));
                }
                let types = self.count(&[item])?;
                Ok(self.add(Type::Array(item), types, 1))
            }
            ("map", _) => {
                let value =
                    self.parse(object.get("values").ok_or_else(|| invalid("a map has no values"))?, namespace)?;
                let types = self.count(&[value])?;
                Ok(self.add(Type::Map(value), types, 1))
            }
            ("record" | "error" | "enum" | "fixed", _) => {
                let own = text("name").ok_or_else(|| invalid("a record, enum or fixed has no name"))?;
                let full = match text("namespace") {
                    Some(space) => full_name(own, space),
                    None => full_name(own, namespace),
                };
                let namespace = full.rfind('.').map_or("", |dot| &full[..dot]).to_owned();
                if self.names.insert(full.clone(), None).is_some() {
                    return Err(invalid("it defines a type twice"));
                }
                let index = match name {
                    "enum" => {
                        let symbols = object.get("symbols").and_then(Value::as_array);
                        let symbols = symbols.ok_or_else(|| invalid("an enum has no symbols"))?.len();
                        self.add(Type::Enum(symbols), 1, 1)
                    }
                    "fixed" => {
                        let size = object.get("size").and_then(Value::as_u64).and_then(|size| size.try_into().ok());
                        let size: usize = size.ok_or_else(|| invalid("a fixed has no size"))?;
                        let type_ = match (logical, precision()) {
                            (Some("decimal"), Some(precision)) => Type::Decimal { precision, size: Some(size) },
                            (Some("duration"), _) if size == 12 => Type::Duration,
                            _ => Type::Fixed(size),
                        };
                        self.add(type_, 1, size)
                    }
                    _ => {
                        let fields = object.get("fields").and_then(Value::as_array);
                        let fields = fields.ok_or_else(|| invalid("a record has no fields"))?;
                        let types = fields.iter().map(|field| field.get("type"));
                        let types = types.collect::<Option<Vec<_>>>().ok_or_else(|| invalid("a field has no type"))?;
                        let fields = self.all(types, &namespace)?;
                        let types = self.count(&fields)?;
                        let len = fields.iter().fold(0, |len: usize, field| len.saturating_add(self.sizes[*field].1));
                        self.add(Type::Record(fields), types, len)
                    }
                };
                self.names.insert(full, Some(index));
                Ok(index)
            }
            _ => self.named(name, namespace),
        }
    }
}

fn full_name(name: &str, namespace: &str) -> String {
    if name.contains('.') || namespace.is_empty() { name.to_owned() } else { format!("{namespace}.{name}") }
}

/// Removes the logical type of UUIDs, so that they are read as text.
pub fn without_uuids(schema: &str) -> Result<String, Error> {
    fn remove(schema: &mut Value) {
        match schema {
            Value::Array(schemas) => schemas.iter_mut().for_each(remove),
            Value::Object(object) => {
                if object.get("type").is_some_and(|type_| type_ == "string") {
                    object.remove("logicalType");
                }
                // Defaults are values, not schemas.
                for key in ["type", "items", "values", "fields"] {
                    object.get_mut(key).map(remove);
                }
            }
            _ => {}
        }
    }
    let mut schema = serde_json::from_str(schema).map_err(|_| invalid("it is not JSON"))?;
    remove(&mut schema);
    Ok(schema.to_string())
}

fn invalid(reason: &str) -> Error {
    Error::Value(format!("the Avro schema cannot be used: {reason}"))
}

fn error(code: Code, message: impl Into<String>, byte: usize) -> ErrorDetail {
    ErrorDetail { byte: Some(byte), ..ErrorDetail::of_message(code, message) }
}
