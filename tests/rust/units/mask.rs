//! Masks with a key.

use super::*;

/// RFC 4231, test cases 1, 2 and 6: the last key is longer than a block.
#[test]
fn hmac_matches_specification() {
    for (key, value, code) in [
        (vec![0x0b; 20], &b"Hi There"[..], "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"),
        (
            b"Jefe".to_vec(),
            b"what do ya want for nothing?",
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
        ),
        (
            vec![0xaa; 131],
            b"Test Using Larger Than Block-Size Key - Hash Key First",
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
        ),
    ] {
        let mask = Mask::Hmac(HmacKey::new(&key));
        assert_eq!(mask.apply(None, value), code.as_bytes());
        assert_eq!(mask.clone(), mask);
        assert!(!format!("{mask:?}").contains("Jefe"));
    }
    assert_ne!(Mask::Hmac(HmacKey::new(b"a")), Mask::Hmac(HmacKey::new(b"b")));
}
