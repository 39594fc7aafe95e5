"""Read a topic of an Iggy server into one table: letterhead against Iggy's own Python client, in alternating rounds.

    IGGY_SERVER=/path/to/iggy-server python -m benches.iggy_server [MESSAGES]

Messages have three typed headers. Both sides read the same topic over TCP on loopback, and their tables are compared.
Wall time contains the server; CPU time is that of the client alone. The client polls 1000 messages at a time, which is
where it is fastest.

The third side is that client without reading its messages: it polls 10000 at a time, and neither touches a message nor
decodes headers.

The fourth is a poll loop with Iggy's Rust client in `benches/opponents/iggy`, if it is built. It decodes the headers of
each message into a map, adds up what it finds, and keeps no column; the sums are compared with those of the table. Its
times begin before it connects, and end with the last message.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import letterhead as lh
from benches import machine
from tests.iggy.server import PASSWORD, USER, Server

RECORD = Path(__file__).parent / "record" / "iggy-server.json"
HEADERS = {"tenant": "string", "retry": "int32", "ratio": "float64"}
STEP = 50_000
ROUNDS = 5
POLL = 1000
BARE_POLL = 10_000
RUST = Path(__file__).parent / "opponents" / "iggy" / "target" / "release" / "letterhead-bench-iggy-poll"
RUST_POLL = 4000
LIMIT_SECONDS = 300
GOALS = {"apache-iggy": 10, "Rust client": 1}
"""How many times our wall time these sides take at least."""


def main(messages: int) -> None:
    """Fill a topic, read it in rounds, and write the record."""
    with tempfile.TemporaryDirectory() as directory:
        server = Server(Path(directory))
        server.start()
        try:
            server.create("bench", "topic")
            for first in range(0, messages, STEP):
                lh.write.iggy(_rows(first, min(first + STEP, messages)), server.address, stream="bench", topic="topic")
            sides: dict[str, Callable[[], Any]] = {
                "letterhead": lambda: _letterhead(server),
                "apache-iggy": lambda: asyncio.run(_client(server, messages)),
                "apache-iggy, polls alone": lambda: asyncio.run(_polls_alone(server, messages)),
            }
            ours, theirs, polled = (read() for read in sides.values())
            assert ours.equals(theirs.cast(ours.schema)), "the sides differ"
            assert polled == messages
            sums = _sums(ours)
            del ours, theirs
            timed: dict[str, Callable[[], tuple[float, float]]]
            timed = {side: partial(_timed, read) for side, read in sides.items()}
            if RUST.exists():
                timed["Rust client"] = lambda: _rust(server, sums)
                timed["Rust client"]()
            else:
                print("without Iggy's Rust client, which is not built", file=sys.stderr)
            rounds = [{side: measure() for side, measure in timed.items()} for _ in range(ROUNDS)]
        finally:
            server.stop()
    result: dict[str, Any] = {"messages": messages, "headers": len(HEADERS), "rounds": ROUNDS, "goals": GOALS}
    result |= {
        "taken": f"{datetime.now(UTC):%Y-%m-%d}",
        "load": round(os.getloadavg()[0]),
        "machine": machine.ran_on("src"),
    }
    for at, clock in ((0, "wall"), (1, "cpu")):
        result[f"{clock}_ns_per_message"] = {
            side: round(statistics.median(round_sums[side][at] for round_sums in rounds) / messages * 1e9)
            for side in timed
        }
        result[f"{clock}_ratio"] = {
            side: round(
                statistics.median(round_sums[side][at] / round_sums["letterhead"][at] for round_sums in rounds), 2
            )
            for side in timed
            if side != "letterhead"
        }
    print(json.dumps(result, indent=2))
    RECORD.write_text(json.dumps(result, indent=2) + "\n")


def _rows(first: int, end: int) -> pa.Table:
    header = pa.struct([("key", pa.string()), ("type", pa.string()), ("value", pa.binary())])
    headers = [
        [
            ("tenant", "string", b"acme"),
            ("retry", "int32", (row % 1000).to_bytes(4, "big")),
            ("ratio", "float64", b"?\xe0\0\0\0\0\0\0"),
        ]
        for row in range(first, end)
    ]
    payloads = [b"payload-%08d" % row for row in range(first, end)]
    return pa.table({"payload": payloads, "headers": pa.array(headers, pa.list_(header))})


def _timed(read: Callable[[], Any]) -> tuple[float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    table = read()
    times = time.perf_counter() - wall, time.process_time() - cpu
    del table  # not in the time, and its memory is there for the next round
    return times


def _letterhead(server: Server) -> pa.Table:
    with lh.read.iggy(
        server.address, stream="bench", topic="topic", columns=["offset", "payload"], headers=HEADERS
    ) as reader:
        return reader.read_all()


async def _client(server: Server, messages: int) -> pa.Table:
    poll = await _poller(server)
    columns: dict[str, list[Any]] = {name: [] for name in ("offset", "payload", *HEADERS)}
    while len(columns["offset"]) < messages:
        for message in await poll(len(columns["offset"]), POLL):
            headers = message.user_headers().to_scalar_dict()
            columns["offset"].append(message.offset())
            columns["payload"].append(message.payload())
            for name in HEADERS:
                columns[name].append(headers[name])
    return pa.table(columns)


async def _polls_alone(server: Server, messages: int) -> int:
    poll = await _poller(server)
    polled = 0
    while polled < messages:
        polled += len(await poll(polled, BARE_POLL))
    return polled


def _rust(server: Server, sums: tuple[float, ...]) -> tuple[float, float]:
    """Run the poll loop in Rust, compare its sums, and return its times."""
    command = [RUST, f"127.0.0.1:{server.port}", USER, PASSWORD, "bench", "topic", str(int(sums[0])), str(RUST_POLL)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=LIMIT_SECONDS, check=True)
    wall, cpu, *result_sums = map(float, done.stdout.split())
    assert tuple(result_sums) == sums, (result_sums, sums)
    return wall / 1e9, cpu / 1e9


def _sums(table: pa.Table) -> tuple[float, ...]:
    """Return messages, bytes of payloads and of tenants, and the sums of the two numbers."""
    lengths = (pc.sum(pc.binary_length(table[name])).as_py() for name in ("payload", "tenant"))
    return (table.num_rows, *lengths, *(pc.sum(table[name]).as_py() for name in ("retry", "ratio")))


async def _poller(server: Server) -> Callable[[int, int], Any]:
    import apache_iggy

    client = apache_iggy.IggyClient(f"127.0.0.1:{server.port}")
    await client.connect()
    await client.login_user(USER, PASSWORD)
    return lambda offset, count: client.poll_messages(
        stream="bench", topic="topic", consumer=apache_iggy.Consumer.Single("bench"), partition_id=0,
        polling_strategy=apache_iggy.PollingStrategy.Offset(offset), count=count, auto_commit=False,
    )  # fmt: skip


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
