//! Gzip members.

use std::io::Write;

use flate2::Compression;

use letterhead::codec::{Codec, CodecError, decompress};

use super::{LIMIT, MIB, is_corrupt, is_too_large};

fn compress(content: &[u8]) -> Result<Vec<u8>, CodecError> {
    letterhead::codec::compress(Codec::Gzip, content)
}

fn read(bytes: &[u8], limit: usize) -> Result<Vec<u8>, CodecError> {
    decompress(Codec::Gzip, bytes, false, limit)
}

#[test]
fn members_in_a_row_are_one_content() {
    let members = [&b"one, "[..], b"", b"two"].map(|part| compress(part).unwrap()).concat();
    assert_eq!(read(&members, LIMIT).unwrap(), b"one, two");
    assert_eq!(read(&members, 8).unwrap(), b"one, two");
    assert!(is_too_large(&read(&members, 7), 7));
}

#[test]
fn truncated_members_are_rejected() {
    let (first, second) = (compress(b"one, ").unwrap(), compress(b"two").unwrap());
    let both = [&first[..], &second].concat();
    for cut in (0..both.len()).filter(|cut| *cut != first.len()) {
        assert!(is_corrupt(&read(&both[..cut], LIMIT)), "cut at {cut}");
    }
}

#[test]
fn optional_header_fields_are_skipped() {
    let mut encoder = flate2::GzBuilder::new()
        .filename("name")
        .comment("comment")
        .extra(vec![1, 2, 3])
        .write(Vec::new(), Compression::none());
    encoder.write_all(b"content").unwrap();
    let bytes = encoder.finish().unwrap();
    assert_eq!(read(&bytes, LIMIT).unwrap(), b"content");
    for cut in 0..bytes.len() {
        assert!(is_corrupt(&read(&bytes[..cut], LIMIT)), "cut at {cut}");
    }
}

#[test]
fn wrong_checksum_or_size_is_rejected() {
    let good = compress(b"some content").unwrap();
    for at in good.len() - 8..good.len() {
        let mut bytes = good.clone();
        bytes[at] ^= 1;
        let error = read(&bytes, LIMIT).unwrap_err();
        assert_eq!(error.to_string(), "the gzip data is corrupt: a header, block or checksum is wrong");
    }
}

#[test]
fn gzip_errors_name_cause() {
    let good = compress(b"some content").unwrap();
    let text = |bytes: &[u8]| read(bytes, LIMIT).unwrap_err().to_string();
    assert_eq!(text(&[]), "the gzip data is corrupt: it ends too early");
    assert_eq!(text(&good[..good.len() - 1]), "the gzip data is corrupt: it ends too early");
    assert_eq!(text(&[&good[..], &[0]].concat()), "the gzip data is corrupt: bytes are left after its end");
    assert_eq!(text(b"no gzip at all"), "the gzip data is corrupt: a header, block or checksum is wrong");
}

#[test]
fn gzip_bomb_stops_at_limit() {
    let bomb = compress(&vec![0; 16 * MIB]).unwrap().repeat(64);
    assert!(is_too_large(&read(&bomb, LIMIT), LIMIT));
}
