//! The log of a parse: its errors, losses and labels. Each parser is written once and runs with one of two [`Log`]s.
//!
//! [`FailFast`] reports only whether a row is valid. An invalid row is rolled back in the sink and parsed again by
//! [`CollectErrors`], which creates the errors, with their code, byte, header and key. If requested, it also labels
//! every byte. Parsers are compiled for each log, so that the fast path does no work for errors.

use std::mem;

use crate::error::{Code, Direction, Error, ErrorDetail, Loss};
use crate::header::Key;
use crate::limits::{Limits, REPORTS};
use crate::memory;

/// Error that ends a parse. The log holds the reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stop;

pub type Result<T = (), E = Stop> = std::result::Result<T, E>;

/// Policy for rows that cannot be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnError {
    #[default]
    Raise,
    Null,
    Column,
    /// Null, with an error column. A row whose errors leave a condition undecided is kept.
    NullColumn,
}

impl OnError {
    /// Whether a null replaces data that cannot be read with certainty.
    pub fn is_null(self) -> bool {
        matches!(self, OnError::Null | OnError::NullColumn)
    }

    /// Whether the result has a column of errors.
    pub fn is_column(self) -> bool {
        matches!(self, OnError::Column | OnError::NullColumn)
    }
}

/// Policy of a writer for data that its format cannot hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnLoss {
    #[default]
    Raise,
    Drop,
    Report,
}

/// Receives the errors and losses of a parse. Their messages are built only if they are used.
pub trait Log {
    /// Reports an error after which parsing cannot continue, and ends the parse.
    fn fatal(&mut self, code: Code, byte: Option<usize>, message: impl FnOnce() -> String) -> Stop;

    /// Reports an error that leaves the rest readable; [`FailFast`] ends the parse.
    fn error(&mut self, code: Code, byte: Option<usize>, message: impl FnOnce() -> String) -> Result;

    /// Like `error`, for an output column instead of a position in the message.
    fn column_error(&mut self, error: impl FnOnce() -> ErrorDetail) -> Result;

    /// Reports data that the target cannot hold. If the caller has agreed to the loss, it is only recorded.
    fn loss(&mut self, agreed: bool, loss: impl FnOnce() -> Loss) -> Result;

    /// This log as a value, for functions that are not generic over it.
    fn either(&mut self) -> EitherLog<'_>;

    /// Sets the header of later errors; `None` after the last.
    fn enter_header(&mut self, _index: Option<usize>) {}

    /// Sets the key of the current header.
    fn name_header(&mut self, _key: &Key<'_>) {}

    /// Labels bytes of the message with their field.
    fn label(&mut self, _start: usize, _end: usize, _field: &'static str, _text: impl FnOnce() -> String) {}
}

/// One of the two logs, for functions that are not generic over it.
pub enum EitherLog<'m> {
    FailFast(&'m mut FailFast),
    Collect(&'m mut CollectErrors),
}

/// Ends the parse at the first error, without a message.
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

/// Collects errors, losses and labels with their positions, up to a limit, and whether there were more.
#[derive(Debug)]
pub struct CollectErrors {
    on_loss: OnLoss,
    errors: Vec<ErrorDetail>,
    losses: Vec<Loss>,
    /// Maximum number of errors, of losses and of labels, from [`Limits::reports`].
    reports: usize,
    /// Whether errors or losses were dropped.
    left_out: LeftOut,
    /// Whether a header could not be read, even if its error was not kept.
    has_header_errors: bool,
    /// Whether the parse ended before the end of the bytes.
    is_broken: bool,
    counts: BatchCounts,
    /// Whether errors omit the number of their message. Errors of batches with one row per message can then be grouped.
    unnumbered: bool,
    /// Whether a limit of a batch ended the parse.
    over_limit: bool,
    /// Position reported for every error if the parsed bytes are not the bytes of the message itself, for example after
    /// decompression.
    error_byte: Option<usize>,
    /// Labels of all bytes, if they are requested.
    labels: Option<Vec<Label>>,
    header: Option<usize>,
    key: Option<String>,
}

/// Counts of the parse of a batch so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BatchCounts {
    /// Number of messages, including the current one.
    pub messages: usize,
    /// Total length of the messages' fields and headers.
    pub output_bytes: usize,
    /// Number of decompressed bytes.
    pub decompressed_bytes: usize,
}

/// Whether a log dropped errors or losses.
#[derive(Debug, Clone, Copy, Default)]
struct LeftOut {
    errors: bool,
    losses: bool,
}

/// Minimum number of entries of a truncated list: the first report, and the note that more were dropped.
pub const MIN_REPORTS: usize = 2;

/// Entry of a list that is truncated at the limit of reports.
pub trait Report: Sized {
    /// Last entry of a truncated list.
    fn left_out(limit: usize) -> Self;
}

impl Report for ErrorDetail {
    fn left_out(limit: usize) -> Self {
        ErrorDetail::of_message(Code::LimitExceeded, REPORTS.describe_excess("there are more errors than", limit))
    }
}

impl Report for Loss {
    fn left_out(limit: usize) -> Self {
        Loss::of_message(Code::LimitExceeded, REPORTS.describe_excess("there are more losses than", limit))
    }
}

impl Label {
    /// Last entry of a truncated list, for the rest of the message.
    pub fn left_out(start: usize, end: usize, limit: usize) -> Self {
        let text = REPORTS.describe_excess("there are more labels than", limit);
        Label { start, end, field: "not shown", header: None, text }
    }
}

/// Truncates a list to `max_len` entries. The last entry says that more were dropped.
pub fn truncate_list<D: Report>(reports: &mut Vec<D>, max_len: usize, limit: usize) {
    reports.truncate(max_len.max(MIN_REPORTS) - 1);
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

    /// Creates a log that also labels every byte.
    pub fn with_labels(reports: usize) -> Self {
        CollectErrors { labels: Some(Vec::new()), ..CollectErrors::new(OnLoss::Raise, reports) }
    }

    /// Omits the number of the message in errors.
    pub fn without_numbers(self) -> Self {
        CollectErrors { unnumbered: true, ..self }
    }

    /// Assigns errors to message `number` of a batch, counted from 1; `error_byte` is the position of all of them, if
    /// given.
    pub fn for_message(self, number: usize, error_byte: Option<usize>) -> Self {
        CollectErrors { counts: BatchCounts { messages: number, ..self.counts }, error_byte, ..self }
    }

    /// Parses bytes that are not the bytes of the message itself, for example after decompression. Positions in them
    /// mean nothing to the caller, so every error gets the position `byte`.
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

    /// Parses a part of a frame, after which the frame stays readable. Also returns whether the parse broke.
    pub fn inside_frame<T>(&mut self, parse: impl FnOnce(&mut Self) -> T) -> (T, bool) {
        let was_broken = mem::take(&mut self.is_broken);
        let parsed = parse(self);
        (parsed, mem::replace(&mut self.is_broken, was_broken))
    }

    /// Errors so far. [`CollectErrors::take_errors`] truncates the list for the user.
    pub fn errors(&self) -> &[ErrorDetail] {
        &self.errors
    }

    /// Adds the errors of another log.
    pub fn add_errors(&mut self, errors: Vec<ErrorDetail>) {
        self.errors.extend(errors);
    }

    /// Clears the errors.
    pub fn clear_errors(&mut self) {
        self.errors.clear();
    }

    /// Takes the errors of a broken message, in a frame that continues after it.
    pub fn take_errors_of_frame(&mut self) -> Vec<ErrorDetail> {
        self.is_broken = false;
        self.take_errors()
    }

    /// Position reported for every error; `None` if each error has its own.
    pub fn error_byte(&self) -> Option<usize> {
        self.error_byte
    }

    /// Whether this log labels bytes.
    pub fn has_labels(&self) -> bool {
        self.labels.is_some()
    }

    /// Takes the labels, and also returns their limit. A truncated list has one label more than the limit.
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

    /// Adds to the number of bytes of messages.
    pub fn count_output(&mut self, bytes: usize) {
        self.counts.output_bytes = self.counts.output_bytes.saturating_add(bytes);
    }

    /// Adds to the number of decompressed bytes.
    pub fn count_decompressed(&mut self, bytes: usize) {
        self.counts.decompressed_bytes = self.counts.decompressed_bytes.saturating_add(bytes);
    }

    /// Ends the parse of a batch that exceeds a limit.
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

    /// Takes the errors in the form for the user.
    pub fn take_errors(&mut self) -> Vec<ErrorDetail> {
        let mut errors = mem::take(&mut self.errors);
        self.has_header_errors = false;
        if mem::take(&mut self.left_out.errors) {
            truncate_list(&mut errors, self.reports, self.reports);
        }
        errors
    }

    /// Takes the losses in the form for the user.
    pub fn take_losses(&mut self) -> Vec<Loss> {
        let mut losses = mem::take(&mut self.losses);
        if mem::take(&mut self.left_out.losses) {
            truncate_list(&mut losses, self.reports, self.reports);
        }
        losses
    }

    fn is_full<T>(&self, reports: &[T]) -> bool {
        reports.len() >= self.reports.max(MIN_REPORTS)
    }

    /// Begins the next message of a batch, to which errors now belong.
    pub fn begin_message(&mut self) {
        self.counts.messages += 1;
    }

    /// Undoes the last `begin_message`.
    pub fn cancel_message(&mut self) {
        self.counts.messages -= 1;
    }

    /// Returns the result of a parse, or its first error. A parse that stopped without an error is an internal error.
    pub fn finish_parse<T>(
        &mut self,
        parsed: Result<T>,
        direction: Direction,
        format: &'static str,
    ) -> Result<T, Error> {
        match (self.errors.drain(..).next(), parsed) {
            (None, Ok(value)) => Ok(value),
            (None, Err(Stop)) => Err(no_reason(format)),
            (Some(error), _) => Err(error.into_error(direction, format, None)),
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

    /// Returns an error if data was lost and losses are errors.
    pub fn reject_losses(&self, format: &'static str) -> Result<(), Error> {
        match (self.on_loss, self.losses.first()) {
            (OnLoss::Raise, Some(loss)) => {
                Err(ErrorDetail::from(loss.clone()).into_error(Direction::Convert, format, None))
            }
            _ => Ok(()),
        }
    }

    /// Adds an error of the current header; its message is `None` if the log is full.
    #[inline(never)] // Compiled once, not for each message.
    fn note(&mut self, code: Code, byte: Option<usize>, message: Option<String>) {
        self.has_header_errors |= self.header.is_some();
        let Some(message) = message else {
            self.left_out.errors = true;
            return;
        };
        let (header, key) = (self.header, self.key.clone());
        self.push(ErrorDetail { code, message, byte: self.error_byte.or(byte), header, key, column: None });
    }

    fn push(&mut self, mut error: ErrorDetail) {
        if let (Some(number), false) = (self.counts.messages.checked_sub(1), self.unnumbered) {
            error.message = format!("message {number}: {}", error.message);
        }
        self.errors.push(error);
    }
}

/// Error of a parse that stopped without an error in its log.
#[cold]
pub fn no_reason(format: &str) -> Error {
    Error::Internal(format!("{format}: a message could not be read or written, and no reason was noted"))
}

impl Log for CollectErrors {
    #[cold]
    fn fatal(&mut self, code: Code, byte: Option<usize>, message: impl FnOnce() -> String) -> Stop {
        let message = (!self.is_full(&self.errors)).then(message);
        self.note(code, byte, message);
        self.is_broken = true;
        Stop
    }

    #[cold]
    fn error(&mut self, code: Code, byte: Option<usize>, message: impl FnOnce() -> String) -> Result {
        let message = (!self.is_full(&self.errors)).then(message);
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
        // An error of a missing header has no position.
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
        let max_labels = self.reports.max(MIN_REPORTS);
        // One label beyond the limit shows that there were more.
        if let Some(labels) = self.labels.as_mut().filter(|labels| end > start && labels.len() <= max_labels) {
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
