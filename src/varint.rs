//! Zig-zag varints of 32 bits, as `org.apache.kafka.common.utils.ByteUtils` writes them.
//!
//! ```text
//!   value   (n << 1) ^ (n >> 31), then base 128, least significant group first
//!   byte    ┌───┬─────────────┐
//!           │ m │ seven bits  │  m = 1: more bytes follow; at most five
//!           └───┴─────────────┘
//! ```
//!
//! Differences from the reference implementation: the bits that a fifth byte carries beyond the thirty-second are
//! reported instead of shifted out. Non-minimal spellings are read by both.

/// The longest varint of 32 bits.
pub const MAX_LEN: usize = 5;

/// What stands at the front of some bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Varint {
    Read { bits: u32, len: usize, lost: bool },
    Truncated,
    TooLong,
}

/// Reads an unsigned varint of 32 bits.
#[inline]
pub fn read(bytes: &[u8]) -> Varint {
    match bytes.first() {
        // Lengths and counts below 64 take one byte: nearly all of them.
        Some(&byte) if byte < 0x80 => Varint::Read { bits: u32::from(byte), len: 1, lost: false },
        _ => read_long(bytes),
    }
}

fn read_long(bytes: &[u8]) -> Varint {
    let mut bits = 0u32;
    for (index, &byte) in bytes.iter().take(MAX_LEN).enumerate() {
        bits |= u32::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return Varint::Read { bits, len: index + 1, lost: index == 4 && byte > 0x0f };
        }
    }
    if bytes.len() < MAX_LEN { Varint::Truncated } else { Varint::TooLong }
}

#[inline]
pub fn zigzag(value: i32) -> u32 {
    ((value << 1) ^ (value >> 31)) as u32
}

#[inline]
pub fn unzigzag(bits: u32) -> i32 {
    ((bits >> 1) as i32) ^ -((bits & 1) as i32)
}

/// The number of bytes of a written unsigned varint.
#[inline]
pub fn len(bits: u32) -> usize {
    let significant = 32 - (bits | 1).leading_zeros() as usize;
    significant.div_ceil(7)
}

/// The number of bytes of a length or count as a zig-zag varint.
#[inline]
pub fn count_len(count: usize) -> usize {
    len(zigzag(count as i32))
}

/// Writes an unsigned varint.
#[inline]
pub fn write(mut bits: u32, out: &mut Vec<u8>) {
    while bits >= 0x80 {
        out.push(bits as u8 | 0x80);
        bits >>= 7;
    }
    out.push(bits as u8);
}

/// Writes a length or count as a zig-zag varint.
#[inline]
pub fn write_count(count: usize, out: &mut Vec<u8>) {
    write(zigzag(count as i32), out);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_boundary_round_trips() {
        for power in 0..32 {
            for value in [1u32 << power, (1u32 << power).wrapping_sub(1), !(1u32 << power)] {
                let mut out = Vec::new();
                write(value, &mut out);
                assert_eq!(out.len(), len(value));
                assert_eq!(read(&out), Varint::Read { bits: value, len: out.len(), lost: false });
                assert_eq!(zigzag(unzigzag(value)), value);
            }
        }
    }

    #[test]
    fn bits_shifted_out_of_the_fifth_byte_are_reported() {
        assert_eq!(read(&[0x80, 0x80, 0x80, 0x80, 0x70]), Varint::Read { bits: 0, len: 5, lost: true });
    }

    #[test]
    fn a_fifth_byte_that_goes_on_is_too_long() {
        assert_eq!(read(&[0x80; 5]), Varint::TooLong);
        assert_eq!(read(&[0xff; 9]), Varint::TooLong);
    }

    #[test]
    fn an_end_inside_is_truncated() {
        assert_eq!(read(&[]), Varint::Truncated);
        assert_eq!(read(&[0x80; 4]), Varint::Truncated);
    }
}
