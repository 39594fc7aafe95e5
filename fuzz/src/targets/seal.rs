//! Batches with valid sizes and checksums around any bytes, so that a fuzzer gets past these checks.

use letterhead::codec::{Codec, compress};
use letterhead::format::Format;

pub use crate::sealing::{seal, seal_record_batches};
use crate::sealing::{seal_frames, seal_set};

/// These bytes as the content of a batch of this format, in a codec; unchanged if the format has no frame around it.
pub fn wrap(format: Format, codec: Codec, content: &[u8], damage: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let compressed = |content: &[u8]| {
        let mut bytes = compress(codec, content).expect("memory takes it");
        damage(&mut bytes);
        bytes
    };
    match format {
        Format::RecordBatch => record_batch(codec, content, compressed),
        Format::Kip82Messages | Format::Kip82MessagesInt | Format::Kip82MessagesWrapper => {
            message_set(codec, content, compressed)
        }
        Format::IggyBatch => frames(content),
        _ => content.to_vec(),
    }
}

fn number(codec: Codec) -> u8 {
    Codec::ALL.iter().position(|other| *other == codec).expect("it is one of them") as u8
}

/// The first bytes are the number of records, the flags and the sequence; the rest is records.
fn record_batch(codec: Codec, content: &[u8], compressed: impl FnOnce(&[u8]) -> Vec<u8>) -> Vec<u8> {
    let Some((&[count, flags, sequence], records)) = content.split_first_chunk() else { return content.to_vec() };
    let records = compressed(records);
    let mut out = 1000i64.to_be_bytes().to_vec();
    out.extend((49 + records.len() as i32).to_be_bytes());
    out.extend([0, 0, 0, 0, 2, 0, 0, 0, 0, 0, number(codec) | flags & 0xf8]);
    out.extend((i32::from(count) - 1).to_be_bytes());
    out.extend([1_700_000_000_000i64, 1_700_000_000_005].map(i64::to_be_bytes).concat());
    out.extend(7i64.to_be_bytes());
    out.extend(1i16.to_be_bytes());
    out.extend((i32::MAX - i32::from(sequence)).to_be_bytes());
    out.extend(i32::from(count).to_be_bytes());
    out.extend(records);
    seal_record_batches(&mut out);
    out
}

/// The first byte is the magic; the rest is the messages in the compressed message.
fn message_set(codec: Codec, content: &[u8], compressed: impl FnOnce(&[u8]) -> Vec<u8>) -> Vec<u8> {
    let Some((first, set)) = content.split_first() else { return vec![] };
    let mut set = set.to_vec();
    seal_set(&mut set);
    let (magic, value) = (first % 3, compressed(&set));
    let mut out = 1000i64.to_be_bytes().to_vec();
    out.extend([0; 8]);
    out.extend([magic, number(codec)]);
    if magic > 0 {
        out.extend(1_700_000_000_000i64.to_be_bytes());
    }
    out.extend((-1i32).to_be_bytes());
    out.extend((value.len() as i32).to_be_bytes());
    out.extend(value);
    let size = out.len() as u32 - 12;
    out[8..12].copy_from_slice(&size.to_be_bytes());
    seal_set(&mut out);
    out
}

/// The first bytes are the number of frames and whether the producer is named; the rest is frames.
fn frames(content: &[u8]) -> Vec<u8> {
    let Some((&[count, producer], frames)) = content.split_first_chunk() else { return content.to_vec() };
    let mut out = [1, 40, 1, 1, 256 + frames.len() as u64, 0].map(u64::to_le_bytes).concat();
    out.extend(u32::from(count).to_le_bytes());
    out.push(producer);
    out.resize(256, 0);
    out.extend(frames);
    seal_frames(&mut out);
    out
}
