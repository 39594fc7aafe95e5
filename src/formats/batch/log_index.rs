//! record batches: where each of them stands in a log, and what its header says, without a look at its records.

use crate::cursor::Number;
use crate::formats::batch::record_batch::{HEADER_LEN, MAGIC};
use crate::formats::message::kip82_message::FRAME_LEN;
use crate::value::ByteOrder::Big;

/// A batch in a log; of the older formats, a message, which may be a compressed set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    pub position: usize,
    /// Bytes, the frame among them.
    pub size: usize,
    pub base_offset: i64,
    /// Of a compressed set of an older format too: its frame states the last one.
    pub last_offset: i64,
    pub magic: i8,
    pub attributes: i16,
    /// Milliseconds since the epoch; -1 where there is none.
    pub max_timestamp: i64,
    /// -1 where there is none.
    pub producer_id: i64,
    /// Records; -1 where only their bytes tell.
    pub count: i32,
}

/// Whole batches, and the first byte that belongs to none of them.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Heads {
    pub heads: Vec<Head>,
    pub end: usize,
}

// Places in a batch; those of the older formats are of their own.
const MAGIC_AT: usize = 16;
const ATTRIBUTES: usize = 21;
const LAST_OFFSET_DELTA: usize = 23;
const MAX_TIMESTAMP: usize = 35;
const PRODUCER_ID: usize = 43;
const COUNT: usize = 57;
const OLD_ATTRIBUTES: usize = 17;
const OLD_TIMESTAMP: usize = 18;
/// Checksum, magic, attributes and two lengths; then also a timestamp.
const OLD_LEN: [usize; 2] = [FRAME_LEN + 14, FRAME_LEN + 22];

/// Finds the whole batches of a log of `len` bytes from `start` on, until they take `most`. No checksum is looked at.
///
/// `copy` gives the bytes from a place on that are in the log, as many as are asked for.
pub fn heads(len: usize, start: usize, most: usize, copy: impl Fn(usize, &mut [u8])) -> Heads {
    let start = start.min(len);
    let mut found = Heads { heads: Vec::new(), end: start };
    let mut header = [0; HEADER_LEN];
    while found.end - start < most {
        let header = &mut header[..HEADER_LEN.min(len - found.end)];
        copy(found.end, header);
        let Some(head) = head(header, found.end, len - found.end) else { break };
        found.end += head.size;
        found.heads.push(head);
    }
    found
}

/// The batch that begins with these bytes and ends before `left` more are over.
fn head(header: &[u8], position: usize, left: usize) -> Option<Head> {
    let size = FRAME_LEN.checked_add(usize::try_from(number::<i32>(header, 8)?).ok()?)?;
    let magic = number::<i8>(header, MAGIC_AT)?;
    let least = match magic {
        0 | 1 => OLD_LEN[magic as usize],
        MAGIC => HEADER_LEN,
        _ => return None,
    };
    if !(least..=left).contains(&size) {
        return None;
    }
    let base_offset = number(header, 0)?;
    let old = Head {
        position,
        size,
        base_offset,
        last_offset: base_offset,
        magic,
        attributes: i16::from(number::<u8>(header, OLD_ATTRIBUTES)?),
        max_timestamp: -1,
        producer_id: -1,
        count: -1,
    };
    match magic {
        0 => Some(old),
        1 => Some(Head { max_timestamp: number(header, OLD_TIMESTAMP)?, ..old }),
        _ => Some(Head {
            last_offset: base_offset.wrapping_add(number::<i32>(header, LAST_OFFSET_DELTA)?.into()),
            attributes: number(header, ATTRIBUTES)?,
            max_timestamp: number(header, MAX_TIMESTAMP)?,
            producer_id: number(header, PRODUCER_ID)?,
            count: number(header, COUNT)?,
            ..old
        }),
    }
}

fn number<N: Number>(bytes: &[u8], at: usize) -> Option<N> {
    Some(N::from_bytes(bytes.get(at..at + N::WIDTH)?, Big))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A batch without records, and a message of format 1 without key and value.
    fn log() -> Vec<u8> {
        let mut batch = vec![0; HEADER_LEN];
        batch[7] = 40;
        batch[11] = (HEADER_LEN - FRAME_LEN) as u8;
        batch[MAGIC_AT] = 2;
        batch[ATTRIBUTES + 1] = 0x13;
        batch[LAST_OFFSET_DELTA + 3] = 2;
        batch[MAX_TIMESTAMP + 7] = 9;
        batch[PRODUCER_ID + 7] = 5;
        batch[COUNT + 3] = 3;
        let mut message = vec![0; OLD_LEN[1]];
        message[7] = 43;
        message[11] = 22;
        message[MAGIC_AT] = 1;
        message[OLD_ATTRIBUTES] = 8;
        message[OLD_TIMESTAMP + 7] = 7;
        [batch, message].concat()
    }

    fn heads_in(log: &[u8], start: usize, most: usize) -> Heads {
        heads(log.len(), start, most, |at, header| header.copy_from_slice(&log[at..at + header.len()]))
    }

    #[test]
    fn a_header_says_where_its_batch_ends_and_what_is_in_it() {
        let log = log();
        let old = Head {
            position: HEADER_LEN,
            size: OLD_LEN[1],
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
    fn what_is_cut_off_or_none_is_the_end() {
        let log = log();
        for len in 0..log.len() {
            let whole = if len < HEADER_LEN { 0 } else { HEADER_LEN };
            assert_eq!(heads_in(&log[..len], 0, usize::MAX).end, whole, "{len}");
        }
        for (at, byte) in [(8, 0x80), (8, 0x7f), (11, 48), (MAGIC_AT, 3)] {
            let mut log = log.clone();
            log[at] = byte;
            assert_eq!(heads_in(&log, 0, usize::MAX), Heads::default(), "{at}");
        }
    }
}
