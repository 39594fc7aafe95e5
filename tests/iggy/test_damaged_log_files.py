"""Damaged log files of Iggy: one row reports a batch, reading continues after it, and offsets are in order."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import letterhead as lh
from letterhead.errors import DecodeError, TruncatedTailWarning
from letterhead.offsets.segments import SegmentsReader
from tests.helpers.batch_bytes import HEADER_LEN, batch, frame
from tests.helpers.command import runner
from tests.helpers.log_bytes import write_segments

OFFSET_AT, TIME_AT, LENGTH_AT, CHECKSUM_AT, COUNT_AT = 8, 16, 32, 40, 48
DELTA_AT, PAYLOAD_LEN_AT = HEADER_LEN + 24, HEADER_LEN + 36


def three(first: int) -> bytes:
    return batch(*(frame(at, b"v%d" % (first + at)) for at in range(3)), base=first, timestamp=10**15)


SIZE = len(three(3))


def changed(data: bytes, at: int, mask: int = 1) -> bytes:
    result = bytearray(data)
    result[at] ^= mask
    return bytes(result)


@pytest.fixture
def folder(tmp_path: Path) -> Callable[..., Path]:
    """Write the directory of a partition, a file for each base offset."""
    return lambda *files, bases=(0,): write_segments(tmp_path / "streams/1/topics/2/partitions/3", files, bases)


def opened(path: Path, **options: Any) -> SegmentsReader:
    return lh.read.segments(path, **{"format": "iggy-batch", "columns": ["offset", "payload"], **options})


def rows(path: Path, **options: Any) -> list[dict[str, Any]]:
    with opened(path, **options) as reader:
        result: list[dict[str, Any]] = reader.read_all().to_pylist()
    return result


def offsets(path: Path, **options: Any) -> list[int | None]:
    return [row["offset"] for row in rows(path, **options)]


WHOLE_BATCH = {
    "the base offset": changed(three(3), OFFSET_AT + 1),
    "the lowest bit of the base offset": changed(three(3), OFFSET_AT),
    "the highest bit of the base offset": changed(three(3), OFFSET_AT + 7, 0x80),
    "the time": changed(three(3), TIME_AT + 5),
    "a larger length": changed(three(3), LENGTH_AT, 0x40),
    "a length beyond the file": changed(three(3), LENGTH_AT + 5),
    "a length of a header": three(3)[:LENGTH_AT] + struct.pack("<Q", HEADER_LEN) + three(3)[LENGTH_AT + 8 :],
    "the checksum": changed(three(3), CHECKSUM_AT),
    "a smaller count": changed(three(3), COUNT_AT),
    "a larger count": changed(three(3), COUNT_AT, 4),
    "no messages": changed(three(3), COUNT_AT, 3),
    "the first delta": changed(three(3), DELTA_AT + 1),
    "the length of a payload": changed(three(3), PAYLOAD_LEN_AT, 4),
    "a smaller length of a payload": changed(three(3), PAYLOAD_LEN_AT, 2),
}
"""Damage of the second batch, whose messages mean nothing after it."""


@pytest.mark.parametrize("damaged", WHOLE_BATCH.values(), ids=WHOLE_BATCH)
def test_damaged_batch_is_one_row_and_reading_continues(folder: Callable[..., Path], damaged: bytes) -> None:
    path = folder(three(0) + damaged + b"".join(map(three, range(6, 300, 3))))
    for errors in ("column", "null"):
        with opened(path, errors=errors) as reader:
            result = reader.read_all().to_pylist()
        assert [row["offset"] for row in result] == [0, 1, 2, None, *range(6, 300)]
        assert [row["payload"] for row in result[3:5]] == [None, b"v6"]
        assert [(at.position, at.end, at.first, at.last) for at in reader.damaged] == [(SIZE, 2 * SIZE, 3, 5)]
        assert reader.truncated == []
    [error] = [row["error"][0] for row in rows(path, errors="column") if row["error"]]
    assert "offsets 3 to 5 are missing, at most 3 records" in error["message"]
    with pytest.raises(DecodeError, match=r"the batch at offset 3: .*: offsets 3 to 5 are missing") as raised:
        rows(path)
    assert (raised.value.topic, raised.value.partition, raised.value.offset) == ("1/2", 3, 3)
    assert (raised.value.code, raised.value.byte_offset) == (error["code"], SIZE)


@pytest.mark.parametrize("damaged", WHOLE_BATCH.values(), ids=WHOLE_BATCH)
@pytest.mark.parametrize(
    "request_", [{"start": 4}, {"start": 5}, {"end": 4}, {"end": 6}, {"where": "offset = 5"}, {"last": 4}], ids=str
)
def test_damage_is_reported_if_any_message_in_batch_is_requested(
    folder: Callable[..., Path], damaged: bytes, request_: dict[str, Any]
) -> None:
    path = folder(three(0) + damaged + three(6))
    with pytest.raises(DecodeError):
        rows(path, **request_)
    with opened(path, errors="column", **request_) as reader:
        result = reader.read_all().to_pylist()
    assert [row["offset"] for row in result if row["error"]] == [None]
    assert len(reader.damaged) == 1
    first, end = request_.get("start", 0), request_.get("end", 9)
    if "where" not in request_ and "last" not in request_:
        expected = [offset for offset in (0, 1, 2, 6, 7, 8) if first <= offset < end]
        assert [row["offset"] for row in result if not row["error"]] == expected


@pytest.mark.parametrize("damaged", WHOLE_BATCH.values(), ids=WHOLE_BATCH)
def test_damage_is_silent_if_no_message_in_batch_is_requested(folder: Callable[..., Path], damaged: bytes) -> None:
    path = folder(three(0) + damaged + three(6))
    assert offsets(path, start=6) == offsets(path, last=3) == offsets(path, where="offset >= 6") == [6, 7, 8]
    assert offsets(path, end=3) == [0, 1, 2]


def test_damaged_message_has_own_row(folder: Callable[..., Path]) -> None:
    path = folder(three(0) + changed(three(3), -1) + three(6))
    with opened(path, errors="column") as reader:
        result = reader.read_all().to_pylist()
    assert [row["offset"] for row in result] == list(range(9))
    assert [row["offset"] for row in result if row["error"]] == [5]
    assert reader.damaged == []


def test_error_byte_is_independent_of_rows_read_before(folder: Callable[..., Path]) -> None:
    path = folder(b"".join(map(three, range(0, 30, 3))) + changed(three(30), -1) + three(33))
    requests: list[dict[str, Any]] = [{}, {"start": 31}, {"where": "offset = 32"}, {"start": 3, "end": 33}]
    in_batch, in_file = set(), set()
    for request in requests:
        [error] = [row["error"][0] for row in rows(path, errors="column", **request) if row["error"]]
        in_batch.add(error["byte_offset"])
        with pytest.raises(DecodeError) as raised:
            rows(path, **request)
        in_file.add(raised.value.byte_offset)
    before, in_frame = b"".join(map(three, range(0, 30, 3))), len(three(30)) - len(frame(2, b"v32"))
    assert (in_batch, in_file) == ({in_frame}, {len(before) + in_frame})


@pytest.mark.parametrize(
    ("bases", "before", "missing"),
    [((0, 3, 2), 1, (3, 5)), ((0, 3, 3), 1, (3, 5)), ((0, 9, 3), 1, (3, 11)), ((3, 0), 0, (0, 5))],
    ids=str,
)
def test_out_of_order_batches_are_damage(
    folder: Callable[..., Path], bases: tuple[int, ...], before: int, missing: tuple[int, int]
) -> None:
    path = folder(b"".join(map(three, (*bases, 20))))
    with pytest.raises(DecodeError) as raised:
        rows(path)
    assert raised.value.code == "not_in_order"
    with opened(path, errors="column") as reader:
        result = reader.read_all().to_pylist()
    assert [row["offset"] for row in result] == [*range(3 * before), None, 20, 21, 22]
    assert [damage.first for damage in reader.damaged] == [missing[0]]
    assert offsets(path, errors="null") == [row["offset"] for row in result]


def test_batch_in_two_files_is_read_at_most_once(folder: Callable[..., Path]) -> None:
    path = folder(three(0) + three(3), three(3), bases=(0, 6))
    with pytest.raises(DecodeError, match="it begins at offset 3, but the least possible is 6") as raised:
        rows(path)
    assert raised.value.code == "not_in_order"
    assert offsets(path, errors="null") == [*range(6), None]
    path = folder(three(0) + three(3) + three(6), three(6), bases=(0, 6))
    assert offsets(path) == [*range(9)]


def test_gaps_between_batches_are_not_damage(folder: Callable[..., Path]) -> None:
    path = folder(three(0) + three(9) + three(40), three(60), bases=(0, 50))
    assert offsets(path) == [0, 1, 2, 9, 10, 11, 40, 41, 42, 60, 61, 62]
    assert offsets(path, start=4, end=11) == [9, 10]
    assert offsets(path, start=44) == [60, 61, 62]


@pytest.mark.parametrize("tail", [b"\xff" * 300, b"a text, and not a batch of messages " * 9, three(3)[:100]])
def test_foreign_bytes_at_end_are_damage(folder: Callable[..., Path], tail: bytes) -> None:
    path = folder(three(0) + three(3) + tail)
    with pytest.raises(DecodeError) as raised:
        rows(path)
    assert raised.value.code == "not_in_order"
    with opened(path, errors="column") as reader:
        assert [row["offset"] for row in reader.read_all().to_pylist()] == [*range(6), None]
    assert (len(reader.damaged), reader.truncated) == (1, [])


def test_each_of_several_damaged_batches_is_reported(folder: Callable[..., Path]) -> None:
    batches = [*map(three, range(0, 3000, 3))]
    kinds = random.Random(7).choices([OFFSET_AT, TIME_AT, LENGTH_AT, COUNT_AT, PAYLOAD_LEN_AT], k=20)
    numbers = range(5, 1000, 50)
    for number, at in zip(numbers, kinds, strict=True):
        batches[number] = changed(batches[number], at, 0x40)
    with opened(folder(b"".join(batches)), errors="column") as reader:
        result = reader.read_all().to_pylist()
    lost = {3 * number + at for number in numbers for at in range(3)}
    assert [row["offset"] for row in result if not row["error"]] == [at for at in range(3000) if at not in lost]
    assert [(damage.first, damage.last) for damage in reader.damaged] == [(3 * at, 3 * at + 2) for at in numbers]


def test_command_names_missing_offsets(
    folder: Callable[..., Path], capfdbinary: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = folder(three(0) + WHOLE_BATCH["a smaller count"] + three(6))
    result = runner(capfdbinary, monkeypatch)("read", path, "--columns", "offset", "--csv", "--errors", "skip", "-q")
    assert (result.code, result.lines) == (1, ['"offset"', "0", "1", "2", "6", "7", "8"])
    assert "offsets 3 to 5 are missing, at most 3 records" in result.err


def test_damage_before_a_truncated_end_is_reported_with_it(folder: Callable[..., Path]) -> None:
    path = folder(three(0) + WHOLE_BATCH["the time"] + three(6) + three(9)[:-1])
    with pytest.warns(TruncatedTailWarning), opened(path, errors="column") as reader:
        assert [row["offset"] for row in reader.read_all().to_pylist()] == [0, 1, 2, None, 6, 7, 8]
    assert (len(reader.damaged), len(reader.truncated)) == (1, 1)


def test_file_not_named_by_offset_starts_at_first_message(tmp_path: Path) -> None:
    file = tmp_path / "copy.log"
    file.write_bytes(three(1 << 40) + three((1 << 40) + 3))
    assert offsets(file) == [*range(1 << 40, (1 << 40) + 6)]
    file.write_bytes(b"")
    assert offsets(file) == []


def test_unreadable_headers_do_not_damage_rest_of_batch(folder: Callable[..., Path]) -> None:
    path = folder(three(0) + batch(frame(2, b"x", b"\1\2"), base=3) + three(6))
    with opened(path, columns=["offset", "headers"], errors="column") as reader:
        result = reader.read_all().to_pylist()
    assert [row["offset"] for row in result if row["error"]] == [5]
    assert reader.damaged == []


@pytest.mark.parametrize("after", [three(6), b""], ids=["before another batch", "at the end"])
def test_no_flipped_bit_hides_or_changes_message_unnoticed(folder: Callable[..., Path], after: bytes) -> None:
    whole = {row["offset"]: row for row in rows(folder(three(0) + three(3) + after))}
    for at in range(SIZE):
        path = folder(three(0) + changed(three(3), at, 1 << at % 8) + after)
        with pytest.raises(DecodeError):
            rows(path)
        with opened(path, errors="column") as reader:
            result = reader.read_all().to_pylist()
        good = [row for row in result if row.pop("error") is None]
        assert good == [whole[row["offset"]] for row in good], at
        lost = whole.keys() - {row["offset"] for row in good}
        assert lost <= {3, 4, 5}, at
        assert len(reader.damaged) == 1 or len(lost) == len(result) - len(good), at


def test_truncated_file_of_any_name_is_damaged_before_another(tmp_path: Path) -> None:
    (tmp_path / "first.bin").write_bytes(three(0) + three(3)[:-1])
    (tmp_path / "second.bin").write_bytes(three(6))
    files = [tmp_path / "first.bin", tmp_path / "second.bin"]
    with lh.read.segments(files, format="iggy-batch", columns=["offset"], errors="null") as reader:
        assert reader.read_all().column("offset").to_pylist() == [0, 1, 2, None, 6, 7, 8]
        assert (reader.truncated, [(damage.first, damage.last) for damage in reader.damaged]) == ([], [(3, 5)])
