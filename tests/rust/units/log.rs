//! Errors of a parse.

use letterhead::error::{Code, Direction, Error};
use letterhead::log::{CollectErrors, Log, Stop};

#[test]
fn interrupted_decoding_is_error_even_without_noted_one() {
    let mut log = CollectErrors::default();
    let ended = log.finish_parse::<()>(Err(Stop), Direction::Decode, "kafka");
    assert!(matches!(ended, Err(Error::Internal(_))), "{ended:?}");
    assert_eq!(log.finish_parse(Ok(1), Direction::Decode, "kafka"), Ok(1));
}

#[test]
fn decoding_with_errors_ends_with_first_one() {
    for parsed in [Ok(()), Err(Stop)] {
        let mut log = CollectErrors::default();
        for code in [Code::BadCrc, Code::Truncated] {
            assert_eq!(log.error(code, Some(3), || "wrong".into()), Ok(()));
        }
        let Err(Error::Headers(Direction::Encode, located)) = log.finish_parse(parsed, Direction::Encode, "iggy")
        else {
            panic!("a fault was noted");
        };
        assert_eq!((located.format, located.error.code), ("iggy", Code::BadCrc));
    }
}
