//! Rows of a column whose headers lie as nearly all do, got one after the other up to the first that has to be walked.

use std::marker::PhantomData;
use std::ops::Range;

use arrow_array::{Array, GenericBinaryArray, OffsetSizeTrait};
use arrow_buffer::NullBuffer;

use super::input::Lists;
use crate::cursor::Cursor;
use crate::mode::{Fast, OnLoss};
use crate::short::columns::{Columns, InColumns};
use crate::short::{Short, ShortRow};
use crate::walk::{Block, Envelope, FieldValue, ReadOptions, open_cell};

/// Cells in a format, which are read strictly.
pub fn cells<'a, O: OffsetSizeTrait, E: Envelope>(
    array: &'a GenericBinaryArray<O>,
    rows: Range<usize>,
    options: ReadOptions,
) -> impl Iterator<Item = ShortRow<E::Fields<'a>, impl Short<'a>>> {
    let (cells, nulls, row) = (array.value_data(), array.nulls(), rows.start);
    let offsets = &array.value_offsets()[rows.start..=rows.end];
    ShortCells::<O, E> { cells, offsets, nulls, row, options, format: PhantomData }
}

struct ShortCells<'a, O, E> {
    cells: &'a [u8],
    /// Where each of the rows that are left begins, and where the last ends.
    offsets: &'a [O],
    nulls: Option<&'a NullBuffer>,
    row: usize,
    options: ReadOptions,
    format: PhantomData<E>,
}

impl<'a, O: OffsetSizeTrait, E: Envelope> Iterator for ShortCells<'a, O, E> {
    type Item = ShortRow<E::Fields<'a>, <E::Block as Block>::Short<'a>>;

    #[inline(always)] // A row that is passed through memory costs more than finding it.
    fn next(&mut self) -> Option<Self::Item> {
        let [start, rest @ ..] = self.offsets else { return None };
        let end = rest.first()?;
        let row = match self.nulls {
            Some(nulls) if nulls.is_null(self.row) => ShortRow::Null,
            _ => {
                let cursor = Cursor::within(self.cells, start.as_usize()..end.as_usize());
                let opened = open_cell::<E, _>(cursor, self.options, &mut Fast::new(OnLoss::Raise)).ok()?;
                let headers = E::Block::short(opened.block?)?;
                if headers.count() > self.options.limits.headers {
                    // The walk says so.
                    return None;
                }
                ShortRow::Message(opened.fields, headers)
            }
        };
        self.offsets = rest;
        self.row += 1;
        Some(row)
    }
}

/// Lists of headers, which lie in columns.
pub fn lists<'a>(
    lists: Lists<'a>,
    columns: Columns<'a>,
    rows: Range<usize>,
) -> impl Iterator<Item = ShortRow<[FieldValue<'a>; 0], impl Short<'a>>> {
    ShortLists { lists, columns, rows }
}

struct ShortLists<'a> {
    lists: Lists<'a>,
    columns: Columns<'a>,
    rows: Range<usize>,
}

impl<'a> Iterator for ShortLists<'a> {
    type Item = ShortRow<[FieldValue<'a>; 0], InColumns<'a>>;

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        Some(ShortRow::Message([], self.columns.at(self.lists.get(self.rows.next()?)?)?))
    }
}
