//! [`EditColumn`]: messages with some headers changed, as bytes of the same format.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_schema::DataType;

use super::binary::ViewInput;
use super::column::Column;
use super::encode::written_type;
use super::input::{Bytes, ListInput, Texts, binary_column};
use super::layouts::read_rows;
use super::rows::{Appended, Buffers, MessageColumn, MessageRows, Next, Parsed, RowSource};
use super::run::{OutputRows, Plan, run};
use super::sink::{Row, RowSink};
use super::{Input, Operation, Output, schema};
use crate::error::{Direction, Error};
use crate::field::FieldValue;
use crate::format_info::{Class, Contents, Encoded, FormatInfo};
use crate::header::Header;
use crate::kernel::buffer::Progress;
use crate::kernel::edit::{FoundHeader, find};
use crate::kernel::keys::{KeySet, Requested};
use crate::kernel::scan::Scratch;
use crate::kernel::{RowBlock, Span};
use crate::log::{EitherLog, Log, OnError, OnLoss, Result};
use crate::memory;
use crate::op::check_not_batch;
use crate::op::edit::{ByteOutput, Edit, Editor};
use crate::options::ReadOptions;
use crate::sink::Presence;
use crate::traits::MessageFormat;
use crate::value_type::{Scalar, ValueType};

/// Edits messages, which keep their format. With columns of new values, the input is a struct of the messages and those
/// columns.
#[derive(Debug, Clone)]
pub struct EditColumn {
    pub edit: Arc<Edit>,
    pub options: ReadOptions,
    pub on_error: OnError,
    /// Entries that matched a header in any row; `None` if the caller does not need them.
    pub seen: Option<Arc<SeenEntries>>,
}

/// Entries of an edit that matched a header in any row.
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

    /// Indices of the entries that matched no header; empty before the first row.
    pub fn unseen(&self) -> Vec<usize> {
        let has_rows = self.has_rows.load(Ordering::Relaxed);
        let unseen = self.seen.iter().enumerate().filter(|(_, seen)| has_rows && !seen.load(Ordering::Relaxed));
        unseen.map(|(entry, _)| entry).collect()
    }
}

impl Operation for EditColumn {
    const DIRECTION: Direction = Direction::Convert;

    fn output_type(&self, format: &'static FormatInfo) -> Result<DataType, Error> {
        check_not_batch(format)?;
        Editor::new(&self.edit, format)?;
        Ok(written_type(OnLoss::Raise, self.on_error))
    }

    fn apply<E: MessageFormat>(&self, input: Input<'_>) -> Result<Output, Error> {
        let (messages, columns) = self.parts(input.column, &E::INFO)?;
        let editor = Editor::new(&self.edit, &E::INFO)?;
        let rows = MessageRows::with_kernels::<E>(messages, self.options, E::CLASS == Class::Headers);
        self.run_rows(&EditRows(rows), &editor, &columns, input)
    }
}

impl EditColumn {
    /// Splits an input into its messages and the columns of new values.
    fn parts<'a>(&self, input: &'a dyn Array, format: &FormatInfo) -> Result<(Bytes<'a>, Vec<NewColumn<'a>>), Error> {
        match input.as_struct_opt() {
            Some(parts) if self.edit.has_columns() && parts.num_columns() > 0 => {
                let columns = parts.columns()[1..].iter().map(|column| NewColumn::new(column.as_ref()));
                Ok((binary_column(&parts.columns()[0], format)?, columns.collect::<Result<_, Error>>()?))
            }
            _ => Ok((binary_column(input, format)?, Vec::new())),
        }
    }

    #[inline(never)]
    fn run_rows<'a, 'e>(
        &self,
        rows: &EditRows<'a, 'e>,
        editor: &'e Editor<'e>,
        columns: &'e [NewColumn<'a>],
        input: Input<'a>,
    ) -> Result<Output, Error> {
        let format = editor.format.name;
        let plan = input.plan(format, Direction::Decode, self.on_error, self.options.limits);
        let plan = Plan { target: Some(format), ..plan };
        let OutputRows { sink, report_columns, until, .. } =
            run(rows, input.from, &plan, &|| Ok(EditSink::new(editor, columns)))?;
        self.seen.iter().for_each(|seen| seen.note(&sink.seen, until - input.from));
        let data_type = written_type(plan.on_loss, plan.on_error);
        Ok(Output::new(data_type, vec![sink.messages.finish()], None, &plan, report_columns, input.from..until))
    }
}

/// Column of new values: one for each row, or lists with one for each replaced header.
struct NewColumn<'a> {
    lists: Option<ListInput<'a>>,
    bytes: Option<Bytes<'a>>,
    texts: Option<Texts<'a>>,
}

impl<'a> NewColumn<'a> {
    fn new(column: &'a dyn Array) -> Result<Self, Error> {
        let lists = ListInput::of(column);
        let values: &'a dyn Array = lists.map_or(column, |lists| &**lists.values());
        let (bytes, texts) = (Bytes::of(values), Texts::of(values));
        if bytes.is_none() && texts.is_none() {
            let name = schema::type_name(values.data_type());
            return Err(Error::Type(format!("new values of headers are string or binary, not {name}")));
        }
        Ok(NewColumn { lists, bytes, texts })
    }

    /// Returns the type and the bytes of the `nth` value of a row; `None` if the row has fewer.
    fn get(&self, row: usize, nth: usize) -> Option<(Option<ValueType>, Option<&'a [u8]>)> {
        let index = match self.lists {
            None => row,
            Some(lists) => lists.get(row)?.nth(nth)?,
        };
        Some(match self.texts {
            Some(texts) => (Some(ValueType::Named(Scalar::String)), texts.get(index).map(str::as_bytes)),
            None => (None, self.bytes.and_then(|bytes| bytes.get(index))),
        })
    }
}

/// Serialized messages to edit.
struct EditRows<'a, 'e>(MessageRows<'a, EditSink<'a, 'e>>);

/// Edited messages as a growing column, and the message being read.
struct EditSink<'a, 'e> {
    editor: &'e Editor<'e>,
    columns: &'e [NewColumn<'a>],
    /// Keys of the entries for the kernels; `None` if there are too many.
    keys: Option<KeySet>,
    messages: Column,
    /// Index and bytes of the current row.
    row: usize,
    data: &'a [u8],
    /// End of the row's last header: an offset in `data`, or an index in `headers` if the message has other fields.
    end: usize,
    headers: Vec<Header<'a>>,
    fields: Vec<FieldValue<'a>>,
    found: Vec<FoundHeader>,
    /// For each entry, whether it matched a header in any row.
    seen: Vec<bool>,
    /// Headers of each entry in the current row.
    counts: Vec<usize>,
    /// Ends of the rows of a block.
    ends: Vec<usize>,
    scratch: Scratch,
}

impl<'a, 'e> EditSink<'a, 'e> {
    fn new(editor: &'e Editor<'e>, columns: &'e [NewColumn<'a>]) -> Self {
        let entries = editor.edit.entries.iter().enumerate();
        let requested = entries.map(|(index, entry)| Requested::all(&entry.key, editor.format.order, index));
        EditSink {
            editor,
            columns,
            keys: KeySet::new(requested.flatten().collect()),
            messages: Column::new(DataType::Binary, &ViewInput::default()),
            row: 0,
            data: &[],
            end: 0,
            headers: Vec::new(),
            fields: Vec::new(),
            found: Vec::new(),
            seen: vec![false; editor.edit.entries.len()],
            counts: Vec::new(),
            ends: Vec::new(),
            scratch: Scratch::default(),
        }
    }

    /// Appends edited rows of a block, up to the first that needs the slow path, and returns their number.
    fn append(&mut self, messages: Bytes<'a>, block: &RowBlock<'a>, limit: usize, next: &Next) -> usize {
        let Some(keys) = &self.keys else { return 0 };
        self.found.clear();
        let others = self.editor.edit.drops_others;
        let (scratch, found) = (&mut self.scratch, &mut self.found);
        let done = read_rows!(self.editor.format.wire_layout.name, F => {
            find::<F>(block, limit, scratch, keys, others, found)
        });
        self.found.iter().filter_map(|header| header.entry).for_each(|entry| self.seen[entry] = true);
        self.messages.bytes_mut().0.reserve_rest(done, block.byte_len(), next.progress);
        self.splice(messages, &block.rows()[..done], next)
    }

    /// Appends edited rows, and returns their number.
    fn splice(&mut self, column: Bytes<'a>, rows: &[Option<Span<'a>>], next: &Next) -> usize {
        let EditSink { editor, columns, messages, found, counts, ends, .. } = self;
        let (first, max) = (next.rows.start, next.max_offset.saturating_sub(messages.max_offset()));
        let mut found = &found[..];
        let (bytes, valid) = messages.bytes_mut();
        bytes.push_written_values(ends, |out, ends| {
            let before = out.len();
            let mut out = ByteOutput::new(editor, out);
            for (index, span) in rows.iter().enumerate() {
                let (in_row, rest) = found.split_at(found.iter().take_while(|header| header.row == index).count());
                found = rest;
                // A null row may have bytes, which are not a message.
                if let Some(span) = span {
                    let row = first + index;
                    let (data, range) = match column {
                        Bytes::View(_) => (span.bytes(), 0..span.len()),
                        _ => (&column.buffers()[0][..], column.before(row)..column.before(row + 1)),
                    };
                    let values = |column: usize, nth| columns.get(column)?.get(row, nth);
                    if out.push_edited((data, range), span.len(), in_row, &values, counts).is_err() {
                        break;
                    }
                    if out.byte_len() - before > max {
                        // The row is read again, so the output ends before it.
                        out.take_back();
                        break;
                    }
                }
                ends.push(out.byte_len() - before);
            }
            out.flush();
        });
        rows[..ends.len()].iter().for_each(|row| valid.push(row.is_some()));
        ends.len()
    }
}

impl<'a> RowSink<'a> for EditSink<'a, '_> {
    type Found = ();

    const KEEPS_PARTS: bool = false;

    #[inline(always)] // Passing a header through memory costs more than comparing its key.
    fn header<R: Log>(&mut self, _: &mut (), header: Header<'a>, _log: &mut R) -> Result {
        let is_message = self.editor.format.class != Class::Headers;
        let end = match is_message {
            true => self.end + 1,
            false => header.value_offset.unwrap_or(0) + header.value.map_or(0, <[u8]>::len),
        };
        if let Some(found) = self.editor.find(&header, self.end..end) {
            found.entry.iter().for_each(|entry| self.seen[*entry] = true);
            memory::push(&mut self.found, found);
        }
        if is_message {
            memory::push(&mut self.headers, header);
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
        self.found.clear();
        self.headers.clear();
        self.fields.clear();
        self.end = 0;
    }

    fn end_row<R: Log>(&mut self, _: &mut (), presence: Presence, log: &mut R) -> Result {
        let EditSink { editor, columns, row, data, end, headers, fields, found, counts, messages, .. } = self;
        let (messages, valid) = messages.bytes_mut();
        let values = |column: usize, nth| columns.get(column)?.get(*row, nth);
        let written = messages.push_written(|out| match editor.format.class {
            Class::Headers => {
                let mut out = ByteOutput::new(editor, out);
                out.push_edited((data, 0..data.len()), *end, found, &values, counts)?;
                out.flush();
                Ok(Encoded::Message)
            }
            _ => {
                let contents = Contents { fields, headers, has_headers_field: presence != Presence::Absent };
                editor.write_message(data, contents, found, &values, counts, out)
            }
        });
        let encoded = written.map_err(|(code, message)| log.fatal(code, None, || message))?;
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

impl<'a, 'e> RowSource<'a, EditSink<'a, 'e>> for EditRows<'a, 'e> {
    fn column(&self) -> &'a dyn Array {
        self.0.column()
    }

    fn append(
        &self,
        buffers: &mut Buffers<'a>,
        next: Next,
        to: &mut Row<'_, 'a, EditSink<'a, 'e>>,
    ) -> Option<Appended> {
        let MessageColumn { bytes, options, format, .. } = self.0.messages;
        if !format.wire_layout.is_readable() || format.class != Class::Headers {
            return None;
        }
        Some(match self.0.messages.open(buffers, next.rows.clone(), usize::MAX) {
            0 => Appended::NONE,
            offered => {
                Appended { offered, appended: to.sink.append(bytes, &buffers.block, options.limits.headers, &next) }
            }
        })
    }

    fn parse(
        &self,
        row: usize,
        buffers: &mut Buffers<'a>,
        log: EitherLog<'_>,
        to: &mut Row<'_, 'a, EditSink<'a, 'e>>,
    ) -> Parsed {
        let sink = &mut *to.sink;
        (sink.row, sink.data) = (row, self.0.messages.bytes.get(row).unwrap_or_default());
        if sink.editor.format.class == Class::Headers {
            sink.end = sink.editor.headers_start(sink.data);
        }
        self.0.parse(row, buffers, log, to)
    }
}
