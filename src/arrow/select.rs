//! [`SelectSink`]: some headers as typed columns, in one pass over all of them.

use std::borrow::Cow;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, ListArray};
use arrow_buffer::{OffsetBuffer, ScalarBuffer};
use arrow_schema::DataType;

use super::binary::{self, ViewInput};
use super::column::Column;
use super::schema;
use super::sink::{BlockSink, ListsSink, RowSink};
use crate::arrow::types::Dialect;
use crate::encoding::Encoding;
use crate::error::{Code, ErrorDetail};
use crate::header::{Header, RequestedKey};
use crate::kernel::bitmap::Validity;
use crate::kernel::buffer::{Progress, extend_ends};
use crate::kernel::keys::{Keep, KeySet, Requested};
use crate::kernel::layout::{TEXT, WireLayout};
use crate::kernel::lists::{self, ListBlock};
use crate::kernel::scan::{self, Hits, Scratch};
use crate::kernel::{ROWS, RowBlock, recycled};
use crate::log::{EitherLog, Fast, Log, OnLoss, Result, Stop};
use crate::traits::{FieldValue, Presence, Sink};
use crate::types::{Coding, Type};
use crate::value::{ByteOrder, InvalidValue, Value, bits_of};
use crate::value_type::{Scalar, ValueType};

/// Output bytes per input byte at most: a UUID of 16 bytes becomes text of 36.
const MAX_GROWTH: usize = 3;

/// Which of several headers with one key is selected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeat {
    Last,
    First,
    All,
    Error,
}

/// One output column and the header it is made of.
#[derive(Debug, Clone, PartialEq)]
pub struct Selection {
    pub output: String,
    pub key: RequestedKey,
    pub of: Type,
    /// Types that are tried, in order, for a value that is not of the first.
    pub others: Vec<Type>,
    pub repeat: Repeat,
    pub required: bool,
    /// The value of a message that lacks the header.
    pub default: Option<DefaultValue>,
    /// With `Repeat::All`, the text between the elements of one value.
    pub split: Option<Vec<u8>>,
}

/// A value for messages that lack a header: text that a type reads.
#[derive(Debug, Clone, PartialEq)]
pub struct DefaultValue {
    pub of: Type,
    pub text: Vec<u8>,
}

impl DefaultValue {
    /// The value; the text was checked when the selection was made.
    fn value(&self, dialect: Dialect) -> Option<Value<'_>> {
        self.of.read(&self.text, dialect).ok().flatten()
    }
}

impl Selection {
    pub fn new(output: impl Into<String>, key: RequestedKey, of: Type, repeat: Repeat) -> Self {
        let output = output.into();
        Selection { output, key, of, others: Vec::new(), repeat, required: false, default: None, split: None }
    }

    /// The Arrow type of the output column.
    pub fn arrow(&self, dialect: Dialect) -> DataType {
        let of = self.of.arrow(self.dialect(dialect));
        if self.repeat == Repeat::All { schema::list_of(of) } else { of }
    }

    /// The dialect that the types of the column have in common.
    fn dialect(&self, dialect: Dialect) -> Dialect {
        match self.others.iter().any(|other| other.arrow(dialect) != self.of.arrow(dialect)) {
            true => Dialect::Spark,
            false => dialect,
        }
    }

    /// Output bytes per row at most that are not in the input.
    fn default_len(&self) -> usize {
        self.default.as_ref().map_or(0, |default| default.text.len())
    }
}

/// A header of the current row with a requested key.
#[derive(Clone, Copy)]
struct Occurrence<'a> {
    index: usize,
    value_type: Option<ValueType>,
    value: Option<&'a [u8]>,
    at: Option<usize>,
}

/// A value, a null, or why the bytes are neither.
type ReadValue<'a> = Result<Option<Value<'a>>, Box<InvalidValue>>;

/// The value of a header that is selected.
enum Selected<'a> {
    Value(Value<'a>),
    Null,
    /// There is no header, or its value is invalid.
    Nothing,
}

/// A requested header, its occurrences in the current row, and its column.
struct Slot<'a> {
    selection: Selection,
    occurrences: Vec<Occurrence<'a>>,
    /// The byte order of values that are copied into the column without conversion, if no other rule applies.
    plain: Option<ByteOrder>,
    column: Column,
    dialect: Dialect,
    /// The byte order of values that carry a type.
    order: ByteOrder,
    /// Values of other types are rejected, even where they fit.
    is_strict: bool,
    /// Of `repeat="all"`: where each row's elements end, and which rows have a list.
    lists: Option<(Vec<i32>, Validity)>,
}

/// Typed columns as they grow.
pub(crate) struct SelectSink<'a> {
    slots: Vec<Slot<'a>>,
    /// The requested keys for the kernels, slot by slot; `None` if there are too many.
    keys: Option<KeySet>,
    hits: Hits<'a>,
    scratch: Scratch,
    /// Rows before the current one.
    rows: usize,
}

impl<'a> SelectSink<'a> {
    /// `has_types`: values of the input carry a type. `views`: text and bytes become views of this input.
    pub fn new(
        selections: &[Selection],
        dialect: Dialect,
        order: ByteOrder,
        has_types: bool,
        views: Option<&ViewInput>,
    ) -> Self {
        let plain = |selection: &Selection, column: &Column| match (selection.of.coding, selection.repeat) {
            (Coding::Plain(Encoding::Bytes(order_without_type)), Repeat::Last | Repeat::First) => {
                let is_simple = selection.others.is_empty() && selection.default.is_none() && !selection.required;
                let is_plain = is_simple && column.takes_bytes_of(selection.of.scalar);
                is_plain.then_some(if has_types { order } else { order_without_type })
            }
            _ => None,
        };
        let slot = |selection: &Selection| {
            let dialect = selection.dialect(dialect);
            let of = selection.of.arrow(dialect);
            let column = match views {
                Some(input) => Column::new(schema::with_views(&of), input),
                None => Column::new(of, &ViewInput::default()),
            };
            Slot {
                selection: selection.clone(),
                occurrences: Vec::new(),
                plain: plain(selection, &column),
                column,
                dialect,
                order,
                is_strict: false,
                lists: (selection.repeat == Repeat::All).then(|| (vec![0], Validity::default())),
            }
        };
        let slots: Vec<_> = selections.iter().map(slot).collect();
        let requested = |(place, slot): (usize, &Slot<'_>)| {
            let (key_type, key) = match &slot.selection.key {
                RequestedKey::Text(text) => (TEXT, text.clone().into_bytes()),
                RequestedKey::Typed(value_type, bits) => (*value_type, bits_of(*value_type, bits, order).into_owned()),
                RequestedKey::Int(_) => return None,
            };
            let keep = match (slot.plain, slot.selection.repeat) {
                (Some(_), Repeat::First) => Keep::First,
                (Some(_), _) => Keep::Last,
                (None, _) => Keep::All,
            };
            let value_type = has_types.then_some(ValueType::Named(slot.selection.of.scalar));
            Some(Requested { key, key_type: Some(key_type), keep, value_type, place })
        };
        let keys = KeySet::new(slots.iter().enumerate().filter_map(requested).collect());
        let (hits, scratch) = (Hits::default(), Scratch::default());
        SelectSink { slots, keys, hits, scratch, rows: 0 }
    }

    /// Accepts only values of the requested type, and not those of types that fit it.
    pub fn strict(mut self, is_strict: bool) -> Self {
        self.slots.iter_mut().for_each(|slot| slot.is_strict = is_strict);
        self
    }

    pub fn finish(self) -> Vec<ArrayRef> {
        self.slots.into_iter().map(Slot::finish).collect()
    }

    /// The same columns for rows that live for another time, between two rows. Nothing is allocated anew.
    pub fn rebind<'b>(self) -> SelectSink<'b> {
        let SelectSink { slots, keys, hits, scratch, rows } = self;
        let slots = slots.into_iter().map(Slot::rebind).collect();
        SelectSink { slots, keys, hits: hits.recycled(), scratch, rows }
    }

    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Back to this many rows.
    pub fn truncate(&mut self, rows: usize) {
        self.slots.iter_mut().for_each(|slot| slot.truncate(rows));
    }

    pub fn row_count(&self) -> usize {
        self.slots.first().map_or(0, Slot::rows)
    }

    /// A column, and of `repeat="all"` where the elements of each row end, the first end being 0.
    pub fn column(&self, place: usize) -> (&Column, Option<&[i32]>) {
        let Slot { column, lists, .. } = &self.slots[place];
        (column, lists.as_ref().map(|(ends, _)| &ends[..]))
    }

    /// Appends what a kernel collects in the hits, as `append_hits` does with the number of rows that it returns.
    pub fn append_read(
        &mut self,
        progress: Progress,
        is_null: impl Fn(usize) -> bool,
        read: impl FnOnce(&mut Scratch, &KeySet, &mut Hits<'a>) -> usize,
    ) -> usize {
        let Some(keys) = &self.keys else { return 0 };
        self.hits.clear(self.slots.len());
        let rows = read(&mut self.scratch, keys, &mut self.hits);
        self.append_hits(rows, progress, is_null)
    }

    /// Appends what a kernel found in this many rows, up to the first row whose values are not all of their types;
    /// returns how many rows were appended.
    fn append_hits(&mut self, rows: usize, progress: Progress, is_null: impl Fn(usize) -> bool) -> usize {
        self.rows = self.row_count();
        let mut done = rows;
        for (place, slot) in self.slots.iter_mut().enumerate() {
            if let Some(order) = slot.plain {
                done = slot.column.push_raw(&self.hits.lane(place)[..done], order, progress);
            }
        }
        if self.slots.iter().any(|slot| slot.plain.is_none()) {
            done = self.append_every(done, is_null);
        }
        for slot in self.slots.iter_mut().filter(|slot| slot.plain.is_some()) {
            slot.column.truncate(self.rows + done);
        }
        done
    }

    /// The columns that are not plain.
    fn append_every(&mut self, rows: usize, is_null: impl Fn(usize) -> bool) -> usize {
        let SelectSink { slots, hits, .. } = self;
        let mut fast = Fast::new(OnLoss::Raise);
        let mut hits = hits.every.iter().peekable();
        for row in 0..rows {
            for slot in slots.iter_mut().filter(|slot| slot.plain.is_none()) {
                slot.occurrences.clear();
            }
            while let Some(hit) = hits.next_if(|hit| hit.row == row) {
                let occurrence =
                    Occurrence { index: 0, value_type: hit.value_type, value: hit.value.bytes(), at: None };
                slots[hit.place].take(occurrence);
            }
            let mut slots = slots.iter_mut().filter(|slot| slot.plain.is_none());
            if is_null(row) {
                slots.for_each(Slot::push_null);
            } else if slots.any(|slot| slot.end_row(Presence::Whole, &mut fast).is_err()) {
                self.slots
                    .iter_mut()
                    .filter(|slot| slot.plain.is_none())
                    .for_each(|slot| slot.abort_row(self.rows + row));
                return row;
            }
        }
        rows
    }
}

impl<'a> Sink<'a> for SelectSink<'a> {
    fn header<R: Log>(&mut self, header: Header<'a>, _log: &mut R) -> Result {
        for slot in self.slots.iter_mut().filter(|slot| slot.selection.key.is(&header.key)) {
            slot.take(Occurrence {
                index: header.index,
                value_type: header.value_type,
                value: header.value,
                at: header.at,
            });
        }
        Ok(())
    }
}

impl<'a> RowSink<'a> for SelectSink<'a> {
    const KEEPS_PARTS: bool = true;

    fn extend(&mut self, other: &Self, progress: Progress) {
        for (slot, other) in self.slots.iter_mut().zip(&other.slots) {
            if let (Some((ends, valid)), Some((other_ends, other_valid))) = (&mut slot.lists, &other.lists) {
                extend_ends(ends, other_ends, slot.column.count() as i32, progress);
                valid.extend(other_valid);
            }
            slot.column.extend(&other.column, progress);
        }
    }

    #[inline]
    fn begin_row(&mut self) {
        self.rows = self.row_count();
        self.slots.iter_mut().for_each(|slot| slot.occurrences.clear());
    }

    #[inline]
    fn end_row<R: Log>(&mut self, headers: Presence, log: &mut R) -> Result {
        self.slots.iter_mut().try_for_each(|slot| slot.end_row(headers, log))
    }

    fn abort_row(&mut self) {
        self.slots.iter_mut().for_each(|slot| slot.abort_row(self.rows));
    }

    fn null_row(&mut self) {
        self.slots.iter_mut().for_each(Slot::push_null);
    }

    #[inline]
    fn max_offset(&self) -> usize {
        let reach = |slot: &Slot<'_>| match slot.lists {
            Some(_) => slot.column.byte_len().max(slot.column.count()),
            None => slot.column.byte_len(),
        };
        self.slots.iter().map(reach).max().unwrap_or(0)
    }
}

impl<'a> BlockSink<'a> for SelectSink<'a> {
    fn room<F: WireLayout>(&self, max_offset: usize) -> Option<usize> {
        // A value that is appended is part of the input; its text may be longer.
        let defaults: usize = self.slots.iter().map(|slot| slot.selection.default_len()).sum();
        let used = RowSink::max_offset(self).saturating_add(defaults.saturating_mul(ROWS));
        self.keys.is_some().then(|| max_offset.saturating_sub(used) / MAX_GROWTH)
    }

    fn open_row(&mut self, _fields: Option<&[FieldValue<'a>]>) {}

    fn append<F: WireLayout>(&mut self, block: &RowBlock<'a>, limit: usize, progress: Progress) -> usize {
        let is_null = |row: usize| block.rows()[row].is_none();
        self.append_read(progress, is_null, |scratch, keys, hits| scan::select::<F>(block, limit, scratch, keys, hits))
    }
}

impl<'a> ListsSink<'a> for SelectSink<'a> {
    fn room_for_lists<F: WireLayout>(&self, max_offset: usize) -> Option<usize> {
        self.room::<F>(max_offset)
    }

    fn append_lists<F: WireLayout>(&mut self, lists: &ListBlock<'a>, progress: Progress) -> usize {
        if F::TYPED != lists.has_types() {
            return 0;
        }
        self.append_read(progress, |_| false, |_, keys, hits| lists::select::<F>(lists, keys, hits))
    }
}

impl<'a> Slot<'a> {
    fn rebind<'b>(self) -> Slot<'b> {
        let Slot { selection, occurrences, plain, column, dialect, order, is_strict, lists } = self;
        Slot { selection, occurrences: recycled(occurrences), plain, column, dialect, order, is_strict, lists }
    }

    #[inline]
    fn take(&mut self, occurrence: Occurrence<'a>) {
        match self.selection.repeat {
            Repeat::First if !self.occurrences.is_empty() => return,
            // The second one is kept for its position; those after it add nothing.
            Repeat::Error if self.occurrences.len() > 1 => return,
            Repeat::Last => self.occurrences.clear(),
            Repeat::First | Repeat::All | Repeat::Error => {}
        }
        self.occurrences.push(occurrence);
    }

    /// Whether the header that is selected may be one that could not be read but has the key.
    fn is_lost<R: Log>(&self, headers: Presence, log: &mut R) -> bool {
        match (headers, log.either()) {
            // An error that was not kept may have been of such a header.
            (Presence::Damaged | Presence::Broken, EitherLog::Collect(log)) => {
                log.has_left_out_errors() || self.is_among(log.errors())
            }
            _ => false,
        }
    }

    #[cold]
    fn is_among(&self, errors: &[ErrorDetail]) -> bool {
        let key = self.selection.key.to_string();
        let indexes = errors.iter().filter(|error| error.column.is_none() && error.key.as_ref() == Some(&key));
        indexes.filter_map(|error| error.header).any(|index| match self.occurrences.first() {
            None => true,
            Some(_) if self.occurrences.iter().any(|occurrence| occurrence.index == index) => false,
            Some(first) => match self.selection.repeat {
                Repeat::First => index < first.index,
                Repeat::Last => index > first.index,
                Repeat::All | Repeat::Error => true,
            },
        })
    }

    fn end_row<R: Log>(&mut self, headers: Presence, log: &mut R) -> Result {
        let second = if self.selection.repeat == Repeat::Error { self.occurrences.get(1) } else { None };
        if let Some(second) = second {
            let (header, byte) = (Some(second.index), second.at);
            log.column_error(|| self.error(Code::RepeatedKey, "the key occurs a second time".into(), header, byte))?;
            self.column.push(None);
            return Ok(());
        }
        if self.is_lost(headers, log) {
            // The error of that header names the key.
            self.push_null();
            return Ok(());
        }
        if self.selection.required && self.occurrences.is_empty() && headers != Presence::Broken {
            log.column_error(|| self.error(Code::MissingKey, "the header is required and absent".into(), None, None))?;
        }
        if self.lists.is_some() {
            return self.end_list(headers, log);
        }
        let selected = match self.occurrences.first() {
            Some(occurrence) => self.read(*occurrence, log)?,
            None => match &self.selection.default {
                Some(default) if headers != Presence::Broken => {
                    self.column.push(default.value(self.dialect));
                    return Ok(());
                }
                _ => Selected::Nothing,
            },
        };
        let is_first = self.selection.repeat == Repeat::First;
        if headers == Presence::Broken && !matches!(selected, Selected::Nothing) && !is_first {
            let message = "headers after this one were not read, and may have the key, too";
            log.column_error(|| self.error(Code::Incomplete, message.into(), None, None))?;
        }
        self.column.push(match selected {
            Selected::Value(value) => Some(value),
            Selected::Null | Selected::Nothing => None,
        });
        Ok(())
    }

    /// Ends a row of `repeat="all"`: one bad element, or headers not read to the end, make the whole list null.
    fn end_list<R: Log>(&mut self, headers: Presence, log: &mut R) -> Result {
        if headers == Presence::Broken {
            self.push_null();
            return Ok(());
        }
        let mut whole = true;
        for place in 0..self.occurrences.len() {
            let mut rest = Some(self.occurrences[place]);
            while let Some(occurrence) = rest {
                let element;
                (element, rest) = self.first_element(occurrence);
                match self.read(element, log)? {
                    Selected::Value(value) => self.column.push(Some(value)),
                    Selected::Null => self.column.push(None),
                    Selected::Nothing => whole = false,
                }
            }
        }
        if let Some((ends, valid)) = &mut self.lists {
            if !whole {
                self.column.truncate(ends.last().map_or(0, |end| *end as usize));
            }
            ends.push(self.column.count() as i32);
            valid.push(whole);
        }
        Ok(())
    }

    /// The first element of a value that has several, and the value behind it.
    #[inline]
    fn first_element(&self, occurrence: Occurrence<'a>) -> (Occurrence<'a>, Option<Occurrence<'a>>) {
        let (Some(separator), Some(bytes)) = (&self.selection.split, occurrence.value) else {
            return (occurrence, None);
        };
        let is_text = matches!(occurrence.value_type, None | Some(ValueType::Named(Scalar::String | Scalar::Binary)));
        let end = bytes.windows(separator.len()).position(|window| window == separator).filter(|_| is_text);
        let Some(end) = end else { return (occurrence, None) };
        let next = end + separator.len();
        let rest = Occurrence { value: Some(&bytes[next..]), at: occurrence.at.map(|at| at + next), ..occurrence };
        (Occurrence { value: Some(&bytes[..end]), ..occurrence }, Some(rest))
    }

    /// Reads a value; an invalid one is reported.
    #[inline]
    fn read<R: Log>(&self, occurrence: Occurrence<'a>, log: &mut R) -> Result<Selected<'a>, Stop> {
        let Some(bytes) = occurrence.value else {
            return Ok(match self.selection.of.coding {
                Coding::Exists => Selected::Value(Value::Bytes(Cow::Borrowed(&[]))),
                _ => Selected::Null,
            });
        };
        let mut value = self.read_as(self.selection.of, occurrence.value_type, bytes);
        if value.is_err() && !self.selection.others.is_empty() {
            value = self.read_as_others(value, occurrence.value_type, bytes);
        }
        self.selected(value, occurrence, log)
    }

    #[inline]
    fn read_as(&self, of: Type, value_type: Option<ValueType>, bytes: &'a [u8]) -> ReadValue<'a> {
        of.read_stored(value_type, self.order, bytes, self.dialect, self.is_strict)
    }

    /// Reads a value that is not of the first type as the first of the others that it fits.
    #[cold]
    fn read_as_others(&self, first: ReadValue<'a>, value_type: Option<ValueType>, bytes: &'a [u8]) -> ReadValue<'a> {
        let mut messages: Vec<String> = first.err().into_iter().map(|invalid| invalid.message).collect();
        let mut last = None;
        for other in &self.selection.others {
            match self.read_as(*other, value_type, bytes) {
                Ok(value) => return Ok(value),
                Err(invalid) => {
                    if !messages.contains(&invalid.message) {
                        messages.push(invalid.message.clone());
                    }
                    last = Some(invalid);
                }
            }
        }
        let (code, within) = last.map_or((Code::BadText, 0), |invalid| (invalid.code, invalid.within));
        Err(Box::new(InvalidValue { code, within, message: messages.join("; ") }))
    }

    #[inline]
    fn selected<R: Log>(
        &self,
        value: ReadValue<'a>,
        occurrence: Occurrence<'a>,
        log: &mut R,
    ) -> Result<Selected<'a>, Stop> {
        match value {
            Ok(Some(value)) => Ok(Selected::Value(value)),
            Ok(None) => Ok(Selected::Null),
            Err(invalid) => {
                let byte = occurrence.at.map(|at| at + invalid.within);
                log.column_error(|| self.error(invalid.code, invalid.message, Some(occurrence.index), byte))?;
                Ok(Selected::Nothing)
            }
        }
    }

    #[cold]
    fn error(&self, code: Code, message: String, header: Option<usize>, byte: Option<usize>) -> ErrorDetail {
        let (key, column) = (Some(self.selection.key.to_string()), Some(self.selection.output.clone()));
        ErrorDetail { code, message, byte, header, key, column }
    }

    fn rows(&self) -> usize {
        match &self.lists {
            Some((ends, _)) => ends.len() - 1,
            None => self.column.count(),
        }
    }

    fn push_null(&mut self) {
        match &mut self.lists {
            Some((ends, valid)) => {
                ends.push(self.column.count() as i32);
                valid.push(false);
            }
            None => self.column.push(None),
        }
    }

    fn abort_row(&mut self, rows: usize) {
        self.occurrences.clear();
        self.truncate(rows);
    }

    fn truncate(&mut self, rows: usize) {
        match &mut self.lists {
            Some((ends, valid)) => {
                ends.truncate(rows + 1);
                valid.truncate(rows);
                self.column.truncate(ends.last().map_or(0, |end| *end as usize));
            }
            None => self.column.truncate(rows),
        }
    }

    fn finish(self) -> ArrayRef {
        let values = self.column.finish();
        match self.lists {
            None => values,
            Some((ends, valid)) => {
                let element = schema::nullable("element", values.data_type().clone());
                let offsets = OffsetBuffer::new(ScalarBuffer::from(ends));
                Arc::new(ListArray::new(element, offsets, values, binary::nulls(valid)))
            }
        }
    }
}
