//! [`EditColumn`]: messages with some headers changed, as bytes of the same format.

use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_schema::DataType;

use super::binary::ViewInput;
use super::column::Column;
use super::input::{Bytes, Texts};
use super::rows::{Appended, Buffers, Next, Parsed, RowSource, fill_block, parse_serialized};
use super::run::{Plan, Rows, run};
use super::sink::{Row, RowSink};
use super::{Input, Operation, Output, binary_column, schema, written_type};
use crate::error::{Direction, Error};
use crate::header::{Header, RequestedKey};
use crate::kernel::buffer::{BinaryValues, Progress};
use crate::kernel::edit::{Hit, find};
use crate::kernel::keys::{Keep, KeySet, Requested};
use crate::kernel::layout::{TEXT, WireLayout};
use crate::kernel::scan::Scratch;
use crate::kernel::{RowBlock, Span};
use crate::log::{EitherLog, FailFast, Log, OnError, OnLoss, Result};
use crate::memory;
use crate::op::edit::{Counts, Edit, Editor, NewBits, NewValues, Piece, ReadMessage, RowEdit};
use crate::traits::{Class, Encoded, FieldValue, Info, LayoutOf, MessageFormat, Presence, ReadOptions};
use crate::value::bits_of;
use crate::value_type::{Scalar, ValueType};

/// Bytes → bytes of the same format. With columns of new values, the input is a struct of the messages and these.
#[derive(Debug, Clone)]
pub struct EditColumn {
    pub edit: Arc<Edit>,
    pub options: ReadOptions,
    pub on_error: OnError,
    /// Where to note which entries had a header; `None` if nobody reads it.
    pub seen: Option<Arc<SeenEntries>>,
}

/// Which entries of an edit had a header in any row.
#[derive(Debug)]
pub struct SeenEntries {
    seen: Vec<AtomicBool>,
    has_rows: AtomicBool,
}

impl SeenEntries {
    pub fn new(entries: usize) -> Self {
        let seen = std::iter::repeat_with(|| AtomicBool::new(false)).take(entries).collect();
        SeenEntries { seen, has_rows: AtomicBool::new(false) }
    }

    fn note(&self, seen: &[bool], rows: usize) {
        for (flag, _) in self.seen.iter().zip(seen).filter(|(_, is_seen)| **is_seen) {
            flag.store(true, Ordering::Relaxed);
        }
        self.has_rows.fetch_or(rows > 0, Ordering::Relaxed);
    }

    /// The entries that had no header; none before there was a row.
    pub fn unseen(&self) -> Vec<usize> {
        let has_rows = self.has_rows.load(Ordering::Relaxed);
        let unseen = self.seen.iter().enumerate().filter(|(_, seen)| has_rows && !seen.load(Ordering::Relaxed));
        unseen.map(|(index, _)| index).collect()
    }
}

impl Operation for EditColumn {
    const DIRECTION: Direction = Direction::Convert;

    fn output_type(&self, format: &'static Info) -> Result<DataType, Error> {
        Editor::new(&self.edit, format)?;
        Ok(written_type(OnLoss::Raise, self.on_error))
    }

    fn apply<E: MessageFormat>(&self, input: Input<'_>) -> Result<Output, Error> {
        let (messages, columns) = self.parts(input.column, &E::INFO)?;
        let rows = EditRows::<E> { messages, options: self.options, format: PhantomData };
        self.run_rows(&rows, &columns, input, &E::INFO)
    }
}

impl EditColumn {
    /// Splits an input into its messages and the columns of new values.
    fn parts<'a>(&self, input: &'a dyn Array, format: &Info) -> Result<(Bytes<'a>, Vec<NewColumn<'a>>), Error> {
        match input.as_struct_opt() {
            Some(parts) if self.edit.has_columns() && parts.num_columns() > 0 => {
                let columns = parts.columns()[1..].iter().map(|column| NewColumn::new(column.as_ref()));
                Ok((binary_column(&parts.columns()[0], format)?, columns.collect::<Result<_, Error>>()?))
            }
            _ => Ok((binary_column(input, format)?, Vec::new())),
        }
    }

    #[inline(never)]
    fn run_rows<'a>(
        &self,
        rows: &dyn for<'e> RowSource<'a, EditSink<'a, 'e>>,
        columns: &[NewColumn<'a>],
        input: Input<'a>,
        format: &'static Info,
    ) -> Result<Output, Error> {
        let editor = Editor::new(&self.edit, format)?;
        let plan = input.plan(format.name, Direction::Decode, self.on_error, self.options.limits);
        let plan = Plan { target: Some(format.name), ..plan };
        let Rows { sink, report_columns, until, .. } =
            run(rows, input.from, &plan, &|| Ok(EditSink::new(&editor, columns)))?;
        self.seen.iter().for_each(|seen| seen.note(&sink.seen, until - input.from));
        let data_type = written_type(plan.on_loss, plan.on_error);
        Ok(Output::new(data_type, vec![sink.messages.finish()], None, &plan, report_columns, input.from..until))
    }
}

/// A column of new values: one for each row, or lists with one for each header that is replaced.
struct NewColumn<'a> {
    lists: Option<&'a arrow_array::ListArray>,
    bytes: Option<Bytes<'a>>,
    texts: Option<Texts<'a>>,
}

impl<'a> NewColumn<'a> {
    fn new(column: &'a dyn Array) -> Result<Self, Error> {
        let lists = column.as_list_opt::<i32>();
        let values: &'a dyn Array = lists.map_or(column, |lists| &**lists.values());
        let (bytes, texts) = (Bytes::of(values), Texts::of(values));
        if bytes.is_none() && texts.is_none() {
            let name = schema::type_name(values.data_type());
            return Err(Error::Type(format!("new values of headers are string or binary, not {name}")));
        }
        Ok(NewColumn { lists, bytes, texts })
    }
}

/// The new values of a row.
#[derive(Clone, Copy)]
struct RowValues<'e, 'a> {
    columns: &'e [NewColumn<'a>],
    row: usize,
}

impl NewValues for RowValues<'_, '_> {
    fn get(&self, column: usize, nth: usize) -> Option<NewBits<'_>> {
        let (NewColumn { lists, bytes, texts }, row) = (self.columns.get(column)?, self.row);
        let index = match lists {
            None => row,
            Some(lists) => {
                let offsets = lists.value_offsets();
                let (start, end) = (offsets[row] as usize, offsets[row + 1] as usize);
                if lists.is_null(row) || nth >= end - start {
                    return None;
                }
                start + nth
            }
        };
        Some(match (texts, bytes) {
            (Some(texts), _) => (Some(ValueType::Named(Scalar::String)), texts.get(index).map(str::as_bytes)),
            (None, bytes) => (None, bytes.and_then(|bytes| bytes.get(index))),
        })
    }
}

/// Serialized messages to edit.
struct EditRows<'a, E> {
    messages: Bytes<'a>,
    options: ReadOptions,
    format: PhantomData<fn() -> E>,
}

/// Edited messages as a growing column, and the one that is being read.
struct EditSink<'a, 'e> {
    editor: &'e Editor<'e>,
    columns: &'e [NewColumn<'a>],
    /// The keys of the entries for the kernels; `None` if there are too many.
    keys: Option<KeySet>,
    messages: Column,
    /// The current row, and its bytes.
    row: usize,
    data: &'a [u8],
    /// Where its last header ends.
    end: usize,
    headers: Vec<Header<'a>>,
    fields: Vec<FieldValue<'a>>,
    hits: Vec<Hit>,
    /// Which entries had a header in any row.
    seen: Vec<bool>,
    counts: Counts,
    /// Where the rows of a block end.
    ends: Vec<usize>,
    scratch: Scratch,
}

impl<'a, 'e> EditSink<'a, 'e> {
    fn new(editor: &'e Editor<'e>, columns: &'e [NewColumn<'a>]) -> Self {
        let requested = |(index, key): (usize, &RequestedKey)| {
            let (key, key_type) = match key {
                RequestedKey::Text(text) => (text.as_bytes().to_vec(), TEXT),
                RequestedKey::Typed(value_type, bits) => {
                    (bits_of(*value_type, bits, editor.format().order).into_owned(), *value_type)
                }
                RequestedKey::Int(_) => return None,
            };
            Some(Requested { key, key_type: Some(key_type), keep: Keep::All, value_type: None, index })
        };
        let keys = editor.edit().entries.iter().map(|entry| &entry.key).enumerate();
        EditSink {
            editor,
            columns,
            keys: KeySet::new(keys.filter_map(requested).collect()),
            messages: Column::new(DataType::Binary, &ViewInput::default()),
            row: 0,
            data: &[],
            end: 0,
            headers: Vec::new(),
            fields: Vec::new(),
            hits: Vec::new(),
            seen: vec![false; editor.edit().entries.len()],
            counts: Counts::default(),
            ends: Vec::new(),
            scratch: Scratch::default(),
        }
    }

    /// Appends edited rows of a block, up to the first that needs the slow path, and returns how many.
    fn append<F: WireLayout>(&mut self, messages: Bytes<'a>, block: &RowBlock<'a>, limit: usize, next: &Next) -> usize {
        let Some(keys) = &self.keys else { return 0 };
        self.hits.clear();
        let others = self.editor.edit().drops_others;
        let done = find::<F>(block, limit, &mut self.scratch, keys, others, &mut self.hits);
        self.hits.iter().filter_map(|hit| hit.place).for_each(|index| self.seen[index] = true);
        self.messages.bytes_mut().0.reserve_rest(done, block.byte_len(), next.progress);
        let appended = self.splice(messages, &block.rows()[..done], next);
        for row in &block.rows()[..appended] {
            self.messages.bytes_mut().1.push(row.is_some());
        }
        appended
    }

    /// Appends edited rows, and returns how many. Where rows follow each other, what lies between two changes is copied at once.
    fn splice(&mut self, column: Bytes<'a>, rows: &[Option<Span<'a>>], next: &Next) -> usize {
        let EditSink { editor, columns, messages, hits, counts, ends, .. } = self;
        let (first, max) = (next.rows.start, next.max_offset.saturating_sub(messages.max_offset()));
        let piece = |row: usize, span: Span<'a>| match column {
            Bytes::View(_) => Piece { data: span.bytes(), start: 0, end: span.len() },
            _ => Piece { data: &column.buffers()[0], start: column.before(row), end: column.before(row + 1) },
        };
        let mut hits = &hits[..];
        messages.bytes_mut().0.push_written_values(ends, |out, ends| {
            let (before, mut log) = (out.len(), FailFast::new(OnLoss::Raise));
            // The bytes from `from` to `until` are not copied yet.
            let (mut data, mut from, mut until) = (&[][..], 0, 0);
            for (index, span) in rows.iter().enumerate() {
                let (of_row, rest) = hits.split_at(hits.iter().take_while(|hit| hit.row == index).count());
                hits = rest;
                // A null row may have bytes, which are not a message.
                if let Some(span) = span {
                    let message = piece(first + index, *span);
                    if message.start != until || !std::ptr::eq(message.data, data) {
                        memory::extend(out, &data[from..until]);
                        (data, from, until) = (message.data, message.start, message.start);
                    }
                    let edit = RowEdit { hits: of_row, values: RowValues { columns, row: first + index } };
                    if editor.splice(message, &mut from, &edit, counts, &mut log, out).is_err() {
                        break;
                    }
                    if out.len() + (message.end - from) - before > max {
                        // It is read again, and the output ends before it.
                        let start = ends.last().copied().unwrap_or(0) + before;
                        if out.len() > start {
                            out.truncate(start);
                            from = message.start;
                        }
                        break;
                    }
                    until = message.end;
                }
                ends.push(out.len() + (until - from) - before);
            }
            memory::extend(out, &data[from.min(until)..until]);
        });
        ends.len()
    }
}

/// Appends one edited message.
fn splice_one<R: Log>(
    editor: &Editor<'_>,
    data: &[u8],
    row: &RowEdit<'_, RowValues<'_, '_>>,
    counts: &mut Counts,
    log: &mut R,
    messages: &mut BinaryValues,
) -> Result {
    messages.push_written(|out| {
        let mut from = 0;
        editor.splice(Piece { data, start: 0, end: data.len() }, &mut from, row, counts, log, out)?;
        memory::extend(out, &data[from..]);
        Ok(())
    })
}

impl<'a> RowSink<'a> for EditSink<'a, '_> {
    type Found = ();

    const KEEPS_PARTS: bool = false;

    fn header<R: Log>(&mut self, _: &mut (), header: Header<'a>, _log: &mut R) -> Result {
        let hit = self.editor.hit(&header);
        if let Some(index) = hit.and_then(|hit| hit.place) {
            self.seen[index] = true;
        }
        if self.editor.format().class != Class::Headers {
            memory::push(&mut self.headers, header);
            return Ok(());
        }
        let end = header.value_offset.unwrap_or(0) + header.value.map_or(0, <[u8]>::len);
        if let Some(hit) = hit {
            memory::push(&mut self.hits, Hit { start: self.end, ..hit });
        }
        self.end = end;
        Ok(())
    }

    fn fields(&mut self, fields: &[FieldValue<'a>]) {
        self.fields.extend_from_slice(fields);
    }

    fn extend(&mut self, other: &Self, progress: Progress) {
        self.messages.extend(&other.messages, progress);
        self.seen.iter_mut().zip(&other.seen).for_each(|(seen, other)| *seen |= other);
    }

    fn begin_row(&mut self, _: &mut ()) {
        self.hits.clear();
        self.headers.clear();
        self.fields.clear();
        self.end = 0;
    }

    fn end_row<R: Log>(&mut self, _: &mut (), presence: Presence, log: &mut R) -> Result {
        let EditSink { editor, columns, row, data, end, headers, fields, hits, counts, messages, .. } = self;
        let (messages, valid) = messages.bytes_mut();
        let values = RowValues { columns, row: *row };
        let encoded = match editor.format().class {
            Class::Headers => {
                // A lenient read accepts bytes after the last header. An appended header would follow them, and they would be
                // read as a header.
                let data = if editor.touches(hits, &values) { &data[..editor.headers_end(data, *end)] } else { *data };
                splice_one(editor, data, &RowEdit { hits, values }, counts, log, messages)?;
                Encoded::Message
            }
            _ => {
                let message = ReadMessage { data, headers, fields, presence };
                messages.push_written(|out| editor.rewrite(&message, &values, counts, log, out))?
            }
        };
        valid.push(encoded == Encoded::Message);
        Ok(())
    }

    fn row_count(&self) -> usize {
        self.messages.count()
    }

    fn truncate(&mut self, rows: usize) {
        self.messages.truncate(rows);
    }

    fn null_row(&mut self) {
        self.messages.push(None);
    }

    fn max_offset(&self) -> usize {
        self.messages.max_offset()
    }
}

impl<'a, 'e, E: MessageFormat> RowSource<'a, EditSink<'a, 'e>> for EditRows<'a, E> {
    fn column(&self) -> &'a dyn Array {
        self.messages.array()
    }

    fn append(
        &self,
        buffers: &mut Buffers<'a>,
        next: Next,
        to: &mut Row<'_, 'a, EditSink<'a, 'e>>,
    ) -> Option<Appended> {
        let block = &mut buffers.block;
        if LayoutOf::<E>::READS.is_none() || E::CLASS != Class::Headers {
            return None;
        }
        fill_block::<LayoutOf<E>>(block, self.messages, next.rows.clone(), self.options, true);
        Some(match block.rows().len() {
            0 => Appended::NONE,
            offered => Appended {
                offered,
                appended: to.sink.append::<LayoutOf<E>>(self.messages, block, self.options.limits.headers, &next),
            },
        })
    }

    fn parse(
        &self,
        row: usize,
        _: &mut Buffers<'a>,
        log: EitherLog<'_>,
        to: &mut Row<'_, 'a, EditSink<'a, 'e>>,
    ) -> Parsed {
        let Some(data) = self.messages.cursor(row) else { return Ok(Presence::Absent) };
        (to.sink.row, to.sink.data) = (row, data.peek_rest());
        parse_serialized::<E, _>(data, self.options, log, to)
    }
}
