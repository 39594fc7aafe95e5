"""Log segments as files: written by a broker, truncated, damaged, read in part, and with transactions."""

from __future__ import annotations

import doctest
import importlib
import json
import random
import shutil
import warnings
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import letterhead as lh
from letterhead import _native
from letterhead.errors import DecodeError, TruncatedTailWarning
from letterhead.kafka.record_sets import COLUMNS
from letterhead.kafka.transactions import OpenTransaction
from letterhead.offsets import segment_file
from letterhead.offsets.file_window import FileWindow
from tests.helpers.log_bytes import CONTROL, TRANSACTIONAL, batch, mark, record, write_index, write_segments

ROOT = Path(__file__).parents[2]
NAME = "00000000000000000000.log"
TOPICS = ("orders-0", "orders-app-latest-changelog-0")


def read(path: Any, **options: Any) -> pa.Table:
    with lh.read.segments(path, **options) as reader:
        return reader.read_all()


def offsets(path: Any, **options: Any) -> list[int | None]:
    result: list[int | None] = read(path, columns=["offset"], **options).column("offset").to_pylist()
    return result


@pytest.fixture
def folder(tmp_path: Path) -> Callable[..., Path]:
    """Write the directory of a partition, a file for each base offset."""

    def make_folder(*files: bytes, bases: tuple[int, ...] = (0,), name: str = "orders-0") -> Path:
        return write_segments(tmp_path / name, files, bases)

    return make_folder


def ten(first: int, count: int = 10, **options: Any) -> bytes:
    """Write a batch of records whose values are their offsets."""
    records = (record(place, value=str(first + place).encode(), time=place) for place in range(count))
    return batch(*records, base_offset=first, **{"times": (first * 100, first * 100 + count), **options})


# --- logs of a broker ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TOPICS)
def test_segment_reads_like_topic_in_spark(samples: Path, name: str) -> None:
    with lh.read.segments(samples / name) as reader:
        ours = reader.read_all()
        assert reader.truncated == reader.open_transactions == []
        assert reader.done == reader.total == (samples / name / NAME).stat().st_size
    spark = pq.read_table(samples / f"{name}.parquet")
    assert ours.num_rows == spark.num_rows == 10_000
    assert ours.column_names == list(COLUMNS)
    for column in ("key", "value", "topic", "partition", "offset"):
        assert ours.column(column).combine_chunks() == spark.column(column).combine_chunks(), column
    assert ours.schema.field("timestamp").type == pa.timestamp("ms", "UTC")
    assert ours.column("timestamp").to_pylist() == spark.column("timestamp").cast(pa.timestamp("ms", "UTC")).to_pylist()
    assert ours.column("timestamp_type").to_pylist() == spark.column("timestampType").to_pylist()
    # Spark has null for no headers.
    assert [headers or None for headers in ours.column("headers").to_pylist()] == spark.column("headers").to_pylist()
    assert spark.column("headers").null_count > 0


def test_done_bytes_grow_with_each_batch(samples: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What progress is shown from."""
    monkeypatch.setattr(segment_file, "PIECE_LEN", 200_000)
    with lh.read.segments(samples / "orders-0") as reader:
        done = [reader.done, *(reader.done for _ in reader), reader.done]
    assert done == sorted(done)
    assert len(set(done)) > 3
    assert (done[0], done[-1]) == (0, reader.total)


def test_headers_become_columns_while_the_log_is_read(samples: Path) -> None:
    types = {"tenant": "string", "amount_cents": "int64", "route": "array<string>"}
    result = read(samples / "orders-0", columns=["offset"], headers=types)
    spark = pq.read_table(samples / "orders-0.parquet", columns=["headers"]).column("headers")
    assert result.drop_columns(["offset"]) == pa.table(lh.arrow.select(spark, types)).cast(
        result.drop_columns(["offset"]).schema
    )
    assert pc.count(result.column("amount_cents")).as_py() > 9000


def test_stream_is_readable_by_any_arrow_library(samples: Path) -> None:
    import polars

    frame = polars.DataFrame(lh.read.segments(samples / "orders-0", columns=["partition", "offset"]))
    assert frame["offset"].to_list() == list(range(10_000))
    assert frame["partition"].unique().to_list() == [0]


def test_only_few_batches_are_in_memory(samples: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segment_file, "PIECE_LEN", 20_000)
    sizes = [0]
    with lh.read.segments(samples / "orders-app-latest-changelog-0", columns=["offset", "value"]) as reader:
        last = -1
        for rows in reader:
            sizes.append(rows.nbytes)
            assert rows.column("offset")[0].as_py() == last + 1
            last = rows.column("offset")[-1].as_py()
    assert last == 9_999
    assert sum(sizes) > 20 * max(sizes)


# --- directories and files -------------------------------------------------------------------------------------------


def test_broker_directory_yields_topics_and_partitions(tmp_path: Path, folder: Callable[..., Path]) -> None:
    folder(ten(0), name="orders-0")
    folder(ten(0), ten(10), bases=(0, 10), name="orders-10")
    folder(ten(5), bases=(5,), name="pay-ments-2")
    folder(ten(0), name="orders-1.0123456789abcdef0123456789abcdef-delete")
    (tmp_path / "meta.properties").write_text("version=1")
    (tmp_path / "empty-0").mkdir()
    rows = read(tmp_path, columns=["topic", "partition", "offset"]).to_pylist()
    assert [(row["topic"], row["partition"]) for row in rows[::10]] == [
        ("orders", 0),
        ("orders", 10),
        ("orders", 10),
        ("pay-ments", 2),
    ]
    assert [row["offset"] for row in rows] == [*range(10), *range(20), *range(5, 15)]


def test_tiered_storage_files_may_have_any_name(tmp_path: Path) -> None:
    compacted, two, other = tmp_path / f"{10:020}-c2Vn.log", tmp_path / f"{0:020}-bWVu.log", tmp_path / "object-17"
    for file, first in ((compacted, 10), (two, 0), (other, 40)):
        file.write_bytes(ten(first))
    rows = read([compacted, other, two], columns=["topic", "offset"])
    assert rows.column("offset").to_pylist() == [*range(20), *range(40, 50)]
    assert rows.column("topic").null_count == 30
    assert offsets(other) == list(range(40, 50))
    other.write_bytes(ten(1 << 40) + ten((1 << 40) + 10))
    assert offsets(other, start=(1 << 40) + 8, end=(1 << 40) + 12) == [(1 << 40) + place for place in (8, 9, 10, 11)]


def test_missing_files_are_rejected_at_once(tmp_path: Path) -> None:
    for path in (tmp_path / "orders-0", [tmp_path / "orders-0"]):
        with pytest.raises(FileNotFoundError, match="there is no such file"):
            lh.read.segments(path)
    with pytest.raises(IsADirectoryError, match="pass it alone, or the files in it"):
        lh.read.segments([tmp_path])
    with pytest.raises(FileNotFoundError, match="has no log segments"):
        lh.read.segments(tmp_path)


def test_unfinished_compaction_is_rejected(folder: Callable[..., Path]) -> None:
    path = folder(ten(10), bases=(10,))
    (path / f"{0:020}.log.swap").write_bytes(ten(0))
    with pytest.raises(ValueError, match="a compaction was not finished"):
        lh.read.segments(path)
    (path / f"{0:020}.log").write_bytes(ten(0))
    assert offsets(path) == list(range(20))


def test_empty_log_has_no_rows(folder: Callable[..., Path]) -> None:
    assert offsets(folder(b"")) == []
    assert offsets(folder(batch())) == []


def test_invalid_options_are_rejected_before_files_are_opened(samples: Path) -> None:
    for wrong in ({"columns": ["ofset"]}, {"errors": "ignore"}, {"isolation_level": "committed"}):
        with pytest.raises(ValueError, match=r"did you mean|unknown|one of"):
            lh.read.segments(samples / "orders-0", **wrong)
    with pytest.raises(ValueError, match="without a time zone"):
        lh.read.segments(samples / "orders-0", start=datetime(2026, 1, 1))


# --- bounds ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("start", [0, 1, 9, 10, 15, 29, 30, 31])
@pytest.mark.parametrize("end", [0, 1, 10, 12, 30, 40])
def test_offsets_bound_the_records(folder: Callable[..., Path], start: int, end: int) -> None:
    path = folder(ten(0) + ten(10), ten(20), bases=(0, 20))
    if start > end:
        with pytest.raises(ValueError, match="end is before start"):
            offsets(path, start=start, end=end)
    elif start > 30:
        for points in ({"start": start, "end": end}, {"start": {0: start}, "end": {0: end}}):
            with pytest.raises(ValueError, match=r"ends at offset 30|the partition ends at 30"):
                offsets(path, **points)
    else:
        assert offsets(path, start=start, end=end) == list(range(30))[start:end]
        assert offsets(path, start={0: start}, end={0: end}) == list(range(30))[start:end]


@pytest.mark.parametrize("tail", [b"", ten(30)[:50], bytes(20)])
def test_negative_number_counts_offsets_from_end(folder: Callable[..., Path], tail: bytes) -> None:
    path = folder(ten(0) + ten(10), ten(20) + tail, bases=(0, 20))
    with warnings.catch_warnings(action="ignore"):
        assert offsets(path, start=-12) == list(range(18, 30))
        assert offsets(path, start=-12, end=-10) == [18, 19]
        assert offsets(path, start=-31, end=-29) == [0]
        assert offsets(path, start="latest") == []
        assert offsets(path, start={0: -1}) == [29]


def test_negative_number_counts_from_end_of_committed_records(folder: Callable[..., Path]) -> None:
    begun = batch(record(0), record(1), base_offset=20, producer=(7, 0, 0), attributes=0x10)
    path = folder(ten(0) + ten(10) + begun)
    assert offsets(path, start=-3) == [19, 20, 21]
    assert offsets(path, start=-3, isolation_level="read_committed") == [17, 18, 19]


def test_start_after_end_names_end_and_remedy(folder: Callable[..., Path]) -> None:
    path = folder(ten(0), bases=(0,))
    assert offsets(path, start=10) == []
    with pytest.raises(
        ValueError, match=r"^start is after the end of every partition: the last one ends at offset 10$"
    ):
        offsets(path, start=11)
    with pytest.raises(ValueError, match=r"ends at offset 10; for a time .* pass '@1767225600000' or a datetime"):
        offsets(path, start=1_767_225_600_000)
    with pytest.raises(ValueError, match=r"start names partition 1, and .* has only partition 0"):
        offsets(path, start={1: 5})
    with pytest.raises(ValueError, match="start has no entry for partition 0"):
        offsets(path, start={})
    with pytest.raises(ValueError, match="partition 0: start is offset 12, but the partition ends at 10"):
        offsets(path, start={0: 12})


def test_end_before_beginning_names_beginning(folder: Callable[..., Path]) -> None:
    path = folder(ten(20), bases=(20,))
    assert offsets(path, end=20) == []
    with pytest.raises(ValueError, match=r"end is before the beginning of every partition: .* begins at offset 20"):
        offsets(path, end=19)


def test_time_selects_first_record_not_older(folder: Callable[..., Path]) -> None:
    times = [5, 3, 9, 1, 9, 2]
    records = (record(at, time=time) for at, time in enumerate(times))
    older = batch(*(record(at) for at in range(10)), base_offset=0, times=(0, 0))
    path = folder(older, batch(*records, base_offset=10, times=(0, 9)), bases=(0, 10))
    for time in range(11):
        first = next((at for at, of_record in enumerate(times) if of_record >= time), 6) + 10 if time else 0
        assert offsets(path, start=f"@{time}") == list(range(first, 16))
        assert offsets(path, end=f"@{time}") == list(range(first))


def test_times_bound_the_records(samples: Path) -> None:
    spark = pq.read_table(samples / "orders-0.parquet", columns=["offset", "timestamp"])
    times = spark.column("timestamp").cast(pa.timestamp("ms")).cast(pa.int64()).to_pylist()
    start, end = sorted(times)[2500], sorted(times)[7500]
    first, last = (next(row for row, time in enumerate(times) if time >= bound) for bound in (start, end))
    expected = spark.column("offset").to_pylist()[first:last]
    assert 4000 < len(expected) < 6000
    assert offsets(samples / "orders-0", start=f"@{start}", end=f"@{end}") == expected
    as_times = [datetime.fromtimestamp(time / 1000, UTC) for time in (start, end)]
    assert offsets(samples / "orders-0", start=as_times[0], end=as_times[1]) == expected
    only = read(samples / "orders-0", columns=["key"], start=as_times[0], end=as_times[1])
    assert (only.column_names, only.num_rows) == (["key"], len(expected))


@pytest.fixture
def indexed(folder: Callable[..., Path]) -> Path:
    """Return a segment of a hundred batches with an index of every tenth."""
    batches = [ten(500 + 10 * number) for number in range(100)]
    path = folder(b"".join(batches), bases=(500,))
    log = path / f"{500:020}.log"
    write_index(log, [(number * 10 + 9, sum(map(len, batches[:number]))) for number in range(9, 100, 10)], room=50)
    return path


def positions_read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Record the positions at which files are read."""
    places: list[int] = []
    read_bytes = FileWindow._read

    def recording(file: FileWindow, begin: int, target: memoryview) -> int:
        places.append(begin)
        return read_bytes(file, begin, target)

    monkeypatch.setattr(FileWindow, "_read", recording)
    return places


def test_offset_index_determines_first_byte(indexed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    places = positions_read(monkeypatch)
    assert offsets(indexed, start=1295) == list(range(1295, 1500))
    size = (indexed / f"{500:020}.log").stat().st_size
    assert min(places) > size * 0.6


def test_condition_on_offsets_uses_index_of_each_segment(
    folder: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    # The batches of two segments, with an entry for every tenth; the headers of each record are broken.
    headers = b"\x02\x02n\x04x"
    places, sizes = positions_read(monkeypatch), {}
    for base in (0, 500):
        numbers = range(base, base + 500, 10)
        batches = [
            batch(
                *(record(at, block=headers, time=at) for at in range(10)),
                base_offset=first,
                times=(first * 100, first * 100 + 9),
            )
            for first in numbers
        ]
        log = folder(b"".join(batches), bases=(base,)) / f"{base:020}.log"
        write_index(log, [(at * 10 + 9, sum(map(len, batches[:at]))) for at in range(9, 50, 10)], room=9)
        sizes[base] = log.stat().st_size
    path = log.parent
    with pytest.raises(DecodeError, match="the batch at offset 950"):
        offsets(path, where=(lh.col("offset") >= 950) & (lh.col("n") == "a"))
    # The first segment is skipped by its name, the second one is read from an entry on.
    assert min(places) > min(sizes.values()) * 0.6
    with pytest.raises(DecodeError, match="the batch at offset 950"):
        offsets(path, where=(lh.col("timestamp") >= 95_000) & (lh.col("n") == "a"))
    for where in (lh.col("offset") >= 1000, lh.col("timestamp") > 99_909):
        assert offsets(path, where=where & (lh.col("n") == "a")) == []
    only = (lh.col("offset") >= 450) & (lh.col("offset") < 460)
    with pytest.raises(DecodeError, match="the batch at offset 450"):
        offsets(path, where=only & (lh.col("n") == "a"))
    assert offsets(path, where=only & (lh.col("n") == "a"), errors="null") == []


# --- truncated and damaged logs -------------------------------------------------------------------------------------------


def real_batches(samples: Path) -> list[tuple[bytes, int, int]]:
    """Return the bytes of the batches of a real log, with their first and last offset."""
    data = (samples / "orders-0" / NAME).read_bytes()
    return [(data[head[0] : head[0] + head[1]], head[2], head[3]) for head in _native.record_batches(data)[0]]


def cuts(size: int, *, full: bool) -> Iterator[int]:
    yield from range(1, size, 1 if full else 211)
    yield from range(1, 70)


def check_cut(samples: Path, folder: Callable[..., Path], *, full: bool) -> None:
    before, last = real_batches(samples)[-2:]
    expected = list(range(before[1], before[2] + 1))
    for cut in cuts(len(last[0]), full=full):
        path = folder(before[0] + last[0][:cut], bases=(before[1],))
        reader = lh.read.segments(path, columns=["offset"])
        with pytest.warns(TruncatedTailWarning) as warned:
            table = reader.read_all()
        assert table.column("offset").to_pylist() == expected
        [truncated] = reader.truncated
        assert (truncated.file, truncated.position, truncated.bytes_left) == (
            str(path / f"{before[1]:020}.log"),
            len(before[0]),
            cut,
        )
        assert truncated.reason
        assert [str(warning.message) for warning in warned] == [str(truncated)]


def test_truncated_last_batch_warns_and_complete_ones_are_read(samples: Path, folder: Callable[..., Path]) -> None:
    check_cut(samples, folder, full=False)


@pytest.mark.full
@pytest.mark.timeout(1800)
def test_tail_truncated_at_any_byte_is_reported(samples: Path, folder: Callable[..., Path]) -> None:
    check_cut(samples, folder, full=True)


def check_flips(samples: Path, folder: Callable[..., Path], *, full: bool) -> None:
    before, middle, after = real_batches(samples)[-3:]
    whole = read(folder(before[0] + middle[0] + after[0], bases=(before[1],)))
    reported = 0
    for at in cuts(len(middle[0]), full=full):
        changed = bytearray(middle[0])
        changed[at] ^= 1 << at % 8
        path = folder(before[0] + bytes(changed) + after[0], bases=(before[1],))
        try:
            with lh.read.segments(path) as reader:
                result = reader.read_all()
        except DecodeError as error:
            assert f"{before[1]:020}.log: the batch at offset " in str(error)
            assert error.byte_offset is not None
            reported += 1
        else:
            # The epoch of the leader is in no row and under no checksum.
            assert 12 <= at < 16
            assert result == whole
        lax = read(path, errors="column")
        bad = pc.is_valid(lax.column("error"))
        good = lax.filter(pc.invert(bad)).drop_columns(["error"])
        # What is told to be whole is what was written.
        assert good == whole.filter(pc.is_in(whole.column("offset"), good.column("offset")))
        assert good.num_rows == whole.num_rows or pc.any(bad).as_py()
        assert good.num_rows >= before[2] - before[1] + 1 or at < 8
    assert reported > 60


@pytest.mark.slow
def test_sampled_changed_bytes_raise_and_yield_no_wrong_row(samples: Path, folder: Callable[..., Path]) -> None:
    check_flips(samples, folder, full=False)


@pytest.mark.full
@pytest.mark.timeout(3600)
def test_every_changed_byte_in_middle_raises(samples: Path, folder: Callable[..., Path]) -> None:
    check_flips(samples, folder, full=True)


def test_error_names_file_offset_and_byte(folder: Callable[..., Path]) -> None:
    first, second, third = ten(0), ten(10), ten(20)
    bad = second[:-1] + b"\x01"
    path = folder(first + bad + third)
    with pytest.raises(DecodeError, match="the batch at offset 10: the checksum is ") as caught:
        read(path)
    assert (caught.value.code, caught.value.byte_offset) == ("bad_crc", len(first))
    assert str(path / NAME) in str(caught.value)
    rows = read(path, columns=["offset"], errors="column").to_pylist()
    assert [row["offset"] for row in rows] == [*range(10), None, *range(20, 30)]
    [error] = rows[10]["error"]
    assert (error["code"], error["byte_offset"]) == ("bad_crc", len(first))
    assert "the batch at offset 10" in error["message"]
    assert offsets(path, errors="null") == [*range(10), None, *range(20, 30)]


def test_invalid_record_with_valid_checksum_follows_errors(folder: Callable[..., Path]) -> None:
    first = ten(0)
    path = folder(first + batch(record(), record(1, block=b"\2\2"), record(2), base_offset=10))
    with pytest.raises(DecodeError, match="the batch at offset 10: message 1: ") as caught:
        read(path)
    assert caught.value.code == "count_too_large"
    assert len(first) < caught.value.byte_offset < (path / NAME).stat().st_size
    rows = read(path, columns=["offset", "headers"], errors="column").to_pylist()[10:]
    assert [(row["offset"], row["headers"], row["error"] is None) for row in rows] == [
        (10, [], True),
        (11, None, False),
        (12, [], True),
    ]


def test_error_column_has_given_name(folder: Callable[..., Path]) -> None:
    invalid_record = batch(record(), record(1, block=b"\2\2"), base_offset=10)
    path = folder(ten(0) + invalid_record + ten(20)[:-1] + b"\x01" + ten(30))
    selection = {"columns": ["offset"], "headers": {"error": "string", "topic": "string"}}
    rows = read(path, errors="column", error_column="why", **selection).to_pylist()
    assert [row["offset"] for row in rows] == [*range(10), 10, 11, None, *range(30, 40)]
    assert all(row["error"] is row["topic"] is None for row in rows)
    codes = [[error["code"] for error in row["why"] or ()] for row in rows]
    assert codes == [[]] * 11 + [["count_too_large"], ["bad_crc"]] + [[]] * 10
    assert read(path, errors="column", error_column="why", end=10).column_names == [*COLUMNS, "why"]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"error_column": "why"}, ValueError, "error_column= names the column of errors='column'"),
        ({"errors": "column", "error_column": 1}, TypeError, "error_column must be str, not int"),
        (
            {"errors": "column", "error_column": "key"},
            ValueError,
            "two columns 'key' would be made: give error_column=",
        ),
        ({"errors": "column", "headers": {"error": "string"}}, ValueError, "two columns 'error' would be made"),
        ({"columns": ["key", "key"]}, ValueError, "two columns 'key' would be made: name it once in columns="),
    ],
)
def test_columns_need_distinct_names(samples: Path, options: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        lh.read.segments(samples / "orders-0", **options)


def test_header_column_may_take_name_of_unread_column(samples: Path) -> None:
    names = {name: lh.field("string", key="tenant") for name in ("topic", "timestamp")}
    table = read(samples / "orders-0", columns=["offset"], headers=names, end=100)
    tenants = read(samples / "orders-0", columns=[], headers={"tenant": "string"}, end=100)["tenant"]
    assert table["topic"] == table["timestamp"] == tenants
    assert tenants.null_count < 100


def test_truncated_segment_before_another_raises(folder: Callable[..., Path]) -> None:
    path = folder(ten(0) + ten(10)[:50], ten(20), bases=(0, 20))
    with pytest.raises(DecodeError, match="the batch at offset 10: the batch takes "):
        read(path)
    assert offsets(path, errors="null") == [*range(10), None, *range(20, 30)]
    rows = read(path, columns=["offset"], errors="column").to_pylist()
    assert [error["code"] for row in rows for error in row["error"] or ()] == ["truncated"]
    assert offsets(path, end=10) == list(range(10))


def test_truncated_segment_alone_raises_unless_last_in_folder(folder: Callable[..., Path]) -> None:
    path = folder(ten(0)[:-3], ten(10)[:-3], ten(20), bases=(0, 10, 20))
    first, second, last = sorted(path.glob("*.log"))
    for source in (first, second, [first, second], [second]):
        with pytest.raises(DecodeError, match="the batch takes "):
            read(source)
        assert None in offsets(source, errors="null")
    assert offsets([second, last], errors="null") == [None, *range(20, 30)]
    last.unlink()
    with pytest.warns(TruncatedTailWarning, match=f"{second.name}: truncated at byte 0, "):
        assert offsets(second) == []


def test_truncated_last_segment_warns_once_or_raises_on_request(folder: Callable[..., Path]) -> None:
    path = folder(ten(0), ten(10) + ten(20)[:-1], bases=(0, 10))
    for errors in ("raise", "null", "column"):
        with pytest.warns(TruncatedTailWarning, match=f"{10:020}.log: truncated at byte {len(ten(10))}, ") as warned:
            assert offsets(path, errors=errors) == list(range(20))
        assert [warning.filename for warning in warned] == [__file__]
    for consume in (list, pa.table):
        with lh.read.segments(path) as reader, pytest.warns(TruncatedTailWarning) as warned:
            consume(reader)
        assert [warning.filename for warning in warned] == [__file__]
    with (
        warnings.catch_warnings(action="error", category=TruncatedTailWarning),
        pytest.raises(TruncatedTailWarning, match="truncated at byte"),
    ):
        read(path)


def test_empty_last_segment_is_valid(folder: Callable[..., Path]) -> None:
    path = folder(ten(0), b"", bases=(0, 10))
    with warnings.catch_warnings(action="error"):
        assert offsets(path) == list(range(10))
        assert offsets(path / f"{10:020}.log") == []


@pytest.mark.parametrize("data", [b"abc", bytes(3), bytes(16), ten(0)[:1], ten(0)[:16]])
def test_file_too_short_for_segment_raises(data: bytes, folder: Callable[..., Path]) -> None:
    alone = folder(data, name="orders-1")
    for path in (alone, alone / NAME, folder(ten(0), data, bases=(0, 10))):
        with pytest.raises(DecodeError, match=f"not a log segment: its {len(data)} byte") as caught:
            read(path)
        assert (caught.value.code, caught.value.byte_offset) == ("truncated", 0)
        with lh.read.segments(path, columns=["offset"], errors="column") as reader:
            assert [row["error"][0]["code"] for row in reader.read_all().to_pylist() if row["error"]] == ["truncated"]
            assert reader.truncated == []
        assert offsets(path, errors="null")[-1] is None


@pytest.mark.filterwarnings("ignore::letterhead.errors.TruncatedTailWarning")
def test_unwritten_zeros_at_end_are_truncation(folder: Callable[..., Path]) -> None:
    last = ten(10)
    for tail, why in (
        (bytes(5000), "5000 bytes of zeros are left"),
        (last[:61] + bytes(len(last) - 61), "the checksum is "),
        (last[:61] + bytes(5000), "the checksum is "),
        (last[:9] + bytes(5000), "is too short"),
    ):
        path = folder(ten(0) + tail)
        with lh.read.segments(path, columns=["offset"]) as reader:
            assert reader.read_all().column("offset").to_pylist() == list(range(10))
            [truncated] = reader.truncated
        assert (truncated.position, truncated.bytes_left) == (len(ten(0)), len(tail))
        assert why in truncated.reason


@pytest.mark.parametrize("name", ["orders-0.parquet", "README.md"])
def test_file_that_is_not_a_segment_is_named(name: str, samples: Path) -> None:
    path = samples / name
    message = "not a log segment: it does not begin with a batch of magic 0, 1 or 2"
    with pytest.raises(DecodeError) as caught:
        read(path)
    assert str(caught.value) == f"record-batch: {path}: {message} (byte 0)"
    assert caught.value.code == "bad_magic"
    with lh.read.segments(path, columns=["offset"], errors="column") as reader:
        [row] = reader.read_all().to_pylist()
        assert reader.truncated == []
    assert (row["offset"], [error["message"] for error in row["error"]]) == (None, [f"{message}: {path}"])


@pytest.mark.filterwarnings("ignore::letterhead.errors.TruncatedTailWarning")
def test_truncated_first_batch_is_truncated_tail(folder: Callable[..., Path]) -> None:
    first = ten(0)
    ends = [first[:cut] for cut in range(17, len(first))]
    # Behind the place of its magic, zeros may stand where the rest was not written.
    ends += [end + bytes(len(first) - len(end)) for end in ends if len(first) - len(end) >= 16]
    for data in ends:
        with lh.read.segments(folder(data), columns=["offset"]) as reader:
            assert reader.read_all().num_rows == 0
            [truncated] = reader.truncated
        assert (truncated.position, truncated.bytes_left) == (0, len(data))
    for data in (b"", bytes(5000)):
        with lh.read.segments(folder(data), columns=["offset"]) as reader:
            assert reader.read_all().num_rows == 0
            assert [truncated.bytes_left for truncated in reader.truncated] == [len(data)] * bool(data)


def test_batches_with_overlapping_offsets_raise(folder: Callable[..., Path]) -> None:
    for second in (ten(9), ten(5), ten(0)):
        path = folder(ten(0) + second + ten(30))
        with pytest.raises(DecodeError) as caught:
            read(path)
        assert caught.value.code == "not_in_order"
        assert [offset for offset in offsets(path, errors="null") if offset is not None] == list(range(30, 40))
    with pytest.raises(DecodeError, match="the least possible is 20"):
        read(folder(ten(10), bases=(20,), name="orders-7"))


def test_flipped_bit_that_makes_control_batch_is_detected(folder: Callable[..., Path]) -> None:
    bad = bytearray(ten(10))
    bad[22] ^= 0x20
    with pytest.raises(DecodeError, match="the batch at offset 10: the checksum is "):
        read(folder(ten(0) + bytes(bad) + ten(20)))


def harmed(draw: random.Random, data: bytes) -> bytes:
    """Change, delete, insert or repeat some bytes at one position."""
    changed = bytearray(data)
    at, size = draw.randrange(len(changed)), draw.choice([1, 2, 8, 60, 300])
    match draw.randrange(6):
        case 0:
            changed[at] ^= 1 << draw.randrange(8)
        case 1:
            changed[at : at + size] = bytes(len(changed[at : at + size]))
        case 2:
            del changed[at : at + size]
        case 3:
            changed[at:at] = draw.randbytes(size)
        case 4:
            changed[at : at + size] = draw.randbytes(len(changed[at : at + size]))
        case 5:
            changed[at:at] = changed[(start := draw.randrange(len(changed))) : start + size]
    return bytes(changed)


def check_changed_files(folder: Callable[..., Path], cases: int) -> None:
    draw = random.Random(20260101)
    data, last = b"".join(ten(10 * number) for number in range(12)), ten(120)
    whole = {row["offset"]: row for row in read(folder(data, last, bases=(0, 120))).to_pylist()}
    assert len(whole) == 130
    errors = 0
    for case in range(cases):
        path = folder(harmed(draw, data), last, bases=(0, 120))
        try:
            rows = read(path).to_pylist()
        except DecodeError:
            errors += 1
        else:  # what was changed is not in a row: the epoch of the leader
            assert rows == [*whole.values()], case
        rows = read(path, errors="column").to_pylist()
        good = [row for row in rows if row.pop("error") is None]
        assert all(whole.get(row["offset"]) == row for row in good), case
        assert len({row["offset"] for row in good}) == len(good), case
        assert len(good) == 130 or len(good) < len(rows), case
    assert errors > cases * 0.9


@pytest.mark.slow
def test_random_damage_is_reported_and_returns_no_wrong_row(folder: Callable[..., Path]) -> None:
    check_changed_files(folder, 150)


@pytest.mark.full
@pytest.mark.timeout(1800)
def test_much_random_damage_is_reported(folder: Callable[..., Path]) -> None:
    check_changed_files(folder, 5000)


# --- transactions ----------------------------------------------------------------------------------------------------


def transactional(first: int, producer_id: int, sequence: int = 0) -> bytes:
    return ten(first, attributes=TRANSACTIONAL, producer=(producer_id, 0, sequence))


def log_of_transactions() -> bytes:
    return b"".join([
        ten(0), transactional(10, 7), transactional(20, 8), mark(30, 7, commit=False), transactional(31, 8, 10),
        mark(41, 8, commit=True), transactional(42, 7, 10), mark(52, 7, commit=True), ten(53), transactional(63, 9),
        ten(73),
    ])  # fmt: skip


COMMITTED = [*range(10), *range(20, 30), *range(31, 41), *range(42, 52), *range(53, 63)]


def test_aborted_transactions_are_skipped_and_open_ones_end_read(folder: Callable[..., Path]) -> None:
    path = folder(log_of_transactions())
    with lh.read.segments(path, columns=["offset"], isolation_level="read_committed") as reader:
        assert reader.read_all().column("offset").to_pylist() == COMMITTED
        assert reader.open_transactions == [OpenTransaction("orders", 0, 9, 63)]
    marks = {30, 41, 52}
    assert offsets(path) == [offset for offset in range(83) if offset not in marks]


@pytest.mark.parametrize("start", [0, 10, 15, 25, 31, 45, 53])
def test_transactions_begun_before_start_are_skipped(folder: Callable[..., Path], start: int) -> None:
    path = folder(log_of_transactions())
    expected = [offset for offset in COMMITTED if offset >= start]
    assert offsets(path, start=start, isolation_level="read_committed") == expected


def test_transactions_span_segments(folder: Callable[..., Path]) -> None:
    path = folder(transactional(0, 7), transactional(10, 7, 10) + mark(20, 7, commit=False) + ten(21), bases=(0, 10))
    assert offsets(path, isolation_level="read_committed") == list(range(21, 31))


def test_marker_without_type_commits_nothing(folder: Callable[..., Path]) -> None:
    marker = batch(record(key=b""), base_offset=10, attributes=TRANSACTIONAL | CONTROL, producer=(7, 0, -1))
    path = folder(transactional(0, 7) + marker + ten(11))
    assert offsets(path, isolation_level="read_committed") == list(range(11, 21))


def test_damaged_control_record_raises(folder: Callable[..., Path]) -> None:
    data = bytearray(log_of_transactions())
    at = len(ten(0)) + len(transactional(10, 7)) + len(transactional(20, 8))
    data[at + 61 + 9] ^= 1
    path = folder(bytes(data))
    with pytest.raises(DecodeError, match="the batch at offset 30: the checksum is "):
        read(path, isolation_level="read_committed")
    # Whose end is not known is open.
    assert offsets(path, isolation_level="read_committed", errors="null") == list(range(10))


# --- Kafka's older formats -------------------------------------------------------------------------------------------


def test_older_formats_are_bounded_inside_their_message_sets(vectors: Path, folder: Callable[..., Path]) -> None:
    lines = {line["id"]: line for line in map(json.loads, (vectors / "record_batches.jsonl").read_text().splitlines())}
    for name, line in lines.items():
        if not name.startswith(("v0", "v1")):
            continue
        expected = [int(record["offset"]) for message_set in line["batches"] for record in message_set["records"]]
        path = folder(bytes.fromhex(line["hex"]))
        assert offsets(path) == expected, name
        for bound in expected:
            assert offsets(path, start=bound) == [offset for offset in expected if offset >= bound], name
            assert offsets(path, end=bound) == [offset for offset in expected if offset < bound], name
        shutil.rmtree(path)


# --- documentation ---------------------------------------------------------------------------------------------------


def test_segment_examples_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    page = doctest.testfile(str(ROOT / "docs/how-to/read-log-segments.md"), module_relative=False)
    assert (page.failed, page.attempted > 0) == (0, True)
    module = doctest.testmod(importlib.import_module("letterhead.sources.segments_reader"))
    assert (module.failed, module.attempted > 2) == (0, True)


def test_reader_batches_are_bounded(tmp_path: Path) -> None:
    def compressed(first: int) -> bytes:
        messages = [lh.Message(offset=first + at, value=b"." * 1000) for at in range(1000)]
        return lh.batch(messages, "record-batch", codec="zstd")

    path = write_segments(tmp_path / "orders-3", [b"".join(compressed(first) for first in range(0, 80_000, 1000))], [0])
    for last in (None, 75_000):
        with lh.read.segments(path, columns=["offset", "value"], last=last) as reader:
            sizes = [(len(part), part.nbytes) for part in reader]
        assert sum(rows for rows, _ in sizes) == (last or 80_000)
        assert max(size for _, size in sizes) <= 64 << 20
        assert sum(size for _, size in sizes) > 64 << 20
