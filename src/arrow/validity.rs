//! The validity bitmap of a growing column, which can be rolled back to an earlier length.

use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer};

/// Which places of a growing column hold a value: a bit for each, the first in the lowest bit.
#[derive(Default)]
pub struct Validity {
    count: usize,
    words: Vec<u64>,
    /// The places after the last whole word.
    last: u64,
}

impl Validity {
    #[inline]
    pub fn push(&mut self, valid: bool) {
        self.last |= u64::from(valid) << (self.count % 64);
        self.count += 1;
        if self.count.is_multiple_of(64) {
            self.words.push(self.last);
            self.last = 0;
        }
    }

    /// Appends places that hold a value until there are so many.
    #[inline]
    pub fn push_until(&mut self, count: usize) {
        if self.count < count {
            self.push_all(count - self.count);
        }
    }

    /// Appends so many places that hold a value.
    #[inline]
    pub fn push_all(&mut self, count: usize) {
        let used = self.count % 64;
        if count < 64 - used {
            self.last |= ((1 << count) - 1) << used;
            self.count += count;
        } else {
            self.push_many(count);
        }
    }

    #[inline(never)]
    fn push_many(&mut self, mut count: usize) {
        while count > 0 && !self.count.is_multiple_of(64) {
            self.push(true);
            count -= 1;
        }
        self.words.resize(self.words.len() + count / 64, u64::MAX);
        self.count += count / 64 * 64;
        (0..count % 64).for_each(|_| self.push(true));
    }

    #[inline]
    pub fn count(&self) -> usize {
        self.count
    }

    pub fn truncate(&mut self, count: usize) {
        if count >= self.count {
            return;
        }
        let last = self.words.get(count / 64).copied().unwrap_or(self.last);
        self.last = last & ((1 << (count % 64)) - 1);
        self.words.truncate(count / 64);
        self.count = count;
    }

    pub fn finish(mut self) -> Option<NullBuffer> {
        let valid = self.words.iter().chain([&self.last]).map(|word| word.count_ones() as usize).sum::<usize>();
        if valid == self.count {
            return None;
        }
        self.words.push(self.last);
        // Bits are numbered from the lowest bit of the first byte on.
        self.words.iter_mut().for_each(|word| *word = word.to_le());
        Some(NullBuffer::new(BooleanBuffer::new(Buffer::from_vec(self.words), 0, self.count)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn validity_rolls_back_to_any_length() {
        for first_null in [0, 1, 62, 63, 64, 65, 127, 128] {
            for cut in 0..=130 {
                let (mut rolled, mut straight) = (Validity::default(), Validity::default());
                let valid = |place: usize| place != first_null && place % 7 != 3;
                (0..130).for_each(|place| rolled.push(valid(place)));
                rolled.truncate(cut);
                (cut..130).for_each(|place| rolled.push(valid(place)));
                (0..130).for_each(|place| straight.push(valid(place)));
                assert_eq!(rolled.finish(), straight.finish(), "{first_null} {cut}");
            }
        }
    }

    #[test]
    fn many_places_at_once_are_as_many_one_by_one() {
        for before in [0, 1, 63, 64, 65] {
            for count in [0, 1, 62, 63, 64, 65, 127, 128, 129, 300] {
                let (mut at_once, mut one_by_one) = (Validity::default(), Validity::default());
                (0..before).for_each(|_| at_once.push(false));
                (0..before).for_each(|_| one_by_one.push(false));
                at_once.push_all(count);
                (0..count).for_each(|_| one_by_one.push(true));
                at_once.push(false);
                one_by_one.push(false);
                assert_eq!(at_once.finish(), one_by_one.finish(), "{before} {count}");
            }
        }
    }

    #[test]
    fn without_a_null_there_is_no_bitmap() {
        let mut valid = Validity::default();
        (0..9).for_each(|_| valid.push(true));
        valid.push(false);
        valid.truncate(9);
        assert_eq!((valid.count(), valid.finish()), (9, None));
    }
}
