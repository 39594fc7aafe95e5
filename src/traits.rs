//! Traits of formats. A format parses the headers of a message into a sink, and an operation is a sink.
//!
//! ```text
//!   rows  ─parse─▶  header, header, …  ──▶  sink
//!   (a format's bytes, or a list column)      (a list, columns, bytes, a count)
//! ```
//!
//! A parser is written once and runs with the logs of [`crate::log`].

mod batch;

use crate::cursor::Cursor;
use crate::error::Code;
use crate::field::{Field, FieldType, FieldValue};
use crate::format_info::{Class, Constraints, Contents, Encoded, FormatInfo, HeaderOrder, WrittenLimit};
use crate::header::{Header, KeyForm};
use crate::kernel::layout::WireLayout;
use crate::log::{EitherLog, Log, Result};
use crate::options::ReadOptions;
use crate::sink::{AnySink, Presence, Sink};
use crate::value::ByteOrder;
use crate::value_type::TypeCodes;
use crate::varint;

pub use batch::{
    BatchFormat, FieldsOf, FramePosition, MessageFields, MessageReceiver, Receiver, message_len, parse_batch,
};

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

/// An opened message: a cursor over its headers, and its other fields in the order of the table.
pub struct Opened<'a, F> {
    /// `None` if the message has no headers field.
    pub headers: Option<Cursor<'a>>,
    pub fields: F,
}

pub type Open<'a, E> = Result<Opened<'a, <E as MessageFormat>::Fields<'a>>>;

/// Layout of the headers of a message format.
pub type LayoutOf<E> = <<E as MessageFormat>::Headers as HeadersFormat>::Layout;

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
    const INFO: FormatInfo = FormatInfo {
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
