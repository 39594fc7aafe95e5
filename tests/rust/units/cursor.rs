//! The checked cursor.

use std::ops::Range;

use letterhead::cursor::Cursor;
use letterhead::error::Code;
use letterhead::log::{CollectErrors, Stop};

#[test]
fn taking_more_than_is_left_is_truncated_where_it_begins() {
    let mut log = CollectErrors::default();
    let mut cursor = Cursor::new(&[1, 2, 3]);
    assert_eq!(cursor.take(2, "key", &mut log), Ok(&[1u8, 2][..]));
    assert_eq!(cursor.take(2, "key", &mut log), Err(Stop));
    let error = &log.errors()[0];
    assert_eq!((error.code, error.byte), (Code::Truncated, Some(2)));
    assert_eq!(error.message, "key takes 2 bytes and 1 is left");
}

#[test]
fn a_cursor_over_a_value_keeps_to_the_value_and_to_the_buffer() {
    let buffer: Vec<u8> = (0..40).collect();
    let over = |serialized: Range<usize>| Cursor::within(&buffer, serialized);
    assert_eq!(over(3..7).peek_rest(), &buffer[3..7]);
    assert_eq!((over(3..7).offset(), over(3..7).remaining(), over(3..7).peek(4)), (0, 4, None));
    // No array contains such a range, but a cursor over it must not read outside of the buffer either.
    for (serialized, left) in [(30..99, 10), (50..60, 0), (usize::MAX..usize::MAX, 0), (Range { start: 9, end: 4 }, 0)]
    {
        let mut cursor = over(serialized.clone());
        assert_eq!((cursor.remaining(), cursor.peek_rest().len()), (left, left), "{serialized:?}");
        assert!(cursor.take(left + 1, "key", &mut CollectErrors::default()).is_err());
    }
}

#[test]
fn a_split_cursor_cannot_read_past_its_own_end() {
    let mut log = CollectErrors::default();
    let mut cursor = Cursor::new(&[0, 0, 0, 0]);
    let mut part = cursor.split(2, "block", &mut log).unwrap();
    assert!(part.take(3, "key", &mut log).is_err());
    assert_eq!(cursor.remaining(), 2);
}
