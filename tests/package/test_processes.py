"""Other processes: a child works whatever its parent did before, what a parent has open is its own, and what is sent arrives."""

from __future__ import annotations

import copy
import gc
import math
import multiprocessing
import os
import pickle
import signal
import struct
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import letterhead as lh
from letterhead import arrow as lha
from letterhead.errors import ErrorDetail, InvalidStateStoreError, LogClosedError
from letterhead.kafka.client import KafkaClient
from letterhead.kafka.settings import reader_settings
from letterhead.kip82 import MessageLog
from letterhead.reader import Reader
from letterhead.state import SessionKey, Stores, ValueTimestampHeaders
from letterhead.state.context import ChangelogList, StoreContext
from letterhead.state.layers.cache import RecordCache
from letterhead.state.rocksdb import (
    RocksDBKeyValueStore,
    RocksDBSessionStore,
    RocksDBVersionedStore,
    RocksDBWindowStore,
)
from letterhead.state.storage.database import StoredFamilies
from letterhead.values import VALUE_TYPES, value_from_message
from tests.helpers.log_samples import samples as messages

FORMAT = "streams-timestamped"
COLUMNS = {"tenant": "string", "retry": "int32", "amount_cents": "int64", "route": "array<string>"}
METHODS = [name for name in ("fork", "spawn", "forkserver") if name in multiprocessing.get_all_start_methods()]

forking = pytest.mark.skipif("fork" not in METHODS, reason="this system does not fork")


# --- a child works as its parent does --------------------------------------------------------------------------------


def work(stored: Any) -> list[Any]:
    """Do some of everything: what comes out is the same in any process."""
    values = stored.to_pylist()
    decoded = lha.decode(stored, FORMAT)
    lists = decoded.field("headers")
    read = [lh.decode(value, FORMAT) for value in values[:20]]
    assert [lh.encode(message, FORMAT) for message in read] == values[:20]
    results: list[Any] = [
        decoded,
        lha.select(stored, COLUMNS, format=FORMAT),
        lha.validate(stored.slice(1), "streams"),
        lha.encode(lists, "kafka"),
        lha.convert(stored, FORMAT, target="streams", on_loss="drop"),
        read,
        [error_of(values[0][:-9])],
    ]
    threads: list[Any] = [None] * 4

    def again(place: int) -> None:
        threads[place] = lha.select(stored, COLUMNS, format=FORMAT)

    for thread in [threading.Thread(target=again, args=(place,)) for place in range(len(threads))]:
        thread.start()
        thread.join()
    assert all(result.equals(results[1]) for result in threads)
    return results


def error_of(value: bytes) -> lh.DecodeError | None:
    try:
        lh.decode(value[:20], "kafka")
    except lh.DecodeError as error:
        return error
    return None


def same(left: Any, right: Any) -> bool:
    if isinstance(left, lh.HeaderError):
        return type(left) is type(right) and vars(left) == vars(right)
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left.equals(right) if isinstance(left, pa.Array | pa.StructArray) else left == right)


@pytest.fixture(scope="module")
def stored(samples: Path) -> pa.Array:
    return pq.read_table(samples / "store-latest-0.parquet").column("value").combine_chunks()


class Open(NamedTuple):
    """What a parent has under way."""

    segments: Any
    state: Any
    store: RocksDBKeyValueStore
    log: MessageLog
    expected: list[Any]


@pytest.fixture
def parent(samples: Path, stored: pa.Array, tmp_path: Path) -> Iterator[Open]:
    """Put everything in use: the allocator in several threads, readers in the middle, stores open."""
    expected = work(stored)
    store = RocksDBKeyValueStore("latest")
    store.open(tmp_path / "store")
    store.put_all([(b"%05d" % n, b"v") for n in range(1000)])
    with (
        lh.read.segments(samples / "orders-0") as segments,
        lh.read.state(samples / "streams-state-0_0", store="latest") as state,
        MessageLog(tmp_path / "orders-0") as log,
    ):
        log.append(messages(10))
        next(segments)
        next(state)
        yield Open(segments, state, store, log, expected)
        # Whatever the children did, the parent has all of it still.
        assert store.get(b"00999") == b"v"
        assert [message.offset for message in log.scan()] == list(range(10))
        assert same(work(stored), expected)
    store.close()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.usefixtures("parent")
def test_child_process_works_like_its_parent(method: str, parent: Open, stored: pa.Array) -> None:
    with multiprocessing.get_context(method).Pool(2) as pool:
        for results in pool.map_async(work, [stored] * 4, chunksize=1).get(timeout=300):
            assert same(results, parent.expected)


@forking
@pytest.mark.usefixtures("parent")
def test_child_process_opens_own_readers(samples: Path) -> None:
    def read() -> Any:
        with lh.read.segments(samples / "orders-0") as segments:
            rows = segments.read_all().num_rows
        with lh.read.state(samples / "streams-state-0_0", store="latest") as state:
            return rows, state.read_all().num_rows

    assert in_child(read) == ("gave", "(10000, 6643)")


@forking
@pytest.mark.usefixtures("parent")
def test_store_opened_by_child_works_or_is_rejected(tmp_path: Path) -> None:
    def write() -> Any:
        own = RocksDBKeyValueStore("latest")
        own.open(tmp_path / "own")
        own.put(b"k", b"v")
        own.close()

    output = in_child(write)
    assert output == ("gave", "None") or output[:2] == ("raised", InvalidStateStoreError.__name__)


@pytest.mark.slow
@forking
def test_fork_at_any_moment_leaves_working_child(stored: pa.Array) -> None:
    expected = work(stored[:500])
    ended = threading.Event()

    def busy() -> None:
        while not ended.is_set():
            lha.decode(stored, FORMAT)
            lha.encode(lha.decode(stored[:2000], FORMAT).field("headers"), "kafka")

    threads = [threading.Thread(target=busy) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(25):
            assert in_child(lambda: same(work(stored[:500]), expected)) == ("gave", "True")
    finally:
        ended.set()
        for thread in threads:
            thread.join()


# --- what a parent has open is its own -------------------------------------------------------------------------------


HANGS = 300
"""Seconds after which a child is taken to hang."""


def in_child(call: Callable[[], Any]) -> tuple[str, ...]:
    """Call a function in a forked process; say what it gave or raised, or that it hangs."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(HANGS)
        try:
            output: tuple[str, ...] = ("gave", repr(call()))
        except Exception as error:
            output = ("raised", type(error).__name__, str(error))
        except BaseException as error:
            output = ("ended", repr(error))
        os.write(writer, pickle.dumps(output))
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        reported = pipe.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return ("killed", signal.Signals(os.WTERMSIG(status)).name)
    answer: tuple[str, ...] = pickle.loads(reported)
    return answer


READER = ("raised", "RuntimeError", "the reader was opened before a fork: open one in the new process")


def of_store(name: str) -> tuple[str, ...]:
    text = (
        f"Store {name} was opened before this process was forked: open it in a process started by spawn or forkserver"
    )
    return ("raised", InvalidStateStoreError.__name__, text)


@forking
@pytest.mark.parametrize("name", ["segments", "state"])
def test_reader_is_not_read_after_fork(samples: Path, name: str) -> None:
    directory = samples / {"segments": "orders-0", "state": "streams-state-0_0"}[name]
    options = {"store": "latest"} if name == "state" else {}
    with getattr(lh.read, name)(directory, **options) as reader:
        rows = next(reader).num_rows
        assert in_child(lambda: next(reader)) == READER
        assert in_child(reader.read_all) == READER
        assert in_child(lambda: pa.table(reader)) == READER
        # A child that closes its own takes nothing away from the parent.
        assert in_child(reader.close) == ("gave", "None")
        assert rows + sum(batch.num_rows for batch in reader) == {"segments": 10000, "state": 6643}[name]


@forking
def test_unread_reader_is_not_read_after_fork_either(samples: Path) -> None:
    readers = [
        lh.read.segments(samples / "orders-0"),
        lh.read.state(samples / "streams-state-0_0", store="latest"),
        lh.read.topic("orders", bootstrap_servers="127.0.0.1:1"),
    ]
    for reader in readers:
        assert in_child(lambda reader=reader: next(reader)) == READER
        reader.close()


@forking
@pytest.mark.parametrize("export", [pa.table, next, list])
def test_child_does_not_wait_for_thread_reading_in_parent(export: Any) -> None:
    reading, forked = threading.Event(), threading.Event()

    def batches() -> Iterator[pa.RecordBatch]:
        reading.set()
        forked.wait()
        yield pa.record_batch({"n": [1]})

    reader = Reader(pa.schema({"n": pa.int64()}), batches)
    thread = threading.Thread(target=next, args=(reader,))
    thread.start()
    reading.wait()
    try:
        assert in_child(lambda: export(reader)) == READER
    finally:
        forked.set()
        thread.join()


@forking
def test_arrow_stream_of_reader_is_not_read_after_fork(samples: Path) -> None:
    stream = pa.RecordBatchReader.from_stream(lh.read.segments(samples / "orders-0"))
    type, _, text = in_child(stream.read_next_batch)
    assert type == "raised"
    assert READER[2] in text
    assert stream.read_all().num_rows == 10000


STORES: dict[str, Callable[[], Any]] = {
    "key-value": lambda: RocksDBKeyValueStore("s"),
    "window": lambda: RocksDBWindowStore("s", 100_000, 1000),
    "session": lambda: RocksDBSessionStore("s", 100_000),
    "versioned": lambda: RocksDBVersionedStore("s", 100_000),
}


def put(store: Any, value: bytes, time: int = 5) -> None:
    match store:
        case RocksDBKeyValueStore():
            store.put(b"k", value)
        case RocksDBSessionStore():
            store.put(SessionKey(b"k", 1, time), value)
        case _:
            store.put(b"k", value, time)


def get(store: Any, time: int = 5) -> Any:
    match store:
        case RocksDBWindowStore():
            return store.fetch(b"k", time)
        case RocksDBSessionStore():
            return store.fetch_session(b"k", 1, time)
        case RocksDBVersionedStore():
            return store.get(b"k").value
        case _:
            return store.get(b"k")


@pytest.fixture(params=STORES)
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    store = STORES[request.param]()
    store.open(tmp_path)
    put(store, b"1")
    yield store
    assert get(store) == b"1"
    store.close()


@forking
def test_store_is_not_used_after_fork(opened: Any) -> None:
    for call in (lambda: get(opened), lambda: put(opened, b"2"), opened.flush, lambda: opened.commit({})):
        # A store with segments may name the one that was asked.
        assert in_child(call) in (of_store("s"), of_store("s.0"))
    # Closing is no use of it: the parent closes what is in the files.
    assert in_child(opened.close) == ("gave", "None")


@forking
def test_store_iterator_is_not_started_after_fork(parent: Open) -> None:
    assert in_child(lambda: list(parent.store.all())) == of_store("latest")
    assert in_child(lambda: list(parent.store.reverse_range(b"1", b"2"))) == of_store("latest")


@forking
def test_log_is_not_used_after_fork(parent: Open, tmp_path: Path) -> None:
    with MessageLog(tmp_path / "orders-0", readonly=True) as readonly:
        for log in (parent.log, readonly):
            type, error, text = in_child(lambda log=log: next(log.scan()))
            assert (type, error) == ("raised", LogClosedError.__name__)
            assert "was opened in another process: open it in this one" in text
            assert in_child(log.close) == ("gave", "None")


# What is open to be looked at, or on its way, and is not the parent's alone yet.


@forking
@pytest.mark.parametrize("opened", ["window", "session"], indirect=True)
def test_segment_is_not_opened_after_fork(opened: Any, tmp_path: Path) -> None:
    before = sorted(tmp_path.rglob("s.*"))
    assert in_child(lambda: put(opened, b"2", 99_000))[:2] == ("raised", InvalidStateStoreError.__name__)
    assert sorted(tmp_path.rglob("s.*")) == before


@forking
def test_store_iterator_is_not_read_after_fork(parent: Open) -> None:
    rows = parent.store.all()
    next(rows)
    output = in_child(lambda: next(rows))
    assert len(list(rows)) == 999
    assert output == of_store("latest")


@forking
def test_cached_store_is_not_written_after_fork(tmp_path: Path) -> None:
    builder = Stores.timestamped_key_value_store_with_headers_builder(
        Stores.persistent_timestamped_key_value_store_with_headers("s")
    )
    store: Any = builder.with_caching_enabled().build()
    store.open(tmp_path, StoreContext("app", changelog=ChangelogList(), cache=RecordCache(1 << 20)))
    value = ValueTimestampHeaders.make(b"v", 5, lh.Headers())
    output = in_child(lambda: store.put(b"k", value))
    store.close()
    assert output == of_store("s")


@forking
def test_database_is_not_read_after_fork(samples: Path) -> None:
    with StoredFamilies(samples / "streams-state-0_0/rocksdb/latest") as families:
        output = in_child(lambda: len(list(families.rows(families.names[1]))))
        assert len(list(families.rows(families.names[1]))) == 6643
    assert output[:2] == ("raised", InvalidStateStoreError.__name__)


@forking
def test_child_dropping_reader_leaves_parent_intact(samples: Path, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    readers = [lh.read.state(samples / "streams-state-0_0", store="latest")]
    rows = next(readers[0]).num_rows
    before = sorted(tmp_path.rglob("*"))
    assert len(before) > 3
    assert in_child(lambda: (readers.clear(), gc.collect()))[0] == "gave"
    after = sorted(tmp_path.rglob("*"))
    assert rows + sum(batch.num_rows for batch in readers[0]) == 6643
    assert after == before


@forking
@pytest.mark.parametrize("operation", ["topics", "close"])
def test_connections_are_not_used_after_fork(operation: str) -> None:
    # Nothing has to answer: who asks hangs before it gets that far.
    with KafkaClient(reader_settings("127.0.0.1:1", {}, timeout_ms=1000, fetch_bytes=1 << 20)) as client:
        output = in_child(getattr(client, operation))
    assert output == ("gave", "None") if operation == "close" else output[0] == "raised"


# --- what is sent arrives --------------------------------------------------------------------------------------------

PLACE = {"byte_offset": 57, "row": 7, "header": 9, "key": "amount", "column": "amount_cents"}
NAN = struct.pack(">Q", 0x7FF0_0000_0000_0001)


def sent() -> dict[str, Any]:
    """Make one of everything that goes from process to process."""
    block = lh.encode([("tenant", "acme"), ("note", None), ("route", ""), ("tenant", "b")], "kafka")
    typed = lh.encode([("retry", lh.Int32(3)), ("note", lh.String("x"))], "kip82-typed")
    many = lh.Headers([("n", lh.Int8(1)), (lh.Value("int16", 5), b"\x00"), (7, None)])
    converted = lh.convert(typed, "kip82-typed", target="kafka", types="le", on_loss="report")
    result: dict[str, Any] = {
        "decoded headers": lh.decode(block, "kafka"),
        "asked headers": asked(lh.decode(block, "kafka")),
        "headers of all types of keys": many,
        "no headers": lh.Headers(),
        "frozen headers": many.frozen(),
        "header": many[1],
        "message": lh.Message(headers=many, timestamp=5, payload=None),
        "decoded stored message": lh.decode(
            lh.encode({"headers": [], "timestamp": 5, "payload": b"p"}, FORMAT), FORMAT
        ),
        "field": lh.field("int32:le", key=lh.Int8(1), repeat="error", required=True),
        "all": lh.field("array<string>", key="route"),
        "columns": dict(COLUMNS),
        "losses": converted.losses,
        "converted": converted,
        "error": ErrorDetail("truncated", "too short", 57, 9, "amount", "amount_cents"),
        "a nan": value_from_message("float64", NAN),
        "a value of a code without a name": lh.Value("type-200", b"raw"),
        "no value of its type": value_from_message("int32", b"\x00"),
    }
    for type in VALUE_TYPES:
        result[f"a value of {type}"] = a_value(type)
    for cls in (lh.HeaderError, lh.DecodeError, lh.EncodeError, lh.ConversionError):
        result[cls.__name__] = cls("too short", format="kafka", code="truncated", **PLACE)
        result[f"{cls.__name__} without a place"] = cls("too short", format=None, code="truncated")
    return result


def asked(headers: Any) -> Any:
    """Turn headers into objects, so that their bytes are no longer kept."""
    assert list(headers)
    return headers


def a_value(type: str) -> lh.Value:
    match type:
        case "bool":
            return lh.Value(type, True)
        case "string":
            return lh.Value(type, "é")
        case "char":
            return lh.Value(type, "x")
        case "binary":
            return lh.Value(type, b"\x00\xff")
        case _:
            return lh.Value(type, 1.5 if type.startswith("float") else 100)


def check_arrived(expected: Any, arrived: Any) -> None:
    assert type(expected) is type(arrived)
    assert repr(expected) == repr(arrived)
    if isinstance(expected, BaseException):
        assert (vars(expected), expected.args, str(expected)) == (vars(arrived), arrived.args, str(arrived))
        return
    assert expected == arrived
    if type(expected).__hash__ is not None and not isinstance(expected, lh.Losses | lh.Converted):
        assert hash(expected) == hash(arrived)
    if isinstance(expected, lh.Value):
        assert (expected.type, expected.bits) == (arrived.type, arrived.bits)
    if isinstance(expected, lh.Losses):
        assert expected.types == arrived.types == {"retry": "int32:le", "note": "string"}
    if isinstance(expected, lh.Converted):
        check_arrived(expected.losses, arrived.losses)


@pytest.mark.parametrize("name", sent())
def test_pickled_and_copied_objects_are_equal(name: str) -> None:
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        check_arrived(sent()[name], pickle.loads(pickle.dumps(sent()[name], protocol)))
    check_arrived(sent()[name], copy.copy(sent()[name]))
    check_arrived(sent()[name], copy.deepcopy(sent()[name]))


def test_pickled_nan_keeps_its_bits() -> None:
    value = pickle.loads(pickle.dumps(value_from_message("float64", NAN)))
    assert value.bits == NAN
    assert math.isnan(value.value)


def echo(things: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Run in another process: return what it received, and the representation of each there."""
    return things, [repr(thing) for thing in things.values()]


@pytest.mark.parametrize("method", METHODS)
def test_objects_sent_to_a_process_and_back_are_equal(method: str) -> None:
    things = sent()
    with multiprocessing.get_context(method).Pool(1) as pool:
        restored, seen = pool.apply_async(echo, (things,)).get(timeout=300)
    assert seen == [repr(thing) for thing in things.values()]
    assert list(restored) == list(things)
    for name in things:
        check_arrived(things[name], restored[name])


def refuse(value: bytes) -> Any:
    return lh.decode(value, "kafka")


def test_error_from_process_arrives_complete() -> None:
    with multiprocessing.get_context("spawn").Pool(1) as pool, pytest.raises(lh.DecodeError) as raised:
        pool.apply_async(refuse, (b"\x02\x01\x00",)).get(timeout=300)
    error = raised.value
    assert (error.format, error.code, error.byte_offset, error.header, error.row) == (
        "kafka",
        "negative_length",
        1,
        0,
        None,
    )
    assert str(error) == "kafka: key length -1 is negative (header 0, byte 1)"


def test_copies_are_independent() -> None:
    headers: Any = lh.decode(lh.encode([("a", b"1")], "kafka"), "kafka")
    stored = lh.Message(headers=headers, payload=b"p")
    for copied in (copy.copy(headers), copy.deepcopy(headers), copy.deepcopy(stored).headers):
        copied.add("b", b"2")
        assert headers.items() == [("a", b"1")]


# --- what Spark ships ------------------------------------------------------------------------------------------------


def run_shipped(shipped: bytes, batch: pa.RecordBatch) -> tuple[list[pa.RecordBatch], str]:
    runner = pickle.loads(shipped)
    return list(runner(iter([batch]))), type(runner.operation).__name__


def test_transforms_are_pickled_and_run_on_workers(stored: pa.Array) -> None:
    cloudpickle = pytest.importorskip("pyspark.cloudpickle")
    from letterhead.operations import DecodeOptions, Select
    from letterhead.spark.runner import Runner
    from letterhead.spark.schemas import output_schema

    select = Select(FORMAT, COLUMNS, DecodeOptions(errors="column"), dialect="spark")
    result = output_schema(select)
    runner = Runner(
        operation=select,
        kept=("key",),
        inputs=1,
        result_type=result.arrow,
        names=tuple(field.name for field in result.spark),
        identify={},
    )
    batch = pa.RecordBatch.from_arrays([pa.array(range(len(stored))), stored], ["key", "value"])
    expected = list(runner(iter([batch])))
    assert sum(part.num_rows for part in expected) == len(stored)
    for method in METHODS:
        with multiprocessing.get_context(method).Pool(1) as pool:
            restored, operation = pool.apply_async(run_shipped, (cloudpickle.dumps(runner), batch)).get(timeout=300)
        assert operation == "Select"
        assert len(restored) == len(expected)
        assert all(
            restored_result.equals(expected_result)
            for restored_result, expected_result in zip(restored, expected, strict=True)
        )
