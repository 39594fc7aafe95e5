//! [`ReadAmqp`] converts a column of AMQP primitives to a typed column.

use std::str::from_utf8;

use arrow_array::Array;
use arrow_schema::DataType;

use super::column::{Column, Data};
use super::input::Bytes;
use super::rows::{Appended, Buffers, Next, Parsed, RowSource};
use super::run::{Plan, Rows, run};
use super::shapes::bytes_of_text;
use super::sink::{Row, RowSink};
use super::{Input, Output, Work, schema};
use crate::amqp::{Opened, TRUE, character, open, signed, unsigned};
use crate::arrow::types::Dialect;
use crate::error::{Direction, Error};
use crate::kernel::bitmap::Validity;
use crate::kernel::buffer::{Progress, Values as _};
use crate::limits::Limits;
use crate::log::{EitherLog, Log, OnError, Result};
use crate::traits::{FieldValue, Presence, Sink};
use crate::types::Type;
use crate::value::{UUID_LEN, uuid_digits};
use crate::value_type::Scalar;

/// Name of the format in errors.
const NAME: &str = "amqp";

/// Operation from AMQP primitives to values of one type.
#[derive(Debug, Clone, Copy)]
pub struct ReadAmqp {
    pub type_: Type,
    pub dialect: Dialect,
    pub on_error: OnError,
}

impl Work for ReadAmqp {
    fn error_context(&self) -> (Direction, &'static str) {
        (Direction::Decode, NAME)
    }

    fn output_type(&self) -> Result<DataType, Error> {
        let data_type = self.type_.scalar.arrow(self.dialect);
        Ok(match self.on_error {
            OnError::Column | OnError::NullColumn => {
                let fields = vec![schema::nullable("value", data_type)];
                DataType::Struct(schema::with_errors(fields, self.on_error).into())
            }
            OnError::Raise | OnError::Null => data_type,
        })
    }

    fn apply(&self, input: Input<'_>) -> Result<Output, Error> {
        let bytes = bytes_of_text(input.column);
        let column = bytes.as_deref().unwrap_or(input.column);
        let primitives = Bytes::of(column).ok_or_else(|| {
            let actual = schema::type_name(input.column.data_type());
            Error::Type(format!("the column is {actual}, and {NAME} is read from binary or string"))
        })?;
        // The sink reads the rows itself, so threads cannot share them.
        let plan = Plan { threads: 1, ..input.plan(NAME, Direction::Decode, self.on_error, Limits::DEFAULT) };
        let rows = column.len() - input.from;
        // The content is shorter than the primitive, except for a UUID, which becomes text.
        let bytes = if self.type_.scalar == Scalar::Uuid {
            rows.saturating_mul(UUID_LEN)
        } else {
            primitives.len_from(input.from)
        };
        let make = || {
            let mut column = Column::new(self.type_.scalar.arrow(self.dialect), &Default::default());
            column.reserve(rows, bytes.min(input.max_offset));
            let (ReadAmqp { type_, dialect, .. }, max_offset) = (*self, input.max_offset);
            Ok(ValueSink { type_, dialect, max_offset, primitives, primitive: None, column })
        };
        let Rows { sink, report_columns, until, .. } = run(&AmqpRows(primitives), input.from, &plan, &make)?;
        let columns = vec![sink.column.finish()];
        Ok(Output::new(self.output_type()?, columns, None, &plan, report_columns, input.from..until))
    }
}

/// Rows with one value each, treated as messages with one field and without headers.
struct AmqpRows<'a>(Bytes<'a>);

impl<'a> RowSource<'a, ValueSink<'a>> for AmqpRows<'a> {
    fn column(&self) -> &'a dyn Array {
        self.0.array()
    }

    /// The sink reads the rows itself, up to the first that it cannot append.
    fn append(&self, _: &mut Buffers<'a>, next: Next, to: &mut Row<'_, 'a, ValueSink<'a>>) -> Option<Appended> {
        let appended = to.sink.append_from(next.rows.start);
        Some(Appended { offered: appended, appended })
    }

    fn parse(&self, row: usize, _: &mut Buffers<'a>, _: EitherLog<'_>, to: &mut Row<'_, 'a, ValueSink<'a>>) -> Parsed {
        if let Some(primitive) = self.0.get(row) {
            to.fields(&[FieldValue::Binary(primitive)]);
        }
        Ok(Presence::Absent)
    }
}

/// A growing typed column.
struct ValueSink<'a> {
    type_: Type,
    dialect: Dialect,
    max_offset: usize,
    primitives: Bytes<'a>,
    primitive: Option<&'a [u8]>,
    column: Column,
}

impl ValueSink<'_> {
    /// Appends values up to the first that needs the slow path, and returns their number.
    fn append_from(&mut self, row: usize) -> usize {
        let (scalar, spark) = (self.type_.scalar, self.dialect == Dialect::Spark);
        let max_offset = self.max_offset;
        let (data, valid) = self.column.parts_mut();
        let mut fast = FastPath { scalar, primitives: self.primitives, row, valid };
        macro_rules! integers {
            ($numbers:ident) => {
                match scalar {
                    Scalar::Uint8 | Scalar::Uint16 | Scalar::Uint32 | Scalar::Uint64 => {
                        fast.values(|_, content| unsigned(content).try_into().ok(), |number| $numbers.push(number))
                    }
                    _ => fast.values(|_, content| signed(content).try_into().ok(), |number| $numbers.push(number)),
                }
            };
        }
        match data {
            Data::Bool(bits) => fast.values(truth, |bit| bits.append(bit)),
            Data::Int8(numbers) => integers!(numbers),
            Data::Int16(numbers) => integers!(numbers),
            Data::Int32(numbers) => integers!(numbers),
            Data::Int64(numbers) if scalar == Scalar::TimestampMs && spark => {
                fast.values(|_, content| signed(content).checked_mul(1000), |micros| numbers.push(micros))
            }
            Data::Int64(numbers) => integers!(numbers),
            Data::Uint8(numbers) => integers!(numbers),
            Data::Uint16(numbers) => integers!(numbers),
            Data::Uint32(numbers) => integers!(numbers),
            Data::Uint64(numbers) => integers!(numbers),
            Data::Decimal(numbers) => integers!(numbers),
            Data::Float32(numbers) => {
                fast.values(|_, content| unsigned(content).try_into().ok(), |bits| numbers.push(f32::from_bits(bits)))
            }
            Data::Float64(numbers) => {
                fast.values(|_, content| Some(unsigned(content)), |bits| numbers.push(f64::from_bits(bits)))
            }
            Data::Text(texts) => {
                let room = max_offset.saturating_sub(texts.byte_len());
                let mut push = |text: &str| {
                    texts.push(text);
                    Some(text.len())
                };
                match scalar {
                    Scalar::Uuid => {
                        let digits = |content: &[u8]| Some(uuid_digits(content.try_into().ok()?));
                        fast.bytes(room, |content| match content {
                            Some(content) => push(from_utf8(&digits(content)?[..UUID_LEN]).ok()?),
                            None => push(""),
                        })
                    }
                    Scalar::Char => fast.bytes(room, |content| match content {
                        Some(content) => push(character(content)?.encode_utf8(&mut [0; 4])),
                        None => push(""),
                    }),
                    _ => fast.bytes(room, |content| push(from_utf8(content.unwrap_or_default()).ok()?)),
                }
            }
            Data::Bytes(binaries) => fast.bytes(max_offset.saturating_sub(binaries.byte_len()), |content| {
                let content = content.unwrap_or_default();
                binaries.push(content);
                Some(content.len())
            }),
            // This operation does not create such columns; the slow path would read the rows.
            Data::TextViews(_) | Data::ByteViews(_) | Data::List(..) | Data::Struct(_) => 0,
        }
    }
}

impl<'a> RowSink<'a> for ValueSink<'a> {
    type Found = ();

    const KEEPS_PARTS: bool = true;

    #[inline]
    fn fields(&mut self, fields: &[FieldValue<'a>]) {
        if let [FieldValue::Binary(primitive)] = fields {
            self.primitive = Some(primitive);
        }
    }

    fn extend(&mut self, other: &Self, progress: Progress) {
        self.column.extend(&other.column, progress);
    }

    #[inline]
    fn begin_row(&mut self, _: &mut ()) {
        self.primitive = None;
    }

    #[inline]
    fn end_row<R: Log>(&mut self, _: &mut (), _headers: Presence, log: &mut R) -> Result {
        let value = match self.primitive.map(|primitive| self.type_.read(primitive, self.dialect)) {
            Some(Ok(value)) => value,
            Some(Err(invalid)) => {
                log.error(invalid.code, Some(invalid.byte), || invalid.message)?;
                None
            }
            None => None,
        };
        self.column.push(value);
        Ok(())
    }

    fn row_count(&self) -> usize {
        self.column.count()
    }

    fn truncate(&mut self, rows: usize) {
        self.column.truncate(rows);
    }

    fn null_row(&mut self) {
        self.column.push(None);
    }

    #[inline]
    fn max_offset(&self) -> usize {
        self.column.max_offset()
    }
}

/// Reads the values of rows, up to the first that needs the slow path.
struct FastPath<'a, 'c> {
    scalar: Scalar,
    primitives: Bytes<'a>,
    row: usize,
    valid: &'c mut Validity,
}

impl<'a> FastPath<'a, '_> {
    /// Appends values of fixed size; `read` receives the code and the content.
    #[inline(always)]
    fn values<T: Default>(&mut self, read: impl Fn(u8, &'a [u8]) -> Option<T>, mut push: impl FnMut(T)) -> usize {
        self.primitives(|opened| {
            let value = opened.map(|(code, content)| read(code, content));
            push(match value {
                Some(value) => value?,
                None => T::default(),
            });
            Some(())
        })
    }

    /// Appends values with offsets, until there is no room: `push` receives the content of each, or `None` for a null,
    /// and returns the number of appended bytes.
    #[inline(always)]
    fn bytes(&mut self, mut room: usize, mut push: impl FnMut(Option<&'a [u8]>) -> Option<usize>) -> usize {
        self.primitives(|opened| {
            let content = opened.map(|(_, content)| content);
            if content.is_some_and(|content| content.len().max(UUID_LEN) > room) {
                return None;
            }
            room -= push(content)?;
            Some(())
        })
    }

    /// Appends rows that are null or readable, until `append` returns `None`.
    #[inline(always)]
    fn primitives(&mut self, mut append: impl FnMut(Option<(u8, &'a [u8])>) -> Option<()>) -> usize {
        for row in self.row..self.primitives.array().len() {
            let opened = match self.primitives.get(row).map(|primitive| open(self.scalar, primitive)) {
                None | Some(Some(Opened::Null)) => None,
                Some(Some(Opened::Value(code, _, content))) => Some((code, content)),
                Some(None) => return row - self.row,
            };
            if append(opened).is_none() {
                return row - self.row;
            }
            self.valid.push(opened.is_some());
        }
        self.primitives.array().len() - self.row
    }
}

#[inline(always)]
fn truth(code: u8, content: &[u8]) -> Option<bool> {
    match content {
        [] => Some(code == TRUE),
        [0] => Some(false),
        [1] => Some(true),
        _ => None,
    }
}
