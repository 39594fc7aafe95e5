//! Between two layouts: a block of rows is decoded into columns, and encoded from them.

use super::buffer::{Runs, Seen, Validity, Values as _};
use super::decode::{self, decode};
use super::frame::Frame;
use super::lists::{Bits, Columns, Lists, Strings};
use super::{Block, COPY};

/// The columns between, kept for their memory.
#[derive(Default)]
pub struct Between {
    keys: Runs,
    values: Runs,
    has_value: Vec<u8>,
    ends: Vec<i32>,
}

impl Between {
    /// Decodes rows of a layout without types until one is not readable, and returns how many were decoded.
    pub fn decode<F: Frame>(&mut self, block: &Block<'_>, most: usize) -> usize {
        self.keys.truncate(0);
        self.values.truncate(0);
        self.ends.clear();
        self.ends.push(0);
        let mut has_value = Validity::default();
        let mut lists = decode::Lists {
            key_types: None,
            keys: &mut self.keys,
            types: None,
            values: &mut self.values,
            has_value: &mut has_value,
            ends: &mut self.ends,
        };
        let done = decode::<F, _>(block, most, Seen { bytes: 1, all: 1 }, &mut lists);
        let count = self.values.count();
        self.has_value.clear();
        match has_value.into_bits() {
            Some(words) => self.has_value.extend(words.iter().flat_map(|word| word.to_ne_bytes())),
            None => self.has_value.resize(count.div_ceil(8), u8::MAX),
        }
        // What kernels may read behind the last key and the last value.
        for runs in [&mut self.keys, &mut self.values] {
            runs.bytes_mut().extend([0; COPY]);
        }
        done
    }

    /// The decoded rows, to be encoded.
    pub fn lists(&self) -> Option<Lists<'_>> {
        let strings = |(offsets, bytes)| Strings { offsets, bytes };
        let (keys, values) = (strings(self.keys.parts()), strings(self.values.parts()));
        let has_value = Some(Bits { bytes: &self.has_value, offset: 0 });
        let mut lists = Lists::new(Columns::new(None, keys, None, values, has_value, 0..self.values.count())?);
        let taken = lists.fill(&self.ends, 0, |end| end as usize);
        (taken > 0).then_some(lists)
    }
}
