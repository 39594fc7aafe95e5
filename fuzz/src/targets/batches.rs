//! Batches: unchanged, with valid checksums, in a codec, and modified before or after compression.

use arrow_array::ArrayRef;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use letterhead::arrow::Validate;
use letterhead::arrow::messages::Messages;
use letterhead::codec::Codec;
use letterhead::error::ErrorDetail;
use letterhead::format::Format;
use letterhead::format_info::Class;
use letterhead::log::OnError;
use letterhead::options::ReadOptions;

use super::modes::walk_in_every_mode;
use super::serialized_rows::{BEHIND, Layout};
use super::{Shape, Target, formats, named, seal};
use crate::columns::{apply_to, faults_at, message_at, told, without_number};
use crate::common::{Message, read};

pub const TARGET: Target = Target { name: "batches", subjects: || formats(|info| info.class == Class::Batch), check };

fn check(name: &str, data: &[u8]) {
    let (format, Some((shape, data))) = (named(name), Shape::split(data)) else { return };
    let codec = Codec::ALL[shape.bits(5, 3) % Codec::ALL.len()];
    let serialized = match (shape.bits(1, 2), data.split_last_chunk()) {
        (0, _) => data.to_vec(),
        (2, _) => seal::wrap(format, codec, data, |_| ()),
        (3, Some((content, &[place, byte]))) => seal::wrap(format, codec, content, |compressed| {
            let place = compressed.len() * usize::from(place) / 256;
            if let Some(damaged) = compressed.get_mut(place) {
                *damaged ^= byte;
            }
        }),
        _ => {
            let mut serialized = data.to_vec();
            seal::seal(format, &mut serialized);
            serialized
        }
    };
    let options = ReadOptions { lenient: shape.bit(0), ..ReadOptions::default() };
    let errors = walk_in_every_mode(format, &serialized, options);
    let messages = read(format, &serialized, options);
    assert_eq!(messages.as_ref().err(), errors.first());
    let rows = [Some(&serialized[..]), None, Some(&serialized)];
    match shape.bits(3, 2) {
        0 => first_fault_is_raised(format, &rows, options, messages),
        1 => a_fault_makes_null(format, &rows, options, messages),
        _ => faults_are_a_column(format, &rows, options, &errors, messages),
    }
}

fn made(format: Format, rows: &[Option<&[u8]>], options: ReadOptions, on_error: OnError) -> Option<ArrayRef> {
    let operation = Messages { options, on_error, ..Messages::default() };
    let [alone, among] =
        [&[][..], &BEHIND].map(|behind| apply_to(format, &operation, &Layout::Small.column(rows, behind)));
    assert_eq!(alone, among);
    alone.ok()
}

/// The rows of a value.
fn rows_of(made: &ArrayRef, serialized: i64) -> Vec<usize> {
    let rows = made.as_struct().column_by_name("row").expect("a column").as_primitive::<Int64Type>();
    (0..rows.len()).filter(|row| rows.value(*row) == serialized).collect()
}

fn messages_of(made: &ArrayRef, serialized: i64, format: Format) -> Vec<Message> {
    rows_of(made, serialized).into_iter().map(|row| message_at(made.as_struct(), row, format)).collect()
}

fn first_fault_is_raised(
    format: Format,
    rows: &[Option<&[u8]>],
    options: ReadOptions,
    messages: Result<Vec<Message>, ErrorDetail>,
) {
    let made = made(format, rows, options, OnError::Raise);
    for serialized in [0, 2] {
        assert_eq!(made.as_ref().map(|made| messages_of(made, serialized, format)), messages.clone().ok());
    }
}

fn a_fault_makes_null(
    format: Format,
    rows: &[Option<&[u8]>],
    options: ReadOptions,
    messages: Result<Vec<Message>, ErrorDetail>,
) {
    let made = made(format, rows, options, OnError::Null).expect("nothing is raised");
    assert_eq!(messages_of(&made, 0, format), messages_of(&made, 2, format));
    if let Ok(messages) = messages {
        assert_eq!(messages_of(&made, 0, format), messages);
    }
}

fn faults_are_a_column(
    format: Format,
    rows: &[Option<&[u8]>],
    options: ReadOptions,
    errors: &[ErrorDetail],
    messages: Result<Vec<Message>, ErrorDetail>,
) {
    let made = made(format, rows, options, OnError::Column).expect("nothing is raised");
    let validated = apply_to(format, &Validate { options }, &Layout::View.column(rows, &[])).expect("as above");
    let column = made.as_struct().column_by_name("error").expect("it was asked for");
    let told: Vec<_> = errors.iter().map(told).collect();
    let unnumbered: Vec<_> = told.iter().cloned().map(without_number).collect();
    for serialized in [0, 2] {
        let found: Vec<_> = rows_of(&made, serialized).into_iter().flat_map(|row| faults_at(column, row)).collect();
        assert_eq!(found, unnumbered);
        assert_eq!(faults_at(&validated, serialized as usize), told);
    }
    if let Ok(messages) = messages {
        assert_eq!(messages_of(&made, 0, format), messages);
    }
}
