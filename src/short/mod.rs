//! Headers that lie as nearly all do, which a sink takes in a loop of its own: with room made for all of them at once, and
//! one test a header. In a block without kinds ([`block`]) or with them ([`typed`]), and in columns ([`columns`]).
//!
//! Whatever else there may be is for the walk that names it: what is not whole stops here without a word.

use crate::chunk::Run;
use crate::kind::Kind;
use crate::mode::{Mode, Stop};
use crate::value::ByteOrder;

pub mod block;
pub mod columns;
pub mod typed;

use block::InBlock;

/// The headers of a row.
pub trait Short<'a> {
    /// There can be such headers at all.
    const ARE_THERE: bool = true;
    /// Values may have kinds, and keys.
    const HAVE_KINDS: bool = false;
    /// The order of the bytes of a number that has a kind.
    const ORDER: ByteOrder = ByteOrder::Big;

    /// There are at most so many.
    fn most(&self) -> usize;

    /// How many there are, where that is known.
    fn count(&self) -> Option<usize> {
        Some(self.most())
    }

    /// All keys and all values together have at most so many bytes.
    fn byte_len(&self) -> usize;

    /// Hands them over one by one, in order: never more headers and bytes than it says. Of a row that stops nothing may be
    /// kept.
    fn each<M: Mode, T: Take<'a>>(self, mode: &mut M, to: &mut T) -> Result<(), Stop>;

    /// The headers, where they lie in a block.
    fn in_block(self) -> Option<InBlock<'a>>
    where
        Self: Sized,
    {
        None
    }
}

/// What takes such headers. No closure: those are not always made a part of the loop, and a header that is passed through
/// memory costs more than all the rest.
pub trait Take<'a> {
    /// It looks at the keys itself, many at a time, to see that they are text.
    const SEES_TEXT: bool = false;

    fn take(&mut self, header: ShortHeader<'a>);
}

/// Where there are never such headers.
pub struct Nothing;

impl<'a> Short<'a> for Nothing {
    const ARE_THERE: bool = false;

    fn most(&self) -> usize {
        0
    }

    fn byte_len(&self) -> usize {
        0
    }

    fn each<M: Mode, T: Take<'a>>(self, _mode: &mut M, _to: &mut T) -> Result<(), Stop> {
        Ok(())
    }
}

/// A row of such headers.
pub enum ShortRow<F, H> {
    /// There is no message.
    Null,
    /// The other fields of the message, and its headers.
    Message(F, H),
}

/// A header as it lies.
#[derive(Clone, Copy)]
pub struct ShortHeader<'a> {
    pub index: usize,
    /// Of keys that have kinds.
    pub key_kind: Option<Kind>,
    pub key: Run<'a>,
    pub kind: Option<Kind>,
    pub value: Option<Run<'a>>,
    /// Where the value begins in the cell, if it has one.
    pub at: Option<usize>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Does something with each header.
    pub struct Each<F>(pub F);

    impl<'a, F: FnMut(ShortHeader<'a>)> Take<'a> for Each<F> {
        fn take(&mut self, header: ShortHeader<'a>) {
            (self.0)(header);
        }
    }
}
