//! `iggy`, `iggy-2023` and `iggy-auto`.

use letterhead::error::Code;
use letterhead::format::Format::{self, Iggy, Iggy2023, IggyAuto};

use super::{first_fault, little_run, rejected, rejected_in_header};
use crate::common::{STRICT, STRICT_KINDS, errors, read};

const STRING: u8 = 2;
const BOOL: u8 = 3;
const INT32: u8 = 6;

/// Header in the format `iggy`.
fn typed(key_type: u8, key: &[u8], value_type: u8, value: &[u8]) -> Vec<u8> {
    [&[key_type][..], &little_run(key), &[value_type], &little_run(value)].concat()
}

/// Header in the format `iggy-2023`.
fn older(key: &[u8], value_type: u8, value: &[u8]) -> Vec<u8> {
    [&little_run(key)[..], &[value_type], &little_run(value)].concat()
}

/// Both formats, each with a header with the key `k`, and the offset of the type of its value.
fn with_value(value_type: u8, value: &[u8]) -> [(Format, Vec<u8>, usize); 2] {
    [(Iggy, typed(STRING, b"k", value_type, value), 6), (Iggy2023, older(b"k", value_type, value), 5)]
}

#[test]
fn complete_header_is_read_also_by_iggy_auto() {
    for (format, serialized, _) in with_value(STRING, b"v") {
        assert_eq!(first_fault(format, &serialized), None);
        assert_eq!(first_fault(IggyAuto, &serialized), None);
    }
}

#[test]
fn key_type_0_is_rejected() {
    assert_eq!(rejected_in_header(Iggy, &typed(0, b"k", STRING, b"v")), (Code::UnknownType, 0));
}

#[test]
fn key_type_without_a_name_is_rejected_by_strict_types_only() {
    let serialized = typed(16, b"k", STRING, b"v");
    assert_eq!(first_fault(Iggy, &serialized), None);
    for format in [Iggy, IggyAuto] {
        let error = read(format, &serialized, STRICT_KINDS).expect_err("rejected");
        assert_eq!((error.code, error.byte, error.header), (Code::UnknownType, Some(0), Some(0)));
    }
}

#[test]
fn truncated_key_length_is_rejected() {
    assert_eq!(rejected_in_header(Iggy, &[STRING, 1, 0, 0]), (Code::Truncated, 1));
    assert_eq!(rejected_in_header(Iggy2023, &[1, 0, 0]), (Code::Truncated, 0));
}

#[test]
fn key_without_bytes_is_rejected() {
    assert_eq!(rejected_in_header(Iggy, &typed(STRING, b"", STRING, b"v")), (Code::EmptyKey, 1));
    assert_eq!(rejected_in_header(Iggy2023, &older(b"", STRING, b"v")), (Code::EmptyKey, 0));
}

#[test]
fn key_of_256_bytes_is_rejected() {
    let long = [b'k'; 256];
    assert_eq!(first_fault(Iggy, &typed(STRING, &long[1..], STRING, b"v")), None);
    assert_eq!(first_fault(Iggy2023, &older(&long[1..], STRING, b"v")), None);
    assert_eq!(rejected_in_header(Iggy, &typed(STRING, &long, STRING, b"v")), (Code::TooLong, 1));
    assert_eq!(rejected_in_header(Iggy2023, &older(&long, STRING, b"v")), (Code::TooLong, 0));
}

#[test]
fn key_longer_than_the_bytes_is_rejected() {
    assert_eq!(rejected_in_header(Iggy, &[STRING, 2, 0, 0, 0, b'k']), (Code::Truncated, 5));
    assert_eq!(rejected_in_header(Iggy2023, &[2, 0, 0, 0, b'k']), (Code::Truncated, 4));
}

#[test]
fn overlong_missing_key_yields_two_errors() {
    let codes: Vec<_> =
        errors(Iggy, &[STRING, 0, 1, 0, 0], STRICT).iter().map(|error| (error.code, error.byte)).collect();
    assert_eq!(codes, [(Code::TooLong, Some(1)), (Code::Truncated, Some(5))]);
}

#[test]
fn key_size_that_contradicts_its_kind_is_rejected() {
    assert_eq!(rejected_in_header(Iggy, &typed(INT32, &[1, 2, 3], STRING, b"v")), (Code::WrongSize, 5));
    let error = first_fault(Iggy, &typed(BOOL, &[1, 1], STRING, b"v")).expect("rejected");
    assert_eq!(error.message, "key of 2 bytes where bool takes 1");
}

#[test]
fn non_utf8_key_is_rejected_where_keys_are_text() {
    assert_eq!(rejected_in_header(Iggy2023, &older(b"k\xff", STRING, b"v")), (Code::KeyNotUtf8, 5));
    assert_eq!(first_fault(Iggy, &typed(STRING, b"k\xff", STRING, b"v")), None);
}

#[test]
fn missing_value_kind_is_rejected() {
    for (format, serialized, type_offset) in with_value(STRING, b"v") {
        assert_eq!(rejected_in_header(format, &serialized[..type_offset]), (Code::Truncated, type_offset));
    }
}

#[test]
fn value_kind_0_is_rejected() {
    for (format, serialized, type_offset) in with_value(0, b"v") {
        assert_eq!(rejected_in_header(format, &serialized), (Code::UnknownType, type_offset));
    }
}

#[test]
fn unnamed_value_kind_fails_older_headers_and_strict_types() {
    for code in [16, 255] {
        let [(_, later, later_at), (_, older, older_at)] = with_value(code, b"v");
        assert_eq!(rejected_in_header(Iggy2023, &older), (Code::UnknownType, older_at));
        assert_eq!(first_fault(Iggy, &later), None);
        let error = read(Iggy, &later, STRICT_KINDS).expect_err("rejected");
        assert_eq!((error.code, error.byte, error.header), (Code::UnknownType, Some(later_at), Some(0)));
    }
}

#[test]
fn truncated_value_length_is_rejected() {
    for (format, serialized, type_offset) in with_value(STRING, b"v") {
        assert_eq!(rejected_in_header(format, &serialized[..type_offset + 4]), (Code::Truncated, type_offset + 1));
    }
}

#[test]
fn value_without_bytes_is_rejected() {
    for (format, serialized, type_offset) in with_value(STRING, b"") {
        assert_eq!(rejected_in_header(format, &serialized), (Code::EmptyValue, type_offset + 1));
    }
}

#[test]
fn value_of_256_bytes_is_rejected() {
    for (format, serialized, _) in with_value(STRING, &[b'v'; 255]) {
        assert_eq!(first_fault(format, &serialized), None);
    }
    for (format, serialized, type_offset) in with_value(STRING, &[b'v'; 256]) {
        assert_eq!(rejected_in_header(format, &serialized), (Code::TooLong, type_offset + 1));
    }
}

#[test]
fn value_longer_than_the_bytes_is_rejected() {
    for (format, serialized, type_offset) in with_value(STRING, b"vv") {
        assert_eq!(rejected_in_header(format, &serialized[..serialized.len() - 1]), (Code::Truncated, type_offset + 5));
    }
}

#[test]
fn value_size_contradicting_kind_fails_in_newer_headers() {
    let [(_, later, type_offset), (_, older, _)] = with_value(INT32, &[1, 2, 3]);
    assert_eq!(rejected_in_header(Iggy, &later), (Code::WrongSize, type_offset + 5));
    assert_eq!(first_fault(Iggy2023, &older), None);
}

#[test]
fn value_invalid_for_its_kind_passes_in_both_layouts() {
    for (value_type, value) in [(STRING, b"\xff"), (BOOL, b"\x02")] {
        for (format, serialized, _) in with_value(value_type, value) {
            assert_eq!(first_fault(format, &serialized), None);
        }
    }
}

#[test]
fn error_in_later_header_names_it() {
    let [(_, one, _), (_, other, _)] = with_value(STRING, b"v");
    let serialized = [one.clone(), typed(STRING, b"k", 0, b"v"), one].concat();
    assert_eq!(rejected(Iggy, &serialized), (Code::UnknownType, Some(12 + 6), Some(1)));
    let serialized = [other.clone(), older(b"k", 0, b"v"), other].concat();
    assert_eq!(rejected(Iggy2023, &serialized), (Code::UnknownType, Some(11 + 5), Some(1)));
}

#[test]
fn iggy_auto_reports_errors_of_chosen_layout() {
    let serialized_rows = [
        vec![STRING],
        typed(0, b"k", STRING, b"v"),
        typed(INT32, b"k", STRING, b"v"),
        older(b"k", 0, b"v"),
        older(b"k\xff", STRING, b"v"),
        older(b"k", STRING, b""),
    ];
    for serialized in serialized_rows {
        let format = if serialized.get(1) == Some(&0) { Iggy2023 } else { Iggy };
        assert!(!errors(format, &serialized, STRICT).is_empty());
        assert_eq!(errors(IggyAuto, &serialized, STRICT), errors(format, &serialized, STRICT));
    }
}
