//! messages: cells of many messages into a row a message, their fields, all their headers and some as typed columns.

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
use super::{Input, Output, Verb, cells_of, check_keys, struct_of};
use crate::cursor::Cursor;
use crate::error::{Code, Direction, Error, Fault, Located, unknown_name};
use crate::header::Header;
use crate::kind::Dialect;
use crate::mode::{Exact, Fast, Mode, OnLoss, Stop};
use crate::op::not_a_batch;
use crate::walk::{
    Batch, Block, Envelope, FieldValue, Messages as Each, Noting, Presence, ReadOptions, Sink, walk_batch,
};

/// The column that says which cell a message is from.
const ROW: &str = "row";

/// Cells of a batch → messages.
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

    /// What the sinks make, the row first, and the places of the columns asked for among it.
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
            both: Both::new(self),
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
            if let Some(cell) = cells.get(row) {
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

/// The rows that messages become. They live as long as the bytes of the messages: those of a cell, or of a set in it that
/// was compressed.
struct Rows<'v, 'a, B: Batch> {
    verb: &'v Messages,
    rows: Vec<i64>,
    both: Both<'a, B::Message>,
    faults: FaultColumn,
    row: usize,
    max_offset: usize,
    full: bool,
    failed: Option<Fault>,
    batch: PhantomData<B>,
}

impl<'a, B: Batch> Rows<'_, 'a, B> {
    fn cell(&mut self, cell: &'a [u8]) {
        let mut mode = Exact::default();
        // What ends a cell is in the mode, in `full` or in `failed`.
        let _ = walk_batch::<B, _, _>(cell, self.verb.options, &mut mode, self);
        let faults = std::mem::take(&mut mode.faults);
        if !faults.is_empty() && !self.full && self.failed.is_none() {
            // It is the end of the cell either way.
            let _ = self.broken(faults);
        }
    }

    /// A message, or the rest of the cell, could not be read: one row says so.
    fn broken(&mut self, faults: Vec<Fault>) -> Result<(), Stop> {
        if self.verb.on_error == OnError::Raise {
            self.failed = faults.into_iter().next();
            return Err(Stop);
        }
        self.both.begin_row();
        self.both.null_row();
        self.end_row(&faults);
        Ok(())
    }

    fn end_row(&mut self, faults: &[Fault]) {
        if self.verb.on_error == OnError::Column {
            self.faults.push(faults);
        }
        self.rows.push(self.row as i64);
    }

    fn finish(self, places: &[usize], on_error: OnError) -> Vec<ArrayRef> {
        let mut made: Vec<ArrayRef> = vec![Arc::new(Int64Array::from(self.rows))];
        made.extend(self.both.list.finish().0);
        let mut columns: Vec<ArrayRef> = places.iter().map(|place| Arc::clone(&made[*place])).collect();
        columns.extend(self.both.select.finish());
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
}

impl<'a, E: Envelope> Both<'a, E> {
    fn new(verb: &Messages) -> Self {
        let list = ListSink::new(verb.options.text_keys);
        Both {
            list: list.keep(|field| verb.asks_for(field.name)),
            select: SelectSink::new(&verb.wants, verb.dialect, E::Block::ORDER, E::Block::KINDS.are_carried()),
        }
    }

    /// The same columns for messages that lie in other bytes.
    fn rebind<'b>(self) -> Both<'b, E> {
        Both { list: self.list, select: self.select.rebind() }
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

    fn message<M: Noting>(
        &mut self,
        fields: &[FieldValue<'a>],
        block: Option<Cursor<'a>>,
        mode: &mut M,
    ) -> Result<(), Stop> {
        self.verb.options.limits.check_message(fields, block, mode)?;
        self.both.begin_row();
        let exact = mode.noted();
        let mut faults = Vec::new();
        if !exact.faults.is_empty() || walk_fast::<B>(fields, block, self.verb.options, &mut self.both).is_err() {
            self.both.abort_row();
            let framed = std::mem::take(&mut exact.broken);
            let ended = walk_exactly::<B>(fields, block, self.verb.options, exact, &mut self.both);
            // A block that breaks leaves the frame, and so the messages after this one, as they were.
            let broken = std::mem::replace(&mut exact.broken, framed);
            faults = std::mem::take(&mut exact.faults);
            match self.verb.on_error {
                OnError::Raise => {
                    self.failed = faults.into_iter().next();
                    return Err(Stop);
                }
                OnError::Null if broken => {
                    self.both.abort_row();
                    self.both.null_row();
                }
                OnError::Null | OnError::Column if ended.is_err() => {
                    self.both.abort_row();
                    self.both.null_row();
                }
                OnError::Null | OnError::Column => {}
            }
        }
        if self.both.list.max_offset().max(self.both.select.max_offset()) > self.max_offset
            || self.faults.would_pass(&faults, self.max_offset)
        {
            self.both.abort_row();
            self.full = true;
            return Err(Stop);
        }
        self.end_row(&faults);
        Ok(())
    }

    fn unreadable<M: Noting>(&mut self, mode: &mut M) -> Result<(), Stop> {
        mode.enter_header(None);
        self.verb.options.limits.check_message(&[], None, mode)?;
        let exact = mode.noted();
        exact.broken = false;
        let faults = std::mem::take(&mut exact.faults);
        self.broken(faults)
    }

    fn within<'b, R>(&mut self, _bytes: &'b [u8], hand: impl FnOnce(&mut Self::Within<'b>) -> R) -> R {
        let mut inner = Rows {
            verb: self.verb,
            rows: std::mem::take(&mut self.rows),
            both: std::mem::replace(&mut self.both, Both::new(self.verb)).rebind(),
            faults: std::mem::take(&mut self.faults),
            row: self.row,
            max_offset: self.max_offset,
            full: self.full,
            failed: self.failed.take(),
            batch: PhantomData,
        };
        let handed = hand(&mut inner);
        self.rows = inner.rows;
        self.both = inner.both.rebind();
        self.faults = inner.faults;
        self.full = inner.full;
        self.failed = inner.failed;
        handed
    }
}

/// One message into both sinks, which are left as they are when it is not whole.
fn walk_fast<'a, B: Batch>(
    fields: &[FieldValue<'a>],
    block: Option<Cursor<'a>>,
    options: ReadOptions,
    sink: &mut Both<'a, B::Message>,
) -> Result<(), Stop> {
    let mut mode = Fast::new(OnLoss::Raise);
    sink.list.fields(fields);
    let presence = match block {
        None => Presence::Absent,
        Some(cursor) => {
            <B::Message as Envelope>::Block::walk(cursor, options, &mut mode, sink)?;
            Presence::Whole
        }
    };
    sink.end_row(presence, &mut mode)
}

/// One message with something wrong into both sinks.
fn walk_exactly<'a, B: Batch>(
    fields: &[FieldValue<'a>],
    block: Option<Cursor<'a>>,
    options: ReadOptions,
    mode: &mut Exact,
    sink: &mut Both<'a, B::Message>,
) -> Result<(), Stop> {
    sink.list.fields(fields);
    let presence = match block {
        None => Presence::Absent,
        Some(cursor) => match <B::Message as Envelope>::Block::walk(cursor, options, mode, sink) {
            Err(Stop) => Presence::Broken,
            Ok(()) if mode.faults.iter().any(|fault| fault.header.is_some()) => Presence::Damaged,
            Ok(()) => Presence::Whole,
        },
    };
    mode.enter_header(None);
    sink.end_row(presence, mode)
}
