//! Table of value types: name, width, and the codes of the typed formats.

use std::borrow::Cow;

macro_rules! scalars {
    ($($variant:ident $name:literal $kip82:expr, $iggy:expr, $width:expr;)*) => {
        /// A value type with a name.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Scalar { $($variant),* }

        impl Scalar {
            pub const ALL: &'static [Scalar] = &[$(Scalar::$variant),*];

            pub const fn name(self) -> &'static str {
                match self { $(Scalar::$variant => $name),* }
            }

            pub fn from_name(name: &str) -> Option<Scalar> {
                match name { $($name => Some(Scalar::$variant),)* _ => None }
            }

            /// The type code of the typed KIP-82 draft.
            pub const fn kip82(self) -> Option<u8> {
                match self { $(Scalar::$variant => $kip82),* }
            }

            /// The `HeaderKind` code of Apache Iggy.
            pub const fn iggy(self) -> Option<u8> {
                match self { $(Scalar::$variant => $iggy),* }
            }

            /// Number of bytes of a value; `None` if it varies.
            #[inline]
            pub const fn width(self) -> Option<usize> {
                // Called for every header of a typed format: a small table is faster than a jump.
                const WIDTHS: &[u8] = &[$(match $width { Some(width) => width, None => 0 }),*];
                match WIDTHS[self as usize] {
                    0 => None,
                    width => Some(width as usize),
                }
            }
        }
    };
}

scalars! {
    // variant  name         KIP-82   Iggy      width
    Bool        "bool"         Some(0), Some(3),  Some(1);
    Char        "char"         Some(2), None,     Some(2);
    Int8        "int8"         Some(1), Some(4),  Some(1);
    Int16       "int16"        Some(3), Some(5),  Some(2);
    Int32       "int32"        Some(4), Some(6),  Some(4);
    Int64       "int64"        Some(5), Some(7),  Some(8);
    Int128      "int128"       None,    Some(8),  Some(16);
    Uint8       "uint8"        None,    Some(9),  Some(1);
    Uint16      "uint16"       None,    Some(10), Some(2);
    Uint32      "uint32"       None,    Some(11), Some(4);
    Uint64      "uint64"       None,    Some(12), Some(8);
    Uint128     "uint128"      None,    Some(13), Some(16);
    Float32     "float32"      Some(6), Some(14), Some(4);
    Float64     "float64"      Some(7), Some(15), Some(8);
    String      "string"       Some(8), Some(2),  None;
    Binary      "binary"       Some(9), Some(1),  None;
    Uuid        "uuid"         None,    None,     Some(16);
    TimestampMs "timestamp_ms" None,    None,     Some(8);
}

impl Scalar {
    /// Whether a format has a code for the scalar. Other scalars only specify how a value is read.
    pub const fn is_wire_type(self) -> bool {
        self.kip82().is_some() || self.iggy().is_some()
    }
}

/// Type tag of a value in a typed format. An unnamed code is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ValueType {
    Named(Scalar),
    Unnamed(u8),
}

const UNNAMED: &str = "type-";

/// Last code with a name, in the format that allows codes without one.
const LAST_NAMED: u8 = 15;

impl ValueType {
    /// `int32`, or `type-200` for a code without a name.
    pub fn name(self) -> Cow<'static, str> {
        match self {
            ValueType::Named(scalar) => Cow::Borrowed(scalar.name()),
            ValueType::Unnamed(code) => Cow::Owned(format!("{UNNAMED}{code}")),
        }
    }

    /// The name padded with zeros, and its length. A copy of a fixed size is faster than a copy of the name alone.
    #[inline]
    pub fn padded_name(self) -> ([u8; MAX_NAME_LEN], usize) {
        match self {
            ValueType::Named(scalar) => PADDED[scalar as usize],
            ValueType::Unnamed(_) => pad_name(&self.name()),
        }
    }

    /// Number of bytes of a value; `None` if it varies.
    #[inline]
    pub fn width(self) -> Option<usize> {
        match self {
            ValueType::Named(scalar) => scalar.width(),
            ValueType::Unnamed(_) => None,
        }
    }

    /// Parses the result of `name`.
    pub fn parse(name: &str) -> Option<ValueType> {
        ValueType::from_padded(pad_name(name).0, name.len()).or_else(|| ValueType::parse_unnamed(name))
    }

    /// Returns the type whose name is the first `name_len` bytes; `None` for unnamed codes.
    #[inline(always)]
    pub fn from_padded(bytes: [u8; MAX_NAME_LEN], name_len: usize) -> Option<ValueType> {
        if !(1..=MAX_NAME_LEN).contains(&name_len) {
            return None;
        }
        let word = u64::from_le_bytes(bytes) & u64::MAX >> (8 * (MAX_NAME_LEN - name_len));
        let scalar = BY_NAME[slot_of(word)]?;
        let (bytes, len) = PADDED[scalar as usize];
        (u64::from_le_bytes(bytes) == word && len == name_len).then_some(ValueType::Named(scalar))
    }

    #[cold]
    fn parse_unnamed(name: &str) -> Option<ValueType> {
        if let Some(code) = name.strip_prefix(UNNAMED) {
            let value_type = ValueType::Unnamed(code.parse().ok().filter(|code| *code > LAST_NAMED)?);
            // Only one notation per type: neither `type-016` nor a number for a named type.
            return (value_type.name() == name).then_some(value_type);
        }
        None
    }
}

/// Length of the longest name of a type, `type-200`.
pub const MAX_NAME_LEN: usize = 8;

const PADDED: [([u8; MAX_NAME_LEN], usize); Scalar::ALL.len()] = {
    let mut table = [([0; MAX_NAME_LEN], 0); Scalar::ALL.len()];
    let mut index = 0;
    while index < table.len() {
        table[index] = pad_name(Scalar::ALL[index].name());
        index += 1;
    }
    table
};

/// Pads a name, or truncates one that is longer than the longest name of a type.
const fn pad_name(name: &str) -> ([u8; MAX_NAME_LEN], usize) {
    let bytes = name.as_bytes();
    let mut out = [0; MAX_NAME_LEN];
    let mut len = 0;
    while len < MAX_NAME_LEN && len < bytes.len() {
        out[len] = bytes[len];
        len += 1;
    }
    (out, len)
}

/// Slot of a name in the table. The factor was found by trial, so that no two types collide.
const fn slot_of(word: u64) -> usize {
    (word.wrapping_mul(0x1e75_963f_6bf1_f411) >> 59) as usize
}

const BY_NAME: [Option<Scalar>; 32] = {
    let mut table = [None; 32];
    let mut index = 0;
    while index < Scalar::ALL.len() {
        let scalar = Scalar::ALL[index];
        if scalar.is_wire_type() {
            let (bytes, _) = PADDED[index];
            let slot = &mut table[slot_of(u64::from_le_bytes(bytes))];
            assert!(slot.is_none(), "two types have the same slot");
            *slot = Some(scalar);
        }
        index += 1;
    }
    table
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TypeCodes {
    /// Values have no types.
    None,
    /// The ten type codes of the typed KIP-82 draft.
    Kip82,
    /// The fifteen `HeaderKind` codes of Apache Iggy; later codes pass through.
    Iggy,
    /// The fifteen codes of `Iggy`, and no others.
    IggyNamed,
}

impl TypeCodes {
    pub const fn is_typed(self) -> bool {
        !matches!(self, TypeCodes::None)
    }

    /// Returns the code of a type; `None` if the format has none for it.
    #[inline]
    pub fn code(self, value_type: ValueType) -> Option<u8> {
        match (self, value_type) {
            (TypeCodes::Kip82, ValueType::Named(scalar)) => scalar.kip82(),
            (TypeCodes::Iggy | TypeCodes::IggyNamed, ValueType::Named(scalar)) => scalar.iggy(),
            (TypeCodes::Iggy, ValueType::Unnamed(code)) => Some(code),
            _ => None,
        }
    }

    /// Returns the type of a code; `None` if the format does not define it.
    #[inline]
    pub fn value_type(self, code: u8) -> Option<ValueType> {
        let named =
            |table: &[Option<Scalar>; CODES]| table.get(usize::from(code)).copied().flatten().map(ValueType::Named);
        match self {
            TypeCodes::None => None,
            TypeCodes::Kip82 => named(&KIP82),
            TypeCodes::IggyNamed => named(&IGGY),
            TypeCodes::Iggy if code > LAST_NAMED => Some(ValueType::Unnamed(code)),
            TypeCodes::Iggy => named(&IGGY),
        }
    }
}

/// Number of codes that may have a name.
const CODES: usize = LAST_NAMED as usize + 1;

const KIP82: [Option<Scalar>; CODES] = by_code(true);
const IGGY: [Option<Scalar>; CODES] = by_code(false);

/// Inverse of the table of scalars: scalars by their codes.
const fn by_code(kip82: bool) -> [Option<Scalar>; CODES] {
    let mut table = [None; CODES];
    let mut index = 0;
    while index < Scalar::ALL.len() {
        let scalar = Scalar::ALL[index];
        if let Some(code) = if kip82 { scalar.kip82() } else { scalar.iggy() } {
            table[code as usize] = Some(scalar);
        }
        index += 1;
    }
    table
}
