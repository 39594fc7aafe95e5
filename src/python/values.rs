//! Functions of a scan for each value of a column: its hash, and the regular expressions that match it.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use regex::bytes::RegexSet;

use super::arguments::argument;
use super::c_interface;
use super::gil::{enter, without_gil};
use super::objects::bytes_object;
use crate::arrow::input::Bytes;
use crate::error::Error;
use crate::memory;

/// Returns the XXH3 hash of each value of a column without nulls, as 64-bit numbers in native order.
#[pyfunction]
pub fn value_hashes<'py>(py: Python<'py>, column: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    enter(|| {
        let hashes = each_value(column, |value, out: &mut Vec<u8>| {
            memory::extend(out, &twox_hash::XxHash3_64::oneshot(value).to_ne_bytes());
        })?;
        bytes_object(py, &hashes)
    })
}

/// Returns a byte string for each expression, with a byte for each value, which is 1 if it matches.
#[pyfunction]
pub fn value_matches<'py>(
    py: Python<'py>,
    column: &Bound<'py, PyAny>,
    #[pyo3(from_py_with = argument::extract)] expressions: Vec<String>,
) -> PyResult<Vec<Bound<'py, PyBytes>>> {
    enter(|| {
        let set = RegexSet::new(&expressions).map_err(|error| PyValueError::new_err(error.to_string()))?;
        let found = each_value(column, |value, out: &mut Vec<bool>| {
            let matched = set.matches(value);
            memory::reserve(out, set.len());
            out.extend((0..set.len()).map(|number| matched.matched(number)));
        })?;
        let column_of = |number: usize| -> Vec<u8> {
            found.iter().skip(number).step_by(set.len()).map(|matched| u8::from(*matched)).collect()
        };
        (0..set.len()).map(|number| bytes_object(py, &column_of(number))).collect()
    })
}

fn each_value<T: Send>(column: &Bound<'_, PyAny>, note: impl Fn(&[u8], &mut Vec<T>) + Sync) -> PyResult<Vec<T>> {
    let array = c_interface::import_one(column)?;
    without_gil(column.py(), || {
        let values = Bytes::of(&array).ok_or_else(|| Error::Type("the values are no bytes".into()))?;
        let mut out = Vec::new();
        (0..array.len()).filter_map(|row| values.get(row)).for_each(|value| note(value, &mut out));
        Ok(out)
    })
}
