"""A process that goes on and on: memory stays flat, nothing is left open, every buffer is given back.

Each job passes ``LETTERHEAD_LOAD`` headers through one part of the library (50 million by default), in rounds. The process
is looked at after each, and its memory compared when it has come to rest: after two rounds to warm up, and at the end.
"""

from __future__ import annotations

import ctypes
import gc
import tempfile
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import letterhead as lh
from letterhead import arrow as lha
from tests.helpers.c_structures import Array
from tests.load.jobs import COLUMNS, FORMAT, HEADERS, Job, blocks_of, jobs

pytestmark = pytest.mark.full

WARM_UP = 2
ROUNDS = 10

MOST_GROWTH = 24 << 20
"""Bytes that a process at rest may have grown by.

The module's allocator gives freed pages back after ten seconds, so between rounds how many wait is a matter of time; at
rest none do. What is left are caches of RocksDB and of Python. All that the rounds make and drop is thousands of times
this: a leak of one buffer in a thousand passes it.
"""

REST_SECONDS = 12


class Seen(NamedTuple):
    """What a process has."""

    rss: int
    arrow: int
    fds: int
    files: int
    threads: int
    left: int


def look() -> Seen:
    gc.collect()
    process = psutil.Process()
    left = len(list(Path(tempfile.gettempdir()).glob("letterhead-*")))
    return Seen(
        process.memory_info().rss,
        pa.total_allocated_bytes(),
        process.num_fds(),
        len(process.open_files()),
        process.num_threads(),
        left,
    )


@pytest.mark.timeout(3600)  # two minutes on a machine of its own
def test_memory_stays_flat_and_nothing_is_left_open(
    samples: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "temporary"
    own.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(own))
    seen: list[Seen] = []
    resting: list[int] = []
    spent: dict[str, float] = {}
    done: dict[str, int] = {}
    todo = jobs(samples, tmp_path)
    for number in range(WARM_UP + ROUNDS):
        for job in todo:
            headers, seconds = run(job, HEADERS // ROUNDS if number >= WARM_UP else 1)
            if number >= WARM_UP:
                spent[job.name] = spent.get(job.name, 0.0) + seconds
                done[job.name] = done.get(job.name, 0) + headers
        if number >= WARM_UP:
            seen.append(look())
            with capsys.disabled():
                print(f"\n  round {len(seen):2} of {ROUNDS}: {shown(seen[-1])}", end="", flush=True)
        if number in (WARM_UP - 1, WARM_UP + ROUNDS - 1):
            resting.append(at_rest(todo[0]))
    with capsys.disabled():
        print()
        for name, seconds in spent.items():
            rate = done[name] / seconds / 1e6
            print(f"  {name:18} {done[name]:>12,} headers {seconds:7.1f} s {rate:7.2f} million/s")
    assert all(done[job.name] >= HEADERS // ROUNDS * ROUNDS for job in todo)
    growth = resting[-1] - resting[0]
    with capsys.disabled():
        print(f"  at rest: {resting[0] / 2**20:.1f} MiB before, {resting[-1] / 2**20:.1f} MiB after")
    assert growth <= MOST_GROWTH, f"{growth / 2**20:.0f} MiB more at the end: {[sample.rss >> 20 for sample in seen]}"
    # The rest is exact: what a round opens or takes, it closes and gives back.
    assert {sample.arrow for sample in seen} == {seen[0].arrow}
    assert {(sample.fds, sample.files) for sample in seen} == {(seen[0].fds, seen[0].files)}
    assert {sample.threads for sample in seen} == {seen[0].threads}
    assert {sample.left for sample in seen} == {0}


def run(job: Job, headers: int) -> tuple[int, float]:
    """Run a job until that many headers went through it; say how many did, in how many seconds."""
    runs = -(-headers // job.headers)
    start = time.perf_counter()
    for _ in range(runs):
        job.run()
    return runs * job.headers, time.perf_counter() - start


def at_rest(job: Job) -> int:
    """Return the memory of the process when all pages that it does not need went back to the system."""
    gc.collect()
    pa.default_memory_pool().release_unused()
    time.sleep(REST_SECONDS)
    # Pages go back when the allocator is next at work.
    for _ in range(3):
        job.run()
        time.sleep(REST_SECONDS / 3)
    return look().rss


def shown(seen: Seen) -> str:
    return (
        f"{seen.rss / 2**20:7.1f} MiB, Arrow {seen.arrow / 2**20:.1f} MiB, {seen.fds} descriptors, "
        f"{seen.threads} threads"
    )


def test_stores_and_readers_close_what_they_open(
    samples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # where no other process leaves files
    # Once before: threads of RocksDB and of Arrow stay for the next one.
    for turn in range(4):
        for job in jobs(samples, tmp_path / str(turn), times=1):
            job.run()
        now = look()
        if turn == 0:
            before = now
    assert now[2:] == before[2:]
    assert now.arrow <= before.arrow


# --- every buffer is given back --------------------------------------------------------------------------------------


RELEASE = ctypes.CFUNCTYPE(None, ctypes.POINTER(Array))


class Counted:
    """An array that counts how often it was exported and how often it was released.

    Parameters
    ----------
    array : object
        Whose ``__arrow_c_array__`` makes the capsules.
    """

    def __init__(self, array: Any) -> None:
        self._array = array
        self._callbacks: list[Any] = []
        self.exported = self.released = 0

    def __arrow_c_schema__(self) -> object:
        return self._array.__arrow_c_schema__()

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]:
        schema, capsule = self._array.__arrow_c_array__(requested_schema)
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        array = Array.from_address(pointer(capsule, b"arrow_array"))
        release = RELEASE(array.release)

        def counting(source: Any) -> None:
            self.released += 1
            release(source)

        # It is called when this object may be gone for long.
        self._callbacks.append(RELEASE(counting))
        array.release = ctypes.cast(self._callbacks[-1], ctypes.c_void_p).value
        self.exported += 1
        return schema, capsule


def operations(samples: Path) -> dict[str, tuple[Any, Callable[[Any], Any]]]:
    blocks = blocks_of(samples, 1)
    bad = pa.array([message[:-1] if message else message for message in blocks.to_pylist()], pa.binary())
    lists = lha.decode(blocks, "kafka")
    stored = pq.read_table(samples / "store-latest-0.parquet").column("value").combine_chunks()
    log = pa.array([next((samples / "orders-0").glob("*.log")).read_bytes()], pa.binary())
    return {
        "decode": (blocks, lambda column: lha.decode(column, "kafka")),
        "decode stored messages": (stored, lambda column: lha.decode(column, FORMAT)),
        "decode with errors": (bad, lambda column: lha.decode(column, "kafka", errors="column")),
        "select": (blocks, lambda column: lha.select(column, COLUMNS)),
        "select of lists": (lists, lambda column: lha.select(column, COLUMNS)),
        "validate": (bad, lambda column: lha.validate(column, "kafka")),
        "encode": (lists, lambda column: lha.encode(column, "kafka")),
        "convert": (blocks, lambda column: lha.convert(column, "kafka", target="kip82-typed", types="binary")),
        "messages": (log, lambda column: lha.messages(column, "record-batch")),
    }


OPERATIONS = (
    "decode",
    "decode stored messages",
    "decode with errors",
    "select",
    "select of lists",
    "validate",
    "encode",
    "convert",
    "messages",
)


@pytest.mark.parametrize("name", OPERATIONS)
def test_memory_of_inputs_is_released(samples: Path, name: str) -> None:
    column, operation = operations(samples)[name]
    before = pa.total_allocated_bytes()
    counted = Counted(column)
    expected = pa.array(operation(column))
    for _ in range(10):
        result = pa.array(operation(counted))
        assert result.equals(expected)
        del result
    gc.collect()
    assert counted.exported == counted.released >= 10
    del expected
    gc.collect()
    assert pa.total_allocated_bytes() <= before


@pytest.mark.parametrize("name", OPERATIONS)
def test_memory_of_results_is_released(samples: Path, name: str) -> None:
    column, operation = operations(samples)[name]
    outputs = []
    for _ in range(10):
        # What is not pyarrow goes in, so the array of the module itself comes out.
        output = Counted(operation(Counted(column)))
        result = pa.array(output)
        assert (output.exported, output.released) == (1, 0)
        part = result.slice(1, 1)
        del result
        gc.collect()
        assert output.released == 0, "a slice still needs it"
        del part
        gc.collect()
        assert output.released == 1
        outputs.append(output)
    assert len(outputs) == 10


def test_memory_of_rejected_inputs_is_released(samples: Path) -> None:
    good, bad = (operations(samples)[name][0] for name in ("decode", "decode with errors"))
    for column, call in (
        (bad, lambda column: lha.decode(column, "kafka")),
        (bad, lambda column: lha.select(column, COLUMNS)),
        (good, lambda column: lha.convert(column, "kafka", target="iggy")),
        (good, lambda column: lha.select(column, {"tenant": "int64"})),
    ):
        counted = Counted(column)
        for _ in range(10):
            with pytest.raises(lh.HeaderError):
                call(counted)
        gc.collect()
        assert counted.exported == counted.released == 10


class Owner(bytearray):
    """Memory that somebody owns, and whose end can be watched."""


def test_memory_owned_by_python_is_released(samples: Path) -> None:
    [_, offsets, data] = blocks_of(samples, 1).buffers()
    ended = []
    owner = Owner(data.to_pybytes())
    weakref.finalize(owner, ended.append, True)
    address = ctypes.addressof(ctypes.c_char.from_buffer(owner))
    column = pa.Array.from_buffers(
        pa.binary(), 10_000, [None, offsets, pa.foreign_buffer(address, len(owner), base=owner)]
    )
    result = [lha.decode(column, "kafka"), lha.select(column, COLUMNS), lha.validate(column, "kafka")]
    del owner, column, result
    gc.collect()
    assert ended == [True]


def test_dropped_stream_releases_memory(samples: Path) -> None:
    column = blocks_of(samples, 1)
    before = pa.total_allocated_bytes()
    chunks = [pa.array(column[start : start + 1000].to_pylist(), pa.binary()) for start in range(0, len(column), 1000)]
    kept = pa.total_allocated_bytes()
    for _ in range(10):
        stream = iter(pa.RecordBatchReader.from_stream(_stream(chunks)))
        assert next(stream).num_rows == 1000
        del stream
    gc.collect()
    assert pa.total_allocated_bytes() == kept
    del chunks
    gc.collect()
    assert pa.total_allocated_bytes() == before


def _stream(chunks: list[pa.Array]) -> Any:
    class Chunks:
        def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
            return pa.chunked_array(chunks).__arrow_c_stream__(requested_schema)

    return lha.decode(Chunks(), "kafka", errors="column")
