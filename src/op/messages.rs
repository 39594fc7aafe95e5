//! [`ReadMessages`] reads the messages of a batch one by one, and [`Bookmark`] stores its position.

use std::marker::PhantomData;
use std::mem;
use std::ops::Range;

use super::not_a_batch;
use crate::cursor::Cursor;
use crate::error::{Direction, Error};
use crate::field::FieldValue;
use crate::format::Visitor;
use crate::header::Header;
use crate::log::{BatchCounts, CollectErrors, Log as _, OnLoss, Result, Stop};
use crate::options::ReadOptions;
use crate::sink::{AnySink, GatheredMessage};
use crate::traits::{
    BatchFormat, FieldsOf, FramePosition, MessageFields as _, MessageFormat, MessageReceiver, Receiver, message_len,
    parse_batch,
};

/// Headers of a message, either parsed or as unvalidated bytes.
pub enum MessageHeaders<'m> {
    Parsed(&'m [Header<'m>]),
    Bytes(&'m [u8]),
}

/// The position at which reading of a batch resumes, and the decompressed records of that batch.
#[derive(Default)]
pub struct Bookmark {
    /// Offset of the next frame in the data.
    offset: usize,
    position: Option<FramePosition>,
    counts: BatchCounts,
    buffer: Vec<u8>,
}

/// Reads a batch from a bookmark up to the first message with an error, and passes the headers and fields of each
/// message before it to `receive`, until that returns false.
pub struct ReadMessages<'a, F> {
    pub data: &'a [u8],
    pub options: ReadOptions,
    pub parse_headers: bool,
    pub bookmark: &'a mut Bookmark,
    pub receive: F,
}

/// Whether more messages follow.
pub type HasMore = bool;

impl<F: FnMut(Option<MessageHeaders<'_>>, &[FieldValue<'_>]) -> bool> Visitor for ReadMessages<'_, F> {
    type Out = Result<HasMore, Error>;

    fn visit<E: MessageFormat>(self) -> Self::Out {
        Err(not_a_batch(E::NAME))
    }

    fn visit_batch<B: BatchFormat>(self) -> Self::Out {
        let ReadMessages { data, options, parse_headers, bookmark, receive } = self;
        let mut log = CollectErrors::new(OnLoss::Raise, options.limits.reports);
        log.resume(bookmark.counts);
        let mut cursor = Cursor::new(data);
        cursor.skip(bookmark.offset);
        let format = PhantomData::<B>;
        let mut reader =
            ReadToBookmark { options, parse_headers, bookmark, receive, frame: 0..0, stopped: false, format };
        let parsed = parse_batch::<B, _>(cursor, options, &mut log, &mut Receiver::new(&mut reader, &mut ()));
        if reader.stopped {
            return Ok(true);
        }
        log.finish_parse(parsed, Direction::Decode, B::NAME).map(|()| false)
    }
}

struct ReadToBookmark<'m, B, F> {
    options: ReadOptions,
    parse_headers: bool,
    bookmark: &'m mut Bookmark,
    receive: F,
    frame: Range<usize>,
    stopped: bool,
    format: PhantomData<B>,
}

impl<B: BatchFormat, F> MessageReceiver for ReadToBookmark<'_, B, F>
where
    F: FnMut(Option<MessageHeaders<'_>>, &[FieldValue<'_>]) -> bool,
{
    type Batch = B;
    type Held<'a> = ();

    fn message<'a>(
        &mut self,
        _: &mut (),
        fields: &FieldsOf<'a, B>,
        headers: Option<Cursor<'a>>,
        log: &mut CollectErrors,
    ) -> Result {
        let ReadToBookmark { options, parse_headers, bookmark, receive, .. } = self;
        options.limits.check_message(message_len(fields, headers), log)?;
        let goes_on = if !*parse_headers && log.errors().is_empty() {
            receive(headers.map(|cursor| MessageHeaders::Bytes(cursor.peek_rest())), fields.values().as_ref())
        } else {
            let mut sink = GatheredMessage::default();
            if let Some(cursor) = headers {
                (B::INFO.parse_headers)(cursor, *options, log.either(), AnySink(&mut sink))?;
            }
            log.enter_header(None);
            if !log.errors().is_empty() {
                return Err(Stop);
            }
            receive(headers.map(|_| MessageHeaders::Parsed(&sink.headers)), fields.values().as_ref())
        };
        if goes_on {
            return Ok(());
        }
        bookmark.offset = self.frame.end;
        bookmark.position = None;
        bookmark.counts = log.counts();
        self.stopped = true;
        Err(Stop)
    }

    fn unreadable(&mut self, _: &mut (), _log: &mut CollectErrors) -> Result {
        Err(Stop)
    }

    fn take_buffer(&mut self) -> Vec<u8> {
        mem::take(&mut self.bookmark.buffer)
    }

    fn return_buffer(&mut self, buffer: Vec<u8>) {
        self.bookmark.buffer = buffer;
    }

    fn enter(&mut self, frame: Range<usize>) {
        self.frame = frame;
    }

    fn stop_before(&mut self, before: FramePosition) {
        if self.stopped {
            self.bookmark.offset = self.frame.start;
            self.bookmark.position = Some(before);
        }
    }

    fn resume(&mut self) -> Option<FramePosition> {
        self.bookmark.position.take()
    }
}
