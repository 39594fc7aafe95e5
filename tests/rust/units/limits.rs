//! Limits from the environment.

use std::ffi::OsString;

use letterhead::error::Error;
use letterhead::limits::{DECOMPRESSED_BYTES, HEADERS, Limits, MESSAGE_BYTES, OUTPUT_BYTES, RECORDS};

#[test]
fn variables_change_defaults_and_report_malformed_values() {
    let with = |name: &str, value: &str| Limits::from_variables(|asked| (asked == name).then(|| OsString::from(value)));
    assert_eq!(Limits::from_variables(|_| None), Ok(Limits::DEFAULT));
    assert_eq!(with(MESSAGE_BYTES.variable, "0"), Ok(Limits { message_bytes: 0, ..Limits::DEFAULT }));
    assert_eq!(with(HEADERS.variable, "17"), Ok(Limits { headers: 17, ..Limits::DEFAULT }));
    let decompressed = with(DECOMPRESSED_BYTES.variable, &usize::MAX.to_string());
    assert_eq!(decompressed, Ok(Limits { decompressed_bytes: usize::MAX, ..Limits::DEFAULT }));
    assert_eq!(with(RECORDS.variable, "5"), Ok(Limits { records: 5, ..Limits::DEFAULT }));
    assert_eq!(with(OUTPUT_BYTES.variable, "6"), Ok(Limits { output_bytes: 6, ..Limits::DEFAULT }));
    for wrong in ["", "-1", "+1", " 1", "1e6", "1 MiB", "18446744073709551616"] {
        let said = format!("LETTERHEAD_MAX_HEADERS is '{wrong}', not a whole number of headers");
        assert_eq!(with(HEADERS.variable, wrong), Err(Error::Value(said)));
    }
}
