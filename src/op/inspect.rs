//! inspect: every byte of a cell with the field it belongs to, and what is wrong with it.

use std::marker::PhantomData;

use crate::cursor::Cursor;
use crate::error::Fault;
use crate::format::Visitor;
use crate::mode::{Label, Labelled, Result};
use crate::walk::{
    Batch, Block, Discard, Envelope, FieldValue, Messages, Noting, ReadOptions, message_len, walk_batch, walk_cell,
};

/// A cell taken apart. The labels cover it without a gap, in order.
#[derive(Debug)]
pub struct Inspection {
    pub labels: Vec<Label>,
    pub faults: Vec<Fault>,
}

/// Takes one cell apart.
pub struct Inspect<'a> {
    pub cell: &'a [u8],
    pub options: ReadOptions,
}

/// The field of bytes that no walk came to.
const NOT_READ: &str = "not read";

impl Visitor for Inspect<'_> {
    type Out = Inspection;

    fn visit<E: Envelope>(self) -> Inspection {
        let mut mode = Labelled::default();
        // A walk that stops has said why: the faults are the answer.
        let _ = walk_cell::<E, _, _>(Cursor::new(self.cell), self.options, &mut mode, &mut Discard);
        Inspection { labels: without_gaps(mode.labels, self.cell.len()), faults: mode.exact.faults }
    }

    fn visit_batch<B: Batch>(self) -> Inspection {
        let mut mode = Labelled::default();
        // A walk that stops has said why: the faults are the answer.
        let _ =
            walk_batch::<B, _, _>(Cursor::new(self.cell), self.options, &mut mode, &mut Walked::<B>::new(self.options));
        Inspection { labels: without_gaps(mode.labels, self.cell.len()), faults: mode.exact.faults }
    }
}

/// Walks the block of every message, and keeps nothing.
pub struct Walked<B>(ReadOptions, PhantomData<B>);

impl<B> Walked<B> {
    pub fn new(options: ReadOptions) -> Self {
        Walked(options, PhantomData)
    }
}

impl<'a, B: Batch> Messages<'a> for Walked<B> {
    type Within<'b> = Self;

    fn message<M: Noting>(&mut self, fields: &[FieldValue<'a>], block: Option<Cursor<'a>>, mode: &mut M) -> Result {
        self.0.limits.check_message(message_len(fields, block), mode.noted())?;
        if let Some(cursor) = block {
            // A block that breaks does not hide the message after it.
            let _ = <B::Message as Envelope>::Block::walk(cursor, self.0, mode, &mut Discard);
        }
        mode.enter_header(None);
        Ok(())
    }

    fn unreadable<M: Noting>(&mut self, mode: &mut M) -> Result {
        mode.enter_header(None);
        self.0.limits.check_message(0, mode.noted())
    }

    fn within<'b, R>(&mut self, _bytes: &'b [u8], hand: impl FnOnce(&mut Self::Within<'b>) -> R) -> R {
        hand(self)
    }
}

/// Sorts labels by place, drops those without bytes and names the bytes between them.
fn without_gaps(mut labels: Vec<Label>, len: usize) -> Vec<Label> {
    labels.retain(|label| label.end > label.start);
    labels.sort_by_key(|label| label.start);
    let gap = |start, end| Label { start, end, field: NOT_READ, header: None, text: String::new() };
    let mut whole = Vec::new();
    let mut at = 0;
    for label in labels {
        if label.start > at {
            whole.push(gap(at, label.start));
        }
        at = label.end;
        whole.push(label);
    }
    if at < len {
        whole.push(gap(at, len));
    }
    whole
}
