//! Corrects the sizes and checksums of arbitrary bytes.

use std::hash::Hasher;

use letterhead::format::Format;
use letterhead::formats::checksum::crc32;
use letterhead::formats::checksum::crc32c;
use twox_hash::XxHash3_64;

/// Writes correct sizes and checksums to a value, if its format has any.
pub fn seal(format: Format, serialized: &mut [u8]) {
    match format {
        Format::Kip82Message | Format::Kip82MessageInt | Format::Kip82MessageWrapper if serialized.len() >= 16 => {
            let size = serialized.len() as u32 - 12;
            serialized[8..12].copy_from_slice(&size.to_be_bytes());
            seal_set(serialized);
        }
        Format::Kip82Messages | Format::Kip82MessagesInt | Format::Kip82MessagesWrapper => seal_set(serialized),
        Format::IggyPolled2023 => seal_polled(serialized),
        Format::IggyBatch => seal_frames(serialized),
        Format::RecordBatch => seal_record_batches(serialized),
        _ => {}
    }
}

/// Writes the checksums of record batches, as far as batches can be found.
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

/// Writes the checksums of a message set, as far as its messages can be found.
pub fn seal_set(mut rest: &mut [u8]) {
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

/// Writes the checksums of a batch of Iggy, as far as its frames can be found.
pub fn seal_frames(batch: &mut [u8]) {
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

/// Writes the checksums of polled messages of era B, as far as messages can be found.
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
