"""Replays what Kafka Streams' own stores did: operations, changelog records and files, step by step.

`vectors/FORMAT.md` describes the lines. What we do otherwise than Java, and why, stands in `deviations.py`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from letterhead import Headers
from letterhead.errors import NoSuchElementError
from letterhead.state import (
    AggregationWithHeaders,
    BytesSerde,
    ChangelogRecord,
    Processor,
    Serde,
    SessionKey,
    Stores,
    Topology,
    TopologyTestDriver,
    ValueAndTimestamp,
    ValueTimestampHeaders,
    VersionedKeyValueStore,
    VersionedKeyValueStoreWithHeaders,
    VersionedRecordWithHeaders,
)
from tests.state import deviations
from tests.state.deviations import Failed

VECTORS = Path(__file__).resolve().parents[1] / "vectors"
FAMILIES = ("kv", "window", "session", "upgrade", "versioned")


@cache
def traces() -> dict[str, list[dict[str, Any]]]:
    """All traces by name; lines in order."""
    traces_by_name: dict[str, list[dict[str, Any]]] = {}
    for family in FAMILIES:
        with (VECTORS / f"trace_{family}.jsonl").open(encoding="ascii") as lines:
            for line in map(json.loads, lines):
                traces_by_name.setdefault(line["trace"], []).append(line)
    return traces_by_name


def changelog_of(trace: str) -> list[ChangelogRecord]:
    """Every record that a trace logged, in order."""
    return [
        record_of(row) for line in traces()[trace] if line["type"] in ("step", "close") for row in line["changelog"]
    ]


def replay(
    trace: str,
    directory: Path,
    *,
    lines: list[dict[str, Any]] | None = None,
    before_close: Callable[[TopologyTestDriver], None] | None = None,
) -> Counter[str]:
    """Do what a trace did, and compare everything. Gives how many results, records and databases were compared."""
    counts: Counter[str] = Counter()
    lines = traces()[trace] if lines is None else lines
    restored = next((line["changelog_of"] for line in lines if line["type"] == "restore"), None)
    changelog = [] if restored is None else changelog_of(restored)
    right = deviations.DEFECTS.get(trace, deviations.AsJava)(trace, changelog)
    run: Run | None = None
    for line in lines:
        if line["type"] == "open":
            run = Run(trace, line["phase"], line["config"], directory, right)
            continue
        if line["type"] == "open_error":
            with pytest.raises(deviations.ERRORS[line["exceptions"][0]["exception"]]) as raised:
                Run(trace, line["phase"], line["config"], directory, right)
            assert str(raised.value) == line["exceptions"][0]["message"]
            counts["results"] += 1
            continue
        assert run is not None
        if line["type"] == "restore":
            assert len(changelog) == line["records"]
            run.driver.restore("store", changelog)
            counts["restored"] += len(changelog)
        elif line["type"] == "step":
            run.step(line, counts)
        else:
            if before_close is not None:
                before_close(run.driver)
            run.close(line, counts)
    return counts


class Run:
    """One opening of a store."""

    def __init__(
        self, trace: str, phase: int, config: dict[str, Any], directory: Path, right: deviations.AsJava
    ) -> None:
        self.where = f"{trace} phase {phase}"
        self.phase = phase
        self.right = right
        self.ops: list[dict[str, Any]] = []
        self.results: list[tuple[Any, Any]] = []
        run = self

        class Steps(Processor[bytes, bytes, bytes, bytes]):
            def process(self, record: Any) -> None:
                store = self.context.get_state_store("store")
                run.results = [run.both(store, op) for op in run.ops]

        topology = Topology().add_source("source", "in").add_processor("steps", Steps, "source")
        topology.add_state_store(builder_of(config), "steps")
        consistency = config.get("consistency", False)
        self.driver = TopologyTestDriver(
            topology, application_id="app", state_directory=directory, consistency_vectors=consistency
        )
        self.input = self.driver.create_input_topic("in")

    def both(self, store: Any, op: dict[str, Any]) -> tuple[Any, Any]:
        """What an operation gives, and what it should."""
        ours = outcome(store, op)
        expected = self.right.result(self.phase, op, expected_outcome(op))
        if "java_quirk" in op:
            rule = deviations.QUIRKS[op["java_quirk"]]
            expected = rule(lambda other: perform(store, other), op, ours, expected)
        return ours, expected

    def step(self, line: dict[str, Any], counts: Counter[str]) -> None:
        self.ops, record = line["ops"], line["record"]
        self.input.pipe_input(b"k", b"v", int(record["timestamp"]), headers_of(record["headers"]))
        for place, (op, (ours, expected)) in enumerate(zip(self.ops, self.results, strict=True)):
            assert ours == expected, f"{self.where} step {line['n']} operation {place}: {brief(op)}"
            counts["quirks" if "java_quirk" in op else "results"] += 1
        logged = [shown_record(record) for record in self.driver.take_changelog("store")]
        assert logged == self.right.changelog(line["changelog"]), f"{self.where} step {line['n']}: changelog"
        counts["records"] += len(logged)

    def close(self, line: dict[str, Any], counts: Counter[str]) -> None:
        task = self.driver.task_directory
        self.driver.close(keep_state=True)
        assert [shown_record(record) for record in self.driver.take_changelog("store")] == line["changelog"]
        ours = databases(task)
        assert list(ours) == [database["dir"] for database in line["databases"]], f"{self.where}: directories"
        for database in line["databases"]:
            java = {
                family["name"]: [(key, value) for key, value in family["entries"]]
                for family in database["column_families"]
            }
            families = ours[database["dir"]]
            assert sorted(families) == sorted(java), f"{self.where}: families of {database['dir']}"
            for name, entries in java.items():
                expected = self.right.family(self.phase, name, entries, java)
                assert families[name] == expected, f"{self.where}: family {name} of {database['dir']}"
            counts["databases"] += 1
        assert stray_files(task, ours) == line["files"]


def builder_of(config: dict[str, Any]) -> Any:
    """The builder that a line's `config` describes."""
    family = config["family"]
    result: Any
    source = {"key_serde": serde_of(config, "ks"), "value_serde": serde_of(config, "vs")}
    retention, size = config.get("retention_ms"), config.get("window_size_ms")
    keep = config.get("retain_duplicates", False)
    layout = config.get("supplier") or f"rocksdb-{config['format']}"
    if family.startswith("time-ordered-"):
        family, layout = family.removeprefix("time-ordered-"), f"rocksdb-time-ordered-{config['format']}"
    format = config.get("format", "headers")
    match family, layout:
        case "kv", "in-memory":
            supplier = Stores.in_memory_key_value_store("store")
        case "kv", "rocksdb-headers":
            supplier = Stores.persistent_timestamped_key_value_store_with_headers("store")
        case "kv", "rocksdb-timestamped" | "rocksdb-timestamped-adapter":
            supplier = Stores.persistent_timestamped_key_value_store("store")
        case "kv", "rocksdb-plain" | "rocksdb-plain-adapter":
            supplier = Stores.persistent_key_value_store("store")
        case "window", "in-memory":
            supplier = Stores.in_memory_window_store("store", retention, size, keep)
        case "window", "rocksdb-headers":
            supplier = Stores.persistent_timestamped_window_store_with_headers("store", retention, size, keep)
        case "window", "rocksdb-timestamped" | "rocksdb-timestamped-adapter":
            supplier = Stores.persistent_timestamped_window_store("store", retention, size, keep)
        case "window", "rocksdb-plain" | "rocksdb-plain-adapter":
            supplier = Stores.persistent_window_store("store", retention, size, keep)
        case "window", "rocksdb-time-ordered-headers":
            supplier = Stores.persistent_time_ordered_window_store_with_headers("store", retention, size, keep)
        case "window", "rocksdb-time-ordered-timestamped":
            supplier = Stores.persistent_time_ordered_window_store("store", retention, size, keep)
        case "session", "in-memory":
            supplier = Stores.in_memory_session_store("store", retention)
        case "session", "rocksdb-headers":
            supplier = Stores.persistent_session_store_with_headers("store", retention)
        case "session", "rocksdb-plain" | "rocksdb-plain-adapter":
            supplier = Stores.persistent_session_store("store", retention)
        case "session", "rocksdb-time-ordered-headers":
            supplier = Stores.persistent_time_ordered_session_store_with_headers("store", retention)
        case "session", "rocksdb-time-ordered-plain":
            supplier = Stores.persistent_time_ordered_session_store("store", retention)
        case "versioned", "rocksdb-versioned":
            history, interval = config["history_retention_ms"], config["segment_interval_ms"]
            supplier = Stores.persistent_versioned_key_value_store("store", history, interval)
            format = "plain"
        case "versioned", "rocksdb-versioned-headers":
            history, interval = config["history_retention_ms"], config["segment_interval_ms"]
            supplier = Stores.persistent_versioned_key_value_store_with_headers("store", history, interval)
    builders: dict[tuple[str, str], Callable[..., Any]] = {
        ("kv", "plain"): Stores.key_value_store_builder,
        ("kv", "timestamped"): Stores.timestamped_key_value_store_builder,
        ("kv", "headers"): Stores.timestamped_key_value_store_with_headers_builder,
        ("window", "plain"): Stores.window_store_builder,
        ("window", "timestamped"): Stores.timestamped_window_store_builder,
        ("window", "headers"): Stores.timestamped_window_store_with_headers_builder,
        ("session", "plain"): Stores.session_store_builder,
        ("session", "headers"): Stores.session_store_with_headers_builder,
        ("versioned", "plain"): Stores.versioned_key_value_store_builder,
        ("versioned", "headers"): Stores.versioned_key_value_store_with_headers_builder,
    }
    result = builders[family, format](supplier, **source)
    result = result.with_caching_enabled() if config.get("caching") else result
    return result if config["logging"] else result.with_logging_disabled()


class HeaderWriting(Serde[bytes]):
    """Writes how long the data is into a header, and says with one byte after the data whether that header came back."""

    def __init__(self, header: str) -> None:
        self.header = header

    def serialize(self, topic: str, headers: Headers, value: bytes | None) -> bytes | None:
        if value is not None:
            headers.remove(self.header)
            headers.add(self.header, bytes([len(value)]))
        return value

    def deserialize(self, topic: str, headers: Headers, data: bytes | None) -> bytes | None:
        return None if data is None else data + (b"+" if self.header in headers else b"-")


def serde_of(config: dict[str, Any], header: str) -> Serde[bytes]:
    return HeaderWriting(header) if config["serdes"] == "header-writing" else BytesSerde()


def expected_outcome(op: dict[str, Any]) -> Any:
    if "error" not in op:
        return op.get("result")
    return Failed((deviations.ERRORS[op["error"]["exception"]], op["error"]["message"]))


def outcome(store: Any, op: dict[str, Any]) -> Any:
    """Do one operation, and show what it gave."""
    try:
        return perform(store, op)
    except tuple(deviations.ERRORS.values()) as error:
        java = op.get("error", {"exception": None, "message": ""})
        expected = deviations.ERRORS.get(java["exception"])
        if "java_quirk" not in op and (expected is None or not isinstance(error, expected)):
            raise
        error_type = expected if expected is not None and isinstance(error, expected) else type(error)
        return Failed((error_type, None if java["message"] is None else str(error)))


def perform(store: Any, op: dict[str, Any]) -> Any:
    """Call the method that an operation names."""
    key = unhex(op.get("key"))
    low, high = unhex(op.get("key_from")), unhex(op.get("key_to"))

    def number(name: str) -> int:
        return int(op[name])

    if (
        "as_of" in op
        or "timestamp" in op
        or (op["op"] == "get" and isinstance(store, VersionedKeyValueStore | VersionedKeyValueStoreWithHeaders))
    ):
        return versioned(store, op, key)
    match op["op"]:
        # Windows and sessions have a start: their puts come first.
        case "put" if "end" in op:
            return store.put(SessionKey(key, number("start"), number("end")), value_of(op))
        case "put" if "start" in op:
            return store.put(key, value_of(op), number("start"))
        case "remove":
            return store.remove(SessionKey(key, number("start"), number("end")))
        case "put":
            return store.put(key, value_of(op))
        case "putIfAbsent":
            return shown(store.put_if_absent(key, value_of(op)))
        case "putAll":
            return store.put_all([(unhex(entry["key"]), value_of(entry)) for entry in op["entries"]])
        case "delete":
            return shown(store.delete(key))
        case "get":
            return shown(store.get(key))
        case "range":
            return rows(store.range(unhex(op["from"]), unhex(op["to"])))
        case "reverseRange":
            return rows(store.reverse_range(unhex(op["from"]), unhex(op["to"])))
        case "all":
            return rows(store.all())
        case "reverseAll":
            return rows(store.reverse_all())
        case "backwardAll":
            return rows(store.backward_all())
        case "prefixScan":
            return rows(store.prefix_scan(unhex(op["prefix"])))
        case "peek":
            return peeked(store.all())
        case "fetch":
            return shown(store.fetch(key, number("start")))
        case "fetchKey" | "backwardFetchKey" as name if "from" in op:
            fetch = store.fetch_key if name == "fetchKey" else store.backward_fetch_key
            windows = rows(fetch(key, number("from"), number("to")))
            return [{"start": row["start"], "value": row["value"]} for row in windows]
        case "fetchRange" | "backwardFetchRange" as name if "from" in op:
            fetch = store.fetch_range if name == "fetchRange" else store.backward_fetch_range
            return rows(fetch(low, high, number("from"), number("to")))
        case "fetchAll" | "backwardFetchAll" as name:
            fetch = store.fetch_all if name == "fetchAll" else store.backward_fetch_all
            return rows(fetch(number("from"), number("to")))
        case "fetchSession":
            return shown(store.fetch_session(key, number("start"), number("end")))
        case "findSessionsKey" | "backwardFindSessionsKey" as name:
            find = store.find_sessions if name == "findSessionsKey" else store.backward_find_sessions
            return rows(find(key, number("earliest_end"), number("latest_start")))
        case "findSessionsRange" | "backwardFindSessionsRange" as name:
            find = store.find_sessions_range if name == "findSessionsRange" else store.backward_find_sessions_range
            return rows(find(low, high, number("earliest_end"), number("latest_start")))
        case "findSessionsTime":
            return rows(store.find_sessions_time(number("earliest_end"), number("latest_end")))
        case "fetchKey":
            return rows(store.fetch(key))
        case "backwardFetchKey":
            return rows(store.backward_fetch(key))
        case "fetchRange":
            return rows(store.fetch_range(low, high))
        case "backwardFetchRange":
            return rows(store.backward_fetch_range(low, high))
    raise AssertionError(f"an operation that is not known: {op['op']}")


def versioned(store: Any, op: dict[str, Any], key: bytes | None) -> Any:
    match op["op"]:
        case "put":
            value = unhex(op["value"])
            if "headers" in op:
                return str(store.put(key, value, int(op["timestamp"]), headers_of(op["headers"])))
            return str(store.put(key, value, int(op["timestamp"])))
        case "delete":
            return shown(store.delete(key, int(op["timestamp"])))
        case "get":
            return shown(store.get(key))
        case "getAsOf":
            return shown(store.get(key, int(op["as_of"])))
    raise AssertionError(f"an operation that is not known: {op['op']}")


def value_of(op: dict[str, Any]) -> Any:
    """What is put: bytes, a value with a timestamp, or one with headers."""
    if op.get("plain") is not None:
        return unhex(op["plain"])
    if (old := op.get("timestamped")) is not None:
        return ValueAndTimestamp(unhex(old["value"]), int(old["timestamp"]))
    value = op.get("value")
    if value is None:
        return None
    if "aggregation" in value:
        return AggregationWithHeaders.make_allow_nullable(unhex(value["aggregation"]), headers_of(value["headers"]))
    return ValueTimestampHeaders.make_allow_nullable(
        unhex(value["value"]), int(value["timestamp"]), headers_of(value["headers"])
    )


def rows(iterator: Any) -> list[dict[str, Any]]:
    """Every row of an iterator, as the traces show it; closes it."""
    with iterator:
        return [shown_row(key, value) for key, value in iterator]


def peeked(iterator: Any) -> list[str]:
    """Every key of an iterator, each seen before it is taken."""
    seen = []
    with iterator:
        while True:
            try:
                seen.append(iterator.peek_next_key().hex())
            except NoSuchElementError:
                return seen
            next(iterator)


def shown_row(key: Any, value: Any) -> dict[str, Any]:
    if isinstance(key, bytes):
        return {"key": key.hex(), "value": shown(value)}
    return {"key": key.key.hex(), "start": str(key.start), "end": str(key.end), "value": shown(value)}


def shown(value: Any) -> Any:
    match value:
        case None:
            return None
        case bytes():
            return value.hex()
        case ValueTimestampHeaders():
            head = {"value": tohex(value.value), "timestamp": str(value.timestamp)}
            return head | {"headers": shown_headers(value.headers)}
        case AggregationWithHeaders():
            return {"aggregation": tohex(value.aggregation), "headers": shown_headers(value.headers)}
        case ValueAndTimestamp():
            return {"value": tohex(value.value), "timestamp": str(value.timestamp)}
    record = {"value": tohex(value.value), "timestamp": str(value.timestamp)}
    record["valid_to"] = None if value.valid_to is None else str(value.valid_to)
    return record | ({"headers": shown_headers(value.headers)} if isinstance(value, VersionedRecordWithHeaders) else {})


def shown_record(record: ChangelogRecord) -> dict[str, Any]:
    head = {"key": record.key.hex(), "value": tohex(record.value), "timestamp": str(record.timestamp)}
    return head | {"headers": shown_headers(record.headers)}


def record_of(row: dict[str, Any]) -> ChangelogRecord:
    return ChangelogRecord(unhex(row["key"]), unhex(row["value"]), int(row["timestamp"]), headers_of(row["headers"]))


def shown_headers(headers: Any) -> list[dict[str, Any]]:
    return [{"key": key, "value": tohex(value)} for key, value in headers]


def headers_of(headers: list[dict[str, Any]]) -> Headers:
    return Headers([(header["key"], unhex(header["value"])) for header in headers])


def unhex(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text)


def tohex(data: bytes | None) -> str | None:
    return None if data is None else data.hex()


def brief(op: dict[str, Any]) -> str:
    return json.dumps({name: argument for name, argument in op.items() if name not in ("result", "error", "value")})


Families = dict[str, list[tuple[str, str]]]


def databases(task: Path) -> dict[str, Families]:
    """Every RocksDB directory below a task directory: its column families and their entries."""
    if not task.is_dir():
        return {}
    directories = sorted(path.parent for path in task.rglob("CURRENT"))
    return {path.relative_to(task).as_posix(): dump(path) for path in directories}


def dump(directory: Path) -> Families:
    """The column families of a closed database, and their entries in order."""
    from rocksdict import AccessType, Options, Rdict

    def raw() -> Options:
        return Options(raw_mode=True)

    names = Rdict.list_cf(str(directory))
    database = Rdict(
        str(directory),
        options=raw(),
        column_families={name: raw() for name in names},
        access_type=AccessType.read_only(),
    )
    try:
        families = {}
        for name in names:
            family = database.get_column_family(name)
            families[name] = [(key.hex(), value.hex()) for key, value in family.items()]
            family.close()
        return families
    finally:
        database.close()


def stray_files(task: Path, known: dict[str, Families]) -> list[str]:
    """The files of a task directory that lie outside its databases."""

    def files() -> Iterator[str]:
        for path in sorted(task.rglob("*")):
            if path.is_file() and path.parent.relative_to(task).as_posix() not in known:
                yield path.relative_to(task).as_posix()

    return list(files()) if task.is_dir() else []
