"""Which version of Kafka Streams opens the directory of which, and of ours, as docs/explanation/state-stores.md has it.

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
from tests.versions import ROOT, VERSIONS

from java import JavaError, JavaServer, JavaStore
from letterhead.errors import StateStoreError
from operations import SEGMENT, Operations, Step, config_of
from test_java import OurStore, whole

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
        found = payloads(players.run(reader, task, config, [reads]))
    except JavaError as error:
        return error.exception.rpartition(".")[2]
    except StateStoreError as error:
        return type(error).__name__
    return "yes" if found == expected else "other rows"


def outcomes(players: Players, directory: Path, family: str, stored: str) -> dict[str, dict[str, dict[str, str]]]:
    """Return what becomes of a store, by the layout as which it is opened, by writer and by reader."""
    operations = Operations(f"versions {family} {stored}")
    written = config(family, stored, OURS)
    writes = operations.writes(written, 5, 10)
    reads = whole(written) if family in ("kv", "window", "session", "time-ordered-window") else operations.gets(written)
    found: dict[str, dict[str, dict[str, str]]] = {}
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
                found.setdefault(opened, {}).setdefault(writer, {})[reader] = result
    return found


@pytest.mark.parametrize("family", LAYOUTS)
def test_versions_open_directories_of_each_other(players: Players, tmp_path: Path, family: str) -> None:
    table: dict[str, Any] = json.loads(TABLE.read_text(encoding="utf-8")) if TABLE.exists() else {}
    found = {stored: outcomes(players, tmp_path / stored, family, stored) for stored in LAYOUTS[family]}
    if os.environ.get("LETTERHEAD_WRITE"):
        table[NAMES.get(family, family)] = found
        TABLE.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
    assert found == table[NAMES.get(family, family)]
    # Whoever wrote a store, every version opens it as what it is.
    for stored, layouts in found.items():
        assert {result for readers in layouts[stored].values() for result in readers.values()} == {"yes"}
