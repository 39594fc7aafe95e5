//! Limits on what is read: the bytes of a value, its headers, what compressed messages may become, and the records and
//! bytes that one value may turn into. They bound the memory that untrusted bytes can take; the defaults only affect
//! hostile input.

use std::ffi::OsString;

use crate::error::{Code, Error, Fault, counted};
use crate::mode::{Exact, Mode, Stop};

/// The most that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a cell, before anything in it is looked at.
    pub cell_bytes: usize,
    /// Headers of a message.
    pub headers: usize,
    /// Bytes that the records of one batch, or one compressed set, may become.
    pub decompressed_bytes: usize,
    /// Records of one value that holds many: a batch, or several batches one after another.
    pub records: usize,
    /// Bytes of keys, values, ids and headers of these records together.
    pub output_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits::DEFAULT
    }
}

/// A limit as a user meets it: its name, the variable that sets it for a process, and what it counts.
#[derive(Debug, Clone, Copy)]
pub struct Limit {
    pub name: &'static str,
    pub variable: &'static str,
    counts: &'static str,
}

pub const CELL_BYTES: Limit = Limit { name: "cell_bytes", variable: "LETTERHEAD_MAX_CELL_BYTES", counts: "bytes" };
pub const HEADERS: Limit = Limit { name: "headers", variable: "LETTERHEAD_MAX_HEADERS", counts: "headers" };
pub const DECOMPRESSED_BYTES: Limit =
    Limit { name: "decompressed_bytes", variable: "LETTERHEAD_MAX_DECOMPRESSED_BYTES", counts: "bytes" };

pub const RECORDS: Limit = Limit { name: "records", variable: "LETTERHEAD_MAX_RECORDS", counts: "records" };
pub const OUTPUT_BYTES: Limit =
    Limit { name: "output_bytes", variable: "LETTERHEAD_MAX_OUTPUT_BYTES", counts: "bytes" };

impl Limit {
    /// What to do about a limit that is too low.
    pub fn hint(&self) -> String {
        format!("raise {} in limits= or {}", self.name, self.variable)
    }

    fn in_variable(&self, value: Option<OsString>, default: usize) -> Result<usize, Error> {
        let Some(value) = value else { return Ok(default) };
        let text = value.to_string_lossy();
        let number = text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten();
        number.ok_or_else(|| {
            let Limit { variable, counts, .. } = self;
            Error::Value(format!("{variable} is '{text}', and a whole number of {counts} is meant"))
        })
    }
}

impl Limits {
    pub const DEFAULT: Limits = Limits {
        // What one cell of an Arrow column with 32-bit offsets can hold.
        cell_bytes: i32::MAX as usize,
        // Twice what the largest message that Kafka usually takes can hold; 30 MB of columns, or 125 MB of objects.
        headers: 1_000_000,
        decompressed_bytes: 64 << 20,
        // A log segment of Kafka has 1 GiB unless configured otherwise. At 107 bytes per record both limits are met at once.
        records: 10_000_000,
        output_bytes: 1 << 30,
    };

    /// The defaults with what variables of the environment say.
    pub fn from_variables(get: impl Fn(&str) -> Option<OsString>) -> Result<Limits, Error> {
        let Limits { cell_bytes, headers, decompressed_bytes, records, output_bytes } = Limits::DEFAULT;
        let read = |limit: Limit, default| limit.in_variable(get(limit.variable), default);
        Ok(Limits {
            cell_bytes: read(CELL_BYTES, cell_bytes)?,
            headers: read(HEADERS, headers)?,
            decompressed_bytes: read(DECOMPRESSED_BYTES, decompressed_bytes)?,
            records: read(RECORDS, records)?,
            output_bytes: read(OUTPUT_BYTES, output_bytes)?,
        })
    }

    /// Refuses a cell for its size.
    #[inline(always)] // Once a row: a compare beside the walk of its headers.
    pub fn check_cell<M: Mode>(&self, len: usize, mode: &mut M) -> Result<(), Stop> {
        if len <= self.cell_bytes { Ok(()) } else { Err(self.cell_too_large(len, mode)) }
    }

    #[cold]
    fn cell_too_large<M: Mode>(&self, len: usize, mode: &mut M) -> Stop {
        let most = self.cell_bytes;
        mode.hard(Code::LimitExceeded, Some(most), || {
            format!("the cell has {}, over the limit of {most}: {}", counted(len, "byte"), CELL_BYTES.hint())
        })
    }

    /// The same for who has no walk to end.
    pub fn refusal_of_cell(&self, len: usize) -> Option<Fault> {
        let mut mode = Exact::default();
        self.check_cell(len, &mut mode).err()?;
        mode.faults.pop()
    }

    /// Refuses a number of headers that is announced at a place.
    #[inline(always)] // Once a row, as above.
    pub fn check_count<M: Mode>(&self, count: usize, at: usize, mode: &mut M) -> Result<(), Stop> {
        if count <= self.headers { Ok(()) } else { Err(self.too_many_announced(count, at, mode)) }
    }

    #[cold]
    fn too_many_announced<M: Mode>(&self, count: usize, at: usize, mode: &mut M) -> Stop {
        let most = self.headers;
        mode.hard(Code::LimitExceeded, Some(at), || {
            let count = counted(count, "header");
            format!("the block announces {count}, over the limit of {most}: {}", HEADERS.hint())
        })
    }

    /// Refuses the header of this number where a block does not announce how many it has.
    #[inline(always)] // Once a header: the number is at hand.
    pub fn check_header<M: Mode>(&self, index: usize, at: usize, mode: &mut M) -> Result<(), Stop> {
        if index < self.headers { Ok(()) } else { Err(self.too_many(at, mode)) }
    }

    #[cold]
    fn too_many<M: Mode>(&self, at: usize, mode: &mut M) -> Stop {
        let most = self.headers;
        mode.hard(Code::LimitExceeded, Some(at), || {
            format!("the block has more headers than the limit of {most}: {}", HEADERS.hint())
        })
    }

    /// Refuses a message of a batch, of so many bytes, if the value has too many records, or they take too many bytes.
    ///
    /// The error names no byte: what is too large is the value as a whole, which may be compressed.
    #[inline] // Once a record.
    pub fn check_message(&self, bytes: usize, exact: &mut Exact) -> Result<(), Stop> {
        exact.output_bytes = exact.output_bytes.saturating_add(bytes);
        match exact.messages <= self.records && exact.output_bytes <= self.output_bytes {
            true => Ok(()),
            false => self.value_too_large(exact),
        }
    }

    #[cold]
    fn value_too_large(&self, exact: &mut Exact) -> Result<(), Stop> {
        let (what, most, limit) = match exact.messages > self.records {
            true => ("the value has more records than", self.records, RECORDS),
            false => ("the records of the value take more bytes than", self.output_bytes, OUTPUT_BYTES),
        };
        exact.over_limit = true;
        let message = format!("{what} the limit of {most}: {}", limit.hint());
        exact.column(|| Fault::of_message(Code::LimitExceeded, message)).and(Err(Stop))
    }
}
