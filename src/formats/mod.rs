//! The wire formats: one file each. Headers alone, messages around them, and batches of messages.

pub mod batch;
pub mod checksum;
pub mod headers;
pub mod message;
