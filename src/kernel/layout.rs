//! The positions of the parts of a header: one implementation of [`WireLayout`] for each layout that has kernels.
//!
//! ```text
//!   Varint   ┌────────┬─────┬────────┬───────┐   zig-zag varints; a value length of -1 is null
//!            │ length │ key │ length │ value │
//!            └────────┴─────┴────────┴───────┘
//!   Typed    ┌──────┬────────┬─────┬──────┬────────┬───────┐   lengths of four bytes, little-endian, 1–255;
//!            │ type │ length │ key │ type │ length │ value │   the first type only where keys have types
//!            └──────┴────────┴─────┴──────┴────────┴───────┘
//! ```

use super::{Span, copy, copy_long, fetch_ahead};
use crate::value::{ByteOrder, Checks};
use crate::value_type::{Scalar, TypeCodes, ValueType};
use crate::varint::{self, ParsedVarint};

/// Where the key and the value of a header are, counted from the start of the row.
#[derive(Clone, Copy)]
pub struct HeaderOffsets {
    pub key: usize,
    pub key_len: usize,
    pub value: usize,
    pub value_len: usize,
    pub is_null: bool,
    /// Of layouts with types.
    pub key_type: Option<ValueType>,
    pub value_type: Option<ValueType>,
}

impl HeaderOffsets {
    /// Where the next header begins.
    #[inline(always)]
    pub fn end(self) -> usize {
        self.value + self.value_len
    }

    /// The header with these offsets in a row that begins at `start`.
    #[inline(always)]
    pub(super) fn header(self, start: *const u8) -> RawHeader {
        let HeaderOffsets { key, key_len, value, value_len, is_null, key_type, value_type } = self;
        let (key, value) = (start.wrapping_add(key), start.wrapping_add(value));
        RawHeader { key, key_len, key_type, value, value_len, is_null, value_type }
    }
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
}

/// How a writer treats headers that its layout cannot carry as they are.
#[derive(Debug, Clone, Copy, Default)]
pub struct Rules {
    /// The type of values that have none.
    pub default_type: Option<ValueType>,
    /// The order of bytes in which numbers are written where values have no types: that their types are lost is agreed.
    pub untyped: Option<ByteOrder>,
    /// Leaves out values that are null, and keys and values of a length that the layout cannot carry.
    pub drops: bool,
    /// Leaves rows without a list to the slow path, which rejects them.
    pub refuses_nulls: bool,
    /// The most bytes that the headers of a row may take.
    pub max_bytes: usize,
}

/// Receives each header of a row once. If it returns false, the row is left to the slow path.
///
/// A frame calls it in each of its branches, so that what a branch knows is not stored and tested again.
pub trait HeaderVisitor {
    /// A header without types, with a key and a value of at most 63 bytes each, so that one copy takes either. A null
    /// has no bytes.
    ///
    /// # Safety
    ///
    /// The visitor was created for a row that has this header, and gets it once. Key and value are in that row, with
    /// `SLACK` bytes after it.
    unsafe fn short(&mut self, key: *const u8, key_len: usize, value: *const u8, value_len: usize, null: bool) -> bool;

    /// Any other header of the row that begins at `start`.
    ///
    /// # Safety
    ///
    /// As for `short`.
    unsafe fn long(&mut self, start: *const u8, parts: HeaderOffsets) -> bool;
}

/// The beginning of a row.
#[derive(Clone, Copy)]
pub struct Begin {
    /// Where the first header begins.
    pub at: usize,
    /// How many headers there are, if the layout has a count.
    pub count: Option<usize>,
}

/// The layouts that kernels read, as values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadableLayout {
    Varint,
    /// [`TypedLayout`], with types of keys and of values.
    Iggy,
    /// [`TypedLayout`], with types of values.
    Iggy2023,
}

/// A layout of headers.
///
/// # Safety
///
/// Kernels copy the headers of `header` and `irregular`, and write where `write` may write, without another check. `header`
/// passes the visitor one header at most, and none if it returns `None` for another reason than the visitor. In all that
/// they return, key and value are inside the row: `key + key_len <= value` and `value + value_len <= len`. Short
/// ones have at most 63 bytes each. A header takes at least `MIN_LEN` bytes, and neither the key nor the value has more
/// bytes than its header.
///
/// A layout that kernels do not read leaves out `begin` and `header`; one that they do not write, `write_count` and
/// `write`.
pub unsafe trait WireLayout: 'static {
    /// The layout that kernels read, if they read this one.
    const READS: Option<ReadableLayout> = None;
    /// Kernels write it.
    const WRITES: bool = false;
    /// Values have types.
    const TYPED: bool = false;
    const TYPED_KEYS: bool = false;
    /// The fewest bytes of a header.
    const MIN_LEN: usize = 1;
    /// The largest number of bytes in front of the headers of a row, and around a key and a value.
    const MAX_COUNT: usize = 0;
    const MAX_FRAMING: usize = 0;

    /// The beginning of a row; `None` if the row is not readable.
    ///
    /// # Safety
    ///
    /// `start` is the first byte of a row of `len` bytes with `SLACK` bytes after it.
    #[inline(always)]
    unsafe fn begin(_start: *const u8, _len: usize) -> Option<Begin> {
        None
    }

    /// Passes the header at `at` to `visitor`, and returns where the next one begins; `None` if it is not a regular header
    /// inside the row, or if `visitor` rejects it. (With a variant for each of the two,
    /// `decode` takes 12 more instructions a header.)
    ///
    /// # Safety
    ///
    /// As for `begin`, and `at <= len`. A header that begins at the end is not inside the row. The visitor was created
    /// for this row, and has not got this header.
    #[inline(always)]
    unsafe fn header<T: HeaderVisitor>(_start: *const u8, _at: usize, _len: usize, _visitor: &mut T) -> Option<usize> {
        None
    }

    /// The header at `at` of a row, which is not regular; `None` if the row is not readable.
    #[inline(always)]
    fn irregular(_row: &[u8], _at: usize) -> Option<HeaderOffsets> {
        None
    }

    /// Writes the count of headers, and returns how many bytes it wrote.
    ///
    /// # Safety
    ///
    /// `MAX_COUNT` bytes are writable.
    #[inline(always)]
    unsafe fn write_count(_to: *mut u8, _headers: usize) -> usize {
        0
    }

    /// Writes a header, and returns how many bytes it wrote; `None` if the row needs the slow path.
    ///
    /// # Safety
    ///
    /// The key, the value, `MAX_FRAMING` and `COPY` bytes are writable. From the start of the key and of the value, as
    /// many bytes as it has are readable, rounded up to a multiple of `COPY`, and at least `COPY`.
    #[inline(always)]
    unsafe fn write(_to: *mut u8, _header: &RawHeader, _rules: Rules) -> Option<usize> {
        None
    }
}

/// Passes headers on, and notes whether one was rejected: it must not be passed a second time, as one that is not regular.
struct NoteRejection<'v, T> {
    visitor: &'v mut T,
    has_rejected: bool,
}

impl<T: HeaderVisitor> HeaderVisitor for NoteRejection<'_, T> {
    #[inline(always)]
    unsafe fn short(&mut self, key: *const u8, key_len: usize, value: *const u8, value_len: usize, null: bool) -> bool {
        // SAFETY: the caller's contract.
        let is_taken = unsafe { self.visitor.short(key, key_len, value, value_len, null) };
        if !is_taken {
            self.has_rejected = true;
        }
        is_taken
    }

    #[inline(always)]
    unsafe fn long(&mut self, start: *const u8, parts: HeaderOffsets) -> bool {
        // SAFETY: the caller's contract.
        let is_taken = unsafe { self.visitor.long(start, parts) };
        if !is_taken {
            self.has_rejected = true;
        }
        is_taken
    }
}

/// Passes the headers of a row to `visitor`; false if the row is not readable or has more than `limit`, and then some of
/// them may have been passed.
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
    let mut visitor = NoteRejection { visitor, has_rejected: false };
    let (start, len) = (row.start(), row.len());
    let Begin { mut at, count } = begin;
    if count.is_some_and(|count| count > limit) {
        return false;
    }
    // A count ends the loop where there is one. It is compared long before the lengths that lead to the end of the row are
    // known, so that a wrong prediction of the last header costs less.
    let mut left = count.unwrap_or(limit);
    loop {
        while left > 0 && (count.is_some() || at < len) {
            // SAFETY: `Span` has `SLACK` bytes after the row, and `at` is where it begins or a header in it ends.
            match unsafe { F::header(start, at, len, &mut visitor) } {
                Some(next) => (at, left) = (next, left - 1),
                None => break,
            }
        }
        if left == 0 || count.is_none() && at == len {
            return at == len;
        }
        if visitor.has_rejected {
            return false;
        }
        match F::irregular(row.bytes(), at) {
            // SAFETY: as above; the parts that a frame finds are in the row.
            Some(parts) if unsafe { visitor.long(start, parts) } => (at, left) = (parts.end(), left - 1),
            _ => return false,
        }
    }
}

/// The layouts without kernels: the slow path reads and writes them.
pub struct NoKernels;

// SAFETY: nothing is found, and nothing is written.
unsafe impl WireLayout for NoKernels {}

/// The headers of `kip82-typed`, which the slow path reads: `int32 key_len, key, int32 value_len, type, value`,
/// big-endian.
pub struct Kip82Layout;

// SAFETY: nothing is found; a header is written in its framing, its key and its value.
unsafe impl WireLayout for Kip82Layout {
    const WRITES: bool = true;
    const TYPED: bool = true;
    const MAX_FRAMING: usize = 9;

    #[inline(always)]
    unsafe fn write(to: *mut u8, header: &RawHeader, rules: Rules) -> Option<usize> {
        let RawHeader { key_len, value_len, .. } = *header;
        // SAFETY: the caller's contract: the key, the value, nine bytes and `COPY` more are writable; the value is
        // readable.
        unsafe {
            to.cast::<[u8; 4]>().write((key_len as i32).to_be_bytes());
            copy_long(header.key, to.add(4), key_len);
            let place = to.add(4 + key_len);
            if header.is_null {
                place.cast::<[u8; 4]>().write([0; 4]);
                return Some(8 + key_len);
            }
            let of = header.value_type.or(rules.default_type)?;
            let code = TypeCodes::Kip82.code(of)?;
            let is_checked = of == ValueType::Named(Scalar::Binary)
                || Checks::Value.check(of, std::slice::from_raw_parts(header.value, value_len)).is_ok();
            if !is_checked {
                return None;
            }
            place.cast::<[u8; 4]>().write((1 + value_len as i32).to_be_bytes());
            place.add(4).write(code);
            copy_long(header.value, place.add(5), value_len);
        }
        Some(9 + key_len + value_len)
    }
}

/// Writes a length as a zig-zag varint of at most five bytes, and returns how many.
///
/// # Safety
///
/// Five bytes are writable.
#[inline(always)]
unsafe fn write_length(to: *mut u8, len: usize) -> usize {
    // SAFETY: the caller's contract; 32 bits have at most five groups of seven.
    unsafe {
        if len < 64 {
            to.write((len << 1) as u8);
            return 1;
        }
        let mut bits = varint::zigzag(len as i32);
        let mut written = 0;
        while bits >= 0x80 {
            to.add(written).write(bits as u8 | 0x80);
            bits >>= 7;
            written += 1;
        }
        to.add(written).write(bits as u8);
        written + 1
    }
}

/// Headers of `kafka`.
pub struct VarintLayout;

/// Neither of these bits is set in a length of one byte that is not negative.
const LONG_OR_NEGATIVE: u8 = 0x81;

/// The byte of the length -1.
const NULL: u8 = 0x01;

/// A length of two bytes that is not negative, and nothing else.
///
/// # Safety
///
/// Two bytes are readable at `at`.
#[inline(always)]
unsafe fn two_byte_length(at: *const u8) -> Option<usize> {
    // SAFETY: the caller's contract.
    let bits = usize::from(u16::from_le_bytes(unsafe { at.cast::<[u8; 2]>().read() }));
    (bits & 0x8081 == 0x0080).then_some((bits & 0x7f | bits >> 8 << 7) >> 1)
}

// SAFETY: `header` compares the end of the value with the end of the row before it passes parts on, and the key ends
// where the length of the value begins; lengths of one byte are at most 63. `irregular` takes both parts from the row's
// slice.
unsafe impl WireLayout for VarintLayout {
    const READS: Option<ReadableLayout> = Some(ReadableLayout::Varint);
    const WRITES: bool = true;
    const MIN_LEN: usize = 2;
    const MAX_COUNT: usize = varint::MAX_LEN;
    const MAX_FRAMING: usize = 2 * varint::MAX_LEN;

    #[inline(always)]
    unsafe fn begin(start: *const u8, len: usize) -> Option<Begin> {
        if len == 0 {
            return Some(Begin { at: 0, count: Some(0) });
        }
        // SAFETY: the row and the bytes after it are readable. A count that extends beyond the row is detected by where the
        // headers end.
        unsafe {
            let first = *start;
            match first & LONG_OR_NEGATIVE {
                0 => Some(Begin { at: 1, count: Some(usize::from(first >> 1)) }),
                _ => two_byte_length(start).filter(|_| len >= 2).map(|count| Begin { at: 2, count: Some(count) }),
            }
        }
    }

    #[inline(always)]
    unsafe fn header<T: HeaderVisitor>(start: *const u8, at: usize, len: usize, visitor: &mut T) -> Option<usize> {
        // SAFETY: `at` is in the row or at its end. A key of at most 63 bytes ends, with the length after it, at most 66
        // bytes further on, which is inside `SLACK`; a longer one is compared with the end of the row before the length
        // after it is read.
        unsafe {
            let first = *start.add(at);
            if first & LONG_OR_NEGATIVE == 0 {
                let (key, key_len) = (at + 1, usize::from(first >> 1));
                let place = key + key_len;
                let second = *start.add(place);
                let value = place + 1;
                if second & LONG_OR_NEGATIVE == 0 {
                    let value_len = usize::from(second >> 1);
                    let end = value + value_len;
                    let is_taken =
                        end <= len && visitor.short(start.add(key), key_len, start.add(value), value_len, false);
                    return if is_taken { Some(end) } else { None };
                }
                if second == NULL {
                    let is_taken = value <= len && visitor.short(start.add(key), key_len, start.add(value), 0, true);
                    return if is_taken { Some(value) } else { None };
                }
                let value_len = two_byte_length(start.add(place))?;
                return take_long(start, parts(key, key_len, place + 2, value_len, false), len, visitor);
            }
            let key_len = two_byte_length(start.add(at))?;
            let place = at + 2 + key_len;
            if place >= len {
                return None;
            }
            let second = *start.add(place);
            let (value, value_len, is_null) = match second {
                NULL => (place + 1, 0, true),
                byte if byte & LONG_OR_NEGATIVE == 0 => (place + 1, usize::from(byte >> 1), false),
                _ => (place + 2, two_byte_length(start.add(place))?, false),
            };
            take_long(start, parts(at + 2, key_len, value, value_len, is_null), len, visitor)
        }
    }

    #[cold]
    #[inline(never)]
    fn irregular(row: &[u8], at: usize) -> Option<HeaderOffsets> {
        let (key, key_len) = length(row, at)?;
        let key_len = key_len?;
        let place = key + key_len;
        let (value, value_len) = length(row, place)?;
        Some(parts(key, key_len, value, value_len.unwrap_or(0), value_len.is_none()))
    }

    #[inline(always)]
    unsafe fn write_count(to: *mut u8, headers: usize) -> usize {
        // SAFETY: the caller's contract.
        if headers == 0 { 0 } else { unsafe { write_length(to, headers) } }
    }

    #[inline(always)]
    unsafe fn write(to: *mut u8, header: &RawHeader, rules: Rules) -> Option<usize> {
        let (key_len, value_len) = (header.key_len, header.value_len);
        // SAFETY: the caller's contract: the key, the value, two lengths and `COPY` bytes are writable.
        unsafe {
            if let Some(of) = header.value_type {
                return write_untyped(to, header, of, rules.untyped?);
            }
            if (key_len | value_len) < 64 {
                to.write((key_len << 1) as u8);
                copy(header.key, to.add(1));
                let place = to.add(1 + key_len);
                place.write(if header.is_null { NULL } else { (value_len << 1) as u8 });
                copy(header.value, place.add(1));
                return Some(2 + key_len + value_len);
            }
            let mut len = write_length(to, header.key_len);
            copy_long(header.key, to.add(len), header.key_len);
            len += header.key_len;
            if header.is_null {
                to.add(len).write(NULL);
                return Some(len + 1);
            }
            len += write_length(to.add(len), value_len);
            copy_long(header.value, to.add(len), value_len);
            Some(len + value_len)
        }
    }
}

/// Writes a header of `iggy` or `iggy-2023` without its types; `None` if the row needs the slow path.
///
/// # Safety
///
/// As for [`WireLayout::write`]; the value was found by [`TypedLayout`].
#[inline(always)]
unsafe fn write_untyped(to: *mut u8, header: &RawHeader, of: ValueType, order: ByteOrder) -> Option<usize> {
    let RawHeader { key, key_len, value, value_len, .. } = *header;
    // SAFETY: the caller's contract: the parts, two lengths and `COPY` bytes are writable; a value with a width has
    // between 1 and 16 bytes.
    unsafe {
        let is_text = |part, len| simdutf8::basic::from_utf8(std::slice::from_raw_parts(part, len)).is_ok();
        if header.key_type.is_some_and(|of| of != TEXT || !is_text(key, key_len)) {
            return None;
        }
        let is_value = match of {
            TEXT => is_text(value, value_len),
            ValueType::Named(Scalar::Bool) => *value <= 1,
            _ => true,
        };
        if !is_value {
            return None;
        }
        let mut len = write_length(to, key_len);
        copy_long(key, to.add(len), key_len);
        len += key_len;
        len += write_length(to.add(len), value_len);
        if order == ByteOrder::Big && of.width().is_some() {
            write_reversed(value, to.add(len), value_len);
        } else {
            copy_long(value, to.add(len), value_len);
        }
        Some(len + value_len)
    }
}

/// Writes a number of at most 16 bytes, the last first.
///
/// # Safety
///
/// 16 bytes are readable at `from` and writable at `to`; `len` is between 1 and 16.
#[inline(always)]
pub(super) unsafe fn write_reversed(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: the caller's contract.
    unsafe {
        let number = u128::from_le_bytes(from.cast::<[u8; 16]>().read()) << (8 * (16 - len));
        to.cast::<[u8; 16]>().write(number.to_be_bytes());
    }
}

/// Passes a header to `visitor` if it is inside the row.
///
/// # Safety
///
/// As for [`WireLayout::header`]; the parts were found there.
#[inline(always)]
unsafe fn take_long<T: HeaderVisitor>(
    start: *const u8,
    parts: HeaderOffsets,
    len: usize,
    visitor: &mut T,
) -> Option<usize> {
    fetch_ahead(start.wrapping_add(parts.value));
    // SAFETY: the caller's contract, and the parts end in the row.
    let is_taken = parts.end() <= len && unsafe { visitor.long(start, parts) };
    if is_taken { Some(parts.end()) } else { None }
}

#[inline(always)]
fn parts(key: usize, key_len: usize, value: usize, value_len: usize, is_null: bool) -> HeaderOffsets {
    HeaderOffsets { key, key_len, value, value_len, is_null, key_type: None, value_type: None }
}

/// A length of any encoding, and where it ends; the inner `None` is -1. The bytes that it counts are inside the row.
fn length(row: &[u8], at: usize) -> Option<(usize, Option<usize>)> {
    let rest = row.get(at..)?;
    let ParsedVarint::Read { bits, len, lost: false } = varint::read(rest) else { return None };
    match varint::unzigzag(bits) {
        -1 => Some((at + len, None)),
        value => {
            let counted = usize::try_from(value).ok()?;
            (counted <= rest.len() - len).then_some((at + len, Some(counted)))
        }
    }
}

/// A layout with types.
pub trait Types: 'static {
    const LAYOUT: ReadableLayout;
    const TYPED_KEYS: bool;
    const CODES: TypeCodes;
}

/// Headers of `iggy` and `iggy-2023`.
pub struct TypedLayout<T>(std::marker::PhantomData<T>);

/// The longest key, and the longest value.
const LONGEST: usize = 255;

/// A type and a length.
const HEAD: usize = 5;

impl<T: Types> TypedLayout<T> {
    /// The length of a key or of a value.
    ///
    /// # Safety
    ///
    /// Four bytes are readable.
    #[inline(always)]
    unsafe fn len(at: *const u8) -> Option<usize> {
        // SAFETY: the caller's contract.
        let len = u32::from_le_bytes(unsafe { at.cast::<[u8; 4]>().read() }) as usize;
        (1..=LONGEST).contains(&len).then_some(len)
    }

    /// The parts of a header that is regular, which may end after the row.
    ///
    /// # Safety
    ///
    /// As for [`WireLayout::header`].
    #[inline(always)]
    unsafe fn parts(start: *const u8, at: usize) -> Option<HeaderOffsets> {
        // SAFETY: `at` is in the row or at its end, and what is read ends at most `SLACK` bytes after it: two heads of
        // five bytes and a key of at most 255.
        let (key_type, key, key_len, value_type, value, value_len) = unsafe {
            let (key_type, place) = match T::TYPED_KEYS {
                true => (Some(T::CODES.value_type(*start.add(at))?), at + 1),
                false => (None, at),
            };
            let key_len = Self::len(start.add(place))?;
            let (key, place) = (place + 4, place + 4 + key_len);
            let value_type = T::CODES.value_type(*start.add(place))?;
            (key_type, key, key_len, value_type, place + HEAD, Self::len(start.add(place + 1))?)
        };
        // The slow path takes values of another size than their type, where they are allowed.
        let has_size = |of: ValueType, len: usize| of.width().is_none_or(|width| width == len);
        let is_regular = has_size(value_type, value_len) && key_type.is_none_or(|of| has_size(of, key_len));
        let value_type = Some(value_type);
        is_regular.then_some(HeaderOffsets { key, key_len, value, value_len, is_null: false, key_type, value_type })
    }
}

// SAFETY: `header` compares the end of the value with the end of the row before it passes parts on, and passes
// none as short. A header has two lengths of at most 255 and the bytes between them.
unsafe impl<T: Types> WireLayout for TypedLayout<T> {
    const READS: Option<ReadableLayout> = Some(T::LAYOUT);
    const WRITES: bool = true;
    const TYPED: bool = true;
    const TYPED_KEYS: bool = T::TYPED_KEYS;
    const MIN_LEN: usize = if T::TYPED_KEYS { 2 * HEAD + 2 } else { 2 * HEAD + 1 };
    const MAX_FRAMING: usize = 2 * HEAD;

    #[inline(always)]
    unsafe fn begin(_start: *const u8, _len: usize) -> Option<Begin> {
        Some(Begin { at: 0, count: None })
    }

    #[inline(always)]
    unsafe fn header<K: HeaderVisitor>(start: *const u8, at: usize, len: usize, visitor: &mut K) -> Option<usize> {
        // SAFETY: the caller's contract.
        unsafe { take_long(start, Self::parts(start, at)?, len, visitor) }
    }

    #[inline(always)]
    unsafe fn write(to: *mut u8, header: &RawHeader, rules: Rules) -> Option<usize> {
        let fits = |len: usize| (1..=LONGEST).contains(&len);
        if header.is_null || !fits(header.key_len) || !fits(header.value_len) {
            // Other errors of a part with a type are left to the slow path.
            let has_types = header.key_type.is_some() || header.value_type.is_some();
            return (rules.drops && !has_types).then_some(0);
        }
        // SAFETY: the caller's contract.
        unsafe {
            let key_len = match T::TYPED_KEYS {
                true => Self::write_part(to, header.key_type.unwrap_or(TEXT), header.key, header.key_len)?,
                false => {
                    to.cast::<[u8; 4]>().write((header.key_len as u32).to_le_bytes());
                    copy_long(header.key, to.add(4), header.key_len);
                    4 + header.key_len
                }
            };
            let of = header.value_type.or(rules.default_type)?;
            Some(key_len + Self::write_part(to.add(key_len), of, header.value, header.value_len)?)
        }
    }
}

/// The type of keys that are text, where keys have types.
pub const TEXT: ValueType = ValueType::Named(Scalar::String);

impl<T: Types> TypedLayout<T> {
    /// Writes a type, a length and a part, whose most significant byte comes first in a list and last here.
    ///
    /// # Safety
    ///
    /// As for [`WireLayout::write`].
    #[inline(always)]
    unsafe fn write_part(to: *mut u8, of: ValueType, from: *const u8, len: usize) -> Option<usize> {
        let code = T::CODES.code(of)?;
        let width = of.width();
        if width.is_some_and(|width| width != len) {
            return None;
        }
        // SAFETY: the caller's contract; a part with a width has between 1 and 16 bytes.
        unsafe {
            to.write(code);
            to.add(1).cast::<[u8; 4]>().write((len as u32).to_le_bytes());
            if width.is_some() {
                write_reversed(from, to.add(HEAD), len);
            } else {
                copy_long(from, to.add(HEAD), len);
            }
        }
        Some(HEAD + len)
    }
}
