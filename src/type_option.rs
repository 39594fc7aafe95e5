//! [`TypeOption`], the option `types` of conversions, which adds types to values or removes them.

use std::collections::HashMap;

use crate::encoding::Encoding;
use crate::error::{Error, unknown_name};
use crate::header::{Key, RequestedKey};
use crate::types::{Coding, Type};
use crate::value::ByteOrder;
use crate::value_type::{Scalar, TypeCodes, ValueType};

/// Rule by which a conversion adds types to values or removes them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum TypeOption {
    #[default]
    Unset,
    /// Encoding of typed values in an untyped format.
    Untyped(Encoding),
    /// Untyped values become `binary`.
    Binary,
    /// The types of the values of these keys.
    ByKey(TypesByKey),
}

/// The types of the values of some keys. The first entry of a key applies.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TypesByKey {
    entries: Vec<Occurrences>,
    indexes: HashMap<RequestedKey, usize>,
}

impl FromIterator<(RequestedKey, Occurrences)> for TypesByKey {
    fn from_iter<I: IntoIterator<Item = (RequestedKey, Occurrences)>>(pairs: I) -> Self {
        let mut types = TypesByKey::default();
        for (key, occurrences) in pairs {
            types.indexes.entry(key).or_insert(types.entries.len());
            types.entries.push(occurrences);
        }
        types
    }
}

impl TypesByKey {
    /// Returns the first entry for one of the forms of a key.
    fn find(&self, keys: [&Key<'_>; 2]) -> Option<usize> {
        let index_of = |key: &Key<'_>| {
            // Reports of losses contain keys as text, which a user can pass back.
            let text = match key {
                Key::Text(_) => None,
                key => self.indexes.get(&RequestedKey::Text(key.to_string())),
            };
            text.into_iter().chain(self.indexes.get(&RequestedKey::from(key))).min().copied()
        };
        keys.into_iter().filter_map(index_of).min()
    }
}

/// The types of the values of one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Occurrences {
    /// One type for all headers with the key.
    All(EncodedType),
    /// One type for each header with the key, in order.
    InOrder(Vec<EncodedType>),
}

/// Type, and the encoding of its untyped values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EncodedType {
    pub value_type: ValueType,
    pub encoding: Encoding,
}

impl EncodedType {
    /// Parses `name[:be|le|text]` or `type-200`.
    pub fn parse(text: &str) -> Result<EncodedType, Error> {
        if let Some(value_type @ ValueType::Unnamed(_)) = ValueType::parse(text) {
            return Ok(EncodedType { value_type, encoding: Encoding::Bytes(ByteOrder::Big) });
        }
        let parsed = Type::parse(text)?;
        if !parsed.scalar.is_wire_type() {
            let types = Scalar::ALL.iter().filter(|scalar| scalar.is_wire_type()).map(|scalar| scalar.name());
            return Err(unknown_name("type", parsed.scalar.name(), types));
        }
        let (Coding::Plain(encoding), None) = (parsed.coding, parsed.base) else {
            return Err(Error::Value(format!("type '{text}': values are read so, and not converted from it")));
        };
        Ok(EncodedType { value_type: ValueType::Named(parsed.scalar), encoding })
    }

    /// Text for `parse`.
    pub fn name(self) -> String {
        let name = self.value_type.name();
        match (self.value_type.width(), self.encoding) {
            (None, _) | (_, Encoding::Bytes(ByteOrder::Big)) => name.into_owned(),
            (_, Encoding::Bytes(ByteOrder::Little)) => format!("{name}:le"),
            (_, Encoding::Text) => format!("{name}:text"),
        }
    }
}

impl TypeOption {
    /// Rejects options that do not fit a target format.
    pub fn check(&self, target: &str, types: TypeCodes) -> Result<(), Error> {
        match (self, types.is_typed()) {
            (TypeOption::Untyped(_), true) => Err(Error::Value(format!(
                "types=\"be\", \"le\" and \"text\" write values without their types, and {target} has types: give \
                 types={{key: type}} or types=\"binary\""
            ))),
            (TypeOption::Binary | TypeOption::ByKey(_), false) => Err(Error::Value(format!(
                "types={{key: type}} and types=\"binary\" give values a type, and {target} carries none: give \
                 types=\"be\", \"le\" or \"text\""
            ))),
            _ => Ok(()),
        }
    }

    /// Returns the type of the next header with a key. The key as read and the key as written are both compared.
    pub fn next_type(&self, keys: [&Key<'_>; 2], occurrences: &mut Vec<usize>) -> Option<EncodedType> {
        let TypeOption::ByKey(types) = self else { return None };
        occurrences.resize(types.entries.len(), 0);
        let index = types.find(keys)?;
        let nth = occurrences[index];
        occurrences[index] += 1;
        match &types.entries[index] {
            Occurrences::All(encoded) => Some(*encoded),
            Occurrences::InOrder(types) => types.get(nth).copied(),
        }
    }
}
