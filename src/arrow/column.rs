//! Growing columns that can be rolled back to an earlier length.

use std::sync::Arc;

use arrow_array::builder::BooleanBufferBuilder;
use arrow_array::types::{
    ArrowPrimitiveType, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimestampMicrosecondType, TimestampMillisecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{ArrayRef, BinaryArray, BooleanArray, PrimitiveArray, StringArray};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, TimeUnit};

use crate::value::Value;

/// Runs of bytes behind offsets.
pub struct Runs {
    offsets: Vec<i32>,
    bytes: Vec<u8>,
}

impl Runs {
    pub fn with_capacity(bytes: usize) -> Self {
        Runs { offsets: vec![0], bytes: Vec::with_capacity(bytes) }
    }

    #[inline]
    pub fn push(&mut self, run: &[u8]) {
        self.bytes.extend_from_slice(run);
        // A row that passes the largest offset is aborted before anyone reads what this wrapped to.
        self.offsets.push(self.bytes.len() as i32);
    }

    /// Ends a run whose bytes were written through `bytes_mut`.
    #[inline]
    pub fn end_run(&mut self) {
        self.offsets.push(self.bytes.len() as i32);
    }

    pub fn bytes_mut(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    #[inline]
    pub fn count(&self) -> usize {
        self.offsets.len() - 1
    }

    #[inline]
    pub fn byte_len(&self) -> usize {
        self.bytes.len()
    }

    /// Back to this many runs, which held this many bytes.
    #[inline]
    pub fn truncate(&mut self, runs: usize, bytes: usize) {
        self.offsets.truncate(runs + 1);
        self.bytes.truncate(bytes);
    }

    fn parts(mut self) -> (OffsetBuffer<i32>, Buffer) {
        self.bytes.shrink_to_fit();
        (OffsetBuffer::new(ScalarBuffer::from(self.offsets)), Buffer::from_vec(self.bytes))
    }

    /// The runs as text; they were validated one by one, and are validated here once more as a whole.
    pub fn finish_text(self, nulls: Option<NullBuffer>) -> ArrayRef {
        let (offsets, bytes) = self.parts();
        Arc::new(StringArray::new(offsets, bytes, nulls))
    }

    pub fn finish_bytes(self, nulls: Option<NullBuffer>) -> ArrayRef {
        let (offsets, bytes) = self.parts();
        Arc::new(BinaryArray::new(offsets, bytes, nulls))
    }
}

/// Which places of a growing column hold a value. Until the first null there is nothing to remember but a length.
#[derive(Default)]
pub struct Validity {
    count: usize,
    nulls: usize,
    /// A bit for every place, the first in the lowest bit, once there was a null.
    bits: Option<Vec<u8>>,
}

impl Validity {
    #[inline]
    pub fn push(&mut self, valid: bool) {
        if !valid && self.bits.is_none() {
            self.bits = Some(all_ones(self.count));
        }
        if let Some(bits) = &mut self.bits {
            match bits.last_mut() {
                Some(last) if !self.count.is_multiple_of(8) => *last |= u8::from(valid) << (self.count % 8),
                _ => bits.push(u8::from(valid)),
            }
            self.nulls += usize::from(!valid);
        }
        self.count += 1;
    }

    #[inline]
    pub fn count(&self) -> usize {
        self.count
    }

    pub fn truncate(&mut self, count: usize) {
        let count = count.min(self.count);
        if let Some(bits) = &mut self.bits {
            self.nulls -= (count..self.count).filter(|place| bits[place / 8] >> (place % 8) & 1 == 0).count();
            bits.truncate(count.div_ceil(8));
            if let (Some(last), 1..) = (bits.last_mut(), count % 8) {
                *last &= (1 << (count % 8)) - 1;
            }
        }
        self.count = count;
    }

    pub fn finish(self) -> Option<NullBuffer> {
        let bits = self.bits.filter(|_| self.nulls > 0)?;
        Some(NullBuffer::new(BooleanBuffer::new(Buffer::from_vec(bits), 0, self.count)))
    }
}

/// So many set bits, and no others.
fn all_ones(count: usize) -> Vec<u8> {
    let mut bits = vec![0xff; count.div_ceil(8)];
    if let (Some(last), 1..) = (bits.last_mut(), count % 8) {
        *last = (1 << (count % 8)) - 1;
    }
    bits
}

enum Data {
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
    Text(Runs),
    Bytes(Runs),
}

/// A growing column of values of one type.
pub struct Column {
    of: DataType,
    data: Data,
    valid: Validity,
}

impl Column {
    /// An empty column of a type that `Scalar::arrow` gives.
    pub fn new(of: DataType) -> Self {
        let data = match &of {
            DataType::Boolean => Data::Bool(BooleanBufferBuilder::new(0)),
            DataType::Int8 => Data::Int8(Vec::new()),
            DataType::Int16 => Data::Int16(Vec::new()),
            DataType::Int32 => Data::Int32(Vec::new()),
            DataType::Int64 | DataType::Timestamp(..) => Data::Int64(Vec::new()),
            DataType::UInt8 => Data::Uint8(Vec::new()),
            DataType::UInt16 => Data::Uint16(Vec::new()),
            DataType::UInt32 => Data::Uint32(Vec::new()),
            DataType::UInt64 => Data::Uint64(Vec::new()),
            DataType::Decimal128(..) => Data::Decimal(Vec::new()),
            DataType::Float32 => Data::Float32(Vec::new()),
            DataType::Float64 => Data::Float64(Vec::new()),
            DataType::Utf8 => Data::Text(Runs::with_capacity(0)),
            DataType::Binary => Data::Bytes(Runs::with_capacity(0)),
            other => unreachable!("no scalar has the type {other}"),
        };
        Column { of, data, valid: Validity::default() }
    }

    #[inline]
    pub fn count(&self) -> usize {
        self.valid.count()
    }

    /// Bytes behind offsets; 0 where there are no offsets.
    #[inline]
    pub fn byte_len(&self) -> usize {
        match &self.data {
            Data::Text(runs) | Data::Bytes(runs) => runs.byte_len(),
            _ => 0,
        }
    }

    /// Appends a value of this column's type, whose range was checked when it was read.
    #[inline]
    pub fn push(&mut self, value: Option<Value<'_>>) {
        self.valid.push(value.is_some());
        let int = if let Some(Value::Int(number)) = value { number } else { 0 };
        let wide = if let Some(Value::Wide(number)) = value { number } else { 0 };
        match &mut self.data {
            Data::Bool(bits) => bits.append(matches!(value, Some(Value::Bool(true)))),
            Data::Int8(numbers) => numbers.push(int as i8),
            Data::Int16(numbers) => numbers.push(int as i16),
            Data::Int32(numbers) => numbers.push(int as i32),
            Data::Int64(numbers) => numbers.push(int),
            Data::Uint8(numbers) => numbers.push(int as u8),
            Data::Uint16(numbers) => numbers.push(int as u16),
            Data::Uint32(numbers) => numbers.push(int as u32),
            Data::Uint64(numbers) => numbers.push(wide as u64),
            Data::Decimal(numbers) => numbers.push(wide),
            Data::Float32(numbers) => numbers.push(if let Some(Value::Float32(number)) = value { number } else { 0.0 }),
            Data::Float64(numbers) => numbers.push(if let Some(Value::Float64(number)) = value { number } else { 0.0 }),
            Data::Text(runs) => runs.push(if let Some(Value::Text(text)) = &value { text.as_bytes() } else { &[] }),
            Data::Bytes(runs) => runs.push(if let Some(Value::Bytes(bytes)) = value { bytes } else { &[] }),
        }
    }

    /// Back to an earlier length, with the bytes it had then.
    pub fn truncate(&mut self, len: usize, bytes: usize) {
        self.valid.truncate(len);
        match &mut self.data {
            Data::Bool(bits) => bits.truncate(len),
            Data::Int8(numbers) => numbers.truncate(len),
            Data::Int16(numbers) => numbers.truncate(len),
            Data::Int32(numbers) => numbers.truncate(len),
            Data::Int64(numbers) => numbers.truncate(len),
            Data::Uint8(numbers) => numbers.truncate(len),
            Data::Uint16(numbers) => numbers.truncate(len),
            Data::Uint32(numbers) => numbers.truncate(len),
            Data::Uint64(numbers) => numbers.truncate(len),
            Data::Decimal(numbers) => numbers.truncate(len),
            Data::Float32(numbers) => numbers.truncate(len),
            Data::Float64(numbers) => numbers.truncate(len),
            Data::Text(runs) | Data::Bytes(runs) => runs.truncate(len, bytes),
        }
    }

    pub fn finish(self) -> ArrayRef {
        let nulls = self.valid.finish();
        match (self.data, &self.of) {
            (Data::Bool(mut bits), _) => Arc::new(BooleanArray::new(bits.finish(), nulls)),
            (Data::Int64(numbers), DataType::Timestamp(TimeUnit::Millisecond, _)) => {
                primitive::<TimestampMillisecondType>(numbers, nulls, &self.of)
            }
            (Data::Int64(numbers), DataType::Timestamp(..)) => {
                primitive::<TimestampMicrosecondType>(numbers, nulls, &self.of)
            }
            (Data::Int8(numbers), of) => primitive::<Int8Type>(numbers, nulls, of),
            (Data::Int16(numbers), of) => primitive::<Int16Type>(numbers, nulls, of),
            (Data::Int32(numbers), of) => primitive::<Int32Type>(numbers, nulls, of),
            (Data::Int64(numbers), of) => primitive::<Int64Type>(numbers, nulls, of),
            (Data::Uint8(numbers), of) => primitive::<UInt8Type>(numbers, nulls, of),
            (Data::Uint16(numbers), of) => primitive::<UInt16Type>(numbers, nulls, of),
            (Data::Uint32(numbers), of) => primitive::<UInt32Type>(numbers, nulls, of),
            (Data::Uint64(numbers), of) => primitive::<UInt64Type>(numbers, nulls, of),
            (Data::Decimal(numbers), of) => primitive::<Decimal128Type>(numbers, nulls, of),
            (Data::Float32(numbers), of) => primitive::<Float32Type>(numbers, nulls, of),
            (Data::Float64(numbers), of) => primitive::<Float64Type>(numbers, nulls, of),
            (Data::Text(runs), _) => runs.finish_text(nulls),
            (Data::Bytes(runs), _) => runs.finish_bytes(nulls),
        }
    }
}

fn primitive<T: ArrowPrimitiveType>(numbers: Vec<T::Native>, nulls: Option<NullBuffer>, of: &DataType) -> ArrayRef {
    Arc::new(PrimitiveArray::<T>::new(ScalarBuffer::from(numbers), nulls).with_data_type(of.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn validity_rolls_back_to_any_length() {
        for first_null in 0..20 {
            for cut in 0..=30 {
                let (mut rolled, mut straight) = (Validity::default(), Validity::default());
                let valid = |place: usize| place != first_null && place % 7 != 3;
                (0..30).for_each(|place| rolled.push(valid(place)));
                rolled.truncate(cut);
                (cut..30).for_each(|place| rolled.push(valid(place)));
                (0..30).for_each(|place| straight.push(valid(place)));
                assert_eq!(rolled.finish(), straight.finish(), "{first_null} {cut}");
            }
        }
    }

    #[test]
    fn without_a_null_there_is_no_bitmap() {
        let mut valid = Validity::default();
        (0..9).for_each(|_| valid.push(true));
        valid.push(false);
        valid.truncate(9);
        assert_eq!((valid.count(), valid.finish()), (9, None));
    }
}
