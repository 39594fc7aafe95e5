//! The one checked reader. It knows where it is in its cell, names what it reads, and never reads past its end.

use crate::error::{Code, counted};
use crate::mode::{Mode, Stop};
use crate::varint::{self, Varint};

/// A place in a cell and the end of what may be read.
#[derive(Debug, Clone, Copy)]
pub struct Cursor<'a> {
    cell: &'a [u8],
    at: usize,
    end: usize,
}

impl<'a> Cursor<'a> {
    pub fn new(cell: &'a [u8]) -> Self {
        Cursor { cell, at: 0, end: cell.len() }
    }

    /// Where the next byte stands in the cell.
    #[inline]
    pub fn at(&self) -> usize {
        self.at
    }

    #[inline]
    pub fn remaining(&self) -> usize {
        self.end - self.at
    }

    #[inline]
    fn rest(&self) -> &'a [u8] {
        &self.cell[self.at..self.end]
    }

    /// Takes `len` bytes; fewer is a fault at the place where they should begin.
    #[inline(always)]
    pub fn take<M: Mode>(&mut self, len: usize, field: &'static str, mode: &mut M) -> Result<&'a [u8], Stop> {
        if len > self.remaining() {
            let (at, left) = (self.at, self.remaining());
            return Err(mode.hard(Code::Truncated, Some(at), || too_short(field, len, left)));
        }
        let bytes = &self.cell[self.at..self.at + len];
        self.at += len;
        Ok(bytes)
    }

    /// A cursor over the next `len` bytes, which this one steps over.
    #[inline]
    pub fn split<M: Mode>(&mut self, len: usize, field: &'static str, mode: &mut M) -> Result<Cursor<'a>, Stop> {
        let at = self.at;
        self.take(len, field, mode)?;
        Ok(Cursor { cell: self.cell, at, end: at + len })
    }

    /// All bytes that are left.
    pub fn take_rest(&mut self) -> &'a [u8] {
        let rest = self.rest();
        self.at = self.end;
        rest
    }

    /// A zig-zag varint of 32 bits. `lenient` lets bits go that the fifth byte cannot carry.
    #[inline(always)]
    pub fn varint<M: Mode>(&mut self, field: &'static str, lenient: bool, mode: &mut M) -> Result<i32, Stop> {
        let start = self.at;
        match varint::read(self.rest()) {
            Varint::Read { bits, len, lost } if lenient || !lost => {
                self.at += len;
                let value = varint::unzigzag(bits);
                mode.label(start, self.at, field, || value.to_string());
                Ok(value)
            }
            Varint::Read { .. } => Err(mode.hard(Code::VarintLostBits, Some(start), || {
                format!("the varint of the {field} has bits that 32 bits cannot hold")
            })),
            Varint::TooLong => Err(mode.hard(Code::VarintTooLong, Some(start), || {
                format!("the varint of the {field} goes on after its fifth byte")
            })),
            Varint::Truncated => {
                Err(mode.hard(Code::Truncated, Some(start), || format!("the bytes end inside the {field}")))
            }
        }
    }

    /// A varint that says how many bytes follow.
    #[inline(always)]
    pub fn length<M: Mode>(&mut self, field: &'static str, lenient: bool, mode: &mut M) -> Result<usize, Stop> {
        let start = self.at;
        let value = self.varint(field, lenient, mode)?;
        usize::try_from(value).map_err(|_| negative(value, start, field, mode))
    }

    /// A varint that says how many bytes follow, or -1 for null.
    #[inline(always)]
    pub fn nullable_length<M: Mode>(
        &mut self,
        field: &'static str,
        lenient: bool,
        mode: &mut M,
    ) -> Result<Option<usize>, Stop> {
        let start = self.at;
        match self.varint(field, lenient, mode)? {
            -1 => Ok(None),
            value => usize::try_from(value).map(Some).map_err(|_| negative(value, start, field, mode)),
        }
    }

    /// Eight bytes, big-endian; `None` and a noted fault when they are not there.
    pub fn int64_or_fault<M: Mode>(&mut self, field: &'static str, mode: &mut M) -> Result<Option<i64>, Stop> {
        let (at, left) = (self.at, self.remaining());
        match self.rest().first_chunk::<8>() {
            Some(bytes) => {
                self.at += 8;
                let value = i64::from_be_bytes(*bytes);
                mode.label(at, self.at, field, || value.to_string());
                Ok(Some(value))
            }
            None => {
                mode.soft(Code::Truncated, Some(at), || too_short(field, 8, left))?;
                Ok(None)
            }
        }
    }
}

#[cold]
fn negative<M: Mode>(value: i32, at: usize, field: &'static str, mode: &mut M) -> Stop {
    mode.hard(Code::NegativeLength, Some(at), || format!("{field} {value} is negative"))
}

fn too_short(field: &str, wanted: usize, left: usize) -> String {
    let verb = if left == 1 { "is" } else { "are" };
    format!("{field} takes {} and {left} {verb} left", counted(wanted, "byte"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mode::Exact;

    #[test]
    fn taking_more_than_is_left_is_truncated_where_it_begins() {
        let mut mode = Exact::default();
        let mut cursor = Cursor::new(&[1, 2, 3]);
        assert_eq!(cursor.take(2, "key", &mut mode), Ok(&[1u8, 2][..]));
        assert_eq!(cursor.take(2, "key", &mut mode), Err(Stop));
        let fault = &mode.faults[0];
        assert_eq!((fault.code, fault.byte), (Code::Truncated, Some(2)));
        assert_eq!(fault.message, "key takes 2 bytes and 1 is left");
    }

    #[test]
    fn a_split_cursor_cannot_read_past_its_own_end() {
        let mut mode = Exact::default();
        let mut cursor = Cursor::new(&[0, 0, 0, 0]);
        let mut part = cursor.split(2, "block", &mut mode).unwrap();
        assert!(part.take(3, "key", &mut mode).is_err());
        assert_eq!(cursor.remaining(), 2);
    }
}
