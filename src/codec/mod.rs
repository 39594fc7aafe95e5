//! The codecs in which messages are compressed: bytes in, bytes out, never more of them than the caller allows.
//!
//! What comes out is data of a stranger, so no size in it is believed: room is made as content appears, bounded by what
//! the bytes at hand could hold. Data that end too early, go on after their end or fail their checksum are refused.

mod gzip;
mod lz4;
mod snappy;
mod zstd;

use std::fmt::{self, Display};
use std::io::{self, Read};

/// A codec, as the attributes of a message or of a batch number them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Codec {
    None,
    Gzip,
    Snappy,
    Lz4,
    Zstd,
}

/// Why bytes could not be taken out of a codec or put into it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CodecFault {
    /// What is wrong with the bytes; lower case, no full stop, never a user's bytes.
    Corrupt(String),
    /// The content is larger than the caller allows.
    TooLarge { limit: usize },
}

/// Takes the content out of `bytes`, of which there may be `limit` bytes.
///
/// `lz4_legacy` allows LZ4 the wrong header checksum of Kafka's message format 0.
pub fn decompress(codec: Codec, bytes: &[u8], lz4_legacy: bool, limit: usize) -> Result<Vec<u8>, CodecFault> {
    let mut output = Output::new(limit);
    match codec {
        Codec::None => output.extend(bytes)?,
        Codec::Gzip => gzip::decompress(bytes, &mut output)?,
        Codec::Snappy => snappy::decompress(bytes, &mut output)?,
        Codec::Lz4 => lz4::decompress(bytes, lz4_legacy, &mut output)?,
        Codec::Zstd => zstd::decompress(bytes, &mut output)?,
    }
    Ok(output.content)
}

/// Compresses a message set of format 0: its LZ4 frames have the wrong header checksum that readers of that time expect.
pub fn compress_legacy(codec: Codec, bytes: &[u8]) -> Result<Vec<u8>, CodecFault> {
    match codec {
        Codec::Lz4 => lz4::compress(bytes).map(lz4::with_legacy_check),
        _ => compress(codec, bytes),
    }
}

/// Puts `bytes` into a codec, as Kafka's producer does.
pub fn compress(codec: Codec, bytes: &[u8]) -> Result<Vec<u8>, CodecFault> {
    match codec {
        Codec::None => Ok(bytes.to_vec()),
        Codec::Gzip => gzip::compress(bytes),
        Codec::Snappy => snappy::compress(bytes),
        Codec::Lz4 => lz4::compress(bytes),
        Codec::Zstd => zstd::compress(bytes),
    }
}

impl Codec {
    /// Every codec, in the order of their numbers.
    pub const ALL: [Codec; 5] = [Codec::None, Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd];

    /// The codec with a number, which the caller has freed of other attribute bits.
    pub fn from_attributes(bits: u8) -> Option<Codec> {
        Codec::ALL.get(usize::from(bits)).copied()
    }

    /// The name a user meets.
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
    fn corrupt(self, what: impl Display) -> CodecFault {
        CodecFault::Corrupt(format!("the {} data is corrupt: {what}", self.name()))
    }

    /// An encoder failed, which writing to memory gives it no reason for.
    #[cold]
    fn unwritten(self) -> CodecFault {
        CodecFault::Corrupt(format!("the {} data could not be written", self.name()))
    }
}

impl Display for CodecFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CodecFault::Corrupt(text) => out.write_str(text),
            CodecFault::TooLarge { limit } => write!(out, "decompressed data would pass {limit} bytes"),
        }
    }
}

impl std::error::Error for CodecFault {}

const TRUNCATED: &str = "it ends too early";
const TRAILING: &str = "bytes are left after its end";

/// How much a decoder hands over at a time.
const CHUNK_LEN: usize = 16 * 1024;

/// Content that grows as it appears and never passes its limit, nor does the room made for it.
struct Output {
    content: Vec<u8>,
    limit: usize,
}

impl Output {
    fn new(limit: usize) -> Self {
        Output { content: Vec::new(), limit }
    }

    fn bytes(&self) -> &[u8] {
        &self.content
    }

    /// How many bytes may still come.
    fn room(&self) -> usize {
        self.limit - self.content.len()
    }

    fn too_large(&self) -> CodecFault {
        CodecFault::TooLarge { limit: self.limit }
    }

    fn extend(&mut self, bytes: &[u8]) -> Result<(), CodecFault> {
        self.reserve(bytes.len())?;
        self.content.extend_from_slice(bytes);
        Ok(())
    }

    /// Lets `write` see the content so far and put up to `len` bytes after it; it says how many.
    fn fill(
        &mut self,
        len: usize,
        write: impl FnOnce(&[u8], &mut [u8]) -> Result<usize, CodecFault>,
    ) -> Result<(), CodecFault> {
        self.reserve(len)?;
        let before = self.content.len();
        self.content.resize(before + len, 0);
        let (content, room) = self.content.split_at_mut(before);
        let written = write(content, room)?;
        self.content.truncate(before + written);
        Ok(())
    }

    /// Takes all that a decoder has, which is asked once more when the limit is reached: its end is checked too.
    fn drain(
        &mut self,
        decoder: &mut impl Read,
        corrupt: impl FnOnce(io::Error) -> CodecFault,
    ) -> Result<(), CodecFault> {
        let mut chunk = [0; CHUNK_LEN];
        loop {
            match decoder.read(&mut chunk) {
                Ok(0) => return Ok(()),
                Ok(len) => self.extend(&chunk[..len])?,
                Err(error) => return Err(corrupt(error)),
            }
        }
    }

    /// Makes room for `more` bytes: twice as much as before, unless that is too little or past the limit.
    fn reserve(&mut self, more: usize) -> Result<(), CodecFault> {
        if more > self.room() {
            return Err(self.too_large());
        }
        let wanted = self.content.len() + more;
        if wanted > self.content.capacity() {
            let doubled = self.content.capacity().saturating_mul(2).min(self.limit);
            self.content.reserve_exact(wanted.max(doubled) - self.content.len());
        }
        Ok(())
    }
}

/// Steps over `len` bytes; fewer is an end too early.
fn take<'a>(rest: &mut &'a [u8], len: usize, codec: Codec) -> Result<&'a [u8], CodecFault> {
    rest.split_off(..len).ok_or_else(|| codec.corrupt(TRUNCATED))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;
    use crate::varint::{self, Varint};

    pub const MIB: usize = 1024 * 1024;
    pub const LIMIT: usize = 64 * MIB;

    const SAMPLE: &[u8] = b"a sample, a sample, a sample, and something else";

    pub fn is_corrupt(result: &Result<Vec<u8>, CodecFault>) -> bool {
        matches!(result, Err(CodecFault::Corrupt(_)))
    }

    pub fn is_too_large(result: &Result<Vec<u8>, CodecFault>, limit: usize) -> bool {
        *result == Err(CodecFault::TooLarge { limit })
    }

    /// Bytes that do not compress.
    pub fn noise(len: usize) -> Vec<u8> {
        let mut state = 0x9e37_79b9_7f4a_7c15u64;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.to_le_bytes()[3]
        };
        (0..len).map(|_| next()).collect()
    }

    fn compressing() -> impl Iterator<Item = Codec> {
        Codec::ALL.into_iter().filter(|codec| *codec != Codec::None)
    }

    fn contents() -> Vec<Vec<u8>> {
        let mixed = [noise(MIB / 2), b"over and over ".repeat(MIB / 28)].concat();
        vec![vec![], vec![0], SAMPLE.to_vec(), vec![7; MIB], noise(MIB), mixed]
    }

    #[test]
    fn what_goes_in_comes_out() {
        for codec in Codec::ALL {
            for content in contents() {
                let bytes = compress(codec, &content).unwrap();
                assert!(decompress(codec, &bytes, false, LIMIT).unwrap() == content, "{codec:?}");
            }
        }
    }

    #[test]
    fn content_may_reach_the_limit_and_not_pass_it() {
        for codec in Codec::ALL {
            for content in contents() {
                let bytes = compress(codec, &content).unwrap();
                let read = decompress(codec, &bytes, false, content.len()).unwrap();
                assert!(read.capacity() <= content.len(), "{codec:?}");
                assert!(read == content, "{codec:?}");
                if let Some(less) = content.len().checked_sub(1) {
                    assert!(is_too_large(&decompress(codec, &bytes, false, less), less), "{codec:?}");
                    assert!(is_too_large(&decompress(codec, &bytes, false, 0), 0), "{codec:?}");
                }
                assert!(decompress(codec, &bytes, false, usize::MAX).is_ok(), "{codec:?}");
            }
        }
    }

    #[test]
    fn data_that_end_too_early_are_refused() {
        for codec in compressing() {
            let bytes = compress(codec, SAMPLE).unwrap();
            // A framing of xerial without blocks is an empty one: see `snappy`.
            let empty = (codec == Codec::Snappy).then_some(16);
            for cut in (0..bytes.len()).filter(|cut| Some(*cut) != empty) {
                assert!(is_corrupt(&decompress(codec, &bytes[..cut], false, LIMIT)), "{codec:?} cut at {cut}");
            }
        }
    }

    #[test]
    fn data_that_go_on_after_their_end_are_refused() {
        for codec in compressing() {
            let bytes = compress(codec, SAMPLE).unwrap();
            for more in [&[0][..], &[0; 4], &[0; 100], b"\x1f", b"\x1f\x8b", b"garbage", &[0xff; 9]] {
                let long = [&bytes[..], more].concat();
                assert!(is_corrupt(&decompress(codec, &long, false, LIMIT)), "{codec:?} and {more:?}");
            }
        }
    }

    #[test]
    fn codecs_have_numbers_and_names() {
        let names = (0..=255).map_while(Codec::from_attributes).map(Codec::name);
        assert_eq!(names.collect::<Vec<_>>(), ["none", "gzip", "snappy", "lz4", "zstd"]);
        assert!((5..=255).all(|bits| Codec::from_attributes(bits).is_none()));
    }

    #[test]
    fn faults_say_what_is_wrong() {
        assert_eq!(CodecFault::TooLarge { limit: 9 }.to_string(), "decompressed data would pass 9 bytes");
        assert_eq!(Codec::Lz4.corrupt("why").to_string(), "the lz4 data is corrupt: why");
    }

    proptest! {
        #[test]
        fn random_bytes_are_read_or_refused_within_the_limit(
            number in 1u8..5,
            bytes in prop::collection::vec(any::<u8>(), 0..200),
            legacy: bool,
        ) {
            let codec = Codec::from_attributes(number).unwrap();
            if let Ok(content) = decompress(codec, &bytes, legacy, 1000) {
                prop_assert!(content.capacity() <= 1000);
            }
        }

        #[test]
        fn damaged_data_are_read_or_refused_within_the_limit(
            number in 1u8..5,
            content in prop::collection::vec(0u8..4, 0..300),
            damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
            limit in 0usize..1000,
        ) {
            let codec = Codec::from_attributes(number).unwrap();
            let mut bytes = compress(codec, &content).unwrap();
            for (at, byte) in damage {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            if let Ok(content) = decompress(codec, &bytes, false, limit) {
                prop_assert!(content.capacity() <= limit);
            }
        }

        #[test]
        fn any_content_comes_out_as_it_went_in(number in 0u8..5, content in prop::collection::vec(any::<u8>(), 0..2000)) {
            let codec = Codec::from_attributes(number).unwrap();
            let bytes = compress(codec, &content).unwrap();
            prop_assert_eq!(decompress(codec, &bytes, false, content.len()), Ok(content));
        }
    }

    /// Record sets that Kafka wrote, with their names.
    fn record_sets() -> Vec<(String, Vec<u8>, Value)> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors/record_batches.jsonl");
        let text = fs::read_to_string(path).expect("the vectors are part of the project");
        let set = |line: &str| {
            let value: Value = serde_json::from_str(line).expect("JSON");
            let digits = value["hex"].as_str().expect("hex").as_bytes();
            let byte = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).expect("ASCII"), 16).expect("hex");
            (value["id"].as_str().expect("id").into(), digits.chunks(2).map(byte).collect(), value)
        };
        text.lines().map(set).collect()
    }

    fn size(bytes: &[u8], at: usize) -> usize {
        u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap()) as usize
    }

    /// The codec number and the value of the one outer message of a set in message format 0 or 1.
    fn outer(set: &[u8]) -> (u8, u8, &[u8]) {
        let (magic, attributes) = (set[16], set[17]);
        let key = if magic == 0 { 18 } else { 26 };
        assert_eq!((size(set, 8), size(set, key + 4)), (set.len() - 12, set.len() - key - 8));
        assert_eq!(set[key..key + 4], [0xff; 4], "no key");
        (magic, attributes & 7, &set[key + 8..])
    }

    #[test]
    fn message_sets_that_kafka_compressed_are_read() {
        let mut seen = Vec::new();
        for (id, set, line) in record_sets() {
            if !(id.starts_with("v0-") || id.starts_with("v1-")) || id.contains("none") {
                continue;
            }
            let (magic, number, value) = outer(&set);
            let codec = Codec::from_attributes(number).unwrap();
            assert!(id.contains(codec.name()), "{id}");
            let content = decompress(codec, value, magic == 0, LIMIT).unwrap_or_else(|fault| panic!("{id}: {fault}"));
            if codec == Codec::Lz4 {
                assert_eq!(is_corrupt(&decompress(codec, value, false, LIMIT)), magic == 0, "{id}");
            }
            let mut rest = &content[..];
            let mut count = 0;
            while !rest.is_empty() {
                let offset = i64::from_be_bytes(rest[..8].try_into().unwrap());
                assert!((0..1000).contains(&offset), "{id}: offset {offset}");
                assert_eq!(rest[16], magic, "{id}");
                rest = &rest[12 + size(rest, 8)..];
                count += 1;
            }
            assert_eq!(count, line["batches"][0]["records"].as_array().unwrap().len(), "{id}");
            let again = compress(codec, &content).unwrap();
            assert_eq!(decompress(codec, &again, false, content.len()).as_ref(), Ok(&content), "{id}");
            seen.push((magic, codec));
        }
        seen.dedup();
        let codecs = [Codec::Gzip, Codec::Lz4, Codec::Snappy];
        assert_eq!(seen, [0, 1].map(|magic| codecs.map(|codec| (magic, codec))).concat());
    }

    #[test]
    fn record_batches_that_kafka_compressed_are_read() {
        let mut seen = Vec::new();
        for (id, set, line) in record_sets() {
            let Some(codec) = compressing().find(|codec| id.starts_with(&format!("v2-{}", codec.name()))) else {
                continue;
            };
            assert_eq!(Codec::from_attributes(set[22] & 7), Some(codec), "{id}");
            let content = decompress(codec, &set[61..], false, LIMIT).unwrap_or_else(|fault| panic!("{id}: {fault}"));
            let mut rest = &content[..];
            let mut count = 0;
            while !rest.is_empty() {
                let Varint::Read { bits, len, .. } = varint::read(rest) else { panic!("{id}: no length") };
                rest = &rest[len + varint::unzigzag(bits) as usize..];
                count += 1;
            }
            assert_eq!((count, count), (size(&set, 57), line["batches"][0]["records"].as_array().unwrap().len()));
            seen.push(codec);
        }
        seen.dedup();
        assert_eq!(seen, [Codec::Gzip, Codec::Lz4, Codec::Zstd, Codec::Snappy]);
    }
}
