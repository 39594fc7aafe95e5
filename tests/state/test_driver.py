"""The processor API and the test driver, as an application's own tests use them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from letterhead import Headers
from letterhead.errors import InvalidTimestampError, TopologyError
from letterhead.state import (
    AggregationWithHeaders,
    Processor,
    ReadOnlySessionStoreWithHeaders,
    Record,
    SessionKey,
    Stores,
    StringSerde,
    Topology,
    TopologyTestDriver,
    ValueTimestampHeaders,
)
from letterhead.state.reads import SessionReads

TEXT = StringSerde()
TRACE = {"trace": b"t-1"}


def processor(process: Callable[[Any, Any], None], init: Callable[[Any], None] | None = None) -> type[Processor]:
    """A processor of two functions, which are given the processor."""

    class FunctionProcessor(Processor[Any, Any, Any, Any]):
        def init(self, context: Any) -> None:
            super().init(context)
            if init is not None:
                init(self)

        def process(self, record: Any) -> None:
            process(self, record)

    return FunctionProcessor


def copy(self: Any, record: Any) -> None:
    self.context.forward(record)


def through(result: Any, *builders: Any) -> Topology:
    """A topology of a source, a processor with stores, and a sink."""
    topology = Topology().add_source("source", "in").add_processor("processor", result, "source")
    for builder in builders:
        topology.add_state_store(builder, "processor")
    return topology.add_sink("sink", "out", "processor")


def driver(topology: Topology, **source: Any) -> TopologyTestDriver:
    return TopologyTestDriver(topology, key_serde=TEXT, value_serde=TEXT, **source)


def kv(name: str = "kv") -> Any:
    return Stores.timestamped_key_value_store_with_headers_builder(Stores.in_memory_key_value_store(name))


def test_import_loads_nothing_heavy() -> None:
    look = "import sys, letterhead.state; print(*{'rocksdict', 'pyarrow', 'pyspark', 'pandas'} & set(sys.modules))"
    ran = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == ""


# Records.


def test_records_keep_timestamps_and_headers() -> None:
    with driver(through(processor(copy))) as running:
        topic = running.create_input_topic("in", start_timestamp=100, auto_advance_ms=10)
        topic.pipe_input("k", "a", headers=TRACE)
        topic.pipe_input("k", None)
        topic.advance_time(1000)
        topic.pipe_input(None, "b")
        topic.pipe_input("l", "c", 7)
        topic.pipe_record(Record("m", "d", 8, TRACE))  # type: ignore[arg-type]
        out = running.create_output_topic("out")
        assert len(out) == 5
        assert out.read_record() == Record("k", "a", 100, Headers(TRACE))
        assert [(record.key, record.value, record.timestamp) for record in out.read_records()] == [
            ("k", None, 110),
            (None, "b", 1120),
            ("l", "c", 7),
            ("m", "d", 8),
        ]
        assert out.is_empty()
        with pytest.raises(LookupError, match="topic 'out' has no other record"):
            out.read_value()


def test_piped_headers_are_copied() -> None:
    source = Headers(TRACE)

    def add(self: Any, record: Any) -> None:
        record.headers.add("added", b"")
        self.context.forward(record)

    with driver(through(processor(add))) as running:
        running.create_input_topic("in").pipe_input("k", "v", 1, source)
        assert source == Headers(TRACE)
        assert running.create_output_topic("out").read_record().headers == Headers({**TRACE, "added": b""})


def test_record_is_forwarded_to_all_children_or_one() -> None:
    def split(self: Any, record: Any) -> None:
        self.context.forward(record, "left" if record.value == "l" else None)

    topology = Topology().add_source("source", "in").add_processor("split", processor(split), "source")
    topology.add_sink("left", "left", "split").add_sink("right", "right", "split")
    with driver(topology) as running:
        topic = running.create_input_topic("in")
        topic.pipe_input("1", "l", 1)
        topic.pipe_input("2", "both", 2)
        assert running.create_output_topic("left").read_key_values() == {"1": "l", "2": "both"}
        assert running.create_output_topic("right").read_values() == ["both"]
    wrong = through(processor(lambda self, record: self.context.forward(record, "nobody")))
    with driver(wrong) as running, pytest.raises(TopologyError, match=r"no child 'nobody' \(children: sink\)"):
        running.create_input_topic("in").pipe_input("k", "v")


def test_topic_written_and_read_is_processed_again() -> None:
    def count_down(self: Any, record: Any) -> None:
        if record.value != "0":
            self.context.forward(record.with_value(str(int(record.value) - 1)))

    topology = Topology().add_source("source", "loop").add_processor("processor", processor(count_down), "source")
    topology.add_sink("sink", "loop", "processor")
    with driver(topology) as running:
        running.create_input_topic("loop").pipe_input("k", "3")
        assert running.create_output_topic("loop").read_values() == ["2", "1", "0"]


def test_sink_may_choose_topic() -> None:
    topology = Topology().add_source("source", "in")
    topology.add_sink("sink", lambda record: f"out-{record.value}", "source")
    with driver(topology) as running:
        running.create_input_topic("in").pipe_input("k", "a")
        assert running.produced_topic_names() == ["out-a"]


def test_context_has_origin_of_record() -> None:
    seen = []

    def look(self: Any, record: Any) -> None:
        context = self.context
        place = context.record_context()
        seen.append((place.topic, place.partition, place.offset, place.timestamp, place.headers == record.headers))
        seen.append((context.application_id, context.task_id, context.current_stream_time_ms()))

    def before(self: Any) -> None:
        assert self.context.record_context() is None
        assert self.context.current_stream_time_ms() == -1

    with driver(through(processor(look, before)), application_id="app", wall_clock_time=42) as running:
        topic = running.create_input_topic("in")
        topic.pipe_input("k", "v", 9, TRACE)
        topic.pipe_input("k", "v", 5)
    assert seen == [("in", 0, 0, 9, True), ("app", "0_0", 9), ("in", 0, 1, 5, True), ("app", "0_0", 9)]


def test_record_forwarded_with_new_timestamp_changes_context() -> None:
    seen = []
    topology = Topology().add_source("source", "in")
    later = processor(lambda self, record: self.context.forward(record.with_timestamp(70).with_headers({"new": b""})))
    topology.add_processor("later", later, "source")
    look = processor(lambda self, record: seen.append(self.context.record_context()))
    topology.add_processor("look", look, "later")
    with driver(topology) as running:
        running.create_input_topic("in").pipe_input("k", "v", 9)
    assert [(context.topic, context.offset, context.timestamp, context.headers) for context in seen] == [
        ("in", 0, 70, Headers({"new": b""}))
    ]


def test_copies_of_record_share_headers() -> None:
    """A change of them is seen in all copies, as in Kafka."""
    record = Record(b"k", b"v", 5, {"a": b"1"})  # type: ignore[arg-type]
    assert isinstance(record.headers, Headers)
    copies = [
        record.with_key(b"l"),
        record.with_value(b"w"),
        record.with_timestamp(6),
        Record(b"k", b"v", 5, record.headers),
    ]
    record.headers.add("b", b"2")
    assert [list(copy.headers) for copy in copies] == [[("a", b"1"), ("b", b"2")]] * 4


def test_record_rejects_negative_timestamp() -> None:
    with pytest.raises(InvalidTimestampError):
        Record("k", "v", -1)
    with pytest.raises(InvalidTimestampError):
        Record("k", "v", 1).with_timestamp(-1)


# Stores.


def test_processor_uses_stores_with_readable_changelog() -> None:
    def count(self: Any, record: Any) -> None:
        store = self.context.get_state_store("kv")
        before = ValueTimestampHeaders.get_value_or_null(store.get(record.key)) or ""
        store.put(record.key, ValueTimestampHeaders.make(before + record.value, record.timestamp, record.headers))

    with driver(through(processor(count), kv()), application_id="app") as running:
        topic = running.create_input_topic("in")
        topic.pipe_input("k", "a", 1, TRACE)
        topic.pipe_input("k", "b", 2)
        changelog = running.create_output_topic("app-kv-changelog")
        assert changelog.read_records() == [Record("k", "a", 1, Headers(TRACE)), Record("k", "ab", 2, Headers())]
        store = running.get_timestamped_key_value_store_with_headers("kv")
        assert store is not None
        assert store.get("k") == ValueTimestampHeaders.make("ab", 2)
        assert store.metrics["put"].count == 2


def test_cached_store_is_flushed_after_each_record() -> None:
    def twice(self: Any, record: Any) -> None:
        store = self.context.get_state_store("kv")
        store.put(record.key, ValueTimestampHeaders.make("first", 1))
        store.put(record.key, ValueTimestampHeaders.make("last", 2, record.headers))

    with driver(through(processor(twice), kv().with_caching_enabled()), application_id="app") as running:
        topic = running.create_input_topic("in")
        topic.pipe_input("k", "v", 1, TRACE)
        topic.pipe_input("l", "v", 1)
        changelog = running.create_output_topic("app-kv-changelog")
        assert [(change.key, change.value, change.headers) for change in changelog.read_records()] == [
            ("k", "last", Headers(TRACE)),
            ("l", "last", Headers()),
        ]


ALL = {
    "kv": kv(),
    "window": Stores.timestamped_window_store_with_headers_builder(Stores.in_memory_window_store("window", 100, 10)),
    "session": Stores.session_store_with_headers_builder(Stores.in_memory_session_store("session", 100)),
    "versioned": Stores.versioned_key_value_store_with_headers_builder(
        Stores.in_memory_versioned_key_value_store("versioned", 100)
    ),
    "old_kv": Stores.key_value_store_builder(Stores.in_memory_key_value_store("old_kv")),
    "old_timestamped_kv": Stores.timestamped_key_value_store_builder(
        Stores.in_memory_key_value_store("old_timestamped_kv")
    ),
    "old_window": Stores.window_store_builder(Stores.in_memory_window_store("old_window", 100, 10)),
    "old_session": Stores.session_store_builder(Stores.in_memory_session_store("old_session", 100)),
    "old_versioned": Stores.versioned_key_value_store_builder(
        Stores.in_memory_versioned_key_value_store("old_versioned", 100)
    ),
}
GIVEN = {
    "get_timestamped_key_value_store_with_headers": {"kv"},
    "get_timestamped_window_store_with_headers": {"window"},
    "get_session_store_with_headers": {"session"},
    "get_read_only_session_store_with_headers": {"session"},
    "get_versioned_key_value_store_with_headers": {"versioned"},
    "get_key_value_store": {"kv", "old_kv", "old_timestamped_kv"},
    "get_timestamped_key_value_store": {"kv", "old_timestamped_kv"},
    "get_window_store": {"window", "old_window"},
    "get_timestamped_window_store": {"window"},
    "get_session_store": {"session", "old_session"},
    "get_versioned_key_value_store": {"old_versioned"},
}


def test_read_only_session_store_reads_and_cannot_write() -> None:
    with driver(through(processor(copy), ALL["session"])) as running:
        store = running.get_session_store_with_headers("session")
        reads = running.get_read_only_session_store_with_headers("session")
        assert store is not None
        assert type(reads) is ReadOnlySessionStoreWithHeaders
        assert isinstance(store, ReadOnlySessionStoreWithHeaders)
        for start, end in ((10, 20), (30, 45)):
            store.put(SessionKey("k", start, end), AggregationWithHeaders.make("v", TRACE))
        assert reads.fetch_session("k", 10, 20) == AggregationWithHeaders.make("v", TRACE)
        arguments = {
            "find_sessions": ("k", 0, 100),
            "find_sessions_range": (None, "z", 0, 100),
            "find_sessions_time": (0, 100),
            "fetch": ("k",),
            "fetch_range": ("a", None),
        }
        for name in set(vars(SessionReads)) & {*arguments, *(f"backward_{name}" for name in arguments)}:
            source = arguments[name.removeprefix("backward_")]
            rows = list(getattr(reads, name)(*source))
            assert rows == list(getattr(store, name)(*source))
            assert [key.start for key, _ in rows] == ([30, 10] if name.startswith("backward") else [10, 30])
        for write in ("put", "remove", "restore", "flush", "close"):
            assert not hasattr(reads, write)
        assert (reads.name, reads.is_open) == ("session", True)
    assert not reads.is_open


def test_missing_store_is_not_restored() -> None:
    with (
        driver(through(processor(copy), kv())) as running,
        pytest.raises(TopologyError, match=r"there is no store 'other' \(stores: kv\)"),
    ):
        running.restore("other", [])


@pytest.mark.parametrize("accessor", GIVEN)
def test_accessor_returns_none_for_store_of_another_type(accessor: str) -> None:
    with driver(through(processor(copy), *ALL.values())) as running:
        source = {name for name in ALL if getattr(running, accessor)(name) is not None}
        assert source == GIVEN[accessor]
        with pytest.raises(TopologyError, match="there is no store 'other'"):
            getattr(running, accessor)("other")


@pytest.mark.parametrize("name", ALL)
def test_every_store_has_its_accessor(name: str) -> None:
    with driver(through(processor(copy), *ALL.values())) as running:
        with pytest.raises(ValueError, match=f"Store {name} is a .* and should be accessed via `get_") as raised:
            running.get_state_store(name)
        accessor = str(raised.value).rpartition("`get_")[2].removesuffix("()`")
        assert name in GIVEN[f"get_{accessor}"]


def test_writes_through_accessor_are_logged_without_record() -> None:
    with driver(through(processor(copy), *ALL.values()), application_id="app") as running:
        running.create_input_topic("in").pipe_input("k", "v", 99, TRACE)
        sessions = running.get_session_store_with_headers("session")
        assert sessions is not None
        sessions.put(SessionKey("k", 1, 2), AggregationWithHeaders.make("v", Headers(TRACE)))  # type: ignore[arg-type]
        sessions.remove(SessionKey("k", 1, 2))  # type: ignore[arg-type]
        assert [(change.timestamp, change.headers) for change in running.take_changelog("session")] == [
            (0, Headers(TRACE)),
            (0, Headers()),
        ]


def test_store_starts_from_changelog() -> None:
    topology = through(processor(copy), kv())
    with driver(topology) as first:
        store = first.get_timestamped_key_value_store_with_headers("kv")
        assert store is not None
        store.put("k", ValueTimestampHeaders.make("v", 5, Headers(TRACE)))
        changelog = first.take_changelog("kv")
    with driver(topology) as second:
        second.restore("kv", changelog)
        store = second.get_timestamped_key_value_store_with_headers("kv")
        assert store is not None
        assert store.get("k") == ValueTimestampHeaders.make("v", 5, Headers(TRACE))
        assert second.take_changelog("kv") == []


def test_files_are_removed_with_driver_unless_kept(tmp_path: Path) -> None:
    supplier = Stores.persistent_timestamped_key_value_store_with_headers("kv")
    topology = through(processor(copy), Stores.timestamped_key_value_store_with_headers_builder(supplier))
    for keep in (True, False):
        with driver(topology, application_id="app", state_directory=tmp_path) as running:
            store = running.get_timestamped_key_value_store_with_headers("kv")
            assert store is not None
            assert (store.get("k") is None) is keep
            store.put("k", ValueTimestampHeaders.make("v", 5))
            assert (tmp_path / "app" / "0_0" / "rocksdb" / "kv" / "CURRENT").exists()
            running.close(keep_state=keep)
            running.close()
    assert not (tmp_path / "app" / "0_0").exists()


def test_processor_sees_only_connected_stores() -> None:
    result = processor(copy, lambda self: self.context.get_state_store("other"))
    topology = through(result, kv()).add_state_store(kv("other"))
    with pytest.raises(TopologyError, match=r"'processor' is not connected to a store 'other' \(stores: kv\)"):
        driver(topology)


# Punctuation.


def scheduled(type: str, interval: int) -> tuple[Any, list[tuple[int, Any, int]]]:
    called: list[tuple[int, Any, int]] = []

    def init(self: Any) -> None:
        def punctuate(now: int) -> None:
            place = self.context.record_context()
            called.append((now, place.topic, place.timestamp))
            self.context.forward(Record("p", str(now), now))
            if now >= 500:
                self.cancellable.cancel()

        self.cancellable = self.context.schedule(interval, type, punctuate)

    return processor(copy, init), called


def test_stream_time_punctuation_is_aligned_and_not_repeated() -> None:
    result, called = scheduled("stream_time", 100)
    with driver(through(result)) as running:
        topic = running.create_input_topic("in")
        for timestamp in (5, 50, 99, 100, 340, 399, 20, 400, 500, 900):
            topic.pipe_input("k", "v", timestamp)
        assert called == [(time, None, time) for time in (5, 100, 340, 400, 500)]
        out = running.create_output_topic("out").read_records()
        assert [record.timestamp for record in out if record.key == "p"] == [5, 100, 340, 400, 500]
        running.advance_wall_clock_time(10_000)
        assert len(called) == 5


def test_wall_clock_punctuation_starts_after_one_interval() -> None:
    result, called = scheduled("wall_clock_time", 100)
    with driver(through(result), wall_clock_time=0) as running:
        running.create_input_topic("in").pipe_input("k", "v", 10_000)
        for ms in (99, 1, 50, 250, 100, 400):
            running.advance_wall_clock_time(ms)
        assert running.wall_clock_time == 900
        assert [now for now, _, _ in called] == [100, 400, 500]
        assert [record.key for record in running.create_output_topic("out").read_records()] == ["k", "p", "p", "p"]


def test_advancing_wall_clock_time_flushes_cache() -> None:
    def init(self: Any) -> None:
        store = self.context.get_state_store("kv")
        self.context.schedule(
            10, "wall_clock_time", lambda now: store.put("k", ValueTimestampHeaders.make("v", now, TRACE))
        )

    with driver(through(processor(copy, init), kv().with_caching_enabled()), wall_clock_time=0) as running:
        running.advance_wall_clock_time(10)
        assert [(change.timestamp, change.headers) for change in running.take_changelog("kv")] == [(10, Headers(TRACE))]


def test_records_forwarded_by_punctuation_keep_order() -> None:
    def init(self: Any) -> None:
        def punctuate(now: int) -> None:
            for value in "abc":
                self.context.forward(Record("k", value, now))

        self.context.schedule(10, "wall_clock_time", punctuate)

    topology = Topology().add_source("source", "in").add_processor("first", processor(copy, init), "source")
    topology.add_sink("between", "repartition", "first").add_source("again", "repartition")
    topology.add_processor("second", processor(copy), "again").add_sink("sink", "out", "second")
    with driver(topology, wall_clock_time=0) as running:
        running.advance_wall_clock_time(10)
        assert running.create_output_topic("out").read_values() == ["a", "b", "c"]


@pytest.mark.parametrize(("interval", "type"), [(0, "stream_time"), (10, "sometimes")])
def test_invalid_schedule_is_rejected(interval: int, type: str) -> None:
    result = processor(copy, lambda self: self.context.schedule(interval, type, print))
    with pytest.raises(ValueError, match="punctuation"):
        driver(through(result))


# Topologies.


def test_invalid_topology_is_rejected() -> None:
    topology = Topology().add_source("source", "in").add_sink("sink", "out", "source")
    for wrong, message in (
        (lambda: topology.add_source("source", "other"), "node 'source' already exists"),
        (lambda: topology.add_source("other", "in"), "topic 'in' already has a source"),
        (lambda: topology.add_source("other"), "has no topic"),
        (lambda: topology.add_processor("p", Processor, "nobody"), r"no parent 'nobody' \(nodes: source\)"),
        (lambda: topology.add_processor("p", Processor, "sink"), "no parent 'sink'"),
        (lambda: topology.add_processor("p", Processor), "has no parent"),
        (lambda: topology.add_processor("p", Processor(), "source"), "pass its class"),  # type: ignore[arg-type]
        (lambda: topology.add_sink("other", "out"), "has no parent"),
        (lambda: topology.add_state_store(kv(), "nobody"), r"there is no processor 'nobody' \(processors: none\)"),
        (lambda: topology.add_state_store(kv()), "store 'kv' already exists"),
        (lambda: driver(topology).create_input_topic("nothing"), r"topic 'nothing' has no source \(topics: in\)"),
    ):
        with pytest.raises(TopologyError, match=message):
            wrong()


def test_processor_without_process_is_rejected() -> None:
    with driver(through(Processor)) as running, pytest.raises(NotImplementedError, match="define process"):
        running.create_input_topic("in").pipe_input("k", "v")


def test_processors_are_closed_and_builder_makes_many_stores() -> None:
    closed = []

    class Closing(Processor[Any, Any, Any, Any]):
        def process(self, record: Any) -> None:
            self.context.commit()

        def close(self) -> None:
            closed.append(self)

    topology = through(Closing, kv())
    for _ in range(2):
        with driver(topology) as running:
            running.create_input_topic("in").pipe_input("k", "v")
    assert len(closed) == 2
    assert closed[0] is not closed[1]


def test_processor_scope_is_key_by_default() -> None:
    class Whole(Processor[Any, Any, Any, Any]):
        scope = "partition"

    assert (Processor.scope, Whole.scope) == ("key", "partition")
