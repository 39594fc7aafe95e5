//! Conversion of Avro values to columns, and back.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, StructArray};
use arrow_schema::DataType;
use pyo3::prelude::*;

use super::c_interface::import_one;
use super::capsule::{Column, Schema};
use super::errors::{ErrorTuple, error_tuple};
use super::gil::{enter, without_gil};
use crate::arrow;
use crate::error::Error;

/// Reads values of one schema into the columns of another; both are JSON.
#[pyclass(frozen, module = "letterhead._native")]
pub struct AvroReader(arrow::avro::AvroReader);

/// Writes rows of columns as values of one schema, which is JSON.
#[pyclass(frozen, module = "letterhead._native")]
pub struct AvroWriter(arrow::avro::AvroWriter);

#[pymethods]
impl AvroWriter {
    #[new]
    fn new(schema: &str) -> PyResult<AvroWriter> {
        enter(|| Ok(AvroWriter(arrow::avro::AvroWriter::new(schema)?)))
    }

    /// The columns in the types that are written, as a struct.
    #[getter]
    fn schema(&self) -> PyResult<Schema> {
        enter(|| Ok(Schema { data_type: DataType::Struct(self.0.schema().fields().clone()) }))
    }

    /// Returns the value of each row, or None and the errors by row. No row may be null.
    fn encode(&self, py: Python<'_>, rows: &Bound<'_, PyAny>) -> PyResult<Encoded> {
        enter(|| {
            let array = import_one(rows)?;
            let encoded = without_gil(py, || {
                let rows = array.as_struct_opt().ok_or_else(|| Error::Type("the rows are not structs".into()))?;
                self.0.encode(rows)
            })?;
            Ok(match encoded {
                Ok(values) => (Some(Column { array: Arc::new(values) }), Vec::new()),
                Err(errors) => (None, errors.into_iter().map(|(row, error)| (row, error_tuple(error))).collect()),
            })
        })
    }
}

/// Values of all rows, or None and the errors by row.
type Encoded = (Option<Column>, Vec<(usize, ErrorTuple)>);

/// Arrays of the decoded rows, and the errors of the other rows by row.
type Decoded = (Vec<Column>, Vec<(usize, ErrorTuple)>);

#[pymethods]
impl AvroReader {
    #[new]
    #[pyo3(signature = (writer, reader=None))]
    fn new(writer: &str, reader: Option<&str>) -> PyResult<AvroReader> {
        enter(|| Ok(AvroReader(arrow::avro::AvroReader::new(writer, reader)?)))
    }

    /// The columns, as a struct.
    #[getter]
    fn schema(&self) -> PyResult<Schema> {
        enter(|| Ok(Schema { data_type: DataType::Struct(self.0.schema().fields().clone()) }))
    }

    /// Returns the decoded rows in several arrays, and the errors of the other rows by row. No value may be null.
    fn decode(&self, py: Python<'_>, values: &Bound<'_, PyAny>) -> PyResult<Decoded> {
        enter(|| {
            let array = import_one(values)?;
            let (batches, errors) = without_gil(py, || {
                let values = array.as_binary_opt().ok_or_else(|| Error::Type("the values are not binary".into()))?;
                self.0.decode(values)
            })?;
            let column = |batch| Column { array: Arc::new(StructArray::from(batch)) as ArrayRef };
            let errors = errors.into_iter().map(|(row, error)| (row, error_tuple(error)));
            Ok((batches.into_iter().map(column).collect(), errors.collect()))
        })
    }
}
