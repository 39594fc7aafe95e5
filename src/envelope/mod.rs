//! One file per envelope.

pub mod streams;
pub mod streams_timestamped;
