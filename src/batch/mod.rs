//! One file per batch: the bytes of many messages.

pub mod iggy_batch;
pub mod iggy_polled_2023;
pub mod kip82_messages;
pub mod record_batch;
