//! Labels of the bytes of a message.

use letterhead::format::Format;
use letterhead::op::inspect::{Inspect, Inspection};
use letterhead::options::ReadOptions;

fn inspect(serialized: &[u8], format: &str) -> Inspection {
    Format::from_name(format).unwrap().visit(Inspect { data: serialized, options: ReadOptions::default() })
}

#[test]
fn every_byte_has_one_label_even_where_the_bytes_are_bad() {
    let serialized = [0x0c, 0x02, 0x06, 0x6b, 0x65, 0x79, 0x01, 0, 0, 0, 0, 0, 0, 0, 9, 0xaa];
    for format in Format::ALL {
        for len in 0..=serialized.len() {
            let found = format.visit(Inspect { data: &serialized[..len], options: ReadOptions::default() });
            let mut at = 0;
            for label in &found.labels {
                assert_eq!(label.start, at);
                at = label.end;
            }
            assert_eq!(at, len);
        }
    }
}

#[test]
fn fields_carry_their_meaning() {
    let found = inspect(&[0x02, 0x06, 0x6b, 0x65, 0x79, 0x02, 0x61], "kafka");
    let fields: Vec<_> = found.labels.iter().map(|label| (label.field, label.text.as_str())).collect();
    assert_eq!(
        fields,
        [("header count", "1"), ("key length", "3"), ("key", "\"key\""), ("value length", "1"), ("value", "\"a\"")]
    );
    assert!(found.errors.is_empty());
}

#[test]
fn fields_of_typed_headers_begin_with_their_type() {
    let found = inspect(&[2, 1, 0, 0, 0, b'k', 9, 1, 0, 0, 0, 7], "iggy");
    let fields: Vec<_> = found.labels.iter().map(|label| (label.end, label.field, label.text.as_str())).collect();
    assert_eq!(
        fields,
        [
            (1, "key type", "string"),
            (5, "key length", "1"),
            (6, "key", "\"k\""),
            (7, "value type", "uint8"),
            (11, "value length", "1"),
            (12, "value", "7")
        ]
    );
}

#[test]
fn bytes_after_a_break_are_not_read() {
    let found = inspect(&[0x02, 0x07, 0x6b], "kafka");
    assert_eq!(found.labels.last().unwrap().field, "not read");
    assert_eq!(found.errors[0].byte, Some(1));
}
