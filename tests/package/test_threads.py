"""Many threads on the same arrays and the same objects: everybody gets what one thread gets."""

from __future__ import annotations

import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import letterhead as lh
from letterhead import arrow as lha

pytestmark = pytest.mark.usefixtures("gil_stays_disabled", "threads_switch_often")

THREADS = 8
ROUNDS = 4

COLUMNS = {"tenant": "string", "retry": "int32", "amount_cents": "int64", "route": "array<string>"}
FORMAT = "streams-timestamped"
HEADERS = [("tenant", b"acme"), ("route", b"a"), ("note", None), ("route", b"b"), ("señal-📦", b"\x00\x01")]


@pytest.fixture(scope="module")
def stored(samples: Path) -> pa.ChunkedArray:
    """Stored messages, in several chunks."""
    column = pq.read_table(samples / "store-latest-0.parquet").column("value")
    whole = column.combine_chunks()
    return pa.chunked_array([whole[start : start + 1500] for start in range(0, len(whole), 1500)])


@pytest.fixture(scope="module")
def blocks(samples: Path) -> pa.Array:
    """Blocks of Kafka; every hundredth one is cut."""
    lists = pq.read_table(samples / "orders-0.parquet").column("headers").combine_chunks()
    values = lha.encode(lists, "kafka").to_pylist()
    return pa.array(
        [value[:-1] if value and row % 100 == 0 else value for row, value in enumerate(values)], pa.binary()
    )


def in_threads(*calls: Callable[[], Any]) -> list[list[Any]]:
    """Call each of the given functions in every thread, in another order in each; give the results by thread."""
    start = threading.Barrier(THREADS)

    def work(thread: int) -> list[Any]:
        start.wait()
        result: dict[int, Any] = {}
        for turn in range(ROUNDS):
            for place in range(len(calls)):
                at = (place + thread + turn) % len(calls)
                result[at] = calls[at]()
        return [result[at] for at in range(len(calls))]

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(work, range(THREADS)))


def raised(call: Callable[[], Any]) -> tuple[Any, ...]:
    with pytest.raises(lh.HeaderError) as error:
        call()
    return error.value.code, error.value.row, error.value.header, error.value.byte_offset


@pytest.mark.slow
def test_threads_on_same_arrays_get_same_result(stored: pa.ChunkedArray, blocks: pa.Array) -> None:
    combined = stored.combine_chunks()
    lists = lha.decode(blocks, "kafka", errors="null")
    calls = [
        lambda: lha.decode(combined, FORMAT),
        lambda: lha.decode(stored, FORMAT),
        lambda: lha.select(combined, COLUMNS, format=FORMAT, errors="column"),
        lambda: lha.select(lists, COLUMNS, errors="null"),
        lambda: lha.validate(blocks, "kafka"),
        lambda: lha.decode(blocks, "kafka", errors="column"),
        lambda: lha.encode(lists, "kafka"),
        lambda: lha.encode(lists, "iggy", types="binary", on_loss="drop"),
        lambda: lha.convert(combined, FORMAT, target="streams", on_loss="drop"),
    ]
    once = [call() for call in calls]
    assert once[0].null_count == 0
    assert sum(errors is not None for errors in once[4].to_pylist()) > 90
    for results in in_threads(*calls):
        for result, expected in zip(results, once, strict=True):
            assert result.equals(expected)


def test_threads_get_same_errors(blocks: pa.Array) -> None:
    calls = [
        lambda: raised(lambda: lha.decode(blocks, "kafka")),
        lambda: raised(lambda: lha.select(blocks[1:], COLUMNS)),
        lambda: raised(lambda: lh.decode(b"\x02\x01\x00", "kafka")),
        lambda: raised(lambda: lh.encode([("n", lh.Int32(1))], "kafka")),
    ]
    once = [call() for call in calls]
    assert [error[:2] for error in once] == [
        ("truncated", 0),
        ("truncated", 99),
        ("negative_length", None),
        ("type_not_carried", None),
    ]
    for results in in_threads(*calls):
        assert results == once


def test_threads_read_same_messages(stored: pa.ChunkedArray) -> None:
    values = stored.slice(0, 50).to_pylist()
    once = [lh.decode(value, FORMAT) for value in values]
    for results in in_threads(
        lambda: [lh.decode(value, FORMAT) for value in values], lambda: [lh.encode(message, FORMAT) for message in once]
    ):
        assert results == [once, values]


OPERATIONS: dict[str, Callable[[Any], Any]] = {
    "decode": lambda blocks: lha.decode(blocks, "kafka"),
    "select": lambda blocks: lha.select(blocks, COLUMNS),
    "validate": lambda blocks: lha.validate(blocks, "kafka"),
    "convert": lambda blocks: lha.convert(blocks, "kafka", target="kip82-typed", types="binary"),
    "encode": lambda lists: lha.encode(lists, "kafka"),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_python_continues_while_kernel_works(name: str, samples: Path) -> None:
    lists = pa.concat_arrays([pq.read_table(samples / "orders-0.parquet").column("headers").combine_chunks()] * 10)
    source = lists if name == "encode" else lha.encode(lists, "kafka")
    # A thread runs only when another one releases the interpreter, as none is made to.
    sys.setswitchinterval(60)
    while not ran_during_a_call(lambda: OPERATIONS[name](source)):
        pass  # On a busy machine the call can end before this thread gets a core. The limit on time ends a kernel that holds on.


def ran_during_a_call(call: Callable[[], Any]) -> bool:
    """Return whether this thread ran between the beginning and the end of a call in another one."""
    moments: list[float] = []
    ended = threading.Event()

    def timed_call() -> None:
        start = time.perf_counter()
        call()
        moments[:] = [start, time.perf_counter()]
        ended.set()

    thread = threading.Thread(target=timed_call)
    thread.start()
    ticks = []
    while not ended.is_set():
        ticks.append(time.perf_counter())
        time.sleep(0)
    thread.join()
    return sum(moments[0] < tick < moments[1] for tick in ticks) > 1


def questions(headers: Any) -> list[Callable[[], Any]]:
    return [
        lambda: (headers["tenant"], headers.get("none", b"x"), headers["route"]),
        lambda: headers.get_all("route"),
        lambda: headers.keys(),
        lambda: headers.items(),
        lambda: ("note" in headers, "none" in headers, ("note", None) in headers, len(headers)),
        lambda: list(headers),
        lambda: [tuple(header) for header in headers],
        lambda: lh.encode(headers, "kafka"),
        lambda: pickle.loads(pickle.dumps(headers)),
        lambda: repr(headers),
    ]


@pytest.mark.parametrize("frozen", [False, True], ids=["decoded", "frozen"])
def test_threads_query_same_headers(frozen: bool) -> None:
    data = lh.encode(HEADERS, "kafka")
    for _ in range(20):
        # What was decoded is in its bytes until somebody asks for more than a key: all threads ask first at once.
        headers: Any = lh.decode(data, "kafka")
        headers = headers.frozen() if frozen else headers
        for results in in_threads(*questions(headers)):
            assert results == [
                (b"acme", b"x", b"b"),
                [b"a", b"b"],
                ["tenant", "route", "note", "route", "señal-📦"],
                HEADERS,
                (True, False, True, 5),
                HEADERS,
                HEADERS,
                data,
                headers,
                f"{type(headers).__name__}({HEADERS!r})",
            ]


def test_concurrent_additions_to_decoded_headers_are_kept() -> None:
    data = lh.encode(HEADERS, "kafka")
    for _ in range(200):
        headers: Any = lh.decode(data, "kafka")
        start = threading.Barrier(THREADS)

        def add(thread: int, headers: Any = headers, start: threading.Barrier = start) -> None:
            start.wait()
            headers.add(f"thread-{thread}", b"%d" % thread)

        threads = [threading.Thread(target=add, args=(thread,)) for thread in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert headers.items()[: len(HEADERS)] == HEADERS
        added = [(f"thread-{thread}", b"%d" % thread) for thread in range(THREADS)]
        assert sorted(headers.items()[len(HEADERS) :]) == added


def test_frozen_headers_are_same_key_for_all_threads() -> None:
    data = lh.encode(HEADERS, "kafka")
    headers: Any = lh.decode(data, "kafka")
    frozen = headers.frozen()
    seen: dict[Any, int] = {}
    for [number] in in_threads(lambda: hash(frozen)):
        seen[frozen] = seen.get(frozen, 0) + 1
        assert number == hash(lh.Headers(HEADERS).frozen())
    assert seen == {lh.Headers(HEADERS).frozen(): THREADS}


def test_threads_share_column_specification(stored: pa.ChunkedArray) -> None:
    combined = stored.combine_chunks()
    half = len(combined) // 2
    expected = [lha.select(part, COLUMNS, format=FORMAT) for part in (combined[:half], combined[half:])]
    for results in in_threads(
        lambda: lha.select(combined[:half], COLUMNS, format=FORMAT),
        lambda: lha.select(combined[half:], COLUMNS, format=FORMAT),
    ):
        assert all(result.equals(part) for result, part in zip(results, expected, strict=True))


# --- one stream, several readers -------------------------------------------------------------------------------------


class ArrowStream:
    """A stream of a library that is not pyarrow."""

    def __init__(self, *chunks: pa.Array) -> None:
        self.chunks = pa.chunked_array(chunks)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.chunks.__arrow_c_stream__(requested_schema)


WHOLE = pa.array([lh.encode(HEADERS, "kafka")] * 3)
BROKEN = pa.array([b"\x02"])


def test_threads_sharing_stream_lose_no_row() -> None:
    chunk = pa.array([lh.encode(HEADERS, "kafka")] * 50_000)
    stream = lha.decode(ArrowStream(*[chunk] * 16), "kafka")
    refusals: list[str] = []
    start = threading.Barrier(THREADS)

    def read() -> int:
        start.wait()
        rows = 0
        while True:
            try:
                rows += len(next(stream))
            except StopIteration:
                return rows
            except ValueError as error:
                refusals.append(str(error))

    with ThreadPoolExecutor(THREADS) as pool:
        rows = sum(pool.map(lambda _: read(), range(THREADS)))
    assert rows == 16 * len(chunk)
    # Threads that take turns by chance are not refused.
    assert set(refusals) <= {"another thread is reading the stream: read it in one thread, or make one for each"}


def test_stream_ends_after_failed_chunk() -> None:
    stream = lha.decode(ArrowStream(WHOLE, BROKEN, WHOLE), "kafka")
    assert len(next(stream)) == 3
    with pytest.raises(lh.DecodeError) as caught:
        next(stream)
    assert caught.value.row == 3
    for _ in range(3):
        with pytest.raises(ValueError, match="the stream failed at an earlier chunk and ends there"):
            next(stream)
    with pytest.raises(pa.ArrowInvalid, match="the stream failed at an earlier chunk"):
        pa.chunked_array(stream)


def test_exported_stream_ends_after_failed_chunk() -> None:
    stream = lha.select(ArrowStream(WHOLE, BROKEN, WHOLE), {"tenant": "string"})
    reader = pa.RecordBatchReader.from_stream(stream)
    assert reader.read_next_batch().num_rows == 3
    with pytest.raises(pa.ArrowInvalid, match="row 3"):
        reader.read_next_batch()
    for _ in range(3):
        with pytest.raises(pa.ArrowInvalid, match="the stream failed at an earlier chunk"):
            reader.read_next_batch()


def test_exported_stream_is_readable_only_by_importer() -> None:
    stream = lha.select(ArrowStream(WHOLE, WHOLE), {"tenant": "string"})
    reader = pa.RecordBatchReader.from_stream(stream)
    for _ in range(2):
        with pytest.raises(ValueError, match="the stream was exported, and is read elsewhere"):
            next(stream)
        with pytest.raises(ValueError, match="the stream was exported, and is read elsewhere"):
            pa.RecordBatchReader.from_stream(stream)
    assert reader.read_all().num_rows == 6
    with pytest.raises(ValueError, match="the stream was exported"):
        next(stream)


def test_consumed_stream_is_not_read_again() -> None:
    stream = lha.decode(ArrowStream(WHOLE, WHOLE), "kafka")
    assert [len(chunk) for chunk in stream] == [3, 3]
    assert next(stream, None) is None
    for read in (list, pa.chunked_array):
        with pytest.raises(ValueError, match="the stream was read to its end"):
            read(stream)


def test_importing_thread_may_end() -> None:
    """The threads after it have its place in memory, and what belonged to it."""
    program = """
import threading

def use():
    import letterhead as lh
    for _ in range(50):
        lh.decode(lh.encode({"key": bytes(100)}, "kafka"), "kafka")

for _ in range(20):
    thread = threading.Thread(target=use)
    thread.start()
    thread.join()
threads = [threading.Thread(target=use) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("finished")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=540, check=False)
    assert (done.returncode, done.stdout) == (0, "finished\n"), done.stderr
