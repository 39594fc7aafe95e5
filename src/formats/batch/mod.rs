//! Batch formats, one file each, and the [`Builder`] that writes them.

pub mod iggy_batch;
pub mod iggy_polled_2023;
pub mod kip82_messages;
pub mod log_index;
mod message_set;
pub mod message_set_writer;
pub mod partitioner;
pub mod record_batch;
pub mod record_batch_writer;

use crate::error::ErrorDetail;
use crate::field::FieldValue;

/// Batch that is written message by message.
pub trait Builder {
    /// Checks a message against the previous ones, and replaces its offset and timestamp by the values to write. A
    /// message without an offset gets the next one.
    fn prepare(&mut self, fields: &mut [FieldValue<'_>]) -> Result<(), ErrorDetail>;

    /// Adds the bytes of the prepared message.
    fn push(&mut self, message: &[u8]);

    /// Returns the batch, after its last message.
    fn finish(&mut self) -> Result<Vec<u8>, ErrorDetail>;
}
