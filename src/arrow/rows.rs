//! [`RowSource`]: inputs of operations as rows, which are serialized messages, lists of headers, or structs.

use std::ops::Range;

use arrow_array::Array;
use arrow_buffer::NullBuffer;

use super::input::Bytes;
use super::layouts::read_rows;
use super::sink::{Row, RowSink};
use crate::cursor::Cursor;
use crate::field::FieldValue;
use crate::format_info::FormatInfo;
use crate::kernel::buffer::Progress;
use crate::kernel::layout::Layout;
use crate::kernel::lists::ListBlock;
use crate::kernel::scan::has_named_types;
use crate::kernel::{self, BYTES};
use crate::log::{EitherLog, FailFast, OnLoss, Result};
use crate::options::ReadOptions;
use crate::sink::{AnySink, GatheredMessage, Presence};
use crate::traits::{MessageFormat, open_checked, parse_message};

/// Rows of a column, one for each message. Several threads may read them.
pub trait RowSource<'a, S: RowSink<'a>>: Sync {
    fn column(&self) -> &'a dyn Array;

    /// Validity of rows, in which rows without a message are null.
    fn nulls(&self) -> Option<&'a NullBuffer> {
        self.column().nulls()
    }

    /// Lets the sink append some of these rows at once; `None` if this source and sink never support it.
    fn append(&self, _buffers: &mut Buffers<'a>, _next: Next, _to: &mut Row<'_, 'a, S>) -> Option<Appended> {
        None
    }

    /// Parses a row. It is called again, with another log, for a row with errors.
    fn parse(&self, row: usize, buffers: &mut Buffers<'a>, log: EitherLog<'_>, to: &mut Row<'_, 'a, S>) -> Parsed;
}

/// Reused memory for a block and for a row.
#[derive(Default)]
pub struct Buffers<'a> {
    pub block: kernel::RowBlock<'a>,
    pub lists: Option<ListBlock<'a>>,
    /// Fields of the rows of the block.
    fields: Vec<FieldValue<'a>>,
    pub message: GatheredMessage<'a>,
}

/// Number of rows that a sink was offered at once, and number that it appended. The row after these must be parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appended {
    pub offered: usize,
    pub appended: usize,
}

impl Appended {
    pub const NONE: Appended = Appended { offered: 0, appended: 0 };
}

/// The next rows of a run.
pub struct Next {
    /// Range of rows, at most one block.
    pub rows: Range<usize>,
    /// Maximum offset of an output column.
    pub max_offset: usize,
    pub progress: Progress,
}

pub type Parsed = Result<Presence>;

/// Column of serialized messages of a format. The format is a value instead of a type, so that the code of a sink is
/// compiled once for all formats.
#[derive(Clone, Copy)]
pub struct MessageColumn<'a> {
    pub bytes: Bytes<'a>,
    pub options: ReadOptions,
    pub format: &'static FormatInfo,
    open: OpenRows<'a>,
}

impl<'a> MessageColumn<'a> {
    pub fn new<E: MessageFormat>(bytes: Bytes<'a>, options: ReadOptions) -> Self {
        MessageColumn { bytes, options, format: &E::INFO, open: open_rows::<E> }
    }

    /// Opens messages into the block, up to the first that kernels cannot read, and returns their number.
    pub(super) fn open(&self, buffers: &mut Buffers<'a>, rows: Range<usize>, room: usize) -> usize {
        (self.open)(&mut buffers.block, &mut buffers.fields, self.bytes, rows, room, self.options);
        buffers.block.rows().len()
    }

    /// Parses a row with the parser that all sinks share.
    #[inline(never)]
    pub(super) fn parse(&self, row: usize, log: EitherLog<'_>, to: AnySink<'_, 'a>) -> Parsed {
        match self.bytes.cursor(row) {
            Some(data) => (self.format.parse)(data, self.options, log, to),
            None => Ok(Presence::Absent),
        }
    }
}

/// Serialized messages that are parsed into a sink.
pub struct MessageRows<'a, S: RowSink<'a>> {
    pub messages: MessageColumn<'a>,
    /// Parser of a format without kernels, which read most rows of other formats.
    parse_valid: Option<ParseValid<'a, S>>,
}

/// Parses a message that is probably valid.
type ParseValid<'a, S> = fn(Cursor<'a>, ReadOptions, &mut FailFast, &mut Row<'_, 'a, S>) -> Parsed;

impl<'a, S: RowSink<'a>> MessageRows<'a, S> {
    pub fn new<E: MessageFormat>(bytes: Bytes<'a>, options: ReadOptions) -> Self {
        Self::with_kernels::<E>(bytes, options, E::INFO.wire_layout.is_readable())
    }

    /// Like `new`, for an operation that knows whether kernels read most messages. Without them, the parser is compiled
    /// for this sink.
    pub fn with_kernels<E: MessageFormat>(bytes: Bytes<'a>, options: ReadOptions, has_kernels: bool) -> Self {
        let parse_valid: ParseValid<'a, S> = |data, options, log, to| parse_message::<E, _, _>(data, options, log, to);
        let messages = MessageColumn::new::<E>(bytes, options);
        MessageRows { messages, parse_valid: (!has_kernels).then_some(parse_valid) }
    }

    /// Returns the messages of a binary column.
    pub fn of<E: MessageFormat>(column: &'a dyn Array, options: ReadOptions) -> Option<Self> {
        Bytes::of(column).map(|messages| Self::new::<E>(messages, options))
    }
}

impl<'a, S: RowSink<'a>> RowSource<'a, S> for MessageRows<'a, S> {
    fn column(&self) -> &'a dyn Array {
        self.messages.bytes.array()
    }

    fn append(&self, buffers: &mut Buffers<'a>, next: Next, to: &mut Row<'_, 'a, S>) -> Option<Appended> {
        let MessageColumn { format, options, .. } = self.messages;
        let layout = format.wire_layout;
        if !layout.is_readable() {
            return None;
        }
        let room = to.sink.room(layout, next.max_offset)?;
        let offered = self.messages.open(buffers, next.rows, room);
        let (Row { sink, found }, Buffers { block, fields, .. }) = (to, buffers);
        if !fields.is_empty() {
            fields.chunks_exact(format.fields.len() - 1).for_each(|fields| sink.fields(fields));
        }
        Some(match offered {
            0 => Appended::NONE,
            offered => {
                let appended = sink.append(layout, found, block, options.limits.headers, next.progress);
                Appended { offered, appended }
            }
        })
    }

    fn parse(&self, row: usize, _: &mut Buffers<'a>, log: EitherLog<'_>, to: &mut Row<'_, 'a, S>) -> Parsed {
        match (log, self.parse_valid) {
            (EitherLog::FailFast(log), Some(parse_valid)) => match self.messages.bytes.cursor(row) {
                Some(data) => parse_valid(data, self.messages.options, log, to),
                None => Ok(Presence::Absent),
            },
            (log, _) => self.messages.parse(row, log, AnySink(to)),
        }
    }
}

/// Opens messages, and adds their headers to a block and their other fields to `fields`, up to the first message that
/// kernels cannot read. A block takes `room` bytes.
type OpenRows<'a> =
    fn(&mut kernel::RowBlock<'a>, &mut Vec<FieldValue<'a>>, Bytes<'a>, Range<usize>, usize, ReadOptions);

fn open_rows<'a, E: MessageFormat>(
    block: &mut kernel::RowBlock<'a>,
    fields: &mut Vec<FieldValue<'a>>,
    messages: Bytes<'a>,
    rows: Range<usize>,
    room: usize,
    options: ReadOptions,
) {
    block.clear();
    fields.clear();
    // Number of bytes of messages that still fit.
    let mut left = room.min(BYTES);
    for row in rows {
        let Some(data) = messages.cursor(row) else {
            fields.resize(fields.len() + E::FIELDS.len() - 1, FieldValue::Null);
            block.push(None);
            continue;
        };
        let len = data.remaining();
        if len > left {
            if len > room || !block.rows().is_empty() {
                break;
            }
            // A large message gets a separate block.
            left = len;
        }
        let Ok(opened) = open_checked::<E, _>(data, options, &mut FailFast::new(OnLoss::Raise)) else { break };
        let layout = E::INFO.wire_layout;
        let Some(span) = opened.headers.and_then(|headers| regular_span(layout, headers, options)) else { break };
        fields.extend_from_slice(opened.fields.as_ref());
        block.push(Some(span));
        left -= len;
    }
}

/// Bytes of headers, if kernels can read them. Of the options, only `strict_types` matters: a row that is valid only
/// with `lenient` is irregular.
#[inline(always)]
pub(super) fn regular_span<'a>(layout: Layout, headers: Cursor<'a>, options: ReadOptions) -> Option<kernel::Span<'a>> {
    let span = headers.span()?;
    (!options.strict_types || !layout.typed || types_have_names(layout, span, options.limits.headers)).then_some(span)
}

#[inline(never)]
fn types_have_names(layout: Layout, span: kernel::Span<'_>, limit: usize) -> bool {
    read_rows!(layout.name, F => usize::from(has_named_types::<F>(span, limit))) == 1
}
