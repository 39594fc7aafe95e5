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
from letterhead.operations import decode, encode
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
from letterhead.storage.database import RocksDBOptions

RETENTION, WINDOW = 120_000, 10_000
PLACE = ("app-s-changelog", 0)
COMMIT_EVERY = 25
HELD_BACK = 600
"""Operations between two flushes of a cache."""
CACHED_KEYS = 400


class Operation(NamedTuple):
    """One write: what names the row, and the value, which may be null."""

    row: tuple[Any, ...]
    value: bytes | None
    timestamp: int
    headers: Headers


class Kind(NamedTuple):
    """A kind of store: its builder, given the options of its databases; and how a write is made."""

    builder: Callable[[RocksDBOptions], Any]
    put: Callable[[Any, Operation], object]


def _valued(operation: Operation) -> Any:
    return ValueTimestampHeaders.make(operation.value, operation.timestamp, operation.headers)


def _aggregated(operation: Operation) -> Any:
    return None if operation.value is None else AggregationWithHeaders.make(operation.value, operation.headers)


def _put_version(store: Any, operation: Operation) -> None:
    store.put(operation.row[0], operation.value, operation.timestamp, operation.headers)


KINDS = {
    "key-value": Kind(
        lambda options: Stores.timestamped_key_value_store_with_headers_builder(
            Stores.persistent_timestamped_key_value_store_with_headers("s", options=options)
        ),
        lambda store, operation: store.put(operation.row[0], _valued(operation)),
    ),
    "window": Kind(
        lambda options: Stores.timestamped_window_store_with_headers_builder(
            Stores.persistent_timestamped_window_store_with_headers("s", RETENTION, WINDOW, options=options)
        ),
        lambda store, operation: store.put(operation.row[0], _valued(operation), operation.row[1]),
    ),
    "window by time": Kind(
        lambda options: Stores.timestamped_window_store_with_headers_builder(
            Stores.persistent_time_ordered_window_store_with_headers("s", RETENTION, WINDOW, options=options)
        ),
        lambda store, operation: store.put(operation.row[0], _valued(operation), operation.row[1]),
    ),
    "session": Kind(
        lambda options: Stores.session_store_with_headers_builder(
            Stores.persistent_session_store_with_headers("s", RETENTION, options=options)
        ),
        lambda store, operation: store.put(SessionKey(*operation.row), _aggregated(operation)),
    ),
    "versioned": Kind(
        lambda options: Stores.versioned_key_value_store_with_headers_builder(
            Stores.persistent_versioned_key_value_store_with_headers("s", RETENTION, options=options)
        ),
        _put_version,
    ),
}


def operations(kind: str, seed: int, *, keys: int = 40, larger: int = 1) -> Iterator[Operation]:
    """Writes without end. Time goes on, so that segments are made and removed, and none is too late."""
    chance = random.Random(f"{kind} {seed}")
    now = 0
    while True:
        now += chance.choice((0, 300, 1500))
        key, timestamp = b"k%02d" % chance.randrange(keys), max(0, now - chance.choice((0, 0, 20_000)))
        row: tuple[Any, ...] = (key,)
        if kind.startswith("window"):
            row = key, timestamp // WINDOW * WINDOW
        elif kind == "session":
            row = key, max(0, timestamp - chance.randrange(3000)), timestamp
        value = None if chance.random() < 0.15 else chance.randbytes(larger * chance.choice((0, 1, 30, 300)))
        headers = [
            (chance.choice("abc"), chance.choice((None, b"", chance.randbytes(9)))) for _ in range(chance.randrange(4))
        ]
        yield Operation(row, value, timestamp, Headers(headers))


def opened(kind: str, task: Path, changelog: Any, *, cached: bool = False, **options: Any) -> Any:
    """The store, open, with all its layers."""
    builder = KINDS[kind].builder(RocksDBOptions(write_buffer_bytes=1 << 16, **options))
    store = (builder.with_caching_enabled() if cached else builder).build()
    store.open(task, StoreContext("app", changelog=changelog, cache=RecordCache(1 << 30)))
    return store


def perform(kind: str, store: Any, operation: Operation, offset: int) -> None:
    """Make one write, as that of a record of an input topic."""
    store.context.record = RecordContext("in", 0, offset, operation.timestamp, operation.headers)
    KINDS[kind].put(store, operation)


def shown(record: ChangelogRecord) -> str:
    headers = encode(record.headers, "kafka") or b""
    value = "-" if record.value is None else record.value.hex() or "."
    return f"logged {record.key.hex()} {value} {record.timestamp} {headers.hex() or '.'}"


def read(line: str) -> ChangelogRecord:
    """Undo :func:`shown`."""
    _, key, value, timestamp, headers = line.split()
    given = Headers() if headers == "." else decode(bytes.fromhex(headers), "kafka")
    data = None if value == "-" else b"" if value == "." else bytes.fromhex(value)
    return ChangelogRecord(bytes.fromhex(key), data, int(timestamp), given)  # type: ignore[arg-type]


def say(line: str) -> None:
    os.write(1, line.encode() + b"\n")


class Said:
    """A changelog in another process."""

    written = -1

    def send(self, topic: str, partition: int, record: ChangelogRecord) -> None:
        say(shown(record))
        self.written += 1

    def offsets(self) -> dict[tuple[str, int], int]:
        return {PLACE: self.written}


def write(kind: str, task: Path, seed: int, log: bool) -> None:
    """Write, and commit now and then."""
    changelog = Said()
    store = opened(kind, task, changelog, write_ahead_log=log)
    for n, operation in enumerate(operations(kind, seed)):
        perform(kind, store, operation, n)
        say("done")
        if n % COMMIT_EVERY == COMMIT_EVERY - 1:
            store.commit(changelog.offsets())


def flush(kind: str, task: Path, seed: int) -> None:
    """Hold writes back, and flush them all at once."""
    changelog = Said()
    store = opened(kind, task, changelog, cached=True, write_ahead_log=True)
    for n, operation in enumerate(operations(kind, seed, keys=CACHED_KEYS)):
        perform(kind, store, operation, n)
        if n % HELD_BACK == HELD_BACK - 1:
            store.flush()
            store.commit(changelog.offsets())
            say("flushed")


def upgrade(kind: str, task: Path, seed: int, log: bool, eager: bool) -> None:
    """Move the rows of an older store: those that are read, in any order, or all at once."""
    store = opened(kind, task, Said(), write_ahead_log=log)
    bottom = chain(store)[-1]
    rows = json.loads((task / "rows.json").read_text())
    random.Random(seed).shuffle(rows)
    say("done")
    if eager and log:
        for database in bottom._databases():
            for _ in database.rows.move():  # as `upgrade` does, and says nothing
                say("done")
    if eager:
        bottom.upgrade()
        if seed % 2:
            store.close()  # otherwise whoever opened it forgets to
        return
    for key, *times in rows:
        reads = {"key-value": "get", "window": "fetch", "session": "fetch_session", "versioned": "get"}
        assert getattr(bottom, reads[kind])(bytes.fromhex(key), *times) is not None
        say("done")


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    verb = {"write": write, "flush": flush, "upgrade": upgrade}[given.pop("verb")]
    verb(given.pop("kind"), Path(given.pop("task")), given.pop("seed"), **given)
