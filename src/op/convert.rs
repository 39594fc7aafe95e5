//! [`convert_message`] converts a message of one format to another. Reading is independent of the target: headers and
//! fields are gathered, fields are mapped by their roles, and the writer reports losses.

use super::write::{Origin, TypeHint, Writer};
use crate::cursor::Cursor;
use crate::error::{Code, Direction, Error, Loss};
use crate::field::{Field, FieldType, FieldValue, Role};
use crate::format::Format;
use crate::format_info::{Class, Encoded};
use crate::log::{CollectErrors, EitherLog, Log, Result, truncate_list};
use crate::options::{ReadOptions, WriteOptions};
use crate::sink::{AnySink, GatheredMessage, Presence, Sink};

/// Error of convert for a source that is a batch.
pub fn not_one_by_one(format: &str) -> Error {
    Error::Value(format!("{format} is a batch: convert its messages one by one"))
}

pub fn no_target(format: &str) -> Error {
    Error::Value(format!("{format} is a batch and no target"))
}

/// Total number of fields of two headers formats, which have only headers.
const BLOCKS: usize = 2;

/// Passes a gathered message to a writer: its headers, then its fields converted to the fields of the target.
pub fn hand_over<'a, R: Log, S: Sink<'a>>(
    message: &mut GatheredMessage<'a>,
    presence: Presence,
    from: &[Field],
    to: &[Field],
    log: &mut R,
    sink: &mut S,
) -> Result {
    for header in message.headers.drain(..) {
        log.enter_header(Some(header.index));
        log.name_header(&header.key);
        sink.header(header, log)?;
    }
    log.enter_header(None);
    if from.len() + to.len() > BLOCKS {
        let no_wrapper = presence == Presence::Absent;
        sink.fields(&map_fields(from, &message.fields, no_wrapper, to, log)?);
    }
    Ok(())
}

/// Converts the fields of the source, without the headers, to the fields of the target.
fn map_fields<'a, R: Log>(
    from: &[Field],
    values: &[FieldValue<'a>],
    no_wrapper: bool,
    to: &[Field],
    log: &mut R,
) -> Result<Vec<FieldValue<'a>>> {
    let no_headers = |field: &&Field| field.role != Role::Headers;
    let targets: Vec<&Field> = to.iter().filter(no_headers).collect();
    let sources: Vec<&Field> = from.iter().filter(no_headers).collect();
    let mut fields: Vec<_> = targets.iter().map(|target| default_value(target, &sources)).collect();
    let is_null = sources.iter().zip(values).any(|(field, value)| field.role.is_value() && *value == FieldValue::Null);
    let null_deletes = to.iter().any(|field| matches!(field.role, Role::Deletes | Role::StoredValue));
    for (field, value) in sources.iter().zip(values) {
        if *value == FieldValue::Null || field.role == Role::Derived {
            continue;
        }
        match targets.iter().position(|target| has_same_meaning(field.role, target.role)) {
            Some(index) => fields[index] = convert_field(field, targets[index], *value, log)?,
            None => match (field.role, value) {
                (Role::Magic | Role::Attributes | Role::Deletes, _) => {}
                // Where a null value means a tombstone, a null with the tombstone flag loses nothing. A null in a
                // wrapper without that flag is not a tombstone, so it would lose that meaning.
                (Role::Tombstone, FieldValue::Bool(true)) if is_null => {}
                (Role::Tombstone, FieldValue::Bool(false)) if !(is_null && null_deletes) || no_wrapper => {}
                _ => {
                    let lost = || format!("{} is not carried", field.name);
                    log.loss(false, || Loss::of_message(Code::FieldNotCarried, lost()))?;
                }
            },
        }
    }
    Ok(fields)
}

/// Value of a target field without a source field.
fn default_value<'a>(target: &Field, sources: &[&Field]) -> FieldValue<'a> {
    match target.role {
        // Kafka stores -1 for a missing timestamp.
        Role::Millis => FieldValue::Int64(-1),
        role if role.is_value() && !sources.iter().any(|field| field.role.is_value()) => FieldValue::Binary(&[]),
        _ => FieldValue::Null,
    }
}

/// Whether a field of a source corresponds to a field of a target.
fn has_same_meaning(source: Role, target: Role) -> bool {
    let is_time = |role| matches!(role, Role::Millis | Role::Micros);
    match (source, target) {
        // A message without a value deletes its key; some targets store this as a field. Derived fields are never set.
        (Role::Deletes, Role::Tombstone) => true,
        (_, Role::Deletes) => false,
        _ => source == target || (is_time(source) && is_time(target)) || (source.is_value() && target.is_value()),
    }
}

/// Converts a value to the type of its target field; null if it was dropped.
fn convert_field<'a, R: Log>(
    field: &Field,
    target: &Field,
    value: FieldValue<'a>,
    log: &mut R,
) -> Result<FieldValue<'a>> {
    let FieldValue::Int64(number) = value else { return Ok(value) };
    let lost = |message: &str| Loss::of_message(Code::OutOfRange, format!("{} {message}", field.name));
    if target.field_type == FieldType::Natural && number < 0 {
        // Kafka's -1 for a missing value becomes null.
        if number != -1 {
            log.loss(false, || lost("is negative"))?;
        }
        return Ok(FieldValue::Null);
    }
    match (field.role, target.role) {
        (Role::Millis, Role::Micros) => match number.checked_mul(1000) {
            Some(micros) => Ok(FieldValue::Int64(micros)),
            None => {
                log.loss(false, || lost("does not fit int64"))?;
                Ok(FieldValue::Null)
            }
        },
        (Role::Micros, Role::Millis) => {
            if number.rem_euclid(1000) != 0 {
                let parts = || format!("{} has parts of a millisecond", field.name);
                log.loss(false, || Loss { written: Some("ms"), ..Loss::of_message(Code::FieldNotCarried, parts()) })?;
            }
            Ok(FieldValue::Int64(number.div_euclid(1000)))
        }
        _ => Ok(value),
    }
}

/// A converted message; `data` is `None` if the target writes no bytes for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Converted {
    pub data: Option<Vec<u8>>,
    pub losses: Vec<Loss>,
    pub type_hints: Vec<TypeHint>,
}

pub fn convert_message(
    data: &[u8],
    source: Format,
    target: Format,
    read: ReadOptions,
    write: WriteOptions,
) -> Result<Converted, Error> {
    let (source, target) = (source.info(), target.info());
    if source.class == Class::Batch {
        return Err(not_one_by_one(source.name));
    }
    if target.class == Class::Batch {
        return Err(no_target(target.name));
    }
    let on_loss = write.on_loss;
    let origin = Origin { order: source.order, keys: source.keys, direction: Direction::Convert };
    let mut writer = Writer::new(target, write, origin)?;
    writer.most_hints = read.limits.reports;
    let mut log = CollectErrors::new(on_loss, read.limits.reports);
    let mut message = GatheredMessage::default();
    let gathered = (source.parse)(Cursor::new(data), read, EitherLog::Collect(&mut log), AnySink(&mut message));
    let presence = log.finish_parse(gathered, Direction::Decode, source.name)?;
    let mut data = Vec::new();
    let encoded = hand_over(&mut message, presence, source.fields, target.fields, &mut log, &mut writer)
        .and_then(|()| writer.encode(presence, &mut log, &mut data));
    let encoded = log.finish_parse(encoded, Direction::Encode, target.name)?;
    log.reject_losses(target.name)?;
    let data = (encoded == Encoded::Message).then_some(data);
    let mut losses = log.take_losses();
    let is_cut = losses.last().is_some_and(|last| last.code == Code::LimitExceeded);
    if writer.hints_left_out && !losses.is_empty() && !is_cut {
        // The appended entry alone shows that the type hints do not restore all values.
        truncate_list(&mut losses, usize::MAX, read.limits.reports);
    }
    Ok(Converted { data, losses, type_hints: writer.type_hints })
}
