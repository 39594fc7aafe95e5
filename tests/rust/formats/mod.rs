//! One test for each input that a decoder rejects.

mod iggy_batches;
mod iggy_blocks;
mod iggy_messages;
mod kafka;
mod kip82_blocks;
mod kip82_messages;
mod message_sets;

use letterhead::error::{Code, ErrorDetail};
use letterhead::format::Format;

use crate::common::{STRICT, errors, read};

/// What is wrong with a value first; the operations that read and those that look at all of it say the same.
fn first_fault(format: Format, serialized: &[u8]) -> Option<ErrorDetail> {
    let first = read(format, serialized, STRICT).err();
    assert_eq!(errors(format, serialized, STRICT).first(), first.as_ref());
    first
}

/// The code, byte and header of what is wrong with a value first.
fn rejected(format: Format, serialized: &[u8]) -> (Code, Option<usize>, Option<usize>) {
    let error = first_fault(format, serialized).expect("rejected");
    (error.code, error.byte, error.header)
}

/// As `rejected`, for a fault that belongs to no header.
fn rejected_at(format: Format, serialized: &[u8]) -> (Code, usize) {
    let (code, byte, header) = rejected(format, serialized);
    assert_eq!(header, None);
    (code, byte.expect("a byte"))
}

/// As `rejected`, for what is wrong with the first header.
fn rejected_in_header(format: Format, serialized: &[u8]) -> (Code, usize) {
    let (code, byte, header) = rejected(format, serialized);
    assert_eq!(header, Some(0));
    (code, byte.expect("a byte"))
}

/// The length and the bytes, big-endian.
fn run(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as i32).to_be_bytes()[..], bytes].concat()
}

/// The length and the bytes, little-endian.
fn little_run(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u32).to_le_bytes()[..], bytes].concat()
}
