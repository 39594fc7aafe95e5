//! Edits of headers passed from Python; `letterhead.operations.edit` checks them.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};

use super::arguments::{KeyArgument, parse_choice, parse_type_name};
use super::gil::enter;
use crate::arrow::edit::SeenEntries;
use crate::error::{Error, unknown_name};
use crate::op::edit::{Change, Edit, Entry, NewValue};
use crate::op::mask::{HmacKey, Mask};

/// Records which entries of an edit had a header in any column. After the last row of a column, `report` is called with
/// the indexes of the other entries.
#[pyclass(frozen, module = "letterhead._native")]
pub struct EditedKeys {
    pub seen: Arc<SeenEntries>,
    report: Option<Py<PyAny>>,
}

#[pymethods]
impl EditedKeys {
    #[new]
    #[pyo3(signature = (entries, report=None))]
    fn new(entries: usize, report: Option<Py<PyAny>>) -> PyResult<Self> {
        enter(|| Ok(EditedKeys { seen: Arc::new(SeenEntries::new(entries)), report }))
    }

    /// Indexes of the entries without a header; none before the first row.
    fn unmatched_keys(&self) -> PyResult<Vec<usize>> {
        enter(|| Ok(self.seen.unseen()))
    }
}

impl EditedKeys {
    /// Reports the entries without a header, if there are any.
    pub fn report(&self, py: Python<'_>) -> PyResult<()> {
        match (self.seen.unseen(), &self.report) {
            (unseen, Some(report)) if !unseen.is_empty() => report.call1(py, (unseen,)).map(|_| ()),
            _ => Ok(()),
        }
    }
}

/// Mirrors `letterhead.operations.edit.EntryValue`. A constant has a type and bytes, and a value from a column has its
/// index.
#[derive(FromPyObject)]
struct EntryValue {
    source: PyBackedStr,
    #[pyo3(attribute("type"))]
    type_: Option<PyBackedStr>,
    bits: Option<PyBackedBytes>,
    column: usize,
}

/// Mirrors `letterhead.operations.edit.EditEntry`.
#[derive(FromPyObject)]
struct EditEntry {
    key: KeyArgument,
    renamed: Option<KeyArgument>,
    change: PyBackedStr,
    value: Option<EntryValue>,
}

/// Mirrors `letterhead.operations.edit.EditEntries`.
#[derive(FromPyObject)]
pub struct EditEntries {
    entries: Vec<EditEntry>,
    drops_others: bool,
    appended: Vec<(KeyArgument, EntryValue)>,
    skips_nulls: bool,
}

pub fn edit(EditEntries { entries, drops_others, appended, skips_nulls }: EditEntries) -> Result<Edit, Error> {
    let entry = |EditEntry { key, renamed, change, value }: EditEntry| {
        let value = value.map(new_value).transpose()?;
        let change =
            match (parse_choice("change", &change, &[("keep", 0), ("drop", 1), ("replace", 2), ("set", 3)])?, value) {
                (1, _) => Change::Drop,
                (2, Some(value)) => Change::Replace(value),
                (3, Some(value)) => Change::Set(value),
                _ => Change::Keep,
            };
        Ok(Entry { key: key.into_requested()?, renamed: renamed.map(KeyArgument::into_requested).transpose()?, change })
    };
    let header = |(key, value): (KeyArgument, EntryValue)| Ok((key.into_requested()?, new_value(value)?));
    Ok(Edit {
        entries: entries.into_iter().map(entry).collect::<Result<_, Error>>()?,
        drops_others,
        appended: appended.into_iter().map(header).collect::<Result<_, Error>>()?,
        skips_nulls,
    })
}

fn new_value(EntryValue { source, type_, bits, column }: EntryValue) -> Result<NewValue, Error> {
    let constant = || {
        let value_type = type_.as_deref().map(parse_type_name).transpose()?;
        Ok(NewValue::Constant(value_type, bits.as_ref().map(|bits| bits.to_vec())))
    };
    match &*source {
        "constant" => constant(),
        "column" => Ok(NewValue::Column(column)),
        // The bits are the secret key.
        "hmac" => Ok(NewValue::Masked(Mask::Hmac(HmacKey::new(bits.as_deref().unwrap_or_default())))),
        "hash" => Ok(NewValue::Masked(Mask::Hash)),
        "redact" => Ok(NewValue::Masked(Mask::Redact)),
        "last4" => Ok(NewValue::Masked(Mask::LastFour)),
        other => Err(unknown_name("mask", other, ["hash", "redact", "last4"].into_iter())),
    }
}
