//! `kafka`, `streams`, `streams-timestamped`.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, BinaryArray};
use letterhead::arrow::edit::EditColumn;
use letterhead::arrow::{Apply, Decode, Input};
use letterhead::error::Code;
use letterhead::format::Format::{Kafka, Streams, StreamsTimestamped};
use letterhead::header::RequestedKey;
use letterhead::log::OnError;
use letterhead::op::edit::{Change, Edit, Entry, NewValue};
use letterhead::op::inspect::Inspect;

use super::{first_fault, rejected};
use crate::columns::apply;
use crate::common::{LENIENT, STRICT};

/// Two headers, the second with a null value.
const BLOCK: &[u8] = b"\x04\x02a\x04xy\x04bc\x01";

#[test]
fn complete_headers_are_read() {
    assert_eq!(first_fault(Kafka, BLOCK), None);
}

#[test]
fn empty_value_has_no_headers_and_is_no_message() {
    assert_eq!(first_fault(Kafka, b""), None);
    assert_eq!(first_fault(Kafka, b"\0"), None);
    assert_eq!(rejected(Streams, b""), (Code::Truncated, Some(0), None));
    assert_eq!(rejected(StreamsTimestamped, b""), (Code::Truncated, Some(0), None));
}

#[test]
fn truncated_headers_are_too_short_for_their_count() {
    for len in 1..BLOCK.len() {
        let code = first_fault(Kafka, &BLOCK[..len]).expect("rejected").code;
        let short = (BLOCK.len() - 1) / 2;
        assert!(code == Code::Truncated || code == Code::CountTooLarge && len <= short, "{len}: {code:?}");
    }
}

#[test]
fn truncated_message_frame_or_headers_are_rejected() {
    let whole = [&[BLOCK.len() as u8 * 2][..], BLOCK, &[0; 8], b"payload"].concat();
    assert_eq!(first_fault(StreamsTimestamped, &whole), None);
    for len in 0..1 + BLOCK.len() + 8 {
        assert_eq!(first_fault(StreamsTimestamped, &whole[..len]).expect("rejected").code, Code::Truncated, "{len}");
    }
}

#[test]
fn negative_key_length_is_rejected() {
    assert_eq!(rejected(Kafka, b"\x02\x01\x00\x00"), (Code::NegativeLength, Some(1), Some(0)));
}

#[test]
fn negative_value_length_other_than_null_is_rejected() {
    assert_eq!(rejected(Kafka, b"\x02\x02a\x03"), (Code::NegativeLength, Some(3), Some(0)));
}

#[test]
fn a_key_longer_than_the_bytes_is_rejected() {
    assert_eq!(rejected(Kafka, b"\x02\x7ea\x01"), (Code::Truncated, Some(2), Some(0)));
}

#[test]
fn a_value_longer_than_the_bytes_is_rejected() {
    assert_eq!(rejected(Kafka, b"\x02\x02a\x7ex"), (Code::Truncated, Some(4), Some(0)));
}

#[test]
fn a_negative_count_is_rejected() {
    assert_eq!(rejected(Kafka, b"\x01\x02a\x01"), (Code::NegativeCount, Some(0), None));
}

#[test]
fn count_larger_than_bytes_is_rejected_before_allocation() {
    let huge = b"\xfe\xff\xff\xff\x0f\x02a\x01";
    assert_eq!(rejected(Kafka, huge), (Code::CountTooLarge, Some(0), None));
}

#[test]
fn trailing_bytes_are_rejected() {
    let trailing = [BLOCK, b"!"].concat();
    assert_eq!(rejected(Kafka, &trailing), (Code::TrailingBytes, Some(BLOCK.len()), None));
    assert_eq!(rejected(Kafka, b"\0\0"), (Code::TrailingBytes, Some(1), None));
}

#[test]
fn non_utf8_key_is_rejected_and_neighbours_stay_readable() {
    let serialized = b"\x04\x06ab\xff\x02x\x02c\x01";
    assert_eq!(rejected(Kafka, serialized), (Code::KeyNotUtf8, Some(4), Some(0)));
    let found = Kafka.visit(Inspect { data: serialized, options: STRICT });
    assert_eq!(found.errors.len(), 1);
    assert!(found.labels.iter().any(|label| label.header == Some(1) && label.text == "\"c\""));
}

#[test]
fn varint_over_five_bytes_is_rejected() {
    assert_eq!(rejected(Kafka, b"\x80\x80\x80\x80\x80\x00"), (Code::VarintTooLong, Some(0), None));
}

#[test]
fn varint_overflow_is_rejected() {
    assert_eq!(rejected(Kafka, b"\x80\x80\x80\x80\x10"), (Code::VarintLostBits, Some(0), None));
}

#[test]
fn overlong_varint_is_read() {
    assert_eq!(first_fault(Kafka, b"\x82\x00\x02a\x01"), None);
}

#[test]
fn a_size_past_the_end_or_below_zero_is_rejected() {
    assert_eq!(rejected(Streams, b"\x04\x00"), (Code::Truncated, Some(1), None));
    assert_eq!(rejected(Streams, b"\x01\x00"), (Code::NegativeLength, Some(0), None));
}

#[test]
fn truncated_timestamp_leaves_headers_readable() {
    let serialized = [&[BLOCK.len() as u8 * 2][..], BLOCK, &[0; 7]].concat();
    assert_eq!(rejected(StreamsTimestamped, &serialized), (Code::Truncated, Some(1 + BLOCK.len()), None));
    let serialized_rows = BinaryArray::from_vec(vec![&serialized[..]]);
    let operation = Decode { on_error: OnError::Column, ..Decode::default() };
    let made = StreamsTimestamped.visit(Apply(&operation, Input::new(&serialized_rows))).unwrap().column;
    let made = made.as_any().downcast_ref::<arrow_array::StructArray>().unwrap();
    assert!(made.column(0).is_valid(0) && made.column(1).is_null(0) && made.column(2).is_null(0));
}

#[test]
fn trailing_bytes_do_not_become_headers_of_edited_message() {
    let rest: &[u8] = &[2, 0, 0, 99];
    let cases: [(&[u8], &[u8], &[u8]); 4] = [
        // No headers, a negative count, a header that the edit keeps, and a header that it drops.
        (&[0], &[2], b""),
        (&[5], &[2], b""),
        (b"\x02\x02b\x02x", b"\x04", b"\x02b\x02x"),
        (b"\x02\x02a\x02x", b"\x02", b""),
    ];
    let drop_a = Entry { key: RequestedKey::Text("a".into()), renamed: None, change: Change::Drop };
    for (message, count, kept) in cases {
        for appended in
            [vec![], vec![(RequestedKey::Text("n".into()), NewValue::Constant(None, Some(b"v"[..].into())))]]
        {
            let is_appended = !appended.is_empty();
            let edit = Edit { entries: vec![drop_a.clone()], appended, ..Edit::default() };
            let operation = EditColumn { edit: Arc::new(edit), options: LENIENT, on_error: OnError::Raise, seen: None };
            let edited = apply(Kafka, &operation, &[[message, rest].concat()]).unwrap();
            let edited = edited.as_binary::<i32>().value(0);
            match (is_appended, message.contains(&b'a')) {
                (true, _) => assert_eq!(edited, [count, kept, b"\x02n\x02v"].concat()),
                (false, true) => assert_eq!(edited, b""),
                // Messages that the edit does not change are copied, including the trailing bytes.
                (false, false) => assert_eq!(edited, [message, rest].concat()),
            }
        }
    }
}
