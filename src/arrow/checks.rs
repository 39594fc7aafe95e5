//! [`check_values`] checks the offsets, views and text of arrays of other libraries. `arrow-array` trusts them, and
//! would read beyond buffers if they were wrong.

use std::ops::Range;
use std::str::from_utf8;

use arrow_buffer::{ArrowNativeType, Buffer};
use arrow_data::{ArrayData, ByteView, MAX_INLINE_VIEW_LEN};
use arrow_schema::{ArrowError, DataType};

use crate::kernel::lists::{is_ascii, never_decrease};

type Checked = Result<(), String>;

fn malformed(data_type: &DataType, reason: &str) -> Checked {
    Err(format!("the Arrow data is malformed: {reason} in a column of type {data_type}"))
}

/// Validates the offsets, views, indices and text of a column and its children.
pub fn check_values(data: &ArrayData) -> Checked {
    check(data, 0..data.len())
}

/// Validates a range of rows, at a cost proportional to the rows.
fn check(data: &ArrayData, rows: Range<usize>) -> Checked {
    if rows.is_empty() {
        return Ok(());
    }
    match data.data_type() {
        DataType::Binary => check_span::<i32>(data, rows, 1).map(drop),
        DataType::LargeBinary => check_span::<i64>(data, rows, 1).map(drop),
        DataType::Utf8 => check_text::<i32>(data, rows),
        DataType::LargeUtf8 => check_text::<i64>(data, rows),
        DataType::BinaryView | DataType::Utf8View => check_views(data, rows),
        DataType::List(_) | DataType::Map(..) => check(child(data)?, check_span::<i32>(data, rows, 0)?),
        DataType::LargeList(_) => check(child(data)?, check_span::<i64>(data, rows, 0)?),
        DataType::Struct(_) => {
            let rows = data.offset() + rows.start..data.offset() + rows.end;
            data.child_data().iter().try_for_each(|child| match rows.end <= child.len() {
                true => check(child, rows.clone()),
                false => malformed(data.data_type(), "a child has fewer rows than its parent"),
            })
        }
        // Types that operations rarely read, or only pass on.
        DataType::Dictionary(..)
        | DataType::FixedSizeList(..)
        | DataType::ListView(_)
        | DataType::LargeListView(_)
        | DataType::RunEndEncoded(..)
        | DataType::Union(..) => {
            let valid = data.slice(rows.start, rows.len()).validate_full();
            valid.map_err(|error| match error {
                ArrowError::InvalidArgumentError(text) => format!("the Arrow data is malformed: {text}"),
                other => format!("the Arrow data is malformed: {other}"),
            })
        }
        _ => Ok(()),
    }
}

fn child(data: &ArrayData) -> Result<&ArrayData, String> {
    data.child_data().first().ok_or_else(|| format!("a column of type {} has no child", data.data_type()))
}

/// Returns the range of bytes or elements of rows. Their offsets must not decrease or exceed the buffer or the child.
fn check_span<O: ArrowNativeType + PartialOrd>(
    data: &ArrayData,
    rows: Range<usize>,
    values: usize,
) -> Result<Range<usize>, String> {
    let offsets = offsets::<O>(data, &rows)?;
    let len = if values == 0 { child(data)?.len() } else { data.buffers()[values].len() };
    // `to_usize` rejects negative offsets.
    let (first, last) = (offsets[0].to_usize(), offsets[offsets.len() - 1].to_usize());
    match (first, last) {
        (Some(first), Some(last)) if last <= len && never_decrease(offsets) => Ok(first..last),
        _ => Err(malformed(data.data_type(), "offsets decrease or end outside of the values").unwrap_err()),
    }
}

fn offsets<'a, O: ArrowNativeType>(data: &'a ArrayData, rows: &Range<usize>) -> Result<&'a [O], String> {
    let range = data.offset() + rows.start..data.offset() + rows.end + 1;
    let offsets = data.buffers().first().and_then(|buffer| buffer.typed_data::<O>().get(range));
    offsets.ok_or_else(|| malformed(data.data_type(), "offsets are missing").unwrap_err())
}

fn check_text<O: ArrowNativeType + PartialOrd>(data: &ArrayData, rows: Range<usize>) -> Checked {
    let span = check_span::<O>(data, rows.clone(), 1)?;
    let (values, start) = (&data.buffers()[1][span.clone()], span.start);
    let not_text = || malformed(data.data_type(), "text is not UTF-8");
    if is_ascii(values) {
        return Ok(());
    }
    // Each text must begin and end at a character boundary.
    let Ok(text) = from_utf8(values) else { return not_text() };
    let is_between = |offset: &O| text.is_char_boundary(offset.as_usize() - start);
    if offsets::<O>(data, &rows)?.iter().all(is_between) { Ok(()) } else { not_text() }
}

fn check_views(data: &ArrayData, rows: Range<usize>) -> Checked {
    const INLINE: usize = MAX_INLINE_VIEW_LEN as usize;
    let range = data.offset() + rows.start..data.offset() + rows.end;
    let (Some(views), buffers) = (data.buffers()[0].typed_data::<u128>().get(range), &data.buffers()[1..]) else {
        return malformed(data.data_type(), "views are missing");
    };
    let is_text = *data.data_type() == DataType::Utf8View;
    let is_inside = |view: &u128| {
        let ByteView { length, buffer_index, offset, .. } = ByteView::from(*view);
        let holds = |buffer: &Buffer| u64::from(offset) + u64::from(length) <= buffer.len() as u64;
        length <= MAX_INLINE_VIEW_LEN || buffers.get(buffer_index as usize).is_some_and(holds)
    };
    if !is_text && views.iter().all(is_inside) {
        return Ok(());
    }
    for (view, row) in views.iter().zip(rows) {
        let ByteView { length, buffer_index, offset, .. } = ByteView::from(*view);
        let (len, start) = (length as usize, offset as usize);
        let bytes = view.to_le_bytes();
        let value = match len {
            0..=INLINE => Some(&bytes[4..4 + len]),
            _ => buffers.get(buffer_index as usize).and_then(|buffer| buffer.get(start..start + len)),
        };
        let is_right = value.is_some_and(|value| !is_text || from_utf8(value).is_ok());
        // The view of a null is not read.
        if !is_right && data.nulls().is_none_or(|nulls| nulls.is_valid(row)) {
            return malformed(data.data_type(), "a view is outside of its buffer, or not UTF-8");
        }
    }
    Ok(())
}
