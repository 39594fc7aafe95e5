//! [`WireLayout`]: finds the key and the value of a header, and writes headers. Each layout with kernels implements it.

use super::{Span, fetch_ahead};
use crate::value::ByteOrder;
use crate::value_type::{Scalar, ValueType};

/// Type of text keys, in layouts with typed keys.
pub const TEXT: ValueType = ValueType::Named(Scalar::String);

/// The offsets of the key and the value of a header without types, from its first byte.
pub struct HeaderOffsets {
    pub key: usize,
    pub key_len: usize,
    pub value: usize,
    pub value_len: usize,
    pub is_null: bool,
}

/// A header that a kernel has found.
#[derive(Clone, Copy)]
pub struct RawHeader {
    pub(super) key: *const u8,
    pub(super) key_len: usize,
    pub(super) key_type: Option<ValueType>,
    pub(super) value: *const u8,
    pub(super) value_len: usize,
    pub(super) is_null: bool,
    pub(super) value_type: Option<ValueType>,
}

impl RawHeader {
    #[inline(always)]
    pub(super) fn untyped(key: *const u8, key_len: usize, value: *const u8, value_len: usize, is_null: bool) -> Self {
        RawHeader { key, key_len, key_type: None, value, value_len, is_null, value_type: None }
    }

    /// End of the header, where the next one begins.
    #[inline(always)]
    pub(super) fn end(&self) -> *const u8 {
        self.value.wrapping_add(self.value_len)
    }
}

/// Rules of a writer for headers that its layout cannot hold unchanged.
#[derive(Debug, Clone, Copy, Default)]
pub struct Rules {
    /// Type for values without one.
    pub default_type: Option<ValueType>,
    /// Byte order of numbers in an untyped layout, if the caller accepts the loss of their types.
    pub untyped: Option<ByteOrder>,
    /// Drops null values, and keys and values of a length that the layout does not support.
    pub drops: bool,
    /// Leaves rows without a list to the slow path, which rejects them.
    pub refuses_nulls: bool,
    /// Maximum number of bytes of the headers of a row.
    pub max_bytes: usize,
}

/// Receives each header of a row once. If a function returns false, the row is left to the slow path.
///
/// A layout calls the visitor in each of its branches, so that the result of a test is not stored and tested again.
pub trait HeaderVisitor {
    /// Receives a header without types, with a key and a value of at most 63 bytes each, so that one copy suffices for
    /// either. A null has no bytes.
    ///
    /// # Safety
    ///
    /// The visitor was created for a row that has this header, and receives the header once. Key and value are in that
    /// row, with `SLACK` bytes after it.
    unsafe fn short(&mut self, key: *const u8, key_len: usize, value: *const u8, value_len: usize, null: bool) -> bool;

    /// Receives any other header.
    ///
    /// # Safety
    ///
    /// As for `short`.
    unsafe fn long(&mut self, header: RawHeader) -> bool;
}

/// The beginning of a row.
#[derive(Clone, Copy)]
pub struct Begin {
    /// Offset of the first header in the row.
    pub offset: usize,
    /// Number of headers, if the layout has a count.
    pub count: Option<usize>,
}

/// Names of the layouts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LayoutName {
    Varint,
    /// With types of keys and of values.
    Iggy,
    /// With types of values.
    Iggy2023,
    /// Layout that kernels only write.
    Kip82,
    NoKernels,
}

/// A layout as a value, for code that is compiled once for all layouts.
#[derive(Debug, Clone, Copy)]
pub struct Layout {
    pub name: LayoutName,
    pub typed: bool,
    pub typed_keys: bool,
    pub min_len: usize,
    pub max_count: usize,
    pub max_framing: usize,
}

impl Layout {
    /// Whether kernels read this layout.
    pub const fn is_readable(self) -> bool {
        matches!(self.name, LayoutName::Varint | LayoutName::Iggy | LayoutName::Iggy2023)
    }

    /// Whether kernels write this layout.
    pub const fn is_writable(self) -> bool {
        !matches!(self.name, LayoutName::NoKernels)
    }

    /// A layout with the same types that kernels read, for headers of list columns.
    pub const fn of_lists(self) -> LayoutName {
        match (self.typed, self.typed_keys) {
            (false, _) => LayoutName::Varint,
            (true, true) => LayoutName::Iggy,
            (true, false) => LayoutName::Iggy2023,
        }
    }
}

/// A layout of headers.
///
/// # Safety
///
/// Kernels copy the headers of `header` and `irregular`, and write where `write` may write, without another check.
/// `header` passes the visitor one header at most, and none if it returns `None` for another reason than a rejection by
/// the visitor. Key and value of each header are inside the row: `key + key_len <= value` and
/// `value + value_len <= end`. Keys and values of short headers have at most 63 bytes each. A header takes at least
/// `MIN_LEN` bytes, and neither the key nor the value has more bytes than its header.
///
/// A layout that kernels do not read omits `begin` and `header`; a layout that kernels do not write omits `write_count`
/// and `write`.
pub unsafe trait WireLayout: 'static {
    const NAME: LayoutName;
    /// Whether values have types.
    const TYPED: bool = false;
    const TYPED_KEYS: bool = false;
    /// Minimum length of a header.
    const MIN_LEN: usize = 1;
    /// Maximum length of the count before the headers of a row, and of the framing around a key and a value.
    const MAX_COUNT: usize = 0;
    const MAX_FRAMING: usize = 0;
    /// The layout as a value.
    const LAYOUT: Layout = Layout {
        name: Self::NAME,
        typed: Self::TYPED,
        typed_keys: Self::TYPED_KEYS,
        min_len: Self::MIN_LEN,
        max_count: Self::MAX_COUNT,
        max_framing: Self::MAX_FRAMING,
    };

    /// Returns the beginning of a row; `None` if the row is unreadable.
    ///
    /// # Safety
    ///
    /// `start` is the first byte of a row of `len` bytes with `SLACK` bytes after it.
    #[inline(always)]
    unsafe fn begin(_start: *const u8, _len: usize) -> Option<Begin> {
        None
    }

    /// Passes the header at `start` to `visitor`, and returns the start of the next one; `None` if it is not a regular
    /// header inside the row, or if `visitor` rejects it. (With a variant for each of the two,
    /// `decode` takes 12 more instructions a header.)
    ///
    /// # Safety
    ///
    /// `start` is in the row or at its end, which has `SLACK` bytes after it. A header that begins at the end is not
    /// inside the row. The visitor was created for this row, and this header was not passed to it before.
    #[inline(always)]
    unsafe fn header<T: HeaderVisitor>(_start: *const u8, _end: *const u8, _visitor: &mut T) -> Option<*const u8> {
        None
    }

    /// Parses an irregular header, at the start of the rest of its row; `None` if the row is unreadable.
    #[inline(always)]
    fn irregular(_rest: &[u8]) -> Option<HeaderOffsets> {
        None
    }

    /// Writes the count of headers, and returns the number of written bytes.
    ///
    /// # Safety
    ///
    /// `MAX_COUNT` bytes are writable.
    #[inline(always)]
    unsafe fn write_count(_to: *mut u8, _headers: usize) -> usize {
        0
    }

    /// Writes a header, and returns the number of written bytes; `None` if the row needs the slow path.
    ///
    /// # Safety
    ///
    /// The key, the value, `MAX_FRAMING` and `COPY` bytes are writable. At the key and at the value, the length of
    /// each, rounded up to a multiple of `COPY`, and at least `COPY` bytes, are readable.
    #[inline(always)]
    unsafe fn write(_to: *mut u8, _header: &RawHeader, _rules: Rules) -> Option<usize> {
        None
    }
}

/// Visitor that accepts every header and keeps nothing.
pub(super) struct IgnoreHeaders;

impl HeaderVisitor for IgnoreHeaders {
    #[inline(always)]
    unsafe fn short(&mut self, _: *const u8, _: usize, _: *const u8, _: usize, _: bool) -> bool {
        true
    }

    #[inline(always)]
    unsafe fn long(&mut self, _: RawHeader) -> bool {
        true
    }
}

/// Passes the headers of a row to `visitor`. Returns false if the row is unreadable or has more headers than `limit`;
/// some of them may have been passed.
///
/// # Safety
///
/// `begin` was returned by `F::begin` for this row, and the visitor was created for it.
#[inline(always)]
pub(super) unsafe fn for_each_header<F: WireLayout, T: HeaderVisitor>(
    row: Span<'_>,
    begin: Begin,
    limit: usize,
    visitor: &mut T,
) -> bool {
    let Begin { offset, count } = begin;
    if count.is_some_and(|count| count > limit) {
        return false;
    }
    let (mut start, end) = (row.start().wrapping_add(offset), row.end());
    // A count, if any, ends the loop. The count is compared long before the lengths that lead to the end of the row are
    // known, so that a wrong prediction of the last header costs less.
    let mut left = count.unwrap_or(limit);
    loop {
        while left > 0 && (count.is_some() || start < end) {
            // SAFETY: `Span` has `SLACK` bytes after the row, and `start` is the start of the row or the end of a
            // header.
            match unsafe { F::header(start, end, visitor) } {
                Some(next) => (start, left) = (next, left - 1),
                None => break,
            }
        }
        if left == 0 || count.is_none() && start == end {
            return start == end;
        }
        // SAFETY: as above.
        match unsafe { irregular::<F>(row, start) } {
            // SAFETY: as above; a layout finds keys and values inside the row.
            Some(header) if unsafe { visitor.long(header) } => (start, left) = (header.end(), left - 1),
            _ => return false,
        }
    }
}

/// Parses the header at `start` after [`WireLayout::header`] returned `None`. Returns `None` if the row is unreadable,
/// and if the header is regular: then the visitor has rejected it, and it must not be passed again.
///
/// # Safety
///
/// As for [`WireLayout::header`].
#[cold]
#[inline(never)]
unsafe fn irregular<F: WireLayout>(row: Span<'_>, start: *const u8) -> Option<RawHeader> {
    // SAFETY: the caller's contract.
    if unsafe { F::header(start, row.end(), &mut IgnoreHeaders) }.is_some() {
        return None;
    }
    let HeaderOffsets { key, key_len, value, value_len, is_null } =
        F::irregular(row.bytes().get(start.addr() - row.start().addr()..)?)?;
    Some(RawHeader::untyped(start.wrapping_add(key), key_len, start.wrapping_add(value), value_len, is_null))
}

/// Layout of formats without kernels, which the slow path reads and writes.
pub struct NoKernels;

// SAFETY: this layout finds and writes no headers.
unsafe impl WireLayout for NoKernels {
    const NAME: LayoutName = LayoutName::NoKernels;
}

/// Passes the header at `start` to `visitor` if its value ends in the row.
///
/// # Safety
///
/// As for [`WireLayout::header`]; `header` was read at `start`, and its key and the start of its value are in the row
/// or in the `SLACK` bytes after it.
#[inline(always)]
pub(super) unsafe fn pass_long<T: HeaderVisitor>(
    start: *const u8,
    header: RawHeader,
    end: *const u8,
    visitor: &mut T,
) -> Option<*const u8> {
    fetch_ahead(header.value);
    let len = header.value.addr() - start.addr() + header.value_len;
    // SAFETY: the caller's contract covers the pointers, and the value ends within the row.
    let is_passed = len <= end.addr() - start.addr() && unsafe { visitor.long(header) };
    if is_passed { Some(header.end()) } else { None }
}
