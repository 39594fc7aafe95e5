//! Arrow types of columns for each value type, and the conversion of values to them.

use std::borrow::Cow;

use arrow_schema::{DataType, TimeUnit};

use crate::amqp;
use crate::base_encoding::BaseEncoding;
use crate::connect;
use crate::encoding::{Encoding, contains_integers, in_range, is_integer, read_text, read_varlen};
use crate::error::{Code, Error};
use crate::json;
use crate::text_form::TextForm;
use crate::types::{Coding, Type};
use crate::value::{ByteOrder, InvalidValue, Value, guid_order, invalid, read_bytes, read_fixed, uuid_digits};
use crate::value_type::{Scalar, ValueType};

/// Engine that reads a typed column. Spark lacks unsigned and 128-bit integers, and has times in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Dialect {
    #[default]
    Arrow,
    Spark,
}

/// Maximum precision of a decimal column.
pub const DECIMAL_PRECISION: u8 = 38;

impl Scalar {
    /// The Arrow type of a column of these values.
    pub fn arrow(self, dialect: Dialect) -> DataType {
        use Scalar::*;
        match (self, dialect) {
            (Bool, _) => DataType::Boolean,
            (Int8, _) => DataType::Int8,
            (Int16, _) | (Uint8, Dialect::Spark) => DataType::Int16,
            (Int32, _) | (Uint16, Dialect::Spark) => DataType::Int32,
            (Int64, _) | (Uint32, Dialect::Spark) => DataType::Int64,
            (Uint8, Dialect::Arrow) => DataType::UInt8,
            (Uint16, Dialect::Arrow) => DataType::UInt16,
            (Uint32, Dialect::Arrow) => DataType::UInt32,
            (Uint64, Dialect::Arrow) => DataType::UInt64,
            (Uint64, Dialect::Spark) => DataType::Decimal128(20, 0),
            (Int128 | Uint128, _) => DataType::Decimal128(DECIMAL_PRECISION, 0),
            (Float32, _) => DataType::Float32,
            (Float64, _) => DataType::Float64,
            (Char | String | Uuid, _) => DataType::Utf8,
            (Binary, _) => DataType::Binary,
            (TimestampMs, Dialect::Arrow) => timestamp(TimeUnit::Millisecond),
            (TimestampMs, Dialect::Spark) => timestamp(TimeUnit::Microsecond),
        }
    }
}

fn timestamp(unit: TimeUnit) -> DataType {
    DataType::Timestamp(unit, Some("UTC".into()))
}

/// Parses types separated by ` | `, which are tried in order. The types must have a [`common_type`].
pub fn parse_alternatives(text: &str) -> Result<(Type, Vec<Type>), Error> {
    let types = text.split('|').map(|type_| Type::parse(type_.trim_matches(' '))).collect::<Result<Vec<_>, _>>()?;
    let arrow = |type_: &Type| type_.arrow(Dialect::Spark);
    if common_type(&types, Dialect::Spark).is_none()
        && let Some(other) = types.iter().map(arrow).find(|other| *other != arrow(&types[0]))
    {
        let message = format!("type '{text}': the types return {} and {}", ddl(&arrow(&types[0])), ddl(&other));
        return Err(Error::Value(format!("{message}, which no column has both: name types of the same values")));
    }
    Ok((types[0], types[1..].to_vec()))
}

/// Arrow type of a column for values of several types: the smallest integer or float type that holds all of them, or
/// microseconds for times. `None` if no column can hold all of them.
pub fn common_type(types: &[Type], dialect: Dialect) -> Option<DataType> {
    let (first, others) = types.split_first()?;
    if others.iter().all(|other| other.arrow(dialect) == first.arrow(dialect)) {
        return Some(first.arrow(dialect));
    }
    if let Some(scalar) = common_number(types) {
        return Some(scalar.arrow(dialect));
    }
    let same = |type_: &Type| type_.arrow(Dialect::Spark) == first.arrow(Dialect::Spark);
    types.iter().all(same).then(|| first.arrow(Dialect::Spark))
}

/// The smallest number type that holds the values of several types; `None` if one of them is not a number.
pub fn common_number(types: &[Type]) -> Option<Scalar> {
    let is_number = |type_: &Type| !matches!(type_.coding, Coding::Text(_)) && type_.scalar != Scalar::TimestampMs;
    let are = |test: fn(Scalar) -> bool| types.iter().all(|type_| is_number(type_) && test(type_.scalar));
    if are(is_integer) {
        let holds = |wide: &&Scalar| types.iter().all(|type_| contains_integers(**wide, type_.scalar));
        let integers = Scalar::ALL.iter().filter(|scalar| is_integer(**scalar) && **scalar != Scalar::TimestampMs);
        return integers.min_by_key(|wide| (!holds(wide), wide.width())).filter(holds).copied();
    }
    match are(|scalar| matches!(scalar, Scalar::Float32 | Scalar::Float64)) {
        true => types.iter().map(|type_| type_.scalar).max_by_key(|scalar| scalar.width()),
        false => None,
    }
}

impl Type {
    /// The Arrow type of a column of these values.
    pub fn arrow(self, dialect: Dialect) -> DataType {
        let Coding::Text(form) = self.coding else { return self.scalar.arrow(dialect) };
        match form {
            TextForm::Iso | TextForm::Epoch(_) => timestamp(TimeUnit::Microsecond),
            TextForm::Date => DataType::Date32,
            TextForm::Decimal(decimal) => DataType::Decimal128(decimal.precision, decimal.scale as i8),
        }
    }

    /// Parses the bytes of a value; `None` is a null of AMQP or JSON.
    #[inline]
    pub fn read<'a>(self, bytes: &'a [u8], dialect: Dialect) -> Result<Option<Value<'a>>, Box<InvalidValue>> {
        if let Some(base) = self.base {
            return self.read_base(base, bytes, dialect);
        }
        let value = match self.coding {
            Coding::Plain(Encoding::Bytes(order)) => read_bytes(self.scalar, order, bytes)?,
            Coding::Plain(Encoding::Text) => read_text(self.scalar, bytes)?,
            Coding::Guid => {
                let digits = uuid_digits(guid_order(read_fixed(self.scalar, ByteOrder::Big, bytes)?));
                Value::Text(Cow::Owned(digits.iter().map(|digit| char::from(*digit)).collect()))
            }
            Coding::Any | Coding::Exists | Coding::Every => Value::Bytes(Cow::Borrowed(bytes)),
            Coding::Text(form) => return form.read(bytes).map(Some),
            Coding::Charset(charset) => Value::Text(Cow::Owned(charset.read(bytes)?)),
            Coding::Varlen => read_varlen(self.scalar, bytes)?,
            Coding::Json => match json::read(self.scalar, bytes)? {
                Some(value) => value,
                None => return Ok(None),
            },
            Coding::Connect => return self.read_connect(bytes, dialect),
            Coding::Amqp => return self.read_amqp(bytes, dialect),
        };
        self.fit(value, dialect).map(Some)
    }

    /// Parses a value from the text encoding of its bytes. Errors within these bytes have no position in the text.
    #[inline(never)]
    fn read_base<'a>(
        self,
        base: BaseEncoding,
        text: &[u8],
        dialect: Dialect,
    ) -> Result<Option<Value<'a>>, Box<InvalidValue>> {
        let bytes = base.read(text)?;
        if let (Scalar::Binary, Coding::Plain(_)) = (self.scalar, self.coding) {
            return Ok(Some(Value::Bytes(Cow::Owned(bytes))));
        }
        match (Type { base: None, ..self }).read(&bytes, dialect) {
            Ok(value) => Ok(value.map(Value::into_owned)),
            Err(invalid) => Err(Box::new(InvalidValue { byte: 0, ..*invalid })),
        }
    }

    /// Reads a value with or without a type; `order` is the byte order of typed numbers. With `is_strict`, values of
    /// other types are rejected even if they fit.
    #[inline]
    pub fn read_stored<'a>(
        self,
        value_type: Option<ValueType>,
        order: ByteOrder,
        bytes: &'a [u8],
        dialect: Dialect,
        is_strict: bool,
    ) -> Result<Option<Value<'a>>, Box<InvalidValue>> {
        match value_type {
            None => self.read(bytes, dialect),
            Some(value_type) if self.accepts(value_type) => self.under(value_type, order).read(bytes, dialect),
            Some(ValueType::Named(stored)) if !is_strict && self.is_wider(stored) => {
                self.read_wider(stored, order, bytes, dialect).map(Some)
            }
            Some(value_type) => Err(self.wrong_type(&value_type.name())),
        }
    }

    #[cold]
    fn wrong_type(self, stored: &str) -> Box<InvalidValue> {
        invalid(Code::WrongType, || format!("the value is {stored} and {} was requested", self.name()))
    }

    /// Reads a value of a type that [`Type::is_wider`] accepts; a value that does not fit is an error.
    pub fn read_wider<'a>(
        self,
        stored: Scalar,
        order: ByteOrder,
        bytes: &'a [u8],
        dialect: Dialect,
    ) -> Result<Value<'a>, Box<InvalidValue>> {
        if self.scalar == Scalar::Binary {
            return Ok(Value::Bytes(Cow::Borrowed(bytes)));
        }
        self.widen(read_bytes(stored, order, bytes)?, dialect)
    }

    /// Converts a value of a type that [`Type::is_wider`] accepts to this type.
    fn widen(self, value: Value<'_>, dialect: Dialect) -> Result<Value<'_>, Box<InvalidValue>> {
        let value = match (self.scalar, value) {
            (Scalar::Float64, Value::Float32(number)) => Value::Float64(number.into()),
            (Scalar::Float32, value) => Value::Float32(exact_float(self.scalar, value, 1 << 24)? as f32),
            (Scalar::Float64, value) => Value::Float64(exact_float(self.scalar, value, 1 << 53)? as f64),
            (scalar, Value::Int(number)) => in_range(scalar, number.into())?,
            (scalar, Value::Wide(number)) => in_range(scalar, number)?,
            (_, value) => value,
        };
        self.fit(value, dialect)
    }

    fn read_connect<'a>(self, bytes: &'a [u8], dialect: Dialect) -> Result<Option<Value<'a>>, Box<InvalidValue>> {
        let Some((stored, value)) = connect::read(bytes)? else { return Ok(None) };
        let value = match (self.scalar, value) {
            (Scalar::Binary, Value::Text(text)) => Value::Bytes(Cow::Owned(text.into_owned().into_bytes())),
            (Scalar::Uuid | Scalar::Char, Value::Text(text)) => read_text(self.scalar, text.as_bytes())?.into_owned(),
            (scalar, value) if scalar == stored => value,
            (Scalar::TimestampMs, value) if stored == Scalar::Int64 => value,
            (_, value) if self.is_wider(stored) => return self.widen(value, dialect).map(Some),
            _ => return Err(self.wrong_type(stored.name())),
        };
        self.fit(value, dialect).map(Some)
    }

    fn read_amqp<'a>(self, bytes: &'a [u8], dialect: Dialect) -> Result<Option<Value<'a>>, Box<InvalidValue>> {
        match amqp::read(self.scalar, bytes)? {
            Some(value) => self.fit(value, dialect).map(Some).map_err(|invalid| invalid.shift(1)),
            None => Ok(None),
        }
    }

    /// Checks that an integer fits its column.
    #[inline]
    fn fit(self, value: Value<'_>, dialect: Dialect) -> Result<Value<'_>, Box<InvalidValue>> {
        match value {
            Value::Wide(number) if number.unsigned_abs() >= 10u128.pow(u32::from(DECIMAL_PRECISION)) => {
                Err(invalid(Code::OutOfRange, || "the number has more than 38 digits".into()))
            }
            Value::Int(millis) if self.scalar == Scalar::TimestampMs && dialect == Dialect::Spark => {
                match millis.checked_mul(1000) {
                    Some(micros) => Ok(Value::Int(micros)),
                    None => Err(invalid(Code::OutOfRange, || "the time does not fit 64 bits of microseconds".into())),
                }
            }
            value => Ok(value),
        }
    }
}

/// Returns an integer that is exact as a float, because it is at most `max`.
fn exact_float(scalar: Scalar, value: Value<'_>, max: i128) -> Result<i128, Box<InvalidValue>> {
    match value {
        Value::Int(number) if i128::from(number).abs() <= max => Ok(number.into()),
        Value::Wide(number) if (-max..=max).contains(&number) => Ok(number),
        _ => Err(invalid(Code::OutOfRange, || format!("the number has no exact {}", scalar.name()))),
    }
}

/// The DDL of Spark for the type of an Arrow column.
pub fn ddl(data_type: &DataType) -> String {
    match data_type {
        DataType::Boolean => "boolean".into(),
        DataType::Int8 => "tinyint".into(),
        DataType::Int16 => "smallint".into(),
        DataType::Int32 => "int".into(),
        DataType::Int64 => "bigint".into(),
        DataType::Float32 => "float".into(),
        DataType::Float64 => "double".into(),
        DataType::Utf8 => "string".into(),
        DataType::Binary => "binary".into(),
        DataType::Date32 => "date".into(),
        DataType::Decimal128(precision, scale) => format!("decimal({precision},{scale})"),
        DataType::Timestamp(TimeUnit::Microsecond, Some(_)) => "timestamp".into(),
        DataType::List(element) => format!("array<{}>", ddl(element.data_type())),
        DataType::Struct(fields) => {
            let fields: Vec<_> = fields.iter().map(|f| format!("{}:{}", quote(f.name()), ddl(f.data_type()))).collect();
            format!("struct<{}>", fields.join(","))
        }
        // Spark has no such type.
        other => format!("void /* {other} */"),
    }
}

/// Quotes a name for Spark's DDL if necessary.
pub fn quote(name: &str) -> String {
    let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if plain && !name.starts_with(|c: char| c.is_ascii_digit()) && !name.is_empty() {
        name.to_string()
    } else {
        format!("`{}`", name.replace('`', "``"))
    }
}

#[cfg(test)]
#[path = "../../tests/rust/units/arrow_types.rs"]
mod tests;
