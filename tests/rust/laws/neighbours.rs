//! The result for a row does not depend on the bytes after it, although kernels read and copy beyond a header.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BinaryArray};
use letterhead::arrow::edit::EditColumn;
use letterhead::arrow::select::{Repeat, Selection};
use letterhead::arrow::{Convert, Decode, Encode, Operation, Select, Validate};
use letterhead::encoding::Encoding;
use letterhead::format::Format;
use letterhead::format_info::Class;
use letterhead::header::{KeyForm, RequestedKey};
use letterhead::log::{OnError, OnLoss};
use letterhead::op::edit::{Change, Edit, Entry};
use letterhead::options::{ReadOptions, WriteOptions};
use letterhead::type_option::TypeOption;
use letterhead::types::Type;
use letterhead::value::ByteOrder;
use proptest::prelude::*;

use super::cases;
use super::generated::{Recipe, formats_of_one, recipe, targets};
use super::{near_values, whole_values};
use crate::columns::{apply, apply_to};
use crate::common::{LENIENT, STRICT, STRICT_KINDS};

/// More bytes than any kernel reads after a row.
const BEHIND: [u8; 512] = [0xff; 512];

/// A column of these values with a null after each, whose buffer continues after the last value.
fn among_others(serialized_rows: &[Vec<u8>]) -> BinaryArray {
    let rows = serialized_rows.iter().flat_map(|serialized| [Some(serialized.as_slice()), None]);
    let all: Vec<Option<&[u8]>> = rows.chain([Some(&BEHIND[..])]).collect();
    BinaryArray::from_opt_vec(all).slice(0, 2 * serialized_rows.len())
}

fn same_alone<V: Operation>(
    format: Format,
    operation: &V,
    serialized_rows: &[Vec<u8>],
) -> Result<ArrayRef, TestCaseError> {
    let made =
        apply_to(format, operation, &among_others(serialized_rows)).expect("errors are in a column, or there are none");
    let null = apply_to(format, operation, &BinaryArray::new_null(1)).expect("no message is no error");
    for (row, serialized) in serialized_rows.iter().enumerate() {
        let alone = apply(format, operation, std::slice::from_ref(serialized)).expect("as above");
        let in_column = made.slice(2 * row, 1);
        prop_assert_eq!(&made.slice(2 * row + 1, 1), &null, "{:?} {}", format, row);
        // Only the row number of an error depends on the position in the column.
        prop_assert_eq!(&in_column, &alone, "{:?} {:02x?}", format, serialized);
    }
    Ok(made)
}

fn key_of(format: Format) -> RequestedKey {
    match format.info().keys {
        KeyForm::Int => RequestedKey::Int(1),
        KeyForm::Text | KeyForm::Typed => RequestedKey::Text("k".into()),
    }
}

const OPTIONS: [ReadOptions; 3] = [STRICT, LENIENT, STRICT_KINDS];

fn select(format: Format, options: ReadOptions) -> Select {
    let selection =
        |output: &str, of: &str, repeat| Selection::new(output, key_of(format), Type::parse(of).unwrap(), repeat);
    let selections = vec![selection("last", "string", Repeat::Last), selection("all", "binary", Repeat::All)];
    Select { selections, options, on_error: OnError::Column, ..Select::default() }
}

const BIG: Encoding = Encoding::Bytes(ByteOrder::Big);

/// Whether a format supports this type option.
fn takes(target: Format, types: &TypeOption) -> bool {
    types.check(target.info().name, target.info().types).is_ok()
}

/// Whether a format supports the keys of a source unchanged.
fn has_keys_of(target: Format, source: Format) -> bool {
    let (form, given) = (target.info().keys, source.info().keys);
    form == given || (form, given) == (KeyForm::Typed, KeyForm::Text)
}

/// The headers of decoded messages.
fn headers_of(decoded: &ArrayRef) -> ArrayRef {
    decoded.as_struct_opt().map_or(decoded, |message| message.column_by_name("headers").expect("it has them")).clone()
}

fn read_alike(recipes: &[Recipe]) -> Result<(), TestCaseError> {
    for format in formats_of_one() {
        let serialized_rows: Vec<_> = [whole_values(recipes, format), near_values(recipes, format)].concat();
        let entry = Entry { key: key_of(format), renamed: None, change: Change::Drop };
        let edit = Arc::new(Edit { entries: vec![entry], ..Edit::default() });
        for options in OPTIONS {
            let decode = Decode { options, on_error: OnError::Column, ..Decode::default() };
            same_alone(format, &decode, &serialized_rows)?;
            same_alone(format, &Validate { options }, &serialized_rows)?;
            same_alone(format, &select(format, options), &serialized_rows)?;
            if format.info().is_target {
                let edit = Arc::clone(&edit);
                let operation = EditColumn { edit, options, on_error: OnError::Column, seen: None };
                same_alone(format, &operation, &serialized_rows)?;
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(cases(128))]

    #[test]
    fn a_row_is_read_alike_alone_and_among_others(recipes in prop::collection::vec(recipe(), 1..4)) {
        read_alike(&recipes)?;
    }

    #[test]
    fn a_row_is_converted_alike_alone_and_among_others(
        recipes in prop::collection::vec(recipe(), 1..4),
        source in prop::sample::select(formats_of_one().collect::<Vec<_>>()),
        types in prop::sample::select(vec![TypeOption::Unset, TypeOption::Binary, TypeOption::Untyped(BIG)]),
        read in prop::sample::select(&OPTIONS),
    ) {
        let serialized_rows = [whole_values(&recipes, source), near_values(&recipes, source)].concat();
        for target in targets().filter(|target| takes(*target, &types)) {
            let write = WriteOptions { types: types.clone(), on_loss: OnLoss::Drop, ..WriteOptions::default() };
            let operation = Convert { target, read, write, on_error: OnError::Column };
            same_alone(source, &operation, &serialized_rows)?;
        }
    }

    #[test]
    fn lists_are_written_alike_alone_and_among_others(
        recipes in prop::collection::vec(recipe(), 1..4),
        source in prop::sample::select(formats_of_one().collect::<Vec<_>>()),
        types in prop::sample::select(vec![TypeOption::Unset, TypeOption::Binary, TypeOption::Untyped(BIG)]),
    ) {
        // Types of another format, values of any size with these types, and keys with and without types.
        let serialized_rows = whole_values(&recipes, source);
        // The repeated rows follow those that are compared.
        let all: Vec<_> = std::iter::repeat_n(&serialized_rows, 50).flatten().cloned().collect();
        let lists = headers_of(&apply(source, &Decode::default(), &all).expect("whole"));
        let is_asked = |target: &Format| target.info().class == Class::Headers && takes(*target, &types);
        for target in targets().filter(|target| is_asked(target) && has_keys_of(*target, source)) {
            let options = WriteOptions { types: types.clone(), on_loss: OnLoss::Drop, ..WriteOptions::default() };
            let operation = Encode { options, ..Encode::default() };
            let alone = serialized_rows.iter().map(|serialized| {
                let list = headers_of(&apply(source, &Decode::default(), std::slice::from_ref(serialized)).expect("whole"));
                apply_to(target, &operation, &list)
            });
            match (apply_to(target, &operation, &lists), alone.collect::<Result<Vec<_>, _>>()) {
                (Ok(written), Ok(alone)) => {
                    for (row, alone) in alone.iter().enumerate() {
                        prop_assert_eq!(&written.slice(row, 1), alone, "{:?} {:?} {:02x?}", source, target, &serialized_rows[row]);
                    }
                }
                (written, alone) => prop_assert!(written.is_err() && alone.is_err(), "{:?} {:?}", source, target),
            }
        }
    }

    #[test]
    fn a_row_is_written_alike_alone_and_among_others(recipes in prop::collection::vec(recipe(), 1..4)) {
        let serialized_rows = whole_values(&recipes, Format::Kafka);
        let mut all = serialized_rows.clone();
        // A row with a long value, whose bytes follow all other rows.
        all.push([&[2, 2, b'k', 0x80, 0x08][..], &BEHIND].concat());
        let lists = apply(Format::Kafka, &Decode::default(), &all).expect("whole");
        let written = apply_to(Format::Kafka, &Encode::default(), &lists).expect("read before");
        let selected = apply_to(Format::Kafka, &select(Format::Kafka, STRICT), &lists).expect("errors are in a column");
        for (row, serialized) in serialized_rows.iter().enumerate() {
            let alone = apply(Format::Kafka, &Decode::default(), std::slice::from_ref(serialized)).expect("whole");
            let again = apply_to(Format::Kafka, &Encode::default(), &alone).expect("read before");
            prop_assert_eq!(&written.slice(row, 1), &again, "{:02x?}", serialized);
            let chosen = apply_to(Format::Kafka, &select(Format::Kafka, STRICT), &alone).expect("errors are in a column");
            prop_assert_eq!(&selected.slice(row, 1), &chosen, "{:02x?}", serialized);
        }
    }
}
