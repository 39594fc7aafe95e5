//! The log of a parse: its errors, losses and labels. Each parser is written once and runs with one of two [`Log`]s.
//!
//! [`Fast`] reports only whether a row is valid. An invalid row is rolled back in the sink and parsed again by
//! [`Exact`], which alone makes errors: their code, byte, header and key. If requested, it also names every byte. Both are
//! monomorphised, so that the fast one does no work for the other.

use crate::error::{Code, Direction, Error, ErrorDetail, Loss};
use crate::header::Key;

/// Parsing has to end here. The log holds the reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stop;

pub type Result<T = (), E = Stop> = std::result::Result<T, E>;

/// How rows that do not decode are treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnError {
    #[default]
    Raise,
    Null,
    Column,
}

/// How a writer treats data that its format cannot carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnLoss {
    #[default]
    Raise,
    Drop,
    Report,
}

/// The errors and losses of a parse. A message is built only where it is used.
pub trait Log {
    /// Reports an error after which the rest cannot be found, and ends the parse.
    fn fatal(&mut self, code: Code, byte: Option<usize>, message: impl FnOnce() -> String) -> Stop;

    /// Reports an error that leaves the rest readable; [`Fast`] ends the parse.
    fn error(&mut self, code: Code, byte: Option<usize>, message: impl FnOnce() -> String) -> Result;

    /// As `error`, for an output column instead of a position in the message.
    fn column_error(&mut self, error: impl FnOnce() -> ErrorDetail) -> Result;

    /// Reports data that the target cannot carry. Where the caller agreed to lose it, it is only recorded.
    fn loss(&mut self, agreed: bool, loss: impl FnOnce() -> Loss) -> Result;

    /// This log as one of the two for columns, where parsing is not monomorphised.
    fn either(&mut self) -> Either<'_>;

    /// Sets the header that errors belong to from here on; `None` after the last.
    fn enter_header(&mut self, _index: Option<usize>) {}

    /// Names the key of the header entered.
    fn name_header(&mut self, _key: &Key<'_>) {}

    /// Names some bytes of the message.
    fn label(&mut self, _start: usize, _end: usize, _field: &'static str, _text: impl FnOnce() -> String) {}
}

pub enum Either<'m> {
    Fast(&'m mut Fast),
    Exact(&'m mut Exact),
}

/// Reports whether a row is valid, and nothing else.
pub struct Fast {
    on_loss: OnLoss,
}

impl Fast {
    pub fn new(on_loss: OnLoss) -> Self {
        Fast { on_loss }
    }
}

impl Log for Fast {
    #[inline]
    fn fatal(&mut self, _: Code, _: Option<usize>, _: impl FnOnce() -> String) -> Stop {
        Stop
    }

    #[inline]
    fn error(&mut self, _: Code, _: Option<usize>, _: impl FnOnce() -> String) -> Result {
        Err(Stop)
    }

    #[inline]
    fn column_error(&mut self, _: impl FnOnce() -> ErrorDetail) -> Result {
        Err(Stop)
    }

    #[inline]
    fn loss(&mut self, agreed: bool, _: impl FnOnce() -> Loss) -> Result {
        match self.on_loss {
            OnLoss::Drop => Ok(()),
            OnLoss::Raise if agreed => Ok(()),
            OnLoss::Raise | OnLoss::Report => Err(Stop),
        }
    }

    fn either(&mut self) -> Either<'_> {
        Either::Fast(self)
    }
}

/// Collects every error with its place.
#[derive(Debug, Default)]
pub struct Exact {
    pub on_loss: OnLoss,
    pub errors: Vec<ErrorDetail>,
    pub losses: Vec<Loss>,
    /// The structure broke: what comes after the break was not read.
    pub broken: bool,
    /// Of a batch: messages begun, including the current one.
    pub messages: usize,
    /// Of a batch whose messages have a row each: errors do not name their message, so that they can be grouped.
    pub unnumbered: bool,
    /// Of a batch: bytes of the messages so far, as [`crate::limits::Limits::check_message`] counts them.
    pub output_bytes: usize,
    /// Of a batch: one of the two limits ended the parse.
    pub over_limit: bool,
    /// The position of all errors, if the parsed bytes are in the message in another form.
    pub place: Option<usize>,
    /// The fields of all bytes, where they are requested.
    pub labels: Option<Vec<Label>>,
    header: Option<usize>,
    key: Option<String>,
}

impl Exact {
    pub fn new(on_loss: OnLoss) -> Self {
        Exact { on_loss, ..Exact::default() }
    }

    /// A log that also names every byte.
    pub fn labelled() -> Self {
        Exact { labels: Some(Vec::new()), ..Exact::default() }
    }

    /// Assigns errors to the next message of a batch from here on.
    pub fn begin_message(&mut self) {
        self.messages += 1;
    }

    /// The result of a parse, or its first error. A parse that stopped without one is an internal error.
    pub fn ended<T>(&mut self, parsed: Result<T>, direction: Direction, format: &'static str) -> Result<T, Error> {
        match (self.errors.drain(..).next(), parsed) {
            (None, Ok(value)) => Ok(value),
            (None, Err(Stop)) => Err(no_reason(format)),
            (Some(error), _) => Err(error.located(direction, format, None)),
        }
    }

    /// Whether a header could not be read.
    pub fn has_header_errors(&self) -> bool {
        self.errors.iter().any(|error| error.header.is_some())
    }

    /// An error if something was lost and nothing may be.
    pub fn reject_losses(&self, format: &'static str) -> Result<(), Error> {
        match (self.on_loss, self.losses.first()) {
            (OnLoss::Raise, Some(loss)) => {
                Err(ErrorDetail::from(loss.clone()).located(Direction::Convert, format, None))
            }
            _ => Ok(()),
        }
    }

    fn note(&mut self, code: Code, byte: Option<usize>, message: String) {
        let (header, key) = (self.header, self.key.clone());
        self.push(ErrorDetail { code, message, byte: self.place.or(byte), header, key, column: None });
    }

    fn push(&mut self, mut error: ErrorDetail) {
        if let (Some(number), false) = (self.messages.checked_sub(1), self.unnumbered) {
            error.message = format!("message {number}: {}", error.message);
        }
        self.errors.push(error);
    }
}

/// The error of a parse that stopped and reported no error.
#[cold]
pub fn no_reason(format: &str) -> Error {
    Error::Internal(format!("{format}: a message could not be read or written, and no reason was noted"))
}

impl Log for Exact {
    #[cold]
    fn fatal(&mut self, code: Code, byte: Option<usize>, message: impl FnOnce() -> String) -> Stop {
        self.note(code, byte, message());
        self.broken = true;
        Stop
    }

    #[cold]
    fn error(&mut self, code: Code, byte: Option<usize>, message: impl FnOnce() -> String) -> Result {
        self.note(code, byte, message());
        Ok(())
    }

    #[cold]
    fn column_error(&mut self, error: impl FnOnce() -> ErrorDetail) -> Result {
        let mut error = error();
        // A column may miss a header, which has no place.
        error.byte = error.byte.map(|byte| self.place.unwrap_or(byte));
        self.push(error);
        Ok(())
    }

    #[cold]
    fn loss(&mut self, agreed: bool, loss: impl FnOnce() -> Loss) -> Result {
        match self.on_loss {
            OnLoss::Drop => {}
            OnLoss::Raise if agreed => {}
            OnLoss::Raise | OnLoss::Report => self.losses.push(loss()),
        }
        Ok(())
    }

    fn either(&mut self) -> Either<'_> {
        Either::Exact(self)
    }

    fn enter_header(&mut self, index: Option<usize>) {
        self.header = index;
        self.key = None;
    }

    fn name_header(&mut self, key: &Key<'_>) {
        self.key = Some(key.to_string());
    }

    #[inline]
    fn label(&mut self, start: usize, end: usize, field: &'static str, text: impl FnOnce() -> String) {
        if let Some(labels) = &mut self.labels {
            labels.push(Label { start, end, field, header: self.header, text: text() });
        }
    }
}

/// Bytes of a message and the field they belong to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    pub start: usize,
    pub end: usize,
    pub field: &'static str,
    pub header: Option<usize>,
    pub text: String,
}
