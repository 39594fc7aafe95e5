//! Properties of every format, tested on values that are valid or have a few changed bytes.

mod conversions;
mod generated;
mod limits;
mod neighbours;
mod writing;

use arrow_array::ArrayRef;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use letterhead::arrow::messages::Messages as MessagesOperation;
use letterhead::arrow::select::{Repeat, Selection};
use letterhead::arrow::{Decode, Select, Validate};
use letterhead::cursor::Cursor;
use letterhead::error::ErrorDetail;
use letterhead::format::{Format, Visitor};
use letterhead::format_info::Class;
use letterhead::header::{KeyForm, RequestedKey};
use letterhead::limits::Limits;
use letterhead::log::{CollectErrors, FailFast, OnError, OnLoss};
use letterhead::op::inspect::Inspect;
use letterhead::options::ReadOptions;
use letterhead::sink::Discard;
use letterhead::traits::{BatchFormat, MessageFormat, parse_message};
use letterhead::types::Type;
use letterhead::value_type::{Scalar, ValueType};
use proptest::prelude::*;

use crate::columns::{apply, apply_to, faults_at, heads_at, message_at, told, without_number};
use crate::common::{Held, LENIENT, Message, STRICT, STRICT_KINDS, batch_errors, errors, read};
use generated::{Recipe, recipe};

const ALL_OPTIONS: [ReadOptions; 4] = [STRICT, LENIENT, STRICT_KINDS, ReadOptions { lenient: true, ..STRICT_KINDS }];

fn cases(count: u32) -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(count) }
}

fn is_batch(format: Format) -> bool {
    format.info().class == Class::Batch
}

/// Errors that each mode finds in a value. The fast mode only returns whether a value is valid, and does not read
/// batches.
struct Found {
    fast: Option<bool>,
    exact: Vec<ErrorDetail>,
    labelled: Vec<ErrorDetail>,
}

struct InEveryMode<'a>(&'a [u8], ReadOptions);

impl Visitor for InEveryMode<'_> {
    type Out = Found;

    fn visit<E: MessageFormat>(self) -> Found {
        let InEveryMode(serialized, options) = self;
        let fast =
            parse_message::<E, _, _>(Cursor::new(serialized), options, &mut FailFast::new(OnLoss::Raise), &mut Discard)
                .is_ok();
        let (mut exact, mut labelled) = (CollectErrors::default(), CollectErrors::with_labels(Limits::DEFAULT.reports));
        let _ = parse_message::<E, _, _>(Cursor::new(serialized), options, &mut exact, &mut Discard);
        let _ = parse_message::<E, _, _>(Cursor::new(serialized), options, &mut labelled, &mut Discard);
        Found { fast: Some(fast), exact: exact.errors().to_vec(), labelled: labelled.errors().to_vec() }
    }

    fn visit_batch<B: BatchFormat>(self) -> Found {
        let InEveryMode(serialized, options) = self;
        let [exact, labelled] = batch_errors::<B>(serialized, options);
        Found { fast: None, exact, labelled }
    }
}

/// Valid values.
fn whole_values(recipes: &[Recipe], format: Format) -> Vec<Vec<u8>> {
    let serialized_rows = recipes.iter().flat_map(|recipe| [recipe.whole(format), recipe.near(format)]);
    serialized_rows.filter(|serialized| read(format, serialized, STRICT).is_ok()).collect()
}

fn near_values(recipes: &[Recipe], format: Format) -> Vec<Vec<u8>> {
    recipes.iter().map(|recipe| recipe.near(format)).collect()
}

fn decoded(column: &ArrayRef, row: usize, format: Format) -> Message {
    match format.info().class {
        Class::Headers => Message { headers: heads_at(column, row), fields: vec![] },
        Class::Message | Class::Batch => message_at(column.as_struct(), row, format),
    }
}

/// Rows of the messages of one value.
fn rows_of(made: &ArrayRef, serialized: usize) -> Vec<usize> {
    let rows = made.as_struct().column_by_name("row").expect("a column").as_primitive::<Int64Type>();
    (0..rows.len()).filter(|row| rows.value(*row) == serialized as i64).collect()
}

proptest! {
    #![proptest_config(cases(128))]

    #[test]
    fn generated_valid_value_is_read(recipe in recipe()) {
        for format in Format::ALL {
            let serialized = recipe.whole(*format);
            let has_value = !serialized.is_empty() || format.info().class == Class::Headers || is_batch(*format);
            prop_assert_eq!(errors(*format, &serialized, STRICT).is_empty(), has_value, "{:?} {:02x?}", format, serialized);
        }
    }

    #[test]
    fn fast_exact_and_labelled_accept_the_same_bytes(recipe in recipe()) {
        for made_for in Format::ALL {
            let serialized = recipe.near(*made_for);
            // A value of one format consists of arbitrary bytes for another format.
            for format in Format::ALL {
                for options in ALL_OPTIONS {
                    let found = format.visit(InEveryMode(&serialized, options));
                    prop_assert!(found.fast.is_none_or(|fast| fast == found.exact.is_empty()), "{:?}", format);
                    prop_assert_eq!(found.exact, found.labelled);
                }
            }
        }
    }

    #[test]
    fn lenient_reader_reads_what_strict_one_reads(recipe in recipe()) {
        for format in Format::ALL {
            let serialized = recipe.near(*format);
            let named = read(*format, &serialized, STRICT_KINDS);
            let strict = read(*format, &serialized, STRICT);
            prop_assert!(named.is_err() || named == strict);
            prop_assert!(strict.is_err() || strict == read(*format, &serialized, LENIENT));
        }
    }

    #[test]
    fn labels_cover_every_byte_once(recipe in recipe()) {
        for made_for in Format::ALL {
            let serialized = recipe.near(*made_for);
            for format in Format::ALL {
                let labels = format.visit(Inspect { data: &serialized, options: STRICT }).labels;
                let mut at = 0;
                for label in &labels {
                    prop_assert_eq!(label.start, at, "{:?} {:?}", format, labels);
                    prop_assert!(label.end > label.start);
                    at = label.end;
                }
                prop_assert_eq!(at, serialized.len());
            }
        }
    }

    #[test]
    fn a_column_is_its_values_one_by_one(recipes in prop::collection::vec(recipe(), 1..4)) {
        for format in Format::ALL {
            let serialized_rows = whole_values(&recipes, *format);
            if is_batch(*format) {
                let made = apply(*format, &MessagesOperation::default(), &serialized_rows).expect("whole");
                for (row, serialized) in serialized_rows.iter().enumerate() {
                    let rows = rows_of(&made, row).into_iter().map(|row| message_at(made.as_struct(), row, *format));
                    prop_assert_eq!(rows.collect::<Vec<_>>(), read(*format, serialized, STRICT).expect("whole"));
                }
            } else {
                let made = apply(*format, &Decode::default(), &serialized_rows).expect("whole");
                for (row, serialized) in serialized_rows.iter().enumerate() {
                    prop_assert_eq!(vec![decoded(&made, row, *format)], read(*format, serialized, STRICT).expect("whole"));
                }
            }
        }
    }

    #[test]
    fn column_names_same_first_error_as_its_values(recipes in prop::collection::vec(recipe(), 1..4)) {
        for format in Format::ALL {
            let serialized_rows = near_values(&recipes, *format);
            let error = |(row, serialized): (usize, &Vec<u8>)| Some((row, read(*format, serialized, STRICT).err()?));
            let first = serialized_rows.iter().enumerate().find_map(error);
            let raised = match is_batch(*format) {
                true => apply(*format, &MessagesOperation::default(), &serialized_rows).err(),
                false => apply(*format, &Decode::default(), &serialized_rows).err(),
            };
            prop_assert_eq!(raised, first);
        }
    }

    #[test]
    fn column_has_all_errors_of_its_values(recipes in prop::collection::vec(recipe(), 1..4)) {
        for format in Format::ALL {
            let serialized_rows = near_values(&recipes, *format);
            let validated = apply(*format, &Validate::default(), &serialized_rows).expect("nothing is raised");
            let made = match is_batch(*format) {
                true => apply(*format, &MessagesOperation { on_error: OnError::Column, ..Default::default() }, &serialized_rows),
                false => apply(*format, &Decode { on_error: OnError::Column, ..Decode::default() }, &serialized_rows),
            }.expect("nothing is raised");
            let column = made.as_struct().column_by_name("error").expect("it was asked for");
            for (row, serialized) in serialized_rows.iter().enumerate() {
                let errors: Vec<_> = errors(*format, serialized, STRICT).iter().map(told).collect();
                prop_assert_eq!(&faults_at(&validated, row), &errors, "{:?}", format);
                let rows = if is_batch(*format) { rows_of(&made, row) } else { vec![row] };
                let found: Vec<_> = rows.into_iter().flat_map(|row| faults_at(column, row)).collect();
                let unnumbered = |errors: Vec<_>| errors.into_iter().map(without_number).collect::<Vec<_>>();
                prop_assert_eq!(found, if is_batch(*format) { unnumbered(errors) } else { errors }, "{:?}", format);
            }
        }
    }
}

const TYPES: [&str; 8] = ["binary", "string", "int8", "int32", "uint64", "float32", "int128", "int32:text"];

/// Columns for the most frequent headers of the generator.
fn selections(format: Format, of: &str) -> Vec<Selection> {
    let keys = match format.info().keys {
        KeyForm::Int => [RequestedKey::Int(0), RequestedKey::Int(-1)],
        KeyForm::Text => ["0", "a"].map(|key| RequestedKey::Text(key.into())),
        KeyForm::Typed => {
            [RequestedKey::Text("0".into()), RequestedKey::Typed(ValueType::Named(Scalar::Int8), vec![0])]
        }
    };
    let selection = |key: &RequestedKey, repeat| {
        Selection::new(format!("{key} {repeat:?}"), key.clone(), Type::parse(of).expect("a type"), repeat)
    };
    let repeats = [Repeat::Last, Repeat::First, Repeat::All, Repeat::Error];
    keys.iter().flat_map(|key| repeats.map(|repeat| selection(key, repeat))).collect()
}

proptest! {
    #![proptest_config(cases(128))]

    #[test]
    fn selection_from_bytes_equals_selection_from_lists(
        recipes in prop::collection::vec(recipe(), 1..4),
        of in prop::sample::select(TYPES.to_vec()),
    ) {
        for format in Format::ALL.iter().copied().filter(|format| format.info().class == Class::Headers) {
            let serialized_rows = whole_values(&recipes, format);
            let lists = apply(format, &Decode::default(), &serialized_rows).expect("whole");
            let operation = Select { selections: selections(format, of), on_error: OnError::Column, ..Select::default() };
            let from_bytes = apply(format, &operation, &serialized_rows).expect("nothing is raised");
            let from_lists = apply_to(format, &operation, &lists).expect("nothing is raised");
            for selection in &operation.selections {
                let column = |made: &ArrayRef| made.as_struct().column_by_name(&selection.output).cloned();
                prop_assert_eq!(column(&from_bytes), column(&from_lists), "{:?}", format);
            }
            // A list has no byte positions.
            let without_bytes = |made: &ArrayRef, row| -> Vec<_> {
                let errors = faults_at(made.as_struct().column_by_name("error").expect("it was asked for"), row);
                errors.into_iter().map(|(code, message, _, header, key)| (code, message, header, key)).collect()
            };
            for row in 0..serialized_rows.len() {
                prop_assert_eq!(without_bytes(&from_bytes, row), without_bytes(&from_lists, row), "{:?}", format);
            }
        }
    }
}

/// Whether messages are the beginning of others, except that the last payload may be truncated.
fn is_beginning(short: &[Message], long: &[Message]) -> bool {
    let begins = |(short, long): (&Message, &Message)| {
        let fields = short.fields.iter().zip(&long.fields).all(|(short, long)| match (short, long) {
            (Held::Bytes(short), Held::Bytes(long)) => long.starts_with(short),
            (short, long) => short == long,
        });
        fields && long.heads().starts_with(short.heads())
    };
    short.len() <= long.len() && short.iter().zip(long).all(begins)
}

proptest! {
    #![proptest_config(cases(48))]

    #[test]
    fn truncated_value_is_error_or_shorter_message(recipe in recipe()) {
        for format in Format::ALL {
            let serialized = recipe.whole(*format);
            let Ok(whole) = read(*format, &serialized, STRICT) else { continue };
            for len in 0..serialized.len() {
                let part = &serialized[..len];
                for options in ALL_OPTIONS {
                    if let Ok(messages) = read(*format, part, options) {
                        prop_assert!(is_beginning(&messages, &whole), "{:?} {} {:02x?}", format, len, serialized);
                    }
                }
                prop_assert_eq!(errors(*format, part, STRICT).is_empty(), read(*format, part, STRICT).is_ok());
            }
        }
    }

    #[test]
    fn concatenated_values_have_messages_of_both(one in recipe(), other in recipe()) {
        for format in Format::ALL.iter().copied().filter(|format| is_batch(*format)) {
            let serialized_rows = [one.whole(format), other.second_of_two(format, &one)];
            let messages = serialized_rows.each_ref().map(|serialized| read(format, serialized, STRICT).expect("whole"));
            prop_assert_eq!(read(format, &serialized_rows.concat(), STRICT), Ok(messages.concat()));
        }
    }
}
