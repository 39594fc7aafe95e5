//! Edits in the bytes of a message that has only headers: [`Editor::splice`] writes the changed headers, and copies the bytes
//! between them.

use super::{Counts, Decision, Editor, NewValues, Original, Ready, push_header};
use crate::error::Code;
use crate::kernel::edit::Hit;
use crate::kernel::varint_layout::MAX_IN_BYTE;
use crate::log::{Log, Result};
use crate::memory;
use crate::varint;

/// The headers of a message that may change, and the new values of its row.
pub struct RowEdit<'r, V> {
    pub hits: &'r [Hit],
    pub values: V,
}

/// A message among the bytes of several.
#[derive(Clone, Copy)]
pub struct Piece<'d> {
    pub data: &'d [u8],
    pub start: usize,
    pub end: usize,
}

/// Where the first header of a message begins.
fn count_end(message: Piece<'_>, has_count: bool) -> usize {
    let bytes = &message.data[message.start..message.end];
    let is_last = |byte: &u8| *byte < 0x80;
    match has_count {
        false => message.start,
        true => message.start + bytes.iter().position(is_last).map_or(0, |place| place + 1),
    }
}

impl Editor<'_> {
    /// Returns where the headers of a message end. `last` is where the last header ends; 0 means that there is none, and that
    /// they end after their count.
    pub fn headers_end(&self, data: &[u8], last: usize) -> usize {
        let message = Piece { data, start: 0, end: data.len() };
        if last == 0 { count_end(message, self.format.has_count) } else { last }
    }

    /// Appends the edited bytes of a message that has only headers, up to its last change. The caller appends the rest: the
    /// bytes of `data` from `from` on. On failure, nothing of the message was appended.
    #[inline]
    pub fn splice<R: Log, V: NewValues>(
        &self,
        message: Piece<'_>,
        from: &mut usize,
        row: &RowEdit<'_, V>,
        counts: &mut Counts,
        log: &mut R,
        out: &mut Vec<u8>,
    ) -> Result {
        if row.hits.is_empty() && !self.adds {
            return Ok(());
        }
        let before = out.len() + (message.start - *from);
        let spliced = self.splice_hits(message, from, row, counts, log, out);
        if spliced.is_err() && *from >= message.start {
            // What comes before the message was appended.
            out.truncate(before);
            *from = message.start;
        }
        spliced
    }

    #[inline(always)] // Its only caller is the loop over the rows of a block.
    fn splice_hits<R: Log, V: NewValues>(
        &self,
        message: Piece<'_>,
        from: &mut usize,
        row: &RowEdit<'_, V>,
        counts: &mut Counts,
        log: &mut R,
        out: &mut Vec<u8>,
    ) -> Result {
        let (Piece { data, start, end }, RowEdit { hits, values }) = (message, row);
        let before = out.len() + (start - *from);
        let patch = match self.format.has_count && self.changes_count {
            true => self.splice_count(message, from, row, counts, out),
            false => None,
        };
        counts.clear(if self.counts { self.entries.len() } else { 0 });
        for hit in *hits {
            let nth = counts.next(hit);
            let (written, value) = match self.decide(hit, nth, values) {
                Decision::Stay => continue,
                Decision::Drop => (None, None),
                Decision::Write(written, value) => (Some(written), value),
            };
            let first = if hit.start == 0 { count_end(message, self.format.has_count) } else { start };
            memory::extend(out, &data[*from..(start + hit.start).max(first).max(*from)]);
            *from = start + hit.end;
            let Some(written) = written else { continue };
            let bytes = &data[start + hit.value..start + hit.end];
            match (&written.ready, value) {
                (Ready::Constant(header), Some(_)) => memory::extend(out, header),
                (Ready::Masked(mask, headers), Some(_)) => {
                    let original = Original::new(hit.value_type, bytes, false, self.format.order);
                    mask.write(headers, hit.value_type, original.bits.as_deref().unwrap_or_default(), out);
                }
                _ => {
                    let original = Original::new(hit.value_type, bytes, hit.is_null, self.format.order);
                    let (of, bits) = self.value(written, value, Some(&original), values, nth, log)?;
                    push_header(self.format, &written.key, of, bits.as_deref(), out);
                }
            }
        }
        if self.adds {
            for written in self.added(hits) {
                if self.is_skipped(written.value, values) {
                    continue;
                }
                memory::extend(out, &data[*from..end]);
                *from = end;
                match &written.ready {
                    Ready::Constant(header) => memory::extend(out, header),
                    _ => {
                        let (of, bits) = self.value(written, written.value, None, values, 0, log)?;
                        push_header(self.format, &written.key, of, bits.as_deref(), out);
                    }
                }
            }
        }
        if let Some(count) = patch {
            out[before] = count;
        }
        let len = out.len() + (end - *from) - before;
        let max = self.format.max_written;
        if len > max && *from >= start {
            return Err(log.fatal(Code::TooLarge, None, || format!("the headers take {len} bytes, more than {max}")));
        }
        Ok(())
    }

    /// Writes how many headers a message has after the edit if that changes; returns the byte that replaces the count where
    /// that is one byte.
    fn splice_count<V: NewValues>(
        &self,
        message: Piece<'_>,
        from: &mut usize,
        row: &RowEdit<'_, V>,
        counts: &mut Counts,
        out: &mut Vec<u8>,
    ) -> Option<u8> {
        let RowEdit { hits, values } = row;
        counts.clear(if self.counts { self.entries.len() } else { 0 });
        let is_dropped = |hit: &&Hit| matches!(self.decide(hit, counts.next(hit), values), Decision::Drop);
        let dropped = hits.iter().filter(is_dropped).count();
        let added = match self.adds {
            true => self.added(hits).filter(|written| !self.is_skipped(written.value, values)).count(),
            false => 0,
        };
        if dropped == 0 && added == 0 {
            return None;
        }
        let Piece { data, start, end } = message;
        let (count, len) = match varint::read(&data[start..end]) {
            varint::ParsedVarint::Read { bits, len, .. } => (varint::unzigzag(bits).max(0) as usize, len),
            // The parse of these bytes did not fail: there are none, and so no headers.
            varint::ParsedVarint::Truncated | varint::ParsedVarint::TooLong => (0, 0),
        };
        let edited = count - dropped + added;
        if len == 1 && (1..=MAX_IN_BYTE).contains(&edited) {
            return u8::try_from(2 * edited).ok();
        }
        memory::extend(out, &data[*from..start]);
        *from = start + len;
        if edited > 0 {
            varint::write_count(edited, out);
        }
        None
    }
}
