//! `kip82-messages`, `kip82-messages-int`, `kip82-messages-wrapper`: sets of the messages of the KIP-82 drafts, as
//! `message_set` describes them.
//!
//! Differences from the reference implementation (`MemoryRecords` of Kafka 4.3.1, magic 0 and 1): a truncated last
//! message is an error, which `lenient` ignores.

use std::marker::PhantomData;

use super::message_set::{SetLayout, read_framed, read_frames};
use crate::cursor::Cursor;
use crate::formats::message::kip82_message::{Kip82Message, Layout, open_message};
use crate::formats::message::legacy::{Framed, LegacyFields, Message};
use crate::log::{CollectErrors, Log, Result};
use crate::options::ReadOptions;
use crate::traits::{BatchFormat, MessageReceiver, Receiver};

/// A set of messages in one of the layouts.
pub struct Kip82Messages<L>(PhantomData<L>);

impl<L: Layout> SetLayout for L {
    type Batch = Kip82Messages<L>;

    fn open<'a, R: Log>(frame: Framed<'a>, log: &mut R) -> Result<Message<'a>> {
        open_message::<L, R>(frame, log)
    }

    fn fields<'a>(fields: LegacyFields<'a>, _set: Option<u8>) -> LegacyFields<'a> {
        fields
    }
}

impl<L: Layout> BatchFormat for Kip82Messages<L> {
    const NAME: &'static str = L::SET_NAME;
    const SOURCE: &'static str = L::SET_SOURCE;
    const LAYOUT: &'static str = L::SET_LAYOUT;
    type Message = Kip82Message<L>;
    type Fields<'a> = LegacyFields<'a>;

    fn messages<'a, V: MessageReceiver<Batch = Self>>(
        cursor: Cursor<'a>,
        options: ReadOptions,
        log: &mut CollectErrors,
        receiver: &mut Receiver<'_, 'a, V>,
    ) -> Result {
        read_frames(cursor, options.lenient, log, receiver, |frame, log, receiver| {
            read_framed::<L, V>(frame, options.limits, log, receiver)
        })
    }
}
