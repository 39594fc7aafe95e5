//! Gzip ([RFC 1952](https://www.rfc-editor.org/rfc/rfc1952)): one member or several, one after the other.
//!
//! ```text
//! ┌──────────────────────────────────────┬────────┬───────────┬───────────────┐
//! │ 1f 8b, method 8, flags, time, extras │ blocks │ u32 crc32 │ u32 size      │  little-endian, repeated to the end
//! └──────────────────────────────────────┴────────┴───────────┴───────────────┘
//! ```
//!
//! Differences from the reference implementation: bytes after the last member are refused, where Java ignores them.

use std::io::{ErrorKind, Write};

use flate2::Compression;
use flate2::bufread::GzDecoder;
use flate2::write::GzEncoder;

use super::{Codec, CodecFault, Output, TRAILING, TRUNCATED};

/// How a member begins: the two magic bytes.
const MAGIC: [u8; 2] = [0x1f, 0x8b];

pub(super) fn decompress(bytes: &[u8], output: &mut Output) -> Result<(), CodecFault> {
    let mut member = GzDecoder::new(bytes);
    loop {
        output.drain(&mut member, |error| {
            Codec::Gzip.corrupt(match error.kind() {
                ErrorKind::UnexpectedEof => TRUNCATED,
                _ => "a header, block or checksum is wrong",
            })
        })?;
        let rest = *member.get_ref();
        if rest.is_empty() {
            return Ok(());
        }
        if !rest.starts_with(&MAGIC) {
            return Err(Codec::Gzip.corrupt(TRAILING));
        }
        member.reset(rest);
    }
}

pub(super) fn compress(bytes: &[u8]) -> Result<Vec<u8>, CodecFault> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).and_then(|()| encoder.finish()).map_err(|_| Codec::Gzip.unwritten())
}

#[cfg(test)]
mod tests {
    use super::super::tests::{LIMIT, MIB, is_corrupt, is_too_large};
    use super::*;

    fn read(bytes: &[u8], limit: usize) -> Result<Vec<u8>, CodecFault> {
        super::super::decompress(Codec::Gzip, bytes, false, limit)
    }

    #[test]
    fn members_in_a_row_are_one_content() {
        let members = [&b"one, "[..], b"", b"two"].map(|part| compress(part).unwrap()).concat();
        assert_eq!(read(&members, LIMIT).unwrap(), b"one, two");
        assert_eq!(read(&members, 8).unwrap(), b"one, two");
        assert!(is_too_large(&read(&members, 7), 7));
    }

    #[test]
    fn members_are_cut_nowhere_but_between_them() {
        let (first, second) = (compress(b"one, ").unwrap(), compress(b"two").unwrap());
        let both = [&first[..], &second].concat();
        for cut in (0..both.len()).filter(|cut| *cut != first.len()) {
            assert!(is_corrupt(&read(&both[..cut], LIMIT)), "cut at {cut}");
        }
    }

    #[test]
    fn optional_header_fields_are_read_over() {
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
    fn a_checksum_or_size_that_does_not_hold_is_refused() {
        let good = compress(b"some content").unwrap();
        for at in good.len() - 8..good.len() {
            let mut bytes = good.clone();
            bytes[at] ^= 1;
            let fault = read(&bytes, LIMIT).unwrap_err();
            assert_eq!(fault.to_string(), "the gzip data is corrupt: a header, block or checksum is wrong");
        }
    }

    #[test]
    fn faults_say_what_is_wrong() {
        let good = compress(b"some content").unwrap();
        let text = |bytes: &[u8]| read(bytes, LIMIT).unwrap_err().to_string();
        assert_eq!(text(&[]), "the gzip data is corrupt: it ends too early");
        assert_eq!(text(&good[..good.len() - 1]), "the gzip data is corrupt: it ends too early");
        assert_eq!(text(&[&good[..], &[0]].concat()), "the gzip data is corrupt: bytes are left after its end");
        assert_eq!(text(b"no gzip at all"), "the gzip data is corrupt: a header, block or checksum is wrong");
    }

    #[test]
    fn a_bomb_stops_at_the_limit() {
        let bomb = compress(&vec![0; 16 * MIB]).unwrap().repeat(64);
        assert!(is_too_large(&read(&bomb, LIMIT), LIMIT));
    }
}
