//! Many values in one column: a row has the same result alone and among others, in each layout of a column, and wherever a
//! stream is split.

use arrow_array::{Array, ArrayRef};
use letterhead::arrow::types::Dialect;
use letterhead::arrow::{Apply, Decode, Input, Operation, Select, Validate};
use letterhead::error::{Code, Error};
use letterhead::format::Format;
use letterhead::internals::MAX_OFFSET;
use letterhead::log::OnError;

use super::selections::{selections, type_of};
use super::serialized_rows::{BEHIND, Layout};
use super::{Shape, Target, formats_of_one, named, seal};
use crate::columns::apply_to;
use crate::common::read;

pub const TARGET: Target = Target { name: "columns", subjects: formats_of_one, check };

fn check(name: &str, data: &[u8]) {
    let (format, Some((shape, data))) = (named(name), Shape::split(data)) else { return };
    let (Some((of, data)), layout) = (data.split_first(), Layout::of(shape.bits(6, 2))) else { return };
    let Some((place, data)) = data.split_first() else { return };
    let mut serialized = data.to_vec();
    if shape.bit(5) {
        seal::seal(format, &mut serialized);
    }
    let (first, second) = serialized.split_at(serialized.len() * usize::from(*place) / 256);
    let rows = [Some(second), None, Some(&serialized[..]), Some(first), Some(&serialized), Some(&[])];
    let options = shape.options();
    match shape.bits(3, 2) {
        0 => same_alone(format, &Decode { options, on_error: OnError::Column, views: false }, layout, &rows),
        1 => same_alone(format, &Decode { options, on_error: OnError::Null, views: false }, layout, &rows),
        2 => {
            same_alone(format, &Validate { options }, layout, &rows);
            first_fault_is_raised(format, &Decode { options, on_error: OnError::Raise, views: false }, layout, &rows);
        }
        _ => {
            let messages = read(format, &serialized, options).unwrap_or_default();
            let selections = selections(&messages, format.info().keys, type_of(*of));
            let dialect = if shape.bit(7) { Dialect::Spark } else { Dialect::Arrow };
            same_alone(
                format,
                &Select { selections, dialect, options, on_error: OnError::Column, views: false },
                layout,
                &rows,
            );
        }
    }
}

fn same_alone<V: Operation>(format: Format, operation: &V, layout: Layout, rows: &[Option<&[u8]>]) {
    let column = layout.column(rows, &BEHIND);
    let made = apply_to(format, operation, &column).expect("nothing is raised");
    for (place, row) in rows.iter().enumerate() {
        let alone = apply_to(format, operation, &Layout::Small.column(&[*row], &[])).expect("nothing is raised");
        assert_eq!(&made.slice(place, 1), &alone, "row {place}");
    }
    same_in_parts(format, operation, &column, &made);
}

/// A stream is split where a column would exceed the limit; its parts together are the whole.
pub fn same_in_parts<V: Operation>(format: Format, operation: &V, column: &dyn Array, whole: &ArrayRef) {
    for max_offset in [16, MAX_OFFSET] {
        let mut from = 0;
        while from < column.len() {
            let input = Input::new(column).from_row(from).with_max_offset(max_offset);
            match format.visit(Apply(operation, input)) {
                Ok(made) => {
                    assert!(made.until > from);
                    assert_eq!(&made.column, &whole.slice(from, made.until - from));
                    from = made.until;
                }
                Err(Error::Headers(_, located)) => {
                    assert_eq!((located.row, located.error.code), (Some(from), Code::TooLarge));
                    break;
                }
                Err(other) => panic!("{other}"),
            }
        }
    }
}

fn first_fault_is_raised(format: Format, operation: &Decode, layout: Layout, rows: &[Option<&[u8]>]) {
    let made = apply_to(format, operation, &layout.column(rows, &BEHIND));
    let alone = |(place, row): (usize, &Option<&[u8]>)| {
        let (_, error) = apply_to(format, operation, &Layout::Small.column(&[*row], &[])).err()?;
        Some((place, error))
    };
    assert_eq!(made.err(), rows.iter().enumerate().find_map(alone));
}
