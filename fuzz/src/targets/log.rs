//! A log of record batches: the positions of batches, which are found without reading records, are those at which they
//! are read.

use letterhead::format::Format;
use letterhead::formats::batch::log_index::{Heads, heads};
use letterhead::formats::batch::record_batch::RecordBatch;
use letterhead::traits::BatchFormat as _;

use super::seal::seal_record_batches;
use super::{Shape, Target};
use crate::common::{Held, STRICT, read};

pub const TARGET: Target = Target { name: "log", subjects: || vec![RecordBatch::NAME], check };

fn check(_: &str, data: &[u8]) {
    let Some((shape, data)) = Shape::split(data) else { return };
    let mut log = data.to_vec();
    if shape.bit(0) {
        seal_record_batches(&mut log);
    }
    let found = heads_in(&log, 0, usize::MAX);
    assert!(found.end <= log.len());
    let mut at = 0;
    for (place, head) in found.heads.iter().enumerate() {
        assert_eq!(head.position, at, "one batch begins where the one before ends");
        assert!(head.size > 12);
        let rest = heads_in(&log, at, usize::MAX);
        assert_eq!((&rest.heads[..], rest.end), (&found.heads[place..], found.end));
        assert_eq!(heads_in(&log, at, 1).heads, [*head], "as few batches as take that many bytes");
        at += head.size;
        let Ok(messages) = read(Format::RecordBatch, &log[head.position..at], STRICT) else { continue };
        if head.magic == 2 {
            assert_eq!(i32::try_from(messages.len()), Ok(head.count));
            let offset = i128::from(head.base_offset);
            let first = messages.first().map(|message| &message.fields[0]);
            let near = |held: &Held| matches!(held, Held::Number(number) if (number - offset).abs() <= 1 << 32);
            // An offset wraps at the end of its range.
            assert!(first.is_none_or(near) || head.base_offset.unsigned_abs() > 1 << 62);
        }
    }
    assert_eq!(found.end, at);
    // A reader of the whole log reads the same batches, one after the other.
    let each = found.heads.iter().map(|head| read(Format::RecordBatch, &log[head.position..][..head.size], STRICT));
    let each: Result<Vec<_>, _> = each.collect();
    let whole = read(Format::RecordBatch, &log[..found.end], STRICT);
    assert_eq!(whole.is_ok(), each.is_ok());
    if let (Ok(whole), Ok(each)) = (whole, each) {
        assert_eq!(whole, each.concat());
    }
}

fn heads_in(log: &[u8], start: usize, most: usize) -> Heads {
    heads(log.len(), 0, start, most, |at, header| header.copy_from_slice(&log[at..at + header.len()]))
}
