//! Traits of batch formats, and of the receivers of their messages.

use std::ops::{Deref, DerefMut, Range};

use super::MessageFormat;
use crate::cursor::Cursor;
use crate::field::FieldValue;
use crate::format_info::{Class, FormatInfo};
use crate::log::{CollectErrors, Result};
use crate::options::ReadOptions;

/// Fields of a message of a batch, which are converted to values when a receiver requests them.
pub trait MessageFields<'a>: Copy {
    type Values: AsRef<[FieldValue<'a>]>;

    /// All fields, in the order of the table.
    fn values(&self) -> Self::Values;

    /// The field at an index of the table.
    fn value(&self, index: usize) -> FieldValue<'a>;

    /// The sum of [`FieldValue::byte_len`].
    fn byte_len(&self) -> usize;
}

impl<'a, const N: usize> MessageFields<'a> for [FieldValue<'a>; N] {
    type Values = Self;

    #[inline(always)]
    fn values(&self) -> Self {
        *self
    }

    #[inline(always)]
    fn value(&self, index: usize) -> FieldValue<'a> {
        self[index]
    }

    #[inline(always)]
    fn byte_len(&self) -> usize {
        self.iter().map(FieldValue::byte_len).sum()
    }
}

/// The fields of a message of a batch format.
pub type FieldsOf<'a, B> = <B as BatchFormat>::Fields<'a>;

/// Total length of a message's fields and headers, which the limits bound.
#[inline(always)]
pub fn message_len<'a, F: MessageFields<'a>>(fields: &F, headers: Option<Cursor<'a>>) -> usize {
    fields.byte_len() + headers.map_or(0, |headers| headers.remaining())
}

/// Position among the messages of a frame, at which a receiver stopped and reading resumes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FramePosition {
    /// Number of bytes of the previous messages.
    pub offset: usize,
    /// Number of the previous messages.
    pub count: usize,
    /// Length of the decompressed messages, which are still in the buffer of the receiver.
    pub content_len: usize,
    /// Whether messages of `iggy-polled-2023` have a state. Detecting this takes a pass over all messages.
    pub has_state: bool,
}

/// Receiver of the messages of a batch. When a message is passed on, the log contains the errors of its frame.
pub trait MessageReceiver {
    type Batch: BatchFormat;

    /// Messages that the receiver buffers, to read several at once.
    type Held<'a>: Default;

    fn message<'a>(
        &mut self,
        held: &mut Self::Held<'a>,
        fields: &FieldsOf<'a, Self::Batch>,
        headers: Option<Cursor<'a>>,
        log: &mut CollectErrors,
    ) -> Result;

    /// Receives an unreadable message, in a frame that continues after it. The log contains its errors.
    fn unreadable<'a>(&mut self, held: &mut Self::Held<'a>, log: &mut CollectErrors) -> Result;

    /// Reads the buffered messages. A failure is stored, and returned for the next message.
    fn flush<'a>(&mut self, _held: &mut Self::Held<'a>) {}

    /// Returns a buffer for temporary bytes, possibly a used one.
    fn take_buffer(&mut self) -> Vec<u8> {
        Vec::new()
    }

    fn return_buffer(&mut self, _buffer: Vec<u8>) {}

    /// Announces the frame of the next messages, as a range of the data.
    fn enter(&mut self, _frame: Range<usize>) {}

    /// Receives the position after the message at which the receiver stopped. Not called after a frame's only message.
    fn stop_before(&mut self, _before: FramePosition) {}

    /// Returns the position at which reading resumes in the first frame, whose checksum was verified before; `None` to
    /// read it from its beginning.
    fn resume(&mut self) -> Option<FramePosition> {
        None
    }
}

/// Receiver with its buffered messages, in bytes that live for `'a`.
pub struct Receiver<'r, 'a, V: MessageReceiver> {
    receiver: &'r mut V,
    held: &'r mut V::Held<'a>,
}

impl<'r, 'a, V: MessageReceiver> Receiver<'r, 'a, V> {
    pub fn new(receiver: &'r mut V, held: &'r mut V::Held<'a>) -> Self {
        Receiver { receiver, held }
    }

    // Inlined into the parser, where the variants of the fields are known at compile time.
    #[inline(always)]
    pub fn message(
        &mut self,
        fields: &FieldsOf<'a, V::Batch>,
        headers: Option<Cursor<'a>>,
        log: &mut CollectErrors,
    ) -> Result {
        self.receiver.message(self.held, fields, headers, log)
    }

    pub fn unreadable(&mut self, log: &mut CollectErrors) -> Result {
        self.receiver.unreadable(self.held, log)
    }

    /// Passes messages in temporary bytes to the receiver, which reads them before it returns.
    pub fn with_temporary<'b, T>(&mut self, read: impl FnOnce(&mut Receiver<'_, 'b, V>) -> T) -> T {
        self.receiver.flush(self.held);
        let mut held = V::Held::default();
        let result = read(&mut Receiver { receiver: self.receiver, held: &mut held });
        self.receiver.flush(&mut held);
        result
    }
}

impl<V: MessageReceiver> Deref for Receiver<'_, '_, V> {
    type Target = V;

    fn deref(&self) -> &V {
        self.receiver
    }
}

impl<V: MessageReceiver> DerefMut for Receiver<'_, '_, V> {
    fn deref_mut(&mut self) -> &mut V {
        self.receiver
    }
}

/// The bytes of many messages.
pub trait BatchFormat: Sized {
    const NAME: &'static str;
    /// The specification of the layout.
    const SOURCE: &'static str;
    /// The layout in one line.
    const LAYOUT: &'static str;
    /// One message of the batch: its fields and headers.
    type Message: MessageFormat;
    /// Fields of a message, as the parser passes them on.
    type Fields<'a>: MessageFields<'a>;

    /// The format as a value, with the fields and headers of its messages.
    const INFO: FormatInfo = FormatInfo {
        name: Self::NAME,
        class: Class::Batch,
        source: Self::SOURCE,
        layout: Self::LAYOUT,
        is_target: false,
        ..Self::Message::INFO
    };

    /// Passes every message of a batch to the receiver, in order; a fatal error ends the batch.
    fn messages<'a, V: MessageReceiver<Batch = Self>>(
        data: Cursor<'a>,
        options: ReadOptions,
        log: &mut CollectErrors,
        receiver: &mut Receiver<'_, 'a, V>,
    ) -> Result;
}

/// Passes the messages of a batch to a receiver. The caller flushes the buffered messages.
pub fn parse_batch<'a, B: BatchFormat, V: MessageReceiver<Batch = B>>(
    data: Cursor<'a>,
    options: ReadOptions,
    log: &mut CollectErrors,
    receiver: &mut Receiver<'_, 'a, V>,
) -> Result {
    if data.remaining() > options.limits.message_bytes {
        // Errors of the data belong to its first message.
        log.begin_message();
    }
    options.limits.check_message_bytes(data.remaining(), log)?;
    let parsed = B::messages(data, options, log, receiver);
    if parsed.is_err() && !log.is_over_limit() {
        // A broken frame ends the parse without a call of `receiver`. The frame counts as a row, like the previous
        // messages.
        options.limits.check_message(0, log)?;
    }
    parsed
}
