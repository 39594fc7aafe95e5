//! Varints of 32 and 64 bits, as `org.apache.kafka.common.utils.ByteUtils` writes them.
//!
//! ```text
//!   signed   zig-zag first: (n << 1) ^ (n >> 31), of 64 bits (n << 1) ^ (n >> 63)
//!   bits     base 128, least significant group first
//!   byte     ┌───┬────────────┐
//!            │ m │ seven bits │  m = 1: more bytes follow; at most five, of 64 bits ten
//!            └───┴────────────┘
//! ```
//!
//! Differences from the reference implementation: bits of the last byte beyond the width are an error, instead of being
//! dropped. Both implementations accept non-minimal encodings.

/// Maximum length of a varint of 32 bits.
pub const MAX_LEN: usize = 5;

/// Maximum length of a varint of 64 bits.
pub const MAX_LEN_64: usize = 10;

/// Result of reading a varint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParsedVarint<T> {
    Read { bits: T, len: usize, lost: bool },
    Truncated,
    TooLong,
}

/// Reads a varint of one or two bytes, as nearly all are, and returns its bits and its length; `None` for longer ones.
#[inline(always)]
pub fn read_short(bytes: &[u8]) -> Option<(u32, usize)> {
    match *bytes {
        [byte, ..] if byte < 0x80 => Some((byte.into(), 1)),
        [first, second, ..] if second < 0x80 => Some((u32::from(first & 0x7f) | u32::from(second) << 7, 2)),
        _ => None,
    }
}

/// Reads an unsigned varint of 32 bits.
#[inline]
pub fn read(bytes: &[u8]) -> ParsedVarint<u32> {
    match read_short(bytes) {
        Some((bits, len)) => ParsedVarint::Read { bits, len, lost: false },
        None => match read_groups(bytes, MAX_LEN, u32::BITS) {
            ParsedVarint::Read { bits, len, lost } => {
                ParsedVarint::Read { bits: (bits & 0xffff_ffff) as u32, len, lost }
            }
            ParsedVarint::Truncated => ParsedVarint::Truncated,
            ParsedVarint::TooLong => ParsedVarint::TooLong,
        },
    }
}

/// Reads an unsigned varint of 64 bits.
pub fn read_64(bytes: &[u8]) -> ParsedVarint<u64> {
    read_groups(bytes, MAX_LEN_64, u64::BITS)
}

fn read_groups(bytes: &[u8], max_len: usize, width: u32) -> ParsedVarint<u64> {
    let mut bits = 0u64;
    for (index, &byte) in (0u32..).zip(bytes.iter().take(max_len)) {
        let shift = 7 * index;
        bits |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            let lost = shift + 7 > width && byte >> (width - shift) != 0;
            return ParsedVarint::Read { bits, len: index as usize + 1, lost };
        }
    }
    if bytes.len() < max_len { ParsedVarint::Truncated } else { ParsedVarint::TooLong }
}

#[inline]
pub const fn zigzag(value: i32) -> u32 {
    ((value << 1) ^ (value >> 31)) as u32
}

#[inline]
pub fn unzigzag(bits: u32) -> i32 {
    ((bits >> 1) as i32) ^ -((bits & 1) as i32)
}

pub fn zigzag_64(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

pub fn unzigzag_64(bits: u64) -> i64 {
    ((bits >> 1) as i64) ^ -((bits & 1) as i64)
}

/// Number of bytes of an unsigned varint when written.
#[inline]
pub fn len(bits: impl Into<u64>) -> usize {
    match bits.into() {
        0..0x80 => 1,
        bits => (64 - bits.leading_zeros() as usize).div_ceil(7),
    }
}

/// Number of bytes of a length or count as a zig-zag varint.
#[inline]
pub fn count_len(count: usize) -> usize {
    len((count as u64) << 1)
}

#[inline]
pub fn write(bits: impl Into<u64>, out: &mut Vec<u8>) {
    let mut bits = bits.into();
    if bits < 0x80 {
        return out.push((bits & 0x7f) as u8);
    }
    while bits >= 0x80 {
        out.push((bits & 0x7f) as u8 | 0x80);
        bits >>= 7;
    }
    out.push((bits & 0x7f) as u8);
}

#[inline]
pub fn write_count(count: usize, out: &mut Vec<u8>) {
    write((count as u64) << 1, out);
}
