"""Which version of Kafka Streams opens the directory of which, and of ours, as docs/reference/streams-versions.md has it.

With LETTERHEAD_WRITE=1 the results are written to docs/store-versions.json, from which the page has its table.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import letterhead as lh
from letterhead.errors import StateStoreError
from letterhead.state.layers.base import chain
from tests.state import dsl, traces
from tests.state.java import JavaError, JavaServer, JavaStore
from tests.state.operations import SEGMENT, Operations, Step, config_of, puts
from tests.state.test_java import OurStore, place, whole
from tests.versions import ROOT, VERSIONS

pytestmark = pytest.mark.jvm

OURS = "letterhead"
KAFKAS = [VERSIONS["kafka"]["reference"], *VERSIONS["kafka"]["also"]]
TABLE = ROOT / "docs" / "store-versions.json"

LAYOUTS = {
    "kv": ("plain", "timestamped", "headers"),
    "window": ("plain", "timestamped", "headers"),
    "session": ("plain", "headers"),
    "time-ordered-window": ("timestamped", "headers"),
    "time-ordered-session": ("plain", "headers"),
    "versioned": ("plain",),
}
NAMES = {"kv": "key-value"}
TRANSACTIONAL = "4.4.0, transactional"
PLAYERS = [*KAFKAS, TRANSACTIONAL, OURS]


def config(family: str, layout: str, player: str) -> dict[str, Any]:
    more: dict[str, Any] = {"transactional": player == TRANSACTIONAL}
    if family == "versioned":
        more |= {"supplier": "rocksdb-versioned", "history_retention_ms": 10 * SEGMENT, "segment_interval_ms": 30_000}
    return config_of(family, layout, **more)


class Players:
    """Programs that open stores: one for each version of Kafka Streams, and this process."""

    def __init__(self, directory: Path) -> None:
        self._servers = {version: JavaServer(directory / version, version) for version in KAFKAS}
        self._servers[TRANSACTIONAL] = self._servers["4.4.0"]

    def run(self, player: str, task: Path, config: dict[str, Any], steps: list[Step]) -> list[Any]:
        """Open a store, do the steps, and close it; return the results of the last one."""
        server = self._servers.get(player)
        store = OurStore(task, config) if server is None else JavaStore(server, task, config)
        try:
            for step in steps:
                results, _ = store.step(*step)
        finally:
            store.close()
        return results

    def stop(self) -> None:
        for version in KAFKAS:
            self._servers[version].stop()


@pytest.fixture(scope="module")
def players(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Players]:
    players = Players(tmp_path_factory.mktemp("java"))
    yield players
    players.stop()


def payloads(results: list[Any]) -> Any:
    """What was read, without the timestamps and headers that only some layouts have."""

    def payload(row: Any) -> Any:
        if isinstance(row, list):
            return [payload(entry) for entry in row]
        if not isinstance(row, dict):
            return row
        if "key" in row:
            return {name: payload(value) for name, value in row.items()}
        return row.get("value", row.get("aggregation"))

    return [payload(result) for result in results]


def outcome(players: Players, reader: str, task: Path, config: dict[str, Any], reads: Step, expected: Any) -> str:
    try:
        results = payloads(players.run(reader, task, config, [reads]))
    except JavaError as error:
        return error.exception.rpartition(".")[2]
    except StateStoreError as error:
        return type(error).__name__
    return "yes" if results == expected else "other rows"


def outcomes(players: Players, directory: Path, family: str, stored: str) -> dict[str, dict[str, dict[str, str]]]:
    """Return what becomes of a store, by the layout as which it is opened, by writer and by reader."""
    operations = Operations(f"versions {family} {stored}")
    written = config(family, stored, OURS)
    writes = operations.writes(written, 5, 10)
    reads = whole(written) if family in ("kv", "window", "session", "time-ordered-window") else operations.gets(written)
    results: dict[str, dict[str, dict[str, str]]] = {}
    for writer in PLAYERS:
        task = directory / writer / "app" / "0_0"
        players.run(writer, task, config(family, stored, writer), writes)
        # Time that was observed is not in the files, so that a store that was closed is what to compare with.
        again = shutil.copytree(task, directory / writer / "again" / "app" / "0_0")
        expected = payloads(players.run(writer, again, config(family, stored, writer), [reads]))
        assert any(expected)
        for opened in LAYOUTS[family]:
            for reader in PLAYERS:
                copy = shutil.copytree(task, directory / writer / opened / reader / "app" / "0_0")
                result = outcome(players, reader, copy, config(family, opened, reader), reads, expected)
                results.setdefault(opened, {}).setdefault(writer, {})[reader] = result
    return results


@pytest.mark.parametrize("family", LAYOUTS)
def test_versions_open_each_others_directories(players: Players, tmp_path: Path, family: str) -> None:
    table: dict[str, Any] = json.loads(TABLE.read_text(encoding="utf-8")) if TABLE.exists() else {}
    results = {stored: outcomes(players, tmp_path / stored, family, stored) for stored in LAYOUTS[family]}
    if os.environ.get("LETTERHEAD_WRITE"):
        table[NAMES.get(family, family)] = results
        TABLE.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
    assert results == table[NAMES.get(family, family)]
    # Whoever wrote a store, every version opens it as what it is.
    for stored, layouts in results.items():
        assert {result for readers in layouts[stored].values() for result in readers.values()} == {"yes"}


@pytest.mark.parametrize("family", ["kv", "window", "session"])
def test_killed_transactional_store_restores_from_changelog(tmp_path: Path, family: str) -> None:
    options = config_of(family, write_buffer_bytes=64 << 10, transactional=True)
    steps, task = puts(options, 80), tmp_path / "app" / "0_0"
    server = JavaServer(tmp_path / "java", "4.4.0")
    store = JavaStore(server, task, options)
    changelog = [row for record, ops in steps for row in store.step(record, ops)[1]]
    (expected,) = store.step(*whole(options))[0]
    server.kill()
    ours = OurStore(task, options)
    metered = ours.driver.get_all_state_stores()["store"]
    committed = chain(metered)[-1].committed_offsets().get("app-store-changelog-0", -1)
    # Rows and offset of a database reach its files together; a segment may be ahead of the offset of the others.
    latest, written = (
        [(place(op), op["value"]) for _, ops in some for op in ops] for some in (steps[: committed + 1], steps)
    )
    rows = {place(row): row["value"] for row in ours.step(*whole(options))[0][0]}
    assert rows.keys() >= dict(latest).keys()
    assert all(row in written for row in rows.items())
    if family == "kv":
        assert rows == dict(latest)
    metered.restore(traces.record_of(row) for row in changelog[committed + 1 :])
    assert ours.step(*whole(options))[0] == [expected]
    ours.close()


@pytest.mark.parametrize("version", KAFKAS)
def test_outer_join_stores_are_read(tmp_path: Path, version: str) -> None:
    server = JavaServer(tmp_path / "java", version)
    task = tmp_path / "app" / "0_0"
    try:
        topics = dsl.run(server, task, "outer-join", "HEADERS")
    finally:
        server.stop()

    def logged(name: str) -> dict[bytes, Any]:
        records = topics[f"app-join-outer-{name}-join-store-changelog"]
        latest = {bytes.fromhex(record["key"]): record for record in records}
        return {key: record for key, record in latest.items() if record["value"] is not None}

    with lh.read.state(task, store="join-outer-shared-join-store", store_type="key-value") as reader:
        rows = reader.read_all().to_pylist()
    # The list of each key is the value: what waits for a record of the other stream.
    assert {row["key"]: row["value"].hex() for row in rows} == {
        key: record["value"] for key, record in logged("shared").items()
    }
    assert rows
    for side in ("this", "other"):
        with lh.read.state(task, store=f"join-outer-{side}-join-store") as reader:
            rows = reader.read_all().to_pylist()
        expected = [(record["value"], [h["key"] for h in record["headers"]]) for record in logged(side).values()]
        results = [(row["value"].hex(), [h["key"] for h in row.get("headers") or ()]) for row in rows]
        assert sorted(results) == sorted(expected)
