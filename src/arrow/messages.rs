//! messages: batches into one row for each message, with its fields, its headers and some of them as typed columns.

use std::marker::PhantomData;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array};
use arrow_schema::{DataType, FieldRef};

use super::decode::ListSink;
use super::faults::FaultColumn;
use super::run::OnError;
use super::schema;
use super::select::{SelectSink, Want};
use super::sink::RowSink;
use super::validate::Nothing;
use super::{Input, Output, Verb, cells_of, check_keys, struct_of};
use crate::arrow::types::Dialect;
use crate::cursor::Cursor;
use crate::error::{Code, Direction, Error, Fault, Located, unknown_name};
use crate::header::Header;
use crate::kernel::buffer::Seen;
use crate::kernel::frame::Frame as _;
use crate::kernel::{self, Block, ROWS};
use crate::mode::{Either, Exact, Fast, Mode, OnLoss, Stop};
use crate::op::not_a_batch;
use crate::walk::{
    self, Batch, Block as _, Envelope, FieldValue, Messages as Each, Noting, Presence, ReadOptions, Sink, message_len,
    walk_batch,
};

/// How the kernels find the headers of a batch's messages.
type Frame<B> = <<<B as Batch>::Message as Envelope>::Block as walk::Block>::Frame;

/// The column with the input row that a message comes from.
const ROW: &str = "row";

/// Batches → messages.
#[derive(Debug, Clone, Default)]
pub struct Messages {
    /// Fields of the result, `row` among them; `None` for all.
    pub columns: Option<Vec<String>>,
    pub wants: Vec<Want>,
    pub dialect: Dialect,
    pub options: ReadOptions,
    pub on_error: OnError,
}

impl Messages {
    fn asks_for(&self, name: &str) -> bool {
        self.columns.as_ref().is_none_or(|names| names.iter().any(|asked| asked == name))
    }

    /// The columns that the sinks make, the row first, and the places of the wanted columns among them.
    fn places<B: Batch>(&self) -> Result<(Vec<FieldRef>, Vec<usize>), Error> {
        let mut known = vec![schema::nullable(ROW, DataType::Int64)];
        known.extend(schema::envelope_fields::<B::Message>(self.options.text_keys));
        let made = known.iter().filter(|field| field.name() == ROW || self.asks_for(field.name()));
        let made: Vec<_> = made.map(Arc::clone).collect();
        let places = match &self.columns {
            None => (0..made.len()).collect(),
            Some(names) => {
                let place = |name: &String| {
                    let found = made.iter().position(|field| field.name() == name);
                    found.ok_or_else(|| unknown_name("column", name, known.iter().map(|field| field.name().as_str())))
                };
                names.iter().map(place).collect::<Result<Vec<_>, _>>()?
            }
        };
        Ok((made, places))
    }

    fn fields<B: Batch>(&self) -> Result<Vec<FieldRef>, Error> {
        check_keys(&self.wants, B::NAME, <B::Message as Envelope>::Block::KEYS)?;
        let (made, places) = self.places::<B>()?;
        let mut fields: Vec<_> = places.into_iter().map(|place| Arc::clone(&made[place])).collect();
        fields.extend(self.wants.iter().map(|want| schema::nullable(&want.output, want.arrow(self.dialect))));
        if self.on_error == OnError::Column {
            fields.push(schema::nullable("error", schema::faults_type()));
        }
        Ok(fields)
    }
}

impl Verb for Messages {
    fn output_type<E: Envelope>(&self) -> Result<DataType, Error> {
        Err(not_a_batch::<E>())
    }

    fn apply<E: Envelope>(&self, _input: Input<'_>) -> Result<Output, Error> {
        Err(not_a_batch::<E>())
    }

    fn batch_type<B: Batch>(&self) -> Result<DataType, Error> {
        Ok(DataType::Struct(self.fields::<B>()?.into()))
    }

    fn apply_batch<B: Batch>(&self, input: Input<'_>) -> Result<Output, Error> {
        let fields = self.fields::<B>()?;
        let (_, places) = self.places::<B>()?;
        let cells = cells_of::<B::Message>(input.column)?;
        let mut each = Rows::<'_, '_, B> {
            verb: self,
            rows: Vec::new(),
            both: Some(Both::new(self)),
            pending: Pending::default(),
            faults: FaultColumn::default(),
            row: 0,
            max_offset: input.max_offset,
            full: false,
            failed: None,
            batch: PhantomData,
        };
        let mut until = cells.row_count();
        let mut whole = 0;
        for row in input.from..cells.row_count() {
            each.row = input.rows_before + row;
            if let Some(cell) = cells.cursor(row) {
                each.cell(cell);
            }
            if let Some(fault) = each.failed.take() {
                let located = Located { format: B::NAME, row: Some(each.row), fault };
                return Err(Error::Headers(Direction::Decode, Box::new(located)));
            }
            if each.full {
                if row == input.from {
                    let fault = Fault::of_message(Code::TooLarge, "this row alone passes the 2 GiB of an Arrow column");
                    let located = Located { format: B::NAME, row: Some(each.row), fault };
                    return Err(Error::Headers(Direction::Decode, Box::new(located)));
                }
                until = row;
                break;
            }
            whole = each.rows.len();
        }
        let mut columns = each.finish(&places, self.on_error);
        // Messages of a cell that did not fit as a whole come with the next chunk.
        columns.iter_mut().for_each(|column| *column = column.slice(0, whole));
        Ok(Output { column: struct_of(fields, columns, None, whole), until })
    }
}

/// Messages whose headers the kernels are still to read, of one batch.
#[derive(Default)]
struct Pending<'a> {
    rows: Block<'a>,
    headers: Vec<Cursor<'a>>,
    /// The fields that are kept, message after message.
    fields: Vec<FieldValue<'a>>,
    /// The number of the first of them in its value, counted from 1.
    number: usize,
    /// Where errors are placed, if not at their byte.
    place: Option<usize>,
}

/// The rows that messages become. They live as long as the bytes of the messages: those of a value, or of a set in it that
/// was compressed.
struct Rows<'v, 'a, B: Batch> {
    verb: &'v Messages,
    rows: Vec<i64>,
    /// `None` while the rows of a compressed set are read.
    both: Option<Both<'a, B::Message>>,
    pending: Pending<'a>,
    faults: FaultColumn,
    row: usize,
    max_offset: usize,
    full: bool,
    failed: Option<Fault>,
    batch: PhantomData<B>,
}

impl<'a, B: Batch> Rows<'_, 'a, B> {
    #[inline(always)]
    fn both(&mut self) -> &mut Both<'a, B::Message> {
        let verb = self.verb;
        self.both.get_or_insert_with(|| Both::new(verb))
    }

    fn cell(&mut self, cell: Cursor<'a>) {
        let mut mode = Exact::default();
        // What ends a value is in the mode, in `full` or in `failed`.
        let _ = walk_batch::<B, _, _>(cell, self.verb.options, &mut mode, self);
        let flushed = self.flush();
        let faults = std::mem::take(&mut mode.faults);
        if flushed.is_ok() && !faults.is_empty() && !self.has_ended() {
            // It is the end of the value either way.
            let _ = self.broken(faults);
        }
    }

    fn has_ended(&self) -> bool {
        self.full || self.failed.is_some()
    }

    /// Appends one row for a message, or for the rest of a batch, that is not readable.
    fn broken(&mut self, faults: Vec<Fault>) -> Result<(), Stop> {
        if self.verb.on_error == OnError::Raise {
            self.failed = faults.into_iter().next();
            return Err(Stop);
        }
        self.both().begin_row();
        self.both().null_row();
        self.end_row(&faults);
        Ok(())
    }

    fn end_row(&mut self, faults: &[Fault]) {
        if self.verb.on_error == OnError::Column {
            self.faults.push(faults);
        }
        self.rows.push(self.row as i64);
    }

    /// Keeps a message of so many bytes for the kernels; false if the exact routine has to take it.
    #[inline(always)]
    fn keep(
        &mut self,
        fields: &[FieldValue<'a>],
        block: Option<Cursor<'a>>,
        len: usize,
        mode: &Exact,
    ) -> Result<bool, Stop> {
        let options = &self.verb.options;
        // The kernels pass types without a name.
        let is_strict = options.strict_types && Frame::<B>::TYPED;
        let is_plain = Frame::<B>::READS && !options.lenient && !is_strict && mode.faults.is_empty();
        let Some((headers, span)) = block.filter(|_| is_plain).and_then(|headers| Some((headers, headers.span()?)))
        else {
            return Ok(false);
        };
        // An upper bound of what the message adds to any one column.
        let text = |field: FieldValue<'_>| if let FieldValue::Text(text) = field { text.len() } else { 0 };
        let len = len + self.both().list.kept(fields).map(text).sum::<usize>();
        if !self.pending.rows.has_room(ROWS, len) {
            self.flush()?;
        }
        if self.pending.headers.is_empty() {
            (self.pending.number, self.pending.place) = (mode.messages, mode.place);
        }
        let verb = self.verb;
        let both = self.both.get_or_insert_with(|| Both::new(verb));
        self.pending.fields.extend(both.list.kept(fields));
        self.pending.rows.push(Some(span), len);
        self.pending.headers.push(headers);
        Ok(true)
    }

    /// Has the kernels read the messages that were kept, and the exact routine those that they cannot.
    #[inline(never)]
    fn flush(&mut self) -> Result<(), Stop> {
        let mut pending = std::mem::take(&mut self.pending);
        let (all, options, max_offset) = (pending.headers.len(), self.verb.options, self.max_offset);
        let count = self.both().list.field_count();
        let mut next = 0;
        while next < all && !self.has_ended() {
            let fields = &pending.fields[next * count..];
            let done = self.both().append::<Frame<B>>(&mut pending.rows, fields, options.limits.headers, max_offset);
            self.rows.extend(std::iter::repeat_n(self.row as i64, done));
            if self.verb.on_error == OnError::Column {
                self.faults.push_whole(done);
            }
            next += done;
            if next < all {
                let mut exact = Exact::default();
                (exact.messages, exact.place) = (pending.number + next, pending.place);
                let kept = pending.fields[next * count..][..count].to_vec();
                self.message_now(&kept, Some(pending.headers[next]), &mut exact)?;
                pending.rows.skip(done + 1);
                next += 1;
            }
        }
        // Its memory, for those that come.
        pending.rows.clear();
        pending.headers.clear();
        pending.fields.clear();
        self.pending = pending;
        if self.has_ended() { Err(Stop) } else { Ok(()) }
    }

    /// Reads a message that is not kept for the kernels, after those that are.
    #[inline(never)]
    fn read_exactly(
        &mut self,
        fields: &[FieldValue<'a>],
        block: Option<Cursor<'a>>,
        exact: &mut Exact,
    ) -> Result<(), Stop> {
        self.flush()?;
        let kept: Vec<_> = self.both().list.kept(fields).collect();
        self.message_now(&kept, block, exact)
    }

    /// Reads a message by the exact routine, with the fields that are kept.
    fn message_now(
        &mut self,
        kept: &[FieldValue<'a>],
        block: Option<Cursor<'a>>,
        exact: &mut Exact,
    ) -> Result<(), Stop> {
        let (options, on_error) = (self.verb.options, self.verb.on_error);
        let both = self.both();
        both.begin_row();
        let (mut faults, mut fast) = (Vec::new(), Fast::new(OnLoss::Raise));
        if !exact.faults.is_empty() || walk_message::<B, _>(kept, block, options, &mut fast, both).is_err() {
            both.abort_row();
            let framed = std::mem::take(&mut exact.broken);
            let ended = walk_message::<B, _>(kept, block, options, exact, both);
            // A block that breaks leaves the frame, and so the messages after this one, as they were.
            let broken = std::mem::replace(&mut exact.broken, framed);
            faults = std::mem::take(&mut exact.faults);
            match on_error {
                OnError::Raise => {
                    self.failed = faults.into_iter().next();
                    return Err(Stop);
                }
                OnError::Null if broken => {
                    both.abort_row();
                    both.null_row();
                }
                OnError::Null | OnError::Column if ended.is_err() => {
                    both.abort_row();
                    both.null_row();
                }
                OnError::Null | OnError::Column => {}
            }
        }
        let reached = both.list.max_offset().max(both.select.max_offset());
        if reached > self.max_offset || self.faults.would_pass(&faults, self.max_offset) {
            self.both().abort_row();
            self.full = true;
            return Err(Stop);
        }
        self.end_row(&faults);
        Ok(())
    }

    fn finish(self, places: &[usize], on_error: OnError) -> Vec<ArrayRef> {
        let both = self.both.unwrap_or_else(|| Both::new(self.verb));
        let mut made: Vec<ArrayRef> = vec![Arc::new(Int64Array::from(self.rows))];
        made.extend(both.list.finish().0);
        let mut columns: Vec<ArrayRef> = places.iter().map(|place| Arc::clone(&made[*place])).collect();
        columns.extend(both.select.finish());
        if on_error == OnError::Column {
            columns.push(self.faults.finish());
        }
        columns
    }
}

/// Both sinks of a message at once.
struct Both<'a, E: Envelope> {
    list: ListSink<E>,
    select: SelectSink<'a>,
    /// Reads headers that are neither kept nor selected from.
    nothing: Nothing,
}

impl<'a, E: Envelope> Both<'a, E> {
    fn new(verb: &Messages) -> Self {
        let list = ListSink::new(verb.options.text_keys, None);
        Both {
            list: list.keep(|field| verb.asks_for(field.name)),
            select: SelectSink::new(&verb.wants, verb.dialect, E::Block::ORDER, E::Block::KINDS.are_carried(), None),
            nothing: Nothing::default(),
        }
    }

    /// The same columns for messages that lie in other bytes.
    fn rebind<'b>(self) -> Both<'b, E> {
        Both { list: self.list, select: self.select.rebind(), nothing: self.nothing }
    }

    /// Has the kernels append messages, with their kept fields, up to the first that the exact routine has to take; returns
    /// how many.
    fn append<F: kernel::frame::Frame>(
        &mut self,
        rows: &mut Block<'a>,
        fields: &[FieldValue<'_>],
        most: usize,
        max_offset: usize,
    ) -> usize {
        let keeps_headers = self.list.keeps_headers();
        let room = |room: Option<usize>| room.is_some_and(|room| rows.byte_len() <= room);
        let left = max_offset.saturating_sub(self.list.max_offset());
        let list_fits = room(if keeps_headers { self.list.room::<F>(max_offset) } else { Some(left) });
        if !list_fits || !room(self.select.room::<F>(max_offset)) {
            return 0;
        }
        // Nothing is known of what is still to come.
        let seen = Seen { bytes: 1, all: 1 };
        let before = self.select.row_count();
        let all = rows.rows().len();
        let mut done = match self.select.is_empty() {
            false => self.select.append::<F>(rows, most, seen),
            true if keeps_headers => all,
            true => self.nothing.append::<F>(rows, most, seen),
        };
        if keeps_headers {
            rows.truncate(done);
            let decoded = self.list.decode::<F>(rows, most, seen);
            if decoded < done {
                self.select.truncate(before + decoded);
                done = decoded;
            }
            rows.untruncate(all);
        } else {
            self.list.push_without_headers(done);
        }
        self.list.push_kept(&fields[..done * self.list.field_count()]);
        done
    }

    fn begin_row(&mut self) {
        self.list.begin_row();
        self.select.begin_row();
    }

    fn end_row<M: Mode>(&mut self, headers: Presence, mode: &mut M) -> Result<(), Stop> {
        self.list.end_row(headers, mode)?;
        self.select.end_row(headers, mode)
    }

    fn abort_row(&mut self) {
        self.list.abort_row();
        self.select.abort_row();
    }

    fn null_row(&mut self) {
        self.list.null_row();
        self.select.null_row();
    }
}

impl<'a, E: Envelope> Sink<'a> for Both<'a, E> {
    #[inline]
    fn header<M: Mode>(&mut self, header: Header<'a>, mode: &mut M) -> Result<(), Stop> {
        if self.list.keeps_headers() {
            // Few messages are selected from and kept whole.
            self.select.header(header.clone(), mode)?;
            return self.list.header(header, mode);
        }
        self.select.header(header, mode)
    }
}

impl<'v, 'a, B: Batch> Each<'a> for Rows<'v, 'a, B> {
    type Within<'b> = Rows<'v, 'b, B>;

    // Inlined where the fields are made: what kind of value each of them is does not have to be asked for there.
    #[inline(always)]
    fn message<M: Noting>(
        &mut self,
        fields: &[FieldValue<'a>],
        block: Option<Cursor<'a>>,
        mode: &mut M,
    ) -> Result<(), Stop> {
        if self.has_ended() {
            return Err(Stop);
        }
        let (len, exact) = (message_len(fields, block), mode.noted());
        self.verb.options.limits.check_message(len, exact)?;
        match self.keep(fields, block, len, exact)? {
            true => Ok(()),
            false => self.read_exactly(fields, block, exact),
        }
    }

    fn unreadable<M: Noting>(&mut self, mode: &mut M) -> Result<(), Stop> {
        self.flush()?;
        mode.enter_header(None);
        self.verb.options.limits.check_message(0, mode.noted())?;
        let exact = mode.noted();
        exact.broken = false;
        let faults = std::mem::take(&mut exact.faults);
        self.broken(faults)
    }

    fn within<'b, R>(&mut self, _bytes: &'b [u8], hand: impl FnOnce(&mut Self::Within<'b>) -> R) -> R {
        // What fails here is remembered, and the next message stops.
        let _ = self.flush();
        let mut inner = Rows {
            verb: self.verb,
            rows: std::mem::take(&mut self.rows),
            both: self.both.take().map(Both::rebind),
            pending: Pending::default(),
            faults: std::mem::take(&mut self.faults),
            row: self.row,
            max_offset: self.max_offset,
            full: self.full,
            failed: self.failed.take(),
            batch: PhantomData,
        };
        let handed = hand(&mut inner);
        let _ = inner.flush();
        self.rows = inner.rows;
        self.both = inner.both.map(Both::rebind);
        self.faults = inner.faults;
        self.full = inner.full;
        self.failed = inner.failed;
        handed
    }
}

/// Reads one message into both sinks. In fast mode, the first error ends it; in exact mode, what can be read is kept.
fn walk_message<'a, B: Batch, M: Mode>(
    kept: &[FieldValue<'a>],
    block: Option<Cursor<'a>>,
    options: ReadOptions,
    mode: &mut M,
    sink: &mut Both<'a, B::Message>,
) -> Result<(), Stop> {
    sink.list.push_kept(kept);
    let walked = block.map(|cursor| <B::Message as Envelope>::Block::walk(cursor, options, mode, sink));
    let presence = match (walked, mode.either()) {
        (None, _) => Presence::Absent,
        (Some(Err(Stop)), Either::Fast(_)) => return Err(Stop),
        (Some(Err(Stop)), Either::Exact(_)) => Presence::Broken,
        (Some(Ok(())), Either::Exact(exact)) if exact.faults.iter().any(|fault| fault.header.is_some()) => {
            Presence::Damaged
        }
        (Some(Ok(())), _) => Presence::Whole,
    };
    mode.enter_header(None);
    sink.end_row(presence, mode)
}
