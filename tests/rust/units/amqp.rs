//! Primitives of AMQP 1.0.

use letterhead::amqp::{has, read};
use letterhead::error::Code;
use letterhead::value::{InvalidValue, Value};
use letterhead::value_type::Scalar;

fn reads(scalar: Scalar, bytes: &[u8]) -> Option<Value<'_>> {
    read(scalar, bytes).unwrap()
}

fn fails(scalar: Scalar, bytes: &[u8]) -> (Code, usize, String) {
    let InvalidValue { code, byte, message } = *read(scalar, bytes).unwrap_err();
    (code, byte, message)
}

#[test]
fn type_code_determines_value_encoding() {
    assert_eq!(reads(Scalar::Int64, &[0x55, 0xff]), Some(Value::Int(-1)));
    assert_eq!(reads(Scalar::Int64, &[0x81, 0, 0, 0, 0, 0, 0, 1, 0]), Some(Value::Int(256)));
    assert_eq!(reads(Scalar::Uint32, &[0x43]), Some(Value::Int(0)));
    assert_eq!(reads(Scalar::Uint32, &[0x52, 0xff]), Some(Value::Int(255)));
    assert_eq!(reads(Scalar::Uint64, &[0x44]), Some(Value::Wide(0)));
    assert_eq!(reads(Scalar::Uint64, &[0x53, 0xff]), Some(Value::Wide(255)));
    assert_eq!(reads(Scalar::Bool, &[0x41]), Some(Value::Bool(true)));
    assert_eq!(reads(Scalar::Bool, &[0x42]), Some(Value::Bool(false)));
    assert_eq!(reads(Scalar::Bool, &[0x56, 1]), Some(Value::Bool(true)));
    assert_eq!(reads(Scalar::Char, &[0x73, 0, 1, 0xf4, 0xe6]), Some(Value::Text("📦".into())));
    assert_eq!(reads(Scalar::String, b"\xa1\x02hi"), Some(Value::Text("hi".into())));
    assert_eq!(reads(Scalar::String, b"\xb3\0\0\0\x02hi"), Some(Value::Text("hi".into())));
    assert_eq!(reads(Scalar::Binary, b"\xa0\0"), Some(Value::Bytes(b"".into())));
}

#[test]
fn null_is_valid_for_every_type() {
    for scalar in Scalar::ALL.iter().filter(|scalar| has(**scalar)) {
        assert_eq!(reads(*scalar, &[0x40]), None);
    }
    assert!(!has(Scalar::Int128) && !has(Scalar::Uint128));
}

#[test]
fn every_amqp_primitive_rejects_truncated_and_trailing_bytes() {
    // The code of a primitive, followed by its content, or by a length and the content.
    let bodies = [0, 1, 2, 4, 8, 16].map(|width| vec![0; width]);
    let bodies: Vec<_> = bodies.into_iter().chain([b"\x03abc".to_vec(), b"\0\0\0\x03abc".to_vec()]).collect();
    let mut codes = 0;
    for code in 0..=u8::MAX {
        let wholes = bodies.iter().map(|body| [&[code][..], body].concat());
        let found = wholes.flat_map(|whole| Scalar::ALL.iter().map(move |scalar| (*scalar, whole.clone())));
        let Some((scalar, whole)) = found.into_iter().find(|(scalar, whole)| read(*scalar, whole).is_ok()) else {
            continue;
        };
        codes += 1;
        for cut in 1..whole.len() {
            let (found, byte, _) = fails(scalar, &whole[..cut]);
            assert_eq!((found, byte), (Code::Truncated, 1), "{code:#x} {cut}");
        }
        let (found, byte, message) = fails(scalar, &[&whole[..], &[0]].concat());
        assert_eq!((found, byte), (Code::TrailingBytes, whole.len()), "{code:#x}");
        assert!(message.starts_with("1 byte after the "), "{message}");
    }
    assert_eq!(codes, 29);
}

#[test]
fn invalid_value_is_reported_with_position() {
    assert_eq!(fails(Scalar::Int64, &[]).0, Code::Truncated);
    assert_eq!(fails(Scalar::Int64, &[0xc1, 1, 0]).2, "the value is a map, which is no single value");
    assert_eq!(fails(Scalar::Int64, &[0x07]).2, "the value is of code 0x07, which AMQP does not have");
    assert_eq!(fails(Scalar::Int64, &[0x71, 1]).2, "the value is int and int64 was requested");
    assert_eq!(fails(Scalar::Bool, &[0x56, 2]), (Code::BadBool, 1, "the byte is not a boolean: 0 or 1".into()));
    assert_eq!(fails(Scalar::String, b"\xa1\x02a\xff").1, 3);
    assert_eq!(fails(Scalar::Char, &[0x73, 0, 0, 0xd8, 0]).0, Code::OutOfRange);
    assert_eq!(fails(Scalar::String, b"\xb1\xff\xff\xff\xffa").2, "4294967295 bytes announced and 1 there");
}
