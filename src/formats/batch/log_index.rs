//! Positions and headers of record batches in a log, without parsing records: [`heads`].

use crate::cursor::Number;
use crate::formats::batch::record_batch::{ATTRIBUTES_OFFSET, HEADER_LEN, LENGTH_OFFSET, MAGIC, PRODUCER_OFFSET};
use crate::formats::message::legacy::{self, FRAME_LEN};
use crate::value::ByteOrder::Big;

/// Batch in a log; in older formats, a message, which may be a compressed set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    pub position: usize,
    /// Number of bytes, including the frame.
    pub size: usize,
    pub base_offset: i64,
    /// Last offset. In older formats, it is the offset of the frame.
    pub last_offset: i64,
    pub magic: i8,
    pub attributes: i16,
    /// Milliseconds since the epoch; -1 for none.
    pub max_timestamp: i64,
    /// -1 for none.
    pub producer_id: i64,
    /// Number of records; -1 if unknown without parsing them.
    pub count: i32,
}

/// Complete batches, and the offset of the byte after them.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Heads {
    pub heads: Vec<Head>,
    pub end: usize,
}

// Offsets in a batch.
const LAST_OFFSET_DELTA: usize = ATTRIBUTES_OFFSET + 2;
const MAX_TIMESTAMP: usize = PRODUCER_OFFSET - 8;
const COUNT: usize = HEADER_LEN - 4;
// Offsets in a message of the older formats. A batch has its magic at the same offset.
const MAGIC_OFFSET: usize = FRAME_LEN + legacy::MAGIC_OFFSET;
const LEGACY_ATTRIBUTES: usize = FRAME_LEN + legacy::ATTRIBUTES_OFFSET;
const LEGACY_TIMESTAMP: usize = LEGACY_ATTRIBUTES + 1;
/// Minimum length of a message of format 0, and of format 1, which also has a timestamp.
const LEGACY_LEN: [usize; 2] = [FRAME_LEN + 14, FRAME_LEN + 22];

/// Finds the batches that begin in the first `len` bytes of a log, from `start` on, until they have `max_bytes` bytes.
/// The log has `beyond` more bytes, in which the last batch may end. Checksums are not verified.
///
/// `copy` copies bytes of the log from an offset.
pub fn heads(len: usize, beyond: usize, start: usize, max_bytes: usize, copy: impl Fn(usize, &mut [u8])) -> Heads {
    let start = start.min(len);
    let mut batches = Heads { heads: Vec::new(), end: start };
    let mut header = [0; HEADER_LEN];
    while batches.end - start < max_bytes && batches.end < len {
        let header = &mut header[..HEADER_LEN.min(len - batches.end)];
        copy(batches.end, header);
        let Some(head) = head(header, batches.end, (len - batches.end).saturating_add(beyond)) else { break };
        batches.end += head.size;
        batches.heads.push(head);
    }
    batches
}

/// Reads the batch that begins with these bytes; `None` if it has more than `left` bytes.
fn head(header: &[u8], position: usize, left: usize) -> Option<Head> {
    let size = FRAME_LEN.checked_add(usize::try_from(number::<i32>(header, LENGTH_OFFSET)?).ok()?)?;
    let magic = number::<i8>(header, MAGIC_OFFSET)?;
    let min_size = match magic {
        0 | 1 => LEGACY_LEN[magic as usize],
        MAGIC => HEADER_LEN,
        _ => return None,
    };
    if !(min_size..=left).contains(&size) {
        return None;
    }
    let base_offset = number(header, 0)?;
    let legacy = Head {
        position,
        size,
        base_offset,
        last_offset: base_offset,
        magic,
        attributes: i16::from(number::<u8>(header, LEGACY_ATTRIBUTES)?),
        max_timestamp: -1,
        producer_id: -1,
        count: -1,
    };
    match magic {
        0 => Some(legacy),
        1 => Some(Head { max_timestamp: number(header, LEGACY_TIMESTAMP)?, ..legacy }),
        _ => Some(Head {
            last_offset: base_offset.wrapping_add(number::<i32>(header, LAST_OFFSET_DELTA)?.into()),
            attributes: number(header, ATTRIBUTES_OFFSET)?,
            max_timestamp: number(header, MAX_TIMESTAMP)?,
            producer_id: number(header, PRODUCER_OFFSET)?,
            count: number(header, COUNT)?,
            ..legacy
        }),
    }
}

fn number<N: Number>(bytes: &[u8], offset: usize) -> Option<N> {
    Some(N::from_bytes(bytes.get(offset..offset + N::WIDTH)?, Big))
}
