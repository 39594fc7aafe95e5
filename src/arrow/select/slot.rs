//! [`Slot`]: a requested header, which computes the value of its column from its occurrences in a row.

use std::borrow::Cow;

use super::{Repeat, Selection};
use crate::arrow::binary::ViewInput;
use crate::arrow::column::Column;
use crate::arrow::schema;
use crate::arrow::types::Dialect;
use crate::encoding::Encoding;
use crate::error::{Code, ErrorDetail};
use crate::log::{EitherLog, Log, Result, Stop};
use crate::memory;
use crate::sink::Presence;
use crate::types::{Coding, Type};
use crate::value::{ByteOrder, InvalidValue, Value};
use crate::value_type::{Scalar, ValueType};

/// Header of the current row with a requested key.
#[derive(Clone, Copy)]
pub struct Occurrence<'a> {
    pub index: usize,
    pub value_type: Option<ValueType>,
    pub value: Option<&'a [u8]>,
    pub byte: Option<usize>,
}

/// A value, a null, or the error of invalid bytes.
type ReadValue<'a> = Result<Option<Value<'a>>, Box<InvalidValue>>;

/// The value of a selected header.
enum Selected<'a> {
    Value(Value<'a>),
    Null,
    /// The header is missing, or its value is invalid.
    Nothing,
}

/// A requested header and its column.
pub struct Slot {
    pub selection: Selection,
    /// Byte order of values that are copied into the column without conversion; `None` if values need a conversion.
    pub plain: Option<ByteOrder>,
    pub column: Column,
    dialect: Dialect,
    /// The byte order of values that carry a type.
    order: ByteOrder,
    /// Whether values of other types are rejected even if they fit.
    pub is_strict: bool,
}

impl Slot {
    /// Creates the slot of a selection. [`super::SelectSink::new`] documents the other arguments.
    pub fn new(
        selection: &Selection,
        dialect: Dialect,
        order: ByteOrder,
        has_types: bool,
        views: Option<&ViewInput>,
    ) -> Self {
        let dialect = selection.dialect(dialect);
        let data_type = selection.arrow(dialect);
        let column = match views {
            Some(input) => Column::new(schema::with_views(&data_type), input),
            None => Column::new(data_type, &ViewInput::default()),
        };
        let is_simple = selection.others.is_empty()
            && selection.default.is_none()
            && !selection.required
            && selection.type_.base.is_none();
        let plain = match (selection.type_.coding, selection.repeat) {
            (Coding::Plain(Encoding::Bytes(order_without_type)), Repeat::Last | Repeat::First)
                if is_simple && column.takes_bytes_of(selection.type_.scalar) =>
            {
                Some(if has_types { order } else { order_without_type })
            }
            _ => None,
        };
        Slot { selection: selection.clone(), plain, column, dialect, order, is_strict: false }
    }

    #[inline]
    pub fn take<'a>(&self, occurrences: &mut Vec<Occurrence<'a>>, occurrence: Occurrence<'a>) {
        match self.selection.repeat {
            Repeat::First if !occurrences.is_empty() => return,
            // The second occurrence is kept for its position. Later ones are not needed.
            Repeat::Error if occurrences.len() > 1 => return,
            Repeat::Last => occurrences.clear(),
            Repeat::First | Repeat::All | Repeat::Error => {}
        }
        memory::push(occurrences, occurrence);
    }

    /// Whether an unreadable header may have had the requested key.
    fn is_lost<R: Log>(&self, occurrences: &[Occurrence<'_>], headers: Presence, log: &mut R) -> bool {
        match (headers, log.either()) {
            // An error that the log dropped may belong to a header with this key.
            (Presence::Damaged | Presence::Broken, EitherLog::Collect(log)) => {
                log.has_left_out_errors() || self.is_among(occurrences, log.errors())
            }
            _ => false,
        }
    }

    #[cold]
    fn is_among(&self, occurrences: &[Occurrence<'_>], errors: &[ErrorDetail]) -> bool {
        let key = self.selection.key.to_string();
        let every = self.selection.is_of_every_header();
        let is_own = |error: &&ErrorDetail| error.column.is_none() && (every || error.key.as_ref() == Some(&key));
        let indexes = errors.iter().filter(is_own);
        indexes.filter_map(|error| error.header).any(|index| match occurrences.first() {
            None => true,
            Some(_) if occurrences.iter().any(|occurrence| occurrence.index == index) => false,
            Some(first) => match self.selection.repeat {
                Repeat::First => index < first.index,
                Repeat::Last => index > first.index,
                Repeat::All | Repeat::Error => true,
            },
        })
    }

    /// Appends the value of a row, given the occurrences of the header.
    pub fn end_row<R: Log>(&mut self, occurrences: &[Occurrence<'_>], headers: Presence, log: &mut R) -> Result {
        let second = if self.selection.repeat == Repeat::Error { occurrences.get(1) } else { None };
        if let Some(second) = second {
            let (header, byte) = (Some(second.index), second.byte);
            log.column_error(|| self.error(Code::RepeatedKey, "the key occurs a second time".into(), header, byte))?;
            self.column.push(None);
            return Ok(());
        }
        if self.is_lost(occurrences, headers, log) {
            // The error of that header names the key.
            self.column.push(None);
            return Ok(());
        }
        if self.selection.required && occurrences.is_empty() && headers != Presence::Broken {
            log.column_error(|| self.error(Code::MissingKey, "the header is required and absent".into(), None, None))?;
            self.column.push(None);
            return Ok(());
        }
        if self.selection.repeat == Repeat::All {
            return self.end_list(occurrences, headers, log);
        }
        let selected = match occurrences.first() {
            Some(occurrence) => self.read(*occurrence, log)?,
            None => match &self.selection.default {
                Some(default) if headers != Presence::Broken => {
                    let value = default.value(self.dialect).map(|value| self.column.widen(value));
                    self.column.push(value);
                    return Ok(());
                }
                _ => Selected::Nothing,
            },
        };
        let is_first = self.selection.repeat == Repeat::First;
        if headers == Presence::Broken && !matches!(selected, Selected::Nothing) && !is_first {
            let message = "headers after this one were not read, and may have the key, too";
            log.column_error(|| self.error(Code::Incomplete, message.into(), None, None))?;
        }
        self.column.push(match selected {
            Selected::Value(value) => Some(value),
            Selected::Null | Selected::Nothing => None,
        });
        Ok(())
    }

    /// Ends a row of `repeat="all"`. An invalid element, or incompletely read headers, make the list null.
    fn end_list<R: Log>(&mut self, occurrences: &[Occurrence<'_>], headers: Presence, log: &mut R) -> Result {
        if headers == Presence::Broken {
            self.column.push(None);
            return Ok(());
        }
        let mut whole = true;
        for occurrence in occurrences {
            let mut rest = Some(*occurrence);
            while let Some(occurrence) = rest {
                let element;
                (element, rest) = self.first_element(occurrence);
                match self.read(element, log)? {
                    Selected::Value(value) => self.column.values_mut().push(Some(value)),
                    Selected::Null => self.column.values_mut().push(None),
                    Selected::Nothing => whole = false,
                }
            }
        }
        if !whole {
            self.column.truncate(self.column.count());
        }
        self.column.end_list(whole);
        Ok(())
    }

    /// Splits the first element off a value with several elements.
    #[inline]
    fn first_element<'a>(&self, occurrence: Occurrence<'a>) -> (Occurrence<'a>, Option<Occurrence<'a>>) {
        let (Some(separator), Some(bytes)) = (&self.selection.split, occurrence.value) else {
            return (occurrence, None);
        };
        let is_text = matches!(occurrence.value_type, None | Some(ValueType::Named(Scalar::String | Scalar::Binary)));
        let end = if is_text { memchr::memmem::find(bytes, separator) } else { None };
        let Some(end) = end else { return (occurrence, None) };
        let next = end + separator.len();
        let rest =
            Occurrence { value: Some(&bytes[next..]), byte: occurrence.byte.map(|byte| byte + next), ..occurrence };
        (Occurrence { value: Some(&bytes[..end]), ..occurrence }, Some(rest))
    }

    /// Reads a value, and reports an invalid one.
    #[inline]
    fn read<'a, R: Log>(&self, occurrence: Occurrence<'a>, log: &mut R) -> Result<Selected<'a>, Stop> {
        let Some(bytes) = occurrence.value else {
            return Ok(match self.selection.type_.coding {
                Coding::Exists => Selected::Value(Value::Bytes(Cow::Borrowed(&[]))),
                _ => Selected::Null,
            });
        };
        let mut value = self.read_as(self.selection.type_, occurrence.value_type, bytes);
        if value.is_err() && !self.selection.others.is_empty() {
            value = self.read_as_others(value, occurrence.value_type, bytes);
        }
        if !self.selection.others.is_empty() {
            value = value.map(|value| value.map(|value| self.column.values().widen(value)));
        }
        self.selected(value, occurrence, log)
    }

    #[inline]
    fn read_as<'a>(&self, type_: Type, value_type: Option<ValueType>, bytes: &'a [u8]) -> ReadValue<'a> {
        type_.read_stored(value_type, self.order, bytes, self.dialect, self.is_strict)
    }

    /// Reads a value that does not have the first type as the first other type that fits.
    #[cold]
    fn read_as_others<'a>(
        &self,
        first: ReadValue<'a>,
        value_type: Option<ValueType>,
        bytes: &'a [u8],
    ) -> ReadValue<'a> {
        let mut messages: Vec<String> = first.err().into_iter().map(|invalid| invalid.message).collect();
        let mut last = None;
        for other in &self.selection.others {
            match self.read_as(*other, value_type, bytes) {
                Ok(value) => return Ok(value),
                Err(invalid) => {
                    if !messages.contains(&invalid.message) {
                        messages.push(invalid.message.clone());
                    }
                    last = Some(invalid);
                }
            }
        }
        let (code, byte) = last.map_or((Code::BadText, 0), |invalid| (invalid.code, invalid.byte));
        Err(Box::new(InvalidValue { code, byte, message: messages.join("; ") }))
    }

    #[inline]
    fn selected<'a, R: Log>(
        &self,
        value: ReadValue<'a>,
        occurrence: Occurrence<'a>,
        log: &mut R,
    ) -> Result<Selected<'a>, Stop> {
        match value {
            Ok(Some(value)) => Ok(Selected::Value(value)),
            Ok(None) => Ok(Selected::Null),
            Err(invalid) => {
                let byte = occurrence.byte.map(|byte| byte + invalid.byte);
                log.column_error(|| self.error(invalid.code, invalid.message, Some(occurrence.index), byte))?;
                Ok(Selected::Nothing)
            }
        }
    }

    #[cold]
    fn error(&self, code: Code, message: String, header: Option<usize>, byte: Option<usize>) -> ErrorDetail {
        let (key, column) = (Some(self.selection.key.to_string()), Some(self.selection.output.clone()));
        ErrorDetail { code, message, byte, header, key, column }
    }
}
