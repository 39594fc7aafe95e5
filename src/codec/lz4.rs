//! LZ4 frames ([format](https://github.com/lz4/lz4/blob/dev/doc/lz4_Frame_format.md)).
//!
//! ```text
//! header   ┌─────────────┬───────┬──────┬──────────────────────────┬───────┐
//!          │ 04 22 4d 18 │ flags │ size │ u64 content_len, or none │ check │
//!          └─────────────┴───────┴──────┴──────────────────────────┴───────┘
//!            flags  bits 7–6 version 1 · 5 blocks stand alone · 4 block checksums · 3 content_len · 2 content checksum ·
//!                   1 reserved · 0 dictionary
//!            size   bits 6–4 the most content of a block: 4 64 KiB · 5 256 KiB · 6 1 MiB · 7 4 MiB; others reserved
//!            check  the second byte of the xxHash32 of flags to content_len
//! block    ┌───────────────┬───────┬──────────────────────┐
//!          │ u32 block_len │ block │ u32 xxHash32, or none│  repeated; top bit of block_len: not compressed
//!          └───────────────┴───────┴──────────────────────┘
//! end      ┌─────────────┬───────────────────────┐
//!          │ 00 00 00 00 │ u32 xxHash32, or none │  of the content; all numbers little-endian
//!          └─────────────┴───────────────────────┘
//! ```
//!
//! Kafka's message format 0 is written with a `check` over the magic too; `legacy` takes that one and the right one.
//!
//! The library decompresses the blocks. The frame around them is read here: the library's own reader takes a frame that
//! is cut between two blocks for a whole one, and reserves whatever the header names.
//!
//! Differences from the reference implementation: Kafka looks at neither checksum of the content nor at its length,
//! ignores bytes after the frame and the `check` of message format 0, and refuses blocks that refer to earlier ones.

use std::io::Write;

use lz4_flex::block::{DecompressError, decompress_into, decompress_into_with_dict};
use lz4_flex::frame::{BlockMode, BlockSize, FrameEncoder, FrameInfo};
use twox_hash::XxHash32;

use super::{Codec, CodecFault, Output, TRAILING, take};

const MAGIC: [u8; 4] = [0x04, 0x22, 0x4d, 0x18];

const FLAG_INDEPENDENT: u8 = 1 << 5;
const FLAG_BLOCK_CHECKSUMS: u8 = 1 << 4;
const FLAG_CONTENT_LEN: u8 = 1 << 3;
const FLAG_CONTENT_CHECKSUM: u8 = 1 << 2;
const FLAG_DICTIONARY: u8 = 1;
const RESERVED_FLAGS: u8 = 1 << 1;
const RESERVED_SIZE_BITS: u8 = 0b1000_1111;

/// The top bit of a block's length: the block is not compressed.
const STORED: u32 = 1 << 31;

/// How far back a block may refer.
const WINDOW_LEN: usize = 64 * 1024;

/// More content than a byte of a block can stand for: a byte of a long length adds 255.
const MAX_RATIO: usize = 255;

pub(super) fn decompress(bytes: &[u8], legacy: bool, output: &mut Output) -> Result<(), CodecFault> {
    let mut rest = bytes;
    let frame = Frame::open(&mut rest, legacy)?;
    while frame.block(&mut rest, output)? {}
    frame.close(&mut rest, output)?;
    if rest.is_empty() { Ok(()) } else { Err(Codec::Lz4.corrupt(TRAILING)) }
}

/// Writes a frame as Kafka does: blocks of 64 KiB that stand alone, no checksums.
pub(super) fn compress(bytes: &[u8]) -> Result<Vec<u8>, CodecFault> {
    let frame = FrameInfo::new().block_size(BlockSize::Max64KB).block_mode(BlockMode::Independent);
    let mut encoder = FrameEncoder::with_frame_info(frame, Vec::new());
    encoder.write_all(bytes).map_err(|_| Codec::Lz4.unwritten())?;
    encoder.finish().map_err(|_| Codec::Lz4.unwritten())
}

/// Replaces the header checksum of a frame that [`compress`] wrote by that of message format 0, which covers the magic too.
pub(super) fn with_legacy_check(mut frame: Vec<u8>) -> Vec<u8> {
    let check_at = MAGIC.len() + 2;
    frame[check_at] = XxHash32::oneshot(0, &frame[..check_at]).to_le_bytes()[1];
    frame
}

/// What a frame says in its header.
struct Frame {
    flags: u8,
    max_block_len: usize,
    content_len: Option<u64>,
}

impl Frame {
    fn open(rest: &mut &[u8], legacy: bool) -> Result<Frame, CodecFault> {
        let whole = *rest;
        if take(rest, MAGIC.len(), Codec::Lz4)? != MAGIC {
            return Err(Codec::Lz4.corrupt("it does not begin with the magic of a frame"));
        }
        let [flags, size] = array(rest)?;
        let version = flags >> 6;
        if version != 1 {
            return Err(Codec::Lz4.corrupt(format_args!("version {version} of the frame is unknown")));
        }
        if flags & RESERVED_FLAGS != 0 || size & RESERVED_SIZE_BITS != 0 {
            return Err(Codec::Lz4.corrupt("reserved bits of the frame are set"));
        }
        if flags & FLAG_DICTIONARY != 0 {
            return Err(Codec::Lz4.corrupt("the frame needs a dictionary"));
        }
        let max_block_len = match size >> 4 {
            code @ 4..=7 => 1 << (8 + 2 * code),
            code => return Err(Codec::Lz4.corrupt(format_args!("block size code {code} is unknown"))),
        };
        let content_len = match flags & FLAG_CONTENT_LEN {
            0 => None,
            _ => Some(u64::from_le_bytes(array(rest)?)),
        };
        let header = &whole[..whole.len() - rest.len()];
        let [given] = array(rest)?;
        let made = |bytes: &[u8]| XxHash32::oneshot(0, bytes).to_le_bytes()[1];
        if given != made(&header[MAGIC.len()..]) && !(legacy && given == made(header)) {
            return Err(Codec::Lz4.corrupt("the checksum of the header does not hold"));
        }
        Ok(Frame { flags, max_block_len, content_len })
    }

    /// Reads the next block; `false` is the end mark.
    fn block(&self, rest: &mut &[u8], output: &mut Output) -> Result<bool, CodecFault> {
        let word = u32::from_le_bytes(array(rest)?);
        if word == 0 {
            return Ok(false);
        }
        let len = (word & !STORED) as usize;
        if len > self.max_block_len {
            return Err(Codec::Lz4.corrupt("a block is longer than the header allows"));
        }
        let block = take(rest, len, Codec::Lz4)?;
        if self.flags & FLAG_BLOCK_CHECKSUMS != 0 {
            check(rest, block, "the checksum of a block does not hold")?;
        }
        match word & STORED {
            0 => self.compressed(block, output)?,
            _ => output.extend(block)?,
        }
        Ok(true)
    }

    fn compressed(&self, block: &[u8], output: &mut Output) -> Result<(), CodecFault> {
        let most = self.max_block_len.min(block.len().saturating_mul(MAX_RATIO));
        let (limit, limited) = (output.too_large(), output.room() < most);
        output.fill(most.min(output.room()), |before, room| {
            let written = match self.flags & FLAG_INDEPENDENT {
                0 => decompress_into_with_dict(block, room, &before[before.len().saturating_sub(WINDOW_LEN)..]),
                _ => decompress_into(block, room),
            };
            written.map_err(|error| match error {
                DecompressError::OutputTooSmall { .. } if limited => limit,
                _ => Codec::Lz4.corrupt("a block is wrong"),
            })
        })
    }

    fn close(&self, rest: &mut &[u8], output: &Output) -> Result<(), CodecFault> {
        let content = output.bytes();
        if self.flags & FLAG_CONTENT_CHECKSUM != 0 {
            check(rest, content, "the checksum of the content does not hold")?;
        }
        match self.content_len {
            Some(len) if len != content.len() as u64 => {
                Err(Codec::Lz4.corrupt("the content has another length than the header says"))
            }
            _ => Ok(()),
        }
    }
}

fn check(rest: &mut &[u8], bytes: &[u8], fault: &str) -> Result<(), CodecFault> {
    if u32::from_le_bytes(array(rest)?) == XxHash32::oneshot(0, bytes) {
        Ok(())
    } else {
        Err(Codec::Lz4.corrupt(fault))
    }
}

fn array<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], CodecFault> {
    Ok(take(rest, N, Codec::Lz4)?.first_chunk().copied().unwrap_or([0; N]))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{LIMIT, MIB, is_corrupt, is_too_large, noise};
    use super::*;

    const SAMPLE: &[u8] = b"a sample, a sample, a sample, and something else";

    fn read(bytes: &[u8], limit: usize) -> Result<Vec<u8>, CodecFault> {
        super::super::decompress(Codec::Lz4, bytes, false, limit)
    }

    fn text(bytes: &[u8]) -> String {
        read(bytes, LIMIT).unwrap_err().to_string()
    }

    fn written(content: &[u8], frame: FrameInfo) -> Vec<u8> {
        let mut encoder = FrameEncoder::with_frame_info(frame, Vec::new());
        encoder.write_all(content).unwrap();
        encoder.finish().unwrap()
    }

    /// Every combination of what a frame may say.
    fn frames(len: usize) -> Vec<FrameInfo> {
        let mut frames = Vec::new();
        for bits in 0..16 {
            for size in [BlockSize::Max64KB, BlockSize::Max256KB, BlockSize::Max1MB, BlockSize::Max4MB] {
                let mode = if bits & 1 == 0 { BlockMode::Independent } else { BlockMode::Linked };
                let frame = FrameInfo::new().block_size(size).block_mode(mode).block_checksums(bits & 2 != 0);
                let content_size = (bits & 8 != 0).then_some(len as u64);
                frames.push(frame.content_checksum(bits & 4 != 0).content_size(content_size));
            }
        }
        frames
    }

    /// A frame with a header of its own making and the right check.
    fn headed(flags: u8, size: u8, after: &[u8]) -> Vec<u8> {
        let check = XxHash32::oneshot(0, &[flags, size]).to_le_bytes()[1];
        [&MAGIC[..], &[flags, size, check], after].concat()
    }

    #[test]
    fn every_kind_of_frame_is_read() {
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
    fn no_kind_of_frame_may_be_cut() {
        for frame in frames(SAMPLE.len()) {
            let bytes = written(SAMPLE, frame.clone());
            for cut in 0..bytes.len() {
                assert!(is_corrupt(&read(&bytes[..cut], LIMIT)), "{frame:?} cut at {cut}");
            }
        }
    }

    #[test]
    fn a_cut_between_two_blocks_is_seen() {
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
    fn the_check_of_message_format_0_is_taken_where_it_may_stand() {
        let right = compress(SAMPLE).unwrap();
        let legacy = with_legacy_check(right.clone());
        assert_eq!(legacy[6], 0x1a);
        let read_legacy = |bytes: &[u8]| super::super::decompress(Codec::Lz4, bytes, true, LIMIT);
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
    fn checksums_and_lengths_that_do_not_hold_are_refused() {
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
        // A wrong length with its right check.
        let mut bytes = written(SAMPLE, frame.block_size(BlockSize::Max64KB).content_size(Some(SAMPLE.len() as u64)));
        bytes[6] += 1;
        bytes[14] = XxHash32::oneshot(0, &bytes[4..14]).to_le_bytes()[1];
        assert_eq!(text(&bytes), "the lz4 data is corrupt: the content has another length than the header says");
    }

    #[test]
    fn faults_say_what_is_wrong() {
        let end = [0; 4];
        assert_eq!(read(&headed(0x60, 0x40, &end), LIMIT).unwrap(), b"");
        let fault = |flags, size, after: &[u8]| text(&headed(flags, size, after));
        assert_eq!(text(b"no lz4"), "the lz4 data is corrupt: it does not begin with the magic of a frame");
        // The format before frames, and a frame to skip.
        assert_eq!(text(&[0x02, 0x21, 0x4c, 0x18, 0]), text(b"no lz4"));
        assert_eq!(text(&[0x50, 0x2a, 0x4d, 0x18, 0, 0, 0, 0]), text(b"no lz4"));
        assert_eq!(fault(0xa0, 0x40, &end), "the lz4 data is corrupt: version 2 of the frame is unknown");
        assert_eq!(fault(0x62, 0x40, &end), "the lz4 data is corrupt: reserved bits of the frame are set");
        assert_eq!(fault(0x60, 0x41, &end), "the lz4 data is corrupt: reserved bits of the frame are set");
        assert_eq!(fault(0x60, 0xc0, &end), "the lz4 data is corrupt: reserved bits of the frame are set");
        assert_eq!(fault(0x61, 0x40, &end), "the lz4 data is corrupt: the frame needs a dictionary");
        assert_eq!(fault(0x60, 0x30, &end), "the lz4 data is corrupt: block size code 3 is unknown");
        let after = |after: &[u8]| fault(0x60, 0x40, after);
        assert_eq!(after(&[0, 0, 0, 0, 0]), "the lz4 data is corrupt: bytes are left after its end");
        assert_eq!(after(&[1, 0, 1, 0]), "the lz4 data is corrupt: a block is longer than the header allows");
        assert_eq!(after(&[1, 0, 1, 0x80]), "the lz4 data is corrupt: a block is longer than the header allows");
        assert_eq!(after(&[9, 0, 0, 0, 0]), "the lz4 data is corrupt: it ends too early");
        assert_eq!(after(&[1, 0, 0, 0, 0x10, 0, 0, 0, 0]), "the lz4 data is corrupt: a block is wrong");
    }

    #[test]
    fn frames_in_a_row_are_refused() {
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
    fn a_block_that_makes_more_than_the_header_allows_is_refused() {
        let large = written(&[0; 65_537], FrameInfo::new().block_size(BlockSize::Max256KB));
        let lying = headed(0x60, 0x40, &large[7..]);
        assert_eq!(text(&lying), "the lz4 data is corrupt: a block is wrong");
        // One byte less is fine.
        let large = written(&[0; 65_536], FrameInfo::new().block_size(BlockSize::Max256KB));
        assert_eq!(read(&headed(0x60, 0x40, &large[7..]), LIMIT).unwrap().len(), 65_536);
    }

    #[test]
    fn room_is_made_for_what_a_block_could_hold_and_no_more() {
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
}
