//! Message headers of Kafka, Kafka Streams and Iggy: bytes, Arrow columns and, with the feature `python`, Python.

#![cfg_attr(test, allow(clippy::cast_possible_truncation))]

pub mod amqp;
pub mod arrow;
pub mod base_encoding;
pub mod charset;
pub mod codec;
pub mod connect;
pub mod cursor;
pub mod encoding;
pub mod error;
pub mod field;
pub mod format;
pub mod format_info;
pub mod formats;
pub mod header;
pub mod interrupt;
pub mod json;
pub(crate) mod kernel;
mod limit_checks;
pub mod limits;
pub mod log;
pub mod memory;
mod number;
pub mod op;
pub mod options;
pub mod panics;
pub mod sink;
pub mod text_form;
pub mod traits;
pub mod type_option;
pub mod types;
pub mod value;
pub mod value_type;
pub mod varint;

#[cfg(feature = "python")]
mod python;

/// Internal items for tests, benchmarks and fuzzing, which no release contains.
#[cfg(feature = "internals")]
pub mod internals {
    pub use crate::arrow::c_structures::{import_array, import_type};
    pub use crate::arrow::checks::check_values;
    pub use crate::arrow::schema::type_name;
    pub use crate::kernel::buffer::MAX_OFFSET;
    pub use crate::kernel::layout::NoKernels;
}

#[cfg(all(feature = "python", target_endian = "big"))]
compile_error!("a big-endian machine is not supported: arrow-buffer reads null bits there in the wrong order");
