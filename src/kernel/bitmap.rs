//! [`Validity`]: the growing bitmap of a column's nulls.

use std::ops::Range;

use crate::memory;

/// Bitmap over the values of a growing column, the first in the lowest bit of the first word. A bit is set unless the
/// value is null.
///
/// Bits after the last value are ones, so that appending non-null values only increments the count.
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

    /// Appends one bit.
    #[inline]
    pub fn push(&mut self, valid: bool) {
        self.push_all(1);
        if !valid {
            self.clear(self.count - 1);
        }
    }

    /// Appends bits that are set.
    #[inline]
    pub fn push_all(&mut self, more: usize) {
        self.reserve(more);
        self.count += more;
    }

    /// Appends the lowest `count` bits of `valid`, at most 64.
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

    /// The 64 bits from `index` on. Bits after the last value are set.
    #[inline]
    pub fn word(&self, index: usize) -> u64 {
        let word = |number: usize| self.words.get(number).copied().unwrap_or(u64::MAX);
        match (index / 64, index % 64) {
            (number, 0) => word(number),
            (number, bit) => word(number) >> bit | word(number + 1) << (64 - bit),
        }
    }

    /// Appends the bits of another column.
    pub fn extend(&mut self, other: &Validity) {
        let mut left = other.count;
        for word in &other.words {
            let count = left.min(64);
            self.push_word(*word, count);
            left -= count;
        }
    }

    /// Removes the bits from `from` on, except those in the given ranges, which are sorted and do not overlap.
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

    /// Marks a value as null. Memory for its bit was reserved.
    #[inline]
    pub fn clear(&mut self, index: usize) {
        self.words[index / 64] &= !(1 << (index % 64));
    }

    /// Sets the number of values. Memory for the bits of new ones was reserved, and some may have been cleared.
    #[inline]
    pub fn set_count(&mut self, count: usize) {
        debug_assert!(count <= self.words.len() * 64);
        self.count = count;
    }

    /// Truncates to an earlier count. Bits that were cleared after the last value are set again.
    pub fn truncate(&mut self, count: usize) {
        self.count = self.count.min(count);
        let whole = self.count / 64;
        if let Some(last) = self.words.get_mut(whole) {
            *last |= u64::MAX << (self.count % 64);
            self.words.truncate(whole + 1);
        }
    }

    /// The bits, least significant byte first; `None` if no value is null.
    pub fn into_bits(mut self) -> Option<Vec<u64>> {
        self.words.truncate(self.count.div_ceil(64));
        if self.words.iter().all(|word| *word == u64::MAX) {
            return None;
        }
        self.words.iter_mut().for_each(|word| *word = word.to_le());
        Some(self.words)
    }
}
