//! [`Work`]: an operation on a column, chosen at run time.

use arrow_array::ArrayRef;
use arrow_schema::DataType;

use super::{Input, Operation, Output};
use crate::error::{Direction, Error};
use crate::format::Visitor;
use crate::traits::{BatchFormat, MessageFormat};

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
