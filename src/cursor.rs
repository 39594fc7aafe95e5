//! [`Cursor`]: bounds-checked reads, whose errors name the field and its byte.

use std::fmt::Display;
use std::ops::Range;

use crate::error::{Code, format_count};
use crate::kernel::Span;
use crate::log::{Log, Result, Stop};
use crate::value::ByteOrder;
use crate::varint::{self, ParsedVarint};

/// A position in a message, and the end of the bytes that may be read.
#[derive(Debug, Clone, Copy)]
pub struct Cursor<'a> {
    buffer: &'a [u8],
    /// Index of the first byte of the message in the buffer.
    start: usize,
    /// Index of the next byte in the buffer.
    next: usize,
    end: usize,
}

impl<'a> Cursor<'a> {
    pub fn new(message: &'a [u8]) -> Self {
        Cursor { buffer: message, start: 0, next: 0, end: message.len() }
    }

    #[inline]
    pub fn within(buffer: &'a [u8], message: Range<usize>) -> Self {
        let end = message.end.min(buffer.len());
        let start = message.start.min(end);
        Cursor { buffer, start, next: start, end }
    }

    /// Offset of the next byte in the message.
    #[inline]
    pub fn offset(&self) -> usize {
        self.next - self.start
    }

    #[inline]
    pub fn remaining(&self) -> usize {
        self.end - self.next
    }

    /// Byte `ahead` bytes after the next one, without moving the cursor.
    #[inline]
    pub fn peek(&self, ahead: usize) -> Option<u8> {
        self.peek_rest().get(ahead).copied()
    }

    /// All remaining bytes, without moving the cursor.
    #[inline]
    pub fn peek_rest(&self) -> &'a [u8] {
        // `next <= end <= buffer.len()` holds from the constructor on.
        self.buffer.get(self.next..self.end).unwrap_or_default()
    }

    /// Remaining bytes for the kernels; `None` if too few bytes follow them in the buffer.
    #[inline(always)]
    pub fn span(&self) -> Option<Span<'a>> {
        Span::new(self.buffer, self.next, self.end)
    }

    /// Skips this many bytes, or all that are left.
    pub fn skip(&mut self, len: usize) {
        self.next += len.min(self.remaining());
    }

    /// Reads `len` bytes; if there are fewer, the error names the position where they should begin.
    #[inline(always)]
    pub fn take<R: Log>(&mut self, len: usize, field: &'static str, log: &mut R) -> Result<&'a [u8]> {
        if len > self.remaining() {
            let (start, left) = (self.offset(), self.remaining());
            return Err(log.fatal(Code::Truncated, Some(start), || too_short(field, len, left)));
        }
        let bytes = &self.peek_rest()[..len];
        self.next += len;
        Ok(bytes)
    }

    /// Like `take`, but labels the bytes with their number.
    #[inline]
    pub fn bytes<R: Log>(&mut self, len: usize, field: &'static str, log: &mut R) -> Result<&'a [u8]> {
        let start = self.offset();
        let bytes = self.take(len, field, log)?;
        log.label(start, self.offset(), field, || format_count(len, "byte"));
        Ok(bytes)
    }

    /// Returns a cursor over the next `len` bytes, and skips them.
    #[inline]
    pub fn split<R: Log>(&mut self, len: usize, field: &'static str, log: &mut R) -> Result<Cursor<'a>> {
        let next = self.next;
        self.take(len, field, log)?;
        Ok(Cursor { next, end: next + len, ..*self })
    }

    /// Reads a zig-zag varint of 32 bits. `lenient` ignores bits of the fifth byte beyond them.
    #[inline(always)]
    pub fn varint<R: Log>(&mut self, field: &'static str, lenient: bool, log: &mut R) -> Result<i32> {
        let start = self.offset();
        match varint::read_short(self.peek_rest()) {
            Some((bits, len)) => {
                self.next += len;
                let value = varint::unzigzag(bits);
                log.label(start, self.offset(), field, || value.to_string());
                Ok(value)
            }
            None => {
                let (value, len) = self.long_varint(field, lenient, log)?;
                self.next += len;
                Ok(value)
            }
        }
    }

    /// Reads a varint of any length; also returns its number of bytes. The cursor is a copy, because passing its
    /// address would keep it in memory for the whole parse.
    #[cold]
    #[inline(never)]
    fn long_varint<R: Log>(self, field: &'static str, lenient: bool, log: &mut R) -> Result<(i32, usize)> {
        let start = self.offset();
        match varint::read(self.peek_rest()) {
            ParsedVarint::Read { bits, len, lost } if lenient || !lost => {
                let value = varint::unzigzag(bits);
                log.label(start, start + len, field, || value.to_string());
                Ok((value, len))
            }
            other => Err(bad_varint(&other, start, field, (32, "fifth"), log)),
        }
    }

    /// Reads a zig-zag varint of 64 bits.
    #[inline]
    pub fn varlong<R: Log>(&mut self, field: &'static str, log: &mut R) -> Result<i64> {
        let start = self.offset();
        let read = match varint::read_short(self.peek_rest()) {
            Some((bits, len)) => ParsedVarint::Read { bits: bits.into(), len, lost: false },
            None => varint::read_64(self.peek_rest()),
        };
        match read {
            ParsedVarint::Read { bits, len, lost: false } => {
                self.next += len;
                let value = varint::unzigzag_64(bits);
                log.label(start, self.offset(), field, || value.to_string());
                Ok(value)
            }
            other => Err(bad_varint(&other, start, field, (64, "tenth"), log)),
        }
    }

    /// Reads a varint that is the number of following bytes.
    #[inline(always)]
    pub fn length<R: Log>(&mut self, field: &'static str, lenient: bool, log: &mut R) -> Result<usize> {
        let start = self.offset();
        let value = self.varint(field, lenient, log)?;
        usize::try_from(value).map_err(|_| negative(value, start, field, log))
    }

    /// Reads a varint that is the number of following bytes, or -1 for null.
    #[inline(always)]
    pub fn nullable_length<R: Log>(
        &mut self,
        field: &'static str,
        lenient: bool,
        log: &mut R,
    ) -> Result<Option<usize>> {
        let start = self.offset();
        match self.varint(field, lenient, log)? {
            -1 => Ok(None),
            value => usize::try_from(value).map(Some).map_err(|_| negative(value, start, field, log)),
        }
    }

    /// Returns a cursor over no bytes, at the same position.
    pub fn empty(&self) -> Cursor<'a> {
        Cursor { end: self.next, ..*self }
    }

    /// Reads a number of fixed width.
    #[inline]
    pub fn number<N: Number, R: Log>(&mut self, field: &'static str, order: ByteOrder, log: &mut R) -> Result<N> {
        let start = self.offset();
        let value = N::from_bytes(self.take(N::WIDTH, field, log)?, order);
        log.label(start, self.offset(), field, || value.to_string());
        Ok(value)
    }

    /// Like `number`, for a number after which parsing can continue: reports an error and returns `None` if it is
    /// missing.
    #[inline]
    pub fn number_or_error<N: Number, R: Log>(
        &mut self,
        field: &'static str,
        order: ByteOrder,
        log: &mut R,
    ) -> Result<Option<N>> {
        let (start, left) = (self.offset(), self.remaining());
        if left < N::WIDTH {
            log.error(Code::Truncated, Some(start), || too_short(field, N::WIDTH, left))?;
            return Ok(None);
        }
        self.number(field, order, log).map(Some)
    }

    /// Like `bytes`, for bytes after which parsing can continue: reports an error and returns `None` if they are
    /// missing.
    pub fn take_or_error<R: Log>(&mut self, len: usize, field: &'static str, log: &mut R) -> Result<Option<&'a [u8]>> {
        let (start, left) = (self.offset(), self.remaining());
        if len > left {
            log.error(Code::Truncated, Some(start), || too_short(field, len, left))?;
            return Ok(None);
        }
        self.bytes(len, field, log).map(Some)
    }

    /// Reads a big-endian length of four bytes.
    #[inline]
    pub fn length32<R: Log>(&mut self, field: &'static str, log: &mut R) -> Result<usize> {
        let start = self.offset();
        let value: i32 = self.number(field, ByteOrder::Big, log)?;
        usize::try_from(value).map_err(|_| negative(value, start, field, log))
    }

    /// Reads a big-endian length of four bytes, or -1 for null.
    #[inline]
    pub fn nullable_length32<R: Log>(&mut self, field: &'static str, log: &mut R) -> Result<Option<usize>> {
        let start = self.offset();
        match self.number(field, ByteOrder::Big, log)? {
            -1 => Ok(None),
            value => usize::try_from(value).map(Some).map_err(|_| negative(value, start, field, log)),
        }
    }

    /// Reports bytes that are left after the last field.
    pub fn nothing_after<R: Log>(&self, last: &'static str, log: &mut R) -> Result {
        match self.remaining() {
            0 => Ok(()),
            left => log.error(Code::TrailingBytes, Some(self.offset()), || {
                format!("{} left after the {last}", format_count(left, "byte"))
            }),
        }
    }
}

/// A number of fixed width on the wire.
pub trait Number: Copy + Display {
    const WIDTH: usize;

    /// Reads exactly `WIDTH` bytes.
    fn from_bytes(bytes: &[u8], order: ByteOrder) -> Self;
}

macro_rules! numbers {
    ($($type:ty)*) => {$(
        impl Number for $type {
            const WIDTH: usize = size_of::<$type>();

            #[inline]
            fn from_bytes(bytes: &[u8], order: ByteOrder) -> Self {
                let bytes = bytes.first_chunk().copied().unwrap_or_default();
                match order {
                    ByteOrder::Big => <$type>::from_be_bytes(bytes),
                    ByteOrder::Little => <$type>::from_le_bytes(bytes),
                }
            }
        }
    )*};
}

numbers! { u8 i8 i16 i32 u32 i64 u64 u128 }

#[cold]
fn bad_varint<T, R: Log>(
    varint: &ParsedVarint<T>,
    byte: usize,
    field: &str,
    (width, last): (u32, &str),
    log: &mut R,
) -> Stop {
    match varint {
        ParsedVarint::Read { .. } => log.fatal(Code::VarintLostBits, Some(byte), || {
            format!("the varint of the {field} has bits that {width} bits cannot hold")
        }),
        ParsedVarint::TooLong => log.fatal(Code::VarintTooLong, Some(byte), || {
            format!("the varint of the {field} goes on after its {last} byte")
        }),
        ParsedVarint::Truncated => {
            log.fatal(Code::Truncated, Some(byte), || format!("the bytes end inside the {field}"))
        }
    }
}

#[cold]
fn negative<R: Log>(value: i32, byte: usize, field: &'static str, log: &mut R) -> Stop {
    log.fatal(Code::NegativeLength, Some(byte), || format!("{field} {value} is negative"))
}

/// Message about a field that is longer than the rest of the data.
pub fn too_short(field: &str, needed: usize, left: usize) -> String {
    let are = if left == 1 { "is" } else { "are" };
    format!("{field} takes {} and {left} {are} left", format_count(needed, "byte"))
}
