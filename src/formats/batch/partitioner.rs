//! Partitioners of Kafka's clients: the partition of a record, from its key.
//!
//! ```text
//!   murmur2  Java's producer: MurmurHash2 without its sign bit, modulo the number of partitions
//!   crc32    librdkafka's `consistent`: CRC-32, modulo the number of partitions
//!   fnv1a    Sarama's: the absolute value of FNV-1a, modulo the number of partitions
//! ```

use crate::formats::checksum::crc32;
use crate::number::fitting;

/// Hash function of a partitioner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hash {
    Murmur2,
    Crc32,
    Fnv1a,
}

/// Partitioner of librdkafka, by the keys that it hashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Partitioner {
    /// Keys are ignored.
    Random,
    /// All keys are hashed; a missing key counts as empty.
    All(Hash),
    /// Present keys are hashed.
    Present(Hash),
    /// Keys that are neither missing nor empty are hashed.
    Filled(Hash),
}

impl Partitioner {
    /// Partitioners by their names in librdkafka.
    pub const NAMES: [(&str, Partitioner); 7] = [
        ("murmur2_random", Partitioner::Present(Hash::Murmur2)),
        ("murmur2", Partitioner::All(Hash::Murmur2)),
        ("consistent_random", Partitioner::Filled(Hash::Crc32)),
        ("consistent", Partitioner::All(Hash::Crc32)),
        ("fnv1a_random", Partitioner::Present(Hash::Fnv1a)),
        ("fnv1a", Partitioner::All(Hash::Fnv1a)),
        ("random", Partitioner::Random),
    ];

    /// Hash of a key; `None` if the record may go to any partition.
    pub fn hash(self, key: Option<&[u8]>) -> Option<u32> {
        match (self, key) {
            (Partitioner::All(hash), key) => Some(hash.of(key.unwrap_or_default())),
            (Partitioner::Present(hash), Some(key)) => Some(hash.of(key)),
            (Partitioner::Filled(hash), Some(key)) if !key.is_empty() => Some(hash.of(key)),
            _ => None,
        }
    }
}

impl Hash {
    fn of(self, key: &[u8]) -> u32 {
        match self {
            Hash::Murmur2 => murmur2(key) & i32::MAX.unsigned_abs(),
            Hash::Crc32 => crc32(key),
            Hash::Fnv1a => fnv1a(key).cast_signed().unsigned_abs(),
        }
    }
}

/// MurmurHash2 with the seed of `org.apache.kafka.common.utils.Utils`.
fn murmur2(key: &[u8]) -> u32 {
    const FACTOR: u32 = 0x5bd1_e995;
    // Keys are shorter than 2 GiB, as records are.
    let len: u32 = fitting(key.len() & i32::MAX as usize);
    let (words, rest) = key.as_chunks::<4>();
    let mut hash = 0x9747_b28c ^ len;
    for word in words {
        let word = u32::from_le_bytes(*word).wrapping_mul(FACTOR);
        hash = hash.wrapping_mul(FACTOR) ^ (word ^ (word >> 24)).wrapping_mul(FACTOR);
    }
    if !rest.is_empty() {
        let bytes = rest.iter().rev().fold(0, |bits, byte| bits << 8 | u32::from(*byte));
        hash = (hash ^ bytes).wrapping_mul(FACTOR);
    }
    hash = (hash ^ (hash >> 13)).wrapping_mul(FACTOR);
    hash ^ (hash >> 15)
}

fn fnv1a(key: &[u8]) -> u32 {
    key.iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}
