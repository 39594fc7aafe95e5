//! The types that a user names, and how values are read as one of them.
//!
//! ```text
//!   type     name[:be|le|text|amqp]
//!   int32    ┌──┬──┬──┬──┐  most significant byte first (`:be`, the default) or last (`:le`)
//!            └──┴──┴──┴──┘
//!   int32:text   "-42"       ASCII digits
//!   int32:amqp   71 ff ff ff d6, 54 d6   an AMQP 1.0 primitive, which specifies its encoding: see [`amqp`]
//! ```

use crate::amqp;
use crate::encoding::Encoding;
use crate::error::{Error, unknown_name};
use crate::value::ByteOrder;
use crate::value_type::{Scalar, ValueType};

/// How a value is read: in an encoding, or as an AMQP primitive, which specifies its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coding {
    Plain(Encoding),
    Amqp,
}

/// A type as a user names it: `int64`, `int64:le`, `uuid:text`, `string:amqp`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Type {
    pub scalar: Scalar,
    pub coding: Coding,
}

impl Type {
    /// Reads `name[:be|le|text|amqp]`.
    pub fn parse(text: &str) -> Result<Type, Error> {
        let (name, suffix) = match text.split_once(':') {
            Some((name, suffix)) => (name, Some(suffix)),
            None => (text, None),
        };
        let scalar = Scalar::named(name)
            .ok_or_else(|| unknown_name("type", name, Scalar::ALL.iter().map(|scalar| scalar.name())))?;
        let coding = match suffix {
            None | Some("be") => Coding::Plain(Encoding::Bytes(ByteOrder::Big)),
            Some("le") => Coding::Plain(Encoding::Bytes(ByteOrder::Little)),
            Some("text") => Coding::Plain(Encoding::Text),
            Some("amqp") => Coding::Amqp,
            Some(other) => {
                return Err(unknown_name("suffix of a type", other, ["be", "le", "text", "amqp"].into_iter()));
            }
        };
        match coding {
            Coding::Amqp if !amqp::has(scalar) => Err(Error::Value(format!("type '{text}': AMQP has no {name}"))),
            Coding::Plain(_) if suffix.is_some() && scalar.width().is_none() => {
                Err(Error::Value(format!("type '{text}': {name} takes no suffix but amqp")))
            }
            _ => Ok(Type { scalar, coding }),
        }
    }

    pub fn accepts(self, value_type: ValueType) -> bool {
        match (self.scalar, value_type) {
            (_, ValueType::Named(Scalar::Binary)) if self.coding == Coding::Amqp => true,
            (Scalar::Uuid, ValueType::Named(Scalar::Binary))
            | (Scalar::TimestampMs, ValueType::Named(Scalar::Int64)) => true,
            (scalar, ValueType::Named(named)) => scalar == named,
            (_, ValueType::Unnamed(_)) => false,
        }
    }

    /// The type that an accepted value is read as; `order` is the byte order of typed numbers.
    #[inline]
    pub fn under(self, value_type: ValueType, order: ByteOrder) -> Type {
        match value_type {
            // The requested type applies to bytes.
            ValueType::Named(Scalar::Binary) => self,
            _ => Type { scalar: self.scalar, coding: Coding::Plain(Encoding::Bytes(order)) },
        }
    }
}
