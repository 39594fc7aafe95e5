//! Conditions: three-valued logic, repeated and missing keys, and values that do not have the tested type.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, BinaryArray};
use arrow_schema::DataType;

use super::*;
use crate::arrow::filtered::Matches;
use crate::arrow::select::Repeat;
use crate::arrow::{Apply, Input};
use crate::format::Format;
use crate::header::RequestedKey;
use crate::log::OnError;
use crate::options::ReadOptions;
use crate::types::Type;
use crate::value::Value;

const TRUTHS: [Option<bool>; 3] = [Some(true), Some(false), None];

fn truth(of: Option<bool>) -> Truth {
    Truth { yes: (of == Some(true)).into(), no: (of == Some(false)).into() }
}

fn equals(number: i128) -> Test {
    Test::Compare(Comparison::Eq, Literal::Int(number))
}

/// Evaluates the steps for one message, in which the test of field `n` has the `n`th truth value.
fn evaluated(steps: Vec<Step>, truths: &[Option<bool>]) -> Truth {
    let filter = Filter { steps, ..Filter::default() };
    filter.evaluate(1, |operand, _, _| match operand {
        Operand::Field(place) => truth(truths[place]),
        Operand::Header(_) => unreachable!("there is none"),
    })
}

fn field(place: usize) -> Step {
    Step::Test(Operand::Field(place), Quantifier::Any, Test::IsNull)
}

#[test]
fn logic_has_three_values_as_in_sql() {
    for left in TRUTHS {
        let not = evaluated(vec![field(0), Step::Not], &[left]);
        assert_eq!(not, truth(left.map(|left| !left)), "not {left:?}");
        for right in TRUTHS {
            let and = match (left, right) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (Some(true), Some(true)) => Some(true),
                _ => None,
            };
            let or = match (left, right) {
                (Some(true), _) | (_, Some(true)) => Some(true),
                (Some(false), Some(false)) => Some(false),
                _ => None,
            };
            let both = [left, right];
            assert_eq!(evaluated(vec![field(0), field(1), Step::And], &both), truth(and), "{left:?} and {right:?}");
            assert_eq!(evaluated(vec![field(0), field(1), Step::Or], &both), truth(or), "{left:?} or {right:?}");
        }
    }
    assert_eq!(evaluated(vec![Step::Null, Step::Not], &[]), truth(None));
}

#[test]
fn runs_are_the_ranges_of_set_bits() {
    for bits in [0, 1, 0b1011_0110, u64::MAX, 1 << 63, u64::MAX << 1, 0x8000_0000_0000_0001] {
        let found: Vec<_> = bit_ranges(bits).collect();
        assert!(found.windows(2).all(|pair| pair[0].end < pair[1].start), "{found:?}");
        let again = found.into_iter().flatten().fold(0, |again, bit| again | 1 << bit);
        assert_eq!(again, bits);
    }
}

#[test]
fn nan_is_unequal_to_everything_and_in_no_order() {
    let nan = Element::Float(f64::NAN);
    for (comparison, holds) in [
        (Comparison::Eq, false),
        (Comparison::Ne, true),
        (Comparison::Lt, false),
        (Comparison::Le, false),
        (Comparison::Gt, false),
        (Comparison::Ge, false),
    ] {
        assert_eq!(Test::Compare(comparison, Literal::Float(f64::NAN)).holds(nan), holds, "{comparison:?}");
    }
}

#[test]
fn any_and_all_are_null_for_an_absent_header() {
    let mut column = Column::new(DataType::Int64, &ViewInput::default());
    let values = [Some(1), Some(2), Some(2), None];
    values.into_iter().for_each(|value| column.push(value.map(Value::Int)));
    let truths = [equals(2).of_column(&column, 0..values.len())];
    for (places, any, all) in [
        (0..0, None, None),
        (0..1, Some(false), Some(false)),
        (0..2, Some(true), Some(false)),
        (1..3, Some(true), Some(true)),
        (2..4, Some(true), None),
        (3..4, None, None),
        (0..1, Some(false), Some(false)),
    ] {
        let of = |quantifier: Quantifier| quantifier.of_list(&truths, places.clone());
        assert_eq!((of(Quantifier::Any), of(Quantifier::All)), (any, all), "{places:?}");
    }
}

/// Headers in the bytes of `kafka`; keys and values have at most 63 bytes.
fn headers(of: &[(&str, Option<&[u8]>)]) -> Vec<u8> {
    let mut bytes = vec![(of.len() << 1) as u8];
    for (key, value) in of {
        bytes.push((key.len() << 1) as u8);
        bytes.extend_from_slice(key.as_bytes());
        bytes.push(value.map_or(1, |value| (value.len() << 1) as u8));
        bytes.extend_from_slice(value.unwrap_or_default());
    }
    bytes
}

/// Whether `n = 7` selects each row, and whether each row has errors; `None` if an error is raised.
fn selected(rows: &[Vec<u8>], repeat: Repeat, on_error: OnError) -> Option<(Vec<bool>, Vec<bool>)> {
    let selection = Selection::new("n", RequestedKey::Text("n".into()), Type::parse("int32").expect("a type"), repeat);
    let steps = vec![Step::Test(Operand::Header(0), Quantifier::Any, equals(7))];
    let filter = Arc::new(Filter { selections: vec![selection], fields: vec![], steps });
    let operation = Matches { filter, options: ReadOptions::default(), on_error };
    let column = BinaryArray::from_vec(rows.iter().map(Vec::as_slice).collect());
    let format = Format::from_name("kafka").expect("a format");
    let found = format.visit(Apply(&operation, Input::new(&column))).ok()?.column;
    let found = found.as_struct();
    let errors = found.columns().get(1);
    let has_errors = |row| errors.is_some_and(|errors| errors.is_valid(row));
    let is_selected = found.column(0).as_boolean().iter().map(|flag| flag == Some(true)).collect();
    Some((is_selected, (0..rows.len()).map(has_errors).collect()))
}

const SEVEN: Option<&[u8]> = Some(&[0, 0, 0, 7]);
const EIGHT: Option<&[u8]> = Some(&[0, 0, 0, 8]);

#[test]
fn the_repeated_key_that_is_requested_is_tested() {
    let rows = [
        headers(&[("n", SEVEN), ("n", EIGHT)]),
        headers(&[("n", EIGHT), ("m", SEVEN), ("n", SEVEN)]),
        headers(&[("n", SEVEN), ("n", None)]),
        headers(&[("m", SEVEN)]),
        headers(&[]),
    ];
    for (repeat, wanted) in [
        (Repeat::Last, [false, true, false, false, false]),
        (Repeat::First, [true, false, true, false, false]),
        (Repeat::All, [true, true, true, false, false]),
    ] {
        assert_eq!(selected(&rows, repeat, OnError::Raise).expect("no errors").0, wanted, "{repeat:?}");
    }
}

#[test]
#[cfg_attr(target_endian = "big", ignore = "arrow-buffer copies null bits as little-endian memory")]
fn a_value_of_another_type_is_never_lost_in_silence() {
    let other_type = headers(&[("n", Some(b"seven"))]);
    let broken = [headers(&[("n", SEVEN)]), vec![0]].concat();
    for bad in [other_type, broken] {
        let rows = [headers(&[("n", SEVEN)]), bad, headers(&[("n", EIGHT)])];
        assert_eq!(selected(&rows, Repeat::Last, OnError::Raise), None);
        let (of_null, _) = selected(&rows, Repeat::Last, OnError::Null).expect("nulls");
        assert_eq!((of_null[0], of_null[2]), (true, false));
        let in_column = selected(&rows, Repeat::Last, OnError::Column).expect("a column");
        assert_eq!(in_column, (vec![true, true, false], vec![false, true, false]));
    }
}

#[test]
fn literal_list_has_values_of_own_type_only() {
    let nan = f64::NAN;
    let literals = Literals::new([
        Literal::Int(7),
        Literal::Int(-1),
        Literal::Float(-0.0),
        Literal::Float(nan),
        Literal::Float(1.5),
        Literal::Bytes(b"b".to_vec()),
        Literal::Bytes(b"a".to_vec()),
    ]);
    let contained = [Element::Int(-1), Element::Int(7), Element::Float(0.0), Element::Float(1.5), Element::Bytes(b"a")];
    assert!(contained.into_iter().all(|value| literals.contain(value)));
    let others = [Element::Int(0), Element::Float(nan), Element::Float(7.0), Element::Bytes(b""), Element::Bool(true)];
    assert!(!others.into_iter().any(|value| literals.contain(value)));
    assert_eq!(literals.iter().count(), 6);
}
