//! Operations on one message.

pub mod adapt;
pub mod batch;
pub mod convert;
pub mod edit;
pub mod inspect;
pub mod mask;
pub mod messages;
pub mod values;
pub mod write;

use crate::error::Error;
use crate::format_info::{Class, FormatInfo};

/// Error of an operation on one message for a batch format.
pub fn batch_needs_messages(format: &str) -> Error {
    Error::Value(format!("{format} is a batch: read it with messages"))
}

/// Rejects a batch format, for operations on single messages.
pub fn check_not_batch(format: &FormatInfo) -> Result<(), Error> {
    match format.class {
        Class::Batch => Err(batch_needs_messages(format.name)),
        Class::Headers | Class::Message => Ok(()),
    }
}

/// Error of an operation on batches for a format of one message.
pub fn not_a_batch(format: &str) -> Error {
    Error::Value(format!("{format} is not a batch: read it with decode"))
}
