//! [`gather_message`] and [`ParseMessage`] parse one message.

use crate::cursor::Cursor;
use crate::error::{Direction, Error};
use crate::format::Visitor;
use crate::format_info::{Class, FormatInfo};
use crate::log::{CollectErrors, EitherLog, FailFast, OnLoss};
use crate::options::ReadOptions;
use crate::sink::{AnySink, GatheredMessage, Presence, Sink};
use crate::traits::{BatchFormat, MessageFormat, Opened, parse_message};

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
        if E::CLASS == Class::Headers {
            // Nearly all headers are valid. The errors of others are collected in a second pass.
            let (mut sink, mut fast) = ((self.fresh)(), FailFast::new(OnLoss::Raise));
            let data = Cursor::new(self.data);
            if let Ok(presence) = parse_message::<E, _, _>(data, self.options, &mut fast, &mut sink) {
                return Ok((sink, presence));
            }
        }
        self.collect(&E::INFO)
    }

    fn visit_batch<B: BatchFormat>(self) -> Self::Out {
        Err(super::batch_needs_messages(B::NAME))
    }
}

impl<'a, S: Sink<'a>, F: Fn() -> S> ParseMessage<'a, F> {
    #[cold]
    #[inline(never)]
    fn collect(&self, format: &FormatInfo) -> Result<(S, Presence), Error> {
        let (mut sink, mut log) = ((self.fresh)(), CollectErrors::default());
        let data = Cursor::new(self.data);
        let parsed = (format.parse)(data, self.options, EitherLog::Collect(&mut log), AnySink(&mut sink));
        Ok((sink, log.finish_parse(parsed, Direction::Decode, format.name)?))
    }
}

/// Parses one message, or returns its first error.
pub fn gather_message<'a>(
    format: &FormatInfo,
    data: &'a [u8],
    options: ReadOptions,
) -> Result<(GatheredMessage<'a>, Presence), Error> {
    super::check_not_batch(format)?;
    let (cursor, mut message) = (Cursor::new(data), GatheredMessage::default());
    let mut fast = FailFast::new(OnLoss::Raise);
    if let Ok(presence) = (format.parse)(cursor, options, EitherLog::FailFast(&mut fast), AnySink(&mut message)) {
        return Ok((message, presence));
    }
    ParseMessage { data, options, fresh: GatheredMessage::default }.collect(format)
}

/// Opens one message without parsing its headers, or returns the first error of its frame.
pub fn open_message<E: MessageFormat>(data: &[u8]) -> Result<Opened<'_, E::Fields<'_>>, Error> {
    let mut log = CollectErrors::default();
    let opened = E::open(Cursor::new(data), ReadOptions::default(), &mut log);
    log.finish_parse(opened, Direction::Decode, E::NAME)
}
