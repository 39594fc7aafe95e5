//! Snappy, bare ([format](https://github.com/google/snappy/blob/main/format_description.txt)) or in the framing of
//! xerial's `snappy-java`, in which Kafka writes it.
//!
//! ```text
//! bare     ┌──────────────────┬──────────┐
//!          │ varint32 content │ elements │                                     to the end
//!          └──────────────────┴──────────┘
//! xerial   ┌─────────────────────────┬─────────────┬────────────────┬────────────────────────────┐
//!          │ 82 53 4e 41 50 50 59 00 │ i32 version │ i32 compatible │ i32 block_len │ bare block │  big-endian; the
//!          └─────────────────────────┴─────────────┴────────────────┴────────────────────────────┘  blocks to the end
//! ```
//!
//! Neither has a checksum, and xerial's framing has no end mark: cut between two blocks, it is a shorter one.
//!
//! Differences from the reference implementation: framed streams written one after the other are refused.

use super::{Codec, CodecFault, Output, TRUNCATED, take};

/// How the framing begins. No bare data do: these would be a content of 10,626 bytes that begins with a copy.
const MAGIC: [u8; 8] = *b"\x82SNAPPY\0";

/// What `snappy-java` writes as its version and as the oldest version that can read it.
const VERSION: i32 = 1;

/// As much content as `snappy-java` puts into a block.
const BLOCK_LEN: usize = 32 * 1024;

/// More content than a byte of a block can stand for: the best element makes 64 bytes out of 3.
const MAX_RATIO: usize = 22;

pub(super) fn decompress(bytes: &[u8], output: &mut Output) -> Result<(), CodecFault> {
    let Some(mut rest) = bytes.strip_prefix(&MAGIC) else {
        return block(bytes, output);
    };
    let version = number(&mut rest)?;
    if version < VERSION {
        return Err(Codec::Snappy.corrupt(format_args!("version {version} of its framing is unknown")));
    }
    // Not looked at by `snappy-java`, and written by others in either byte order.
    let _compatible = number(&mut rest)?;
    while !rest.is_empty() {
        let len = number(&mut rest)?;
        let len = usize::try_from(len)
            .map_err(|_| Codec::Snappy.corrupt(format_args!("the length {len} of a block is negative")))?;
        block(take(&mut rest, len, Codec::Snappy)?, output)?;
    }
    Ok(())
}

pub(super) fn compress(bytes: &[u8]) -> Result<Vec<u8>, CodecFault> {
    let mut out = MAGIC.to_vec();
    out.extend(VERSION.to_be_bytes());
    out.extend(VERSION.to_be_bytes());
    let mut encoder = snap::raw::Encoder::new();
    for content in bytes.chunks(BLOCK_LEN) {
        let block = encoder.compress_vec(content).map_err(|_| Codec::Snappy.unwritten())?;
        let len = i32::try_from(block.len()).map_err(|_| Codec::Snappy.unwritten())?;
        out.extend(len.to_be_bytes());
        out.extend(block);
    }
    Ok(out)
}

fn block(bytes: &[u8], output: &mut Output) -> Result<(), CodecFault> {
    if bytes.is_empty() {
        return Err(Codec::Snappy.corrupt(TRUNCATED));
    }
    let wrong = |_| Codec::Snappy.corrupt("a block is wrong");
    let announced = snap::raw::decompress_len(bytes).map_err(wrong)?;
    if announced > output.room() {
        return Err(output.too_large());
    }
    if announced > bytes.len().saturating_mul(MAX_RATIO) {
        return Err(Codec::Snappy.corrupt("a block announces more than it could hold"));
    }
    output.fill(announced, |_, room| snap::raw::Decoder::new().decompress(bytes, room).map_err(wrong))
}

fn number(rest: &mut &[u8]) -> Result<i32, CodecFault> {
    let bytes = take(rest, 4, Codec::Snappy)?;
    Ok(i32::from_be_bytes(bytes.first_chunk().copied().unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{LIMIT, MIB, is_corrupt, is_too_large, noise};
    use super::*;

    fn read(bytes: &[u8], limit: usize) -> Result<Vec<u8>, CodecFault> {
        super::super::decompress(Codec::Snappy, bytes, false, limit)
    }

    fn text(bytes: &[u8]) -> String {
        read(bytes, LIMIT).unwrap_err().to_string()
    }

    fn bare(content: &[u8]) -> Vec<u8> {
        snap::raw::Encoder::new().compress_vec(content).unwrap()
    }

    fn framed(blocks: &[&[u8]]) -> Vec<u8> {
        let mut out = compress(b"").unwrap();
        for block in blocks {
            out.extend((block.len() as i32).to_be_bytes());
            out.extend(*block);
        }
        out
    }

    #[test]
    fn bare_data_are_read() {
        for content in [Vec::new(), b"short".to_vec(), vec![7; MIB], noise(MIB)] {
            let bytes = bare(&content);
            assert_eq!(read(&bytes, content.len()).unwrap(), content);
            if let Some(less) = content.len().checked_sub(1) {
                assert!(is_too_large(&read(&bytes, less), less));
            }
        }
    }

    #[test]
    fn bare_data_are_cut_nowhere() {
        let bytes = bare(b"a sample, a sample, a sample, and something else");
        for cut in 0..bytes.len() {
            assert!(is_corrupt(&read(&bytes[..cut], LIMIT)), "cut at {cut}");
        }
        assert!(is_corrupt(&read(&[&bytes[..], &[0]].concat(), LIMIT)));
    }

    #[test]
    fn the_framing_is_that_of_snappy_java() {
        let bytes = compress(&[7; BLOCK_LEN + 1]).unwrap();
        assert_eq!(bytes[..16], *b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01");
        let first = bare(&[7; BLOCK_LEN]);
        assert_eq!(bytes, framed(&[&first, &bare(&[7])]));
    }

    #[test]
    fn framed_data_are_cut_nowhere_but_between_blocks() {
        let (first, second) = (bare(b"a block, a block, a block"), bare(b"another"));
        let bytes = framed(&[&first, &second]);
        let between = [16, 16 + 4 + first.len()];
        for cut in (0..bytes.len()).filter(|cut| !between.contains(cut)) {
            assert!(is_corrupt(&read(&bytes[..cut], LIMIT)), "cut at {cut}");
        }
        assert_eq!(read(&bytes[..between[0]], LIMIT).unwrap(), b"");
        assert_eq!(read(&bytes[..between[1]], LIMIT).unwrap(), b"a block, a block, a block");
    }

    #[test]
    fn framing_of_later_versions_is_read() {
        let mut bytes = compress(b"content").unwrap();
        bytes[11] = 2;
        bytes[12..16].copy_from_slice(&[1, 0, 0, 0]);
        assert_eq!(read(&bytes, LIMIT).unwrap(), b"content");
    }

    #[test]
    fn faults_say_what_is_wrong() {
        let header = compress(b"").unwrap();
        let mut version = header.clone();
        version[11] = 0;
        assert_eq!(text(&version), "the snappy data is corrupt: version 0 of its framing is unknown");
        let after = |bytes: &[u8]| text(&[&header, bytes].concat());
        assert_eq!(after(&[0, 0]), "the snappy data is corrupt: it ends too early");
        assert_eq!(after(&[0, 0, 0, 9, 1]), "the snappy data is corrupt: it ends too early");
        assert_eq!(after(&[0, 0, 0, 0]), "the snappy data is corrupt: it ends too early");
        assert_eq!(
            after(&[0xff, 0xff, 0xff, 0xff]),
            "the snappy data is corrupt: the length -1 of a block is negative"
        );
        assert_eq!(after(&[0, 0, 0, 2, 5, 0]), "the snappy data is corrupt: a block is wrong");
        assert_eq!(text(&[]), "the snappy data is corrupt: it ends too early");
        assert_eq!(text(&[0xff; 9]), "the snappy data is corrupt: a block is wrong");
    }

    #[test]
    fn an_announced_size_is_not_believed() {
        // 4 GiB less one byte, announced by six bytes, is past any limit; 16 kiB by four is more than they could hold.
        assert!(is_too_large(&read(&[0xff, 0xff, 0xff, 0xff, 0x0f, 0], LIMIT), LIMIT));
        let bytes = [0x80, 0x80, 0x01, 0];
        assert_eq!(text(&bytes), "the snappy data is corrupt: a block announces more than it could hold");
        assert_eq!(text(&framed(&[&bytes])), "the snappy data is corrupt: a block announces more than it could hold");
        // The best that an element can do is under the ratio.
        assert!(bare(&vec![0; MIB]).len() * MAX_RATIO > MIB);
    }

    #[test]
    fn a_bomb_stops_at_the_limit() {
        let zeros = bare(&[0; BLOCK_LEN]);
        let block = [&(zeros.len() as i32).to_be_bytes()[..], &zeros].concat();
        let bomb = [compress(b"").unwrap(), block.repeat(1024 * MIB / BLOCK_LEN)].concat();
        assert!(is_too_large(&read(&bomb, LIMIT), LIMIT));
        assert!(is_too_large(&read(&bare(&vec![0; 2 * LIMIT]), LIMIT), LIMIT));
    }
}
