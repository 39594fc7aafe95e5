//! Formats of many messages: batches and message sets.

pub mod iggy_batch;
pub mod iggy_polled_2023;
pub mod kip82_messages;
pub mod log_index;
pub mod message_set_writer;
pub mod record_batch;
pub mod record_batch_writer;
