//! [`BothSinks`]: the columns of messages, those of their headers, and the operands of the filter.

use super::decode::ListSink;
use super::filter::{FilterSink, Known};
use super::messages::Messages;
use super::select::SelectSink;
use super::sink::RowSink;
use super::validate::Nothing;
use crate::cursor::Cursor;
use crate::header::Header;
use crate::kernel::RowBlock;
use crate::kernel::buffer::Progress;
use crate::kernel::frame::Frame;
use crate::log::{Either, Log, Result, Stop};
use crate::traits::{BatchFormat, FieldValue, Fields, HeadersFormat as _, MessageFormat, Presence, ReadOptions, Sink};

pub(super) struct BothSinks<'a, E: MessageFormat> {
    pub list: ListSink<E>,
    pub select: SelectSink<'a>,
    /// The operands of the filter, for the messages that are read now.
    pub filter: Option<FilterSink<'a>>,
    /// Parses headers that are neither kept nor selected from.
    nothing: Nothing,
}

impl<'a, E: MessageFormat> BothSinks<'a, E> {
    pub fn new(operation: &Messages) -> Self {
        let list = ListSink::new(operation.options.text_keys, None);
        let filter = operation.filter.as_ref().and_then(|filter| FilterSink::new::<E>(filter, E::Headers::ORDER).ok());
        BothSinks {
            filter,
            list: list.keep(|field| operation.requests(field.name)),
            select: SelectSink::new(
                &operation.selections,
                operation.dialect,
                E::Headers::ORDER,
                E::Headers::TYPES.is_typed(),
                None,
            ),
            nothing: Nothing::default(),
        }
    }

    /// The same columns for messages in other bytes.
    pub fn rebind<'b>(self) -> BothSinks<'b, E> {
        let filter = self.filter.map(FilterSink::rebind);
        BothSinks { list: self.list, select: self.select.rebind(), filter, nothing: self.nothing }
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

    /// Lets the kernels append messages and their fields, up to the first that needs the exact routine; returns how many.
    pub fn append<F: Frame, M: Fields<'a>>(
        &mut self,
        rows: &mut RowBlock<'a>,
        fields: &[M],
        limit: usize,
        max_offset: usize,
        progress: Progress,
    ) -> usize {
        let keeps_headers = self.list.keeps_headers();
        let room = |room: Option<usize>| room.is_some_and(|room| rows.byte_len() <= room);
        let left = max_offset.saturating_sub(self.list.max_offset());
        let list_fits = room(if keeps_headers { self.list.room::<F>(max_offset) } else { Some(left) });
        if !list_fits || !room(self.select.room::<F>(max_offset)) {
            return 0;
        }
        let before = self.select.row_count();
        let all = rows.rows().len();
        let mut done = match self.select.is_empty() {
            false => self.select.append::<F>(rows, limit, progress),
            true if keeps_headers => all,
            true => self.nothing.append::<F>(rows, limit, progress),
        };
        if keeps_headers {
            rows.truncate(done);
            let decoded = self.list.decode::<F>(rows, limit, progress);
            if decoded < done {
                self.select.truncate(before + decoded);
                done = decoded;
            }
            rows.untruncate(all);
        } else {
            self.list.push_without_headers(done);
        }
        self.list.push_fields_of(&fields[..done], progress);
        done
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

impl<'a, E: MessageFormat> Sink<'a> for BothSinks<'a, E> {
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

/// Reads one message into both sinks. In fast mode, the first error ends it; in exact mode, what can be read is kept.
pub(super) fn parse_headers<'a, B: BatchFormat, R: Log>(
    fields: &[FieldValue<'a>],
    block: Option<Cursor<'a>>,
    options: ReadOptions,
    log: &mut R,
    sink: &mut BothSinks<'a, B::Message>,
) -> Result {
    sink.list.fields(fields);
    sink.filter.iter_mut().for_each(|filter| filter.fields(fields));
    let parsed = block.map(|cursor| <B::Message as MessageFormat>::Headers::parse(cursor, options, log, sink));
    let presence = match (parsed, log.either()) {
        (None, _) => Presence::Absent,
        (Some(Err(Stop)), Either::Fast(_)) => return Err(Stop),
        (Some(Err(Stop)), Either::Exact(_)) => Presence::Broken,
        (Some(Ok(())), Either::Exact(exact)) if exact.has_header_errors() => Presence::Damaged,
        (Some(Ok(())), _) => Presence::Whole,
    };
    log.enter_header(None);
    sink.end_row(presence, log)
}
