"""Memory and time of tables follow what is read of them, not what a file claims, and nothing is read before it is validated."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest

import letterhead as lh
from letterhead.errors import DamagedTableError
from tests.helpers.hostile_tables import FILES, arrow_file, parquet_file, wrong_buffers

# A batch has 64 MiB, and is decompressed, validated and converted in copies.
MOST_BYTES = 256 << 20

# pyarrow takes about 10 kB for each column of a Parquet file.
MOST_BYTES_OF = {"40,000 columns": 40_000 * 15_000}

# A schema, the first row, and the last row.
PROGRAM = """
import sys, letterhead as lh
from pathlib import Path
def peak():
    # Of this process alone: ru_maxrss begins with that of the parent.
    return 1024 * int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0])
for path in sys.argv[1:]:
    Path("/proc/self/clear_refs").write_text("5")
    before = peak()
    try:
        reader = lh.open(path)
        next(reader, None)
        reader.close()
        lh.open(path, last=1).read_all()
        outcome = "read"
    except lh.errors.LetterheadError as error:
        outcome = str(error)
print(outcome)
print(peak() - before)
"""


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Tables that are read first: imports and threads take memory, too."""
    directory = tmp_path_factory.mktemp("usual")
    table = pa.table({"a": ["x" * 10] * 1000, "b": range(1000)})
    (directory / "parquet").write_bytes(parquet_file(table))
    (directory / "arrow").write_bytes(arrow_file(pa.array(["x"] * 1000), "zstd"))
    (directory / "json").write_bytes(b'{"a":[1]}\n' * 1000)
    return [str(directory / name) for name in ("parquet", "arrow", "json")]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the peak of memory is reset and read in /proc")
@pytest.mark.parametrize("name", FILES)
def test_memory_follows_amount_read(name: str, usual: list[str], tmp_path: Path) -> None:
    data = FILES[name]()
    (tmp_path / "table").write_bytes(data)
    start = time.monotonic()
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, *usual, str(tmp_path / "table")], capture_output=True, text=True, timeout=60
    )
    assert run.returncode == 0, run.stderr
    outcome, grown = run.stdout.splitlines()
    assert int(grown) < MOST_BYTES_OF.get(name, max(20 * len(data), MOST_BYTES)), (outcome, time.monotonic() - start)
    reasons = ("raise decompressed_bytes in", "raise headers in", "unterminated string")
    assert outcome == "read" or any(reason in outcome for reason in reasons)


BUFFERS = dict(wrong_buffers())


@pytest.mark.parametrize("name", BUFFERS)
def test_damaged_buffer_is_rejected_before_reading(name: str, tmp_path: Path) -> None:
    (tmp_path / "table").write_bytes(BUFFERS[name])
    with pytest.raises(DamagedTableError, match=r"cannot read .*table: it is damaged"):
        lh.open(tmp_path / "table").read_all()
