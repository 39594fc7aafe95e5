//! Gzip ([RFC 1952](https://www.rfc-editor.org/rfc/rfc1952)): one member or several, one after the other.
//!
//! ```text
//! ┌──────────────────────────────────────┬────────┬───────────┬───────────────┐
//! │ 1f 8b, method 8, flags, time, extras │ blocks │ u32 crc32 │ u32 size      │  little-endian, repeated to the end
//! └──────────────────────────────────────┴────────┴───────────┴───────────────┘
//! ```
//!
//! Differences from the reference implementation: bytes after the last member are rejected, where Java ignores them.

use std::io::{ErrorKind, Write};

use flate2::Compression;
use flate2::bufread::GzDecoder;
use flate2::write::GzEncoder;

use super::{Codec, Output, Result, TRAILING, TRUNCATED, output_for};

/// First bytes of a member.
const MAGIC: [u8; 2] = [0x1f, 0x8b];

pub(super) fn decompress(bytes: &[u8], output: &mut Output<'_>) -> Result {
    let mut member = GzDecoder::new(bytes);
    loop {
        output.drain(&mut member, |error| {
            Codec::Gzip.corrupt(match error.kind() {
                ErrorKind::UnexpectedEof => TRUNCATED,
                _ => "a header, block or checksum is wrong",
            })
        })?;
        let rest = *member.get_ref();
        if rest.is_empty() {
            return Ok(());
        }
        if !rest.starts_with(&MAGIC) {
            return Err(Codec::Gzip.corrupt(TRAILING));
        }
        member.reset(rest);
    }
}

pub(super) fn compress(bytes: &[u8], level: Option<i32>) -> Result<Vec<u8>> {
    let level = level.map_or(Compression::default(), |level| Compression::new(level.clamp(0, 9).unsigned_abs()));
    let mut encoder = GzEncoder::new(output_for(bytes), level);
    encoder.write_all(bytes).and_then(|()| encoder.finish()).map_err(|_| Codec::Gzip.unwritten())
}
