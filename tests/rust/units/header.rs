//! Keys.

use letterhead::header::{Key, RequestedKey, Text, TypedKey};
use letterhead::value::ByteOrder;
use letterhead::value_type::{Scalar, ValueType};

#[test]
fn typed_keys_are_equal_by_type_and_value_in_any_byte_order() {
    let key = |scalar, bytes, order| Key::Typed(TypedKey::new(ValueType::Named(scalar), bytes, order));
    let three = key(Scalar::Int32, &[0, 0, 0, 3], ByteOrder::Big);
    assert_eq!(three, key(Scalar::Int32, &[3, 0, 0, 0], ByteOrder::Little));
    assert_ne!(three, key(Scalar::Int32, &[0, 0, 0, 3], ByteOrder::Little));
    assert_ne!(three, key(Scalar::Uint32, &[0, 0, 0, 3], ByteOrder::Big));
}

#[test]
fn requested_string_is_text_unless_it_is_not_utf8() {
    let string = |bytes: &[u8]| RequestedKey::typed(ValueType::Named(Scalar::String), bytes);
    assert_eq!(string(b"k"), RequestedKey::Text("k".into()));
    assert_eq!(string(&[0xff]), RequestedKey::Typed(ValueType::Named(Scalar::String), vec![0xff]));
}

#[test]
fn short_check_agrees_with_general_one() {
    for len in 0..40 {
        let plain = vec![b'a'; len];
        assert!(Text::new(&plain).is_ok());
        for place in 0..len {
            let mut bytes = plain.clone();
            bytes[place] = 0xff;
            assert_eq!(Text::new(&bytes).err(), std::str::from_utf8(&bytes).err(), "{len} {place}");
        }
    }
    assert!(Text::new("señal-📦".as_bytes()).is_ok());
}
