//! [`Work`]: an operation on a column, chosen at run time.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, StructArray};
use arrow_schema::{DataType, Fields};

use super::filter::Filter;
use super::filtered::Filtered;
use super::schema::nullable;
use super::shapes::plain;
use super::{Input, Operation, Output};
use crate::error::{Direction, Error};
use crate::format::{Format, Visitor};
use crate::log::OnError;
use crate::options::ReadOptions;
use crate::traits::{BatchFormat, MessageFormat};

/// Operation on a column, chosen at run time.
pub trait Work: Send + Sync {
    /// Direction and format that the error names if the result is too large.
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

/// An operation on messages of a format.
pub struct FormatOperation<V>(pub V, pub Format);

impl<V: Operation + Send + Sync> Work for FormatOperation<V> {
    fn error_context(&self) -> (Direction, &'static str) {
        (V::DIRECTION, self.1.info().name)
    }

    fn output_type(&self) -> Result<DataType, Error> {
        self.0.output_type(self.1.info())
    }

    fn reshape(&self, column: ArrayRef) -> Result<ArrayRef, Error> {
        plain(column, self.1.info(), V::DROPS_FIELDS)
    }

    fn apply(&self, input: Input<'_>) -> Result<Output, Error> {
        self.1.visit(Apply(&self.0, input))
    }
}

/// Applies an operation only to the rows that a filter selects, if there is one.
pub fn filter_rows<O: Operation + Send + Sync + 'static>(
    operation: O,
    format: Format,
    filter: Option<Filter>,
    options: ReadOptions,
    on_error: OnError,
) -> Arc<dyn Work> {
    match filter.map(Arc::new) {
        Some(filter) => Arc::new(FormatOperation(Filtered { operation, filter, options, on_error }, format)),
        None => Arc::new(FormatOperation(operation, format)),
    }
}

/// Work whose last column, the errors, is renamed.
pub struct ErrorsNamed {
    pub work: Arc<dyn Work>,
    pub name: String,
}

impl ErrorsNamed {
    fn renamed_fields(&self, fields: &Fields) -> Result<Fields, Error> {
        if fields.iter().any(|field| *field.name() == self.name) {
            let name = &self.name;
            return Err(Error::Value(format!("two columns '{name}' would be made: give error_column= another name")));
        }
        let renamed = fields.last().map(|errors| nullable(&self.name, errors.data_type().clone()));
        Ok(fields.iter().take(fields.len().saturating_sub(1)).cloned().chain(renamed).collect())
    }
}

impl Work for ErrorsNamed {
    fn error_context(&self) -> (Direction, &'static str) {
        self.work.error_context()
    }

    fn output_type(&self) -> Result<DataType, Error> {
        Ok(match self.work.output_type()? {
            DataType::Struct(fields) => DataType::Struct(self.renamed_fields(&fields)?),
            other => other,
        })
    }

    fn reshape(&self, column: ArrayRef) -> Result<ArrayRef, Error> {
        self.work.reshape(column)
    }

    fn apply(&self, input: Input<'_>) -> Result<Output, Error> {
        let output = self.work.apply(input)?;
        let Some(result) = output.column.as_struct_opt() else { return Ok(output) };
        let (fields, columns, nulls) = result.clone().into_parts();
        Ok(Output { column: Arc::new(StructArray::new(self.renamed_fields(&fields)?, columns, nulls)), ..output })
    }
}

/// Work that returns columns unchanged after import.
pub struct Imported(pub DataType);

impl Work for Imported {
    fn error_context(&self) -> (Direction, &'static str) {
        (Direction::Decode, "arrow")
    }

    fn output_type(&self) -> Result<DataType, Error> {
        Ok(self.0.clone())
    }

    fn apply(&self, input: Input<'_>) -> Result<Output, Error> {
        let (from, rows) = (input.from, input.column.len());
        Ok(Output { column: input.column.slice(from, rows - from), until: rows })
    }
}
