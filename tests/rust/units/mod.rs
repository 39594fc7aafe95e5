//! Modules used by formats and operations, each tested through its public functions.

mod amqp;
#[cfg(feature = "avro")]
mod avro;
mod codec;
mod cursor;
mod error;
mod format;
mod header;
mod headers;
mod inspect;
mod interrupt;
mod layers;
mod limits;
mod log;
mod log_index;
mod memory;
mod panics;
mod type_option;
mod types;
mod value_type;
mod varint;
