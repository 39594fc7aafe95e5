//! [`Sink`]: a receiver of the headers and fields that a parser reads from a message.

use crate::field::FieldValue;
use crate::header::Header;
use crate::log::{EitherLog, Log, Result};
use crate::memory;

/// A receiver of the headers of a message.
pub trait Sink<'a> {
    #[inline]
    fn header<R: Log>(&mut self, _header: Header<'a>, _log: &mut R) -> Result {
        Ok(())
    }

    /// Receives the other fields of the message, in the order of the format's table, before any header.
    fn fields(&mut self, _fields: &[FieldValue<'a>]) {}
}

/// A sink that discards headers, for parses that only validate.
pub struct Discard;

impl Sink<'_> for Discard {}

/// The headers and fields of a message, in the order in which they were parsed.
#[derive(Default)]
pub struct GatheredMessage<'a> {
    pub headers: Vec<Header<'a>>,
    pub fields: Vec<FieldValue<'a>>,
}

impl GatheredMessage<'_> {
    pub fn clear(&mut self) {
        self.headers.clear();
        self.fields.clear();
    }
}

impl<'a> Sink<'a> for GatheredMessage<'a> {
    #[inline]
    fn header<R: Log>(&mut self, header: Header<'a>, _log: &mut R) -> Result {
        memory::push(&mut self.headers, header);
        Ok(())
    }

    fn fields(&mut self, fields: &[FieldValue<'a>]) {
        self.fields.extend_from_slice(fields);
    }
}

/// Sink called through a trait object, so that a parser is compiled once for each format, instead of for each pair of a
/// format and a sink.
pub struct AnySink<'r, 'a>(pub &'r mut dyn Receive<'a>);

/// [`Sink`] without generic functions.
pub trait Receive<'a> {
    fn receive(&mut self, header: Header<'a>, log: EitherLog<'_>) -> Result;

    fn receive_fields(&mut self, fields: &[FieldValue<'a>]);
}

impl<'a, S: Sink<'a>> Receive<'a> for S {
    fn receive(&mut self, header: Header<'a>, log: EitherLog<'_>) -> Result {
        match log {
            EitherLog::FailFast(log) => self.header(header, log),
            EitherLog::Collect(log) => self.header(header, log),
        }
    }

    fn receive_fields(&mut self, fields: &[FieldValue<'a>]) {
        self.fields(fields);
    }
}

impl<'a> Sink<'a> for AnySink<'_, 'a> {
    fn header<R: Log>(&mut self, header: Header<'a>, log: &mut R) -> Result {
        self.0.receive(header, log.either())
    }

    fn fields(&mut self, fields: &[FieldValue<'a>]) {
        self.0.receive_fields(fields);
    }
}

/// The state of the headers at the end of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// Every header was passed to the sink. There may be none.
    Whole,
    /// The message has no headers field.
    Absent,
    /// At least one header was unreadable and dropped; the parse reached the end.
    Damaged,
    /// The headers could not be read to the end.
    Broken,
}
