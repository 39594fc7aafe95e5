//! One message as values: its headers and fields in memory of their own.

use crate::error::{Direction, Error, Located};
use crate::format::Visitor;
use crate::header::Header;
use crate::mode::{Exact, Mode, Stop};
use crate::walk::{Envelope, FieldValue, Presence, ReadOptions, Sink, walk_cell};

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
        let mut sink = MessageSink::default();
        let mut mode = Exact::default();
        let headers = walk_cell::<E, _, _>(self.cell, self.options, &mut mode, &mut sink);
        if !mode.faults.is_empty() {
            let fault = mode.faults.swap_remove(0);
            return Err(Error::Headers(Direction::Decode, Box::new(Located { format: E::NAME, row: None, fault })));
        }
        let headers = (headers != Ok(Presence::Absent)).then_some(sink.headers);
        Ok(Message { headers, fields: sink.fields })
    }
}

#[derive(Default)]
struct MessageSink<'a> {
    headers: Vec<Header<'a>>,
    fields: Vec<FieldValue<'a>>,
}

impl<'a> Sink<'a> for MessageSink<'a> {
    fn header<M: Mode>(&mut self, header: Header<'a>, _mode: &mut M) -> Result<(), Stop> {
        self.headers.push(header);
        Ok(())
    }

    fn fields(&mut self, fields: &[FieldValue<'a>]) {
        self.fields.extend_from_slice(fields);
    }
}
