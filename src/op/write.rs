//! What writing has in common for one message and for columns: headers are gathered, gated for what the target cannot
//! carry, and sealed.

use std::borrow::Cow;
use std::marker::PhantomData;
use std::mem;
use std::ops::Range;

use super::gate;
use crate::ask::{Asked, Spelled};
use crate::error::{Code, Direction, Error, Loss};
use crate::header::{Header, Key, KeyForm, Text, WantedKey};
use crate::kind::{Kind, Scalar};
use crate::mode::{Exact, Fast, Mode, OnLoss, Result};
use crate::spelling::{Spelling, is_other_nan, typed, untyped};
use crate::value::{ByteOrder, Checks, Misfit, bits_of};
use crate::walk::{Batch, Block, Contents, Envelope, FieldValue, Presence, Sealed, Sink, WriteOptions};

/// Where the headers of a writer come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    /// The order of the bytes of values that have a kind.
    pub order: ByteOrder,
    /// The form of their keys.
    pub keys: KeyForm,
    /// Encode or convert: a value that is none of its kind is the caller's fault in one and a loss in the other.
    pub direction: Direction,
}

impl Origin {
    /// Headers that a user gave: typed values are their bits.
    pub const GIVEN: Origin = Origin { order: ByteOrder::Big, keys: KeyForm::Text, direction: Direction::Encode };
}

/// What gives a value its kind again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Back {
    /// The key as it was written.
    pub key: WantedKey,
    /// As a user names it.
    pub kind: String,
    /// The kind was lost.
    pub lost: bool,
}

/// The message at hand, on its way into the format `E`.
pub struct Writer<'a, E> {
    options: WriteOptions,
    origin: Origin,
    /// The kind of every value that has none.
    given: Option<Kind>,
    headers: Vec<Header<'a>>,
    /// Values that had to be spelled anew, one behind the other, and the places of their headers.
    spelled: Vec<u8>,
    places: Vec<(usize, Range<usize>)>,
    /// Memory for the headers with such values. It holds none between two messages.
    sealed: Vec<Header<'static>>,
    /// How often each key that something was said of stood so far.
    seen: Vec<usize>,
    /// Of a report: what gives the values that were written their kinds again.
    backs: Vec<Back>,
    fields: Vec<FieldValue<'a>>,
    format: PhantomData<fn() -> E>,
}

impl<'a, E: Envelope> Writer<'a, E> {
    /// Refuses options that make no sense for the format.
    pub fn new(options: WriteOptions, origin: Origin) -> Result<Self, Error> {
        if !E::Block::IS_TARGET {
            return Err(Error::Value(format!(
                "{} reads either layout and is no target: name iggy or iggy-2023",
                E::NAME
            )));
        }
        if options.canonical && E::Block::CANONICAL.is_none() {
            return Err(Error::Value(format!("canonical=True: {} has no order of its own for headers", E::NAME)));
        }
        options.kinds.check(E::NAME, E::Block::KINDS)?;
        let given = (options.kinds == Asked::Binary).then_some(Kind::Named(Scalar::Binary));
        Ok(Writer {
            options,
            origin,
            given,
            headers: Vec::new(),
            spelled: Vec::new(),
            places: Vec::new(),
            sealed: Vec::new(),
            seen: Vec::new(),
            backs: Vec::new(),
            fields: Vec::new(),
            format: PhantomData,
        })
    }

    pub fn options(&self) -> &WriteOptions {
        &self.options
    }

    pub fn clear(&mut self) {
        self.headers.clear();
        self.spelled.clear();
        self.places.clear();
        self.seen.clear();
        self.backs.clear();
        self.fields.clear();
    }

    /// Writes the message behind what `out` holds. Nothing is written when it fails.
    pub fn seal<M: Mode>(&mut self, headers: Presence, mode: &mut M, out: &mut Vec<u8>) -> Result<Sealed> {
        if headers == Presence::Absent && self.options.refuse_null_headers {
            let refused = || "the list of headers is null, and null_headers=\"raise\" refuses that".into();
            return Err(mode.hard(Code::NullNotCarried, None, refused));
        }
        let canonical = E::Block::CANONICAL.filter(|_| self.options.canonical);
        if self.places.is_empty() && canonical.is_none() {
            return E::seal(Contents { fields: &self.fields, headers: &self.headers }, mode, out);
        }
        let mut headers = without_headers(mem::take(&mut self.sealed));
        headers.extend_from_slice(&self.headers);
        for (place, range) in &self.places {
            headers[*place].value = Some(&self.spelled[range.clone()]);
        }
        if let Some(compare) = canonical {
            headers.sort_by(compare);
        }
        let sealed = E::seal(Contents { fields: &self.fields, headers: &headers }, mode, out);
        self.sealed = without_headers(headers);
        sealed
    }

    /// What gives the values their kinds again, in the order of their headers.
    pub fn into_backs(self) -> Vec<Back> {
        self.backs
    }

    fn remember(&mut self, key: &Key<'_>, kind: impl FnOnce() -> String, lost: bool) {
        if self.options.on_loss == OnLoss::Report {
            self.backs.push(Back { key: key.into(), kind: kind(), lost });
        }
    }

    /// A value whose kind changes, or that has to be spelled anew; `None` when its header is left out.
    fn retype<M: Mode>(
        &mut self,
        header: &mut Header<'a>,
        source: &Key<'a>,
        bytes: &'a [u8],
        mode: &mut M,
    ) -> Result<Option<Cow<'a, [u8]>>> {
        let (index, key) = (header.index, header.key.clone());
        let lost = |code, message: String| gate::lost(index, &key, code, message);
        let bits = match header.kind {
            Some(kind) => bits_of(kind, bytes, self.origin.order),
            None => Cow::Borrowed(bytes),
        };
        if !E::Block::KINDS.are_carried() {
            let Some(kind) = header.kind.take() else { return Ok(Some(bits)) };
            let Asked::Spelled(spelling) = self.options.kinds else {
                let how = "pass types=\"be\", \"le\" or \"text\" (--types be)";
                let what = || format!("{} carries no types: {how} to write {} values", E::NAME, kind.name());
                return mode.loss(false, || lost(Code::TypeNotCarried, what())).map(|()| None);
            };
            // A kind that is lost can only be given back to bits that are a value of it.
            let is_value = Checks::Value.check(kind, &bits);
            let written = match is_value.and_then(|()| respelled(&bits, |bits| untyped(kind, bits, spelling))) {
                Ok(written) => written,
                Err(misfit) => return self.misfit(index, &key, *misfit, mode),
            };
            // All NaNs are spelled alike: only one of them comes back as it was.
            let comes_back = spelling != Spelling::Text || !is_other_nan(kind, &bits);
            let back = || Spelled { kind, spelling }.name();
            mode.loss(true, || Loss {
                kind: comes_back.then(back),
                written: Some(spelled_as(kind, spelling)),
                ..lost(Code::TypeNotCarried, format!("the type {} is not carried", kind.name()))
            })?;
            if E::Block::CARRIES.fits(written.len()) {
                self.remember(&key, back, true);
            }
            return Ok(Some(written));
        }
        let asked = self.options.kinds.of([source, &header.key], &mut self.seen);
        let (kind, bits) = match (asked, header.kind) {
            (Some(asked), None | Some(Kind::Named(Scalar::Binary | Scalar::String)))
                if header.kind != Some(asked.kind) =>
            {
                match respelled(&bits, |bits| typed(asked.kind, bits, asked.spelling)) {
                    Ok(made) => (asked.kind, made),
                    Err(misfit) => return mode.loss(false, || lost(misfit.code, misfit.message)).map(|()| None),
                }
            }
            (Some(asked), Some(kind)) if kind != asked.kind => {
                let what = || format!("the value is {} and {} was asked for", kind.name(), asked.kind.name());
                return mode.loss(false, || lost(Code::WrongType, what())).map(|()| None);
            }
            (_, Some(kind)) => (kind, bits),
            (_, None) if self.options.kinds == Asked::Binary => (Kind::Named(Scalar::Binary), bits),
            (_, None) => {
                let how = "pass types={\"retry\": \"int32\"} (--type retry=int32) or types=\"binary\" (--types binary)";
                let what = || format!("{} values need a type: {how}", E::NAME);
                return mode.loss(false, || lost(Code::UnknownType, what())).map(|()| None);
            }
        };
        let (kind, bits, back) = match E::Block::KINDS.code(kind) {
            Some(_) => (kind, bits, None),
            None => {
                if let Err(misfit) = Checks::Value.check(kind, &bits) {
                    return self.misfit(index, &key, *misfit, mode);
                }
                let Some((scalar, bits, spelling)) = gate::carrier(kind, bits) else {
                    return mode.loss(false, || lost(Code::OutOfRange, gate::HALF_PAIR.into())).map(|()| None);
                };
                let back = Spelled { kind, spelling }.name();
                mode.loss(false, || Loss {
                    kind: Some(back.clone()),
                    written: Some(scalar.name()),
                    ..lost(Code::TypeNotCarried, format!("the type {} is not carried", kind.name()))
                })?;
                (Kind::Named(scalar), bits, Some(back))
            }
        };
        if let Err(misfit) = E::Block::CARRIES.checks.check(kind, &bits) {
            return self.misfit(index, &key, *misfit, mode);
        }
        if E::Block::CARRIES.fits(bits.len()) {
            let is_lost = back.is_some();
            self.remember(&key, || back.unwrap_or_else(|| kind.name().into_owned()), is_lost);
        }
        header.kind = Some(kind);
        Ok(Some(bits))
    }

    /// Bits that are no value of their kind.
    #[cold]
    fn misfit<T, M: Mode>(&self, index: usize, key: &Key<'a>, misfit: Misfit, mode: &mut M) -> Result<Option<T>> {
        match self.origin.direction {
            Direction::Convert => mode.loss(false, || gate::lost(index, key, misfit.code, misfit.message))?,
            _ => mode.soft(misfit.code, None, || misfit.message)?,
        }
        Ok(None)
    }
}

/// Bits in another spelling, borrowed where they were.
fn respelled<'a>(
    bits: &Cow<'a, [u8]>,
    spell: impl for<'b> Fn(&'b [u8]) -> Result<Cow<'b, [u8]>, Box<Misfit>>,
) -> Result<Cow<'a, [u8]>, Box<Misfit>> {
    match bits {
        Cow::Borrowed(bits) => spell(bits),
        Cow::Owned(bits) => spell(bits).map(|written| Cow::Owned(written.into_owned())),
    }
}

/// The memory of headers for others, which may live for another time.
fn without_headers<'b>(mut headers: Vec<Header<'_>>) -> Vec<Header<'b>> {
    headers.clear();
    headers.into_iter().map(|_| unreachable!("it was cleared")).collect()
}

/// What is written of a value whose kind is lost.
fn spelled_as(kind: Kind, spelling: Spelling) -> &'static str {
    match (kind.width(), spelling) {
        (None, _) => "as it is",
        (_, Spelling::Bytes(ByteOrder::Big)) => "big-endian",
        (_, Spelling::Bytes(ByteOrder::Little)) => "little-endian",
        (_, Spelling::Text) => "text",
    }
}

impl<'a, E: Envelope> Writer<'a, E> {
    /// Whether a header can be written as it is: what nearly all of them are.
    #[inline(always)]
    fn is_plain(&self, header: &Header<'a>) -> bool {
        if self.options.on_loss == OnLoss::Report {
            return false; // What every value was is part of the report.
        }
        let carries = E::Block::CARRIES;
        let fits = |len: usize| carries.fits(len);
        let has_form = gate::is_key_of(E::Block::KEYS, E::Block::KINDS, &header.key);
        let is_value = !matches!(&header.key, Key::Typed(typed) if typed.check(carries.checks).is_err());
        let key_fits = has_form && fits(header.key.byte_len()) && is_value;
        let value_fits = match (header.value, header.kind) {
            (None, None) => carries.nulls,
            (Some(value), None) => !E::Block::KINDS.are_carried() && fits(value.len()),
            // Spelled as they are, in whichever way: the kind is lost, as was agreed.
            (Some(value), Some(Kind::Named(scalar @ (Scalar::String | Scalar::Binary))))
                if matches!(self.options.kinds, Asked::Spelled(_)) =>
            {
                fits(value.len()) && (scalar == Scalar::Binary || Text::new(value).is_ok())
            }
            (Some(value), Some(kind)) => {
                let turned = self.origin.order == ByteOrder::Little && kind.width().is_some();
                E::Block::KINDS.code(kind).is_some()
                    && !turned
                    && !matches!(self.options.kinds, Asked::Each(_))
                    && fits(value.len())
                    && carries.checks.check(kind, value).is_ok()
            }
            (None, Some(_)) => false,
        };
        key_fits && value_fits
    }

    /// A header that the target may not be able to carry as it is.
    #[inline(never)]
    fn gated<M: Mode>(&mut self, mut header: Header<'a>, mode: &mut M) -> Result {
        let source = match gate::is_key_of(E::Block::KEYS, E::Block::KINDS, &header.key) {
            true => None,
            false => {
                let Some(key) = gate::key_for(E::Block::KEYS, self.origin.keys, &header, mode)? else { return Ok(()) };
                Some(std::mem::replace(&mut header.key, key))
            }
        };
        let carries = E::Block::CARRIES;
        if !gate::part_fits(carries, "key", &header, header.key.byte_len(), mode)? {
            return Ok(());
        }
        if let Key::Typed(typed) = header.key
            && let Err(mut misfit) = typed.check(carries.checks)
        {
            misfit.message = format!("key of {}", misfit.message);
            return self.misfit::<(), M>(header.index, &header.key, *misfit, mode).map(|_| ());
        }
        match header.value {
            None if carries.nulls => header.kind = None,
            None => {
                let lost = || gate::lost(header.index, &header.key, Code::NullNotCarried, "the value is null".into());
                return mode.loss(false, lost);
            }
            Some(bytes) if header.kind.is_some() || E::Block::KINDS.are_carried() => {
                let source = source.unwrap_or_else(|| header.key.clone());
                let Some(bits) = self.retype(&mut header, &source, bytes, mode)? else { return Ok(()) };
                if !gate::part_fits(carries, "value", &header, bits.len(), mode)? {
                    return Ok(());
                }
                match bits {
                    Cow::Borrowed(bits) => header.value = Some(bits),
                    Cow::Owned(bits) => {
                        let start = self.spelled.len();
                        self.spelled.extend_from_slice(&bits);
                        self.places.push((self.headers.len(), start..self.spelled.len()));
                    }
                }
            }
            Some(bytes) => {
                if !gate::part_fits(carries, "value", &header, bytes.len(), mode)? {
                    return Ok(());
                }
            }
        }
        self.headers.push(header);
        Ok(())
    }
}

impl<'a, E: Envelope> Sink<'a> for Writer<'a, E> {
    #[inline]
    fn header<M: Mode>(&mut self, mut header: Header<'a>, mode: &mut M) -> Result {
        if E::Block::KEYS == KeyForm::Text
            && let Key::Typed(typed) = header.key
            && let Some(Ok(text)) = typed.string().map(Text::new)
        {
            // Where keys are text, a typed string is no less.
            header.key = Key::Text(text);
        }
        let came_with = header.kind;
        if header.value.is_some() {
            header.kind = came_with.or(self.given);
        }
        if !self.is_plain(&header) {
            header.kind = came_with;
            return self.gated(header, mode);
        }
        self.headers.push(header);
        Ok(())
    }

    #[inline]
    fn fields(&mut self, fields: &[FieldValue<'a>]) {
        self.fields.extend_from_slice(fields);
    }
}

/// Encodes one message; `None` where the format has no cell for it.
pub struct EncodeMessage<'a> {
    pub headers: Option<Vec<Header<'a>>>,
    /// In the order of the format's table, the headers left out.
    pub fields: Vec<FieldValue<'a>>,
    pub options: WriteOptions,
}

impl EncodeMessage<'_> {
    fn write<E: Envelope, M: Mode>(&self, mode: &mut M) -> Result<Result<Option<Vec<u8>>>, Error> {
        let mut writer = Writer::<E>::new(self.options.clone(), Origin::GIVEN)?;
        let presence = if self.headers.is_some() { Presence::Whole } else { Presence::Absent };
        writer.fields(&self.fields);
        writer.headers.reserve(self.headers.as_ref().map_or(0, Vec::len));
        let gathered = self.headers.iter().flatten().try_for_each(|header| {
            mode.enter_header(Some(header.index));
            mode.name_header(&header.key);
            writer.header(header.clone(), mode)
        });
        mode.enter_header(None);
        let mut out = Vec::new();
        let sealed = gathered.and_then(|()| writer.seal(presence, mode, &mut out));
        Ok(sealed.map(|sealed| (sealed == Sealed::Written).then_some(out)))
    }
}

impl crate::format::Visitor for EncodeMessage<'_> {
    type Out = Result<Option<Vec<u8>>, Error>;

    fn visit<E: Envelope>(self) -> Self::Out {
        // Nearly every message can be written. What is wrong with one that cannot is looked for in a second go.
        if let Ok(made) = self.write::<E, _>(&mut Fast::new(self.options.on_loss))? {
            return Ok(made);
        }
        let mut mode = Exact::new(self.options.on_loss);
        let made = self.write::<E, _>(&mut mode)?;
        let made = mode.ended(made, Direction::Encode, E::NAME)?;
        mode.refuse_losses(E::NAME)?;
        Ok(made)
    }

    fn visit_batch<B: Batch>(self) -> Self::Out {
        Err(super::is_a_batch::<B>())
    }
}
