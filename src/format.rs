//! The table of formats: the one dispatch from a name to a type.
//!
//! A new format is its file and one row here. Nothing else in the crate matches on a format: an operation is a
//! [`Visitor`] and is handed the type.

use crate::block::Bare;
use crate::block::kafka::Kafka;
use crate::envelope::streams::Streams;
use crate::envelope::streams_timestamped::StreamsTimestamped;
use crate::error::{Error, unknown_name};
use crate::walk::{Envelope, Field, Is};

/// An operation that needs to know the type of a format.
pub trait Visitor {
    type Out;

    fn visit<E: Envelope>(self) -> Self::Out;
}

/// What the table says of a format.
#[derive(Debug, Clone, Copy)]
pub struct Info {
    pub name: &'static str,
    pub is: Is,
    pub source: &'static str,
    pub layout: &'static str,
    pub fields: &'static [Field],
}

macro_rules! formats {
    ($($variant:ident $of:ty;)*) => {
        /// A format by its place in the table.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Format { $($variant),* }

        impl Format {
            pub const ALL: &'static [Format] = &[$(Format::$variant),*];

            /// Hands the type of this format to an operation.
            pub fn visit<V: Visitor>(self, visitor: V) -> V::Out {
                match self { $(Format::$variant => visitor.visit::<$of>()),* }
            }
        }
    };
}

formats! {
    Kafka Bare<Kafka>;
    Streams Streams;
    StreamsTimestamped StreamsTimestamped;
}

impl Format {
    /// The format of this name, or an error that suggests the nearest.
    pub fn named(name: &str) -> Result<Format, Error> {
        let names = Format::ALL.iter().map(|format| format.info().name);
        Format::ALL
            .iter()
            .copied()
            .find(|format| format.info().name == name)
            .ok_or_else(|| unknown_name("format", name, names))
    }

    pub fn info(self) -> Info {
        struct ReadInfo;
        impl Visitor for ReadInfo {
            type Out = Info;

            fn visit<E: Envelope>(self) -> Info {
                Info { name: E::NAME, is: E::IS, source: E::SOURCE, layout: E::LAYOUT, fields: E::FIELDS }
            }
        }
        self.visit(ReadInfo)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_is_found_by_its_name() {
        for format in Format::ALL {
            assert_eq!(Format::named(format.info().name), Ok(*format));
        }
    }

    #[test]
    fn every_envelope_has_one_headers_field() {
        for format in Format::ALL {
            let fields = format.info().fields;
            assert_eq!(fields.iter().filter(|field| field.of == crate::walk::FieldType::Headers).count(), 1);
        }
    }
}
