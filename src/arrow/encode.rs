//! [`Encode`]: serialized messages as a binary column.

use arrow_array::ArrayRef;
use arrow_schema::DataType;

use super::binary::ViewInput;
use super::column::Column;
use super::layouts::{read_rows, write_rows};
use super::list_rows::{ListRows, StructRows};
use super::rows::RowSource;
use super::run::{OutputRows, Plan, run};
use super::sink::RowSink;
use super::{Input, Operation, Output, schema};
use crate::encoding::Encoding;
use crate::error::{Direction, Error};
use crate::field::FieldValue;
use crate::format_info::{Class, Encoded, FormatInfo};
use crate::header::Header;
use crate::kernel::buffer::Progress;
use crate::kernel::layout::{Layout, Rules};
use crate::kernel::lists::ListBlock;
use crate::kernel::scan::Scratch;
use crate::kernel::varint_layout::VarintLayout;
use crate::kernel::{RowBlock, encode};
use crate::limits::Limits;
use crate::log::{Log, OnError, OnLoss, Result};
use crate::op::check_not_batch;
use crate::op::write::{Origin, Writer, check_written};
use crate::options::WriteOptions;
use crate::sink::{Presence, Sink};
use crate::traits::MessageFormat;
use crate::type_option::TypeOption;
use crate::value_type::{Scalar, ValueType};

/// Encodes lists of headers, or structs with the fields of messages.
#[derive(Debug, Clone, Default)]
pub struct Encode {
    pub options: WriteOptions,
    /// Limits of the losses that are reported.
    pub limits: Limits,
}

impl Operation for Encode {
    const DIRECTION: Direction = Direction::Encode;

    fn output_type(&self, format: &'static FormatInfo) -> Result<DataType, Error> {
        check_not_batch(format)?;
        check_written(format, &self.options)?;
        Ok(written_type(self.options.on_loss, OnError::Raise))
    }

    fn apply<E: MessageFormat>(&self, input: Input<'_>) -> Result<Output, Error> {
        self.write(&E::INFO, input)
    }
}

impl Encode {
    #[inline(never)]
    fn write(&self, target: &'static FormatInfo, input: Input<'_>) -> Result<Output, Error> {
        let rows: Box<dyn RowSource<'_, EncodeSink<'_>>> = match target.class {
            Class::Headers => Box::new(ListRows::new(input.column, target)?),
            _ => Box::new(StructRows::new(input.column, target)?),
        };
        let plan = input.plan(target.name, Direction::Encode, OnError::Raise, self.limits);
        let plan = Plan { on_loss: self.options.on_loss, ..plan };
        write_rows(&*rows, input, &plan, target, &self.options, Origin::USER)
    }
}

/// Output type of writing: a binary column, and if requested, columns of losses and errors.
pub(super) fn written_type(on_loss: OnLoss, on_error: OnError) -> DataType {
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

pub(super) fn write_rows<'a>(
    rows: &dyn RowSource<'a, EncodeSink<'a>>,
    input: Input<'a>,
    plan: &Plan,
    target: &'static FormatInfo,
    options: &WriteOptions,
    origin: Origin,
) -> Result<Output, Error> {
    let make = || EncodeSink::new(target, options.clone(), origin);
    let OutputRows { sink, report_columns, until, .. } = run(rows, input.from, plan, &make)?;
    let data_type = written_type(plan.on_loss, plan.on_error);
    Ok(Output::new(data_type, vec![sink.finish()], None, plan, report_columns, input.from..until))
}

/// Growing column of serialized messages, and the message being written.
pub struct EncodeSink<'a> {
    writer: Writer<'a>,
    messages: Column,
    /// Rules for the kernel; `None` if the options need the slow path.
    rules: Option<Rules>,
    scratch: Scratch,
}

impl EncodeSink<'_> {
    /// Rejects options that do not apply to the format.
    pub fn new(target: &'static FormatInfo, options: WriteOptions, origin: Origin) -> Result<Self, Error> {
        let plainly = options.on_loss != OnLoss::Report && !options.canonical;
        let is_simple = target.class == Class::Headers && plainly && !matches!(options.types, TypeOption::ByKey(_));
        let rules = is_simple.then(|| Rules {
            default_type: (options.types == TypeOption::Binary).then_some(ValueType::Named(Scalar::Binary)),
            untyped: match options.types {
                TypeOption::Untyped(Encoding::Bytes(order)) => Some(order),
                _ => None,
            },
            drops: options.on_loss == OnLoss::Drop,
            refuses_nulls: options.refuse_null_headers,
            max_bytes: target.max_written.max_bytes(),
        });
        Ok(EncodeSink {
            writer: Writer::new(target, options, origin)?,
            messages: Column::new(DataType::Binary, &ViewInput::default()),
            rules,
            scratch: Scratch::default(),
        })
    }

    pub fn finish(self) -> ArrayRef {
        self.messages.finish()
    }
}

impl<'a> RowSink<'a> for EncodeSink<'a> {
    type Found = ();

    const KEEPS_PARTS: bool = false;

    #[inline]
    fn header<R: Log>(&mut self, _: &mut (), header: Header<'a>, log: &mut R) -> Result {
        self.writer.header(header, log)
    }

    #[inline]
    fn fields(&mut self, fields: &[FieldValue<'a>]) {
        self.writer.fields(fields);
    }

    fn extend(&mut self, other: &Self, progress: Progress) {
        self.messages.extend(&other.messages, progress);
    }

    #[inline]
    fn begin_row(&mut self, _: &mut ()) {
        self.writer.clear();
    }

    #[inline]
    fn end_row<R: Log>(&mut self, _: &mut (), headers: Presence, log: &mut R) -> Result {
        let (messages, valid) = self.messages.bytes_mut();
        let encoded = messages.push_written(|out| self.writer.encode(headers, log, out))?;
        valid.push(encoded == Encoded::Message);
        Ok(())
    }

    #[inline]
    fn row_count(&self) -> usize {
        self.messages.count()
    }

    fn truncate(&mut self, rows: usize) {
        self.messages.truncate(rows);
    }

    fn null_row(&mut self) {
        self.messages.push(None);
    }

    #[inline]
    fn max_offset(&self) -> usize {
        self.messages.max_offset()
    }

    fn append_lists(&mut self, layout: Layout, _: &mut (), lists: &ListBlock<'a>, progress: Progress) -> usize {
        let Some(rules) = self.rules else { return 0 };
        let fits = if layout.typed { lists.has_types() || rules.default_type.is_some() } else { !lists.is_typed() };
        if !fits {
            return 0;
        }
        let (messages, valid) = self.messages.bytes_mut();
        let done = write_rows!(layout.name, F => encode::encode::<F>(lists, rules, progress, messages));
        valid.push_all(done);
        done
    }

    fn room(&self, layout: Layout, max_offset: usize) -> Option<usize> {
        self.rules.filter(|_| layout.is_writable()).map(|_| max_offset.saturating_sub(self.messages.max_offset()))
    }
}

impl<'a> EncodeSink<'a> {
    /// Writes rows of one layout in another, up to the first that needs the slow path, and returns their number.
    pub fn append_converted(
        &mut self,
        source: Layout,
        target: Layout,
        block: &RowBlock<'a>,
        limit: usize,
        progress: Progress,
    ) -> usize {
        let Some(rules) = self.rules else { return 0 };
        let (messages, valid) = self.messages.bytes_mut();
        let scratch = &mut self.scratch;
        let done = match source.typed {
            false => write_rows!(target.name, F => {
                encode::convert::<VarintLayout, F>(block, limit, rules, scratch, progress, messages)
            }),
            true if rules.untyped.is_some() && !target.typed => read_rows!(source.name, S => {
                encode::convert::<S, VarintLayout>(block, limit, rules, scratch, progress, messages)
            }),
            true => 0,
        };
        valid.push_all(done);
        done
    }
}
