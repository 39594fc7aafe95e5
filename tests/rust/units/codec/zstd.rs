//! Zstandard frames.

use std::io::Write;

use zstd::stream::write::Encoder;

use letterhead::codec::{Codec, CodecError, decompress};

use super::{LIMIT, MIB, is_corrupt, is_too_large};

fn compress(content: &[u8]) -> Result<Vec<u8>, CodecError> {
    letterhead::codec::compress(Codec::Zstd, content)
}

fn read(bytes: &[u8], limit: usize) -> Result<Vec<u8>, CodecError> {
    decompress(Codec::Zstd, bytes, false, limit)
}

/// A frame without its content size, as a stream writes it.
fn streamed(content: &[u8], checksum: bool, window_log: u32) -> Vec<u8> {
    let mut encoder = Encoder::new(Vec::new(), 1).unwrap();
    encoder.include_checksum(checksum).unwrap();
    encoder.include_contentsize(false).unwrap();
    encoder.window_log(window_log).unwrap();
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn frames_in_a_row_are_one_content() {
    let frames = [compress(b"one, ").unwrap(), streamed(b"two", true, 17)].concat();
    assert_eq!(read(&frames, 8).unwrap(), b"one, two");
    assert!(is_too_large(&read(&frames, 7), 7));
}

#[test]
fn truncated_streamed_frames_are_rejected() {
    for checksum in [false, true] {
        let bytes = streamed(b"a sample, a sample, a sample, and something else", checksum, 17);
        assert_eq!(read(&bytes, LIMIT).unwrap(), b"a sample, a sample, a sample, and something else");
        for cut in 0..bytes.len() {
            assert!(is_corrupt(&read(&bytes[..cut], LIMIT)), "cut at {cut}");
        }
    }
}

#[test]
fn a_checksum_that_does_not_hold_is_refused() {
    let good = streamed(b"some content", true, 17);
    for at in good.len() - 4..good.len() {
        let mut bytes = good.clone();
        bytes[at] ^= 1;
        let error = read(&bytes, LIMIT).unwrap_err();
        assert_eq!(error.to_string(), "the zstd data is corrupt: a header, block or checksum is wrong");
    }
}

#[test]
fn windows_up_to_highest_level_are_read_and_no_larger() {
    assert_eq!(read(&streamed(b"some content", false, 27), LIMIT).unwrap(), b"some content");
    // Magic, no flags, window log 28, one last empty block.
    let frame = |log: u8| [0x28, 0xb5, 0x2f, 0xfd, 0, (log - 10) << 3, 1, 0, 0];
    assert_eq!(read(&frame(27), LIMIT).unwrap(), b"");
    assert!(is_corrupt(&read(&frame(28), LIMIT)));
}

#[test]
fn zstd_errors_name_cause() {
    let good = compress(b"some content").unwrap();
    let text = |bytes: &[u8]| read(bytes, LIMIT).unwrap_err().to_string();
    assert_eq!(text(&[]), "the zstd data is corrupt: it ends too early");
    assert_eq!(text(&good[..good.len() - 1]), "the zstd data is corrupt: it ends too early");
    assert_eq!(text(b"no zstd at all"), "the zstd data is corrupt: a header, block or checksum is wrong");
}

#[test]
fn a_bomb_stops_at_the_limit() {
    let bomb = compress(&vec![0; 16 * MIB]).unwrap().repeat(64);
    assert!(is_too_large(&read(&bomb, LIMIT), LIMIT));
}
