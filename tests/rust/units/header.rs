//! Keys that are text.

use letterhead::header::Text;

#[test]
fn the_short_check_agrees_with_the_general_one() {
    for len in 0..40 {
        let plain = vec![b'a'; len];
        assert!(Text::new(&plain).is_ok());
        for place in 0..len {
            let mut bytes = plain.clone();
            bytes[place] = 0xff;
            assert_eq!(Text::new(&bytes).err(), std::str::from_utf8(&bytes).err(), "{len} {place}");
        }
    }
    assert!(Text::new("señal-📦".as_bytes()).is_ok());
}
