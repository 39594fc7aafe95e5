//! Details of headers formats.

use std::cmp::Ordering;

use letterhead::format::Format;
use letterhead::formats::headers::iggy::Iggy;
use letterhead::header::{Header, Key};
use letterhead::op::inspect::Inspect;
use letterhead::op::values::ParseMessage;
use letterhead::options::ReadOptions;
use letterhead::sink::GatheredMessage;
use letterhead::traits::HeadersFormat;

#[test]
fn encoded_surrogate_is_one_replacement_character() {
    let options = ReadOptions { lenient: true, ..ReadOptions::default() };
    let cases: [(&[u8], &str); 5] = [
        (b"a\xed\xa0\x80b", "a\u{fffd}b"),
        (b"\xed\xa0", "\u{fffd}"),
        (b"\xed\x20", "\u{fffd} "),
        (b"\xff\xfe", "\u{fffd}\u{fffd}"),
        (b"\xe2\x82", "\u{fffd}"),
    ];
    for (bytes, text) in cases {
        let serialized = [&[2, 2 * bytes.len() as u8], bytes, &[1]].concat();
        let read = ParseMessage { data: &serialized, options, fresh: GatheredMessage::default };
        let (message, _) = Format::Kafka.visit(read).unwrap();
        assert_eq!(message.headers[0].key.to_string(), text);
    }
}

#[test]
fn integer_keys_are_sorted_by_their_bytes_on_the_wire() {
    let key =
        |number: i32| Header { index: 0, key: Key::Int(number), value_type: None, value: None, value_offset: None };
    let compare = Iggy::CANONICAL.unwrap();
    assert_eq!(compare(&key(256), &key(1)), Ordering::Less);
    assert_eq!(compare(&key(2), &key(1)), Ordering::Greater);
}

#[test]
fn values_are_described_without_control_characters() {
    for (value, text) in [(&b"acme"[..], "\"acme\""), (b"\x1b[2J", "4 bytes"), (&[0xff], "1 byte")] {
        let serialized = [&[2, 2, b'k', 2 * value.len() as u8], value].concat();
        let found = Format::Kafka.visit(Inspect { data: &serialized, options: ReadOptions::default() });
        assert_eq!(found.labels.last().unwrap().text, text);
    }
}
