//! Operations on one message.

pub mod batch;
pub mod convert;
pub mod gate;
pub mod inspect;
pub mod messages;
pub mod values;
pub mod write;

use crate::error::Error;
use crate::walk::{Batch, Envelope};

/// The answer of a verb for one message to a format of many.
pub fn is_a_batch<B: Batch>() -> Error {
    Error::Value(format!("{} is a batch: read it with messages", B::NAME))
}

/// The answer of the verb for many messages to a format of one.
pub fn not_a_batch<E: Envelope>() -> Error {
    Error::Value(format!("{} is not a batch: read it with decode", E::NAME))
}
