//! Operations on one message.

pub mod inspect;
pub mod values;
pub mod write;
