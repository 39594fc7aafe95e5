"""Each row of the table of memory in the reference of limits: an input that takes more than 20 times its size, and its bound."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="the peak of memory is reset and read in /proc"),
]

MIB = 1 << 20

COPIES = 4
"""Copies of decompressed text or columns: as it is read, validated, converted, and as the result."""

PRELUDE = """
import gzip, sys, tempfile
from pathlib import Path
import pyarrow as pa
import letterhead as lh
from letterhead import arrow as lha
from tests.helpers.hostile_tables import FILES, arrow_file, parquet_file
from tests.package.test_reports import squeezed

directory = Path(tempfile.mkdtemp())

def peak():
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.partition("VmHWM:")[2].split()[0])

def table(data):
    path = directory / "table"
    path.write_bytes(data)
    lh.errors  # imported before memory is measured
    try:
        for batch in lh.open(path):
            del batch
    except lh.errors.LetterheadError as error:
        assert "limits" in str(error), error

def write_store(directory, value):
    from letterhead.state import Stores, ValueTimestampHeaders
    from letterhead.state.context import ChangelogList, StoreContext

    supplier = Stores.persistent_timestamped_key_value_store_with_headers("s")
    store = Stores.timestamped_key_value_store_with_headers_builder(supplier).build()
    store.open(directory, StoreContext("app", changelog=ChangelogList()))
    store.put(b"k", ValueTimestampHeaders.make(value, 0, lh.Headers([("k", b"v")])))
    store.close()

# What every reading needs once, such as imports and threads, is not memory of the input.
table(b'{"a":[1]}\\n' * 1000)
table(arrow_file(pa.array(["x"] * 1000), "zstd"))
table(parquet_file(pa.table({"a": ["x"] * 1000})))
lha.messages(pa.array([squeezed(bytes([12, 0, 0, 0, 1, 1, 0]), 1)]), "record-batch")
"""

MEASURE = """
Path("/proc/self/clear_refs").write_text("5")
before = peak()
"""


class Row(NamedTuple):
    """Code that makes ``data``, code that reads it, and the bytes that each of ``count`` things, and all together, may take."""

    make: str
    read: str
    each: int
    together: int = 0


def _table(name: str) -> Row:
    return Row(f"data = FILES[{name!r}](); count = len(data)", "table(data)", 20, COPIES * 64 * MIB)


ROWS = {
    "compressed batches of a topic, log segments or a column": Row(
        "count = 2_000_000; data = pa.array([squeezed(bytes([12, 0, 0, 0, 1, 1, 0]) * count, count)])",
        "lha.messages(data, 'record-batch', threads=1)", 100, 128 * MIB,
    ),
    "very short headers": Row(
        "count = 500_000; data = lh.encode([('k', b'')] * count, 'kafka')",
        "lh.convert(data, 'kafka', target='kip82-typed', types='binary'), lh.decode(data, 'kafka')", 200, 32 * MIB,
    ),
    "errors, losses and labels": Row(
        "count = 64 * 2000; data = pa.array([lh.encode([('k', b'')] * 64, 'kafka')] * 2000)",
        "lha.convert(data, 'kafka', target='iggy', types='binary', on_loss='report')", 200, 32 * MIB,
    ),
    "a line of a compressed file of JSON lines": _table("a line of 80 MB"),
    "a line of JSON with many elements": Row(
        "count = 900_000; data = b'{\"a\":[' + b'1,' * (count - 1) + b'1]}\\n'", "table(data)", 100, 32 * MIB
    ),
    "JSON lines with many names": _table("10,000 different names"),
    "a compressed batch of an Arrow file": Row(
        "count = 60 * 2**20; data = arrow_file(pa.array(bytes(10) for _ in range(count // 10)), 'zstd')", "table(data)", 0,
        COPIES * 64 * MIB,
    ),
    "a compressed Parquet file": _table("compressed Parquet"),
    "a Parquet file with many columns": Row(
        "count = 10_000; data = parquet_file(pa.table({f'c{n}': [1] for n in range(count)}))", "table(data)", 15_000
    ),
    "dictionary and run-end encoded columns": _table("values of a Parquet dictionary"),
    "a value of a state store": Row(
        "count = 32 * 2**20; write_store(directory, b'v' * count)", "lh.read.state(directory).read_all()", 20
    ),
}  # fmt: skip


THREADS = 8
BATCHES = "count = 16; batch = pa.array([squeezed(bytes(60 * 2**20), 1)] * count)"
BATCHES_BY_THREADS = {"an array": "batch", "chunks": "pa.chunked_array([batch] * 8)"}


@pytest.mark.parametrize("name", ROWS)
def test_input_takes_no_more_memory_than_documented(name: str) -> None:
    verify(ROWS[name])


@pytest.mark.parametrize("name", BATCHES_BY_THREADS)
def test_threads_do_not_multiply_memory_of_compressed_batches(name: str) -> None:
    read = f"[*lha.messages(data, 'record-batch', errors='null', threads={THREADS})]"
    row = Row(f"{BATCHES}; data = {BATCHES_BY_THREADS[name]}", read, 0, 128 * MIB + THREADS * 16 * MIB)
    # The allocator keeps pages of threads that have ended for a while; how many depends on the moment.
    verify(row, MIMALLOC_PURGE_DELAY="0")


def verify(row: Row, **environment: str) -> None:
    """Check the memory of a row in a process of its own."""
    code = "\n".join([PRELUDE, row.make, MEASURE, f"result = {row.read}", "print(count, peak() - before)"])
    ended = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **environment}, capture_output=True, text=True, timeout=120
    )
    assert ended.returncode == 0, ended.stderr
    count, grown = map(int, ended.stdout.split())
    assert grown <= row.each * count + row.together, f"{grown / MIB:.0f} MiB for {count:,}"


def test_each_row_of_memory_page_is_measured() -> None:
    page = (Path(__file__).parents[2] / "docs/reference/limits.md").read_text()
    table = page.partition("| input | memory at most | bounded by |\n")[2].partition("\n\n")[0]
    assert {line.split("|")[1].strip() for line in table.splitlines()[1:]} == {*ROWS}
