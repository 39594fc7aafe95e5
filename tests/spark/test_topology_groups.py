"""What a topology does with the state of its groups, without a cluster: how often it asks, and what it refuses."""

from __future__ import annotations

import random
import re
import sys
from typing import Any

import pytest

from letterhead import Headers
from letterhead import spark as lhs
from letterhead.errors import StateStoreError, TopologyError
from letterhead.one_message import decode, encode
from letterhead.spark.topology.engine import GroupTask, check_protobuf
from letterhead.spark.topology.rows import PAGE_ROWS, PagedRows
from letterhead.spark.topology.state import KeyState, PartitionState
from letterhead.state import (
    AggregationWithHeaders,
    BytesSerde,
    Processor,
    SessionKey,
    Stores,
    StringSerde,
    Topology,
    ValueAndTimestamp,
    ValueTimestampHeaders,
)
from tests.helpers.extras import spelled_out
from tests.spark import topology_app as app

# How often state is asked for.


class Counting:
    """Stands where Spark's state is, keeps what it is given, and counts; what runs above is the real thing."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []
        self.kept: dict[tuple[Any, str], Any] = {}
        self.group: Any = None

    def getValueState(self, name: str, schema: str) -> Any:
        return _CountedValue(self, name)

    def getMapState(self, name: str, key: str, value: str) -> Any:
        return _CountedMap(self, name)

    def count(self, call: str) -> int:
        return sum(result == call for _, result in self.calls)


class _CountedValue:
    def __init__(self, counting: Counting, name: str) -> None:
        self.counting, self.name = counting, name

    def get(self) -> Any:
        self.counting.calls.append((self.name, "get"))
        return self.counting.kept.get((self.counting.group, self.name))

    def update(self, value: Any) -> None:
        self.counting.calls.append((self.name, "update"))
        self.counting.kept[self.counting.group, self.name] = value

    def clear(self) -> None:
        self.counting.calls.append((self.name, "clear"))
        del self.counting.kept[self.counting.group, self.name]


class _CountedMap:
    def __init__(self, counting: Counting, name: str) -> None:
        self.counting, self.name = counting, name

    def _map(self) -> dict[Any, Any]:
        return self.counting.kept.setdefault((self.counting.group, self.name), {})

    def getValue(self, key: Any) -> Any:
        self.counting.calls.append((self.name, "get"))
        return self._map().get(key)

    def updateValue(self, key: Any, value: Any) -> None:
        self.counting.calls.append((self.name, "update"))
        self._map()[key] = value

    def removeKey(self, key: Any) -> None:
        self.counting.calls.append((self.name, "remove"))
        self._map().pop(key, None)


def run_groups(scope: str, records: list[app.Input], state: Counting, task: GroupTask) -> list[Any]:
    """Run a micro-batch as Spark does: a group after the other."""
    groups: dict[Any, list[Any]] = {}
    for record in records:
        row = (*record[:6], encode(record.headers or [], "kafka"))
        groups.setdefault(record.key if scope == "key" else record.partition, []).append(row)
    result = []
    for group, rows in groups.items():
        state.group = group
        result += task.run(group, rows)
    return result


def counted(scope: str, topology: Topology) -> tuple[Counting, GroupTask]:
    state = Counting()
    group_state = KeyState(state) if scope == "key" else PartitionState(state)
    return state, GroupTask(topology, app.APPLICATION, scope, group_state, None, None)  # type: ignore[arg-type]


def test_key_state_is_read_and_written_once_per_batch():
    """The four stores, windows, sessions and all: one value, whatever the records do."""
    state, task = counted("key", app.topology("key"))
    records = app.inputs(400)
    for batch in (records[:200], records[200:]):
        state.calls.clear()
        result = run_groups("key", batch, state, task)
        keys = len({record.key for record in batch})
        assert keys == 9
        assert len(result) > 4 * 150
        assert state.count("get") == keys
        assert state.count("update") == keys
        assert len(state.calls) == 2 * keys


def test_batch_without_changes_to_key_writes_nothing():
    state, task = counted("key", simple(lambda self, record: self.store.get(record.key)))
    rows = [app.Input("in", 0, 0, 100, b"k", b"v", None), app.Input("in", 0, 1, 90, b"k", b"v", None)]
    run_groups("key", rows[:1], state, task)
    # Nothing is kept of a key that has no rows.
    assert state.calls == [("state", "get")]

    state, task = counted("key", simple(put))
    run_groups("key", rows[:1], state, task)
    assert state.calls == [("state", "get"), ("state", "update")]


def test_deleted_key_leaves_nothing_behind():
    def keep_or_delete(self: Any, record: Any) -> None:
        if record.value is None:
            self.store.delete(record.key)
        else:
            put(self, record)

    state, task = counted("key", simple(keep_or_delete))
    run_groups("key", [app.Input("in", 0, 0, 5, b"k", b"v", None)], state, task)
    assert list(state.kept) == [(b"k", "state")]
    run_groups("key", [app.Input("in", 0, 1, 6, b"k", None, None)], state, task)
    assert state.kept == {}
    assert [call for _, call in state.calls] == ["get", "update", "get", "clear"]


def test_partition_reads_and_writes_only_touched_pages():
    """10,000 rows; a batch that touches 50 neighbours asks for a page or two, and not for each row."""
    state, task = counted("partition", simple(put, scope="partition"))
    many = [app.Input("in", 0, number, number, f"{number:05}".encode(), b"v", None) for number in range(10_000)]
    run_groups("partition", many, state, task)
    pages = len(state.kept[0, "pages"])
    assert 10_000 / PAGE_ROWS <= pages <= 10_000 / PAGE_ROWS * 2 + 1
    state.calls.clear()
    few = [app.Input("in", 0, 10_000 + number, 1, f"{5000 + number:05}".encode(), b"w", None) for number in range(50)]
    run_groups("partition", few, state, task)
    assert state.calls.count(("progress", "get")) == state.calls.count(("progress", "update")) == 1
    assert state.calls.count(("directory", "get")) == 1
    assert state.calls.count(("directory", "update")) == 0
    touched = state.calls.count(("pages", "get"))
    assert touched <= 50 / (PAGE_ROWS / 2) + 2
    assert state.calls.count(("pages", "update")) == touched


@pytest.mark.parametrize("scope", ["key", "partition"])
def test_store_can_be_added_to_topology_that_has_run(scope):
    record = app.Input("in", 0, 0, 5, b"k", b"v", None)
    state, task = counted(scope, simple(put, scope=scope))
    run_groups(scope, [record], state, task)

    def both(self: Any, record: Any) -> None:
        seen.append((self.store.get(b"k").value, self.more.get(b"k")))
        self.more.put(record.key, ValueTimestampHeaders.make(b"more", 6, ()))

    seen: list[Any] = []
    more = Stores.timestamped_key_value_store_with_headers_builder(Stores.in_memory_key_value_store("more"))
    result = simple(both, scope=scope, init=lambda self: setattr(self, "more", self.context.get_state_store("more")))
    result.add_state_store(more, "made")
    group_state = KeyState(state) if scope == "key" else PartitionState(state)
    task = GroupTask(result, app.APPLICATION, scope, group_state, None, None)  # type: ignore[arg-type]
    for offset in (1, 2):
        run_groups(scope, [record._replace(offset=offset)], state, task)
    assert [(first, second and second.value) for first, second in seen] == [(b"v", None), (b"v", b"more")]


def test_changed_punctuations_are_rejected():
    state, task = counted("key", simple(put))
    record = app.Input("in", 0, 0, 5, b"k", b"v", None)
    run_groups("key", [record], state, task)
    ticking = simple(put, init=lambda self: self.context.schedule(5, "stream_time", print))
    task = GroupTask(ticking, app.APPLICATION, "key", KeyState(state), None, None)
    with pytest.raises(
        TopologyError, match="schedule 1 punctuations, and the progress has 0: the topology has changed"
    ):
        run_groups("key", [record], state, task)


def test_cancelled_punctuation_does_not_return():
    """Over batches, in each of which the processors schedule it anew."""
    came: list[int] = []

    def tick(self: Any, now: int) -> None:
        came.append(now)
        if len(came) == 2:
            self.ticks.cancel()

    def schedule(self: Any) -> None:
        self.ticks = self.context.schedule(10, "stream_time", lambda now: tick(self, now))

    state = Counting()
    for offset, timestamp in enumerate((5, 12, 15, 31, 47)):
        task = GroupTask(simple(put, init=schedule), app.APPLICATION, "key", KeyState(state), None, None)
        run_groups("key", [app.Input("in", 0, offset, timestamp, b"k", b"v", None)], state, task)
    assert came == [5, 12]


# Stores of every type.

TEXT = StringSerde()
STORE_TYPES: dict[str, Any] = {
    "plain": lambda: Stores.key_value_store_builder(Stores.persistent_key_value_store("store"), TEXT, TEXT),
    "timestamped": lambda: Stores.timestamped_key_value_store_builder(
        Stores.persistent_timestamped_key_value_store("store"), TEXT, TEXT
    ),
    "headers over plain": lambda: Stores.timestamped_key_value_store_with_headers_builder(
        Stores.persistent_key_value_store("store"), TEXT, TEXT
    ),
    "not logged": lambda: Stores.timestamped_key_value_store_with_headers_builder(
        Stores.persistent_timestamped_key_value_store_with_headers("store"), TEXT, TEXT
    ).with_logging_disabled(),
    "windows by time": lambda: Stores.timestamped_window_store_with_headers_builder(
        Stores.persistent_time_ordered_window_store_with_headers("store", 3 * app.MINUTE, app.MINUTE), TEXT, TEXT
    ),
    "plain windows": lambda: Stores.window_store_builder(
        Stores.persistent_window_store("store", 3 * app.MINUTE, app.MINUTE), TEXT, TEXT
    ),
    "sessions by time": lambda: Stores.session_store_with_headers_builder(
        Stores.persistent_time_ordered_session_store_with_headers("store", 3 * app.MINUTE), TEXT, TEXT
    ),
    "windows by time without an index": lambda: Stores.timestamped_window_store_builder(
        Stores.persistent_time_ordered_window_store("store", 3 * app.MINUTE, app.MINUTE, with_index=False), TEXT, TEXT
    ),
    "sessions by time without an index": lambda: Stores.session_store_builder(
        Stores.persistent_time_ordered_session_store("store", 3 * app.MINUTE, with_index=False), TEXT, TEXT
    ),
    "plain versions": lambda: Stores.versioned_key_value_store_builder(
        Stores.persistent_versioned_key_value_store("store", 3 * app.MINUTE), TEXT, TEXT
    ),
}


def use(self: Any, record: Any) -> None:
    """Write to a store of any type, read from it, and return what was found."""
    store, key = self.store, record.key
    if key is None:
        return
    at = record.timestamp // app.MINUTE * app.MINUTE
    result = record.value
    if result is not None and store._value_type is not None:
        source = (record.timestamp,) if store._value_type is ValueAndTimestamp else (record.timestamp, record.headers)
        if store._value_type is AggregationWithHeaders:
            source = (record.headers,)
        result = store._value_type.make(result, *source)
    if store._store_type == "window":
        store.put(key, result, at)
        with store.fetch_key(key, at - app.MINUTE, at) as rows:
            rows_read = list(rows)
    elif store._store_type == "session":
        store.put(SessionKey(key, at, record.timestamp), result)
        with store.find_sessions(key, at - app.MINUTE, record.timestamp) as rows:
            rows_read = list(rows)
    elif store._store_type == "versioned":
        store.put(key, record.value, record.timestamp)
        rows_read = [store.get(key, at)]
    else:
        rows_read = [store.put_if_absent(key, result), store.get(key)]
        if record.timestamp % 3 == 0:
            store.put(key, result)
    self.context.forward(record.with_value(str(rows_read)))


@pytest.mark.parametrize("scope", ["key", "partition"])
@pytest.mark.parametrize("store_type", STORE_TYPES)
def test_every_store_type_works_like_on_driver(store_type, scope):
    def application() -> Topology:
        result = simple(use, scope=scope, builder=STORE_TYPES[store_type]())
        result.nodes["in"].key_serde = result.nodes["in"].value_serde = TEXT  # type: ignore[union-attr]
        return result.add_sink("out", "out", "made", key_serde=TEXT, value_serde=TEXT)

    # On the driver each key takes databases of its own.
    keys = None if scope == "partition" else (None, b"key-03", b"key-04")
    records = [record for record in app.inputs(200) if keys is None or record.key in keys]
    written, states = app.expected(scope, records, application)
    state, task = counted(scope, application())
    outputs: dict[Any, list[Any]] = {group: [] for group in written}
    for first in range(0, len(records), 50):
        batch = records[first : first + 50]
        for group in dict.fromkeys(record.key if scope == "key" else record.partition for record in batch):
            records_of_group = [
                output for output in batch if (output.key if scope == "key" else output.partition) == group
            ]
            outputs[group] += run_groups(scope, records_of_group, state, task)
    for group, result in written.items():
        assert [(row.topic, row.key, row.value, row.timestamp, row.changelog) for row in outputs[group]] == [
            (output.topic, output.key, output.value, output.timestamp, output.changelog) for output in result
        ]
        assert [decode(row.headers, "kafka") for row in outputs[group]] == [
            Headers(output.headers) for output in result
        ]
        assert stored(state, scope, group) == {
            records_of_group: sorted(rows) for records_of_group, rows in states[group].items()
        }
    assert any(states.values())


def stored(state: Counting, scope: str, group: Any) -> app.Rows:
    """The rows that are kept of a group."""
    stored_rows: app.Rows = {}
    if scope == "key":
        _, _, stores = state.kept.get((group, "state"), (0, (), {}))
        for store, (_, rows) in stores.items():
            for segment, key, value in rows:
                stored_rows.setdefault((store, segment), []).append((key, value))
    else:
        for (store, segment, _), (page,) in state.kept.get((group, "pages"), {}).items():
            stored_rows.setdefault((store, segment), []).extend(page)
    return {place: sorted(rows) for place, rows in stored_rows.items()}


# Rows in pages.


def test_paged_rows_are_sorted_map():
    """Random writes and scans, over several lives, against a dict."""
    dice = random.Random(3)
    kept: dict[bytes, list[tuple[bytes, bytes]]] = {}
    firsts: list[bytes] = []
    model: dict[bytes, bytes] = {}
    for life in range(120):
        rows = PagedRows(list(firsts), kept.__getitem__)
        for _ in range(dice.randrange(150 if life < 90 else 3)):
            key = dice.randrange(600 if life < 60 else 5).to_bytes(2, "big")[dice.randrange(2) :]
            if dice.random() < (0.3 if life % 4 else 0.9):
                rows.put(key, None)
                model.pop(key, None)
            else:
                value = dice.randbytes(3)
                rows.put(key, value)
                model[key] = value
        low, high = sorted(dice.randbytes(2) for _ in range(2))
        order = sorted(model.items())
        assert list(rows.scan()) == order
        assert list(rows.scan(low, high)) == [row for row in order if low <= row[0] <= high]
        assert list(rows.scan(low, high, backward=True)) == [row for row in order if low <= row[0] <= high][::-1]
        assert all(rows.get(key) == value for key, value in order)
        assert rows.get(b"\xff\xff\xff") is None
        if life % 10 == 9:
            rows.delete_range(low, high)
            for key in [key for key in model if low <= key < high]:
                del model[key]
        for first, page in rows.changes():
            if page is None:
                kept.pop(first, None)
            else:
                assert 0 < len(page) <= PAGE_ROWS
                kept[first] = page
        firsts = rows.firsts
        assert sorted(kept) == firsts
        assert [row for first in firsts for row in kept[first]] == sorted(model.items())


def test_removing_from_empty_store_creates_no_page():
    rows = PagedRows([], {}.__getitem__)
    rows.put(b"k", None)
    assert (list(rows.changes()), rows.firsts, rows.get(b"k")) == ([], [], None)
    rows.put(b"k", b"v")
    rows.put(b"k", None)
    assert (list(rows.changes()), rows.firsts) == ([(b"k", None)], [])


def test_scan_returns_rows_as_of_its_start():
    kept = {bytes([first]): [(bytes([first + at]), b"old") for at in range(10)] for first in (0, 10, 20)}
    rows = PagedRows(sorted(kept), kept.__getitem__)
    rows.put(b"\x05", b"changed before")
    scan = rows.scan()
    seen = [next(scan)]
    for key in range(30):
        rows.put(bytes([key]), None if key % 2 else b"new")
    rows.put(b"\xff", b"new")
    seen += scan
    assert [key for key, _ in seen] == [bytes([key]) for key in range(30)]
    assert {value for _, value in seen} == {b"old", b"changed before"}
    assert [value for _, value in rows.scan()] == [b"new"] * 16


# What is refused.


def put(self: Any, record: Any) -> None:
    self.store.put(record.key, ValueTimestampHeaders.make(record.value, record.timestamp, record.headers))


def simple(process: Any, *, scope: str = "key", builder: Any = None, init: Any = None) -> Topology:
    """A topology of one processor with one store."""

    class FunctionProcessor(Processor[Any, Any, Any, Any]):
        def init(self, context: Any) -> None:
            super().init(context)
            self.store = context.get_state_store("store")
            if init is not None:
                init(self)

        def process(self, record: Any) -> None:
            process(self, record)

    FunctionProcessor.scope = scope  # type: ignore[assignment]
    builder = builder or Stores.timestamped_key_value_store_with_headers_builder(
        Stores.in_memory_key_value_store("store"), BytesSerde(), BytesSerde()
    )
    return (
        Topology()
        .add_source("in", "in")
        .add_processor("made", FunctionProcessor, "in")
        .add_state_store(builder, "made")
    )


def window_builder(**source: Any) -> Any:
    return Stores.timestamped_window_store_with_headers_builder(
        Stores.in_memory_window_store("store", 1000, 10, **source), BytesSerde(), BytesSerde()
    )


def session_builder() -> Any:
    return Stores.session_store_with_headers_builder(Stores.in_memory_session_store("store", 1000))


def versioned_builder() -> Any:
    return Stores.versioned_key_value_store_with_headers_builder(
        Stores.in_memory_versioned_key_value_store("store", 1000)
    )


SEVERAL = [
    (None, "range", lambda store: store.range(b"a", b"z")),
    (None, "all", lambda store: store.all()),
    (None, "all", lambda store: store.reverse_all()),
    (None, "prefix_scan", lambda store: store.prefix_scan(b"a")),
    (None, "approximate_num_entries", lambda store: store.approximate_num_entries()),
    (window_builder, "fetch", lambda store: store.fetch_all(0, 9)),
    (window_builder, "all", lambda store: store.all()),
]


@pytest.mark.parametrize(("builder", "name", "call"), SEVERAL)
def test_multi_key_operations_in_key_scope_raise_with_remedy(builder, name, call):
    result = simple(lambda self, record: call(self.store), builder=builder and builder())
    state, task = counted("key", result)
    with pytest.raises(
        StateStoreError, match=rf"{name} would read rows of other keys.*scope = \"partition\""
    ) as raised:
        run_groups("key", [app.Input("in", 3, 7, 5, b"k", b"v", None)], state, task)
    assert raised.value.__notes__ == ["at offset 7 of in-3"]
    state, task = counted(
        "partition", simple(lambda self, record: call(self.store), scope="partition", builder=builder and builder())
    )
    run_groups("partition", [app.Input("in", 3, 7, 5, b"k", b"v", None)], state, task)


@pytest.mark.parametrize(
    ("builder", "call"),
    [
        (None, lambda store: store.get(b"other")),
        (None, lambda store: store.delete(b"other")),
        (None, lambda store: store.put_all([(b"other", ValueTimestampHeaders.make(b"v", 5, ()))])),
        (window_builder, lambda store: store.fetch(b"other", 5)),
        (session_builder, lambda store: store.fetch(b"other")),
        (versioned_builder, lambda store: store.get(b"other", 5)),
    ],
)
def test_key_other_than_record_key_is_rejected(builder, call):
    state, task = counted("key", simple(lambda self, record: call(self.store), builder=builder and builder()))
    with pytest.raises(StateStoreError, match="the key is not the key of the current record: with scope 'key'"):
        run_groups("key", [app.Input("in", 0, 0, 5, b"k", b"v", None)], state, task)
    with pytest.raises(StateStoreError, match="is not the key of the current record"):
        run_groups("key", [app.Input("in", 0, 0, 5, None, b"v", None)], state, task)


def test_store_has_no_rows_outside_record():
    state = Counting()
    early = simple(put, scope="partition", init=lambda self: self.store.get(b"k"))
    with pytest.raises(StateStoreError, match="store store has rows only while a record is processed"):
        GroupTask(early, "app", "partition", PartitionState(state), None, None)

    kept: list[Any] = []
    state, task = counted("partition", simple(lambda self, record: kept.append(self.store.all()), scope="partition"))
    run_groups("partition", [app.Input("in", 0, 0, 5, b"k", b"v", None)], state, task)
    with pytest.raises(StateStoreError, match="store store has closed"):
        next(kept[0])


@pytest.mark.parametrize(
    ("late", "type", "message"),
    [
        (False, "wall_clock_time", "this engine runs processors only when records arrive: schedule it by stream_time"),
        (True, "stream_time", "schedule it in init"),
    ],
)
def test_punctuation_that_cannot_be_restored_is_rejected(late, type, message):
    def schedule(self: Any, record: Any = None) -> None:
        self.context.schedule(5, type, print)

    def run() -> None:
        result = simple(schedule if late else put, init=None if late else schedule)
        state, task = counted("key", result)
        run_groups("key", [app.Input("in", 0, 0, 5, b"k", b"v", None)], state, task)

    with pytest.raises(TopologyError, match=message):
        run()


def test_processors_of_different_scopes_are_named(spark):
    result = simple(put).add_processor("other", simple(put, scope="partition").nodes["made"].make, "in")  # type: ignore[union-attr]
    with pytest.raises(TopologyError, match="the same scope: 'key' has made; 'partition' has other"):
        lhs.run_topology(spark.range(1), result, application_id="app")
    with pytest.raises(TopologyError, match="scope 'row': set it to 'key' or 'partition'"):
        lhs.run_topology(spark.range(1), simple(put, scope="row"), application_id="app")


@pytest.mark.parametrize(
    ("source", "error", "message"),
    [
        ({"topology": "t"}, TypeError, "topology must be a Topology, not str"),
        ({"application_id": 5}, TypeError, "application_id must be str, not int"),
        ({"key_serde": "text"}, TypeError, "key_serde must be a Serde, not str"),
        ({"topology": Topology()}, TopologyError, "has no source"),
        ({"topology": simple(put, builder=window_builder(retain_duplicates=True))}, TopologyError, "keeps duplicates"),
    ],
)
def test_invalid_arguments_are_named(spark, source, error, message):
    arguments = {"topology": simple(put), "application_id": "app", **source}
    with pytest.raises(error, match=message):
        lhs.run_topology(spark.range(1), arguments.pop("topology"), **arguments)


def test_missing_protobuf_names_package_to_install(monkeypatch):
    for name in ("google.protobuf", "google.protobuf.descriptor"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(
        ModuleNotFoundError, match="needs protobuf.*" + re.escape(spelled_out("pip install 'letterhead[spark]'"))
    ):
        check_protobuf()
