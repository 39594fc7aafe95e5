//! Sizes and checksums that hold for any bytes, so that a fuzzer gets past them.

use std::hash::Hasher;

use letterhead::batch::record_batch::crc32c;
use letterhead::codec::{Codec, compress};
use letterhead::envelope::kip82_message::crc32;
use letterhead::format::Format;
use twox_hash::XxHash3_64;

/// Makes sizes and checksums hold for a cell of this format, where it has any.
pub fn seal(format: Format, cell: &mut [u8]) {
    match format {
        Format::Kip82Message | Format::Kip82MessageInt | Format::Kip82MessageWrapper if cell.len() >= 16 => {
            let size = cell.len() as u32 - 12;
            cell[8..12].copy_from_slice(&size.to_be_bytes());
            seal_set(cell);
        }
        Format::Kip82Messages | Format::Kip82MessagesInt | Format::Kip82MessagesWrapper => seal_set(cell),
        Format::IggyPolled2023 => seal_polled(cell),
        Format::IggyBatch => seal_frames(cell),
        Format::RecordBatch => seal_record_batches(cell),
        _ => {}
    }
}

/// These bytes as what a batch of this format holds, in a codec; as they are where the format has no frame around it.
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

/// The first bytes say how many records there are, the flags and the sequence; the rest is records.
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

/// The first byte is the magic; the rest is the messages in the compressed one.
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

/// The first bytes say how many frames there are and whether the producer is named; the rest is frames.
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

/// Writes the checksums of a batch of Iggy, as far as its frames can be told apart.
fn seal_frames(batch: &mut [u8]) {
    if batch.len() < 256 {
        return;
    }
    let (header, mut frames) = batch.split_at_mut(256);
    let mut hasher = XxHash3_64::new();
    hasher.write(&header[..40]);
    hasher.write(&header[48..52]);
    if header[52] == 1 {
        [52..53, 56..66, 68..72].into_iter().for_each(|part| hasher.write(&header[part]));
    }
    while frames.len() >= 48 {
        let len = |at: usize| u32::from_le_bytes(*frames[at..].first_chunk().expect("four bytes")) as usize;
        let Some((frame, rest)) = frames.split_at_mut_checked(48 + len(32) + len(36)) else { break };
        let sum = XxHash3_64::oneshot(&frame[8..]);
        frame[..8].copy_from_slice(&sum.to_le_bytes());
        hasher.write(&frame[..8]);
        frames = rest;
    }
    header[40..48].copy_from_slice(&hasher.finish().to_le_bytes());
}

/// Writes the checksums of messages as polled that have one, as far as they can be told apart.
fn seal_polled(mut rest: &mut [u8]) {
    const CRC: usize = 33;
    const BLOCK: usize = 41;
    while rest.len() >= BLOCK {
        let len = |at: usize| {
            let len = rest.get(at..).and_then(|rest| rest.first_chunk());
            len.map_or(usize::MAX, |len| u32::from_le_bytes(*len) as usize)
        };
        let start = BLOCK.saturating_add(len(BLOCK - 4)).saturating_add(4);
        let end = start.saturating_add(len(start - 4));
        let Some((message, after)) = rest.split_at_mut_checked(end) else { return };
        let crc = crc32(&message[start..]);
        message[CRC..CRC + 4].copy_from_slice(&crc.to_le_bytes());
        rest = after;
    }
}

/// Writes the checksums of record batches, as far as they can be told apart.
pub fn seal_record_batches(mut rest: &mut [u8]) {
    while rest.len() >= 17 {
        let size = u32::from_be_bytes(*rest[8..].first_chunk().expect("four bytes")) as usize;
        let Some((batch, after)) = rest.split_at_mut_checked(12usize.saturating_add(size)) else { return };
        match batch.get(16) {
            Some(2) if batch.len() >= 21 => {
                let crc = crc32c(&batch[21..]);
                batch[17..21].copy_from_slice(&crc.to_be_bytes());
            }
            Some(0 | 1) => seal_set(batch),
            _ => {}
        }
        rest = after;
    }
}

/// Writes the checksums of a message set, as far as its messages can be told apart.
fn seal_set(mut rest: &mut [u8]) {
    while rest.len() >= 16 {
        let size = u32::from_be_bytes(*rest[8..].first_chunk().expect("four bytes")) as usize;
        let Some((message, after)) = rest.split_at_mut_checked(12usize.saturating_add(size)) else { return };
        if message.len() >= 16 {
            let crc = crc32(&message[16..]);
            message[12..16].copy_from_slice(&crc.to_be_bytes());
        }
        rest = after;
    }
}
