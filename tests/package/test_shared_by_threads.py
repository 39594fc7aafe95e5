"""Eight threads share one reader or one store: no row is lost, and none comes twice."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import letterhead as lh
from letterhead.state.memory import InMemoryKeyValueStore

pytestmark = pytest.mark.usefixtures("gil_stays_disabled", "threads_switch_often")

THREADS = 8
ROWS = 2_000
LOG = "orders-app-latest-changelog-0"


def in_threads(work: Callable[[int], Any]) -> list[Any]:
    """Call a function in every thread at once, with the number of the thread."""
    start = threading.Barrier(THREADS)

    def begin(thread: int) -> Any:
        start.wait()
        return work(thread)

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(begin, range(THREADS)))


def key(number: int) -> bytes:
    return number.to_bytes(4, "big")


def fill(store: Any) -> None:
    for number in range(ROWS):
        store.put(key(number), lh.encode(lh.Message(headers=[("n", key(number))], payload=b"v"), "streams"))


def read_ranges(store: Any) -> list[list[list[bytes]]]:
    """Read every key, and overlapping ranges, in every thread."""

    def read(thread: int) -> list[list[bytes]]:
        offsets_read = []
        for first in range(thread, ROWS, ROWS // 4):
            with store.range(key(first), key(first + 99)) as rows:
                offsets_read.append([row[0] for row in rows])
            assert store.get(key(first)) is not None
        return offsets_read

    return in_threads(read)


def expected_ranges() -> list[list[list[bytes]]]:
    starts = [range(thread, ROWS, ROWS // 4) for thread in range(THREADS)]
    return [[[key(n) for n in range(first, min(first + 100, ROWS))] for first in firsts] for firsts in starts]


def test_threads_sharing_segment_reader_read_each_batch_once(samples: Path) -> None:
    whole = lh.read.segments(samples / LOG, columns=["offset", "value"]).read_all()
    for _ in range(5):
        with lh.read.segments(samples / LOG, columns=["offset", "value"]) as reader:
            parts = in_threads(lambda _, reader=reader: list(iter(lambda: next(reader, None), None)))
        rows = pa.Table.from_batches([batch for part in parts for batch in part], whole.schema)
        assert rows.sort_by("offset").equals(whole.combine_chunks().sort_by("offset"))


def test_reader_may_be_closed_while_threads_read_it(samples: Path) -> None:
    reader = lh.read.segments(samples / LOG, columns=["offset"])

    def read(thread: int) -> str:
        try:
            if thread == 0:
                reader.close()
            return str(len(list(reader)))
        except ValueError as error:
            return str(error)

    assert all(result.isdecimal() or result.startswith("the reader ") for result in in_threads(read))
    with pytest.raises(ValueError, match="the reader is closed"):
        next(reader)


def test_each_thread_reads_segments_with_own_reader(samples: Path) -> None:
    whole = lh.read.segments(samples / LOG).read_all()
    assert all(table.equals(whole) for table in in_threads(lambda _: lh.read.segments(samples / LOG).read_all()))


def test_threads_read_ranges_of_memory_store() -> None:
    for _ in range(5):
        store = InMemoryKeyValueStore("latest")
        store.open()
        # The keys are sorted when the first range is read: all threads ask first at once.
        fill(store)
        assert read_ranges(store) == expected_ranges()
        store.close()


def test_each_thread_writes_own_store() -> None:
    def write(_: int) -> int:
        store = InMemoryKeyValueStore("latest")
        store.open()
        fill(store)
        with store.range(key(0), key(ROWS)) as rows:
            return sum(1 for _ in rows)

    assert in_threads(write) == [ROWS] * THREADS


def test_threads_read_ranges_of_rocksdb_store(tmp_path: Path) -> None:
    pytest.importorskip("rocksdict")
    from letterhead.state.rocksdb import RocksDBKeyValueStore

    store = RocksDBKeyValueStore("latest")
    store.open(tmp_path / "0_0")
    fill(store)
    assert read_ranges(store) == expected_ranges()
    store.close()
