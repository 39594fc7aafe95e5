//! Traits of formats and sinks: a format parses the headers of a message into a sink, and an operation is a sink.
//!
//! ```text
//!   rows  ─parse─▶  header, header, …  ──▶  sink
//!   (a format's bytes, or a list column)      (a list, columns, bytes, a count)
//! ```
//!
//! A parser is written once and runs with the logs of [`crate::log`].

mod batch;

use std::cmp::Ordering;

use crate::cursor::Cursor;
use crate::error::Code;
use crate::header::{Header, KeyForm};
use crate::kernel::layout::{Layout, WireLayout};
use crate::limits::Limits;
use crate::log::{EitherLog, Log, OnLoss, Result};
use crate::memory;
use crate::type_option::TypeOption;
use crate::value::{ByteOrder, Checks};
use crate::value_type::TypeCodes;
use crate::varint;

pub use batch::{
    BatchFormat, FieldsOf, FramePosition, MessageFields, MessageReceiver, Receiver, message_len, parse_batch,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReadOptions {
    /// Accepts everything that Kafka's Java deserializers accept, even where they lose data.
    pub lenient: bool,
    /// Rejects type codes without a name in formats that allow them.
    pub strict_types: bool,
    /// Rejects keys other than text in formats with typed keys.
    pub text_keys: bool,
    pub limits: Limits,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WriteOptions {
    pub on_loss: OnLoss,
    /// Rule by which types are added to values or removed.
    pub types: TypeOption,
    /// Rejects a null list of headers, which is otherwise written as no headers.
    pub refuse_null_headers: bool,
    /// Writes headers in the order that the format defines.
    pub canonical: bool,
}

/// Limit on the encoded length of a message's headers, or on the total length of their values.
#[derive(Debug, Clone, Copy)]
pub enum WrittenLimit {
    Headers(usize),
    Values(usize),
}

impl WrittenLimit {
    /// Headers of up to this many bytes are always accepted.
    pub const fn max_bytes(self) -> usize {
        match self {
            WrittenLimit::Headers(max) | WrittenLimit::Values(max) => max,
        }
    }

    /// Rejects headers whose encoded length exceeds the limit. `values` returns the total length of their values.
    #[inline(always)]
    pub fn check(self, len: usize, values: impl FnOnce() -> usize) -> Result<(), String> {
        if len <= self.max_bytes() {
            return Ok(());
        }
        let (part, len) = match self {
            WrittenLimit::Headers(_) => ("headers", len),
            WrittenLimit::Values(_) => ("values", values()),
        };
        match len <= self.max_bytes() {
            true => Ok(()),
            false => Err(format!("the {part} take {len} bytes, more than {}", self.max_bytes())),
        }
    }
}

/// A receiver of the headers of a message.
pub trait Sink<'a> {
    #[inline]
    fn header<R: Log>(&mut self, _header: Header<'a>, _log: &mut R) -> Result {
        Ok(())
    }

    /// Receives the other fields of the message, in the order of the format's table, before any header.
    fn fields(&mut self, _fields: &[FieldValue<'a>]) {}
}

/// A sink that discards headers, for parses that only validate.
pub struct Discard;

impl Sink<'_> for Discard {}

/// The headers and fields of a message, in the order in which they were parsed.
#[derive(Default)]
pub struct GatheredMessage<'a> {
    pub headers: Vec<Header<'a>>,
    pub fields: Vec<FieldValue<'a>>,
}

impl GatheredMessage<'_> {
    pub fn clear(&mut self) {
        self.headers.clear();
        self.fields.clear();
    }
}

impl<'a> Sink<'a> for GatheredMessage<'a> {
    #[inline]
    fn header<R: Log>(&mut self, header: Header<'a>, _log: &mut R) -> Result {
        memory::push(&mut self.headers, header);
        Ok(())
    }

    fn fields(&mut self, fields: &[FieldValue<'a>]) {
        self.fields.extend_from_slice(fields);
    }
}

/// Sink called through a trait object, so that a parser is compiled once for each format, instead of for each pair of a
/// format and a sink.
pub struct AnySink<'r, 'a>(pub &'r mut dyn Receive<'a>);

/// [`Sink`] without generic functions.
pub trait Receive<'a> {
    fn receive(&mut self, header: Header<'a>, log: EitherLog<'_>) -> Result;

    fn receive_fields(&mut self, fields: &[FieldValue<'a>]);
}

impl<'a, S: Sink<'a>> Receive<'a> for S {
    fn receive(&mut self, header: Header<'a>, log: EitherLog<'_>) -> Result {
        match log {
            EitherLog::FailFast(log) => self.header(header, log),
            EitherLog::Collect(log) => self.header(header, log),
        }
    }

    fn receive_fields(&mut self, fields: &[FieldValue<'a>]) {
        self.fields(fields);
    }
}

impl<'a> Sink<'a> for AnySink<'_, 'a> {
    fn header<R: Log>(&mut self, header: Header<'a>, log: &mut R) -> Result {
        self.0.receive(header, log.either())
    }

    fn fields(&mut self, fields: &[FieldValue<'a>]) {
        self.0.receive_fields(fields);
    }
}

/// The state of the headers at the end of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// All headers, possibly none, were passed to the sink.
    Whole,
    /// The message has no headers field.
    Absent,
    /// At least one header was unreadable and dropped; the parse reached the end.
    Damaged,
    /// The headers could not be read to the end.
    Broken,
}

/// Constraints on the headers that a format can hold. Data that violates them is reported as a loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Constraints {
    pub nulls: bool,
    /// Minimum and maximum length of a key, and of a value.
    pub part_len: (usize, usize),
    /// How strictly the format validates typed values.
    pub checks: Checks,
}

impl Constraints {
    /// Whether a key or value may have this length.
    #[inline]
    pub fn fits(self, len: usize) -> bool {
        (self.part_len.0..=self.part_len.1).contains(&len)
    }

    /// No constraints, except that lengths fit 31 bits.
    pub const ALL: Constraints = Constraints { nulls: true, part_len: (0, i32::MAX as usize), checks: Checks::Nothing };
}

/// An order of headers.
pub type HeaderOrder = fn(&Header<'_>, &Header<'_>) -> Ordering;

/// The bytes of all headers of one message.
pub trait HeadersFormat: 'static {
    const NAME: &'static str;
    /// The specification of the layout.
    const SOURCE: &'static str;
    /// The layout in one line.
    const LAYOUT: &'static str;
    const KEYS: KeyForm;
    /// The type codes of values.
    const TYPES: TypeCodes;
    /// The byte order of typed numbers.
    const ORDER: ByteOrder;
    const CONSTRAINTS: Constraints;
    /// Whether the format can be written; false for readers of several layouts.
    const IS_TARGET: bool = true;
    /// Order of headers, if the format defines one.
    const CANONICAL: Option<HeaderOrder> = None;

    /// Layout that the kernels read and write; [`crate::kernel::layout::NoKernels`] for formats without kernels.
    type Layout: WireLayout;

    const MAX_WRITTEN: WrittenLimit = WrittenLimit::Headers(i32::MAX as usize);

    /// Passes every header between the cursor and its end to the sink.
    fn parse<'a, R: Log, S: Sink<'a>>(cursor: Cursor<'a>, options: ReadOptions, log: &mut R, sink: &mut S) -> Result;

    /// Returns the encoded length of these headers; rejects a total that `parse` would reject.
    ///
    /// [`crate::op::write::Writer`] passes only headers that the format supports: keys in its form, values within
    /// `CONSTRAINTS`, and typed values as big-endian bytes.
    fn encoded_len<R: Log>(headers: &[Header<'_>], log: &mut R) -> Result<usize>;

    /// Writes headers that `encoded_len` accepted.
    fn encode_into(headers: &[Header<'_>], out: &mut Vec<u8>) {
        if Self::Layout::MAX_COUNT > 0 && !headers.is_empty() {
            varint::write_count(headers.len(), out);
        }
        headers.iter().for_each(|header| Self::write_header(header, out));
    }

    /// Writes a header that `encoded_len` accepted.
    fn write_header(header: &Header<'_>, out: &mut Vec<u8>);
}

/// The Arrow type of a message's field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldType {
    Headers,
    Bool,
    Int8,
    Int64,
    /// Non-negative number of 63 bits.
    Natural,
    Uint64,
    Text,
    Binary,
    /// 16 bytes, most significant first.
    Id,
}

/// Meaning of a field. Conversion matches fields of two formats by their meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Headers,
    Value,
    Key,
    Offset,
    Id,
    State,
    /// Milliseconds since the epoch.
    Millis,
    /// Microseconds since the epoch.
    Micros,
    /// Creation time of the message in microseconds since the epoch.
    Origin,
    /// Value in a state store. A null is written as no bytes, and deletes the key.
    StoredValue,
    /// The message deletes its key, whether it has a value or not.
    Tombstone,
    /// The message has no value, and so deletes its key.
    Deletes,
    Magic,
    Attributes,
    /// Field that is computed from others or belongs to the batch, without a counterpart in another format.
    Derived,
}

impl Role {
    pub fn is_value(self) -> bool {
        matches!(self, Role::Value | Role::StoredValue)
    }
}

/// Field of a message, as listed in the table of formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    pub name: &'static str,
    pub field_type: FieldType,
    pub role: Role,
}

impl Field {
    pub const HEADERS: Field = Field { name: "headers", field_type: FieldType::Headers, role: Role::Headers };

    pub const fn new(name: &'static str, field_type: FieldType, role: Role) -> Field {
        Field { name, field_type, role }
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
    /// Number of bytes of a binary value or an id; 0 for other values.
    #[inline(always)]
    pub fn byte_len(&self) -> usize {
        match self {
            FieldValue::Binary(bytes) => bytes.len(),
            FieldValue::Id(id) => id.len(),
            _ => 0,
        }
    }
}

/// An opened message: a cursor over its headers, and its other fields in the order of the table.
pub struct Opened<'a, F> {
    /// `None` if the message has no headers field.
    pub headers: Option<Cursor<'a>>,
    pub fields: F,
}

pub type Open<'a, E> = Result<Opened<'a, <E as MessageFormat>::Fields<'a>>>;

/// A message to write: its fields in the order of the table, without the headers, and the headers.
#[derive(Clone, Copy)]
pub struct Contents<'m> {
    pub fields: &'m [FieldValue<'m>],
    pub headers: &'m [Header<'m>],
    /// False for a null list of headers, which differs from an empty list.
    pub has_headers_field: bool,
}

/// Whether a message was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoded {
    Message,
    /// The format writes this message as a null.
    Null,
}

/// Layout of the headers of a message format.
pub type LayoutOf<E> = <<E as MessageFormat>::Headers as HeadersFormat>::Layout;

/// The row of a format in the table.
#[derive(Debug, Clone, Copy)]
pub struct Info {
    pub name: &'static str,
    pub class: Class,
    pub source: &'static str,
    pub layout: &'static str,
    pub fields: &'static [Field],
    pub keys: KeyForm,
    pub types: TypeCodes,
    pub order: ByteOrder,
    pub constraints: Constraints,
    /// Whether `encode` and `convert` can write it.
    pub is_target: bool,
    /// The order of headers, if the format defines one.
    pub canonical: Option<HeaderOrder>,
    pub max_written: WrittenLimit,
    /// Layout of headers, which selects the kernels.
    pub wire_layout: Layout,
    /// [`HeadersFormat::parse`].
    pub parse_headers: for<'a> fn(Cursor<'a>, ReadOptions, EitherLog<'_>, AnySink<'_, 'a>) -> Result,
    /// [`parse_message`].
    pub parse: for<'a> fn(Cursor<'a>, ReadOptions, EitherLog<'_>, AnySink<'_, 'a>) -> Result<Presence>,
    /// [`HeadersFormat::write_header`].
    pub write_header: fn(&Header<'_>, &mut Vec<u8>),
    /// [`MessageFormat::encode`].
    pub encode: fn(Contents<'_>, EitherLog<'_>, &mut Vec<u8>) -> Result<Encoded>,
}

impl Info {
    /// Appends a message. Nothing is written on failure.
    pub fn encode<R: Log>(&self, contents: Contents<'_>, log: &mut R, out: &mut Vec<u8>) -> Result<Encoded> {
        (self.encode)(contents, log.either(), out)
    }
}

/// Message format: headers and the fields around them. A headers format is one without other fields.
pub trait MessageFormat: Sized + 'static {
    const NAME: &'static str;
    const CLASS: Class = Class::Message;
    /// The specification of the layout. Messages of a batch name the specification of the batch.
    const SOURCE: &'static str = "";
    /// The layout in one line.
    const LAYOUT: &'static str = "";
    /// The public fields, including the headers.
    const FIELDS: &'static [Field];
    /// Whether a field is text.
    const HAS_TEXT: bool = {
        let (mut index, mut has_text) = (0, false);
        while index < Self::FIELDS.len() {
            has_text |= matches!(Self::FIELDS[index].field_type, FieldType::Text);
            index += 1;
        }
        has_text
    };

    type Headers: HeadersFormat;
    type Fields<'a>: AsRef<[FieldValue<'a>]>;

    /// The format as a value.
    const INFO: Info = Info {
        name: Self::NAME,
        class: Self::CLASS,
        source: Self::SOURCE,
        layout: Self::LAYOUT,
        fields: Self::FIELDS,
        keys: Self::Headers::KEYS,
        types: Self::Headers::TYPES,
        order: Self::Headers::ORDER,
        constraints: Self::Headers::CONSTRAINTS,
        is_target: Self::Headers::IS_TARGET,
        canonical: Self::Headers::CANONICAL,
        max_written: Self::Headers::MAX_WRITTEN,
        wire_layout: LayoutOf::<Self>::LAYOUT,
        parse_headers: parse_any_headers::<Self::Headers>,
        parse: parse_any_message::<Self>,
        write_header: Self::Headers::write_header,
        encode: |contents, log, out| match log {
            EitherLog::FailFast(log) => Self::encode(contents, log, out),
            EitherLog::Collect(log) => Self::encode(contents, log, out),
        },
    };

    /// Finds the headers and the fields of a serialized message. Fails for formats whose messages occur only in
    /// batches.
    fn open<'a, R: Log>(_: Cursor<'a>, _: ReadOptions, log: &mut R) -> Open<'a, Self> {
        Err(log.fatal(Code::BadMagic, None, || "messages of this format are read with their batch".into()))
    }

    /// Writes fields and headers. Nothing is written on failure.
    fn encode<R: Log>(_: Contents<'_>, log: &mut R, _: &mut Vec<u8>) -> Result<Encoded> {
        Err(log.fatal(Code::NullField, None, || "messages of this format are read, not written".into()))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    Headers,
    Message,
    Batch,
}

impl Class {
    pub fn name(self) -> &'static str {
        match self {
            Class::Headers => "headers",
            Class::Message => "message",
            Class::Batch => "batch",
        }
    }
}

/// Opens one message, unless it is too large. Inlined, because passing the address of the cursor would keep the cursor
/// in memory instead of registers.
#[inline(always)]
pub fn open_checked<'a, E: MessageFormat, R: Log>(data: Cursor<'a>, options: ReadOptions, log: &mut R) -> Open<'a, E> {
    options.limits.check_message_bytes(data.remaining(), log)?;
    E::open(data, options, log)
}

/// Opens one message and parses its headers.
#[inline]
pub fn parse_message<'a, E: MessageFormat, R: Log, S: Sink<'a>>(
    data: Cursor<'a>,
    options: ReadOptions,
    log: &mut R,
    sink: &mut S,
) -> Result<Presence> {
    let opened = open_checked::<E, R>(data, options, log)?;
    sink.fields(opened.fields.as_ref());
    match opened.headers {
        None => Ok(Presence::Absent),
        Some(cursor) => {
            E::Headers::parse(cursor, options, log, sink)?;
            Ok(Presence::Whole)
        }
    }
}

/// [`HeadersFormat::parse`] for any log and sink, as one function that callers reach by a pointer instead of compiling
/// a copy each.
#[inline(never)]
fn parse_any_headers<'a, H: HeadersFormat>(
    data: Cursor<'a>,
    options: ReadOptions,
    log: EitherLog<'_>,
    mut to: AnySink<'_, 'a>,
) -> Result {
    match log {
        EitherLog::FailFast(log) => H::parse(data, options, log, &mut to),
        EitherLog::Collect(log) => H::parse(data, options, log, &mut to),
    }
}

/// Calls [`parse_message`] with either log, like `parse_any_headers`.
#[inline(never)]
fn parse_any_message<'a, E: MessageFormat>(
    data: Cursor<'a>,
    options: ReadOptions,
    log: EitherLog<'_>,
    mut to: AnySink<'_, 'a>,
) -> Result<Presence> {
    match log {
        EitherLog::FailFast(log) => parse_message::<E, _, _>(data, options, log, &mut to),
        EitherLog::Collect(log) => parse_message::<E, _, _>(data, options, log, &mut to),
    }
}
