//! Headers in columns: text keys and values without kinds, behind offsets of 32 bits.

use std::ops::Range;

use super::{Short, ShortHeader, Take};
use crate::chunk::{Run, WIDE};
use crate::mode::{Mode, Stop};

/// Runs of bytes behind offsets.
#[derive(Debug, Clone, Copy)]
pub struct Parts<'a> {
    pub offsets: &'a [i32],
    pub bytes: &'a [u8],
}

impl<'a> Parts<'a> {
    /// The parts at some places, and how many bytes they have; `None` when too few bytes lie behind them.
    #[inline(always)]
    fn at(self, places: &Range<usize>) -> Option<(&'a [i32], usize)> {
        let offsets = self.offsets.get(places.start..places.end.checked_add(1)?)?;
        let (first, last) = (usize::try_from(*offsets.first()?).ok()?, usize::try_from(*offsets.last()?).ok()?);
        (last.checked_add(WIDE)? <= self.bytes.len()).then_some((offsets, last.checked_sub(first)?))
    }
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

/// The headers of all rows, each with a key.
#[derive(Debug, Clone, Copy)]
pub struct Columns<'a> {
    pub keys: Parts<'a>,
    pub values: Parts<'a>,
    /// Which values are not null, unless all are.
    pub has_value: Option<Bits<'a>>,
}

impl<'a> Columns<'a> {
    /// The headers at some places; `None` when too few bytes lie behind them.
    #[inline(always)]
    pub fn at(self, places: Range<usize>) -> Option<InColumns<'a>> {
        let (keys, key_bytes) = self.keys.at(&places)?;
        let (values, value_bytes) = self.values.at(&places)?;
        Some(InColumns { all: self, first: places.start, keys, values, byte_len: key_bytes + value_bytes })
    }
}

/// The headers of a row.
pub struct InColumns<'a> {
    all: Columns<'a>,
    first: usize,
    /// Where the keys begin, and where the last ends.
    keys: &'a [i32],
    values: &'a [i32],
    byte_len: usize,
}

impl<'a> Short<'a> for InColumns<'a> {
    #[inline(always)]
    fn most(&self) -> usize {
        self.keys.len() - 1
    }

    #[inline(always)]
    fn byte_len(&self) -> usize {
        self.byte_len
    }

    /// Of keys in a column of text it was seen before that they are.
    #[inline(always)]
    fn each<M: Mode, T: Take<'a>>(self, _mode: &mut M, to: &mut T) -> Result<(), Stop> {
        for (index, (keys, values)) in self.keys.windows(2).zip(self.values.windows(2)).enumerate() {
            let ([key, key_end], [value, value_end]) = (keys, values) else { return Err(Stop) };
            // The last ends within the bytes: where none ends before it begins, all do.
            if key > key_end || value > value_end {
                return Err(Stop);
            }
            // SAFETY: the first begins at 0 or behind it, and the last ends `WIDE` bytes before the bytes do.
            let (key, value) = unsafe {
                (
                    Run::new(self.all.keys.bytes, *key as usize, (key_end - key) as usize),
                    Run::new(self.all.values.bytes, *value as usize, (value_end - value) as usize),
                )
            };
            let has_value = self.all.has_value.is_none_or(|bits| bits.get(self.first + index));
            let value = has_value.then_some(value);
            to.take(ShortHeader { index, key_kind: None, key, kind: None, value, at: None });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mode::{Fast, OnLoss};
    use crate::short::tests::Each;

    type Header = (Vec<u8>, Option<Vec<u8>>);

    fn read(columns: Columns<'_>, places: Range<usize>) -> Option<Result<Vec<Header>, Stop>> {
        let mut found = Vec::new();
        let mut each = Each(|header: ShortHeader<'_>| {
            found.push((header.key.bytes().to_vec(), header.value.map(|value| value.bytes().to_vec())));
        });
        let done = columns.at(places)?.each(&mut Fast::new(OnLoss::Raise), &mut each);
        Some(done.map(|()| found))
    }

    #[test]
    fn the_headers_of_a_row_are_those_at_its_places() {
        let bytes: Vec<u8> = (0..100).collect();
        let keys = Parts { offsets: &[0, 1, 1, 4, 9], bytes: &bytes };
        let values = Parts { offsets: &[10, 12, 12, 15, 36], bytes: &bytes };
        // The bits begin at the fourth: values, none, one, one.
        let has_value = Some(Bits { bytes: &[0b0110_1000], offset: 3 });
        let columns = Columns { keys, values, has_value };
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
        assert_eq!(columns.at(2..4).unwrap().byte_len(), 8 + 24);
        assert_eq!(columns.at(2..4).unwrap().most(), 2);
    }

    #[test]
    fn what_lies_near_the_end_or_outside_is_left_to_others() {
        let bytes = [7; 100];
        let good = Parts { offsets: &[0, 1], bytes: &bytes };
        for offsets in [&[0, 37][..], &[0, 100], &[0, 101], &[0, i32::MAX], &[-1, 5], &[5, -1], &[5, 4], &[0]] {
            let bad = Parts { offsets, bytes: &bytes };
            for (keys, values) in [(bad, good), (good, bad)] {
                assert!(Columns { keys, values, has_value: None }.at(0..1).is_none(), "{offsets:?}");
            }
        }
        // No array has such offsets, and nothing outside is read all the same.
        let bad = Parts { offsets: &[0, 30, 2], bytes: &bytes };
        let good = Parts { offsets: &[0, 1, 2], bytes: &bytes };
        for (keys, values) in [(bad, good), (good, bad)] {
            assert_eq!(read(Columns { keys, values, has_value: None }, 0..2), Some(Err(Stop)));
        }
        assert!(Columns { keys: good, values: good, has_value: None }.at(0..usize::MAX).is_none());
    }
}
