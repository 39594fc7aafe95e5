//! Errors and their messages.

use letterhead::error::{Code, ErrorDetail, Located, suggestion, unknown_name};

#[test]
fn located_error_names_problem_then_position() {
    let error = ErrorDetail {
        code: Code::NegativeLength,
        message: "key length -1 is negative".into(),
        byte: Some(41),
        header: Some(3),
        key: None,
        column: None,
    };
    let located = Located { format: "kafka", row: Some(7), error };
    assert_eq!(located.to_string(), "kafka: key length -1 is negative (header 3, byte 41, row 7)");
}

#[test]
fn a_misspelt_name_gets_the_nearest_one() {
    let names = ["kafka", "streams", "streams-timestamped"];
    assert_eq!(suggestion("kafak", names.into_iter()), Some("kafka"));
    assert_eq!(suggestion("streams-timestmaped", names.into_iter()), Some("streams-timestamped"));
    assert_eq!(suggestion("KAFKA", names.into_iter()), Some("kafka"));
    assert_eq!(suggestion("protobuf", names.into_iter()), None);
}

#[test]
fn unknown_name_suggests_nearest_and_lists_all() {
    let said = |what, wrong| unknown_name(what, wrong, ["kafka", "streams"].into_iter()).to_string();
    assert_eq!(said("format", "KAFKA"), "unknown format 'KAFKA': did you mean 'kafka'? (formats: kafka, streams)");
    assert_eq!(said("format", "protobuf"), "unknown format 'protobuf' (formats: kafka, streams)");
    assert_eq!(said("values", "protobuf"), "unknown values 'protobuf' (values: kafka, streams)");
}

#[test]
fn code_names_are_distinct() {
    let mut names: Vec<_> = Code::ALL.iter().map(|code| code.name()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), Code::ALL.len());
}
