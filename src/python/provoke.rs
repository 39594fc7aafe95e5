//! [`provoke_panic`], for tests of the conversion of panics to exceptions. Only debug builds have it.

use pyo3::prelude::*;
use pyo3::types::PyString;

use super::gil::{enter, without_gil};

/// Panics in the conversion of the argument, in the body of the function, or in work without the GIL.
#[pyfunction]
pub fn provoke_panic(py: Python<'_>, #[pyo3(from_py_with = stage)] stage: &str) -> PyResult<()> {
    enter(|| {
        assert!(stage != "body", "provoked");
        without_gil(py, || panic!("provoked"))
    })
}

fn stage<'a>(argument: &'a Bound<'_, PyAny>) -> PyResult<&'a str> {
    enter(|| {
        let stage = argument.cast::<PyString>()?.to_str()?;
        assert!(stage != "argument", "provoked");
        Ok(stage)
    })
}
