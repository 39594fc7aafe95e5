"""A closed store refuses every use of its rows."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from letterhead import Headers
from letterhead.errors import InvalidStateStoreError, ProcessorStateError, UnsupportedOperationError
from letterhead.state import ChangelogRecord, SessionKey
from letterhead.state.memory import (
    InMemoryKeyValueStore,
    InMemorySessionStore,
    InMemoryVersionedStore,
    InMemoryWindowStore,
)
from letterhead.state.reads import StoreScan
from tests.helpers.rocksdb_stores import TYPES, rocksdb_store

STORES: dict[str, Callable[[], Any]] = {
    "key-value in memory": lambda: InMemoryKeyValueStore("latest"),
    "window in memory": lambda: InMemoryWindowStore("latest", 1000, 10),
    "session in memory": lambda: InMemorySessionStore("latest", 1000),
    "versioned in memory": lambda: InMemoryVersionedStore("latest", 1000),
    **{store_type: partial(rocksdb_store, store_type, name="latest") for store_type in TYPES},
}
"""The kinds of stores."""

NOT_OF_ROWS = {"open", "close", "persistent", "timestamped", "headers", "opened_by_parent", "segment_interval"}
"""Members that need no open store: they open or close it, or tell its kind."""

ARGUMENTS: dict[str, Any] = {
    "key": b"k", "prefix": b"k", "low": b"k", "high": b"l", "value": b"v", "rows": [(b"k", b"v")], "offsets": {},
    "timestamp": 5, "start": 5, "end": 6, "first": 5, "last": 6, "earliest_end": 5, "latest_end": 6, "latest_start": 5,
    "query": StoreScan("all"), "records": [ChangelogRecord(b"k", b"v", 5, Headers())],
}  # fmt: skip


def uses(store: Any) -> Iterable[tuple[str, Callable[[], object]]]:
    """Yield the name of each method and property that needs an open store, with a function that uses it."""
    for name in dir(type(store)):
        if name.startswith("_") or name in NOT_OF_ROWS:
            continue
        method = getattr(type(store), name)
        if not callable(method):
            yield name, lambda name=name: getattr(store, name)
            continue
        parameters = inspect.signature(method).parameters.values()
        needed = {each.name: each.annotation for each in parameters if each.default is each.empty}
        arguments = [
            SessionKey(b"k", 5, 6) if annotation == "SessionKey" else ARGUMENTS[parameter]
            for parameter, annotation in needed.items()
            if parameter != "self"
        ]
        yield name, lambda name=name, arguments=arguments: getattr(store, name)(*arguments)


@pytest.mark.parametrize("kind", STORES)
def test_open_store_rejects_second_open(kind: str, tmp_path: Path) -> None:
    store = STORES[kind]()
    store.open(tmp_path)
    with pytest.raises(ProcessorStateError, match="store latest is open already"):
        store.open(tmp_path)
    assert store.is_open
    store.close()
    store.open(tmp_path)
    store.close()


@pytest.mark.parametrize("kind", STORES)
def test_closed_store_is_neither_read_nor_written(kind: str, tmp_path: Path) -> None:
    store = STORES[kind]()
    store.open(tmp_path)
    store.close()
    answers = {}
    for name, use in uses(store):
        try:
            answers[name] = use()
        except InvalidStateStoreError as error:
            assert "Store latest is currently closed" in str(error)
        except UnsupportedOperationError:
            assert name == "find_sessions_time"
    # In memory there is nothing to write.
    assert answers == ({} if store.persistent else {"commit": None})
