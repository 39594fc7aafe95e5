//! Operations on columns. Each is a [`Visitor`] of formats, and appends the rows of a column to its sink.

pub mod amqp;
#[cfg(feature = "avro")]
pub mod avro;
pub(crate) mod binary;
#[cfg(any(feature = "internals", feature = "python"))]
pub(crate) mod c_structures;
pub(crate) mod checks;
pub(crate) mod column;
pub(crate) mod decode;
pub mod edit;
pub(crate) mod encode;
mod encoded_column;
pub(crate) mod errors;
pub mod filter;
pub mod filtered;
pub(crate) mod input;
pub mod json_lines;
mod json_text;
mod layouts;
pub(crate) mod list_rows;
mod lists;
mod message_block;
mod message_sinks;
pub mod messages;
pub mod pack;
pub mod produce;
pub(crate) mod rows;
pub(crate) mod run;
pub(crate) mod schema;
pub mod select;
pub mod shapes;
pub(crate) mod sink;
pub(crate) mod threads;
pub mod truths;
pub mod types;
pub(crate) mod validate;

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, StructArray};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, Fields};

use crate::arrow::types::Dialect;
use crate::error::{Direction, Error};
use crate::format::{Format, Visitor};
use crate::kernel::buffer::MAX_OFFSET;
use crate::limits::Limits;
use crate::log::{OnError, OnLoss};
use crate::op::batch_needs_messages;
use crate::op::convert::{no_target, not_one_by_one};
use crate::op::inspect::batch_errors;
use crate::op::write::{Origin, check_written};
use crate::traits::{BatchFormat, Class, Info, MessageFormat, ReadOptions, WriteOptions};
use crate::value::ByteOrder;

use binary::ViewInput;
use decode::ListSink;
use encode::EncodeSink;
use errors::ReportColumns;
use input::{Bytes, ListInput};
use list_rows::{ListRows, StructRows};
use rows::{BatchRows, ConvertedRows, MessageRows, Messages, RowSource};
use run::{Plan, Rows, run};
use select::{SelectSink, Selection};
use sink::RowSink;
use validate::ErrorsOnly;

/// Input column of an operation, and the first row.
#[derive(Clone, Copy)]
pub struct Input<'a> {
    column: &'a dyn Array,
    /// First row to read, at most the number of rows.
    from: usize,
    /// Number of rows of the stream before this column, for errors.
    rows_before: usize,
    /// Maximum offset of an output column, at most [`MAX_OFFSET`].
    max_offset: usize,
    /// Number of threads that share the rows, at least one.
    threads: usize,
    /// Number of threads that each work on an input at the same time, at least one.
    at_once: usize,
}

impl<'a> Input<'a> {
    pub fn new(column: &'a dyn Array) -> Self {
        Input { column, from: 0, rows_before: 0, max_offset: MAX_OFFSET, threads: 1, at_once: 1 }
    }

    /// Skips the rows before this one.
    pub fn from_row(self, row: usize) -> Self {
        Input { from: row.min(self.column.len()), ..self }
    }

    /// Numbers rows in errors after this many earlier rows of the stream.
    pub fn after(self, rows: usize) -> Self {
        Input { rows_before: rows, ..self }
    }

    /// Shares the rows among threads.
    pub fn with_threads(self, threads: usize) -> Self {
        Input { threads: threads.max(1), ..self }
    }

    /// Sets the number of threads that work on an input at the same time. These threads share the limit of decompressed
    /// bytes.
    pub fn at_once(self, threads: usize) -> Self {
        Input { at_once: threads.max(1), ..self }
    }

    /// Ends an output column before an offset exceeds this one, or 31 bits.
    pub fn with_max_offset(self, max_offset: usize) -> Self {
        Input { max_offset: max_offset.min(MAX_OFFSET), ..self }
    }

    fn plan(&self, format: &'static str, direction: Direction, on_error: OnError, limits: Limits) -> Plan {
        let Input { rows_before, max_offset, threads, .. } = *self;
        let (on_loss, max_reports) = (OnLoss::Raise, limits.reports);
        Plan { format, direction, target: None, on_error, on_loss, rows_before, max_offset, threads, max_reports }
    }
}

/// Result of an operation, which ends before row `until` if an output column was full.
pub struct Output {
    pub column: ArrayRef,
    pub until: usize,
}

impl Output {
    /// Builds a column of the given type from the columns of a result, its losses and its errors.
    fn new(
        data_type: DataType,
        mut columns: Vec<ArrayRef>,
        nulls: Option<NullBuffer>,
        plan: &Plan,
        report_columns: ReportColumns,
        rows: Range<usize>,
    ) -> Self {
        if plan.on_loss == OnLoss::Report {
            columns.push(report_columns.losses.finish());
        }
        let errors = plan.on_error.is_column().then(|| report_columns.errors.finish());
        let nulls = match (nulls, &errors) {
            // A row with errors is never null.
            (Some(nulls), Some(errors)) => {
                Some((0..nulls.len()).map(|row| nulls.is_valid(row) || errors.is_valid(row)).collect())
            }
            (nulls, _) => nulls,
        };
        columns.extend(errors);
        let column = match data_type {
            DataType::Struct(fields) => struct_of(fields, columns, nulls, rows.len()),
            _ => columns.swap_remove(0),
        };
        Output { column, until: rows.end }
    }
}

/// Operation on columns, whose output type is known before any row is read.
pub trait Operation {
    /// Direction of the error of a result that is too large.
    const DIRECTION: Direction = Direction::Decode;

    /// Whether the result depends only on keys and values of headers, so that their other fields are ignored.
    const DROPS_FIELDS: bool = false;

    fn output_type(&self, format: &'static Info) -> Result<DataType, Error>;

    /// [`Operation::output_type`] or [`Operation::batch_type`].
    fn type_for(&self, format: &'static Info) -> Result<DataType, Error> {
        if format.class == Class::Batch { self.batch_type(format) } else { self.output_type(format) }
    }

    fn apply<E: MessageFormat>(&self, input: Input<'_>) -> Result<Output, Error>;

    fn batch_type(&self, format: &'static Info) -> Result<DataType, Error> {
        Err(batch_needs_messages(format.name))
    }

    fn apply_batch<B: BatchFormat>(&self, _input: Input<'_>) -> Result<Output, Error> {
        Err(batch_needs_messages(B::NAME))
    }
}

/// Operation on a column, chosen at run time.
pub trait Work: Send + Sync {
    /// Direction and format of the error of a result that is too large.
    fn error_context(&self) -> (Direction, &'static str);

    fn output_type(&self) -> Result<DataType, Error>;

    /// Returns a column in the shape that [`Work::apply`] reads.
    fn reshape(&self, column: ArrayRef) -> Result<ArrayRef, Error> {
        Ok(column)
    }

    fn apply(&self, input: Input<'_>) -> Result<Output, Error>;
}

/// [`Operation::apply`] for a format that is known by name.
pub struct Apply<'a, V>(pub &'a V, pub Input<'a>);

impl<V: Operation> Visitor for Apply<'_, V> {
    type Out = Result<Output, Error>;

    fn visit<E: MessageFormat>(self) -> Self::Out {
        self.0.apply::<E>(self.1)
    }

    fn visit_batch<B: BatchFormat>(self) -> Self::Out {
        self.0.apply_batch::<B>(self.1)
    }
}

/// Operation from bytes to headers and fields.
#[derive(Debug, Clone, Copy, Default)]
pub struct Decode {
    pub options: ReadOptions,
    pub on_error: OnError,
    /// Whether text and bytes, except the keys of headers, become views of the input.
    pub views: bool,
}

impl Operation for Decode {
    fn output_type(&self, format: &'static Info) -> Result<DataType, Error> {
        Ok(self.result_type(format))
    }

    fn apply<E: MessageFormat>(&self, input: Input<'_>) -> Result<Output, Error> {
        let messages = binary_column(input.column, &E::INFO)?;
        self.run_rows(&MessageRows::new::<E>(messages, self.options), messages, input, &E::INFO)
    }
}

impl Decode {
    fn result_type(&self, format: &Info) -> DataType {
        let data_type = match self.on_error {
            OnError::Column | OnError::NullColumn => {
                let fields = schema::message_fields(format, self.options.text_keys);
                DataType::Struct(schema::with_errors(fields, self.on_error).into())
            }
            OnError::Raise | OnError::Null => schema::decoded_type(format, self.options.text_keys),
        };
        if self.views { schema::with_views(&data_type) } else { data_type }
    }

    #[inline(never)]
    fn run_rows<'a>(
        &self,
        rows: &dyn RowSource<'a, ListSink>,
        messages: Bytes<'a>,
        input: Input<'a>,
        format: &Info,
    ) -> Result<Output, Error> {
        let plan = input.plan(format.name, Direction::Decode, self.on_error, self.options.limits);
        let views = self.views.then(|| ViewInput::new(messages));
        let make = || Ok(ListSink::new(format, self.options.text_keys, views.as_ref()));
        let Rows { sink, report_columns, until, .. } = run(rows, input.from, &plan, &make)?;
        let (columns, has_message) = sink.finish();
        let (data_type, nulls) = (self.result_type(format), binary::nulls(has_message));
        Ok(Output::new(data_type, columns, nulls, &plan, report_columns, input.from..until))
    }
}

/// Operation from headers to bytes.
#[derive(Debug, Clone, Default)]
pub struct Encode {
    pub options: WriteOptions,
    /// Limits of the losses that are reported.
    pub limits: Limits,
}

impl Operation for Encode {
    const DIRECTION: Direction = Direction::Encode;

    fn output_type(&self, format: &'static Info) -> Result<DataType, Error> {
        check_written(format, &self.options)?;
        Ok(written_type(self.options.on_loss, OnError::Raise))
    }

    fn apply<E: MessageFormat>(&self, input: Input<'_>) -> Result<Output, Error> {
        self.write(&E::INFO, input)
    }
}

impl Encode {
    #[inline(never)]
    fn write(&self, target: &'static Info, input: Input<'_>) -> Result<Output, Error> {
        let rows: Box<dyn RowSource<'_, EncodeSink<'_>>> = match target.class {
            Class::Headers => Box::new(ListRows::new(input.column, target)?),
            _ => Box::new(StructRows::new(input.column, target)?),
        };
        let plan = input.plan(target.name, Direction::Encode, OnError::Raise, self.limits);
        let plan = Plan { on_loss: self.options.on_loss, ..plan };
        write_rows(&*rows, input, &plan, target, &self.options, Origin::USER)
    }
}

/// Operation from bytes to bytes of another format.
#[derive(Debug, Clone)]
pub struct Convert {
    pub target: Format,
    pub read: ReadOptions,
    pub write: WriteOptions,
    pub on_error: OnError,
}

impl Operation for Convert {
    const DIRECTION: Direction = Direction::Convert;

    fn output_type(&self, _: &'static Info) -> Result<DataType, Error> {
        let target = self.target.info();
        match target.class {
            Class::Batch => return Err(no_target(target.name)),
            _ => check_written(target, &self.write)?,
        }
        Ok(written_type(self.write.on_loss, self.on_error))
    }

    fn apply<E: MessageFormat>(&self, input: Input<'_>) -> Result<Output, Error> {
        let bytes = binary_column(input.column, &E::INFO)?;
        self.convert(Messages::new::<E>(bytes, self.read), input)
    }

    fn batch_type(&self, format: &'static Info) -> Result<DataType, Error> {
        Err(not_one_by_one(format.name))
    }

    fn apply_batch<B: BatchFormat>(&self, _input: Input<'_>) -> Result<Output, Error> {
        Err(not_one_by_one(B::NAME))
    }
}

impl Convert {
    #[inline(never)]
    fn convert<'a>(&self, messages: Messages<'a>, input: Input<'a>) -> Result<Output, Error> {
        let (source, target) = (messages.format, self.target.info());
        if target.class == Class::Batch {
            return Err(no_target(target.name));
        }
        let rows = ConvertedRows { messages, target };
        let plan = Plan {
            target: Some(target.name),
            on_loss: self.write.on_loss,
            ..input.plan(source.name, Direction::Decode, self.on_error, self.read.limits)
        };
        let origin = Origin { order: source.order, keys: source.keys, direction: Direction::Convert };
        write_rows(&rows, input, &plan, target, &self.write, origin)
    }
}

/// Output type of writing: a binary column, and if requested, columns of losses and errors.
fn written_type(on_loss: OnLoss, on_error: OnError) -> DataType {
    let mut fields = vec![schema::nullable("data", DataType::Binary)];
    if on_loss == OnLoss::Report {
        fields.push(schema::nullable("losses", schema::losses_type()));
    }
    let fields = schema::with_errors(fields, on_error);
    match fields.len() {
        1 => DataType::Binary,
        _ => DataType::Struct(fields.into()),
    }
}

fn write_rows<'a>(
    rows: &dyn RowSource<'a, EncodeSink<'a>>,
    input: Input<'a>,
    plan: &Plan,
    target: &'static Info,
    options: &WriteOptions,
    origin: Origin,
) -> Result<Output, Error> {
    let make = || EncodeSink::new(target, options.clone(), origin);
    let Rows { sink, report_columns, until, .. } = run(rows, input.from, plan, &make)?;
    let data_type = written_type(plan.on_loss, plan.on_error);
    Ok(Output::new(data_type, vec![sink.finish()], None, plan, report_columns, input.from..until))
}

/// Operation from bytes or lists to typed columns.
#[derive(Debug, Clone, Default)]
pub struct Select {
    pub selections: Vec<Selection>,
    pub dialect: Dialect,
    pub options: ReadOptions,
    pub on_error: OnError,
    /// Whether columns of text and bytes become views of the input.
    pub views: bool,
}

impl Select {
    fn result_type(&self) -> DataType {
        let column = |selection: &Selection| {
            let data_type = selection.arrow(self.dialect);
            schema::nullable(&selection.output, if self.views { schema::with_views(&data_type) } else { data_type })
        };
        let fields = self.selections.iter().map(column).collect();
        DataType::Struct(schema::with_errors(fields, self.on_error).into())
    }

    #[inline(never)]
    fn run_rows<'a>(
        &self,
        messages: Option<MessageRows<'a, SelectSink>>,
        input: Input<'a>,
        format: &'static Info,
    ) -> Result<Output, Error> {
        let (rows, order) = messages_or_lists(messages, input.column, format)?;
        let has_types = format.types.is_typed();
        let plan = input.plan(format.name, Direction::Decode, self.on_error, self.options.limits);
        let views = Bytes::of_values(input.column).filter(|_| self.views).map(ViewInput::new);
        let strict = self.options.strict_types;
        let make =
            || Ok(SelectSink::new(&self.selections, self.dialect, order, has_types, views.as_ref()).strict(strict));
        let Rows { sink, report_columns, until, .. } = run(&*rows, input.from, &plan, &make)?;
        Ok(Output::new(self.result_type(), sink.finish(), None, &plan, report_columns, input.from..until))
    }
}

impl Operation for Select {
    const DROPS_FIELDS: bool = true;

    fn output_type(&self, format: &'static Info) -> Result<DataType, Error> {
        check_keys(&self.selections, format)?;
        Ok(self.result_type())
    }

    fn apply<E: MessageFormat>(&self, input: Input<'_>) -> Result<Output, Error> {
        check_keys(&self.selections, &E::INFO)?;
        self.run_rows(MessageRows::of::<E>(input.column, self.options), input, &E::INFO)
    }
}

/// Operation from bytes or lists to their errors.
#[derive(Debug, Clone, Copy, Default)]
pub struct Validate {
    pub options: ReadOptions,
}

impl Validate {
    #[inline(never)]
    fn run_rows<'a>(
        &self,
        rows: &dyn RowSource<'a, ErrorsOnly>,
        input: Input<'a>,
        format: &'static Info,
    ) -> Result<Output, Error> {
        let plan = input.plan(format.name, Direction::Decode, OnError::Column, self.options.limits);
        let Rows { report_columns, until, .. } = run(rows, input.from, &plan, &|| Ok(ErrorsOnly::default()))?;
        Ok(Output { column: report_columns.errors.finish(), until })
    }
}

impl Operation for Validate {
    const DROPS_FIELDS: bool = true;

    fn output_type(&self, _: &'static Info) -> Result<DataType, Error> {
        Ok(schema::errors_type())
    }

    fn batch_type(&self, _: &'static Info) -> Result<DataType, Error> {
        Ok(schema::errors_type())
    }

    fn apply_batch<B: BatchFormat>(&self, input: Input<'_>) -> Result<Output, Error> {
        let batches = binary_column(input.column, &B::INFO)?;
        let rows = BatchRows { batches, options: self.options, errors_of: batch_errors::<B> };
        self.run_rows(&rows, input, &B::INFO)
    }

    fn apply<E: MessageFormat>(&self, input: Input<'_>) -> Result<Output, Error> {
        let messages = MessageRows::of::<E>(input.column, self.options);
        self.run_rows(&*messages_or_lists(messages, input.column, &E::INFO)?.0, input, &E::INFO)
    }
}

type BoxedRows<'a, S> = Box<dyn RowSource<'a, S> + 'a>;

/// Serialized messages, or else the lists of headers of a column, and the byte order of typed values.
fn messages_or_lists<'a, S: RowSink<'a> + 'a>(
    messages: Option<MessageRows<'a, S>>,
    column: &'a dyn Array,
    format: &'static Info,
) -> Result<(BoxedRows<'a, S>, ByteOrder), Error> {
    match (messages, ListInput::of(column)) {
        (Some(messages), _) => Ok((Box::new(messages), format.order)),
        (None, Some(_)) => Ok((Box::new(ListRows::new(column, format)?), ByteOrder::Big)),
        (None, None) => Err(not_binary(column, format)),
    }
}

fn binary_column<'a>(column: &'a dyn Array, format: &Info) -> Result<Bytes<'a>, Error> {
    Bytes::of(column).ok_or_else(|| not_binary(column, format))
}

#[cold]
fn not_binary(column: &dyn Array, format: &Info) -> Error {
    let actual = schema::type_name(column.data_type());
    let advice = match (ListInput::of(column), column.data_type()) {
        (Some(_), _) => ": headers of a list are read by select, and made bytes by encode".into(),
        (None, DataType::Struct(fields)) => column_advice(fields),
        (None, _) => String::new(),
    };
    let fits = "read from binary, large_binary or binary_view";
    Error::Type(format!("the column is {actual}, and {} is {fits}{advice}", format.name))
}

/// Advice to pass a column, such as `headers`, for a table that was passed as a whole.
fn column_advice(columns: &Fields) -> String {
    let is_readable = |data_type: &DataType| {
        use DataType::{Binary, BinaryView, LargeBinary, LargeList, List, Map};
        matches!(data_type, Binary | LargeBinary | BinaryView | List(_) | LargeList(_) | Map(..))
    };
    // A struct with a key is itself a header.
    let is_header = columns.find("key").is_some();
    let readable = || columns.iter().filter(|column| is_readable(column.data_type()));
    let column =
        readable().find(|column| column.name() == "headers").or_else(|| readable().next().filter(|_| !is_header));
    column
        .map_or_else(String::new, |column| format!(": pass a column of the table, such as table[{:?}]", column.name()))
}

fn check_keys(selections: &[Selection], format: &Info) -> Result<(), Error> {
    let mut keys = selections.iter().filter(|selection| !selection.is_of_every_header());
    keys.try_for_each(|selection| selection.key.check(format.name, format.keys))
}

fn struct_of(fields: impl Into<Fields>, columns: Vec<ArrayRef>, nulls: Option<NullBuffer>, rows: usize) -> ArrayRef {
    match columns.is_empty() {
        true => Arc::new(StructArray::new_empty_fields(rows, nulls)),
        false => Arc::new(StructArray::new(fields.into(), columns, nulls)),
    }
}
