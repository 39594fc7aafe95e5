//! The option `types` of conversions: how values get or lose types between formats with and without types.

use crate::error::{Error, unknown_name};
use crate::header::{Key, WantedKey};
use crate::kind::{Kind, Kinds, Scalar};
use crate::spelling::Spelling;
use crate::types::{Coding, Type};
use crate::value::ByteOrder;

/// How values get or lose their types.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Asked {
    #[default]
    Nothing,
    /// How a value with a type is written in a format without types.
    Spelled(Spelling),
    /// Values without a type become `binary`.
    Binary,
    /// The types of the values of these keys.
    Each(Vec<(WantedKey, Times)>),
}

/// The types of the values of one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Times {
    /// The same for each header with the key.
    Every(Spelled),
    /// One for each header with the key, in their order.
    Nth(Vec<Spelled>),
}

/// A type, and how bytes without a type spell a value of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spelled {
    pub kind: Kind,
    pub spelling: Spelling,
}

impl Spelled {
    /// Reads `name[:be|le|text]` or `type-200`.
    pub fn parse(text: &str) -> Result<Spelled, Error> {
        if let Some(kind @ Kind::Unnamed(_)) = Kind::parse(text) {
            return Ok(Spelled { kind, spelling: Spelling::Bytes(ByteOrder::Big) });
        }
        let of = Type::parse(text)?;
        if !of.scalar.is_kind() {
            let kinds = Scalar::ALL.iter().filter(|scalar| scalar.is_kind()).map(|scalar| scalar.name());
            return Err(unknown_name("type", of.scalar.name(), kinds));
        }
        let Coding::Spelled(spelling) = of.coding else {
            return Err(Error::Value(format!("type '{text}': values are read as AMQP, and not converted from it")));
        };
        Ok(Spelled { kind: Kind::Named(of.scalar), spelling })
    }

    /// What `parse` reads back.
    pub fn name(self) -> String {
        let name = self.kind.name();
        match (self.kind.width(), self.spelling) {
            (None, _) | (_, Spelling::Bytes(ByteOrder::Big)) => name.into_owned(),
            (_, Spelling::Bytes(ByteOrder::Little)) => format!("{name}:le"),
            (_, Spelling::Text) => format!("{name}:text"),
        }
    }
}

impl Asked {
    /// Refuses options that do not fit a target format.
    pub fn check(&self, target: &str, kinds: Kinds) -> Result<(), Error> {
        match (self, kinds.are_carried()) {
            (Asked::Spelled(_), true) => Err(Error::Value(format!(
                "types=\"be\", \"le\" and \"text\" write values without their types, and {target} has types: give \
                 types={{key: type}} or types=\"binary\""
            ))),
            (Asked::Binary | Asked::Each(_), false) => Err(Error::Value(format!(
                "types={{key: type}} and types=\"binary\" give values a type, and {target} carries none: give \
                 types=\"be\", \"le\" or \"text\""
            ))),
            _ => Ok(()),
        }
    }

    /// The type for the next header with a key, which is compared as it was read and as it will be written.
    pub fn of(&self, keys: [&Key<'_>; 2], seen: &mut Vec<usize>) -> Option<Spelled> {
        let Asked::Each(entries) = self else { return None };
        seen.resize(entries.len(), 0);
        let is = |wanted: &WantedKey| match wanted {
            // The reports of losses show keys as text, and can be handed back.
            WantedKey::Text(text) => keys.iter().any(|key| match key {
                Key::Text(key) => key.as_bytes() == text.as_bytes(),
                key => key.to_string() == *text,
            }),
            other => keys.iter().any(|key| other.is(key)),
        };
        let place = entries.iter().position(|(wanted, _)| is(wanted))?;
        let time = seen[place];
        seen[place] += 1;
        match &entries[place].1 {
            Times::Every(spelled) => Some(*spelled),
            Times::Nth(each) => each.get(time).copied(),
        }
    }
}
