//! `kip82-messages`, `kip82-messages-int` and `kip82-messages-wrapper`.

use letterhead::codec::{Codec, compress};
use letterhead::error::Code;
use letterhead::format::Format::{self, Kip82Messages, Kip82MessagesInt, Kip82MessagesWrapper};
use letterhead::formats::checksum::crc32;

use super::kip82_messages::sealed;
use super::{first_fault, rejected, rejected_at, run};
use crate::common::{LENIENT, STRICT, errors, read};

const SETS: [Format; 3] = [Kip82Messages, Kip82MessagesInt, Kip82MessagesWrapper];

/// A message of magic 2 without key and value.
fn plain() -> Vec<u8> {
    message(2, 0, None)
}

fn message(magic: u8, attributes: u8, value: Option<&[u8]>) -> Vec<u8> {
    let timestamp = if magic == 0 { vec![] } else { vec![0; 8] };
    let value = value.map_or(vec![0xff; 4], run);
    sealed(magic, attributes, &[&timestamp[..], &[0xff; 4], &value].concat())
}

/// A message whose value is these messages, compressed.
fn set(magic: u8, messages: &[u8]) -> Vec<u8> {
    message(magic, 1, Some(&compress(Codec::Gzip, messages).expect("memory takes it")))
}

/// Offset of the value of a message of magic 2 without a key.
const VALUE: usize = 34;

fn said(format: Format, serialized: &[u8]) -> String {
    first_fault(format, serialized).expect("rejected").message
}

#[test]
fn whole_sets_are_read() {
    for format in SETS {
        for serialized in [vec![], plain(), [plain(), plain()].concat(), set(2, &plain()), set(0, &message(0, 0, None))]
        {
            assert_eq!(first_fault(format, &serialized), None);
        }
    }
}

#[test]
fn truncated_last_message_is_rejected_unless_lenient() {
    let (one, serialized) = (plain().len(), [plain(), plain()].concat());
    for format in SETS {
        for len in one + 1..serialized.len() {
            let at = one + [0, 8, 12][usize::from(len >= one + 8) + usize::from(len >= one + 12)];
            assert_eq!(rejected_at(format, &serialized[..len]), (Code::Truncated, at), "{len}");
            assert_eq!(read(format, &serialized[..len], LENIENT).map(|messages| messages.len()), Ok(1), "{len}");
        }
    }
}

#[test]
fn a_negative_size_is_rejected_and_ends_the_value() {
    let mut serialized = [plain(), plain()].concat();
    serialized[8] = 0x80;
    for format in SETS {
        for options in [STRICT, LENIENT] {
            let found: Vec<_> =
                errors(format, &serialized, options).iter().map(|error| (error.code, error.byte)).collect();
            assert_eq!(found, [(Code::NegativeLength, Some(8))]);
        }
    }
}

#[test]
fn bad_message_is_named_by_number_and_next_ones_readable() {
    let mut serialized = [plain(), plain(), plain()].concat();
    let one = plain().len();
    serialized[one + 12] ^= 1;
    serialized[2 * one + 16] = 9;
    for format in SETS {
        let found = errors(format, &serialized, STRICT);
        let places: Vec<_> = found.iter().map(|error| (error.code, error.byte)).collect();
        assert_eq!(places, [(Code::BadCrc, Some(one + 12)), (Code::BadMagic, Some(2 * one + 16))]);
        assert!(found[0].message.starts_with("message 1: "), "{}", found[0].message);
        assert_eq!(found[1].message, "message 2: magic 9 is unknown: 0, 1 and 2 are known");
    }
}

#[test]
fn undefined_codec_is_rejected() {
    for format in SETS {
        for codec in [4, 5, 6, 7] {
            let serialized = message(2, codec, Some(b"x"));
            assert_eq!(rejected_at(format, &serialized), (Code::UnknownCodec, 17));
            assert_eq!(said(format, &serialized), format!("message 0: codec {codec} is unknown"));
        }
    }
}

#[test]
fn corrupt_compressed_data_is_rejected() {
    for format in SETS {
        for codec in [1, 2, 3] {
            assert_eq!(rejected_at(format, &message(2, codec, Some(b"\xff\xff"))), (Code::BadCompression, VALUE));
            assert_eq!(rejected_at(format, &message(2, codec, None)), (Code::BadCompression, VALUE));
        }
    }
}

#[test]
fn set_without_complete_length_is_not_expanded() {
    for len in 0..4 {
        let serialized = sealed(2, 1, &[&[0; 8][..], &[0xff; 4], &vec![0; len]].concat());
        let after = [&serialized[..], &plain()].concat();
        for format in SETS {
            for serialized in [&serialized, &after] {
                let found: Vec<_> =
                    errors(format, serialized, STRICT).iter().map(|error| (error.code, error.byte)).collect();
                assert_eq!(found, [(Code::Truncated, Some(VALUE - 4))], "{len}");
            }
        }
    }
}

#[test]
fn compressed_data_past_the_limit_are_rejected() {
    // Bare Snappy data begins with its content length, here 64 MiB and one byte.
    let serialized = message(2, 2, Some(b"\x81\x80\x80\x20"));
    for format in SETS {
        assert_eq!(rejected_at(format, &serialized), (Code::DecompressedTooLarge, VALUE));
    }
}

#[test]
fn nested_set_is_rejected() {
    for format in SETS {
        let serialized = set(2, &set(2, &plain()));
        assert_eq!(rejected_at(format, &serialized), (Code::BadAttributes, VALUE));
        assert_eq!(said(format, &serialized), "message 0: a compressed set inside a compressed set");
    }
}

#[test]
fn other_magic_inside_set_is_rejected() {
    for format in SETS {
        let serialized = set(2, &[plain(), message(1, 0, None)].concat());
        assert_eq!(rejected_at(format, &serialized), (Code::BadMagic, VALUE));
        assert_eq!(said(format, &serialized), "message 1: magic 1 inside a set of magic 2");
        assert_eq!(rejected_at(format, &set(0, &message(1, 0, None))), (Code::BadMagic, VALUE - 8));
    }
}

#[test]
fn set_ending_inside_message_is_rejected_even_when_lenient() {
    let messages = [plain(), plain()].concat();
    for format in SETS {
        for len in plain().len() + 1..messages.len() {
            let serialized = set(2, &messages[..len]);
            assert_eq!(rejected_at(format, &serialized), (Code::Truncated, VALUE), "{len}");
            assert!(read(format, &serialized, LENIENT).is_err(), "{len}");
        }
    }
}

#[test]
fn error_inside_set_has_position_of_set() {
    let mut inner = [plain(), plain()].concat();
    let one = plain().len();
    inner[one + 12] ^= 1;
    for format in SETS {
        let serialized = [plain(), set(2, &inner)].concat();
        assert_eq!(rejected_at(format, &serialized), (Code::BadCrc, one + VALUE));
        assert!(said(format, &serialized).starts_with("message 2: "));
    }
}

#[test]
fn bad_header_inside_set_is_located_within_its_message() {
    let headers = [run(b"k"), run(b"\x08v"), run(b"k"), run(b"\x00\x02")].concat();
    let inner = sealed(2, 0x10, &[&[0; 8][..], &[0xff; 4], &run(&headers), &[0xff; 4]].concat());
    assert_eq!(rejected(Kip82Messages, &set(2, &inner)), (Code::BadBool, Some(VALUE), Some(1)));
}

#[test]
fn outer_message_error_has_number_of_first_inner_message() {
    for format in SETS {
        let mut serialized = [plain(), set(2, &plain()), plain()].concat();
        let one = plain().len();
        serialized[one + 12] ^= 1;
        assert_eq!(rejected_at(format, &serialized), (Code::BadCrc, one + 12));
        assert!(said(format, &serialized).starts_with("message 1: "));
        assert_eq!(errors(format, &serialized, STRICT).len(), 1);
    }
}

#[test]
fn bytes_after_a_compressed_value_are_rejected() {
    let value = compress(Codec::Gzip, &plain()).expect("memory takes it");
    let serialized = sealed(2, 1, &[&[0; 8][..], &[0xff; 4], &run(&value), b"!"].concat());
    for format in SETS {
        assert_eq!(rejected_at(format, &serialized), (Code::TrailingBytes, VALUE + value.len()));
    }
}

#[test]
fn error_inside_set_has_its_position_despite_trailing_bytes() {
    let mut inner = plain();
    inner[12] ^= 1;
    let value = compress(Codec::Gzip, &inner).expect("memory takes it");
    let serialized = sealed(2, 1, &[&[0; 8][..], &[0xff; 4], &run(&value), b"!"].concat());
    let found: Vec<_> =
        errors(Kip82Messages, &serialized, STRICT).iter().map(|error| (error.code, error.byte)).collect();
    assert_eq!(found, [(Code::TrailingBytes, Some(VALUE + value.len())), (Code::BadCrc, Some(VALUE))]);
    assert_eq!(crc32(&serialized[16..]).to_be_bytes(), serialized[12..16]);
}
