//! The table of formats, which maps names to types.
//!
//! A new format needs its file and one row here. No other code matches on a format: an operation is a [`Visitor`] that
//! receives the type.

use crate::error::{Error, unknown_name};
use crate::format_info::FormatInfo;
use crate::formats::batch::{iggy_batch, iggy_polled_2023, kip82_messages, record_batch};
use crate::formats::headers::{Bare, iggy, iggy_2023, iggy_auto, kafka, kip82_int, kip82_typed};
use crate::formats::message::kip82_message::{Int, Kip82Message, Typed, Wrapped};
use crate::formats::message::{iggy_message, iggy_message_2023, kip82_wrapper, streams, streams_timestamped};
use crate::traits::{BatchFormat, MessageFormat};

/// An operation that is generic over the format.
pub trait Visitor {
    type Out;

    fn visit<E: MessageFormat>(self) -> Self::Out;

    fn visit_batch<B: BatchFormat>(self) -> Self::Out;
}

macro_rules! formats {
    (one { $($variant:ident $type:ty;)* } many { $($batch:ident $batch_type:ty;)* }) => {
        /// A format of the table.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Format { $($variant,)* $($batch),* }

        impl Format {
            pub const ALL: &'static [Format] = &[$(Format::$variant,)* $(Format::$batch),*];

            /// Passes the type of this format to an operation.
            pub fn visit<V: Visitor>(self, visitor: V) -> V::Out {
                match self {
                    $(Format::$variant => visitor.visit::<$type>(),)*
                    $(Format::$batch => visitor.visit_batch::<$batch_type>()),*
                }
            }

            pub fn info(self) -> &'static FormatInfo {
                match self {
                    $(Format::$variant => &<$type as MessageFormat>::INFO,)*
                    $(Format::$batch => &<$batch_type as BatchFormat>::INFO),*
                }
            }
        }
    };
}

formats! {
    one {
    Kafka Bare<kafka::Kafka>;
    Kip82Typed Bare<kip82_typed::Kip82Typed>;
    Kip82Int Bare<kip82_int::Kip82Int>;
    Iggy Bare<iggy::Iggy>;
    Iggy2023 Bare<iggy_2023::Iggy2023>;
    IggyAuto Bare<iggy_auto::IggyAuto>;
    Streams streams::Streams;
    StreamsTimestamped streams_timestamped::StreamsTimestamped;
    Kip82Wrapper kip82_wrapper::Kip82Wrapper;
    Kip82Message Kip82Message<Typed>;
    Kip82MessageInt Kip82Message<Int>;
    Kip82MessageWrapper Kip82Message<Wrapped>;
    IggyMessage2023 iggy_message_2023::IggyMessage2023;
    IggyMessage iggy_message::IggyMessage;
    }
    many {
    Kip82Messages kip82_messages::Kip82Messages<Typed>;
    Kip82MessagesInt kip82_messages::Kip82Messages<Int>;
    Kip82MessagesWrapper kip82_messages::Kip82Messages<Wrapped>;
    IggyPolled2023 iggy_polled_2023::IggyPolled2023;
    IggyBatch iggy_batch::IggyBatch;
    RecordBatch record_batch::RecordBatch;
    }
}

impl Format {
    /// Format of this name, or an error that suggests the nearest.
    pub fn from_name(name: &str) -> Result<Format, Error> {
        let names = Format::ALL.iter().map(|format| format.info().name);
        Format::ALL
            .iter()
            .copied()
            .find(|format| format.info().name == name)
            .ok_or_else(|| unknown_name("format", name, names))
    }
}
