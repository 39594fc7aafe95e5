"""The records that are read directly, how they come onto a topic or into a segment, and what their columns add up to.

Record ``n`` is in partition ``n % 2`` at offset ``n // 2``. It has the same five headers as every other one, in the same
order: a trace of 55 bytes that no codec makes small, two numbers, a name of four bytes, and one that is null. All columns
add up to what a formula says, so that every job can be compared with an answer that no reader computed.
"""

from __future__ import annotations

import multiprocessing
import os
import struct
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from benches import data

ROWS = int(os.environ.get("LETTERHEAD_BENCH_RECORDS") or (20_000 if data.QUICK else 2_000_000))
TOPIC = "direct"
PARTITIONS = 2
FIRST_TIME = 1_767_225_600_000
TENANTS = [b"acme", b"beta", b"gaia", b"zeta"]
SCHEMAS = 16
HEADERS = 5

TYPED = {"tenant": "string", "schema-id": "int32", "amount": "int64"}
"""The headers that are asked for as typed columns."""

if ROWS % 160:
    raise ValueError(f"LETTERHEAD_BENCH_RECORDS is {ROWS}: the formulas, and a tenth of it, need a multiple of 160")


class Record(NamedTuple):
    """One record."""

    timestamp: int
    key: bytes
    value: bytes
    headers: list[tuple[str, bytes | None]]


class Answer(NamedTuple):
    """What the columns of the first records of both partitions add up to."""

    rows: int
    offsets: int
    amounts: int
    schemas: int
    tenant_bytes: int
    trace_bytes: int
    timestamps: int
    numbers: int


def answer(rows: int = ROWS) -> Answer:
    """Work it out by formula."""
    numbers = rows * (rows - 1) // 2
    here = rows // PARTITIONS
    return Answer(
        rows=rows,
        offsets=PARTITIONS * (here * (here - 1) // 2),
        amounts=3 * numbers + rows,
        schemas=rows // SCHEMAS * sum(range(SCHEMAS)),
        tenant_bytes=4 * rows,
        trace_bytes=55 * rows,
        timestamps=FIRST_TIME * rows + numbers,
        numbers=numbers,
    )


def record(number: int) -> Record:
    """Make a record."""
    trace, span = number * 0x9E3779B97F4A7C15F39CC0605CEDC835 % (1 << 128), number * 0x9E3779B97F4A7C15 % (1 << 64)
    return Record(
        FIRST_TIME + number,
        b"%08d" % number,
        b'{"order":"%08d","customer":"c-%04d","lines":[{"sku":"A-%04d","count":%d}]}'
        % (number, number % 9973, number % 7919, number % 10),
        [
            ("traceparent", b"00-%032x-%016x-01" % (trace, span)),
            ("schema-id", struct.pack(">i", number % SCHEMAS)),
            ("tenant", TENANTS[number % len(TENANTS)]),
            ("amount", struct.pack(">q", 3 * number + 1)),
            ("n", None),
        ],
    )


def fill(address: str) -> None:
    """Write all records to a new topic: lz4, in batches as large as a broker takes."""
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": address, "log_level": 3})
    admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result(timeout=30)
    # A loop of Python is what takes the time, so there are as many as partitions.
    with ProcessPoolExecutor(PARTITIONS, multiprocessing.get_context("spawn")) as pool:
        list(pool.map(_fill_partition, [address] * PARTITIONS, range(PARTITIONS)))


def _fill_partition(address: str, partition: int) -> None:
    from confluent_kafka import Producer

    producer = Producer({
        "bootstrap.servers": address, "log_level": 3, "enable.idempotence": True, "compression.type": "lz4",
        "linger.ms": 500, "batch.size": 1_000_000, "queue.buffering.max.messages": 100_000,
    })  # fmt: skip
    failed: list[Any] = []

    def delivered(error: Any, _message: Any) -> None:
        if error is not None:
            failed.append(error)

    for number in range(partition, ROWS, PARTITIONS):
        timestamp, key, value, headers = record(number)
        while True:
            try:
                producer.produce(
                    TOPIC, value, key, partition, on_delivery=delivered, timestamp=timestamp, headers=headers
                )
                break
            except BufferError:
                producer.poll(0.1)
        if number % 2000 < PARTITIONS:
            producer.poll(0)
    left = producer.flush(60)
    if left or failed:
        raise RuntimeError(f"{left} records were not sent in a minute, {len(failed)} were refused: {failed[:3]}")


def write_segments(directory: Path) -> None:
    """Write all records into segments as a broker would, without one and without a codec."""
    import letterhead as lh

    def batches(partition: int, size: int = 1000) -> Iterator[bytes]:
        for base in range(0, ROWS // PARTITIONS, size):
            numbers = range(base, min(base + size, ROWS // PARTITIONS))
            yield lh.batch(
                {"offset": number, **record(PARTITIONS * number + partition)._asdict()} for number in numbers
            )

    for partition in range(PARTITIONS):
        folder = directory / f"{TOPIC}-{partition}"
        folder.mkdir(parents=True)
        (folder / f"{0:020}.log").write_bytes(b"".join(batches(partition)))


def typed() -> dict[str, Any]:
    """Ask for the typed headers, with names that need no quotes in SQL."""
    import letterhead as lh

    return {name.replace("-", "_"): lh.field(type, key=name) for name, type in TYPED.items()}
