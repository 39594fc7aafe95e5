//! Headers of a block whose lengths take a byte each, nearly always.
//!
//! ```text
//!   block, behind its count   ┌───┬─────┬───┬───────┬ ─ ─ ┐ ┌ ─ ─ ─ ─ ─ ─ ─
//!                             │ k │ key │ v │ value │     │   SLACK bytes of whatever follows
//!                             └───┴─────┴───┴───────┴ ─ ─ ┘ └ ─ ─ ─ ─ ─ ─ ─
//! ```
//!
//! A length is below 64, so the length behind it, and a chunk of fixed size where a key or a value begins, lie at most
//! [`SLACK`] bytes behind the end of the headers, and whether they lay within is asked once a header. A longer length is
//! looked at by itself.

use super::{Short, ShortHeader, Take};
use crate::chunk::{Run, WIDE};
use crate::mode::{Mode, Stop};
use crate::varint::{self, Varint};

/// How many bytes there have to be behind the headers: a key of 63 bytes, the two lengths and a chunk.
pub const SLACK: usize = 64 + 2 + WIDE;

/// The byte of a length is neither negative nor continued where none of these bits is set.
const ODD_OR_LONG: u8 = 0x81;

/// The byte of the length of null.
const NULL: u8 = 0x01;

/// Headers that lie one behind the other, and bytes behind them.
pub struct InBlock<'a> {
    /// The headers, and at least `SLACK` bytes more.
    bytes: &'a [u8],
    len: usize,
    count: usize,
    /// Where the first byte stands in its cell.
    start: usize,
}

impl<'a> InBlock<'a> {
    /// Headers in the first `len` of some bytes; `None` when too few bytes lie behind them.
    #[inline(always)]
    pub fn new(bytes: &'a [u8], len: usize, count: usize, start: usize) -> Option<Self> {
        (bytes.len() >= len.saturating_add(SLACK)).then_some(InBlock { bytes, len, count, start })
    }

    #[inline(always)]
    fn byte(&self, at: usize) -> u8 {
        debug_assert!(at < self.len + SLACK);
        // SAFETY: a header begins at most where the headers end, and its second length at most 64 bytes behind that.
        unsafe { *self.bytes.get_unchecked(at) }
    }

    /// A length of more than one byte, and where it ends; what it counts lies within the headers.
    #[cold]
    #[inline(never)]
    fn long(&self, at: usize) -> Result<(usize, usize), Stop> {
        let rest = self.bytes.get(at..self.len).ok_or(Stop)?;
        match varint::read(rest) {
            Varint::Read { bits, len, lost: false } => match usize::try_from(varint::unzigzag(bits)) {
                Ok(counted) if counted <= rest.len() - len => Ok((at + len, counted)),
                _ => Err(Stop),
            },
            _ => Err(Stop),
        }
    }
}

impl<'a> Short<'a> for InBlock<'a> {
    #[inline(always)]
    fn most(&self) -> usize {
        self.count
    }

    #[inline(always)]
    fn byte_len(&self) -> usize {
        self.len
    }

    /// Also sees that they end where the block does.
    #[inline(always)]
    fn each<M: Mode, T: Take<'a>>(self, mode: &mut M, to: &mut T) -> Result<(), Stop> {
        // SAFETY: every run that is made begins at most 65 bytes behind the headers, and is asked for its bytes when it is
        // known to lie within.
        let run = |at, len| unsafe { Run::new(self.bytes, at, len) };
        let mut at = 0;
        for index in 0..self.count {
            // What stands at the end of the headers is not of them, and found out below.
            let (key_at, key_len) = match self.byte(at) {
                byte if byte & ODD_OR_LONG == 0 => (at + 1, usize::from(byte >> 1)),
                _ => self.long(at)?,
            };
            let value_at = key_at + key_len;
            let (value_at, value_len, is_null) = match self.byte(value_at) {
                NULL => (value_at + 1, 0, true),
                byte if byte & ODD_OR_LONG == 0 => (value_at + 1, usize::from(byte >> 1), false),
                _ => {
                    let (value_at, value_len) = self.long(value_at)?;
                    (value_at, value_len, false)
                }
            };
            at = value_at + value_len;
            if at > self.len {
                return Err(Stop);
            }
            let key = run(key_at, key_len);
            if !T::SEES_TEXT && !key.is_ascii() && !mode.is_text(key) {
                return Err(Stop);
            }
            let value = if is_null { None } else { Some(run(value_at, value_len)) };
            to.take(ShortHeader { index, key_kind: None, key, kind: None, value, at: Some(self.start + value_at) });
        }
        if at == self.len { Ok(()) } else { Err(Stop) }
    }

    fn in_block(self) -> Option<InBlock<'a>> {
        Some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mode::{Fast, OnLoss};
    use crate::short::tests::Each;

    type Header = (Vec<u8>, Option<Vec<u8>>);

    fn read(headers: &[u8], count: usize) -> Result<Vec<Header>, Stop> {
        let mut bytes = headers.to_vec();
        bytes.extend([0x2a; SLACK]);
        let mut found = Vec::new();
        let short = InBlock::new(&bytes, headers.len(), count, 1).unwrap();
        let mut each = Each(|header: ShortHeader<'_>| {
            assert_eq!(
                header.key.chunk::<WIDE>()[..header.key.len().min(WIDE)],
                header.key.bytes()[..header.key.len().min(WIDE)]
            );
            if let Some(value) = header.value {
                assert_eq!(headers[header.at.unwrap() - 1..][..value.len()], *value.bytes());
            }
            found.push((header.key.bytes().to_vec(), header.value.map(|value| value.bytes().to_vec())));
        });
        short.each(&mut Fast::new(OnLoss::Raise), &mut each)?;
        Ok(found)
    }

    fn written(headers: &[Header]) -> Vec<u8> {
        let mut out = Vec::new();
        for (key, value) in headers {
            varint::write_count(key.len(), &mut out);
            out.extend(key);
            match value {
                Some(value) => {
                    varint::write_count(value.len(), &mut out);
                    out.extend(value);
                }
                None => out.push(NULL),
            }
        }
        out
    }

    #[test]
    fn lengths_of_one_byte_and_of_more_are_read() {
        for key_len in [0, 1, 31, 32, 33, 63, 64, 65, 200, 9000] {
            for value_len in [None, Some(0), Some(1), Some(63), Some(64), Some(65), Some(20_000)] {
                let header = (vec![b'k'; key_len], value_len.map(|len| vec![7; len]));
                let headers = [header.clone(), (b"n".to_vec(), None), header];
                assert_eq!(read(&written(&headers), 3), Ok(headers.to_vec()), "{key_len} {value_len:?}");
            }
        }
    }

    #[test]
    fn every_cut_and_every_byte_too_many_stops() {
        let headers = [(b"key".to_vec(), Some(vec![1; 70])), (vec![b'x'; 63], None), (b"".to_vec(), Some(vec![]))];
        let whole = written(&headers);
        for end in 0..whole.len() {
            assert_eq!(read(&whole[..end], 3), Err(Stop), "{end}");
        }
        assert_eq!(read(&[&whole[..], &[0]].concat(), 3), Err(Stop));
        assert_eq!(read(&whole, 2), Err(Stop));
        assert_eq!(read(&whole, 4), Err(Stop));
    }

    #[test]
    fn lengths_that_are_none_stop() {
        let key = [2, b'a'];
        for length in
            [&[0x03][..], &[0x81, 0x80], &[0xff; 6], &[0x80, 0x80, 0x80, 0x80, 0x70], &[0xfe, 0xff, 0xff, 0xff, 0x0f]]
        {
            assert_eq!(read(length, 1), Err(Stop), "{length:?}");
            assert_eq!(read(&[&key, length].concat(), 1), Err(Stop), "{length:?}");
        }
        assert_eq!(read(&[2, 0xff, 0], 1), Err(Stop), "no text");
    }

    #[test]
    fn without_bytes_behind_there_is_nothing_to_read() {
        assert!(InBlock::new(&[0; SLACK - 1], 0, 0, 0).is_none());
        assert!(InBlock::new(&[0; SLACK], 1, 0, 0).is_none());
        assert!(InBlock::new(&[0; SLACK], usize::MAX, 0, 0).is_none());
        assert!(InBlock::new(&[0; SLACK], 0, 0, 0).is_some());
    }
}
