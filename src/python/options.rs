//! Options of operations as Python classes. Arguments are checked when an object is created, and pickled with it.

use pyo3::PyTypeInfo;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMapping, PyTuple};

use super::arguments::{self, TypesArgument, argument, limits_or_default, parse_choice, type_option};
use super::gil::enter;
use crate::error::Error;
use crate::log::OnError;
use crate::options;

/// Default name of the column of errors.
pub const ERROR_COLUMN: &str = "error";

/// Arguments by which an object is compared, hashed, printed and pickled.
#[pyclass(frozen, subclass, module = "letterhead._native")]
pub struct Arguments(pub Py<PyDict>);

#[pymethods]
impl Arguments {
    fn __getnewargs_ex__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyTuple>, Py<PyDict>)> {
        enter(|| Ok((PyTuple::empty(py), self.0.clone_ref(py))))
    }

    fn __eq__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        enter(|| match other.cast::<Self>() {
            Ok(other) if other.get_type().is(slf.get_type()) => slf.get().0.bind(slf.py()).eq(&other.get().0),
            _ => Ok(false),
        })
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        enter(|| self.0.bind(py).items().to_tuple().hash())
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        enter(|| {
            let passed = slf.get().0.bind(slf.py()).iter().filter(|(_, value)| !value.is_none());
            let passed =
                passed.map(|(name, value)| Ok(format!("{name}={}", value.repr()?))).collect::<PyResult<Vec<_>>>()?;
            Ok(format!("{}({})", slf.get_type().name()?, passed.join(", ")))
        })
    }
}

/// Collects the arguments of an object by name, in the order of its constructor.
macro_rules! passed {
    ($py:expr, $($name:literal: $value:expr),* $(,)?) => {{
        let passed = ::pyo3::types::PyDict::new($py);
        $(passed.set_item($name, $value)?;)*
        PyClassInitializer::from($crate::python::options::Arguments(passed.unbind()))
    }};
}
pub(super) use passed;

/// Strictness of reading, and the policy for messages that cannot be read.
#[pyclass(frozen, extends = Arguments, module = "letterhead._native")]
pub struct DecodeOptions {
    pub on_error: OnError,
    #[pyo3(get)]
    pub errors: String,
    #[pyo3(get)]
    pub error_column: String,
    #[pyo3(get)]
    strict_types: bool,
    lenient: bool,
    text_keys: bool,
    /// Limits argument. Unset limits stay unset: the process that unpickles the object applies its own defaults.
    #[pyo3(get)]
    pub limits: Option<Py<PyAny>>,
}

#[pymethods]
impl DecodeOptions {
    #[new]
    #[pyo3(signature = (*, errors="raise", error_column="error", lenient=false, strict_types=false, text_keys=false, limits=None))]
    fn new(
        py: Python<'_>,
        #[pyo3(from_py_with = argument::errors)] errors: &str,
        #[pyo3(from_py_with = argument::error_column)] error_column: &str,
        #[pyo3(from_py_with = argument::lenient)] lenient: bool,
        #[pyo3(from_py_with = argument::strict_types)] strict_types: bool,
        #[pyo3(from_py_with = argument::text_keys)] text_keys: bool,
        limits: Option<Bound<'_, PyAny>>,
    ) -> PyResult<PyClassInitializer<Self>> {
        enter(|| {
            let on_error = on_error(errors)?;
            if error_column != ERROR_COLUMN && !on_error.is_column() {
                return Err(Error::Value("error_column= names the column of errors='column'".into()).into());
            }
            if limits.is_some() {
                limits_or_default(py, limits.as_ref())?;
            }
            let base = passed!(py, "errors": errors, "error_column": error_column, "lenient": lenient,
                "strict_types": strict_types, "text_keys": text_keys, "limits": &limits);
            Ok(base.add_subclass(DecodeOptions {
                on_error,
                errors: errors.to_owned(),
                error_column: error_column.to_owned(),
                strict_types,
                lenient,
                text_keys,
                limits: limits.map(Bound::unbind),
            }))
        })
    }
}

impl DecodeOptions {
    pub fn read(&self, py: Python<'_>) -> PyResult<options::ReadOptions> {
        let limits = limits_or_default(py, self.limits.as_ref().map(|limits| limits.bind(py)))?;
        let DecodeOptions { lenient, strict_types, text_keys, .. } = *self;
        Ok(options::ReadOptions { lenient, strict_types, text_keys, limits })
    }
}

/// Returns the options, or the default options.
pub fn or_default<'py, T: PyTypeInfo>(py: Python<'py>, options: Option<Bound<'py, T>>) -> PyResult<Bound<'py, T>> {
    options.map_or_else(|| Ok(py.get_type::<T>().call0()?.cast_into()?), Ok)
}

/// Types of the values to write, and the policy for losses.
#[pyclass(frozen, extends = Arguments, module = "letterhead._native")]
pub struct WriteOptions {
    #[pyo3(get)]
    on_loss: String,
    pub write: options::WriteOptions,
}

#[pymethods]
impl WriteOptions {
    #[new]
    #[pyo3(signature = (*, on_loss="raise", types=None, nulls="skip", canonical=false))]
    fn new(
        py: Python<'_>,
        #[pyo3(from_py_with = argument::on_loss)] on_loss: &str,
        types: Option<Bound<'_, PyAny>>,
        #[pyo3(from_py_with = argument::nulls)] nulls: &str,
        #[pyo3(from_py_with = argument::canonical)] canonical: bool,
    ) -> PyResult<PyClassInitializer<Self>> {
        enter(|| {
            let plain = py.import("letterhead.results")?.call_method1("to_native_types", (&types,))?;
            let write = options::WriteOptions {
                on_loss: arguments::on_loss(on_loss)?,
                types: type_option(plain.extract::<Option<TypesArgument>>()?)?,
                refuse_null_headers: arguments::refuses_nulls(nulls)?,
                canonical,
            };
            // Copied, because the caller may change a mapping.
            let types = types.map(|types| match types.cast::<PyMapping>() {
                Ok(mapping) => py.get_type::<PyDict>().call1((mapping,)),
                Err(_) => Ok(types.clone()),
            });
            let base =
                passed!(py, "on_loss": on_loss, "types": types.transpose()?, "nulls": nulls, "canonical": canonical);
            Ok(base.add_subclass(WriteOptions { on_loss: on_loss.to_owned(), write }))
        })
    }
}

pub fn on_error(name: &str) -> Result<OnError, Error> {
    // For internal callers that count rows with errors. Errors do not list this value, because it is not public.
    if name == "null-column" {
        return Ok(OnError::NullColumn);
    }
    parse_choice(
        "errors value",
        name,
        &[("raise", OnError::Raise), ("null", OnError::Null), ("column", OnError::Column)],
    )
}
