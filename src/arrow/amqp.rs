//! [`ReadAmqp`] converts a column of AMQP primitives to a typed column.

use arrow_array::Array;
use arrow_schema::DataType;

use super::column::Column;
use super::input::Bytes;
use super::rows::{Appended, Buffers, Next, Parsed, RowSource};
use super::run::{OutputRows, run};
use super::shapes::bytes_of_text;
use super::sink::{Row, RowSink};
use super::{Input, Output, Work, schema};
use crate::arrow::types::Dialect;
use crate::error::{Direction, Error};
use crate::kernel::buffer::Progress;
use crate::limits::Limits;
use crate::log::{EitherLog, Log, OnError, Result, Stop};
use crate::sink::Presence;
use crate::types::Type;
use crate::value::{InvalidValue, UUID_LEN, Value};

/// Name of the format in errors.
const NAME: &str = "amqp";

/// Reads AMQP primitives as values of one type.
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
        let plan = input.plan(NAME, Direction::Decode, self.on_error, Limits::DEFAULT);
        let values = AmqpRows { primitives, type_: self.type_, dialect: self.dialect };
        let make = || Ok(Column::new(self.type_.scalar.arrow(self.dialect), &Default::default()));
        let OutputRows { sink, report_columns, until, .. } = run(&values, input.from, &plan, &make)?;
        Ok(Output::new(self.output_type()?, vec![sink.finish()], None, &plan, report_columns, input.from..until))
    }
}

/// Column of primitives. Each is read as a message without headers.
struct AmqpRows<'a> {
    primitives: Bytes<'a>,
    type_: Type,
    dialect: Dialect,
}

impl<'a> AmqpRows<'a> {
    #[inline]
    fn read(&self, primitive: Option<&'a [u8]>) -> Result<Option<Value<'a>>, Box<InvalidValue>> {
        primitive.map_or(Ok(None), |primitive| self.type_.read(primitive, self.dialect))
    }
}

impl<'a> RowSource<'a, Column> for AmqpRows<'a> {
    fn column(&self) -> &'a dyn Array {
        self.primitives.array()
    }

    fn append(&self, _: &mut Buffers<'a>, next: Next, to: &mut Row<'_, 'a, Column>) -> Option<Appended> {
        let offered = next.rows.len();
        for (appended, row) in next.rows.enumerate() {
            let primitive = self.primitives.get(row);
            // Only a UUID becomes longer than its primitive.
            let max_len = primitive.map_or(0, |primitive| primitive.len().max(UUID_LEN));
            match self.read(primitive) {
                Ok(value) if to.sink.max_offset() + max_len <= next.max_offset => to.sink.push(value),
                _ => return Some(Appended { offered, appended }),
            }
        }
        Some(Appended { offered, appended: offered })
    }

    fn parse(&self, row: usize, _: &mut Buffers<'a>, log: EitherLog<'_>, to: &mut Row<'_, 'a, Column>) -> Parsed {
        match (self.read(self.primitives.get(row)), log) {
            (Ok(value), _) => to.sink.push(value),
            (Err(_), EitherLog::FailFast(_)) => return Err(Stop),
            (Err(invalid), EitherLog::Collect(log)) => {
                to.sink.push(None);
                log.error(invalid.code, Some(invalid.byte), || invalid.message)?;
            }
        }
        Ok(Presence::Absent)
    }
}

impl RowSink<'_> for Column {
    type Found = ();

    const KEEPS_PARTS: bool = true;

    fn extend(&mut self, other: &Self, progress: Progress) {
        self.extend(other, progress);
    }

    fn row_count(&self) -> usize {
        self.count()
    }

    fn truncate(&mut self, rows: usize) {
        self.truncate(rows);
    }

    fn null_row(&mut self) {
        self.push(None);
    }

    fn max_offset(&self) -> usize {
        self.max_offset()
    }
}
