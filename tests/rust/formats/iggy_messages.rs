//! `iggy-message-2023` and `iggy-message`.

use letterhead::error::Code;
use letterhead::format::Format::{IggyMessage, IggyMessage2023};

use super::{first_fault, little_run, rejected, rejected_at};
use crate::common::{STRICT, errors};

/// Message in the format `iggy-message-2023`.
fn older(block: &[u8], payload: &[u8]) -> Vec<u8> {
    [&[7; 16][..], &little_run(block), &little_run(payload)].concat()
}

/// Header `k` with the string `v` in the format `iggy-2023`.
const OLDER: &[u8] = b"\x01\0\0\0k\x02\x01\0\0\0v";

#[test]
fn a_whole_message_is_read() {
    assert_eq!(first_fault(IggyMessage2023, &older(OLDER, b"p")), None);
    assert_eq!(first_fault(IggyMessage2023, &older(b"", b"")), None);
    assert_eq!(first_fault(IggyMessage, &later(LATER, b"p")), None);
    assert_eq!(first_fault(IggyMessage, &later(b"", b"")), None);
}

#[test]
fn truncated_older_id_is_rejected() {
    assert_eq!(rejected_at(IggyMessage2023, &[7; 15]), (Code::Truncated, 0));
}

#[test]
fn truncated_older_headers_length_is_rejected() {
    assert_eq!(rejected_at(IggyMessage2023, &older(OLDER, b"")[..19]), (Code::Truncated, 16));
}

#[test]
fn older_headers_longer_than_the_bytes_are_rejected() {
    assert_eq!(rejected_at(IggyMessage2023, &older(OLDER, b"")[..30]), (Code::Truncated, 20));
}

#[test]
fn truncated_older_payload_length_is_rejected() {
    assert_eq!(rejected_at(IggyMessage2023, &older(OLDER, b"p")[..34]), (Code::Truncated, 31));
}

#[test]
fn older_payload_longer_than_the_bytes_is_rejected() {
    assert_eq!(rejected_at(IggyMessage2023, &older(OLDER, b"pp")[..36]), (Code::Truncated, 35));
}

#[test]
fn older_bytes_after_the_payload_are_rejected() {
    let serialized = [older(OLDER, b"p"), b"!".to_vec()].concat();
    assert_eq!(rejected_at(IggyMessage2023, &serialized), (Code::TrailingBytes, 36));
}

#[test]
fn bad_older_header_is_rejected_at_its_offset_in_value() {
    let mut block = OLDER.to_vec();
    block[5] = 0;
    assert_eq!(rejected(IggyMessage2023, &older(&block, b"p")), (Code::UnknownType, Some(25), Some(0)));
}

/// Message in the format `iggy-message`. Its numbers are 1, and both halves of its id are 7.
fn later(block: &[u8], payload: &[u8]) -> Vec<u8> {
    let mut out = [1u64, 7, 7, 1, 1, 1].map(u64::to_le_bytes).concat();
    out.extend((block.len() as u32).to_le_bytes());
    out.extend((payload.len() as u32).to_le_bytes());
    out.extend([0; 8]);
    [&out, payload, block].concat()
}

/// Header `k` with the string `v` in the format `iggy`.
const LATER: &[u8] = b"\x02\x01\0\0\0k\x02\x01\0\0\0v";

/// Offsets of the fields of `iggy-message`.
const FIELDS: [usize; 8] = [0, 8, 24, 32, 40, 48, 52, 56];
const PAYLOAD: usize = 64;

#[test]
fn truncated_newer_header_is_rejected_at_field_start() {
    let serialized = later(LATER, b"p");
    for len in 0..PAYLOAD {
        let field = FIELDS.iter().rfind(|at| **at <= len).copied().expect("the first begins at 0");
        assert_eq!(rejected_at(IggyMessage, &serialized[..len]), (Code::Truncated, field), "{len}");
    }
}

#[test]
fn newer_numbers_over_int64_are_rejected() {
    for at in [24, 32, 40] {
        let mut serialized = later(LATER, b"p");
        serialized[at + 7] = 0x80;
        assert_eq!(rejected_at(IggyMessage, &serialized), (Code::OutOfRange, at));
    }
}

#[test]
fn nonzero_newer_reserved_bytes_are_rejected() {
    for at in 56..PAYLOAD {
        let mut serialized = later(LATER, b"p");
        serialized[at] = 1;
        assert_eq!(rejected_at(IggyMessage, &serialized), (Code::BadAttributes, 56));
    }
}

#[test]
fn later_payload_longer_than_the_bytes_is_rejected() {
    assert_eq!(rejected_at(IggyMessage, &later(b"", b"pp")[..PAYLOAD + 1]), (Code::Truncated, PAYLOAD));
}

#[test]
fn later_headers_longer_than_the_bytes_are_rejected() {
    let serialized = later(LATER, b"p");
    assert_eq!(rejected_at(IggyMessage, &serialized[..serialized.len() - 1]), (Code::Truncated, PAYLOAD + 1));
}

#[test]
fn later_bytes_after_the_headers_are_rejected() {
    let serialized = [later(LATER, b"p"), b"!!".to_vec()].concat();
    assert_eq!(rejected_at(IggyMessage, &serialized), (Code::TrailingBytes, PAYLOAD + 1 + LATER.len()));
}

#[test]
fn bad_newer_header_is_rejected_at_its_offset_in_value() {
    let mut block = LATER.to_vec();
    block[6] = 0;
    assert_eq!(rejected(IggyMessage, &later(&block, b"p")), (Code::UnknownType, Some(PAYLOAD + 1 + 6), Some(0)));
}

#[test]
fn newer_field_errors_precede_header_errors() {
    let mut serialized = later(&LATER[..11], b"p");
    (serialized[31], serialized[56]) = (0x80, 1);
    let found: Vec<_> =
        errors(IggyMessage, &serialized, STRICT).iter().map(|error| (error.code, error.header)).collect();
    assert_eq!(found, [(Code::OutOfRange, None), (Code::BadAttributes, None), (Code::Truncated, Some(0))]);
}
