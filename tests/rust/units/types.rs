//! Types by name, and values that are read as a type.

use letterhead::arrow::types::Dialect;
use letterhead::encoding::{Encoding, encode_value};
use letterhead::error::{Code, Error};
use letterhead::types::Type;
use letterhead::value::{ByteOrder, Value, uuid_digits};
use letterhead::value_type::{Scalar, ValueType};

fn read<'a>(name: &str, bytes: &'a [u8]) -> Result<Value<'a>, Code> {
    let read = Type::parse(name).unwrap().read(bytes, Dialect::Arrow);
    read.map(|value| value.expect("only AMQP has a null")).map_err(|invalid| invalid.code)
}

#[test]
fn byte_order_is_part_of_the_type() {
    assert_eq!(read("int32", &[0, 0, 0, 3]), Ok(Value::Int(3)));
    assert_eq!(read("int32:le", &[3, 0, 0, 0]), Ok(Value::Int(3)));
    assert_eq!(read("int16", &[0xff, 0xfe]), Ok(Value::Int(-2)));
    assert_eq!(read("uint16", &[0xff, 0xfe]), Ok(Value::Int(65534)));
    assert_eq!(read("int32", &[0, 3]), Err(Code::WrongSize));
}

#[test]
fn types_that_a_notation_lacks_are_refused() {
    for (text, message) in
        [("string:varlen", "only integers and times have a variable length"), ("int128:amqp", "AMQP has no int128")]
    {
        let Err(Error::Value(refused)) = Type::parse(text) else { panic!("{text} is a type") };
        assert!(refused.ends_with(message), "{refused}");
    }
}

#[test]
fn integers_in_text_keep_to_digits_and_range() {
    assert_eq!(read("int8:text", b"-128"), Ok(Value::Int(-128)));
    assert_eq!(read("int8:text", b"128"), Err(Code::OutOfRange));
    assert_eq!(read("uint8:text", b"-0"), Ok(Value::Int(0)));
    assert_eq!(read("uint8:text", b"-1"), Err(Code::OutOfRange));
    assert_eq!(read("int64:text", &[b'0'; 99]), Ok(Value::Int(0)));
    assert_eq!(read("int64:text", &[b'9'; 99]), Err(Code::OutOfRange));
    for wrong in ["", "-", "+1", " 1", "1 ", "1_0", "0x1", "\u{0661}"] {
        assert_eq!(read("int64:text", wrong.as_bytes()), Err(Code::BadText), "{wrong:?}");
    }
}

#[test]
fn floats_in_text_keep_to_the_grammar() {
    for right in ["1", "1.", ".5", "-1e5", "+2.5E-3", "NaN", "Infinity", "-Infinity"] {
        assert!(read("float64:text", right.as_bytes()).is_ok(), "{right:?}");
    }
    for wrong in ["", ".", "e5", "1e", "inf", "nan", "+Infinity", "1f", "0x1p3", "1 "] {
        assert_eq!(read("float64:text", wrong.as_bytes()), Err(Code::BadText), "{wrong:?}");
    }
}

#[test]
fn only_a_word_is_an_infinite_float() {
    assert_eq!(read("float32:text", b"-Infinity"), Ok(Value::Float32(f32::NEG_INFINITY)));
    for (name, text) in [("float32:text", "1e99"), ("float32:text", "3.5e38"), ("float64:text", "-69203120e780")] {
        assert_eq!(read(name, text.as_bytes()), Err(Code::OutOfRange), "{text}");
    }
    assert_eq!(read("float64:text", b"3.5e38"), Ok(Value::Float64(3.5e38)));
    assert_eq!(read("float32:text", b"3.4028235e38"), Ok(Value::Float32(f32::MAX)));
}

#[test]
fn half_a_surrogate_pair_is_no_character() {
    assert_eq!(read("char", &[0xd8, 0x00]), Err(Code::OutOfRange));
    assert_eq!(read("char", &[0x00, 0xe9]), Ok(Value::Text("é".into())));
    assert_eq!(read("char:text", "📦".as_bytes()), Err(Code::BadText));
}

#[test]
fn a_wide_integer_past_38_digits_is_out_of_range() {
    assert_eq!(read("uint128", &[0xff; 16]), Err(Code::OutOfRange));
    assert_eq!(read("int128", &[0xff; 16]), Ok(Value::Wide(-1)));
    assert_eq!(read("int128:text", &[b'9'; 38]), Ok(Value::Wide(10i128.pow(38) - 1)));
    assert_eq!(read("int128:text", &[b'9'; 39]), Err(Code::OutOfRange));
}

#[test]
fn a_uuid_is_lower_case_text() {
    assert_eq!(&uuid_digits([0xaf; 16]), b"afafafaf-afaf-afaf-afaf-afafafafafaf");
    let bytes: Vec<u8> = (0..16).collect();
    let text = "00010203-0405-0607-0809-0a0b0c0d0e0f";
    assert_eq!(read("uuid", &bytes), Ok(Value::Text(text.into())));
    assert_eq!(read("uuid:text", text.to_uppercase().as_bytes()), Ok(Value::Text(text.into())));
    assert_eq!(read("uuid:text", b"0001020304050607-0809-0a0b0c0d0e0f"), Err(Code::BadText));
}

#[test]
fn spark_counts_microseconds() {
    let far = Type::parse("timestamp_ms").unwrap();
    assert_eq!(far.read(&5i64.to_be_bytes(), Dialect::Spark), Ok(Some(Value::Int(5000))));
    assert_eq!(far.read(&i64::MAX.to_be_bytes(), Dialect::Spark).unwrap_err().code, Code::OutOfRange);
    assert_eq!(far.read(&i64::MAX.to_be_bytes(), Dialect::Arrow), Ok(Some(Value::Int(i64::MAX))));
    let amqp = Type::parse("timestamp_ms:amqp").unwrap();
    let bytes = [&[0x83][..], &i64::MAX.to_be_bytes()].concat();
    let invalid = amqp.read(&bytes, Dialect::Spark).unwrap_err();
    assert_eq!((invalid.code, invalid.byte), (Code::OutOfRange, 1));
}

#[test]
fn kind_decides_type_but_bytes_may_be_amqp() {
    let amqp = Type::parse("int64:amqp").unwrap();
    let (long, binary) = (ValueType::Named(Scalar::Int64), ValueType::Named(Scalar::Binary));
    assert!(amqp.accepts(long) && amqp.accepts(binary) && !amqp.accepts(ValueType::Named(Scalar::Int32)));
    assert_eq!(amqp.under(long, ByteOrder::Little), Type::parse("int64:le").unwrap());
    assert_eq!(amqp.under(binary, ByteOrder::Little), amqp);
    assert!(!Type::parse("int64").unwrap().accepts(binary));
}

#[test]
fn a_suffix_only_where_there_is_a_spelling_to_choose() {
    assert!(Type::parse("string:be").is_err());
    assert!(Type::parse("string:amqp").is_ok());
    assert!(Type::parse("uint128:amqp").is_err());
    assert!(Type::parse("int32:big").is_err());
    let Err(Error::Value(text)) = Type::parse("itn32") else { panic!("accepted") };
    assert!(text.contains("did you mean 'int32'?"), "{text}");
}

#[test]
fn typed_values_are_written_as_requested_and_read_back() {
    for (name, bits) in [("int32", vec![0, 0, 1, 2]), ("float64", 0.1f64.to_be_bytes().to_vec()), ("bool", vec![1])] {
        let value_type = ValueType::parse(name).unwrap();
        for (suffix, encoding) in [
            ("be", Encoding::Bytes(ByteOrder::Big)),
            ("le", Encoding::Bytes(ByteOrder::Little)),
            ("text", Encoding::Text),
        ] {
            let written = encode_value(value_type, &bits, encoding).unwrap();
            assert_eq!(read(&format!("{name}:{suffix}"), &written), read(name, &bits), "{name}:{suffix}");
        }
        let short = encode_value(value_type, &[], Encoding::Bytes(ByteOrder::Big)).unwrap_err();
        assert_eq!(short.code, Code::WrongSize);
    }
}
