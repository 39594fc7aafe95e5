//! Tables of formats, types, codes and limits, from which Python derives its own.

use arrow_schema::FieldRef;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::arguments::limits_or_default;
use super::gil::enter;
use crate::arrow::schema;
use crate::arrow::types::{Dialect, ddl};
use crate::error::Code;
use crate::format::Format;
use crate::limits::Limits;
use crate::value_type::Scalar;

/// Returns a dict for each format: `name`, `is_`, `source`, `layout`, `fields` as `(name, Arrow type)`, and the
/// constraints on its headers: `keys`, `types`, `nulls`, `part_len` (minimum and maximum length of a key and of a
/// value), `is_target`.
#[pyfunction]
pub fn formats(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    enter(|| {
        let row = |format: &Format| {
            let info = format.info();
            let fields = schema::message_fields(info, false);
            let typed = |field: &FieldRef| (field.name().clone(), schema::type_name(field.data_type()));
            let row = PyDict::new(py);
            row.set_item("name", info.name)?;
            row.set_item("is_", info.class.name())?;
            row.set_item("source", info.source)?;
            row.set_item("layout", info.layout)?;
            row.set_item("fields", fields.iter().map(typed).collect::<Vec<_>>())?;
            row.set_item("keys", info.keys.name())?;
            row.set_item("types", info.types.is_typed())?;
            row.set_item("nulls", info.constraints.nulls)?;
            row.set_item("part_len", info.constraints.part_len)?;
            row.set_item("is_target", info.is_target)?;
            Ok(row)
        };
        Format::ALL.iter().map(row).collect()
    })
}

/// Returns a dict for each type: `name`, `kip82`, `iggy`, `width`, `arrow`, `spark`.
#[pyfunction]
pub fn types(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    enter(|| {
        let row = |scalar: &Scalar| {
            let row = PyDict::new(py);
            row.set_item("name", scalar.name())?;
            row.set_item("kip82", scalar.kip82())?;
            row.set_item("iggy", scalar.iggy())?;
            row.set_item("width", scalar.width())?;
            row.set_item("arrow", schema::type_name(&scalar.arrow(Dialect::Arrow)))?;
            row.set_item("spark", ddl(&scalar.arrow(Dialect::Spark)))?;
            Ok(row)
        };
        Scalar::ALL.iter().filter(|scalar| scalar.is_wire_type()).map(row).collect()
    })
}

#[pyfunction]
pub fn select_types() -> PyResult<Vec<&'static str>> {
    enter(|| Ok(Scalar::ALL.iter().map(|scalar| scalar.name()).collect()))
}

/// Returns limits in the order of the fields of `letterhead.Limits`. The process-wide limits replace unset ones.
#[pyfunction]
#[pyo3(signature = (limits=None))]
pub fn limits(py: Python<'_>, limits: Option<&Bound<'_, PyAny>>) -> PyResult<[usize; 7]> {
    enter(|| {
        let limits = limits_or_default(py, limits)?;
        let Limits { message_bytes, headers, decompressed_bytes, records, output_bytes, reports, arrow_batch_bytes } =
            limits;
        Ok([message_bytes, headers, decompressed_bytes, records, output_bytes, reports, arrow_batch_bytes])
    })
}

/// Returns each error code and its meaning.
#[pyfunction]
pub fn codes() -> PyResult<Vec<(&'static str, &'static str)>> {
    enter(|| Ok(Code::ALL.iter().map(|code| (code.name(), code.meaning())).collect()))
}

/// Computes the checksum of Apache Iggy's batches and frames.
#[pyfunction]
pub fn xxh3_64(data: &[u8]) -> PyResult<u64> {
    enter(|| Ok(twox_hash::XxHash3_64::oneshot(data)))
}
