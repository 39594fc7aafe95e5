//! Zstandard ([RFC 8878](https://www.rfc-editor.org/rfc/rfc8878)): one frame or several, one after the other.
//!
//! ```text
//! ┌─────────────┬─────────────────────────────┬────────┬────────────────────┐
//! │ 28 b5 2f fd │ flags, window, content size │ blocks │ xxHash64, 0 or 4 B │  little-endian, repeated to the end
//! └─────────────┴─────────────────────────────┴────────┴────────────────────┘
//! ```

use std::io::ErrorKind;

use ::zstd::bulk::Compressor;
use ::zstd::stream::read::Decoder;
use ::zstd::zstd_safe;

use super::{Codec, Output, Result, TRUNCATED};
use crate::memory;

/// Maximum window size for reading, 128 MiB. The library and Kafka have the same limit, and the highest compression
/// levels write windows of this size. The library reserves the whole window, but only touches as much of it as there is
/// content.
const MAX_WINDOW_LOG: u32 = 27;

/// Error of the library if it cannot reserve the window.
const NO_MEMORY: &str = "Allocation error : not enough memory";

pub(super) fn decompress(bytes: &[u8], output: &mut Output<'_>) -> Result {
    let wrong = |_| Codec::Zstd.corrupt("the decoder could not start");
    let mut decoder = Decoder::with_buffer(bytes).map_err(wrong)?;
    decoder.window_log_max(MAX_WINDOW_LOG).map_err(wrong)?;
    output.drain(&mut decoder, |error| {
        Codec::Zstd.corrupt(match error.kind() {
            ErrorKind::UnexpectedEof => TRUNCATED,
            _ if error.to_string() == NO_MEMORY => memory::refuse(1 << MAX_WINDOW_LOG),
            _ => "a header, block or checksum is wrong",
        })
    })
}

pub(super) fn compress(bytes: &[u8], level: Option<i32>) -> Result<Vec<u8>> {
    let mut out = memory::vec_of(zstd_safe::compress_bound(bytes.len()));
    let written = Compressor::new(level.unwrap_or(::zstd::DEFAULT_COMPRESSION_LEVEL))
        .and_then(|mut compressor| compressor.compress_to_buffer(bytes, &mut out));
    written.map(|_| out).map_err(|_| Codec::Zstd.unwritten())
}
