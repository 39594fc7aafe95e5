//! [`ListBlock`]: headers of list columns, as keys and values with 32-bit offsets, and the names of their types.

use std::ops::Range;

use super::keys::KeySet;
use super::layout::{Begin, IgnoreHeaders, RawHeader, WireLayout};
use super::scan::{RowVisitor, SelectHeaders, SelectedValues};
use super::{BYTES, COPY, ROWS, dispatch};
use crate::value_type::{MAX_NAME_LEN, ValueType};

/// Offsets that are not negative and never decrease in a range of indexes.
#[derive(Debug, Clone, Copy)]
pub struct Offsets<'a> {
    offsets: &'a [i32],
    range: (usize, usize),
}

impl<'a> Offsets<'a> {
    /// # Safety
    ///
    /// Offsets are not negative and never decrease from `range.start` to `range.end`, inclusive. The offsets of an
    /// empty range are not read.
    pub unsafe fn new_unchecked(offsets: &'a [i32], range: Range<usize>) -> Self {
        debug_assert!(range.is_empty() || offsets[range.start] >= 0 && offsets[range.start..=range.end].is_sorted());
        Offsets { offsets, range: (range.start, range.end) }
    }

    fn covers(self, range: &Range<usize>) -> bool {
        self.range.0 <= range.start && range.end <= self.range.1
    }
}

/// Byte strings and their offsets.
#[derive(Debug, Clone, Copy)]
pub struct Strings<'a> {
    pub offsets: Offsets<'a>,
    pub bytes: &'a [u8],
}

/// Bitmap over the elements of a column, the first in the lowest bit. A bit is set unless the element is null.
#[derive(Debug, Clone, Copy)]
pub struct Bits<'a> {
    pub bytes: &'a [u8],
    /// Number of the bit of the first element.
    pub offset: usize,
}

impl Bits<'_> {
    fn covers(self, count: usize) -> bool {
        self.offset.checked_add(count).is_some_and(|bits| bits.div_ceil(8) <= self.bytes.len())
    }

    /// # Safety
    ///
    /// `covers(index + 1)` is true.
    #[inline(always)]
    unsafe fn get(self, index: usize) -> bool {
        let bit = self.offset + index;
        // SAFETY: the caller's contract.
        unsafe { *self.bytes.get_unchecked(bit / 8) >> (bit % 8) & 1 == 1 }
    }
}

/// Names of types, and which headers have one; `None` if all have.
#[derive(Debug, Clone, Copy)]
pub struct Names<'a> {
    pub names: Strings<'a>,
    pub has_type: Option<Bits<'a>>,
}

/// Columns of the headers of all rows. No key is null.
#[derive(Debug, Clone, Copy)]
pub struct Columns<'a> {
    /// The types of keys, if keys have types.
    key_types: Option<Names<'a>>,
    keys: Strings<'a>,
    /// The types of values, if values have types.
    types: Option<Names<'a>>,
    values: Strings<'a>,
    /// Bitmap of the non-null values; `None` if none is null.
    has_value: Option<Bits<'a>>,
    /// Indexes of the headers that rows may refer to.
    range: (usize, usize),
}

impl<'a> Columns<'a> {
    /// Returns the headers in `range`; `None` if a bitmap or offsets of keys or values do not cover it.
    pub fn new(
        key_types: Option<Names<'a>>,
        keys: Strings<'a>,
        types: Option<Names<'a>>,
        values: Strings<'a>,
        has_value: Option<Bits<'a>>,
        range: Range<usize>,
    ) -> Option<Self> {
        let bits = [has_value, key_types.and_then(|names| names.has_type), types.and_then(|names| names.has_type)];
        let is_covered = bits.into_iter().flatten().all(|bits| bits.covers(range.end))
            && [keys, values].iter().all(|strings| strings.offsets.covers(&range));
        is_covered.then_some(Columns { key_types, keys, types, values, has_value, range: (range.start, range.end) })
    }

    /// Number of bytes of the keys and values from `first` to `last`, if kernels can read them: the range of these
    /// columns contains them, and `COPY` bytes follow the last key and the last value.
    fn byte_len(&self, first: usize, last: usize) -> Option<usize> {
        if first < self.range.0 || last > self.range.1 {
            return None;
        }
        Some(self.keys.byte_len(first, last)? + self.values.byte_len(first, last)?)
    }
}

impl Strings<'_> {
    /// Number of bytes of a range of strings, under the conditions of `Columns::byte_len`.
    fn byte_len(self, first: usize, last: usize) -> Option<usize> {
        if first >= last {
            // The offsets of an empty range were not checked.
            return (first == last).then_some(0);
        }
        let offsets = self.offsets.offsets;
        let (start, end) = (*offsets.get(first)? as usize, *offsets.get(last)? as usize);
        (end + COPY <= self.bytes.len()).then(|| end - start)
    }

    /// Returns the type whose name is a string.
    #[inline(always)]
    fn type_of(self, index: usize) -> Option<ValueType> {
        let &[start, end] = self.offsets.offsets.get(index..index + 2)? else { return None };
        let name = self.bytes.get(usize::try_from(start).ok()?..)?.first_chunk::<MAX_NAME_LEN>()?;
        ValueType::from_padded(*name, usize::try_from(end.checked_sub(start)?).ok()?)
    }

    /// Start and length of a string.
    ///
    /// # Safety
    ///
    /// `byte_len` has accepted a range that contains `index`.
    #[inline(always)]
    unsafe fn get(self, index: usize) -> (*const u8, usize) {
        let offsets = self.offsets.offsets;
        // SAFETY: `byte_len` checked that the offsets exist, and that the last one is within the bytes. `Columns::new`
        // checked that offsets are not negative and never decrease.
        unsafe {
            let (start, end) = (*offsets.get_unchecked(index), *offsets.get_unchecked(index + 1));
            (self.bytes.as_ptr().add(start as usize), (end - start) as usize)
        }
    }
}

/// The rows of a list column in one call of a kernel, and the columns of their headers.
pub struct ListBlock<'a> {
    columns: Columns<'a>,
    /// Indexes of the first header of each row, and the end of the last row. They never decrease, and
    /// `Columns::byte_len` has accepted the range from the first to the last.
    ends: [usize; ROWS + 1],
    /// Bitmask over the rows without a list.
    nulls: u64,
    len: usize,
    bytes: usize,
}

impl<'a> ListBlock<'a> {
    pub fn new(columns: Columns<'a>) -> Self {
        ListBlock { columns, ends: [0; ROWS + 1], nulls: 0, len: 0, bytes: 0 }
    }

    /// Adds the rows between these offsets, from the first on, while kernels can read the block. Returns the number of
    /// added rows.
    #[inline]
    pub fn fill<O: Copy>(&mut self, offsets: &[O], nulls: u64, to_index: impl Fn(O) -> usize) -> usize {
        // The block is emptied first, so that a panic of `to_index` does not leave the ends of other rows.
        self.len = 0;
        let mut rows = offsets.len().saturating_sub(1).min(ROWS);
        self.ends.iter_mut().zip(&offsets[..rows + 1]).for_each(|(end, offset)| *end = to_index(*offset));
        if !self.ends[..rows + 1].is_sorted() {
            rows = 0;
        }
        self.nulls = nulls;
        self.bytes = loop {
            match self.columns.byte_len(self.ends[0], self.ends[rows]) {
                Some(bytes) if rows > 0 && (rows == 1 || bytes <= BYTES) => break bytes,
                _ if rows > 1 => rows /= 2,
                _ => {
                    rows = 0;
                    break 0;
                }
            }
        };
        self.len = rows;
        rows
    }

    pub fn row_count(&self) -> usize {
        self.len
    }

    /// Number of bytes of all keys and values.
    pub fn byte_len(&self) -> usize {
        self.bytes
    }

    pub fn header_count(&self) -> usize {
        self.ends[self.len] - self.ends[0]
    }

    /// Whether values have a column of types.
    pub fn has_types(&self) -> bool {
        self.columns.types.is_some()
    }

    /// Whether keys or values have a column of types.
    pub fn is_typed(&self) -> bool {
        self.columns.key_types.is_some() || self.has_types()
    }

    /// Passes the headers of each row to `visit`, and returns the number of rows before the first that is unreadable or
    /// that `visit` rejects. `F` specifies whether keys and values may have types.
    ///
    /// # Safety
    ///
    /// `visit` was created for these rows.
    #[inline(always)]
    pub(super) unsafe fn for_each_row<F: WireLayout, V: RowVisitor<'a>>(&self, visit: &mut V) -> usize {
        // A local copy: the compiler knows that stores of the visitor do not change it.
        let columns = self.columns;
        for row in 0..self.len {
            let (first, last) = (self.ends[row], self.ends[row + 1]);
            // SAFETY: the caller's contract; `byte_len` has accepted the rows, and the columns live for `'a`.
            let is_whole = unsafe {
                match self.nulls >> row & 1 {
                    0 => {
                        visit.begin(Begin { offset: 0, count: Some(last - first) });
                        let mut is_whole = true;
                        for index in first..last {
                            // Only a type can make a header unreadable.
                            if !F::TYPED && !F::TYPED_KEYS && visit.skips(columns.keys.get(index).1) {
                                continue;
                            }
                            is_whole = columns.header::<F>(index).is_some_and(|header| visit.header(row, header));
                            if !is_whole {
                                break;
                            }
                        }
                        is_whole && visit.end()
                    }
                    _ => visit.null(),
                }
            };
            if !is_whole {
                return row;
            }
        }
        self.len
    }
}

impl Columns<'_> {
    /// Returns the header at an index; `None` if it needs the slow path.
    ///
    /// # Safety
    ///
    /// `byte_len` has accepted a range that contains `index`.
    #[inline(always)]
    unsafe fn header<F: WireLayout>(self, index: usize) -> Option<RawHeader> {
        let Columns { key_types, keys, types, values, has_value, .. } = self;
        // SAFETY: the caller's contract; `COPY` bytes follow the last key and value of the row, and all before them.
        unsafe {
            let ((key, key_len), (value, value_len)) = (keys.get(index), values.get(index));
            let is_null = has_value.is_some_and(|bits| !bits.get(index));
            let key_type = if F::TYPED_KEYS { type_of(key_types, index).ok()? } else { None };
            let value_type = if F::TYPED { type_of(types, index).ok()? } else { None };
            let value_len = if is_null { 0 } else { value_len };
            Some(RawHeader { key, key_len, key_type, value, value_len, is_null, value_type })
        }
    }
}

/// Error of a row that needs the slow path.
struct SlowPath;

/// Returns the type of a header, if it has one.
///
/// # Safety
///
/// `index` is in the range of the columns.
#[inline(always)]
unsafe fn type_of(names: Option<Names<'_>>, index: usize) -> Result<Option<ValueType>, SlowPath> {
    let Some(Names { names, has_type }) = names else { return Ok(None) };
    // SAFETY: `Columns::new` checked that the bits cover the range.
    if has_type.is_some_and(|bits| unsafe { !bits.get(index) }) {
        return Ok(None);
    }
    names.type_of(index).map(Some).ok_or(SlowPath)
}

dispatch! {
    /// Whether offsets never decrease. The loop has no early exit, and is limited by the speed of memory.
    pub fn never_decrease<O: PartialOrd>(offsets: &[O]) -> bool {
        let steps = offsets.iter().zip(offsets.get(1..).unwrap_or_default());
        steps.fold(0, |signs, (start, end)| signs | i32::from(start > end)) == 0
    }
}

dispatch! {
    /// Like `[u8]::is_ascii`, but without an early exit, for text that is nearly always ASCII.
    pub fn is_ascii<>(bytes: &[u8]) -> bool {
        bytes.iter().fold(0, |all, byte| all | byte) < 0x80
    }
}

dispatch! {
    /// Reads rows up to the first that needs the slow path, and returns the number of rows before it.
    pub fn validate<F: WireLayout>(lists: &ListBlock<'_>) -> usize {
        match lists.columns {
            // Only the offsets of columns without types can be wrong, and the caller's library has checked these
            // offsets.
            Columns { key_types: None, types: None, .. } => lists.len,
            // SAFETY: the visitor keeps nothing.
            _ => unsafe { lists.for_each_row::<F, _>(&mut IgnoreHeaders) },
        }
    }
}

dispatch! {
    /// Like `validate`, but also collects the values of the requested keys in `selected`, which must be empty.
    pub fn select<'a, F: WireLayout>(lists: &ListBlock<'a>, keys: &KeySet, selected: &mut SelectedValues<'a>) -> usize {
        // SAFETY: the visitor keeps values in memory that grows.
        unsafe { lists.for_each_row::<F, _>(&mut SelectHeaders::<F>::new(keys, selected)) }
    }
}
