//! Operations on one message.

pub mod adapt;
pub mod batch;
pub mod convert;
pub mod inspect;
pub mod messages;
pub mod values;
pub mod write;

use crate::error::Error;
use crate::traits::{BatchFormat, MessageFormat};

/// The answer of a verb for one message to a format of many.
pub fn batch_needs_messages<B: BatchFormat>() -> Error {
    Error::Value(format!("{} is a batch: read it with messages", B::NAME))
}

/// The answer of the verb for many messages to a format of one.
pub fn not_a_batch<E: MessageFormat>() -> Error {
    Error::Value(format!("{} is not a batch: read it with decode", E::NAME))
}
