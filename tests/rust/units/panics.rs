//! Caught panics.

use letterhead::error::Error;
use letterhead::panics::catch_panic;

#[test]
fn a_panic_is_an_error_with_its_text() {
    assert_eq!(catch_panic(|| 1), Ok(1));
    let number = 7;
    assert_eq!(catch_panic(|| -> u8 { panic!("a text") }), Err(Error::Internal("a text".into())));
    assert_eq!(catch_panic(|| -> u8 { panic!("a text of {number}") }), Err(Error::Internal("a text of 7".into())));
    let other = || -> u8 { std::panic::panic_any(number) };
    assert_eq!(catch_panic(other), Err(Error::Internal("no reason given".into())));
}
