"""Reading a topic takes memory for a few polls, however many messages there are."""

from __future__ import annotations

import subprocess
import sys

import pyarrow as pa
import pytest

import letterhead as lh
from tests.iggy.server import Server

pytestmark = pytest.mark.iggy_server

MIB = 1 << 20
FETCH_BYTES = 4 * MIB
STEP = 50_000

PROGRAM = """
import sys
from pathlib import Path
import letterhead as lh
address, end, fetch_bytes = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
with lh.read.iggy(
    address, stream="memory", topic="topic", columns=["offset", "payload"], fetch_bytes=fetch_bytes,
    headers={"tenant": "string", "retry": "int32", "ratio": "float64"}, end={0: end},
) as reader:
    rows = sum(batch.num_rows for batch in reader)
# Not ru_maxrss: it contains what the parent had before this program began.
[high] = [line.split()[1] for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")]
print(rows, int(high) * 1024)
"""


def peak(server: Server, rows: int, fetch_bytes: int = FETCH_BYTES) -> int:
    """Return the peak of resident memory of a process that reads some messages."""
    arguments = [sys.executable, "-c", PROGRAM, server.address, str(rows), str(fetch_bytes)]
    read, bytes_ = subprocess.run(arguments, check=True, capture_output=True, text=True).stdout.split()
    assert int(read) == rows
    return int(bytes_)


def fill(server: Server, count: int) -> None:
    """Append messages with three typed headers."""
    server.create("memory", "topic")
    headers = [
        [("tenant", "string", b"acme"), ("retry", "int32", b"\0\0\0\7"), ("ratio", "float64", b"?\xe0" + bytes(6))]
    ]
    kind = pa.list_(pa.struct([("key", pa.string()), ("type", pa.string()), ("value", pa.binary())]))
    part = pa.table({"payload": [b"x" * 64] * STEP, "headers": pa.array(headers * STEP, kind)})
    for _ in range(0, count, STEP):
        lh.write.iggy(part, server.address, stream="memory", topic="topic")


@pytest.mark.full
def test_a_million_messages_need_no_more_memory_than_100_000(server: Server) -> None:
    fill(server, 1_000_000)
    started = peak(server, 1000)
    few, many = peak(server, 100_000), peak(server, 1_000_000)
    assert many < few + 2 * FETCH_BYTES
    # Replies and the columns made of them: about eight times, as the documentation says.
    assert many < started + 12 * FETCH_BYTES
    assert peak(server, 1_000_000, MIB) < many - FETCH_BYTES
