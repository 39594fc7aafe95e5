//! [`Validity`]: the growing bitmap of a column's nulls.

use std::ops::Range;

use crate::memory;

/// Which places of a growing column hold a value: a bit for each, the first in the lowest bit of the first word.
///
/// Bits after the last place are ones, so that appending valid places only increments the count.
#[derive(Default)]
pub struct Validity {
    words: Vec<u64>,
    count: usize,
}

impl Validity {
    #[inline]
    pub fn count(&self) -> usize {
        self.count
    }

    #[inline(always)]
    pub fn reserve(&mut self, more: usize) {
        let words = (self.count + more).div_ceil(64);
        if words > self.words.len() {
            self.grow(words);
        }
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, words: usize) {
        let more = words + 16 - self.words.len();
        memory::reserve(&mut self.words, more);
        self.words.resize(words + 16, u64::MAX);
    }

    /// Appends one place.
    #[inline]
    pub fn push(&mut self, valid: bool) {
        self.push_all(1);
        if !valid {
            self.clear(self.count - 1);
        }
    }

    /// Appends valid places.
    #[inline]
    pub fn push_all(&mut self, more: usize) {
        self.reserve(more);
        self.count += more;
    }

    /// Appends at most 64 places: those whose bit is set hold a value.
    #[inline]
    pub fn push_word(&mut self, valid: u64, count: usize) {
        debug_assert!(count <= 64);
        self.reserve(count);
        let nulls = if count == 64 { !valid } else { !valid & ((1 << count) - 1) };
        if nulls != 0 {
            let (word, bit) = (self.count / 64, self.count % 64);
            self.words[word] &= !(nulls << bit);
            if bit != 0 && nulls >> (64 - bit) != 0 {
                self.words[word + 1] &= !(nulls >> (64 - bit));
            }
        }
        self.count += count;
    }

    /// A bit for each of the 64 places from one on; it is set after the last.
    #[inline]
    pub fn word(&self, index: usize) -> u64 {
        let word = |number: usize| self.words.get(number).copied().unwrap_or(u64::MAX);
        match (index / 64, index % 64) {
            (number, 0) => word(number),
            (number, bit) => word(number) >> bit | word(number + 1) << (64 - bit),
        }
    }

    /// Appends the places of another column.
    pub fn extend(&mut self, other: &Validity) {
        let mut left = other.count;
        for word in &other.words {
            let count = left.min(64);
            self.push_word(*word, count);
            left -= count;
        }
    }

    /// Removes the places from one on, except those in some ranges, each of which is after the one before it.
    pub fn retain(&mut self, from: usize, kept: &[Range<usize>]) {
        let first = from / 64;
        let before = Validity { words: self.words.get(first..).unwrap_or_default().to_vec(), count: self.count };
        self.truncate(from);
        for range in kept {
            for index in range.clone().step_by(64) {
                self.push_word(before.word(index - first * 64), 64.min(range.end - index));
            }
        }
    }

    /// Marks a place, of those that room was made for, as null.
    #[inline]
    pub fn clear(&mut self, index: usize) {
        self.words[index / 64] &= !(1 << (index % 64));
    }

    /// This many places: those that are new were made room for, and some of them may have been cleared before.
    #[inline]
    pub fn set_count(&mut self, count: usize) {
        debug_assert!(count <= self.words.len() * 64);
        self.count = count;
    }

    /// Truncates to an earlier count, or forgets what was cleared after the last place.
    pub fn truncate(&mut self, count: usize) {
        self.count = self.count.min(count);
        let whole = self.count / 64;
        if let Some(last) = self.words.get_mut(whole) {
            *last |= u64::MAX << (self.count % 64);
            self.words.truncate(whole + 1);
        }
    }

    /// The bits, least significant byte first; `None` when every place holds a value.
    pub fn into_bits(mut self) -> Option<Vec<u64>> {
        self.words.truncate(self.count.div_ceil(64));
        if self.words.iter().all(|word| *word == u64::MAX) {
            return None;
        }
        self.words.iter_mut().for_each(|word| *word = word.to_le());
        Some(self.words)
    }
}
