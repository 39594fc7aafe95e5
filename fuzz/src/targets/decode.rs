//! One value: all modes of parsing agree on it, kernels return what the slow path returns, and each error policy does what
//! its documentation says.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use letterhead::arrow::Decode;
use letterhead::format::Format;
use letterhead::format_info::Class;
use letterhead::log::OnError;
use letterhead::options::ReadOptions;

use super::modes::walk_in_every_mode;
use super::serialized_rows::{BEHIND, Layout};
use super::{Shape, Target, formats_of_one, named, seal};
use crate::columns::{apply_to, faults_at, heads_at, message_at, told};
use crate::common::{Message, errors, read};

pub const TARGET: Target = Target { name: "decode", subjects: formats_of_one, check };

fn check(name: &str, data: &[u8]) {
    let (format, Some((shape, serialized))) = (named(name), Shape::split(data)) else { return };
    // The target `columns` covers keys as text.
    let options = ReadOptions { text_keys: false, ..shape.options() };
    let mut serialized = serialized.to_vec();
    if shape.bit(5) {
        seal::seal(format, &mut serialized);
    }
    let layout = Layout::of(shape.bits(6, 2));
    match shape.bits(3, 2) {
        0 => modes_agree(format, &serialized, options),
        1 => first_fault_is_raised(format, &serialized, options, layout),
        2 => a_fault_makes_null(format, &serialized, options, layout),
        _ => faults_are_a_column(format, &serialized, options, layout),
    }
}

fn modes_agree(format: Format, serialized: &[u8], options: ReadOptions) {
    let errors = walk_in_every_mode(format, serialized, options);
    let message = read(format, serialized, options);
    assert_eq!(message.as_ref().err(), errors.first());
    if message.is_ok() && !options.lenient {
        let lenient = ReadOptions { lenient: true, ..options };
        assert_eq!(read(format, serialized, lenient), message, "what a strict reader reads a lenient one reads too");
        let any_kind = ReadOptions { strict_types: false, ..options };
        assert_eq!(
            read(format, serialized, any_kind),
            message,
            "what has a named kind is read alike where others pass"
        );
    }
}

/// The result of a policy for the value alone, and with bytes after it, so that a kernel reads it.
fn decoded(
    format: Format,
    serialized: &[u8],
    options: ReadOptions,
    layout: Layout,
    on_error: OnError,
) -> Result<ArrayRef, letterhead::error::ErrorDetail> {
    let apply = |behind: &[u8]| {
        apply_to(format, &Decode { options, on_error, views: false }, &layout.column(&[Some(serialized)], behind))
    };
    let alone = apply(&[]);
    assert_eq!(apply(&BEHIND), alone);
    alone.map_err(|(row, error)| {
        assert_eq!(row, 0);
        error
    })
}

/// The one message of a column.
pub fn message_of(column: &ArrayRef, format: Format) -> Message {
    match format.info().class {
        Class::Headers => Message { headers: heads_at(column, 0), fields: vec![] },
        Class::Message | Class::Batch => message_at(column.as_struct(), 0, format),
    }
}

fn first_fault_is_raised(format: Format, serialized: &[u8], options: ReadOptions, layout: Layout) {
    let made = decoded(format, serialized, options, layout, OnError::Raise);
    assert_eq!(made.map(|made| vec![message_of(&made, format)]), read(format, serialized, options));
}

fn a_fault_makes_null(format: Format, serialized: &[u8], options: ReadOptions, layout: Layout) {
    let made = decoded(format, serialized, options, layout, OnError::Null).expect("nothing is raised");
    match read(format, serialized, options) {
        Ok(messages) => assert_eq!(vec![message_of(&made, format)], messages),
        Err(_) => assert!(made.is_null(0)),
    }
}

fn faults_are_a_column(format: Format, serialized: &[u8], options: ReadOptions, layout: Layout) {
    let made = decoded(format, serialized, options, layout, OnError::Column).expect("nothing is raised");
    let column = made.as_struct().column_by_name("error").expect("it was asked for");
    let errors: Vec<_> = errors(format, serialized, options).iter().map(told).collect();
    assert_eq!(faults_at(column, 0), errors);
    if errors.is_empty() {
        assert_eq!(vec![message_at(made.as_struct(), 0, format)], read(format, serialized, options).expect("whole"));
    }
}
