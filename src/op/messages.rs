//! [`ReadMessages`] reads the messages of a batch one by one.

use std::marker::PhantomData;

use super::not_a_batch;
use super::values::MessageSink;
use crate::cursor::Cursor;
use crate::error::{Direction, Error};
use crate::format::Visitor;
use crate::header::Header;
use crate::log::{Exact, Log as _, Result, Stop};
use crate::traits::{
    BatchFormat, FieldValue, Fields as _, FieldsOf, HeadersFormat, MessageFormat, Messages, ReadOptions, message_len,
    parse_batch,
};

/// The headers of a message: parsed, or their bytes, whatever is in them.
pub enum MessageHeaders<'m> {
    Parsed(&'m [Header<'m>]),
    Bytes(&'m [u8]),
}

/// Reads a batch up to the first message with an error, and passes the headers and fields of each message before it to
/// `receive`.
pub struct ReadMessages<'a, F> {
    pub data: &'a [u8],
    pub options: ReadOptions,
    pub parse_headers: bool,
    pub receive: F,
}

impl<F: FnMut(Option<MessageHeaders<'_>>, &[FieldValue<'_>])> Visitor for ReadMessages<'_, F> {
    type Out = Result<(), Error>;

    fn visit<E: MessageFormat>(self) -> Self::Out {
        Err(not_a_batch::<E>())
    }

    fn visit_batch<B: BatchFormat>(self) -> Self::Out {
        let (data, options, mut log) = (Cursor::new(self.data), self.options, Exact::default());
        let parsed = parse_batch::<B, _>(data, options, &mut log, &mut Receiver(self, PhantomData::<B>));
        log.ended(parsed, Direction::Decode, B::NAME)
    }
}

struct Receiver<'a, B, F>(ReadMessages<'a, F>, PhantomData<B>);

impl<'a, B: BatchFormat, F> Messages<'a> for Receiver<'_, B, F>
where
    F: FnMut(Option<MessageHeaders<'_>>, &[FieldValue<'_>]),
{
    type Batch = B;
    type Within<'b> = Self;

    fn message(&mut self, fields: &FieldsOf<'a, B>, headers: Option<Cursor<'a>>, log: &mut Exact) -> Result {
        let ReadMessages { options, parse_headers, receive, .. } = &mut self.0;
        options.limits.check_message(message_len(fields, headers), log)?;
        if !*parse_headers && log.errors.is_empty() {
            receive(headers.map(|cursor| MessageHeaders::Bytes(cursor.peek_rest())), fields.values().as_ref());
            return Ok(());
        }
        let mut sink = MessageSink::default();
        if let Some(cursor) = headers {
            <B::Message as MessageFormat>::Headers::parse(cursor, *options, log, &mut sink)?;
        }
        log.enter_header(None);
        if !log.errors.is_empty() {
            return Err(Stop);
        }
        receive(headers.map(|_| MessageHeaders::Parsed(&sink.headers)), fields.values().as_ref());
        Ok(())
    }

    fn unreadable(&mut self, _log: &mut Exact) -> Result {
        Err(Stop)
    }

    fn within<'b, R>(&mut self, _bytes: &'b [u8], read: impl FnOnce(&mut Self::Within<'b>) -> R) -> R {
        read(self)
    }
}
