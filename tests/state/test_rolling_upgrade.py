"""A rolling upgrade: instances of an older format and of the one with headers take turns on one changelog.

What the newer one writes keeps its headers in the changelog, whoever restores from it in between. They are lost where the
older one writes the row, and where a store of the older format is upgraded in its place.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from letterhead import Headers
from letterhead.errors import UnexpectedColumnFamilyError
from letterhead.state import (
    AggregationWithHeaders,
    ChangelogRecord,
    RecordContext,
    SessionKey,
    Stores,
    ValueAndTimestamp,
    ValueTimestampHeaders,
)
from letterhead.state.context import ChangelogList, StoreContext

RETENTION, WINDOW = 1_000_000, 10
NONE = Headers()

Found = tuple[bytes, int | None, Headers | None]
"""What a row holds: the value, the timestamp and the headers, where the store keeps them."""


class StoreType(NamedTuple):
    """A store type: as it was, as it is to be, and how a row is written and read; `None` deletes."""

    older: Callable[[], Any]
    newer: Callable[[], Any]
    in_memory: Callable[[], Any]
    put_older: Callable[[Any, bytes, bytes | None, int], object]
    put_newer: Callable[[Any, bytes, bytes | None, int, Headers], object]
    rows: Callable[[Any], dict[bytes, Found]]


def whole(value: bytes | None, time: int, headers: Headers) -> Any:
    return None if value is None else ValueTimestampHeaders.make(value, time, headers)


def timed(value: bytes | None, time: int) -> Any:
    return None if value is None else ValueAndTimestamp.make(value, time)


def aggregated(value: bytes | None, headers: Headers) -> Any:
    return None if value is None else AggregationWithHeaders.make(value, headers)


def record_of(value: Any) -> Found:
    if isinstance(value, bytes):
        return value, None, None
    data = value.aggregation if isinstance(value, AggregationWithHeaders) else value.value
    return data, getattr(value, "timestamp", None), getattr(value, "headers", None)


def all_rows(store: Any) -> dict[bytes, Found]:
    with store.all() as rows:
        return {getattr(key, "key", key): record_of(value) for key, value in rows}


def all_sessions(store: Any) -> dict[bytes, Found]:
    with store.fetch_range(None, None) as rows:
        return {key.key: record_of(value) for key, value in rows}


def latest(store: Any) -> dict[bytes, Found]:
    versions = {b"%d" % n: store.get(b"%d" % n) for n in range(10)}
    return {key: record_of(version) for key, version in versions.items() if version is not None}


def session(key: bytes) -> SessionKey:
    return SessionKey(key, 5, 6)


WITH_HEADERS = Stores.timestamped_key_value_store_with_headers_builder
WINDOWS_WITH_HEADERS = Stores.timestamped_window_store_with_headers_builder
STORE_TYPES = {
    "key-value, plain": StoreType(
        lambda: Stores.key_value_store_builder(Stores.persistent_key_value_store("s")),
        lambda: WITH_HEADERS(Stores.persistent_timestamped_key_value_store_with_headers("s")),
        lambda: WITH_HEADERS(Stores.in_memory_key_value_store("s")),
        lambda store, key, value, time: store.put(key, value),
        lambda store, key, value, time, headers: store.put(key, whole(value, time, headers)),
        all_rows,
    ),
    "key-value, timestamped": StoreType(
        lambda: Stores.timestamped_key_value_store_builder(Stores.persistent_timestamped_key_value_store("s")),
        lambda: WITH_HEADERS(Stores.persistent_timestamped_key_value_store_with_headers("s")),
        lambda: WITH_HEADERS(Stores.in_memory_key_value_store("s")),
        lambda store, key, value, time: store.put(key, timed(value, time)),
        lambda store, key, value, time, headers: store.put(key, whole(value, time, headers)),
        all_rows,
    ),
    "window, timestamped": StoreType(
        lambda: Stores.timestamped_window_store_builder(
            Stores.persistent_timestamped_window_store("s", RETENTION, WINDOW)
        ),
        lambda: WINDOWS_WITH_HEADERS(Stores.persistent_timestamped_window_store_with_headers("s", RETENTION, WINDOW)),
        lambda: WINDOWS_WITH_HEADERS(Stores.in_memory_window_store("s", RETENTION, WINDOW)),
        lambda store, key, value, time: store.put(key, timed(value, time), 10),
        lambda store, key, value, time, headers: store.put(key, whole(value, time, headers), 10),
        all_rows,
    ),
    "session": StoreType(
        lambda: Stores.session_store_builder(Stores.persistent_session_store("s", RETENTION)),
        lambda: Stores.session_store_with_headers_builder(Stores.persistent_session_store_with_headers("s", RETENTION)),
        lambda: Stores.session_store_with_headers_builder(Stores.in_memory_session_store("s", RETENTION)),
        lambda store, key, value, time: store.put(session(key), value),
        lambda store, key, value, time, headers: store.put(session(key), aggregated(value, headers)),
        all_sessions,
    ),
    "versioned": StoreType(
        lambda: Stores.versioned_key_value_store_builder(Stores.persistent_versioned_key_value_store("s", RETENTION)),
        lambda: Stores.versioned_key_value_store_with_headers_builder(
            Stores.persistent_versioned_key_value_store_with_headers("s", RETENTION)
        ),
        lambda: Stores.versioned_key_value_store_with_headers_builder(
            Stores.in_memory_versioned_key_value_store("s", RETENTION)
        ),
        lambda store, key, value, time: store.put(key, value, time),
        lambda store, key, value, time, headers: store.put(key, value, time, None if value is None else headers),
        latest,
    ),
}


class Instance:
    """A store of one instance, and what it logs."""

    def __init__(self, builder: Any, directory: Path, changelog: list[ChangelogRecord]) -> None:
        self.log = ChangelogList()
        self.context = StoreContext("app", changelog=self.log)
        self.store = builder.build()
        self.store.open(directory, self.context)
        self.store.restore(changelog)

    def at(self, time: int) -> None:
        self.context.record = RecordContext("in", 0, time, time, Headers({"record": b"%d" % time}))

    def close(self) -> list[ChangelogRecord]:
        self.store.close()
        return list(self.log.records("app-s-changelog"))


def as_kept(expected: dict[bytes, Found], like: dict[bytes, Found]) -> dict[bytes, Found]:
    """What a store shows of some rows that keeps no more than it does of its own."""
    kept = next(iter(like.values()), (b"", None, None))
    return {
        key: (value, None if kept[1] is None else time, None if kept[2] is None else headers)
        for key, (value, time, headers) in expected.items()
    }


@pytest.mark.parametrize("in_memory", [False, True], ids=["rocksdb", "memory"])
@pytest.mark.parametrize("name", STORE_TYPES)
def test_instances_alternate_on_one_changelog(tmp_path: Path, name: str, in_memory: bool) -> None:
    store_type = STORE_TYPES[name]
    changelog: list[ChangelogRecord] = []
    expected: dict[bytes, Found] = {}
    survived = 0
    for turn in range(8):
        newer = turn % 2 == 1
        builder = (store_type.in_memory if in_memory else store_type.newer) if newer else store_type.older
        instance = Instance(builder(), tmp_path / str(turn), changelog)
        rows = store_type.rows(instance.store)
        assert rows == as_kept(expected, rows)
        if newer:
            survived += sum(len(headers or ()) > 0 for _, _, headers in rows.values())
        # Each row is written in one of three turns, so that most rows of one format are read by the other before.
        logged: list[tuple[bytes | None, int, Headers]] = []
        for n in range(turn % 3, 9, 3):
            key, time = b"%d" % n, 100 * turn + n
            value = None if (turn + n) % 5 == 4 else b"of turn %d" % turn
            headers = Headers([("turn", b"%d" % turn), ("turn", None), ("n", b"")])
            instance.at(time)
            if newer:
                store_type.put_newer(instance.store, key, value, time, headers)
            else:
                store_type.put_older(instance.store, key, value, time)
            of_record = Headers({"record": b"%d" % time})
            logged.append((value, time, NONE if not newer else headers if value is not None else of_record))
            expected.pop(key, None)
            if value is not None:
                expected[key] = value, time, headers if newer else NONE
        rows = store_type.rows(instance.store)
        assert rows == as_kept(expected, rows)
        written = instance.close()
        assert [(record.value, record.timestamp, record.headers) for record in written] == logged
        changelog += written
    # The rows of the newer instances that the older ones did not write have all their headers, after as many turns.
    assert survived == 8
    last = Instance(store_type.newer(), tmp_path / "last", changelog)
    rows = store_type.rows(last.store)
    assert rows == as_kept(expected, rows)
    assert {headers is not None and len(headers) for _, _, headers in rows.values()} == {0, 3}
    last.close()


@pytest.mark.parametrize("name", STORE_TYPES)
def test_store_upgraded_in_place_has_headers_from_then_on(tmp_path: Path, name: str) -> None:
    store_type = STORE_TYPES[name]
    another = Instance(store_type.newer(), tmp_path / "another", [])
    for n in range(3):
        another.at(n)
        store_type.put_newer(another.store, b"%d" % n, b"v", n, Headers({"n": b"%d" % n}))
    changelog = another.close()
    # An older instance takes over: it has no place for the headers.
    older = Instance(store_type.older(), tmp_path / "here", changelog)
    older.at(100)
    store_type.put_older(older.store, b"2", b"w", 100)
    changelog += older.close()
    # Upgraded where it is, without a restore, no row has any: what the changelog has is not asked for.
    newer = Instance(store_type.newer(), tmp_path / "here", [])
    assert {key: (row[0], row[2]) for key, row in store_type.rows(newer.store).items()} == {
        b"0": (b"v", NONE),
        b"1": (b"v", NONE),
        b"2": (b"w", NONE),
    }
    newer.at(200)
    store_type.put_newer(newer.store, b"1", b"x", 200, Headers({"n": b"x"}))
    changelog += newer.close()
    # There is no way back but an empty directory and the changelog.
    with pytest.raises(UnexpectedColumnFamilyError):
        Instance(store_type.older(), tmp_path / "here", [])
    older = Instance(store_type.older(), tmp_path / "back", changelog)
    assert {key: row[0] for key, row in store_type.rows(older.store).items()} == {b"0": b"v", b"1": b"x", b"2": b"w"}
    changelog += older.close()
    # Restored from the changelog, all rows but the one that the older instance wrote have their headers.
    newer = Instance(store_type.newer(), tmp_path / "restored", changelog)
    assert {key: (row[0], row[2]) for key, row in store_type.rows(newer.store).items()} == {
        b"0": (b"v", Headers({"n": b"0"})),
        b"1": (b"x", Headers({"n": b"x"})),
        b"2": (b"w", NONE),
    }
    newer.close()
