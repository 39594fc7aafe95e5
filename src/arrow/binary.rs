//! Byte runs, views and validity as Arrow arrays.

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

/// The offsets of a column at some places, which kernels do not check again. An import checks no others.
pub fn offsets(buffer: &OffsetBuffer<i32>, range: Range<usize>) -> Offsets<'_> {
    // SAFETY: the offsets of an `OffsetBuffer` are not negative and never decrease.
    unsafe { Offsets::new_unchecked(buffer, range) }
}

/// The offsets of lists that end here, the first at 0.
pub fn list_offsets(ends: Vec<i32>) -> OffsetBuffer<i32> {
    assert!(ends.first() == Some(&0) && never_decrease(&ends), "lists end where they begin or later");
    // SAFETY: as was just seen.
    unsafe { OffsetBuffer::new_unchecked(ScalarBuffer::from(ends)) }
}

/// A column of text.
pub fn text(values: Utf8<BinaryValues>, nulls: Option<NullBuffer>) -> ArrayRef {
    let (offsets, bytes) = parts(values.into_inner());
    debug_assert!(StringArray::try_new(offsets.clone(), bytes.clone(), nulls.clone()).is_ok());
    assert!(nulls.as_ref().is_none_or(|nulls| nulls.len() == offsets.len() - 1), "one bit for each value");
    // SAFETY: `Utf8` has nothing but text, run by run, and the last offset is the number of bytes.
    Arc::new(unsafe { StringArray::new_unchecked(offsets, bytes, nulls) })
}

/// A column of bytes.
pub fn binary(values: BinaryValues, nulls: Option<NullBuffer>) -> ArrayRef {
    let (offsets, bytes) = parts(values);
    Arc::new(BinaryArray::new(offsets, bytes, nulls))
}

/// `None` where every place holds a value.
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
        // Offsets have 31 bits: of a larger buffer, views refer to parts that begin every GiB and overlap.
        ViewInput::in_parts(bytes.buffers(), 1 << 30, 3 << 30)
    }

    fn in_parts(buffers: &[Buffer], step: usize, max: usize) -> Self {
        let part = |buffer: &Buffer, start| buffer.slice_with_length(start, (buffer.len() - start).min(max));
        let parts = |buffer| (0..Buffer::len(buffer)).step_by(step).map(move |start| part(buffer, start));
        let buffers: Vec<_> = buffers.iter().flat_map(parts).collect();
        let windows = Window::all(buffers.iter().map(Buffer::as_slice));
        ViewInput { buffers, windows }
    }

    /// An empty column of views.
    pub fn views(&self) -> Views {
        Views::new(Arc::clone(&self.windows))
    }

    /// An empty column of views that are text.
    pub fn text_views(&self) -> Utf8<Views> {
        Utf8::new(Arc::clone(&self.windows))
    }

    /// The views and the buffers that they refer to.
    fn finish(&self, views: Views) -> (ScalarBuffer<u128>, Vec<Buffer>) {
        let ViewParts { mut views, own, windows, refers } = views.into_parts();
        assert!(Arc::ptr_eq(&windows, &self.windows), "views of another input");
        let mut buffers = if refers { self.buffers.clone() } else { Vec::new() };
        if !own.is_empty() {
            if !refers {
                // Nothing keeps the input alive: the only buffer has another number.
                let number = (self.buffers.len() as u128) << 64;
                views.iter_mut().filter(|view| **view & u128::from(u32::MAX) > 12).for_each(|view| *view -= number);
            }
            buffers.push(Buffer::from_vec(own));
        }
        (ScalarBuffer::from(views), buffers)
    }

    /// A column of text.
    pub fn text(&self, views: Utf8<Views>, nulls: Option<NullBuffer>) -> ArrayRef {
        let (views, buffers) = self.finish(views.into_inner());
        debug_assert!(StringViewArray::try_new(views.clone(), buffers.clone(), nulls.clone()).is_ok());
        assert!(nulls.as_ref().is_none_or(|nulls| nulls.len() == views.len()), "one bit for each value");
        // SAFETY: views refer to places in the windows, which are those of these buffers, in the same order, or to the
        // bytes after them; `Utf8` has nothing but text.
        Arc::new(unsafe { StringViewArray::new_unchecked(views, buffers.into(), nulls) })
    }

    /// A column of bytes.
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
