//! `kip82-wrapper` and the three message formats of the drafts.

use letterhead::error::Code;
use letterhead::format::Format::{self, Kip82Message, Kip82MessageInt, Kip82MessageWrapper, Kip82Wrapper};
use letterhead::formats::checksum::crc32;

use super::{first_fault, rejected, rejected_at, run};
use crate::common::{STRICT, errors};

/// The three layouts.
const MESSAGES: [Format; 3] = [Kip82Message, Kip82MessageInt, Kip82MessageWrapper];
/// Layouts whose headers follow the key.
const WITH_BLOCK: [Format; 2] = [Kip82Message, Kip82MessageInt];

const NULL: [u8; 4] = [0xff; 4];

/// A message with the correct checksum.
pub fn sealed(magic: u8, attributes: u8, rest: &[u8]) -> Vec<u8> {
    let covered = [&[magic, attributes][..], rest].concat();
    let message = [&crc32(&covered).to_be_bytes()[..], &covered].concat();
    [&[0; 8][..], &run(&message)].concat()
}

/// A message of magic 2 with a timestamp of 0 and without a key; `rest` follows the key.
fn message(attributes: u8, rest: &[u8]) -> Vec<u8> {
    sealed(2, attributes, &[&[0; 8][..], &NULL, rest].concat())
}

const CRC: usize = 12;
const MAGIC: usize = 16;
const ATTRIBUTES: usize = 17;
const TIMESTAMP: usize = 18;
const KEY_LENGTH: usize = 26;
/// Offset of the bytes after the key length, in a message without a key.
const REST: usize = 30;

#[test]
fn a_whole_message_is_read() {
    for format in MESSAGES {
        assert_eq!(first_fault(format, &message(0, &NULL)), None);
    }
    assert_eq!(first_fault(Kip82Wrapper, b"\0\0\0\0\0\xff\xff\xff\xff"), None);
}

#[test]
fn wrapper_without_bytes_is_rejected() {
    assert_eq!(rejected_at(Kip82Wrapper, b""), (Code::Truncated, 0));
}

#[test]
fn wrapper_of_another_magic_is_rejected() {
    for magic in [1, 2, 255] {
        assert_eq!(rejected_at(Kip82Wrapper, &[magic, 0, 0, 0, 0, 0, 0, 0, 0]), (Code::BadMagic, 0));
    }
}

#[test]
fn truncated_wrapper_headers_length_is_rejected() {
    assert_eq!(rejected_at(Kip82Wrapper, b"\0\0\0\0"), (Code::Truncated, 1));
}

#[test]
fn wrapper_negative_headers_length_is_rejected() {
    assert_eq!(rejected_at(Kip82Wrapper, b"\0\xff\xff\xff\xff\0\0\0\0"), (Code::NegativeLength, 1));
}

#[test]
fn wrapper_headers_longer_than_the_bytes_are_rejected() {
    assert_eq!(rejected_at(Kip82Wrapper, b"\0\0\0\0\x05\0\0\0\0"), (Code::Truncated, 5));
}

#[test]
fn truncated_wrapper_value_length_is_rejected() {
    assert_eq!(rejected_at(Kip82Wrapper, b"\0\0\0\0\0\0\0\0"), (Code::Truncated, 5));
}

#[test]
fn wrapper_negative_value_length_other_than_null_is_rejected() {
    assert_eq!(rejected_at(Kip82Wrapper, b"\0\0\0\0\0\xff\xff\xff\xfe"), (Code::NegativeLength, 5));
}

#[test]
fn wrapper_value_longer_than_the_bytes_is_rejected() {
    assert_eq!(rejected_at(Kip82Wrapper, b"\0\0\0\0\0\0\0\0\x02v"), (Code::Truncated, 9));
}

#[test]
fn wrapper_bytes_after_the_value_are_rejected() {
    assert_eq!(rejected_at(Kip82Wrapper, b"\0\0\0\0\0\0\0\0\x01v!"), (Code::TrailingBytes, 10));
    assert_eq!(rejected_at(Kip82Wrapper, b"\0\0\0\0\0\xff\xff\xff\xff!"), (Code::TrailingBytes, 9));
}

#[test]
fn bad_wrapper_header_is_rejected_at_its_offset_in_value() {
    let serialized = b"\0\0\0\0\x08\0\0\0\x01\xff\xff\xff\xfe\0\0\0\0";
    assert_eq!(rejected(Kip82Wrapper, serialized), (Code::NegativeLength, Some(9), Some(0)));
}

#[test]
fn truncated_message_frame_is_rejected() {
    for format in MESSAGES {
        let serialized = message(0, &NULL);
        for len in 0..serialized.len() {
            let field = if len < 8 { 0 } else { if len < 12 { 8 } else { 12 } };
            assert_eq!(rejected_at(format, &serialized[..len]), (Code::Truncated, field), "{len}");
        }
    }
}

#[test]
fn negative_message_size_is_rejected() {
    let mut serialized = message(0, &NULL);
    serialized[8..12].copy_from_slice(&NULL);
    for format in MESSAGES {
        assert_eq!(rejected_at(format, &serialized), (Code::NegativeLength, 8));
    }
}

#[test]
fn truncated_message_is_rejected_at_field_start() {
    let fields = [CRC, MAGIC, ATTRIBUTES, TIMESTAMP, KEY_LENGTH, REST];
    for format in MESSAGES {
        for end in CRC..REST + 4 {
            let mut serialized = message(0, &NULL)[..end].to_vec();
            serialized[11] = (end - CRC) as u8;
            if end > MAGIC {
                let crc = crc32(&serialized[MAGIC..]);
                serialized[CRC..MAGIC].copy_from_slice(&crc.to_be_bytes());
            }
            let field = fields.iter().rfind(|at| **at <= end).copied().expect("the first begins there");
            assert_eq!(rejected_at(format, &serialized), (Code::Truncated, field), "{end}");
        }
    }
}

#[test]
fn unknown_magic_is_rejected_without_other_errors() {
    for magic in [3, 127, 255] {
        let mut serialized = sealed(magic, 0xff, &[0; 16]);
        serialized[CRC] ^= 1;
        for format in MESSAGES {
            assert_eq!(rejected_at(format, &serialized), (Code::BadMagic, MAGIC));
            assert_eq!(errors(format, &serialized, STRICT).len(), 1);
        }
    }
}

#[test]
fn wrong_message_checksum_is_rejected() {
    for place in CRC..MAGIC {
        let mut serialized = message(0, &NULL);
        serialized[place] ^= 1;
        for format in MESSAGES {
            assert_eq!(rejected_at(format, &serialized), (Code::BadCrc, CRC));
        }
    }
}

#[test]
fn undefined_attribute_bits_are_rejected() {
    let old = [&[0; 8][..], &NULL, &NULL].concat();
    let serialized_rows =
        [sealed(0, 0x08, &old[8..]), sealed(0, 0x10, &old[8..]), sealed(1, 0x10, &old), sealed(1, 0x80, &old)];
    let new = [0x20, 0x40, 0x80].map(|bits| message(bits, &NULL));
    for serialized in serialized_rows.into_iter().chain(new) {
        for format in MESSAGES {
            assert_eq!(rejected_at(format, &serialized), (Code::BadAttributes, ATTRIBUTES));
        }
    }
}

#[test]
fn negative_key_length_other_than_null_is_rejected() {
    let serialized = sealed(2, 0, &[&[0; 8][..], b"\xff\xff\xff\xfe", &NULL].concat());
    for format in MESSAGES {
        assert_eq!(rejected_at(format, &serialized), (Code::NegativeLength, KEY_LENGTH));
    }
}

#[test]
fn key_longer_than_the_message_is_rejected() {
    let serialized = sealed(2, 0, &[&[0; 8][..], b"\0\0\0\x09", &NULL].concat());
    for format in MESSAGES {
        assert_eq!(rejected_at(format, &serialized), (Code::Truncated, KEY_LENGTH + 4));
    }
}

#[test]
fn bit_4_without_headers_is_rejected() {
    for format in WITH_BLOCK {
        assert_eq!(
            rejected_at(format, &message(0x10, &[0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff])),
            (Code::BadAttributes, REST)
        );
        assert_eq!(rejected_at(format, &message(0x10, &[])), (Code::Truncated, REST));
    }
}

#[test]
fn negative_headers_length_is_rejected() {
    for format in WITH_BLOCK {
        assert_eq!(rejected_at(format, &message(0x10, &[NULL, NULL].concat())), (Code::NegativeLength, REST));
    }
}

#[test]
fn headers_longer_than_the_message_are_rejected() {
    for format in WITH_BLOCK {
        assert_eq!(rejected_at(format, &message(0x10, &[0, 0, 0, 5, 0, 0, 0, 0])), (Code::Truncated, REST + 4));
    }
}

#[test]
fn headers_without_bit_4_are_read_as_value() {
    for format in WITH_BLOCK {
        let serialized = message(0, &[run(&[0; 8]), NULL.to_vec()].concat());
        assert_eq!(rejected_at(format, &serialized), (Code::TrailingBytes, REST + 12));
    }
}

#[test]
fn bad_header_is_rejected_at_its_offset_in_value() {
    let typed = message(0x10, &[run(&[run(b"k"), run(&[200])].concat()), NULL.to_vec()].concat());
    assert_eq!(rejected(Kip82Message, &typed), (Code::UnknownType, Some(REST + 4 + 9), Some(0)));
    let int = message(0x10, &[run(b"\0\0\0\x01\xff\xff\xff\xfe"), NULL.to_vec()].concat());
    assert_eq!(rejected(Kip82MessageInt, &int), (Code::NegativeLength, Some(REST + 8), Some(0)));
}

#[test]
fn negative_value_length_other_than_null_is_rejected() {
    for format in MESSAGES {
        assert_eq!(rejected_at(format, &message(0, b"\xff\xff\xff\xfe")), (Code::NegativeLength, REST));
    }
}

#[test]
fn value_longer_than_the_message_is_rejected() {
    for format in MESSAGES {
        assert_eq!(rejected_at(format, &message(0, b"\0\0\0\x02v")), (Code::Truncated, REST + 4));
    }
}

#[test]
fn bytes_after_the_value_are_rejected() {
    for format in MESSAGES {
        assert_eq!(rejected_at(format, &message(0, &[&NULL[..], b"!"].concat())), (Code::TrailingBytes, REST + 4));
    }
}

#[test]
fn bytes_after_message_are_rejected_last() {
    for format in MESSAGES {
        let mut serialized = [message(0, &NULL), b"!".to_vec()].concat();
        assert_eq!(rejected_at(format, &serialized), (Code::TrailingBytes, REST + 4));
        serialized[CRC] ^= 1;
        let codes: Vec<_> = errors(format, &serialized, STRICT).iter().map(|error| error.code).collect();
        assert_eq!(codes, [Code::BadCrc, Code::TrailingBytes]);
    }
}

#[test]
fn value_without_required_wrapper_is_rejected() {
    let value = |bytes: &[u8]| message(0, &run(bytes));
    assert_eq!(rejected_at(Kip82MessageWrapper, &value(b"")), (Code::Truncated, REST + 4));
    assert_eq!(rejected_at(Kip82MessageWrapper, &value(b"{}")), (Code::BadMagic, REST + 4));
    assert_eq!(rejected_at(Kip82MessageWrapper, &value(b"\0\xff\xff\xff\xff")), (Code::NegativeLength, REST + 5));
    assert_eq!(rejected_at(Kip82MessageWrapper, &value(b"\0\0\0\0\0\0\0\0\0!")), (Code::TrailingBytes, REST + 13));
    // A message with a codec contains a compressed set, which is not opened.
    assert_eq!(first_fault(Kip82MessageWrapper, &message(1, &run(b"{}"))), None);
}
