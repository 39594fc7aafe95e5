//! What both layouts of Iggy's headers have in common: lengths of four bytes, kinds of one, and keys and values of at most
//! 255 bytes.

use std::marker::PhantomData;

use crate::chunk::Run;
use crate::cursor::Cursor;
use crate::error::Code;
use crate::kind::{Kind, Kinds, Scalar};
use crate::mode::{Mode, OnLoss, Stop};
use crate::op::gate::{longer, no_bytes};
use crate::pen::Pen;
use crate::short::typed::Typed;
use crate::short::{Short, ShortHeader, Take};
use crate::value::ByteOrder;
use crate::walk::WriteOptions;

use super::{describe, describe_typed, given_kind, unknown_kind};

/// The fewest and the most bytes of a key and of a value in Iggy.
pub const LEAST_PART: usize = 1;
pub const MOST_PART: usize = 255;

/// A kind byte of Iggy; `None` and a noted fault when it is not one.
#[inline(always)]
pub fn read_kind<M: Mode>(
    cursor: &mut Cursor<'_>,
    kinds: Kinds,
    field: &'static str,
    mode: &mut M,
) -> Result<Option<Kind>, Stop> {
    let at = cursor.at();
    let code = cursor.take(1, field, mode)?[0];
    let kind = kinds.kind(code);
    mode.label(at, at + 1, field, || kind.map_or_else(|| code.to_string(), |kind| kind.name().into_owned()));
    if kind.is_none() {
        unknown_kind(field, code, at, mode)?;
    }
    Ok(kind)
}

/// A length of Iggy, and whether it is one that a key or value may have.
#[inline(always)]
pub fn read_len<M: Mode>(
    cursor: &mut Cursor<'_>,
    part: &'static str,
    field: &'static str,
    empty: Code,
    mode: &mut M,
) -> Result<(usize, bool), Stop> {
    let at = cursor.at();
    let len = cursor.number::<u32, _>(field, ByteOrder::Little, mode)? as usize;
    let fits = (LEAST_PART..=MOST_PART).contains(&len);
    if !fits {
        match len {
            0 => mode.soft(empty, Some(at), || no_bytes(part))?,
            _ => mode.soft(Code::TooLong, Some(at), || longer(part, len, MOST_PART))?,
        }
    }
    Ok((len, fits))
}

/// A value of Iggy and where it begins; `None` when its length is none that a value may have.
#[inline(always)]
pub fn read_value<'a, M: Mode>(
    cursor: &mut Cursor<'a>,
    kind: Option<Kind>,
    mode: &mut M,
) -> Result<Option<(&'a [u8], usize)>, Stop> {
    let (len, fits) = read_len(cursor, "value", "value length", Code::EmptyValue, mode)?;
    let at = cursor.at();
    let value = cursor.take(len, "value", mode)?;
    mode.label(at, cursor.at(), "value", || match kind {
        Some(kind) => describe_typed(kind, value, ByteOrder::Little),
        None => describe(value),
    });
    Ok(fits.then_some((value, at)))
}

/// The key and the value of a header, where Iggy can carry both.
#[inline(always)]
fn parts_that_fit(header: ShortHeader<'_>) -> Option<(Run<'_>, Run<'_>)> {
    let value = header.value?;
    let fits = |part: Run<'_>| (LEAST_PART..=MOST_PART).contains(&part.len());
    (fits(header.key) && fits(value)).then_some((header.key, value))
}

/// Writes `u8 kind, u32 len, value` of Iggy; false, and nothing written, where that is for the walk.
///
/// # Safety
///
/// There is room for them.
#[inline(always)]
unsafe fn write_run(pen: &mut Pen<'_>, kinds: Kinds, kind: Option<Kind>, part: Run<'_>) -> bool {
    let Some((kind, code)) = kind.and_then(|kind| Some((kind, kinds.code(kind)?))) else { return false };
    let width = kind.width();
    if width.is_some_and(|width| width != part.len()) {
        return false;
    }
    // SAFETY: as for this function.
    unsafe {
        pen.bytes([code]);
        pen.bytes((part.len() as u32).to_le_bytes());
        match width {
            Some(_) => pen.run_reversed(part),
            None => pen.run(part),
        }
    }
    true
}

/// Writes `u8 kind, u32 len, value` of Iggy from bits, most significant byte first.
///
/// # Safety
///
/// There is room for them.
#[inline(always)]
pub unsafe fn write_bits(pen: &mut Pen<'_>, kinds: Kinds, kind: Option<Kind>, bits: &[u8]) {
    let Some((kind, code)) = kind.and_then(|kind| Some((kind, kinds.code(kind)?))) else {
        unreachable!("the gate hands over values with a kind of this block's")
    };
    // SAFETY: as for this function.
    unsafe {
        pen.bytes([code]);
        pen.bytes((bits.len() as u32).to_le_bytes());
        match kind.width() {
            Some(_) => pen.reversed(bits),
            None => pen.slice(bits),
        }
    }
}

/// Writes headers straight from where they lie, of which there may be so many bytes; `None`: hand them over one by one.
#[inline(always)]
pub fn encode_short<'a, F: Typed, H: Short<'a>, M: Mode>(
    headers: H,
    most: usize,
    options: &WriteOptions,
    mode: &mut M,
    pen: &mut Pen<'_>,
) -> Option<Result<(), Stop>> {
    let given = given_kind(options);
    if H::ORDER != ByteOrder::Big || !H::HAVE_KINDS && given.is_none() {
        return None;
    }
    pen.reserve(most);
    let drops = options.on_loss == OnLoss::Drop;
    let mut behind = Behind { pen, given, drops, stopped: false, format: PhantomData::<F> };
    let done = headers.each(mode, &mut behind);
    Some(if behind.stopped { Err(Stop) } else { done })
}

/// Writes headers one behind the other, where there is room for all of them.
struct Behind<'p, 'o, F> {
    pen: &'p mut Pen<'o>,
    /// The kind of values that have none.
    given: Option<Kind>,
    /// Leaves out what is too long, empty or null.
    drops: bool,
    stopped: bool,
    format: PhantomData<F>,
}

impl<'a, F: Typed> Take<'a> for Behind<'_, '_, F> {
    #[inline(always)]
    fn take(&mut self, header: ShortHeader<'a>) {
        let Some((key, value)) = parts_that_fit(header) else {
            // What else is wrong with a part that has a kind is for the walk.
            let has_kinds = header.key_kind.is_some() || header.kind.is_some();
            self.stopped |= has_kinds || !self.drops;
            return;
        };
        // SAFETY: there is room.
        self.stopped |= !unsafe {
            let key_is_written = match F::KEYS_HAVE_KINDS {
                true => {
                    let kind = header.key_kind.unwrap_or(Kind::Named(Scalar::String));
                    write_run(self.pen, F::CODES, Some(kind), key)
                }
                false => {
                    self.pen.bytes((key.len() as u32).to_le_bytes());
                    self.pen.run(key);
                    true
                }
            };
            // A value of another size than its kind is for the walk, too.
            key_is_written && write_run(self.pen, F::CODES, header.kind.or(self.given), value)
        };
    }
}
