//! One cell in every mode of a walk.

use letterhead::cursor::Cursor;
use letterhead::error::Fault;
use letterhead::format::{Format, Visitor};
use letterhead::mode::{Exact, Fast, Label, Labelled, OnLoss};
use letterhead::op::inspect::{Inspect, Walked};
use letterhead::walk::{Batch, Discard, Envelope, ReadOptions, walk_batch, walk_cell};

use super::cells::BEHIND;

/// Walks a cell in every mode, holds them to each other, and gives what is wrong with it.
pub fn walk_in_every_mode(format: Format, cell: &[u8], options: ReadOptions) -> Vec<Fault> {
    let faults = format.visit(InEveryMode(cell, options));
    for fault in &faults {
        assert!(fault.byte.is_none_or(|byte| byte <= cell.len()), "{format:?} {fault:?} of {} bytes", cell.len());
    }
    let inspected = format.visit(Inspect { cell, options });
    assert_eq!(inspected.faults, faults, "{format:?}");
    cover(&inspected.labels, cell.len());
    faults
}

/// The labels of a cell cover every byte once.
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
    type Out = Vec<Fault>;

    fn visit<E: Envelope>(self) -> Vec<Fault> {
        let InEveryMode(cell, options) = self;
        let longer = [cell, &BEHIND].concat();
        let (mut exact, mut labelled) = (Exact::default(), Labelled::default());
        let exactly = walk_cell::<E, _, _>(Cursor::new(cell), options, &mut exact, &mut Discard);
        let _ = walk_cell::<E, _, _>(Cursor::new(cell), options, &mut labelled, &mut Discard);
        assert_eq!(exact.faults, labelled.exact.faults);
        assert!(exactly.is_ok() || !exact.faults.is_empty(), "it stopped without a word");
        for cursor in [Cursor::new(cell), Cursor::within(&longer, 0..cell.len())] {
            let mut fast = Fast::new(OnLoss::Raise);
            let whole = walk_cell::<E, _, _>(cursor, options, &mut fast, &mut Discard).is_ok();
            assert_eq!(whole, exact.faults.is_empty(), "{:?}", exact.faults);
        }
        exact.faults
    }

    fn visit_batch<B: Batch>(self) -> Vec<Fault> {
        let InEveryMode(cell, options) = self;
        let (mut exact, mut labelled) = (Exact::default(), Labelled::default());
        let _ = walk_batch::<B, _, _>(Cursor::new(cell), options, &mut exact, &mut Walked::<B>::new(options));
        let _ = walk_batch::<B, _, _>(Cursor::new(cell), options, &mut labelled, &mut Walked::<B>::new(options));
        assert_eq!(exact.faults, labelled.exact.faults);
        exact.faults
    }
}
