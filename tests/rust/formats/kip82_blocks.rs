//! `kip82-typed` and `kip82-int`.

use letterhead::error::Code;
use letterhead::format::Format::{Kip82Int, Kip82Typed};

use super::{first_fault, rejected, rejected_in_header, run};

/// Header of `kip82-typed` with the key `k`; `value` begins with the type.
fn typed(value: &[u8]) -> Vec<u8> {
    [run(b"k"), run(value)].concat()
}

/// Offset of the type of the value in such a header.
const KIND: usize = 9;
const VALUE: usize = 10;

#[test]
fn a_whole_header_is_read() {
    assert_eq!(first_fault(Kip82Typed, &typed(b"\x08acme")), None);
    assert_eq!(first_fault(Kip82Int, b"\0\0\0\x01\0\0\0\x04acme"), None);
}

#[test]
fn truncated_typed_key_length_is_rejected() {
    assert_eq!(rejected_in_header(Kip82Typed, b"\0\0\0"), (Code::Truncated, 0));
}

#[test]
fn typed_negative_key_length_is_rejected() {
    assert_eq!(rejected_in_header(Kip82Typed, b"\xff\xff\xff\xff\0\0\0\0"), (Code::NegativeLength, 0));
}

#[test]
fn typed_key_longer_than_the_bytes_is_rejected() {
    assert_eq!(rejected_in_header(Kip82Typed, b"\0\0\0\x02k"), (Code::Truncated, 4));
}

#[test]
fn non_utf8_typed_key_is_rejected() {
    let serialized = [run(b"k\xff"), run(b""), run(b"l"), run(b"\x0a")].concat();
    assert_eq!(rejected_in_header(Kip82Typed, &serialized), (Code::KeyNotUtf8, 5));
    assert_eq!(rejected(Kip82Typed, &serialized[10..]), (Code::UnknownType, Some(KIND), Some(0)));
}

#[test]
fn truncated_typed_value_length_is_rejected() {
    assert_eq!(rejected_in_header(Kip82Typed, &typed(b"")[..8]), (Code::Truncated, 5));
}

#[test]
fn negative_typed_value_length_is_rejected_as_null_has_none() {
    let serialized = [run(b"k"), vec![0xff; 4]].concat();
    assert_eq!(rejected_in_header(Kip82Typed, &serialized), (Code::NegativeLength, 5));
}

#[test]
fn typed_value_longer_than_bytes_is_rejected_at_its_type() {
    let serialized = typed(b"\x08acme");
    assert_eq!(rejected_in_header(Kip82Typed, &serialized[..serialized.len() - 1]), (Code::Truncated, KIND));
}

#[test]
fn unknown_typed_value_type_is_rejected() {
    for code in [10, 15, 16, 200, 255] {
        assert_eq!(rejected_in_header(Kip82Typed, &typed(&[code, 1])), (Code::UnknownType, KIND));
    }
}

#[test]
fn typed_number_of_another_size_is_rejected() {
    for (code, width) in [(1, 1), (2, 2), (3, 2), (4, 4), (5, 8), (6, 4), (7, 8)] {
        for len in [0, width - 1, width + 1] {
            let value = [vec![code], vec![0; len]].concat();
            assert_eq!(rejected_in_header(Kip82Typed, &typed(&value)), (Code::WrongSize, VALUE), "{code} {len}");
        }
    }
}

#[test]
fn typed_boolean_without_its_byte_is_rejected() {
    let error = first_fault(Kip82Typed, &typed(&[0])).expect("rejected");
    assert_eq!((error.code, error.byte, error.header), (Code::WrongSize, Some(VALUE), Some(0)));
    assert_eq!(error.message, "a boolean without its byte holds no value");
}

#[test]
fn typed_boolean_of_two_bytes_is_rejected() {
    assert_eq!(rejected_in_header(Kip82Typed, &typed(&[0, 1, 1])), (Code::WrongSize, VALUE));
}

#[test]
fn typed_boolean_other_than_0_and_1_is_rejected() {
    for byte in [2, 255] {
        assert_eq!(rejected_in_header(Kip82Typed, &typed(&[0, byte])), (Code::BadBool, VALUE));
    }
}

#[test]
fn non_utf8_typed_string_is_rejected_at_first_bad_byte() {
    assert_eq!(rejected_in_header(Kip82Typed, &typed(b"\x08ab\xff")), (Code::ValueNotUtf8, VALUE + 2));
}

#[test]
fn error_in_later_typed_header_names_it() {
    let serialized = [typed(b"\x08a"), typed(b""), typed(b"\x00\x02")].concat();
    assert_eq!(rejected(Kip82Typed, &serialized), (Code::BadBool, Some(11 + 9 + VALUE), Some(2)));
}

#[test]
fn truncated_int_key_is_rejected() {
    assert_eq!(rejected_in_header(Kip82Int, b"\0\0\0"), (Code::Truncated, 0));
}

#[test]
fn truncated_int_value_length_is_rejected() {
    assert_eq!(rejected_in_header(Kip82Int, b"\0\0\0\x01\0\0\0"), (Code::Truncated, 4));
}

#[test]
fn int_negative_value_length_other_than_null_is_rejected() {
    assert_eq!(first_fault(Kip82Int, b"\0\0\0\x01\xff\xff\xff\xff"), None);
    assert_eq!(rejected_in_header(Kip82Int, b"\0\0\0\x01\xff\xff\xff\xfe"), (Code::NegativeLength, 4));
}

#[test]
fn int_value_longer_than_the_bytes_is_rejected() {
    assert_eq!(rejected_in_header(Kip82Int, b"\0\0\0\x01\0\0\0\x02x"), (Code::Truncated, 8));
}

#[test]
fn bytes_after_last_int_header_are_truncated_header() {
    assert_eq!(rejected(Kip82Int, b"\0\0\0\x01\xff\xff\xff\xff\0"), (Code::Truncated, Some(8), Some(1)));
}
