//! Selected columns that are packed into headers: columns that are selected from these are equal.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, StructArray};
use arrow_schema::{Field, Fields};
use letterhead::arrow::pack::{Pack, PackedColumn};
use letterhead::arrow::select::Repeat;
use letterhead::arrow::types::Dialect;
use letterhead::arrow::{Operation as _, Select};
use letterhead::error::Code;
use letterhead::log::OnError;
use letterhead::options::ReadOptions;

use super::selections::{selections, type_of};
use super::serialized_rows::{BEHIND, Layout};
use super::{Shape, Target, formats_of_one, named, seal};
use crate::columns::{apply_to, faults_at};
use crate::common::read;

pub const TARGET: Target = Target { name: "pack", subjects: formats_of_one, check };

fn check(name: &str, data: &[u8]) {
    let (format, Some((shape, data))) = (named(name), Shape::split(data)) else { return };
    let Some((of, data)) = data.split_first() else { return };
    let mut serialized = data.to_vec();
    if shape.bit(5) {
        seal::seal(format, &mut serialized);
    }
    let options = ReadOptions { text_keys: false, strict_types: false, ..shape.options() };
    let Ok(messages) = read(format, &serialized, options) else { return };
    let type_ = type_of(*of);
    let mut selections = selections(&messages, format.info().keys, type_);
    selections.retain(|selection| selection.repeat != Repeat::Error);
    selections.iter_mut().for_each(|selection| selection.required = false);
    let dialect = if shape.bit(3) { Dialect::Spark } else { Dialect::Arrow };
    let column = Layout::of(shape.bits(6, 2)).column(&[Some(&serialized), Some(&serialized)], &BEHIND);
    for selection in selections {
        let is_list = selection.repeat == Repeat::All;
        let packed = PackedColumn::Values { key: selection.key.clone(), type_, lists: is_list, split: None };
        let pack = Pack { columns: vec![packed], skips_nulls: !is_list, truncates: false };
        let select = Select { selections: vec![selection], dialect, options, on_error: OnError::Column, views: false };
        let selected = apply_to(format, &select, &column).expect("nothing is raised");
        let values = selected.as_struct().column(0);
        let fields = Fields::from(vec![Field::new("values", values.data_type().clone(), true)]);
        let structs = StructArray::new(fields, vec![Arc::clone(values)], None);
        if pack.output_type(format.info()).is_err() {
            return;
        }
        match apply_to(format, &pack, &structs) {
            Ok(lists) => {
                let again = apply_to(format, &select, &lists).expect("nothing is raised");
                // A list with an element that has an error is null, and no header says so.
                let is_kept = |row: &usize| !is_list || values.is_valid(*row);
                for row in (0..values.len()).filter(is_kept) {
                    assert_eq!(&again.as_struct().column(0).slice(row, 1), &values.slice(row, 1));
                }
                let errors = again.as_struct().column_by_name("error").expect("it was asked for");
                assert!((0..errors.len()).all(|row| faults_at(errors, row).is_empty()));
            }
            Err((_, error)) => {
                let limits = [Code::EmptyValue, Code::TooLong, Code::NullNotCarried, Code::TooLarge];
                assert!(limits.contains(&error.code), "{error:?}");
            }
        }
    }
}
