//! Varints of 32 and 64 bits.

use letterhead::varint::{ParsedVarint, len, read, read_64, unzigzag, unzigzag_64, write, zigzag, zigzag_64};

#[test]
fn every_boundary_round_trips() {
    for power in 0..64 {
        for value in [1u64 << power, (1u64 << power).wrapping_sub(1), !(1u64 << power)] {
            let mut out = Vec::new();
            write(value, &mut out);
            assert_eq!(out.len(), len(value));
            assert_eq!(read_64(&out), ParsedVarint::Read { bits: value, len: out.len(), lost: false });
            assert_eq!(zigzag_64(unzigzag_64(value)), value);
            let narrow = value as u32;
            out.clear();
            write(narrow, &mut out);
            assert_eq!(read(&out), ParsedVarint::Read { bits: narrow, len: out.len(), lost: false });
            assert_eq!(zigzag(unzigzag(narrow)), narrow);
        }
    }
}

#[test]
fn bits_shifted_out_of_last_byte_are_reported() {
    assert_eq!(read(&[0x80, 0x80, 0x80, 0x80, 0x70]), ParsedVarint::Read { bits: 0, len: 5, lost: true });
    let mut long = [0x80; 10];
    long[9] = 0x02;
    assert_eq!(read_64(&long), ParsedVarint::Read { bits: 0, len: 10, lost: true });
    long[9] = 0x01;
    assert_eq!(read_64(&long), ParsedVarint::Read { bits: 1 << 63, len: 10, lost: false });
}

#[test]
fn continuation_bit_in_last_byte_is_too_long() {
    assert_eq!(read(&[0x80; 5]), ParsedVarint::TooLong);
    assert_eq!(read(&[0xff; 9]), ParsedVarint::TooLong);
    assert_eq!(read_64(&[0xff; 10]), ParsedVarint::TooLong);
}

#[test]
fn an_end_inside_is_truncated() {
    assert_eq!(read(&[]), ParsedVarint::Truncated);
    assert_eq!(read(&[0x80; 4]), ParsedVarint::Truncated);
    assert_eq!(read_64(&[0x80; 9]), ParsedVarint::Truncated);
}
