//! Headers of a block whose keys and values are at most 255 bytes long, behind lengths of four bytes.
//!
//! ```text
//!   header   ┌──────────┬─────────────┬─────┬──────┬───────────────┬───────┐ ┌ ─ ─ ─ ─ ─ ─ ─
//!            │ key_kind │ u32 key_len │ key │ kind │ u32 value_len │ value │   SLACK bytes of whatever follows
//!            └──────────┴─────────────┴─────┴──────┴───────────────┴───────┘ └ ─ ─ ─ ─ ─ ─ ─
//!              where keys have kinds    1–255                        1–255
//! ```
//!
//! So all of a header, and a chunk of fixed size where its key or its value begins, lie at most [`SLACK`] bytes behind the
//! end of the headers, and whether they lay within is asked once a header.

use std::marker::PhantomData;

use super::{Short, ShortHeader, Take};
use crate::chunk::{Run, WIDE};
use crate::kind::{Kind, Kinds};
use crate::mode::{Mode, Stop};
use crate::value::ByteOrder;

/// The longest key, and the longest value.
const LONGEST: usize = 255;

/// A kind and a length.
const HEAD: usize = 5;

/// How many bytes there have to be behind the headers: a key with what stands before it, what stands before the value, and
/// a chunk.
pub const SLACK: usize = HEAD + LONGEST + HEAD + WIDE;

/// What such a format says of its headers.
pub trait Typed {
    /// Keys have kinds; without, they are text.
    const KEYS_HAVE_KINDS: bool;
    /// How values, and keys, are tagged.
    const CODES: Kinds;
}

/// Headers that lie one behind the other, and bytes behind them.
pub struct InTyped<'a, F> {
    /// The headers, and at least `SLACK` bytes more.
    bytes: &'a [u8],
    len: usize,
    /// Where the first byte stands in its cell.
    start: usize,
    format: PhantomData<F>,
}

impl<'a, F: Typed> InTyped<'a, F> {
    /// The bytes of a header without its key and its value.
    const FIXED: usize = if F::KEYS_HAVE_KINDS { 2 * HEAD } else { 2 * HEAD - 1 };

    /// Headers in the first `len` of some bytes; `None` when too few bytes lie behind them.
    #[inline(always)]
    pub fn new(bytes: &'a [u8], len: usize, start: usize) -> Option<Self> {
        (bytes.len() >= len.saturating_add(SLACK)).then_some(InTyped { bytes, len, start, format: PhantomData })
    }

    /// # Safety
    ///
    /// The byte lies before the chunk behind the last header.
    #[inline(always)]
    unsafe fn kind(&self, at: usize) -> Result<Kind, Stop> {
        debug_assert!(at + WIDE <= self.len + SLACK);
        // SAFETY: as for this function.
        F::CODES.kind(unsafe { *self.bytes.get_unchecked(at) }).ok_or(Stop)
    }

    /// A length that a key or a value may have.
    ///
    /// # Safety
    ///
    /// Its first byte lies at most as far as a kind does.
    #[inline(always)]
    unsafe fn length(&self, at: usize) -> Result<usize, Stop> {
        debug_assert!(at + WIDE <= self.len + SLACK);
        // SAFETY: as for this function; four bytes are fewer than a chunk.
        let bytes = unsafe { *self.bytes.as_ptr().add(at).cast::<[u8; 4]>() };
        match u32::from_le_bytes(bytes) as usize {
            len @ 1..=LONGEST => Ok(len),
            _ => Err(Stop),
        }
    }
}

impl<'a, F: Typed> Short<'a> for InTyped<'a, F> {
    const HAVE_KINDS: bool = true;
    const ORDER: ByteOrder = ByteOrder::Little;

    #[inline(always)]
    fn most(&self) -> usize {
        self.len / (Self::FIXED + 2)
    }

    #[inline(always)]
    fn count(&self) -> Option<usize> {
        None
    }

    #[inline(always)]
    fn byte_len(&self) -> usize {
        self.len
    }

    /// Also sees that they end where the block does.
    #[inline(always)]
    fn each<M: Mode, T: Take<'a>>(self, mode: &mut M, to: &mut T) -> Result<(), Stop> {
        let (mut at, mut index) = (0, 0);
        while at < self.len {
            // SAFETY: a header begins within the headers, its key ends at most 260 bytes behind that, and `SLACK` counts
            // on; a run is asked for its bytes when it is known to lie within.
            let (key_kind, key, kind, value, value_at) = unsafe {
                let (key_kind, length_at) = match F::KEYS_HAVE_KINDS {
                    true => (Some(self.kind(at)?), at + 1),
                    false => (None, at),
                };
                let key_len = self.length(length_at)?;
                let kind_at = length_at + 4 + key_len;
                let kind = self.kind(kind_at)?;
                let value_len = self.length(kind_at + 1)?;
                let value_at = kind_at + HEAD;
                let key = Run::new(self.bytes, length_at + 4, key_len);
                (key_kind, key, kind, Run::new(self.bytes, value_at, value_len), value_at)
            };
            at = value_at + value.len();
            // Where a value may have another size than its kind, the walk takes those that have.
            let has_size = |kind: Kind, run: Run<'_>| kind.width().is_none_or(|width| width == run.len());
            if at > self.len || !has_size(kind, value) || !key_kind.is_none_or(|kind| has_size(kind, key)) {
                return Err(Stop);
            }
            if !F::KEYS_HAVE_KINDS && !T::SEES_TEXT && !key.is_ascii() && !mode.is_text(key) {
                return Err(Stop);
            }
            to.take(ShortHeader {
                index,
                key_kind,
                key,
                kind: Some(kind),
                value: Some(value),
                at: Some(self.start + value_at),
            });
            index += 1;
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

    struct Both;

    impl Typed for Both {
        const KEYS_HAVE_KINDS: bool = true;
        const CODES: Kinds = Kinds::Iggy;
    }

    struct Values;

    impl Typed for Values {
        const KEYS_HAVE_KINDS: bool = false;
        const CODES: Kinds = Kinds::IggyNamed;
    }

    type Header = (Option<Kind>, Vec<u8>, Kind, Vec<u8>);

    fn read<F: Typed>(headers: &[u8]) -> Result<Vec<Header>, Stop> {
        let mut bytes = headers.to_vec();
        bytes.extend([0x2a; SLACK]);
        let mut found = Vec::new();
        let short = InTyped::<F>::new(&bytes, headers.len(), 3).unwrap();
        let (most, byte_len) = (short.most(), short.byte_len());
        let mut each = Each(|header: ShortHeader<'_>| {
            let value = header.value.unwrap();
            assert_eq!(headers[header.at.unwrap() - 3..][..value.len()], *value.bytes());
            assert_eq!(header.index, found.len());
            found.push((header.key_kind, header.key.bytes().to_vec(), header.kind.unwrap(), value.bytes().to_vec()));
        });
        short.each(&mut Fast::new(OnLoss::Raise), &mut each)?;
        assert!(found.len() <= most);
        assert!(found.iter().map(|(_, key, _, value)| key.len() + value.len()).sum::<usize>() <= byte_len);
        Ok(found)
    }

    fn written<F: Typed>(headers: &[Header]) -> Vec<u8> {
        let mut out = Vec::new();
        for (key_kind, key, kind, value) in headers {
            out.extend(key_kind.map(|kind| F::CODES.code(kind).unwrap()));
            out.extend((key.len() as u32).to_le_bytes());
            out.extend(key);
            out.push(F::CODES.code(*kind).unwrap());
            out.extend((value.len() as u32).to_le_bytes());
            out.extend(value);
        }
        out
    }

    const STRING: Kind = Kind::Named(Scalar::String);
    const INT32: Kind = Kind::Named(Scalar::Int32);

    fn of_lengths(key_kind: Option<Kind>, key_len: usize, value_len: usize) -> Header {
        (key_kind, vec![b'k'; key_len], STRING, vec![7; value_len])
    }

    #[test]
    fn headers_of_all_lengths_are_read() {
        for key_len in [1, 31, 32, 33, 64, 65, 255] {
            for value_len in [1, 63, 64, 65, 255] {
                let last = (None, b"n".to_vec(), INT32, vec![1, 2, 3, 4]);
                let headers = [of_lengths(None, key_len, value_len), last];
                assert_eq!(read::<Values>(&written::<Values>(&headers)), Ok(headers.to_vec()));
                let last = (Some(INT32), vec![1, 0, 0, 0], Kind::Unnamed(200), vec![9; 3]);
                let headers = [of_lengths(Some(STRING), key_len, value_len), last];
                assert_eq!(read::<Both>(&written::<Both>(&headers)), Ok(headers.to_vec()));
            }
        }
        assert_eq!(read::<Both>(&[]), Ok(vec![]));
    }

    #[test]
    fn every_cut_and_every_byte_too_many_stops() {
        let headers = [of_lengths(Some(STRING), 3, 255), of_lengths(Some(STRING), 255, 1)];
        let whole = written::<Both>(&headers);
        let first = written::<Both>(&headers[..1]).len();
        for end in (1..whole.len()).filter(|end| *end != first) {
            assert_eq!(read::<Both>(&whole[..end]), Err(Stop), "{end}");
        }
        assert_eq!(read::<Both>(&[&whole[..], &[2]].concat()), Err(Stop));
    }

    #[test]
    fn what_a_walk_has_to_look_at_stops() {
        let good = (Some(INT32), vec![1, 0, 0, 0], INT32, vec![1, 2, 3, 4]);
        assert_eq!(read::<Both>(&written::<Both>(std::slice::from_ref(&good))), Ok(vec![good.clone()]));
        let empty_key = (Some(STRING), vec![], STRING, vec![1]);
        let long_value = (Some(STRING), vec![1], STRING, vec![1; 256]);
        let wide_value = (Some(STRING), vec![1], INT32, vec![1; 5]);
        let narrow_key = (Some(INT32), vec![1], STRING, vec![1; 4]);
        for header in [empty_key, long_value, wide_value, narrow_key] {
            assert_eq!(read::<Both>(&written::<Both>(&[good.clone(), header])), Err(Stop));
        }
        let mut without_kind = written::<Both>(&[good]);
        without_kind[0] = 0;
        assert_eq!(read::<Both>(&without_kind), Err(Stop));
        let not_text = (None, vec![0xff], STRING, vec![1]);
        assert_eq!(read::<Values>(&written::<Values>(&[not_text])), Err(Stop));
        let mut unnamed = written::<Values>(&[of_lengths(None, 1, 1)]);
        unnamed[5] = 16;
        assert_eq!(read::<Values>(&unnamed), Err(Stop));
    }

    #[test]
    fn without_bytes_behind_there_is_nothing_to_read() {
        assert!(InTyped::<Both>::new(&[0; SLACK - 1], 0, 0).is_none());
        assert!(InTyped::<Both>::new(&[0; SLACK], 1, 0).is_none());
        assert!(InTyped::<Both>::new(&[0; SLACK], usize::MAX, 0).is_none());
        assert!(InTyped::<Both>::new(&[0; SLACK], 0, 0).is_some());
    }
}
