//! [`Type`]: the types that a user names, and how values are read as one of them.
//!
//! ```text
//!   type     name[:be|le|text|guid|reversed|json|connect|varlen|amqp|utf-16le|utf-16be|latin-1][:base64|hex], or a text
//!            form, see [`text_form`]
//!   int32    ┌──┬──┬──┬──┐  most significant byte first (`:be`, the default) or last (`:le`)
//!            └──┴──┴──┴──┘
//!   int32:text   "-42"       ASCII digits
//!   int32:json   -42, "-42"  JSON, see [`json`]
//!   int32:connect {"schema":{"type":"int32"},"payload":-42}   JSON with its schema, see [`connect`]
//!   int32:varlen d6, ff ff ff ff ff d6   a two's complement of any number of bytes, most significant byte first
//!   uuid:guid    the first three groups little-endian, as in .NET's `Guid`; `uuid:reversed`: all sixteen bytes
//!   int32:amqp   71 ff ff ff d6, 54 d6   an AMQP 1.0 primitive, which specifies its encoding: see [`amqp`]
//!   string:utf-16le, string:latin-1      text in another character set, see [`charset`]
//!   int32:text:base64    "LTQy"          Base64 of the bytes of a type, see [`base_encoding`]
//! ```

use std::borrow::Cow;

use crate::amqp;
use crate::base_encoding::BaseEncoding;
use crate::charset::Charset;
use crate::encoding::{Encoding, is_integer};
use crate::error::{Error, unknown_name};
use crate::text_form::TextForm;
use crate::value::{ByteOrder, guid_order};
use crate::value_type::{Scalar, ValueType};

/// Encoding of a value: one that untyped formats write, or a read-only one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coding {
    Plain(Encoding),
    /// A UUID in the order of [`guid_order`].
    Guid,
    Json,
    Connect,
    Varlen,
    Amqp,
    /// Text, which typed formats store as a string.
    Text(TextForm),
    /// Text in another character set, which typed formats store as bytes.
    Charset(Charset),
    /// Any value, as its bytes, for tests of nulls, which need no type.
    Any,
    /// Any value, with a null read as empty bytes, for tests of existence.
    Exists,
    /// Values of all headers, with any key, as bytes.
    Every,
}

const SUFFIXES: [&str; 14] = [
    "be", "le", "text", "guid", "reversed", "json", "connect", "varlen", "amqp", "utf-16le", "utf-16be", "latin-1",
    "base64", "hex",
];

/// Type in the notation of users: `int64`, `int64:le`, `uuid:text`, `string:amqp`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Type {
    pub scalar: Scalar,
    pub coding: Coding,
    /// Text encoding of the bytes of a value, which typed formats store as a string.
    pub base: Option<BaseEncoding>,
}

impl Type {
    /// Parses a name and its suffix.
    pub fn parse(text: &str) -> Result<Type, Error> {
        let plain = |scalar, coding| Ok(Type { scalar, coding, base: None });
        // Undocumented names, which conditions use.
        match text {
            "binary:any" => return plain(Scalar::Binary, Coding::Any),
            "binary:exists" => return plain(Scalar::Binary, Coding::Exists),
            "binary:every" => return plain(Scalar::Binary, Coding::Every),
            _ => {}
        }
        if let Some((name, base)) = BaseEncoding::split(text) {
            let inner = Type::parse(name)?;
            return match inner.base {
                None => Ok(Type { base: Some(base), ..inner }),
                Some(_) => Err(Error::Value(format!("type '{text}': bytes are written as text only once"))),
            };
        }
        let (name, suffix) = match text.split_once(':') {
            Some((name, suffix)) => (name, Some(suffix)),
            None => (text, None),
        };
        if let Some(form) = suffix.and_then(|suffix| TextForm::parse(name, suffix)) {
            return plain(Scalar::String, Coding::Text(form));
        }
        let scalar = Scalar::from_name(name)
            .ok_or_else(|| unknown_name("type", name, Scalar::ALL.iter().map(|scalar| scalar.name())))?;
        let coding = match suffix {
            None | Some("be") => Coding::Plain(Encoding::Bytes(ByteOrder::Big)),
            Some("le") => Coding::Plain(Encoding::Bytes(ByteOrder::Little)),
            Some("text") => Coding::Plain(Encoding::Text),
            Some("guid") => Coding::Guid,
            Some("reversed") => Coding::Plain(Encoding::Bytes(ByteOrder::Little)),
            Some("json") => Coding::Json,
            Some("connect") => Coding::Connect,
            Some("varlen") => Coding::Varlen,
            Some("amqp") => Coding::Amqp,
            Some(other) => match Charset::from_name(other) {
                Some(charset) => Coding::Charset(charset),
                None => return Err(unknown_name("suffix of a type", other, SUFFIXES.into_iter())),
            },
        };
        let is_uuid_suffix = matches!(suffix, Some("guid" | "reversed"));
        match coding {
            Coding::Plain(_) if scalar == Scalar::Uuid && suffix == Some("le") => Err(Error::Value(
                "type 'uuid:le' does not say which order: pass 'uuid:guid' for that of .NET's Guid, whose first three groups \
                 are little-endian, or 'uuid:reversed' for all sixteen bytes reversed"
                    .into(),
            )),
            _ if is_uuid_suffix && scalar != Scalar::Uuid => {
                Err(Error::Value(format!("type '{text}': only uuid has the suffix '{}'", &text[name.len()..])))
            }
            Coding::Charset(charset) if scalar != Scalar::String => {
                Err(Error::Value(format!("type '{text}': only string has the suffix ':{}'", charset.name())))
            }
            Coding::Amqp if !amqp::has(scalar) => Err(Error::Value(format!("type '{text}': AMQP has no {name}"))),
            Coding::Varlen if !is_integer(scalar) => {
                Err(Error::Value(format!("type '{text}': only integers and times have a variable length")))
            }
            Coding::Plain(_) if suffix.is_some() && scalar.width().is_none() => Err(Error::Value(format!(
                "type '{text}': {name} has neither byte order nor digits: leave out '{}'",
                &text[name.len()..]
            ))),
            _ => plain(scalar, coding),
        }
    }

    /// The name in messages: that of a text form, or the name without a suffix, and the text encoding of its bytes.
    pub fn name(self) -> Cow<'static, str> {
        let name = match self.coding {
            Coding::Text(form) => Cow::Owned(form.name()),
            _ => Cow::Borrowed(self.scalar.name()),
        };
        match self.base {
            Some(base) => Cow::Owned(format!("{name}:{}", base.name())),
            None => name,
        }
    }

    /// Whether every value of the type is text, which typed formats store as a string.
    pub fn is_text(self) -> bool {
        self.base.is_some() || matches!(self.coding, Coding::Text(_))
    }

    /// Converts the bytes of a value between big-endian order and the order of this type.
    pub fn in_order(self, bytes: Cow<'_, [u8]>) -> Cow<'_, [u8]> {
        match (self.coding, <[u8; 16]>::try_from(&bytes[..])) {
            (Coding::Guid, Ok(uuid)) => Cow::Owned(guid_order(uuid).to_vec()),
            _ => bytes,
        }
    }

    pub fn accepts(self, value_type: ValueType) -> bool {
        match (self.scalar, value_type) {
            _ if matches!(self.coding, Coding::Any | Coding::Exists | Coding::Every) => true,
            (_, value_type) if self.base.is_some() => {
                matches!(value_type, ValueType::Named(Scalar::String | Scalar::Binary))
            }
            (_, ValueType::Named(Scalar::Binary)) if !matches!(self.coding, Coding::Plain(_)) => true,
            (Scalar::Uuid, ValueType::Named(Scalar::Binary))
            | (Scalar::TimestampMs, ValueType::Named(Scalar::Int64)) => true,
            (scalar, ValueType::Named(named)) => scalar == named,
            (_, ValueType::Unnamed(_)) => false,
        }
    }

    /// Whether all or some values of another type fit this one: integers fit integers and floats, text fits bytes.
    pub fn is_wider(self, stored: Scalar) -> bool {
        match (self.scalar, stored) {
            _ if self.is_text() => false,
            (Scalar::Float64, Scalar::Float32) | (Scalar::Binary, Scalar::String) | (Scalar::String, Scalar::Char) => {
                true
            }
            (Scalar::Float32 | Scalar::Float64, stored) => is_integer(stored),
            (scalar, stored) => is_integer(scalar) && is_integer(stored),
        }
    }

    /// Returns the type in which an accepted value is read; `order` is the byte order of typed numbers.
    #[inline]
    pub fn under(self, value_type: ValueType, order: ByteOrder) -> Type {
        match value_type {
            // The requested type applies to bytes.
            ValueType::Named(Scalar::Binary) => self,
            _ if self.is_text() => self,
            _ => Type { coding: Coding::Plain(Encoding::Bytes(order)), ..self },
        }
    }
}
