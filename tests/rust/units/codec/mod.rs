//! Compressed data: valid and invalid input, and the limit on the content.

mod gzip;
mod lz4;
mod snappy;
mod zstd;

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use serde_json::Value;

use letterhead::codec::{Codec, CodecError, compress, decompress, decompress_into};
use letterhead::varint::{self, ParsedVarint};

pub const MIB: usize = 1024 * 1024;
pub const LIMIT: usize = 64 * MIB;

const SAMPLE: &[u8] = b"a sample, a sample, a sample, and something else";

pub fn is_corrupt(result: &Result<Vec<u8>, CodecError>) -> bool {
    matches!(result, Err(CodecError::Corrupt(_)))
}

pub fn is_too_large(result: &Result<Vec<u8>, CodecError>, limit: usize) -> bool {
    *result == Err(CodecError::TooLarge { limit })
}

/// Bytes that cannot be compressed.
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
fn compressed_content_round_trips() {
    for codec in Codec::ALL {
        for content in contents() {
            let bytes = compress(codec, &content).unwrap();
            assert!(decompress(codec, &bytes, false, LIMIT).unwrap() == content, "{codec:?}");
        }
    }
}

#[test]
fn a_buffer_that_was_used_before_gets_the_same_content() {
    for codec in Codec::ALL {
        let mut buffer = noise(MIB / 3);
        for content in contents() {
            let bytes = compress(codec, &content).unwrap();
            let len = decompress_into(codec, &bytes, false, content.len(), &mut buffer).unwrap();
            assert!(buffer[..len] == content, "{codec:?}");
            if let Some(less) = content.len().checked_sub(1) {
                let found = decompress_into(codec, &bytes, false, less, &mut buffer);
                assert_eq!(found, Err(CodecError::TooLarge { limit: less }), "{codec:?}");
            }
        }
        assert!(buffer.capacity() <= MIB, "{codec:?}");
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
        // A xerial frame without blocks is valid and empty: see `snappy`.
        let empty = (codec == Codec::Snappy).then_some(16);
        for cut in (0..bytes.len()).filter(|cut| Some(*cut) != empty) {
            assert!(is_corrupt(&decompress(codec, &bytes[..cut], false, LIMIT)), "{codec:?} cut at {cut}");
        }
    }
}

#[test]
fn trailing_compressed_data_is_rejected() {
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
fn codec_errors_name_cause() {
    assert_eq!(CodecError::TooLarge { limit: 9 }.to_string(), "decompressed data would pass 9 bytes");
    let truncated = decompress(Codec::Lz4, b"", false, LIMIT).unwrap_err();
    assert_eq!(truncated.to_string(), "the lz4 data is corrupt: it ends too early");
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
    fn any_content_round_trips(number in 0u8..5, content in prop::collection::vec(any::<u8>(), 0..2000)) {
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
        let content = decompress(codec, value, magic == 0, LIMIT).unwrap_or_else(|error| panic!("{id}: {error}"));
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
        let content = decompress(codec, &set[61..], false, LIMIT).unwrap_or_else(|error| panic!("{id}: {error}"));
        let mut rest = &content[..];
        let mut count = 0;
        while !rest.is_empty() {
            let ParsedVarint::Read { bits, len, .. } = varint::read(rest) else { panic!("{id}: no length") };
            rest = &rest[len + varint::unzigzag(bits) as usize..];
            count += 1;
        }
        assert_eq!((count, count), (size(&set, 57), line["batches"][0]["records"].as_array().unwrap().len()));
        seen.push(codec);
    }
    seen.dedup();
    assert_eq!(seen, [Codec::Gzip, Codec::Lz4, Codec::Zstd, Codec::Snappy]);
}
