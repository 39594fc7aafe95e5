//! The wire formats, one file each: headers, messages with headers, and batches of messages.

pub mod batch;
pub mod checksum;
pub mod headers;
pub mod message;
