use super::*;

fn read(form: &str, suffix: &str, text: &str) -> Result<Value<'static>, Code> {
    TextForm::parse(form, suffix).unwrap().read(text.as_bytes()).map_err(|invalid| invalid.code)
}

#[test]
fn every_day_is_written_and_read_back() {
    let (first, last) = (DAYS.0 as i32, DAYS.1 as i32);
    // Miri would take hours for all days.
    for days in (first..last).step_by(if cfg!(miri) { 99_991 } else { 1 }) {
        let text = date_text(days).unwrap();
        assert_eq!(read_date(text.as_bytes()).unwrap(), i64::from(days), "{text}");
    }
    assert_eq!(date_text(first).unwrap(), "0001-01-01");
    assert_eq!(date_text(last - 1).unwrap(), "9999-12-31");
    assert!(date_text(last).is_err() && date_text(first - 1).is_err());
}

#[test]
fn a_form_is_parsed_from_its_name_and_from_no_other() {
    for name in [
        "timestamp:iso",
        "timestamp:s",
        "timestamp:ms",
        "timestamp:us",
        "timestamp:ns",
        "date:text",
        "decimal(5,2):text",
    ] {
        let (of, suffix) = name.split_once(':').unwrap();
        assert_eq!(TextForm::parse(of, suffix).unwrap().name(), name);
    }
    for (of, suffix) in [("date", "iso"), ("timestamp", "text"), ("binary", "text"), ("decimal(5,2)", "hex")] {
        assert_eq!(TextForm::parse(of, suffix), None, "{of}:{suffix}");
    }
}

#[test]
fn offset_is_subtracted_and_excess_digits_are_truncated() {
    let micros = |text| read("timestamp", "iso", text);
    assert_eq!(micros("1970-01-01T01:00:00.0000019+01:00"), Ok(Value::Int(1)));
    assert_eq!(micros("1969-12-31 23:59:59.9999999z"), Ok(Value::Int(-1)));
    assert_eq!(micros("1970-01-01T00:00:00"), Err(Code::BadText));
    assert_eq!(micros("2026-02-29T00:00:00Z"), Err(Code::BadText));
    assert_eq!(micros("0001-01-01T00:00:00+00:01"), Err(Code::OutOfRange));
    assert_eq!(micros("9999-12-31T23:59:59-00:01"), Err(Code::OutOfRange));
}

#[test]
fn seconds_that_are_left_out_are_zero() {
    let iso = |text| read("timestamp", "iso", text);
    assert_eq!(iso("1970-01-01T00:01Z"), Ok(Value::Int(60_000_000)));
    assert_eq!(iso("1970-01-01T01:00+01:00"), Ok(Value::Int(0)));
    for text in ["1970-01-01T00:00.5Z", "1970-01-01T00Z", "1970-01-01T00:00:Z", "1970-01-01T00:0Z", "1970-01-01T00:00"]
    {
        assert_eq!(iso(text), Err(Code::BadText), "{text}");
    }
}

#[test]
fn leap_second_is_first_second_of_next_utc_day() {
    let iso = |text| read("timestamp", "iso", text);
    for text in
        ["1970-01-01T23:59:60Z", "1970-01-01T23:59:60.000z", "1970-01-02T00:29:60+00:30", "1970-01-01T22:59:60-01:00"]
    {
        assert_eq!(iso(text), Ok(Value::Int(86_400_000_000)), "{text}");
    }
    for text in ["1970-01-01T23:59:60+01:00", "1970-01-01T00:59:60Z", "1970-01-01T23:59:61Z"] {
        assert_eq!(iso(text), Err(Code::BadText), "{text}");
    }
    for text in ["1970-01-01T23:59:60.0000000000001Z", "9999-12-31T23:59:60Z"] {
        assert_eq!(iso(text), Err(Code::OutOfRange), "{text}");
    }
}

#[test]
fn digits_of_each_unit_become_microseconds() {
    for (unit, text, micros) in [("s", "-2", -2_000_000), ("ms", "3", 3_000), ("us", "4", 4), ("ns", "-1", -1)] {
        assert_eq!(read("timestamp", unit, text), Ok(Value::Int(micros)));
    }
    assert_eq!(read("timestamp", "s", "253402300800"), Err(Code::OutOfRange));
    assert_eq!(read("timestamp", "s", &"9".repeat(99)), Err(Code::OutOfRange));
    assert_eq!(read("timestamp", "s", "1.5"), Err(Code::BadText));
}

#[test]
fn a_decimal_has_no_more_digits_than_its_type() {
    let decimal = |text| read("decimal(5, 2)", "text", text);
    for (text, number) in [("1.5", 150), ("-.25", -25), ("+7", 700), ("12e1", 12_000), ("1500e-3", 150), ("0e99", 0)] {
        assert_eq!(decimal(text), Ok(Value::Wide(number)), "{text}");
    }
    for text in ["1.005", "1000", "1e3", "1e-3", "1e99999999999999999999", "1e-99999999999999999999"] {
        assert_eq!(decimal(text), Err(Code::OutOfRange), "{text}");
    }
    for text in ["", ".", "-", "1e", "e1", "1.2.3", "NaN", "1 ", "--1", "1e+-1"] {
        assert_eq!(decimal(text), Err(Code::BadText), "{text}");
    }
    let of = DecimalType { precision: 5, scale: 2 };
    let write = |number, scale| of.write(number, scale, false);
    assert_eq!([write(-5, 2).unwrap(), write(7, 0).unwrap()], ["-0.05", "7.00"]);
    assert_eq!(write(1500, 3).unwrap(), "1.50");
    assert!(write(1501, 3).is_err() && write(100_000, 2).is_err());
    assert_eq!([of.write(1509, 3, true).unwrap(), of.write(-1509, 3, true).unwrap()], ["1.50", "-1.50"]);
    assert!(of.write(100_000, 2, true).is_err());
}
