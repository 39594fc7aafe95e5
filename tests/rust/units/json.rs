use super::*;

fn text(bytes: &[u8]) -> String {
    let Ok(Some(Value::Text(text))) = read(Scalar::String, bytes) else { panic!("{bytes:?}") };
    text.into_owned()
}

#[test]
fn escapes_in_a_string_are_replaced() {
    for (json, expected) in [
        (r#""a\u0041\u00e9""#, "aAé"),
        (r#""\ud83d\uDE00""#, "\u{1f600}"),
        (r#""\"\\\/\b\f\n\r\t""#, "\"\\/\u{8}\u{c}\n\r\t"),
        ("\"a\" \n", "a"),
        (r#""""#, ""),
    ] {
        assert_eq!(text(json.as_bytes()), expected, "{json}");
    }
}

#[test]
fn invalid_json_string_is_value_itself() {
    for plain in [
        "a",
        "\"",
        "\"a",
        "a\"",
        r#""a"b""#,
        r#""\x""#,
        r#""\u12""#,
        r#""\u12g4""#,
        r#""\ud83d""#,
        r#""\ud83d\u0041""#,
        r#""\ude00""#,
        "\"a\nb\"",
        " \"a\"",
    ] {
        assert_eq!(text(plain.as_bytes()), plain);
    }
    assert!(read(Scalar::String, b"\xff").is_err());
}

#[test]
fn scalars_have_quotes_or_none_and_null_is_null() {
    for plain in ["42", "\"42\"", " 42 ", "\" 42 \"", r#""\u00342""#] {
        assert_eq!(read(Scalar::Int32, plain.as_bytes()), Ok(Some(Value::Int(42))), "{plain}");
    }
    for null in ["null", "\"null\"", "\"\"", " null "] {
        assert_eq!(read(Scalar::Int32, null.as_bytes()), Ok(None), "{null}");
    }
    assert_eq!(read(Scalar::Bool, b"\"True\""), Ok(Some(Value::Bool(true))));
    assert_eq!(read(Scalar::Float64, b"\"-INF\""), Ok(Some(Value::Float64(f64::NEG_INFINITY))));
    for wrong in ["007", "-01", "+1", "0x1", "-"] {
        assert!(read(Scalar::Int32, wrong.as_bytes()).is_err(), "{wrong}");
    }
    for wrong in [".5", "1.", "+1.5", "00.5", "1e", "NaN", "Infinity"] {
        assert!(read(Scalar::Float64, wrong.as_bytes()).is_err(), "{wrong}");
    }
    // Jackson parses the digits in a string as Java does.
    assert_eq!(read(Scalar::Int32, b"\"007\""), Ok(Some(Value::Int(7))));
    assert_eq!(read(Scalar::Float64, b"\".5\""), Ok(Some(Value::Float64(0.5))));
    assert_eq!(read(Scalar::Float64, b"-1.5e-3"), Ok(Some(Value::Float64(-0.0015))));
    assert!(read(Scalar::Int32, b"").is_err() && read(Scalar::Int32, b"4.5").is_err());
}
