//! decode: headers into a list column, the envelope's fields beside it.

use std::borrow::Cow;
use std::marker::PhantomData;
use std::mem;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, Int32Array, ListArray, StructArray};
use arrow_buffer::{OffsetBuffer, ScalarBuffer};

use super::binary::{Runs, Tail, TailMark, reserve};
use super::column::Column;
use super::schema;
use super::sink::{RowSink, Share};
use super::source::Source;
use super::validity::Validity;
use crate::chunk::Run;
use crate::error::Code;
use crate::header::{Header, Key, KeyForm};
use crate::kind::{Kind, MAX_NAME_LEN, Scalar};
use crate::mode::{Fast, LOOKED_AT_TOGETHER, Mode, Stop};
use crate::short::{Short, ShortHeader, ShortRow, Take};
use crate::value::{ByteOrder, Value};
use crate::walk::{Block, Envelope, Field, FieldType, FieldValue, Presence, Sink};

/// Keys as they grow, in the form of their format.
enum Keys {
    Text(Runs),
    Int(Vec<i32>),
    Typed { kinds: Runs, bits: Runs },
}

impl Keys {
    fn count(&self) -> usize {
        match self {
            Keys::Text(runs) | Keys::Typed { bits: runs, .. } => runs.count(),
            Keys::Int(numbers) => numbers.len(),
        }
    }

    /// Bytes of kinds and of keys.
    fn byte_len(&self) -> (usize, usize) {
        match self {
            Keys::Text(runs) => (0, runs.byte_len()),
            Keys::Int(_) => (0, 0),
            Keys::Typed { kinds, bits } => (kinds.byte_len(), bits.byte_len()),
        }
    }

    fn truncate(&mut self, count: usize) {
        match self {
            Keys::Text(runs) => runs.truncate(count),
            Keys::Int(numbers) => numbers.truncate(count),
            Keys::Typed { kinds, bits } => {
                kinds.truncate(count);
                bits.truncate(count);
            }
        }
    }

    fn finish(self) -> Vec<ArrayRef> {
        match self {
            Keys::Text(runs) => vec![runs.finish_text(None)],
            Keys::Int(numbers) => vec![Arc::new(Int32Array::new(ScalarBuffer::from(numbers), None))],
            Keys::Typed { kinds, bits } => vec![kinds.finish_text(None), bits.finish_bytes(None)],
        }
    }
}

/// The list column of all headers and the columns of the other fields, as they grow.
pub struct ListSink<'s, E> {
    source: Source<'s>,
    cell_bytes: usize,
    keys: Keys,
    /// Of formats with kinds: their names, null beside a null value.
    kinds: Option<Runs>,
    values: Runs,
    has_value: Validity,
    lists: Vec<i32>,
    has_list: Validity,
    /// Whether headers are kept, and not only looked at.
    with_headers: bool,
    /// Columns of the other fields, with their places among them.
    fields: Vec<(usize, Column)>,
    has_message: Validity,
    mark: Mark,
    text_keys: bool,
    format: PhantomData<E>,
}

/// How long everything was before the row at hand.
#[derive(Default)]
struct Mark {
    rows: usize,
    headers: usize,
}

impl<'s, E: Envelope> ListSink<'s, E> {
    /// `cell_bytes` is what the input holds: no column of the result can take more.
    pub fn new(cell_bytes: usize, text_keys: bool, source: Source<'s>) -> Self {
        let types = E::FIELDS.iter().filter_map(|field| schema::field_type(field.of));
        let fields: Vec<_> = types.map(Column::new).enumerate().collect();
        let keys = match E::Block::KEYS {
            KeyForm::Int => Keys::Int(Vec::new()),
            KeyForm::Typed if !text_keys => Keys::Typed { kinds: Runs::default(), bits: Runs::default() },
            KeyForm::Text | KeyForm::Typed => Keys::Text(Runs::default()),
        };
        ListSink {
            source,
            cell_bytes,
            keys,
            kinds: E::Block::KINDS.are_carried().then(Runs::default),
            values: Runs::default(),
            has_value: Validity::default(),
            lists: vec![0],
            has_list: Validity::default(),
            with_headers: true,
            mark: Mark::default(),
            fields,
            has_message: Validity::default(),
            text_keys,
            format: PhantomData,
        }
    }

    /// Keeps these fields and no others, before any row. Headers that are not kept are walked all the same.
    pub fn keep(mut self, asked: impl Fn(&Field) -> bool) -> Self {
        self.with_headers = E::FIELDS.iter().any(|field| field.of == FieldType::Headers && asked(field));
        let others: Vec<_> = E::FIELDS.iter().filter(|field| field.of != FieldType::Headers).collect();
        self.fields.retain(|(place, _)| asked(others[*place]));
        self
    }

    /// Where runs lie from here on.
    pub fn read_from(&mut self, source: Source<'s>) {
        self.source = source;
    }

    pub fn source(&self) -> Source<'s> {
        self.source
    }

    pub fn keeps_headers(&self) -> bool {
        self.with_headers
    }

    /// The same columns for runs of another source, between two rows.
    pub fn rebind<'b>(self, source: Source<'b>) -> ListSink<'b, E> {
        ListSink {
            source,
            cell_bytes: self.cell_bytes,
            keys: self.keys,
            kinds: self.kinds,
            values: self.values,
            has_value: self.has_value,
            lists: self.lists,
            has_list: self.has_list,
            with_headers: self.with_headers,
            fields: self.fields,
            has_message: self.has_message,
            mark: self.mark,
            text_keys: self.text_keys,
            format: PhantomData,
        }
    }

    /// Takes the key; false when it is refused, which was noted.
    #[inline]
    fn push_key<M: Mode>(&mut self, header: &Header<'_>, mode: &mut M) -> Result<bool, Stop> {
        match (&mut self.keys, &header.key) {
            (Keys::Text(runs), Key::Text(text)) => runs.push_from::<32>(self.source, text.as_bytes()),
            (Keys::Int(numbers), Key::Int(number)) => numbers.push(*number),
            (Keys::Typed { kinds, bits }, Key::Typed(typed)) => {
                kinds.push_padded(typed.kind.padded_name());
                match typed.string() {
                    Some(bytes) => bits.push_from::<32>(self.source, bytes),
                    None => bits.push(&typed.bits()),
                }
            }
            (Keys::Typed { kinds, bits }, Key::Text(text)) => {
                kinds.push(Scalar::String.name().as_bytes());
                bits.push(text.as_bytes());
            }
            (Keys::Text(runs), Key::Typed(typed)) => match (typed.text(), typed.string()) {
                (Some(text), _) => runs.push_from::<32>(self.source, text.as_bytes()),
                (None, Some(_)) => {
                    mode.soft(Code::KeyNotUtf8, None, || "the key is not UTF-8".into())?;
                    return Ok(false);
                }
                (None, None) => {
                    let refused = || format!("the key is {} and text keys were asked for", typed.kind.name());
                    mode.soft(Code::WrongKind, None, refused)?;
                    return Ok(false);
                }
            },
            _ => unreachable!("a walk hands over keys of its format's form"),
        }
        Ok(true)
    }

    fn end_list(&mut self, valid: bool, has_message: bool) {
        for (_, column) in &mut self.fields {
            // An envelope that could not be opened handed over no fields.
            if column.count() == self.mark.rows {
                column.push(None);
            }
        }
        self.lists.push(self.keys.count() as i32);
        self.has_list.push(valid);
        self.has_message.push(has_message);
    }

    fn drop_headers(&mut self) {
        self.keys.truncate(self.mark.headers);
        if let Some(kinds) = &mut self.kinds {
            kinds.truncate(self.mark.headers);
        }
        self.values.truncate(self.mark.headers);
        self.has_value.truncate(self.mark.headers);
    }

    /// The fields that are kept in the order of the envelope's table, and whether there is a message at all.
    pub fn finish(self) -> (Vec<ArrayRef>, Validity) {
        let nulls = self.has_value.finish();
        let mut columns = self.keys.finish();
        columns.extend(self.kinds.map(|kinds| kinds.finish_text(nulls.clone())));
        columns.push(self.values.finish_bytes(nulls));
        let headers = StructArray::new(schema::header_fields::<E::Block>(self.text_keys), columns, None);
        let element = schema::nullable("element", headers.data_type().clone());
        let offsets = OffsetBuffer::new(ScalarBuffer::from(self.lists));
        let lists: ArrayRef = Arc::new(ListArray::new(element, offsets, Arc::new(headers), self.has_list.finish()));
        let mut columns: Vec<_> = self.fields.into_iter().map(|(place, column)| (place, column.finish())).collect();
        if self.with_headers {
            let place = E::FIELDS.iter().position(|field| field.of == FieldType::Headers).unwrap_or(E::FIELDS.len());
            let before = columns.iter().take_while(|(other, _)| *other < place).count();
            columns.insert(before, (place, lists));
        }
        (columns.into_iter().map(|(_, column)| column).collect(), self.has_message)
    }
}

impl<'a, E: Envelope> Sink<'a> for ListSink<'_, E> {
    #[inline]
    fn header<M: Mode>(&mut self, header: Header<'a>, mode: &mut M) -> Result<(), Stop> {
        if !self.push_key(&header, mode)? {
            return Ok(());
        }
        if let Some(kinds) = &mut self.kinds {
            kinds.push_padded(header.kind.map_or(([0; MAX_NAME_LEN], 0), Kind::padded_name));
        }
        let value = header.value.unwrap_or_default();
        // A typed value is its bits, most significant byte first, whichever format it came from.
        if E::Block::ORDER == ByteOrder::Little && header.kind.and_then(Kind::width).is_some() {
            self.values.push_reversed(self.source, value);
        } else {
            self.values.push_from::<64>(self.source, value);
        }
        self.has_value.push(header.value.is_some());
        Ok(())
    }

    #[inline]
    fn fields(&mut self, fields: &[FieldValue<'a>]) {
        push_fields(&mut self.fields, fields);
    }
}

/// Appends a message's values to the columns of its fields.
#[inline]
fn push_fields(columns: &mut [(usize, Column)], values: &[FieldValue<'_>]) {
    for (place, column) in columns {
        column.push(match &values[*place] {
            FieldValue::Null => None,
            FieldValue::Bool(flag) => Some(Value::Bool(*flag)),
            FieldValue::Int64(number) => Some(Value::Int(*number)),
            FieldValue::Uint64(number) => Some(Value::Wide((*number).into())),
            FieldValue::Text(text) => Some(Value::Text(Cow::Borrowed(text))),
            FieldValue::Binary(bytes) => Some(Value::Bytes(bytes)),
            FieldValue::Id(id) => Some(Value::Bytes(id)),
        });
    }
}

/// The most bytes of a field.
fn max_bytes(columns: &[(usize, Column)]) -> usize {
    columns.iter().map(|(_, column)| column.byte_len()).max().unwrap_or(0)
}

/// Where the headers of a row go. Keys that are text are looked at later, many at a time.
struct Ends<'t, B> {
    key_kinds: Option<Tail<'t>>,
    keys: Tail<'t>,
    kinds: Option<Tail<'t>>,
    values: Tail<'t>,
    has_value: Validity,
    format: PhantomData<B>,
}

/// How long they were before the row at hand.
#[derive(Clone, Copy)]
struct EndsMark {
    names: [Option<TailMark>; 2],
    keys: TailMark,
    values: TailMark,
}

impl<'t, B: Block> Ends<'t, B> {
    /// Where the names of kinds go. Nothing is asked where there are none.
    #[inline(always)]
    fn names(&mut self) -> impl Iterator<Item = &mut Tail<'t>> {
        let names = if B::KINDS.are_carried() { [self.key_kinds.as_mut(), self.kinds.as_mut()] } else { [None, None] };
        names.into_iter().flatten()
    }

    #[inline(always)]
    fn push<'a, H: Short<'a>, M: Mode>(&mut self, headers: H, mode: &mut M) -> Result<(), Stop> {
        let (most, bytes) = (headers.most(), headers.byte_len());
        self.names().for_each(|names| names.reserve(most, most * MAX_NAME_LEN));
        self.keys.reserve(most, bytes);
        self.values.reserve(most, bytes);
        let done = headers.each(mode, self);
        self.has_value.push_until(self.values.count());
        done
    }

    #[inline(always)]
    fn mark(&mut self) -> EndsMark {
        let (keys, values) = (self.keys.mark(), self.values.mark());
        let mut names = self.names().map(|names| names.mark());
        EndsMark { names: [names.next(), names.next()], keys, values }
    }

    fn back_to(&mut self, mark: EndsMark) {
        self.names().zip(mark.names.into_iter().flatten()).for_each(|(names, mark)| names.back_to(mark));
        self.keys.back_to(mark.keys);
        self.values.back_to(mark.values);
        self.has_value.truncate(self.keys.count());
    }

    /// The largest offset used so far.
    #[inline(always)]
    fn max_offset(&mut self) -> usize {
        let parts = self.keys.byte_len().max(self.values.byte_len()).max(self.keys.count());
        self.names().map(|names| names.byte_len()).fold(parts, usize::max)
    }

    /// Appends a part, the most significant byte of a number first.
    ///
    /// # Safety
    ///
    /// Room was made for one run more and for its bytes.
    #[inline(always)]
    unsafe fn part(to: &mut Tail<'_>, kind: Option<Kind>, part: Run<'_>) {
        // SAFETY: as for this function.
        unsafe {
            match B::ORDER == ByteOrder::Little && kind.and_then(Kind::width).is_some() {
                true => to.push_reversed(part),
                false => to.push(part),
            }
        }
    }
}

impl<'a, B: Block> Take<'a> for Ends<'_, B> {
    const SEES_TEXT: bool = true;

    #[inline(always)]
    fn take(&mut self, header: ShortHeader<'a>) {
        // SAFETY: no more headers are handed over than there are, nor more bytes than they have.
        unsafe {
            for (names, kind) in [(&mut self.key_kinds, header.key_kind), (&mut self.kinds, header.kind)] {
                if let (Some(names), Some(kind)) = (names, kind) {
                    names.push_padded(kind.padded_name());
                }
            }
            Self::part(&mut self.keys, header.key_kind, header.key);
            match header.value {
                Some(value) => Self::part(&mut self.values, header.kind, value),
                None => {
                    self.has_value.push_until(self.values.count());
                    self.has_value.push(false);
                    self.values.push_empty();
                }
            }
        }
    }
}

impl<'a, E: Envelope> RowSink<'a> for ListSink<'_, E> {
    #[inline]
    fn begin_row(&mut self) {
        self.mark = Mark { rows: self.has_list.count(), headers: self.keys.count() };
    }

    fn leap<F: AsRef<[FieldValue<'a>]>, H: Short<'a>>(
        &mut self,
        rows: impl Iterator<Item = ShortRow<F, H>>,
        fast: &mut Fast,
        max_offset: usize,
    ) -> usize {
        if H::HAVE_KINDS != E::Block::KINDS.are_carried() {
            return 0;
        }
        let ListSink { keys, kinds, values, lists, fields, .. } = self;
        let (key_kinds, keys) = match keys {
            // Keys are looked at many at a time, and once more if one is no text.
            Keys::Text(keys) if E::Block::KEYS == KeyForm::Text && fast.trusts() => (None, keys),
            Keys::Typed { kinds, bits } if H::HAVE_KINDS => (Some(kinds.tail()), bits),
            _ => return 0,
        };
        let are_text = key_kinds.is_none();
        let mut ends: Ends<'_, E::Block> = Ends {
            key_kinds,
            keys: keys.tail(),
            kinds: kinds.as_mut().map(Runs::tail),
            values: values.tail(),
            has_value: mem::take(&mut self.has_value),
            format: PhantomData,
        };
        let mut seen = ends.keys.mark();
        // Rows that hold a message, and are not yet in the columns that say so.
        let (mut taken, mut there) = (0, 0);
        for row in rows {
            match row {
                ShortRow::Message(row_fields, headers) => {
                    let before = ends.mark();
                    let done = ends.push(headers, fast);
                    if done.is_ok() {
                        push_fields(fields, row_fields.as_ref());
                    }
                    if done.is_err() || ends.max_offset().max(max_bytes(fields)) > max_offset {
                        ends.back_to(before);
                        fields.iter_mut().for_each(|(_, column)| column.truncate(lists.len() - 1));
                        break;
                    }
                    there += 1;
                }
                ShortRow::Null => {
                    fields.iter_mut().for_each(|(_, column)| column.push(None));
                    for valid in [&mut self.has_list, &mut self.has_message] {
                        valid.push_all(there);
                        valid.push(false);
                    }
                    there = 0;
                }
            }
            lists.push(ends.keys.count() as i32);
            taken += 1;
            if are_text && ends.keys.bytes_since(seen) >= LOOKED_AT_TOGETHER {
                fast.trust_in(ends.keys.are_text_since(seen));
                seen = ends.keys.mark();
            }
        }
        fast.trust_in(!are_text || ends.keys.are_text_since(seen));
        for valid in [&mut self.has_list, &mut self.has_message] {
            valid.push_all(there);
        }
        let Ends { has_value, .. } = ends;
        self.has_value = has_value;
        taken
    }

    fn expect(&mut self, share: Share) {
        match &mut self.keys {
            Keys::Text(runs) => runs.expect(share, self.cell_bytes),
            Keys::Int(numbers) => reserve(numbers, share, self.cell_bytes),
            Keys::Typed { kinds, bits } => {
                kinds.expect(share, self.cell_bytes);
                bits.expect(share, self.cell_bytes);
            }
        }
        self.values.expect(share, self.cell_bytes);
        if let Some(kinds) = &mut self.kinds {
            kinds.expect(share, self.cell_bytes);
        }
        reserve(&mut self.lists, share, share.all + 1);
    }

    #[inline]
    fn end_row<M: Mode>(&mut self, headers: Presence, _mode: &mut M) -> Result<(), Stop> {
        let whole = headers == Presence::Whole;
        if !whole {
            self.drop_headers();
        }
        self.end_list(whole, true);
        Ok(())
    }

    fn abort_row(&mut self) {
        self.drop_headers();
        self.lists.truncate(self.mark.rows + 1);
        self.has_list.truncate(self.mark.rows);
        self.has_message.truncate(self.mark.rows);
        for (_, column) in &mut self.fields {
            column.truncate(self.mark.rows);
        }
    }

    fn null_row(&mut self) {
        self.end_list(false, false);
    }

    #[inline]
    fn max_offset(&self) -> usize {
        let fields = max_bytes(&self.fields);
        let (kinds, keys) = self.keys.byte_len();
        let kinds = self.kinds.as_ref().map_or(0, Runs::byte_len).max(kinds);
        keys.max(kinds).max(self.values.byte_len()).max(self.keys.count()).max(fields)
    }

    fn keeps_parts(&self) -> bool {
        false
    }
}
