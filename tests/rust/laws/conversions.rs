//! A converted message can be converted back, except for the data that is reported as lost.

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef};
use letterhead::arrow::Convert;
use letterhead::encoding::Encoding;
use letterhead::error::{Code, Direction, Error, ErrorDetail, Loss};
use letterhead::field::{Field, FieldType, Role};
use letterhead::format::Format;
use letterhead::header::RequestedKey;
use letterhead::log::{OnError, OnLoss};
use letterhead::op::convert::{Converted, convert_message};
use letterhead::op::write::TypeHint;
use letterhead::options::WriteOptions;
use letterhead::type_option::{EncodedType, Occurrences, TypeOption};
use letterhead::value::ByteOrder;
use letterhead::value_type::{Scalar, TypeCodes, ValueType};
use proptest::prelude::*;

use super::cases;
use super::generated::{formats_of_one, recipe, targets};
use crate::columns::{apply, faults_at, told};
use crate::common::{Head, Held, Message, STRICT, other_fields, read, write};

fn convert(
    serialized: &[u8],
    source: Format,
    target: Format,
    types: TypeOption,
) -> Result<Converted, (Direction, ErrorDetail)> {
    let write = WriteOptions { on_loss: OnLoss::Report, types, ..WriteOptions::default() };
    match convert_message(serialized, source, target, STRICT, write) {
        Ok(converted) => Ok(converted),
        Err(Error::Headers(direction, located)) => Err((direction, located.error)),
        Err(other) => panic!("{other}"),
    }
}

/// Type options that restore the types of values: one type, or a list of types, for each key that lost a type.
fn kinds_of(type_hints: &[TypeHint]) -> TypeOption {
    let mut types: Vec<(RequestedKey, Vec<EncodedType>)> = vec![];
    for back in type_hints.iter().filter(|back| type_hints.iter().any(|other| other.lost && other.key == back.key)) {
        let value_type = EncodedType::parse(&back.value_type).expect("it can be handed back");
        match types.iter_mut().find(|(known, _)| *known == back.key) {
            Some((_, each)) => each.push(value_type),
            None => types.push((back.key.clone(), vec![value_type])),
        }
    }
    let times = |each: Vec<EncodedType>| match each.iter().all(|value_type| *value_type == each[0]) {
        true => Occurrences::All(each[0]),
        false => Occurrences::InOrder(each),
    };
    TypeOption::ByKey(types.into_iter().map(|(key, each)| (key, times(each))).collect())
}

/// Loss as a row of the column of losses: code, message, header, key, type, and the replacement that was written.
type ToldLoss = (String, String, Option<i32>, Option<String>, Option<String>, Option<String>);

fn told_loss(loss: &Loss) -> ToldLoss {
    let (header, written) = (loss.header.map(|header| header as i32), loss.written.map(str::to_string));
    (loss.code.name().into(), loss.message.clone(), header, loss.key.clone(), loss.value_type.clone(), written)
}

fn losses_at(lists: &ArrayRef, row: usize) -> Vec<ToldLoss> {
    let elements = lists.as_list::<i32>().value(row);
    let structs = elements.as_struct();
    let text = |name: &str, place: usize| {
        let texts = structs.column_by_name(name).expect("a loss has it").as_string::<i32>();
        texts.is_valid(place).then(|| texts.value(place).to_string())
    };
    let loss = |place| {
        let headers = structs.column_by_name("header").expect("a loss has it").as_primitive::<Int32Type>();
        let header = headers.is_valid(place).then(|| headers.value(place));
        let (code, message) = (text("code", place).expect("a code"), text("message", place).expect("a message"));
        (code, message, header, text("key", place), text("type", place), text("written", place))
    };
    (0..structs.len()).map(loss).collect()
}

/// Type option of a conversion from one format to another.
fn kinds_between(source: Format, target: Format, encoding: Option<Encoding>) -> TypeOption {
    match (source.info().types, target.info().types, encoding) {
        (TypeCodes::None, TypeCodes::None, _) | (_, _, None) => TypeOption::Unset,
        (_, TypeCodes::None, Some(encoding)) => TypeOption::Untyped(encoding),
        (TypeCodes::None, _, Some(_)) => TypeOption::Binary,
        _ => TypeOption::Unset,
    }
}

fn encoding() -> impl Strategy<Value = Option<Encoding>> {
    let little = Some(Encoding::Bytes(ByteOrder::Little));
    prop::sample::select(vec![None, BIG, little, TEXT])
}

proptest! {
    #![proptest_config(cases(96))]

    #[test]
    fn converted_headers_come_back_or_are_named_as_lost(recipe in recipe(), encoding in encoding()) {
        for source in formats_of_one() {
            let serialized = recipe.near(source);
            let Ok(mut original) = read(source, &serialized, STRICT) else { continue };
            let original = original.remove(0);
            for target in targets() {
                comes_back(&serialized, &original, source, target, encoding)?;
            }
        }
    }

    #[test]
    fn a_converted_column_is_its_values_one_by_one(
        recipes in prop::collection::vec(recipe(), 1..4),
        source in prop::sample::select(formats_of_one().collect::<Vec<_>>()),
        target in prop::sample::select(targets().collect::<Vec<_>>()),
        encoding in encoding(),
    ) {
        let serialized_rows = recipes.iter().map(|recipe| recipe.near(source));
        let serialized_rows: Vec<_> = serialized_rows.collect();
        let types = kinds_between(source, target, encoding);
        let write = WriteOptions { on_loss: OnLoss::Report, types: types.clone(), ..WriteOptions::default() };
        let operation = Convert { target, read: STRICT, write, on_error: OnError::Column };
        let made = apply(source, &operation, &serialized_rows).expect("nothing is raised");
        let column = |name: &str| made.as_struct().column_by_name(name).expect("it was asked for");
        for (row, serialized) in serialized_rows.iter().enumerate() {
            let data = column("data").as_binary::<i32>();
            let data = data.is_valid(row).then(|| data.value(row).to_vec());
            let found = faults_at(column("error"), row);
            match convert(serialized, source, target, types.clone()) {
                Ok(converted) => {
                    prop_assert_eq!((data, found), (converted.data, vec![]));
                    let losses: Vec<_> = converted.losses.iter().map(told_loss).collect();
                    prop_assert_eq!(losses_at(column("losses"), row), losses);
                }
                // For an invalid value, the column contains the part that could be read, and the same error.
                Err((_, error)) => prop_assert_eq!(found.first(), Some(&told(&error))),
            }
        }
    }

    #[test]
    fn a_message_converted_to_its_own_format_stays_as_it_is(recipe in recipe()) {
        for format in targets() {
            let serialized = recipe.whole(format);
            let Ok(original) = read(format, &serialized, STRICT) else { continue };
            let converted = convert(&serialized, format, format, TypeOption::Unset).expect("nothing is wrong");
            prop_assert_eq!(converted.losses, vec![]);
            let again = read(format, &converted.data.expect("there was a value"), STRICT).expect("whole");
            prop_assert_eq!(without_checksum(again, format), without_checksum(original, format));
        }
    }
}

/// Removes checksums, which a conversion does not preserve.
fn without_checksum(mut messages: Vec<Message>, format: Format) -> Vec<Message> {
    for (place, field) in other_fields(format).enumerate() {
        if (field.role, field.field_type) == (Role::Derived, FieldType::Uint64) {
            messages.iter_mut().for_each(|message| message.fields[place] = Held::Null);
        }
    }
    messages
}

fn comes_back(
    serialized: &[u8],
    original: &Message,
    source: Format,
    target: Format,
    encoding: Option<Encoding>,
) -> Result<(), TestCaseError> {
    let pair = format!("{source:?} to {target:?}: {original:?}");
    let there = convert(serialized, source, target, kinds_between(source, target, encoding));
    let there = there.map_err(|error| TestCaseError::fail(format!("{pair}: {error:?}")))?;
    let of = |losses: &[Loss], index: usize| -> Vec<Loss> {
        losses.iter().filter(|loss| loss.header == Some(index)).cloned().collect()
    };
    let left_out = |losses: &[Loss]| losses.iter().any(|loss| loss.written.is_none());
    // The target may write no headers for a tombstone or an old message; then one loss covers all dropped headers.
    let all_at_once = |loss: &Loss| {
        let null = loss.code == Code::NullNotCarried && loss.written.is_none();
        loss.header.is_none() && (null || loss.message.ends_with("has no headers"))
    };
    let stay = |index: &usize| !left_out(&of(&there.losses, *index)) && !there.losses.iter().any(all_at_once);
    let stayed: Vec<_> = (0..original.heads().len()).filter(stay).collect();
    let Some(data) = &there.data else {
        prop_assert_eq!(stayed, [0; 0], "{}", pair);
        return Ok(());
    };
    let written = read(target, data, STRICT).map_err(|error| TestCaseError::fail(format!("{pair}: {error:?}")))?;
    prop_assert_eq!(written[0].heads().len(), stayed.len(), "{} {:?}", pair, there.losses);
    for (field, value) in other_fields(source).zip(&original.fields) {
        let carried =
            other_fields(target).zip(&written[0].fields).any(|(to, found)| is_carried(field, value, to, found));
        let named = there.losses.iter().any(|loss| loss.header.is_none() && loss.message.starts_with(field.name));
        // If a null value means a tombstone, only a null in a wrapper without the tombstone flag must be reported as a
        // loss.
        let null_deletes = other_fields(target).any(|to| matches!(to.role, Role::Deletes | Role::StoredValue));
        let is_null = has_no_value(original, source);
        let deletes = field.role == Role::Tombstone
            && match value {
                Held::Bool(true) => is_null,
                _ => !is_null || original.headers.is_none() || !null_deletes,
            };
        prop_assert!(
            carried || named || deletes || says_nothing(field, value),
            "{} {} {:?}",
            pair,
            field.name,
            there.losses
        );
    }
    if !source.info().is_target {
        return Ok(());
    }
    let asked = match (source.info().types, target.info().types) {
        (TypeCodes::None, _) => kinds_between(target, source, BIG),
        _ => kinds_of(&there.type_hints),
    };
    let back = convert(data, target, source, asked)
        .map_err(|error| TestCaseError::fail(format!("{pair}, back: {error:?}")))?;
    let Some(data) = &back.data else { return Ok(()) };
    let returned = read(source, data, STRICT).expect("converted values are whole");
    let mut returned = returned[0].heads().iter();
    for (place, index) in stayed.into_iter().enumerate() {
        let lost = of(&there.losses, index);
        let gone = left_out(&of(&back.losses, place));
        let again = if gone { None } else { returned.next() };
        // A value with a loss other than its type need not be restored.
        let head = &original.heads()[index];
        if lost.iter().all(|loss| loss.value_type.is_some()) {
            prop_assert_eq!(again, Some(head), "{} there {:?} back {:?}", pair, there.losses, back.losses);
        }
    }
    Ok(())
}

/// Whether a field of the target has the value of a field of the source.
fn is_carried(field: &Field, value: &Held, to: &Field, found: &Held) -> bool {
    let times =
        |held: &Held, by: i128| if let Held::Number(number) = held { Held::Number(number * by) } else { Held::Null };
    match (field.role, to.role) {
        (Role::Millis, Role::Micros) => times(value, 1000) == *found,
        (Role::Micros, Role::Millis) => times(found, 1000) == *value,
        (from, to) => (from == to || from.is_value() && to.is_value()) && value == found,
    }
}

/// Whether a field has no value that another format would have to store.
fn says_nothing(field: &Field, value: &Held) -> bool {
    let derived = [Role::Derived, Role::Deletes, Role::Magic, Role::Attributes].contains(&field.role);
    // Kafka stores -1 for a missing value.
    derived || *value == Held::Null || *value == Held::Number(-1)
}

fn has_no_value(message: &Message, format: Format) -> bool {
    let mut fields = other_fields(format).zip(&message.fields);
    fields.any(|(field, value)| field.role.is_value() && *value == Held::Null)
}

/// Headers after a conversion to another format and back, with the type options that the losses name.
fn there_and_back(heads: &[Head], source: Format, target: Format, encoding: Option<Encoding>) -> Vec<Head> {
    let serialized =
        write(source, &Message::block(heads.to_vec()), WriteOptions::default()).expect("whole").expect("a value");
    let there = convert(&serialized, source, target, kinds_between(source, target, encoding)).expect("whole");
    let back = convert(&there.data.expect("a value"), target, source, kinds_of(&there.type_hints)).expect("whole");
    read(source, &back.data.expect("a value"), STRICT).expect("whole")[0].heads().to_vec()
}

fn head(key: &str, value_type: Scalar, bits: &[u8]) -> Head {
    Head { key: key.into(), value_type: Some(ValueType::Named(value_type)), value: Some(bits.to_vec()) }
}

const BIG: Option<Encoding> = Some(Encoding::Bytes(ByteOrder::Big));
const TEXT: Option<Encoding> = Some(Encoding::Text);

#[test]
fn a_string_key_that_spells_a_number_is_named_as_lost() {
    let heads = [head("0", Scalar::Binary, b"x")];
    let serialized =
        write(Format::Iggy, &Message::block(heads.to_vec()), WriteOptions::default()).expect("whole").expect("a value");
    let losses =
        convert(&serialized, Format::Iggy, Format::Kip82Int, kinds_between(Format::Iggy, Format::Kip82Int, BIG))
            .expect("whole")
            .losses;
    assert!(losses.iter().any(|loss| loss.code == Code::KeyNotCarried), "{losses:?}");
}

#[test]
fn key_with_kept_and_lost_types_comes_back() {
    let heads = [head("k", Scalar::Uint16, &[1, 2]), head("k", Scalar::Int16, &[3, 4])];
    assert_eq!(there_and_back(&heads, Format::Iggy, Format::Kip82Typed, BIG), heads);
}

#[test]
fn a_message_without_a_time_becomes_a_value_of_no_time() {
    let fields = [0, 0, 0, 0].map(Held::Number).into_iter();
    let fields = fields.chain([Held::Null, Held::Null, Held::Bytes(b"v".to_vec()), Held::Null]).collect();
    let message = Message { headers: None, fields };
    let serialized = write(Format::Kip82Message, &message, WriteOptions::default()).expect("whole").expect("a value");
    let made =
        convert(&serialized, Format::Kip82Message, Format::StreamsTimestamped, TypeOption::Unset).expect("whole");
    let made = read(Format::StreamsTimestamped, &made.data.expect("a value"), STRICT).expect("whole");
    assert_eq!(made[0].fields[0], Held::Number(-1));
}

#[test]
fn bits_invalid_for_their_type_come_back_or_are_dropped() {
    for (value_type, bits) in [(Scalar::Bool, &[2][..]), (Scalar::String, &[0xff]), (Scalar::Uint32, &[1])] {
        let heads = [head("k", value_type, bits)];
        let target = if value_type == Scalar::Uint32 { Format::Kip82Typed } else { Format::Kafka };
        let serialized = write(Format::Iggy2023, &Message::block(heads.to_vec()), WriteOptions::default());
        let types = kinds_between(Format::Iggy2023, target, BIG);
        let there =
            convert(&serialized.expect("whole").expect("a value"), Format::Iggy2023, target, types).expect("whole");
        let left_out = there.losses[0].written.is_none();
        assert!(left_out || there_and_back(&heads, Format::Iggy2023, target, BIG) == heads, "{:?}", there.losses);
    }
}

#[test]
fn a_nan_keeps_its_bits_or_is_named_as_lost() {
    let heads = [head("k", Scalar::Float32, &[0x7f, 0x80, 0, 1])];
    let serialized = write(Format::Iggy2023, &Message::block(heads.to_vec()), WriteOptions::default());
    let there = convert(
        &serialized.expect("whole").expect("a value"),
        Format::Iggy2023,
        Format::Kafka,
        kinds_between(Format::Iggy2023, Format::Kafka, TEXT),
    );
    let losses = there.expect("whole").losses;
    let restores = losses[0].value_type.is_some();
    assert!(!restores || there_and_back(&heads, Format::Iggy2023, Format::Kafka, TEXT) == heads, "{losses:?}");
}

#[test]
fn damaged_value_is_error_of_converted_column() {
    let write = WriteOptions::default();
    let operation = Convert { target: Format::Streams, read: STRICT, write, on_error: OnError::Raise };
    let raised = apply(Format::Kafka, &operation, &[b"\x02\x01".to_vec()]).expect_err("refused");
    assert_eq!((raised.0, raised.1.code), (0, Code::CountTooLarge));
}
