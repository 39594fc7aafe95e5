//! messages: the messages of a batch one by one, as values.

use std::marker::PhantomData;

use super::not_a_batch;
use super::values::MessageSink;
use crate::cursor::Cursor;
use crate::error::{Direction, Error};
use crate::format::Visitor;
use crate::header::Header;
use crate::mode::{Exact, Result, Stop};
use crate::walk::{Batch, Block, Envelope, FieldValue, Messages, Noting, ReadOptions, message_len, walk_batch};

/// Takes messages as they are read; what it is given does not outlive the call.
pub trait Take {
    fn take(&mut self, headers: Option<&[Header<'_>]>, fields: &[FieldValue<'_>]);

    /// Whether headers are parsed. Otherwise `take_unparsed` is called with their bytes, whatever is in them.
    fn parses_headers(&self) -> bool {
        true
    }

    fn take_unparsed(&mut self, _headers: Option<&[u8]>, _fields: &[FieldValue<'_>]) {}
}

/// Reads a batch up to the first message with a fault; the messages before it were taken.
pub struct ReadMessages<'a, T> {
    pub cell: &'a [u8],
    pub options: ReadOptions,
    pub take: &'a mut T,
}

impl<T: Take> Visitor for ReadMessages<'_, T> {
    type Out = Result<(), Error>;

    fn visit<E: Envelope>(self) -> Self::Out {
        Err(not_a_batch::<E>())
    }

    fn visit_batch<B: Batch>(self) -> Self::Out {
        let mut mode = Exact::default();
        let mut each = Each::<B, T> { take: self.take, options: self.options, batch: PhantomData };
        let walked = walk_batch::<B, _, _>(Cursor::new(self.cell), self.options, &mut mode, &mut each);
        mode.ended(walked, Direction::Decode, B::NAME)
    }
}

struct Each<'t, B, T> {
    take: &'t mut T,
    options: ReadOptions,
    batch: PhantomData<B>,
}

impl<'a, B: Batch, T: Take> Messages<'a> for Each<'_, B, T> {
    type Within<'b> = Self;

    fn message<M: Noting>(&mut self, fields: &[FieldValue<'a>], block: Option<Cursor<'a>>, mode: &mut M) -> Result {
        self.options.limits.check_message(message_len(fields, block), mode.noted())?;
        if !self.take.parses_headers() && mode.noted().faults.is_empty() {
            self.take.take_unparsed(block.map(|cursor| cursor.peek_rest()), fields);
            return Ok(());
        }
        let mut sink = MessageSink::default();
        if let Some(cursor) = block {
            <B::Message as Envelope>::Block::walk(cursor, self.options, mode, &mut sink)?;
        }
        mode.enter_header(None);
        if !mode.noted().faults.is_empty() {
            return Err(Stop);
        }
        self.take.take(block.map(|_| &sink.headers[..]), fields);
        Ok(())
    }

    fn unreadable<M: Noting>(&mut self, _mode: &mut M) -> Result {
        Err(Stop)
    }

    fn within<'b, R>(&mut self, _bytes: &'b [u8], hand: impl FnOnce(&mut Self::Within<'b>) -> R) -> R {
        hand(self)
    }
}
