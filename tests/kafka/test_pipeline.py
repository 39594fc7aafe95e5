"""From a topic through Spark to topics: every byte arrives, in its order, and what is bad is set aside with its bytes.

The code is that of `docs/how-to/set-bad-rows-aside.md`.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pyarrow.parquet as pq
import pytest

from letterhead import spark as lhs
from tests.kafka.broker import QUICK_JVM, ROOT, stacks
from tests.kafka.page import Page
from tests.kafka.topics import Place, Record, consume, create, damage, orders, place, produce

pytestmark = pytest.mark.broker

SMALL = 2_000
LARGE = 100_000
numbers = itertools.count()


@pytest.fixture
def page(broker) -> Page:
    """The page, on topics of this test alone."""
    page = Page(broker, f"test{next(numbers)}-")
    create(broker, page.source, page.clean, page.quarantine)
    return page


def test_java_reads_produced_records_unchanged(broker, page, samples):
    records = orders(samples, 100)
    produce(broker, page.source, records)
    assert consume(broker, page.source) == {place(number): record for number, record in _in_order(records)}


def test_batch_edits_named_headers_and_quarantine_restores_input(broker, page, spark, samples):
    records, harmed = damage(orders(samples, 1_000))
    assert len(harmed) == 10
    produce(broker, page.source, records)
    names = page.run(spark)

    expected = [_edited(record) for number, record in _in_order(records) if number not in harmed]
    assert list(consume(broker, page.clean).values()) == expected
    kept = consume(broker, page.quarantine)
    _check_quarantine(kept, page.source, records, harmed)
    output = {dict(record.headers)["quarantine.errors"].decode() for record in kept.values()}
    assert page.example in output

    restored = {
        Place(row.partition, row.offset): Record(row.key, row.value, [tuple(header) for header in row.headers])
        for row in names["as_they_were"].collect()
    }
    assert restored == {place(number): records[number] for number in harmed}


def test_stream_continues_where_it_stopped(broker, page, spark, samples, tmp_path):
    records, harmed = damage(orders(samples, SMALL))
    first = len(records) // 2
    names = page.define(spark)
    names["edited"] = lambda rows: rows
    counts = []
    for start, part in ((0, records[:first]), (first, []), (first, records[first:])):
        produce(broker, page.source, part, first=start)
        queries = names["stream"](str(tmp_path), 600)
        try:
            assert all(query.awaitTermination(540) for query in queries)
            counts.append([sum(progress.numInputRows for progress in query.recentProgress) for query in queries])
        finally:
            for query in queries:
                query.stop()
    assert counts == [[first] * 3, [0] * 3, [len(records) - first] * 3]

    good = [record for number, record in _in_order(records) if number not in harmed]
    assert list(consume(broker, page.clean).values()) == good
    _check_quarantine(consume(broker, page.quarantine), page.source, records, harmed)
    _check_tables(spark, tmp_path, records, harmed)


def test_truncated_values_are_set_aside_and_stream_continues(broker, page, spark, samples, tmp_path):
    """On a changelog topic the headers to read are in the value, as Kafka Streams wrote it."""
    store = pq.read_table(samples / "store-latest-0.parquet").slice(0, SMALL).to_pylist()
    records = [Record(row["key"], row["value"], [("number", str(n).encode())]) for n, row in enumerate(store)]
    harmed = dict.fromkeys(range(7, len(records), 100))
    for number in harmed:
        records[number] = records[number]._replace(value=records[number].value[: 20 + number % 40])
    produce(broker, page.source, records)
    names = page.define(spark)
    names["edited"] = lambda rows: rows
    names["typed"] = lambda rows: lhs.select_headers(
        rows, names["COLUMNS"], column="value", format="streams-timestamped", keep=names["RECORD"], errors="column"
    )
    queries = names["stream"](str(tmp_path), SMALL)
    try:
        assert all(query.awaitTermination(540) for query in queries)
    finally:
        for query in queries:
            query.stop()
    good = [record for number, record in _in_order(records) if number not in harmed]
    assert list(consume(broker, page.clean).values()) == good
    _check_quarantine(consume(broker, page.quarantine), page.source, records, harmed)
    assert len(_rows(spark, tmp_path / "table")) == len(good)


@pytest.mark.full
@pytest.mark.parametrize(("count", "rows_per_batch"), [(SMALL, 600), (LARGE, 10_000)], ids=["small", "large"])
def test_killed_driver_omits_nothing(broker, page, spark, samples, tmp_path, count, rows_per_batch):
    records, harmed = damage(orders(samples, count))
    produce(broker, page.source, records)
    prefix = page.source.removesuffix("orders")

    with _driver(broker, prefix, tmp_path, rows_per_batch) as driver:
        _wait_for_the_middle_of_a_batch(tmp_path / "checkpoints" / "kafka", driver)
        os.killpg(driver.pid, signal.SIGKILL)  # Python and its JVM
        assert driver.wait(30) == -signal.SIGKILL
    before = len(consume(broker, page.clean)) + len(consume(broker, page.quarantine))
    assert 0 < before < len(records)

    with _driver(broker, prefix, tmp_path, rows_per_batch) as driver:
        assert driver.wait(150) == 0, (tmp_path / "driver.log").read_text()[-4000:]
    _check_tables(spark, tmp_path, records, harmed)
    # Kafka's sink sends again what was in the batch that was cut off, and nothing else.
    clean = list(consume(broker, page.clean).values())
    good = [_edited(record) for number, record in _in_order(records) if number not in harmed]
    assert _counted(clean).keys() == _counted(good).keys()
    assert _counted(clean) >= _counted(good)
    kept = consume(broker, page.quarantine)
    again = len(clean) + len(kept) - len(records)
    assert 0 <= again <= rows_per_batch
    once = {_origin(record): where for where, record in kept.items()}
    _check_quarantine({where: kept[where] for where in sorted(once.values())}, page.source, records, harmed)


def _in_order(records: list[Record]) -> list[tuple[int, Record]]:
    return sorted(enumerate(records), key=lambda numbered: place(numbered[0]))


def _edited(record: Record) -> Record:
    """What the page makes of a record, in plain Python."""
    headers = [("type" if key == "ce_type" else key, value) for key, value in record.headers if key != "blob"]
    amounts = [value for key, value in record.headers if key == "amount_cents"]
    if amounts and amounts[-1] is not None:
        headers.append(("cents", str(int.from_bytes(amounts[-1], "big", signed=True)).encode()))
    return record._replace(headers=headers)


def _check_quarantine(
    kept: dict[Place, Record], source: str, records: list[Record], harmed: dict[int, str | None]
) -> None:
    """The quarantine has what was damaged, all of it and once, with its bytes and the reason."""
    quarantined = {}
    for record in kept.values():
        own, added = record.headers[: -len(REASONS)], record.headers[-len(REASONS) :]
        assert [key for key, _ in added] == REASONS
        topic, partition, offset, errors, count = (value.decode() for _, value in added)
        assert topic == source
        assert int(count) == len(own)
        quarantined[Place(int(partition), int(offset))] = (
            record._replace(headers=own),
            [error.get("column") for error in json.loads(errors)],
        )
    assert len(quarantined) == len(kept)
    assert quarantined == {place(number): (records[number], [column]) for number, column in harmed.items()}


REASONS = [f"quarantine.{name}" for name in ("topic", "partition", "offset", "errors", "own")]


def _origin(record: Record) -> tuple[bytes | None, ...]:
    return tuple(value for key, value in record.headers if key in REASONS[1:3])


def _check_tables(spark: Any, state: Path, records: list[Record], harmed: dict[int, str]) -> None:
    """The tables have every record once: what can be read as columns, the rest with its bytes and the reason."""
    table = _rows(spark, state / "table")
    assert [Place(row["partition"], row["offset"]) for row in table] == [
        place(number) for number, _ in _in_order(records) if number not in harmed
    ]
    for row, (_, record) in zip(
        table, [numbered for numbered in _in_order(records) if numbered[0] not in harmed], strict=True
    ):
        headers = dict(record.headers)
        tenant, retry, amount = headers.get("tenant"), headers.get("retry"), headers.get("amount_cents")
        assert row["tenant"] == (None if tenant is None else tenant.decode())
        assert row["retry"] == (None if retry is None else int.from_bytes(retry, "big", signed=True))
        assert row["amount_cents"] == (None if amount is None else int.from_bytes(amount, "big", signed=True))
        assert row["route"] == [
            None if value is None else value.decode() for key, value in record.headers if key == "route"
        ]
    bad = {
        Place(row["partition"], row["offset"]): (
            Record(row["key"], row["value"], [(header["key"], header["value"]) for header in row["headers"]]),
            [error["column"] for error in row["error"]],
        )
        for row in _rows(spark, state / "bad")
    }
    assert bad == {place(number): (records[number], [column]) for number, column in harmed.items()}


def _rows(spark: Any, table: Path) -> list[dict[str, Any]]:
    return spark.read.parquet(str(table)).orderBy("partition", "offset").toArrow().to_pylist()


def _counted(records: list[Record]) -> Counter[tuple[Any, ...]]:
    return Counter((record.key, record.value, tuple(record.headers)) for record in records)


@contextmanager
def _driver(address: str, prefix: str, state: Path, rows_per_batch: int) -> Iterator[subprocess.Popen[bytes]]:
    app = Path(__file__).parent / "pipeline_app.py"
    settings = {
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_SUBMIT_ARGS": f"--conf spark.ui.enabled=false --driver-java-options {QUICK_JVM} pyspark-shell",
    }
    with (
        (state / "driver.log").open("ab") as log,
        subprocess.Popen(
            [sys.executable, str(app), address, prefix, str(state), str(rows_per_batch)],
            cwd=ROOT,
            env=os.environ | settings,
            stdout=log,
            stderr=log,
            start_new_session=True,
        ) as driver,
    ):
        try:
            yield driver
        finally:
            if driver.poll() is None:
                for child in psutil.Process(driver.pid).children(recursive=True):
                    if child.name() == "java":
                        print(stacks(child.pid))
                os.killpg(driver.pid, signal.SIGKILL)


def _wait_for_the_middle_of_a_batch(checkpoint: Path, driver: subprocess.Popen[bytes], limit: float = 120) -> None:
    """Wait until a batch after the first was begun, and is not at its end."""
    until = time.monotonic() + limit
    while time.monotonic() < until:
        assert driver.poll() is None, "the driver ended before it could be killed"
        begun, ended = (
            len([path for path in (checkpoint / folder).glob("*") if path.name.isdigit()])
            for folder in ("offsets", "commits")
        )
        if begun > ended >= 1:
            return
        time.sleep(0.03)
    raise AssertionError(f"no batch was begun in {limit} s")
