//! Failed allocations.

use letterhead::error::Error;
use letterhead::memory::{self, Refused};
use letterhead::panics::catch_panic;

/// More bytes than any process can allocate.
const TOO_MANY: usize = isize::MAX as usize - 8;

#[test]
fn refused_memory_is_an_error_with_its_size() {
    let refused = |bytes| Error::Memory(Refused { bytes, column: None });
    let grown = catch_panic(|| memory::reserve(&mut vec![0u8; 8], TOO_MANY));
    assert_eq!(grown, Err(refused(TOO_MANY + 8)));
    let numbers = catch_panic(|| memory::vec_of::<u64>(TOO_MANY / 8));
    assert_eq!(numbers, Err(refused(TOO_MANY / 8 * 8)));
    assert_eq!(catch_panic(|| memory::probe(TOO_MANY)), Err(refused(TOO_MANY)));
}

#[test]
fn a_refusal_names_the_column_that_was_to_grow() {
    let refuse = || memory::catch_refusal(|| memory::refuse(7)).unwrap_or_else(|held| held.resume("inner"));
    let refused = catch_panic(|| memory::catch_refusal(refuse).unwrap_or_else(|held| held.resume("outer")));
    assert_eq!(refused, Err(Error::Memory(Refused { bytes: 7, column: Some("inner".into()) })));
}

#[test]
fn held_panic_resumes() {
    let panic = || -> u8 { panic!("a text") };
    let held = catch_panic(|| memory::catch_refusal(panic).unwrap_or_else(|held| held.resume("a")));
    assert_eq!(held, Err(Error::Internal("a text".into())));
}
