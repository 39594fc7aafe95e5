//! Headers that are columns already: keys and values behind offsets of 32 bits, and the names of their types.

use std::ops::Range;

use super::frame::Frame;
use super::keys::Keys;
use super::scan::{Hits, Value};
use super::{BYTES, COPY, ROWS};
use crate::kind::{Kind, MAX_NAME_LEN};

/// Byte strings behind offsets.
#[derive(Debug, Clone, Copy)]
pub struct Strings<'a> {
    pub offsets: &'a [i32],
    pub bytes: &'a [u8],
}

/// Which places hold a value: a bit for each, the first in the lowest bit.
#[derive(Debug, Clone, Copy)]
pub struct Bits<'a> {
    pub bytes: &'a [u8],
    /// The bit of the first place.
    pub offset: usize,
}

impl Bits<'_> {
    #[inline(always)]
    fn get(self, place: usize) -> bool {
        let bit = self.offset + place;
        self.bytes.get(bit / 8).is_some_and(|byte| byte >> (bit % 8) & 1 == 1)
    }
}

/// The names of types, and which places have one unless all have.
#[derive(Debug, Clone, Copy)]
pub struct Names<'a> {
    pub names: Strings<'a>,
    pub has_type: Option<Bits<'a>>,
}

/// The headers of all rows; no key is null.
#[derive(Debug, Clone, Copy)]
pub struct Columns<'a> {
    /// Of keys with types.
    pub key_types: Option<Names<'a>>,
    pub keys: Strings<'a>,
    /// Of values with types.
    pub types: Option<Names<'a>>,
    pub values: Strings<'a>,
    /// Which values are not null, unless all are.
    pub has_value: Option<Bits<'a>>,
}

/// The strings of one row: the first offset is not negative, and every string that ends at or before `last` has `COPY`
/// bytes from its start on.
#[derive(Clone, Copy)]
struct RowStrings<'a> {
    offsets: &'a [i32],
    last: i32,
}

impl<'a> Strings<'a> {
    /// Those at some places, and how many bytes they have; `None` if fewer than `COPY` bytes lie behind them.
    #[inline(always)]
    fn at(self, places: &Range<usize>) -> Option<(RowStrings<'a>, usize)> {
        let offsets = self.offsets.get(places.start..places.end.checked_add(1)?)?;
        let last = *offsets.last()?;
        let (first, end) = (usize::try_from(*offsets.first()?).ok()?, usize::try_from(last).ok()?);
        let bytes = end.checked_sub(first)?;
        (end.checked_add(COPY)? <= self.bytes.len()).then_some((RowStrings { offsets, last }, bytes))
    }
}

impl RowStrings<'_> {
    /// Where a string begins and how long it is; `None` unless it ends behind its start and not behind the last.
    ///
    /// That of the first begins at an offset that is not negative; each other where the one before it ends.
    #[inline(always)]
    fn get(&self, index: usize) -> Option<(usize, usize)> {
        let &[start, end] = self.offsets.get(index..index + 2)? else { return None };
        // One comparison for both: as a number without a sign, what is negative is larger than all before the last.
        let (len, room) = (end.wrapping_sub(start) as u32, self.last.wrapping_sub(start) as u32);
        (len <= room).then_some((start as usize, len as usize))
    }
}

/// A row of a list column.
#[derive(Clone, Copy)]
struct Row<'a> {
    first: usize,
    keys: RowStrings<'a>,
    values: RowStrings<'a>,
}

/// The rows of a list column that a kernel is given at once, and the columns that they lie in.
pub struct Lists<'a> {
    columns: Columns<'a>,
    rows: [Option<Row<'a>>; ROWS],
    len: usize,
    bytes: usize,
    headers: usize,
}

impl<'a> Lists<'a> {
    pub fn new(columns: Columns<'a>) -> Self {
        Lists { columns, rows: [None; ROWS], len: 0, bytes: 0, headers: 0 }
    }

    pub fn clear(&mut self) {
        (self.len, self.bytes, self.headers) = (0, 0, 0);
    }

    pub fn row_count(&self) -> usize {
        self.len
    }

    /// Bytes of all keys and values.
    pub fn byte_len(&self) -> usize {
        self.bytes
    }

    pub fn header_count(&self) -> usize {
        self.headers
    }

    /// Values have a column of types.
    pub fn has_types(&self) -> bool {
        self.columns.types.is_some()
    }

    /// Keys or values have a column of types.
    pub fn is_typed(&self) -> bool {
        self.columns.key_types.is_some() || self.has_types()
    }

    /// Appends a row, of which there may be `rows`; false if there is no room for it, or the exact routine has to take it.
    #[inline(always)]
    pub fn push(&mut self, places: Option<Range<usize>>, rows: usize) -> bool {
        if self.len >= rows.min(ROWS) {
            return false;
        }
        let row = match places {
            None => None,
            Some(places) => {
                let (Some((keys, key_bytes)), Some((values, value_bytes))) =
                    (self.columns.keys.at(&places), self.columns.values.at(&places))
                else {
                    return false;
                };
                let bytes = key_bytes + value_bytes;
                if self.len > 0 && self.bytes + bytes > BYTES {
                    return false;
                }
                self.bytes += bytes;
                self.headers += places.len();
                Some(Row { first: places.start, keys, values })
            }
        };
        self.rows[self.len] = row;
        self.len += 1;
        true
    }

    /// Hands the headers of each row to `visit`, and returns how many rows there were before one that is not readable or
    /// that `visit` refuses.
    #[inline(always)]
    pub(super) fn each<V: Visit<'a>>(&self, visit: &mut V) -> usize {
        for (place, row) in self.rows[..self.len].iter().enumerate() {
            let is_whole = match row {
                None => visit.null(),
                Some(row) => {
                    visit.begin(row.keys.offsets.len() - 1);
                    self.each_header(place, *row, visit) && visit.end()
                }
            };
            if !is_whole {
                return place;
            }
        }
        self.len
    }

    #[inline(always)]
    fn each_header<V: Visit<'a>>(&self, place: usize, row: Row<'a>, visit: &mut V) -> bool {
        let Columns { key_types, keys, types, values, has_value } = self.columns;
        for index in 0..row.keys.offsets.len() - 1 {
            let (Some((key, key_len)), Some((value, value_len))) = (row.keys.get(index), row.values.get(index)) else {
                return false;
            };
            let at = row.first + index;
            let (Some(key_type), Some(value_type)) = (type_at(key_types, at), type_at(types, at)) else { return false };
            let is_null = has_value.is_some_and(|bits| !bits.get(at));
            // SAFETY: `RowStrings::get` found both before the last of their row, which has `COPY` bytes behind its end.
            let header = unsafe {
                Header {
                    key: keys.bytes.as_ptr().add(key),
                    key_len,
                    key_type,
                    value: Value::new(values.bytes.as_ptr().add(value), value_len, is_null),
                    value_type,
                }
            };
            if !visit.header(place, header) {
                return false;
            }
        }
        true
    }
}

/// The type at a place, which may have none; `None` if the exact routine has to read it.
#[inline(always)]
fn type_at(names: Option<Names<'_>>, place: usize) -> Option<Option<Kind>> {
    let Some(Names { names, has_type }) = names else { return Some(None) };
    if has_type.is_some_and(|bits| !bits.get(place)) {
        return Some(None);
    }
    let &[start, end] = names.offsets.get(place..place + 2)? else { return None };
    let name = names.bytes.get(usize::try_from(start).ok()?..)?.first_chunk::<MAX_NAME_LEN>()?;
    Kind::of_padded(*name, usize::try_from(end.checked_sub(start)?).ok()?).map(Some)
}

/// A header of a list. `COPY` bytes are readable from the start of its key and of its value.
#[derive(Clone, Copy)]
pub struct Header<'a> {
    pub(super) key: *const u8,
    pub(super) key_len: usize,
    pub(super) key_type: Option<Kind>,
    pub(super) value: Value<'a>,
    pub(super) value_type: Option<Kind>,
}

/// What a kernel does with the headers of lists. Where it returns false, the row is left to the exact routine.
pub(super) trait Visit<'a> {
    /// A row without a list.
    fn null(&mut self) -> bool {
        true
    }

    /// A row of so many headers begins.
    fn begin(&mut self, _headers: usize) {}

    fn header(&mut self, row: usize, header: Header<'a>) -> bool;

    /// All headers of the row were handed over.
    fn end(&mut self) -> bool {
        true
    }
}

struct Nothing;

impl<'a> Visit<'a> for Nothing {
    #[inline(always)]
    fn header(&mut self, _row: usize, _header: Header<'a>) -> bool {
        true
    }
}

/// Reads rows until one has to be left to the exact routine, and returns how many there were before it.
pub fn validate(lists: &Lists<'_>) -> usize {
    match lists.columns {
        // Nothing can be wrong with these but their offsets, which the caller's library has checked.
        Columns { key_types: None, types: None, .. } => lists.len,
        _ => lists.each(&mut Nothing),
    }
}

struct Select<'k, 'h, 'a, F> {
    keys: &'k Keys,
    hits: &'h mut Hits<'a>,
    frame: std::marker::PhantomData<F>,
}

impl<'a, F: Frame> Visit<'a> for Select<'_, '_, 'a, F> {
    #[inline(always)]
    fn header(&mut self, row: usize, header: Header<'a>) -> bool {
        let Select { keys, hits, .. } = self;
        // SAFETY: `COPY` bytes are readable at the key.
        unsafe {
            keys.find::<F>(header.key, header.key_len, header.key_type, |wanted| {
                hits.take::<F>(row, wanted, header.value, header.value_type)
            })
        }
    }
}

/// As `validate`, and what is found for keys that are wanted goes to `hits`, which were cleared.
pub fn select<'a, F: Frame>(lists: &Lists<'a>, keys: &Keys, hits: &mut Hits<'a>) -> usize {
    lists.each(&mut Select::<F> { keys, hits, frame: std::marker::PhantomData })
}
