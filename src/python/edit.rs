//! Edits of headers as Python passes them; `letterhead.operations.edit` checks them.

use pyo3::FromPyObject;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};

use super::arguments::{KeyArgument, named, type_named};
use crate::error::Error;
use crate::op::edit::{Change, Edit, Entry, NewValue};
use crate::op::mask::Mask;

/// `(source, type, bits, column)`: a constant has a type and bits, and a value from a column its number.
type ValueArgument = (PyBackedStr, Option<PyBackedStr>, Option<PyBackedBytes>, usize);

/// An edit as Python passes it: the entries by key, whether headers with other keys are dropped, the headers to append, and
/// whether a null in a column of values means no header.
#[derive(FromPyObject)]
pub struct EditArgument(Vec<EntryArgument>, bool, Vec<(KeyArgument, ValueArgument)>, bool);

/// `(key, renamed, change, value)`
#[derive(FromPyObject)]
struct EntryArgument(KeyArgument, Option<KeyArgument>, PyBackedStr, Option<ValueArgument>);

pub fn edit(EditArgument(entries, drops_others, appended, skips_nulls): EditArgument) -> Result<Edit, Error> {
    let entry = |EntryArgument(key, renamed, change, value): EntryArgument| {
        let value = value.map(new_value).transpose()?;
        let change = match (named("change", &change, &[("keep", 0), ("drop", 1), ("replace", 2), ("set", 3)])?, value) {
            (1, _) => Change::Drop,
            (2, Some(value)) => Change::Replace(value),
            (3, Some(value)) => Change::Set(value),
            _ => Change::Keep,
        };
        Ok(Entry { key: key.requested()?, renamed: renamed.map(KeyArgument::requested).transpose()?, change })
    };
    let header = |(key, value): (KeyArgument, ValueArgument)| Ok((key.requested()?, new_value(value)?));
    Ok(Edit {
        entries: entries.into_iter().map(entry).collect::<Result<_, Error>>()?,
        drops_others,
        appended: appended.into_iter().map(header).collect::<Result<_, Error>>()?,
        skips_nulls,
    })
}

fn new_value((source, value_type, bits, column): ValueArgument) -> Result<NewValue, Error> {
    let constant = || {
        let value_type = value_type.as_deref().map(type_named).transpose()?;
        Ok(NewValue::Constant(value_type, bits.as_ref().map(|bits| bits.to_vec())))
    };
    let masks = [("hash", Mask::Hash), ("redact", Mask::Redact), ("last4", Mask::LastFour)];
    match &*source {
        "constant" => constant(),
        "column" => Ok(NewValue::Column(column)),
        mask => Ok(NewValue::Masked(named("mask", mask, &masks)?)),
    }
}
