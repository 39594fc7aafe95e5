use super::*;

#[test]
fn base64_is_read_in_both_alphabets_with_and_without_padding() {
    for len in 0..70 {
        let bytes: Vec<u8> = (0..len).map(|place: u8| place.wrapping_mul(37) ^ 0xfb).collect();
        let mut text = Vec::new();
        write_base64(&bytes, &mut text);
        let url: Vec<u8> = text
            .iter()
            .map(|byte| [*byte, b'-', b'_'][(*byte == b'+') as usize + 2 * (*byte == b'/') as usize])
            .collect();
        let unpadded = url.trim_ascii_end().iter().copied().filter(|byte| *byte != b'=').collect::<Vec<_>>();
        assert!([text, url, unpadded].iter().all(|text| from_base64(text).as_ref() == Some(&bytes)));
    }
    for text in ["A", "A===", "AA=", "AAA==", "AAAA=", "AAAA==", "=", "==", "A A=", "AA=A", "AAAA===="] {
        assert_eq!(from_base64(text.as_bytes()), None, "{text}");
    }
}

#[test]
fn hex_is_pairs_of_digits_of_either_case() {
    assert_eq!(from_hex(b"00fFA1"), Some(vec![0, 0xff, 0xa1]));
    assert_eq!([from_hex(b"0"), from_hex(b"0g"), from_hex(b"0x00")], [None, None, None]);
}

#[test]
fn trailing_bits_and_mixed_alphabets_are_rejected() {
    for text in ["AB==", "AB", "AAB=", "AAB", "+_==", "-/==", "AAA\n", "AA A"] {
        assert_eq!(from_base64(text.as_bytes()), None, "{text}");
    }
    for text in ["AA==", "AA", "AAE=", "AAE", "+w==", "_w", ""] {
        assert!(from_base64(text.as_bytes()).is_some(), "{text}");
    }
}
