//! Values as columns in memory that ends with them, so that reads past the end are detected.

use std::sync::Arc;

use arrow_array::builder::make_view;
use arrow_array::{ArrayRef, BinaryViewArray, GenericBinaryArray, OffsetSizeTrait};
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer};

/// More bytes than any kernel reads after a row.
pub const BEHIND: [u8; 512] = [0xff; 512];

/// The layouts that a column of bytes may have.
#[derive(Debug, Clone, Copy)]
pub enum Layout {
    Small,
    Large,
    View,
}

impl Layout {
    pub fn of(bits: usize) -> Layout {
        [Layout::Small, Layout::Large, Layout::View, Layout::Small][bits % 4]
    }

    /// A column of these rows, in a buffer that continues with `behind`.
    pub fn column(self, rows: &[Option<&[u8]>], behind: &[u8]) -> ArrayRef {
        let lens = rows.iter().map(|row| row.unwrap_or_default().len());
        let parts: Vec<&[u8]> = rows.iter().map(|row| row.unwrap_or_default()).chain([behind]).collect();
        // The capacity is the length: nothing follows.
        let buffer = Buffer::from_vec(parts.concat());
        let nulls = NullBuffer::from_iter(rows.iter().map(Option::is_some));
        match self {
            Layout::Small => Arc::new(bytes::<i32>(lens, buffer, nulls)),
            Layout::Large => Arc::new(bytes::<i64>(lens, buffer, nulls)),
            Layout::View => {
                let mut at = 0;
                let view = |row: &Option<&[u8]>| {
                    let run = row.unwrap_or_default();
                    let view = make_view(run, 0, at);
                    at += run.len() as u32;
                    view
                };
                let views: Vec<u128> = rows.iter().map(view).collect();
                Arc::new(BinaryViewArray::new(views.into(), vec![buffer], Some(nulls)))
            }
        }
    }
}

fn bytes<O: OffsetSizeTrait>(
    lens: impl Iterator<Item = usize>,
    buffer: Buffer,
    nulls: NullBuffer,
) -> GenericBinaryArray<O> {
    GenericBinaryArray::new(OffsetBuffer::from_lengths(lens), buffer, Some(nulls))
}
