"""Stores in memory and in RocksDB, given the same random work: the same results, the same changelog, the same after a restore."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from letterhead import Headers
from letterhead.errors import PrefixError
from letterhead.state import (
    AggregationWithHeaders,
    ChangelogRecord,
    RecordContext,
    SessionKey,
    Stores,
    ValueTimestampHeaders,
)
from letterhead.state.context import ChangelogList, StoreContext
from letterhead.state.layers.base import chain
from letterhead.state.storage.database import RocksDBOptions
from letterhead.state.storage.keys import MAX_TIME

RETENTION, WINDOW = 120_000, 10
IN_MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
"""A file system in memory, where there is one: whoever opens a database waits for the disk."""
KEYS = [b"", b"\0", b"a", b"a\0", b"a\xff", b"ab", bytes(13), b"\xff", b"\xff\xff", b"\xff" * 14]
TIMES = [0, 1, 59_999, 60_000, 60_001, 119_999, 120_000, 180_000, 200_000, 300_000]
BOUNDS = [-(1 << 70), -1, *TIMES[:4], 120_000, 300_000, MAX_TIME, 1 << 70]

keys = st.sampled_from(KEYS) | st.binary(max_size=2)
times = st.sampled_from(TIMES) | st.integers(0, 300_000)
bounds = st.sampled_from([None, *KEYS])
time_bounds = st.sampled_from(BOUNDS)
values = st.none() | st.sampled_from([b"", b"\0", b"v" * 300]) | st.binary(max_size=4)
all_headers = st.lists(
    st.tuples(st.sampled_from(["", "a", "tenant", "ключ"]), st.none() | st.binary(max_size=70)), max_size=3
).map(Headers)

Operation = tuple[str, tuple[Any, ...]]
some = settings(max_examples=max(3, settings.default.max_examples // 3))
"""Each example opens some databases."""


def stored_value(value: bytes | None, timestamp: int, headers: Headers) -> Any:
    return None if value is None else ValueTimestampHeaders.make(value, timestamp, headers)


def aggregated(value: bytes | None, headers: Headers) -> Any:
    return None if value is None else AggregationWithHeaders.make(value, headers)


def call(name: str, *arguments: Any) -> Any:
    return st.tuples(st.just(name), st.tuples(*arguments))


timestamped = st.builds(stored_value, values, times, all_headers)
KEY_VALUE = st.one_of(
    call("put", keys, timestamped),
    call("put", keys, timestamped),
    call("put_if_absent", keys, timestamped),
    call("put_all", st.lists(st.tuples(keys, timestamped), max_size=4)),
    call("delete", keys),
    call("get", keys),
    call("range", bounds, bounds),
    call("prefix_scan", keys),
)
WINDOWS = st.one_of(
    call("put", keys, timestamped, times),
    call("put", keys, timestamped, times),
    call("fetch", keys, times),
    call("fetch_key", keys, time_bounds, time_bounds),
    call("fetch_range", bounds, bounds, time_bounds, time_bounds),
    call("fetch_all", time_bounds, time_bounds),
)
sessions = st.builds(lambda key, a, b: SessionKey(key, min(a, b), max(a, b)), keys, times, times)
SESSIONS = st.one_of(
    call("put", sessions, st.builds(aggregated, values, all_headers)),
    call("put", sessions, st.builds(aggregated, values, all_headers)),
    call("remove", sessions),
    call("fetch_session", keys, times, times),
    call("find_sessions", keys, time_bounds, time_bounds),
    call("find_sessions_range", bounds, bounds, time_bounds, time_bounds),
    call("find_sessions_time", time_bounds, time_bounds),
    call("fetch", keys),
    call("fetch_range", bounds, bounds),
)
VERSIONS = st.one_of(
    call("put", keys, values, times, all_headers),
    call("put", keys, values, times, all_headers),
    call("delete", keys, times),
    call("get", keys),
    call("get", keys, times),
    call("versions", keys, st.none() | time_bounds, st.none() | time_bounds),
)


class StoreType(NamedTuple):
    """A store type: how it is built in memory and in RocksDB, and what reads all of it."""

    memory: Callable[[], Any]
    rocksdb: Callable[[RocksDBOptions], Any]
    reads: list[Operation]


def built(name: str) -> StoreType:
    family, _, order = name.partition(" by time")
    with_index = order != " without index"
    if family == "key-value":
        build = Stores.timestamped_key_value_store_with_headers_builder
        suppliers: Any = (
            lambda: Stores.in_memory_key_value_store("s"),
            lambda options: Stores.persistent_timestamped_key_value_store_with_headers("s", options=options),
        )
        reads: list[Operation] = [("all", ()), *(("range", pair) for pair in product([None, *KEYS], [None, *KEYS]))]
    elif family.startswith("window"):
        build, keep = Stores.timestamped_window_store_with_headers_builder, family == "window of duplicates"
        # By time, a store keeps a millisecond more.
        suppliers = (
            lambda: Stores.in_memory_window_store("s", RETENTION + (" by time" in name), WINDOW, keep),
            lambda options: (
                Stores.persistent_time_ordered_window_store_with_headers(
                    "s", RETENTION, WINDOW, keep, with_index=with_index, options=options
                )
                if " by time" in name
                else Stores.persistent_timestamped_window_store_with_headers(
                    "s", RETENTION, WINDOW, keep, options=options
                )
            ),
        )
        reads = [("all", ()), *(("fetch_key", (key, 0, MAX_TIME)) for key in KEYS)]
        reads += [
            ("fetch_range", (*pair, 0, MAX_TIME)) for pair in product([None, b"a", b"\xff"], [None, b"a\0", b"\xff"])
        ]
    elif family == "session":
        build = Stores.session_store_with_headers_builder
        suppliers = (
            lambda: Stores.in_memory_session_store("s", RETENTION),
            lambda options: (
                Stores.persistent_time_ordered_session_store_with_headers(
                    "s", RETENTION, with_index=with_index, options=options
                )
                if " by time" in name
                else Stores.persistent_session_store_with_headers("s", RETENTION, options=options)
            ),
        )
        reads = [("fetch_range", (None, None)), *(("fetch", (key,)) for key in KEYS)]
    else:
        build = Stores.versioned_key_value_store_with_headers_builder
        suppliers = (
            lambda: Stores.in_memory_versioned_key_value_store("s", RETENTION),
            lambda options: Stores.persistent_versioned_key_value_store_with_headers("s", RETENTION, options=options),
        )
        reads = [("versions", (key,)) for key in KEYS] + [("get", pair) for pair in product(KEYS, TIMES)]
    return StoreType(lambda: build(suppliers[0]()), lambda options: build(suppliers[1](options)), reads)


class Open:
    """A store that is open, and its changelog."""

    def __init__(self, builder: Any, directory: Path | None, *, headers: bool = True) -> None:
        self.headers = headers  # whether the headers of values are compared
        self.changelog = ChangelogList()
        self.store = builder.build()
        self.store.open(directory, StoreContext("app", changelog=self.changelog))

    def logged(self) -> list[ChangelogRecord]:
        return list(self.changelog.records("app-s-changelog"))

    def does(self, step: int, operation: Operation) -> Any:
        """What an operation gives: rows in order of their keys, since the stores have orders of their own."""
        name, arguments = operation
        self.store.context.record = RecordContext("in", 0, step, step, Headers([("step", b"%d" % step)]))
        try:
            result = getattr(self.store, name)(*arguments)
        except PrefixError:
            # What ends no range is refused in memory, and read to the end in RocksDB.
            result = [row for row in self.rows("all") if row[0].startswith(arguments[0])]
        except ValueError as error:
            assert str(error) == "inconsistent range"
            result = []
        if not hasattr(result, "close") and not isinstance(result, list):
            return self.shown(result)
        rows = [(key, self.shown(value)) for key, value in result]
        backward = getattr(self.store, f"backward_{name}", None) or getattr(self.store, f"reverse_{name}", None)
        if backward is not None and (rows or name != "fetch_range"):  # that may be refused in memory
            assert [(key, self.shown(value)) for key, value in backward(*arguments)] == rows[::-1]
        return sorted(rows, key=repr)

    def rows(self, name: str) -> list[Any]:
        with getattr(self.store, name)() as rows:
            return list(rows)

    def shown(self, value: Any) -> Any:
        """A value as it is compared: headers in order, and read."""
        if value is None or isinstance(value, int):
            return value
        payload = value.aggregation if isinstance(value, AggregationWithHeaders) else value.value
        times = [getattr(value, name, None) for name in ("timestamp", "valid_to")]
        return payload, times, [tuple(header) for header in value.headers] if self.headers else []


def check(name: str, work: list[Operation]) -> None:
    store_type = built(name)
    # Small buffers: what was written comes from files too.
    options = RocksDBOptions(write_buffer_bytes=1 << 16, block_cache_bytes=1 << 16)
    # Sessions in order of time have their headers only in the changelog.
    headers = not name.startswith("session by time")
    with tempfile.TemporaryDirectory(dir=IN_MEMORY) as directory:

        def opened(place: str) -> list[Open]:
            return [
                Open(store_type.memory(), None, headers=headers),
                Open(store_type.rocksdb(options), Path(directory, place), headers=headers),
            ]

        memory, rocksdb = opened("task")
        observed = -1
        for step, operation in enumerate(work):
            if name.startswith("session"):
                if operation[0] == "put":
                    observed = max(observed, operation[1][0].end)
                if operation[0] == "remove" and operation[1][0].end > observed:
                    continue  # time goes on with what is removed in RocksDB, and does not in memory
                if operation[0] == "find_sessions_time" and " by time" not in name:
                    continue
            expected, result = memory.does(step, operation), rocksdb.does(step, operation)
            if operation[0] == "find_sessions_time":  # where a segment still is, its rows are found by their time
                result = [row for row in result if row[0].end > observed - RETENTION]
            assert result == expected, (step, operation)
        assert rocksdb.logged() == memory.logged()
        expected = [memory.does(0, read) for read in store_type.reads]
        assert [rocksdb.does(0, read) for read in store_type.reads] == expected
        restored = opened("restored")
        for reopened in restored:
            reopened.store.restore(memory.logged())
            again = [reopened.does(0, read) for read in store_type.reads]
            if not name.startswith("session") or work_observed(work) == observed:
                assert again == expected
        for opening in (memory, rocksdb, *restored):
            assert chain(opening.store)[-1].is_open
            opening.store.close()


def work_observed(work: list[Operation]) -> int:
    """The latest end of a session that was put, or removed."""
    return max((arguments[0].end for operation, arguments in work if operation in ("put", "remove")), default=-1)


@given(st.lists(KEY_VALUE, max_size=40))
@some
def test_key_value_stores_behave_equally(work: list[Operation]) -> None:
    check("key-value", work)


@pytest.mark.parametrize("order", ["", " by time", " by time without index"])
@given(work=st.lists(WINDOWS, max_size=25))
@some
def test_window_stores_behave_equally(order: str, work: list[Operation]) -> None:
    check(f"window{order}", work)


@pytest.mark.parametrize("order", ["", " by time", " by time without index"])
@given(work=st.lists(SESSIONS, max_size=25))
@some
def test_session_stores_behave_equally(order: str, work: list[Operation]) -> None:
    check(f"session{order}", work)


@given(st.lists(VERSIONS, max_size=40))
@some
def test_versioned_stores_behave_equally(work: list[Operation]) -> None:
    check("versioned", work)
