//! Headers in columns behind offsets of 32 bits: keys and values, and where they have kinds the names of these.

use std::ops::Range;

use super::{Short, ShortHeader, Take};
use crate::chunk::{Run, WIDE};
use crate::kind::Kind;
use crate::mode::{Mode, Stop};

/// Runs of bytes behind offsets.
#[derive(Debug, Clone, Copy)]
pub struct Parts<'a> {
    pub offsets: &'a [i32],
    pub bytes: &'a [u8],
}

/// The parts of a row.
struct InParts<'a> {
    bytes: &'a [u8],
    /// Where they begin, and where the last ends; the first is neither negative nor behind the last.
    offsets: &'a [i32],
    /// Where the last ends: `WIDE` bytes before the bytes do, at least.
    last: i32,
    byte_len: usize,
}

impl<'a> Parts<'a> {
    /// The parts at some places; `None` when too few bytes lie behind them.
    #[inline(always)]
    fn at(self, places: &Range<usize>) -> Option<InParts<'a>> {
        let offsets = self.offsets.get(places.start..places.end.checked_add(1)?)?;
        let last = *offsets.last()?;
        let (first, end) = (usize::try_from(*offsets.first()?).ok()?, usize::try_from(last).ok()?);
        let byte_len = end.checked_sub(first)?;
        (end.checked_add(WIDE)? <= self.bytes.len()).then_some(InParts { bytes: self.bytes, offsets, last, byte_len })
    }
}

/// How many bytes there are between two offsets; `None` unless the second is neither before the first nor behind the last
/// of all, which the first is not.
#[inline(always)]
fn len_within(start: i32, end: i32, last: i32) -> Option<usize> {
    // One comparison for both: as a number without a sign, what is negative is larger than all that lies before the last.
    let (len, room) = (end.wrapping_sub(start) as u32, last.wrapping_sub(start) as u32);
    (len <= room).then_some(len as usize)
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

/// The kinds of keys or values.
#[derive(Debug, Clone, Copy)]
pub struct Names<'a> {
    pub names: Parts<'a>,
    /// Which places have a kind, unless all have.
    pub has_kind: Option<Bits<'a>>,
}

impl<'a> Names<'a> {
    /// The names at some places; `None` when too few bytes lie behind them.
    #[inline(always)]
    fn at(self, places: &Range<usize>) -> Option<InNames<'a>> {
        Some(InNames { has_kind: self.has_kind, first: places.start, parts: self.names.at(places)? })
    }
}

/// The kinds of a row.
struct InNames<'a> {
    has_kind: Option<Bits<'a>>,
    first: usize,
    parts: InParts<'a>,
}

impl InNames<'_> {
    /// The kind at a place; only those that have a name are found.
    #[inline(always)]
    fn get(&self, index: usize) -> Result<Option<Kind>, Stop> {
        let Some(&[start, end]) = self.parts.offsets.get(index..index + 2) else { return Err(Stop) };
        if self.has_kind.is_some_and(|bits| !bits.get(self.first + index)) {
            return Ok(None);
        }
        // Both as numbers without a sign, which the last is: of names before this one nobody may have seen where they end.
        if start as u32 > self.parts.last as u32 {
            return Err(Stop);
        }
        // SAFETY: it begins with the last or before it, `WIDE` bytes before the bytes end, and is not asked for its own.
        let name = unsafe { Run::new(self.parts.bytes, start as usize, 0) };
        Kind::of_padded(*name.chunk(), end.wrapping_sub(start) as u32 as usize).map(Some).ok_or(Stop)
    }
}

/// The headers of all rows, each with a key.
#[derive(Debug, Clone, Copy)]
pub struct Columns<'a> {
    /// Of keys that have kinds.
    pub key_kinds: Option<Names<'a>>,
    pub keys: Parts<'a>,
    /// Of values that have kinds.
    pub kinds: Option<Names<'a>>,
    pub values: Parts<'a>,
    /// Which values are not null, unless all are.
    pub has_value: Option<Bits<'a>>,
}

impl<'a> Columns<'a> {
    pub fn have_kinds(&self) -> bool {
        self.key_kinds.is_some() || self.kinds.is_some()
    }

    /// The headers at some places; `None` when too few bytes lie behind them. `KINDS`: with the kinds that there are.
    #[inline(always)]
    pub fn at<const KINDS: bool>(self, places: Range<usize>) -> Option<InColumns<'a, KINDS>> {
        let names = |names: Option<Names<'a>>| match names {
            Some(names) if KINDS => names.at(&places).map(Some),
            _ => Some(None),
        };
        let (key_kinds, kinds) = (names(self.key_kinds)?, names(self.kinds)?);
        let (keys, values) = (self.keys.at(&places)?, self.values.at(&places)?);
        Some(InColumns { has_value: self.has_value, first: places.start, key_kinds, keys, kinds, values })
    }
}

/// The headers of a row.
pub struct InColumns<'a, const KINDS: bool> {
    has_value: Option<Bits<'a>>,
    first: usize,
    key_kinds: Option<InNames<'a>>,
    keys: InParts<'a>,
    kinds: Option<InNames<'a>>,
    values: InParts<'a>,
}

impl<'a, const KINDS: bool> Short<'a> for InColumns<'a, KINDS> {
    const HAVE_KINDS: bool = KINDS;

    #[inline(always)]
    fn most(&self) -> usize {
        self.keys.offsets.len() - 1
    }

    #[inline(always)]
    fn byte_len(&self) -> usize {
        self.keys.byte_len + self.values.byte_len
    }

    /// Of keys in a column of text it was seen before that they are.
    #[inline(always)]
    fn each<M: Mode, T: Take<'a>>(self, _mode: &mut M, to: &mut T) -> Result<(), Stop> {
        let (keys, values) = (&self.keys, &self.values);
        for (index, (key, value)) in keys.offsets.windows(2).zip(values.offsets.windows(2)).enumerate() {
            let (&[key, key_end], &[value, value_end]) = (key, value) else { return Err(Stop) };
            let key_len = len_within(key, key_end, keys.last).ok_or(Stop)?;
            let value_len = len_within(value, value_end, values.last).ok_or(Stop)?;
            // SAFETY: the first begins at 0 or behind it, each other where the one before it ends, and none ends behind the
            // last, which does so `WIDE` bytes before the bytes do.
            let (key, value) = unsafe {
                (Run::new(keys.bytes, key as usize, key_len), Run::new(values.bytes, value as usize, value_len))
            };
            let has_value = self.has_value.is_none_or(|bits| bits.get(self.first + index));
            let kind = |names: &Option<InNames<'a>>| match names {
                Some(names) if KINDS => names.get(index),
                _ => Ok(None),
            };
            let (key_kind, kind) = (kind(&self.key_kinds)?, kind(&self.kinds)?);
            to.take(ShortHeader { index, key_kind, key, kind, value: has_value.then_some(value), at: None });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::Scalar;
    use crate::mode::{Fast, OnLoss};
    use crate::short::tests::Each;

    type Header = (Vec<u8>, Option<Vec<u8>>);

    fn plain<'a>(keys: Parts<'a>, values: Parts<'a>) -> Columns<'a> {
        Columns { key_kinds: None, keys, kinds: None, values, has_value: None }
    }

    fn read(columns: Columns<'_>, places: Range<usize>) -> Option<Result<Vec<Header>, Stop>> {
        let mut found = Vec::new();
        let mut each = Each(|header: ShortHeader<'_>| {
            found.push((header.key.bytes().to_vec(), header.value.map(|value| value.bytes().to_vec())));
        });
        let done = columns.at::<false>(places)?.each(&mut Fast::new(OnLoss::Raise), &mut each);
        Some(done.map(|()| found))
    }

    #[test]
    fn the_headers_of_a_row_are_those_at_its_places() {
        let bytes: Vec<u8> = (0..100).collect();
        let keys = Parts { offsets: &[0, 1, 1, 4, 9], bytes: &bytes };
        let values = Parts { offsets: &[10, 12, 12, 15, 36], bytes: &bytes };
        // The bits begin at the fourth: values, none, one, one.
        let has_value = Some(Bits { bytes: &[0b0110_1000], offset: 3 });
        let columns = Columns { key_kinds: None, keys, kinds: None, values, has_value };
        let all: [Header; 4] = [
            (vec![0], Some(vec![10, 11])),
            (vec![], None),
            (vec![1, 2, 3], Some(vec![12, 13, 14])),
            ((4..9).collect(), Some((15..36).collect())),
        ];
        for start in 0..=4 {
            for end in start..=4 {
                assert_eq!(read(columns, start..end), Some(Ok(all[start..end].to_vec())), "{start} {end}");
            }
        }
        let all_there = Columns { has_value: None, ..columns };
        assert_eq!(read(all_there, 1..2), Some(Ok(vec![(vec![], Some(vec![]))])));
        assert_eq!(columns.at::<false>(2..4).unwrap().byte_len(), 8 + 24);
        assert_eq!(columns.at::<false>(2..4).unwrap().most(), 2);
    }

    #[test]
    fn kinds_are_those_at_the_places() {
        let mut bytes = b"stringint32bool".to_vec();
        bytes.extend([0; WIDE]);
        let parts = |offsets| Parts { offsets, bytes: &bytes };
        let (string, int32, bool) = (Scalar::String, Scalar::Int32, Scalar::Bool);
        let columns = Columns {
            key_kinds: Some(Names { names: parts(&[0, 6, 11, 15]), has_kind: None }),
            keys: parts(&[0, 1, 2, 3]),
            // The last has none.
            kinds: Some(Names { names: parts(&[6, 11, 15, 15]), has_kind: Some(Bits { bytes: &[0b011], offset: 0 }) }),
            values: parts(&[0, 1, 2, 3]),
            has_value: None,
        };
        let kinds = |columns: Columns<'_>, places| {
            let mut found = Vec::new();
            let mut each = Each(|header: ShortHeader<'_>| found.push((header.key_kind, header.kind)));
            let done = columns.at::<true>(places).unwrap().each(&mut Fast::new(OnLoss::Raise), &mut each);
            done.map(|()| found)
        };
        let all = [(string, Some(int32)), (int32, Some(bool)), (bool, None)];
        let all = all.map(|(key, value)| (Some(Kind::Named(key)), value.map(Kind::Named)));
        for start in 0..=3 {
            for end in start..=3 {
                assert_eq!(kinds(columns, start..end), Ok(all[start..end].to_vec()), "{start} {end}");
            }
        }
        let misspelt = Columns { kinds: Some(Names { names: parts(&[0, 5, 6, 7]), has_kind: None }), ..columns };
        assert_eq!(kinds(misspelt, 0..1), Err(Stop));
        let near_the_end = Parts { offsets: &[0, 1], bytes: &bytes[..WIDE] };
        assert!(Names { names: near_the_end, has_kind: None }.at(&(0..1)).is_none());
    }

    #[test]
    fn what_lies_near_the_end_or_outside_is_left_to_others() {
        let bytes = [7; 100];
        let good = Parts { offsets: &[0, 1], bytes: &bytes };
        for offsets in [&[0, 37][..], &[0, 100], &[0, 101], &[0, i32::MAX], &[-1, 5], &[5, -1], &[5, 4], &[0]] {
            let bad = Parts { offsets, bytes: &bytes };
            for (keys, values) in [(bad, good), (good, bad)] {
                assert!(plain(keys, values).at::<false>(0..1).is_none(), "{offsets:?}");
            }
        }
        // No array has such offsets, and nothing outside is read all the same.
        let good = Parts { offsets: &[0, 1, 2], bytes: &bytes };
        for offsets in [&[0, 30, 2], &[0, 1000, 2], &[0, i32::MAX, 2], &[0, -1, 2], &[1, 0, 2], &[0, i32::MIN, 2]] {
            let bad = Parts { offsets, bytes: &bytes };
            for (keys, values) in [(bad, good), (good, bad)] {
                assert_eq!(read(plain(keys, values), 0..2), Some(Err(Stop)), "{offsets:?}");
            }
            for has_kind in [None, Some(Bits { bytes: &[0b10], offset: 0 })] {
                let names = Names { names: bad, has_kind }.at(&(0..2)).expect("they begin and end within the bytes");
                assert_eq!(names.get(1), Err(Stop), "{offsets:?}");
            }
        }
        assert!(plain(good, good).at::<false>(0..usize::MAX).is_none());
    }
}
