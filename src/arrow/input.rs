//! Input columns of bytes, text and lists of headers, read without a copy in each of Arrow's layouts.

use std::ops::Range;
use std::slice;

use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, BinaryArray, BinaryViewArray, LargeBinaryArray, LargeListArray, LargeStringArray, ListArray,
    OffsetSizeTrait, StringArray, StringViewArray, StructArray,
};
use arrow_buffer::{Buffer, NullBuffer};
use arrow_data::{ByteView, MAX_INLINE_VIEW_LEN};
use arrow_schema::{DataType, Fields};

use super::schema;
use crate::cursor::Cursor;
use crate::error::Error;
use crate::format_info::FormatInfo;
use crate::kernel::{self, ROWS};
use crate::number::position;

pub(super) fn binary_column<'a>(column: &'a dyn Array, format: &FormatInfo) -> Result<Bytes<'a>, Error> {
    Bytes::of(column).ok_or_else(|| not_binary(column, format))
}

#[cold]
pub(super) fn not_binary(column: &dyn Array, format: &FormatInfo) -> Error {
    let actual = schema::type_name(column.data_type());
    let advice = match (ListInput::of(column), column.data_type()) {
        (Some(_), _) => ": headers of a list are read by select, and made bytes by encode".into(),
        (None, DataType::Struct(fields)) => column_advice(fields),
        (None, _) => String::new(),
    };
    let fits = "read from binary, large_binary or binary_view";
    Error::Type(format!("the column is {actual}, and {} is {fits}{advice}", format.name))
}

/// Advice to pass a column, such as `headers`, for a table that was passed as a whole.
fn column_advice(columns: &Fields) -> String {
    let is_readable = |data_type: &DataType| {
        use DataType::{Binary, BinaryView, LargeBinary, LargeList, List, Map};
        matches!(data_type, Binary | LargeBinary | BinaryView | List(_) | LargeList(_) | Map(..))
    };
    // A struct with a key is itself a header.
    let is_header = columns.find("key").is_some();
    let readable = || columns.iter().filter(|column| is_readable(column.data_type()));
    let column =
        readable().find(|column| column.name() == "headers").or_else(|| readable().next().filter(|_| !is_header));
    column
        .map_or_else(String::new, |column| format!(": pass a column of the table, such as table[{:?}]", column.name()))
}

/// Runs the same body for arrays of any of the layouts.
macro_rules! match_layout {
    ($value:expr, $input:ident::{$($layout:ident),*}, $array:ident => $body:expr) => {
        match $value { $($input::$layout($array) => $body),* }
    };
}

#[derive(Clone, Copy)]
pub enum Bytes<'a> {
    Small(&'a BinaryArray),
    Large(&'a LargeBinaryArray),
    View(&'a BinaryViewArray),
}

impl<'a> Bytes<'a> {
    pub fn of(array: &'a dyn Array) -> Option<Self> {
        match array.data_type() {
            DataType::Binary => Some(Bytes::Small(array.as_binary())),
            DataType::LargeBinary => Some(Bytes::Large(array.as_binary())),
            DataType::BinaryView => Some(Bytes::View(array.as_binary_view())),
            _ => None,
        }
    }

    pub fn array(self) -> &'a dyn Array {
        match_layout!(self, Bytes::{Small, Large, View}, array => array)
    }

    #[inline(always)] // Called for every value of a list.
    pub fn get(self, row: usize) -> Option<&'a [u8]> {
        match_layout!(self, Bytes::{Small, Large, View}, array => array.is_valid(row).then(|| array.value(row)))
    }

    /// Returns a cursor over a non-null value.
    #[inline(always)] // Called once per row of every block.
    pub fn cursor(self, row: usize) -> Option<Cursor<'a>> {
        match self {
            Bytes::Small(array) => {
                array.is_valid(row).then(|| Cursor::within(array.value_data(), value_range(array.value_offsets(), row)))
            }
            Bytes::Large(array) => {
                array.is_valid(row).then(|| Cursor::within(array.value_data(), value_range(array.value_offsets(), row)))
            }
            Bytes::View(array) => array.is_valid(row).then(|| view_cursor(array, row)),
        }
    }

    /// The values of a binary column, or of the headers of a list column.
    pub fn of_values(array: &'a dyn Array) -> Option<Self> {
        match ListInput::of(array) {
            Some(lists) => Bytes::of(lists.elements()?.column_by_name("value")?),
            None => Bytes::of(array),
        }
    }

    pub fn buffers(self) -> &'a [Buffer] {
        match self {
            Bytes::Small(array) => slice::from_ref(array.values()),
            Bytes::Large(array) => slice::from_ref(array.values()),
            Bytes::View(array) => array.data_buffers(),
        }
    }

    /// Number of bytes before a row; for views, the number of rows.
    #[inline]
    pub fn before(self, row: usize) -> usize {
        match self {
            Bytes::Small(array) => array.value_offsets()[row] as usize,
            Bytes::Large(array) => position(array.value_offsets()[row]),
            Bytes::View(_) => row,
        }
    }
}

/// Returns a cursor over a value in its data buffer, or in the buffer of views. Kernels need readable bytes after a
/// value.
#[inline(always)]
fn view_cursor(array: &BinaryViewArray, row: usize) -> Cursor<'_> {
    let ByteView { length, buffer_index, offset, .. } = ByteView::from(array.views()[row]);
    let (buffer, start) = match length {
        0..=MAX_INLINE_VIEW_LEN => (array.views().inner(), size_of::<u128>() * row + size_of::<u32>()),
        _ => (&array.data_buffers()[buffer_index as usize], offset as usize),
    };
    Cursor::within(buffer, start..start + length as usize)
}

#[inline(always)]
fn value_range<O: OffsetSizeTrait>(offsets: &[O], row: usize) -> Range<usize> {
    offsets[row].as_usize()..offsets[row + 1].as_usize()
}

#[derive(Clone, Copy)]
pub enum Texts<'a> {
    Small(&'a StringArray),
    Large(&'a LargeStringArray),
    View(&'a StringViewArray),
}

impl<'a> Texts<'a> {
    pub fn of(array: &'a dyn Array) -> Option<Self> {
        match array.data_type() {
            DataType::Utf8 => Some(Texts::Small(array.as_string())),
            DataType::LargeUtf8 => Some(Texts::Large(array.as_string())),
            DataType::Utf8View => Some(Texts::View(array.as_string_view())),
            _ => None,
        }
    }

    #[inline(always)] // Called for every key of a list.
    pub fn get(self, row: usize) -> Option<&'a str> {
        match_layout!(self, Texts::{Small, Large, View}, array => array.is_valid(row).then(|| array.value(row)))
    }
}

#[derive(Clone, Copy)]
pub enum ListInput<'a> {
    Small(&'a ListArray),
    Large(&'a LargeListArray),
}

impl<'a> ListInput<'a> {
    pub fn of(array: &'a dyn Array) -> Option<Self> {
        match array.data_type() {
            DataType::List(_) => Some(ListInput::Small(array.as_list())),
            DataType::LargeList(_) => Some(ListInput::Large(array.as_list())),
            _ => None,
        }
    }

    pub fn array(self) -> &'a dyn Array {
        match_layout!(self, ListInput::{Small, Large}, array => array)
    }

    pub fn values(self) -> &'a ArrayRef {
        match_layout!(self, ListInput::{Small, Large}, array => array.values())
    }

    pub fn elements(self) -> Option<&'a StructArray> {
        self.values().as_struct_opt()
    }

    /// Range of the elements of all rows, including null ones.
    pub fn element_range(self) -> Range<usize> {
        fn ends<O: OffsetSizeTrait>(offsets: &[O]) -> Range<usize> {
            offsets[0].as_usize()..offsets[offsets.len() - 1].as_usize()
        }
        match_layout!(self, ListInput::{Small, Large}, array => ends(array.value_offsets()))
    }

    /// Fills a block with at most 64 of these rows, and returns the number of added rows.
    pub fn fill(self, rows: Range<usize>, block: &mut kernel::lists::ListBlock<'_>) -> usize {
        let rows = rows.start..rows.end.min(rows.start + ROWS);
        let is_null =
            |nulls: &NullBuffer| rows.clone().rev().fold(0, |bits, row| bits << 1 | u64::from(nulls.is_null(row)));
        let nulls = self.array().nulls().map_or(0, is_null);
        match_layout!(self, ListInput::{Small, Large}, array => {
            block.fill(&array.value_offsets()[rows.start..=rows.end], nulls, position)
        })
    }

    /// Range of the elements of a row; `None` if the list is null.
    #[inline(always)] // Called for every row.
    pub fn get(self, row: usize) -> Option<Range<usize>> {
        match_layout!(self, ListInput::{Small, Large}, array => array.is_valid(row).then(|| value_range(array.value_offsets(), row)))
    }
}

#[cfg(test)]
#[path = "../../tests/rust/units/arrow_input.rs"]
mod tests;
