//! [`ReadOptions`] and [`WriteOptions`]: how messages are read and written.

use crate::limits::Limits;
use crate::log::OnLoss;
use crate::type_option::TypeOption;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReadOptions {
    /// Accepts everything that Kafka's Java deserializers accept, even where they lose data.
    pub lenient: bool,
    /// Rejects type codes without a name in formats that allow them.
    pub strict_types: bool,
    /// Rejects keys other than text in formats with typed keys.
    pub text_keys: bool,
    pub limits: Limits,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WriteOptions {
    pub on_loss: OnLoss,
    /// Rule by which types are added to values or removed.
    pub types: TypeOption,
    /// Rejects a null list of headers, which is otherwise written as no headers.
    pub refuse_null_headers: bool,
    /// Writes headers in the order that the format defines.
    pub canonical: bool,
}
