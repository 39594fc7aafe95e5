"""Read a topic of an Iggy server into one table: letterhead against Iggy's own Python client, in alternating rounds.

    IGGY_SERVER=/path/to/iggy-server python -m benches.iggy_server [MESSAGES]

Messages have three typed headers. Both sides read the same topic over TCP on loopback, and their tables are compared.
Wall time contains the server; CPU time is that of the client alone. The client polls 1000 messages at a time, which is
where it is fastest.

The third side is a lower bound of a poll loop of Iggy's Rust library, which that client contains: it polls 10000 messages
at a time, and neither touches a message nor decodes headers.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

import letterhead as lh

sys.path.append(str(Path(__file__).parents[1] / "tests" / "iggy"))

from server import PASSWORD, USER, Server

RECORD = Path(__file__).parent / "record" / "iggy-server.json"
HEADERS = {"tenant": "string", "retry": "int32", "ratio": "float64"}
STEP = 50_000
ROUNDS = 5
POLL = 1000
BARE_POLL = 10_000


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
            del ours, theirs
            rounds = [{side: _timed(read) for side, read in sides.items()} for _ in range(ROUNDS)]
        finally:
            server.stop()
    result: dict[str, Any] = {"messages": messages, "headers": len(HEADERS), "rounds": ROUNDS}
    for at, what in ((0, "wall"), (1, "cpu")):
        result[f"{what}_ns_per_message"] = {
            side: round(statistics.median(each[side][at] for each in rounds) / messages * 1e9) for side in sides
        }
        result[f"{what}_ratio"] = {
            side: round(statistics.median(each[side][at] / each["letterhead"][at] for each in rounds), 1)
            for side in sides
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
