//! Edits of headers: an edited message equals a message that was read, changed header by header, and written.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, StringArray, StructArray};
use arrow_schema::{Field, Fields};
use letterhead::arrow::edit::EditColumn;
use letterhead::field::Role;
use letterhead::format::Format;
use letterhead::header::KeyForm;
use letterhead::log::OnError;
use letterhead::op::edit::{Change, Edit, Entry, NewValue};
use letterhead::op::mask::Mask;
use letterhead::options::{ReadOptions, WriteOptions};
use letterhead::value_type::{Scalar, ValueType};

use super::columns::same_in_parts;
use super::selections::requested_key;
use super::serialized_rows::{BEHIND, Layout};
use super::{Shape, Target, formats, named, seal};
use crate::columns::{apply_to, faults_at};
use crate::common::{Head, Held, HeldKey, Message, other_fields, read, write};

pub const TARGET: Target = Target {
    name: "edit",
    subjects: || formats(|info| info.class != letterhead::format_info::Class::Batch && info.is_target),
    check,
};

const NEW: &str = "new value";
const STRING: ValueType = ValueType::Named(Scalar::String);

fn check(name: &str, data: &[u8]) {
    let (format, Some((shape, data))) = (named(name), Shape::split(data)) else { return };
    let Some(([changes, values, place], data)) = data.split_first_chunk() else { return };
    let mut serialized = data.to_vec();
    if shape.bit(5) {
        seal::seal(format, &mut serialized);
    }
    let (first, second) = serialized.split_at(serialized.len() * usize::from(*place) / 256);
    let rows = [Some(second), None, Some(&serialized[..]), Some(first), Some(&serialized), Some(&[])];
    let options = ReadOptions { text_keys: false, ..shape.options() };
    let messages = read(format, &serialized, options).unwrap_or_default();
    let (edit, keys) = edit(format, &messages, Shape(*changes), Shape(*values), shape);
    let column = Layout::of(shape.bits(6, 2)).column(&rows, &BEHIND);
    let texts: [Option<&str>; 6] = [Some(NEW), None, None, Some(""), Some("1"), Some(NEW)];
    let input = match has_column(&edit) {
        true => beside(column, Arc::new(StringArray::from(texts.to_vec()))),
        false => column,
    };
    let operation = EditColumn { edit: Arc::new(edit), options, on_error: OnError::Column, seen: None };
    let output = apply_to(format, &operation, &input).expect("nothing is raised");
    let expectation = Model { format, options, edit: &operation.edit, keys };
    for (row, (serialized, text)) in rows.iter().zip(texts).enumerate() {
        expectation.holds(*serialized, text, output.as_struct(), row);
    }
    same_in_parts(format, &operation, &input, &output);
}

fn beside(messages: ArrayRef, values: ArrayRef) -> ArrayRef {
    let fields = [("messages", &messages), ("values", &values)]
        .map(|(name, column)| Field::new(name, column.data_type().clone(), true));
    Arc::new(StructArray::new(Fields::from(fields.to_vec()), vec![messages, values], None))
}

/// The entries that two bytes ask for, of the first keys of the messages and of one that none of them has; and these keys.
fn edit(format: Format, messages: &[Message], changes: Shape, values: Shape, shape: Shape) -> (Edit, Vec<HeldKey>) {
    let form = format.info().keys;
    let mut keys: Vec<HeldKey> = Vec::new();
    let absent = new_key(form, 7);
    for key in messages.iter().flat_map(Message::heads).map(|head| &head.key).take(3).chain([&absent]) {
        if !keys.contains(key) {
            keys.push(key.clone());
        }
    }
    let typed = format.info().types.is_typed();
    let value = |place: usize, may_mask: bool| match values.bits(2 * place as u32, 2) {
        1 if may_mask => NewValue::Masked(Mask::Redact),
        2 if may_mask => NewValue::Masked(Mask::LastFour),
        3 => NewValue::Column(0),
        _ => NewValue::Constant(typed.then_some(STRING), Some(NEW.into())),
    };
    let entry = |(place, key): (usize, &HeldKey)| {
        let renames = values.bit(2 * place as u32);
        let (change, renames) = match changes.bits(2 * place as u32, 2) {
            0 => (Change::Keep, true),
            1 => (Change::Drop, false),
            2 => (Change::Replace(value(place, true)), renames),
            _ => (Change::Set(value(place, false)), renames),
        };
        let renamed = renames.then(|| requested_key(&new_key(form, 8), form));
        Entry { key: requested_key(key, form), renamed, change }
    };
    let edit = Edit {
        entries: keys.iter().enumerate().map(entry).collect(),
        drops_others: shape.bit(3),
        appended: match shape.bit(4) {
            true => vec![(requested_key(&new_key(form, 9), form), value(3, false))],
            false => vec![],
        },
        skips_nulls: values.bit(6),
    };
    (edit, keys)
}

fn new_key(form: KeyForm, number: i32) -> HeldKey {
    match form {
        KeyForm::Int => HeldKey::Int(number),
        KeyForm::Text | KeyForm::Typed => HeldKey::Text(format!("key {number}")),
    }
}

fn has_column(edit: &Edit) -> bool {
    let in_entry =
        |entry: &Entry| matches!(entry.change, Change::Replace(NewValue::Column(_)) | Change::Set(NewValue::Column(_)));
    edit.entries.iter().any(in_entry) || edit.appended.iter().any(|(_, value)| *value == NewValue::Column(0))
}

/// The expected results of an edit.
struct Model<'e> {
    format: Format,
    options: ReadOptions,
    edit: &'e Edit,
    /// Of the entries.
    keys: Vec<HeldKey>,
}

impl Model<'_> {
    fn holds(&self, serialized: Option<&[u8]>, text: Option<&str>, output: &StructArray, row: usize) {
        let column = |name: &str| output.column_by_name(name).expect("it was asked for");
        let data = column("data").as_binary::<i32>();
        let data = data.is_valid(row).then(|| data.value(row));
        let errors = faults_at(column("error"), row);
        let Some(message) = serialized.map(|serialized| read(self.format, serialized, self.options)) else {
            assert_eq!((data, errors), (None, vec![]));
            return;
        };
        let Ok(original) = message.map(|mut messages| messages.remove(0)) else {
            assert!(data.is_none() && !errors.is_empty(), "what cannot be read is not edited");
            return;
        };
        let mut edited = original.clone();
        let headers = self.edited(original.heads(), text);
        if headers != original.heads() {
            edited.headers = Some(headers);
        }
        let written = write(self.format, &edited, WriteOptions::default());
        match data {
            Some(data) => {
                let message = read(self.format, data, self.options).expect("what was edited is read").remove(0);
                assert_eq!(message.heads(), edited.heads());
                let expected = match (edited == original, &written) {
                    (false, Ok(Some(written))) => {
                        read(self.format, written, self.options).expect("it is read").remove(0)
                    }
                    _ => original,
                };
                assert_eq!(self.fields(&message), self.fields(&expected));
            }
            None if errors.is_empty() => assert_eq!(written, Ok(None)),
            None => assert!(written.is_err(), "{errors:?}"),
        }
    }

    /// The fields that are not computed from the others.
    fn fields<'m>(&self, message: &'m Message) -> Vec<&'m Held> {
        let fields = other_fields(self.format).zip(&message.fields);
        fields.filter(|(field, _)| field.role != Role::Derived).map(|(_, held)| held).collect()
    }

    fn edited(&self, heads: &[Head], text: Option<&str>) -> Vec<Head> {
        let mut edited = Vec::new();
        let mut has_set = vec![false; self.keys.len()];
        for head in heads {
            let Some(place) = self.keys.iter().position(|key| *key == head.key) else {
                if !self.edit.drops_others {
                    edited.push(head.clone());
                }
                continue;
            };
            let entry = &self.edit.entries[place];
            let key = if entry.renamed.is_some() { self.renamed() } else { head.key.clone() };
            let stays = Head { key: key.clone(), ..head.clone() };
            edited.extend(match &entry.change {
                Change::Drop => None,
                Change::Keep => Some(stays),
                Change::Replace(_) if head.value.is_none() => Some(stays),
                Change::Replace(value) => Some(self.head(key, value, Some(head), text)),
                Change::Set(value) if self.is_skipped(value, text) => Some(head.clone()),
                Change::Set(_) if has_set[place] => None,
                Change::Set(value) => Some(self.head(key, value, Some(head), text)),
            });
            has_set[place] = true;
        }
        for (place, entry) in self.edit.entries.iter().enumerate() {
            let Change::Set(value) = &entry.change else { continue };
            if !has_set[place] && !self.is_skipped(value, text) {
                let key = if entry.renamed.is_some() { self.renamed() } else { self.keys[place].clone() };
                edited.push(self.head(key, value, None, text));
            }
        }
        for (_, value) in &self.edit.appended {
            if !self.is_skipped(value, text) {
                edited.push(self.head(new_key(self.format.info().keys, 9), value, None, text));
            }
        }
        edited
    }

    fn renamed(&self) -> HeldKey {
        new_key(self.format.info().keys, 8)
    }

    fn is_skipped(&self, value: &NewValue, text: Option<&str>) -> bool {
        self.edit.skips_nulls && *value == NewValue::Column(0) && text.is_none()
    }

    fn head(&self, key: HeldKey, value: &NewValue, original: Option<&Head>, text: Option<&str>) -> Head {
        let value = match value {
            NewValue::Constant(_, bits) => bits.clone(),
            NewValue::Column(_) => text.map(|text| text.as_bytes().to_vec()),
            NewValue::Masked(mask) => {
                original.and_then(|head| Some(masked(mask, head.value_type, head.value.as_ref()?)))
            }
        };
        let is_typed = self.format.info().types.is_typed() && value.is_some();
        Head { key, value_type: is_typed.then_some(STRING), value }
    }
}

fn masked(mask: &Mask, value_type: Option<ValueType>, bits: &[u8]) -> Vec<u8> {
    let is_text = matches!(value_type, None | Some(ValueType::Named(Scalar::String | Scalar::Binary)));
    match bits.last_chunk::<4>() {
        _ if *mask == Mask::Redact => b"***".to_vec(),
        Some(last) if is_text && bits.len() >= 8 && last.iter().all(|byte| matches!(byte, b' '..=b'~')) => {
            [b"****", &last[..]].concat()
        }
        _ => b"****".to_vec(),
    }
}
