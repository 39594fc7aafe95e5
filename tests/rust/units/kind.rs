//! Value types: names and codes.

use letterhead::kind::{Kind, Kinds, Scalar};

#[test]
fn kinds_are_named_and_read_back() {
    for scalar in Scalar::ALL {
        assert_eq!(Kind::parse(scalar.name()).is_some(), scalar.is_kind(), "{}", scalar.name());
    }
    assert_eq!(Kind::parse("type-200"), Some(Kind::Unnamed(200)));
    assert_eq!(Kind::Unnamed(200).name(), "type-200");
    for wrong in
        ["type-256", "type-3", "type-016", "type-+16", "type-", "", "int", "int9", "int8\0", "strings", "int128s8"]
    {
        assert_eq!(Kind::parse(wrong), None, "{wrong}");
    }
    assert_eq!(Kind::parse("uuid"), None);
}

#[test]
fn a_name_is_found_whatever_lies_behind_it() {
    for scalar in Scalar::ALL.iter().filter(|scalar| scalar.is_kind()) {
        let (mut bytes, len) = Kind::Named(*scalar).padded_name();
        bytes[len..].fill(b'x');
        assert_eq!(Kind::of_padded(bytes, len), Some(Kind::Named(*scalar)));
        assert_eq!(Kind::of_padded(bytes, len - 1), Kind::parse(&scalar.name()[..len - 1]));
    }
    for len in [0, 9, usize::MAX] {
        assert_eq!(Kind::of_padded(*b"type-200", len), None);
    }
    assert_eq!(Kind::of_padded(*b"type-200", 8), None);
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
fn codes_and_kinds_are_each_others_inverse() {
    for kinds in [Kinds::Kip82, Kinds::Iggy, Kinds::IggyNamed] {
        let known: Vec<_> = (0..=u8::MAX).filter_map(|code| kinds.kind(code).map(|kind| (code, kind))).collect();
        assert_eq!(
            known.len(),
            match kinds {
                Kinds::Kip82 => 10,
                Kinds::Iggy => 255,
                _ => 15,
            }
        );
        assert!(known.iter().all(|(code, kind)| kinds.code(*kind) == Some(*code)));
    }
    assert_eq!(Kinds::None.kind(4), None);
}

#[test]
fn padded_names_are_the_names() {
    let named = Scalar::ALL.iter().filter(|scalar| scalar.is_kind()).map(|scalar| Kind::Named(*scalar));
    for kind in named.chain((16..=u8::MAX).map(Kind::Unnamed)) {
        let (bytes, len) = kind.padded_name();
        assert_eq!(&bytes[..len], kind.name().as_bytes());
    }
}
