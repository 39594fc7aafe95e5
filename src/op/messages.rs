//! messages: the messages of a batch one by one, as values.

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
pub trait Take {
    fn take(&mut self, headers: Option<&[Header<'_>]>, fields: &[FieldValue<'_>]);

    /// Whether headers are parsed. Otherwise `take_unparsed` is called with their bytes, whatever is in them.
    fn parses_headers(&self) -> bool {
        true
    }

    fn take_unparsed(&mut self, _headers: Option<&[u8]>, _fields: &[FieldValue<'_>]) {}
}

/// Reads a batch up to the first message with an error; the messages before it were passed on.
pub struct ReadMessages<'a, T> {
    pub data: &'a [u8],
    pub options: ReadOptions,
    pub take: &'a mut T,
}

impl<T: Take> Visitor for ReadMessages<'_, T> {
    type Out = Result<(), Error>;

    fn visit<E: MessageFormat>(self) -> Self::Out {
        Err(not_a_batch::<E>())
    }

    fn visit_batch<B: BatchFormat>(self) -> Self::Out {
        let mut log = Exact::default();
        let mut each = Each::<B, T> { take: self.take, options: self.options, batch: PhantomData };
        let parsed = parse_batch::<B, _, _>(Cursor::new(self.data), self.options, &mut log, &mut each);
        log.ended(parsed, Direction::Decode, B::NAME)
    }
}

struct Each<'t, B, T> {
    take: &'t mut T,
    options: ReadOptions,
    batch: PhantomData<B>,
}

impl<'a, B: BatchFormat, T: Take> Messages<'a> for Each<'_, B, T> {
    type Within<'b> = Self;

    fn message<R: Collect>(&mut self, fields: &[FieldValue<'a>], headers: Option<Cursor<'a>>, log: &mut R) -> Result {
        self.options.limits.check_message(message_len(fields, headers), log.collected())?;
        if !self.take.parses_headers() && log.collected().errors.is_empty() {
            self.take.take_unparsed(headers.map(|cursor| cursor.peek_rest()), fields);
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
        self.take.take(headers.map(|_| &sink.headers[..]), fields);
        Ok(())
    }

    fn unreadable<R: Collect>(&mut self, _log: &mut R) -> Result {
        Err(Stop)
    }

    fn within<'b, R>(&mut self, _bytes: &'b [u8], hand: impl FnOnce(&mut Self::Within<'b>) -> R) -> R {
        hand(self)
    }
}
