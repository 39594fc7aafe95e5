//! [`ParseMessage`] parses one message into a sink.

use crate::cursor::Cursor;
use crate::error::{Direction, Error};
use crate::format::Visitor;
use crate::log::{CollectErrors, FailFast, OnLoss};
use crate::traits::{BatchFormat, MessageFormat, Opened, Presence, ReadOptions, Sink, parse_message};

/// Parses one message into a sink, or returns its first error.
pub struct ParseMessage<'a, F> {
    pub data: &'a [u8],
    pub options: ReadOptions,
    /// Creates an empty sink.
    pub fresh: F,
}

impl<'a, S: Sink<'a>, F: Fn() -> S> Visitor for ParseMessage<'a, F> {
    type Out = Result<(S, Presence), Error>;

    fn visit<E: MessageFormat>(self) -> Self::Out {
        let data = Cursor::new(self.data);
        // Nearly every message is valid. The errors of an invalid one are collected in a second pass.
        let mut sink = (self.fresh)();
        let fast = parse_message::<E, _, _>(data, self.options, &mut FailFast::new(OnLoss::Raise), &mut sink);
        if let Ok(presence) = fast {
            return Ok((sink, presence));
        }
        let mut sink = (self.fresh)();
        let mut log = CollectErrors::default();
        let parsed = E::INFO.collect(data, self.options, &mut log, &mut sink);
        Ok((sink, log.finish_parse(parsed, Direction::Decode, E::NAME)?))
    }

    fn visit_batch<B: BatchFormat>(self) -> Self::Out {
        Err(super::batch_needs_messages(B::NAME))
    }
}

/// Opens one message without parsing its headers, or returns the first error of its frame.
pub fn open_message<E: MessageFormat>(data: &[u8]) -> Result<Opened<'_, E::Fields<'_>>, Error> {
    let mut log = CollectErrors::default();
    let opened = E::open(Cursor::new(data), ReadOptions::default(), &mut log);
    log.finish_parse(opened, Direction::Decode, E::NAME)
}
