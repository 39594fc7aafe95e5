//! What writing has in common for one message and for columns: headers are gathered, gated for what the target cannot
//! carry, and sealed.

use std::borrow::Cow;
use std::marker::PhantomData;

use crate::error::{Code, Direction, Error, Fault, Located};
use crate::format::Visitor;
use crate::header::Header;
use crate::mode::{Exact, Mode, OnLoss, Stop};
use crate::value::untyped;
use crate::walk::{Block, Envelope, FieldValue, Presence, Sealed, Sink, WriteOptions};

/// The message at hand, on its way into the format `E`.
pub struct Writer<'a, E> {
    options: WriteOptions,
    headers: Vec<Header<'a>>,
    /// Values that had to be spelled anew, by the place of their header.
    spelled: Vec<(usize, Vec<u8>)>,
    fields: Vec<FieldValue<'a>>,
    format: PhantomData<E>,
}

impl<E: Envelope> Writer<'_, E> {
    pub fn new(options: WriteOptions) -> Self {
        Writer { options, headers: Vec::new(), spelled: Vec::new(), fields: Vec::new(), format: PhantomData }
    }

    pub fn clear(&mut self) {
        self.headers.clear();
        self.spelled.clear();
        self.fields.clear();
    }

    /// Writes the message behind what `out` holds. Nothing is written when it fails.
    pub fn seal<M: Mode>(&self, headers: Presence, mode: &mut M, out: &mut Vec<u8>) -> Result<Sealed, Stop> {
        if headers == Presence::Absent && self.options.refuse_null_headers {
            let refused = || "the list of headers is null, and null_headers=\"raise\" refuses that".into();
            return Err(mode.hard(Code::NullNotCarried, None, refused));
        }
        if self.spelled.is_empty() {
            return E::seal(&self.fields, &self.headers, mode, out);
        }
        let mut headers: Vec<Header<'_>> = self.headers.clone();
        for (place, value) in &self.spelled {
            headers[*place].value = Some(value);
        }
        E::seal(&self.fields, &headers, mode, out)
    }
}

impl<'a, E: Envelope> Sink<'a> for Writer<'a, E> {
    #[inline]
    fn header<M: Mode>(&mut self, mut header: Header<'a>, mode: &mut M) -> Result<(), Stop> {
        match (header.kind, header.value) {
            (Some(kind), Some(bits)) if !E::Block::KINDS => {
                let Some(spelling) = self.options.kinds else {
                    return mode.loss(|| Fault {
                        code: Code::KindNotCarried,
                        message: format!(
                            "{} carries no kinds, and how to write {} was not said: kinds=\"be\", \"le\" or \"text\"",
                            E::NAME,
                            kind.name()
                        ),
                        byte: None,
                        header: Some(header.index),
                        key: Some(header.key.to_string()),
                        column: None,
                    });
                };
                header.kind = None;
                match untyped(kind, bits, spelling) {
                    Ok(Cow::Borrowed(value)) => header.value = Some(value),
                    Ok(Cow::Owned(value)) => self.spelled.push((self.headers.len(), value)),
                    Err(misfit) => mode.soft(misfit.code, None, || misfit.message)?,
                }
            }
            (None, _) if E::Block::KINDS => {
                mode.soft(Code::UnknownKind, None, || format!("{} wants a kind beside every value", E::NAME))?;
            }
            _ => {}
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

impl Visitor for EncodeMessage<'_> {
    type Out = Result<Option<Vec<u8>>, Error>;

    fn visit<E: Envelope>(self) -> Self::Out {
        let mut mode = Exact::new(self.options.on_loss);
        let mut writer = Writer::<E>::new(self.options);
        let presence = if self.headers.is_some() { Presence::Whole } else { Presence::Absent };
        writer.fields(&self.fields);
        // A walk that stops has said why: the faults are looked at below.
        let _ = self.headers.into_iter().flatten().try_for_each(|header| {
            mode.enter_header(Some(header.index));
            mode.name_header(&header.key);
            writer.header(header, &mut mode)
        });
        mode.enter_header(None);
        let mut out = Vec::new();
        let sealed = writer.seal(presence, &mut mode, &mut out);
        let fail =
            |direction, fault| Err(Error::Headers(direction, Box::new(Located { format: E::NAME, row: None, fault })));
        if !mode.faults.is_empty() {
            return fail(Direction::Encode, mode.faults.swap_remove(0));
        }
        if self.options.on_loss == OnLoss::Raise && !mode.losses.is_empty() {
            return fail(Direction::Convert, mode.losses.swap_remove(0));
        }
        Ok((sealed == Ok(Sealed::Written)).then_some(out))
    }
}
