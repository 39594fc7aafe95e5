//! One header as a walk hands it over.

use std::borrow::Cow;
use std::fmt;

use crate::kind::Kind;

/// The key of a header, in the three forms that formats have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Key<'a> {
    Text(Cow<'a, str>),
    Int(i32),
    Typed(Kind, &'a [u8]),
}

impl<'a> From<&'a str> for Key<'a> {
    #[inline]
    fn from(text: &'a str) -> Self {
        Key::Text(Cow::Borrowed(text))
    }
}

/// Which form the keys of a format have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyForm {
    Text,
    Int,
    Typed,
}

/// One header as a walk hands it over: its place among its fellows, and where its value begins in the cell, for faults
/// that a sink finds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header<'a> {
    pub index: usize,
    pub key: Key<'a>,
    pub kind: Option<Kind>,
    pub value: Option<&'a [u8]>,
    pub at: Option<usize>,
}

impl fmt::Display for Key<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Key::Text(text) => out.write_str(text),
            Key::Int(number) => write!(out, "{number}"),
            Key::Typed(kind, bytes) => write!(out, "{}", kind.show(bytes)),
        }
    }
}
