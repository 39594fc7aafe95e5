//! Properties that hold for any bytes: a file for each target, and a row here.
//!
//! The first byte or bytes of an input are options, the rest is the value, so that one input is one case. No target
//! matches on a format where the table of formats has the answer.

pub mod batches;
pub mod codecs;
pub mod columns;
pub mod convert;
pub mod decode;
pub mod edit;
pub mod filter;
pub mod imported;
pub mod json;
pub mod log;
pub mod modes;
pub mod pack;
pub mod roundtrip;
pub mod seal;
pub mod select;
pub mod selections;
pub mod serialized_rows;
pub mod stored;
pub mod structures;

use letterhead::format::Format;
use letterhead::format_info::{Class, FormatInfo};
use letterhead::options::ReadOptions;

/// A check of hostile bytes.
pub struct Target {
    pub name: &'static str,
    /// The names of the formats that it tests, or of codecs or layouts.
    pub subjects: fn() -> Vec<&'static str>,
    /// Panics if the property does not hold.
    pub check: fn(&str, &[u8]),
}

pub const ALL: [Target; 14] = [
    decode::TARGET,
    columns::TARGET,
    roundtrip::TARGET,
    batches::TARGET,
    codecs::TARGET,
    convert::TARGET,
    select::TARGET,
    filter::TARGET,
    stored::TARGET,
    log::TARGET,
    imported::TARGET,
    edit::TARGET,
    pack::TARGET,
    json::TARGET,
];

/// The names of the formats that satisfy a condition.
fn formats(has: impl Fn(&FormatInfo) -> bool) -> Vec<&'static str> {
    Format::ALL.iter().map(|format| format.info()).filter(|info| has(info)).map(|info| info.name).collect()
}

fn formats_of_one() -> Vec<&'static str> {
    formats(|info| info.class != Class::Batch)
}

fn named(name: &str) -> Format {
    Format::from_name(name).expect("a format of the table")
}

/// A byte of options, bit by bit.
#[derive(Clone, Copy)]
struct Shape(u8);

impl Shape {
    /// The options and the bytes after them; `None` without bytes.
    fn split(data: &[u8]) -> Option<(Shape, &[u8])> {
        data.split_first().map(|(first, rest)| (Shape(*first), rest))
    }

    fn bit(self, place: u32) -> bool {
        self.0 >> place & 1 == 1
    }

    /// Some bits as a number.
    fn bits(self, place: u32, count: u32) -> usize {
        usize::from(self.0 >> place) & ((1 << count) - 1)
    }

    /// The options in the lowest three bits.
    fn options(self) -> ReadOptions {
        ReadOptions {
            lenient: self.bit(0),
            strict_types: self.bit(1),
            text_keys: self.bit(2),
            ..ReadOptions::default()
        }
    }
}
