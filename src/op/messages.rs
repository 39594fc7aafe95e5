//! [`ReadMessages`] reads the messages of a batch one by one.

use std::marker::PhantomData;

use super::not_a_batch;
use super::values::MessageSink;
use crate::cursor::Cursor;
use crate::error::{Direction, Error};
use crate::format::Visitor;
use crate::header::Header;
use crate::log::{Exact, Result, Stop};
use crate::traits::{
    BatchFormat, Collect, FieldValue, HeadersFormat, MessageFormat, Messages, ReadOptions, message_len, parse_batch,
};

/// Receives messages as they are read; the arguments do not outlive the call.
pub trait Consumer {
    fn message(&mut self, headers: Option<&[Header<'_>]>, fields: &[FieldValue<'_>]);

    /// Whether headers are parsed. Otherwise `unparsed_message` is called with their bytes, whatever is in them.
    fn parses_headers(&self) -> bool {
        true
    }

    fn unparsed_message(&mut self, _headers: Option<&[u8]>, _fields: &[FieldValue<'_>]) {}
}

/// Reads a batch up to the first message with an error; the messages before it were passed on.
pub struct ReadMessages<'a, T> {
    pub data: &'a [u8],
    pub options: ReadOptions,
    pub consumer: &'a mut T,
}

impl<T: Consumer> Visitor for ReadMessages<'_, T> {
    type Out = Result<(), Error>;

    fn visit<E: MessageFormat>(self) -> Self::Out {
        Err(not_a_batch::<E>())
    }

    fn visit_batch<B: BatchFormat>(self) -> Self::Out {
        let mut log = Exact::default();
        let mut each = Each::<B, T> { consumer: self.consumer, options: self.options, batch: PhantomData };
        let parsed = parse_batch::<B, _, _>(Cursor::new(self.data), self.options, &mut log, &mut each);
        log.ended(parsed, Direction::Decode, B::NAME)
    }
}

struct Each<'t, B, T> {
    consumer: &'t mut T,
    options: ReadOptions,
    batch: PhantomData<B>,
}

impl<'a, B: BatchFormat, T: Consumer> Messages<'a> for Each<'_, B, T> {
    type Within<'b> = Self;

    fn message<R: Collect>(&mut self, fields: &[FieldValue<'a>], headers: Option<Cursor<'a>>, log: &mut R) -> Result {
        self.options.limits.check_message(message_len(fields, headers), log.collected())?;
        if !self.consumer.parses_headers() && log.collected().errors.is_empty() {
            self.consumer.unparsed_message(headers.map(|cursor| cursor.peek_rest()), fields);
            return Ok(());
        }
        let mut sink = MessageSink::default();
        if let Some(cursor) = headers {
            <B::Message as MessageFormat>::Headers::parse(cursor, self.options, log, &mut sink)?;
        }
        log.enter_header(None);
        if !log.collected().errors.is_empty() {
            return Err(Stop);
        }
        self.consumer.message(headers.map(|_| &sink.headers[..]), fields);
        Ok(())
    }

    fn unreadable<R: Collect>(&mut self, _log: &mut R) -> Result {
        Err(Stop)
    }

    fn within<'b, R>(&mut self, _bytes: &'b [u8], read: impl FnOnce(&mut Self::Within<'b>) -> R) -> R {
        read(self)
    }
}
