//! Snappy, bare and in the framing of `snappy-java`.

use letterhead::codec::{Codec, CodecError, decompress};

use super::{LIMIT, MIB, is_corrupt, is_too_large, noise};

/// Content length of the blocks that `snappy-java` writes.
const BLOCK_LEN: usize = 32 * 1024;

/// Upper bound of the content bytes per byte of a block: 3 bytes expand to at most 64.
const MAX_RATIO: usize = 22;

fn compress(content: &[u8]) -> Result<Vec<u8>, CodecError> {
    letterhead::codec::compress(Codec::Snappy, content)
}

fn read(bytes: &[u8], limit: usize) -> Result<Vec<u8>, CodecError> {
    decompress(Codec::Snappy, bytes, false, limit)
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
fn truncated_bare_data_is_rejected() {
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
fn truncated_framed_data_is_rejected_except_between_blocks() {
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
fn snappy_errors_name_cause() {
    let header = compress(b"").unwrap();
    let mut version = header.clone();
    version[11] = 0;
    assert_eq!(text(&version), "the snappy data is corrupt: version 0 of its framing is unknown");
    let after = |bytes: &[u8]| text(&[&header, bytes].concat());
    assert_eq!(after(&[0, 0]), "the snappy data is corrupt: it ends too early");
    assert_eq!(after(&[0, 0, 0, 9, 1]), "the snappy data is corrupt: it ends too early");
    assert_eq!(after(&[0, 0, 0, 0]), "the snappy data is corrupt: it ends too early");
    assert_eq!(after(&[0xff, 0xff, 0xff, 0xff]), "the snappy data is corrupt: the length -1 of a block is negative");
    assert_eq!(after(&[0, 0, 0, 2, 5, 0]), "the snappy data is corrupt: a block is wrong");
    assert_eq!(text(&[]), "the snappy data is corrupt: it ends too early");
    assert_eq!(text(&[0xff; 9]), "the snappy data is corrupt: a block is wrong");
}

#[test]
fn claimed_size_is_not_trusted() {
    // A content of 4 GiB less one byte is above any limit. Four bytes cannot expand to 16 KiB.
    assert!(is_too_large(&read(&[0xff, 0xff, 0xff, 0xff, 0x0f, 0], LIMIT), LIMIT));
    let bytes = [0x80, 0x80, 0x01, 0];
    assert_eq!(text(&bytes), "the snappy data is corrupt: a block announces more than it could hold");
    assert_eq!(text(&framed(&[&bytes])), "the snappy data is corrupt: a block announces more than it could hold");
    // The best possible compression is below the ratio.
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
