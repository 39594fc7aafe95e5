//! The mechanism: a format walks its headers into a sink; an operation is a sink.
//!
//! ```text
//!   rows  ──walk──▶  header, header, …  ──▶  sink
//!   (a format's bytes, or a list column)      (a list, columns, bytes, a count)
//! ```
//!
//! A walk is written once and runs in the modes of [`crate::mode`].

use crate::cursor::Cursor;
use crate::header::{Header, KeyForm};
use crate::mode::{Mode, OnLoss, Stop};
use crate::value::{ByteOrder, Spelling};

/// What a reader may be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReadOptions {
    /// Read what Kafka's Java deserializers read, even where that loses data.
    pub lenient: bool,
}

/// What a writer may be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WriteOptions {
    pub on_loss: OnLoss,
    /// How a typed value is written into a format without kinds.
    pub kinds: Option<Spelling>,
    /// Refuse a null list of headers instead of writing it as none.
    pub refuse_null_headers: bool,
}

/// What takes the headers of a message.
pub trait Sink<'a> {
    fn header<M: Mode>(&mut self, header: Header<'a>, mode: &mut M) -> Result<(), Stop>;

    /// The fields of the envelope, in the order of its table; before any header.
    fn fields(&mut self, _fields: &[FieldValue<'a>]) {}
}

/// Takes headers and keeps nothing: what is wanted is the walk.
pub struct Discard;

impl<'a> Sink<'a> for Discard {
    #[inline]
    fn header<M: Mode>(&mut self, _header: Header<'a>, _mode: &mut M) -> Result<(), Stop> {
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

/// The bytes of all headers of one message.
pub trait Block {
    const NAME: &'static str;
    /// Where the layout is specified.
    const SOURCE: &'static str;
    /// The layout in one line.
    const LAYOUT: &'static str;
    const KEYS: KeyForm;
    /// Values carry a kind.
    const KINDS: bool;
    /// The order of the bytes of a number that has a kind.
    const ORDER: ByteOrder;

    /// Hands every header between the cursor and its end to the sink.
    fn walk<'a, M: Mode, S: Sink<'a>>(
        cursor: Cursor<'a>,
        options: ReadOptions,
        mode: &mut M,
        sink: &mut S,
    ) -> Result<(), Stop>;

    /// The length of these headers when written; refuses what `walk` would reject.
    fn encoded_len<M: Mode>(headers: &[Header<'_>], mode: &mut M) -> Result<usize, Stop>;

    /// Writes headers that `encoded_len` accepted.
    fn encode_into(headers: &[Header<'_>], out: &mut Vec<u8>);
}

/// The Arrow type of an envelope's field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldType {
    Headers,
    Int64,
    Binary,
}

/// A field of an envelope as the table of formats states it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    pub name: &'static str,
    pub of: FieldType,
}

/// The value of a field other than the headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldValue<'a> {
    Null,
    Int64(i64),
    Binary(&'a [u8]),
}

/// An opened envelope: where its headers are, and its other fields in the order of the table.
pub struct Opened<'a, F> {
    /// `None`: the message has no headers field.
    pub block: Option<Cursor<'a>>,
    pub fields: F,
}

/// Whether a sealed message is there at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sealed {
    Written,
    /// The format says so by having no cell.
    Null,
}

/// The bytes of one message: a block and the fields around it. A block alone is the envelope without fields.
pub trait Envelope {
    const NAME: &'static str;
    const IS: Is;
    /// Where the layout is specified.
    const SOURCE: &'static str;
    /// The layout in one line.
    const LAYOUT: &'static str;
    /// The fields as a user meets them, the headers among them.
    const FIELDS: &'static [Field];

    type Block: Block;
    type Fields<'a>: AsRef<[FieldValue<'a>]>;

    /// Finds the block and the fields of a cell.
    fn open<'a, M: Mode>(
        cell: &'a [u8],
        options: ReadOptions,
        mode: &mut M,
    ) -> Result<Opened<'a, Self::Fields<'a>>, Stop>;

    /// Writes fields around a block. Nothing is written when it fails.
    fn seal<M: Mode>(
        fields: &[FieldValue<'_>],
        headers: &[Header<'_>],
        mode: &mut M,
        out: &mut Vec<u8>,
    ) -> Result<Sealed, Stop>;
}

/// What a format is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Is {
    Block,
    Envelope,
}

/// Opens one cell and walks its block.
#[inline]
pub fn walk_cell<'a, E: Envelope, M: Mode, S: Sink<'a>>(
    cell: &'a [u8],
    options: ReadOptions,
    mode: &mut M,
    sink: &mut S,
) -> Result<Presence, Stop> {
    let opened = E::open(cell, options, mode)?;
    sink.fields(opened.fields.as_ref());
    match opened.block {
        None => Ok(Presence::Absent),
        Some(cursor) => {
            E::Block::walk(cursor, options, mode, sink)?;
            Ok(Presence::Whole)
        }
    }
}
