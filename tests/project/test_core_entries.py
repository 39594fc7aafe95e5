"""A panic of the core is an exception in Python: each function and method that Python calls runs inside of `gil::enter`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

SOURCES = sorted((Path(__file__).parents[2] / "src" / "python").glob("*.rs"))

# What PyO3 converts without code of this library, and without memory whose size a caller states.
CONVERTED = re.compile(
    r"&?(mut )?self|Python<.*>|&?(Option<)?&?(Bound|Py|PyBuffer)<[^,]*(, [^,]*)?>>?|(Option<)?(&str|&\[u8\]|bool|i64|usize)>?"
)


class Entry(NamedTuple):
    """A function or method that Python calls."""

    name: str
    parameters: list[str]
    result: str
    body: str


def entries(text: str) -> Iterator[Entry]:
    """Yield the functions and methods of a module."""
    for match in re.finditer(r"#\[pyfunction\]\n(?:#\[.*\]\n)*pub fn ", text):
        yield entry(text[match.end() :])
    for match in re.finditer(r"^#\[pymethods\]\nimpl \w+ \{\n(.*?)^\}", text, re.MULTILINE | re.DOTALL):
        for method in re.finditer(r"^    (?:pub )?fn ", match[1], re.MULTILINE):
            yield entry(match[1][method.end() :])


def entry(text: str) -> Entry:
    """Return the function whose name begins the text."""
    signature, _, rest = text.partition(" {\n")
    parts = re.fullmatch(r"(\w+)(?:<[^(]*>)?\((.*)\)(?: -> (.*))?", " ".join(signature.split()))
    assert parts is not None, signature
    # Commas between parameters are followed by a name, or an attribute.
    parameters = re.split(r", ?(?=#\[|(?:r#)?\w+: |$)", parts[2])
    return Entry(parts[1], [parameter.strip() for parameter in parameters if parameter], parts[3] or "", rest)


ENTRIES = [(path.name, entry) for path in SOURCES for entry in entries(path.read_text(encoding="utf-8"))]


def test_all_core_entries_are_found() -> None:
    marks = sum(path.read_text(encoding="utf-8").count("#[pyfunction]") for path in SOURCES)
    assert len(ENTRIES) > marks > 25
    assert {"decode", "apply", "__next__", "__contains__", "new"} <= {entry.name for _, entry in ENTRIES}


@pytest.mark.parametrize(("module", "entry"), ENTRIES, ids=[f"{module}:{entry.name}" for module, entry in ENTRIES])
def test_body_and_conversions_run_inside_enter(module: str, entry: Entry) -> None:
    assert entry.result.startswith("PyResult<")
    assert entry.body.lstrip().startswith("enter(|| ")
    # Nothing comes after it: the next line as deep as the signature closes the function.
    statement = (
        entry.body.partition("\n    }\n")[0] if entry.body.startswith("        ") else entry.body.partition("\n}\n")[0]
    )
    assert statement.rstrip().endswith(")")
    for parameter in entry.parameters:
        if parameter.startswith("#[pyo3(from_py_with = argument::"):
            continue
        of = parameter.partition(": ")[2] or parameter
        assert CONVERTED.fullmatch(of), f"{parameter}: convert it by argument::extracted"
