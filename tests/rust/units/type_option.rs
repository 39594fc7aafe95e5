//! Type options and their names.

use letterhead::type_option::EncodedType;

#[test]
fn type_with_encoding_is_named_and_read_back() {
    for name in ["int32", "int32:le", "int32:text", "char:text", "string", "binary", "type-200", "bool"] {
        assert_eq!(EncodedType::parse(name).unwrap().name(), name);
    }
    assert_eq!(EncodedType::parse("int32:be").unwrap().name(), "int32");
    for wrong in ["uuid", "timestamp_ms", "int33", "string:le", "type-3", "int32:amqp"] {
        assert!(EncodedType::parse(wrong).is_err(), "{wrong}");
    }
}
