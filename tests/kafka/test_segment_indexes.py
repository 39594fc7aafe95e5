"""Indexes beside segments: they say where to begin looking, and hide no record, whatever is in them."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import letterhead as lh
from letterhead.kafka.indexes import offsets_every, position_before
from letterhead.kafka.log_directory import partitions
from tests.helpers.batch_bytes import batch as iggy_batch
from tests.helpers.batch_bytes import frame
from tests.helpers.log_bytes import (
    TRANSACTIONAL,
    batch,
    mark,
    record,
    write_index,
    write_time_index,
    write_transaction_index,
)

NAME = f"{0:020}.log"


def offsets(path: Any, **options: Any) -> list[int | None]:
    with lh.read.segments(path, columns=["offset"], **options) as reader:
        result: list[int | None] = reader.read_all().column("offset").to_pylist()
    return result


def timed(first: int) -> bytes:
    """Write a batch of ten records, one a millisecond, 100 milliseconds for each offset of the first."""
    records = (record(at, time=at) for at in range(10))
    return batch(*records, base_offset=first, times=(first * 100, first * 100 + 9))


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Return a segment of a hundred batches."""
    path = tmp_path / "orders-0" / NAME
    path.parent.mkdir()
    path.write_bytes(b"".join(map(timed, range(0, 1000, 10))))
    return path


# --- times -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "entries",
    [
        [(1, 999)],
        [(500, 499), (600, 899)],
        [(90_009, 509)],
        [(49_009, 499), (49_010, 999)],
        [(struct.unpack(">q", b"\x7f" * 8)[0], 999)],
    ],
)
def test_wrong_times_in_index_hide_no_record(log: Path, entries: list[tuple[int, int]]) -> None:
    write_index(log, [(at * 10 + 9, at * len(timed(0))) for at in range(1, 100)])
    write_time_index(log, entries)
    for since in (0, 600, 49_005, 90_000):
        expected = [offset for offset in range(1000) if offset // 10 * 1000 + offset % 10 >= since]
        assert offsets(log, start=f"@{since}") == expected
        assert offsets(log, where=lh.col("timestamp") >= since) == expected


def test_records_at_exact_batch_bounds_are_read(log: Path) -> None:
    write_index(log, [(at * 10 + 9, at * len(timed(0))) for at in range(1, 100)])
    # The largest timestamp of the batch of offset 500 is 50,009.
    assert offsets(log, start="@50009", end="@51001") == [509, 510]
    assert offsets(log, where=lh.col("timestamp") >= 50_009, end=511) == [509, 510]
    assert offsets(log, where=lh.col("timestamp") == 50_009) == [509]
    assert offsets(log, start="@50010", end="@51000") == []
    for first, end in ((500, 510), (509, 511), (509, 510), (510, 511), (999, 1000)):
        assert offsets(log, start=first, end=end) == list(range(first, end))
        condition = (lh.col("offset") >= first) & (lh.col("offset") <= end - 1)
        assert offsets(log, where=condition) == list(range(first, end))


# --- offsets ---------------------------------------------------------------------------------------------------------


def test_changed_byte_in_offset_index_hides_no_record(log: Path) -> None:
    write_index(log, [(at * 10 + 9, at * len(timed(0))) for at in range(9, 100, 10)], room=5)
    index = log.with_suffix(".index")
    data = index.read_bytes()
    for at in range(len(data)):
        for bit in (0x40, 1):
            index.write_bytes(data[:at] + bytes([data[at] ^ bit]) + data[at + 1 :])
            assert offsets(log, start=795, end=800) == list(range(795, 800))
    index.write_bytes(data[:13])
    assert offsets(log, start=795, end=800) == list(range(795, 800))


def test_index_entry_for_later_or_damaged_batch_is_ignored(log: Path) -> None:
    size = len(timed(0))
    write_index(log, [(5, 40 * size)])
    assert offsets(log, start=95, end=97) == [95, 96]
    data = bytearray(log.read_bytes())
    data[9 * size + 70] ^= 1
    log.write_bytes(data)
    write_index(log, [(5, 9 * size)])
    with pytest.raises(lh.DecodeError, match="the batch at offset 90: the checksum"):
        offsets(log, start=95, end=97)
    assert offsets(log, start=100, end=102) == [100, 101]


def test_index_entry_applies_to_its_own_offset(log: Path) -> None:
    size = len(timed(0))
    write_index(log, [(at * 10 + 9, at * size) for at in range(9, 100, 10)])
    [[segment]] = partitions(log)
    assert [position_before(segment, offset) for offset in (98, 99, 100, 198, 199)] == [
        0, 9 * size, 9 * size, 9 * size, 19 * size,
    ]  # fmt: skip
    assert offsets_every(segment, 20 * size) == [299, 499, 699, 899]


# --- transactions ----------------------------------------------------------------------------------------------------


def transactional(first: int, producer: int) -> bytes:
    records = (record(at) for at in range(5))
    return batch(*records, base_offset=first, attributes=TRANSACTIONAL, producer=(producer, 0, 0))


@pytest.mark.parametrize("entry", [(7, 0, 5), (7, 0, 11), (7, 0, 3), (7, 1, 900), (8, 6, 11)])
def test_transaction_index_aborts_no_committed_transaction(log: Path, entry: tuple[int, int, int]) -> None:
    log.write_bytes(
        transactional(0, 7) + mark(5, 7, commit=True) + transactional(6, 8) + mark(11, 8, commit=True) + timed(12)
    )
    write_transaction_index(log, [entry])
    expected = [*range(5), *range(6, 11), *range(12, 22)]
    assert offsets(log, isolation_level="read_committed") == expected
    for start in (3, 6, 12):
        assert offsets(log, isolation_level="read_committed", start=start) == [at for at in expected if at >= start]


def test_transaction_missing_from_index_stays_aborted(log: Path) -> None:
    log.write_bytes(transactional(0, 7) + mark(5, 7, commit=False) + timed(6))
    write_transaction_index(log, [])
    assert offsets(log, isolation_level="read_committed") == list(range(6, 16))


# --- Iggy ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def iggy_log(tmp_path: Path) -> Path:
    """Return a segment of a hundred batches of Iggy, five messages each, a second for each batch."""
    path = tmp_path / "streams/0/topics/0/partitions/0" / NAME
    path.parent.mkdir(parents=True)
    path.write_bytes(b"".join(
        iggy_batch(*(frame(at) for at in range(5)), base=first, timestamp=first * 200_000) for first in range(0, 500, 5)
    ))  # fmt: skip
    return path


def write_iggy_index(log: Path, entries: list[tuple[int, int, int]]) -> None:
    log.with_suffix(".index").write_bytes(b"".join(struct.pack("<QQQ", *entry) for entry in entries))


def test_wrong_iggy_index_entries_hide_no_message(iggy_log: Path) -> None:
    size = iggy_log.stat().st_size // 100
    good = [(at * 5, at * 1_000_000, at * size) for at in range(1, 100, 10)]
    wrong = [
        [(offset, 1, position) for offset, _, position in good],
        [(offset, time // 2, position) for offset, time, position in good],
        [(495, 0, 99 * size), *good],
        [(1, time, position) for _, time, position in good],
        [(offset, time, position + 1) for offset, time, position in good],
        [(offset, time, 1 << 63) for offset, time, _ in good],
    ]
    for entries in (good, *wrong):
        write_iggy_index(iggy_log, entries)
        for batch_number in (0, 11, 50, 99):
            expected = list(range(batch_number * 5, 500))
            assert offsets(iggy_log, format="iggy-batch", start=f"@{batch_number * 1000}") == expected
            assert offsets(iggy_log, format="iggy-batch", start=batch_number * 5) == expected
    data = bytearray(iggy_log.read_bytes())
    data[11 * size + 250] ^= 1  # a batch that an entry names, and a checksum does not match
    iggy_log.write_bytes(data)
    write_iggy_index(iggy_log, good)
    with pytest.raises(lh.DecodeError, match="the batch at offset 55"):
        offsets(iggy_log, format="iggy-batch", start=56)


# --- files that are none ---------------------------------------------------------------------------------------------


@pytest.mark.timeout(60)
@pytest.mark.parametrize("suffix", [".index", ".timeindex", ".txnindex"])
@pytest.mark.parametrize("format", ["record-batch", "iggy-batch"])
def test_pipe_or_device_as_index_is_not_read(log: Path, iggy_log: Path, suffix: str, format: Any) -> None:
    file = log if format == "record-batch" else iggy_log
    index = file.with_suffix(suffix)
    options = {"isolation_level": "read_committed"} if format == "record-batch" else {}
    os.mkfifo(index)
    assert offsets(file, format=format, start=300, **options)[0] == 300
    index.unlink()
    index.symlink_to("/dev/zero")
    assert offsets(file, format=format, start=300, **options)[0] == 300


@pytest.mark.timeout(60)
@pytest.mark.parametrize("format", ["record-batch", "iggy-batch"])
def test_pipe_or_device_as_segment_raises(tmp_path: Path, format: Any) -> None:
    folder = tmp_path / "orders-0"
    folder.mkdir()

    def check(make: Callable[[Path], None]) -> None:
        make(folder / NAME)
        for path in (folder, tmp_path, folder / NAME, [folder / NAME]):
            with pytest.raises(OSError, match="not a regular file"):
                offsets(path, format=format)
        (folder / NAME).unlink()

    check(os.mkfifo)
    check(lambda path: path.symlink_to("/dev/zero"))


GROWTH = """
import resource, sys
import letterhead as lh
def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
path, format, start = sys.argv[1], sys.argv[2], int(sys.argv[3])
with lh.read.segments(path, format=format, columns=["offset"], start=0, end=1) as reader:
    reader.read_all()
before = peak()
with lh.read.segments(path, format=format, columns=["offset"], start=start, end=start + 1, errors="null") as reader:
    rows = reader.read_all().num_rows
print(rows, peak() - before)
"""


def growth(path: Path, format: str, start: int) -> tuple[int, int]:
    """Return the number of rows, and by how many MiB reading them made the peak of a process grow."""
    command = [sys.executable, "-W", "ignore", "-c", GROWTH, str(path), format, str(start)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=540, check=True)
    rows, grown = map(int, ended.stdout.split())
    return rows, grown


@pytest.mark.parametrize("format", ["record-batch", "iggy-batch"])
def test_sparse_index_takes_no_memory(log: Path, iggy_log: Path, format: str) -> None:
    file = log if format == "record-batch" else iggy_log
    with file.with_suffix(".index").open("wb") as index:
        index.truncate(3 << 30)
    rows, grown = growth(file, format, 300)
    assert rows == 1
    assert grown < 100


def test_sparse_segment_takes_no_memory(log: Path) -> None:
    with log.open("r+b") as file:
        file.truncate(1 << 30)
    rows, grown = growth(log, "record-batch", 1000)
    assert rows == 0
    assert grown < 100


def test_index_pointing_into_record_hides_no_batch(log: Path) -> None:
    # A value that looks like the header of a batch, whose length leads to a later batch.
    size, numbers = len(timed(0)), [*range(0, 1000, 10)]
    inside = record(value=struct.pack(">qiibI", 0, 0, 0, 2, 0) + bytes(40))
    data = [batch(inside, base_offset=0), *map(timed, numbers[1:])]
    start = data[0].index(inside) + inside.index(struct.pack(">ib", 0, 2))  # where the epoch and magic of it are
    begin = start - 12
    length = len(data[0]) + 79 * size - begin - 12  # up to the batch of offset 800
    inside = record(value=struct.pack(">qiibI", 0, length, 0, 2, 0) + bytes(40))
    data[0] = batch(inside, base_offset=0)
    log.write_bytes(b"".join(data))
    write_index(log, [(5, begin)])
    assert offsets(log, start=600, end=900) == list(range(600, 900))


def test_iggy_index_pointing_into_message_hides_no_batch(iggy_log: Path) -> None:
    size = iggy_log.stat().st_size // 100
    data = iggy_log.read_bytes()[size:]
    # A payload that looks like a batch, whose length leads to the batch of offset 400.
    payload = bytearray(300)
    first = iggy_batch(frame(0, bytes(payload)), base=0, timestamp=0)
    begin = len(first) - len(payload)
    struct.pack_into("<Q", payload, 32, len(first) + 79 * size - begin)
    struct.pack_into("<I", payload, 48, 1)
    first = iggy_batch(frame(0, bytes(payload)), base=0, timestamp=0)
    iggy_log.write_bytes(first + data)
    write_iggy_index(iggy_log, [(0, 0, begin)])
    assert offsets(iggy_log, format="iggy-batch", start=300, end=450) == list(range(300, 450))
