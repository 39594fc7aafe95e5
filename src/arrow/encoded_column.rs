//! [`encode`] converts the values of a column to values of headers.

use std::ops::Range;

use arrow_array::Array;
use arrow_array::builder::BooleanBufferBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_buffer::{NullBuffer, ScalarBuffer};
use arrow_schema::{DataType, TimeUnit};
use memchr::memmem::Finder;

use super::input::{Bytes, ListInput, Texts};
use super::schema;
use crate::base_encoding::BaseEncoding;
use crate::charset::Charset;
use crate::encoding::{Encoding, decode_value, encode_value, in_range, is_integer, read_text};
use crate::error::{Code, Direction, Error, ErrorDetail, bad_length};
use crate::format_info::{Constraints, FormatInfo};
use crate::header::RequestedKey;
use crate::kernel::buffer::{BinaryValues, Values as _};
use crate::log::Result;
use crate::memory;
use crate::text_form::{TextForm, Unit, date_text, iso_text, time};
use crate::types::{Coding, Type};
use crate::value::{ByteOrder, InvalidValue, guid_order, invalid};
use crate::value_type::{Scalar, ValueType};

/// Type tag that a typed format stores with values of this type.
pub(super) fn stored_type(type_: Type, format: &FormatInfo) -> Result<Option<ValueType>, String> {
    if !matches!(type_.coding, Coding::Plain(_) | Coding::Guid | Coding::Text(_) | Coding::Charset(_)) {
        return Err("the type can be read, but not written".into());
    }
    if !format.types.is_typed() {
        return Ok(None);
    }
    let value_type = ValueType::Named(match type_.scalar {
        _ if type_.base.is_some() => Scalar::String,
        _ if matches!(type_.coding, Coding::Charset(_)) => Scalar::Binary,
        Scalar::Uuid => Scalar::Binary,
        Scalar::TimestampMs => Scalar::Int64,
        scalar => scalar,
    });
    match format.types.code(value_type) {
        Some(_) => Ok(Some(value_type)),
        None => Err(format!("the format has no values of type {}", value_type.name())),
    }
}

/// The values of a column, encoded as values of headers.
pub(super) struct EncodedColumn<'a> {
    pub value_type: Option<ValueType>,
    values: BinaryValues,
    /// Nulls, including the values in null lists.
    nulls: Option<NullBuffer>,
    /// The lists of the values, if the column has lists.
    lists: Option<ListInput<'a>>,
    /// Whether each value is a list, joined by a separator.
    is_joined: bool,
    offset: usize,
}

impl<'a> EncodedColumn<'a> {
    /// Joins the elements of each list with a separator.
    pub fn join(self, separator: &[u8], skips_nulls: bool, format: &FormatInfo) -> Result<EncodedColumn<'a>, Failed> {
        let Some(lists) = self.lists else { return Ok(self) };
        let (mut values, mut joined, mut has_value) = (BinaryValues::default(), Vec::new(), Vec::new());
        let separators = Finder::new(separator);
        for row in 0..lists.array().len() {
            joined.clear();
            let mut is_first = true;
            for index in self.values_of(row) {
                let failed = |code, message: &str| Err(Failed::Value(row, invalid(code, || message.into())));
                match self.get(index) {
                    None if skips_nulls => continue,
                    None => return failed(Code::NullNotCarried, "an element is null: pass nulls=\"skip\""),
                    Some(value) if separators.find(value).is_some() => {
                        return failed(Code::BadText, "an element has the text of split= in it");
                    }
                    Some(value) => {
                        memory::extend(&mut joined, if is_first { &[] } else { separator });
                        memory::extend(&mut joined, value);
                        is_first = false;
                    }
                }
            }
            values.push(&joined);
            memory::push(&mut has_value, !is_first);
        }
        let nulls = Some(NullBuffer::from(has_value));
        let joined = EncodedColumn { values, nulls, is_joined: true, offset: 0, ..self };
        joined.check_lengths(format.constraints)?;
        Ok(joined)
    }

    /// Rejects values that are longer than the format allows.
    fn check_lengths(&self, constraints: Constraints) -> Result<(), Failed> {
        let range = self.offset..self.offset + self.values.count();
        let bad_len = |index: usize| self.get(index).map(<[u8]>::len).filter(|len| !constraints.fits(*len));
        let Some((index, len)) = range.into_iter().find_map(|index| Some((index, bad_len(index)?))) else {
            return Ok(());
        };
        let (code, message) = bad_length("value", len, constraints.part_len.1);
        let row = if self.is_joined { index } else { row_of(self.lists, index) };
        Err(Failed::Value(row, invalid(code, || message)))
    }

    /// Range of the values of a row.
    pub fn values_of(&self, row: usize) -> Range<usize> {
        match self.lists {
            Some(_) if self.is_joined && self.get(row).is_none() => 0..0,
            Some(_) if self.is_joined => row..row + 1,
            None => row..row + 1,
            Some(lists) => lists.get(row).unwrap_or_default(),
        }
    }

    pub fn get(&self, index: usize) -> Option<&[u8]> {
        let is_null = self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(index));
        (!is_null).then(|| self.values.get(index - self.offset))
    }
}

/// Nulls of values. Values in null lists are null, too.
fn nulls_of(values: &dyn Array, lists: Option<ListInput<'_>>) -> Option<NullBuffer> {
    let Some(lists) = lists.filter(|lists| lists.array().null_count() > 0) else { return values.nulls().cloned() };
    memory::probe(values.len() / 4);
    let mut in_lists = BooleanBufferBuilder::new(values.len());
    in_lists.append_n(values.len(), false);
    let elements = (0..lists.array().len()).filter_map(|row| lists.get(row));
    elements.flatten().for_each(|index| in_lists.set_bit(index, true));
    NullBuffer::union(values.nulls(), Some(&NullBuffer::new(in_lists.finish())))
}

/// Reason why a column cannot be encoded.
pub(super) enum Failed {
    /// The values cannot be written from the type of the column.
    Type(String),
    /// The value of this row is invalid.
    Value(usize, Box<InvalidValue>),
}

impl Failed {
    pub fn into_error(self, key: &RequestedKey, format: &FormatInfo, rows_before: usize) -> Error {
        match self {
            Failed::Type(message) => Error::Type(format!("header {key}: {message}")),
            Failed::Value(row, error) => {
                let detail = ErrorDetail {
                    key: Some(key.to_string()),
                    ..ErrorDetail::of_message(error.code, format!("header {key}: {}", error.message))
                };
                detail.into_error(Direction::Encode, format.name, Some(rows_before + row))
            }
        }
    }
}

/// Encodes all values of a column.
pub(super) fn encode<'a>(
    column: &'a dyn Array,
    type_: Type,
    format: &FormatInfo,
    is_list: bool,
    truncates: bool,
) -> Result<EncodedColumn<'a>, Failed> {
    let lists = ListInput::of(column).filter(|_| is_list);
    if is_list && lists.is_none() {
        let actual = schema::type_name(column.data_type());
        return Err(Failed::Type(format!("the column is {actual}, and array<...> is written from lists")));
    }
    let array: &dyn Array = lists.map_or(column, |lists| lists.values().as_ref());
    let range = lists.map_or(0..array.len(), ListInput::element_range);
    let value_type = stored_type(type_, format).map_err(Failed::Type)?;
    // A typed format has only one encoding for each of its types. The requested byte order applies to a UUID, which
    // such a format stores as bytes, and to bytes that are written as text.
    let has_own = matches!(value_type, None | Some(ValueType::Named(Scalar::Binary))) || type_.base.is_some();
    let encoding = match type_.coding {
        Coding::Plain(encoding) if has_own => encoding,
        _ => Encoding::Bytes(ByteOrder::Big),
    };
    let (offset, nulls) = (range.start, nulls_of(array, lists));
    let mut writer =
        ValueWriter { type_, scalar: type_.scalar, encoding, truncates, nulls, values: BinaryValues::default() };
    writer.values.reserve(range.len(), range.len() * type_.scalar.width().unwrap_or(16));
    let written = match type_.coding {
        Coding::Text(form) => writer.write_form(form, array, range),
        Coding::Charset(charset) => writer.write_charset(charset, array, range),
        _ => writer.write_all(array, range),
    };
    written.map_err(|failed| match failed {
        Failed::Value(index, error) => Failed::Value(row_of(lists, index), error),
        failed => failed,
    })?;
    let ValueWriter { mut values, nulls, .. } = writer;
    if let Some(base) = type_.base {
        values = in_base(base, &values);
    }
    let encoded = EncodedColumn { value_type, values, nulls, lists, is_joined: false, offset };
    encoded.check_lengths(format.constraints)?;
    Ok(encoded)
}

/// Encodes each value as text.
fn in_base(base: BaseEncoding, values: &BinaryValues) -> BinaryValues {
    let (mut texts, mut text) = (BinaryValues::default(), Vec::new());
    for index in 0..values.count() {
        text.clear();
        base.write(values.get(index), &mut text);
        texts.push(&text);
    }
    texts
}

/// Row of a value.
fn row_of(lists: Option<ListInput<'_>>, index: usize) -> usize {
    let Some(lists) = lists else { return index };
    let has_index = |row: &usize| lists.get(*row).is_some_and(|elements| elements.contains(&index));
    (0..lists.array().len()).find(has_index).unwrap_or_default()
}

/// Encodes values of a column.
struct ValueWriter {
    type_: Type,
    scalar: Scalar,
    encoding: Encoding,
    truncates: bool,
    nulls: Option<NullBuffer>,
    values: BinaryValues,
}

impl ValueWriter {
    fn is_null(&self, index: usize) -> bool {
        self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(index))
    }

    fn write_all(&mut self, array: &dyn Array, range: Range<usize>) -> Result<(), Failed> {
        use DataType as D;
        let scalar = self.scalar;
        if scalar == Scalar::TimestampMs {
            return self.times(array, range);
        }
        if is_integer(scalar) {
            let number = match array.data_type() {
                D::Int8 => integers::<Int8Type>(array),
                D::Int16 => integers::<Int16Type>(array),
                D::Int32 => integers::<Int32Type>(array),
                D::Int64 => integers::<Int64Type>(array),
                D::UInt8 => integers::<UInt8Type>(array),
                D::UInt16 => integers::<UInt16Type>(array),
                D::UInt32 => integers::<UInt32Type>(array),
                D::UInt64 => integers::<UInt64Type>(array),
                D::Decimal128(_, 0) => integers::<Decimal128Type>(array),
                _ => return Err(self.mismatch(array)),
            };
            let width = scalar.width().unwrap_or(16);
            return self.each(range, width, &|index| {
                let number = number(index);
                in_range(scalar, number).map(|_| number as u128)
            });
        }
        match (scalar, array.data_type()) {
            (Scalar::Bool, D::Boolean) => {
                let flags = array.as_boolean();
                self.each(range, 1, &|index| Ok(flags.value(index).into()))
            }
            (Scalar::Float32, D::Float32) => {
                let numbers = array.as_primitive::<Float32Type>();
                self.each(range, 4, &|index| Ok(numbers.value(index).to_bits().into()))
            }
            (Scalar::Float64, D::Float32) => {
                let numbers = array.as_primitive::<Float32Type>();
                self.each(range, 8, &|index| Ok(f64::from(numbers.value(index)).to_bits().into()))
            }
            (Scalar::Float64, D::Float64) => {
                let numbers = array.as_primitive::<Float64Type>();
                self.each(range, 8, &|index| Ok(numbers.value(index).to_bits().into()))
            }
            (Scalar::Binary, D::Binary | D::LargeBinary | D::BinaryView) => {
                let bytes = Bytes::of(array).ok_or_else(|| self.mismatch(array))?;
                for index in range {
                    let value = bytes.get(index).filter(|_| !self.is_null(index));
                    self.values.push(value.unwrap_or_default());
                }
                Ok(())
            }
            (Scalar::Uuid, D::FixedSizeBinary(16)) => {
                let (bytes, is_guid) = (array.as_fixed_size_binary(), self.type_.coding == Coding::Guid);
                self.each(range, 16, &|index| {
                    let bytes = bytes.value(index).try_into();
                    let bytes = bytes.map_err(|_| invalid(Code::WrongSize, || "a UUID has 16 bytes".into()))?;
                    Ok(u128::from_be_bytes(if is_guid { guid_order(bytes) } else { bytes }))
                })
            }
            (Scalar::String | Scalar::Char | Scalar::Uuid, _) => {
                let texts = Texts::of(array).ok_or_else(|| self.mismatch(array))?;
                let value_type = ValueType::Named(scalar);
                for index in range {
                    let text = texts.get(index).filter(|_| !self.is_null(index)).map(str::as_bytes);
                    let Some(text) = text.filter(|_| scalar != Scalar::String) else {
                        self.values.push(text.unwrap_or_default());
                        continue;
                    };
                    let failed = |error| Failed::Value(index, error);
                    read_text(scalar, text).map_err(failed)?;
                    let bits = decode_value(value_type, text, Encoding::Text).map_err(failed)?;
                    let bits = self.type_.in_order(bits);
                    let bytes = encode_value(value_type, &bits, self.encoding).map_err(failed)?;
                    self.values.push(&bytes);
                }
                Ok(())
            }
            _ => Err(self.mismatch(array)),
        }
    }

    fn without_zone(&self) -> Failed {
        let (name, remedy) =
            (self.type_.name(), "give it one, as pyarrow.compute.assume_timezone(column, \"UTC\") does");
        Failed::Type(format!("the column has times without a time zone, and {name} is a point in time: {remedy}"))
    }

    fn mismatch(&self, array: &dyn Array) -> Failed {
        let (actual, name) = (schema::type_name(array.data_type()), self.type_.name());
        Failed::Type(format!("the column is {actual}, and {name} cannot be written from it"))
    }

    /// Writes values in a text form.
    fn write_form(&mut self, form: TextForm, array: &dyn Array, range: Range<usize>) -> Result<(), Failed> {
        use DataType as D;
        let (type_, truncates) = (self.type_, self.truncates);
        let time = |nanos: i128| match form {
            TextForm::Epoch(unit) => {
                time(nanos, Unit::Second)?;
                check_rest(nanos.rem_euclid(unit.nanos()) != 0 && !truncates, type_)?;
                Ok(nanos.div_euclid(unit.nanos()).to_string())
            }
            _ => iso_text(nanos),
        };
        match (form, array.data_type()) {
            (TextForm::Iso | TextForm::Epoch(_), D::Timestamp(..)) => {
                let (ticks, unit) = self.ticks(array)?;
                self.texts(range, &|index| time(i128::from(ticks[index]) * unit.nanos()))
            }
            (TextForm::Date, D::Date32) => {
                let days = array.as_primitive::<Date32Type>();
                self.texts(range, &|index| date_text(days.value(index)))
            }
            (TextForm::Decimal(decimal), D::Decimal128(_, scale)) => {
                let (numbers, scale) = (array.as_primitive::<Decimal128Type>(), *scale);
                self.texts(range, &|index| decimal.write(numbers.value(index), scale, truncates))
            }
            _ => Err(self.mismatch(array)),
        }
    }

    /// Writes text in another character set.
    fn write_charset(&mut self, charset: Charset, array: &dyn Array, range: Range<usize>) -> Result<(), Failed> {
        let texts = Texts::of(array).ok_or_else(|| self.mismatch(array))?;
        let mut bytes = Vec::new();
        for index in range {
            bytes.clear();
            let text = texts.get(index).filter(|_| !self.is_null(index)).unwrap_or_default();
            charset.write(text, &mut bytes).map_err(|error| Failed::Value(index, error))?;
            self.values.push(&bytes);
        }
        Ok(())
    }

    /// Writes the text of each non-null value.
    fn texts(
        &mut self,
        range: Range<usize>,
        text: &dyn Fn(usize) -> Result<String, Box<InvalidValue>>,
    ) -> Result<(), Failed> {
        for index in range {
            match self.is_null(index) {
                true => self.values.push(&[]),
                false => self.values.push(text(index).map_err(|error| Failed::Value(index, error))?.as_bytes()),
            }
        }
        Ok(())
    }

    /// Numbers in a column of times, and their unit.
    fn ticks(&self, array: &dyn Array) -> Result<(ScalarBuffer<i64>, Unit), Failed> {
        let unit = match array.data_type() {
            DataType::Timestamp(_, None) => return Err(self.without_zone()),
            DataType::Timestamp(TimeUnit::Second, _) => Unit::Second,
            DataType::Timestamp(TimeUnit::Millisecond, _) => Unit::Millisecond,
            DataType::Timestamp(TimeUnit::Microsecond, _) => Unit::Microsecond,
            DataType::Timestamp(TimeUnit::Nanosecond, _) => Unit::Nanosecond,
            _ => return Err(self.mismatch(array)),
        };
        let data = array.to_data();
        Ok((ScalarBuffer::new(data.buffers()[0].clone(), data.offset(), data.len()), unit))
    }

    /// Writes times as milliseconds.
    fn times(&mut self, array: &dyn Array, range: Range<usize>) -> Result<(), Failed> {
        let ((ticks, unit), type_, truncates) = (self.ticks(array)?, self.type_, self.truncates);
        let (factor, divisor) = match unit {
            Unit::Second => (1000, 1),
            Unit::Millisecond => (1, 1),
            Unit::Microsecond => (1, 1000),
            Unit::Nanosecond => (1, 1_000_000),
        };
        self.each(range, 8, &|index| {
            let time = ticks[index];
            check_rest(time.rem_euclid(divisor) != 0 && !truncates, type_)?;
            let millis = time.div_euclid(divisor).checked_mul(factor);
            let too_large = || invalid(Code::OutOfRange, || "the time does not fit 64 bits of milliseconds".into());
            millis.map(|millis| millis as u128).ok_or_else(too_large)
        })
    }

    /// Writes the last `width` bytes of each value. `bits` is called only for non-null values.
    fn each(
        &mut self,
        range: Range<usize>,
        width: usize,
        bits: &dyn Fn(usize) -> Result<u128, Box<InvalidValue>>,
    ) -> Result<(), Failed> {
        let value_type = ValueType::Named(self.scalar);
        for index in range {
            if self.is_null(index) {
                self.values.push(&[]);
                continue;
            }
            let failed = |error| Failed::Value(index, error);
            let bits = bits(index).map_err(failed)?;
            let bytes = &bits.to_be_bytes()[16 - width..];
            match self.encoding {
                Encoding::Bytes(ByteOrder::Big) => self.values.push(bytes),
                Encoding::Bytes(ByteOrder::Little) => self.values.push(&bits.to_le_bytes()[..width]),
                Encoding::Text => {
                    let text = encode_value(value_type, bytes, Encoding::Text);
                    self.values.push(&text.map_err(failed)?);
                }
            }
        }
        Ok(())
    }
}

/// Returns a function that reads the integers of a column.
fn integers<'a, T: ArrowPrimitiveType>(array: &'a dyn Array) -> Box<dyn Fn(usize) -> i128 + 'a>
where
    i128: TryFrom<T::Native>,
{
    let numbers = array.as_primitive::<T>();
    Box::new(|index| i128::try_from(numbers.value(index)).unwrap_or_default())
}

/// Rejects a time with more digits than its type holds.
fn check_rest(has_rest: bool, type_: Type) -> Result<(), Box<InvalidValue>> {
    match has_rest {
        true => Err(invalid(Code::OutOfRange, || {
            let name = type_.name();
            format!("the time has more decimals than {name}: pass \"timestamp:iso\", or truncate=True to cut them off")
        })),
        false => Ok(()),
    }
}
