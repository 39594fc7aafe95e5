"""The layers: what each does with headers, with what deletes, and with its counters, for every store type."""

from __future__ import annotations

import inspect
import itertools
import os
import pickle
import random
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import letterhead as lh
from letterhead import Headers
from letterhead.errors import (
    DamagedRowError,
    InvalidStateStoreError,
    InvalidTimestampError,
    SerdeError,
    StateStoreError,
    TopologyError,
    UnsupportedOperationError,
)
from letterhead.state import (
    PUT_NOT_VALID,
    AggregationWithHeaders,
    ChangelogRecord,
    HeadersBytesStore,
    Int64Serde,
    Record,
    RecordContext,
    Serde,
    SessionKey,
    StateSerdes,
    Stores,
    StringSerde,
    Supplier,
    ValueAndTimestamp,
    ValueTimestampHeaders,
    VersionedRecord,
    VersionedRecordWithHeaders,
    WindowedKey,
)
from letterhead.state.context import ChangelogList, StoreContext
from letterhead.state.layers.base import chain, restores_as
from letterhead.state.layers.cache import ENTRY_BYTES, CacheEntry, RecordCache
from letterhead.state.layers.conversion import KeyValueFacade, SessionFacade, WindowFacade, adapt
from letterhead.state.memory import InMemoryKeyValueStore
from letterhead.state.storage.keys import session_key, window_key
from letterhead.state.values import LazyHeaders

ODD = Headers([("route", b"a"), ("tenant", None), ("route", b""), ("ключ", b"\xff"), ("route", b"a")])
"""Keys that repeat, null beside empty, a key outside ASCII: what a layer could lose."""

OF_THE_RECORD = Headers([("record", b"r")])


class Family:
    """One store type, with one row that the tests write, read and delete."""

    def __init__(self, name: str, *, persistent: bool = False) -> None:
        self.name = name
        self.persistent = persistent
        self.headed = name in ("key-value", "window")

    def __str__(self) -> str:
        return f"{self.name} in {'RocksDB' if self.persistent else 'memory'}"

    def builder(self) -> Any:
        in_rocksdb = self.persistent
        match self.name:
            case "key-value":
                build = Stores.timestamped_key_value_store_with_headers_builder
                make = Stores.persistent_timestamped_key_value_store_with_headers
                return build(make("s") if in_rocksdb else Stores.in_memory_key_value_store("s"))
            case "window":
                build = Stores.timestamped_window_store_with_headers_builder
                make_windows = Stores.persistent_timestamped_window_store_with_headers
                return build((make_windows if in_rocksdb else Stores.in_memory_window_store)("s", 1000, 10))
            case "session":
                build = Stores.session_store_with_headers_builder
                make_sessions = Stores.persistent_session_store_with_headers
                return build((make_sessions if in_rocksdb else Stores.in_memory_session_store)("s", 1000))
        make_versions = Stores.persistent_versioned_key_value_store_with_headers
        supplier = (make_versions if in_rocksdb else Stores.in_memory_versioned_key_value_store)("s", 1000)
        return Stores.versioned_key_value_store_with_headers_builder(supplier)

    def put(self, store: Any, headers: Headers) -> None:
        match self.name:
            case "key-value":
                store.put(b"k", ValueTimestampHeaders.make(b"v", 5, headers))
            case "window":
                store.put(b"k", ValueTimestampHeaders.make(b"v", 5, headers), 10)
            case "session":
                store.put(SessionKey(b"k", 10, 20), AggregationWithHeaders.make(b"v", headers))
            case "versioned":
                store.put(b"k", b"v", 5, headers)

    def delete(self, store: Any) -> None:
        match self.name:
            case "key-value":
                store.delete(b"k")
            case "window":
                store.put(b"k", None, 10)
            case "session":
                store.remove(SessionKey(b"k", 10, 20))
            case "versioned":
                store.delete(b"k", 7)

    def get(self, store: Any) -> Any:
        match self.name:
            case "window":
                return store.fetch(b"k", 10)
            case "session":
                return store.fetch_session(b"k", 10, 20)
        return store.get(b"k")

    def stored(self, store: Any) -> bytes | None:
        """What the store at the bottom has."""
        state = self.get(chain(store)[-1])
        return state.value if self.name == "versioned" and state is not None else state

    def headers_below(self, store: Any) -> Headers:
        format = "streams-timestamped" if self.headed else "streams"
        headers: Headers = lh.decode(self.stored(store) or b"", format).headers  # type: ignore[union-attr]
        return headers


KV, WINDOW, SESSION, VERSIONED = (Family(name) for name in ("key-value", "window", "session", "versioned"))
LAYERS = ("metered", "caching", "change-logging")
FAMILIES = (KV, WINDOW, SESSION, VERSIONED)
IN_ROCKSDB = tuple(Family(plain.name, persistent=True) for plain in FAMILIES)
# Versions are not cached: a test of its own says so.
TABLE = [
    (layer, member)
    for layer in LAYERS
    for member in (*FAMILIES, *IN_ROCKSDB)
    if (layer, member.name) != ("caching", "versioned")
]
table = pytest.mark.parametrize(("layer", "family"), TABLE, ids=[f"{layer}-{member}" for layer, member in TABLE])


class Opened:
    """A store that is open, with the record at hand."""

    def __init__(
        self, builder: Any, *, cache_bytes: int = 1 << 20, directory: Path | None = None, **source: Any
    ) -> None:
        self.changelog = ChangelogList()
        self.context = StoreContext("app", changelog=self.changelog, cache=RecordCache(cache_bytes), **source)
        self.headers = Headers(OF_THE_RECORD)
        self.at(3)
        self.store = builder.build()
        self.store.open(directory, self.context)

    def at(self, timestamp: int) -> None:
        self.context.record = RecordContext("in", 0, timestamp, timestamp, self.headers)

    def logged(self) -> list[ChangelogRecord]:
        records = self.changelog.records("app-s-changelog")
        taken = list(records)
        records.clear()
        return taken


def with_layer(family: Family, layer: str, directory: Path | None = None) -> Opened:
    """A store with the metered layer and, if it is another, that one."""
    builder = family.builder()
    builder = builder.with_caching_enabled() if layer == "caching" else builder
    return Opened(builder if layer == "change-logging" else builder.with_logging_disabled(), directory=directory)


@table
def test_headers_reach_store_and_changelog(layer: str, family: Family, tmp_path: Path) -> None:
    opened = with_layer(family, layer, tmp_path)
    family.put(opened.store, Headers(ODD))
    assert family.get(opened.store).headers == ODD
    if layer == "caching":
        assert family.stored(opened.store) is None
        opened.store.flush()
    assert family.headers_below(opened.store) == ODD
    assert family.get(opened.store).headers == ODD
    logged = opened.logged()
    assert [record.headers for record in logged] == ([ODD] if layer == "change-logging" else [])
    assert [record.value for record in logged] == ([b"v"] if layer == "change-logging" else [])
    assert opened.headers == OF_THE_RECORD
    opened.store.close()


@table
def test_tombstone_deletes_and_has_record_headers(layer: str, family: Family, tmp_path: Path) -> None:
    opened = with_layer(family, layer, tmp_path)
    family.put(opened.store, Headers(ODD))
    opened.store.flush()
    opened.logged()
    opened.at(7)
    family.delete(opened.store)
    assert family.get(opened.store) is None
    if layer == "caching":
        assert family.headers_below(opened.store) == ODD
        opened.store.flush()
    assert family.stored(opened.store) is None
    assert family.get(opened.store) is None
    tombstones = opened.logged()
    if layer == "change-logging":
        (tombstone,) = tombstones
        assert (tombstone.value, tombstone.timestamp, tombstone.headers) == (None, 7, OF_THE_RECORD)
        assert tombstone.headers is not opened.headers
    else:
        assert tombstones == []
    opened.store.close()


@table
def test_metrics_do_not_depend_on_headers(layer: str, family: Family, tmp_path: Path) -> None:
    counted = []
    for headers in (Headers(), Headers(ODD)):
        opened = with_layer(family, layer, tmp_path / str(len(counted)))
        family.put(opened.store, headers)
        family.get(opened.store)
        opened.store.flush()
        family.delete(opened.store)
        family.get(opened.store)
        metrics = opened.store.metrics
        counted.append({name: metrics[name].count for name in metrics} | {"logged": len(opened.logged())})
        if layer == "caching":
            cache = opened.store.inner.cache
            counted[-1] |= {"hits": cache.hits, "misses": cache.misses, "flushes": cache.flushes}
        assert all((metrics[name].total_ns > 0) == (metrics[name].count > 0) for name in metrics)
        opened.store.close()
    assert counted[0] == counted[1]
    assert counted[0]["put"] >= 1


def test_versioned_stores_reject_caching() -> None:
    with pytest.raises(TopologyError, match="cannot be cached"):
        VERSIONED.builder().with_caching_enabled()


def test_layers_follow_builder_order() -> None:
    assert KV.builder().with_caching_enabled().build().layers() == [
        "TimestampedKeyValueStoreWithHeaders",
        "CachingKeyValueStore",
        "ChangeLoggingKeyValueStore",
        "InMemoryKeyValueStore",
    ]
    duplicates = Stores.in_memory_window_store("s", 1000, 10, True)
    cached = Stores.timestamped_window_store_with_headers_builder(duplicates).with_caching_enabled().build()
    assert "CachingWindowStore" not in cached.layers()


# Metered.


def kv(**source: Any) -> Opened:
    return Opened(KV.builder(), **source)


def value(data: bytes = b"v", headers: Any = (), timestamp: int = 5) -> Any:
    return ValueTimestampHeaders.make(data, timestamp, Headers(headers))


def test_null_keys_are_rejected() -> None:
    store = kv().store
    for call in (
        lambda: store.put(None, value()),
        lambda: store.put_if_absent(None, value()),
        lambda: store.put_all([(None, value())]),
        lambda: store.delete(None),
        lambda: store.get(None),
        lambda: store.prefix_scan(None),
    ):
        with pytest.raises(TypeError, match="key cannot be null"):
            call()
    session = with_layer(SESSION, "metered").store
    with pytest.raises(TypeError, match="sessionKey can't be null"):
        session.put(None, None)
    with pytest.raises(TypeError, match="can't be null"):
        session.remove(SessionKey(None, 0, 1))  # type: ignore[arg-type]


def test_value_of_wrong_type_is_rejected() -> None:
    with pytest.raises(TypeError, match="store s holds ValueTimestampHeaders, not bytes"):
        kv().store.put(b"k", b"v")


def test_serde_of_wrong_type_is_named_in_error() -> None:
    builder = Stores.timestamped_key_value_store_with_headers_builder(
        Stores.in_memory_key_value_store("s"), StringSerde(), Int64Serde()
    )
    store = Opened(builder).store
    with pytest.raises(SerdeError, match="is not compatible to the actual key type"):
        store.put(b"k", value())
    with pytest.raises(SerdeError, match="is not compatible to the actual value type"):
        store.put("k", value())
    store.put("k", ValueTimestampHeaders.make(7, 5, ODD))
    assert store.get("k") == ValueTimestampHeaders.make(7, 5, ODD)


def test_latencies_are_counted_by_operation() -> None:
    store = kv().store
    for _ in range(3):
        store.put(b"k", value())
    store.get(b"k")
    assert (store.metrics["put"].count, store.metrics["get"].count, store.metrics["delete"].count) == (3, 1, 0)
    assert 0 < store.metrics["put"].average_ns <= store.metrics["put"].max_ns <= store.metrics["put"].total_ns
    assert store.metrics.as_dict()["put"]["count"] == 3


def test_open_iterators_are_counted() -> None:
    store = kv().store
    store.put(b"k", value())
    with store.all() as rows:
        assert store.metrics.open_iterators == 1
        assert rows.peek_next_key() == b"k"
        assert [key for key, _ in rows] == [b"k"]
    assert (store.metrics.open_iterators, store.metrics["iterator"].count) == (0, 1)
    with pytest.raises(InvalidStateStoreError):
        next(rows)


def test_iterators_are_closed_with_their_store() -> None:
    opened = kv()
    opened.store.put(b"k", value())
    rows = opened.store.all()
    opened.store.close()
    with pytest.raises(InvalidStateStoreError):
        next(rows)


@pytest.mark.parametrize("caching", [False, True])
def test_value_scan_parses_no_headers(caching: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    builder = KV.builder().with_caching_enabled() if caching else KV.builder()
    store = Opened(builder).store
    for n in range(10):
        store.put(b"%d" % n, value(b"v%d" % n, ODD))
    parsed = []
    read = LazyHeaders._read
    monkeypatch.setattr(LazyHeaders, "_read", lambda self: parsed.append(self) or read(self))
    with store.all() as rows:
        states = dict(rows)
    assert [state.value for state in states.values()] == [b"v%d" % n for n in range(10)]
    assert parsed == []
    assert states[b"3"].headers == ODD
    assert len(parsed) == 1


def damaged(**source: Any) -> Opened:
    builder = KV.builder().with_logging_disabled().with_errors(source.pop("errors", "skip"))
    opened = Opened(builder, **source)
    bottom = chain(opened.store)[-1]
    for key, data in ((b"a", value(b"1")), (b"c", value(b"3"))):
        opened.store.put(key, data)
    bottom.put(b"b", b"\x10\x02")  # a block of 8 bytes is announced, and one is there
    return opened


def test_damaged_row_names_store_key_byte_and_reason() -> None:
    store = damaged().store
    with pytest.raises(DamagedRowError) as raised:
        store.get(b"b")
    error = raised.value
    assert (error.store, error.key, error.code) == ("s", b"b", "truncated")
    assert error.byte_offset is not None
    assert str(error) == f"store s: {error.reason} (key 62, byte {error.byte_offset})"


def test_damaged_row_does_not_end_scan(caplog: pytest.LogCaptureFixture) -> None:
    store = damaged().store
    with store.all() as rows:
        assert [key for key, _ in rows] == [b"a", b"c"]
        assert [error.key for error in rows.damaged] == [b"b"]
    assert store.metrics.damaged_rows == 1
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "key 62" in caplog.text


def test_raising_scan_continues_after_damaged_row() -> None:
    store = damaged(errors="raise").store
    with store.all() as rows:
        assert next(rows)[0] == b"a"
        with pytest.raises(DamagedRowError):
            next(rows)
        assert next(rows)[0] == b"c"
        assert not rows.has_next()


def test_damage_inside_headers_is_detected_when_read() -> None:
    opened = kv()
    chain(opened.store)[-1].put(b"b", b"\x06\x02\x01\x00" + bytes(8) + b"v")  # one header, whose key has the length -1
    state = opened.store.get(b"b")
    assert (state.value, state.timestamp) == (b"v", 0)
    with pytest.raises(DamagedRowError, match=r"store s: key length -1 is negative \(key 62, header 0, byte 2\)"):
        len(state.headers)


every_family = pytest.mark.parametrize("family", [*FAMILIES, *IN_ROCKSDB], ids=str)


@every_family
def test_row_at_limits_is_read_and_row_over_them_is_damaged(family: Family, tmp_path: Path) -> None:
    def opened(limits: lh.Limits, directory: str) -> Any:
        return Opened(family.builder().with_limits(limits), directory=tmp_path / directory).store

    count, size = len(ODD), len(lh.encode(ODD, "kafka") or b"") + 1 + (8 if family.headed else 0) + len(b"v")
    store = opened(lh.Limits(headers=count, message_bytes=size), "at")
    family.put(store, Headers(ODD))
    assert len(family.stored(store) or b"") == size
    assert family.get(store).headers == ODD
    store.close()

    store = opened(lh.Limits(message_bytes=size - 1), "bytes")
    family.put(store, Headers(ODD))
    output = f"the input has {size} bytes, over the limit of {size - 1}: raise message_bytes in limits= or "
    with pytest.raises(DamagedRowError, match=output) as raised:
        family.get(store)
    assert (raised.value.code, raised.value.byte_offset) == ("limit_exceeded", size - 1)
    assert store.metrics.damaged_rows == 1
    store.close()

    store = opened(lh.Limits(headers=count - 1), "headers")
    family.put(store, Headers(ODD))
    with pytest.raises(DamagedRowError, match=f"{count} headers declared, over the limit of {count - 1}") as raised:
        len(family.get(store).headers)
    assert (raised.value.code, raised.value.byte_offset) == ("limit_exceeded", 1)
    store.close()


def test_writes_are_not_limited_and_logged_completely() -> None:
    opened = Opened(KV.builder().with_limits(lh.Limits(headers=0, message_bytes=0)))
    KV.put(opened.store, Headers(ODD))
    assert [(record.value, record.headers) for record in opened.logged()] == [(b"v", ODD)]
    assert KV.headers_below(opened.store) == ODD


def test_scan_omits_row_over_limit() -> None:
    store = Opened(KV.builder().with_limits(lh.Limits(message_bytes=20))).store
    for key, headers in ((b"a", None), (b"b", ODD), (b"c", None)):
        store.put(key, ValueTimestampHeaders.make(b"v", 5, headers))
    with store.all() as rows:
        assert [key for key, _ in rows] == [b"a", b"c"]
        assert [(error.key, error.code) for error in rows.damaged] == [(b"b", "limit_exceeded")]


def test_store_uses_its_limits() -> None:
    assert KV.builder().build().limits == lh.Limits().filled()
    assert KV.builder().with_limits(lh.Limits(headers=9)).build().limits == lh.Limits(headers=9).filled()
    with pytest.raises(TypeError, match=r"limits must be letterhead\.Limits, not int"):
        KV.builder().with_limits(9)


@pytest.mark.parametrize("persistent", [False, True], ids=["memory", "RocksDB"])
@pytest.mark.parametrize(
    ("name", "key"),
    [("window", window_key(b"k", 10)), ("session", session_key(b"k", 10, 20))],
    ids=["window", "session"],
)
def test_damaged_window_or_session_is_named_with_times(name: str, key: bytes, persistent: bool, tmp_path: Path) -> None:
    family = Family(name, persistent=persistent)
    opened = Opened(family.builder().with_logging_disabled(), directory=tmp_path)
    store, bottom = opened.store, chain(opened.store)[-1]

    def put(stored: bytes) -> None:
        bottom.put(b"k", stored, 10) if name == "window" else bottom.put(SessionKey(b"k", 10, 20), stored)

    put(b"\x10\x02")  # a block of 8 bytes is announced, and one is there
    with pytest.raises(DamagedRowError, match=rf"^store s: .* \(key {key.hex()}, ") as raised:
        family.get(store)
    assert raised.value.key == key
    with store.fetch_range(None, None, 0, 100) if name == "window" else store.fetch(b"k") as rows:
        assert list(rows) == []
        assert [error.key for error in rows.damaged] == [key]
    put(b"\x06\x02\x01\x00" + bytes(8) + b"v")  # one header, whose key has the length -1
    with pytest.raises(
        DamagedRowError, match=rf"^store s: key length -1 is negative \(key {key.hex()}, header 0, byte 2\)$"
    ):
        len(family.get(store).headers)
    store.close()


def test_store_serializes_with_its_state_serdes() -> None:
    suppliers = [Stores.in_memory_key_value_store("s")] * 2
    plain = Opened(Stores.key_value_store_builder(suppliers[0], StringSerde(), Int64Serde())).store
    headed = Opened(
        Stores.timestamped_key_value_store_with_headers_builder(suppliers[1], StringSerde(), Int64Serde())
    ).store
    for store, put in ((plain, 7), (headed, ValueTimestampHeaders.make(7, 5, ODD))):
        assert isinstance(store.serdes, StateSerdes)
        assert store.serdes.topic == "app-s-changelog"
        store.put("k", put)
        raw_key, raw_value = store.serdes.raw_key("k", Headers()), store.serdes.raw_value(put, Headers())
        assert chain(store)[-1].get(raw_key) == raw_value
        assert store.get("k") == put == store.serdes.value_from(raw_value, Headers())
        assert list(store.all()) == [("k", put)]
    plain.serdes = StateSerdes("t", Int64Serde(), StringSerde())
    plain.put(1, "one")
    assert chain(plain)[-1].get(bytes(7) + b"\1") == b"one"
    assert plain.get(1) == "one"


# Change-logging.


def test_negative_timestamp_is_rejected_before_store_changes() -> None:
    opened = kv()
    with pytest.raises(InvalidTimestampError, match="Invalid timestamp: -1"):
        opened.store.put(b"k", value(timestamp=-1))
    assert opened.store.get(b"k") is None
    unlogged = Opened(KV.builder().with_logging_disabled()).store
    unlogged.put(b"k", value(timestamp=-1))
    assert unlogged.get(b"k").timestamp == -1


@pytest.mark.parametrize("family", [KV, WINDOW], ids=str)
def test_cache_rejects_negative_timestamp_and_commits_others(family: Family) -> None:
    opened = Opened(family.builder().with_caching_enabled())
    start = (10,) if family is WINDOW else ()
    with pytest.raises(InvalidTimestampError, match="Invalid timestamp: -1") as raised:
        opened.store.put(b"bad", value(timestamp=-1), *start)
    assert raised.value.__notes__
    opened.store.put(b"good", value(timestamp=7), *start)
    opened.store.flush()
    assert [record.timestamp for record in opened.logged()] == [7]


def test_cache_without_changelog_accepts_negative_timestamp() -> None:
    builder = KV.builder().with_caching_enabled().with_logging_disabled()
    store = Opened(builder).store
    store.put(b"k", value(timestamp=-1))
    store.flush()
    assert store.get(b"k").timestamp == -1


def test_put_if_absent_is_logged_only_if_it_writes() -> None:
    opened = kv()
    assert opened.store.put_if_absent(b"k", value(b"1", ODD)) is None
    assert opened.store.put_if_absent(b"k", value(b"2")).value == b"1"
    assert [(record.value, record.headers) for record in opened.logged()] == [(b"1", ODD)]


def test_store_position_can_be_logged_with_every_record() -> None:
    opened = kv(consistency_vectors=True)
    opened.store.put(b"k", value(b"1", ODD))
    (record,) = opened.logged()
    assert record.headers[:-2] == ODD
    assert [key for key, _ in record.headers[-2:]] == ["v", "c"]
    other = kv(consistency_vectors=True)
    other.store.restore([record])
    assert other.store.get(b"k").headers == ODD
    assert other.store.position == opened.store.position


@pytest.mark.parametrize("family", [KV, WINDOW, SESSION, VERSIONED], ids=lambda family: family.name)
def test_memory_store_restores_from_changelog(family: Family) -> None:
    first = Opened(family.builder())
    family.put(first.store, Headers(ODD))
    changelog = first.logged()
    first.store.close()
    second = Opened(family.builder())
    assert family.get(second.store) is None
    second.store.restore(changelog)
    assert family.get(second.store).headers == ODD
    assert second.logged() == []


# Caching.


def cached(**source: Any) -> Opened:
    return Opened(KV.builder().with_caching_enabled(), **source)


def test_only_last_write_of_key_leaves_cache() -> None:
    opened = cached()
    for n in range(3):
        opened.store.put(b"k", value(b"%d" % n))
        opened.store.put(b"l", value(b"%d" % n))
    opened.store.put(b"k", value(b"last", ODD))
    assert opened.logged() == []
    opened.store.flush()
    assert [(record.key, record.value) for record in opened.logged()] == [(b"l", b"2"), (b"k", b"last")]


def test_cached_write_is_logged_with_its_own_record() -> None:
    opened = cached()
    opened.at(3)
    opened.store.delete(b"k")
    opened.headers = Headers([("later", b"")])
    opened.at(9)
    opened.store.put(b"l", value())
    opened.store.flush()
    tombstone = opened.logged()[0]
    assert (tombstone.timestamp, tombstone.headers) == (3, OF_THE_RECORD)
    assert opened.context.record is not None
    assert opened.context.record.timestamp == 9


def test_full_cache_evicts_least_recently_used_entries() -> None:
    entry = ENTRY_BYTES + 1 + len(stored_value(b"1"))
    opened = cached(cache_bytes=3 * entry)
    cache = opened.store.inner.cache
    for key in (b"a", b"b", b"c"):
        opened.store.put(key, value(b"1"))
    opened.store.flush()
    opened.logged()
    opened.store.get(b"a")
    opened.store.put(b"d", value(b"1"))
    assert (len(cache), cache.evictions, opened.context.cache.size_bytes) == (3, 1, 3 * entry)  # type: ignore[union-attr]
    hits = cache.hits
    opened.store.get(b"a")
    opened.store.get(b"c")
    assert cache.hits == hits + 2
    assert opened.logged() == []


def test_evicting_dirty_entry_flushes_all_dirty_ones() -> None:
    entry = ENTRY_BYTES + 1 + len(stored_value(b"1"))
    opened = cached(cache_bytes=3 * entry)
    for key in (b"a", b"b", b"c", b"d"):
        opened.store.put(key, value(b"1"))
    assert [record.key for record in opened.logged()] == [b"a", b"b", b"c", b"d"]
    assert len(opened.store.inner.cache) == 3


def test_cache_of_zero_bytes_writes_through() -> None:
    opened = cached(cache_bytes=0)
    opened.store.put(b"k", value())
    assert len(opened.logged()) == 1
    assert opened.store.get(b"k") == value()


def test_namespaces_share_only_byte_limit() -> None:
    cache = RecordCache(10_000)
    first, two = (cache.namespace(name, lambda key, entry: None) for name in ("one", "two"))
    first.put(b"k", b"1", None)
    two.put(b"k", b"22", None)
    assert (first.get(b"k").value, two.get(b"k").value) == (b"1", b"22")  # type: ignore[union-attr]
    assert cache.size_bytes == 2 * ENTRY_BYTES + 2 + 3
    cache.close("one")
    assert (cache.size_bytes, len(cache)) == (ENTRY_BYTES + 3, 1)
    with pytest.raises(ValueError, match="has a namespace 'two' already"):
        cache.namespace("two", lambda key, entry: None)


def test_store_with_taken_namespace_is_closed_again() -> None:
    opened = cached()
    other = KV.builder().with_caching_enabled().build()
    with pytest.raises(ValueError, match="has a namespace '0_0-s' already"):
        other.open(None, opened.context)
    assert not other.is_open


def test_entries_that_fail_to_write_stay_in_cache() -> None:
    opened = cached()
    bottom = chain(opened.store)[-1]
    put = bottom.put
    for key in (b"a", b"b", b"c"):
        opened.store.put(key, value(key))

    def full(key: bytes, data: bytes | None) -> None:
        if key == b"b":
            raise OSError("no space left on device")
        put(key, data)

    bottom.put = full
    with pytest.raises(OSError, match="no space"):
        opened.store.flush()
    bottom.put = put
    assert [record.key for record in opened.logged()] == [b"a"]
    opened.store.flush()
    assert [record.key for record in opened.logged()] == [b"b", b"c"]
    assert opened.store.get(b"b").value == b"b"


@pytest.mark.parametrize("backward", [False, True])
def test_scans_merge_cached_and_stored_rows(backward: bool) -> None:
    opened = cached()
    for key in (b"a", b"c", b"e", b"g"):
        opened.store.put(key, value(b"stored"))
    opened.store.flush()
    opened.store.delete(b"a")
    opened.store.put(b"b", value(b"held"))
    opened.store.put(b"c", value(b"held"))
    opened.store.delete(b"g")
    opened.store.delete(b"z")
    with opened.store.reverse_all() if backward else opened.store.all() as rows:
        result = [(key, row.value) for key, row in rows]
    expected = [(b"b", b"held"), (b"c", b"held"), (b"e", b"stored")]
    assert result == (expected[::-1] if backward else expected)
    with opened.store.prefix_scan(b"c") as rows:
        assert [key for key, _ in rows] == [b"c"]


def test_cached_windows_and_sessions_do_not_expire() -> None:
    opened = Opened(WINDOW.builder().with_caching_enabled())
    opened.store.put(b"k", value(b"old"), 0)
    opened.store.put(b"k", value(b"new"), 5000)
    opened.store.flush()
    assert opened.store.fetch(b"k", 0).value == b"old"
    with opened.store.fetch_key(b"k", 0, 9000) as rows:
        assert [(row.start, row.end) for row, _ in rows] == [(0, 10), (5000, 5010)]


KEYS = [b"a", b"a\0", b"a\xff", b"ab", b"b", b"c" + bytes(9)]
TIMES = [0, 1, 9, 10, 60_000, 199_999, 200_000, 200_001, 399_999]
BOUNDS = [None, *KEYS]


def windows(supplier: Any) -> tuple[Any, Callable[[Any, random.Random], None], Callable[[Any], Iterator[Any]]]:
    def write(store: Any, chance: random.Random) -> None:
        data = None if chance.random() < 0.3 else value(chance.randbytes(2), ODD)
        store.put(chance.choice(KEYS), data, chance.choice(TIMES))

    def read(store: Any) -> Iterator[Any]:
        for first, last in ((0, 1 << 62), (5, 60_000), (10, 9), (60_000, 200_000)):
            for key in KEYS:
                yield store.fetch_key(key, first, last)
                yield store.backward_fetch_key(key, first, last)
            for low, high in itertools.product(BOUNDS, BOUNDS):
                yield store.fetch_range(low, high, first, last)
                yield store.backward_fetch_range(low, high, first, last)
            yield store.fetch_all(first, last)
            yield store.backward_fetch_all(first, last)
        yield store.all()
        yield store.backward_all()

    return Stores.timestamped_window_store_with_headers_builder(supplier), write, read


def sessions(supplier: Any) -> tuple[Any, Callable[[Any, random.Random], None], Callable[[Any], Iterator[Any]]]:
    by_time = supplier.order != "segments"
    # In order of time, the store below the cache keeps no headers.
    headers = Headers() if supplier.order == "time" else Headers(ODD)

    def write(store: Any, chance: random.Random) -> None:
        start, end = sorted(chance.choices(TIMES, k=2))
        data = None if chance.random() < 0.3 else AggregationWithHeaders.make(chance.randbytes(2), headers)
        store.put(SessionKey(chance.choice(KEYS), start, end), data)

    def read(store: Any) -> Iterator[Any]:
        for earliest, latest in ((0, 1 << 62), (5, 60_000), (60_000, 9), (200_000, 200_000)):
            for key in KEYS:
                yield store.find_sessions(key, earliest, latest)
                yield store.backward_find_sessions(key, earliest, latest)
            for low, high in itertools.product(BOUNDS, BOUNDS):
                yield store.find_sessions_range(low, high, earliest, latest)
                yield store.backward_find_sessions_range(low, high, earliest, latest)
            if by_time and earliest <= latest:
                yield store.find_sessions_time(earliest, latest)
        for key in KEYS:
            yield store.fetch(key)
            yield store.backward_fetch(key)

    return Stores.session_store_with_headers_builder(supplier), write, read


FOREVER = 1 << 40
WINDOWED = {
    "window": lambda: windows(Stores.persistent_timestamped_window_store_with_headers("s", 400_000, 10)),
    "window by time": lambda: windows(Stores.persistent_time_ordered_window_store_with_headers("s", 400_000, 10)),
    "window in memory": lambda: windows(Stores.in_memory_window_store("s", FOREVER, 10)),
    "session": lambda: sessions(Stores.persistent_session_store_with_headers("s", 400_000)),
    "session by time": lambda: sessions(Stores.persistent_time_ordered_session_store_with_headers("s", 400_000)),
    "session in memory": lambda: sessions(Stores.in_memory_session_store("s", FOREVER)),
}


@pytest.mark.parametrize("store_type", WINDOWED)
def test_cache_changes_neither_rows_nor_order(store_type: str, tmp_path: Path) -> None:
    """Random writes, some of them flushed: every read gives what it gives without a cache, while nothing grows old."""
    chance = random.Random(store_type)
    builder, write, read = WINDOWED[store_type]()
    plain = Opened(builder, directory=tmp_path / "plain")
    cached = Opened(builder.with_caching_enabled(), directory=tmp_path / "cached")
    compared = 0
    for _ in range(3):
        for _ in range(12):
            seed = chance.random()
            for opened in (plain, cached):
                write(opened.store, random.Random(seed))
            if chance.random() < 0.1:
                cached.store.flush()
        for without_cache, with_cache in zip(read(plain.store), read(cached.store), strict=True):
            with without_cache, with_cache:
                expected = list(without_cache)
                assert list(with_cache) == expected
                compared += len(expected)
    assert compared > 100
    for opened in (plain, cached):
        opened.store.close()


# Flush listeners.


def heard(opened: Opened, **source: Any) -> list[Record[Any, Any]]:
    records: list[Record[Any, Any]] = []
    assert opened.store.set_flush_listener(records.append, **source) is True
    return records


def test_flush_listener_receives_value_headers_and_time() -> None:
    opened = cached()
    records = heard(opened, send_old_values=True)
    opened.store.put(b"k", value(b"1", ODD))
    opened.store.flush()
    opened.store.put(b"k", value(b"2", timestamp=8))
    opened.store.flush()
    assert [(record.key, record.timestamp, record.headers) for record in records] == [
        (b"k", 5, OF_THE_RECORD),
        (b"k", 8, OF_THE_RECORD),
    ]
    assert records[0].value == (value(b"1", ODD), None)
    assert records[1].value == (value(b"2", timestamp=8), value(b"1", ODD))


class Pickled(Serde[Any]):
    def serialize(self, topic: str, headers: Headers, data: Any) -> bytes | None:
        return None if data is None else pickle.dumps(data)

    def deserialize(self, topic: str, headers: Headers, data: bytes | None) -> Any:
        return None if data is None else pickle.loads(data)


@pytest.mark.parametrize("written", [datetime(2026, 1, 31, tzinfo=UTC), 0])
def test_flush_listener_receives_record_time_for_custom_values(written: Any) -> None:
    """A datetime has a method of the name that our own values have their time under."""
    supplier = Stores.in_memory_key_value_store("times")
    builder = Stores.key_value_store_builder(supplier, None, Pickled())
    opened = Opened(builder.with_caching_enabled())
    records = heard(opened)
    opened.store.put(b"k", written)
    opened.store.flush()
    assert [(record.key, record.value.new_value, type(record.timestamp)) for record in records] == [
        (b"k", written, int)
    ]


def test_flush_listener_gets_no_row_deleted_in_cache() -> None:
    opened = cached()
    records = heard(opened)
    opened.store.put(b"k", value())
    opened.store.delete(b"k")
    opened.store.flush()
    assert (records, opened.logged()) == ([], [])


def test_flush_listener_receives_window_or_session() -> None:
    windows = Opened(WINDOW.builder().with_caching_enabled())
    records = heard(windows)
    WINDOW.put(windows.store, ODD)
    windows.store.flush()
    assert [(record.key, record.timestamp) for record in records] == [(WindowedKey(b"k", 10, 20), 5)]
    sessions = Opened(SESSION.builder().with_caching_enabled())
    records = heard(sessions)
    SESSION.put(sessions.store, Headers(ODD))
    sessions.store.flush()
    SESSION.delete(sessions.store)
    sessions.store.flush()
    assert [(record.key, record.timestamp, record.headers) for record in records] == [
        (SessionKey(b"k", 10, 20), 20, ODD),
        (SessionKey(b"k", 10, 20), 20, Headers()),
    ]


def test_flush_listener_may_write_to_store() -> None:
    opened = cached()

    def echo(record: Record[Any, Any]) -> None:
        if not record.key.endswith(b"!"):
            opened.store.put(record.key + b"!", record.value.new_value)

    opened.store.set_flush_listener(echo)
    opened.store.put(b"k", value())
    opened.store.flush()
    assert [record.key for record in opened.logged()] == [b"k", b"k!"]


def test_store_without_cache_has_no_flush_listener() -> None:
    assert kv().store.set_flush_listener(print) is False


# Adapters.


def rows_of(store: Any) -> dict[bytes, bytes]:
    with store.all() as rows:
        return dict(rows)


ADAPTED = {
    "timestamped": (Stores.persistent_timestamped_key_value_store, (5).to_bytes(8, "big") + b"v", 5),
    "plain": (Stores.persistent_key_value_store, b"v", -1),
}


@pytest.mark.parametrize("store_type", ADAPTED)
def test_older_supplier_drops_headers_and_logs_them(store_type: str, tmp_path: Path) -> None:
    supplier, below, timestamp = ADAPTED[store_type]
    builder = Stores.timestamped_key_value_store_with_headers_builder(supplier("s"))
    opened = Opened(builder, directory=tmp_path / "a")
    opened.store.put(b"k", value(b"v", ODD))
    assert rows_of(chain(opened.store)[-1]) == {b"k": below}
    assert opened.store.get(b"k") == value(b"v", (), timestamp)
    changelog = opened.logged()
    assert [(record.timestamp, record.headers) for record in changelog] == [(5, ODD)]
    restored = Opened(builder, directory=tmp_path / "b")
    restored.store.restore(changelog)
    assert rows_of(chain(restored.store)[-1]) == {b"k": below}
    for task in (opened, restored):
        task.store.close()


def test_older_session_supplier_keeps_aggregations_only(tmp_path: Path) -> None:
    builder = Stores.session_store_with_headers_builder(Stores.persistent_session_store("s", 1000))
    opened = Opened(builder, directory=tmp_path)
    SESSION.put(opened.store, Headers(ODD))
    assert SESSION.get(opened.store) == AggregationWithHeaders.make(b"v", Headers())
    assert opened.logged()[0].headers == ODD
    with pytest.raises(UnsupportedOperationError):
        opened.store.find_sessions_time(0, 100)
    opened.store.close()


def test_older_versioned_supplier_keeps_versions_without_headers(tmp_path: Path) -> None:
    supplier = Stores.persistent_versioned_key_value_store("s", 1000)
    opened = Opened(Stores.versioned_key_value_store_with_headers_builder(supplier), directory=tmp_path)
    store = opened.store
    assert (store.put(b"k", b"1", 100, ODD), store.put(b"k", b"2", 200, ODD)) == (-1, -1)
    assert store.get(b"k") == VersionedRecordWithHeaders(b"2", 200)
    assert store.get(b"k", 150) == VersionedRecordWithHeaders(b"1", 100, valid_to=200)
    with store.versions(b"k", ascending=True) as rows:
        assert [(version.value, version.headers, version.valid_to) for _, version in rows] == [
            (b"1", Headers(), 200),
            (b"2", Headers(), None),
        ]
    assert chain(store)[-1].get(b"k").value == b"2"
    assert store.delete(b"k", 300) == VersionedRecordWithHeaders(b"2", 200)
    assert store.get(b"k") is None
    logged = opened.logged()
    assert [record.headers for record in logged] == [ODD, ODD, OF_THE_RECORD]
    store.close()
    restored = Opened(
        Stores.versioned_key_value_store_with_headers_builder(supplier), directory=tmp_path / "restored"
    ).store
    restored.restore(logged)
    assert restored.get(b"k", 150) == VersionedRecordWithHeaders(b"1", 100, valid_to=200)
    assert restored.get(b"k") is None
    restored.close()


class Rows:
    """A persistent store of bytes that is none of ours."""

    name, persistent, timestamped, is_open, position = "s", True, False, True, None

    def __init__(self) -> None:
        self.rows: dict[bytes, bytes] = {}

    def open(self, directory: Path | None, context: StoreContext) -> None:
        pass

    def put(self, key: bytes, stored: bytes) -> None:
        self.rows[key] = stored

    def get(self, key: bytes) -> bytes | None:
        return self.rows.get(key)

    put_if_absent = put_all = delete = scan = approximate_num_entries = get


class MarkedRows(Rows, HeadersBytesStore):
    """The same, for values with headers."""


@pytest.mark.parametrize("attribute", [True, False])
def test_marker_decides_if_store_gets_adapter(attribute: bool) -> None:
    for store, is_adapted in ((Rows(), True), (MarkedRows(), False)):
        store.headers = attribute  # type: ignore[attr-defined]
        assert isinstance(store, HeadersBytesStore) is not is_adapted
        supplier = Supplier("s", "key-value", lambda format, store=store: store)
        opened = Opened(Stores.timestamped_key_value_store_with_headers_builder(supplier))
        assert ("PlainToHeadersStoreAdapter" in opened.store.layers()) is is_adapted
        opened.store.put(b"k", value(b"v", ODD))
        assert opened.store.get(b"k") == (value(b"v", (), -1) if is_adapted else value(b"v", ODD))
        assert restores_as(opened.store) == ("plain" if is_adapted else "headers")


def test_adapter_needs_persistent_store() -> None:
    with pytest.raises(ValueError, match="must be a persistent store, but it is not"):
        adapt(InMemoryKeyValueStore("s", format="timestamped"), "key-value", "headers")


def test_newer_supplier_is_not_built_as_older_store() -> None:
    supplier = Stores.persistent_timestamped_key_value_store_with_headers("s")
    with pytest.raises(TopologyError, match="keeps headers"):
        Stores.timestamped_key_value_store_builder(supplier)
    with pytest.raises(TopologyError, match="makes a key-value store, not a window store"):
        Stores.timestamped_window_store_with_headers_builder(supplier)
    versions = Stores.persistent_versioned_key_value_store_with_headers("s", 1000)
    with pytest.raises(TopologyError, match="keeps headers"):
        Stores.versioned_key_value_store_builder(versions)


# Facades.


def test_facade_shows_and_writes_no_headers() -> None:
    opened = kv()
    opened.store.put(b"k", value(b"1", ODD))
    facade = KeyValueFacade(opened.store, timestamps=True)
    assert facade.get(b"k") == ValueAndTimestamp.make(b"1", 5)
    facade.put(b"l", ValueAndTimestamp.make(b"2", 6))
    assert opened.store.get(b"l") == value(b"2", (), 6)
    with facade.all() as rows:
        assert [(key, row.value) for key, row in rows] == [(b"k", b"1"), (b"l", b"2")]
    plain = KeyValueFacade(opened.store, timestamps=False)
    assert (plain.get(b"k"), plain.delete(b"l")) == (b"1", b"2")
    with pytest.raises(InvalidTimestampError):  # there is no timestamp to log it with
        plain.put(b"m", b"3")
    plain.put(b"k", None)
    assert plain.approximate_num_entries() == 0


def test_facades_of_windows_and_sessions_hide_headers() -> None:
    windows = Opened(WINDOW.builder())
    WINDOW.put(windows.store, ODD)
    assert WindowFacade(windows.store, timestamps=False).fetch(b"k", 10) == b"v"
    with WindowFacade(windows.store, timestamps=True).fetch_all(0, 100) as rows:
        assert list(rows) == [(WindowedKey(b"k", 10, 20), ValueAndTimestamp.make(b"v", 5))]
    sessions = Opened(SESSION.builder())
    facade = SessionFacade(sessions.store)
    facade.put(SessionKey(b"k", 10, 20), b"v")
    assert SESSION.get(sessions.store) == AggregationWithHeaders.make(b"v", Headers())
    with facade.fetch(b"k") as rows:
        assert list(rows) == [(SessionKey(b"k", 10, 20), b"v")]
    facade.remove(SessionKey(b"k", 10, 20))
    assert facade.fetch_session(b"k", 10, 20) is None


# Versions.


def test_versions_have_end_of_validity() -> None:
    opened = Opened(VERSIONED.builder())
    store = opened.store
    assert store.put(b"k", b"1", 100, ODD) == -1
    assert store.put(b"k", b"3", 300) == -1
    assert store.put(b"k", b"2", 200, {"n": b"2"}) == 300
    assert store.put(b"k", None, 400, {"gone": b""}) == -1
    assert store.get(b"k") is None
    assert store.get(b"k", 150).headers == ODD
    with store.versions(b"k") as rows:
        versions = [(version.value, version.timestamp, version.valid_to, version.headers) for _, version in rows]
    assert versions == [(b"3", 300, 400, Headers()), (b"2", 200, 300, Headers({"n": b"2"})), (b"1", 100, 200, ODD)]
    with store.versions(b"k", ascending=True) as rows:
        assert [version.value for _, version in rows] == [b"1", b"2", b"3"]
    assert opened.logged()[-1].headers == Headers({"gone": b""})
    store.put(b"l", b"now", 9000)
    assert store.put(b"k", b"late", 500) == PUT_NOT_VALID
    with pytest.raises(InvalidTimestampError):
        store.put(b"k", b"v", -1)


def test_ended_version_has_end_when_read_as_of_time() -> None:
    store = Opened(VERSIONED.builder()).store
    store.put(b"k", b"1", 100, ODD)
    store.put(b"k", b"2", 200)
    store.put(b"k", None, 300)
    assert [(version.timestamp, version.valid_to) for version in (store.get(b"k", 100), store.get(b"k", 199))] == [
        (100, 200)
    ] * 2
    assert store.get(b"k", 250).valid_to == 300
    store.put(b"k", b"3", 400)
    assert [version.valid_to for version in (store.get(b"k"), store.get(b"k", 400), store.get(b"k", 9000))] == [
        None
    ] * 3
    assert store.delete(b"k", 150).valid_to == 200
    assert store.get(b"k", 120).valid_to == 150


def test_versions_without_headers_have_no_end_like_in_java() -> None:
    supplier = Stores.in_memory_versioned_key_value_store("s", 1000)
    store = Opened(Stores.versioned_key_value_store_builder(supplier)).store
    store.put(b"k", b"1", 100)
    store.put(b"k", b"2", 200)
    assert (store.get(b"k", 150), store.delete(b"k", 150)) == (VersionedRecord(b"1", 100),) * 2
    with store.versions(b"k", ascending=True) as rows:
        assert [version.valid_to for _, version in rows] == [150, None]


# Suppliers.


def bad_suppliers() -> Iterator[tuple[Callable[[], Any], type[Exception], str]]:
    window = Stores.persistent_timestamped_window_store_with_headers
    yield lambda: Stores.persistent_timestamped_key_value_store_with_headers(None), TypeError, "name cannot be null"  # type: ignore[arg-type]
    yield lambda: window(None, 10, 10), TypeError, "name cannot be null"  # type: ignore[arg-type]
    yield lambda: window("s", -1, 10), ValueError, "retentionPeriod cannot be negative"
    yield lambda: window("s", 10, -1), ValueError, "windowSize cannot be negative"
    yield (
        lambda: window("s", 10, 20),
        ValueError,
        r"The retention period of the window store s must be no smaller than its window size. Got size=\[20\], retention=\[10\]",
    )
    yield (
        lambda: Stores.persistent_session_store_with_headers("s", -1),
        ValueError,
        "retentionPeriod cannot be negative",
    )
    yield lambda: Stores.in_memory_session_store(None, 1), TypeError, "name cannot be null"  # type: ignore[arg-type]
    versioned = Stores.persistent_versioned_key_value_store_with_headers
    yield lambda: versioned("s", -1), ValueError, "historyRetention cannot be negative"
    yield lambda: versioned("s", 1, 0), ValueError, "segmentInterval cannot be zero or negative"
    builder = Stores.timestamped_key_value_store_with_headers_builder
    yield lambda: builder(None), TypeError, "supplier cannot be null"  # type: ignore[arg-type]


@pytest.mark.parametrize(("make", "error", "message"), list(bad_suppliers()))
def test_invalid_supplier_arguments_are_rejected(make: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()


FACTORIES = sorted(name for name in dir(Stores) if not name.startswith("_"))


@pytest.mark.parametrize("name", FACTORIES)
def test_factories_show_their_parameters(name: str) -> None:
    first, *rest = inspect.signature(getattr(Stores, name)).parameters
    assert first == ("supplier" if name.endswith("_builder") else "name")
    if name.endswith("_builder"):
        assert rest == ["key_serde", "value_serde"]
    elif "window" in name:
        assert rest[:3] == ["retention_period", "window_size", "retain_duplicates"]


@pytest.mark.parametrize("name", [name for name in FACTORIES if "window" in name and not name.endswith("_builder")])
def test_window_store_retains_no_duplicates_by_default(name: str) -> None:
    times = timedelta(hours=1), timedelta(minutes=1)
    assert not getattr(Stores, name)("windows", *times).get().retain_duplicates
    assert getattr(Stores, name)("windows", *times, retain_duplicates=True).get().retain_duplicates


def test_store_errors_share_base_class() -> None:
    assert issubclass(DamagedRowError, StateStoreError)
    assert issubclass(TopologyError, StateStoreError)


def stored_value(data: bytes) -> bytes:
    """What a value without headers is in a store."""
    encoded = lh.encode(lh.Message(headers=[], timestamp=5, payload=data), "streams-timestamped")
    assert encoded is not None
    return encoded


# Closed stores.


@pytest.mark.parametrize("family", [KV, WINDOW, SESSION, *IN_ROCKSDB[:3]], ids=str)
def test_closed_cached_store_is_neither_read_nor_written(family: Family, tmp_path: Path) -> None:
    opened = Opened(family.builder().with_caching_enabled(), directory=tmp_path)
    family.put(opened.store, Headers())
    opened.store.close()
    for operation in (
        lambda: family.get(opened.store),
        lambda: family.put(opened.store, Headers()),
        lambda: family.delete(opened.store),
    ):
        with pytest.raises(InvalidStateStoreError, match="Store s is currently closed"):
            operation()
    assert opened.context.cache is not None
    assert opened.context.cache.size_bytes == 0


def test_forked_process_cannot_use_store_cache(tmp_path: Path) -> None:
    family = IN_ROCKSDB[0]
    opened = Opened(family.builder().with_caching_enabled(), directory=tmp_path)
    family.put(opened.store, Headers())
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            for operation in (lambda: family.get(opened.store), lambda: family.put(opened.store, Headers())):
                with pytest.raises(InvalidStateStoreError, match="Store s was opened before this process was forked"):
                    operation()
            os.write(writer, b"refused")
        finally:
            os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    with open(reader, "rb") as answer:
        assert answer.read() == b"refused"
    assert family.get(opened.store) is not None


def test_current_record_is_restored_after_failed_flush() -> None:
    opened = cached()
    opened.store.put(b"k", value(b"1"))
    opened.at(8)
    at_hand = opened.context.record

    def refuse(record: Record[Any, Any]) -> None:
        assert opened.context.record is not at_hand
        raise RuntimeError("a processor failed")

    opened.store.set_flush_listener(refuse)
    with pytest.raises(RuntimeError, match="a processor failed"):
        opened.store.flush()
    assert opened.context.record is at_hand


def test_flush_listener_writes_are_not_evicted_before_written() -> None:
    cache, written = RecordCache(2 * (ENTRY_BYTES + 2)), []

    def write(key: bytes, entry: CacheEntry) -> None:
        written.append(key)
        if key == b"a":
            for other in (b"c", b"d", b"e"):
                entries.put(other, b"1", None)

    entries = cache.namespace("store", write)
    entries.put(b"a", b"1", None)
    entries.put(b"b", b"1", None)
    entries.flush()
    assert sorted(written) == [b"a", b"b", b"c", b"d", b"e"]
    entries.put(b"f", b"1", None)
    assert cache.size_bytes <= cache.max_bytes


class OwnStore(HeadersBytesStore):
    """A store of an application, which has what the documentation of `Supplier` lists and nothing else."""

    name, persistent, timestamped = "s", False, True

    def __init__(self) -> None:
        self._rows = InMemoryKeyValueStore("s")
        for method in (
            "open",
            "close",
            "commit",
            "restore",
            "put",
            "put_if_absent",
            "put_all",
            "delete",
            "get",
            "scan",
        ):
            setattr(self, method, getattr(self._rows, method))
        self.position = self._rows.position

    @property
    def is_open(self) -> bool:
        return self._rows.is_open


def test_custom_store_works_behind_cache() -> None:
    supplier = Supplier("s", "key-value", lambda format: OwnStore())
    opened = Opened(Stores.timestamped_key_value_store_with_headers_builder(supplier).with_caching_enabled())
    own = chain(opened.store)[-1]
    opened.store.put(b"k", value(b"v"))
    assert (own.get(b"k"), opened.store.get(b"k").value) == (None, b"v")
    opened.store.flush()
    assert own.get(b"k") is not None
    opened.store.close()
    with pytest.raises(InvalidStateStoreError, match="Store s is currently closed"):
        opened.store.get(b"k")
