//! The log of a parse: its errors, losses and labels. Each parser is written once and runs with one of two [`Log`]s.
//!
//! [`Fast`] reports only whether a row is valid. An invalid row is rolled back in the sink and parsed again by
//! [`CollectErrors`], which alone makes errors: their code, byte, header and key. If requested, it also names every
//! byte. Both are monomorphised, so that the fast one does no work for the other.

use std::mem;

use crate::error::{Code, Direction, Error, ErrorDetail, Loss};
use crate::header::Key;
use crate::limits::{Limits, REPORTS};
use crate::memory;

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
    /// Null, and a column of the errors; a row whose errors leave a condition undecided is kept, too.
    NullColumn,
}

impl OnError {
    /// Whether null takes the place of what cannot be read for certain.
    pub fn is_null(self) -> bool {
        matches!(self, OnError::Null | OnError::NullColumn)
    }

    /// Whether the result has a column of errors.
    pub fn is_column(self) -> bool {
        matches!(self, OnError::Column | OnError::NullColumn)
    }
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
    fn either(&mut self) -> EitherLog<'_>;

    /// Sets the header that errors belong to from here on; `None` after the last.
    fn enter_header(&mut self, _index: Option<usize>) {}

    /// Names the key of the header entered.
    fn name_header(&mut self, _key: &Key<'_>) {}

    /// Names some bytes of the message.
    fn label(&mut self, _start: usize, _end: usize, _field: &'static str, _text: impl FnOnce() -> String) {}
}

/// One of the two logs, where parsing is not compiled for each.
pub enum EitherLog<'m> {
    FailFast(&'m mut FailFast),
    Collect(&'m mut CollectErrors),
}

/// Reports whether a row is valid, and nothing else.
pub struct FailFast {
    on_loss: OnLoss,
}

impl FailFast {
    pub fn new(on_loss: OnLoss) -> Self {
        FailFast { on_loss }
    }
}

impl Log for FailFast {
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

    fn either(&mut self) -> EitherLog<'_> {
        EitherLog::FailFast(self)
    }
}

/// Collects errors, losses and labels with their places: as many as a limit allows, and whether there were more.
#[derive(Debug)]
pub struct CollectErrors {
    on_loss: OnLoss,
    errors: Vec<ErrorDetail>,
    losses: Vec<Loss>,
    /// The most that is kept of each: [`Limits::reports`].
    reports: usize,
    /// Some were not kept.
    left_out: LeftOut,
    /// A header could not be read, whether its error was kept or not.
    has_header_errors: bool,
    /// The structure broke: what comes after the break was not read.
    is_broken: bool,
    counts: BatchCounts,
    /// In a batch whose messages have a row each, errors do not name their message, so that they can be grouped.
    unnumbered: bool,
    /// A limit of a batch ended the parse.
    over_limit: bool,
    /// The position of all errors, if the parsed bytes are in the message in another form.
    error_byte: Option<usize>,
    /// The fields of all bytes, where they are requested.
    labels: Option<Vec<Label>>,
    header: Option<usize>,
    key: Option<String>,
}

/// The counts of the parse of a batch so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BatchCounts {
    /// Messages begun, including the current one.
    pub messages: usize,
    /// Bytes of the messages, as [`crate::limits::Limits::check_message`] counts them.
    pub output_bytes: usize,
    /// Bytes that compressed records have become.
    pub decompressed_bytes: usize,
}

/// The kinds of reports that a log left out.
#[derive(Debug, Clone, Copy, Default)]
struct LeftOut {
    errors: bool,
    losses: bool,
}

/// The fewest entries of a list that is cut: the first, and the one that says that there were more.
pub const LEAST_REPORTS: usize = 2;

/// An entry of a list that is cut where it passes the limit of reports.
pub trait LimitedEntry: Sized {
    /// The last entry of a list that was cut.
    fn left_out(limit: usize) -> Self;
}

impl LimitedEntry for ErrorDetail {
    fn left_out(limit: usize) -> Self {
        ErrorDetail::of_message(Code::LimitExceeded, REPORTS.exceeded("there are more errors than", limit))
    }
}

impl LimitedEntry for Loss {
    fn left_out(limit: usize) -> Self {
        Loss::of_message(Code::LimitExceeded, REPORTS.exceeded("there are more losses than", limit))
    }
}

impl Label {
    /// The last entry of a list that was cut, for the rest of the message.
    pub fn left_out(start: usize, end: usize, limit: usize) -> Self {
        let text = REPORTS.exceeded("there are more labels than", limit);
        Label { start, end, field: "not shown", header: None, text }
    }
}

/// Cuts a list to `most` entries, of which the last says that there were more.
pub fn truncate_list<D: LimitedEntry>(reports: &mut Vec<D>, most: usize, limit: usize) {
    reports.truncate(most.max(LEAST_REPORTS) - 1);
    reports.push(D::left_out(limit));
}

impl Default for CollectErrors {
    fn default() -> Self {
        CollectErrors::new(OnLoss::Raise, Limits::DEFAULT.reports)
    }
}

impl CollectErrors {
    pub fn new(on_loss: OnLoss, reports: usize) -> Self {
        CollectErrors {
            on_loss,
            errors: Vec::new(),
            losses: Vec::new(),
            reports,
            left_out: LeftOut::default(),
            has_header_errors: false,
            is_broken: false,
            counts: BatchCounts::default(),
            unnumbered: false,
            over_limit: false,
            error_byte: None,
            labels: None,
            header: None,
            key: None,
        }
    }

    /// A log that also names every byte.
    pub fn labelled(reports: usize) -> Self {
        CollectErrors { labels: Some(Vec::new()), ..CollectErrors::new(OnLoss::Raise, reports) }
    }

    /// Errors do not name their message.
    pub fn without_numbers(self) -> Self {
        CollectErrors { unnumbered: true, ..self }
    }

    /// Errors belong to this message of a batch, counted from 1, and are at one place, if there is one.
    pub fn for_message(self, number: usize, error_byte: Option<usize>) -> Self {
        CollectErrors { counts: BatchCounts { messages: number, ..self.counts }, error_byte, ..self }
    }

    /// Parses the same bytes in another form: their positions mean nothing to the caller, so all errors are at one place.
    pub fn with_error_byte(&mut self, byte: usize, parse: impl FnOnce(&mut Self) -> Result) -> Result {
        let mut inner = CollectErrors {
            error_byte: Some(byte),
            unnumbered: self.unnumbered,
            errors: mem::take(&mut self.errors),
            has_header_errors: mem::take(&mut self.has_header_errors),
            left_out: self.left_out,
            counts: self.counts,
            ..CollectErrors::new(self.on_loss, self.reports)
        };
        let parsed = parse(&mut inner);
        let CollectErrors { errors, left_out, has_header_errors, counts, over_limit, .. } = inner;
        (self.errors, self.left_out, self.has_header_errors) = (errors, left_out, has_header_errors);
        (self.counts, self.over_limit) = (counts, over_limit);
        parsed
    }

    /// Parses a part of a frame that stays readable if the parse breaks. Returns the result, and whether it broke.
    pub fn inside_frame<T>(&mut self, parse: impl FnOnce(&mut Self) -> T) -> (T, bool) {
        let was_broken = mem::take(&mut self.is_broken);
        let parsed = parse(self);
        (parsed, mem::replace(&mut self.is_broken, was_broken))
    }

    /// The errors so far. They are cut where a list is returned to a user: see [`CollectErrors::take_errors`].
    pub fn errors(&self) -> &[ErrorDetail] {
        &self.errors
    }

    /// Adds errors that another log has collected.
    pub fn add_errors(&mut self, errors: Vec<ErrorDetail>) {
        self.errors.extend(errors);
    }

    /// Forgets the errors so far.
    pub fn clear_errors(&mut self) {
        self.errors.clear();
    }

    /// The errors of a message that broke, in a frame that continues after it.
    pub fn take_errors_of_frame(&mut self) -> Vec<ErrorDetail> {
        self.is_broken = false;
        self.take_errors()
    }

    /// Whether the structure broke.
    pub fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// The one place of all errors, if they have one.
    pub fn error_byte(&self) -> Option<usize> {
        self.error_byte
    }

    /// Whether bytes are labelled.
    pub fn has_labels(&self) -> bool {
        self.labels.is_some()
    }

    /// The labels so far, one more than the limit if there were more, and that limit.
    pub fn take_labels(&mut self) -> (Vec<Label>, usize) {
        (self.labels.take().unwrap_or_default(), self.reports)
    }

    pub fn counts(&self) -> BatchCounts {
        self.counts
    }

    /// Continues the counts of another parse.
    pub fn resume(&mut self, counts: BatchCounts) {
        self.counts = counts;
    }

    /// Counts the bytes of a message.
    pub fn count_output(&mut self, bytes: usize) {
        self.counts.output_bytes = self.counts.output_bytes.saturating_add(bytes);
    }

    /// Adds to the total of decompressed bytes.
    pub fn count_decompressed(&mut self, bytes: usize) {
        self.counts.decompressed_bytes = self.counts.decompressed_bytes.saturating_add(bytes);
    }

    /// Ends the parse of a batch that passes a limit.
    #[cold]
    pub fn end_over_limit(&mut self, message: String) -> Stop {
        self.over_limit = true;
        let _ = self.column_error(|| ErrorDetail::of_message(Code::LimitExceeded, message));
        Stop
    }

    /// Whether a limit of a batch ended the parse.
    pub fn is_over_limit(&self) -> bool {
        self.over_limit
    }

    /// The errors so far, for whom they are reported to.
    pub fn take_errors(&mut self) -> Vec<ErrorDetail> {
        let mut errors = mem::take(&mut self.errors);
        self.has_header_errors = false;
        if mem::take(&mut self.left_out.errors) {
            truncate_list(&mut errors, self.reports, self.reports);
        }
        errors
    }

    /// The losses so far, for whom they are reported to.
    pub fn take_losses(&mut self) -> Vec<Loss> {
        let mut losses = mem::take(&mut self.losses);
        if mem::take(&mut self.left_out.losses) {
            truncate_list(&mut losses, self.reports, self.reports);
        }
        losses
    }

    fn is_full<T>(&self, reports: &[T]) -> bool {
        reports.len() >= self.reports.max(LEAST_REPORTS)
    }

    /// Assigns errors to the next message of a batch from here on.
    pub fn begin_message(&mut self) {
        self.counts.messages += 1;
    }

    /// The message that was begun last does not exist.
    pub fn cancel_message(&mut self) {
        self.counts.messages -= 1;
    }

    /// The result of a parse, or its first error. A parse that stopped without one is an internal error.
    pub fn ended<T>(&mut self, parsed: Result<T>, direction: Direction, format: &'static str) -> Result<T, Error> {
        match (self.errors.drain(..).next(), parsed) {
            (None, Ok(value)) => Ok(value),
            (None, Err(Stop)) => Err(no_reason(format)),
            (Some(error), _) => Err(error.located(direction, format, None)),
        }
    }

    /// Whether there were more errors than the log keeps.
    pub fn has_left_out_errors(&self) -> bool {
        self.left_out.errors
    }

    /// Whether a header could not be read.
    pub fn has_header_errors(&self) -> bool {
        self.has_header_errors
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

    fn note(&mut self, code: Code, byte: Option<usize>, message: impl FnOnce() -> String) {
        self.has_header_errors |= self.header.is_some();
        if self.is_full(&self.errors) {
            self.left_out.errors = true;
            return;
        }
        let (header, key) = (self.header, self.key.clone());
        self.push(ErrorDetail { code, message: message(), byte: self.error_byte.or(byte), header, key, column: None });
    }

    fn push(&mut self, mut error: ErrorDetail) {
        if let (Some(number), false) = (self.counts.messages.checked_sub(1), self.unnumbered) {
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

impl Log for CollectErrors {
    #[cold]
    fn fatal(&mut self, code: Code, byte: Option<usize>, message: impl FnOnce() -> String) -> Stop {
        self.note(code, byte, message);
        self.is_broken = true;
        Stop
    }

    #[cold]
    fn error(&mut self, code: Code, byte: Option<usize>, message: impl FnOnce() -> String) -> Result {
        self.note(code, byte, message);
        Ok(())
    }

    #[cold]
    fn column_error(&mut self, error: impl FnOnce() -> ErrorDetail) -> Result {
        if self.is_full(&self.errors) {
            self.left_out.errors = true;
            return Ok(());
        }
        let mut error = error();
        self.has_header_errors |= error.header.is_some();
        // A column may miss a header, which has no place.
        error.byte = error.byte.map(|byte| self.error_byte.unwrap_or(byte));
        self.push(error);
        Ok(())
    }

    #[cold]
    fn loss(&mut self, agreed: bool, loss: impl FnOnce() -> Loss) -> Result {
        match self.on_loss {
            OnLoss::Drop => {}
            OnLoss::Raise if agreed => {}
            OnLoss::Raise | OnLoss::Report if self.is_full(&self.losses) => self.left_out.losses = true,
            OnLoss::Raise | OnLoss::Report => self.losses.push(loss()),
        }
        Ok(())
    }

    fn either(&mut self) -> EitherLog<'_> {
        EitherLog::Collect(self)
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
        let most = self.reports.max(LEAST_REPORTS);
        // One more than may be kept says that there were more.
        if let Some(labels) = self.labels.as_mut().filter(|labels| end > start && labels.len() <= most) {
            memory::push(labels, Label { start, end, field, header: self.header, text: text() });
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
