//! Snappy, bare ([format](https://github.com/google/snappy/blob/main/format_description.txt)) or in the framing of
//! xerial's `snappy-java`, which Kafka uses.
//!
//! ```text
//! bare     ┌──────────────────┬──────────┐
//!          │ varint32 content │ elements │                                     to the end
//!          └──────────────────┴──────────┘
//! xerial   ┌─────────────────────────┬─────────────┬────────────────┬────────────────────────────┐
//!          │ 82 53 4e 41 50 50 59 00 │ i32 version │ i32 compatible │ i32 block_len │ bare block │  big-endian; the
//!          └─────────────────────────┴─────────────┴────────────────┴────────────────────────────┘  blocks to the end
//! ```
//!
//! Neither form has a checksum, and xerial's framing has no end mark: truncation between two blocks is not detected.
//!
//! Differences from the reference implementation: framed streams written one after the other are rejected.

use super::{Codec, Output, Result, TRUNCATED, output_for, take};
use crate::memory;

/// First bytes of the framing. Unframed data never begins with them: it would have 10,626 bytes of content, and begin
/// with a copy.
const MAGIC: [u8; 8] = *b"\x82SNAPPY\0";

/// Version that `snappy-java` writes, also as the oldest compatible version.
const VERSION: i32 = 1;

/// Content length of the blocks that `snappy-java` writes.
const BLOCK_LEN: usize = 32 * 1024;

/// Maximum number of content bytes per block byte: 3 bytes expand to at most 64.
const MAX_RATIO: usize = 22;

pub(super) fn decompress(bytes: &[u8], output: &mut Output<'_>) -> Result {
    let Some(mut rest) = bytes.strip_prefix(&MAGIC) else {
        return block(bytes, output);
    };
    let version = number(&mut rest)?;
    if version < VERSION {
        return Err(Codec::Snappy.corrupt(format_args!("version {version} of its framing is unknown")));
    }
    // `snappy-java` ignores it, and other writers use either byte order.
    let _compatible = number(&mut rest)?;
    while !rest.is_empty() {
        let len = number(&mut rest)?;
        let len = usize::try_from(len)
            .map_err(|_| Codec::Snappy.corrupt(format_args!("the length {len} of a block is negative")))?;
        block(take(&mut rest, len, Codec::Snappy)?, output)?;
    }
    Ok(())
}

pub(super) fn compress(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut out = output_for(bytes);
    out.extend(MAGIC);
    out.extend(VERSION.to_be_bytes());
    out.extend(VERSION.to_be_bytes());
    let mut encoder = snap::raw::Encoder::new();
    for content in bytes.chunks(BLOCK_LEN) {
        let block = encoder.compress_vec(content).map_err(|_| Codec::Snappy.unwritten())?;
        let len = i32::try_from(block.len()).map_err(|_| Codec::Snappy.unwritten())?;
        out.extend(len.to_be_bytes());
        memory::extend(&mut out, &block);
    }
    Ok(out)
}

fn block(bytes: &[u8], output: &mut Output<'_>) -> Result {
    if bytes.is_empty() {
        return Err(Codec::Snappy.corrupt(TRUNCATED));
    }
    let wrong = |_| Codec::Snappy.corrupt("a block is wrong");
    let announced = snap::raw::decompress_len(bytes).map_err(wrong)?;
    if announced > output.room() {
        return Err(output.too_large());
    }
    if announced > bytes.len().saturating_mul(MAX_RATIO) {
        return Err(Codec::Snappy.corrupt("a block announces more than it could hold"));
    }
    output.fill(announced, |_, room| snap::raw::Decoder::new().decompress(bytes, room).map_err(wrong))
}

fn number(rest: &mut &[u8]) -> Result<i32> {
    let bytes = take(rest, 4, Codec::Snappy)?;
    Ok(i32::from_be_bytes(bytes.first_chunk().copied().unwrap_or_default()))
}
