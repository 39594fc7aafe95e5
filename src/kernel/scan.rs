//! [`validate`] and [`select`] scan the headers of a block of rows without copying them.

use std::marker::PhantomData;

use simdutf8::basic::from_utf8;

use super::buffer::{BinaryValues, Progress, Tail, Utf8, Values as _};
use super::keys::{Keep, KeySet, Requested};
use super::layout::{Begin, HeaderVisitor, IgnoreHeaders, RawHeader, TEXT, WireLayout, for_each_header};
use super::views::Views;
use super::{ROWS, RowBlock, Span, copy, copy_long, dispatch, has_high_bit};
use crate::memory;
use crate::number::length;
use crate::value_type::ValueType;

/// Value found by a kernel.
#[derive(Clone, Copy)]
pub struct RawValue<'a> {
    start: *const u8,
    len: i32,
    bytes: PhantomData<&'a [u8]>,
}

// SAFETY: a `RawValue` is a reference to bytes that live for `'a`.
unsafe impl Send for RawValue<'_> {}

/// Length of a null, and of a missing value.
const NULL: i32 = -1;
const MISSING: i32 = -2;

impl<'a> RawValue<'a> {
    /// Value of a row in which no header has the key.
    pub const MISSING: Self = RawValue { start: std::ptr::null(), len: MISSING, bytes: PhantomData };

    /// # Safety
    ///
    /// The bytes live for `'a`; rounded up to a multiple of `COPY`, and at least `COPY`, they are readable at `start`.
    #[inline(always)]
    pub unsafe fn new(start: *const u8, len: usize, is_null: bool) -> Self {
        RawValue { start, len: if is_null { NULL } else { length(len) }, bytes: PhantomData }
    }

    #[inline(always)]
    pub fn is_missing(self) -> bool {
        self.len == MISSING
    }

    /// The number of bytes; 0 for a null.
    #[inline(always)]
    pub(super) fn len(self) -> usize {
        self.len.max(0) as usize
    }

    /// The bytes; `None` for a null, or if no header has the key.
    #[inline(always)]
    pub fn bytes(self) -> Option<&'a [u8]> {
        // SAFETY: the caller of `new` guarantees that the bytes live for `'a`.
        usize::try_from(self.len).ok().map(|len| unsafe { std::slice::from_raw_parts(self.start, len) })
    }
}

/// Appends at most 64 values, without bytes for null or missing ones. Returns a bit for each value, which is set unless
/// it is null.
pub fn append(values: &[RawValue<'_>], progress: Progress, out: &mut BinaryValues) -> u64 {
    assert!(values.len() <= ROWS, "a word has a bit for each value");
    // At most 64 lengths of 31 bits each.
    let bytes: u64 = values.iter().map(|value| value.len() as u64).sum();
    let mut writer = out.writer(values.len(), usize::try_from(bytes).unwrap_or(usize::MAX), progress);
    let mut valid = 0;
    for (index, value) in values.iter().enumerate() {
        // SAFETY: the writer was made for all values, and has `COPY` bytes more. Values that are not null have as many
        // readable bytes as `RawValue::new` requires.
        unsafe {
            if value.len >= 0 {
                copy_long(value.start, writer.end(), value.len());
                valid |= 1 << index;
            }
            writer.end_value(value.len());
        }
    }
    valid
}

/// Like `append`, up to the first value that is not UTF-8; also returns the number of values before it.
pub fn append_text(values: &[RawValue<'_>], progress: Progress, out: &mut Utf8<BinaryValues>) -> (u64, usize) {
    let before = out.count();
    let valid = append(values, progress, &mut out.0);
    let done = out.first_not_text(before).map_or(values.len(), |index| index - before);
    out.truncate(before + done);
    (valid, done)
}

/// Appends views of values, like `append`.
pub fn append_views(values: &[RawValue<'_>], out: &mut Views) -> u64 {
    push_views(values, out, |_| true).0
}

/// Like `append_text`, for views.
pub fn append_text_views(values: &[RawValue<'_>], out: &mut Utf8<Views>) -> (u64, usize) {
    push_views(values, &mut out.0, |bytes| from_utf8(bytes).is_ok())
}

fn push_views(values: &[RawValue<'_>], out: &mut Views, is_accepted: impl Fn(&[u8]) -> bool) -> (u64, usize) {
    let mut valid = 0;
    for (index, value) in values.iter().enumerate() {
        let bytes = value.bytes();
        if !bytes.is_none_or(&is_accepted) {
            return (valid, index);
        }
        valid |= u64::from(bytes.is_some()) << index;
        out.push(bytes.unwrap_or_default());
    }
    (valid, values.len())
}

/// Value of a key with [`Keep::All`].
#[derive(Clone, Copy)]
pub struct SelectedValue<'a> {
    pub row: usize,
    /// Index of the requested key.
    pub index: usize,
    pub value: RawValue<'a>,
    pub value_type: Option<ValueType>,
}

/// Results of a select over a block.
#[derive(Default)]
pub struct SelectedValues<'a> {
    /// Lane of `ROWS` values for each key.
    lanes: Vec<RawValue<'a>>,
    /// Values of keys with [`Keep::All`], in the order of the headers.
    pub every: Vec<SelectedValue<'a>>,
}

impl<'a> SelectedValues<'a> {
    /// Empties the lanes, and creates one for each of this many keys.
    pub fn clear(&mut self, keys: usize) {
        self.lanes.clear();
        self.lanes.resize(keys.saturating_mul(ROWS), RawValue::MISSING);
        self.every.clear();
    }

    /// Values of a key, row by row.
    pub fn lane(&self, index: usize) -> &[RawValue<'a>] {
        &self.lanes[index * ROWS..][..ROWS]
    }
}

/// Receives headers row by row. A visitor that returns false leaves the row to the slow path.
///
/// A visitor is created for the rows of one block, and may have reserved memory for exactly these. Each row is passed
/// once: by `null`, or by `begin`, then `header` for each header that is not skipped, then `end`. After one of them
/// returned false, none is called again.
pub(super) trait RowVisitor<'a> {
    /// Receives a row without headers or a list of them.
    ///
    /// # Safety
    ///
    /// The visitor was created for this row, which was not passed to it before.
    unsafe fn null(&mut self) -> bool {
        true
    }

    /// Receives the beginning of a row.
    ///
    /// # Safety
    ///
    /// As for `null`.
    unsafe fn begin(&mut self, _begin: Begin) {}

    /// Whether headers whose keys have this length may be skipped.
    #[inline(always)]
    fn skips(&self, _key_len: usize) -> bool {
        false
    }

    /// Receives the next header of a row. `row` is its index in the block.
    ///
    /// # Safety
    ///
    /// The row has begun, and has this header, which follows those that were passed. Key and value live for `'a`. At
    /// each of them, its length, rounded up to a multiple of `COPY`, and at least `COPY` bytes, are readable.
    unsafe fn header(&mut self, row: usize, header: RawHeader) -> bool;

    /// # Safety
    ///
    /// The row has begun, and all of its headers were passed or skipped.
    unsafe fn end(&mut self) -> bool {
        true
    }
}

impl<'a> RowVisitor<'a> for IgnoreHeaders {
    #[inline(always)]
    unsafe fn header(&mut self, _row: usize, _header: RawHeader) -> bool {
        true
    }
}

pub(super) struct SelectHeaders<'k, 's, 'a, F> {
    keys: &'k KeySet,
    selected: &'s mut SelectedValues<'a>,
    layout: PhantomData<F>,
}

impl<'k, 's, 'a, F> SelectHeaders<'k, 's, 'a, F> {
    pub fn new(keys: &'k KeySet, selected: &'s mut SelectedValues<'a>) -> Self {
        SelectHeaders { keys, selected, layout: PhantomData }
    }
}

impl<'a, F: WireLayout> RowVisitor<'a> for SelectHeaders<'_, '_, 'a, F> {
    #[inline(always)]
    fn skips(&self, key_len: usize) -> bool {
        !self.keys.has_key_of_len(key_len)
    }

    #[inline(always)]
    unsafe fn header(&mut self, row: usize, header: RawHeader) -> bool {
        let SelectHeaders { keys, selected, .. } = self;
        let RawHeader { key, key_len, key_type, value, value_len, is_null, value_type } = header;
        // SAFETY: the caller's contract.
        unsafe {
            keys.find::<F>(key, key_len, key_type.or(Some(TEXT)), |requested| {
                selected.keep::<F>(row, requested, RawValue::new(value, value_len, is_null), value_type)
            })
        }
    }
}

impl<'a> SelectedValues<'a> {
    #[inline(always)]
    fn keep<F: WireLayout>(
        &mut self,
        row: usize,
        requested: &Requested,
        value: RawValue<'a>,
        value_type: Option<ValueType>,
    ) -> bool {
        if requested.keep == Keep::All {
            memory::push(&mut self.every, SelectedValue { row, index: requested.index, value, value_type });
            return true;
        }
        if F::TYPED && value_type != requested.value_type {
            return false;
        }
        let lane = &mut self.lanes[requested.index * ROWS + row];
        if requested.keep == Keep::Last || lane.is_missing() {
            *lane = value;
        }
        true
    }
}

/// Whether all types of a row have names, for readers that reject other types; false if the row is unreadable.
pub fn has_named_types<F: WireLayout>(row: Span<'_>, limit: usize) -> bool {
    if !F::TYPED {
        return true;
    }
    // SAFETY: `Span` has `SLACK` bytes after the row; the visitor keeps nothing.
    unsafe {
        F::begin(row.start(), row.len())
            .is_some_and(|begin| for_each_header::<F, _>(row, begin, limit, &mut RejectUnnamedTypes))
    }
}

struct RejectUnnamedTypes;

impl HeaderVisitor for RejectUnnamedTypes {
    #[inline(always)]
    unsafe fn short(&mut self, _: *const u8, _: usize, _: *const u8, _: usize, _: bool) -> bool {
        true
    }

    #[inline(always)]
    unsafe fn long(&mut self, header: RawHeader) -> bool {
        !matches!(header.key_type, Some(ValueType::Unnamed(_)))
            && !matches!(header.value_type, Some(ValueType::Unnamed(_)))
    }
}

/// Keys that may not be UTF-8, each followed by a byte that does not continue a character.
#[derive(Default)]
pub struct Scratch(Vec<u8>);

dispatch! {
    /// Reads rows up to the first that is unreadable or has more than `limit` headers, and returns the number of rows
    /// before it.
    pub fn validate<F: WireLayout>(block: &RowBlock<'_>, limit: usize, scratch: &mut Scratch) -> usize {
        // SAFETY: the visitor keeps nothing.
        unsafe { scan_block::<F, _>(block, limit, scratch, &mut IgnoreHeaders) }
    }
}

dispatch! {
    /// Like `validate`, but also collects the values of the requested keys in `selected`, which must be empty.
    pub fn select<'a, F: WireLayout>(
        block: &RowBlock<'a>,
        limit: usize,
        scratch: &mut Scratch,
        keys: &KeySet,
        selected: &mut SelectedValues<'a>,
    ) -> usize {
        // SAFETY: the visitor keeps values in memory that grows.
        unsafe { scan_block::<F, _>(block, limit, scratch, &mut SelectHeaders::<F>::new(keys, selected)) }
    }
}

/// Passes the headers of rows to `visit`, up to the first row that is unreadable or that `visit` rejects; returns the
/// number of rows before it. Headers of later rows may have been visited if a key is not UTF-8.
///
/// # Safety
///
/// `visit` was created for this block.
#[inline(always)]
pub(super) unsafe fn scan_block<'a, F: WireLayout, V: RowVisitor<'a>>(
    block: &RowBlock<'a>,
    limit: usize,
    scratch: &mut Scratch,
    visit: &mut V,
) -> usize {
    scratch.0.clear();
    let bytes = if F::TYPED_KEYS { 0 } else { block.byte_len() };
    let mut odd_keys = Tail::new(&mut scratch.0, bytes);
    let mut done = block.rows().len();
    for (index, row) in block.rows().iter().enumerate() {
        // SAFETY: the keys of the block, with a byte after each, have at most as many bytes as the block; the caller's
        // contract.
        let is_whole = unsafe {
            match row {
                Some(row) => scan_row::<F, V>(index, *row, limit, &mut odd_keys, visit),
                None => visit.null(),
            }
        };
        if !is_whole {
            done = index;
            break;
        }
    }
    if !F::TYPED_KEYS && from_utf8(odd_keys.since(0)).is_err() {
        let has_text = |row: &Option<Span<'_>>| row.is_none_or(|row| keys_are_text::<F>(row));
        done = block.rows()[..done].iter().position(|row| !has_text(row)).unwrap_or(done);
    }
    done
}

/// # Safety
///
/// `odd_keys` has room for the keys of the row and a byte after each; `visit` was created for the row.
#[inline(always)]
unsafe fn scan_row<'a, F: WireLayout, V: RowVisitor<'a>>(
    index: usize,
    row: Span<'a>,
    limit: usize,
    odd_keys: &mut Tail<'_>,
    visit: &mut V,
) -> bool {
    // SAFETY: `Span` has `SLACK` bytes after the row; the caller's contract.
    unsafe {
        let Some(begin) = F::begin(row.start(), row.len()) else { return false };
        visit.begin(begin);
        let mut scan = Scan { index, odd_keys, visit, bytes: PhantomData::<(&'a [u8], F)> };
        for_each_header::<F, _>(row, begin, limit, &mut scan) && scan.visit.end()
    }
}

/// Passes the headers of a row to the visitor of rows, and keeps keys that may not be UTF-8.
struct Scan<'s, 't, 'a, F, V> {
    index: usize,
    odd_keys: &'s mut Tail<'t>,
    visit: &'s mut V,
    bytes: PhantomData<(&'a [u8], F)>,
}

impl<'a, F: WireLayout, V: RowVisitor<'a>> HeaderVisitor for Scan<'_, '_, 'a, F, V> {
    #[inline(always)]
    unsafe fn short(&mut self, key: *const u8, key_len: usize, value: *const u8, value_len: usize, null: bool) -> bool {
        let header = RawHeader::untyped(key, key_len, value, value_len, null);
        // SAFETY: the caller's contract.
        unsafe {
            note_short_key(key, key_len, self.odd_keys);
            self.visit.header(self.index, header)
        }
    }

    #[inline(always)]
    unsafe fn long(&mut self, header: RawHeader) -> bool {
        // SAFETY: the caller's contract.
        unsafe {
            note_key::<F>(header.key, header.key_len, self.odd_keys);
            self.visit.header(self.index, header)
        }
    }
}

/// Keeps a key of at most 63 bytes if it may not be UTF-8, with the length after it, which is below 0x80.
///
/// # Safety
///
/// As for [`scan_row`]; `COPY` bytes are readable at the key.
#[inline(always)]
unsafe fn note_short_key(key: *const u8, len: usize, odd_keys: &mut Tail<'_>) {
    // SAFETY: the caller's contract. A branch that is rarely mispredicted costs less than a copy of every key, whose
    // target would depend on the key before it.
    unsafe {
        if has_high_bit(key, len) {
            copy(key, odd_keys.end());
            odd_keys.keep(len + 1);
        }
    }
}

/// Keeps a key of any length.
///
/// # Safety
///
/// As for [`scan_row`]; the key is in the row.
#[inline(always)]
unsafe fn note_key<F: WireLayout>(key: *const u8, len: usize, odd_keys: &mut Tail<'_>) {
    if F::TYPED_KEYS {
        return;
    }
    // SAFETY: there is room for the key and the byte after it, and up to 63 bytes more.
    unsafe {
        copy_long(key, odd_keys.end(), len);
        odd_keys.end().add(len).write(0);
        odd_keys.keep(len + 1);
    }
}

/// Whether all keys of a scanned row are UTF-8.
#[cold]
#[inline(never)]
fn keys_are_text<F: WireLayout>(row: Span<'_>) -> bool {
    let mut scratch = Scratch::default();
    let mut odd_keys = Tail::new(&mut scratch.0, row.len());
    // SAFETY: the keys of the row, and the lengths after them, have fewer bytes than the row.
    unsafe { scan_row::<F, _>(0, row, usize::MAX, &mut odd_keys, &mut IgnoreHeaders) };
    std::str::from_utf8(odd_keys.since(0)).is_ok()
}
