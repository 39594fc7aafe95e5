//! The mechanism: a format walks its headers into a sink; an operation is a sink.
//!
//! ```text
//!   rows  ──walk──▶  header, header, …  ──▶  sink
//!   (a format's bytes, or a list column)      (a list, columns, bytes, a count)
//! ```
//!
//! A walk is written once and run in two modes. [`Fast`] says only good or bad. A row that fails it is rolled back in
//! the sink and walked again by [`Exact`], which alone makes faults: their code, byte, header and key. A third mode,
//! [`Labelled`], also names every byte. All three are monomorphised, so the fast one carries no trace of the others.

use std::borrow::Cow;

use crate::cursor::Cursor;
use crate::error::{Code, Fault};
use crate::kind::Kind;
use crate::value::{ByteOrder, Spelling};

/// A walk has to end here. What was wrong is with the mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stop;

/// What a reader may be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReadOptions {
    /// Read what Kafka's Java deserializers read, even where that loses data.
    pub lenient: bool,
}

/// What a writer does with what its format cannot carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnLoss {
    #[default]
    Raise,
    Drop,
    Report,
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

/// The key of a header, in the three forms that formats have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Key<'a> {
    Text(Cow<'a, str>),
    Int(i32),
    Typed(Kind, &'a [u8]),
}

/// Which form the keys of a format have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyForm {
    Text,
    Int,
    Typed,
}

/// One header as a walk hands it over: its place among its fellows, and where its value begins in the cell, for faults
/// that a sink finds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header<'a> {
    pub index: usize,
    pub key: Key<'a>,
    pub kind: Option<Kind>,
    pub value: Option<&'a [u8]>,
    pub at: Option<usize>,
}

/// How closely a walk looks. Formats and sinks report through it and never build a message that nobody reads.
pub trait Mode {
    /// Ends the walk: what follows cannot be found.
    fn hard(&mut self, code: Code, byte: Option<usize>, message: impl FnOnce() -> String) -> Stop;

    /// Notes a fault that leaves the rest readable; the fast mode stops all the same.
    fn soft(&mut self, code: Code, byte: Option<usize>, message: impl FnOnce() -> String) -> Result<(), Stop>;

    /// As `soft`, for a fault that belongs to an output column rather than to the place of the walk.
    fn column(&mut self, fault: impl FnOnce() -> Fault) -> Result<(), Stop>;

    /// Notes something the target cannot carry.
    fn loss(&mut self, loss: impl FnOnce() -> Fault) -> Result<(), Stop>;

    /// Says which header faults belong to from here on; `None` after the last.
    fn enter_header(&mut self, _index: Option<usize>) {}

    /// Names the key of the header entered.
    fn name_header(&mut self, _key: &Key<'_>) {}

    /// Names bytes of the cell.
    fn label(&mut self, _start: usize, _end: usize, _field: &'static str, _text: impl FnOnce() -> String) {}
}

/// Good or bad, nothing else.
pub struct Fast {
    pub on_loss: OnLoss,
}

impl Mode for Fast {
    #[inline]
    fn hard(&mut self, _: Code, _: Option<usize>, _: impl FnOnce() -> String) -> Stop {
        Stop
    }

    #[inline]
    fn soft(&mut self, _: Code, _: Option<usize>, _: impl FnOnce() -> String) -> Result<(), Stop> {
        Err(Stop)
    }

    #[inline]
    fn column(&mut self, _: impl FnOnce() -> Fault) -> Result<(), Stop> {
        Err(Stop)
    }

    #[inline]
    fn loss(&mut self, _: impl FnOnce() -> Fault) -> Result<(), Stop> {
        match self.on_loss {
            OnLoss::Drop => Ok(()),
            OnLoss::Raise | OnLoss::Report => Err(Stop),
        }
    }
}

/// Every fault with its place.
#[derive(Debug, Default)]
pub struct Exact {
    pub on_loss: OnLoss,
    pub faults: Vec<Fault>,
    pub losses: Vec<Fault>,
    /// The structure broke: what comes after the break was not read.
    pub broken: bool,
    header: Option<usize>,
    key: Option<String>,
}

impl Exact {
    pub fn new(on_loss: OnLoss) -> Self {
        Exact { on_loss, ..Exact::default() }
    }

    fn note(&mut self, code: Code, byte: Option<usize>, message: String) {
        let (header, key) = (self.header, self.key.clone());
        self.faults.push(Fault { code, message, byte, header, key, column: None });
    }
}

impl Mode for Exact {
    #[cold]
    fn hard(&mut self, code: Code, byte: Option<usize>, message: impl FnOnce() -> String) -> Stop {
        self.note(code, byte, message());
        self.broken = true;
        Stop
    }

    #[cold]
    fn soft(&mut self, code: Code, byte: Option<usize>, message: impl FnOnce() -> String) -> Result<(), Stop> {
        self.note(code, byte, message());
        Ok(())
    }

    #[cold]
    fn column(&mut self, fault: impl FnOnce() -> Fault) -> Result<(), Stop> {
        self.faults.push(fault());
        Ok(())
    }

    #[cold]
    fn loss(&mut self, loss: impl FnOnce() -> Fault) -> Result<(), Stop> {
        match self.on_loss {
            OnLoss::Drop => {}
            OnLoss::Raise | OnLoss::Report => self.losses.push(loss()),
        }
        Ok(())
    }

    fn enter_header(&mut self, index: Option<usize>) {
        self.header = index;
        self.key = None;
    }

    fn name_header(&mut self, key: &Key<'_>) {
        self.key = Some(key.to_string());
    }
}

/// Bytes of a cell and the field they belong to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    pub start: usize,
    pub end: usize,
    pub field: &'static str,
    pub header: Option<usize>,
    pub text: String,
}

/// [`Exact`], which also remembers what every byte is.
#[derive(Debug, Default)]
pub struct Labelled {
    pub exact: Exact,
    pub labels: Vec<Label>,
}

impl Mode for Labelled {
    fn hard(&mut self, code: Code, byte: Option<usize>, message: impl FnOnce() -> String) -> Stop {
        self.exact.hard(code, byte, message)
    }

    fn soft(&mut self, code: Code, byte: Option<usize>, message: impl FnOnce() -> String) -> Result<(), Stop> {
        self.exact.soft(code, byte, message)
    }

    fn column(&mut self, fault: impl FnOnce() -> Fault) -> Result<(), Stop> {
        self.exact.column(fault)
    }

    fn loss(&mut self, loss: impl FnOnce() -> Fault) -> Result<(), Stop> {
        self.exact.loss(loss)
    }

    fn enter_header(&mut self, index: Option<usize>) {
        self.exact.enter_header(index);
    }

    fn name_header(&mut self, key: &Key<'_>) {
        self.exact.name_header(key);
    }

    fn label(&mut self, start: usize, end: usize, field: &'static str, text: impl FnOnce() -> String) {
        let header = self.exact.header;
        self.labels.push(Label { start, end, field, header, text: text() });
    }
}

impl std::fmt::Display for Key<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Key::Text(text) => out.write_str(text),
            Key::Int(number) => write!(out, "{number}"),
            Key::Typed(kind, bytes) => write!(out, "{}", kind.show(bytes)),
        }
    }
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
