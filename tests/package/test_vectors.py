"""The native module against everything the real Kafka said: message by message, and as columns."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.implementations import NATIVE, Implementation
from tests.helpers.vector_checks import (
    CHECKS,
    DRAFTS,
    IGGY,
    STATE,
    check_file,
    count_differences,
    listed_differences,
    listed_lines,
    read_lines,
)

every_way = pytest.mark.parametrize("implementation", NATIVE, ids=lambda way: way.name)


@every_way
@pytest.mark.parametrize("name", CHECKS)
def test_every_vector_matches(vectors: Path, name: str, implementation: Implementation) -> None:
    check_file(vectors, name, implementation)


@every_way
def test_listed_differences_from_java_are_complete(vectors: Path, implementation: Implementation) -> None:
    counts = count_differences(implementation, read_lines(vectors, "malformed"))
    assert counts == listed_differences(vectors)


def test_every_vectors_file_has_check(vectors: Path) -> None:
    files = {path.stem for path in vectors.glob("*.jsonl")}
    checked = {*CHECKS, *DRAFTS, *IGGY, *STATE, "record_batches"}
    assert checked == files == set(listed_lines(vectors))


def test_reference_works_without_native_module() -> None:
    program = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parents[2])!r}); sys.modules['letterhead._native'] = None\n"
        "from tests.reference import ops; import letterhead as lh\n"
        "assert ops.decode(ops.encode([('a', b'1')], 'kafka'), 'kafka') == [('a', None, b'1')]\n"
        "assert lh.Headers({'a': lh.Int32(1)}).frozen()\n"
        "loaded = {'pyarrow', 'pyspark', 'numpy', 'pandas'} & set(sys.modules)\n"
        "assert not loaded, loaded"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=300)
