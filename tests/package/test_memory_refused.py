"""Memory that the system refuses is a MemoryError with the size and the column, and the process goes on."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import NamedTuple

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="the limit is set from what /proc says"),
]

ROWS = 2000
"""Rows of 1 MiB: a result that nears the 2 GiB of an Arrow column."""

PROGRAM = """
import resource, struct, sys
import pyarrow as pa
import letterhead as lh
from letterhead import arrow as lha
from tests.package.test_reports import squeezed

MIB = 1 << 20

def repeated(value, rows={rows}):
    # Views of one value: the input is small, and each row that is written has all of its bytes.
    _, views, *data = pa.array([value]).cast(pa.binary_view()).buffers()
    return pa.Array.from_buffers(pa.binary_view(), rows, [None, pa.py_buffer(views.to_pybytes() * rows), *data])

def lists(values):
    header = pa.StructArray.from_arrays([pa.array(["k"] * len(values)), values], ["key", "value"])
    return pa.ListArray.from_arrays(pa.array(range(len(values) + 1), pa.int32()), header)

def small():
    message = lh.encode({{"k": b"v"}}, "kafka")
    assert lh.decode(message, "kafka")["k"] == b"v"
    assert lha.select(pa.array([message]), {{"k": "string"}}).to_pylist() == [{{"k": "v"}}]

large = repeated(lh.encode({{"k": b"v" * (MIB - 99)}}, "kafka"))
tiny = pa.array([lh.encode({{"a": b"1"}}, "kafka")] * {rows})
{setup}
small()
pages = int(open("/proc/self/statm").read().split()[0])
resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + ({room} << 20),) * 2)
try:
    result = {call}
except Exception as error:
    print(type(error).__name__, error)
small()
"""


class Case(NamedTuple):
    """A call, what it needs, the column that its error names, and the MiB that the process may still take."""

    call: str
    setup: str = ""
    column: str = ""
    room: int = 100


BATCHES = (
    "batch = lh.batch([{'value': b'x' * MIB, 'headers': [('k', b'v' * MIB)]}], codec='zstd'); "
    f"batches = pa.array([batch] * {ROWS})"
)

CASES = {
    "select": Case("lha.select(large, {'out': lh.field('string', key='k')})", column="out"),
    "select by two threads": Case("lha.select(large, {'k': 'binary'}, threads=2)", column="k"),
    "select of a stream": Case(
        "pa.chunked_array(lha.select(pa.chunked_array([large]), {'k': 'binary'}))", column="k"
    ),
    "select with a condition": Case(
        "lha.select(large, {'k': 'binary'}, where=\"k is not null\")", column="where"
    ),
    "default": Case("lha.select(tiny, {'k': lh.field('string', default='d' * MIB)})", column="k"),
    "default of numbers": Case(
        "lha.select(many, {'k': lh.field('int64', default=1)})",
        "many = pa.array([None, lh.encode({}, 'kafka')] * 8_000_000)", "k",
    ),
    "lists of numbers": Case(
        "lha.select(many, {'k': 'array<int64>'})",
        "many = repeated(lh.encode({'k': bytes(8)}, 'kafka'), 16_000_000)", "k",
    ),
    "decode": Case("lha.decode(large, 'kafka')"),
    "decode of short messages": Case(
        "lha.decode(many, 'kafka')", "many = repeated(lh.encode({'a': b'1'}, 'kafka'), 30_000_000)", "headers"
    ),
    "errors of rows": Case(
        "lha.select(broken, {'k': 'string'}, errors='column')", "broken = pa.array([b'\\5'] * 2_000_000)"
    ),
    "encode": Case("lha.encode(headers, 'kafka')", "headers = lists(repeated(b'v' * MIB))"),
    "encode of stored values": Case(
        "lha.encode(values, 'streams')",
        "payload = repeated(b'v' * MIB); "
        "values = pa.StructArray.from_arrays([lists(payload), payload], ['headers', 'payload'])",
    ),
    "convert": Case("lha.convert(large, 'kafka', target='kip82-typed', types='binary')"),
    "edit that sets a value": Case("lha.edit(tiny, 'kafka', set={'b': b'w' * MIB})"),
    "edit of large messages": Case("lha.edit(large, 'kafka', rename={'k': 'l'})"),
    "edit of records": Case(
        "lha.edit(values, 'streams', set={'b': b'w'})",
        "values = repeated(lh.encode({'headers': [('k', b'')], 'payload': b'v' * MIB}, 'streams'))",
    ),
    "pack": Case("lha.pack(columns)", "columns = pa.table({'k': repeated(b'v' * MIB)})", "k"),
    "messages": Case("lha.messages(batches, 'record-batch')", BATCHES, "headers|value"),
    "messages with headers": Case("lha.messages(batches, 'record-batch', headers={'h': lh.field('string', key='k')})", BATCHES, "headers|h|value"),
    "amqp": Case("lha.amqp(texts, 'string')", "texts = repeated(b'\\xb1' + MIB.to_bytes(4, 'big') + b'v' * MIB)"),
    "a batch to write": Case("lh.batch(records)", "records = [{'value': b'v' * MIB, 'headers': []}] * 1500"),
    "a message to write": Case("lh.encode(headers, 'kafka')", "headers = [('k', b'v' * MIB)] * 1500"),
    "decompressed records": Case(
        "lha.messages(batches, 'record-batch', limits=lh.Limits(decompressed_bytes=1 << 31))",
        "batches = pa.array([squeezed(bytes(500_000_000), 1)])",
    ),
    "the window of a decoder": Case(
        "lha.messages(pa.array([batch]), 'record-batch')",
        "from letterhead import _native; data = bytearray(lh.batch([{'value': b'v', 'headers': []}], codec='zstd')); "
        "data[61:] = bytes.fromhex('28b52ffd0088010000'); data[8:12] = struct.pack('>i', len(data) - 12); "
        "batch = _native.with_checksum(bytes(data))",
        room=60,
    ),
    "lines": Case("_native.json_lines(rows)", "from letterhead import _native; rows = pa.RecordBatch.from_arrays([large], ['k'])"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_refused_allocation_raises_with_size(name: str) -> None:
    case = CASES[name]
    code = PROGRAM.format(rows=ROWS, **case._asdict())
    # The allocator asks the system for each large column, and keeps no reserve.
    variables = {**os.environ, "MIMALLOC_ARENA_RESERVE": "8MiB"}
    ended = subprocess.run([sys.executable, "-c", code], env=variables, capture_output=True, text=True, timeout=120)
    assert (ended.returncode, ended.stderr) == (0, "")
    found = re.fullmatch(
        r"(Arrow)?MemoryError no memory for (the )?(\d+) bytes( of column (.*))?: pass fewer rows .*\n", ended.stdout
    )
    assert found, ended.stdout
    assert int(found[3]) > 8 << 20
    assert re.fullmatch(case.column, found[5] or "")
