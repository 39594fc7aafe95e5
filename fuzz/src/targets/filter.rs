//! A condition on headers: the same rows as reading everything and testing the columns after that.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Decimal128Type, Int8Type, Int16Type, Int32Type, Int64Type, TimestampMillisecondType, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use letterhead::arrow::filter::{Comparison, Filter, Literal, Literals, Operand, Quantifier, Step, Test as Tested};
use letterhead::arrow::filtered::Filtered;
use letterhead::arrow::messages::Messages;
use letterhead::arrow::select::Selection;
use letterhead::arrow::types::Dialect;
use letterhead::arrow::{Operation, Select};
use letterhead::format::Format;
use letterhead::format_info::Class;
use letterhead::log::OnError;
use letterhead::options::ReadOptions;

use super::selections::{selections, type_of};
use super::serialized_rows::{BEHIND, Layout};
use super::{Shape, Target, formats, named, seal};
use crate::columns::{apply_to, number};
use crate::common::read;

const CONDITION: &str = "where";

pub const TARGET: Target = Target { name: "filter", subjects: || formats(|_| true), check };

fn check(name: &str, data: &[u8]) {
    let (format, Some((shape, data))) = (named(name), Shape::split(data)) else { return };
    let Some(([of, test], data)) = data.split_first_chunk() else { return };
    let mut serialized = data.to_vec();
    if shape.bit(5) {
        seal::seal(format, &mut serialized);
    }
    let options = ReadOptions { text_keys: false, ..shape.options() };
    let Ok(messages) = read(format, &serialized, options) else { return };
    let selections = selections(&messages, format.info().keys, type_of(*of));
    let column = Layout::of(shape.bits(6, 2)).column(&[Some(&serialized), Some(&serialized)], &BEHIND);
    let filter = Filter { steps: steps(*test, &selections, data), fields: vec![], selections: operands(&selections) };
    let on_error = if shape.bit(3) { OnError::Null } else { OnError::Column };
    same(format, &filter, selections, options, on_error, &column);
}

/// The columns of the condition, as Python names them.
fn operands(selections: &[Selection]) -> Vec<Selection> {
    let operand = |of: &Selection| Selection { output: CONDITION.into(), required: false, ..of.clone() };
    selections.iter().map(operand).collect()
}

/// The selected columns, and the operands as columns of their own.
fn with_operands(selections: &[Selection], filter: &Filter) -> Vec<Selection> {
    let operand = |(place, of): (usize, &Selection)| Selection { output: operand_name(place), ..of.clone() };
    selections.iter().cloned().chain(filter.selections.iter().enumerate().map(operand)).collect()
}

fn operand_name(place: usize) -> String {
    format!("{CONDITION} {place}")
}

/// A test of one column, or of two, one of them negated.
fn steps(test: u8, selections: &[Selection], data: &[u8]) -> Vec<Step> {
    let bits = |place: u32, count: u32| usize::from(test >> place) & ((1 << count) - 1);
    let literal = match bits(0, 1) {
        0 => Literal::Bytes(data.iter().take(2).copied().collect()),
        _ => Literal::Int(i128::from(data.first().copied().unwrap_or_default() as i8)),
    };
    let of = match bits(1, 2) {
        0 => Tested::IsNull,
        1 => Tested::Compare(Comparison::Le, literal),
        2 => Tested::Compare(Comparison::Ne, literal),
        _ => Tested::In(Literals::new([literal, Literal::Bytes(vec![]), Literal::Int(0)])),
    };
    let quantifier = if bits(3, 1) == 0 { Quantifier::Any } else { Quantifier::All };
    let step = |place| Step::Test(Operand::Header(place % selections.len()), quantifier, of.clone());
    match bits(6, 2) {
        0 => vec![step(bits(4, 2))],
        1 => vec![step(bits(4, 2)), Step::Not],
        2 => vec![step(bits(4, 2)), step(bits(4, 2) + 1), Step::Not, Step::And],
        _ => vec![step(bits(4, 2)), step(bits(4, 2) + 5), Step::Not, Step::Or],
    }
}

fn same(
    format: Format,
    filter: &Filter,
    selections: Vec<Selection>,
    options: ReadOptions,
    on_error: OnError,
    column: &ArrayRef,
) {
    let (dialect, shared) = (Dialect::Arrow, Arc::new(filter.clone()));
    let every = with_operands(&selections, filter);
    match format.info().class {
        Class::Batch => {
            let with = |selections, filter| Messages { columns: None, selections, dialect, options, on_error, filter };
            let all = apply(format, &with(every, None), column);
            compared(filter, on_error, all, apply(format, &with(selections, Some(shared)), column));
        }
        Class::Headers | Class::Message => {
            let select = |selections| Select { selections, dialect, options, on_error, views: false };
            let all = apply(format, &select(every), column);
            let filtered = Filtered { operation: select(selections), filter: shared, options, on_error };
            compared(filter, on_error, all, apply(format, &filtered, column));
        }
    }
}

fn apply(format: Format, operation: &impl Operation, column: &ArrayRef) -> ArrayRef {
    apply_to(format, operation, column).expect("nothing is raised")
}

fn compared(filter: &Filter, on_error: OnError, all: ArrayRef, filtered: ArrayRef) {
    let structs = all.as_struct();
    let errors = (on_error == OnError::Column).then(|| structs.column_by_name("error").expect("it was requested"));
    let is_kept = |row: &usize| {
        errors.is_some_and(|errors| has_operand_error(errors, *row)) || truth(filter, &all, *row) == Some(true)
    };
    let kept: Vec<_> = (0..all.len()).filter(is_kept).collect();
    assert_eq!(filtered.len(), kept.len(), "{filter:?}");
    for (place, row) in kept.into_iter().enumerate() {
        for (name, found) in filtered.as_struct().column_names().into_iter().zip(filtered.as_struct().columns()) {
            let column = structs.column_by_name(name).expect("the columns are the same");
            if name == "error" {
                // An error in a column of the condition is listed for the condition and for the result.
                assert_eq!(found.is_valid(place), column.is_valid(row), "row {row}: {filter:?}");
            } else {
                assert_eq!(found.slice(place, 1).as_ref(), column.slice(row, 1).as_ref(), "row {row}: {filter:?}");
            }
        }
    }
}

/// Whether a row has an error that may leave the condition undecided: one of an operand, or of the row as a whole.
fn has_operand_error(errors: &ArrayRef, row: usize) -> bool {
    if errors.is_null(row) {
        return false;
    }
    let details = errors.as_list::<i32>().value(row);
    let columns = details.as_struct().column_by_name("column").expect("an error has a column").as_string::<i32>();
    columns.iter().any(|column| column.is_none_or(|column| column.starts_with(CONDITION)))
}

/// The condition as SQL defines it, step by step, for one row.
fn truth(filter: &Filter, all: &ArrayRef, row: usize) -> Option<bool> {
    let mut stack: Vec<Option<bool>> = vec![];
    for step in &filter.steps {
        let next = match step {
            Step::Null => None,
            Step::Not => stack.pop().flatten().map(|flag| !flag),
            Step::And | Step::Or => {
                let (right, left) = (stack.pop().flatten(), stack.pop().flatten());
                let decides = *step == Step::Or;
                match (left, right) {
                    (Some(flag), _) | (_, Some(flag)) if flag == decides => Some(decides),
                    (Some(_), Some(_)) => Some(!decides),
                    _ => None,
                }
            }
            Step::Test(Operand::Header(place), quantifier, test) => {
                let column = all.as_struct().column_by_name(&operand_name(*place)).expect("it was selected");
                tested(column, row, *quantifier, test)
            }
            Step::Test(Operand::Field(_), ..) => unreachable!("no step has a field"),
        };
        stack.push(next);
    }
    stack.pop().flatten()
}

fn tested(column: &ArrayRef, row: usize, quantifier: Quantifier, test: &Tested) -> Option<bool> {
    let DataType::List(_) = column.data_type() else { return of_value(column, row, test) };
    if column.is_null(row) {
        return None;
    }
    let values = column.as_list::<i32>().value(row);
    let truths: Vec<_> = (0..values.len()).map(|place| of_value(&values, place, test)).collect();
    let decides = quantifier == Quantifier::Any;
    match truths {
        truths if truths.is_empty() => None,
        truths if truths.contains(&Some(decides)) => Some(decides),
        truths if truths.contains(&None) => None,
        _ => Some(!decides),
    }
}

fn of_value(column: &ArrayRef, row: usize, test: &Tested) -> Option<bool> {
    if *test == Tested::IsNull {
        return Some(column.is_null(row));
    }
    if column.is_null(row) {
        return None;
    }
    let value = match column.data_type() {
        DataType::Utf8 => Literal::Bytes(column.as_string::<i32>().value(row).into()),
        DataType::Binary => Literal::Bytes(column.as_binary::<i32>().value(row).to_vec()),
        DataType::Int8 => Literal::Int(number::<Int8Type>(column, row)),
        DataType::Int16 => Literal::Int(number::<Int16Type>(column, row)),
        DataType::Int32 => Literal::Int(number::<Int32Type>(column, row)),
        DataType::Int64 => Literal::Int(number::<Int64Type>(column, row)),
        DataType::UInt8 => Literal::Int(number::<UInt8Type>(column, row)),
        DataType::UInt16 => Literal::Int(number::<UInt16Type>(column, row)),
        DataType::UInt32 => Literal::Int(number::<UInt32Type>(column, row)),
        DataType::UInt64 => Literal::Int(number::<UInt64Type>(column, row)),
        DataType::Decimal128(..) => Literal::Int(number::<Decimal128Type>(column, row)),
        DataType::Timestamp(..) => Literal::Int(number::<TimestampMillisecondType>(column, row)),
        // Literals of another type are in no order.
        _ => return Some(matches!(test, Tested::Compare(Comparison::Ne, _))),
    };
    let order = |literal: &Literal| match (&value, literal) {
        (Literal::Bytes(value), Literal::Bytes(other)) => Some(value.cmp(other)),
        (Literal::Int(value), Literal::Int(other)) => Some(value.cmp(other)),
        _ => None,
    };
    Some(match test {
        Tested::Compare(Comparison::Le, literal) => order(literal).is_some_and(|order| order.is_le()),
        Tested::Compare(_, literal) => order(literal) != Some(std::cmp::Ordering::Equal),
        Tested::In(literals) => literals.iter().any(|literal| order(&literal) == Some(std::cmp::Ordering::Equal)),
        _ => unreachable!("it is not made"),
    })
}
