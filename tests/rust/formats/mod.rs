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

/// First error of a value; reading and inspecting must report the same error.
fn first_fault(format: Format, serialized: &[u8]) -> Option<ErrorDetail> {
    let first = read(format, serialized, STRICT).err();
    assert_eq!(errors(format, serialized, STRICT).first(), first.as_ref());
    first
}

/// Code, byte and header of the first error of a value.
fn rejected(format: Format, serialized: &[u8]) -> (Code, Option<usize>, Option<usize>) {
    let error = first_fault(format, serialized).expect("rejected");
    (error.code, error.byte, error.header)
}

/// Code and byte of the first error of a value, which belongs to no header.
fn rejected_at(format: Format, serialized: &[u8]) -> (Code, usize) {
    let (code, byte, header) = rejected(format, serialized);
    assert_eq!(header, None);
    (code, byte.expect("a byte"))
}

/// Code and byte of the first error of a value, which belongs to the first header.
fn rejected_in_header(format: Format, serialized: &[u8]) -> (Code, usize) {
    let (code, byte, header) = rejected(format, serialized);
    assert_eq!(header, Some(0));
    (code, byte.expect("a byte"))
}

/// A big-endian length, and the bytes.
fn run(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as i32).to_be_bytes()[..], bytes].concat()
}

/// A little-endian length, and the bytes.
fn little_run(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u32).to_le_bytes()[..], bytes].concat()
}
