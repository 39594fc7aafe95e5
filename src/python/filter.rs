//! Option `where`: a filter passed from Python.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};

use super::arguments::{argument, parse_choice};
use super::c_interface;
use super::capsule::Column;
use super::columns::{ColumnSpec, selections};
use super::gil::{enter, without_gil};
use crate::arrow;
use crate::arrow::filter::{
    Comparison, Filter, Literal, Literals, Operand, Pattern, Quantifier, Step, Substring, Test,
};
use crate::error::Error;

/// Mirrors `letterhead.where.program.Program`.
#[derive(FromPyObject)]
pub struct Program {
    headers: Vec<ColumnSpec>,
    fields: Vec<String>,
    steps: Vec<ProgramStep>,
}

/// Mirrors `letterhead.where.program.Step`. Operands are indexes of headers, then of fields; `and`, `or`, `not` and
/// `null` have none.
#[derive(FromPyObject)]
struct ProgramStep {
    name: String,
    operand: usize,
    quantifier: String,
    literals: Vec<LiteralArgument>,
}

#[derive(FromPyObject)]
pub enum LiteralArgument {
    Bool(bool),
    Int(i128),
    Float(f64),
    Text(PyBackedStr),
    Bytes(PyBackedBytes),
}

impl LiteralArgument {
    fn literal(self) -> Literal {
        match self {
            LiteralArgument::Bool(flag) => Literal::Bool(flag),
            LiteralArgument::Int(number) => Literal::Int(number),
            LiteralArgument::Float(number) => Literal::Float(number),
            LiteralArgument::Text(text) => Literal::Bytes(text.as_bytes().to_vec()),
            LiteralArgument::Bytes(bytes) => Literal::Bytes(bytes.to_vec()),
        }
    }
}

pub fn filter(Program { headers, fields, steps }: Program) -> Result<Filter, Error> {
    let steps = steps.into_iter().map(|argument| step(argument, headers.len())).collect::<Result<_, _>>()?;
    Ok(Filter { selections: selections(headers)?, fields, steps })
}

fn pattern(text: &[u8]) -> Result<Pattern, Error> {
    let text = std::str::from_utf8(text).map_err(|_| Error::Value("a regular expression is UTF-8".into()))?;
    Pattern::new(text)
}

/// Raises `ValueError` for text that is not a regular expression.
#[pyfunction]
pub fn check_pattern(text: &str) -> PyResult<()> {
    enter(|| Ok(Pattern::new(text).map(|_| ())?))
}

/// Evaluates a condition for each row of a table with [`arrow::truths::truths`].
#[pyfunction]
pub fn truths(
    py: Python<'_>,
    #[pyo3(from_py_with = argument::extract)] condition: Program,
    #[pyo3(from_py_with = argument::extract)] columns: Vec<Option<Bound<'_, PyAny>>>,
    rows: usize,
) -> PyResult<Column> {
    enter(|| {
        let columns = columns
            .iter()
            .map(|column| column.as_ref().map(c_interface::import_one).transpose())
            .collect::<PyResult<Vec<_>>>()?;
        let condition = filter(condition)?;
        let array = without_gil(py, || arrow::truths::truths(&condition, &columns, rows))?;
        Ok(Column { array: Arc::new(array) })
    })
}

fn step(ProgramStep { name, operand, quantifier, literals }: ProgramStep, headers: usize) -> Result<Step, Error> {
    let comparisons = [
        ("==", Comparison::Eq),
        ("!=", Comparison::Ne),
        ("<", Comparison::Lt),
        ("<=", Comparison::Le),
        (">", Comparison::Gt),
        (">=", Comparison::Ge),
    ];
    let mut literals = literals.into_iter().map(LiteralArgument::literal);
    let mut first = || literals.next().ok_or_else(|| Error::Internal(format!("where: '{name}' needs a literal")));
    let test = match name.as_str() {
        "and" => return Ok(Step::And),
        "or" => return Ok(Step::Or),
        "not" => return Ok(Step::Not),
        "null" => return Ok(Step::Null),
        "is_null" => Test::IsNull,
        "in" => Test::In(Literals::new(literals)),
        "matches" => match first()? {
            Literal::Bytes(text) => Test::Matches(pattern(&text)?),
            _ => return Err(Error::Internal("where: a regular expression is text".into())),
        },
        "starts_with" | "contains" => match first()? {
            Literal::Bytes(part) if name == "contains" => Test::Contains(Substring::new(&part)),
            Literal::Bytes(prefix) => Test::StartsWith(prefix),
            _ => return Err(Error::Internal("where: a part of a value is text or bytes".into())),
        },
        comparison => Test::Compare(parse_choice("comparison", comparison, &comparisons)?, first()?),
    };
    let operand = if operand < headers { Operand::Header(operand) } else { Operand::Field(operand - headers) };
    let quantifier = if quantifier == "all" { Quantifier::All } else { Quantifier::Any };
    Ok(Step::Test(operand, quantifier, test))
}
