//! Message headers of Kafka, Kafka Streams and Iggy: bytes, Arrow columns and, with the feature `python`, Python.

pub mod amqp;
pub mod arrow;
pub mod ask;
pub mod codec;
pub mod cursor;
pub mod error;
pub mod format;
pub mod formats;
pub mod header;
pub mod kernel;
pub mod kind;
pub mod limits;
pub mod mode;
pub mod op;
pub mod spelling;
pub mod types;
pub mod value;
pub mod varint;
pub mod walk;

#[cfg(feature = "python")]
mod python;
