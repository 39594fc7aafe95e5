//! [`Pack`] converts columns of values to lists of headers; the inverse of [`super::Select`].

use arrow_array::cast::AsArray;
use arrow_array::{Array, StructArray};
use arrow_schema::DataType;

use super::decode::ListSink;
use super::encoded_column::{EncodedColumn, encode, stored_type};
use super::list_rows::ListRows;
use super::rows::{Buffers, Parsed, RowSource};
use super::run::{OutputRows, run};
use super::sink::{Row, parse_row};
use super::{Input, Operation, Output, binary, schema};
use crate::error::{Code, Direction, Error};
use crate::field::Field;
use crate::format_info::FormatInfo;
use crate::header::{Header, RequestedKey};
use crate::limits::Limits;
use crate::log::{EitherLog, Log, OnError, Result};
use crate::memory;
use crate::op::check_not_batch;
use crate::op::edit::{key_of, writable_key};
use crate::sink::{Presence, Sink};
use crate::traits::MessageFormat;
use crate::types::Type;
use crate::value::ByteOrder;

/// Conversion of an input column to headers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PackedColumn {
    /// A header for each value, or for each element of a list. With `split`, a list becomes one header, with its
    /// elements separated by this text.
    Values { key: RequestedKey, type_: Type, lists: bool, split: Option<Vec<u8>> },
    /// Lists of headers, which are copied.
    Headers,
}

/// Builds lists of headers from a struct of columns, in the order of the columns.
#[derive(Debug, Clone)]
pub struct Pack {
    /// Conversion of each field of the struct.
    pub columns: Vec<PackedColumn>,
    /// Whether nulls become no headers, instead of null headers.
    pub skips_nulls: bool,
    /// Whether excess digits of times and decimals are cut off, instead of being errors.
    pub truncates: bool,
}

impl Operation for Pack {
    const DIRECTION: Direction = Direction::Encode;

    fn output_type(&self, format: &'static FormatInfo) -> Result<DataType, Error> {
        check_not_batch(format)?;
        for column in &self.columns {
            let PackedColumn::Values { key, type_, .. } = column else { continue };
            writable_key(key, format)?;
            stored_type(*type_, format)
                .map_err(|message| Error::Value(format!("{}: header {key}: {message}", format.name)))?;
        }
        Ok(schema::headers_type(format, false))
    }

    fn apply<E: MessageFormat>(&self, input: Input<'_>) -> Result<Output, Error> {
        self.run(input, self.output_type(&E::INFO)?, &E::INFO)
    }
}

impl Pack {
    fn run(&self, input: Input<'_>, data_type: DataType, format: &FormatInfo) -> Result<Output, Error> {
        let structs = input.column.as_struct_opt().filter(|structs| structs.num_columns() == self.columns.len());
        let structs = structs.ok_or_else(|| Error::Type("pack reads a struct of the columns".into()))?;
        let encoded = self.columns.iter().zip(structs.columns()).map(|(packed, column)| match packed {
            PackedColumn::Headers => Ok(None),
            PackedColumn::Values { key, type_, lists, split } => {
                let encode = || {
                    let encoded = encode(column.as_ref(), *type_, format, *lists, self.truncates)?;
                    match split {
                        Some(separator) => encoded.join(separator, self.skips_nulls, format),
                        None => Ok(encoded),
                    }
                };
                let encoded = memory::catch_refusal(encode).unwrap_or_else(|held| held.resume(&key.to_string()));
                encoded.map(Some).map_err(|error| error.into_error(key, format, input.rows_before))
            }
        });
        let encoded: Vec<_> = encoded.collect::<Result<_, Error>>()?;
        let sources = self.columns.iter().zip(structs.columns()).zip(&encoded).map(|((packed, column), encoded)| {
            Ok(match (packed, encoded) {
                (PackedColumn::Values { key, .. }, Some(encoded)) => HeaderSource::Values { key, encoded },
                _ => HeaderSource::Headers(Box::new(ListRows::new(column.as_ref(), format)?)),
            })
        });
        let rows = PackRows {
            structs,
            sources: sources.collect::<Result<_, Error>>()?,
            skips_nulls: self.skips_nulls,
            carries_nulls: format.constraints.nulls,
        };
        let plan = input.plan(format.name, Direction::Encode, OnError::Raise, Limits::DEFAULT);
        // Typed values are big-endian bytes.
        let lists = FormatInfo { fields: &[Field::HEADERS], order: ByteOrder::Big, ..*format };
        let make = || Ok(ListSink::new(&lists, false, None));
        let OutputRows { sink, report_columns, until, .. } = run(&rows, input.from, &plan, &make)?;
        let (columns, has_message) = sink.finish();
        Ok(Output::new(data_type, columns, binary::nulls(has_message), &plan, report_columns, input.from..until))
    }
}

/// The headers of a column.
enum HeaderSource<'a> {
    Values { key: &'a RequestedKey, encoded: &'a EncodedColumn<'a> },
    Headers(Box<ListRows<'a>>),
}

/// The rows of a struct, each of which becomes a list of headers.
struct PackRows<'a> {
    structs: &'a StructArray,
    sources: Vec<HeaderSource<'a>>,
    skips_nulls: bool,
    carries_nulls: bool,
}

impl<'a> RowSource<'a, ListSink> for PackRows<'a> {
    fn column(&self) -> &'a dyn Array {
        self.structs
    }

    fn parse(&self, row: usize, _: &mut Buffers<'a>, log: EitherLog<'_>, sink: &mut Row<'_, 'a, ListSink>) -> Parsed {
        parse_row!(log, sink, |log, sink| self.parse_row(row, log, sink))
    }
}

impl<'a> PackRows<'a> {
    fn parse_row<R: Log, S: Sink<'a>>(&self, row: usize, log: &mut R, sink: &mut S) -> Parsed {
        for source in &self.sources {
            let (key, encoded) = match source {
                HeaderSource::Values { key, encoded } => (key, encoded),
                HeaderSource::Headers(rows) => {
                    rows.parse_row(row, log, sink)?;
                    continue;
                }
            };
            for index in encoded.values_of(row) {
                let value = encoded.get(index);
                if value.is_none() && self.skips_nulls {
                    continue;
                }
                if value.is_none() && !self.carries_nulls {
                    let message = || format!("header {key}: the value is null: pass nulls=\"skip\"");
                    return Err(log.fatal(Code::NullNotCarried, None, message));
                }
                let value_type = encoded.value_type.filter(|_| value.is_some());
                sink.header(Header { index: 0, key: key_of(key), value_type, value, value_offset: None }, log)?;
            }
        }
        Ok(Presence::Whole)
    }
}
