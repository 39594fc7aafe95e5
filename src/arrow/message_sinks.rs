//! [`MessageSinks`]: columns of messages and of their headers, and operands of the filter.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array};

use super::decode::ListSink;
use super::filter::{FilterSink, Known, Truth};
use super::layouts::read_rows;
use super::select::{Found, SelectSink};
use super::sink::RowSink;
use super::validate::ErrorsOnly;
use crate::field::FieldValue;
use crate::header::Header;
use crate::kernel::RowBlock;
use crate::kernel::buffer::Progress;
use crate::kernel::layout::Layout;
use crate::kernel::scan;
use crate::log::{Log, Result};
use crate::memory;
use crate::sink::Presence;
use crate::traits::MessageFields;

pub(super) struct MessageSinks {
    /// Input row of each message.
    rows: Vec<i64>,
    /// Current input row.
    pub row: i64,
    list: ListSink,
    select: SelectSink,
    /// Operands of the filter, for the current messages.
    pub filter: Option<FilterSink>,
    /// Sink for headers that are neither kept nor selected from.
    errors_only: ErrorsOnly,
    /// Whether the filter has selected more than three quarters of the messages of the last block.
    selects_most: bool,
}

/// Values of the headers of the current messages.
#[derive(Default)]
pub(super) struct MessageFound<'a> {
    select: Found<'a>,
    filter: Found<'a>,
}

/// Limits of the blocks that kernels append.
#[derive(Clone, Copy)]
pub(super) struct BlockLimits {
    /// Maximum number of headers of a message.
    pub limit: usize,
    pub max_offset: usize,
    pub progress: Progress,
}

fn has_room(room: Option<usize>, rows: &RowBlock<'_>) -> bool {
    room.is_some_and(|room| rows.byte_len() <= room)
}

impl MessageSinks {
    pub fn new(list: ListSink, select: SelectSink, filter: Option<FilterSink>) -> Self {
        let errors_only = ErrorsOnly::default();
        MessageSinks { rows: Vec::new(), row: 0, list, select, filter, errors_only, selects_most: false }
    }

    /// Whether the filter rejects a message by its fields.
    pub fn excludes(&mut self, fields: &[FieldValue<'_>]) -> bool {
        let Some(filter) = &mut self.filter else { return false };
        // Operands of the previous message may still be present.
        filter.clear();
        filter.fields(fields);
        let truth = filter.truth(0..1, Known::Fields);
        filter.clear();
        truth.no != 0
    }

    fn clear_filter(&mut self) {
        if let Some(filter) = &mut self.filter {
            filter.clear();
        }
    }

    /// Appends messages and their fields by kernels, up to the first that needs the slow path; returns their number.
    /// `is_listed`: the headers of these messages are already the last rows of the list.
    pub fn append<'a, M: MessageFields<'a>>(
        &mut self,
        layout: Layout,
        found: &mut MessageFound<'a>,
        rows: &RowBlock<'a>,
        fields: &[M],
        limits: BlockLimits,
        is_listed: bool,
    ) -> usize {
        let first = self.list.row_count() - if is_listed { rows.rows().len() } else { 0 };
        let fits = (is_listed || self.list_fits(layout, rows, limits))
            && has_room(self.select.room(layout, limits.max_offset), rows);
        let done = if fits { self.append_headers(layout, found, rows, limits, is_listed) } else { 0 };
        if done < self.list.row_count() - first {
            self.list.truncate(first + done);
        }
        self.list.push_fields_of(&fields[..done], limits.progress);
        limits.progress.reserve(&mut self.rows, done);
        self.rows.extend(std::iter::repeat_n(self.row, done));
        done
    }

    fn append_headers<'a>(
        &mut self,
        layout: Layout,
        found: &mut MessageFound<'a>,
        rows: &RowBlock<'a>,
        limits: BlockLimits,
        is_listed: bool,
    ) -> usize {
        let BlockLimits { limit, progress, .. } = limits;
        let MessageSinks { list, select, errors_only, .. } = self;
        let is_decoded = list.keeps_headers() && !is_listed;
        let done = match (is_decoded, select.is_empty()) {
            (true, true) => list.decode(layout, rows, limit, progress, None),
            (true, false) => select.append_read(
                &mut found.select,
                progress,
                |_| false,
                |_, keys, selected| list.decode(layout, rows, limit, progress, Some((keys, selected))),
            ),
            (false, false) => select.append(layout, &mut found.select, rows, limit, progress),
            (false, true) if is_listed => rows.rows().len(),
            (false, true) => errors_only.append(layout, &mut (), rows, limit, progress),
        };
        if !list.keeps_headers() {
            list.push_without_headers(done);
        }
        done
    }

    fn list_fits(&self, layout: Layout, rows: &RowBlock<'_>, limits: BlockLimits) -> bool {
        let left = limits.max_offset.saturating_sub(self.list.max_offset());
        has_room(if self.list.keeps_headers() { self.list.room(layout, limits.max_offset) } else { Some(left) }, rows)
    }

    /// Evaluates the filter for messages up to the first that needs the slow path. Returns the truth, the number of
    /// messages, and whether the headers of selected ones are in the list: if the filter selected most messages of the
    /// previous block, one kernel decodes and selects.
    pub fn evaluate<'a, M: MessageFields<'a>>(
        &mut self,
        layout: Layout,
        found: &mut MessageFound<'a>,
        rows: &RowBlock<'a>,
        fields: &[M],
        limits: BlockLimits,
    ) -> (Truth, usize, bool) {
        let BlockLimits { limit, max_offset, progress } = limits;
        let is_listed = self.selects_most && self.list.keeps_headers() && self.list_fits(layout, rows, limits);
        let first = self.list.row_count();
        let MessageSinks { list, filter, .. } = self;
        let Some(filter) = filter else { return (Truth::default(), 0, false) };
        filter.clear();
        let scanned = match has_room(filter.room(layout, max_offset), rows) {
            false => 0,
            true => filter.append_read(&mut found.filter, |scratch, keys, selected| match is_listed {
                true => list.decode(layout, rows, limit, progress, Some((keys, selected))),
                false => read_rows!(layout.name, F => scan::select::<F>(rows, limit, scratch, keys, selected)),
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

    /// Returns the row, the columns of the list, and the columns of selected headers.
    pub fn finish(self) -> (Vec<ArrayRef>, Vec<ArrayRef>) {
        let mut columns: Vec<ArrayRef> = vec![Arc::new(Int64Array::from(self.rows))];
        columns.extend(self.list.finish().0);
        (columns, self.select.finish())
    }
}

impl<'a> RowSink<'a> for MessageSinks {
    type Found = MessageFound<'a>;

    const KEEPS_PARTS: bool = true;

    #[inline]
    fn header<R: Log>(&mut self, found: &mut MessageFound<'a>, header: Header<'a>, log: &mut R) -> Result {
        if let Some(filter) = &mut self.filter {
            filter.header(&mut found.filter, header.clone(), log)?;
        }
        if self.list.keeps_headers() {
            // Keeping and selecting headers in one operation is rare.
            self.select.header(&mut found.select, header.clone(), log)?;
            return RowSink::header(&mut self.list, &mut (), header, log);
        }
        self.select.header(&mut found.select, header, log)
    }

    fn fields(&mut self, fields: &[FieldValue<'a>]) {
        self.list.fields(fields);
        self.filter.iter_mut().for_each(|filter| filter.fields(fields));
    }

    fn extend(&mut self, other: &Self, progress: Progress) {
        progress.reserve(&mut self.rows, other.rows.len());
        self.rows.extend_from_slice(&other.rows);
        self.list.extend(&other.list, progress);
        self.select.extend(&other.select, progress);
    }

    fn begin_row(&mut self, found: &mut MessageFound<'a>) {
        self.clear_filter();
        self.list.begin_row(&mut ());
        self.select.begin_row(&mut found.select);
        self.filter.iter_mut().for_each(|filter| filter.begin_row(&mut found.filter));
    }

    fn end_row<R: Log>(&mut self, found: &mut MessageFound<'a>, headers: Presence, log: &mut R) -> Result {
        self.list.end_row(&mut (), headers, log)?;
        self.select.end_row(&mut found.select, headers, log)?;
        self.filter.iter_mut().try_for_each(|filter| filter.end_row(&mut found.filter, headers, log))?;
        memory::push(&mut self.rows, self.row);
        Ok(())
    }

    fn row_count(&self) -> usize {
        self.rows.len()
    }

    fn truncate(&mut self, rows: usize) {
        self.clear_filter();
        self.list.truncate(rows);
        self.select.truncate(rows);
        self.rows.truncate(rows);
    }

    fn null_row(&mut self) {
        self.list.null_row();
        self.select.null_row();
        self.filter.iter_mut().for_each(RowSink::null_row);
        memory::push(&mut self.rows, self.row);
    }

    /// The list of a row with broken headers is already null.
    fn null_headers(&mut self) -> bool {
        self.select.truncate(self.rows.len() - 1);
        self.select.null_row();
        self.filter.as_mut().is_none_or(FilterSink::null_headers)
    }

    fn max_offset(&self) -> usize {
        RowSink::max_offset(&self.list).max(RowSink::max_offset(&self.select))
    }

    fn is_selected(&self) -> Option<bool> {
        self.filter.as_ref().map(|filter| filter.truth(0..1, Known::Everything).yes != 0)
    }

    fn is_selected_by_fields(&self) -> bool {
        self.filter.as_ref().is_some_and(|filter| filter.truth(0..1, Known::Fields).yes != 0)
    }
}
