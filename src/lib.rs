//! Message headers of Kafka, Kafka Streams and Iggy: bytes, Arrow columns and, with the feature `python`, Python.

pub mod amqp;
pub mod arrow;
pub mod codec;
pub mod cursor;
pub mod encoding;
pub mod error;
pub mod format;
pub mod formats;
pub mod header;
pub mod interrupt;
pub mod json;
pub mod kernel;
pub mod limits;
pub mod log;
pub mod op;
pub mod traits;
pub mod type_option;
pub mod types;
pub mod value;
pub mod value_type;
pub mod varint;

#[cfg(feature = "python")]
mod python;

#[cfg(all(feature = "python", target_endian = "big"))]
compile_error!("a big-endian machine is not supported: arrow-buffer reads null bits there in the wrong order");
