"""A server that is killed at random moments while rows are written and read."""

from __future__ import annotations

import itertools
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import letterhead as lh
from letterhead.errors import OffsetsGone
from letterhead.iggy.client import IggyClient, UnacknowledgedBatchError
from letterhead.iggy.topic_writer import IggySink
from letterhead.offsets.partition_log import TopicPartition
from tests.helpers import pages
from tests.helpers.killed_commands import start_program
from tests.iggy.server import DURABLE, Server

pytestmark = pytest.mark.iggy_server

KILLS = 20
PARTITIONS = 2
ROWS = 200
"""Rows of a batch; with their payload a write takes longer than what happens between writes."""

PAYLOAD = b"x" * 2000
SCHEMA = pa.schema(
    [
        ("payload", pa.binary()),
        ("headers", pa.list_(pa.struct([("key", pa.string()), ("type", pa.string()), ("value", pa.binary())]))),
    ]
)


@pytest.mark.filterwarnings("ignore::letterhead.errors.TruncatedTailWarning")
@pytest.mark.full
def test_killed_server_loses_and_repeats_no_acknowledged_row(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Written with a flush and fsync for each batch; ``server`` is another one, and skips this test if there is none."""
    lost = counted_losses(monkeypatch)
    other = Server(tmp_path)
    other.start()
    try:
        other.create("tests", "durable", PARTITIONS, DURABLE)
        writer, reader = Writer(other), Reader(other)
        moments = random.Random(1)
        for _ in range(KILLS):
            before = writer.acknowledged
            until = time.monotonic() + 30
            while writer.acknowledged < before + 5 and writer.is_alive() and time.monotonic() < until:
                time.sleep(0.001)
            time.sleep(moments.random() / 5)
            other.kill()
            start_after_kill(other)
        writer.finish()
        reader.finish(writer.acknowledged * ROWS)
        other.kill()
        start_after_kill(other)
        with lh.read.iggy(
            other.address, stream="tests", topic="durable", columns=["partition"], headers={"retry": "int32"}
        ) as topic_reader:
            rows = sorted(topic_reader.read_all()["retry"].to_pylist())
        assert rows == list(range(writer.acknowledged * ROWS))
        assert sorted(reader.rows) == rows
        assert writer.acknowledged >= 5 * KILLS
        assert len(lost) >= KILLS / 2, "most kills are to hit a batch that is on its way"
    finally:
        other.stop()


@pytest.mark.filterwarnings("ignore::letterhead.errors.TruncatedTailWarning")
@pytest.mark.parametrize("kills", [2, pytest.param(KILLS, marks=pytest.mark.full)])
def test_copy_to_a_killed_server_has_every_message_once(kills: int, server: Server, tmp_path: Path) -> None:
    other = Server(tmp_path)
    other.start()
    try:
        other.create("tests", "durable", 1, DURABLE)
        copy = Copy(other, kills)
        moments = random.Random(2)
        for kill in range(kills):
            until = time.monotonic() + 30
            while copy.read < 10 * (kill + 1) and copy.is_alive() and time.monotonic() < until:
                time.sleep(0.001)
            assert copy.is_alive(), "the copy ended before the server was killed"
            time.sleep(moments.random() / 20)
            other.kill()
            start_after_kill(other)
        copy.finish()
        with lh.read.iggy(
            other.address, stream="tests", topic="durable", columns=["id"], headers={"retry": "int32"}
        ) as reader:
            table = reader.read_all()
        assert table["retry"].to_pylist() == list(range(copy.read * ROWS))
        assert table["id"].to_pylist() == [number_id(row) for row in range(copy.read * ROWS)]
    finally:
        other.stop()


ENDLESS = """
import sys
import pyarrow as pa
import letterhead as lh

schema = pa.schema([("partition", pa.int64()), ("id", pa.binary()), ("origin_timestamp", pa.timestamp("us", "UTC")), ("payload", pa.binary())])

def batches():
    row = 0
    while True:
        ids = [number.to_bytes(16, "little") for number in range(row + 1, row + 101)]
        yield pa.record_batch([[0] * 100, ids, [row] * 100, [b"x"] * 100], schema=schema)
        row += 100

try:
    lh.copy(pa.RecordBatchReader.from_batches(schema, batches()), sys.argv[1])
except KeyboardInterrupt:
    sys.exit(130)
"""


def test_ctrl_c_ends_a_copy_to_a_server_that_does_not_answer(server: Server, create: Callable[..., str]) -> None:
    target = f"{server.address}/tests/{create(1)}"
    process, _, _ = start_program(ENDLESS, target)
    until = time.monotonic() + 60
    while not lh.open(target, columns=["offset"]).read_all().num_rows:
        assert time.monotonic() < until
    with server.paused():
        time.sleep(1)  # a batch waits for its acknowledgement
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130
    rows = lh.open(target, columns=["id"]).read_all()["id"].to_pylist()
    assert rows == [number_id(row) for row in range(len(rows))]


def number_id(row: int) -> bytes:
    return (row + 1).to_bytes(16, "little")


@pytest.mark.filterwarnings("ignore::letterhead.errors.TruncatedTailWarning")
def test_truncated_batch_is_removed_before_server_starts(server: Server, tmp_path: Path) -> None:
    other = Server(tmp_path)
    other.start()
    try:
        other.create("tests", "durable", 1, DURABLE)
        with IggySink(other.address, SCHEMA, stream="tests", topic="durable") as sink:
            for batch in itertools.islice(batches(), 3):
                sink.write(batch)
        other.kill()
        (log,) = other.partitions.rglob("*.log")
        os.truncate(log, log.stat().st_size - 1)
        start_after_kill(other)
        with lh.read.iggy(other.address, stream="tests", topic="durable", headers={"retry": "int32"}) as reader:
            assert reader.read_all()["retry"].to_pylist() == list(range(2 * ROWS))
    finally:
        other.stop()


def start_after_kill(server: Server) -> None:
    """Start it, without what the kill tore, which this version does not start with. It was not acknowledged."""
    streams = {"/var/lib/iggy/local_data/streams": str(server.partitions)}
    pages.run("docs/how-to/iggy-server.md", {}, info="python repair", there=streams)
    server.start()


def counted_losses(monkeypatch: pytest.MonkeyPatch) -> list[UnacknowledgedBatchError]:
    """Collect how often a connection ended before a batch was acknowledged."""
    lost = []
    send = IggyClient.send

    def counting(self: IggyClient, place: TopicPartition, batch: bytes, count: int) -> int:
        try:
            return send(self, place, batch, count)
        except UnacknowledgedBatchError as error:
            lost.append(error)
            raise

    monkeypatch.setattr(IggyClient, "send", counting)
    return lost


class Worker(threading.Thread):
    """A thread that works until it is told to end, and whose error the test gets."""

    def __init__(self, server: Server) -> None:
        super().__init__(daemon=True)
        self.address = server.address
        self.ended = threading.Event()
        self.error: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            self.work()
        except BaseException as error:
            self.error = error

    def work(self) -> None:
        raise NotImplementedError

    def finish(self) -> None:
        self.ended.set()
        self.join(60)
        assert not self.is_alive()
        if self.error is not None:
            raise self.error


class Writer(Worker):
    """Appends rows numbered from 0, and counts the batches that were acknowledged."""

    acknowledged = 0

    def work(self) -> None:
        with IggySink(self.address, SCHEMA, stream="tests", topic="durable", timeout_ms=30_000) as sink:
            for batch in batches():
                if self.ended.is_set():
                    return
                sink.write(batch)
                self.acknowledged += 1


class Copy(Worker):
    """Copies messages of one partition, and counts the batches that were read of the source."""

    read = 0

    def __init__(self, server: Server, kills: int) -> None:
        self.batches = 10 * kills + 20
        super().__init__(server)

    def work(self) -> None:
        copied = lh.copy(pa.RecordBatchReader.from_batches(self.schema, self.source()), f"{self.address}/tests/durable")
        assert copied.rows == self.batches * ROWS

    schema = pa.schema(
        [("partition", pa.int64()), ("id", pa.binary()), ("origin_timestamp", pa.timestamp("us", "UTC")), *SCHEMA]
    )

    def source(self) -> Iterator[pa.RecordBatch]:
        for number, batch in enumerate(itertools.islice(batches(), self.batches)):
            ids = [number_id(row) for row in range(number * ROWS, (number + 1) * ROWS)]
            columns = [[0] * ROWS, ids, [number] * ROWS, *batch.columns]
            yield pa.record_batch(columns, schema=self.schema)
            self.read += 1


def batches() -> Iterator[pa.RecordBatch]:
    for first in itertools.count(0, ROWS):
        headers = [[("retry", "int32", row.to_bytes(4, "big"))] for row in range(first, first + ROWS)]
        yield pa.record_batch([[PAYLOAD] * ROWS, pa.array(headers, SCHEMA.field("headers").type)], schema=SCHEMA)


class Reader(Worker):
    """Reads what is there again and again, each time from where it ended before."""

    expected: int | None = None

    def __init__(self, server: Server) -> None:
        self.rows: list[int] = []
        super().__init__(server)

    def finish(self, expected: int) -> None:
        self.expected = expected
        super().finish()

    def work(self) -> None:
        after = dict.fromkeys(range(PARTITIONS), 0)
        until = None
        while True:
            try:
                self.read_from(after)
            except OffsetsGone as gone:
                # The server already counts a batch that it is still writing. A kill loses it, but nothing that was read.
                assert gone.offset == after[gone.partition], gone
            if self.expected is not None:
                until = until or time.monotonic() + 20
                if len(self.rows) >= self.expected or time.monotonic() > until:
                    return

    def read_from(self, after: dict[int, int]) -> None:
        """Read to the current end; ``after`` are the next offsets of the partitions."""
        with lh.read.iggy(
            self.address, stream="tests", topic="durable", columns=["partition", "offset"],
            headers={"retry": "int32"}, start=dict(after), timeout_ms=30_000,
        ) as reader:  # fmt: skip
            for batch in reader:
                for partition, offset, retry in zip(*batch.to_pydict().values(), strict=True):
                    assert offset == after[partition], f"partition {partition}: {offset} after {after[partition]}"
                    after[partition] += 1
                    self.rows.append(retry)
