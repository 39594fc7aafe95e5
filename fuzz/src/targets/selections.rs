//! Columns to select, by the keys of the messages and as every type.

use std::sync::LazyLock;

use letterhead::arrow::select::{Repeat, Selection};
use letterhead::header::{KeyForm, RequestedKey};
use letterhead::types::Type;
use letterhead::value_type::{Scalar, ValueType};

use crate::common::{HeldKey, Message};

/// Every type in every encoding.
static TYPES: LazyLock<Vec<Type>> = LazyLock::new(|| {
    let names = Scalar::ALL.iter().map(|scalar| scalar.name());
    let spelled = names.flat_map(|name| ["", ":le", ":text", ":amqp"].map(|suffix| format!("{name}{suffix}")));
    spelled.filter_map(|text| Type::parse(&text).ok()).collect()
});

/// The type that a byte stands for.
pub fn type_of(byte: u8) -> Type {
    TYPES[usize::from(byte) % TYPES.len()]
}

/// The first keys of some messages, and one that none of them has, in each way to select repeated keys.
pub fn selections(messages: &[Message], keys: KeyForm, of: Type) -> Vec<Selection> {
    let heads = messages.iter().flat_map(|message| message.heads());
    let mut wanted: Vec<RequestedKey> = heads.take(3).map(|head| requested_key(&head.key, keys)).collect();
    wanted.dedup();
    wanted.push(match keys {
        KeyForm::Int => RequestedKey::Int(-7),
        KeyForm::Text | KeyForm::Typed => RequestedKey::Text("k".into()),
    });
    let repeats = [Repeat::Last, Repeat::First, Repeat::All, Repeat::Error];
    let all = wanted.iter().enumerate().flat_map(|(place, key)| repeats.map(|repeat| (place, key, repeat)));
    let selection = |(place, key, repeat): (usize, &RequestedKey, Repeat)| Selection {
        required: repeat == Repeat::First,
        ..Selection::new(format!("{place} {repeat:?}"), key.clone(), of, repeat)
    };
    all.map(selection).collect()
}

/// The key of a header, as a caller names it.
pub fn requested_key(key: &HeldKey, form: KeyForm) -> RequestedKey {
    match (key, form) {
        (HeldKey::Text(text), _) => RequestedKey::Text(text.clone()),
        (HeldKey::Int(number), KeyForm::Typed) => {
            RequestedKey::Typed(ValueType::Named(Scalar::Int32), number.to_be_bytes().to_vec())
        }
        (HeldKey::Int(number), _) => RequestedKey::Int(*number),
        (HeldKey::Typed(value_type, bits), _) => RequestedKey::Typed(*value_type, bits.clone()),
    }
}
