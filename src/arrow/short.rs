//! Rows of a column whose headers lie as nearly all do, got one after the other up to the first that has to be walked.

use std::marker::PhantomData;
use std::ops::Range;

use arrow_array::{Array, GenericBinaryArray, OffsetSizeTrait};
use arrow_buffer::NullBuffer;

use super::input::Lists;
use crate::cursor::Cursor;
use crate::op::convert::Reader;
use crate::short::block::InBlock;
use crate::short::columns::{Columns, InColumns};
use crate::short::{Short, ShortRow};
use crate::walk::{Block, Envelope, FieldValue, ReadOptions, open_short};

/// What opens a cell that is read strictly.
pub trait Open<'a> {
    type Fields: AsRef<[FieldValue<'a>]>;
    type Headers: Short<'a>;

    fn open(&self, cell: Cursor<'a>) -> Option<(Self::Fields, Self::Headers)>;
}

/// Opens cells in a format.
pub struct In<E>(pub ReadOptions, pub PhantomData<E>);

impl<'a, E: Envelope> Open<'a> for In<E> {
    type Fields = E::Fields<'a>;
    type Headers = <E::Block as Block>::Short<'a>;

    #[inline(always)]
    fn open(&self, cell: Cursor<'a>) -> Option<(Self::Fields, Self::Headers)> {
        open_short::<E>(cell, self.0)
    }
}

/// Opens blocks in a format that is chosen at run time.
pub struct With<'r>(pub ReadOptions, pub &'r dyn Reader);

impl<'a> Open<'a> for With<'_> {
    type Fields = [FieldValue<'a>; 0];
    type Headers = InBlock<'a>;

    #[inline(always)]
    fn open(&self, cell: Cursor<'a>) -> Option<(Self::Fields, Self::Headers)> {
        Some(([], self.1.short(cell, self.0)?))
    }
}

/// Cells of a column.
pub fn cells<'a, O: OffsetSizeTrait, F: Open<'a>>(
    array: &'a GenericBinaryArray<O>,
    rows: Range<usize>,
    format: F,
) -> impl Iterator<Item = ShortRow<F::Fields, F::Headers>> {
    let (cells, nulls, row) = (array.value_data(), array.nulls(), rows.start);
    let offsets = &array.value_offsets()[rows.start..=rows.end];
    ShortCells { cells, offsets, nulls, row, format }
}

struct ShortCells<'a, O, F> {
    cells: &'a [u8],
    /// Where each of the rows that are left begins, and where the last ends.
    offsets: &'a [O],
    nulls: Option<&'a NullBuffer>,
    row: usize,
    format: F,
}

impl<'a, O: OffsetSizeTrait, F: Open<'a>> Iterator for ShortCells<'a, O, F> {
    type Item = ShortRow<F::Fields, F::Headers>;

    #[inline(always)] // A row that is passed through memory costs more than finding it.
    fn next(&mut self) -> Option<Self::Item> {
        let [start, rest @ ..] = self.offsets else { return None };
        let end = rest.first()?;
        let row = match self.nulls {
            Some(nulls) if nulls.is_null(self.row) => ShortRow::Null,
            _ => {
                let cell = Cursor::within(self.cells, start.as_usize()..end.as_usize());
                let (fields, headers) = self.format.open(cell)?;
                ShortRow::Message(fields, headers)
            }
        };
        self.offsets = rest;
        self.row += 1;
        Some(row)
    }
}

/// Lists of headers, which lie in columns; `KINDS`: with their kinds.
pub fn lists<'a, const KINDS: bool>(
    lists: Lists<'a>,
    columns: Columns<'a>,
    rows: Range<usize>,
) -> impl Iterator<Item = ShortRow<[FieldValue<'a>; 0], impl Short<'a>>> {
    ShortLists::<KINDS> { lists, columns, rows }
}

struct ShortLists<'a, const KINDS: bool> {
    lists: Lists<'a>,
    columns: Columns<'a>,
    rows: Range<usize>,
}

impl<'a, const KINDS: bool> Iterator for ShortLists<'a, KINDS> {
    type Item = ShortRow<[FieldValue<'a>; 0], InColumns<'a, KINDS>>;

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        Some(ShortRow::Message([], self.columns.at(self.lists.get(self.rows.next()?)?)?))
    }
}
