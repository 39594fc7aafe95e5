//! Transform of a message's headers: [`Editor::apply`] takes the headers that a reader found, and an [`EditOutput`]
//! receives the unchanged ranges of the input, and the new headers.

use std::borrow::Cow;
use std::ops::Range;

use super::{Change, Editor, NewHeader, NewValues, Prepared, Refusal, TypedBits, push_header};
use crate::error::Code;
use crate::header::{Header, Key};
use crate::kernel::edit::FoundHeader;
use crate::kernel::varint_layout::MAX_IN_BYTE;
use crate::limits::Limits;
use crate::memory;
use crate::number::byte;
use crate::op::values::gather_message;
use crate::options::ReadOptions;
use crate::value::{ByteOrder, bits_of};
use crate::value_type::ValueType;
use crate::varint::{self, ParsedVarint};

/// Edited headers of a message, in bytes or one by one.
pub(super) trait EditOutput<'d> {
    /// Type and bytes of the value of a header in the input.
    fn original(&self, header: &FoundHeader) -> TypedBits<'d>;

    /// Keeps a range of the input.
    fn keep(&mut self, range: Range<usize>);

    fn push(&mut self, key: &Key<'d>, value: TypedBits<'d>);

    /// Appends the prepared bytes of a header; false if there are none.
    #[inline(always)]
    fn push_prepared(&mut self, _new: &NewHeader<'_>, _original: Option<&FoundHeader>) -> bool {
        false
    }

    /// Keeps the rest of the input, after headers that were dropped and added.
    #[inline(always)]
    fn end(&mut self, rest: Range<usize>, _dropped: usize, _added: usize) -> Result<(), Refusal> {
        self.keep(rest);
        Ok(())
    }
}

impl<'e> Editor<'e> {
    /// Passes the edited headers of a message, which end at `end` in the input, to `out`; returns false, and passes
    /// nothing, if the edit does not change them. `counts` is scratch memory for the number of headers of each entry so
    /// far.
    #[inline(always)] // One of its callers is the loop over the rows of a block.
    pub(super) fn apply<'d, O: EditOutput<'d>>(
        &'d self,
        found: &[FoundHeader],
        end: usize,
        values: NewValues<'_, 'd>,
        counts: &mut Vec<usize>,
        out: &mut O,
    ) -> Result<bool, Refusal> {
        if found.is_empty() && !self.adds {
            return Ok(false);
        }
        // End of the input that was kept or replaced, which is 0 before the first change.
        let (mut next, mut dropped, mut added) = (0, 0, 0);
        counts.clear();
        counts.resize(if self.counts { self.entries.len() } else { 0 }, 0);
        for header in found {
            let nth = match header.entry.and_then(|entry| counts.get_mut(entry)) {
                Some(count) => std::mem::replace(count, *count + 1),
                None => 0,
            };
            let action = self.decide(header, nth, values);
            if let Action::Keep = action {
                continue;
            }
            out.keep(next..header.start);
            next = header.end;
            match action {
                Action::Write(new, is_value_new) => self.write(new, is_value_new, Some(header), nth, values, out)?,
                _ => dropped += 1,
            }
        }
        if self.adds {
            let unset = self.edit.entries.iter().zip(&self.entries).zip(&*counts);
            let unset = unset
                .filter(|((entry, _), count)| matches!(entry.change, Change::Set(_)) && **count == 0)
                .map(|((_, new), _)| new);
            for new in unset.chain(&self.appended).filter(|new| !self.is_skipped(new.value, values)) {
                out.keep(next..end);
                next = end;
                self.write(new, true, None, 0, values, out)?;
                added += 1;
            }
        }
        let is_changed = next > 0 || added > 0;
        if is_changed {
            out.end(next..end, dropped, added)?;
        }
        Ok(is_changed)
    }

    #[inline(always)]
    fn write<'d, O: EditOutput<'d>>(
        &'d self,
        new: &'d NewHeader<'e>,
        is_value_new: bool,
        original: Option<&FoundHeader>,
        nth: usize,
        values: NewValues<'_, 'd>,
        out: &mut O,
    ) -> Result<(), Refusal> {
        if is_value_new && out.push_prepared(new, original) {
            return Ok(());
        }
        let original = original.map(|header| out.original(header));
        let value = match new.value.filter(|_| is_value_new) {
            Some(value) => self.new_value(&new.key, value, original, values, nth)?,
            None => original.unwrap_or_default(),
        };
        out.push(&new.key, value);
        Ok(())
    }

    /// Decides whether a header is kept, dropped, or rewritten.
    #[inline]
    fn decide<'d>(&'d self, header: &FoundHeader, nth: usize, values: NewValues<'_, 'd>) -> Action<'d, 'e> {
        let Some(entry) = header.entry else { return Action::Drop };
        let (entry, new) = (&self.edit.entries[entry], &self.entries[entry]);
        match &entry.change {
            Change::Drop => Action::Drop,
            Change::Set(value) if self.is_skipped(Some(value), values) => Action::Keep,
            Change::Set(_) if nth > 0 => Action::Drop,
            Change::Set(_) => Action::Write(new, true),
            Change::Replace(_) if !header.is_null => Action::Write(new, true),
            Change::Keep | Change::Replace(_) if entry.renamed.is_some() => Action::Write(new, false),
            Change::Keep | Change::Replace(_) => Action::Keep,
        }
    }
}

enum Action<'d, 'e> {
    Keep,
    Drop,
    /// Rewritten with the new key, and with the new value if true.
    Write(&'d NewHeader<'e>, bool),
}

/// Bytes of messages that only have headers. Adjacent unchanged ranges, also of several messages, are copied at once.
pub struct ByteOutput<'o, 'd> {
    editor: &'d Editor<'d>,
    bytes: &'o mut Vec<u8>,
    data: &'d [u8],
    /// Unchanged range of the data that is not yet copied.
    kept: Range<usize>,
    /// Range of the current message in the data, and its start in the output.
    message: Range<usize>,
    start: usize,
}

impl<'o, 'd> ByteOutput<'o, 'd> {
    pub fn new(editor: &'d Editor<'d>, bytes: &'o mut Vec<u8>) -> Self {
        ByteOutput { editor, bytes, data: &[], kept: 0..0, message: 0..0, start: 0 }
    }

    /// Appends an edited message, which is a range of `data`, or nothing on failure. Its last header ends after
    /// `headers_len` bytes; a lenient read accepts further bytes. If the edit changes the message, those further bytes
    /// are dropped, because they would follow an appended header and be read as a header.
    #[inline(always)] // Called for every row of a block.
    pub fn push_edited(
        &mut self,
        (data, range): (&'d [u8], Range<usize>),
        headers_len: usize,
        found: &[FoundHeader],
        values: NewValues<'_, 'd>,
        counts: &mut Vec<usize>,
    ) -> Result<(), Refusal> {
        if !std::ptr::eq(data, self.data) {
            self.flush();
            (self.data, self.kept) = (data, range.start..range.start);
        }
        let len = range.len();
        (self.message, self.start) = (range, self.byte_len());
        match self.editor.apply(found, headers_len, values, counts, self) {
            Ok(true) => {}
            Ok(false) => self.keep(0..len),
            Err(refusal) => {
                self.take_back();
                return Err(refusal);
            }
        }
        Ok(())
    }

    /// Length of the output, including ranges that are not yet copied.
    #[inline(always)]
    pub fn byte_len(&self) -> usize {
        self.bytes.len() + self.kept.len()
    }

    /// Removes the last appended message.
    #[cold]
    pub fn take_back(&mut self) {
        self.bytes.truncate(self.start);
        self.kept.end = self.kept.start + self.kept.len().min(self.start - self.bytes.len());
    }

    /// Copies the unchanged range.
    #[inline(always)]
    pub fn flush(&mut self) -> &mut Vec<u8> {
        memory::extend(self.bytes, &self.data[self.kept.clone()]);
        self.kept.start = self.kept.end;
        self.bytes
    }

    /// Total length of the values in the current message, or its whole length if it cannot be parsed.
    #[cold]
    fn value_len(&mut self) -> usize {
        let (format, start) = (self.editor.format, self.start);
        let message = &self.flush()[start..];
        let limits = Limits { message_bytes: usize::MAX, headers: usize::MAX, ..Limits::DEFAULT };
        let options = ReadOptions { limits, ..ReadOptions::default() };
        gather_message(format, message, options).map_or(message.len(), |(gathered, _)| {
            gathered.headers.iter().map(|header| header.value.map_or(0, <[u8]>::len)).sum()
        })
    }

    /// Rewrites the count before the headers.
    fn recount(&mut self, dropped: usize, added: usize) {
        let (count, count_len) = match varint::read(&self.data[self.message.clone()]) {
            ParsedVarint::Read { bits, len, .. } => (varint::unzigzag(bits).max(0) as usize, len),
            // The bytes were parsed before, so the message is empty and has no headers.
            ParsedVarint::Truncated | ParsedVarint::TooLong => (0, 0),
        };
        let (edited, start) = (count - dropped + added, self.start);
        let bytes = self.flush();
        if count_len == 1 && (1..=MAX_IN_BYTE).contains(&edited) {
            bytes[start] = byte(2 * edited);
            return;
        }
        bytes.drain(start..start + count_len);
        let len = bytes.len();
        if edited > 0 {
            varint::write_count(edited, bytes);
        }
        let written = bytes.len() - len;
        bytes[start..].rotate_right(written);
    }
}

impl<'d> EditOutput<'d> for ByteOutput<'_, 'd> {
    #[inline(always)]
    fn original(&self, header: &FoundHeader) -> TypedBits<'d> {
        let value = &self.data[self.message.start + header.value..self.message.start + header.end];
        typed_bits(header.value_type, (!header.is_null).then_some(value), self.editor.format.order)
    }

    #[inline(always)]
    fn keep(&mut self, range: Range<usize>) {
        let (start, end) = (self.message.start + range.start, self.message.start + range.end);
        if start != self.kept.end {
            self.flush();
            self.kept.start = start;
        }
        self.kept.end = end;
    }

    fn push(&mut self, key: &Key<'d>, (value_type, bits): TypedBits<'d>) {
        let format = self.editor.format;
        push_header(format, key, value_type, bits.as_deref(), self.flush());
    }

    #[inline(always)]
    fn push_prepared(&mut self, new: &NewHeader<'_>, original: Option<&FoundHeader>) -> bool {
        match (&new.prepared, original) {
            (Prepared::Constant(header), _) => memory::extend(self.flush(), header),
            (Prepared::Masked(mask, headers), Some(original)) => {
                let (value_type, bits) = self.original(original);
                mask.write(headers, value_type, bits.as_deref().unwrap_or_default(), self.flush());
            }
            _ => return false,
        }
        true
    }

    #[inline(always)]
    fn end(&mut self, rest: Range<usize>, dropped: usize, added: usize) -> Result<(), Refusal> {
        if self.editor.format.wire_layout.max_count > 0 && dropped + added > 0 {
            self.recount(dropped, added);
        }
        self.keep(rest);
        let len = self.byte_len() - self.start;
        self.editor.format.max_written.check(len, || self.value_len()).map_err(|message| (Code::TooLarge, message))
    }
}

/// Headers of a message that is written with the fields around them. Ranges of its input are indexes of `headers`.
pub(super) struct HeaderOutput<'d> {
    pub order: ByteOrder,
    pub headers: &'d [Header<'d>],
    pub edited: Vec<(Key<'d>, TypedBits<'d>)>,
}

impl<'d> EditOutput<'d> for HeaderOutput<'d> {
    fn original(&self, header: &FoundHeader) -> TypedBits<'d> {
        let header = &self.headers[header.start];
        typed_bits(header.value_type, header.value, self.order)
    }

    fn keep(&mut self, range: Range<usize>) {
        for header in &self.headers[range] {
            self.push(&header.key, typed_bits(header.value_type, header.value, self.order));
        }
    }

    fn push(&mut self, key: &Key<'d>, value: TypedBits<'d>) {
        memory::push(&mut self.edited, (key.clone(), value));
    }
}

/// Value in big-endian order.
#[inline(always)]
fn typed_bits(value_type: Option<ValueType>, value: Option<&[u8]>, order: ByteOrder) -> TypedBits<'_> {
    let bits = |bytes| value_type.map_or(Cow::Borrowed(bytes), |value_type| bits_of(value_type, bytes, order));
    (value_type, value.map(bits))
}
