//! [`Decode`]: headers as a list column, and the other fields of messages as columns.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, StructArray};
use arrow_schema::{DataType, FieldRef, Fields};

use super::binary::{self, ViewInput};
use super::column::{Column, Data, value_of};
use super::filter::{bit_ranges, ones};
use super::input::{Bytes, binary_column};
use super::layouts::read_rows;
use super::lists::Lists;
use super::rows::{MessageRows, RowSource};
use super::run::{OutputRows, run};
use super::sink::RowSink;
use super::{Input, Operation, Output, schema};
use crate::error::{Code, Direction, Error};
use crate::field::{Field, FieldType, FieldValue};
use crate::format_info::FormatInfo;
use crate::header::{Header, Key};
use crate::kernel::bitmap::Validity;
use crate::kernel::buffer::{BinaryValues, Progress, Utf8, Values as _};
use crate::kernel::decode::{self, ListColumns, max_bytes};
use crate::kernel::layout::Layout;
use crate::kernel::scan::SelectedValues;
use crate::kernel::{RowBlock, keys};
use crate::log::{Log, OnError, Result};
use crate::memory;
use crate::op::check_not_batch;
use crate::options::ReadOptions;
use crate::sink::Presence;
use crate::traits::{self, MessageFormat};
use crate::value::ByteOrder;
use crate::value_type::{Scalar, ValueType};

/// Decodes messages into lists of headers and columns of their other fields.
#[derive(Debug, Clone, Copy, Default)]
pub struct Decode {
    pub options: ReadOptions,
    pub on_error: OnError,
    /// Whether text and binary columns, except keys of headers, are views of the input.
    pub views: bool,
}

impl Operation for Decode {
    fn output_type(&self, format: &'static FormatInfo) -> Result<DataType, Error> {
        check_not_batch(format)?;
        Ok(self.result_type(format))
    }

    fn apply<E: MessageFormat>(&self, input: Input<'_>) -> Result<Output, Error> {
        let messages = binary_column(input.column, &E::INFO)?;
        self.run_rows(&MessageRows::new::<E>(messages, self.options), messages, input, &E::INFO)
    }
}

impl Decode {
    fn result_type(&self, format: &FormatInfo) -> DataType {
        let data_type = match self.on_error {
            OnError::Column | OnError::NullColumn => {
                let fields = schema::message_fields(format, self.options.text_keys);
                DataType::Struct(schema::with_errors(fields, self.on_error).into())
            }
            OnError::Raise | OnError::Null => schema::decoded_type(format, self.options.text_keys),
        };
        if self.views { schema::with_views(&data_type) } else { data_type }
    }

    #[inline(never)]
    fn run_rows<'a>(
        &self,
        rows: &dyn RowSource<'a, ListSink>,
        messages: Bytes<'a>,
        input: Input<'a>,
        format: &FormatInfo,
    ) -> Result<Output, Error> {
        let plan = input.plan(format.name, Direction::Decode, self.on_error, self.options.limits);
        let views = self.views.then(|| ViewInput::new(messages));
        let make = || Ok(ListSink::new(format, self.options.text_keys, views.as_ref()));
        let OutputRows { sink, report_columns, until, .. } = run(rows, input.from, &plan, &make)?;
        let (columns, has_message) = sink.finish();
        let (data_type, nulls) = (self.result_type(format), binary::nulls(has_message));
        Ok(Output::new(data_type, columns, nulls, &plan, report_columns, input.from..until))
    }
}

/// Name of the column of headers in errors.
const HEADERS: &str = "headers";

/// The growing columns of headers, which are the elements of lists.
struct HeaderColumns {
    /// Names of the types of keys, if the format has typed keys.
    key_types: Option<Utf8<BinaryValues>>,
    /// Keys. They are never null, so their validity is not used.
    keys: Column,
    /// Names of the types of values, if the format has types: null for a null value, empty for a value without a type.
    types: Option<Utf8<BinaryValues>>,
    /// Whether a value without a type was appended.
    has_untyped: bool,
    values: Column,
}

impl HeaderColumns {
    fn new(fields: &Fields, values: Column) -> Self {
        let names = |name| fields.find(name).map(|_| Utf8::default());
        let data_type = fields.find("key").map_or(DataType::Utf8, |(_, key)| key.data_type().clone());
        let keys = Column::new(data_type, &ViewInput::default());
        HeaderColumns { key_types: names("key_type"), keys, types: names("type"), has_untyped: false, values }
    }

    fn names(&mut self) -> impl Iterator<Item = &mut Utf8<BinaryValues>> {
        self.key_types.iter_mut().chain(&mut self.types)
    }

    #[inline]
    fn count(&self) -> usize {
        self.values.count()
    }

    fn max_offset(&self) -> usize {
        let names = self.key_types.iter().chain(&self.types).map(|names| names.byte_len());
        names.fold(self.keys.max_offset().max(self.values.max_offset()).max(self.count()), usize::max)
    }

    fn truncate(&mut self, count: usize) {
        self.names().for_each(|names| names.truncate(count));
        self.keys.truncate(count);
        self.values.truncate(count);
    }

    fn retain(&mut self, from: usize, kept: &[Range<usize>]) {
        self.names().for_each(|names| names.retain(from, kept));
        self.keys.retain(from, kept);
        self.values.retain(from, kept);
    }

    fn extend(&mut self, other: &Self, progress: Progress) {
        let others = other.key_types.iter().chain(&other.types);
        self.names().zip(others).for_each(|(names, others)| names.extend(others, progress));
        self.has_untyped |= other.has_untyped;
        self.keys.extend(&other.keys, progress);
        self.values.extend(&other.values, progress);
    }

    fn finish(self, fields: &Fields) -> ArrayRef {
        let values = self.values.finish();
        let mut columns: Vec<_> = self.key_types.map(|types| binary::text(types, None)).into_iter().collect();
        columns.push(self.keys.finish());
        columns.extend(self.types.map(|types| match self.has_untyped {
            true => binary::names(types, values.nulls()),
            false => binary::text(types, values.nulls().cloned()),
        }));
        columns.push(values);
        // Values that may be views.
        let field =
            |(field, column): (&FieldRef, &ArrayRef)| schema::nullable(field.name(), column.data_type().clone());
        Arc::new(StructArray::new(fields.iter().zip(&columns).map(field).collect(), columns, None))
    }
}

/// Shared code for copied values and for views.
macro_rules! match_values {
    ($column:expr, ($values:ident, $has_value:ident) => $body:expr) => {
        match $column.parts_mut() {
            (Data::Bytes($values), $has_value) => $body,
            (Data::ByteViews($values), $has_value) => $body,
            _ => unreachable!("values of headers are bytes"),
        }
    };
}

/// The growing list column of headers and columns of the other fields.
pub struct ListSink {
    headers: HeaderColumns,
    /// Type of a header, without views.
    header_fields: Fields,
    lists: Lists,
    has_list: Validity,
    /// Whether headers are kept, instead of only validated.
    with_headers: bool,
    /// Columns of the other fields, and their indexes.
    fields: Vec<(usize, Column)>,
    has_message: Validity,
    /// The byte order of typed values.
    order: ByteOrder,
    /// Fields of a message.
    message: &'static [Field],
}

impl ListSink {
    /// Creates an empty sink. `views`: text and binary fields, and values of headers, become views of this input.
    pub fn new(format: &FormatInfo, text_keys: bool, views: Option<&ViewInput>) -> Self {
        let (message, header_fields) = (format.fields, schema::header_fields(format, text_keys));
        let types = message.iter().filter_map(|field| schema::field_type(field.field_type));
        let column = |data_type| match views {
            Some(input) => Column::new(schema::with_views(&data_type), input),
            None => Column::new(data_type, &ViewInput::default()),
        };
        let fields: Vec<_> = types.map(column).enumerate().collect();
        ListSink {
            headers: HeaderColumns::new(&header_fields, column(DataType::Binary)),
            header_fields,
            lists: Lists::default(),
            has_list: Validity::default(),
            with_headers: true,
            fields,
            has_message: Validity::default(),
            order: format.order,
            message,
        }
    }

    /// Keeps only some fields, and is called before any row is appended. Headers that are not kept are still validated.
    pub fn keep(mut self, is_requested: impl Fn(&Field) -> bool) -> Self {
        self.with_headers =
            self.message.iter().any(|field| field.field_type == FieldType::Headers && is_requested(field));
        let others: Vec<_> = self.message.iter().filter(|field| field.field_type != FieldType::Headers).collect();
        self.fields.retain(|(index, _)| is_requested(others[*index]));
        self
    }

    pub fn keeps_headers(&self) -> bool {
        self.with_headers
    }

    /// Appends the fields of messages.
    pub fn push_fields_of<'f, F: traits::MessageFields<'f>>(&mut self, messages: &[F], progress: Progress) {
        for (index, column) in &mut self.fields {
            let values = messages.iter().map(|message| message.value(*index));
            let pushed = memory::catch_refusal(|| column.push_fields(values, progress));
            pushed.unwrap_or_else(|held| held.resume(field_name(self.message, *index)));
        }
    }

    /// Appends the headers of a block up to the first row that needs the slow path, and returns the number of rows.
    /// Also collects the values of requested keys.
    pub fn decode<'a>(
        &mut self,
        layout: Layout,
        block: &RowBlock<'a>,
        limit: usize,
        progress: Progress,
        requested: Option<(&keys::KeySet, &mut SelectedValues<'a>)>,
    ) -> usize {
        let HeaderColumns { key_types, keys, types, values, .. } = &mut self.headers;
        let keys = match (key_types, keys.parts_mut().0) {
            (None, Data::Text(keys)) => decode::KeyColumns::Text(keys),
            (Some(types), Data::Bytes(keys)) => decode::KeyColumns::Typed(types, keys),
            _ => return 0,
        };
        let (types, ends) = (types.as_mut(), &mut self.lists.0);
        let decoded = match requested {
            None => match_values!(values, (values, has_value) => {
                let mut lists = ListColumns { keys, types, values, has_value, ends };
                memory::catch_refusal(|| {
                    read_rows!(layout.name, F => decode::decode::<F, _>(block, limit, progress, &mut lists))
                })
            }),
            Some((requested, selected)) => {
                // Only messages of batches are decoded and selected at once, and their values are never views.
                let (Data::Bytes(values), has_value) = values.parts_mut() else { return 0 };
                let mut lists = ListColumns { keys, types, values, has_value, ends };
                memory::catch_refusal(|| {
                    read_rows!(layout.name, F => {
                        decode::decode_and_select::<F, _>(block, limit, progress, &mut lists, requested, selected)
                    })
                })
            }
        };
        let done = decoded.unwrap_or_else(|held| held.resume(HEADERS));
        let rows = &block.rows()[..done];
        let has_message = rows.iter().rev().fold(0, |bits, row| bits << 1 | u64::from(row.is_some()));
        self.has_list.push_word(has_message, done);
        self.has_message.push_word(has_message, done);
        done
    }

    /// Removes the rows whose bits are clear from the last `rows` rows, at most 64. Their fields are appended later.
    pub fn retain(&mut self, rows: usize, selected: u64) {
        if selected & ones(rows) == ones(rows) {
            return;
        }
        let first = self.row_count() - rows;
        let kept: Vec<_> =
            bit_ranges(selected & ones(rows)).map(|range| first + range.start..first + range.end).collect();
        let from = self.lists.0[first] as usize;
        self.headers.retain(from, &self.lists.retain(first, &kept));
        self.has_list.retain(first, &kept);
        self.has_message.retain(first, &kept);
    }

    pub fn push_without_headers(&mut self, messages: usize) {
        self.lists.push_empty(self.headers.count(), messages);
        self.has_list.push_all(messages);
        self.has_message.push_all(messages);
    }

    /// Appends the key; returns false if it is rejected and was reported.
    #[inline(always)]
    fn push_key<R: Log>(&mut self, header: &Header<'_>, log: &mut R) -> Result<bool> {
        let HeaderColumns { key_types, keys, .. } = &mut self.headers;
        match (keys.parts_mut().0, key_types, &header.key) {
            (Data::Text(texts), _, Key::Text(text)) => texts.push_key(text),
            (Data::Int32(numbers), _, Key::Int(number)) => memory::push(numbers, *number),
            (Data::Bytes(bits), Some(types), Key::Typed(typed)) => {
                types.push_name(Some(typed.value_type));
                match typed.string() {
                    Some(bytes) => bits.push(bytes),
                    None => bits.push(&typed.bits()),
                }
            }
            (Data::Bytes(bits), Some(types), Key::Text(text)) => {
                types.push(Scalar::String.name());
                bits.push(text.as_bytes());
            }
            (Data::Text(texts), _, Key::Typed(typed)) => match (typed.text(), typed.string()) {
                (Some(text), _) => texts.push(text),
                (None, Some(_)) => {
                    log.error(Code::KeyNotUtf8, None, || "the key is not UTF-8".into())?;
                    return Ok(false);
                }
                (None, None) => {
                    let rejected = || format!("the key is {} and text keys were requested", typed.value_type.name());
                    log.error(Code::WrongType, None, rejected)?;
                    return Ok(false);
                }
            },
            _ => unreachable!("a parser passes only keys of its form"),
        }
        Ok(true)
    }

    fn end_list(&mut self, valid: bool, has_message: bool) {
        for (_, column) in &mut self.fields {
            // The fields of a message that could not be opened are null.
            if column.count() == self.lists.count() {
                column.push(None);
            }
        }
        self.lists.push(self.headers.count());
        self.has_list.push(valid);
        self.has_message.push(has_message);
    }

    /// Columns of the kept fields in the order of the format's table, and the validity of rows.
    pub fn finish(self) -> (Vec<ArrayRef>, Validity) {
        let headers = self.headers.finish(&self.header_fields);
        let element = schema::nullable("element", headers.data_type().clone());
        let lists = self.lists.finish(element, headers, binary::nulls(self.has_list));
        let mut columns: Vec<_> = self.fields.into_iter().map(|(index, column)| (index, column.finish())).collect();
        if self.with_headers {
            let index = self.message.iter().position(|field| field.field_type == FieldType::Headers);
            let index = index.unwrap_or(self.message.len());
            let before = columns.iter().take_while(|(other, _)| *other < index).count();
            columns.insert(before, (index, lists));
        }
        (columns.into_iter().map(|(_, column)| column).collect(), self.has_message)
    }
}

/// The name of a field other than the headers.
fn field_name(message: &[Field], index: usize) -> &'static str {
    let mut others = message.iter().filter(|field| field.field_type != FieldType::Headers);
    others.nth(index).map_or("", |field| field.name)
}

impl<'a> RowSink<'a> for ListSink {
    type Found = ();

    const KEEPS_PARTS: bool = false;

    #[inline(always)] // Passing a header through memory costs more than reading it.
    fn header<R: Log>(&mut self, _: &mut (), header: Header<'a>, log: &mut R) -> Result {
        if !self.push_key(&header, log)? {
            return Ok(());
        }
        if let Some(types) = &mut self.headers.types {
            types.push_name(header.value_type);
            self.headers.has_untyped |= header.value_type.is_none() && header.value.is_some();
        }
        let value = header.value.unwrap_or_default();
        match_values!(self.headers.values, (values, has_value) => {
            // Typed values are big-endian bytes in every format.
            if self.order == ByteOrder::Little && header.value_type.and_then(ValueType::width).is_some() {
                values.push_reversed(value);
            } else {
                values.push(value);
            }
            has_value.push(header.value.is_some());
        });
        Ok(())
    }

    #[inline]
    fn fields(&mut self, fields: &[FieldValue<'a>]) {
        self.fields.iter_mut().for_each(|(index, column)| column.push(value_of(&fields[*index])));
    }

    fn extend(&mut self, other: &Self, progress: Progress) {
        let extended = memory::catch_refusal(|| {
            self.lists.extend(&other.lists, self.headers.count(), progress);
            self.has_list.extend(&other.has_list);
            self.headers.extend(&other.headers, progress);
            self.has_message.extend(&other.has_message);
        });
        extended.unwrap_or_else(|held| held.resume(HEADERS));
        for ((index, column), (_, other)) in self.fields.iter_mut().zip(&other.fields) {
            let extended = memory::catch_refusal(|| column.extend(other, progress));
            extended.unwrap_or_else(|held| held.resume(field_name(self.message, *index)));
        }
    }

    #[inline]
    fn begin_row(&mut self, _: &mut ()) {}

    #[inline]
    fn end_row<R: Log>(&mut self, _: &mut (), headers: Presence, _log: &mut R) -> Result {
        let whole = headers == Presence::Whole;
        if !whole {
            // Removes the headers of the row, whose list has not ended.
            self.headers.truncate(self.lists.truncate(self.lists.count()));
        }
        self.end_list(whole, true);
        Ok(())
    }

    #[inline]
    fn row_count(&self) -> usize {
        self.lists.count()
    }

    fn truncate(&mut self, rows: usize) {
        self.headers.truncate(self.lists.truncate(rows));
        self.has_list.truncate(rows);
        self.has_message.truncate(rows);
        self.fields.iter_mut().for_each(|(_, column)| column.truncate(rows));
    }

    fn null_row(&mut self) {
        self.end_list(false, false);
    }

    #[inline]
    fn max_offset(&self) -> usize {
        let fields = self.fields.iter().map(|(_, column)| column.max_offset()).max().unwrap_or(0);
        self.headers.max_offset().max(fields)
    }

    fn room(&self, layout: Layout, max_offset: usize) -> Option<usize> {
        let is_kept = self.with_headers && (layout.typed_keys == self.headers.key_types.is_some());
        // A column grows by at most `max_bytes`; fields are part of the input.
        let left = max_offset.saturating_sub(self.max_offset());
        is_kept.then(|| if layout.typed { left / (max_bytes(layout, 1 << 10) / (1 << 10) + 1) } else { left })
    }

    fn append(&mut self, layout: Layout, _: &mut (), block: &RowBlock<'a>, limit: usize, progress: Progress) -> usize {
        let rows = self.row_count();
        let done = self.decode(layout, block, limit, progress, None);
        // The fields of all rows of the block were already appended.
        self.fields.iter_mut().for_each(|(_, column)| column.truncate(rows + done));
        done
    }
}
