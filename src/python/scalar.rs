//! Converts a value of an Arrow column to a Python object.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimestampMicrosecondType, TimestampMillisecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, TimeUnit};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyList;

use super::objects::bytes_object;
use crate::arrow::types::DECIMAL_PRECISION;

/// Converts the value of a row; a time in milliseconds becomes a number.
pub fn to_object<'py>(py: Python<'py>, column: &ArrayRef, row: usize) -> PyResult<Bound<'py, PyAny>> {
    if column.is_null(row) {
        return Ok(py.None().into_bound(py));
    }
    match column.data_type() {
        DataType::Boolean => column.as_boolean().value(row).into_bound_py_any(py),
        DataType::Int8 => column.as_primitive::<Int8Type>().value(row).into_bound_py_any(py),
        DataType::Int16 => column.as_primitive::<Int16Type>().value(row).into_bound_py_any(py),
        DataType::Int32 => column.as_primitive::<Int32Type>().value(row).into_bound_py_any(py),
        DataType::Int64 => column.as_primitive::<Int64Type>().value(row).into_bound_py_any(py),
        DataType::UInt8 => column.as_primitive::<UInt8Type>().value(row).into_bound_py_any(py),
        DataType::UInt16 => column.as_primitive::<UInt16Type>().value(row).into_bound_py_any(py),
        DataType::UInt32 => column.as_primitive::<UInt32Type>().value(row).into_bound_py_any(py),
        DataType::UInt64 => column.as_primitive::<UInt64Type>().value(row).into_bound_py_any(py),
        DataType::Decimal128(precision, scale) if (*precision, *scale) != (DECIMAL_PRECISION, 0) => {
            let text = column.as_primitive::<Decimal128Type>().value_as_string(row);
            py.import("decimal")?.getattr("Decimal")?.call1((text,))
        }
        DataType::Decimal128(..) => column.as_primitive::<Decimal128Type>().value(row).into_bound_py_any(py),
        DataType::Float32 => column.as_primitive::<Float32Type>().value(row).into_bound_py_any(py),
        DataType::Float64 => column.as_primitive::<Float64Type>().value(row).into_bound_py_any(py),
        DataType::Timestamp(TimeUnit::Millisecond, _) => {
            column.as_primitive::<TimestampMillisecondType>().value(row).into_bound_py_any(py)
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            let micros = column.as_primitive::<TimestampMicrosecondType>().value(row);
            let (days, rest) = (micros.div_euclid(86_400_000_000), micros.rem_euclid(86_400_000_000));
            let since = timedelta(py, days, rest / 1_000_000, rest % 1_000_000)?;
            let utc = py.import("datetime")?.getattr("UTC")?;
            let epoch = py.import("datetime")?.getattr("datetime")?.call1((1970, 1, 1, 0, 0, 0, 0, utc))?;
            epoch.add(since)
        }
        DataType::Date32 => {
            let days = column.as_primitive::<Date32Type>().value(row);
            let epoch = py.import("datetime")?.getattr("date")?.call1((1970, 1, 1))?;
            epoch.add(timedelta(py, days.into(), 0, 0)?)
        }
        DataType::Utf8 => column.as_string::<i32>().value(row).into_bound_py_any(py),
        DataType::Binary => Ok(bytes_object(py, column.as_binary::<i32>().value(row))?.into_any()),
        DataType::List(_) => {
            let elements = column.as_list::<i32>().value(row);
            let objects =
                (0..elements.len()).map(|index| to_object(py, &elements, index)).collect::<PyResult<Vec<_>>>()?;
            Ok(PyList::new(py, objects)?.into_any())
        }
        other => Err(PyTypeError::new_err(format!("no Python value for {other}"))),
    }
}

fn timedelta(py: Python<'_>, days: i64, seconds: i64, micros: i64) -> PyResult<Bound<'_, PyAny>> {
    py.import("datetime")?.getattr("timedelta")?.call1((days, seconds, micros))
}
