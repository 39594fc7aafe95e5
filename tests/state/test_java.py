"""Kafka Streams' own stores and ours on the same files, in turn: what one writes, the other reads, changes and gives back.

Two directories are used at a time. In one of them Java begins, in the other we do, and with every opening the players
change places. They do the same things, so everything must be equal: what each operation gives, what is logged, and the
rows of every column family when the stores are closed.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from letterhead import read
from letterhead.errors import InvalidTimestampError, ProcessorStateError
from letterhead.state import ChangelogRecord, Processor, Topology, TopologyTestDriver, diff, restore
from letterhead.state.layers.base import chain
from tests.state import changelogs, deviations, traces
from tests.state.java import JavaError, JavaServer, JavaStore
from tests.state.operations import SEGMENT, Operations, Step, config_of, puts

pytestmark = pytest.mark.jvm

FORMATS = [
    ("kv", "plain"),
    ("kv", "timestamped"),
    ("kv", "headers"),
    ("window", "plain"),
    ("window", "timestamped"),
    ("window", "headers"),
    ("session", "plain"),
    ("session", "headers"),
]
UPGRADES = [
    ("kv", ("plain", "headers")),
    ("kv", ("timestamped", "headers")),
    ("kv", ("plain", "timestamped")),
    ("window", ("plain", "headers")),
    ("window", ("timestamped", "headers")),
    ("window", ("plain", "timestamped")),
    ("session", ("plain", "headers")),
    ("time-ordered-window", ("timestamped", "headers")),
]
OLD_FAMILY = {("kv", "timestamped"): "keyValueWithTimestamp", ("window", "timestamped"): "keyValueWithTimestamp"}
NEW_FAMILY = {
    ("kv", "timestamped"): "keyValueWithTimestamp",
    ("kv", "headers"): "keyValueWithTimestampAndHeaders",
    ("session", "headers"): "sessionKeyValueWithHeaders",
    ("time-ordered-window", "headers"): "windowKeyValueWithHeaders",
}
"""Where the rows of a store are if not in `default`; the new ones of windows where those of keys are."""


def named(value: Any) -> str:
    if isinstance(value, dict):
        return f"{value['family']}-{value['format']}"
    return value if isinstance(value, str) else "-to-".join(value)


class OurStore:
    """One opening of one of our stores; does what `JavaStore` does."""

    def __init__(self, task: Path, config: dict[str, Any]) -> None:
        self._ops: list[dict[str, Any]] = []
        self._results: list[Any] = []
        run = self

        class Steps(Processor[bytes, bytes, bytes, bytes]):
            def process(self, record: Any) -> None:
                store = self.context.get_state_store("store")
                run._results = [traces.perform(store, op) for op in run._ops]

        topology = Topology().add_source("source", "in").add_processor("steps", Steps, "source")
        topology.add_state_store(traces.builder_of(config), "steps")
        self.driver = TopologyTestDriver(topology, application_id="app", state_directory=task.parent.parent)
        assert self.driver.task_directory == task

    def step(self, record: dict[str, Any], ops: list[dict[str, Any]]) -> tuple[list[Any], list[dict[str, Any]]]:
        self._ops = ops
        headers = traces.headers_of(record["headers"])
        self.driver.create_input_topic("in").pipe_input(b"k", b"k", int(record["timestamp"]), headers)
        return self._results, self._logged()

    def close(self) -> list[dict[str, Any]]:
        self.driver.close(keep_state=True)
        return self._logged()

    def _logged(self) -> list[dict[str, Any]]:
        return [traces.shown_record(record) for record in self.driver.take_changelog("store")]


Store = OurStore | JavaStore
Open = Callable[[Path, dict[str, Any]], Store]


@pytest.fixture
def turns(server: JavaServer, tmp_path: Path) -> Turns:
    return Turns(server, tmp_path)


class Turns:
    """Two directories, on which Java and we take turns."""

    def __init__(self, server: JavaServer, directory: Path) -> None:
        self.tasks = [directory / begins / "app" / "0_0" for begins in ("java", "ours")]
        self._open: list[Open] = [lambda task, config: JavaStore(server, task, config), OurStore]
        self.operations = 0
        self.records = 0

    def play(self, config: dict[str, Any], steps: list[Step]) -> list[list[Any]]:
        """Open both stores, do everything on both, close them and compare; gives the results of each step."""
        stores = [open_store(task, config) for open_store, task in zip(self._open, self.tasks, strict=True)]
        of_java = self._open.index(OurStore) ^ 1
        played = []
        for record, ops in steps:
            answers = [store.step(record, ops) for store in stores]
            (results, changelog), (ours, our_changelog) = answers[of_java], answers[of_java ^ 1]
            for op, expected, result in zip(ops, results, ours, strict=True):
                right = deviations.prefixes_of_the_last_key(op, result, expected)
                assert result == right, f"{config['family']} {config['format']}: {traces.brief(op)}"
            assert our_changelog == changelog
            played.append(results)
            self.operations += len(ops)
            self.records += len(changelog)
        logged = [store.close() for store in stores]
        assert logged[0] == logged[1]
        first, second = (traces.databases(task) for task in self.tasks)
        assert first == second
        self._open.reverse()
        return played

    def rows(self) -> dict[str, int]:
        """Count the rows of each column family, of all segments together."""
        counts: dict[str, int] = {}
        for families in traces.databases(self.tasks[0]).values():
            for name, entries in families.items():
                counts[name] = counts.get(name, 0) + len(entries)
        return counts


# Turns on stores of one type.


def take_turns(turns: Turns, config: dict[str, Any], seed: int, *, openings: int, steps: int, ops_in_step: int) -> None:
    spread = config.get("spread", 2 * SEGMENT)
    operations = Operations(f"{seed} {config}", spread)
    scan = operations.scans(config)
    before: list[Any] = []
    for _ in range(openings):
        again, scan = scan, operations.scans(config)
        writes = operations.writes(config, steps, ops_in_step)
        answers = turns.play(config, [again, *writes, operations.gets(config), scan])
        # How far time has got is not in the files: where rows expire, some are back after they were closed.
        if before and spread <= 2 * SEGMENT:
            assert answers[0] == before
        before = answers[-1]
    assert any(before)


@pytest.mark.parametrize(("family", "format"), FORMATS)
def test_java_and_python_take_turns(turns: Turns, family: str, format: str) -> None:
    take_turns(turns, config_of(family, format), 1, openings=4, steps=4, ops_in_step=12)
    assert turns.operations > 300
    assert turns.records > 50


@pytest.mark.full
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(("family", "format"), FORMATS)
def test_java_and_python_take_many_turns(turns: Turns, family: str, format: str, seed: int) -> None:
    take_turns(turns, config_of(family, format), seed, openings=6, steps=20, ops_in_step=25)
    assert turns.records > 1500


SPECIAL = {
    "kv without a changelog": config_of("kv", logging=False),
    "kv behind a cache": config_of("kv", caching=True),
    "kv over a timestamped store": config_of("kv", supplier="rocksdb-timestamped-adapter"),
    "kv over a plain store": config_of("kv", supplier="rocksdb-plain-adapter"),
    "windows that expire": config_of("window", spread=10 * SEGMENT),
    "windows without a changelog": config_of("window", logging=False),
    "windows behind a cache": config_of("window", caching=True),
    "windows that keep duplicates": config_of("window", retain_duplicates=True),
    "windows over a timestamped store": config_of("window", supplier="rocksdb-timestamped-adapter"),
    "windows over a plain store": config_of("window", supplier="rocksdb-plain-adapter"),
    "windows in the order of time": config_of("time-ordered-window"),
    "timestamped windows in the order of time": config_of("time-ordered-window", "timestamped"),
    "sessions in the order of time": config_of("time-ordered-session"),
    "plain sessions in the order of time": config_of("time-ordered-session", "plain"),
    "sessions that expire": config_of("session", spread=10 * SEGMENT),
    "sessions without a changelog": config_of("session", logging=False),
    "sessions behind a cache": config_of("session", caching=True),
    "sessions over a plain store": config_of("session", supplier="rocksdb-plain-adapter"),
}


@pytest.mark.full
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("store_type", SPECIAL)
def test_java_and_python_take_turns_on_special_stores(turns: Turns, store_type: str, seed: int) -> None:
    take_turns(turns, SPECIAL[store_type], seed, openings=4, steps=10, ops_in_step=25)


# A cache over a store in memory.

ZEROS = ["", "00", "0000", "00" * 9, "61", "6100", "61" + "00" * 9, "62"]


@pytest.mark.parametrize("stored", [0, 1], ids=["rows in the cache", "older rows in the store"])
def test_cached_memory_windows_are_read_to_key_ending_in_zeros(server: JavaServer, tmp_path: Path, stored: int) -> None:
    config = config_of("window", supplier="in-memory", caching=True)
    stores = JavaStore(server, tmp_path / "java" / "app" / "0_0", config), OurStore(tmp_path / "app" / "0_0", config)
    record: dict[str, Any] = {"timestamp": "0", "headers": []}

    def puts(value: str) -> list[dict[str, Any]]:
        row = {"value": value, "timestamp": "5", "headers": []}
        return [{"op": "put", "key": key, "start": start, "value": row} for key in ZEROS for start in ("0", "70000")]

    for store in stores:
        store.step(record, puts("01") * stored)
    last = "00" * 9
    case = {"op": "backwardFetchRange", "key_from": None, "key_to": last, "from": "0", "to": "70000"}
    reads = [case] + [
        {**case, "op": op, "key_from": low, "key_to": high}
        for op in ("fetchRange", "backwardFetchRange")
        for low in (None, "", "61")
        for high in (*ZEROS, None)
    ]
    # What was put in the step is in the cache while the step reads.
    java, ours = (store.step(record, puts("02") + reads)[0][-len(reads) :] for store in stores)
    for op, of_java, of_ours in zip(reads, java, ours, strict=True):
        right = deviations.order_of_memory(lambda other: stores[1].step(record, [other])[0][0], op, of_ours, of_java)
        assert of_ours == right, op
        assert {row["value"]["value"] for row in of_ours} <= {"02"}

    def rows(rows_read: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
        return [(row["start"], row["key"], row["value"]["value"]) for row in rows_read]

    # The case of both defects at once. Java merges by key where the store is ordered by time, and leaves out cached rows
    # of keys that the last key begins with, where older ones of the store come back.
    expected = [(start, key, "02") for start in ("70000", "0") for key in (last, "0000", "00", "")]
    assert rows(ours[0]) == expected
    missed = [("70000", key) for key in ("", "00", "0000")]
    assert not {(*place, "02") for place in missed} & set(rows(java[0]))
    assert ({(*place, "01") for place in missed} <= set(rows(java[0]))) is bool(stored)
    for store in stores:
        store.close()


# Versions: Java knows those before the latest only until it closes a store, and has no store that gives them headers.

VERSIONED = config_of(
    "versioned", "plain", supplier="rocksdb-versioned", history_retention_ms=10 * SEGMENT, segment_interval_ms=30_000
)


def read_versions(turns: Turns, server: JavaServer, seed: int, *, steps: int) -> None:
    operations = Operations(f"{seed} versions")
    latest, history = operations.gets(VERSIONED), operations.history()
    answers = turns.play(VERSIONED, [*operations.writes(VERSIONED, steps, 20), latest, history])
    assert sum(version is not None for version in answers[-1]) > 100
    of_java, of_ours = turns.tasks
    again = JavaStore(server, of_ours, VERSIONED)
    assert again.step(*latest)[0] == answers[-2]
    again.close()
    ours = OurStore(of_java, VERSIONED)
    assert [ours.step(*reads)[0] for reads in (latest, history)] == answers[-2:]
    plain = ours.driver.get_versioned_key_value_store("store")
    assert plain is not None
    ends = {(key, stored.timestamp): stored.valid_to for key in operations.keys for _, stored in plain.versions(key)}
    ours.close()
    newer = OurStore(of_java, {**VERSIONED, "format": "headers", "supplier": "rocksdb-versioned-headers"})

    def with_headers(op: dict[str, Any], version: dict[str, Any]) -> dict[str, Any]:
        """A version as the store with headers returns it: it has its end, which Java leaves out."""
        assert version["valid_to"] is None
        end = ends[bytes.fromhex(op["key"]), int(version["timestamp"])]
        return {**version, "valid_to": end and str(end), "headers": []}

    for (record, ops), versions in zip((latest, history), answers[-2:], strict=True):
        expected = [version and with_headers(op, version) for op, version in zip(ops, versions, strict=True)]
        assert newer.step(record, ops)[0] == expected
    newer.close()


def test_versions_are_exchanged_with_java(turns: Turns, server: JavaServer) -> None:
    read_versions(turns, server, 1, steps=4)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(8))
def test_many_versions_are_exchanged_with_java(turns: Turns, server: JavaServer, seed: int) -> None:
    read_versions(turns, server, seed, steps=40)


# An upgrade in the middle.


def upgraded(answers: list[Any], family: str, old: str, new: str) -> list[Any]:
    """What the scans of an older store give when a newer one makes them: no headers, and no time that was not known."""

    def value(stored: Any) -> Any:
        if family == "session":
            return {"aggregation": stored, "headers": []}
        if old == "plain":
            stored = {"value": stored, "timestamp": "-1"}
        return stored if new == "timestamped" else {**stored, "headers": []}

    return [[{**row, "value": value(row["value"])} for row in rows] for rows in answers]


def upgrade_together(
    turns: Turns, family: str, formats: tuple[str, str], seed: int, *, steps: int, ops_in_step: int
) -> None:
    old, new = (config_of(family, format) for format in formats)
    operations = Operations(f"{seed} {family} {formats}")
    scan = operations.scans(old)
    before = turns.play(old, [*operations.writes(old, steps, ops_in_step), scan])[-1]
    expected = upgraded(before, family, *formats)
    old_family = OLD_FAMILY.get((family, formats[0]), "default")
    new_family = NEW_FAMILY["kv" if family == "window" else family, formats[1]]
    assert turns.rows()[old_family] > 10

    # One begins: nothing moves when rows are scanned, some when they are read by key or written.
    some = [scan, operations.gets(new, 0.3), *operations.writes(new, 1, 5), scan]
    answers = turns.play(new, some)
    assert answers[0] == expected
    rows = turns.rows()
    assert rows[old_family] > 0
    assert rows[new_family] > 0

    # The other goes on with what is half moved, and the first ends it.
    again = turns.play(new, [scan, operations.gets(new, 0.3), *operations.writes(new, 1, 5), scan])
    assert again[0] == answers[-1]
    assert turns.rows().get(old_family, 0) <= rows[old_family]
    last = turns.play(new, [scan, operations.gets(new), scan])
    assert last[0] == last[-1] == again[-1]
    if family != "time-ordered-window":  # its index moves only when it is written
        assert turns.rows().get(old_family, 0) == 0
    assert turns.play(new, [scan])[0] == last[0]
    assert (old_family in turns.rows()) == (old_family == "default")


@pytest.mark.parametrize(("family", "formats"), UPGRADES, ids=named)
def test_upgrade_begun_by_one_side_is_finished_by_other(turns: Turns, family: str, formats: tuple[str, str]) -> None:
    upgrade_together(turns, family, formats, 1, steps=4, ops_in_step=12)


@pytest.mark.full
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(("family", "formats"), UPGRADES, ids=named)
def test_many_upgrades_begun_by_one_side_are_finished_by_other(
    turns: Turns, family: str, formats: tuple[str, str], seed: int
) -> None:
    upgrade_together(turns, family, formats, seed, steps=20, ops_in_step=25)


@pytest.mark.parametrize("logged", [True, False], ids=["with a changelog", "without a changelog"])
@pytest.mark.parametrize("family", ["kv", "window"])
def test_logged_store_rejects_rewrite_of_row_without_timestamp(
    server: JavaServer, tmp_path: Path, family: str, logged: bool
) -> None:
    where: dict[str, Any] = {"key": "61", "start": "5"} if family == "window" else {"key": "61"}
    get = {"op": "fetch" if family == "window" else "get", **where}
    record = {"timestamp": "1700", "headers": [{"key": "h", "value": "01"}]}
    row = {"value": "76", "timestamp": "-1", "headers": []}
    for player in ("java", "ours"):
        task = tmp_path / player / "app" / "0_0"

        def opened(config: dict[str, Any], player: str = player, task: Path = task) -> Store:
            return JavaStore(server, task, config) if player == "java" else OurStore(task, config)

        older = opened(config_of(family, "plain"))
        older.step(record, [{"op": "put", **where, "plain": "76"}])
        older.close()
        store = opened(config_of(family, logging=logged))
        assert store.step(record, [get]) == ([row], [])
        if logged:
            with pytest.raises((JavaError, InvalidTimestampError)) as raised:
                store.step(record, [{"op": "put", **where, "value": row}])
            assert "Invalid timestamp: -1" in str(raised.value)
        else:
            assert store.step(record, [{"op": "put", **where, "value": row}, get])[0] == [None, row]
        own = {**row, "timestamp": "1700", "headers": record["headers"]}
        results, changelog = store.step(record, [{"op": "put", **where, "value": own}, get])
        assert results == [None, own]
        assert [(change["value"], change["timestamp"], change["headers"]) for change in changelog] == (
            [("76", "1700", record["headers"])] if logged else []
        )
        store.close()


# What neither opens.

STORE_TYPES = {
    "kv": [config_of("kv", format) for format in ("plain", "timestamped", "headers")],
    "window and session": [
        *(config_of("window", format) for format in ("plain", "timestamped", "headers")),
        *(config_of("session", format) for format in ("plain", "headers")),
        *(config_of("time-ordered-window", format) for format in ("timestamped", "headers")),
        *(config_of("time-ordered-session", format) for format in ("plain", "headers")),
    ],
}
WRITTEN_AND_OPENED = [
    (written, opened) for store_types in STORE_TYPES.values() for written in store_types for opened in store_types
]
AGE = ("plain", "timestamped", "headers")
DOWNGRADES = [
    (written, opened)
    for written, opened in WRITTEN_AND_OPENED
    if written["family"] == opened["family"] and AGE.index(written["format"]) > AGE.index(opened["format"])
]


def make(open_store: Open, task: Path, config: dict[str, Any]) -> None:
    store = open_store(task, config)
    for record, ops in Operations(0).writes(config, 1, 8):
        store.step(record, ops)
    store.close()


def outcome(open_store: Open, task: Path, config: dict[str, Any]) -> str | None:
    """Open a store and close it; gives why not, if it does not open."""
    try:
        store = open_store(task, config)
    except JavaError as error:
        assert issubclass(deviations.ERRORS[error.exception], ProcessorStateError)
        return error.message
    except ProcessorStateError as error:
        return str(error)
    store.close()
    return None


def not_empty(databases: dict[str, traces.Families]) -> dict[str, traces.Families]:
    return {path: {name: rows for name, rows in families.items() if rows} for path, families in databases.items()}


class TestOpening:
    """What Java refuses to open we refuse, for the same reason, and in neither case does anything happen to the files."""

    @pytest.fixture(autouse=True)
    def _players(self, server: JavaServer, tmp_path: Path) -> None:
        self.java: Open = lambda task, config: JavaStore(server, task, config)
        self.task = tmp_path / "made" / "app" / "0_0"
        self.copies = [tmp_path / player / "app" / "0_0" for player in ("java", "ours")]

    def refusal(self, config: dict[str, Any]) -> str | None:
        for copy in self.copies:
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(self.task, copy)
        java = outcome(self.java, self.copies[0], config)
        ours = outcome(OurStore, self.copies[1], config)
        assert ours == java
        of_java, of_ours = (traces.databases(copy) for copy in self.copies)
        if java is None:
            assert of_ours == of_java
        else:
            result = traces.databases(self.task)
            assert of_ours == result
            assert not_empty(of_java) == not_empty(result)  # Java may leave a new family there, and nothing in it
        return java

    @pytest.mark.parametrize(("written", "opened"), DOWNGRADES, ids=named)
    @pytest.mark.parametrize("java_made_it", [True, False])
    def test_downgrade_is_rejected(self, java_made_it: bool, written: dict[str, Any], opened: dict[str, Any]) -> None:
        make(self.java if java_made_it else OurStore, self.task, written)
        refusal = self.refusal(opened)
        assert refusal is not None
        output = "Downgrade from" if written["family"] in ("kv", "window") else "Unexpected column family"
        assert output in refusal

    @pytest.mark.full
    @pytest.mark.parametrize(("written", "opened"), WRITTEN_AND_OPENED, ids=named)
    @pytest.mark.parametrize("java_made_it", [True, False])
    def test_every_store_opens_or_rejects_every_other(
        self, java_made_it: bool, written: dict[str, Any], opened: dict[str, Any]
    ) -> None:
        make(self.java if java_made_it else OurStore, self.task, written)
        refusal = self.refusal(opened)
        assert written != opened or refusal is None

    def test_plain_rows_beside_timestamped_ones_are_inconsistent(self) -> None:
        make(self.java, self.task, config_of("kv", "plain"))
        make(OurStore, self.task, config_of("kv", "timestamped"))
        assert "Cannot have both plain (DEFAULT) and timestamped data" in str(self.refusal(config_of("kv")))

    def test_unknown_family_is_rejected(self) -> None:
        from rocksdict import Options, Rdict

        make(self.java, self.task, config_of("session"))
        segment = next(self.task.glob("store/*"))
        families = {name: Options(raw_mode=True) for name in Rdict.list_cf(str(segment))}
        database = Rdict(str(segment), Options(raw_mode=True), column_families=families)
        database.create_column_family("newer", Options(raw_mode=True))
        database.close()
        assert "Unexpected column family 'newer'" in str(self.refusal(config_of("session")))

    def test_directory_that_is_no_segment_is_rejected(self) -> None:
        make(self.java, self.task, config_of("window"))
        (self.task / "store" / "store.first").mkdir()
        expected = "Unable to parse segment id as long from segmentName: store.first"
        assert self.refusal(config_of("window")) == expected

    def test_segments_with_old_names_are_renamed(self) -> None:
        config = config_of("window")
        make(OurStore, self.task, config)
        before = traces.databases(self.task)
        assert sorted(before) == ["store/store.0", f"store/store.{SEGMENT}"]
        (self.task / "store" / "store.0").rename(self.task / "store" / "store-197001010000")
        (self.task / "store" / f"store.{SEGMENT}").rename(self.task / "store" / f"store:{SEGMENT}")
        assert self.refusal(config) is None
        assert sorted(traces.databases(self.copies[0])) == sorted(before)


# What a process leaves that was killed.


def whole(config: dict[str, Any]) -> Step:
    """A step that reads every row."""
    every = {"op": "fetchRange", "key_from": None, "key_to": None} if config["family"] == "session" else {"op": "all"}
    return {"timestamp": "0", "headers": []}, [every]


def place(row: dict[str, Any]) -> tuple[str, str | None]:
    return row["key"], row.get("start")


@pytest.mark.parametrize("family", ["kv", "window", "session"])
def test_store_of_killed_java_process_restores_from_changelog(tmp_path: Path, server: JavaServer, family: str) -> None:
    config = config_of(family, write_buffer_bytes=64 << 10)
    steps = puts(config, 80)
    task = tmp_path / "app" / "0_0"
    killed = JavaServer(tmp_path / "java")
    store = JavaStore(killed, task, config)
    changelog = [row for record, ops in steps for row in store.step(record, ops)[1]]
    (expected,) = store.step(*whole(config))[0]
    killed.kill()
    assert killed.process.returncode == -signal.SIGKILL
    assert len(changelog) == len(steps)

    ours = OurStore(task, config)
    metered = ours.driver.get_all_state_stores()["store"]
    committed = chain(metered)[-1].committed_offsets().get("app-store-changelog-0", -1)
    assert -1 <= committed < len(steps)
    (stored,) = ours.step(*whole(config))[0]
    written = [(place(op), op["value"]) for _, ops in steps for op in ops]
    assert all((place(row), row["value"]) in written for row in stored)
    assert stored  # what went to files
    assert stored != expected  # what was still in memory is lost
    metered.restore(traces.record_of(row) for row in changelog[committed + 1 :])
    assert ours.step(*whole(config))[0] == [expected]
    ours.close()
    again = JavaStore(server, task, config)
    assert again.step(*whole(config))[0] == [expected]
    again.close()


# Directories restored from a changelog.


def families_of(task: Path) -> dict[str, Any]:
    """The column families of each database, and of the offsets only that in the changelog."""
    return {
        place: {
            **families,
            "offsets": [entry for entry in families["offsets"] if entry[0] == b"app-store-changelog-0".hex()],
        }
        for place, families in traces.databases(task).items()
    }


@pytest.mark.parametrize(
    ("family", "format"),
    [*FORMATS, ("time-ordered-window", "headers"), ("time-ordered-session", "headers"), ("versioned", "plain")],
    ids=named,
)
def test_java_continues_from_directory_restored_from_changelog(
    tmp_path: Path, server: JavaServer, family: str, format: str
) -> None:
    config = VERSIONED if family == "versioned" else config_of(family, format)
    operations = Operations(f"restored {family} {format}")
    # A scan at the end removes index entries without rows, which Java leaves behind.
    reads = operations.history() if family == "versioned" else operations.scans(config)
    before, after = [*operations.writes(config, 12, 8), reads], [*operations.writes(config, 4, 8), reads]
    written, restored = (tmp_path / name / "app" / "0_0" for name in ("written", "restored"))
    store = JavaStore(server, written, config)
    changelog = [row for record, ops in before for row in store.step(record, ops)[1]]
    store.close()
    options: dict[str, Any] = {} if family == "kv" else {"store_type": family, "retention": config["retention_ms"]}
    if family == "versioned":
        options |= {"retention": config["history_retention_ms"], "segment_interval": config["segment_interval_ms"]}
    table = changelogs.table(traces.record_of(row) for row in changelog)
    restore(table, restored, "store", layout=format, start="earliest", **options)  # type: ignore[arg-type]
    assert families_of(restored) == families_of(written)
    stores = [JavaStore(server, task, config) for task in (written, restored)]
    for record, ops in after:
        first, second = (store.step(record, ops) for store in stores)
        assert first == second
    for store in stores:
        store.close()
    assert families_of(restored) == families_of(written)


def test_java_aggregations_in_time_ordered_sessions_are_read(tmp_path: Path, server: JavaServer) -> None:
    config, task = config_of("time-ordered-session"), tmp_path / "app" / "0_0"
    counts = {key: (number).to_bytes(8, "big") for number, key in enumerate((b"a", b"b", b"c"), 1)}
    headers = [{"key": "tenant", "value": b"acme".hex()}]
    ops = [
        {
            "op": "put",
            "key": key.hex(),
            "start": "5",
            "end": "9",
            "value": {"aggregation": count.hex(), "headers": headers},
        }
        for key, count in counts.items()
    ]
    store = JavaStore(server, task, config)
    _, changelog = store.step({"timestamp": "9", "headers": headers}, ops)
    store.close()
    table = read.state(task).read_all()
    assert dict(zip(table["key"].to_pylist(), table["value"].to_pylist(), strict=True)) == counts
    assert "headers" not in table.schema.names
    source = changelogs.table(map(traces.record_of, changelog))
    assert list(diff(task, source, retention=config["retention_ms"])) == []


@pytest.mark.parametrize(("family", "older"), [("kv", "timestamped"), ("window", "timestamped"), ("session", "plain")])
def test_java_opens_downgraded_store_and_restored_one(
    tmp_path: Path, server: JavaServer, family: str, older: str
) -> None:
    config, options = config_of(family), {} if family == "kv" else {"store_type": family, "retention": 2 * SEGMENT}
    operations = Operations(f"downgraded {family}")
    written, without, back = (tmp_path / name / "app" / "0_0" for name in ("written", "without", "back"))
    changelog: list[ChangelogRecord] = []

    def work(task: Path, config: dict[str, Any]) -> None:
        store = JavaStore(server, task, config)
        for record, ops in operations.writes(config, 6, 8):
            changelog.extend(map(traces.record_of, store.step(record, ops)[1]))
        store.close()

    work(written, config)
    restore(changelogs.table(changelog), without, "store", layout=older, start="earliest", **options)  # type: ignore[arg-type]
    assert list(diff(written, without)) == []
    headers = sum(bool(record.headers) for record in changelog)
    work(without, config_of(family, older))
    restore(changelogs.table(changelog), back, "store", start="earliest", **options)  # type: ignore[arg-type]
    assert list(diff(without, back)) == []
    assert sum(bool(record.headers) for record in changelog) == headers  # those of later writes are lost
    work(back, config)


@pytest.mark.parametrize("family", ["kv", "window", "session"])
def test_java_reads_rows_written_before_kill(tmp_path: Path, server: JavaServer, family: str) -> None:
    config, task = config_of(family), tmp_path / "app" / "0_0"
    writer = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("write_and_wait.py")), str(task), family, "80"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"80 written\n"
        writer.kill()
    assert writer.returncode == -signal.SIGKILL
    assert not list(task.rglob("*.sst"))  # all of it is in the write-ahead logs
    last = {place(op): op["value"] for _, ops in puts(config, 80) for op in ops}
    store = JavaStore(server, task, config)
    (stored,) = store.step(*whole(config))[0]
    assert {place(row): row["value"] for row in stored} == last
    assert len(stored) == len(last)
    store.close()
    ours = OurStore(task, config)
    assert ours.step(*whole(config))[0] == [stored]
    ours.close()
