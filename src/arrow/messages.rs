//! [`Messages`] expands batches to one row per message, with its fields, its headers and typed columns of headers.

use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array as _, ArrayRef};
use arrow_schema::{DataType, FieldRef};

use super::decode::ListSink;
use super::filter::{Filter, FilterSink};
use super::input::{Bytes, binary_column};
use super::message_block::MessageBlock;
use super::message_sinks::{BlockLimits, MessageFound, MessageSinks};
use super::operation::struct_of;
use super::rows::regular_span;
use super::run::{OutputRows, Plan, RangeRun, RowEnd, share, too_large};
use super::select::{SelectSink, Selection, check_keys};
use super::sink::{Row, RowSink as _};
use super::{Input, Operation, Output, schema};
use crate::arrow::types::Dialect;
use crate::cursor::Cursor;
use crate::error::{Direction, Error, ErrorDetail, interrupted, unknown_name};
use crate::field::FieldValue;
use crate::format_info::{Class, FormatInfo};
use crate::interrupt;
use crate::kernel::ROWS;
use crate::kernel::buffer::Progress;
use crate::log::{CollectErrors, EitherLog, Log, OnError, OnLoss, Result, Stop};
use crate::op::not_a_batch;
use crate::options::ReadOptions;
use crate::sink::{AnySink, Presence, Sink as _};
use crate::traits::{
    BatchFormat, FieldsOf, HeadersFormat, MessageFields as _, MessageFormat, MessageReceiver, Receiver, message_len,
    parse_batch,
};

/// Name of the column with the input row of a message.
const ROW: &str = "row";

/// Maximum growth factor that is estimated from previous batches, because later ones may differ.
const MAX_GROWTH: usize = 16;

/// Reads the messages of batches.
#[derive(Debug, Clone, Default)]
pub struct Messages {
    /// Fields of the result, including `row`; `None` for all.
    pub columns: Option<Vec<String>>,
    pub selections: Vec<Selection>,
    pub dialect: Dialect,
    pub options: ReadOptions,
    pub on_error: OnError,
    /// Condition on the returned messages; `None` for all.
    pub filter: Option<Arc<Filter>>,
}

impl Messages {
    fn requests(&self, name: &str) -> bool {
        self.columns.as_ref().is_none_or(|names| names.iter().any(|requested| requested == name))
    }

    /// Fields that the sinks produce, the row first, and the indexes of the requested ones.
    fn column_indexes(&self, format: &FormatInfo) -> Result<(Vec<FieldRef>, Vec<usize>), Error> {
        let mut known = vec![schema::nullable(ROW, DataType::Int64)];
        known.extend(schema::message_fields(format, self.options.text_keys));
        let produced = known.iter().filter(|field| field.name() == ROW || self.requests(field.name()));
        let produced: Vec<_> = produced.map(Arc::clone).collect();
        let indexes = match &self.columns {
            None => (0..produced.len()).collect(),
            Some(names) => {
                let index = |name: &String| {
                    let index = produced.iter().position(|field| field.name() == name);
                    index.ok_or_else(|| unknown_name("column", name, known.iter().map(|field| field.name().as_str())))
                };
                names.iter().map(index).collect::<Result<Vec<_>, _>>()?
            }
        };
        Ok((produced, indexes))
    }

    fn sinks(&self, format: &'static FormatInfo) -> MessageSinks {
        let Messages { selections, dialect, options, .. } = self;
        let list = ListSink::new(format, options.text_keys, None).keep(|field| self.requests(field.name));
        let select = SelectSink::new(selections, *dialect, format.order, format.types.is_typed(), None);
        let filter = self.filter.as_ref().and_then(|filter| FilterSink::new(filter, format, format.order).ok());
        let filter = filter.map(|filter| filter.strict(options.strict_types));
        MessageSinks::new(list, select.strict(options.strict_types), filter)
    }

    fn fields(&self, format: &FormatInfo) -> Result<Vec<FieldRef>, Error> {
        check_keys(&self.selections, format)?;
        self.filter.iter().try_for_each(|filter| filter.check(format))?;
        let (produced, indexes) = self.column_indexes(format)?;
        let mut fields: Vec<_> = indexes.into_iter().map(|index| Arc::clone(&produced[index])).collect();
        fields.extend(
            self.selections.iter().map(|selection| schema::nullable(&selection.output, selection.arrow(self.dialect))),
        );
        Ok(schema::with_errors(fields, self.on_error))
    }
}

impl Operation for Messages {
    fn output_type(&self, format: &'static FormatInfo) -> Result<DataType, Error> {
        match format.class {
            Class::Batch => Ok(DataType::Struct(self.fields(format)?.into())),
            Class::Headers | Class::Message => Err(not_a_batch(format.name)),
        }
    }

    fn apply<E: MessageFormat>(&self, _input: Input<'_>) -> Result<Output, Error> {
        Err(not_a_batch(E::NAME))
    }

    fn apply_batch<B: BatchFormat>(&self, input: Input<'_>) -> Result<Output, Error> {
        let plan = input.plan(B::NAME, Direction::Decode, self.on_error, self.options.limits);
        let batches = binary_column(input.column, &B::INFO)?;
        self.run(&B::INFO, input, &plan, batches, &|range, share| {
            Box::new(BatchRun::<B>::new(self, &plan, batches, range, share))
        })
    }
}

/// Function that creates the processing of a range of batches.
type NewRun<'r, 'a> = dyn Fn(Range<usize>, Option<Share>) -> Box<dyn RangeRun<'a, MessageSinks> + 'r> + Sync + 'r;

impl Messages {
    fn run<'a>(
        &self,
        format: &'static FormatInfo,
        input: Input<'_>,
        plan: &Plan,
        batches: Bytes<'a>,
        new_run: &NewRun<'_, 'a>,
    ) -> Result<Output, Error> {
        let fields = self.fields(format)?;
        let (_, indexes) = self.column_indexes(format)?;
        let all = input.from..input.column.len();
        let limit = self.options.limits.decompressed_bytes;
        let share_of = |threads: usize| limit.min((limit / threads).max(MIN_DECOMPRESSED));
        let parts_share = Share { left: share_of(plan.threads), is_of_all_values: true };
        let whole_share = Share { left: share_of(input.at_once), is_of_all_values: false };
        let bytes = (batches.before(all.end) - batches.before(all.start)) / all.len().max(1);
        let sizes = (MIN_PART / bytes.max(1)).max(1)..=(MAX_PART / bytes.max(1)).max(1);
        let mut whole = new_run(all.clone(), (input.at_once > 1).then_some(whole_share));
        share(all, plan, sizes, &mut *whole, &|range| Some(new_run(range, Some(parts_share))))?;
        Ok(self.output(whole.into_rows(), fields, &indexes))
    }

    /// Builds the output. A batch whose messages did not all fit is left for the next chunk.
    fn output(&self, rows: OutputRows<MessageSinks>, fields: Vec<FieldRef>, indexes: &[usize]) -> Output {
        let OutputRows { sink, report_columns, until, .. } = rows;
        let count = sink.row_count();
        let (produced, selected) = sink.finish();
        let mut columns: Vec<ArrayRef> = indexes.iter().map(|index| Arc::clone(&produced[*index])).collect();
        columns.extend(selected);
        columns.extend(self.on_error.is_column().then(|| report_columns.errors.finish()));
        columns.iter_mut().for_each(|column| *column = column.slice(0, count));
        Output { column: struct_of(fields, columns, None, count), until }
    }
}

/// Number of bytes of batches that a thread reads at once: enough to pay for a thread, few enough that their messages
/// stay in the cache until they are appended.
const MIN_PART: usize = 1 << 17;
const MAX_PART: usize = 1 << 20;

/// Minimum limit of decompressed bytes for the part of a thread. The first thread reads parts that exceed their limit
/// one after another, so that threads do not multiply the memory of compressed batches.
const MIN_DECOMPRESSED: usize = 8 << 20;

/// Share of the limit of decompressed bytes for the run of one thread. Values that exceed the share are read again by a
/// run with the whole limit.
#[derive(Clone, Copy)]
struct Share {
    left: usize,
    /// Whether the limit applies to the sum over all values instead of to each value. It does if the messages of all
    /// values are kept until they are appended.
    is_of_all_values: bool,
}

/// Processing of a range of batches, up to `reader.rows.until`.
struct BatchRun<'v, 'a, B: BatchFormat> {
    batches: Bytes<'a>,
    range: Range<usize>,
    /// Number of messages of completely read batches.
    count: usize,
    reader: BatchReader<'v, B>,
    held: Held<'a, B>,
}

impl<'v, 'a, B: BatchFormat> BatchRun<'v, 'a, B> {
    fn new(
        operation: &'v Messages,
        plan: &'v Plan,
        batches: Bytes<'a>,
        range: Range<usize>,
        share: Option<Share>,
    ) -> Self {
        let (rows, progress) = (OutputRows::new(operation.sinks(&B::INFO), range.start), Progress { bytes: 0, all: 0 });
        let (buffer, format) = (Vec::new(), PhantomData);
        let reader = BatchReader { operation, plan, rows, row: 0, progress, ended: None, share, buffer, format };
        BatchRun { batches, range, count: 0, reader, held: Held::default() }
    }

    /// Progress through the range once the rows before `row` are processed.
    fn progress(&self, row: usize) -> Progress {
        let start = self.batches.before(self.range.start);
        let (bytes, all) = (self.batches.before(row) - start, self.batches.before(self.range.end) - start);
        Progress { bytes, all: all.min(bytes.saturating_mul(MAX_GROWTH)) }
    }
}

impl<'a, B: BatchFormat> RangeRun<'a, MessageSinks> for BatchRun<'_, 'a, B> {
    fn rows(&self) -> &OutputRows<MessageSinks> {
        &self.reader.rows
    }

    fn into_rows(mut self: Box<Self>) -> OutputRows<MessageSinks> {
        self.reader.rows.sink.truncate(self.count);
        self.reader.rows
    }

    fn advance(&mut self, end: usize) -> Result<bool, Error> {
        for row in self.reader.rows.until..end {
            if let Some(batch) = self.batches.cursor(row) {
                self.reader.progress = self.progress(row + 1);
                self.reader.read(self.reader.plan.rows_before + row, batch, &mut self.held);
            }
            match self.reader.ended.take() {
                None => {}
                Some(End::Failed(error)) => return Err(error),
                Some(End::Full) if row == self.range.start => {
                    return Err(too_large(Direction::Decode, B::NAME, self.reader.row));
                }
                Some(End::Full) => return Ok(false),
            }
            self.reader.rows.until = row + 1;
            self.count = self.reader.rows.sink.row_count();
        }
        Ok(true)
    }

    fn append(&mut self, next: OutputRows<MessageSinks>) {
        let progress = self.progress(next.until);
        self.reader.rows.extend(next, progress);
        self.count = self.reader.rows.sink.row_count();
    }
}

/// Messages that wait for a kernel, and memory for the values that it finds.
struct Held<'a, B: BatchFormat> {
    block: MessageBlock<'a, B>,
    /// Messages that the filter has not yet read.
    rest: Option<Box<MessageBlock<'a, B>>>,
    found: MessageFound<'a>,
}

impl<B: BatchFormat> Default for Held<'_, B> {
    fn default() -> Self {
        Held { block: MessageBlock::default(), rest: None, found: MessageFound::default() }
    }
}

/// Appends the messages of batches to the columns.
struct BatchReader<'v, B: BatchFormat> {
    operation: &'v Messages,
    plan: &'v Plan,
    rows: OutputRows<MessageSinks>,
    /// Current input row, as numbered in errors.
    row: usize,
    progress: Progress,
    ended: Option<End>,
    share: Option<Share>,
    /// Reused memory for decompressed records.
    buffer: Vec<u8>,
    format: PhantomData<fn() -> B>,
}

/// Reason why no more messages are read.
enum End {
    Full,
    Failed(Error),
}

impl<B: BatchFormat> BatchReader<'_, B> {
    /// Appends the messages of a value of the column.
    fn read<'a>(&mut self, row: usize, batch: Cursor<'a>, held: &mut Held<'a, B>) {
        (self.row, self.rows.sink.row) = (row, row as i64);
        let mut log = self.log();
        let mut options = self.operation.options;
        if let Some(share) = self.share {
            options.limits.decompressed_bytes = share.left;
        }
        // The reason for ending a batch is in the log or in `ended`.
        let _ = parse_batch::<B, _>(batch, options, &mut log, &mut Receiver::new(self, held));
        let flushed = self.read_held(held);
        let decompressed = log.counts().decompressed_bytes;
        if let Some(share) = &mut self.share {
            let left = share.left.saturating_sub(decompressed);
            if left == 0 {
                self.ended = Some(End::Full);
                return;
            }
            if share.is_of_all_values {
                share.left = left;
            }
        }
        let errors = log.take_errors();
        if flushed.is_ok() && !errors.is_empty() {
            // The result is not needed, because the value ends here in any case.
            let _ = self.append_unreadable(&mut held.found, errors);
        }
    }

    /// Creates the log of a value. Only exceptions number messages; in a column of errors, each message has its own
    /// row.
    fn log(&self) -> CollectErrors {
        let log = CollectErrors::new(OnLoss::Raise, self.operation.options.limits.reports);
        if self.operation.on_error == OnError::Raise { log } else { log.without_numbers() }
    }

    /// Stores the reason if reading ends.
    fn note(&mut self, row: Result<RowEnd, Error>) -> Result {
        self.ended = match row {
            Ok(RowEnd::Appended | RowEnd::Excluded) => return Ok(()),
            Ok(RowEnd::Full) => Some(End::Full),
            Err(error) => Some(End::Failed(error)),
        };
        Err(Stop)
    }

    /// Appends a row for an unreadable message, or for the unreadable rest of a batch. Its fields are unknown, so that
    /// only a filter that accepts nulls selects it. Its errors are never dropped silently.
    fn append_unreadable<'a>(&mut self, found: &mut MessageFound<'a>, errors: Vec<ErrorDetail>) -> Result {
        let ended = self.rows.append_unreadable_row(self.plan, self.row, found, errors);
        self.note(ended)
    }

    /// Keeps a message of `len` bytes for the kernels; false if it needs the slow path.
    #[inline(always)]
    fn keep<'a>(
        &mut self,
        held: &mut Held<'a, B>,
        fields: &FieldsOf<'a, B>,
        headers: Option<Cursor<'a>>,
        len: usize,
        log: &CollectErrors,
    ) -> Result<bool> {
        let is_plain = B::INFO.wire_layout.is_readable() && log.errors().is_empty();
        let Some(headers) = headers.filter(|_| is_plain) else { return Ok(false) };
        let Some(span) = regular_span(B::INFO.wire_layout, headers, self.operation.options) else {
            return Ok(false);
        };
        // Upper bound of the bytes that the message adds to one column.
        let text = |field: &FieldValue<'_>| if let FieldValue::Text(text) = field { text.len() } else { 0 };
        let len = len + if B::Message::HAS_TEXT { fields.values().as_ref().iter().map(text).sum() } else { 0 };
        if !held.block.rows.has_room(ROWS, len) {
            self.read_held(held)?;
        }
        let block = &mut held.block;
        block.error_byte = log.error_byte();
        block.fields.push(*fields);
        block.numbers.push(log.counts().messages);
        block.rows.push(Some(span));
        block.rows.count_bytes(len.saturating_sub(span.len()));
        block.headers.push(headers);
        Ok(true)
    }

    /// Appends the kept messages, by kernels or by the slow path.
    #[inline(never)]
    fn read_held(&mut self, held: &mut Held<'_, B>) -> Result {
        if self.ended.is_none() && interrupt::is_requested() {
            self.ended = Some(End::Failed(interrupted()));
        }
        if B::INFO.wire_layout.is_readable() && self.ended.is_none() && !held.block.headers.is_empty() {
            let _ = match self.operation.filter.is_some() {
                true => self.append_selected(held),
                false => self.append_block(&mut held.block, &mut held.found, false),
            };
        }
        held.block.clear();
        if self.ended.is_some() { Err(Stop) } else { Ok(()) }
    }

    /// Appends the messages that the filter selects. Of other messages, only the operands of the filter are read.
    fn append_selected(&mut self, held: &mut Held<'_, B>) -> Result {
        let limits = self.block_limits();
        let Held { block, rest, found } = held;
        while !block.headers.is_empty() {
            let all = block.headers.len();
            let Some(filter) = &mut self.rows.sink.filter else { return Ok(()) };
            let by_fields = filter.truth_by_fields(&block.fields);
            if !filter.has_headers() {
                block.retain(by_fields.yes);
                return self.append_block(block, found, false);
            }
            if by_fields.no != 0 {
                block.retain(!by_fields.no);
                continue;
            }
            let sink = &mut self.rows.sink;
            let (truth, scanned, is_listed) =
                sink.evaluate(B::INFO.wire_layout, found, &block.rows, &block.fields, limits);
            if scanned == all {
                block.retain(truth.yes);
                return self.append_block(block, found, is_listed);
            }
            let rest = rest.get_or_insert_default();
            block.split_off(scanned, rest);
            block.retain(truth.yes);
            self.append_block(block, found, is_listed)?;
            self.append_slowly(rest, 0, found)?;
            rest.skip(1);
            std::mem::swap(block, rest);
        }
        Ok(())
    }

    fn block_limits(&self) -> BlockLimits {
        let limit = self.operation.options.limits.headers;
        BlockLimits { limit, max_offset: self.plan.max_offset, progress: self.progress }
    }

    /// Appends the messages of a block. `is_listed`: their headers are already in the list.
    fn append_block<'a>(
        &mut self,
        block: &mut MessageBlock<'a, B>,
        found: &mut MessageFound<'a>,
        mut is_listed: bool,
    ) -> Result {
        let (all, limits) = (block.headers.len(), self.block_limits());
        let mut next = 0;
        while next < all {
            let OutputRows { sink, report_columns, .. } = &mut self.rows;
            let fields = &block.fields[next..];
            let done = sink.append(B::INFO.wire_layout, found, &block.rows, fields, limits, is_listed);
            is_listed = false;
            report_columns.push_whole(done, self.plan.on_error.is_column(), false);
            next += done;
            if next < all {
                self.append_slowly(block, next, found)?;
                block.rows.skip(done + 1);
                next += 1;
            }
        }
        Ok(())
    }

    /// Appends a message of a block without kernels.
    fn append_slowly<'a>(&mut self, block: &MessageBlock<'a, B>, index: usize, found: &mut MessageFound<'a>) -> Result {
        let mut log = self.log().for_message(block.numbers[index], block.error_byte);
        self.append_message(found, block.fields[index], Some(block.headers[index]), &mut log)
    }

    /// Appends a message without kernels, after the messages kept for them.
    #[inline(never)]
    fn append_after_held<'a>(
        &mut self,
        held: &mut Held<'a, B>,
        fields: FieldsOf<'a, B>,
        headers: Option<Cursor<'a>>,
        log: &mut CollectErrors,
    ) -> Result {
        self.read_held(held)?;
        self.append_message(&mut held.found, fields, headers, log)
    }

    /// Appends a message without kernels. The log has the errors of its frame.
    fn append_message<'a>(
        &mut self,
        found: &mut MessageFound<'a>,
        fields: FieldsOf<'a, B>,
        headers: Option<Cursor<'a>>,
        log: &mut CollectErrors,
    ) -> Result {
        let values = fields.values();
        let fields = values.as_ref();
        let BatchReader { operation: Messages { options, .. }, rows, plan, row, .. } = self;
        let mut parse = |log: EitherLog<'_>, to: &mut Row<'_, 'a, MessageSinks>| {
            to.fields(fields);
            let Some(cursor) = headers else { return Ok(Presence::Absent) };
            match log {
                EitherLog::FailFast(log) if !B::INFO.wire_layout.is_readable() => {
                    <B::Message as MessageFormat>::Headers::parse(cursor, *options, log, to)?
                }
                log => (B::INFO.parse_headers)(cursor, *options, log, AnySink(to))?,
            }
            Ok(Presence::Whole)
        };
        let ended = if !log.errors().is_empty() {
            rows.begin_row(found);
            rows.append_failed_row(plan, *row, found, &mut parse, log)
        } else if rows.sink.excludes(fields) {
            Ok(RowEnd::Excluded)
        } else {
            rows.append_row(plan, *row, found, &mut parse, Some(log))
        };
        self.note(ended)
    }
}

impl<B: BatchFormat> MessageReceiver for BatchReader<'_, B> {
    type Batch = B;
    type Held<'a> = Held<'a, B>;

    // Inlined into the parser, where the variants of the fields are known at compile time.
    #[inline(always)]
    fn message<'a>(
        &mut self,
        held: &mut Held<'a, B>,
        fields: &FieldsOf<'a, B>,
        headers: Option<Cursor<'a>>,
        log: &mut CollectErrors,
    ) -> Result {
        if self.ended.is_some() {
            return Err(Stop);
        }
        let len = message_len(fields, headers);
        self.operation.options.limits.check_message(len, log)?;
        match self.keep(held, fields, headers, len, log)? {
            true => Ok(()),
            // Copied only here, so that fields of other messages are written directly into the block.
            false => self.append_after_held(held, *fields, headers, log),
        }
    }

    fn unreadable<'a>(&mut self, held: &mut Held<'a, B>, log: &mut CollectErrors) -> Result {
        self.read_held(held)?;
        log.enter_header(None);
        self.operation.options.limits.check_message(0, log)?;
        let errors = log.take_errors_of_frame();
        self.append_unreadable(&mut held.found, errors)
    }

    fn flush<'a>(&mut self, held: &mut Held<'a, B>) {
        // The reason is in `ended`; the next message ends the parse.
        let _ = self.read_held(held);
    }

    fn take_buffer(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.buffer)
    }

    fn return_buffer(&mut self, buffer: Vec<u8>) {
        self.buffer = buffer;
    }
}
