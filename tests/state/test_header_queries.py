"""Queries of stores with headers (KIP-1356) in Kafka Streams, and the reads that return the same rows here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.state.java import JavaServer, JavaStore
from tests.state.operations import Operations, config_of
from tests.state.test_java import OurStore
from tests.versions import KAFKA

pytestmark = [
    pytest.mark.jvm,
    pytest.mark.skipif(KAFKA.startswith("4.3."), reason="Kafka 4.3 has no queries with headers"),
]

LAST = 1 << 40
BOUNDS = [(None, None), ("61", "62"), (None, "6161"), ("62", None)]


def query(name: str, method: str, *arguments: Any, **more: Any) -> dict[str, Any]:
    return {
        "op": "query",
        "class": f"Timestamped{name}WithHeadersQuery",
        "method": method,
        "arguments": arguments,
        **more,
    }


def key_value(key: str) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    yield query("Key", "withKey", key), {"op": "get", "key": key}
    for low, high in BOUNDS:
        asked = query("Range", "withRange", low, high)
        yield asked, {"op": "range", "from": low, "to": high}
        yield {**asked, "descending": True}, {"op": "reverseRange", "from": low, "to": high}


def window(key: str) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    for first, last in ((0, LAST), (10_000, 130_000)):
        times = {"from": str(first), "to": str(last)}
        yield (
            query("WindowKey", "withKeyAndWindowStartRange", key, first, last),
            {"op": "fetchRange", "key_from": key, "key_to": key, **times},
        )
        yield query("WindowRange", "withWindowStartRange", first, last), {"op": "fetchAll", **times}


def session(key: str) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    yield query("WindowRange", "withKey", key), {"op": "fetchKey", "key": key}


def records(result: Any, read: dict[str, Any]) -> list[dict[str, Any]]:
    """Return rows that were read, as the records of a query have them."""
    rows = [{"key": read["key"], "value": result}] if read["op"] == "get" and result else result or []
    return [
        {
            "value": row["value"].get("value", row["value"].get("aggregation")),
            "headers": row["value"]["headers"],
            # A session has no timestamp: its record has the end of the session.
            "timestamp": row["value"].get("timestamp", row.get("end")),
            **{name: row[name] for name in ("key", "start", "end") if name in row},
        }
        for row in rows
    ]


@pytest.mark.parametrize(("family", "queries"), [("kv", key_value), ("window", window), ("session", session)])
def test_query_with_headers_matches_java_and_reads(
    server: JavaServer, tmp_path: Path, family: str, queries: Any
) -> None:
    config = config_of(family)
    operations = Operations(f"queries {family}")
    writes = operations.writes(config, 6, 10)
    stores = JavaStore(server, tmp_path / "java" / "app" / "0_0", config), OurStore(tmp_path / "app" / "0_0", config)
    for step in writes:
        for store in stores:
            store.step(*step)
    cases = [case for key in operations.keys for case in queries(key.hex())]
    record: dict[str, Any] = {"timestamp": "0", "headers": []}
    answers = stores[0].step(record, [asked for asked, _ in cases])[0]
    ours = stores[1].step(record, [read for _, read in cases])[0]
    for store in stores:
        store.close()
    rows = [records(result, read) for result, (_, read) in zip(ours, cases, strict=True)]
    for expected, result, (asked, _) in zip(answers, rows, cases, strict=True):
        assert result == expected, asked
    assert sum(map(len, rows)) > 20
