//! Compression codecs: [`compress`], and [`decompress`] up to a limit of bytes.
//!
//! Compressed data is untrusted: no size in it causes an allocation. Memory is reserved as content is decompressed,
//! bounded by the maximum that the input could hold. Data that is truncated, has trailing bytes or fails its checksum
//! is rejected.
//!
//! Each codec is a feature of the crate. A codec that was not compiled in is an error.

#![cfg_attr(
    not(all(feature = "gzip", feature = "lz4", feature = "snappy", feature = "zstd")),
    allow(dead_code, unused_variables)
)]

#[cfg(feature = "gzip")]
mod gzip;
#[cfg(feature = "lz4")]
mod lz4;
#[cfg(feature = "snappy")]
mod snappy;
#[cfg(feature = "zstd")]
mod zstd;

use std::fmt::{self, Display};
use std::io::{self, Read};

use crate::memory;

/// Compression codec, numbered as in the attributes of a message or a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Codec {
    None,
    Gzip,
    Snappy,
    Lz4,
    Zstd,
}

/// Reason why bytes could not be decompressed or compressed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CodecError {
    /// Lower case, no full stop, never a user's bytes.
    Corrupt(String),
    /// The content is larger than the caller allows.
    TooLarge { limit: usize },
}

/// Decompresses `bytes` to at most `limit` bytes.
///
/// `lz4_legacy` accepts the wrong header checksum of LZ4 in Kafka's message format 0.
pub fn decompress(codec: Codec, bytes: &[u8], lz4_legacy: bool, limit: usize) -> Result<Vec<u8>> {
    let mut content = Vec::new();
    let len = decompress_into(codec, bytes, lz4_legacy, limit, &mut content)?;
    content.truncate(len);
    Ok(content)
}

/// Like `decompress`, but overwrites the beginning of a buffer, and returns the length of the content. A
/// buffer that is reused is neither filled with zeros nor moved.
pub fn decompress_into(
    codec: Codec,
    bytes: &[u8],
    lz4_legacy: bool,
    limit: usize,
    buffer: &mut Vec<u8>,
) -> Result<usize> {
    let mut output = Output { buffer, len: 0, limit };
    match codec {
        Codec::None => output.extend(bytes)?,
        #[cfg(feature = "gzip")]
        Codec::Gzip => gzip::decompress(bytes, &mut output)?,
        #[cfg(feature = "snappy")]
        Codec::Snappy => snappy::decompress(bytes, &mut output)?,
        #[cfg(feature = "lz4")]
        Codec::Lz4 => lz4::decompress(bytes, lz4_legacy, &mut output)?,
        #[cfg(feature = "zstd")]
        Codec::Zstd => zstd::decompress(bytes, &mut output)?,
        #[allow(unreachable_patterns)]
        _ => return Err(codec.left_out()),
    }
    Ok(output.len)
}

/// Compresses a message set of format 0, whose LZ4 frames have the wrong header checksum that its readers expect.
pub fn compress_legacy(codec: Codec, bytes: &[u8]) -> Result<Vec<u8>> {
    match codec {
        #[cfg(feature = "lz4")]
        Codec::Lz4 => lz4::compress(bytes).map(lz4::with_legacy_check),
        _ => compress(codec, bytes),
    }
}

/// Compresses `bytes` as Kafka's producer does.
pub fn compress(codec: Codec, bytes: &[u8]) -> Result<Vec<u8>> {
    compress_at(codec, None, bytes)
}

/// Like `compress`, with a compression level, which Snappy and LZ4 ignore.
pub fn compress_at(codec: Codec, level: Option<i32>, bytes: &[u8]) -> Result<Vec<u8>> {
    match codec {
        Codec::None => {
            let mut content = Vec::new();
            memory::extend(&mut content, bytes);
            Ok(content)
        }
        #[cfg(feature = "gzip")]
        Codec::Gzip => gzip::compress(bytes, level),
        #[cfg(feature = "snappy")]
        Codec::Snappy => snappy::compress(bytes),
        #[cfg(feature = "lz4")]
        Codec::Lz4 => lz4::compress(bytes),
        #[cfg(feature = "zstd")]
        Codec::Zstd => zstd::compress(bytes, level),
        #[allow(unreachable_patterns)]
        _ => Err(codec.left_out()),
    }
}

impl Codec {
    /// Every codec, in the order of their numbers.
    pub const ALL: [Codec; 5] = [Codec::None, Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd];

    /// Codec of a number, after the caller has removed other attribute bits.
    pub fn from_attributes(bits: u8) -> Option<Codec> {
        Codec::ALL.get(usize::from(bits)).copied()
    }

    pub fn name(self) -> &'static str {
        match self {
            Codec::None => "none",
            Codec::Gzip => "gzip",
            Codec::Snappy => "snappy",
            Codec::Lz4 => "lz4",
            Codec::Zstd => "zstd",
        }
    }

    #[cold]
    fn corrupt(self, reason: impl Display) -> CodecError {
        CodecError::Corrupt(format!("the {} data is corrupt: {reason}", self.name()))
    }

    #[cold]
    fn left_out(self) -> CodecError {
        CodecError::Corrupt(format!("the data is {0}, and the core was built without the feature {0}", self.name()))
    }

    /// Error of an encoder, for which no reason is known.
    #[cold]
    fn unwritten(self) -> CodecError {
        CodecError::Corrupt(format!("the {} data could not be written", self.name()))
    }
}

impl Display for CodecError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CodecError::Corrupt(text) => out.write_str(text),
            CodecError::TooLarge { limit } => write!(out, "decompressed data would pass {limit} bytes"),
        }
    }
}

impl std::error::Error for CodecError {}

pub type Result<T = (), E = CodecError> = std::result::Result<T, E>;

const TRUNCATED: &str = "it ends too early";
const TRAILING: &str = "bytes are left after its end";

/// Returns an empty buffer with memory for bytes that cannot be compressed.
fn output_for(bytes: &[u8]) -> Vec<u8> {
    memory::vec_of(bytes.len() + bytes.len() / 64 + 256)
}

/// Number of bytes of one read from a decoder.
const CHUNK_LEN: usize = 16 * 1024;

/// Decompressed content as it grows. Neither the content nor its memory exceeds the limit.
struct Output<'b> {
    /// Content, followed by unused bytes.
    buffer: &'b mut Vec<u8>,
    len: usize,
    limit: usize,
}

impl Output<'_> {
    fn content(&self) -> &[u8] {
        &self.buffer[..self.len]
    }

    /// Number of bytes that may still be appended.
    fn room(&self) -> usize {
        self.limit - self.len
    }

    fn too_large(&self) -> CodecError {
        CodecError::TooLarge { limit: self.limit }
    }

    fn extend(&mut self, bytes: &[u8]) -> Result {
        self.reserve(bytes.len())?;
        self.buffer[self.len..][..bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
        Ok(())
    }

    /// Calls `write` with the content and room for `len` bytes after it; `write` returns the number of bytes that it
    /// wrote.
    fn fill(&mut self, len: usize, write: impl FnOnce(&[u8], &mut [u8]) -> Result<usize>) -> Result {
        self.reserve(len)?;
        let (content, room) = self.buffer.split_at_mut(self.len);
        self.len += write(content, &mut room[..len])?;
        Ok(())
    }

    /// Reads a decoder to its end, even if the limit is reached exactly, so that the end is also verified.
    fn drain(&mut self, decoder: &mut impl Read, corrupt: impl FnOnce(io::Error) -> CodecError) -> Result {
        let mut chunk = [0; CHUNK_LEN];
        loop {
            match decoder.read(&mut chunk) {
                Ok(0) => return Ok(()),
                Ok(len) => self.extend(&chunk[..len])?,
                Err(error) => return Err(corrupt(error)),
            }
        }
    }

    /// Makes the buffer long enough for `more` bytes. If it has to grow, its memory is doubled, within the limit.
    fn reserve(&mut self, more: usize) -> Result {
        if more > self.room() {
            return Err(self.too_large());
        }
        let needed = self.len + more;
        if needed > self.buffer.capacity() {
            let doubled = self.buffer.capacity().saturating_mul(2).min(self.limit);
            let len = self.buffer.len();
            if self.buffer.try_reserve_exact(needed.max(doubled) - len).is_err() {
                memory::reserve_exact(self.buffer, needed - len);
            }
        }
        if needed > self.buffer.len() {
            self.buffer.resize(needed, 0);
        }
        Ok(())
    }
}

/// Takes `len` bytes from the front; fewer are an error.
fn take<'a>(rest: &mut &'a [u8], len: usize, codec: Codec) -> Result<&'a [u8]> {
    rest.split_off(..len).ok_or_else(|| codec.corrupt(TRUNCATED))
}
