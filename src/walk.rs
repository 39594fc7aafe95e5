//! Formats and sinks: a format walks the headers of a message into a sink, and an operation is a sink.
//!
//! ```text
//!   rows  ──walk──▶  header, header, …  ──▶  sink
//!   (a format's bytes, or a list column)      (a list, columns, bytes, a count)
//! ```
//!
//! A walk is written once and runs in the modes of [`crate::mode`].

use std::cmp::Ordering;

use crate::ask::Asked;
use crate::cursor::Cursor;
use crate::error::Code;
use crate::header::{Header, KeyForm};
use crate::kernel::frame::Frame;
use crate::kind::Kinds;
use crate::limits::Limits;
use crate::mode::{Exact, Labelled, Mode, OnLoss, Result};
use crate::value::{ByteOrder, Checks};

/// The options of a reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReadOptions {
    /// Read what Kafka's Java deserializers read, even where that loses data.
    pub lenient: bool,
    /// Refuse type codes that have no name where the format lets them pass.
    pub strict_types: bool,
    /// Refuse keys that are no text where the format has typed ones.
    pub text_keys: bool,
    /// The most to read.
    pub limits: Limits,
}

/// The options of a writer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WriteOptions {
    pub on_loss: OnLoss,
    /// How values get or lose their types.
    pub kinds: Asked,
    /// Refuse a null list of headers instead of writing it as none.
    pub refuse_null_headers: bool,
    /// Write headers in the one order that the format has for them.
    pub canonical: bool,
}

/// A receiver of the headers of a message.
pub trait Sink<'a> {
    fn header<M: Mode>(&mut self, header: Header<'a>, mode: &mut M) -> Result;

    /// The other fields of the message, in the order of the format's table; called before any header.
    fn fields(&mut self, _fields: &[FieldValue<'a>]) {}
}

/// Takes headers and keeps nothing: for walks that only check.
pub struct Discard;

impl<'a> Sink<'a> for Discard {
    #[inline]
    fn header<M: Mode>(&mut self, _header: Header<'a>, _mode: &mut M) -> Result {
        Ok(())
    }
}

/// What became of the headers of a row that ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// All of them were handed over, be it none.
    Whole,
    /// The message has no headers field.
    Absent,
    /// At least one could not be read and was left out; the walk reached the end.
    Damaged,
    /// They could not be read to the end.
    Broken,
}

/// What a block can hold of a header; what it cannot is a loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Carries {
    /// A null value.
    pub nulls: bool,
    /// The fewest and the most bytes of a key, and of a value.
    pub part_len: (usize, usize),
    /// What its reader wants of the value of a kind.
    pub checks: Checks,
}

impl Carries {
    /// Whether a key or value may have this length.
    #[inline]
    pub fn fits(self, len: usize) -> bool {
        (self.part_len.0..=self.part_len.1).contains(&len)
    }

    /// Anything, as far as lengths can be stated.
    pub const ALL: Carries = Carries { nulls: true, part_len: (0, i32::MAX as usize), checks: Checks::Nothing };
}

/// The bytes of all headers of one message.
pub trait Block: 'static {
    const NAME: &'static str;
    /// Where the layout is specified.
    const SOURCE: &'static str;
    /// The layout in one line.
    const LAYOUT: &'static str;
    const KEYS: KeyForm;
    /// How values are tagged.
    const KINDS: Kinds;
    /// The order of the bytes of a number that has a kind.
    const ORDER: ByteOrder;
    const CARRIES: Carries;
    /// It can be written: of a reader of several layouts, none is the one to write.
    const IS_TARGET: bool = true;
    /// How two headers stand to each other in the one order that the format has for them.
    const CANONICAL: Option<fn(&Header<'_>, &Header<'_>) -> Ordering> = None;

    /// How the kernels find its headers; [`crate::kernel::frame::Exact`] if there are none for it.
    type Frame: Frame;

    /// The most bytes that the headers of a message may take for the kernels to write them.
    const MOST_WRITTEN: usize = i32::MAX as usize;

    /// Hands every header between the cursor and its end to the sink.
    fn walk<'a, M: Mode, S: Sink<'a>>(cursor: Cursor<'a>, options: ReadOptions, mode: &mut M, sink: &mut S) -> Result;

    /// The length of these headers when written; refuses a total that `walk` would reject.
    ///
    /// Headers to write are those that [`crate::op::write::Writer`] let through: keys in the form of this block, values
    /// within `CARRIES`, a value that has a kind as its bits, most significant byte first.
    fn encoded_len<M: Mode>(headers: &[Header<'_>], mode: &mut M) -> Result<usize>;

    /// Writes headers that `encoded_len` accepted.
    fn encode_into(headers: &[Header<'_>], out: &mut Vec<u8>);
}

/// The Arrow type of a message's field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldType {
    Headers,
    Bool,
    Int8,
    Int64,
    /// A number of 63 bits that is never negative.
    Natural,
    Uint64,
    Text,
    Binary,
    /// 16 bytes, most significant first.
    Id,
}

/// What a field means, so that conversion finds its counterpart in another format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Headers,
    Payload,
    Key,
    Offset,
    Id,
    State,
    /// Milliseconds since the epoch.
    Millis,
    /// Microseconds since the epoch.
    Micros,
    /// Microseconds since the epoch, when the message was made.
    Origin,
    /// The message deletes its key, whether it has a value or not.
    Tombstone,
    /// The message has no value, and so deletes its key.
    Deletes,
    Magic,
    Attributes,
    /// Computed from the others, or of the batch: without a counterpart in another format.
    Derived,
}

/// A field of a message, as the table of formats lists it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    pub name: &'static str,
    pub of: FieldType,
    pub role: Role,
}

impl Field {
    pub const HEADERS: Field = Field { name: "headers", of: FieldType::Headers, role: Role::Headers };

    pub const fn new(name: &'static str, of: FieldType, role: Role) -> Field {
        Field { name, of, role }
    }
}

/// The value of a field other than the headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldValue<'a> {
    Null,
    Bool(bool),
    Int64(i64),
    Uint64(u64),
    Text(&'a str),
    Binary(&'a [u8]),
    Id([u8; 16]),
}

impl FieldValue<'_> {
    /// Bytes of a value that is bytes; 0 of any other.
    #[inline(always)]
    pub fn byte_len(&self) -> usize {
        match self {
            FieldValue::Binary(bytes) => bytes.len(),
            FieldValue::Id(id) => id.len(),
            _ => 0,
        }
    }
}

/// An opened message: where its headers are, and its other fields in the order of the table.
pub struct Opened<'a, F> {
    /// `None`: the message has no headers field.
    pub block: Option<Cursor<'a>>,
    pub fields: F,
}

/// The result of opening a message.
pub type Open<'a, E> = Result<Opened<'a, <E as Envelope>::Fields<'a>>>;

/// What a message is written from: its fields in the order of the table, without the headers, and the headers.
#[derive(Clone, Copy)]
pub struct Contents<'m> {
    pub fields: &'m [FieldValue<'m>],
    pub headers: &'m [Header<'m>],
}

/// Whether a sealed message is there at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sealed {
    Written,
    /// In the format, such a message is a null.
    Null,
}

/// A message format: headers and the fields around them. A format of headers alone is one without other fields.
pub trait Envelope: Sized + 'static {
    const NAME: &'static str;
    const IS: Is = Is::Envelope;
    /// Where the layout is specified; of messages of a batch, that of the batch is.
    const SOURCE: &'static str = "";
    /// The layout in one line.
    const LAYOUT: &'static str = "";
    /// The fields as a user meets them, the headers among them.
    const FIELDS: &'static [Field];

    type Block: Block;
    type Fields<'a>: AsRef<[FieldValue<'a>]>;

    /// Finds the headers and the fields of a serialized message. A format whose messages only occur in batches has none.
    fn open<'a, M: Mode>(_: Cursor<'a>, _: ReadOptions, mode: &mut M) -> Open<'a, Self> {
        Err(mode.hard(Code::BadMagic, None, || "messages of this format are read with their batch".into()))
    }

    /// Writes fields around a block. Nothing is written when it fails.
    fn seal<M: Mode>(_: Contents<'_>, mode: &mut M, _: &mut Vec<u8>) -> Result<Sealed> {
        Err(mode.hard(Code::NullField, None, || "messages of this format are read, not written".into()))
    }
}

/// A mode that remembers errors, so that they can be taken from it.
pub trait Noting: Mode {
    fn noted(&mut self) -> &mut Exact;

    /// Assigns errors to the next message of a batch from here on.
    fn begin_message(&mut self) {
        self.noted().messages += 1;
    }
}

impl Noting for Exact {
    fn noted(&mut self) -> &mut Exact {
        self
    }
}

impl Noting for Labelled {
    fn noted(&mut self) -> &mut Exact {
        &mut self.exact
    }
}

/// The bytes of a message that count against the limits: those of its fields and of its headers.
#[inline(always)]
pub fn message_len(fields: &[FieldValue<'_>], block: Option<Cursor<'_>>) -> usize {
    fields.iter().map(FieldValue::byte_len).sum::<usize>() + block.map_or(0, |block| block.remaining())
}

/// A receiver of the messages of a batch. The mode holds the errors of a message's frame when the message is handed over.
pub trait Messages<'a> {
    /// The same, of messages that live for another time.
    type Within<'b>: Messages<'b>;

    fn message<M: Noting>(&mut self, fields: &[FieldValue<'a>], block: Option<Cursor<'a>>, mode: &mut M) -> Result;

    /// A message that broke, in a frame that goes on after it: what is wrong is with the mode.
    fn unreadable<M: Noting>(&mut self, mode: &mut M) -> Result;

    /// Has messages handed over that lie in bytes of their own, which are gone when it returns.
    fn within<'b, R>(&mut self, bytes: &'b [u8], hand: impl FnOnce(&mut Self::Within<'b>) -> R) -> R;
}

/// The bytes of many messages.
pub trait Batch {
    const NAME: &'static str;
    /// Where the layout is specified.
    const SOURCE: &'static str;
    /// The layout in one line.
    const LAYOUT: &'static str;
    /// What one message is like: its fields and its block.
    type Message: Envelope;

    /// Hands over every message of a batch, in order; a hard error ends the batch.
    fn messages<'a, M: Noting, V: Messages<'a>>(
        cell: Cursor<'a>,
        options: ReadOptions,
        mode: &mut M,
        each: &mut V,
    ) -> Result;
}

/// What a format is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Is {
    Block,
    Envelope,
    Batch,
}

impl Is {
    pub fn name(self) -> &'static str {
        match self {
            Is::Block => "block",
            Is::Envelope => "message",
            Is::Batch => "batch",
        }
    }
}

/// Opens one message, unless it is too large.
#[inline]
pub fn open_cell<'a, E: Envelope, M: Mode>(cell: Cursor<'a>, options: ReadOptions, mode: &mut M) -> Open<'a, E> {
    options.limits.check_cell(cell.remaining(), mode)?;
    E::open(cell, options, mode)
}

/// Opens one message and walks its headers.
#[inline]
pub fn walk_cell<'a, E: Envelope, M: Mode, S: Sink<'a>>(
    cell: Cursor<'a>,
    options: ReadOptions,
    mode: &mut M,
    sink: &mut S,
) -> Result<Presence> {
    let opened = open_cell::<E, M>(cell, options, mode)?;
    sink.fields(opened.fields.as_ref());
    match opened.block {
        None => Ok(Presence::Absent),
        Some(cursor) => {
            E::Block::walk(cursor, options, mode, sink)?;
            Ok(Presence::Whole)
        }
    }
}

/// Hands over every message of one batch.
pub fn walk_batch<'a, B: Batch, M: Noting, V: Messages<'a>>(
    cell: Cursor<'a>,
    options: ReadOptions,
    mode: &mut M,
    each: &mut V,
) -> Result {
    if cell.remaining() > options.limits.message_bytes {
        // What is wrong with a cell is wrong with its first message.
        mode.begin_message();
    }
    options.limits.check_cell(cell.remaining(), mode)?;
    let walked = B::messages(cell, options, mode, each);
    if walked.is_err() && !mode.noted().over_limit {
        // A frame that breaks ends the walk without a call of `each`, and is a row like the messages before it.
        options.limits.check_message(0, mode.noted())?;
    }
    walked
}
