//! The modules that formats and operations stand on, each through its public functions.

mod amqp;
mod ask;
mod codec;
mod cursor;
mod error;
mod format;
mod header;
mod headers;
mod inspect;
mod kind;
mod layers;
mod limits;
mod log_index;
mod mode;
mod types;
mod varint;
