use super::*;

fn written(charset: Charset, text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    charset.write(text, &mut bytes).unwrap();
    bytes
}

#[test]
fn text_is_read_back_from_each_charset() {
    for charset in Charset::ALL {
        for text in ["", "a", "\0", "é\u{ff}", "\u{80}"] {
            assert_eq!(charset.read(&written(charset, text)).unwrap(), text, "{charset:?}");
        }
    }
    for charset in [Charset::Utf16(ByteOrder::Little), Charset::Utf16(ByteOrder::Big)] {
        for text in ["📦", "\u{feff}a", "\u{10ffff}\u{ffff}", "中"] {
            assert_eq!(charset.read(&written(charset, text)).unwrap(), text);
        }
    }
    assert_eq!(written(Charset::Utf16(ByteOrder::Little), "A📦"), [0x41, 0, 0x3d, 0xd8, 0xe6, 0xdc]);
    assert_eq!(written(Charset::Utf16(ByteOrder::Big), "A📦"), [0, 0x41, 0xd8, 0x3d, 0xdc, 0xe6]);
}

#[test]
fn half_a_pair_half_a_unit_and_a_reversed_mark_are_rejected() {
    for units in
        [&[0xd83d][..], &[0xdce6], &[0xdce6, 0xd83d], &[0xd83d, 0xd83d, 0xdce6], &[0xd83d, 0x41], &[0xfffe, 0x41]]
    {
        let bytes: Vec<u8> = units.iter().flat_map(|unit: &u16| unit.to_be_bytes()).collect();
        assert_eq!(Charset::Utf16(ByteOrder::Big).read(&bytes).unwrap_err().code, Code::BadText, "{units:x?}");
    }
    assert!(Charset::Utf16(ByteOrder::Little).read(b"a\0b").is_err());
}

#[test]
fn characters_that_a_charset_lacks_are_not_written() {
    for (charset, text) in
        [(Charset::Latin1, "Ā"), (Charset::Latin1, "📦"), (Charset::Utf16(ByteOrder::Big), "\u{fffe}")]
    {
        assert_eq!(charset.write(text, &mut Vec::new()).unwrap_err().code, Code::OutOfRange);
    }
}
