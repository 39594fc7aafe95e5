//! Checksums of the formats, and the message about a mismatch.

use std::fmt::LowerHex;

/// CRC-32 of Kafka's message formats 0 and 1, and of payloads in Iggy.
pub fn crc32(bytes: &[u8]) -> u32 {
    crc32fast::hash(bytes)
}

/// CRC-32C of record batches.
pub fn crc32c(bytes: &[u8]) -> u32 {
    crc_fast::crc32_iscsi(bytes)
}

/// Message about a stored checksum that differs from the computed one.
pub(super) fn mismatch<T: LowerHex>(stored: T, computed: T) -> String {
    let digits = 2 * size_of::<T>();
    format!("the checksum is {stored:0digits$x} and the bytes give {computed:0digits$x}")
}
