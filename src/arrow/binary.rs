//! Conversion of growing columns of bytes, views and validity to Arrow arrays.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, BinaryArray, BinaryViewArray, StringArray, StringViewArray};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};

use super::input::Bytes;
use crate::kernel::bitmap::Validity;
use crate::kernel::buffer::{BinaryValues, Utf8};
use crate::kernel::lists::{Offsets, never_decrease};
use crate::kernel::views::{ViewParts, Views, Window};

fn parts(values: BinaryValues) -> (OffsetBuffer<i32>, Buffer) {
    let (offsets, bytes) = values.into_parts();
    debug_assert!(offsets[0] == 0 && offsets.is_sorted());
    // SAFETY: the offsets begin with 0 and are lengths of bytes that only grew between them.
    let offsets = unsafe { OffsetBuffer::new_unchecked(ScalarBuffer::from(offsets)) };
    (offsets, Buffer::from_vec(bytes))
}

/// Offsets of a range of a column. Kernels do not check them again.
pub fn offsets(buffer: &OffsetBuffer<i32>, range: Range<usize>) -> Offsets<'_> {
    // SAFETY: the offsets of an `OffsetBuffer` are not negative and never decrease.
    unsafe { Offsets::new_unchecked(buffer, range) }
}

/// Offsets of lists with these ends, after a first offset of 0.
pub fn list_offsets(ends: Vec<i32>) -> OffsetBuffer<i32> {
    assert!(ends.first() == Some(&0) && never_decrease(&ends), "lists end where they begin or later");
    // SAFETY: the assertion above.
    unsafe { OffsetBuffer::new_unchecked(ScalarBuffer::from(ends)) }
}

/// Returns a column of text.
pub fn text(values: Utf8<BinaryValues>, nulls: Option<NullBuffer>) -> ArrayRef {
    text_of(parts(values.into_inner()), nulls)
}

/// Returns a column of names. An empty name becomes null, and so does a name that is null in `nulls`.
pub fn names(names: Utf8<BinaryValues>, nulls: Option<&NullBuffer>) -> ArrayRef {
    let parts = parts(names.into_inner());
    let has_name = |len| len > 0;
    let nulls = match parts.0.lengths().all(has_name) {
        true => nulls.cloned(),
        false => NullBuffer::union(nulls, Some(&parts.0.lengths().map(has_name).collect())),
    };
    text_of(parts, nulls)
}

fn text_of((offsets, bytes): (OffsetBuffer<i32>, Buffer), nulls: Option<NullBuffer>) -> ArrayRef {
    debug_assert!(StringArray::try_new(offsets.clone(), bytes.clone(), nulls.clone()).is_ok());
    assert!(nulls.as_ref().is_none_or(|nulls| nulls.len() == offsets.len() - 1), "one bit for each value");
    // SAFETY: each value of `Utf8` is text, and the last offset is the number of bytes.
    Arc::new(unsafe { StringArray::new_unchecked(offsets, bytes, nulls) })
}

/// Returns a column of bytes.
pub fn binary(values: BinaryValues, nulls: Option<NullBuffer>) -> ArrayRef {
    let (offsets, bytes) = parts(values);
    Arc::new(BinaryArray::new(offsets, bytes, nulls))
}

/// Returns the nulls of a column; `None` if it has none.
pub fn nulls(validity: Validity) -> Option<NullBuffer> {
    let count = validity.count();
    validity.into_bits().map(|words| NullBuffer::new(BooleanBuffer::new(Buffer::from_vec(words), 0, count)))
}

/// The buffers that views of a column's values may refer to.
#[derive(Clone, Default)]
pub struct ViewInput {
    buffers: Vec<Buffer>,
    windows: Arc<[Window]>,
}

impl ViewInput {
    pub fn new(bytes: Bytes<'_>) -> Self {
        // Offsets have 31 bits, so that a larger buffer is divided into overlapping parts, one starting at every GiB.
        ViewInput::in_parts(bytes.buffers(), 1 << 30, 3 << 30)
    }

    fn in_parts(buffers: &[Buffer], step: usize, max: usize) -> Self {
        let part = |buffer: &Buffer, start| buffer.slice_with_length(start, (buffer.len() - start).min(max));
        let parts = |buffer| (0..Buffer::len(buffer)).step_by(step).map(move |start| part(buffer, start));
        let buffers: Vec<_> = buffers.iter().flat_map(parts).collect();
        let windows = Window::all(buffers.iter().map(Buffer::as_slice));
        ViewInput { buffers, windows }
    }

    /// Returns an empty column of binary views.
    pub fn views(&self) -> Views {
        Views::new(Arc::clone(&self.windows))
    }

    /// Returns an empty column of text views.
    pub fn text_views(&self) -> Utf8<Views> {
        Utf8::new(Arc::clone(&self.windows))
    }

    /// Returns the views and the buffers that they refer to.
    fn finish(&self, views: Views) -> (ScalarBuffer<u128>, Vec<Buffer>) {
        let ViewParts { mut views, own, windows, refers } = views.into_parts();
        assert!(Arc::ptr_eq(&windows, &self.windows), "views of another input");
        let mut buffers = if refers { self.buffers.clone() } else { Vec::new() };
        if !own.is_empty() {
            if !refers {
                // The buffers of the input are not kept, so that the only buffer has index 0.
                let number = (self.buffers.len() as u128) << 64;
                views.iter_mut().filter(|view| **view & u128::from(u32::MAX) > 12).for_each(|view| *view -= number);
            }
            buffers.push(Buffer::from_vec(own));
        }
        (ScalarBuffer::from(views), buffers)
    }

    /// Returns a column of text views.
    pub fn text(&self, views: Utf8<Views>, nulls: Option<NullBuffer>) -> ArrayRef {
        let (views, buffers) = self.finish(views.into_inner());
        debug_assert!(StringViewArray::try_new(views.clone(), buffers.clone(), nulls.clone()).is_ok());
        assert!(nulls.as_ref().is_none_or(|nulls| nulls.len() == views.len()), "one bit for each value");
        // SAFETY: views refer to the windows, which are those of these buffers in the same order, or to the last
        // buffer; `Utf8` contains only text.
        Arc::new(unsafe { StringViewArray::new_unchecked(views, buffers.into(), nulls) })
    }

    /// Returns a column of binary views.
    pub fn binary(&self, views: Views, nulls: Option<NullBuffer>) -> ArrayRef {
        let (views, buffers) = self.finish(views);
        debug_assert!(BinaryViewArray::try_new(views.clone(), buffers.clone(), nulls.clone()).is_ok());
        assert!(nulls.as_ref().is_none_or(|nulls| nulls.len() == views.len()), "one bit for each value");
        // SAFETY: as above.
        Arc::new(unsafe { BinaryViewArray::new_unchecked(views, buffers.into(), nulls) })
    }
}

#[cfg(test)]
#[path = "../../tests/rust/units/arrow_binary.rs"]
mod tests;
