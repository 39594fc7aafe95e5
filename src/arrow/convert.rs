//! [`Convert`]: messages as bytes of another format.

use arrow_array::Array;
use arrow_schema::DataType;

use super::encode::{EncodeSink, write_rows, written_type};
use super::input::binary_column;
use super::rows::{Appended, Buffers, MessageColumn, Next, Parsed, RowSource};
use super::run::Plan;
use super::sink::{Row, RowSink as _, parse_row};
use super::{Input, Operation, Output};
use crate::error::{Direction, Error};
use crate::format::Format;
use crate::format_info::{Class, FormatInfo};
use crate::kernel::encode::max_converted_len;
use crate::log::{EitherLog, Log as _, OnError};
use crate::op::convert::{hand_over, no_target, not_one_by_one};
use crate::op::write::{Origin, check_written};
use crate::options::{ReadOptions, WriteOptions};
use crate::sink::AnySink;
use crate::traits::{BatchFormat, MessageFormat};

/// Converts messages to another format.
#[derive(Debug, Clone)]
pub struct Convert {
    pub target: Format,
    pub read: ReadOptions,
    pub write: WriteOptions,
    pub on_error: OnError,
}

impl Operation for Convert {
    const DIRECTION: Direction = Direction::Convert;

    fn output_type(&self, source: &'static FormatInfo) -> Result<DataType, Error> {
        let target = self.target.info();
        match (source.class, target.class) {
            (Class::Batch, _) => return Err(not_one_by_one(source.name)),
            (_, Class::Batch) => return Err(no_target(target.name)),
            _ => check_written(target, &self.write)?,
        }
        Ok(written_type(self.write.on_loss, self.on_error))
    }

    fn apply<E: MessageFormat>(&self, input: Input<'_>) -> Result<Output, Error> {
        let bytes = binary_column(input.column, &E::INFO)?;
        self.convert(MessageColumn::new::<E>(bytes, self.read), input)
    }

    fn apply_batch<B: BatchFormat>(&self, _input: Input<'_>) -> Result<Output, Error> {
        Err(not_one_by_one(B::NAME))
    }
}

impl Convert {
    #[inline(never)]
    fn convert<'a>(&self, messages: MessageColumn<'a>, input: Input<'a>) -> Result<Output, Error> {
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

/// Serialized messages that are converted to another format.
pub struct ConvertedRows<'a> {
    pub messages: MessageColumn<'a>,
    pub target: &'static FormatInfo,
}

impl<'a> RowSource<'a, EncodeSink<'a>> for ConvertedRows<'a> {
    fn column(&self) -> &'a dyn Array {
        self.messages.bytes.array()
    }

    fn append(&self, buffers: &mut Buffers<'a>, next: Next, to: &mut Row<'_, 'a, EncodeSink<'a>>) -> Option<Appended> {
        let MessageColumn { format, options, .. } = self.messages;
        let (source, target) = (format.wire_layout, self.target.wire_layout);
        let room = to.sink.room(target, next.max_offset)?;
        // Kernels do not convert types.
        if format.class != Class::Headers || !source.is_readable() || source.typed && target.typed {
            return None;
        }
        // Kernels do not convert rows without a message.
        let nulls = self.column().nulls();
        let end = next.rows.clone().find(|row| nulls.is_some_and(|nulls| nulls.is_null(*row)));
        let offered = self.messages.open(buffers, next.rows.start..end.unwrap_or(next.rows.end), usize::MAX);
        let block = &buffers.block;
        Some(match offered {
            1.. if max_converted_len(source, target, block) <= room => {
                let appended = to.sink.append_converted(source, target, block, options.limits.headers, next.progress);
                Appended { offered, appended }
            }
            _ => Appended::NONE,
        })
    }

    fn parse(
        &self,
        row: usize,
        buffers: &mut Buffers<'a>,
        log: EitherLog<'_>,
        to: &mut Row<'_, 'a, EncodeSink<'a>>,
    ) -> Parsed {
        let only_headers = self.messages.format.class == Class::Headers && self.target.class == Class::Headers;
        if only_headers && matches!(log, EitherLog::FailFast(_)) {
            return self.messages.parse(row, log, AnySink(to));
        }
        // Errors of the source are reported before losses in the target, so all headers are read first.
        let message = &mut buffers.message;
        message.clear();
        parse_row!(log, to, |log, to| {
            let presence = self.messages.parse(row, log.either(), AnySink(message))?;
            hand_over(message, presence, self.messages.format.fields, self.target.fields, log, to)?;
            Ok(presence)
        })
    }
}
