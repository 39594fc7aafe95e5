//! One value in every mode of parsing.

use letterhead::cursor::Cursor;
use letterhead::error::ErrorDetail;
use letterhead::format::{Format, Visitor};
use letterhead::limits::Limits;
use letterhead::log::{CollectErrors, FailFast, Label, OnLoss};
use letterhead::op::inspect::Inspect;
use letterhead::options::ReadOptions;
use letterhead::sink::Discard;
use letterhead::traits::{BatchFormat, MessageFormat, parse_message};

use super::serialized_rows::BEHIND;
use crate::common::batch_errors;

/// Parses a value in every mode, compares the results, and returns the errors of the value.
pub fn walk_in_every_mode(format: Format, serialized: &[u8], options: ReadOptions) -> Vec<ErrorDetail> {
    let errors = format.visit(InEveryMode(serialized, options));
    for error in &errors {
        assert!(
            error.byte.is_none_or(|byte| byte <= serialized.len()),
            "{format:?} {error:?} of {} bytes",
            serialized.len()
        );
    }
    let inspected = format.visit(Inspect { data: serialized, options });
    assert_eq!(inspected.errors, errors, "{format:?}");
    cover(&inspected.labels, serialized.len());
    errors
}

/// The labels of a value cover every byte once.
fn cover(labels: &[Label], len: usize) {
    let mut at = 0;
    for label in labels {
        assert_eq!(label.start, at, "{labels:?}");
        assert!(label.end > at, "{labels:?}");
        at = label.end;
    }
    assert_eq!(at, len, "{labels:?}");
}

struct InEveryMode<'a>(&'a [u8], ReadOptions);

impl Visitor for InEveryMode<'_> {
    type Out = Vec<ErrorDetail>;

    fn visit<E: MessageFormat>(self) -> Vec<ErrorDetail> {
        let InEveryMode(serialized, options) = self;
        let longer = [serialized, &BEHIND].concat();
        let (mut exact, mut labelled) = (CollectErrors::default(), CollectErrors::with_labels(Limits::DEFAULT.reports));
        let exactly = parse_message::<E, _, _>(Cursor::new(serialized), options, &mut exact, &mut Discard);
        let _ = parse_message::<E, _, _>(Cursor::new(serialized), options, &mut labelled, &mut Discard);
        assert_eq!(exact.errors(), labelled.errors());
        assert!(exactly.is_ok() || !exact.errors().is_empty(), "it stopped without a word");
        for cursor in [Cursor::new(serialized), Cursor::within(&longer, 0..serialized.len())] {
            let mut fast = FailFast::new(OnLoss::Raise);
            let whole = parse_message::<E, _, _>(cursor, options, &mut fast, &mut Discard).is_ok();
            assert_eq!(whole, exact.errors().is_empty(), "{:?}", exact.errors());
        }
        exact.errors().to_vec()
    }

    fn visit_batch<B: BatchFormat>(self) -> Vec<ErrorDetail> {
        let InEveryMode(serialized, options) = self;
        let [exact, labelled] = batch_errors::<B>(serialized, options);
        assert_eq!(exact, labelled);
        exact
    }
}
