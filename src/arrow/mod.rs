//! The verbs for columns. Each is a [`Visitor`]: it is handed the type of a format and runs its rows into its sink.

pub mod column;
pub mod decode;
pub mod encode;
pub mod faults;
pub mod input;
pub mod rows;
pub mod run;
pub mod schema;
pub mod select;
pub mod validate;

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, StructArray};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, FieldRef};

use crate::error::{Direction, Error};
use crate::format::Visitor;
use crate::kind::Dialect;
use crate::mode::OnLoss;
use crate::value::ByteOrder;
use crate::walk::{Block, Discard, Envelope, Is, ReadOptions, WriteOptions};

use decode::ListSink;
use encode::CellSink;
use faults::FaultColumn;
use input::{Bytes, Lists};
use rows::{CellRows, ListRows, Rows, StructRows};
use run::{MAX_OFFSET, OnError, Plan, run};
use select::{SelectSink, Want};

/// The column that a verb is applied to, and how far it got.
#[derive(Clone, Copy)]
pub struct Input<'a> {
    pub column: &'a dyn Array,
    /// The first row to read.
    pub from: usize,
    /// Rows of the same stream that came before this column, for errors.
    pub rows_before: usize,
    /// Where an output column is cut; [`MAX_OFFSET`] but in tests.
    pub max_offset: usize,
}

impl<'a> Input<'a> {
    pub fn new(column: &'a dyn Array) -> Self {
        Input { column, from: 0, rows_before: 0, max_offset: MAX_OFFSET }
    }

    fn plan(&self, format: &'static str, direction: Direction, on_error: OnError) -> Plan {
        let Input { rows_before, max_offset, .. } = *self;
        Plan { format, direction, on_error, on_loss: OnLoss::Raise, rows_before, max_offset }
    }
}

/// What a verb made of some rows, and the row at which it had to stop.
pub struct Output {
    pub column: ArrayRef,
    pub until: usize,
}

/// A verb on columns: what it gives, known before any row is read, and the rows themselves.
pub trait Verb {
    fn output_type<E: Envelope>(&self) -> DataType;

    fn apply<E: Envelope>(&self, input: Input<'_>) -> Result<Output, Error>;
}

/// [`Verb::apply`] for a format that is known by name.
pub struct Apply<'a, V>(pub &'a V, pub Input<'a>);

impl<V: Verb> Visitor for Apply<'_, V> {
    type Out = Result<Output, Error>;

    fn visit<E: Envelope>(self) -> Self::Out {
        self.0.apply::<E>(self.1)
    }
}

/// [`Verb::output_type`] for a format that is known by name.
pub struct TypeOf<'a, V>(pub &'a V);

impl<V: Verb> Visitor for TypeOf<'_, V> {
    type Out = DataType;

    fn visit<E: Envelope>(self) -> DataType {
        self.0.output_type::<E>()
    }
}

/// Bytes → headers and fields.
#[derive(Debug, Clone, Copy, Default)]
pub struct Decode {
    pub options: ReadOptions,
    pub on_error: OnError,
}

impl Decode {
    fn fields<E: Envelope>(&self) -> Vec<FieldRef> {
        let mut fields = schema::envelope_fields::<E>();
        if self.on_error == OnError::Column {
            fields.push(schema::nullable("error", schema::faults_type()));
        }
        fields
    }
}

impl Verb for Decode {
    fn output_type<E: Envelope>(&self) -> DataType {
        match self.on_error {
            OnError::Column => DataType::Struct(self.fields::<E>().into()),
            OnError::Raise | OnError::Null => schema::decoded_type::<E>(),
        }
    }

    fn apply<E: Envelope>(&self, input: Input<'_>) -> Result<Output, Error> {
        let cells = cells_of::<E>(input.column)?;
        let rows = CellRows::<E>::new(cells, self.options);
        let mut sink = ListSink::<E>::new(cells.total_len());
        let mut faults = FaultColumn::default();
        let plan = input.plan(E::NAME, Direction::Decode, self.on_error);
        let until = run(&rows, input.from, &plan, &mut sink, &mut faults)?;
        let (mut columns, has_message) = sink.finish();
        let column = match (self.on_error, E::IS) {
            (OnError::Raise | OnError::Null, Is::Block) => columns.swap_remove(0),
            (OnError::Raise | OnError::Null, Is::Envelope) => {
                struct_of(self.fields::<E>(), columns, has_message.finish(), until - input.from)
            }
            (OnError::Column, _) => {
                columns.push(faults.finish());
                // A row that failed is a row all the same: its faults stand in it.
                let nulls = nulls_without_faults(has_message, &columns);
                struct_of(self.fields::<E>(), columns, nulls, until - input.from)
            }
        };
        Ok(Output { column, until })
    }
}

/// Headers → bytes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Encode {
    pub options: WriteOptions,
}

impl Verb for Encode {
    fn output_type<E: Envelope>(&self) -> DataType {
        match self.options.on_loss {
            OnLoss::Report => DataType::Struct(
                vec![schema::nullable("data", DataType::Binary), schema::nullable("losses", schema::faults_type())]
                    .into(),
            ),
            OnLoss::Raise | OnLoss::Drop => DataType::Binary,
        }
    }

    fn apply<E: Envelope>(&self, input: Input<'_>) -> Result<Output, Error> {
        match E::IS {
            Is::Block => {
                let rows = ListRows::new(input.column, E::Block::KEYS, &schema::headers_type::<E::Block>())?;
                self.run_rows::<E, _>(&rows, input)
            }
            Is::Envelope => self.run_rows::<E, _>(&StructRows::new::<E>(input.column)?, input),
        }
    }
}

impl Encode {
    fn run_rows<'a, E: Envelope, R: Rows<'a>>(&self, rows: &R, input: Input<'a>) -> Result<Output, Error> {
        let mut sink = CellSink::<E>::new(self.options);
        let mut losses = FaultColumn::default();
        let plan = Plan { on_loss: self.options.on_loss, ..input.plan(E::NAME, Direction::Encode, OnError::Raise) };
        let until = run(rows, input.from, &plan, &mut sink, &mut losses)?;
        let data = sink.finish();
        let column = match self.output_type::<E>() {
            DataType::Struct(fields) => {
                struct_of(fields.iter().cloned().collect(), vec![data, losses.finish()], None, until - input.from)
            }
            _ => data,
        };
        Ok(Output { column, until })
    }
}

/// Bytes or lists → typed columns.
#[derive(Debug, Clone, Default)]
pub struct Select {
    pub wants: Vec<Want>,
    pub dialect: Dialect,
    pub options: ReadOptions,
    pub on_error: OnError,
}

impl Select {
    fn fields(&self) -> Vec<FieldRef> {
        let mut fields: Vec<_> =
            self.wants.iter().map(|want| schema::nullable(&want.output, want.arrow(self.dialect))).collect();
        if self.on_error == OnError::Column {
            fields.push(schema::nullable("error", schema::faults_type()));
        }
        fields
    }

    fn run_rows<'a, R: Rows<'a>>(
        &self,
        rows: &R,
        input: Input<'a>,
        format: &'static str,
        order: ByteOrder,
    ) -> Result<Output, Error> {
        let mut sink = SelectSink::new(&self.wants, self.dialect, order);
        let mut faults = FaultColumn::default();
        let plan = input.plan(format, Direction::Decode, self.on_error);
        let until = run(rows, input.from, &plan, &mut sink, &mut faults)?;
        let mut columns = sink.finish();
        if self.on_error == OnError::Column {
            columns.push(faults.finish());
        }
        Ok(Output { column: struct_of(self.fields(), columns, None, until - input.from), until })
    }
}

impl Verb for Select {
    fn output_type<E: Envelope>(&self) -> DataType {
        DataType::Struct(self.fields().into())
    }

    fn apply<E: Envelope>(&self, input: Input<'_>) -> Result<Output, Error> {
        match Lists::of(input.column) {
            // A typed value in a list is its bits, most significant byte first.
            Some(_) => self.run_rows(&list_rows::<E>(input.column)?, input, E::NAME, ByteOrder::Big),
            None => {
                let rows = CellRows::<E>::new(cells_of::<E>(input.column)?, self.options);
                self.run_rows(&rows, input, E::NAME, E::Block::ORDER)
            }
        }
    }
}

/// Bytes or lists → their faults.
#[derive(Debug, Clone, Copy, Default)]
pub struct Validate {
    pub options: ReadOptions,
}

impl Validate {
    fn run_rows<'a, R: Rows<'a>>(&self, rows: &R, input: Input<'a>, format: &'static str) -> Result<Output, Error> {
        let mut faults = FaultColumn::default();
        let plan = input.plan(format, Direction::Decode, OnError::Column);
        let until = run(rows, input.from, &plan, &mut Discard, &mut faults)?;
        Ok(Output { column: faults.finish(), until })
    }
}

impl Verb for Validate {
    fn output_type<E: Envelope>(&self) -> DataType {
        schema::faults_type()
    }

    fn apply<E: Envelope>(&self, input: Input<'_>) -> Result<Output, Error> {
        match Lists::of(input.column) {
            Some(_) => self.run_rows(&list_rows::<E>(input.column)?, input, E::NAME),
            None => self.run_rows(&CellRows::<E>::new(cells_of::<E>(input.column)?, self.options), input, E::NAME),
        }
    }
}

fn cells_of<E: Envelope>(column: &dyn Array) -> Result<Bytes<'_>, Error> {
    Bytes::of(column).ok_or_else(|| {
        let given = schema::spelled(column.data_type());
        Error::Type(format!("the column is {given}, and {} is read from binary, large_binary or binary_view", E::NAME))
    })
}

fn list_rows<E: Envelope>(column: &dyn Array) -> Result<ListRows<'_>, Error> {
    ListRows::new(column, E::Block::KEYS, &schema::headers_type::<E::Block>())
}

fn struct_of(fields: Vec<FieldRef>, columns: Vec<ArrayRef>, nulls: Option<NullBuffer>, rows: usize) -> ArrayRef {
    match columns.is_empty() {
        true => Arc::new(StructArray::new_empty_fields(rows, nulls)),
        false => Arc::new(StructArray::new(fields.into(), columns, nulls)),
    }
}

/// The nulls of decoded messages, a row with faults never being one.
fn nulls_without_faults(has_message: column::Validity, columns: &[ArrayRef]) -> Option<NullBuffer> {
    let messages = has_message.finish()?;
    let faulty = columns.last()?;
    Some((0..messages.len()).map(|row| messages.is_valid(row) || faulty.is_valid(row)).collect())
}
