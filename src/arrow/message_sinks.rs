//! [`MessageSinks`]: the columns of messages and of their headers, and the operands of the filter.

use super::decode::ListSink;
use super::filter::{FilterSink, Known, Truth};
use super::messages::Messages;
use super::select::SelectSink;
use super::sink::{BlockSink, RowSink};
use super::validate::ErrorsOnly;
use crate::cursor::Cursor;
use crate::header::Header;
use crate::kernel::RowBlock;
use crate::kernel::buffer::Progress;
use crate::kernel::layout::WireLayout;
use crate::kernel::scan;
use crate::log::{EitherLog, Log, Result, Stop};
use crate::traits::{BatchFormat, FieldValue, Fields, HeadersFormat as _, MessageFormat, Presence, ReadOptions, Sink};

pub(super) struct MessageSinks<'a, E: MessageFormat> {
    pub list: ListSink<E>,
    pub select: SelectSink<'a>,
    /// The operands of the filter, for the messages that are read now.
    pub filter: Option<FilterSink<'a>>,
    /// Parses headers that are neither kept nor selected from.
    errors_only: ErrorsOnly,
    /// The filter has selected more than three of four messages of the last block.
    selects_most: bool,
}

/// How far the kernels append messages.
#[derive(Clone, Copy)]
pub(super) struct Until {
    /// The most headers of a message.
    pub limit: usize,
    pub max_offset: usize,
    pub progress: Progress,
}

fn has_room(room: Option<usize>, rows: &RowBlock<'_>) -> bool {
    room.is_some_and(|room| rows.byte_len() <= room)
}

impl<'a, E: MessageFormat> MessageSinks<'a, E> {
    pub fn new(operation: &Messages) -> Self {
        let list = ListSink::new(operation.options.text_keys, None);
        let strict = operation.options.strict_types;
        let filter = operation.filter.as_ref().and_then(|filter| FilterSink::new::<E>(filter, E::Headers::ORDER).ok());
        let filter = filter.map(|filter| filter.strict(strict));
        MessageSinks {
            filter,
            list: list.keep(|field| operation.requests(field.name)),
            select: SelectSink::new(
                &operation.selections,
                operation.dialect,
                E::Headers::ORDER,
                E::Headers::TYPES.is_typed(),
                None,
            )
            .strict(strict),
            errors_only: ErrorsOnly::default(),
            selects_most: false,
        }
    }

    /// The same columns for messages in other bytes.
    pub fn rebind<'b>(self) -> MessageSinks<'b, E> {
        let MessageSinks { list, select, filter, errors_only, selects_most } = self;
        MessageSinks {
            list,
            select: select.rebind(),
            filter: filter.map(FilterSink::rebind),
            errors_only,
            selects_most,
        }
    }

    /// Whether the filter rejects a message for its fields alone.
    pub fn excludes(&mut self, fields: &[FieldValue<'a>]) -> bool {
        let Some(filter) = &mut self.filter else { return false };
        filter.fields(fields);
        let truth = filter.truth(0..1, Known::Fields);
        filter.clear();
        truth.no != 0
    }

    /// Whether the filter selects the current row.
    pub fn is_selected(&self) -> bool {
        self.filter.as_ref().is_none_or(|filter| filter.truth(0..1, Known::Everything).yes != 0)
    }

    pub fn clear_filter(&mut self) {
        if let Some(filter) = &mut self.filter {
            filter.clear();
        }
    }

    /// Lets the kernels append messages and their fields, up to the first that needs the slow path; returns how many.
    /// `is_listed`: the last rows of the list are the headers of these messages.
    pub fn append<F: WireLayout, M: Fields<'a>>(
        &mut self,
        rows: &RowBlock<'a>,
        fields: &[M],
        to: Until,
        is_listed: bool,
    ) -> usize {
        let first = self.list.row_count() - if is_listed { rows.rows().len() } else { 0 };
        let fits = (is_listed || self.list_fits::<F>(rows, to)) && has_room(self.select.room::<F>(to.max_offset), rows);
        let done = if fits { self.append_headers::<F>(rows, to, is_listed) } else { 0 };
        if done < self.list.row_count() - first {
            self.list.truncate(first + done);
        }
        self.list.push_fields_of(&fields[..done], to.progress);
        done
    }

    fn append_headers<F: WireLayout>(&mut self, rows: &RowBlock<'a>, to: Until, is_listed: bool) -> usize {
        let Until { limit, progress, .. } = to;
        let MessageSinks { list, select, errors_only, .. } = self;
        let is_decoded = list.keeps_headers() && !is_listed;
        let done = match (is_decoded, select.is_empty()) {
            (true, true) => list.decode::<F>(rows, limit, progress, None),
            (true, false) => select.append_read(
                progress,
                |_| false,
                |_, keys, hits| list.decode::<F>(rows, limit, progress, Some((keys, hits))),
            ),
            (false, false) => select.append::<F>(rows, limit, progress),
            (false, true) if is_listed => rows.rows().len(),
            (false, true) => errors_only.append::<F>(rows, limit, progress),
        };
        if !list.keeps_headers() {
            list.push_without_headers(done);
        }
        done
    }

    fn list_fits<F: WireLayout>(&self, rows: &RowBlock<'a>, to: Until) -> bool {
        let left = to.max_offset.saturating_sub(self.list.max_offset());
        has_room(if self.list.keeps_headers() { self.list.room::<F>(to.max_offset) } else { Some(left) }, rows)
    }

    /// The truth for messages up to the first that needs the slow path, how many these are, and whether the list has
    /// the headers of those selected: if most messages of the block before were, one kernel decodes and selects.
    pub fn evaluate<F: WireLayout, M: Fields<'a>>(
        &mut self,
        rows: &RowBlock<'a>,
        fields: &[M],
        to: Until,
    ) -> (Truth, usize, bool) {
        let Until { limit, max_offset, progress } = to;
        let is_listed = self.selects_most && self.list.keeps_headers() && self.list_fits::<F>(rows, to);
        let first = self.list.row_count();
        let MessageSinks { list, filter, .. } = self;
        let Some(filter) = filter else { return (Truth::default(), 0, false) };
        let scanned = match has_room(filter.room::<F>(max_offset), rows) {
            false => 0,
            true => filter.append_read(|scratch, keys, hits| match is_listed {
                true => list.decode::<F>(rows, limit, progress, Some((keys, hits))),
                false => scan::select::<F>(rows, limit, scratch, keys, hits),
            }),
        };
        let truth = filter.truth_of(&fields[..scanned], Known::Everything);
        filter.clear();
        if is_listed {
            list.truncate(first + scanned);
            list.retain(scanned, truth.yes);
        }
        self.selects_most = truth.yes.count_ones() as usize * 4 > scanned * 3;
        (truth, scanned, is_listed)
    }

    pub fn begin_row(&mut self) {
        self.list.begin_row();
        self.select.begin_row();
        self.filter.iter_mut().for_each(RowSink::begin_row);
    }

    fn end_row<R: Log>(&mut self, headers: Presence, log: &mut R) -> Result {
        self.list.end_row(headers, log)?;
        self.select.end_row(headers, log)?;
        self.filter.iter_mut().try_for_each(|filter| filter.end_row(headers, log))
    }

    pub fn abort_row(&mut self) {
        self.list.abort_row();
        self.select.abort_row();
        self.filter.iter_mut().for_each(RowSink::abort_row);
    }

    pub fn null_row(&mut self) {
        self.list.null_row();
        self.select.null_row();
        self.filter.iter_mut().for_each(RowSink::null_row);
    }
}

impl<'a, E: MessageFormat> Sink<'a> for MessageSinks<'a, E> {
    #[inline]
    fn header<R: Log>(&mut self, header: Header<'a>, log: &mut R) -> Result {
        if let Some(filter) = &mut self.filter {
            filter.header(header.clone(), log)?;
        }
        if self.list.keeps_headers() {
            // Few messages are selected from and kept whole.
            self.select.header(header.clone(), log)?;
            return self.list.header(header, log);
        }
        self.select.header(header, log)
    }
}

/// Reads one message into both sinks. With `Fast`, the first error ends it; with `CollectErrors`, the sinks keep all
/// headers that are readable.
pub(super) fn parse_headers<'a, B: BatchFormat, R: Log>(
    fields: &[FieldValue<'a>],
    block: Option<Cursor<'a>>,
    options: ReadOptions,
    log: &mut R,
    sink: &mut MessageSinks<'a, B::Message>,
) -> Result {
    sink.list.fields(fields);
    sink.filter.iter_mut().for_each(|filter| filter.fields(fields));
    let parsed = block.map(|cursor| <B::Message as MessageFormat>::Headers::parse(cursor, options, log, sink));
    let presence = match (parsed, log.either()) {
        (None, _) => Presence::Absent,
        (Some(Err(Stop)), EitherLog::Fast(_)) => return Err(Stop),
        (Some(Err(Stop)), EitherLog::Collect(_)) => Presence::Broken,
        (Some(Ok(())), EitherLog::Collect(log)) if log.has_header_errors() => Presence::Damaged,
        (Some(Ok(())), _) => Presence::Whole,
    };
    log.enter_header(None);
    sink.end_row(presence, log)
}
