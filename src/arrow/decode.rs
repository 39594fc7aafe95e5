//! [`ListSink`]: headers as a list column, the other fields of messages as columns beside it.

use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, Int32Array, ListArray, StructArray};
use arrow_buffer::ScalarBuffer;
use arrow_schema::{DataType, FieldRef};

use super::binary::{self, ViewInput};
use super::column::{Column, Data, value_of};
use super::filter::{ones, runs};
use super::schema;
use super::sink::{BlockSink, RowSink};
use crate::error::Code;
use crate::header::{Header, Key, KeyForm};
use crate::kernel::RowBlock;
use crate::kernel::bitmap::Validity;
use crate::kernel::buffer::{Progress, Runs, Utf8, Values as _, extend_ends};
use crate::kernel::decode::{self, ListColumns, max_bytes};
use crate::kernel::keys;
use crate::kernel::layout::WireLayout;
use crate::kernel::scan::Hits;
use crate::log::{Log, Result};
use crate::traits::{Field, FieldType, FieldValue, Fields, HeadersFormat, MessageFormat, Presence};
use crate::value::ByteOrder;
use crate::value_type::{Scalar, ValueType};

/// Keys as they grow, in the form of their format.
enum KeyBuilder {
    Text(Utf8<Runs>),
    /// The names of their types, and text or bits.
    Typed(Utf8<Runs>, Runs),
    Int(Vec<i32>),
}

impl KeyBuilder {
    fn count(&self) -> usize {
        match self {
            KeyBuilder::Text(runs) => runs.count(),
            KeyBuilder::Typed(_, runs) => runs.count(),
            KeyBuilder::Int(numbers) => numbers.len(),
        }
    }

    /// Bytes of types or of keys, whichever are more.
    fn byte_len(&self) -> usize {
        match self {
            KeyBuilder::Text(runs) => runs.byte_len(),
            KeyBuilder::Typed(types, runs) => types.byte_len().max(runs.byte_len()),
            KeyBuilder::Int(_) => 0,
        }
    }

    fn truncate(&mut self, count: usize) {
        match self {
            KeyBuilder::Text(runs) => runs.truncate(count),
            KeyBuilder::Typed(types, runs) => {
                types.truncate(count);
                runs.truncate(count);
            }
            KeyBuilder::Int(numbers) => numbers.truncate(count),
        }
    }

    /// Of the keys from one on, keeps those in some ranges.
    fn retain(&mut self, from: usize, kept: &[Range<usize>]) {
        match self {
            KeyBuilder::Text(runs) => runs.retain(from, kept),
            KeyBuilder::Typed(types, runs) => {
                types.retain(from, kept);
                runs.retain(from, kept);
            }
            KeyBuilder::Int(_) => unreachable!("kernels read no keys that are numbers"),
        }
    }

    fn extend(&mut self, other: &KeyBuilder, progress: Progress) {
        match (self, other) {
            (KeyBuilder::Text(runs), KeyBuilder::Text(others)) => runs.extend(others, progress),
            (KeyBuilder::Typed(types, runs), KeyBuilder::Typed(other_types, others)) => {
                types.extend(other_types, progress);
                runs.extend(others, progress);
            }
            (KeyBuilder::Int(numbers), KeyBuilder::Int(others)) => {
                progress.reserve(numbers, others.len());
                numbers.extend_from_slice(others);
            }
            _ => unreachable!("keys of one output have one form"),
        }
    }

    fn finish(self) -> Vec<ArrayRef> {
        match self {
            KeyBuilder::Text(runs) => vec![binary::text(runs, None)],
            KeyBuilder::Typed(types, bits) => vec![binary::text(types, None), binary::binary(bits, None)],
            KeyBuilder::Int(numbers) => vec![Arc::new(Int32Array::new(ScalarBuffer::from(numbers), None))],
        }
    }
}

/// One body for values that are copied and for views of them.
macro_rules! match_values {
    ($column:expr, ($values:ident, $has_value:ident) => $body:expr) => {
        match $column.parts_mut() {
            (Data::Bytes($values), $has_value) => $body,
            (Data::ByteViews($values), $has_value) => $body,
            _ => unreachable!("values of headers are bytes"),
        }
    };
}

/// The list column of all headers and the columns of the other fields, as they grow.
pub struct ListSink<E> {
    keys: KeyBuilder,
    /// Names of the types, if the format has types; null for a null value.
    types: Option<Utf8<Runs>>,
    values: Column,
    lists: Vec<i32>,
    has_list: Validity,
    /// Whether headers are kept, and not only validated.
    with_headers: bool,
    /// Columns of the other fields, with their places among them.
    fields: Vec<(usize, Column)>,
    has_message: Validity,
    /// Rows before the current one.
    row: usize,
    text_keys: bool,
    /// The byte order of typed values.
    order: ByteOrder,
    format: PhantomData<fn() -> E>,
}

impl<E: MessageFormat> ListSink<E> {
    /// `views`: fields that are text or bytes, and values of headers, become views of this input.
    pub fn new(text_keys: bool, views: Option<&ViewInput>) -> Self {
        let types = E::FIELDS.iter().filter_map(|field| schema::field_type(field.of));
        let column = |of| match views {
            Some(input) => Column::new(schema::with_views(&of), input),
            None => Column::new(of, &ViewInput::default()),
        };
        let fields: Vec<_> = types.map(column).enumerate().collect();
        let keys = match E::Headers::KEYS {
            KeyForm::Int => KeyBuilder::Int(Vec::new()),
            KeyForm::Typed if !text_keys => KeyBuilder::Typed(Utf8::default(), Runs::default()),
            KeyForm::Text | KeyForm::Typed => KeyBuilder::Text(Utf8::default()),
        };
        ListSink {
            keys,
            types: E::Headers::TYPES.is_typed().then(Utf8::default),
            values: column(DataType::Binary),
            lists: vec![0],
            has_list: Validity::default(),
            with_headers: true,
            row: 0,
            fields,
            has_message: Validity::default(),
            text_keys,
            order: E::Headers::ORDER,
            format: PhantomData,
        }
    }

    /// The byte order of typed values, where it is not that of the format.
    pub fn with_order(self, order: ByteOrder) -> Self {
        ListSink { order, ..self }
    }

    /// Keeps only these fields; called before any row. Headers that are not kept are still validated.
    pub fn keep(mut self, is_requested: impl Fn(&Field) -> bool) -> Self {
        self.with_headers = E::FIELDS.iter().any(|field| field.of == FieldType::Headers && is_requested(field));
        let others: Vec<_> = E::FIELDS.iter().filter(|field| field.of != FieldType::Headers).collect();
        self.fields.retain(|(place, _)| is_requested(others[*place]));
        self
    }

    pub fn keeps_headers(&self) -> bool {
        self.with_headers
    }

    /// Appends the fields of messages.
    pub fn push_fields_of<'f, F: Fields<'f>>(&mut self, messages: &[F], progress: Progress) {
        for (place, column) in &mut self.fields {
            column.push_fields(messages.iter().map(|message| message.value(*place)), progress);
        }
    }

    pub fn row_count(&self) -> usize {
        self.has_list.count()
    }

    /// Appends the headers of the block's rows up to the first one that needs the slow path; returns how many rows.
    /// Also collects the values of requested keys.
    pub fn decode<'a, F: WireLayout>(
        &mut self,
        block: &RowBlock<'a>,
        limit: usize,
        progress: Progress,
        requested: Option<(&keys::KeySet, &mut Hits<'a>)>,
    ) -> usize {
        let keys = match &mut self.keys {
            KeyBuilder::Text(keys) => decode::KeyColumns::Text(keys),
            KeyBuilder::Typed(types, keys) => decode::KeyColumns::Typed(types, keys),
            KeyBuilder::Int(_) => return 0,
        };
        let (types, ends) = (self.types.as_mut(), &mut self.lists);
        let done = match_values!(self.values, (values, has_value) => {
            let mut lists = ListColumns { keys, types, values, has_value, ends };
            match requested {
                None => decode::decode::<F, _>(block, limit, progress, &mut lists),
                Some((keys, hits)) => decode::decode_and_select::<F, _>(block, limit, progress, &mut lists, keys, hits),
            }
        });
        let rows = &block.rows()[..done];
        let has_message = rows.iter().rev().fold(0, |bits, row| bits << 1 | u64::from(row.is_some()));
        self.has_list.push_word(has_message, done);
        self.has_message.push_word(has_message, done);
        done
    }

    /// Of the last rows, which are at most 64 and have no fields yet, keeps those whose bits are set.
    pub fn retain(&mut self, rows: usize, selected: u64) {
        if selected & ones(rows) == ones(rows) {
            return;
        }
        let first = self.row_count() - rows;
        let kept: Vec<_> = runs(selected & ones(rows)).map(|run| first + run.start..first + run.end).collect();
        let headers = |rows: &Range<usize>| self.lists[rows.start] as usize..self.lists[rows.end] as usize;
        let (from, headers) = (self.lists[first] as usize, kept.iter().map(headers).collect::<Vec<_>>());
        self.keys.retain(from, &headers);
        if let Some(types) = &mut self.types {
            types.retain(from, &headers);
        }
        match self.values.parts_mut() {
            (Data::Bytes(values), has_value) => {
                values.retain(from, &headers);
                has_value.retain(from, &headers);
            }
            _ => unreachable!("messages of batches have no views"),
        }
        let (mut next, mut end) = (first, self.lists[first]);
        for rows in &kept {
            let shift = self.lists[rows.start] - end;
            for row in rows.clone() {
                next += 1;
                end = self.lists[row + 1] - shift;
                self.lists[next] = end;
            }
        }
        self.lists.truncate(next + 1);
        self.has_list.retain(first, &kept);
        self.has_message.retain(first, &kept);
    }

    /// Back to this many rows.
    pub fn truncate(&mut self, rows: usize) {
        self.lists.truncate(rows + 1);
        self.drop_headers();
        self.has_list.truncate(rows);
        self.has_message.truncate(rows);
        for (_, column) in &mut self.fields {
            column.truncate(rows);
        }
    }

    pub fn push_without_headers(&mut self, messages: usize) {
        let end = self.keys.count() as i32;
        self.lists.extend(std::iter::repeat_n(end, messages));
        self.has_list.push_all(messages);
        self.has_message.push_all(messages);
    }

    /// Appends the key; returns false if it is rejected, which was reported.
    #[inline]
    fn push_key<R: Log>(&mut self, header: &Header<'_>, log: &mut R) -> Result<bool> {
        match (&mut self.keys, &header.key) {
            (KeyBuilder::Text(runs), Key::Text(text)) => runs.push_key(text),
            (KeyBuilder::Int(numbers), Key::Int(number)) => numbers.push(*number),
            (KeyBuilder::Typed(types, bits), Key::Typed(typed)) => {
                types.push_name(Some(typed.value_type));
                match typed.string() {
                    Some(bytes) => bits.push(bytes),
                    None => bits.push(&typed.bits()),
                }
            }
            (KeyBuilder::Typed(types, bits), Key::Text(text)) => {
                types.push(Scalar::String.name());
                bits.push(text.as_bytes());
            }
            (KeyBuilder::Text(runs), Key::Typed(typed)) => match (typed.text(), typed.string()) {
                (Some(text), _) => runs.push(text),
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
            // A message that could not be opened has no fields.
            if column.count() == self.row {
                column.push(None);
            }
        }
        self.lists.push(self.keys.count() as i32);
        self.has_list.push(valid);
        self.has_message.push(has_message);
    }

    /// Drops the headers after the last list that has ended.
    fn drop_headers(&mut self) {
        let headers = self.lists.last().map_or(0, |end| *end as usize);
        self.keys.truncate(headers);
        if let Some(types) = &mut self.types {
            types.truncate(headers);
        }
        self.values.truncate(headers);
    }

    /// The columns of the fields that are kept, in the order of the format's table, and which rows have a message.
    pub fn finish(self) -> (Vec<ArrayRef>, Validity) {
        let values = self.values.finish();
        let mut columns = self.keys.finish();
        columns.extend(self.types.map(|types| binary::text(types, values.nulls().cloned())));
        columns.push(values);
        let fields = schema::header_fields::<E::Headers>(self.text_keys);
        // Values may be views.
        let field =
            |(field, column): (&FieldRef, &ArrayRef)| schema::nullable(field.name(), column.data_type().clone());
        let headers = StructArray::new(fields.iter().zip(&columns).map(field).collect(), columns, None);
        let element = schema::nullable("element", headers.data_type().clone());
        let offsets = binary::list_offsets(self.lists);
        let lists: ArrayRef =
            Arc::new(ListArray::new(element, offsets, Arc::new(headers), binary::nulls(self.has_list)));
        let mut columns: Vec<_> = self.fields.into_iter().map(|(place, column)| (place, column.finish())).collect();
        if self.with_headers {
            let place = E::FIELDS.iter().position(|field| field.of == FieldType::Headers).unwrap_or(E::FIELDS.len());
            let before = columns.iter().take_while(|(other, _)| *other < place).count();
            columns.insert(before, (place, lists));
        }
        (columns.into_iter().map(|(_, column)| column).collect(), self.has_message)
    }
}

#[inline]
fn push_fields(columns: &mut [(usize, Column)], values: &[FieldValue<'_>]) {
    columns.iter_mut().for_each(|(place, column)| column.push(value_of(&values[*place])));
}

impl<'a, E: MessageFormat> BlockSink<'a> for ListSink<E> {
    fn room<F: WireLayout>(&self, max_offset: usize) -> Option<usize> {
        let is_kept = self.with_headers && (F::TYPED_KEYS == matches!(self.keys, KeyBuilder::Typed(..)));
        // At most `max_bytes` of the input are appended, and fields are parts of it.
        let left = max_offset.saturating_sub(self.max_offset());
        is_kept.then(|| if F::TYPED { left / (max_bytes::<F>(1 << 10) / (1 << 10) + 1) } else { left })
    }

    #[inline]
    fn open_row(&mut self, fields: Option<&[FieldValue<'a>]>) {
        match fields {
            Some(fields) => push_fields(&mut self.fields, fields),
            None => self.fields.iter_mut().for_each(|(_, column)| column.push(None)),
        }
    }

    fn append<F: WireLayout>(&mut self, _: &mut (), block: &RowBlock<'a>, limit: usize, progress: Progress) -> usize {
        let rows = self.has_list.count();
        let done = self.decode::<F>(block, limit, progress, None);
        // The fields of all rows of the block were opened.
        self.fields.iter_mut().for_each(|(_, column)| column.truncate(rows + done));
        done
    }
}

impl<'a, E: MessageFormat> RowSink<'a> for ListSink<E> {
    type Found = ();

    const KEEPS_PARTS: bool = false;

    #[inline]
    fn header<R: Log>(&mut self, _: &mut (), header: Header<'a>, log: &mut R) -> Result {
        if !self.push_key(&header, log)? {
            return Ok(());
        }
        if let Some(types) = &mut self.types {
            types.push_name(header.value_type);
        }
        let value = header.value.unwrap_or_default();
        match_values!(self.values, (values, has_value) => {
            // A typed value is its bits, most significant byte first, whichever format it came from.
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
        push_fields(&mut self.fields, fields);
    }

    fn extend(&mut self, other: &Self, progress: Progress) {
        extend_ends(&mut self.lists, &other.lists, self.keys.count() as i32, progress);
        self.keys.extend(&other.keys, progress);
        if let (Some(types), Some(others)) = (&mut self.types, &other.types) {
            types.extend(others, progress);
        }
        self.values.extend(&other.values, progress);
        self.has_list.extend(&other.has_list);
        self.has_message.extend(&other.has_message);
        let fields = self.fields.iter_mut().zip(&other.fields);
        fields.for_each(|((_, column), (_, other))| column.extend(other, progress));
    }

    #[inline]
    fn begin_row(&mut self, _: &mut ()) {
        self.row = self.has_list.count();
    }

    #[inline]
    fn end_row<R: Log>(&mut self, _: &mut (), headers: Presence, _log: &mut R) -> Result {
        let whole = headers == Presence::Whole;
        if !whole {
            self.drop_headers();
        }
        self.end_list(whole, true);
        Ok(())
    }

    fn abort_row(&mut self, _: &mut ()) {
        self.truncate(self.row);
    }

    fn null_row(&mut self) {
        self.end_list(false, false);
    }

    #[inline]
    fn max_offset(&self) -> usize {
        let fields = self.fields.iter().map(|(_, column)| column.byte_len()).max().unwrap_or(0);
        let types = self.types.as_ref().map_or(0, |types| types.byte_len());
        self.keys.byte_len().max(types).max(self.values.byte_len()).max(self.keys.count()).max(fields)
    }
}
