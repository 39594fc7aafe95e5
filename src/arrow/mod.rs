//! Operations on columns. Each appends the rows of a column to its sink.

pub mod amqp;
#[cfg(feature = "avro")]
pub mod avro;
pub(crate) mod binary;
#[cfg(any(feature = "internals", feature = "python"))]
pub(crate) mod c_structures;
pub(crate) mod checks;
pub(crate) mod column;
mod convert;
pub(crate) mod decode;
pub mod edit;
pub(crate) mod encode;
mod encoded_column;
pub(crate) mod errors;
pub mod filter;
pub mod filtered;
pub(crate) mod input;
pub mod json_lines;
mod json_text;
mod layouts;
pub(crate) mod list_rows;
mod lists;
mod message_block;
mod message_sinks;
pub mod messages;
mod operation;
pub mod pack;
pub mod produce;
pub(crate) mod rows;
pub(crate) mod run;
pub(crate) mod schema;
pub mod select;
pub mod shapes;
pub(crate) mod sink;
pub(crate) mod threads;
pub mod truths;
pub mod types;
pub(crate) mod validate;
pub mod work;

pub use convert::Convert;
pub use decode::Decode;
pub use encode::Encode;
pub use operation::{Input, Operation, Output};
pub use select::Select;
pub use validate::Validate;
pub use work::{Apply, Work};
