//! Growing columns that can be rolled back to an earlier length.

use std::sync::Arc;
use std::{ptr, slice};

use arrow_array::builder::BooleanBufferBuilder;
use arrow_array::types::{
    ArrowPrimitiveType, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimestampMicrosecondType, TimestampMillisecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{ArrayRef, BinaryArray, BooleanArray, PrimitiveArray, StringArray};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, TimeUnit};

use super::sink::Share;
use super::source::Source;
use crate::chunk::{Run, WIDE, is_ascii};
use crate::header::Text;
use crate::kind::Scalar;
use crate::pen::Pen;
use crate::value::{ByteOrder, Value};

/// Runs of bytes behind offsets.
pub struct Runs {
    offsets: Vec<i32>,
    bytes: Vec<u8>,
}

impl Default for Runs {
    fn default() -> Self {
        Runs { offsets: vec![0], bytes: Vec::new() }
    }
}

impl Runs {
    /// Makes room for what will come, which cannot be more than `most` bytes.
    pub fn expect(&mut self, share: Share, most: usize) {
        reserve(&mut self.offsets, share, most);
        reserve(&mut self.bytes, share, most + WIDE);
    }

    #[inline]
    pub fn push(&mut self, run: &[u8]) {
        self.bytes.extend_from_slice(run);
        // A row that passes the largest offset is aborted before anyone reads what this wrapped to.
        self.offsets.push(self.bytes.len() as i32);
    }

    /// A run that may lie in the source.
    #[inline(always)]
    pub fn push_from<const N: usize>(&mut self, source: Source<'_>, run: &[u8]) {
        match source.chunk::<N>(run) {
            Some(chunk) if run.len() <= N => {
                self.push_start(chunk, run.len());
                self.end_run();
            }
            _ => self.push(run),
        }
    }

    /// A run of at most as many bytes as the array has.
    #[inline]
    pub fn push_padded<const N: usize>(&mut self, (bytes, len): ([u8; N], usize)) {
        self.push_start(&bytes, len);
        self.end_run();
    }

    /// A run whose bytes come last first, and which may lie in the source.
    #[inline(always)]
    pub fn push_reversed(&mut self, source: Source<'_>, run: &[u8]) {
        const BYTES: usize = size_of::<u128>();
        match source.chunk(run) {
            Some(chunk) if (1..=BYTES).contains(&run.len()) => {
                // The first byte becomes the last that counts; what came too much is pushed out at the other end.
                let number = u128::from_le_bytes(*chunk) << (8 * (BYTES - run.len()));
                self.push_start(&number.to_be_bytes(), run.len());
            }
            _ => self.bytes.extend(run.iter().rev()),
        }
        self.end_run();
    }

    /// The first bytes of an array, all of which are copied: a size that is known costs less than one that fits.
    #[inline(always)]
    fn push_start<const N: usize>(&mut self, bytes: &[u8; N], len: usize) {
        assert!(len <= N);
        self.bytes.reserve(N);
        let end = self.bytes.len() + len;
        // SAFETY: there is room for the whole array, and the part that is kept was written.
        unsafe {
            ptr::copy_nonoverlapping(bytes.as_ptr(), self.bytes.as_mut_ptr().add(self.bytes.len()), N);
            self.bytes.set_len(end);
        }
    }

    /// The end of the runs, for many that are pushed without a look at the room for each.
    #[inline(always)]
    pub fn tail(&mut self) -> Tail<'_> {
        let (count, room) = (self.offsets.len(), self.offsets.capacity());
        Tail { at: self.offsets.as_mut_ptr(), count, room, offsets: &mut self.offsets, pen: Pen::new(&mut self.bytes) }
    }

    /// Where runs end, and their bytes, for whoever writes both.
    #[inline(always)]
    pub fn parts_mut(&mut self) -> (&mut Vec<i32>, &mut Vec<u8>) {
        (&mut self.offsets, &mut self.bytes)
    }

    /// Ends a run whose bytes were written, through `bytes_mut` or here.
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

    /// Back to this many runs, and to no bytes of another one.
    pub fn truncate(&mut self, runs: usize) {
        self.offsets.truncate(runs + 1);
        // Of the runs that stay none passes the largest offset.
        let end = self.offsets.last().map_or(0, |end| *end as usize);
        self.bytes.truncate(end);
    }

    fn parts(mut self) -> (OffsetBuffer<i32>, Buffer) {
        give_back(&mut self.bytes);
        give_back(&mut self.offsets);
        debug_assert!(self.offsets[0] == 0 && self.offsets.is_sorted());
        // SAFETY: the offsets begin with 0 and are lengths of what only grew between them.
        let offsets = unsafe { OffsetBuffer::new_unchecked(ScalarBuffer::from(self.offsets)) };
        (offsets, Buffer::from_vec(self.bytes))
    }

    /// The runs as text, each of which was seen to be UTF-8.
    pub fn finish_text(self, nulls: Option<NullBuffer>) -> ArrayRef {
        let (offsets, bytes) = self.parts();
        debug_assert!(StringArray::try_new(offsets.clone(), bytes.clone(), nulls.clone()).is_ok());
        // SAFETY: every run was seen to be UTF-8 before it was pushed, and the last offset is the number of bytes.
        Arc::new(unsafe { StringArray::new_unchecked(offsets, bytes, nulls) })
    }

    pub fn finish_bytes(self, nulls: Option<NullBuffer>) -> ArrayRef {
        let (offsets, bytes) = self.parts();
        Arc::new(BinaryArray::new(offsets, bytes, nulls))
    }
}

/// The end of growing runs. What was pushed is of the runs when it is dropped.
pub struct Tail<'r> {
    offsets: &'r mut Vec<i32>,
    /// Where the offsets begin, how many there are, and how many there may be.
    at: *mut i32,
    count: usize,
    room: usize,
    pen: Pen<'r>,
}

/// How long a tail was before the row at hand.
#[derive(Clone, Copy)]
pub struct TailMark {
    count: usize,
    bytes: usize,
}

impl Tail<'_> {
    /// Makes room for so many runs more, of so many bytes together.
    #[inline(always)]
    pub fn reserve(&mut self, runs: usize, bytes: usize) {
        self.pen.reserve(bytes);
        if self.count + runs > self.room {
            self.grow(runs);
        }
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, runs: usize) {
        // SAFETY: so many were written.
        unsafe { self.offsets.set_len(self.count) };
        self.offsets.reserve(runs);
        (self.at, self.room) = (self.offsets.as_mut_ptr(), self.offsets.capacity());
    }

    /// How many runs there are.
    #[inline(always)]
    pub fn count(&self) -> usize {
        self.count - 1
    }

    /// How many bytes they have together.
    #[inline(always)]
    pub fn byte_len(&self) -> usize {
        self.pen.byte_len()
    }

    #[inline(always)]
    pub fn mark(&self) -> TailMark {
        TailMark { count: self.count, bytes: self.pen.byte_len() }
    }

    /// Back to where it was.
    pub fn back_to(&mut self, mark: TailMark) {
        self.count = self.count.min(mark.count);
        self.pen.truncate(mark.bytes);
    }

    pub fn bytes_since(&self, mark: TailMark) -> usize {
        self.pen.byte_len() - mark.bytes
    }

    /// Whether each run from there on is UTF-8: together they are, and none begins inside a character.
    #[inline(never)]
    pub fn are_text_since(&self, mark: TailMark) -> bool {
        let bytes = self.pen.written(mark.bytes);
        if bytes.is_ascii() {
            return true;
        }
        let begins = |end: &i32| bytes.get(*end as usize - mark.bytes).is_none_or(|byte| byte & 0xc0 != 0x80);
        simdutf8::basic::from_utf8(bytes).is_ok() && self.ends(mark.count - 1).iter().all(begins)
    }

    /// Where the runs end, from one of them on.
    fn ends(&self, from: usize) -> &[i32] {
        // SAFETY: so many were written.
        unsafe { slice::from_raw_parts(self.at.add(from), self.count - from) }
    }

    /// Appends a run; of a short one, a chunk is copied, whose rest is written over.
    ///
    /// # Safety
    ///
    /// Room was made for one run more and for its bytes.
    #[inline(always)]
    pub unsafe fn push(&mut self, run: Run<'_>) {
        // SAFETY: as for this function.
        unsafe {
            self.pen.run(run);
            self.push_empty();
        }
    }

    /// Appends a run without bytes.
    ///
    /// # Safety
    ///
    /// Room was made for one run more.
    #[inline(always)]
    pub unsafe fn push_empty(&mut self) {
        debug_assert!(self.count < self.offsets.capacity());
        // SAFETY: the room is behind what was written. What wraps is aborted, as in `Runs::push`.
        unsafe { self.at.add(self.count).write(self.pen.byte_len() as i32) };
        self.count += 1;
    }
}

impl Drop for Tail<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: so many were written.
        unsafe { self.offsets.set_len(self.count) };
    }
}

/// Makes room for what will come, which cannot be more than `most`.
pub fn reserve<T>(column: &mut Vec<T>, share: Share, most: usize) {
    let in_the_end = share.in_the_end(column.len()).min(most);
    // Where there is not so much memory, there may be enough for what really comes.
    let _ = column.try_reserve_exact(in_the_end.saturating_sub(column.len()));
}

/// Gives memory back that was not needed, if it is worth the copy.
fn give_back<T>(column: &mut Vec<T>) {
    if column.capacity() / 4 * 3 > column.len() {
        column.shrink_to_fit();
    }
}

/// Which places of a growing column hold a value: a bit for each, the first in the lowest bit.
#[derive(Default)]
pub struct Validity {
    count: usize,
    words: Vec<u64>,
    /// The places after the last whole word.
    last: u64,
}

impl Validity {
    #[inline]
    pub fn push(&mut self, valid: bool) {
        self.last |= u64::from(valid) << (self.count % 64);
        self.count += 1;
        if self.count.is_multiple_of(64) {
            self.words.push(self.last);
            self.last = 0;
        }
    }

    /// Appends places that hold a value until there are so many.
    #[inline]
    pub fn push_until(&mut self, count: usize) {
        if self.count < count {
            self.push_all(count - self.count);
        }
    }

    /// Appends so many places that hold a value.
    #[inline]
    pub fn push_all(&mut self, count: usize) {
        let used = self.count % 64;
        if count < 64 - used {
            self.last |= ((1 << count) - 1) << used;
            self.count += count;
        } else {
            self.push_many(count);
        }
    }

    #[inline(never)]
    fn push_many(&mut self, mut count: usize) {
        while count > 0 && !self.count.is_multiple_of(64) {
            self.push(true);
            count -= 1;
        }
        self.words.resize(self.words.len() + count / 64, u64::MAX);
        self.count += count / 64 * 64;
        (0..count % 64).for_each(|_| self.push(true));
    }

    #[inline]
    pub fn count(&self) -> usize {
        self.count
    }

    pub fn truncate(&mut self, count: usize) {
        if count >= self.count {
            return;
        }
        let last = self.words.get(count / 64).copied().unwrap_or(self.last);
        self.last = last & ((1 << (count % 64)) - 1);
        self.words.truncate(count / 64);
        self.count = count;
    }

    pub fn finish(mut self) -> Option<NullBuffer> {
        let valid = self.words.iter().chain([&self.last]).map(|word| word.count_ones() as usize).sum::<usize>();
        if valid == self.count {
            return None;
        }
        self.words.push(self.last);
        // Bits are numbered from the lowest bit of the first byte on.
        self.words.iter_mut().for_each(|word| *word = word.to_le());
        Some(NullBuffer::new(BooleanBuffer::new(Buffer::from_vec(self.words), 0, self.count)))
    }
}

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
            DataType::Utf8 => Data::Text(Runs::default()),
            DataType::Binary => Data::Bytes(Runs::default()),
            other => unreachable!("no scalar has the type {other}"),
        };
        Column { of, data, valid: Validity::default() }
    }

    /// Makes room for so many values, and so many bytes behind offsets.
    pub fn reserve(&mut self, values: usize, bytes: usize) {
        match &mut self.data {
            Data::Bool(bits) => bits.reserve(values),
            Data::Int8(numbers) => numbers.reserve_exact(values),
            Data::Int16(numbers) => numbers.reserve_exact(values),
            Data::Int32(numbers) => numbers.reserve_exact(values),
            Data::Int64(numbers) => numbers.reserve_exact(values),
            Data::Uint8(numbers) => numbers.reserve_exact(values),
            Data::Uint16(numbers) => numbers.reserve_exact(values),
            Data::Uint32(numbers) => numbers.reserve_exact(values),
            Data::Uint64(numbers) => numbers.reserve_exact(values),
            Data::Decimal(numbers) => numbers.reserve_exact(values),
            Data::Float32(numbers) => numbers.reserve_exact(values),
            Data::Float64(numbers) => numbers.reserve_exact(values),
            Data::Text(runs) | Data::Bytes(runs) => {
                runs.offsets.reserve_exact(values);
                // A short run is copied with what lies behind it.
                runs.bytes.reserve_exact(bytes + WIDE);
            }
        }
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

    /// The values and which of them are valid, for whoever appends many of one type.
    pub fn parts_mut(&mut self) -> (&mut Data, &mut Validity) {
        (&mut self.data, &mut self.valid)
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

    /// Appends a null.
    #[inline]
    pub fn push_null(&mut self) {
        self.valid.push(false);
        match &mut self.data {
            Data::Bool(bits) => bits.append(false),
            Data::Int8(numbers) => numbers.push(0),
            Data::Int16(numbers) => numbers.push(0),
            Data::Int32(numbers) => numbers.push(0),
            Data::Int64(numbers) => numbers.push(0),
            Data::Uint8(numbers) => numbers.push(0),
            Data::Uint16(numbers) => numbers.push(0),
            Data::Uint32(numbers) => numbers.push(0),
            Data::Uint64(numbers) => numbers.push(0),
            Data::Decimal(numbers) => numbers.push(0),
            Data::Float32(numbers) => numbers.push(0.0),
            Data::Float64(numbers) => numbers.push(0.0),
            Data::Text(runs) | Data::Bytes(runs) => runs.end_run(),
        }
    }

    /// Whether the bytes of a value of this type are those of this column, if there are as many as it takes.
    pub fn takes_bytes_of(&self, scalar: Scalar) -> bool {
        matches!(
            (scalar, &self.data),
            (Scalar::Int8, Data::Int8(_))
                | (Scalar::Int16, Data::Int16(_))
                | (Scalar::Int32, Data::Int32(_))
                | (Scalar::Int64, Data::Int64(_))
                | (Scalar::Float32, Data::Float32(_))
                | (Scalar::Float64, Data::Float64(_))
                | (Scalar::String, Data::Text(_))
                | (Scalar::Binary, Data::Bytes(_))
        )
    }

    /// Appends a value by its bytes: what `push` does with the value they spell, for a type whose bytes it takes. False,
    /// and nothing appended, when they spell none.
    #[inline]
    pub fn push_bytes(&mut self, bytes: &[u8], order: ByteOrder, source: Source<'_>) -> bool {
        macro_rules! push {
            ($numbers:ident, $of:ty) => {
                match bytes.try_into() {
                    Err(_) => return false,
                    Ok(bytes) if order == ByteOrder::Big => $numbers.push(<$of>::from_be_bytes(bytes)),
                    Ok(bytes) => $numbers.push(<$of>::from_le_bytes(bytes)),
                }
            };
        }
        match &mut self.data {
            Data::Int8(numbers) => push!(numbers, i8),
            Data::Int16(numbers) => push!(numbers, i16),
            Data::Int32(numbers) => push!(numbers, i32),
            Data::Int64(numbers) => push!(numbers, i64),
            Data::Float32(numbers) => push!(numbers, f32),
            Data::Float64(numbers) => push!(numbers, f64),
            Data::Text(runs) => match source.chunk(bytes) {
                Some(chunk) if is_ascii(chunk, bytes.len()) => {
                    runs.push_start(chunk, bytes.len());
                    runs.end_run();
                }
                _ if Text::new(bytes).is_ok() => runs.push(bytes),
                _ => return false,
            },
            Data::Bytes(runs) => runs.push_from::<WIDE>(source, bytes),
            _ => return false,
        }
        self.valid.push(true);
        true
    }

    /// Back to an earlier length.
    pub fn truncate(&mut self, len: usize) {
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
            Data::Text(runs) | Data::Bytes(runs) => runs.truncate(len),
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
    use crate::kind::Dialect;
    use crate::spelling::Spelling;
    use crate::types::{Coding, Type};

    #[test]
    fn validity_rolls_back_to_any_length() {
        for first_null in [0, 1, 62, 63, 64, 65, 127, 128] {
            for cut in 0..=130 {
                let (mut rolled, mut straight) = (Validity::default(), Validity::default());
                let valid = |place: usize| place != first_null && place % 7 != 3;
                (0..130).for_each(|place| rolled.push(valid(place)));
                rolled.truncate(cut);
                (cut..130).for_each(|place| rolled.push(valid(place)));
                (0..130).for_each(|place| straight.push(valid(place)));
                assert_eq!(rolled.finish(), straight.finish(), "{first_null} {cut}");
            }
        }
    }

    #[test]
    fn many_places_at_once_are_as_many_one_by_one() {
        for before in [0, 1, 63, 64, 65] {
            for count in [0, 1, 62, 63, 64, 65, 127, 128, 129, 300] {
                let (mut at_once, mut one_by_one) = (Validity::default(), Validity::default());
                (0..before).for_each(|_| at_once.push(false));
                (0..before).for_each(|_| one_by_one.push(false));
                at_once.push_all(count);
                (0..count).for_each(|_| one_by_one.push(true));
                at_once.push(false);
                one_by_one.push(false);
                assert_eq!(at_once.finish(), one_by_one.finish(), "{before} {count}");
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

    #[test]
    fn runs_are_copied_alike_from_anywhere() {
        let buffer: Vec<u8> = (0..200).map(|byte: u8| byte.wrapping_mul(7)).collect();
        for source in [Source::new(&buffer), Source::default()] {
            for len in 0..=80 {
                for at in [0, 1, 100, buffer.len() - len] {
                    let run = &buffer[at..at + len];
                    let mut runs = Runs::default();
                    runs.push_from::<32>(source, run);
                    runs.push_from::<64>(source, run);
                    runs.push_reversed(source, run);
                    let reversed: Vec<u8> = run.iter().rev().copied().collect();
                    assert_eq!(runs.bytes, [run, run, &reversed].concat(), "{at} {len}");
                    assert_eq!(runs.offsets, [0, len as i32, 2 * len as i32, 3 * len as i32]);
                }
            }
        }
    }

    #[test]
    fn a_value_is_the_same_by_its_bytes() {
        for scalar in Scalar::ALL {
            for dialect in [Dialect::Arrow, Dialect::Spark] {
                let of = scalar.arrow(dialect);
                if !Column::new(of.clone()).takes_bytes_of(*scalar) {
                    continue;
                }
                for order in [ByteOrder::Big, ByteOrder::Little] {
                    let read = Type { scalar: *scalar, coding: Coding::Spelled(Spelling::Bytes(order)) };
                    for bytes in (0..20).map(|len| [b'7', 0xc3, 0xa9].repeat(7)[..len].to_vec()) {
                        let (mut by_bytes, mut by_value) = (Column::new(of.clone()), Column::new(of.clone()));
                        let value = read.read(&bytes, dialect);
                        let pushed = by_bytes.push_bytes(&bytes, order, Source::default());
                        assert_eq!(pushed, value.is_ok(), "{scalar:?} {bytes:?}");
                        value.into_iter().for_each(|value| by_value.push(value));
                        assert_eq!(&by_bytes.finish(), &by_value.finish(), "{scalar:?} {order:?} {bytes:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn room_is_made_for_no_more_than_there_can_be() {
        let mut runs = Runs::default();
        runs.push(&[7; 1000]);
        runs.expect(Share { done: 1, all: 1_000_000_000 }, 5000);
        assert!(runs.bytes.capacity() < 10_000 && runs.offsets.capacity() < 10_000);
    }
}
