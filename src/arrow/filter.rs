//! [`Filter`]: a condition on typed headers and fields of messages, evaluated for up to 64 messages at once.
//!
//! ```text
//!   tenant = 'acme' and not offset < 5      the steps, in postfix order:
//!
//!     test 0     test 1      not       and          a truth has two words with a bit for each message:
//!   ┌─────────┬───────────┬─────────┬─────────┐       yes and no; with neither bit, it is null, as in SQL
//!   │ = 'acme'│   < 5     │         │         │
//!   └─────────┴───────────┴─────────┴─────────┘
//! ```

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use memchr::memmem::Finder;
use regex::bytes::Regex;

use super::binary::ViewInput;
use super::column::{Column, Data, value_of};
use super::schema;
use super::select::{Found, SelectSink, Selection, check_keys};
use super::sink::RowSink;
use crate::arrow::types::Dialect;
use crate::error::{Error, unknown_name};
use crate::field::{Field, FieldType, FieldValue};
use crate::format_info::FormatInfo;
use crate::header::Header;
use crate::kernel::buffer::{BinaryValues, Progress};
use crate::kernel::keys::KeySet;
use crate::kernel::layout::Layout;
use crate::kernel::lists::ListBlock;
use crate::kernel::scan::{Scratch, SelectedValues};
use crate::kernel::{ROWS, RowBlock};
use crate::log::{Log, Result};
use crate::sink::Presence;
use crate::traits::MessageFields;
use crate::value::ByteOrder;

/// A condition: its operands, and its steps in postfix order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Filter {
    pub selections: Vec<Selection>,
    pub fields: Vec<String>,
    pub steps: Vec<Step>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    And,
    Or,
    Not,
    Null,
    Test(Operand, Quantifier, Test),
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Operand {
    Header(usize),
    Field(usize),
}

/// Whether a test must be true for any or for all values of a header with `Repeat::All`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Quantifier {
    Any,
    All,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Test {
    IsNull,
    Compare(Comparison, Literal),
    In(Literals),
    StartsWith(Vec<u8>),
    Contains(Substring),
    Matches(Pattern),
}

/// A regular expression.
#[derive(Debug, Clone)]
pub struct Pattern(Regex);

impl Pattern {
    /// Compiles an expression to at most 10 MB.
    pub fn new(text: &str) -> Result<Self, Error> {
        let reason = |error: regex::Error| {
            let text = error.to_string();
            let last = text.lines().last().unwrap_or_default().trim().trim_start_matches("error: ");
            Error::Value(format!("not a regular expression: {last}"))
        };
        Regex::new(text).map(Pattern).map_err(reason)
    }

    fn is_match(&self, bytes: &[u8]) -> bool {
        self.0.is_match(bytes)
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

/// Literals of a list, grouped by type and sorted.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Literals {
    flags: Vec<bool>,
    numbers: Vec<i128>,
    /// Number literals without NaN, which equals nothing.
    floats: Vec<f64>,
    bytes: Vec<Vec<u8>>,
}

impl Literals {
    pub fn new(literals: impl IntoIterator<Item = Literal>) -> Self {
        let mut sorted = Literals::default();
        for literal in literals {
            match literal {
                Literal::Bool(flag) => sorted.flags.push(flag),
                Literal::Int(number) => sorted.numbers.push(number),
                Literal::Float(number) if number.is_nan() => {}
                Literal::Float(number) => sorted.floats.push(number),
                Literal::Bytes(bytes) => sorted.bytes.push(bytes),
            }
        }
        sorted.numbers.sort_unstable();
        sorted.floats.sort_unstable_by(f64::total_cmp);
        sorted.bytes.sort_unstable();
        sorted
    }

    /// Returns the literals, in any order.
    pub fn iter(&self) -> impl Iterator<Item = Literal> {
        let flags = self.flags.iter().map(|flag| Literal::Bool(*flag));
        let numbers = self.numbers.iter().map(|number| Literal::Int(*number));
        let floats = self.floats.iter().map(|number| Literal::Float(*number));
        flags.chain(numbers).chain(floats).chain(self.bytes.iter().cloned().map(Literal::Bytes))
    }

    fn contain(&self, value: Element<'_>) -> bool {
        match value {
            Element::Bool(flag) => self.flags.contains(&flag),
            Element::Int(number) => self.numbers.binary_search(&number).is_ok(),
            // NaN is never found. Both zeros, which are equal, are adjacent.
            Element::Float(number) => {
                let order = |other: &f64| other.partial_cmp(&number).unwrap_or(Ordering::Less);
                self.floats.binary_search_by(order).is_ok()
            }
            Element::Bytes(bytes) => self.bytes.binary_search_by(|other| other[..].cmp(bytes)).is_ok(),
        }
    }
}

/// Bytes to find in a value. The search is prepared once, which takes longer than a search in a short value.
#[derive(Debug, Clone)]
pub struct Substring(Box<Finder<'static>>);

impl Substring {
    pub fn new(bytes: &[u8]) -> Self {
        Substring(Box::new(Finder::new(bytes).into_owned()))
    }

    fn find(&self, bytes: &[u8]) -> Option<usize> {
        self.0.find(bytes)
    }
}

impl PartialEq for Substring {
    fn eq(&self, other: &Self) -> bool {
        self.0.needle() == other.0.needle()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Literal {
    Bool(bool),
    Int(i128),
    Float(f64),
    /// Bytes or text.
    Bytes(Vec<u8>),
}

/// A value of a column, which is compared only with literals of the same variant.
#[derive(Clone, Copy)]
pub(super) enum Element<'a> {
    Bool(bool),
    Int(i128),
    Float(f64),
    Bytes(&'a [u8]),
}

/// The result of a condition for up to 64 messages. It is null if neither bit of a message is set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Truth {
    pub yes: u64,
    pub no: u64,
}

/// Operands that are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Known {
    Everything,
    /// Fields only. Tests of headers are null, including the test for a null header.
    Fields,
}

impl Filter {
    /// Rejects keys and fields that a format does not have.
    pub fn check(&self, format: &FormatInfo) -> Result<(), Error> {
        check_keys(&self.selections, format)?;
        self.field_indexes(format).map(|_| ())
    }

    /// Indexes of the filter's fields among the fields of a message other than the headers.
    pub fn field_indexes(&self, format: &FormatInfo) -> Result<Vec<usize>, Error> {
        let others: Vec<&Field> = format.fields.iter().filter(|field| field.field_type != FieldType::Headers).collect();
        let index = |name: &String| {
            let index = others.iter().position(|field| field.name == name);
            index.ok_or_else(|| unknown_name("field", name, others.iter().map(|field| field.name)))
        };
        self.fields.iter().map(index).collect()
    }

    pub(super) fn evaluate(&self, rows: usize, mut test: impl FnMut(Operand, Quantifier, &Test) -> Truth) -> Truth {
        let mut stack: Vec<Truth> = Vec::with_capacity(self.steps.len());
        for step in &self.steps {
            let truth = match step {
                Step::Test(operand, quantifier, condition) => test(*operand, *quantifier, condition),
                Step::Null => Truth::default(),
                Step::Not => stack.pop().map(|Truth { yes, no }| Truth { yes: no, no: yes }).unwrap_or_default(),
                Step::And | Step::Or => {
                    let (right, left) = (stack.pop().unwrap_or_default(), stack.pop().unwrap_or_default());
                    match step {
                        Step::And => Truth { yes: left.yes & right.yes, no: left.no | right.no },
                        _ => Truth { yes: left.yes | right.yes, no: left.no & right.no },
                    }
                }
            };
            stack.push(truth);
        }
        debug_assert!(stack.len() == 1 && rows <= ROWS);
        stack.pop().unwrap_or_default()
    }
}

/// The lowest `count` bits.
pub(crate) fn ones(count: usize) -> u64 {
    if count >= ROWS { u64::MAX } else { (1 << count) - 1 }
}

/// Ranges of at most 64 rows.
pub(super) fn blocks(rows: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let end = rows.end;
    rows.step_by(ROWS).map(move |start| start..end.min(start + ROWS))
}

/// The ranges of consecutive bits that are set.
pub(crate) fn bit_ranges(mut bits: u64) -> impl Iterator<Item = Range<usize>> {
    let mut end = 0;
    std::iter::from_fn(move || {
        (bits != 0).then(|| {
            let start = end + bits.trailing_zeros() as usize;
            bits >>= start - end;
            let len = bits.trailing_ones();
            bits = bits.checked_shr(len).unwrap_or(0);
            end = start + len as usize;
            start..end
        })
    })
}

impl Comparison {
    /// Bitmask over Less, Equal, Greater, Unordered. NaN is unequal to everything, itself included, and unordered.
    fn orders(self) -> u8 {
        match self {
            Comparison::Lt => 0b0001,
            Comparison::Eq => 0b0010,
            Comparison::Le => 0b0011,
            Comparison::Gt => 0b0100,
            Comparison::Ge => 0b0110,
            Comparison::Ne => 0b1101,
        }
    }
}

/// Bit number of an order in [`Comparison::orders`].
#[inline(always)]
fn order_bit(order: Option<Ordering>) -> u8 {
    order.map_or(3, |order| (order as i8 + 1) as u8)
}

impl Test {
    fn holds(&self, value: Element<'_>) -> bool {
        match self {
            Test::IsNull => false,
            Test::Compare(comparison, literal) => comparison.orders() >> order_bit(value.compare(literal)) & 1 == 1,
            Test::In(literals) => literals.contain(value),
            Test::StartsWith(prefix) => matches!(value, Element::Bytes(bytes) if bytes.starts_with(prefix)),
            Test::Contains(text) => matches!(value, Element::Bytes(bytes) if text.find(bytes).is_some()),
            Test::Matches(pattern) => matches!(value, Element::Bytes(bytes) if pattern.is_match(bytes)),
        }
    }

    /// Truth for at most 64 rows of a column.
    fn of_column(&self, column: &Column, rows: Range<usize>) -> Truth {
        let (data, validity) = column.parts();
        let all = ones(rows.len());
        self.truth(all, validity.word(rows.start) & all, self.holds_for(data, rows))
    }

    /// Truth for at most 64 values, given which of them are valid, and for which the test holds. Results of `yes` for
    /// nulls are discarded.
    pub(super) fn truth(&self, all: u64, valid: u64, yes: u64) -> Truth {
        match self {
            Test::IsNull => Truth { yes: all & !valid, no: valid },
            _ => Truth { yes: yes & valid, no: !yes & valid },
        }
    }

    /// Tests at most 64 rows, including nulls, in a loop for the column's type.
    fn holds_for(&self, data: &Data, rows: Range<usize>) -> u64 {
        let test_bytes = |values: &BinaryValues| self.holds_of(rows.clone().map(|row| Element::Bytes(values.get(row))));
        macro_rules! loops {
            ($($integer:ident)*; $($float:ident)*) => {
                match data {
                    $(Data::$integer(numbers) => self.holds_of(numbers[rows].iter().map(|n| Element::Int((*n).into()))),)*
                    $(Data::$float(numbers) => self.holds_of(numbers[rows].iter().map(|n| Element::Float((*n).into()))),)*
                    Data::Bool(bits) => self.holds_of(rows.map(|row| Element::Bool(bits.get_bit(row)))),
                    Data::Text(texts) => test_bytes(texts),
                    Data::Bytes(binaries) => test_bytes(binaries),
                    Data::TextViews(_) | Data::ByteViews(_) => unreachable!("a filter makes no views"),
                    Data::List(..) | Data::Struct(_) => unreachable!("a filter tests the elements of lists"),
                }
            };
        }
        loops! { Int8 Int16 Int32 Int64 Uint8 Uint16 Uint32 Uint64 Decimal; Float32 Float64 }
    }

    // Inlined where the variant of the values is known.
    #[inline(always)]
    pub(super) fn holds_of<'e>(&self, values: impl Iterator<Item = Element<'e>>) -> u64 {
        macro_rules! bits {
            ($value:ident => $holds:expr) => {
                values.enumerate().fold(0, |yes, (bit, $value)| yes | u64::from($holds) << bit)
            };
        }
        match self {
            Test::IsNull => 0,
            Test::Compare(comparison, literal) => {
                let orders = comparison.orders();
                bits!(value => orders >> order_bit(value.compare(literal)) & 1)
            }
            _ => bits!(value => self.holds(value)),
        }
    }

    /// Truth for a field of at most 64 messages.
    fn of_fields<'f, F: MessageFields<'f>>(&self, messages: &[F], index: usize) -> Truth {
        let (mut valid, mut yes) = (0, 0);
        for (bit, fields) in messages.iter().enumerate() {
            let value = fields.value(index);
            let element = match &value {
                FieldValue::Null => continue,
                FieldValue::Bool(flag) => Element::Bool(*flag),
                FieldValue::Int64(number) => Element::Int((*number).into()),
                FieldValue::Uint64(number) => Element::Int((*number).into()),
                FieldValue::Text(text) => Element::Bytes(text.as_bytes()),
                FieldValue::Binary(bytes) => Element::Bytes(bytes),
                FieldValue::Id(id) => Element::Bytes(id),
            };
            valid |= 1 << bit;
            yes |= u64::from(self.holds(element)) << bit;
        }
        self.truth(ones(messages.len()), valid, yes)
    }
}

impl Element<'_> {
    #[inline]
    fn compare(self, literal: &Literal) -> Option<Ordering> {
        match (self, literal) {
            (Element::Bytes(value), Literal::Bytes(other)) => Some(value.cmp(other)),
            (Element::Int(value), Literal::Int(other)) => Some(value.cmp(other)),
            (Element::Float(value), Literal::Float(other)) => value.partial_cmp(other),
            (Element::Bool(value), Literal::Bool(other)) => Some(value.cmp(other)),
            _ => None,
        }
    }
}

/// The operands of a filter as columns.
pub(crate) struct FilterSink {
    filter: Arc<Filter>,
    headers: SelectSink,
    /// Columns of fields, and their indexes among the fields of a message.
    fields: Vec<(usize, Column)>,
    /// Number of rows before the current one.
    row: usize,
}

impl FilterSink {
    /// Creates the columns. `order` is the byte order of typed numbers in the input.
    pub fn new(filter: &Arc<Filter>, format: &FormatInfo, order: ByteOrder) -> Result<Self, Error> {
        let types: Vec<_> = format.fields.iter().filter_map(|field| schema::field_type(field.field_type)).collect();
        let column = |index: usize| (index, Column::new(types[index].clone(), &ViewInput::default()));
        let fields = filter.field_indexes(format)?.into_iter().map(column).collect();
        let has_types = format.types.is_typed();
        let headers = SelectSink::new(&filter.selections, Dialect::Arrow, order, has_types, None);
        Ok(FilterSink { filter: Arc::clone(filter), headers, fields, row: 0 })
    }

    /// Accepts only values of the tested type, like [`SelectSink::strict`].
    pub fn strict(self, is_strict: bool) -> Self {
        FilterSink { headers: self.headers.strict(is_strict), ..self }
    }

    pub fn has_headers(&self) -> bool {
        !self.headers.is_empty()
    }

    /// Evaluates the filter for at most 64 rows.
    pub fn truth(&self, rows: Range<usize>, known: Known) -> Truth {
        self.evaluate(rows.clone(), known, |index, test| test.of_column(&self.fields[index].1, rows.clone()))
    }

    /// Evaluates the filter for at most 64 messages, whose fields are not in columns and whose headers are the first
    /// rows.
    pub fn truth_of<'f, F: MessageFields<'f>>(&self, messages: &[F], known: Known) -> Truth {
        self.evaluate(0..messages.len(), known, |index, test| test.of_fields(messages, self.fields[index].0))
    }

    /// Evaluates the filter; `test_field` tests a field.
    fn evaluate(&self, rows: Range<usize>, known: Known, test_field: impl Fn(usize, &Test) -> Truth) -> Truth {
        self.filter.evaluate(rows.len(), |operand, quantifier, test| match (known, operand) {
            (Known::Everything | Known::Fields, Operand::Field(index)) => test_field(index, test),
            (Known::Fields, Operand::Header(_)) => Truth::default(),
            (Known::Everything, Operand::Header(index)) => self.truth_of_header(rows.clone(), index, quantifier, test),
        })
    }

    fn truth_of_header(&self, rows: Range<usize>, index: usize, quantifier: Quantifier, test: &Test) -> Truth {
        let column = self.headers.column(index);
        match column.lists() {
            None => test.of_column(column, rows),
            Some((ends, values)) => {
                let ends = &ends[rows.start..=rows.end];
                let values =
                    blocks(ends[0] as usize..ends[rows.len()] as usize).map(|rows| test.of_column(values, rows));
                quantifier.of_lists(&values.collect::<Vec<_>>(), ends, |_| true).pop().unwrap_or_default()
            }
        }
    }

    /// Evaluates the filter for the fields alone. A filter without fields excludes no message.
    pub fn truth_by_fields<'f, F: MessageFields<'f>>(&self, messages: &[F]) -> Truth {
        let is_null = self.fields.is_empty() && self.has_headers();
        if is_null { Truth::default() } else { self.truth_of(messages, Known::Fields) }
    }

    /// Appends the operands from the headers that a kernel reads, up to the first row that needs the slow path; returns
    /// the number of rows.
    pub fn append_read<'a>(
        &mut self,
        found: &mut Found<'a>,
        read: impl FnOnce(&mut Scratch, &KeySet, &mut SelectedValues<'a>) -> usize,
    ) -> usize {
        self.headers.append_read(found, Progress { bytes: 1, all: 1 }, |_| false, read)
    }

    pub fn clear(&mut self) {
        RowSink::truncate(self, 0);
    }
}

impl<'a> RowSink<'a> for FilterSink {
    type Found = Found<'a>;

    const KEEPS_PARTS: bool = true;

    fn header<R: Log>(&mut self, found: &mut Found<'a>, header: Header<'a>, log: &mut R) -> Result {
        self.headers.header(found, header, log)
    }

    fn fields(&mut self, fields: &[FieldValue<'a>]) {
        self.fields.iter_mut().for_each(|(index, column)| column.push(value_of(&fields[*index])));
    }

    fn extend(&mut self, other: &Self, progress: Progress) {
        self.headers.extend(&other.headers, progress);
        let fields = self.fields.iter_mut().zip(&other.fields);
        fields.for_each(|((_, column), (_, other))| column.extend(other, progress));
    }

    fn begin_row(&mut self, found: &mut Found<'a>) {
        self.row = self.row_count();
        self.headers.begin_row(found);
    }

    fn end_row<R: Log>(&mut self, found: &mut Found<'a>, headers: Presence, log: &mut R) -> Result {
        for (_, column) in self.fields.iter_mut().filter(|(_, column)| column.count() == self.row) {
            column.push(None);
        }
        self.headers.end_row(found, headers, log)
    }

    fn row_count(&self) -> usize {
        self.fields.first().map_or_else(|| self.headers.row_count(), |(_, column)| column.count())
    }

    fn truncate(&mut self, rows: usize) {
        self.headers.truncate(rows);
        self.fields.iter_mut().for_each(|(_, column)| column.truncate(rows));
    }

    fn null_row(&mut self) {
        self.headers.null_row();
        self.fields.iter_mut().for_each(|(_, column)| column.push(None));
    }

    fn null_headers(&mut self) -> bool {
        self.headers.truncate(self.row);
        self.headers.null_row();
        true
    }

    fn max_offset(&self) -> usize {
        let fields = self.fields.iter().map(|(_, column)| column.max_offset());
        fields.max().unwrap_or(0).max(self.headers.max_offset())
    }

    fn room(&self, layout: Layout, max_offset: usize) -> Option<usize> {
        self.headers.room(layout, max_offset)
    }

    fn append(
        &mut self,
        layout: Layout,
        found: &mut Found<'a>,
        block: &RowBlock<'a>,
        limit: usize,
        progress: Progress,
    ) -> usize {
        let before = self.row_count() - if self.fields.is_empty() { 0 } else { block.rows().len() };
        let done = self.headers.append(layout, found, block, limit, progress);
        // The fields of all rows of the block were already appended.
        self.fields.iter_mut().for_each(|(_, column)| column.truncate(before + done));
        done
    }

    fn append_lists(
        &mut self,
        layout: Layout,
        found: &mut Found<'a>,
        lists: &ListBlock<'a>,
        progress: Progress,
    ) -> usize {
        self.headers.append_lists(layout, found, lists, progress)
    }
}

#[cfg(test)]
#[path = "../../tests/rust/units/arrow_filter.rs"]
mod tests;
