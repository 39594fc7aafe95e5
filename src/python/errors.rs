//! Conversion of errors of the core to the exceptions of `letterhead.errors`.

use pyo3::exceptions::{PyMemoryError, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::{Direction, Error, ErrorDetail, Located, Loss};

impl From<Error> for PyErr {
    #[cold]
    #[inline(never)]
    fn from(error: Error) -> PyErr {
        match error {
            Error::Type(text) => PyTypeError::new_err(printable(text)),
            Error::Value(text) => PyValueError::new_err(printable(text)),
            Error::Memory(refused) => PyMemoryError::new_err(printable(refused.to_string())),
            Error::Internal(text) => internal_error(&text),
            Error::Headers(direction, located) => {
                Python::attach(|py| header_error(py, direction, *located)).unwrap_or_else(|failure| failure)
            }
        }
    }
}

/// Escapes unprintable characters, because the text may contain names from data, such as those of struct fields.
fn printable(text: String) -> String {
    let escape = |py: Python<'_>| -> PyResult<String> {
        py.import("letterhead._formatting")?.getattr("printable")?.call1((&text,))?.extract()
    };
    Python::attach(escape).unwrap_or_else(|_| text.escape_debug().to_string())
}

/// Exception for a bug of this library.
pub fn internal_error(text: &str) -> PyErr {
    PyRuntimeError::new_err(internal_text(text))
}

pub fn internal_text(text: &str) -> String {
    format!("letterhead failed inside: {text}")
}

fn header_error(py: Python<'_>, direction: Direction, located: Located) -> PyResult<PyErr> {
    let class = match direction {
        Direction::Decode => "DecodeError",
        Direction::Encode => "EncodeError",
        Direction::Convert => "ConversionError",
    };
    let Located { format, row, error } = located;
    let attributes = PyDict::new(py);
    attributes.set_item("format", format)?;
    attributes.set_item("code", error.code.name())?;
    attributes.set_item("byte_offset", error.byte)?;
    attributes.set_item("row", row)?;
    attributes.set_item("header", error.header)?;
    attributes.set_item("key", error.key)?;
    attributes.set_item("column", error.column)?;
    let error = py.import("letterhead.errors")?.getattr(class)?.call((error.message,), Some(&attributes))?;
    Ok(PyErr::from_value(error))
}

/// `(code, message, byte_offset, header, key, column)`
pub type ErrorTuple = (&'static str, String, Option<usize>, Option<usize>, Option<String>, Option<String>);

pub fn error_tuple(error: ErrorDetail) -> ErrorTuple {
    (error.code.name(), error.message, error.byte, error.header, error.key, error.column)
}

/// `(code, message, header, key, type, written)`
pub type LossTuple = (&'static str, String, Option<usize>, Option<String>, Option<String>, Option<&'static str>);

pub fn loss_tuple(loss: Loss) -> LossTuple {
    (loss.code.name(), loss.message, loss.header, loss.key, loss.value_type, loss.written)
}
