//! Some headers as typed columns: the same from bytes, from lists, and from the messages of batches.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use letterhead::arrow::messages::Messages;
use letterhead::arrow::select::Selection;
use letterhead::arrow::types::Dialect;
use letterhead::arrow::{Decode, Operation, Select};
use letterhead::format::Format;
use letterhead::format_info::Class;
use letterhead::log::OnError;
use letterhead::options::ReadOptions;

use super::selections::{selections, type_of};
use super::serialized_rows::{BEHIND, Layout};
use super::{Shape, Target, formats, named, seal};
use crate::columns::{apply_to, faults_at, told, without_number};
use crate::common::{Message, read};

pub const TARGET: Target = Target { name: "select", subjects: || formats(|_| true), check };

fn check(name: &str, data: &[u8]) {
    let (format, Some((shape, data))) = (named(name), Shape::split(data)) else { return };
    let Some((of, data)) = data.split_first() else { return };
    let mut serialized = data.to_vec();
    if shape.bit(5) {
        seal::seal(format, &mut serialized);
    }
    let options = ReadOptions { text_keys: false, ..shape.options() };
    let Ok(messages) = read(format, &serialized, options) else { return };
    let selections = selections(&messages, format.info().keys, type_of(*of));
    let dialect = if shape.bit(3) { Dialect::Spark } else { Dialect::Arrow };
    let column = Layout::of(shape.bits(6, 2)).column(&[Some(&serialized), Some(&serialized)], &BEHIND);
    let select = Select { selections, dialect, options, on_error: OnError::Column, views: false };
    match format.info().class {
        Class::Batch => of_messages(format, &select, &column, &messages),
        Class::Headers | Class::Message => of_values(format, &select, &column),
    }
    raised_is_the_first(format, &select, &column);
}

fn of_values(format: Format, select: &Select, column: &ArrayRef) {
    let decoded = apply_to(format, &Decode { options: select.options, ..Decode::default() }, column).expect("whole");
    let lists = match format.info().class {
        Class::Headers => decoded,
        _ => headers_of(&decoded),
    };
    let from_bytes = apply_to(format, select, column).expect("nothing is raised");
    same(&select.selections, &from_bytes, &apply_to(format, select, &lists).expect("as above"));
}

fn of_messages(format: Format, select: &Select, column: &ArrayRef, messages: &[Message]) {
    let operation = Messages {
        columns: Some(vec!["headers".into()]),
        selections: select.selections.clone(),
        dialect: select.dialect,
        options: select.options,
        on_error: OnError::Column,
        filter: None,
    };
    let from_bytes = apply_to(format, &operation, column).expect("nothing is raised");
    assert_eq!(from_bytes.len(), 2 * messages.len());
    // A message of a batch has the same headers as its block alone.
    let block =
        Format::ALL.iter().find(|other| other.info().class == Class::Headers && has_headers_of(**other, format));
    let block = *block.expect("messages have headers of some block");
    same(&select.selections, &from_bytes, &apply_to(block, select, &headers_of(&from_bytes)).expect("as above"));
}

/// Whether two formats have headers of the same form and byte order.
fn has_headers_of(block: Format, format: Format) -> bool {
    let (block, format) = (block.info(), format.info());
    block.is_target && (block.keys, block.types, block.order) == (format.keys, format.types, format.order)
}

fn headers_of(structs: &ArrayRef) -> ArrayRef {
    structs.as_struct().column_by_name("headers").expect("every envelope has headers").clone()
}

/// The selected columns and their errors are the same, except for the positions of errors: a list has none.
fn same(selections: &[Selection], from_bytes: &ArrayRef, from_lists: &ArrayRef) {
    for selection in selections {
        let column = |made: &ArrayRef| made.as_struct().column_by_name(&selection.output).cloned();
        assert_eq!(column(from_bytes), column(from_lists), "{selection:?}");
    }
    let errors = |made: &ArrayRef, row| -> Vec<_> {
        let errors = faults_at(made.as_struct().column_by_name("error").expect("it was asked for"), row);
        let unnumbered = errors.into_iter().map(without_number);
        unnumbered.map(|(code, message, _, header, key)| (code, message, header, key)).collect()
    };
    for row in 0..from_bytes.len() {
        assert_eq!(errors(from_bytes, row), errors(from_lists, row));
    }
}

/// The error that is raised is the first one of the first row with errors.
fn raised_is_the_first(format: Format, select: &Select, column: &ArrayRef) {
    fn held(format: Format, operations: [&impl Operation; 2], column: &ArrayRef) {
        let [in_column, raising] = operations.map(|operation| apply_to(format, operation, column));
        let in_column = in_column.expect("nothing is raised");
        let errors = in_column.as_struct().column_by_name("error").expect("it was asked for");
        let first = (0..in_column.len()).find_map(|row| faults_at(errors, row).into_iter().next());
        let raised = raising.err().map(|(_, error)| without_number(told(&error)));
        assert_eq!(raised, first);
    }
    match format.info().class {
        Class::Batch => {
            let Select { selections, dialect, options, .. } = select.clone();
            let with = |on_error| Messages {
                columns: None,
                selections: selections.clone(),
                dialect,
                options,
                on_error,
                filter: None,
            };
            held(format, [&with(OnError::Column), &with(OnError::Raise)], column);
        }
        Class::Headers | Class::Message => {
            held(format, [select, &Select { on_error: OnError::Raise, ..select.clone() }], column);
        }
    }
}
