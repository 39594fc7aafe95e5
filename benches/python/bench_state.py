"""A store that keeps headers, as an application has it, beside the RocksDB below it.

The store is persistent, with a metered and a change-logging layer, and its keys and payloads are bytes. It is compared
with `rocksdict` alone, in raw mode: a family opened in the same way, the write-ahead log off in both, that is given and
gives the very bytes that the store holds. The changelog is in memory, and is let go every hundred rows, as a producer
lets go of what it has sent; that is in the time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from conftest import OBJECTS

from benches import stores
from letterhead import Headers
from letterhead.state import RecordContext, Stores, ValueTimestampHeaders
from letterhead.state.context import ChangelogList, StoreContext
from letterhead.state.layers.base import chain

PUT, GET, SCAN = "put a row", "get a row", "scan a store"
FIVE = "rows of five headers and 100 bytes"
TEN = "rows of ten headers and 100 bytes"
ALONE = f"rocksdict {version('rocksdict')} alone, the stored bytes"
ROUNDS = 40
SENT_AT_ONCE = 100


class Opened:
    """An open store and its changelog."""

    def __init__(self, name: str, directory: Path) -> None:
        self.changelog = ChangelogList()
        context = StoreContext("bench", changelog=self.changelog)
        context.record = RecordContext("in", 0, 7, stores.FIRST_TIMESTAMP, Headers({"record": b"r"}))
        supplier = Stores.persistent_timestamped_key_value_store_with_headers(name)
        self.store: Any = Stores.timestamped_key_value_store_with_headers_builder(supplier).build()
        self.store.open(directory, context)
        self.records = self.changelog.records(f"bench-{name}-changelog")
        # What the layers put the bytes into, with nothing in between.
        self.alone: Any = chain(self.store)[-1]._rows._family

    def fill(self, headers: int) -> None:
        """Put the rows, and see that the store and its changelog have them."""
        rows = stores.rows(headers)
        for key, value in values(headers):
            self.store.put(key, value)
        assert dict(self.alone.items()) == stores.messages(headers)
        assert [(record.key, record.value, record.timestamp) for record in self.records] == [row[:3] for row in rows]
        assert all(list(record.headers) == row.headers for record, row in zip(self.records, rows, strict=True))
        self.records.clear()


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    """Return an empty store."""
    opened = Opened("latest", tmp_path)
    yield opened
    opened.store.close()


def values(headers: int) -> list[tuple[bytes, ValueTimestampHeaders[bytes]]]:
    """Return the rows as an application has them."""
    return [
        (row.key, ValueTimestampHeaders(row.payload, row.timestamp, Headers(row.headers)))
        for row in stores.rows(headers)
    ]


def batches(rows: list[Any]) -> list[list[Any]]:
    """Return the rows in the batches in which a producer sends their records."""
    return [rows[start : start + SENT_AT_ONCE] for start in range(0, len(rows), SENT_AT_ONCE)]


def test_put(measure: Callable[..., None], opened: Opened) -> None:
    opened.fill(stores.FIVE)
    measure_pair(measure, putting(opened), bytes_kept_by(opened), PUT, FIVE, "letterhead")


def test_put_alone(measure: Callable[..., None], opened: Opened, tmp_path: Path) -> None:
    opened.fill(stores.FIVE)
    other = Opened("alone", tmp_path)
    source = batches(list(stores.messages(stores.FIVE).items()))
    put = other.alone.put

    def run() -> None:
        for batch in source:
            for key, message in batch:
                put(key, message)

    measure_pair(measure, run, bytes_kept_by(other), PUT, FIVE, ALONE, beside=putting(opened))
    other.store.close()


def putting(opened: Opened) -> Callable[[], None]:
    """Return what puts every row through the layers."""
    source = batches(values(stores.FIVE))
    put, sent = opened.store.put, opened.records.clear

    def run() -> None:
        for batch in source:
            for key, value in batch:
                put(key, value)
            sent()

    return run


def bytes_kept_by(opened: Opened) -> Callable[[None], None]:
    """Return what checks that a store has the rows."""

    def check(_: None) -> None:
        assert dict(opened.alone.items()) == stores.messages(stores.FIVE)

    return check


def test_get(measure: Callable[..., None], opened: Opened) -> None:
    get_each(measure, opened, "letterhead", opened.store.get, None)


def test_get_with_headers(measure: Callable[..., None], opened: Opened) -> None:
    get = opened.store.get
    get_each(measure, opened, "letterhead, a header asked for", lambda key: get(key).headers["tenant"], get)


def test_get_alone(measure: Callable[..., None], opened: Opened) -> None:
    get_each(measure, opened, ALONE, opened.alone.get, opened.store.get)


def get_each(
    measure: Callable[..., None],
    opened: Opened,
    side: str,
    get: Callable[[bytes], Any],
    beside: Callable[[bytes], Any] | None,
) -> None:
    """Measure reading every row by its key."""
    opened.fill(stores.FIVE)

    def check(_: None) -> None:
        for row, (key, value) in zip(stores.rows(stores.FIVE), values(stores.FIVE), strict=True):
            assert opened.store.get(key) == value
            assert get(key) in (value, dict(row.headers)["tenant"], row.message())

    measure_pair(measure, getting(get), check, GET, FIVE, side, beside=None if beside is None else getting(beside))


def getting(get: Callable[[bytes], Any]) -> Callable[[], None]:
    """Return a function that gets every row."""
    keys = [row.key for row in stores.rows(stores.FIVE)]

    def run() -> None:
        for key in keys:
            get(key)

    return run


def test_scan_values(measure: Callable[..., None], opened: Opened) -> None:
    opened.fill(stores.TEN)

    def check(total: int) -> None:
        assert total == stores.ROWS * stores.PAYLOAD_BYTES

    measure_pair(measure, scanning(opened), check, SCAN, TEN, "letterhead")


def test_scan_headers(measure: Callable[..., None], opened: Opened) -> None:
    opened.fill(stores.TEN)

    def run() -> int:
        total = 0
        with opened.store.all() as rows:
            for _, value in rows:
                for key, header in value.headers:
                    total += len(key) + len(header)
        return total

    def check(total: int) -> None:
        assert total == sum(len(key) + len(header) for row in stores.rows(stores.TEN) for key, header in row.headers)

    side = "letterhead, every key and value of the headers"
    measure_pair(measure, run, check, SCAN, TEN, side, beside=scanning(opened))


def test_scan_alone(measure: Callable[..., None], opened: Opened) -> None:
    opened.fill(stores.TEN)

    def run() -> int:
        return sum(len(message) for _, message in opened.alone.items())

    def check(total: int) -> None:
        assert total == sum(map(len, stores.messages(stores.TEN).values()))

    measure_pair(measure, run, check, SCAN, TEN, ALONE, beside=scanning(opened))


def scanning(opened: Opened) -> Callable[[], int]:
    """Return what reads every value, and looks at no header."""

    def run() -> int:
        with opened.store.all() as rows:
            return sum(len(value.value) for _, value in rows)

    return run


def measure_pair(
    measure: Callable[..., None],
    run: Callable[[], Any],
    check: Callable[[Any], None],
    job: str,
    source: str,
    side: str,
    beside: Callable[[], Any] | None = None,
) -> None:
    """Measure one side, all rows in one run."""
    headers = stores.TEN if source == TEN else stores.FIVE
    measure(
        run,
        check,
        job=job,
        source=source,
        side=side,
        rows=stores.ROWS,
        headers=stores.ROWS * headers,
        reads=sum(len(key) + len(message) for key, message in stores.messages(headers).items()),
        buffers=OBJECTS,
        rounds=ROUNDS,
        per="row",
        beside=beside,
    )
