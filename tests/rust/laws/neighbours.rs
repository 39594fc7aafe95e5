//! A row is what it is, whatever lies behind it: kernels that read and copy more than a header has keep nothing of it.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BinaryArray};
use letterhead::arrow::run::OnError;
use letterhead::arrow::select::{Repeat, Want};
use letterhead::arrow::{Convert, Decode, Encode, Operation, Select, Validate};
use letterhead::encoding::Encoding;
use letterhead::format::Format;
use letterhead::header::{KeyForm, WantedKey};
use letterhead::log::OnLoss;
use letterhead::traits::{Class, ReadOptions, WriteOptions};
use letterhead::type_option::TypeOption;
use letterhead::types::Type;
use letterhead::value::ByteOrder;
use proptest::prelude::*;

use crate::cases;
use crate::columns::{apply, apply_to};
use crate::generated::{Recipe, formats_of_one, recipe, targets};
use crate::{near_cells, whole_cells};

/// More bytes than any kernel looks at behind a row.
const BEHIND: [u8; 512] = [0xff; 512];

/// The cells as every other row of a column, nulls between them, whose buffer goes on behind them.
fn among_others(cells: &[Vec<u8>]) -> BinaryArray {
    let rows = cells.iter().flat_map(|cell| [Some(cell.as_slice()), None]);
    let all: Vec<Option<&[u8]>> = rows.chain([Some(&BEHIND[..])]).collect();
    BinaryArray::from_opt_vec(all).slice(0, 2 * cells.len())
}

fn same_alone<V: Operation>(format: Format, verb: &V, cells: &[Vec<u8>]) -> Result<ArrayRef, TestCaseError> {
    let made = apply_to(format, verb, &among_others(cells)).expect("errors are in a column, or there are none");
    let null = apply_to(format, verb, &BinaryArray::new_null(1)).expect("no message is no error");
    for (row, cell) in cells.iter().enumerate() {
        let alone = apply(format, verb, std::slice::from_ref(cell)).expect("as above");
        let in_column = made.slice(2 * row, 1);
        prop_assert_eq!(&made.slice(2 * row + 1, 1), &null, "{:?} {}", format, row);
        // The row of a fault is its place in the column; all else is the same.
        prop_assert_eq!(&in_column, &alone, "{:?} {:02x?}", format, cell);
    }
    Ok(made)
}

fn select(format: Format) -> Select {
    let want = |output: &str, of: &str, repeat| {
        let key = match format.info().keys {
            KeyForm::Int => WantedKey::Int(1),
            KeyForm::Text | KeyForm::Typed => WantedKey::Text("k".into()),
        };
        Want { output: output.into(), key, of: Type::parse(of).unwrap(), repeat, required: false }
    };
    let wants = vec![want("last", "string", Repeat::Last), want("all", "binary", Repeat::All)];
    Select { wants, on_error: OnError::Column, ..Select::default() }
}

const BIG: Encoding = Encoding::Bytes(ByteOrder::Big);

/// Whether it makes sense to ask a format for values like that.
fn takes(target: Format, types: &TypeOption) -> bool {
    types.check(target.info().name, target.info().types).is_ok()
}

/// Whether keys of a source have a form that a format takes as it is.
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
        let cells: Vec<_> = [whole_cells(recipes, format), near_cells(recipes, format)].concat();
        same_alone(format, &Decode { on_error: OnError::Column, ..Decode::default() }, &cells)?;
        same_alone(format, &Validate::default(), &cells)?;
        same_alone(format, &select(format), &cells)?;
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
    ) {
        let cells = [whole_cells(&recipes, source), near_cells(&recipes, source)].concat();
        for target in targets().filter(|target| takes(*target, &types)) {
            let write = WriteOptions { types: types.clone(), on_loss: OnLoss::Drop, ..WriteOptions::default() };
            let verb = Convert { target, read: ReadOptions::default(), write, on_error: OnError::Column };
            same_alone(source, &verb, &cells)?;
        }
    }

    #[test]
    fn lists_are_written_alike_alone_and_among_others(
        recipes in prop::collection::vec(recipe(), 1..4),
        source in prop::sample::select(formats_of_one().collect::<Vec<_>>()),
        types in prop::sample::select(vec![TypeOption::Unset, TypeOption::Binary, TypeOption::Untyped(BIG)]),
    ) {
        // Kinds that another format has, values of any size under them, and keys with kinds and without.
        let cells = whole_cells(&recipes, source);
        // What is repeated lies behind what is looked at.
        let all: Vec<_> = std::iter::repeat_n(&cells, 50).flatten().cloned().collect();
        let lists = headers_of(&apply(source, &Decode::default(), &all).expect("whole"));
        let is_asked = |target: &Format| target.info().class == Class::Headers && takes(*target, &types);
        for target in targets().filter(|target| is_asked(target) && has_keys_of(*target, source)) {
            let options = WriteOptions { types: types.clone(), on_loss: OnLoss::Drop, ..WriteOptions::default() };
            let verb = Encode { options };
            let alone = cells.iter().map(|cell| {
                let list = headers_of(&apply(source, &Decode::default(), std::slice::from_ref(cell)).expect("whole"));
                apply_to(target, &verb, &list)
            });
            match (apply_to(target, &verb, &lists), alone.collect::<Result<Vec<_>, _>>()) {
                (Ok(written), Ok(alone)) => {
                    for (row, alone) in alone.iter().enumerate() {
                        prop_assert_eq!(&written.slice(row, 1), alone, "{:?} {:?} {:02x?}", source, target, &cells[row]);
                    }
                }
                (written, alone) => prop_assert!(written.is_err() && alone.is_err(), "{:?} {:?}", source, target),
            }
        }
    }

    #[test]
    fn a_row_is_written_alike_alone_and_among_others(recipes in prop::collection::vec(recipe(), 1..4)) {
        let cells = whole_cells(&recipes, Format::Kafka);
        let mut all = cells.clone();
        // A header that is long enough to lie behind all others.
        all.push([&[2, 2, b'k', 0x80, 0x08][..], &BEHIND].concat());
        let lists = apply(Format::Kafka, &Decode::default(), &all).expect("whole");
        let written = apply_to(Format::Kafka, &Encode::default(), &lists).expect("read before");
        let selected = apply_to(Format::Kafka, &select(Format::Kafka), &lists).expect("errors are in a column");
        for (row, cell) in cells.iter().enumerate() {
            let alone = apply(Format::Kafka, &Decode::default(), std::slice::from_ref(cell)).expect("whole");
            let again = apply_to(Format::Kafka, &Encode::default(), &alone).expect("read before");
            prop_assert_eq!(&written.slice(row, 1), &again, "{:02x?}", cell);
            let chosen = apply_to(Format::Kafka, &select(Format::Kafka), &alone).expect("errors are in a column");
            prop_assert_eq!(&selected.slice(row, 1), &chosen, "{:02x?}", cell);
        }
    }
}
