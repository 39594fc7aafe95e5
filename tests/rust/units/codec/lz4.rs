//! LZ4 frames.

use std::io::Write;

use lz4_flex::frame::{BlockMode, BlockSize, FrameEncoder, FrameInfo};
use twox_hash::XxHash32;

use letterhead::codec::{Codec, CodecError, compress_legacy, decompress};

use super::{LIMIT, MIB, is_corrupt, is_too_large, noise};

const MAGIC: [u8; 4] = [0x04, 0x22, 0x4d, 0x18];

/// Upper bound of the content bytes per byte of a block: a byte of a long length adds 255.
const MAX_RATIO: usize = 255;

const SAMPLE: &[u8] = b"a sample, a sample, a sample, and something else";

fn compress(content: &[u8]) -> Result<Vec<u8>, CodecError> {
    letterhead::codec::compress(Codec::Lz4, content)
}

fn read(bytes: &[u8], limit: usize) -> Result<Vec<u8>, CodecError> {
    decompress(Codec::Lz4, bytes, false, limit)
}

fn text(bytes: &[u8]) -> String {
    read(bytes, LIMIT).unwrap_err().to_string()
}

fn written(content: &[u8], frame: FrameInfo) -> Vec<u8> {
    let mut encoder = FrameEncoder::with_frame_info(frame, Vec::new());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

/// Every combination of the options of a frame.
fn frames(len: usize) -> Vec<FrameInfo> {
    let mut frames = Vec::new();
    for bits in 0..16 {
        for size in [BlockSize::Max64KB, BlockSize::Max256KB, BlockSize::Max1MB, BlockSize::Max4MB] {
            let log = if bits & 1 == 0 { BlockMode::Independent } else { BlockMode::Linked };
            let frame = FrameInfo::new().block_size(size).block_mode(log).block_checksums(bits & 2 != 0);
            let content_size = (bits & 8 != 0).then_some(len as u64);
            frames.push(frame.content_checksum(bits & 4 != 0).content_size(content_size));
        }
    }
    frames
}

/// A frame with these header bytes and the correct header checksum.
fn headed(flags: u8, size: u8, after: &[u8]) -> Vec<u8> {
    let check = XxHash32::oneshot(0, &[flags, size]).to_le_bytes()[1];
    [&MAGIC[..], &[flags, size, check], after].concat()
}

#[test]
fn every_type_of_frame_is_read() {
    let long = [noise(70_000), b"over and over ".repeat(20_000), noise(70_000)].concat();
    for content in [&b""[..], SAMPLE, &long] {
        for frame in frames(content.len()) {
            let bytes = written(content, frame.clone());
            assert!(read(&bytes, content.len()).unwrap() == content, "{frame:?}");
            if let Some(less) = content.len().checked_sub(1) {
                assert!(is_too_large(&read(&bytes, less), less), "{frame:?}");
            }
        }
    }
}

#[test]
fn truncated_frames_of_every_type_are_rejected() {
    for frame in frames(SAMPLE.len()) {
        let bytes = written(SAMPLE, frame.clone());
        for cut in 0..bytes.len() {
            assert!(is_corrupt(&read(&bytes[..cut], LIMIT)), "{frame:?} cut at {cut}");
        }
    }
}

#[test]
fn truncation_between_two_blocks_is_detected() {
    let bytes = compress(&noise(100_000)).unwrap();
    let first = 7 + 4 + 65_536;
    assert_eq!(text(&bytes[..first]), "the lz4 data is corrupt: it ends too early");
    assert_eq!(text(&bytes[..bytes.len() - 4]), "the lz4 data is corrupt: it ends too early");
}

#[test]
fn frames_are_written_as_kafka_does() {
    assert_eq!(compress(b"").unwrap(), [0x04, 0x22, 0x4d, 0x18, 0x60, 0x40, 0x82, 0, 0, 0, 0]);
    assert_eq!(compress(&[0; 65_537]).unwrap()[..7], compress(b"").unwrap()[..7]);
}

#[test]
fn legacy_header_checksum_is_accepted_only_in_format_0() {
    let right = compress(SAMPLE).unwrap();
    let legacy = compress_legacy(Codec::Lz4, SAMPLE).unwrap();
    assert_eq!(legacy[6], 0x1a);
    let read_legacy = |bytes: &[u8]| decompress(Codec::Lz4, bytes, true, LIMIT);
    assert_eq!(read_legacy(&legacy).unwrap(), SAMPLE);
    assert_eq!(read_legacy(&right).unwrap(), SAMPLE);
    assert_eq!(text(&legacy), "the lz4 data is corrupt: the checksum of the header does not hold");
    let mut neither = right;
    for check in (0..=255).filter(|check| ![0x1a, 0x82].contains(check)) {
        neither[6] = check;
        assert!(is_corrupt(&read_legacy(&neither)));
    }
}

#[test]
fn wrong_checksums_and_lengths_are_rejected() {
    let checked = |frame: FrameInfo, back: usize| {
        let mut bytes = written(SAMPLE, frame.block_size(BlockSize::Max64KB));
        let at = bytes.len() - back;
        bytes[at] ^= 1;
        text(&bytes)
    };
    let frame = FrameInfo::new();
    assert_eq!(
        checked(frame.clone().content_checksum(true), 1),
        "the lz4 data is corrupt: the checksum of the content does not hold"
    );
    assert_eq!(
        checked(frame.clone().block_checksums(true), 5),
        "the lz4 data is corrupt: the checksum of a block does not hold"
    );
    // A wrong length, with the correct header checksum.
    let mut bytes = written(SAMPLE, frame.block_size(BlockSize::Max64KB).content_size(Some(SAMPLE.len() as u64)));
    bytes[6] += 1;
    bytes[14] = XxHash32::oneshot(0, &bytes[4..14]).to_le_bytes()[1];
    assert_eq!(text(&bytes), "the lz4 data is corrupt: the content has another length than the header says");
}

#[test]
fn lz4_errors_name_cause() {
    let end = [0; 4];
    assert_eq!(read(&headed(0x60, 0x40, &end), LIMIT).unwrap(), b"");
    let error = |flags, size, after: &[u8]| text(&headed(flags, size, after));
    assert_eq!(text(b"no lz4"), "the lz4 data is corrupt: it does not begin with the magic of a frame");
    // A frame of the legacy format, and a skippable frame.
    assert_eq!(text(&[0x02, 0x21, 0x4c, 0x18, 0]), text(b"no lz4"));
    assert_eq!(text(&[0x50, 0x2a, 0x4d, 0x18, 0, 0, 0, 0]), text(b"no lz4"));
    assert_eq!(error(0xa0, 0x40, &end), "the lz4 data is corrupt: version 2 of the frame is unknown");
    assert_eq!(error(0x62, 0x40, &end), "the lz4 data is corrupt: reserved bits of the frame are set");
    assert_eq!(error(0x60, 0x41, &end), "the lz4 data is corrupt: reserved bits of the frame are set");
    assert_eq!(error(0x60, 0xc0, &end), "the lz4 data is corrupt: reserved bits of the frame are set");
    assert_eq!(error(0x61, 0x40, &end), "the lz4 data is corrupt: the frame needs a dictionary");
    assert_eq!(error(0x60, 0x30, &end), "the lz4 data is corrupt: block size code 3 is unknown");
    let after = |after: &[u8]| error(0x60, 0x40, after);
    assert_eq!(after(&[0, 0, 0, 0, 0]), "the lz4 data is corrupt: bytes are left after its end");
    assert_eq!(after(&[1, 0, 1, 0]), "the lz4 data is corrupt: a block is longer than the header allows");
    assert_eq!(after(&[1, 0, 1, 0x80]), "the lz4 data is corrupt: a block is longer than the header allows");
    assert_eq!(after(&[9, 0, 0, 0, 0]), "the lz4 data is corrupt: it ends too early");
    assert_eq!(after(&[1, 0, 0, 0, 0x10, 0, 0, 0, 0]), "the lz4 data is corrupt: a block is wrong");
}

#[test]
fn concatenated_frames_are_rejected() {
    assert!(is_corrupt(&read(&compress(SAMPLE).unwrap().repeat(2), LIMIT)));
}

#[test]
fn empty_blocks_do_not_end_a_frame() {
    let stored = [1, 0, 0, 0x80, b'x'];
    let after = [&[0, 0, 0, 0x80][..], &stored, &[1, 0, 0, 0, 0], &stored, &[0; 4]].concat();
    let frame = headed(0x60, 0x40, &after);
    assert_eq!(read(&frame, 2).unwrap(), b"xx");
    assert!(is_corrupt(&read(&frame[..frame.len() - 4], LIMIT)));
}

#[test]
fn block_larger_than_header_allows_is_rejected() {
    let large = written(&[0; 65_537], FrameInfo::new().block_size(BlockSize::Max256KB));
    let lying = headed(0x60, 0x40, &large[7..]);
    assert_eq!(text(&lying), "the lz4 data is corrupt: a block is wrong");
    // A block of exactly the maximum size is accepted.
    let large = written(&[0; 65_536], FrameInfo::new().block_size(BlockSize::Max256KB));
    assert_eq!(read(&headed(0x60, 0x40, &large[7..]), LIMIT).unwrap().len(), 65_536);
}

#[test]
fn memory_is_reserved_only_for_what_block_can_hold() {
    let bytes = written(&[0; 100], FrameInfo::new().block_size(BlockSize::Max4MB));
    assert!(bytes.len() < 40, "compressed");
    assert!(read(&bytes, LIMIT).unwrap().capacity() <= bytes.len() * MAX_RATIO);
    let zeros = written(&vec![0; 4 * MIB], FrameInfo::new().block_size(BlockSize::Max4MB));
    assert!((zeros.len() - 15) * MAX_RATIO >= 4 * MIB);
}

#[test]
fn a_bomb_stops_at_the_limit() {
    let zeros = compress(&[0; 65_536]).unwrap();
    let (header, block) = (&zeros[..7], &zeros[7..zeros.len() - 4]);
    let bomb = [header, &block.repeat(1024 * MIB / 65_536), &[0; 4]].concat();
    assert!(is_too_large(&read(&bomb, LIMIT), LIMIT));
}
