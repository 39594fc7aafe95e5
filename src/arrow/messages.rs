//! [`Messages`] turns batches into one row per message: its fields, its headers and some of them as typed columns.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array};
use arrow_schema::{DataType, FieldRef};

use super::errors::{Decision, ErrorColumn, FailedRow, attribute_to_condition};
use super::filter::{Filter, ones, runs};
use super::message_sinks::{MessageSinks, Until, parse_headers};
use super::rows::regular_span;
use super::run::too_large;
use super::schema;
use super::select::Selection;
use super::sink::RowSink as _;
use super::{Input, Operation, Output, binary_column, check_keys, struct_of};
use crate::arrow::types::Dialect;
use crate::cursor::Cursor;
use crate::error::{Direction, Error, ErrorDetail, interrupted, unknown_name};
use crate::interrupt;
use crate::kernel::buffer::Progress;
use crate::kernel::layout::WireLayout as _;
use crate::kernel::{ROWS, RowBlock, recycled};
use crate::log::{CollectErrors, Fast, Log as _, OnError, OnLoss, Result, Stop};
use crate::op::not_a_batch;
use crate::traits::{
    BatchFormat, FieldValue, Fields as _, FieldsOf, HeadersFormat as _, LayoutOf, MessageFormat, MessageReceiver,
    ReadOptions, message_len, parse_batch,
};

/// The column with the input row that a message comes from.
const ROW: &str = "row";

/// Columns reserve memory for at most so many times the batches that were read: those to come may be unlike them.
const MOST_GROWTH: usize = 16;

/// Batches → messages.
#[derive(Debug, Clone, Default)]
pub struct Messages {
    /// Fields of the result, `row` among them; `None` for all.
    pub columns: Option<Vec<String>>,
    pub selections: Vec<Selection>,
    pub dialect: Dialect,
    pub options: ReadOptions,
    pub on_error: OnError,
    /// Which messages are returned; `None` for all.
    pub filter: Option<Arc<Filter>>,
}

impl Messages {
    pub(super) fn requests(&self, name: &str) -> bool {
        self.columns.as_ref().is_none_or(|names| names.iter().any(|requested| requested == name))
    }

    /// The columns of the sinks, the row first, and the positions of the requested columns among them.
    fn places<B: BatchFormat>(&self) -> Result<(Vec<FieldRef>, Vec<usize>), Error> {
        let mut known = vec![schema::nullable(ROW, DataType::Int64)];
        known.extend(schema::message_fields::<B::Message>(self.options.text_keys));
        let produced = known.iter().filter(|field| field.name() == ROW || self.requests(field.name()));
        let produced: Vec<_> = produced.map(Arc::clone).collect();
        let places = match &self.columns {
            None => (0..produced.len()).collect(),
            Some(names) => {
                let place = |name: &String| {
                    let place = produced.iter().position(|field| field.name() == name);
                    place.ok_or_else(|| unknown_name("column", name, known.iter().map(|field| field.name().as_str())))
                };
                names.iter().map(place).collect::<Result<Vec<_>, _>>()?
            }
        };
        Ok((produced, places))
    }

    fn fields<B: BatchFormat>(&self) -> Result<Vec<FieldRef>, Error> {
        check_keys(&self.selections, B::NAME, <B::Message as MessageFormat>::Headers::KEYS)?;
        self.filter.iter().try_for_each(|filter| filter.check::<B::Message>(B::NAME))?;
        let (produced, places) = self.places::<B>()?;
        let mut fields: Vec<_> = places.into_iter().map(|place| Arc::clone(&produced[place])).collect();
        fields.extend(
            self.selections.iter().map(|selection| schema::nullable(&selection.output, selection.arrow(self.dialect))),
        );
        Ok(schema::with_errors(fields, self.on_error))
    }
}

impl Operation for Messages {
    fn output_type<E: MessageFormat>(&self) -> Result<DataType, Error> {
        Err(not_a_batch(E::NAME))
    }

    fn apply<E: MessageFormat>(&self, _input: Input<'_>) -> Result<Output, Error> {
        Err(not_a_batch(E::NAME))
    }

    fn batch_type<B: BatchFormat>(&self) -> Result<DataType, Error> {
        Ok(DataType::Struct(self.fields::<B>()?.into()))
    }

    fn apply_batch<B: BatchFormat>(&self, input: Input<'_>) -> Result<Output, Error> {
        let fields = self.fields::<B>()?;
        let (_, places) = self.places::<B>()?;
        let batches = binary_column::<B::Message>(input.column)?;
        let done = Done { max_offset: input.max_offset, ..Done::default() };
        let sinks = Some(MessageSinks::new(self));
        let mut receiver =
            BatchReader::<'_, '_, B> { operation: self, done, sinks, pending: None, rest: None, buffer: Vec::new() };
        let rows = input.from..input.column.len();
        let all = rows.clone().filter_map(|row| batches.cursor(row)).map(|batch| batch.remaining()).sum::<usize>();
        let mut bytes = 0usize;
        let mut until = rows.end;
        let mut whole = 0;
        for row in rows {
            receiver.done.row = input.rows_before + row;
            if let Some(batch) = batches.cursor(row) {
                bytes += batch.remaining();
                receiver.done.progress = Progress { bytes, all: all.min(bytes.saturating_mul(MOST_GROWTH)) };
                receiver.batch(batch);
            }
            if let Some(error) = receiver.done.failed.take() {
                return Err(error.located(Direction::Decode, B::NAME, Some(receiver.done.row)));
            }
            if receiver.done.interrupted {
                return Err(interrupted());
            }
            if receiver.done.full {
                if row == input.from {
                    return Err(too_large(Direction::Decode, B::NAME, receiver.done.row));
                }
                until = row;
                break;
            }
            whole = receiver.done.rows.len();
        }
        let mut columns = receiver.finish(&places, self.on_error);
        // Messages of a batch that did not fit completely come with the next chunk.
        columns.iter_mut().for_each(|column| *column = column.slice(0, whole));
        Ok(Output { column: struct_of(fields, columns, None, whole), until })
    }
}

/// Messages whose headers the kernels are still to read, of one batch.
struct Pending<'a, B: BatchFormat> {
    rows: RowBlock<'a>,
    headers: Vec<Cursor<'a>>,
    fields: Vec<FieldsOf<'a, B>>,
    /// The number of each in its value, counted from 1.
    numbers: Vec<usize>,
    /// Where errors are placed, if not at their byte.
    place: Option<usize>,
}

impl<B: BatchFormat> Default for Pending<'_, B> {
    fn default() -> Self {
        Pending { rows: RowBlock::default(), headers: Vec::new(), fields: Vec::new(), numbers: Vec::new(), place: None }
    }
}

impl<'a, B: BatchFormat> Pending<'a, B> {
    fn clear(&mut self) {
        self.rows.clear();
        self.headers.clear();
        self.fields.clear();
        self.numbers.clear();
    }

    /// Its memory, for messages in other bytes.
    fn recycled<'b>(self) -> Pending<'b, B> {
        let Pending { headers, fields, numbers, .. } = self;
        let (headers, fields, numbers) = (recycled(headers), recycled(fields), recycled(numbers));
        Pending { headers, fields, numbers, ..Pending::default() }
    }

    /// Keeps the messages whose bits are set. The number of bytes stays an upper bound.
    fn retain(&mut self, selected: u64) {
        let all = self.headers.len();
        if selected & ones(all) == ones(all) {
            return;
        }
        let mut kept = 0;
        for run in runs(selected & ones(all)) {
            if run.start > kept {
                self.fields.copy_within(run.clone(), kept);
                self.headers.copy_within(run.clone(), kept);
                self.numbers.copy_within(run.clone(), kept);
            }
            kept += run.len();
        }
        self.fields.truncate(kept);
        self.headers.truncate(kept);
        self.numbers.truncate(kept);
        self.rows.retain(selected);
    }

    /// Moves the messages from one of them on to another place.
    fn split_off(&mut self, first: usize, rest: &mut Self) {
        rest.clear();
        rest.place = self.place;
        rest.fields.extend(self.fields.drain(first..));
        rest.headers.extend(self.headers.drain(first..));
        rest.numbers.extend(self.numbers.drain(first..));
        rest.rows.copy_from(&self.rows);
        rest.rows.skip(first);
        self.rows.truncate(first);
    }

    /// Removes messages from the front.
    fn skip(&mut self, rows: usize) {
        self.fields.drain(..rows);
        self.rows.skip(rows);
        self.headers.drain(..rows);
        self.numbers.drain(..rows);
    }
}

/// Turns messages into rows. It lives as long as the bytes of the messages: of a value, or of a set in it
/// that was compressed.
struct BatchReader<'v, 'a, B: BatchFormat> {
    operation: &'v Messages,
    done: Done,
    /// `None` while the rows of a compressed set are read.
    sinks: Option<MessageSinks<'a, B::Message>>,
    pending: Option<Box<Pending<'a, B>>>,
    /// Memory for the pending messages that the filter has not read.
    rest: Option<Box<Pending<'a, B>>>,
    /// Memory for compressed sets.
    buffer: Vec<u8>,
}

/// The rows so far, and the reason for stopping.
#[derive(Default)]
struct Done {
    rows: Vec<i64>,
    errors: ErrorColumn,
    /// The current row of the input.
    row: usize,
    max_offset: usize,
    progress: Progress,
    full: bool,
    failed: Option<ErrorDetail>,
    interrupted: bool,
}

impl<'a, B: BatchFormat> BatchReader<'_, 'a, B> {
    #[inline(always)]
    fn sinks(&mut self) -> &mut MessageSinks<'a, B::Message> {
        let operation = self.operation;
        self.sinks.get_or_insert_with(|| MessageSinks::new(operation))
    }

    fn batch(&mut self, batch: Cursor<'a>) {
        let mut log = self.log();
        // The reason for ending a batch is in the log, in `full` or in `failed`.
        let _ = parse_batch::<B, _>(batch, self.operation.options, &mut log, self);
        let flushed = self.flush();
        let errors = log.take_errors();
        if flushed.is_ok() && !errors.is_empty() && !self.has_ended() {
            // It is the end of the value either way.
            let _ = self.broken(errors);
        }
    }

    /// The log of a value. Only exceptions number the messages: in a column of errors, each has its own row.
    fn log(&self) -> CollectErrors {
        let log = CollectErrors::new(OnLoss::Raise, self.operation.options.limits.reports);
        if self.operation.on_error == OnError::Raise { log } else { log.without_numbers() }
    }

    fn has_ended(&self) -> bool {
        self.done.full || self.done.failed.is_some() || self.done.interrupted
    }

    /// Appends one row for a message, or for the rest of a batch, that is not readable.
    fn broken(&mut self, mut errors: Vec<ErrorDetail>) -> Result {
        // Its fields are unknown, so only a filter that selects nulls selects it; an error is never lost in silence.
        let failed = FailedRow { is_broken: true, is_appended: false, keeps_parts: true };
        let is_selected = self.operation.filter.as_ref().is_none_or(|filter| filter.accepts_null());
        match failed.decide(self.operation.on_error, is_selected) {
            Decision::Raise => {
                self.done.failed = errors.into_iter().next();
                return Err(Stop);
            }
            Decision::Drop => return Ok(()),
            Decision::Keep | Decision::Null => {}
        }
        if self.operation.filter.is_some() {
            attribute_to_condition(&mut errors, is_selected);
        }
        self.done.errors.cut(&mut errors, self.operation.options.limits.reports);
        self.sinks().begin_row();
        self.sinks().null_row();
        self.sinks().clear_filter();
        self.end_row(&errors);
        Ok(())
    }

    fn end_row(&mut self, errors: &[ErrorDetail]) {
        if self.operation.on_error == OnError::Column {
            self.done.errors.push(errors);
        }
        self.done.rows.push(self.done.row as i64);
    }

    /// Keeps a message of this many bytes for the kernels; false if it needs the slow path.
    #[inline(always)]
    fn keep(
        &mut self,
        fields: &FieldsOf<'a, B>,
        block: Option<Cursor<'a>>,
        len: usize,
        log: &CollectErrors,
    ) -> Result<bool> {
        let is_plain = LayoutOf::<B::Message>::READS.is_some() && log.errors().is_empty();
        let Some(headers) = block.filter(|_| is_plain) else { return Ok(false) };
        let Some(span) = regular_span::<LayoutOf<B::Message>>(headers, self.operation.options) else {
            return Ok(false);
        };
        // An upper bound of what the message adds to any one column.
        let text = |field: &FieldValue<'_>| if let FieldValue::Text(text) = field { text.len() } else { 0 };
        let len = len + if B::Message::HAS_TEXT { fields.values().as_ref().iter().map(text).sum() } else { 0 };
        if self.pending.as_ref().is_some_and(|pending| !pending.rows.has_room(ROWS, len)) {
            self.flush()?;
        }
        let pending = self.pending.get_or_insert_default();
        pending.place = log.place();
        pending.fields.push(*fields);
        pending.numbers.push(log.counts().messages);
        pending.rows.push(Some(span));
        pending.rows.count_bytes(len.saturating_sub(span.len()));
        pending.headers.push(headers);
        Ok(true)
    }

    /// Has the kernels read the messages that were kept, and the slow path those that they cannot.
    #[inline(never)]
    fn flush(&mut self) -> Result {
        self.done.interrupted |= interrupt::is_requested();
        let Some(mut pending) = self.pending.take() else { return Ok(()) };
        let flushed = if self.operation.filter.is_some() && !pending.headers.is_empty() {
            let mut rest = self.rest.take().unwrap_or_default();
            let flushed = self.append_selected(&mut pending, &mut rest);
            self.rest = Some(rest);
            flushed
        } else {
            self.append_pending(&mut pending, false)
        };
        // Its memory, for those that come.
        pending.clear();
        self.pending = Some(pending);
        if flushed.is_err() || self.has_ended() { Err(Stop) } else { Ok(()) }
    }

    /// Appends those messages that the filter selects. Only its operands are read of the others.
    fn append_selected(&mut self, pending: &mut Pending<'a, B>, rest: &mut Pending<'a, B>) -> Result {
        let until = self.until();
        while !pending.headers.is_empty() && !self.has_ended() {
            let all = pending.headers.len();
            let Some(filter) = &mut self.sinks().filter else { return Ok(()) };
            let by_fields = filter.truth_by_fields(&pending.fields);
            if !filter.has_headers() {
                pending.retain(by_fields.yes);
                return self.append_pending(pending, false);
            }
            if by_fields.no != 0 {
                pending.retain(!by_fields.no);
                continue;
            }
            let (truth, scanned, is_listed) =
                self.sinks().evaluate::<LayoutOf<B::Message>, _>(&pending.rows, &pending.fields, until);
            if scanned == all {
                pending.retain(truth.yes);
                return self.append_pending(pending, is_listed);
            }
            pending.split_off(scanned, rest);
            pending.retain(truth.yes);
            self.append_pending(pending, is_listed)?;
            self.slow_path_of_pending(rest, 0)?;
            rest.skip(1);
            std::mem::swap(pending, rest);
        }
        Ok(())
    }

    fn until(&self) -> Until {
        let limit = self.operation.options.limits.headers;
        Until { limit, max_offset: self.done.max_offset, progress: self.done.progress }
    }

    /// Appends the messages, whose headers the list may have already.
    fn append_pending(&mut self, pending: &mut Pending<'a, B>, mut is_listed: bool) -> Result {
        let (all, until) = (pending.headers.len(), self.until());
        let mut next = 0;
        while next < all && !self.has_ended() {
            let (rows, fields) = (&pending.rows, &pending.fields[next..]);
            let done = self.sinks().append::<LayoutOf<B::Message>, _>(rows, fields, until, is_listed);
            is_listed = false;
            self.done.rows.extend(std::iter::repeat_n(self.done.row as i64, done));
            if self.operation.on_error == OnError::Column {
                self.done.errors.push_whole(done);
            }
            next += done;
            if next < all {
                self.slow_path_of_pending(pending, next)?;
                pending.rows.skip(done + 1);
                next += 1;
            }
        }
        Ok(())
    }

    /// Reads one of the pending messages without the kernels.
    fn slow_path_of_pending(&mut self, pending: &Pending<'a, B>, row: usize) -> Result {
        let mut log = self.log().of_message(pending.numbers[row], pending.place);
        self.slow_path(pending.fields[row], Some(pending.headers[row]), &mut log)
    }

    /// Reads a message that is not kept for the kernels, after those that are.
    #[inline(never)]
    fn slow_path_after_pending(
        &mut self,
        fields: &FieldsOf<'a, B>,
        headers: Option<Cursor<'a>>,
        log: &mut CollectErrors,
    ) -> Result {
        self.flush()?;
        self.slow_path(*fields, headers, log)
    }

    /// Reads a message without the kernels. The log has the errors of its frame.
    fn slow_path(&mut self, fields: FieldsOf<'a, B>, headers: Option<Cursor<'a>>, log: &mut CollectErrors) -> Result {
        let values = fields.values();
        let fields = values.as_ref();
        let (options, on_error) = (self.operation.options, self.operation.on_error);
        let sinks = self.sinks();
        let mut has_failed = !log.errors().is_empty();
        if !has_failed && sinks.excludes(fields) {
            return Ok(());
        }
        sinks.begin_row();
        has_failed = has_failed
            || parse_headers::<B, _>(fields, headers, options, &mut Fast::new(OnLoss::Raise), sinks).is_err();
        let (mut errors, mut decision) = (Vec::new(), Decision::Keep);
        if has_failed {
            sinks.abort_row();
            // Headers that break leave the frame, and so the messages after this one, readable.
            let (ended, is_broken) =
                log.inside_frame(|log| parse_headers::<B, _>(fields, headers, options, log, sinks));
            errors = log.take_errors();
            let failed = FailedRow { is_broken, is_appended: ended.is_ok(), keeps_parts: true };
            if failed.is_null(on_error) {
                sinks.abort_row();
                sinks.null_row();
            }
            let is_selected = sinks.is_selected();
            decision = failed.decide(on_error, is_selected);
            if on_error == OnError::Column && sinks.filter.is_some() {
                let is_kept = attribute_to_condition(&mut errors, is_selected);
                decision = if is_kept { decision } else { Decision::Drop };
            }
        } else if !sinks.is_selected() {
            decision = Decision::Drop;
        }
        match decision {
            Decision::Raise => {
                self.done.failed = errors.into_iter().next();
                return Err(Stop);
            }
            Decision::Drop => {
                sinks.abort_row();
                sinks.clear_filter();
                return Ok(());
            }
            Decision::Keep | Decision::Null => sinks.clear_filter(),
        }
        self.done.errors.cut(&mut errors, options.limits.reports);
        let sinks = self.sinks();
        let reached = sinks.list.max_offset().max(sinks.select.max_offset());
        if reached > self.done.max_offset || self.done.errors.would_pass(&errors, self.done.max_offset) {
            self.sinks().abort_row();
            self.done.full = true;
            return Err(Stop);
        }
        self.end_row(&errors);
        Ok(())
    }

    fn finish(self, places: &[usize], on_error: OnError) -> Vec<ArrayRef> {
        let sinks = self.sinks.unwrap_or_else(|| MessageSinks::new(self.operation));
        let mut produced: Vec<ArrayRef> = vec![Arc::new(Int64Array::from(self.done.rows))];
        produced.extend(sinks.list.finish().0);
        let mut columns: Vec<ArrayRef> = places.iter().map(|place| Arc::clone(&produced[*place])).collect();
        columns.extend(sinks.select.finish());
        if on_error == OnError::Column {
            columns.push(self.done.errors.finish());
        }
        columns
    }
}

impl<'v, 'a, B: BatchFormat> MessageReceiver<'a> for BatchReader<'v, 'a, B> {
    type Batch = B;
    type Within<'b> = BatchReader<'v, 'b, B>;

    // Inlined where the fields are created, so that their variants are known at compile time.
    #[inline(always)]
    fn message(&mut self, fields: &FieldsOf<'a, B>, block: Option<Cursor<'a>>, log: &mut CollectErrors) -> Result {
        if self.has_ended() {
            return Err(Stop);
        }
        let len = message_len(fields, block);
        self.operation.options.limits.check_message(len, log)?;
        match self.keep(fields, block, len, log)? {
            true => Ok(()),
            false => self.slow_path_after_pending(fields, block, log),
        }
    }

    fn unreadable(&mut self, log: &mut CollectErrors) -> Result {
        self.flush()?;
        if self.has_ended() {
            return Err(Stop);
        }
        log.enter_header(None);
        self.operation.options.limits.check_message(0, log)?;
        let errors = log.take_errors_of_frame();
        self.broken(errors)
    }

    fn within<'b, R>(&mut self, _bytes: &'b [u8], read: impl FnOnce(&mut Self::Within<'b>) -> R) -> R {
        // A failure is kept in `failed`, and the next message stops.
        let _ = self.flush();
        let (done, sinks) = (std::mem::take(&mut self.done), self.sinks.take().map(MessageSinks::rebind));
        // As there are many sets, none allocates memory of its own.
        let pending = self.pending.take().map(|pending| Box::new(pending.recycled()));
        let rest = self.rest.take().map(|rest| Box::new(rest.recycled()));
        let mut inner = BatchReader { operation: self.operation, done, sinks, pending, rest, buffer: Vec::new() };
        let handed = read(&mut inner);
        let _ = inner.flush();
        (self.done, self.sinks) = (inner.done, inner.sinks.map(MessageSinks::rebind));
        self.pending = inner.pending.map(|pending| Box::new(pending.recycled()));
        self.rest = inner.rest.map(|rest| Box::new(rest.recycled()));
        handed
    }

    fn take_buffer(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.buffer)
    }

    fn return_buffer(&mut self, buffer: Vec<u8>) {
        self.buffer = buffer;
    }
}
