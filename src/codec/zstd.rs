//! Zstandard ([RFC 8878](https://www.rfc-editor.org/rfc/rfc8878)): one frame or several, one after the other.
//!
//! ```text
//! ┌─────────────┬─────────────────────────────┬────────┬────────────────────┐
//! │ 28 b5 2f fd │ flags, window, content size │ blocks │ xxHash64, 0 or 4 B │  little-endian, repeated to the end
//! └─────────────┴─────────────────────────────┴────────┴────────────────────┘
//! ```

use std::io::ErrorKind;

use ::zstd::bulk;
use ::zstd::stream::read::Decoder;

use super::{Codec, Output, Result, TRUNCATED};

/// The largest window that is read, 128 MiB: what the library and Kafka read, and what the highest levels write.
/// The library reserves it and touches no more of it than there is content; if it cannot, that is an error.
const MAX_WINDOW_LOG: u32 = 27;

pub(super) fn decompress(bytes: &[u8], output: &mut Output<'_>) -> Result {
    let wrong = |_| Codec::Zstd.corrupt("the decoder could not start");
    let mut decoder = Decoder::with_buffer(bytes).map_err(wrong)?;
    decoder.window_log_max(MAX_WINDOW_LOG).map_err(wrong)?;
    output.drain(&mut decoder, |error| {
        Codec::Zstd.corrupt(match error.kind() {
            ErrorKind::UnexpectedEof => TRUNCATED,
            _ => "a header, block or checksum is wrong",
        })
    })
}

pub(super) fn compress(bytes: &[u8]) -> Result<Vec<u8>> {
    bulk::compress(bytes, ::zstd::DEFAULT_COMPRESSION_LEVEL).map_err(|_| Codec::Zstd.unwritten())
}
