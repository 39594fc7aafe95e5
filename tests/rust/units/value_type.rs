//! Value types: names and codes.

use letterhead::value_type::{Scalar, TypeCodes, ValueType};

#[test]
fn value_types_are_named_and_read_back() {
    for scalar in Scalar::ALL {
        assert_eq!(ValueType::parse(scalar.name()).is_some(), scalar.is_wire_type(), "{}", scalar.name());
    }
    assert_eq!(ValueType::parse("type-200"), Some(ValueType::Unnamed(200)));
    assert_eq!(ValueType::Unnamed(200).name(), "type-200");
    for wrong in
        ["type-256", "type-3", "type-016", "type-+16", "type-", "", "int", "int9", "int8\0", "strings", "int128s8"]
    {
        assert_eq!(ValueType::parse(wrong), None, "{wrong}");
    }
    assert_eq!(ValueType::parse("uuid"), None);
}

#[test]
fn a_name_is_found_whatever_lies_behind_it() {
    for scalar in Scalar::ALL.iter().filter(|scalar| scalar.is_wire_type()) {
        let (mut bytes, len) = ValueType::Named(*scalar).padded_name();
        bytes[len..].fill(b'x');
        assert_eq!(ValueType::from_padded(bytes, len), Some(ValueType::Named(*scalar)));
        assert_eq!(ValueType::from_padded(bytes, len - 1), ValueType::parse(&scalar.name()[..len - 1]));
    }
    for len in [0, 9, usize::MAX] {
        assert_eq!(ValueType::from_padded(*b"type-200", len), None);
    }
    assert_eq!(ValueType::from_padded(*b"type-200", 8), None);
}

#[test]
fn ten_kip82_and_fifteen_iggy_codes() {
    let mut kip82: Vec<_> = Scalar::ALL.iter().filter_map(|s| s.kip82()).collect();
    let mut iggy: Vec<_> = Scalar::ALL.iter().filter_map(|s| s.iggy()).collect();
    kip82.sort_unstable();
    iggy.sort_unstable();
    assert_eq!(kip82, (0..10).collect::<Vec<_>>());
    assert_eq!(iggy, (1..=15).collect::<Vec<_>>());
}

#[test]
fn codes_and_kinds_map_both_ways() {
    for types in [TypeCodes::Kip82, TypeCodes::Iggy, TypeCodes::IggyNamed] {
        let known: Vec<_> =
            (0..=u8::MAX).filter_map(|code| types.value_type(code).map(|value_type| (code, value_type))).collect();
        assert_eq!(
            known.len(),
            match types {
                TypeCodes::Kip82 => 10,
                TypeCodes::Iggy => 255,
                _ => 15,
            }
        );
        assert!(known.iter().all(|(code, value_type)| types.code(*value_type) == Some(*code)));
    }
    assert_eq!(TypeCodes::None.value_type(4), None);
}

#[test]
fn padded_names_are_the_names() {
    let named = Scalar::ALL.iter().filter(|scalar| scalar.is_wire_type()).map(|scalar| ValueType::Named(*scalar));
    for value_type in named.chain((16..=u8::MAX).map(ValueType::Unnamed)) {
        let (bytes, len) = value_type.padded_name();
        assert_eq!(&bytes[..len], value_type.name().as_bytes());
    }
}
