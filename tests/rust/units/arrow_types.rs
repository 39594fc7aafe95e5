//! Spark DDL.

use super::*;

#[test]
fn ddl_quotes_names_that_need_it() {
    assert_eq!(quote("tenant"), "tenant");
    assert_eq!(quote("señal-📦"), "`señal-📦`");
    assert_eq!(quote("a`b"), "`a``b`");
}

#[test]
fn column_of_several_integer_types_fits_all() {
    let common = |text: &str| {
        let (of, others) = parse_alternatives(text).expect("the types have a column");
        common_type(&[&[of], &others[..]].concat(), Dialect::Arrow).expect("it is known")
    };
    for (types, of) in [
        ("int64 | int32", DataType::Int64),
        ("int8 | int64:text", DataType::Int64),
        ("uint8 | int8", DataType::Int16),
        ("uint8 | uint16", DataType::UInt16),
        ("uint64 | int8", DataType::Decimal128(38, 0)),
        ("float32 | float64:text", DataType::Float64),
    ] {
        assert_eq!(common(types), of, "{types}");
    }
    for types in ["int32 | string", "int64 | float64", "timestamp_ms | int64", "bool | int8"] {
        let error = parse_alternatives(types).expect_err("no column has both").to_string();
        assert!(error.contains("which no column has both"), "{error}");
    }
}
