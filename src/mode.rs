//! How closely a walk looks. One walk is written; it runs in a mode.
//!
//! [`Fast`] says only good or bad. A row that fails it is rolled back in the sink and walked again by [`Exact`], which
//! alone makes faults: their code, byte, header and key. A third mode, [`Labelled`], also names every byte. All three are
//! monomorphised, so the fast one carries no trace of the others.

use crate::error::{Code, Fault};
use crate::header::Key;

/// A walk has to end here. What was wrong is with the mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stop;

/// What a writer does with what its format cannot carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnLoss {
    #[default]
    Raise,
    Drop,
    Report,
}

/// How closely a walk looks. Formats and sinks report through it and never build a message that nobody reads.
pub trait Mode {
    /// Ends the walk: what follows cannot be found.
    fn hard(&mut self, code: Code, byte: Option<usize>, message: impl FnOnce() -> String) -> Stop;

    /// Notes a fault that leaves the rest readable; the fast mode stops all the same.
    fn soft(&mut self, code: Code, byte: Option<usize>, message: impl FnOnce() -> String) -> Result<(), Stop>;

    /// As `soft`, for a fault that belongs to an output column rather than to the place of the walk.
    fn column(&mut self, fault: impl FnOnce() -> Fault) -> Result<(), Stop>;

    /// Notes something the target cannot carry.
    fn loss(&mut self, loss: impl FnOnce() -> Fault) -> Result<(), Stop>;

    /// Says which header faults belong to from here on; `None` after the last.
    fn enter_header(&mut self, _index: Option<usize>) {}

    /// Names the key of the header entered.
    fn name_header(&mut self, _key: &Key<'_>) {}

    /// Names bytes of the cell.
    fn label(&mut self, _start: usize, _end: usize, _field: &'static str, _text: impl FnOnce() -> String) {}
}

/// Good or bad, nothing else.
pub struct Fast {
    pub on_loss: OnLoss,
}

impl Mode for Fast {
    #[inline]
    fn hard(&mut self, _: Code, _: Option<usize>, _: impl FnOnce() -> String) -> Stop {
        Stop
    }

    #[inline]
    fn soft(&mut self, _: Code, _: Option<usize>, _: impl FnOnce() -> String) -> Result<(), Stop> {
        Err(Stop)
    }

    #[inline]
    fn column(&mut self, _: impl FnOnce() -> Fault) -> Result<(), Stop> {
        Err(Stop)
    }

    #[inline]
    fn loss(&mut self, _: impl FnOnce() -> Fault) -> Result<(), Stop> {
        match self.on_loss {
            OnLoss::Drop => Ok(()),
            OnLoss::Raise | OnLoss::Report => Err(Stop),
        }
    }
}

/// Every fault with its place.
#[derive(Debug, Default)]
pub struct Exact {
    pub on_loss: OnLoss,
    pub faults: Vec<Fault>,
    pub losses: Vec<Fault>,
    /// The structure broke: what comes after the break was not read.
    pub broken: bool,
    header: Option<usize>,
    key: Option<String>,
}

impl Exact {
    pub fn new(on_loss: OnLoss) -> Self {
        Exact { on_loss, ..Exact::default() }
    }

    fn note(&mut self, code: Code, byte: Option<usize>, message: String) {
        let (header, key) = (self.header, self.key.clone());
        self.faults.push(Fault { code, message, byte, header, key, column: None });
    }
}

impl Mode for Exact {
    #[cold]
    fn hard(&mut self, code: Code, byte: Option<usize>, message: impl FnOnce() -> String) -> Stop {
        self.note(code, byte, message());
        self.broken = true;
        Stop
    }

    #[cold]
    fn soft(&mut self, code: Code, byte: Option<usize>, message: impl FnOnce() -> String) -> Result<(), Stop> {
        self.note(code, byte, message());
        Ok(())
    }

    #[cold]
    fn column(&mut self, fault: impl FnOnce() -> Fault) -> Result<(), Stop> {
        self.faults.push(fault());
        Ok(())
    }

    #[cold]
    fn loss(&mut self, loss: impl FnOnce() -> Fault) -> Result<(), Stop> {
        match self.on_loss {
            OnLoss::Drop => {}
            OnLoss::Raise | OnLoss::Report => self.losses.push(loss()),
        }
        Ok(())
    }

    fn enter_header(&mut self, index: Option<usize>) {
        self.header = index;
        self.key = None;
    }

    fn name_header(&mut self, key: &Key<'_>) {
        self.key = Some(key.to_string());
    }
}

/// Bytes of a cell and the field they belong to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    pub start: usize,
    pub end: usize,
    pub field: &'static str,
    pub header: Option<usize>,
    pub text: String,
}

/// [`Exact`], which also remembers what every byte is.
#[derive(Debug, Default)]
pub struct Labelled {
    pub exact: Exact,
    pub labels: Vec<Label>,
}

impl Mode for Labelled {
    fn hard(&mut self, code: Code, byte: Option<usize>, message: impl FnOnce() -> String) -> Stop {
        self.exact.hard(code, byte, message)
    }

    fn soft(&mut self, code: Code, byte: Option<usize>, message: impl FnOnce() -> String) -> Result<(), Stop> {
        self.exact.soft(code, byte, message)
    }

    fn column(&mut self, fault: impl FnOnce() -> Fault) -> Result<(), Stop> {
        self.exact.column(fault)
    }

    fn loss(&mut self, loss: impl FnOnce() -> Fault) -> Result<(), Stop> {
        self.exact.loss(loss)
    }

    fn enter_header(&mut self, index: Option<usize>) {
        self.exact.enter_header(index);
    }

    fn name_header(&mut self, key: &Key<'_>) {
        self.exact.name_header(key);
    }

    fn label(&mut self, start: usize, end: usize, field: &'static str, text: impl FnOnce() -> String) {
        let header = self.exact.header;
        self.labels.push(Label { start, end, field, header, text: text() });
    }
}
