//! select: some headers into typed columns, one pass over all of them.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, ListArray};
use arrow_buffer::{OffsetBuffer, ScalarBuffer};
use arrow_schema::DataType;

use super::column::Column;
use super::schema;
use super::sink::RowSink;
use super::source::Source;
use super::validity::Validity;
use crate::chunk::{CHUNK, Run, are_alike};
use crate::error::{Code, Error, Fault, unknown_name};
use crate::header::{Header, Key, TypedKey, WantedKey};
use crate::kind::{Dialect, Kind, Scalar};
use crate::mode::{Fast, Mode, Stop};
use crate::short::{Short, ShortHeader, ShortRow, Take};
use crate::spelling::Spelling;
use crate::types::{Coding, Type};
use crate::value::{ByteOrder, Value};
use crate::walk::{FieldValue, Presence, Sink};

/// Which of several headers with one key is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeat {
    Last,
    First,
    All,
    Error,
}

impl Repeat {
    const ALL: [(&'static str, Repeat); 4] =
        [("last", Repeat::Last), ("first", Repeat::First), ("all", Repeat::All), ("error", Repeat::Error)];

    pub fn named(name: &str) -> Result<Repeat, Error> {
        let found = Repeat::ALL.iter().find(|(known, _)| *known == name).map(|(_, repeat)| *repeat);
        found.ok_or_else(|| unknown_name("repeat", name, Repeat::ALL.iter().map(|(known, _)| *known)))
    }
}

/// One output column and the header it is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Want {
    pub output: String,
    pub key: WantedKey,
    pub of: Type,
    pub repeat: Repeat,
    pub required: bool,
}

impl Want {
    /// The Arrow type of the output column.
    pub fn arrow(&self, dialect: Dialect) -> DataType {
        let of = self.of.scalar.arrow(dialect);
        if self.repeat == Repeat::All { schema::list_of(of) } else { of }
    }
}

/// What a row holds for a wanted header so far.
#[derive(Clone, Copy)]
struct Found<'a> {
    index: usize,
    kind: Option<Kind>,
    value: Option<&'a [u8]>,
    at: Option<usize>,
}

/// What a row holds for a wanted header so far: for most one header, which takes no list.
#[derive(Default)]
struct Finds<'a> {
    first: Option<Found<'a>>,
    more: Vec<Found<'a>>,
}

impl<'a> Finds<'a> {
    #[inline(always)]
    fn clear(&mut self) {
        if self.first.take().is_some() {
            self.more.clear();
        }
    }

    #[inline(always)]
    fn push(&mut self, found: Found<'a>) {
        match self.first {
            None => self.first = Some(found),
            Some(_) => self.more.push(found),
        }
    }

    fn get(&self, place: usize) -> Option<Found<'a>> {
        match place.checked_sub(1) {
            None => self.first,
            Some(place) => self.more.get(place).copied(),
        }
    }

    fn count(&self) -> usize {
        usize::from(self.first.is_some()) + self.more.len()
    }
}

/// A wanted key of text.
struct Text {
    /// A few bits of it: nearly every header that nobody wants is passed over by them, without a look at the key.
    glance: u32,
    /// The place of its slot.
    place: usize,
    bytes: Vec<u8>,
    /// Its first bytes.
    chunk: [u8; CHUNK],
}

impl Text {
    /// The key of the slot at a place, if it is text.
    fn of(place: usize, key: &WantedKey) -> Option<Self> {
        let bytes = match key {
            WantedKey::Text(text) => text.clone().into_bytes(),
            WantedKey::Typed(Kind::Named(Scalar::String), bytes) => bytes.clone(),
            WantedKey::Int(_) | WantedKey::Typed(..) => return None,
        };
        let mut chunk = [0; CHUNK];
        chunk.iter_mut().zip(&bytes).for_each(|(to, byte)| *to = *byte);
        Some(Text { glance: glance(&bytes), place, bytes, chunk })
    }
}

/// A key as it lies, which is compared with a wanted one.
trait Likeness {
    fn bytes(&self) -> &[u8];

    fn is(&self, wanted: &Text) -> bool;
}

impl Likeness for &[u8] {
    fn bytes(&self) -> &[u8] {
        self
    }

    fn is(&self, wanted: &Text) -> bool {
        *self == wanted.bytes
    }
}

impl Likeness for Run<'_> {
    #[inline(always)]
    fn bytes(&self) -> &[u8] {
        Run::bytes(*self)
    }

    #[inline(always)]
    fn is(&self, wanted: &Text) -> bool {
        match self.len() {
            0..=CHUNK => self.len() == wanted.bytes.len() && are_alike(self.chunk(), &wanted.chunk, self.len()),
            _ => Run::bytes(*self) == wanted.bytes,
        }
    }
}

/// A wanted header, what the row at hand has of it, and its column.
struct Slot<'a> {
    want: Want,
    found: Finds<'a>,
    /// The order of values whose bytes the column takes as they are, where nothing else is asked of them; nearly all are
    /// read that way.
    plain: Option<ByteOrder>,
    column: Column,
    /// Of `repeat="all"`: where each row's elements end, and which rows have a list.
    lists: Option<(Vec<i32>, Validity)>,
    /// Of those: how many values there were before the row at hand.
    values: usize,
}

/// Typed columns as they grow.
pub struct SelectSink<'a> {
    slots: Vec<Slot<'a>>,
    /// The wanted keys of text.
    texts: Vec<Text>,
    /// The bits of their glances.
    bits: u64,
    /// No two of them are the same.
    are_distinct: bool,
    /// How many rows there were before the row at hand.
    rows: usize,
    /// Where values lie, if it is known.
    source: Source<'a>,
    dialect: Dialect,
    /// The byte order of values that carry a kind.
    order: ByteOrder,
}

impl<'a> SelectSink<'a> {
    pub fn new(wants: &[Want], dialect: Dialect, order: ByteOrder, source: Source<'a>) -> Self {
        let plain = |want: &Want, column: &Column| match (want.of.coding, want.repeat) {
            (Coding::Spelled(Spelling::Bytes(order)), Repeat::Last | Repeat::First) => {
                (column.takes_bytes_of(want.of.scalar) && !want.required).then_some(order)
            }
            _ => None,
        };
        let slot = |want: &Want, column: Column| Slot {
            want: want.clone(),
            found: Finds::default(),
            plain: plain(want, &column),
            column,
            lists: (want.repeat == Repeat::All).then(|| (vec![0], Validity::default())),
            values: 0,
        };
        let slots: Vec<_> = wants.iter().map(|want| slot(want, Column::new(want.of.scalar.arrow(dialect)))).collect();
        let texts: Vec<_> = wants.iter().enumerate().filter_map(|(place, want)| Text::of(place, &want.key)).collect();
        let bits = texts.iter().fold(0, |bits, text| bits | bit(text.glance));
        let same_as_before = |place: usize| texts[..place].iter().any(|text| text.bytes == texts[place].bytes);
        let are_distinct = !(0..texts.len()).any(same_as_before);
        SelectSink { slots, texts, bits, are_distinct, rows: 0, source, dialect, order }
    }

    pub fn finish(self) -> Vec<ArrayRef> {
        self.slots.into_iter().map(Slot::finish).collect()
    }

    /// Shows a header with a key of text to whoever wants it.
    #[inline(always)]
    fn offer(&mut self, key: impl Likeness, found: impl Fn() -> Found<'a>) {
        let seen = glance(key.bytes());
        if self.bits & bit(seen) == 0 {
            return;
        }
        for text in &self.texts {
            if text.glance == seen && key.is(text) {
                self.slots[text.place].take(found());
                if self.are_distinct {
                    return;
                }
            }
        }
    }

    /// The same columns for rows that live for another time, between two rows. Nothing is allocated anew.
    pub fn rebind<'b>(self, source: Source<'b>) -> SelectSink<'b> {
        let SelectSink { slots, texts, bits, are_distinct, rows, dialect, order, .. } = self;
        let slots = slots.into_iter().map(Slot::rebind).collect();
        SelectSink { slots, texts, bits, are_distinct, rows, source, dialect, order }
    }

    /// Where values lie from here on.
    pub fn read_from(&mut self, source: Source<'a>) {
        self.source = source;
    }
}

/// What tells most keys apart: the length, the first byte and the last.
#[inline(always)]
fn glance(key: &[u8]) -> u32 {
    match (key.first(), key.last()) {
        (Some(first), Some(last)) => u32::from(*first) | u32::from(*last) << 8 | (key.len() as u32) << 16,
        _ => 0,
    }
}

impl<'a> Sink<'a> for SelectSink<'a> {
    #[inline(always)] // Into the walk: a header passed through memory costs more than finding that nobody wants it.
    fn header<M: Mode>(&mut self, header: Header<'a>, _mode: &mut M) -> Result<(), Stop> {
        let text = match &header.key {
            Key::Text(text) => Some(text.as_bytes()),
            Key::Typed(typed) => typed.string(),
            Key::Int(_) => None,
        };
        let found = || Found { index: header.index, kind: header.kind, value: header.value, at: header.at };
        match text {
            Some(text) => self.offer(text, found),
            None => {
                for slot in &mut self.slots {
                    if slot.want.key.is(&header.key) {
                        slot.take(found());
                    }
                }
            }
        }
        Ok(())
    }
}

impl<'a> Take<'a> for SelectSink<'a> {
    #[inline(always)]
    fn take(&mut self, header: ShortHeader<'a>) {
        let value = header.value.map(Run::bytes);
        let found = || Found { index: header.index, kind: header.kind, value, at: header.at };
        match header.key_kind {
            None | Some(Kind::Named(Scalar::String)) => self.offer(header.key, found),
            Some(kind) => {
                let key = Key::Typed(TypedKey::new(kind, header.key.bytes(), self.order));
                for slot in self.slots.iter_mut().filter(|slot| slot.want.key.is(&key)) {
                    slot.take(found());
                }
            }
        }
    }
}

/// One of 64 bits for a glance: few wanted keys have it, and few others.
#[inline(always)]
fn bit(glance: u32) -> u64 {
    1 << (glance.wrapping_mul(0x9E37_79B1) >> 26)
}

impl<'a> RowSink<'a> for SelectSink<'a> {
    fn leap<F: AsRef<[FieldValue<'a>]>, H: Short<'a>>(
        &mut self,
        rows: impl Iterator<Item = ShortRow<F, H>>,
        fast: &mut Fast,
        max_offset: usize,
    ) -> usize {
        let mut taken = 0;
        for row in rows {
            self.begin_row();
            match row {
                ShortRow::Null => self.null_row(),
                ShortRow::Message(_, headers) => {
                    let done = headers.each(fast, self);
                    let done = done.and_then(|()| self.end_row(Presence::Whole, fast));
                    if done.is_err() || self.max_offset() > max_offset {
                        self.abort_row();
                        break;
                    }
                }
            }
            taken += 1;
        }
        taken
    }

    #[inline]
    fn begin_row(&mut self) {
        self.rows = self.slots.first().map_or(0, Slot::rows);
        for slot in &mut self.slots {
            slot.found.clear();
            if slot.lists.is_some() {
                slot.values = slot.column.count();
            }
        }
    }

    #[inline]
    fn end_row<M: Mode>(&mut self, headers: Presence, mode: &mut M) -> Result<(), Stop> {
        for slot in &mut self.slots {
            if !slot.end_plain(self.source) {
                slot.end_row(headers, self.dialect, self.order, mode)?;
            }
        }
        Ok(())
    }

    fn abort_row(&mut self) {
        for slot in &mut self.slots {
            slot.abort_row(self.rows);
        }
    }

    fn null_row(&mut self) {
        for slot in &mut self.slots {
            slot.push_null();
        }
    }

    #[inline]
    fn max_offset(&self) -> usize {
        let reach = |slot: &Slot<'_>| match slot.lists {
            Some(_) => slot.column.byte_len().max(slot.column.count()),
            None => slot.column.byte_len(),
        };
        self.slots.iter().map(reach).max().unwrap_or(0)
    }

    fn keeps_parts(&self) -> bool {
        true
    }
}

impl<'a> Slot<'a> {
    fn rebind<'b>(mut self) -> Slot<'b> {
        self.found.clear();
        let more = self.found.more.into_iter().map(|_| unreachable!("it was cleared")).collect();
        let found = Finds { first: None, more };
        let Slot { want, plain, column, lists, values, .. } = self;
        Slot { want, found, plain, column, lists, values }
    }

    #[inline]
    fn take(&mut self, found: Found<'a>) {
        match self.want.repeat {
            Repeat::Last => self.found.first = Some(found),
            Repeat::All => self.found.push(found),
            Repeat::First if self.found.first.is_some() => {}
            // The second one is kept to say where it stands; those after it add nothing.
            Repeat::Error if self.found.count() > 1 => {}
            Repeat::First | Repeat::Error => self.found.push(found),
        }
    }

    /// Takes the value as its bytes are, or that there is none; false where it has to be read.
    #[inline(always)]
    fn end_plain(&mut self, source: Source<'a>) -> bool {
        let Some(order) = self.plain else { return false };
        match &self.found.first {
            Some(Found { kind: None, value: Some(bytes), .. }) => self.column.push_bytes(bytes, order, source),
            Some(_) => false,
            None => {
                self.column.push_null();
                true
            }
        }
    }

    fn end_row<M: Mode>(
        &mut self,
        headers: Presence,
        dialect: Dialect,
        order: ByteOrder,
        mode: &mut M,
    ) -> Result<(), Stop> {
        let second = if self.want.repeat == Repeat::Error { self.found.get(1) } else { None };
        if let Some(second) = second {
            let (header, byte) = (Some(second.index), second.at);
            mode.column(|| self.fault(Code::RepeatedKey, "the key stands a second time".into(), header, byte))?;
            self.column.push(None);
            return Ok(());
        }
        if self.want.required && self.found.first.is_none() && headers != Presence::Broken {
            mode.column(|| self.fault(Code::MissingKey, "the header is required and absent".into(), None, None))?;
        }
        if self.lists.is_some() {
            return self.end_list(headers, dialect, order, mode);
        }
        let value = match self.found.first {
            Some(found) => self.read(found, dialect, order, mode)?.flatten(),
            None => None,
        };
        self.column.push(value);
        Ok(())
    }

    /// Ends a row of `repeat="all"`: one bad element, or headers not read to the end, make the whole list null.
    fn end_list<M: Mode>(
        &mut self,
        headers: Presence,
        dialect: Dialect,
        order: ByteOrder,
        mode: &mut M,
    ) -> Result<(), Stop> {
        if headers == Presence::Broken {
            self.push_null();
            return Ok(());
        }
        let mut whole = true;
        let mut place = 0;
        while let Some(found) = self.found.get(place) {
            place += 1;
            match self.read(found, dialect, order, mode)? {
                Some(value) => self.column.push(value),
                None => whole = false,
            }
        }
        if !whole {
            self.column.truncate(self.values);
        }
        if let Some((ends, valid)) = &mut self.lists {
            ends.push(self.column.count() as i32);
            valid.push(whole);
        }
        Ok(())
    }

    /// Reads a value; `None` when it is a misfit that was noted.
    #[inline]
    fn read<M: Mode>(
        &self,
        found: Found<'a>,
        dialect: Dialect,
        order: ByteOrder,
        mode: &mut M,
    ) -> Result<Option<Option<Value<'a>>>, Stop> {
        let Some(bytes) = found.value else { return Ok(Some(None)) };
        let of = match found.kind {
            None => self.want.of,
            Some(kind) if self.want.of.accepts(kind) => self.want.of.under(kind, order),
            Some(kind) => {
                let message = format!("the value is {} and {} was asked for", kind.name(), self.want.of.scalar.name());
                mode.column(|| self.fault(Code::WrongKind, message, Some(found.index), found.at))?;
                return Ok(None);
            }
        };
        match of.read(bytes, dialect) {
            Ok(value) => Ok(Some(value)),
            Err(misfit) => {
                let byte = found.at.map(|at| at + misfit.within);
                mode.column(|| self.fault(misfit.code, misfit.message, Some(found.index), byte))?;
                Ok(None)
            }
        }
    }

    #[cold]
    fn fault(&self, code: Code, message: String, header: Option<usize>, byte: Option<usize>) -> Fault {
        let (key, column) = (Some(self.want.key.to_string()), Some(self.want.output.clone()));
        Fault { code, message, byte, header, key, column }
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
        self.found.clear();
        match &mut self.lists {
            Some((ends, valid)) => {
                self.column.truncate(self.values);
                ends.truncate(rows + 1);
                valid.truncate(rows);
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
                Arc::new(ListArray::new(element, offsets, values, valid.finish()))
            }
        }
    }
}
