//! [`Select`]: selected headers as typed columns, in one pass over all headers.

mod slot;

use std::collections::HashMap;

use arrow_array::ArrayRef;
use arrow_schema::{DataType, TimeUnit};
use slot::{Occurrence, Slot};

use super::binary::ViewInput;
use super::column::Column;
use super::input::Bytes;
use super::layouts::read_rows;
use super::list_rows::messages_or_lists;
use super::rows::MessageRows;
use super::run::{OutputRows, run};
use super::sink::RowSink;
use super::{Input, Operation, Output, schema};
use crate::arrow::types::{Dialect, common_type};
use crate::error::{Direction, Error};
use crate::format_info::FormatInfo;
use crate::header::{Header, RequestedKey};
use crate::kernel::buffer::Progress;
use crate::kernel::keys::{Keep, KeySet, Requested};
use crate::kernel::layout::Layout;
use crate::kernel::lists::{self, ListBlock};
use crate::kernel::scan::{self, Scratch, SelectedValues};
use crate::kernel::{ROWS, RowBlock};
use crate::log::{FailFast, Log, OnError, OnLoss, Result};
use crate::memory;
use crate::op::check_not_batch;
use crate::options::ReadOptions;
use crate::sink::Presence;
use crate::traits::MessageFormat;
use crate::types::{Coding, Type};
use crate::value::{ByteOrder, Value};
use crate::value_type::ValueType;

/// Reads selected headers of messages or lists into typed columns.
#[derive(Debug, Clone, Default)]
pub struct Select {
    pub selections: Vec<Selection>,
    pub dialect: Dialect,
    pub options: ReadOptions,
    pub on_error: OnError,
    /// Whether text and binary columns are views of the input.
    pub views: bool,
}

impl Select {
    fn result_type(&self) -> DataType {
        let column = |selection: &Selection| {
            let data_type = selection.arrow(self.dialect);
            schema::nullable(&selection.output, if self.views { schema::with_views(&data_type) } else { data_type })
        };
        let fields = self.selections.iter().map(column).collect();
        DataType::Struct(schema::with_errors(fields, self.on_error).into())
    }

    #[inline(never)]
    fn run_rows<'a>(
        &self,
        messages: Option<MessageRows<'a, SelectSink>>,
        input: Input<'a>,
        format: &'static FormatInfo,
    ) -> Result<Output, Error> {
        let (rows, order) = messages_or_lists(messages, input.column, format)?;
        let has_types = format.types.is_typed();
        let plan = input.plan(format.name, Direction::Decode, self.on_error, self.options.limits);
        let views = Bytes::of_values(input.column).filter(|_| self.views).map(ViewInput::new);
        let strict = self.options.strict_types;
        let make =
            || Ok(SelectSink::new(&self.selections, self.dialect, order, has_types, views.as_ref()).strict(strict));
        let OutputRows { sink, report_columns, until, .. } = run(&*rows, input.from, &plan, &make)?;
        Ok(Output::new(self.result_type(), sink.finish(), None, &plan, report_columns, input.from..until))
    }
}

impl Operation for Select {
    const DROPS_FIELDS: bool = true;

    fn output_type(&self, format: &'static FormatInfo) -> Result<DataType, Error> {
        check_not_batch(format)?;
        check_keys(&self.selections, format)?;
        Ok(self.result_type())
    }

    fn apply<E: MessageFormat>(&self, input: Input<'_>) -> Result<Output, Error> {
        check_keys(&self.selections, &E::INFO)?;
        self.run_rows(MessageRows::of::<E>(input.column, self.options), input, &E::INFO)
    }
}

pub(super) fn check_keys(selections: &[Selection], format: &FormatInfo) -> Result<(), Error> {
    let mut keys = selections.iter().filter(|selection| !selection.is_of_every_header());
    keys.try_for_each(|selection| selection.key.check(format.name, format.keys))
}

/// Maximum number of slots for which comparing keys one by one is faster than a hash table.
const FEW_SLOTS: usize = 16;

/// Maximum number of output bytes per input byte: a UUID of 16 bytes becomes text of 36.
const MAX_GROWTH: usize = 3;

/// Policy for selecting one of several headers with the same key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeat {
    Last,
    First,
    All,
    Error,
}

/// An output column and its header.
#[derive(Debug, Clone, PartialEq)]
pub struct Selection {
    pub output: String,
    pub key: RequestedKey,
    pub type_: Type,
    /// Types that are tried, in order, for a value that does not have the first type.
    pub others: Vec<Type>,
    pub repeat: Repeat,
    pub required: bool,
    /// Value for messages without the header.
    pub default: Option<DefaultValue>,
    /// With `Repeat::All`, the separator of the elements of a value.
    pub split: Option<Vec<u8>>,
}

/// Default value of messages without a header, as text and the type that parses it.
#[derive(Debug, Clone, PartialEq)]
pub struct DefaultValue {
    pub type_: Type,
    pub text: Vec<u8>,
}

impl DefaultValue {
    /// Parses the value. The text was checked when the selection was created.
    fn value(&self, dialect: Dialect) -> Option<Value<'_>> {
        self.type_.read(&self.text, dialect).ok().flatten()
    }
}

impl Selection {
    pub fn new(output: impl Into<String>, key: RequestedKey, type_: Type, repeat: Repeat) -> Self {
        let output = output.into();
        Selection { output, key, type_, others: Vec::new(), repeat, required: false, default: None, split: None }
    }

    /// Whether the headers of all keys are selected, which kernels cannot do.
    pub fn is_of_every_header(&self) -> bool {
        self.type_.coding == Coding::Every
    }

    /// The Arrow type of the output column.
    pub fn arrow(&self, dialect: Dialect) -> DataType {
        let data_type = self.values_type(dialect);
        if self.repeat == Repeat::All { schema::list_of(data_type) } else { data_type }
    }

    /// The Arrow type of the values.
    fn values_type(&self, dialect: Dialect) -> DataType {
        let types: Vec<_> = std::iter::once(self.type_).chain(self.others.iter().copied()).collect();
        common_type(&types, dialect).unwrap_or_else(|| self.type_.arrow(dialect))
    }

    /// Dialect in which values are read, so that times of several units are all in microseconds.
    fn dialect(&self, dialect: Dialect) -> Dialect {
        match self.values_type(dialect) {
            DataType::Timestamp(TimeUnit::Microsecond, _) => Dialect::Spark,
            _ => dialect,
        }
    }

    /// Maximum number of output bytes of a row that are not in the input.
    fn default_len(&self) -> usize {
        self.default.as_ref().map_or(0, |default| default.text.len())
    }
}

/// The slots of each key.
struct SlotsByKey {
    keys: HashMap<RequestedKey, Vec<usize>>,
    /// Slots that select the headers of all keys.
    every: Vec<usize>,
}

impl SlotsByKey {
    fn new(selections: &[Selection]) -> Self {
        let mut by_key = SlotsByKey { keys: HashMap::with_capacity(selections.len()), every: Vec::new() };
        for (index, selection) in selections.iter().enumerate() {
            match selection.is_of_every_header() {
                true => by_key.every.push(index),
                false => by_key.keys.entry(selection.key.clone()).or_default().push(index),
            }
        }
        by_key
    }

    fn get(&self, key: &RequestedKey) -> impl Iterator<Item = &usize> {
        self.keys.get(key).into_iter().flatten().chain(&self.every)
    }
}

/// Values of requested headers in the current rows.
#[derive(Default)]
pub(crate) struct Found<'a> {
    selected: SelectedValues<'a>,
    /// The headers of each slot in the current row.
    occurrences: Vec<Vec<Occurrence<'a>>>,
}

impl Found<'_> {
    fn clear_row(&mut self) {
        self.occurrences.iter_mut().for_each(Vec::clear);
    }
}

/// Typed columns as they grow.
pub(crate) struct SelectSink {
    slots: Vec<Slot>,
    /// Requested keys for kernels, slot by slot; `None` if there are too many, or headers of all keys are selected.
    keys: Option<KeySet>,
    /// Slots of each key, if there are many.
    slots_by_key: Option<SlotsByKey>,
    scratch: Scratch,
}

impl SelectSink {
    /// Creates the columns. `has_types`: values of the input have types. `views`: text and bytes become views of this
    /// input.
    pub fn new(
        selections: &[Selection],
        dialect: Dialect,
        order: ByteOrder,
        has_types: bool,
        views: Option<&ViewInput>,
    ) -> Self {
        let slot = |selection| Slot::new(selection, dialect, order, has_types, views);
        let slots: Vec<_> = selections.iter().map(slot).collect();
        let requested = |(index, slot): (usize, &Slot)| {
            let keep = match (slot.plain, slot.selection.repeat) {
                (Some(_), Repeat::First) => Keep::First,
                (Some(_), _) => Keep::Last,
                (None, _) => Keep::All,
            };
            let value_type = has_types.then_some(ValueType::Named(slot.selection.type_.scalar));
            Some(Requested { keep, value_type, ..Requested::all(&slot.selection.key, order, index)? })
        };
        let has_keys = !selections.iter().any(Selection::is_of_every_header);
        let keys = has_keys.then(|| slots.iter().enumerate().filter_map(requested).collect()).and_then(KeySet::new);
        let slots_by_key = (slots.len() > FEW_SLOTS).then(|| SlotsByKey::new(selections));
        SelectSink { slots, keys, slots_by_key, scratch: Scratch::default() }
    }

    /// Accepts only values of the requested type, and rejects other types even if they fit.
    pub fn strict(mut self, is_strict: bool) -> Self {
        self.slots.iter_mut().for_each(|slot| slot.is_strict = is_strict);
        self
    }

    pub fn finish(self) -> Vec<ArrayRef> {
        self.slots.into_iter().map(|slot| slot.column.finish()).collect()
    }

    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    pub fn column(&self, index: usize) -> &Column {
        &self.slots[index].column
    }

    /// Appends the values that a kernel collects, up to the first row with a value of another type; returns the number
    /// of appended rows.
    pub fn append_read<'a>(
        &mut self,
        found: &mut Found<'a>,
        progress: Progress,
        is_null: impl Fn(usize) -> bool,
        read: impl FnOnce(&mut Scratch, &KeySet, &mut SelectedValues<'a>) -> usize,
    ) -> usize {
        let Some(keys) = &self.keys else { return 0 };
        found.selected.clear(self.slots.len());
        let rows = read(&mut self.scratch, keys, &mut found.selected);
        let (before, mut done) = (self.row_count(), rows);
        self.name_refusals(|slots, current| {
            for (index, slot) in slots.iter_mut().enumerate() {
                if let Some(order) = slot.plain {
                    *current = index;
                    done = slot.column.push_raw(&found.selected.lane(index)[..done], order, progress);
                }
            }
        });
        if self.slots.iter().any(|slot| slot.plain.is_none()) {
            done = self.append_every(found, before, done, is_null);
        }
        for slot in self.slots.iter_mut().filter(|slot| slot.plain.is_some()) {
            slot.column.truncate(before + done);
        }
        done
    }

    /// Runs work that sets the index of the current slot. If memory cannot be allocated, the error names that slot's
    /// column.
    #[inline(always)]
    fn name_refusals<T>(&mut self, work: impl FnOnce(&mut [Slot], &mut usize) -> T) -> T {
        let (slots, mut current) = (&mut self.slots[..], 0);
        let done = memory::catch_refusal(|| work(slots, &mut current));
        done.unwrap_or_else(|held| held.resume(&self.slots[current].selection.output))
    }

    /// Appends to the columns that are not plain.
    fn append_every(
        &mut self,
        found: &mut Found<'_>,
        before: usize,
        rows: usize,
        is_null: impl Fn(usize) -> bool,
    ) -> usize {
        let Found { selected, occurrences } = found;
        occurrences.resize_with(self.slots.len(), Vec::new);
        let mut fast = FailFast::new(OnLoss::Raise);
        let mut values = selected.every.iter().peekable();
        self.name_refusals(|slots, current| {
            for row in 0..rows {
                occurrences.iter_mut().for_each(Vec::clear);
                while let Some(value) = values.next_if(|value| value.row == row) {
                    let occurrence =
                        Occurrence { index: 0, value_type: value.value_type, value: value.value.bytes(), byte: None };
                    slots[value.index].take(&mut occurrences[value.index], occurrence);
                }
                let rest = slots.iter_mut().zip(&*occurrences).enumerate();
                let mut rest = rest.filter(|(_, (slot, _))| slot.plain.is_none()).map(|(index, slot)| {
                    *current = index;
                    slot
                });
                if is_null(row) {
                    rest.for_each(|(slot, _)| slot.column.push(None));
                } else if rest.any(|(slot, found)| slot.end_row(found, Presence::Whole, &mut fast).is_err()) {
                    let slots = slots.iter_mut().filter(|slot| slot.plain.is_none());
                    slots.for_each(|slot| slot.column.truncate(before + row));
                    return row;
                }
            }
            rows
        })
    }
}

impl<'a> RowSink<'a> for SelectSink {
    type Found = Found<'a>;

    const KEEPS_PARTS: bool = true;

    fn header<R: Log>(&mut self, found: &mut Found<'a>, header: Header<'a>, _log: &mut R) -> Result {
        let Header { index, key, value_type, value, value_offset } = header;
        let is_requested = |selection: &Selection| selection.key.is(&key) || selection.is_of_every_header();
        let occurrence = Occurrence { index, value_type, value, byte: value_offset };
        match &self.slots_by_key {
            Some(by_key) => by_key.get(&RequestedKey::from(&key)).for_each(|slot| {
                self.slots[*slot].take(&mut found.occurrences[*slot], occurrence);
            }),
            None => {
                let slots = self.slots.iter().zip(&mut found.occurrences);
                let requested = slots.filter(|(slot, _)| is_requested(&slot.selection));
                requested.for_each(|(slot, occurrences)| slot.take(occurrences, occurrence));
            }
        }
        Ok(())
    }

    fn extend(&mut self, other: &Self, progress: Progress) {
        self.name_refusals(|slots, current| {
            for (index, (slot, other)) in slots.iter_mut().zip(&other.slots).enumerate() {
                *current = index;
                slot.column.extend(&other.column, progress);
            }
        });
    }

    #[inline]
    fn begin_row(&mut self, found: &mut Found<'a>) {
        found.occurrences.resize_with(self.slots.len(), Vec::new);
        found.clear_row();
    }

    #[inline]
    fn end_row<R: Log>(&mut self, found: &mut Found<'a>, headers: Presence, log: &mut R) -> Result {
        self.name_refusals(|slots, current| {
            slots.iter_mut().zip(&found.occurrences).enumerate().try_for_each(|(index, (slot, occurrences))| {
                *current = index;
                slot.end_row(occurrences, headers, log)
            })
        })
    }

    fn row_count(&self) -> usize {
        self.slots.first().map_or(0, |slot| slot.column.count())
    }

    fn truncate(&mut self, rows: usize) {
        self.slots.iter_mut().for_each(|slot| slot.column.truncate(rows));
    }

    fn null_row(&mut self) {
        self.slots.iter_mut().for_each(|slot| slot.column.push(None));
    }

    #[inline]
    fn max_offset(&self) -> usize {
        self.slots.iter().map(|slot| slot.column.max_offset()).max().unwrap_or(0)
    }

    fn room(&self, _layout: Layout, max_offset: usize) -> Option<usize> {
        // The text of a value may be longer than its bytes in the input.
        let defaults: usize = self.slots.iter().map(|slot| slot.selection.default_len()).sum();
        let used = self.max_offset().saturating_add(defaults.saturating_mul(ROWS));
        self.keys.is_some().then(|| max_offset.saturating_sub(used) / MAX_GROWTH)
    }

    fn append(
        &mut self,
        layout: Layout,
        found: &mut Found<'a>,
        block: &RowBlock<'a>,
        limit: usize,
        progress: Progress,
    ) -> usize {
        let is_null = |row: usize| block.rows()[row].is_none();
        self.append_read(found, progress, is_null, |scratch, keys, selected| {
            read_rows!(layout.name, F => scan::select::<F>(block, limit, scratch, keys, selected))
        })
    }

    fn append_lists(
        &mut self,
        layout: Layout,
        found: &mut Found<'a>,
        lists: &ListBlock<'a>,
        progress: Progress,
    ) -> usize {
        if layout.typed != lists.has_types() {
            return 0;
        }
        self.append_read(
            found,
            progress,
            |_| false,
            |_, keys, selected| read_rows!(layout.of_lists(), F => lists::select::<F>(lists, keys, selected)),
        )
    }
}
