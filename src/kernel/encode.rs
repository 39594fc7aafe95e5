//! encode: the headers of a block of list rows, appended to a column of bytes.

use std::marker::PhantomData;

use super::buffer::{Runs, Seen, Values as _, Writer};
use super::dispatch;
use super::frame::{Frame, Header, Rules};
use super::lists::{Lists, Visit};

/// The largest number of bytes that encoding these rows appends.
pub fn most_bytes<F: Frame>(lists: &Lists<'_>) -> usize {
    lists.byte_len() + lists.header_count() * F::MOST_FRAMING + lists.row_count() * F::MOST_COUNT
}

dispatch! {
    /// Encodes rows until one has to be left to the exact routine, and returns how many were encoded. Rows without a list
    /// are encoded as no headers.
    pub fn encode<F: Frame>(lists: &Lists<'_>, rules: Rules, seen: Seen, out: &mut Runs) -> usize = encode_block::<F>;
}

#[inline(always)]
fn encode_block<F: Frame>(lists: &Lists<'_>, rules: Rules, seen: Seen, out: &mut Runs) -> usize {
    let (rows, most) = (lists.row_count(), most_bytes::<F>(lists));
    let mut to = out.writer(rows, most, seen);
    let row = to.place();
    let mut encode = Encode::<F> { to, row, at: row, rules, frame: PhantomData };
    lists.each::<F, _>(&mut encode)
}

struct Encode<'w, F> {
    to: Writer<'w>,
    /// Where the row begins, and where its next header goes.
    row: *mut u8,
    at: *mut u8,
    rules: Rules,
    frame: PhantomData<F>,
}

impl<'a, F: Frame> Visit<'a> for Encode<'_, F> {
    #[inline(always)]
    fn null(&mut self) -> bool {
        self.begin(0);
        !self.rules.refuses_nulls && self.end()
    }

    #[inline(always)]
    fn begin(&mut self, headers: usize) {
        self.row = self.to.place();
        // SAFETY: the writer was made for a count of each row.
        self.at = unsafe { self.row.add(F::write_count(self.row, headers)) };
    }

    #[inline(always)]
    fn header(&mut self, _row: usize, header: Header) -> bool {
        // SAFETY: the writer was made for all keys and values of the block and for the framing of each header, and has
        // `COPY` bytes more; `COPY` bytes are readable from the start of the key and of the value.
        match unsafe { F::write(self.at, &header, self.rules) } {
            Some(len) => {
                // SAFETY: so many bytes were written.
                self.at = unsafe { self.at.add(len) };
                true
            }
            None => false,
        }
    }

    #[inline(always)]
    fn end(&mut self) -> bool {
        let len = self.at.addr() - self.row.addr();
        if len > self.rules.most_bytes {
            return false;
        }
        // SAFETY: so many bytes of the row were written.
        unsafe { self.to.end_run(len) };
        true
    }
}
