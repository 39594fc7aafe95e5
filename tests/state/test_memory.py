"""Stores in memory."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from letterhead import Headers
from letterhead.errors import InvalidStateStoreError, NoSuchElementError, PrefixError
from letterhead.state.interfaces import ChangelogRecord
from letterhead.state.memory import InMemoryKeyValueStore, InMemorySessionStore, InMemoryWindowStore
from letterhead.state.memory.sorted_map import FEW, SortedMap
from letterhead.state.rocksdb import RocksDBSessionStore, RocksDBTimeOrderedSessionStore
from letterhead.state.storage import keys
from letterhead.state.storage.keys import MAX_TIME, SessionKey

WINDOW, RETENTION = 10, 100


@pytest.fixture
def store() -> Iterator[InMemoryKeyValueStore]:
    store = InMemoryKeyValueStore("latest")
    store.open()
    yield store
    store.close()


@pytest.fixture
def windows() -> InMemoryWindowStore:
    store = InMemoryWindowStore("hourly", RETENTION, WINDOW)
    store.open()
    return store


@pytest.fixture
def sessions() -> InMemorySessionStore:
    store = InMemorySessionStore("visits", RETENTION)
    store.open()
    return store


def logged(key: bytes, value: bytes | None) -> ChangelogRecord:
    return ChangelogRecord(key, value, 5, Headers())


# --- a map in order --------------------------------------------------------------------------------------------------


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["put", "put", "put", "remove", "read", "clear"]),
            st.binary(max_size=2),
            st.binary(max_size=2),
        ),
        max_size=60,
    )
)
def test_sorted_map_matches_sorted_dict(steps: list[tuple[str, bytes, bytes]]) -> None:
    rows: SortedMap[bytes, int] = SortedMap()
    plain: dict[bytes, int] = {}
    for step, (operation, key, other) in enumerate(steps):
        if operation == "put":
            rows[key] = plain[key] = step
        elif operation == "remove":
            assert rows.remove(key) == plain.pop(key, None)
        elif operation == "clear":
            rows.clear()
            plain.clear()
        else:
            assert rows.between(key, other) == sorted(k for k in plain if key <= k <= other)
    assert rows == plain
    assert rows.between(None, None) == sorted(plain)


def test_sorted_map_accepts_many_changes_at_once() -> None:
    rows: SortedMap[int, int] = SortedMap()
    order = list(range(FEW * 10))
    random.Random(1).shuffle(order)
    for key in order:
        rows[key] = key
    assert rows.between(None, None) == sorted(order)
    for key in order[: FEW * 3]:
        del rows[key]
    for key in order[:FEW]:
        rows[key] = 0
    assert rows.between(FEW, None) == sorted(key for key in rows if key >= FEW)


# --- key-value -------------------------------------------------------------------------------------------------------


def test_rows_are_ordered_by_key(store: InMemoryKeyValueStore) -> None:
    store.put_all([(b"b", b"2"), (b"a", b"1"), (b"ab", b"3"), (b"\xff", b"4")])
    assert list(store.all()) == [(b"a", b"1"), (b"ab", b"3"), (b"b", b"2"), (b"\xff", b"4")]
    assert [key for key, _ in store.reverse_all()] == [b"\xff", b"b", b"ab", b"a"]
    assert [key for key, _ in store.range(b"ab", b"b")] == [b"ab", b"b"]
    assert [key for key, _ in store.reverse_range(None, b"ab")] == [b"ab", b"a"]
    assert [key for key, _ in store.prefix_scan(b"a")] == [b"a", b"ab"]
    assert list(store.range(b"b", b"a")) == []
    assert store.approximate_num_entries() == 4
    with pytest.raises(PrefixError):
        store.prefix_scan(b"\xff")


def test_put_if_absent_and_delete_return_the_existing_value(store: InMemoryKeyValueStore) -> None:
    assert store.put_if_absent(b"a", b"1") is None
    assert store.put_if_absent(b"a", b"2") == b"1"
    assert store.delete(b"a") == b"1"
    assert store.delete(b"a") is None
    store.put(b"a", b"")
    store.put(b"b", None)
    assert store.get(b"a") == b""
    store.put(b"a", None)
    assert store.get(b"a") is None


def test_iterator_has_keys_from_its_start_and_current_values(store: InMemoryKeyValueStore) -> None:
    store.put_all([(b"a", b"1"), (b"b", b"2"), (b"c", b"3")])
    rows = store.all()
    store.put(b"aa", b"new")
    store.put(b"b", b"changed")
    store.delete(b"c")
    assert list(rows) == [(b"a", b"1"), (b"b", b"changed")]


def test_peeking_does_not_move_iterator(store: InMemoryKeyValueStore) -> None:
    store.put(b"a", b"1")
    rows = store.all()
    assert (rows.peek_next_key(), rows.peek_next_key(), next(rows)) == (b"a", b"a", (b"a", b"1"))
    assert not rows.has_next()
    with pytest.raises(NoSuchElementError):
        rows.peek_next_key()
    with pytest.raises(StopIteration):
        next(rows)


def test_reading_closed_iterator_raises(store: InMemoryKeyValueStore) -> None:
    store.put(b"a", b"1")
    with store.all() as rows:
        assert rows.has_next()
    rows.close()
    for use in (lambda: next(rows), rows.has_next, rows.peek_next_key):
        with pytest.raises(InvalidStateStoreError, match="Iterator for store latest has closed"):
            use()


def test_iterators_end_with_store_which_can_be_reopened(store: InMemoryKeyValueStore) -> None:
    store.put(b"a", b"1")
    rows = store.all()
    store.close()
    store.close()
    with pytest.raises(InvalidStateStoreError):
        next(rows)
    store.open()
    assert list(store.all()) == []


def test_store_restores_from_changelog(store: InMemoryKeyValueStore) -> None:
    store.restore([logged(b"a", b"1"), logged(b"b", b"2"), logged(b"a", None), logged(b"b", b"3")])
    assert list(store.all()) == [(b"b", b"3")]


def test_unknown_format_is_rejected() -> None:
    with pytest.raises(ValueError, match="there are plain, timestamped, headers"):
        InMemoryKeyValueStore("latest", format="other")


# --- windows ---------------------------------------------------------------------------------------------------------


def test_windows_are_ordered_by_start_then_key(windows: InMemoryWindowStore) -> None:
    for key, start in ((b"b", 5), (b"a", 20), (b"a", 5), (b"ab", 5)):
        windows.put(key, key, start)
    expected = [(b"a", 5), (b"ab", 5), (b"b", 5), (b"a", 20)]
    assert [(row.key, row.start) for row, _ in windows.all()] == expected
    assert [(row.key, row.start) for row, _ in windows.backward_all()] == expected[::-1]
    assert [row for row, _ in windows.fetch_key(b"a", 0, 10)] == [(b"a", 5, 15)]
    assert [row.start for row, _ in windows.backward_fetch_key(b"a", 0, 30)] == [20, 5]
    assert [row.key for row, _ in windows.fetch_range(b"ab", None, 0, 30)] == [b"ab", b"b"]
    assert [row.key for row, _ in windows.backward_fetch_range(None, b"ab", 0, 30)] == [b"a", b"ab", b"a"]
    assert [row.key for row, _ in windows.fetch_all(20, 30)] == [b"a"]
    assert [row.key for row, _ in windows.backward_fetch_all(0, 19)] == [b"b", b"ab", b"a"]
    assert list(windows.fetch_range(b"b", b"a", 0, 30)) == []
    assert list(windows.fetch_key(b"a", 30, 0)) == []
    windows.put(b"a", None, 5)
    assert windows.fetch(b"a", 5) is None
    assert windows.fetch(b"a", 20) == b"a"


def test_window_past_retention_is_dropped(windows: InMemoryWindowStore) -> None:
    windows.put(b"a", b"1", 0)
    windows.put(b"a", b"2", 1)
    windows.put(b"a", b"3", RETENTION)
    assert windows.fetch(b"a", 0) is None
    assert windows.fetch(b"a", 1) == b"2"
    windows.put(b"a", b"late", 0)
    assert [row.start for row, _ in windows.all()] == [1, RETENTION]


def test_windows_stay_while_open_iterator_needs_them(windows: InMemoryWindowStore) -> None:
    windows.put(b"a", b"1", 0)
    windows.put(b"a", b"2", 5)
    rows = windows.all()
    windows.put(b"a", b"3", 10 * RETENTION)
    assert [row.start for row, _ in rows] == [0, 5]
    rows.close()
    assert [row.start for row, _ in windows.all()] == [10 * RETENTION]


def test_duplicates_are_kept_and_not_removed() -> None:
    windows = InMemoryWindowStore("joined", RETENTION, WINDOW, retain_duplicates=True)
    windows.open()
    for value in (b"1", b"2", None):
        windows.put(b"a", value, 5)
    windows.put(b"a\x00", b"3", 5)
    assert [value for _, value in windows.fetch_key(b"a", 0, 10)] == [b"1", b"2"]
    assert [value for _, value in windows.backward_fetch_range(b"a", b"a", 0, 10)] == [b"2", b"1"]
    assert [row.key for row, _ in windows.all()] == [b"a\x00", b"a", b"a"]
    assert windows.fetch(b"a", 5) is None


def test_windows_restore_from_changelog(windows: InMemoryWindowStore) -> None:
    windows.restore([logged(keys.window_key(b"a", 5), b"1"), logged(keys.window_key(b"b", 5), b"2")])
    windows.restore([logged(keys.window_key(b"a", 5), None)])
    assert list(windows.all()) == [((b"b", 5, 15), b"2")]


# --- sessions --------------------------------------------------------------------------------------------------------


def test_sessions_are_ordered_by_end_key_and_latest_start(sessions: InMemorySessionStore) -> None:
    for key, start, end in ((b"b", 1, 5), (b"a", 1, 5), (b"a", 3, 5), (b"a", 6, 9)):
        sessions.put(SessionKey(key, start, end), b"%d" % start)
    expected = [(b"a", 3, 5), (b"a", 1, 5), (b"b", 1, 5), (b"a", 6, 9)]
    assert [row for row, _ in sessions.fetch_range(None, None)] == expected
    assert [row for row, _ in sessions.backward_fetch_range(None, None)] == expected[::-1]
    assert [row for row, _ in sessions.fetch(b"a")] == [row for row in expected if row[0] == b"a"]
    assert [row.start for row, _ in sessions.backward_fetch(b"a")] == [6, 1, 3]
    assert [row.start for row, _ in sessions.find_sessions(b"a", 5, 3)] == [3, 1]
    assert [row.start for row, _ in sessions.backward_find_sessions(b"a", 6, MAX_TIME)] == [6]
    assert [row.key for row, _ in sessions.find_sessions_range(b"b", None, 0, 9)] == [b"b"]
    assert [row.key for row, _ in sessions.backward_find_sessions_range(None, b"a", 0, 2)] == [b"a"]
    assert [row for row, _ in sessions.find_sessions_time(6, MAX_TIME)] == [(b"a", 6, 9)]
    assert sessions.fetch_session(b"a", 3, 5) == b"3"
    assert sessions.fetch_session(b"a", 2, 5) is None
    for end in (5, 7):
        sessions.remove(SessionKey(b"a", 3, end))
    sessions.put(SessionKey(b"b", 1, 5), None)
    assert [row for row, _ in sessions.fetch_range(None, None)] == [(b"a", 1, 5), (b"a", 6, 9)]


@pytest.mark.parametrize("store", [InMemorySessionStore, RocksDBSessionStore, RocksDBTimeOrderedSessionStore])
def test_session_values_have_no_timestamps(store: Any) -> None:
    assert not store("visits", RETENTION).timestamped
    with pytest.raises(ValueError, match="session store"):
        store("visits", RETENTION, format="timestamped")


def test_reversed_session_range_is_rejected(sessions: InMemorySessionStore) -> None:
    assert list(sessions.fetch_range(b"b", b"a")) == []  # there is nothing to look through
    sessions.put(SessionKey(b"a", 1, 5), b"1")
    for fetch in (sessions.fetch_range, sessions.backward_fetch_range):
        with pytest.raises(ValueError, match="inconsistent range"):
            fetch(b"b", b"a")
    with pytest.raises(ValueError, match="inconsistent range"):
        sessions.find_sessions_time(6, 5)
    assert list(sessions.find_sessions_range(b"b", b"a", 0, 9)) == []


def test_session_past_retention_is_dropped(sessions: InMemorySessionStore) -> None:
    sessions.put(SessionKey(b"a", 0, 0), b"1")
    sessions.put(SessionKey(b"a", 0, 1), b"2")
    rows = sessions.fetch(b"a")
    sessions.put(SessionKey(b"a", 50, RETENTION), b"3")
    assert sessions.fetch_session(b"a", 0, 0) is None
    assert sessions.fetch_session(b"a", 0, 1) == b"2"
    assert [value for _, value in rows] == [b"1", b"2", b"3"][:2]
    rows.close()
    sessions.put(SessionKey(b"a", 0, 0), b"late")
    assert [value for _, value in sessions.fetch(b"a")] == [b"2", b"3"]


def test_sessions_restore_from_changelog(sessions: InMemorySessionStore) -> None:
    sessions.restore([logged(keys.session_key(b"a", 1, 5), b"1"), logged(keys.session_key(b"a", 2, 6), b"2")])
    sessions.restore([logged(keys.session_key(b"a", 1, 5), None)])
    assert list(sessions.fetch(b"a")) == [((b"a", 2, 6), b"2")]
