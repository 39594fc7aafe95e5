//! The index of the record batches of a log.

use letterhead::formats::batch::log_index::{Head, Heads, heads};

// Lengths, and offsets in a batch and in a message of an older format.
const FRAME_LEN: usize = 12;
const HEADER_LEN: usize = 61;
const MAGIC_OFFSET: usize = 16;
const ATTRIBUTES: usize = 21;
const LAST_OFFSET_DELTA: usize = 23;
const MAX_TIMESTAMP: usize = 35;
const PRODUCER_ID: usize = 43;
const COUNT: usize = 57;
const OLD_ATTRIBUTES: usize = 17;
const OLD_TIMESTAMP: usize = 18;
const OLD_LEN: usize = FRAME_LEN + 22;

/// A batch without records, and a message of format 1 without key and value.
fn log() -> Vec<u8> {
    let mut batch = vec![0; HEADER_LEN];
    batch[7] = 40;
    batch[11] = (HEADER_LEN - FRAME_LEN) as u8;
    batch[MAGIC_OFFSET] = 2;
    batch[ATTRIBUTES + 1] = 0x13;
    batch[LAST_OFFSET_DELTA + 3] = 2;
    batch[MAX_TIMESTAMP + 7] = 9;
    batch[PRODUCER_ID + 7] = 5;
    batch[COUNT + 3] = 3;
    let mut message = vec![0; OLD_LEN];
    message[7] = 43;
    message[11] = 22;
    message[MAGIC_OFFSET] = 1;
    message[OLD_ATTRIBUTES] = 8;
    message[OLD_TIMESTAMP + 7] = 7;
    [batch, message].concat()
}

fn heads_in(log: &[u8], start: usize, most: usize) -> Heads {
    heads(log.len(), 0, start, most, |at, header| header.copy_from_slice(&log[at..at + header.len()]))
}

#[test]
fn header_locates_end_of_batch_and_describes_it() {
    let log = log();
    let old = Head {
        position: HEADER_LEN,
        size: OLD_LEN,
        base_offset: 43,
        last_offset: 43,
        magic: 1,
        attributes: 8,
        max_timestamp: 7,
        producer_id: -1,
        count: -1,
    };
    let new = Head {
        position: 0,
        size: HEADER_LEN,
        base_offset: 40,
        last_offset: 42,
        magic: 2,
        attributes: 0x13,
        max_timestamp: 9,
        producer_id: 5,
        count: 3,
    };
    assert_eq!(heads_in(&log, 0, usize::MAX), Heads { heads: vec![new, old], end: log.len() });
    assert_eq!(heads_in(&log, HEADER_LEN, usize::MAX), Heads { heads: vec![old], end: log.len() });
    assert_eq!(heads_in(&log, 0, 1), Heads { heads: vec![new], end: HEADER_LEN });
    assert_eq!(heads_in(&log, 0, 0), Heads::default());
    assert_eq!(heads_in(&log, usize::MAX, 5), Heads { heads: vec![], end: log.len() });
}

#[test]
fn truncated_or_foreign_bytes_mark_end_of_log() {
    let log = log();
    for len in 0..log.len() {
        let whole = if len < HEADER_LEN { 0 } else { HEADER_LEN };
        assert_eq!(heads_in(&log[..len], 0, usize::MAX).end, whole, "{len}");
    }
    for (at, byte) in [(8, 0x80), (8, 0x7f), (11, 48), (MAGIC_OFFSET, 3)] {
        let mut log = log.clone();
        log[at] = byte;
        assert_eq!(heads_in(&log, 0, usize::MAX), Heads::default(), "{at}");
    }
}
