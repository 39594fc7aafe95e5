"""The program that `test_kill.py` kills: it works on a store, and says on its standard output what is done.

`python killed.py '{"task": …}'`. Each line is written when what it says has been done:

    logged KEY VALUE TIMESTAMP HEADERS    a record of the changelog; bytes in hex, `-` for a null
    done                                  an operation whose method has returned
    flushed                               everything that was held back is in the store

The operations follow from a seed: who reads the lines knows what each `done` stands for.
"""

from __future__ import annotations

import json
import os
import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from letterhead import Headers
from letterhead.one_message import decode, encode
from letterhead.state import (
    AggregationWithHeaders,
    ChangelogRecord,
    RecordContext,
    SessionKey,
    Stores,
    ValueTimestampHeaders,
)
from letterhead.state.context import StoreContext
from letterhead.state.layers.base import chain
from letterhead.state.layers.cache import RecordCache
from letterhead.state.storage.database import RocksDBOptions

RETENTION, WINDOW = 120_000, 10_000
PLACE = ("app-s-changelog", 0)
COMMIT_EVERY = 25
BUFFERED = 600
"""Operations between two flushes of a cache."""
CACHED_KEYS = 400


class Operation(NamedTuple):
    """One write: what names the row, and the value, which may be null."""

    row: tuple[Any, ...]
    value: bytes | None
    timestamp: int
    headers: Headers


class StoreType(NamedTuple):
    """A store type: its builder, given the options of its databases; and how a write is made."""

    builder: Callable[[RocksDBOptions], Any]
    put: Callable[[Any, Operation], object]


def _valued(operation: Operation) -> Any:
    return ValueTimestampHeaders.make(operation.value, operation.timestamp, operation.headers)


def _aggregated(operation: Operation) -> Any:
    return None if operation.value is None else AggregationWithHeaders.make(operation.value, operation.headers)


def _put_version(store: Any, operation: Operation) -> None:
    store.put(operation.row[0], operation.value, operation.timestamp, operation.headers)


STORE_TYPES = {
    "key-value": StoreType(
        lambda options: Stores.timestamped_key_value_store_with_headers_builder(
            Stores.persistent_timestamped_key_value_store_with_headers("s", options=options)
        ),
        lambda store, operation: store.put(operation.row[0], _valued(operation)),
    ),
    "window": StoreType(
        lambda options: Stores.timestamped_window_store_with_headers_builder(
            Stores.persistent_timestamped_window_store_with_headers("s", RETENTION, WINDOW, options=options)
        ),
        lambda store, operation: store.put(operation.row[0], _valued(operation), operation.row[1]),
    ),
    "window by time": StoreType(
        lambda options: Stores.timestamped_window_store_with_headers_builder(
            Stores.persistent_time_ordered_window_store_with_headers("s", RETENTION, WINDOW, options=options)
        ),
        lambda store, operation: store.put(operation.row[0], _valued(operation), operation.row[1]),
    ),
    "session": StoreType(
        lambda options: Stores.session_store_with_headers_builder(
            Stores.persistent_session_store_with_headers("s", RETENTION, options=options)
        ),
        lambda store, operation: store.put(SessionKey(*operation.row), _aggregated(operation)),
    ),
    "versioned": StoreType(
        lambda options: Stores.versioned_key_value_store_with_headers_builder(
            Stores.persistent_versioned_key_value_store_with_headers("s", RETENTION, options=options)
        ),
        _put_version,
    ),
}


def operations(store_type: str, seed: int, *, keys: int = 40, larger: int = 1) -> Iterator[Operation]:
    """Writes without end. Time goes on, so that segments are made and removed, and none is too late."""
    chance = random.Random(f"{store_type} {seed}")
    now = 0
    while True:
        now += chance.choice((0, 300, 1500))
        key, timestamp = b"k%02d" % chance.randrange(keys), max(0, now - chance.choice((0, 0, 20_000)))
        row: tuple[Any, ...] = (key,)
        if store_type.startswith("window"):
            row = key, timestamp // WINDOW * WINDOW
        elif store_type == "session":
            row = key, max(0, timestamp - chance.randrange(3000)), timestamp
        value = None if chance.random() < 0.15 else chance.randbytes(larger * chance.choice((0, 1, 30, 300)))
        headers = [
            (chance.choice("abc"), chance.choice((None, b"", chance.randbytes(9)))) for _ in range(chance.randrange(4))
        ]
        yield Operation(row, value, timestamp, Headers(headers))


def opened(store_type: str, task: Path, changelog: Any, *, cached: bool = False, **options: Any) -> Any:
    """The store, open, with all its layers."""
    builder = STORE_TYPES[store_type].builder(RocksDBOptions(write_buffer_bytes=1 << 16, **options))
    store = (builder.with_caching_enabled() if cached else builder).build()
    store.open(task, StoreContext("app", changelog=changelog, cache=RecordCache(1 << 30)))
    return store


def perform(store_type: str, store: Any, operation: Operation, offset: int) -> None:
    """Make one write, as that of a record of an input topic."""
    store.context.record = RecordContext("in", 0, offset, operation.timestamp, operation.headers)
    STORE_TYPES[store_type].put(store, operation)


def shown(record: ChangelogRecord) -> str:
    headers = encode(record.headers, "kafka") or b""
    value = "-" if record.value is None else record.value.hex() or "."
    return f"logged {record.key.hex()} {value} {record.timestamp} {headers.hex() or '.'}"


def read(line: str) -> ChangelogRecord:
    """Undo :func:`shown`."""
    _, key, value, timestamp, headers = line.split()
    source = Headers() if headers == "." else decode(bytes.fromhex(headers), "kafka")
    data = None if value == "-" else b"" if value == "." else bytes.fromhex(value)
    return ChangelogRecord(bytes.fromhex(key), data, int(timestamp), source)  # type: ignore[arg-type]


def print_line(line: str) -> None:
    os.write(1, line.encode() + b"\n")


class PrintedChangelog:
    """A changelog that prints its records, for the process that started this one."""

    written = -1

    def send(self, topic: str, partition: int, record: ChangelogRecord) -> None:
        print_line(shown(record))
        self.written += 1

    def offsets(self) -> dict[tuple[str, int], int]:
        return {PLACE: self.written}


def write(store_type: str, task: Path, seed: int, log: bool) -> None:
    """Write, and commit now and then."""
    changelog = PrintedChangelog()
    store = opened(store_type, task, changelog, write_ahead_log=log)
    for n, operation in enumerate(operations(store_type, seed)):
        perform(store_type, store, operation, n)
        print_line("done")
        if n % COMMIT_EVERY == COMMIT_EVERY - 1:
            store.commit(changelog.offsets())


def flush(store_type: str, task: Path, seed: int) -> None:
    """Buffer writes, and flush them all at once."""
    changelog = PrintedChangelog()
    store = opened(store_type, task, changelog, cached=True, write_ahead_log=True)
    for n, operation in enumerate(operations(store_type, seed, keys=CACHED_KEYS)):
        perform(store_type, store, operation, n)
        if n % BUFFERED == BUFFERED - 1:
            store.flush()
            store.commit(changelog.offsets())
            print_line("flushed")


def upgrade(store_type: str, task: Path, seed: int, log: bool, eager: bool) -> None:
    """Move the rows of an older store: those that are read, in any order, or all at once."""
    store = opened(store_type, task, PrintedChangelog(), write_ahead_log=log)
    bottom = chain(store)[-1]
    rows = json.loads((task / "rows.json").read_text())
    random.Random(seed).shuffle(rows)
    print_line("done")
    if eager and log:
        for database in bottom._databases():
            for _ in database.rows.move():  # as `upgrade` does, and says nothing
                print_line("done")
    if eager:
        bottom.upgrade()
        if seed % 2:
            store.close()  # otherwise whoever opened it forgets to
        return
    for key, *times in rows:
        reads = {"key-value": "get", "window": "fetch", "session": "fetch_session", "versioned": "get"}
        assert getattr(bottom, reads[store_type])(bytes.fromhex(key), *times) is not None
        print_line("done")


if __name__ == "__main__":
    arguments = json.loads(sys.argv[1])
    run = {"write": write, "flush": flush, "upgrade": upgrade}[arguments.pop("operation")]
    run(arguments.pop("store_type"), Path(arguments.pop("task")), arguments.pop("seed"), **arguments)
