"""Damaged and truncated logs: which is which, how many records are missing, and where an error says that it is."""

from __future__ import annotations

import os
import pickle
import struct
import warnings
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import letterhead as lh
from letterhead._row_request import RowRequest
from letterhead.errors import DecodeError, TruncatedTailWarning
from letterhead.iggy.batch_header import BATCH_LENGTH_AT
from letterhead.kafka.log_directory import partitions
from letterhead.kafka.record_sets import find_batches
from letterhead.kafka.segments import KafkaSegmentRowReader, KafkaSegments
from letterhead.offsets.segments import SegmentsReader
from letterhead.offsets.specs import OffsetBounds
from tests.helpers.batch_bytes import batch as iggy_batch
from tests.helpers.batch_bytes import frame
from tests.helpers.log_bytes import TRANSACTIONAL, batch, mark, record, write_segments

NAME = f"{0:020}.log"


def ten(first: int, *, value: bytes = b"v", **options: Any) -> bytes:
    records = (record(place, value=value) for place in range(10))
    return batch(*records, base_offset=first, **options)


@pytest.fixture
def folder(tmp_path: Path) -> Callable[..., Path]:
    """Write the directory of a partition, a file for each base offset."""
    return lambda *files, bases=(0,): write_segments(tmp_path / "orders-3", files, bases)


def opened(path: Any, **options: Any) -> SegmentsReader:
    return lh.read.segments(path, **{"columns": ["offset"], **options})


def rows(path: Any, **options: Any) -> list[dict[str, Any]]:
    with opened(path, **options) as reader:
        result: list[dict[str, Any]] = reader.read_all().to_pylist()
    return result


@pytest.mark.parametrize("missing", [1, 12, len(ten(0)) - 1])
def test_incomplete_batch_at_end_of_record_set_is_dropped(missing: int) -> None:
    batches, end = find_batches(ten(0) + ten(10)[:-missing])
    assert ([batch.base_offset for batch in batches], end) == ([0], len(ten(0)))


# --- a truncated tail is an incomplete batch, or zeros ---------------------------------------------------------------------


@pytest.mark.parametrize("codec", [None, "zstd"])
@pytest.mark.parametrize("before", [b"", ten(0)])
def test_flipped_bit_in_last_complete_batch_is_damage(
    folder: Callable[..., Path], before: bytes, codec: str | None
) -> None:
    first = 10 if before else 0
    messages: Any = [{"offset": first + at, "timestamp": 1, "key": b"k", "value": b"v" * 40} for at in range(10)]
    last = lh.batch(messages, codec=codec or "none")
    # Another base offset is not noticed if it is larger, and another epoch of the leader is in no row.
    for place in [*range(8, 12), *range(16, 61), *range(61, len(last), 23)]:
        data = bytearray(last)
        data[place] ^= 0x10
        path = folder(before + bytes(data))
        with warnings.catch_warnings(action="error"):
            with pytest.raises(DecodeError) as raised:
                rows(path)
            with opened(path, errors="column") as reader:
                rows_read = reader.read_all().to_pylist()
        assert reader.truncated == [], place
        assert len(rows_read) == first + 1, place
        [error] = rows_read[-1]["error"]
        assert (rows_read[-1]["offset"], error["code"], error["byte_offset"]) == (None, raised.value.code, len(before))
        [damaged] = reader.damaged
        assert (damaged.first, damaged.position, damaged.end) == (first, len(before), len(before + last))
        assert [row["offset"] for row in rows(path, errors="null")] == [*range(first), None]


LEAST = batch(*(record(at, key=None, value=None) for at in range(10)), base_offset=10)
"""Records without key, value and headers: they have 7 bytes each."""


@pytest.mark.parametrize(
    "tail",
    [
        ten(10)[:17], ten(10)[:-1], ten(10)[:70], bytes(1), bytes(4096), ten(10)[:80] + bytes(4096), ten(10)[:5],
        LEAST[: 61 + 3 * 7] + bytes(4096),
    ],
)  # fmt: skip
def test_incomplete_batch_or_zeros_at_end_are_truncation(folder: Callable[..., Path], tail: bytes) -> None:
    path = folder(ten(0) + tail)
    with pytest.warns(TruncatedTailWarning), opened(path, errors="column") as reader:
        assert [row["offset"] for row in reader.read_all().to_pylist()] == list(range(10))
    assert reader.damaged == []
    assert [(truncated.position, truncated.bytes_left) for truncated in reader.truncated] == [(len(ten(0)), len(tail))]


@pytest.mark.parametrize(
    ("tail", "code"),
    [
        (b"\xff" * 300, "bad_magic"),
        (os.urandom(8) + bytes(4) + b"\xff" * 30, "bad_magic"),
        (ten(5)[:60], "not_in_order"),
        (ten(10)[:-1] + b"\1" + bytes(4096), "bad_crc"),
        (ten(10, value=bytes(30))[:66] + b"\7" + ten(10, value=bytes(30))[67:], "bad_crc"),
    ],
    ids=["foreign bytes", "foreign bytes of a length", "an earlier offset", "a batch before zeros", "a value of zeros"],
)
def test_foreign_bytes_at_end_are_damage(folder: Callable[..., Path], tail: bytes, code: str) -> None:
    path = folder(ten(0) + tail)
    with warnings.catch_warnings(action="error"), pytest.raises(DecodeError) as raised:
        rows(path)
    assert raised.value.code == code
    with opened(path, errors="column") as reader:
        assert [row["error"][0]["code"] for row in reader.read_all().to_pylist() if row["error"]] == [code]
    assert (len(reader.damaged), reader.truncated) == (1, [])


def with_byte(data: bytes, place: int, value: int) -> bytes:
    return data[:place] + bytes([value]) + data[place + 1 :]


OF_UNKNOWN_OFFSETS = {
    "a magic byte": (ten(0) + with_byte(ten(10), 16, 9),),
    "a length": (ten(0) + with_byte(ten(10), 8, 0x7F),),
    "foreign bytes": (ten(0) + b"\xff" * 300,),
    "a magic byte in a file of its own": (ten(0), with_byte(ten(10), 16, 9)),
    "text in a file of its own": (ten(0), b"not a segment, but a text of some length"),
}
"""Logs of ten records, followed by damage that does not say how many records it hides."""


@pytest.mark.parametrize("files", OF_UNKNOWN_OFFSETS.values(), ids=OF_UNKNOWN_OFFSETS)
@pytest.mark.parametrize(
    "request_", [{"last": 2}, {"start": -2}, {"start": 12}, {"start": 3000}, {"last": 20}], ids=str
)
def test_requests_for_last_rows_report_damage_at_end(
    folder: Callable[..., Path], files: tuple[bytes, ...], request_: dict[str, int]
) -> None:
    path = folder(*files, bases=(0, 10)[: len(files)])
    with pytest.raises(DecodeError):
        rows(path, **request_)
    if "start" in request_:
        with pytest.raises(DecodeError):
            rows(path, start={3: max(request_["start"], 12)})
    with opened(path, errors="column", **request_) as reader:
        *before, last = reader.read_all().to_pylist()
    assert len(reader.damaged) == 1
    assert (last["offset"], len(last["error"])) == (None, 1)
    first = {2: 9, 20: 0}.get(request_.get("last", 0), 8 if request_.get("start") == -2 else 10)
    assert [row["offset"] for row in before] == [*range(first, 10)]
    with opened(path, end=10, last=2) as reader:
        assert [row["offset"] for row in reader.read_all().to_pylist()] == [8, 9]


def test_start_after_truncated_end_reports_truncation(folder: Callable[..., Path]) -> None:
    path = folder(ten(0) + ten(10)[:-1])
    for start in (12, {3: 12}):
        with pytest.raises(ValueError, match=rf"ends at (offset )?10: .*{NAME}: truncated at byte {len(ten(0))}"):
            rows(path, start=start)


@pytest.mark.parametrize(
    ("damaged", "time", "after", "ends_before"),
    [(1, 1000, 0, True), (1, 2000, 20, False), (1, 3000, 20, False), (2, 2000, 10, True), (2, 3000, 30, False)],
)
def test_damage_that_may_hide_first_record_of_time_is_reported(
    folder: Callable[..., Path], damaged: int, time: int, after: int, ends_before: bool
) -> None:
    batches = [ten(10 * at, times=(1000 * (at + 1),) * 2) for at in range(3)]
    batches[damaged] = with_byte(batches[damaged], 16, 9)
    path, point = folder(b"".join(batches)), datetime.fromtimestamp(time / 1000, UTC)
    with opened(path, errors="column", start=point) as reader:
        read = [row["offset"] for row in reader.read_all().to_pylist()]
    assert [offset for offset in read if offset is not None] == [
        offset for offset in range(after, 30) if offset // 10 != damaged
    ]
    assert len(reader.damaged) == 1
    with opened(path, errors="column", end=point) as reader:
        reader.read_all()
    assert len(reader.damaged) == (not ends_before)


# --- how many records are missing -------------------------------------------------------------------------------------


def test_damaged_batch_reports_number_of_hidden_records(folder: Callable[..., Path]) -> None:
    damaged = ten(10)[:-1] + b"\1"
    path = folder(ten(0) + damaged + ten(20))
    with pytest.raises(DecodeError, match="offsets 10 to 19 are missing, at most 10 records") as raised:
        rows(path)
    assert (raised.value.topic, raised.value.partition, raised.value.offset) == ("orders", 3, 10)
    assert "(topic orders, partition 3, offset 10, byte " in str(raised.value)
    with opened(path, errors="column") as reader:
        [error] = [row["error"][0] for row in reader.read_all().to_pylist() if row["error"]]
    assert "offsets 10 to 19 are missing, at most 10 records" in error["message"]
    assert [(damage.first, damage.last) for damage in reader.damaged] == [(10, 19)]


def test_batches_that_exceed_an_arrow_column_are_read_in_halves(
    folder: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    read_batches = KafkaSegmentRowReader._read

    def limited(reader: KafkaSegmentRowReader, file: Any, batches: Any, *options: Any) -> Any:
        if len(batches) > 2:
            raise DecodeError("the column is too large", format="record-batch", code="too_large")
        return read_batches(reader, file, batches, *options)

    monkeypatch.setattr(KafkaSegmentRowReader, "_read", limited)
    whole, damaged = [ten(first) for first in range(0, 80, 10)], ten(60)[:-1] + b"\1"
    path = folder(b"".join([*whole[:6], damaged, whole[7]]))
    assert [row["offset"] for row in rows(path, errors="null")] == [*range(60), None, *range(70, 80)]
    with pytest.raises(DecodeError, match="offsets 60 to 69 are missing"):
        rows(path)


def test_missing_offsets_span_damaged_batches_to_next_valid_one(folder: Callable[..., Path]) -> None:
    two = ten(10)[:-1] + b"\1" + bytes(100) + ten(20)[30:]
    for files, bases in (((ten(0) + two + ten(30),), (0,)), ((ten(0) + two, ten(30)), (0, 30))):
        path = folder(*files, bases=bases)
        with opened(path, errors="null") as reader:
            assert [row["offset"] for row in reader.read_all().to_pylist()] == [*range(10), None, *range(30, 40)]
        assert [(damage.first, damage.last) for damage in reader.damaged] == [(10, 29)]


@pytest.mark.parametrize(
    ("start", "end", "missing"),
    [(0, 10, None), (0, 11, (10, 10)), (15, 18, (15, 17)), (19, 30, (19, 19)), (20, 30, None), (12, 30, (12, 19))],
)
def test_only_missing_offsets_within_bounds_are_reported(
    folder: Callable[..., Path], start: int, end: int, missing: tuple[int, int] | None
) -> None:
    path = folder(ten(0) + ten(10)[:50] + ten(20))
    with opened(path, errors="column", start=start, end=end) as reader:
        rows_read = reader.read_all().to_pylist()
    assert [(damage.first, damage.last) for damage in reader.damaged] == [missing] * (missing is not None)
    assert len([row for row in rows_read if row["error"]]) == len(reader.damaged)
    expected = [at for at in range(30) if not 10 <= at < 20 and start <= at < end]
    assert [row["offset"] for row in rows_read if not row["error"]] == expected


def test_last_rows_starting_in_damage_report_all_of_it(folder: Callable[..., Path]) -> None:
    path = folder(ten(0) + ten(10)[:-1] + b"\1" + ten(20))
    for last in (11, 12, 15):
        with opened(path, errors="column", last=last) as reader:
            messages = [row["error"][0]["message"] for row in reader.read_all().to_pylist() if row["error"]]
        assert [(damage.first, damage.last) for damage in reader.damaged] == [(10, 19)]
        assert all("offsets 10 to 19 are missing, at most 10 records" in message for message in messages)


# --- errors of records ------------------------------------------------------------------------------------------------


def test_record_errors_name_offset_and_can_be_grouped(folder: Callable[..., Path]) -> None:
    broken = [record(at, block=b"\2\2" if at % 3 else b"\0") for at in range(9)]
    path = folder(ten(0) + batch(*broken, base_offset=10) + batch(*broken, base_offset=20))
    bad = [row for row in rows(path, errors="column") if row["error"]]
    assert [row["offset"] for row in bad] == [11, 12, 14, 15, 17, 18, 21, 22, 24, 25, 27, 28]
    assert len({row["error"][0]["message"] for row in bad}) == 1
    with pytest.raises(DecodeError, match=r"\(topic orders, partition 3, offset 11, byte \d+\)") as raised:
        rows(path)
    copy = pickle.loads(pickle.dumps(raised.value))
    for error in (raised.value, copy):
        assert (error.topic, error.partition, error.offset, error.row) == ("orders", 3, 11, None)


def test_consecutive_damaged_batches_at_end_are_all_missing(folder: Callable[..., Path]) -> None:
    damaged = [with_byte(ten(first), 70, 0x55) for first in (10, 20)]
    path = folder(ten(0) + b"".join(damaged))
    read = rows(path, errors="column")
    assert [row["offset"] for row in read] == [*range(10), None]
    assert "the records from offset 10 on are missing" in read[-1]["error"][0]["message"]


@pytest.mark.parametrize("log", ["kafka", "iggy"])
def test_broken_headers_become_null_and_other_fields_stay(
    folder: Callable[..., Path], iggy: Callable[..., Path], log: str
) -> None:
    if log == "kafka":
        path = folder(
            batch(
                *(record(at, value=b"v%d" % at, block=b"\2\2" if at % 3 else b"\0") for at in range(9)), base_offset=0
            )
        )
    else:
        path = iggy(iggy_batch(*(frame(at, block=b"\xff" if at % 3 else b"") for at in range(9))))
    value = "value" if log == "kafka" else "payload"
    headers: dict[str, Any] = {"n": lh.field("int32", default=7), "must": lh.field("string", default="d")}
    options: dict[str, Any] = {"columns": ["offset", value, "headers"], "headers": headers, "errors": "null"}
    options["format"] = "record-batch" if log == "kafka" else "iggy-batch"
    broken = [row for row in rows(path, **options) if row["offset"] % 3]
    assert [row["offset"] for row in broken] == [1, 2, 4, 5, 7, 8]
    assert all(row[value] is not None for row in broken)
    assert {row[name] for row in broken for name in ("headers", *headers)} == {None}
    for where, offsets in (
        ("offset = 5", [5]),
        ("offset >= 3 and offset < 6", [3, 4, 5]),
        ("offset = 5 or tenant::string = 'a'", [5]),
        ("offset >= 3 and tenant::string = 'a'", []),
    ):
        assert [row["offset"] for row in rows(path, where=where, **options)] == offsets


def test_unreadable_record_offset_follows_previous_record(folder: Callable[..., Path]) -> None:
    unreadable = b"\x04\0\0"  # a record of two bytes
    path = folder(batch(record(), record(1), unreadable, base_offset=40), bases=(40,))
    with pytest.raises(DecodeError) as raised:
        rows(path, headers={"n": "int32"})
    assert raised.value.offset == 42
    required = lh.field("string", key="tenant", required=True)
    with pytest.raises(DecodeError, match="offset 40") as raised:
        rows(path, headers={"tenant": required})
    assert (raised.value.code, raised.value.offset, raised.value.column) == ("missing_key", 40, "tenant")


def test_damaged_batch_message_starts_with_reason(folder: Callable[..., Path]) -> None:
    path = folder(ten(0) + ten(10)[:50], ten(20) + ten(30)[:50], ten(40), bases=(0, 20, 40))
    texts = [row["error"][0]["message"] for row in rows(path, errors="column") if row["error"]]
    assert len(texts) == 2
    assert texts[0].partition(" are missing")[0] == texts[1].partition(" are missing")[0].replace(
        "30 to 39", "10 to 19"
    )
    assert all(text.startswith("the batch takes ") for text in texts)


# --- null timestamps --------------------------------------------------------------------------------------------------


def test_condition_rejecting_nulls_hides_damaged_batch_row(folder: Callable[..., Path]) -> None:
    path = folder(ten(0) + ten(10)[:50] + ten(20))
    everything = lh.col("offset") >= 0
    assert [row["offset"] for row in rows(path, errors="null", where=everything)] == [*range(10), *range(20, 30)]
    nulls = everything | lh.col("tenant", "string").is_null()
    assert [row["offset"] for row in rows(path, errors="null", where=nulls)] == [*range(10), None, *range(20, 30)]
    assert len(rows(path, errors="column", where=everything)) == 21


def test_damaged_first_batch_raises(folder: Callable[..., Path]) -> None:
    path = folder(ten(0)[:-1] + b"\1" + ten(10))
    with pytest.raises(DecodeError, match="the batch at offset 0: the checksum is ") as raised:
        rows(path)
    assert (raised.value.offset, raised.value.byte_offset) == (0, 0)
    assert [row["offset"] for row in rows(path, errors="null")] == [None, *range(10, 20)]


# --- open transactions ------------------------------------------------------------------------------------------------


def test_record_outside_requested_range_is_not_read(folder: Callable[..., Path]) -> None:
    bad = record(5, block=lh.encode([("tenant", b"\xff")], "kafka"))
    good = [record(at, block=lh.encode([("tenant", b"a")], "kafka")) for at in range(10)]
    path = folder(batch(*good[:5], bad, *good[6:], base_offset=0) + ten(10))
    headers: Any = {"tenant": "string"}
    assert [row["offset"] for row in rows(path, headers=headers, end=5)] == [0, 1, 2, 3, 4]
    assert [row["offset"] for row in rows(path, headers=headers, start=6, end=9)] == [6, 7, 8]
    assert [row["offset"] for row in rows(path, headers=headers, last=3)] == [17, 18, 19]
    assert [row["offset"] for row in rows(path, headers=headers, where="offset != 5 and tenant = 'a'")] == [
        offset for offset in range(10) if offset != 5
    ]
    for options in ({"start": 5}, {"start": 3, "end": 7}, {"where": "offset > 4"}):
        with pytest.raises(DecodeError) as raised:
            rows(path, headers=headers, **options)
        assert raised.value.offset == 5


def test_read_committed_ends_at_transaction_open_before_start(folder: Callable[..., Path]) -> None:
    def of(producer: int, first: int) -> bytes:
        return batch(record(0), record(1), base_offset=first, producer=(producer, 0, 0), attributes=TRANSACTIONAL)

    ended = of(1, 0) + mark(2, 1, commit=True)
    log = ended + of(2, 3) + ten(5) + of(1, 15) + mark(17, 1, commit=True) + ten(18)
    path = folder(log, ten(28), bases=(0, 28))
    for start in (3, 4, 10, 17, 20, 28, 30):
        with opened(path, isolation_level="read_committed", start=start) as reader:
            assert reader.read_all().num_rows == 0, start
        assert [(begun.producer_id, begun.first_offset) for begun in reader.open_transactions] == [(2, 3)]
    assert [row["offset"] for row in rows(path, isolation_level="read_committed", start=1)] == [1]
    path = folder(log, ten(28) + mark(38, 2, commit=False), bases=(0, 28))
    read = [row["offset"] for row in rows(path, isolation_level="read_committed", start=4)]
    assert read == [*range(5, 17), *range(18, 38)]


def test_open_transaction_starting_in_damaged_batch_raises(folder: Callable[..., Path]) -> None:
    damaged = ten(10, attributes=TRANSACTIONAL, producer=(7, 0, 0))[:-1] + b"\1"
    path = folder(ten(0) + damaged + ten(20))
    with pytest.raises(DecodeError, match="the batch at offset 10: the checksum is "):
        rows(path, isolation_level="read_committed")
    committed = folder(ten(0) + damaged + mark(20, 7, commit=True) + ten(21))
    with pytest.raises(DecodeError, match="the batch at offset 10: the checksum is "):
        rows(committed, isolation_level="read_committed")
    assert [row["offset"] for row in rows(path, isolation_level="read_committed", end=10)] == list(range(10))


# --- files that change ------------------------------------------------------------------------------------------------


def read_slowly(path: Path, then: Callable[[], object], **options: Any) -> list[int | None]:
    """Read the first batch of rows, change something, and read the others."""
    with opened(path, **options) as reader:
        offsets = next(reader).column("offset").to_pylist()
        then()
        for batch in reader:
            offsets += batch.column("offset").to_pylist()
        assert reader.done <= reader.total
    return offsets


@pytest.fixture
def pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    from letterhead.offsets import segment_file

    monkeypatch.setattr(segment_file, "PIECE_LEN", 1000)


def test_segment_deleted_during_read_is_read_to_end(folder: Callable[..., Path], pieces: None) -> None:
    path = folder(b"".join(map(ten, range(0, 1000, 10))))
    assert read_slowly(path, (path / NAME).unlink) == list(range(1000))


def test_segment_truncated_during_read_ends_there(folder: Callable[..., Path], pieces: None) -> None:
    data = b"".join(map(ten, range(0, 1000, 10)))
    path, size = folder(data), len(data) // 100
    with warnings.catch_warnings(action="error"):
        assert read_slowly(path, lambda: os.truncate(path / NAME, 50 * size)) == list(range(500))
    path = folder(data)
    with pytest.warns(TruncatedTailWarning, match=f"truncated at byte {50 * size}"):
        assert read_slowly(path, lambda: os.truncate(path / NAME, 50 * size + 30)) == list(range(500))
    path = folder(data, ten(1000), bases=(0, 1000))
    offsets_read = read_slowly(path, lambda: os.truncate(path / NAME, 50 * size + 30), errors="null")
    assert offsets_read == [*range(500), None, *range(1000, 1010)]


def test_batch_over_limit_is_not_read(folder: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    from letterhead.offsets.file_window import FileWindow

    large = batch(record(value=bytes(5 << 20)), base_offset=10)
    path = folder(ten(0) + large + ten(11))
    limits = lh.Limits(message_bytes=1000)
    most: list[int] = []
    view = FileWindow.view

    def recording(file: FileWindow, begin: int, end: int) -> memoryview:
        most.append(end - begin)
        return view(file, begin, end)

    monkeypatch.setattr(FileWindow, "view", recording)
    with pytest.raises(DecodeError, match="over the limit of 1000: raise message_bytes") as raised:
        rows(path, limits=limits)
    assert (raised.value.code, raised.value.offset) == ("limit_exceeded", 10)
    assert [row["offset"] for row in rows(path, limits=limits, errors="null")] == [*range(10), None, *range(11, 21)]
    assert max(most) <= 8 << 20


def test_log_may_end_with_several_batches_over_limit(folder: Callable[..., Path]) -> None:
    large = [batch(record(value=bytes(5 << 20)), base_offset=offset) for offset in (10, 11, 12)]
    path, limits = folder(ten(0) + b"".join(large)), lh.Limits(message_bytes=1000)
    with pytest.raises(ValueError, match=r"start is offset 20, but the partition ends at 13$"):
        rows(path, limits=limits, start={3: 20})
    with opened(path, limits=limits, errors="null", start=-1) as reader:
        assert reader.read_all()["offset"].to_pylist() == [None]
        assert [(damaged.first, damaged.last) for damaged in reader.damaged] == [(12, 12)]
    with opened(path, limits=limits, errors="null") as reader:
        reader.read_all()
        assert [(damaged.first, damaged.last) for damaged in reader.damaged] == [(10, 12)]


def test_batch_limit_applies_to_rows_of_batches(folder: Callable[..., Path]) -> None:
    path = folder(ten(0) + batch(record(value=bytes(5 << 20)), base_offset=10) + ten(11))
    [segments] = partitions(path)
    bounds = OffsetBounds.parse("earliest", "latest")
    for limits, expected in ((None, [0, 10, 11]), (lh.Limits(message_bytes=1000), [0, 11])):
        with SegmentsReader(
            KafkaSegments(RowRequest(("base_offset",), limits=limits, view="batches")), [segments], bounds
        ) as reader:
            assert reader.read_all()["base_offset"].to_pylist() == expected


@pytest.mark.timeout(240)
def test_bytes_claiming_many_large_batches_are_not_all_read(
    folder: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    from letterhead.offsets.segment_file import SegmentFile

    # Each of 20,000 headers claims the bytes up to the end of the file.
    size, count = 61, 20_000
    claims = [struct.pack(">qiibI", 10, (count - at) * size - 12, 0, 2, 0) + bytes(size - 21) for at in range(count)]
    path = folder(ten(0) + b"".join(claims))
    computed: list[int] = []
    errors = SegmentFile._errors_of

    def recording(file: Any, batches: list[bytes]) -> Any:
        computed.append(sum(map(len, batches)))
        return errors(file, batches)

    monkeypatch.setattr(SegmentFile, "_errors_of", recording)
    with pytest.raises(DecodeError, match="the batch at offset 10: the checksum is "):
        rows(path)
    assert sum(computed) < 160 << 20


# --- Iggy -------------------------------------------------------------------------------------------------------------


def five(first: int) -> bytes:
    return iggy_batch(*(frame(at) for at in range(5)), base=first)


@pytest.fixture
def iggy(tmp_path: Path) -> Callable[..., Path]:
    return lambda *files, bases=(0,): write_segments(tmp_path / "streams/1/topics/2/partitions/3", files, bases)


def test_flipped_bit_in_last_iggy_batch_is_damage(iggy: Callable[..., Path]) -> None:
    last = five(5)
    for place in (32, 34, 40, 48, 256, 300, len(last) - 1):
        data = bytearray(last)
        data[place] ^= 0x10
        path = iggy(five(0) + bytes(data))
        with warnings.catch_warnings(action="error"):
            with pytest.raises(DecodeError) as raised:
                rows(path, format="iggy-batch")
            rows_read = rows(path, format="iggy-batch", errors="column")
        assert (raised.value.topic, raised.value.partition) == ("1/2", 3)
        assert raised.value.offset is not None
        assert f"(topic 1/2, partition 3, offset {raised.value.offset}, byte " in str(raised.value)
        assert [row["offset"] for row in rows_read[:5]] == list(range(5)), place
        assert any(row["error"] for row in rows_read[5:]), place


@pytest.mark.parametrize("tail", [five(5)[:-1], five(5)[:100], five(5)[:300], bytes(1000)])
def test_incomplete_iggy_batch_is_truncation_only_in_last_file(iggy: Callable[..., Path], tail: bytes) -> None:
    path = iggy(five(0) + tail)
    with pytest.warns(TruncatedTailWarning), opened(path, format="iggy-batch", errors="column") as reader:
        assert [row["offset"] for row in reader.read_all().to_pylist()] == list(range(5))
    path = iggy(five(0) + tail, five(10), bases=(0, 10))
    with pytest.raises(DecodeError, match="offsets 5 to 9 are missing, at most 5 records") as raised:
        rows(path, format="iggy-batch")
    assert raised.value.offset == 5
    with opened(path, format="iggy-batch", errors="column") as reader:
        rows_read = reader.read_all().to_pylist()
    assert [row["offset"] for row in rows_read] == [*range(5), None, *range(10, 15)]
    assert rows_read[5]["error"][0]["message"].startswith(("no whole batch begins here", "1000 bytes of zeros"))
    assert [(damage.first, damage.last) for damage in reader.damaged] == [(5, 9)]


@pytest.mark.parametrize("request_", [{"last": 2}, {"start": -2}, {"start": 7}, {"start": 3000}], ids=str)
def test_requests_for_last_iggy_messages_report_damage_at_end(
    iggy: Callable[..., Path], request_: dict[str, int]
) -> None:
    short = five(5)[:BATCH_LENGTH_AT] + struct.pack("<Q", 1) + five(5)[BATCH_LENGTH_AT + 8 :]
    path = iggy(five(0) + short)
    options: Any = {"format": "iggy-batch", **request_}
    with pytest.raises(DecodeError):
        rows(path, **options)
    with opened(path, errors="column", **options) as reader:
        assert reader.read_all().to_pylist()[-1]["error"]
    path = iggy(five(0) + five(5)[:-1])
    if "start" in request_ and request_["start"] > 0:
        with pytest.raises(ValueError, match=f"ends at offset 5: .*truncated at byte {len(five(0))}"):
            rows(path, **options)
    else:
        with pytest.warns(TruncatedTailWarning):
            assert [row["offset"] for row in rows(path, **options)] == [3, 4]


def test_iggy_segment_cut_or_deleted_during_read_ends_there(
    iggy: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    from letterhead.offsets import segment_file

    monkeypatch.setattr(segment_file, "PIECE_LEN", 2000)
    data = b"".join(map(five, range(0, 100, 5)))
    path = iggy(data)
    assert read_slowly(path, (path / NAME).unlink, format="iggy-batch") == list(range(100))
    path = iggy(data)
    assert read_slowly(path, lambda: os.truncate(path / NAME, len(data) // 2), format="iggy-batch") == list(range(50))


def test_iggy_message_errors_can_be_grouped(iggy: Callable[..., Path]) -> None:
    messages = iggy_batch(*(frame(at, b"x", b"\1\2" if at % 2 else b"") for at in range(8)), base=0)
    path = iggy(messages)
    bad = [row for row in rows(path, format="iggy-batch", errors="column") if row["error"]]
    assert [row["offset"] for row in bad] == [1, 3, 5, 7]
    assert len({row["error"][0]["message"] for row in bad}) == 1
    with pytest.raises(DecodeError) as raised:
        rows(path, format="iggy-batch")
    assert raised.value.offset == 1


def test_schemas_are_the_same_with_and_without_errors(folder: Callable[..., Path]) -> None:
    path = folder(ten(0) + ten(10)[:50] + ten(20))
    with opened(path, errors="column") as reader:
        assert {batch.schema for batch in reader} == {reader.schema}
    assert pa.types.is_list(reader.schema.field("error").type)
