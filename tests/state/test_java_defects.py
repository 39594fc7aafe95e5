"""Defects of Kafka Streams that docs/explanation/state-stores.md lists for its current version, which our stores lack."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from letterhead.errors import InvalidTimestampError
from tests.state.java import JavaError, JavaServer, JavaStore
from tests.state.operations import config_of
from tests.state.test_java import OurStore

pytestmark = pytest.mark.jvm

VERSIONED = config_of("versioned", "plain") | {
    "supplier": "rocksdb-versioned",
    "history_retention_ms": 1_200_000,
    "segment_interval_ms": 30_000,
}
RECORD = {"timestamp": "1000", "headers": []}


def stores(server: JavaServer, directory: Path, config: dict[str, Any]) -> list[Any]:
    """Open an empty store of Kafka Streams, and one of ours."""
    return [
        JavaStore(server, directory / "theirs" / "app" / "0_0", config),
        OurStore(directory / "ours" / "app" / "0_0", config),
    ]


def do(store: Any, *ops: dict[str, Any]) -> Any:
    """Return the result of the last operation."""
    results, _ = store.step(RECORD, list(ops))
    return results[-1]


def put(key: str, value: str, timestamp: int, **more: Any) -> dict[str, Any]:
    stored = {"value": value, "timestamp": str(timestamp), "headers": []}
    return {"op": "put", "key": key, "value": stored, **more}


def test_java_omits_key_that_is_prefix_of_window_range_end(server: JavaServer, tmp_path: Path) -> None:
    keys = []
    for store in stores(server, tmp_path, config_of("window")):
        writes = [put(key, "01", 1000, start="1000") for key in ("61", "6100", "6161")]
        rows = do(store, *writes, {"op": "fetchRange", "key_from": "61", "key_to": "6100", "from": "0", "to": "5000"})
        keys.append(sorted(row["key"] for row in rows))
        store.close()
    assert keys == [["6100"], ["61", "6100"]]


def test_java_does_not_find_older_versions_in_a_reopened_store(server: JavaServer, tmp_path: Path) -> None:
    read = {"op": "getAsOf", "key": "61", "as_of": "2000"}
    writes = [
        {"op": "put", "key": "61", "timestamp": str(time), "value": value}
        for time, value in ((1000, "01"), (90_000, "02"))
    ]
    for store in stores(server, tmp_path, VERSIONED):
        assert do(store, *writes, read)["value"] == "01"
        store.close()
    values = []
    for store in stores(server, tmp_path, VERSIONED):
        version = do(store, read)
        values.append(version and version["value"])
        store.close()
    assert values == [None, "01"]


def test_java_returns_key_deleted_after_late_earlier_version(server: JavaServer, tmp_path: Path) -> None:
    values = []
    for store in stores(server, tmp_path, VERSIONED):
        version = do(
            store,
            {"op": "put", "key": "61", "timestamp": "50000", "value": "01"},
            {"op": "delete", "key": "61", "timestamp": "50000"},
            {"op": "put", "key": "61", "timestamp": "40000", "value": "02"},
            {"op": "get", "key": "61"},
        )
        values.append(version and version["value"])
        store.close()
    assert values == ["02", None]


def test_java_keeps_row_whose_timestamp_changelog_rejects(server: JavaServer, tmp_path: Path) -> None:
    values = []
    for store in stores(server, tmp_path, config_of("kv")):
        with pytest.raises((JavaError, InvalidTimestampError)):
            do(store, put("61", "01", -5))
        row = do(store, {"op": "get", "key": "61"})
        values.append(row and row["value"])
        store.close()
    assert values == ["01", None]
