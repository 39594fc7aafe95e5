//! The codecs alone: no more comes out than is allowed, and what went in comes out.

use letterhead::codec::{Codec, CodecError, compress, decompress};

use super::{Shape, Target};

pub const TARGET: Target =
    Target { name: "codecs", subjects: || Codec::ALL.iter().map(|codec| codec.name()).collect(), check };

fn check(name: &str, data: &[u8]) {
    let codec = *Codec::ALL.iter().find(|codec| codec.name() == name).expect("a codec");
    let Some((shape, data)) = Shape::split(data) else { return };
    let Some((limit, data)) = data.split_first_chunk() else { return };
    let limit = usize::from(u16::from_le_bytes(*limit));
    match shape.bits(1, 2) {
        0 | 1 => within_the_limit(codec, data, shape.bit(0), limit),
        2 => comes_out_as_it_went_in(codec, data, limit),
        _ => {
            let Some((content, &[place, byte])) = data.split_last_chunk() else { return };
            let mut bytes = compress(codec, content).expect("memory takes it");
            let place = bytes.len() * usize::from(place) / 256;
            if let Some(damaged) = bytes.get_mut(place) {
                *damaged ^= byte;
            }
            within_the_limit(codec, &bytes, shape.bit(0), limit);
        }
    }
}

fn within_the_limit(codec: Codec, bytes: &[u8], legacy: bool, limit: usize) {
    match decompress(codec, bytes, legacy, limit) {
        Ok(content) => {
            assert!(content.capacity() <= limit, "{} of {limit}", content.capacity());
            assert_eq!(decompress(codec, bytes, legacy, content.len()).as_ref(), Ok(&content));
            if let Some(less) = content.len().checked_sub(1) {
                assert_eq!(decompress(codec, bytes, legacy, less), Err(CodecError::TooLarge { limit: less }));
            }
        }
        Err(CodecError::TooLarge { limit: said }) => assert_eq!(said, limit),
        Err(CodecError::Corrupt(_)) => {}
    }
}

fn comes_out_as_it_went_in(codec: Codec, content: &[u8], limit: usize) {
    let bytes = compress(codec, content).expect("memory takes it");
    match decompress(codec, &bytes, false, limit) {
        Ok(again) => assert_eq!(again, content),
        Err(error) => {
            assert!(limit < content.len());
            assert_eq!(error, CodecError::TooLarge { limit });
        }
    }
}
