//! `iggy-polled-2023` and `iggy-batch`.

use std::hash::Hasher;

use letterhead::error::Code;
use letterhead::format::Format::{IggyBatch, IggyPolled2023};
use letterhead::formats::checksum::crc32;
use twox_hash::XxHash3_64;

use super::{first_fault, little_run, rejected, rejected_at};
use crate::common::{STRICT, errors, read};

/// Message in the layout of era A.
fn first_era(block: &[u8], payload: &[u8]) -> Vec<u8> {
    [&[5; 7][..], &[0], &[5; 7], &[0], &[7; 16], &little_run(block), &little_run(payload)].concat()
}

/// Message in the layout of era B, with a state and a checksum.
fn second_era(state: u8, block: &[u8], payload: &[u8]) -> Vec<u8> {
    let mut serialized = first_era(block, payload);
    serialized.splice(32..32, crc32(payload).to_le_bytes());
    serialized.insert(8, state);
    serialized
}

/// Header `k` with the string `v` in the format `iggy-2023`.
const OLDER: &[u8] = b"\x01\0\0\0k\x02\x01\0\0\0v";

/// Offsets of the fields of each era; the last is the length of the headers.
const FIRST: [usize; 4] = [0, 8, 16, 32];
const SECOND: [usize; 6] = [0, 8, 9, 17, 33, 37];

#[test]
fn complete_polls_of_both_layouts_are_read() {
    for serialized in [first_era(OLDER, b"p"), second_era(1, OLDER, b"p"), second_era(30, b"", b"")] {
        for serialized in [serialized.clone(), [&serialized[..], &serialized].concat()] {
            assert_eq!(first_fault(IggyPolled2023, &serialized), None);
        }
    }
    assert_eq!(first_fault(IggyPolled2023, b""), None);
}

#[test]
fn truncated_polled_message_is_rejected_at_field_start() {
    for (serialized, fields) in [(first_era(OLDER, b"p"), &FIRST[..]), (second_era(1, OLDER, b"p"), &SECOND)] {
        // The first message decides the era.
        let (one, serialized) = (serialized.len(), [&serialized[..], &serialized].concat());
        let lens = fields.last().expect("the length of the block");
        let rest = [lens + 4, lens + 4 + OLDER.len(), lens + 8 + OLDER.len()];
        let fields: Vec<_> = fields.iter().copied().chain(rest).collect();
        for len in 1..one {
            let field = fields.iter().rfind(|at| **at <= len).copied().expect("the first begins at 0");
            assert_eq!(rejected_at(IggyPolled2023, &serialized[..one + len]), (Code::Truncated, one + field), "{len}");
        }
    }
}

#[test]
fn polled_numbers_over_int64_are_rejected() {
    for (serialized, [offset, timestamp]) in [(first_era(OLDER, b"p"), [0, 8]), (second_era(1, OLDER, b"p"), [0, 9])] {
        for at in [offset, timestamp] {
            let mut serialized = serialized.clone();
            serialized[at + 7] = 0x80;
            assert_eq!(rejected_at(IggyPolled2023, &serialized), (Code::OutOfRange, at));
        }
    }
}

#[test]
fn unknown_polled_state_is_rejected_where_others_are_known() {
    let one = second_era(1, OLDER, b"p");
    let serialized = [one.clone(), second_era(2, OLDER, b"p"), one.clone()].concat();
    assert_eq!(rejected_at(IggyPolled2023, &serialized), (Code::BadAttributes, one.len() + 8));
    assert_eq!(errors(IggyPolled2023, &serialized, STRICT)[0].message, "message 1: state 2 is unknown");
}

#[test]
fn wrong_polled_checksum_is_rejected() {
    let one = second_era(1, OLDER, b"p");
    let mut serialized = [one.clone(), one.clone()].concat();
    serialized[one.len() + 33] ^= 1;
    assert_eq!(rejected_at(IggyPolled2023, &serialized), (Code::BadCrc, one.len() + 33));
    serialized[33] ^= 1;
    assert_eq!(rejected_at(IggyPolled2023, &serialized), (Code::BadCrc, 33));
}

#[test]
fn ambiguous_polled_messages_follow_matching_checksums() {
    let mut serialized = first_era(b"", &[0; 5]);
    serialized[8] = 1;
    assert_eq!(first_fault(IggyPolled2023, &serialized), None);
}

#[test]
fn bad_polled_header_is_rejected_at_its_offset_in_value() {
    let mut block = OLDER.to_vec();
    block[5] = 0;
    let serialized = [first_era(OLDER, b"p"), first_era(&block, b"p")].concat();
    assert_eq!(
        rejected(IggyPolled2023, &serialized),
        (Code::UnknownType, Some(serialized.len() / 2 + 36 + 5), Some(0))
    );
}

/// A frame: checksum, id, two deltas, lengths, eight reserved bytes, payload, headers.
fn frame(block: &[u8], payload: &[u8]) -> Vec<u8> {
    let lens = [0, 0, block.len() as u32, payload.len() as u32].map(u32::to_le_bytes).concat();
    resealed([&[0; 8][..], &[7; 16], &lens, &[0; 8], payload, block].concat())
}

/// Returns a changed frame with a correct checksum.
fn resealed(mut frame: Vec<u8>) -> Vec<u8> {
    let sum = XxHash3_64::oneshot(&frame[8..]);
    frame[..8].copy_from_slice(&sum.to_le_bytes());
    frame
}

const HEADER_LEN: usize = 256;

/// A batch with these frames, and with a stated number of frames and a producer.
fn batch_of(count: u32, producer: [u8; 20], frames: &[Vec<u8>]) -> Vec<u8> {
    let len = (HEADER_LEN + frames.concat().len()) as u64;
    let mut out = [1, 5, 6, 7, len].map(u64::to_le_bytes).concat();
    let mut hasher = XxHash3_64::new();
    hasher.write(&out);
    hasher.write(&count.to_le_bytes());
    if producer[0] == 1 {
        // Flag, id and epoch, sequence.
        [0..1, 4..14, 16..20].into_iter().for_each(|part| hasher.write(&producer[part]));
    }
    frames.iter().for_each(|frame| hasher.write(&frame[..8]));
    out.extend(hasher.finish().to_le_bytes());
    out.extend(count.to_le_bytes());
    out.extend(producer);
    out.resize(HEADER_LEN, 0);
    [out, frames.concat()].concat()
}

fn batch(frames: &[Vec<u8>]) -> Vec<u8> {
    batch_of(frames.len() as u32, [0; 20], frames)
}

/// Header `k` with the string `v` in the format `iggy`.
const LATER: &[u8] = b"\x02\x01\0\0\0k\x02\x01\0\0\0v";

/// Offsets of the fields in the header of a batch, and in a frame.
const LENGTH: usize = 32;
const CHECKSUM: usize = 40;
const COUNT: usize = 48;
const PRODUCER: usize = 52;
const FRAME_FIELDS: [usize; 7] = [0, 8, 24, 28, 32, 36, 40];
const PAYLOAD: usize = 48;

#[test]
fn whole_batches_are_read_behind_any_prefix() {
    let one = batch(&[frame(LATER, b"p"), frame(b"", b"")]);
    for serialized in [
        one.clone(),
        batch(&[]),
        [&one[..], &one].concat(),
        [&[9; 16][..], &one].concat(),
        [&[9; 40][..], &one].concat(),
    ] {
        assert_eq!(first_fault(IggyBatch, &serialized), None);
    }
    // A producer with all fields set.
    let producer = [1, 0, 0, 0, 2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 0, 0, 4, 4, 4, 4];
    assert_eq!(first_fault(IggyBatch, &batch_of(1, producer, &[frame(LATER, b"p")])), None);
    // Polls without messages.
    for len in [0, 16, 40] {
        assert_eq!(read(IggyBatch, &vec![0; len], STRICT), Ok(vec![]));
    }
}

#[test]
fn truncated_batch_header_is_rejected() {
    let serialized = batch(&[]);
    for len in (1..HEADER_LEN).filter(|len| ![16, 40].contains(len)) {
        assert_eq!(rejected_at(IggyBatch, &serialized[..len]), (Code::Truncated, 0), "{len}");
    }
}

#[test]
fn non_empty_poll_without_messages_is_rejected() {
    for len in [16, 40] {
        let mut serialized = vec![0; len];
        serialized[12] = 1;
        assert_eq!(rejected_at(IggyBatch, &serialized), (Code::Truncated, 0), "{len}");
    }
}

#[test]
fn batch_length_over_available_bytes_is_rejected() {
    let mut serialized = batch(&[frame(LATER, b"p")]);
    let whole = serialized.len() as u64;
    for len in [whole + 1, u64::MAX] {
        serialized[LENGTH..LENGTH + 8].copy_from_slice(&len.to_le_bytes());
        assert_eq!(rejected_at(IggyBatch, &serialized), (Code::Truncated, LENGTH), "{len}");
    }
}

#[test]
fn batch_length_below_its_header_is_rejected() {
    let mut serialized = batch(&[frame(LATER, b"p")]);
    for len in [0u64, 255] {
        serialized[LENGTH..LENGTH + 8].copy_from_slice(&len.to_le_bytes());
        assert_eq!(rejected_at(IggyBatch, &serialized), (Code::WrongSize, LENGTH), "{len}");
    }
}

#[test]
fn producer_flag_other_than_0_and_1_is_rejected() {
    let mut producer = [0; 20];
    producer[0] = 2;
    let serialized = batch_of(1, producer, &[frame(LATER, b"p")]);
    assert_eq!(rejected_at(IggyBatch, &serialized), (Code::BadAttributes, PRODUCER));
    assert_eq!(errors(IggyBatch, &serialized, STRICT)[0].message, "message 0: producer flag 2 is unknown");
}

#[test]
fn bytes_in_absent_producer_are_rejected() {
    for at in [1, 3, 14, 15] {
        let mut producer = [0; 20];
        (producer[0], producer[at]) = (1, 1);
        let serialized = batch_of(1, producer, &[frame(LATER, b"p")]);
        assert_eq!(rejected_at(IggyBatch, &serialized), (Code::BadAttributes, PRODUCER), "{at}");
    }
    for at in 1..20 {
        let mut producer = [0; 20];
        producer[at] = 1;
        let serialized = batch_of(1, producer, &[frame(LATER, b"p")]);
        assert_eq!(rejected_at(IggyBatch, &serialized), (Code::BadAttributes, PRODUCER), "{at}");
    }
}

#[test]
fn trailing_bytes_in_batch_header_are_rejected() {
    for at in PRODUCER + 20..HEADER_LEN {
        let mut serialized = batch(&[frame(LATER, b"p")]);
        serialized[at] = 1;
        assert_eq!(rejected_at(IggyBatch, &serialized), (Code::BadAttributes, PRODUCER + 20), "{at}");
    }
}

#[test]
fn wrong_batch_checksum_is_rejected() {
    // The bytes that the checksum covers, and the checksum itself. A changed frame checksum would be another error.
    for at in [0, 8, 16, 24, CHECKSUM] {
        let mut serialized = batch(&[frame(LATER, b"p")]);
        serialized[at] ^= 1;
        assert_eq!(rejected_at(IggyBatch, &serialized), (Code::BadCrc, CHECKSUM), "{at}");
        assert_eq!(errors(IggyBatch, &serialized, STRICT).len(), 1);
    }
}

#[test]
fn message_count_other_than_frame_count_is_rejected() {
    for count in [0, 2, u32::MAX] {
        let serialized = batch_of(count, [0; 20], &[frame(LATER, b"p")]);
        assert_eq!(rejected_at(IggyBatch, &serialized), (Code::CountTooLarge, COUNT), "{count}");
    }
}

#[test]
fn truncated_frame_is_rejected_at_field_start() {
    let whole = frame(LATER, b"pp");
    let fields: Vec<_> = FRAME_FIELDS.into_iter().chain([PAYLOAD, PAYLOAD + 2]).collect();
    for len in 1..whole.len() {
        let serialized = batch(&[frame(b"", b""), whole.clone()]);
        let mut serialized = serialized[..serialized.len() - whole.len() + len].to_vec();
        let total = (serialized.len() as u64).to_le_bytes();
        serialized[LENGTH..LENGTH + 8].copy_from_slice(&total);
        let field = fields.iter().rfind(|at| **at <= len).copied().expect("the first begins at 0");
        let found: Vec<_> =
            errors(IggyBatch, &serialized, STRICT).iter().map(|error| (error.code, error.byte)).collect();
        assert_eq!(found, [(Code::Truncated, Some(HEADER_LEN + PAYLOAD + field))], "{len}");
    }
}

#[test]
fn wrong_frame_checksum_is_rejected() {
    for at in [8, 24, 28, PAYLOAD] {
        let mut serialized = batch(&[frame(LATER, b"p")]);
        serialized[HEADER_LEN + at] ^= 1;
        assert_eq!(rejected_at(IggyBatch, &serialized), (Code::BadCrc, HEADER_LEN), "{at}");
    }
}

#[test]
fn nonzero_reserved_frame_bytes_are_rejected() {
    let mut frame = frame(LATER, b"p");
    frame[47] = 1;
    assert_eq!(rejected_at(IggyBatch, &batch(&[resealed(frame)])), (Code::BadAttributes, HEADER_LEN + 40));
}

#[test]
fn frame_numbers_over_int64_are_rejected() {
    for at in [8, 16, 24] {
        let mut serialized = batch(&[frame(LATER, b"p")]);
        serialized[at + 7] = 0x80;
        let codes: Vec<_> =
            errors(IggyBatch, &serialized, STRICT).iter().map(|error| (error.code, error.byte)).collect();
        assert_eq!(codes, [(Code::BadCrc, Some(CHECKSUM)), (Code::OutOfRange, Some(HEADER_LEN))], "{at}");
    }
}

#[test]
fn bad_frame_header_is_rejected_at_its_offset_in_value() {
    let mut block = LATER.to_vec();
    block[6] = 0;
    let serialized = batch(&[frame(LATER, b"p"), frame(&block, b"p")]);
    let place = HEADER_LEN + PAYLOAD + 1 + LATER.len() + PAYLOAD + 1 + 6;
    assert_eq!(rejected(IggyBatch, &serialized), (Code::UnknownType, Some(place), Some(0)));
    assert!(errors(IggyBatch, &serialized, STRICT)[0].message.starts_with("message 1: "));
}

#[test]
fn damaged_second_batch_leaves_first_readable() {
    let first = batch(&[frame(LATER, b"p")]);
    let serialized = [&first[..], &first[..100]].concat();
    assert_eq!(rejected_at(IggyBatch, &serialized), (Code::Truncated, first.len()));
}
