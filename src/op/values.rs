//! One message as values: its headers and fields in memory of their own, or handed to whoever asks.

use crate::cursor::Cursor;
use crate::error::{Direction, Error};
use crate::format::Visitor;
use crate::header::Header;
use crate::mode::{Exact, Fast, Mode, OnLoss, Result};
use crate::walk::{Batch, Envelope, FieldValue, Opened, Presence, ReadOptions, Sink, walk_cell};

/// The headers and fields of one message.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Message<'a> {
    /// `None`: the message has no headers field.
    pub headers: Option<Vec<Header<'a>>>,
    /// In the order of the format's table, the headers left out.
    pub fields: Vec<FieldValue<'a>>,
}

/// Decodes one cell, or says what is wrong with it first.
pub struct DecodeMessage<'a> {
    pub cell: &'a [u8],
    pub options: ReadOptions,
}

impl<'a> Visitor for DecodeMessage<'a> {
    type Out = Result<Message<'a>, Error>;

    fn visit<E: Envelope>(self) -> Self::Out {
        let read = ReadMessage { cell: self.cell, options: self.options, fresh: MessageSink::default };
        let (sink, presence) = read.visit::<E>()?;
        Ok(Message { headers: (presence != Presence::Absent).then_some(sink.headers), fields: sink.fields })
    }

    fn visit_batch<B: Batch>(self) -> Self::Out {
        Err(super::is_a_batch::<B>())
    }
}

/// Walks one cell into a sink, or says what is wrong with it first.
pub struct ReadMessage<'a, F> {
    pub cell: &'a [u8],
    pub options: ReadOptions,
    /// Makes a sink that was handed nothing yet.
    pub fresh: F,
}

impl<'a, S: Sink<'a>, F: Fn() -> S> Visitor for ReadMessage<'a, F> {
    type Out = Result<(S, Presence), Error>;

    fn visit<E: Envelope>(self) -> Self::Out {
        let cell = Cursor::new(self.cell);
        // Nearly every message is whole. What is wrong with one that is not is looked for in a second go.
        let mut sink = (self.fresh)();
        let fast = walk_cell::<E, _, _>(cell, self.options, &mut Fast::new(OnLoss::Raise), &mut sink);
        if let Ok(presence) = fast {
            return Ok((sink, presence));
        }
        let mut sink = (self.fresh)();
        let mut mode = Exact::default();
        let walked = walk_cell::<E, _, _>(cell, self.options, &mut mode, &mut sink);
        Ok((sink, mode.ended(walked, Direction::Decode, E::NAME)?))
    }

    fn visit_batch<B: Batch>(self) -> Self::Out {
        Err(super::is_a_batch::<B>())
    }
}

/// Opens one cell and leaves its headers unread, or says what is wrong with the frame.
pub fn open_message<E: Envelope>(cell: &[u8]) -> Result<Opened<'_, E::Fields<'_>>, Error> {
    let mut mode = Exact::default();
    let opened = E::open(Cursor::new(cell), ReadOptions::default(), &mut mode);
    mode.ended(opened, Direction::Decode, E::NAME)
}

/// The headers and fields of a message as they come.
#[derive(Default)]
pub struct MessageSink<'a> {
    pub headers: Vec<Header<'a>>,
    pub fields: Vec<FieldValue<'a>>,
}

impl MessageSink<'_> {
    pub fn clear(&mut self) {
        self.headers.clear();
        self.fields.clear();
    }
}

impl<'a> Sink<'a> for MessageSink<'a> {
    #[inline]
    fn header<M: Mode>(&mut self, header: Header<'a>, _mode: &mut M) -> Result {
        self.headers.push(header);
        Ok(())
    }

    fn fields(&mut self, fields: &[FieldValue<'a>]) {
        self.fields.extend_from_slice(fields);
    }
}

/// How many headers there are.
#[derive(Default)]
pub struct CountSink {
    pub count: usize,
}

impl<'a> Sink<'a> for CountSink {
    #[inline]
    fn header<M: Mode>(&mut self, _header: Header<'a>, _mode: &mut M) -> Result {
        self.count += 1;
        Ok(())
    }
}

/// The last header whose key is this text.
pub struct LastSink<'w, 'a> {
    pub wanted: &'w [u8],
    pub found: Option<Header<'a>>,
}

impl<'a> Sink<'a> for LastSink<'_, 'a> {
    #[inline]
    fn header<M: Mode>(&mut self, header: Header<'a>, _mode: &mut M) -> Result {
        if header.key.is_text(self.wanted) {
            self.found = Some(header);
        }
        Ok(())
    }
}
