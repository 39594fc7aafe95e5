//! [`provoke_panic`], for tests of the conversion of panics to exceptions. Only debug builds have it.

use pyo3::prelude::*;

use super::gil::{enter, without_gil};

/// Panics in the conversion of the argument, in the body of the function, or in work without the GIL.
#[pyfunction]
pub fn provoke_panic(py: Python<'_>, #[pyo3(from_py_with = stage)] stage: String) -> PyResult<()> {
    enter(|| {
        assert!(stage != "body", "provoked");
        without_gil(py, || panic!("provoked"))
    })
}

fn stage(argument: &Bound<'_, PyAny>) -> PyResult<String> {
    enter(|| {
        let stage: String = argument.extract()?;
        assert!(stage != "argument", "provoked");
        Ok(stage)
    })
}
