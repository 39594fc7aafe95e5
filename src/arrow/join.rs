//! Parts of a column, joined in their order into one array.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, ListArray, StructArray};
use arrow_buffer::{OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, FieldRef, Fields};

use super::binary::{self, ViewInput};
use super::column::Column;
use crate::kernel::buffer::{Seen, Validity};

/// A growing array of any type that an operation returns.
pub enum Joined {
    Values(Column),
    List { element: FieldRef, ends: Vec<i32>, valid: Validity, elements: Box<Joined> },
    Struct { fields: Fields, columns: Vec<Joined>, valid: Validity },
}

impl Joined {
    pub fn new(of: &DataType, input: &ViewInput) -> Self {
        match of {
            DataType::List(element) => Joined::List {
                element: Arc::clone(element),
                ends: vec![0],
                valid: Validity::default(),
                elements: Box::new(Joined::new(element.data_type(), input)),
            },
            DataType::Struct(fields) => Joined::Struct {
                fields: fields.clone(),
                columns: fields.iter().map(|field| Joined::new(field.data_type(), input)).collect(),
                valid: Validity::default(),
            },
            of => Joined::Values(Column::new(of.clone(), input)),
        }
    }

    /// Appends an array of the same type. All offsets together are below 2 GiB, which the caller has checked.
    pub fn append(&mut self, part: &dyn Array, seen: Seen) {
        let nulls = part.nulls().map(|nulls| (nulls.validity(), nulls.offset()));
        match self {
            Joined::Values(column) => column.extend(part, seen),
            Joined::List { ends, valid, elements, .. } => {
                let part = part.as_list::<i32>();
                let (first, last) = (part.value_offsets()[0], part.value_offsets()[part.len()]);
                let base = ends[ends.len() - 1] - first;
                seen.reserve(ends, part.len());
                ends.extend(part.value_offsets()[1..].iter().map(|end| end + base));
                valid.extend(part.len(), nulls);
                elements.append(&part.values().slice(first as usize, (last - first) as usize), seen);
            }
            Joined::Struct { columns, valid, .. } => {
                valid.extend(part.len(), nulls);
                columns.iter_mut().zip(part.as_struct().columns()).for_each(|(column, part)| column.append(part, seen));
            }
        }
    }

    pub fn finish(self) -> ArrayRef {
        match self {
            Joined::Values(column) => column.finish(),
            Joined::List { element, ends, valid, elements } => {
                let offsets = OffsetBuffer::new(ScalarBuffer::from(ends));
                Arc::new(ListArray::new(element, offsets, elements.finish(), binary::nulls(valid)))
            }
            Joined::Struct { fields, columns, valid } => {
                let (rows, nulls) = (valid.count(), binary::nulls(valid));
                let columns: Vec<_> = columns.into_iter().map(Joined::finish).collect();
                match columns.is_empty() {
                    true => Arc::new(StructArray::new_empty_fields(rows, nulls)),
                    false => Arc::new(StructArray::new(fields, columns, nulls)),
                }
            }
        }
    }
}
