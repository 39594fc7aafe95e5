//! [`Column`]: a growing column of values, lists or structs, which can be rolled back to an earlier length.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::builder::BooleanBufferBuilder;
use arrow_array::{ArrayRef, BooleanArray, StructArray, make_array};
use arrow_buffer::{ArrowNativeType, Buffer, NullBuffer};
use arrow_data::ArrayData;
use arrow_schema::DataType;

use super::binary::{self, ViewInput};
use super::lists::Lists;
use crate::field::FieldValue;
use crate::kernel::ROWS;
use crate::kernel::bitmap::Validity;
use crate::kernel::buffer::{BinaryValues, Progress, Utf8, Values as _};
use crate::kernel::scan::{self, RawValue};
use crate::kernel::views::Views;
use crate::memory;
use crate::number::fitting;
use crate::value::{ByteOrder, Value};
use crate::value_type::Scalar;

/// The values of a growing column.
pub enum Data {
    Bool(BooleanBufferBuilder),
    Int8(Vec<i8>),
    Int16(Vec<i16>),
    Int32(Vec<i32>),
    Int64(Vec<i64>),
    Uint8(Vec<u8>),
    Uint16(Vec<u16>),
    Uint32(Vec<u32>),
    Uint64(Vec<u64>),
    Decimal(Vec<i128>),
    Float32(Vec<f32>),
    Float64(Vec<f64>),
    Text(Utf8<BinaryValues>),
    Bytes(BinaryValues),
    TextViews(Utf8<Views>),
    ByteViews(Views),
    /// Lists and their elements.
    List(Lists, Box<Column>),
    /// A column for each field. The validity of the last column counts the structs.
    Struct(Vec<Column>),
}

/// Matches data with one body for vectors of numbers of any type, and arms for other variants.
macro_rules! match_data {
    ($data:expr, $numbers:pat => $body:expr, $($rest:tt)*) => {
        match $data {
            Data::Int8($numbers) => $body,
            Data::Int16($numbers) => $body,
            Data::Int32($numbers) => $body,
            Data::Int64($numbers) => $body,
            Data::Uint8($numbers) => $body,
            Data::Uint16($numbers) => $body,
            Data::Uint32($numbers) => $body,
            Data::Uint64($numbers) => $body,
            Data::Decimal($numbers) => $body,
            Data::Float32($numbers) => $body,
            Data::Float64($numbers) => $body,
            $($rest)*
        }
    };
}

/// A growing column of one type.
pub struct Column {
    data_type: DataType,
    data: Data,
    valid: Validity,
    /// The buffers that views refer to.
    input: ViewInput,
}

impl Column {
    /// Creates an empty column of a type that `Type::arrow` returns, or of the views of that type.
    pub fn new(data_type: DataType, input: &ViewInput) -> Self {
        let data = match &data_type {
            DataType::Boolean => Data::Bool(BooleanBufferBuilder::new(0)),
            DataType::Int8 => Data::Int8(Vec::new()),
            DataType::Int16 => Data::Int16(Vec::new()),
            DataType::Int32 | DataType::Date32 => Data::Int32(Vec::new()),
            DataType::Int64 | DataType::Timestamp(..) => Data::Int64(Vec::new()),
            DataType::UInt8 => Data::Uint8(Vec::new()),
            DataType::UInt16 => Data::Uint16(Vec::new()),
            DataType::UInt32 => Data::Uint32(Vec::new()),
            DataType::UInt64 => Data::Uint64(Vec::new()),
            DataType::Decimal128(..) => Data::Decimal(Vec::new()),
            DataType::Float32 => Data::Float32(Vec::new()),
            DataType::Float64 => Data::Float64(Vec::new()),
            DataType::Utf8 => Data::Text(Utf8::default()),
            DataType::Binary => Data::Bytes(BinaryValues::default()),
            DataType::Utf8View => Data::TextViews(input.text_views()),
            DataType::BinaryView => Data::ByteViews(input.views()),
            DataType::List(element) => {
                Data::List(Lists::default(), Box::new(Column::new(element.data_type().clone(), input)))
            }
            DataType::Struct(fields) => {
                Data::Struct(fields.iter().map(|field| Column::new(field.data_type().clone(), input)).collect())
            }
            other => unreachable!("no scalar has the type {other}"),
        };
        Column { data_type, data, valid: Validity::default(), input: input.clone() }
    }

    #[inline]
    pub fn count(&self) -> usize {
        match &self.data {
            Data::Struct(fields) => fields.last().map_or(0, |field| field.valid.count()),
            _ => self.valid.count(),
        }
    }

    /// Largest offset so far; 0 for columns without offsets.
    #[inline]
    pub fn max_offset(&self) -> usize {
        match &self.data {
            Data::Text(texts) => texts.byte_len(),
            Data::Bytes(binaries) => binaries.byte_len(),
            Data::TextViews(views) => views.byte_len(),
            Data::ByteViews(views) => views.byte_len(),
            Data::List(_, elements) => elements.max_offset().max(elements.count()),
            Data::Struct(fields) => fields.iter().map(Column::max_offset).max().unwrap_or(0),
            _ => 0,
        }
    }

    /// The offsets of the lists, the first of which is 0, and their elements; `None` for other columns.
    #[inline]
    pub fn lists(&self) -> Option<(&[i32], &Column)> {
        match &self.data {
            Data::List(lists, elements) => Some((&lists.0, elements)),
            _ => None,
        }
    }

    /// The lists, their validity, and their elements.
    #[inline]
    fn lists_mut(&mut self) -> (&mut Lists, &mut Validity, &mut Column) {
        match &mut self.data {
            Data::List(lists, elements) => (lists, &mut self.valid, elements),
            _ => no_value_of(&self.data_type),
        }
    }

    /// Elements of the lists, or the column itself if it has no lists.
    #[inline]
    pub fn values(&self) -> &Column {
        self.lists().map_or(self, |(_, elements)| elements)
    }

    /// Mutable access to [`Column::values`].
    #[inline]
    pub fn values_mut(&mut self) -> &mut Column {
        match self.data {
            Data::List(..) => self.lists_mut().2,
            _ => self,
        }
    }

    /// The columns of the fields of structs.
    #[inline]
    pub fn fields_mut(&mut self) -> &mut [Column] {
        match &mut self.data {
            Data::Struct(fields) => fields,
            _ => no_value_of(&self.data_type),
        }
    }

    /// Ends a list after the current elements.
    #[inline]
    pub fn end_list(&mut self, is_valid: bool) {
        let (lists, valid, elements) = self.lists_mut();
        lists.push(elements.count());
        valid.push(is_valid);
    }

    /// Appends null lists.
    pub fn push_null_lists(&mut self, rows: usize) {
        let (lists, valid, elements) = self.lists_mut();
        lists.push_empty(elements.count(), rows);
        for first in (0..rows).step_by(64) {
            valid.push_word(0, 64.min(rows - first));
        }
    }

    /// The values of a binary column, and their validity.
    #[inline]
    pub fn bytes_mut(&mut self) -> (&mut BinaryValues, &mut Validity) {
        match &mut self.data {
            Data::Bytes(binaries) => (binaries, &mut self.valid),
            _ => no_value_of(&self.data_type),
        }
    }

    pub fn parts(&self) -> (&Data, &Validity) {
        (&self.data, &self.valid)
    }

    /// Values and their validity, for appending many values of one type.
    pub fn parts_mut(&mut self) -> (&mut Data, &mut Validity) {
        (&mut self.data, &mut self.valid)
    }

    /// Appends a value of the column's type, whose range was checked when it was parsed. Lists and structs are null.
    #[inline]
    pub fn push(&mut self, value: Option<Value<'_>>) {
        let Column { data_type, data, valid, .. } = self;
        valid.push(value.is_some());
        /// Value of this variant, or the default value for a null.
        macro_rules! variant {
            ($variant:ident) => {
                match &value {
                    Some(Value::$variant(value)) => value,
                    None => Default::default(),
                    Some(_) => no_value_of(data_type),
                }
            };
            ($variant:ident bytes) => {
                match &value {
                    Some(Value::$variant(value)) => value,
                    None => &[][..],
                    Some(_) => no_value_of(data_type),
                }
            };
            ($variant:ident copied) => {
                match value {
                    Some(Value::$variant(value)) => value,
                    None => Default::default(),
                    Some(_) => no_value_of(data_type),
                }
            };
        }
        match data {
            Data::Bool(bits) => {
                reserve_bits(bits, 1);
                bits.append(variant!(Bool copied));
            }
            Data::Int8(numbers) => memory::push(numbers, fitting(variant!(Int copied))),
            Data::Int16(numbers) => memory::push(numbers, fitting(variant!(Int copied))),
            Data::Int32(numbers) => memory::push(numbers, fitting(variant!(Int copied))),
            Data::Int64(numbers) => memory::push(numbers, variant!(Int copied)),
            Data::Uint8(numbers) => memory::push(numbers, fitting(variant!(Int copied))),
            Data::Uint16(numbers) => memory::push(numbers, fitting(variant!(Int copied))),
            Data::Uint32(numbers) => memory::push(numbers, fitting(variant!(Int copied))),
            Data::Uint64(numbers) => memory::push(numbers, fitting(variant!(Wide copied))),
            Data::Decimal(numbers) => memory::push(numbers, variant!(Wide copied)),
            Data::Float32(numbers) => memory::push(numbers, variant!(Float32 copied)),
            Data::Float64(numbers) => memory::push(numbers, variant!(Float64 copied)),
            Data::Text(texts) => texts.push(variant!(Text)),
            Data::Bytes(binaries) => binaries.push(variant!(Bytes bytes)),
            Data::TextViews(views) => views.push(variant!(Text)),
            Data::ByteViews(views) => views.push(variant!(Bytes bytes)),
            Data::List(lists, elements) => lists.push(elements.count()),
            Data::Struct(fields) => fields.iter_mut().for_each(|field| field.push(None)),
        }
    }

    /// Converts a number to the wider type of this column.
    pub fn widen<'v>(&self, value: Value<'v>) -> Value<'v> {
        match (value, &self.data) {
            (Value::Int(number), Data::Decimal(_) | Data::Uint64(_)) => Value::Wide(number.into()),
            (Value::Float32(number), Data::Float64(_)) => Value::Float64(number.into()),
            (value, _) => value,
        }
    }

    /// Whether correctly sized bytes of a value of this type can be copied into this column.
    pub fn takes_bytes_of(&self, scalar: Scalar) -> bool {
        matches!(
            (scalar, &self.data),
            (Scalar::Int8, Data::Int8(_))
                | (Scalar::Int16, Data::Int16(_))
                | (Scalar::Int32, Data::Int32(_))
                | (Scalar::Int64, Data::Int64(_))
                | (Scalar::Float32, Data::Float32(_))
                | (Scalar::Float64, Data::Float64(_))
                | (Scalar::String, Data::Text(_) | Data::TextViews(_))
                | (Scalar::Binary, Data::Bytes(_) | Data::ByteViews(_))
        )
    }

    /// Copies the bytes of values, up to the first whose size or text is invalid; returns the number of values. Values
    /// that were not found are null.
    pub fn push_raw(&mut self, values: &[RawValue<'_>], order: ByteOrder, progress: Progress) -> usize {
        assert!(values.len() <= ROWS);
        let mut valid = 0u64;
        let mut done = 0;
        macro_rules! numbers {
            ($numbers:ident, $type:ty) => {{
                let mut read = [<$type>::default(); ROWS];
                for (index, value) in values.iter().enumerate() {
                    if let Some(bytes) = value.bytes() {
                        let Ok(bytes) = bytes.try_into() else { break };
                        valid |= 1 << index;
                        read[index] = match order {
                            ByteOrder::Big => <$type>::from_be_bytes(bytes),
                            ByteOrder::Little => <$type>::from_le_bytes(bytes),
                        };
                    }
                    done = index + 1;
                }
                memory::extend($numbers, &read[..done]);
            }};
        }
        match &mut self.data {
            Data::Int8(numbers) => numbers!(numbers, i8),
            Data::Int16(numbers) => numbers!(numbers, i16),
            Data::Int32(numbers) => numbers!(numbers, i32),
            Data::Int64(numbers) => numbers!(numbers, i64),
            Data::Float32(numbers) => numbers!(numbers, f32),
            Data::Float64(numbers) => numbers!(numbers, f64),
            Data::Text(texts) => (valid, done) = scan::append_text(values, progress, texts),
            Data::Bytes(binaries) => (valid, done) = (scan::append(values, progress, binaries), values.len()),
            Data::TextViews(views) => (valid, done) = scan::append_text_views(values, views),
            Data::ByteViews(views) => (valid, done) = (scan::append_views(values, views), values.len()),
            _ => no_value_of(&self.data_type),
        }
        self.valid.push_word(valid, done);
        done
    }

    /// Appends fields of messages, in a loop for the column's type.
    pub fn push_fields<'f>(
        &mut self,
        fields: impl ExactSizeIterator<Item = FieldValue<'f>> + Clone,
        progress: Progress,
    ) {
        let (first, count, valid) = (self.valid.count(), fields.len(), &mut self.valid);
        valid.push_all(count);
        let mut null = |index| valid.clear(first + index);
        /// Value of each field, which has this variant or is null.
        macro_rules! values {
            ($pattern:pat => $value:expr; $null:expr) => {
                fields.enumerate().map(|(index, field)| match field {
                    $pattern => $value,
                    FieldValue::Null => {
                        null(index);
                        $null
                    }
                    _ => no_value_of(&self.data_type),
                })
            };
        }
        macro_rules! numbers {
            ($numbers:ident, $pattern:pat => $value:expr) => {{
                progress.reserve($numbers, count);
                $numbers.extend(values!($pattern => $value; 0));
            }};
        }
        let byte_len = || fields.clone().map(|field| field.byte_len()).sum();
        match &mut self.data {
            Data::Bool(bits) => {
                reserve_bits(bits, count);
                values!(FieldValue::Bool(flag) => flag; false).for_each(|flag| bits.append(flag));
            }
            Data::Int8(numbers) => numbers!(numbers, FieldValue::Int64(number) => fitting(number)),
            Data::Int64(numbers) => numbers!(numbers, FieldValue::Int64(number) => number),
            Data::Decimal(numbers) => numbers!(numbers, FieldValue::Uint64(number) => number.into()),
            Data::Text(texts) => values!(FieldValue::Text(text) => text; "").for_each(|text| texts.push(text)),
            Data::Bytes(binaries) => {
                binaries.reserve_rest(count, byte_len(), progress);
                fields.enumerate().for_each(|(index, field)| match field {
                    FieldValue::Binary(bytes) => binaries.push(bytes),
                    FieldValue::Id(id) => binaries.push(&id),
                    FieldValue::Null => {
                        null(index);
                        binaries.push(&[]);
                    }
                    _ => no_value_of(&self.data_type),
                });
            }
            _ => unreachable!("no field of a message has the type {}", self.data_type),
        }
    }

    /// Appends the rows of another column of the same type.
    pub fn extend(&mut self, other: &Column, progress: Progress) {
        macro_rules! same_type {
            ($($variant:ident)*) => {
                match (&mut self.data, &other.data) {
                    $((Data::$variant(numbers), Data::$variant(others)) => {
                        progress.reserve(numbers, others.len());
                        numbers.extend_from_slice(others);
                    })*
                    (Data::Bool(bits), Data::Bool(others)) => {
                        reserve_bits(bits, others.len());
                        bits.append_packed_range(0..others.len(), others.as_slice());
                    }
                    (Data::Text(texts), Data::Text(others)) => texts.extend(others, progress),
                    (Data::Bytes(binaries), Data::Bytes(others)) => binaries.extend(others, progress),
                    (Data::TextViews(views), Data::TextViews(others)) => views.extend(others, progress),
                    (Data::ByteViews(views), Data::ByteViews(others)) => views.extend(others, progress),
                    (Data::List(lists, elements), Data::List(other_lists, others)) => {
                        lists.extend(other_lists, elements.count(), progress);
                        elements.extend(others, progress);
                    }
                    (Data::Struct(fields), Data::Struct(others)) => {
                        fields.iter_mut().zip(others).for_each(|(field, other)| field.extend(other, progress));
                    }
                    _ => unreachable!("columns of one output have one type"),
                }
            };
        }
        same_type!(Int8 Int16 Int32 Int64 Uint8 Uint16 Uint32 Uint64 Decimal Float32 Float64);
        self.valid.extend(&other.valid);
    }

    /// Truncates to an earlier length.
    pub fn truncate(&mut self, len: usize) {
        self.valid.truncate(len);
        match_data! { &mut self.data,
            numbers => numbers.truncate(len),
            Data::Bool(bits) => bits.truncate(len),
            Data::Text(texts) => texts.truncate(len),
            Data::Bytes(binaries) => binaries.truncate(len),
            Data::TextViews(views) => views.truncate(len),
            Data::ByteViews(views) => views.truncate(len),
            Data::List(lists, elements) => elements.truncate(lists.truncate(len)),
            Data::Struct(fields) => fields.iter_mut().for_each(|field| field.truncate(len)),
        }
    }

    /// Removes the rows from `from` on, except those in the given ranges, which are sorted and disjoint.
    pub fn retain(&mut self, from: usize, kept: &[Range<usize>]) {
        match &mut self.data {
            Data::Text(texts) => texts.retain(from, kept),
            Data::Bytes(binaries) => binaries.retain(from, kept),
            _ => unreachable!("messages of batches have no views, and no keys that are numbers"),
        }
        self.valid.retain(from, kept);
    }

    pub fn finish(self) -> ArrayRef {
        let nulls = binary::nulls(self.valid);
        match_data! { self.data,
            numbers => primitive(numbers, nulls, self.data_type),
            Data::Bool(mut bits) => Arc::new(BooleanArray::new(bits.finish(), nulls)),
            Data::Text(texts) => binary::text(texts, nulls),
            Data::Bytes(binaries) => binary::binary(binaries, nulls),
            Data::TextViews(views) => self.input.text(views, nulls),
            Data::ByteViews(views) => self.input.binary(views, nulls),
            Data::List(lists, elements) => {
                let DataType::List(element) = self.data_type else { no_value_of(&self.data_type) };
                lists.finish(element, elements.finish(), nulls)
            }
            Data::Struct(fields) => {
                let DataType::Struct(types) = self.data_type else { no_value_of(&self.data_type) };
                Arc::new(StructArray::new(types, fields.into_iter().map(Column::finish).collect(), None))
            }
        }
    }
}

/// Reserves memory for bits, because `arrow-buffer` would abort the process on failure.
#[inline]
fn reserve_bits(bits: &mut BooleanBufferBuilder, more: usize) {
    if bits.capacity() - bits.len() < more {
        memory::probe((2 * bits.capacity()).max(bits.len() + more) / 8);
        bits.reserve(more);
    }
}

#[cold]
fn no_value_of(data_type: &DataType) -> ! {
    unreachable!("a value of another type than {data_type}")
}

pub fn value_of<'f>(field: &'f FieldValue<'f>) -> Option<Value<'f>> {
    match field {
        FieldValue::Null => None,
        FieldValue::Bool(flag) => Some(Value::Bool(*flag)),
        FieldValue::Int64(number) => Some(Value::Int(*number)),
        FieldValue::Uint64(number) => Some(Value::Wide((*number).into())),
        FieldValue::Text(text) => Some(Value::Text(Cow::Borrowed(text))),
        FieldValue::Binary(bytes) => Some(Value::Bytes(Cow::Borrowed(bytes))),
        FieldValue::Id(id) => Some(Value::Bytes(Cow::Borrowed(id))),
    }
}

fn primitive<T: ArrowNativeType>(numbers: Vec<T>, nulls: Option<NullBuffer>, data_type: DataType) -> ArrayRef {
    let data = ArrayData::builder(data_type).len(numbers.len()).nulls(nulls).add_buffer(Buffer::from_vec(numbers));
    make_array(data.build().expect("the type of a column is that of its numbers"))
}

#[cfg(test)]
#[path = "../../tests/rust/units/arrow_column.rs"]
mod tests;
