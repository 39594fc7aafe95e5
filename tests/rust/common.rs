//! Messages that own their data, and operations on one value of a format.
#![allow(dead_code)] // Each test uses only some of these functions.

use letterhead::cursor::Cursor;
use letterhead::error::{Error, ErrorDetail};
use letterhead::field::{Field, FieldType, FieldValue};
use letterhead::format::{Format, Visitor};
use letterhead::header::{Header, Key, TypedKey};
use letterhead::limits::Limits;
use letterhead::log::CollectErrors;
use letterhead::op::inspect::{Inspect, ParseHeaders};
use letterhead::op::messages::{Bookmark, MessageHeaders, ReadMessages};
use letterhead::op::values::ParseMessage;
use letterhead::op::write::EncodeMessage;
use letterhead::options::{ReadOptions, WriteOptions};
use letterhead::sink::{GatheredMessage, Presence};
use letterhead::traits::{BatchFormat, HeadersFormat, MessageFormat, Receiver, parse_batch};
use letterhead::value::{ByteOrder, bits_of};
use letterhead::value_type::{Scalar, ValueType};

pub const STRICT: ReadOptions =
    ReadOptions { lenient: false, strict_types: false, text_keys: false, limits: Limits::DEFAULT };
pub const LENIENT: ReadOptions = ReadOptions { lenient: true, ..STRICT };
pub const STRICT_KINDS: ReadOptions = ReadOptions { strict_types: true, ..STRICT };

/// A key. A typed string that is UTF-8 becomes `Text`, and a typed int32 becomes `Int`, because these are equal keys. A
/// test may pass either form to a writer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HeldKey {
    Text(String),
    Int(i32),
    Typed(ValueType, Vec<u8>),
}

impl From<&str> for HeldKey {
    fn from(text: &str) -> HeldKey {
        HeldKey::Text(text.into())
    }
}

impl From<&Key<'_>> for HeldKey {
    fn from(key: &Key<'_>) -> HeldKey {
        match key {
            Key::Text(text) => {
                HeldKey::Text(String::from_utf8(text.as_bytes().to_vec()).expect("it was seen to be UTF-8"))
            }
            Key::Int(number) => HeldKey::Int(*number),
            Key::Typed(key) => HeldKey::typed(key.value_type, &key.bits()),
        }
    }
}

impl HeldKey {
    /// Returns the form of a typed key that tests compare.
    pub fn typed(value_type: ValueType, bits: &[u8]) -> HeldKey {
        match (value_type, std::str::from_utf8(bits), <[u8; 4]>::try_from(bits)) {
            (ValueType::Named(Scalar::String), Ok(text), _) => HeldKey::Text(text.into()),
            (ValueType::Named(Scalar::Int32), _, Ok(number)) => HeldKey::Int(i32::from_be_bytes(number)),
            _ => HeldKey::Typed(value_type, bits.to_vec()),
        }
    }

    fn lend(&self) -> Key<'_> {
        match self {
            HeldKey::Text(text) => Key::from(text.as_str()),
            HeldKey::Int(number) => Key::Int(*number),
            HeldKey::Typed(value_type, bits) => Key::Typed(TypedKey::new(*value_type, bits, ByteOrder::Big)),
        }
    }
}

/// A header. The bytes of a typed value are big-endian.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    pub key: HeldKey,
    pub value_type: Option<ValueType>,
    pub value: Option<Vec<u8>>,
}

impl Head {
    /// Copies a parsed header, whose typed value has this byte order.
    fn of(header: &Header<'_>, order: ByteOrder) -> Head {
        let bits = |value| match header.value_type {
            Some(value_type) => bits_of(value_type, value, order).into_owned(),
            None => value.to_vec(),
        };
        Head { key: HeldKey::from(&header.key), value_type: header.value_type, value: header.value.map(bits) }
    }

    fn lend(&self, index: usize) -> Header<'_> {
        Header {
            index,
            key: self.key.lend(),
            value_type: self.value_type,
            value: self.value.as_deref(),
            value_offset: None,
        }
    }
}

fn lend(heads: &[Head]) -> Vec<Header<'_>> {
    heads.iter().enumerate().map(|(index, head)| head.lend(index)).collect()
}

/// The value of a field other than the headers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Held {
    Null,
    Bool(bool),
    Number(i128),
    Text(String),
    Bytes(Vec<u8>),
}

impl From<&FieldValue<'_>> for Held {
    fn from(value: &FieldValue<'_>) -> Held {
        match value {
            FieldValue::Null => Held::Null,
            FieldValue::Bool(flag) => Held::Bool(*flag),
            FieldValue::Int64(number) => Held::Number((*number).into()),
            FieldValue::Uint64(number) => Held::Number((*number).into()),
            FieldValue::Text(text) => Held::Text((*text).into()),
            FieldValue::Binary(bytes) => Held::Bytes(bytes.to_vec()),
            FieldValue::Id(id) => Held::Bytes(id.to_vec()),
        }
    }
}

impl Held {
    fn lend(&self, of: FieldType) -> FieldValue<'_> {
        match self {
            Held::Null => FieldValue::Null,
            Held::Bool(flag) => FieldValue::Bool(*flag),
            Held::Number(number) if of == FieldType::Uint64 => FieldValue::Uint64(*number as u64),
            Held::Number(number) => FieldValue::Int64(*number as i64),
            Held::Text(text) => FieldValue::Text(text),
            Held::Bytes(bytes) => FieldValue::Binary(bytes),
        }
    }
}

/// A message; `headers` is `None` if it has no headers field. `fields` are in the order of the table, without the
/// headers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    pub headers: Option<Vec<Head>>,
    pub fields: Vec<Held>,
}

impl Message {
    /// Creates a message of a headers format.
    pub fn block(headers: Vec<Head>) -> Message {
        Message { headers: Some(headers), fields: vec![] }
    }

    /// The headers; none if there is no headers field.
    pub fn heads(&self) -> &[Head] {
        self.headers.as_deref().unwrap_or_default()
    }
}

/// The fields of a format's messages, without the headers.
pub fn other_fields(format: Format) -> impl Iterator<Item = &'static Field> {
    format.info().fields.iter().filter(|field| field.field_type != FieldType::Headers)
}

/// Returns every message of a value, or the first error. A value that is not a batch has one message.
pub fn read(format: Format, serialized: &[u8], options: ReadOptions) -> Result<Vec<Message>, ErrorDetail> {
    match format.visit(Read(serialized, options)) {
        Ok(messages) => Ok(messages),
        Err(Error::Headers(_, located)) => {
            assert_eq!((located.format, located.row), (format.info().name, None));
            Err(located.error)
        }
        Err(other) => panic!("{other}"),
    }
}

struct Read<'a>(&'a [u8], ReadOptions);

impl Visitor for Read<'_> {
    type Out = Result<Vec<Message>, Error>;

    fn visit<E: MessageFormat>(self) -> Self::Out {
        let read = ParseMessage { data: self.0, options: self.1, fresh: GatheredMessage::default };
        let (message, presence) = read.visit::<E>()?;
        let headers = (presence != Presence::Absent).then_some(&message.headers[..]);
        Ok(vec![taken(headers, &message.fields, E::Headers::ORDER)])
    }

    fn visit_batch<B: BatchFormat>(self) -> Self::Out {
        let (mut messages, mut bookmark) = (Vec::new(), Bookmark::default());
        let mut receive = |headers: Option<MessageHeaders<'_>>, fields: &[FieldValue<'_>]| {
            let headers = headers.map(|headers| match headers {
                MessageHeaders::Parsed(headers) => headers,
                MessageHeaders::Bytes(_) => unreachable!("headers are parsed"),
            });
            messages.push(taken(headers, fields, <B::Message as MessageFormat>::Headers::ORDER));
            // Reading stops after every other message of a batch and then resumes.
            messages.len() % 2 == 0
        };
        loop {
            let Read(data, options) = self;
            let (receive, bookmark) = (&mut receive, &mut bookmark);
            if !(ReadMessages { data, options, parse_headers: true, bookmark, receive }).visit_batch::<B>()? {
                break;
            }
        }
        Ok(messages)
    }
}

fn taken(headers: Option<&[Header<'_>]>, fields: &[FieldValue<'_>], order: ByteOrder) -> Message {
    let head = |header| Head::of(header, order);
    Message {
        headers: headers.map(|headers| headers.iter().map(head).collect()),
        fields: fields.iter().map(Held::from).collect(),
    }
}

/// All errors of a value.
pub fn errors(format: Format, serialized: &[u8], options: ReadOptions) -> Vec<ErrorDetail> {
    format.visit(Inspect { data: serialized, options }).errors
}

/// Writes a message; `None` if the format writes no bytes for it.
pub fn write(format: Format, message: &Message, options: WriteOptions) -> Result<Option<Vec<u8>>, ErrorDetail> {
    let headers = message.headers.as_deref().map(lend);
    let fields =
        message.fields.iter().zip(other_fields(format)).map(|(held, field)| held.lend(field.field_type)).collect();
    match (EncodeMessage { headers, fields, options }).encode(format.info()) {
        Ok(serialized) => Ok(serialized),
        Err(Error::Headers(_, located)) => Err(located.error),
        Err(other) => panic!("{other}"),
    }
}

/// Errors of a batch, collected without labels and with labels.
pub fn batch_errors<B: BatchFormat>(batch: &[u8], options: ReadOptions) -> [Vec<ErrorDetail>; 2] {
    let (mut exact, mut labelled) = (CollectErrors::default(), CollectErrors::with_labels(Limits::DEFAULT.reports));
    let mut receiver = ParseHeaders::<B>::new(options);
    let _ = parse_batch::<B, _>(Cursor::new(batch), options, &mut exact, &mut Receiver::new(&mut receiver, &mut ()));
    let _ = parse_batch::<B, _>(Cursor::new(batch), options, &mut labelled, &mut Receiver::new(&mut receiver, &mut ()));
    [exact.errors().to_vec(), labelled.errors().to_vec()]
}
