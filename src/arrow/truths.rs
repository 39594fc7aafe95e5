//! [`truths`] evaluates a condition for each row of a table. The columns of the table are the operands.

use std::borrow::Cow;
use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{AnyDictionaryArray, Array, ArrayRef, BooleanArray, RunArray};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow_schema::{DataType, TimeUnit};

use super::filter::{Element, Filter, Literal, Literals, Operand, Quantifier, Step, Test, Truth, blocks, ones};
use crate::error::Error;
use crate::kernel::ROWS;
use crate::memory;

/// Evaluates a condition for each row; the result is null where it is unknown. `columns` contains a column for each
/// header, then one for each field. A test of a missing column has an unknown result. Quantifiers apply to lists of
/// headers.
pub fn truths(filter: &Filter, columns: &[Option<ArrayRef>], rows: usize) -> Result<BooleanArray, Error> {
    let headers = filter.selections.len();
    let fits = |column: &Option<ArrayRef>| column.as_ref().is_none_or(|column| column.len() == rows);
    if columns.len() != headers + filter.fields.len() || !columns.iter().all(fits) {
        return Err(Error::Internal("where: the columns do not fit the condition".into()));
    }
    let words = rows.div_ceil(ROWS);
    memory::probe(words.saturating_mul(size_of::<Truth>() * (filter.steps.len() + 2)));
    let evaluate_step = |step: &Step| {
        let Step::Test(operand, quantifier, test) = step else { return None };
        let (index, quantifier) = match operand {
            Operand::Header(index) => (*index, Some(*quantifier)),
            Operand::Field(index) => (headers + index, None),
        };
        Some(match &columns[index] {
            Some(column) => test.of_rows(column, quantifier),
            None => Ok(vec![Truth::default(); words]),
        })
    };
    let tests = filter.steps.iter().filter_map(evaluate_step).collect::<Result<Vec<_>, _>>()?;
    let (mut yes, mut known) = (Vec::with_capacity(words), Vec::with_capacity(words));
    for word in 0..words {
        // The filter evaluates its tests in the order of its steps.
        let mut tests = tests.iter();
        let truth = filter.evaluate(ROWS, |_, _, _| tests.next().map_or_else(Truth::default, |test| test[word]));
        yes.push(truth.yes.to_le());
        known.push((truth.yes | truth.no).to_le());
    }
    let bits = |words| BooleanBuffer::new(Buffer::from_vec::<u64>(words), 0, rows);
    Ok(BooleanArray::new(bits(yes), Some(NullBuffer::new(bits(known)))))
}

impl Test {
    /// Truths for all values of a column, with 64 values in each element.
    fn of_rows(&self, column: &dyn Array, quantifier: Option<Quantifier>) -> Result<Vec<Truth>, Error> {
        if column.is_empty() {
            return Ok(Vec::new());
        }
        match (column.data_type(), quantifier) {
            (DataType::List(_), Some(quantifier)) => {
                let list = column.as_list::<i32>();
                let (first, last) = (list.value_offsets()[0] as usize, list.value_offsets()[column.len()] as usize);
                // The import of a column does not check elements outside of its rows.
                let elements = self.of_rows(&list.values().slice(first, last - first), None)?;
                Ok(quantifier.of_lists(&elements, list.value_offsets(), |row| list.is_valid(row)))
            }
            (DataType::Dictionary(..), _) => self.of_dictionary(column.as_any_dictionary()),
            // Unions and runs have no nulls of their own: each row is null if its value is.
            (DataType::Union(..) | DataType::RunEndEncoded(..), _) if *self != Test::IsNull => {
                self.of_block(column, 0..0).map(|_| Vec::new())
            }
            (DataType::Union(..), _) => {
                let union = column.as_union();
                self.of_parts((0..column.len()).map(|row| Some(union.value(row))))
            }
            (DataType::RunEndEncoded(ends, _), _) => match ends.data_type() {
                DataType::Int16 => self.of_runs(column.as_run::<Int16Type>()),
                DataType::Int32 => self.of_runs(column.as_run::<Int32Type>()),
                _ => self.of_runs(column.as_run::<Int64Type>()),
            },
            _ => self.of_values(column),
        }
    }

    /// Truths for the rows of a dictionary. The cost depends on the number of rows, not on the number of values.
    fn of_dictionary(&self, column: &dyn AnyDictionaryArray) -> Result<Vec<Truth>, Error> {
        let (rows, values) = (column.len(), column.values());
        if values.is_empty() {
            return Ok(collect_truths((0..rows).map(|_| self.of_null())));
        }
        memory::probe(rows.saturating_mul(size_of::<usize>()));
        let keys = column.normalized_keys();
        if values.len() > rows {
            let value = |(row, key)| column.is_valid(row).then(|| values.slice(key, 1));
            return self.of_parts(keys.into_iter().enumerate().map(value));
        }
        let all = self.of_rows(values, None)?;
        let truth = |(row, key)| if column.is_null(row) { self.of_null() } else { one(&all, key) };
        Ok(collect_truths(keys.into_iter().enumerate().map(truth)))
    }

    fn of_null(&self) -> Option<bool> {
        (*self == Test::IsNull).then_some(true)
    }

    /// Truth value of each row of a run-end encoded column.
    fn of_runs<R: RunEndIndexType>(&self, column: &RunArray<R>) -> Result<Vec<Truth>, Error> {
        self.of_parts((0..column.len()).map(|row| Some(column.values().slice(column.get_physical_index(row), 1))))
    }

    /// Truths for columns of one row each, or for nulls.
    fn of_parts(&self, columns: impl Iterator<Item = Option<ArrayRef>>) -> Result<Vec<Truth>, Error> {
        let truths = columns.map(|column| match column {
            Some(column) => self.of_rows(&column, None).map(|truths| one(&truths, 0)),
            None => Ok(self.of_null()),
        });
        Ok(collect_truths(truths.collect::<Result<Vec<_>, _>>()?.into_iter()))
    }

    fn of_values(&self, column: &dyn Array) -> Result<Vec<Truth>, Error> {
        memory::probe(column.len() / 2);
        let nulls = column.logical_nulls();
        let test = self.in_units_of(column.data_type());
        blocks(0..column.len())
            .map(|rows| {
                let all = ones(rows.len());
                let valid = nulls.as_ref().map_or(all, |nulls| word(nulls, rows.clone()));
                let yes = if valid == 0 || *test == Test::IsNull { 0 } else { test.of_block(column, rows)? };
                Ok(test.truth(all, valid, yes))
            })
            .collect()
    }

    /// Converts literals to the unit of a column: microseconds to nanoseconds, and days to milliseconds for dates in
    /// milliseconds.
    fn in_units_of(&self, data_type: &DataType) -> Cow<'_, Test> {
        let factor = match data_type {
            DataType::Timestamp(TimeUnit::Nanosecond, _) => 1000,
            DataType::Date64 => 86_400_000,
            _ => return Cow::Borrowed(self),
        };
        let scaled = |literal: &Literal| match literal {
            Literal::Int(number) => Literal::Int(number.saturating_mul(factor)),
            other => other.clone(),
        };
        match self {
            Test::Compare(comparison, literal) => Cow::Owned(Test::Compare(*comparison, scaled(literal))),
            Test::In(literals) => Cow::Owned(Test::In(Literals::new(literals.iter().map(|literal| scaled(&literal))))),
            _ => Cow::Borrowed(self),
        }
    }

    /// Tests at most 64 values, including nulls, in a loop for the column's type.
    fn of_block(&self, column: &dyn Array, rows: Range<usize>) -> Result<u64, Error> {
        macro_rules! numbers {
            ($type:ty, $value:ident => $element:expr) => {
                self.holds_of(column.as_primitive::<$type>().values()[rows].iter().map(|$value| $element))
            };
        }
        macro_rules! bytes {
            ($array:expr, $value:ident => $bytes:expr) => {{
                let array = $array;
                self.holds_of(rows.map(|row| {
                    // The view of a null may be invalid.
                    if array.is_null(row) {
                        return Element::Bytes(&[]);
                    }
                    let $value = array.value(row);
                    Element::Bytes($bytes)
                }))
            }};
        }
        macro_rules! integers {
            ($type:ty) => {
                numbers!($type, number => Element::Int((*number).into()))
            };
        }
        Ok(match column.data_type() {
            DataType::Boolean => {
                let bits = column.as_boolean().values();
                self.holds_of(rows.map(|row| Element::Bool(bits.value(row))))
            }
            DataType::Int8 => integers!(Int8Type),
            DataType::Int16 => integers!(Int16Type),
            DataType::Int32 => integers!(Int32Type),
            DataType::Int64 => integers!(Int64Type),
            DataType::UInt8 => integers!(UInt8Type),
            DataType::UInt16 => integers!(UInt16Type),
            DataType::UInt32 => integers!(UInt32Type),
            DataType::UInt64 => integers!(UInt64Type),
            DataType::Date32 => integers!(Date32Type),
            DataType::Date64 => integers!(Date64Type),
            DataType::Decimal32(..) => integers!(Decimal32Type),
            DataType::Decimal64(..) => integers!(Decimal64Type),
            DataType::Decimal128(..) => integers!(Decimal128Type),
            DataType::Timestamp(TimeUnit::Second, _) => {
                numbers!(TimestampSecondType, number => Element::Int(i128::from(*number) * 1000))
            }
            DataType::Timestamp(TimeUnit::Millisecond, _) => integers!(TimestampMillisecondType),
            DataType::Timestamp(TimeUnit::Microsecond, _) => integers!(TimestampMicrosecondType),
            DataType::Timestamp(TimeUnit::Nanosecond, _) => integers!(TimestampNanosecondType),
            DataType::Float16 => numbers!(Float16Type, number => Element::Float(number.to_f64())),
            DataType::Float32 => numbers!(Float32Type, number => Element::Float((*number).into())),
            DataType::Float64 => numbers!(Float64Type, number => Element::Float(*number)),
            DataType::Utf8 => bytes!(column.as_string::<i32>(), value => value.as_bytes()),
            DataType::LargeUtf8 => bytes!(column.as_string::<i64>(), value => value.as_bytes()),
            DataType::Utf8View => bytes!(column.as_string_view(), value => value.as_bytes()),
            DataType::Binary => bytes!(column.as_binary::<i32>(), value => value),
            DataType::LargeBinary => bytes!(column.as_binary::<i64>(), value => value),
            DataType::BinaryView => bytes!(column.as_binary_view(), value => value),
            DataType::FixedSizeBinary(_) => bytes!(column.as_fixed_size_binary(), value => value),
            other => return Err(Error::Type(format!("where: a column of {other} is compared with no literal"))),
        })
    }
}

impl Quantifier {
    /// Evaluates lists at these offsets, given the truths of their values. A null list counts as empty, even if it has
    /// values, because a missing header is an empty list.
    pub(super) fn of_lists(self, values: &[Truth], ends: &[i32], is_valid: impl Fn(usize) -> bool) -> Vec<Truth> {
        let index = |end: i32| (end - ends[0]) as usize;
        collect_truths(ends.windows(2).enumerate().map(|(row, ends)| match is_valid(row) {
            true => self.of_list(values, index(ends[0])..index(ends[1])),
            false => None,
        }))
    }

    pub(super) fn of_list(self, values: &[Truth], range: Range<usize>) -> Option<bool> {
        let decisive = self == Quantifier::Any;
        let mut truth = (!range.is_empty()).then_some(!decisive);
        for index in range {
            match one(values, index) {
                Some(value) if value == decisive => return Some(decisive),
                Some(_) => {}
                None => truth = None,
            }
        }
        truth
    }
}

/// Truth value of one row.
fn one(truths: &[Truth], row: usize) -> Option<bool> {
    let Truth { yes, no } = truths[row / ROWS];
    let bit = 1 << (row % ROWS);
    ((yes | no) & bit != 0).then_some(yes & bit != 0)
}

/// Packs the truth values of rows into words of 64.
fn collect_truths(truths: impl ExactSizeIterator<Item = Option<bool>>) -> Vec<Truth> {
    let mut out = vec![Truth::default(); truths.len().div_ceil(ROWS)];
    for (row, truth) in truths.enumerate() {
        out[row / ROWS].yes |= u64::from(truth == Some(true)) << (row % ROWS);
        out[row / ROWS].no |= u64::from(truth == Some(false)) << (row % ROWS);
    }
    out
}

/// Validity of at most 64 rows.
fn word(nulls: &NullBuffer, rows: Range<usize>) -> u64 {
    let bits = nulls.inner().slice(rows.start, rows.len());
    bits.iter().enumerate().fold(0, |word, (bit, is_valid)| word | u64::from(is_valid) << bit)
}
