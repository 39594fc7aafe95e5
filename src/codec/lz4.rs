//! LZ4 frames ([format](https://github.com/lz4/lz4/blob/dev/doc/lz4_Frame_format.md)).
//!
//! ```text
//! header   ┌─────────────┬───────┬──────┬──────────────────────────┬───────┐
//!          │ 04 22 4d 18 │ flags │ size │ u64 content_len, or none │ check │
//!          └─────────────┴───────┴──────┴──────────────────────────┴───────┘
//!            flags  bits 7–6 version 1 · 5 blocks are independent · 4 block checksums · 3 content_len ·
//!                   2 content checksum · 1 reserved · 0 dictionary
//!            size   bits 6–4 maximum content of a block: 4 64 KiB · 5 256 KiB · 6 1 MiB · 7 4 MiB; others reserved
//!            check  the second byte of the xxHash32 of flags to content_len
//! block    ┌───────────────┬───────┬──────────────────────┐
//!          │ u32 block_len │ block │ u32 xxHash32, or none│  repeated; top bit of block_len: not compressed
//!          └───────────────┴───────┴──────────────────────┘
//! end      ┌─────────────┬───────────────────────┐
//!          │ 00 00 00 00 │ u32 xxHash32, or none │  of the content; all numbers little-endian
//!          └─────────────┴───────────────────────┘
//! ```
//!
//! In Kafka's message format 0, `check` covers the magic too; `legacy` accepts both.
//!
//! The library decompresses the blocks. The frame around them is read here, because the library's reader accepts a
//! frame that is truncated between two blocks, and reserves any size that the header declares.
//!
//! Differences from the reference implementation: Kafka verifies neither checksum of the content nor its length,
//! ignores bytes after the frame and the `check` of message format 0, and rejects blocks that refer to earlier ones.

use std::io::Write;

use lz4_flex::block::{DecompressError, decompress_into, decompress_into_with_dict};
use lz4_flex::frame::{BlockMode, BlockSize, FrameEncoder, FrameInfo};
use twox_hash::XxHash32;

use super::{Codec, Output, Result, TRAILING, output_for, take};

const MAGIC: [u8; 4] = [0x04, 0x22, 0x4d, 0x18];

const FLAG_INDEPENDENT: u8 = 1 << 5;
const FLAG_BLOCK_CHECKSUMS: u8 = 1 << 4;
const FLAG_CONTENT_LEN: u8 = 1 << 3;
const FLAG_CONTENT_CHECKSUM: u8 = 1 << 2;
const FLAG_DICTIONARY: u8 = 1;
const RESERVED_FLAGS: u8 = 1 << 1;
const RESERVED_SIZE_BITS: u8 = 0b1000_1111;

/// Top bit of the length of a block that is not compressed.
const STORED: u32 = 1 << 31;

/// Maximum distance of a reference.
const WINDOW_LEN: usize = 64 * 1024;

/// Maximum number of content bytes per block byte: each byte of a long length adds 255.
const MAX_RATIO: usize = 255;

pub(super) fn decompress(bytes: &[u8], legacy: bool, output: &mut Output<'_>) -> Result {
    let mut rest = bytes;
    let frame = Frame::open(&mut rest, legacy)?;
    while frame.block(&mut rest, output)? {}
    frame.close(&mut rest, output)?;
    if rest.is_empty() { Ok(()) } else { Err(Codec::Lz4.corrupt(TRAILING)) }
}

/// Writes a frame as Kafka does: independent blocks of 64 KiB, no checksums.
pub(super) fn compress(bytes: &[u8]) -> Result<Vec<u8>> {
    let frame = FrameInfo::new().block_size(BlockSize::Max64KB).block_mode(BlockMode::Independent);
    let mut encoder = FrameEncoder::with_frame_info(frame, output_for(bytes));
    encoder.write_all(bytes).map_err(|_| Codec::Lz4.unwritten())?;
    encoder.finish().map_err(|_| Codec::Lz4.unwritten())
}

/// Replaces the header checksum of a frame from [`compress`] by the checksum of message format 0, which also covers the
/// magic.
pub(super) fn with_legacy_check(mut frame: Vec<u8>) -> Vec<u8> {
    let check_offset = MAGIC.len() + 2;
    frame[check_offset] = XxHash32::oneshot(0, &frame[..check_offset]).to_le_bytes()[1];
    frame
}

struct Frame {
    flags: u8,
    max_block_len: usize,
    content_len: Option<u64>,
}

impl Frame {
    fn open(rest: &mut &[u8], legacy: bool) -> Result<Frame> {
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
        let [stored] = array(rest)?;
        let computed = |bytes: &[u8]| XxHash32::oneshot(0, bytes).to_le_bytes()[1];
        if stored != computed(&header[MAGIC.len()..]) && !(legacy && stored == computed(header)) {
            return Err(Codec::Lz4.corrupt("the checksum of the header does not hold"));
        }
        Ok(Frame { flags, max_block_len, content_len })
    }

    /// Reads the next block; returns false at the end mark.
    fn block(&self, rest: &mut &[u8], output: &mut Output<'_>) -> Result<bool> {
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
            0 => self.decompress_block(block, output)?,
            _ => output.extend(block)?,
        }
        Ok(true)
    }

    fn decompress_block(&self, block: &[u8], output: &mut Output<'_>) -> Result {
        let max_len = self.max_block_len.min(block.len().saturating_mul(MAX_RATIO));
        let (limit, limited) = (output.too_large(), output.room() < max_len);
        output.fill(max_len.min(output.room()), |before, room| {
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

    fn close(&self, rest: &mut &[u8], output: &Output<'_>) -> Result {
        let content = output.content();
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

fn check(rest: &mut &[u8], bytes: &[u8], error: &str) -> Result {
    if u32::from_le_bytes(array(rest)?) == XxHash32::oneshot(0, bytes) {
        Ok(())
    } else {
        Err(Codec::Lz4.corrupt(error))
    }
}

fn array<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N]> {
    Ok(take(rest, N, Codec::Lz4)?.first_chunk().copied().unwrap_or([0; N]))
}
