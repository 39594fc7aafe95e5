"""Which log files are of a server of Iggy: by the first batch, or by the path while there is none."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from letterhead.iggy.segments import is_iggy_log
from tests.helpers.batch_bytes import HEADER_LEN, batch, frame

FIRST = batch(frame(0), frame(1), base=7)


def with_length(length: int) -> bytes:
    return FIRST[:32] + struct.pack("<Q", length) + FIRST[40:]


@pytest.mark.parametrize(
    ("name", "data", "expected"),
    [
        ("00000000000000000007.log", FIRST, True),
        ("00000000000000000007.log", FIRST + FIRST[:9], True),
        ("any.log", FIRST, True),
        ("00000000000000000006.log", FIRST, False),
        ("00000000000000000007.log", FIRST[:-1], False),
        ("00000000000000000007.log", with_length(HEADER_LEN), True),
        ("00000000000000000007.log", with_length(HEADER_LEN - 1), False),
        ("00000000000000000007.log", FIRST[:48] + bytes(4) + FIRST[52:], False),
        ("00000000000000000007.log", b"", False),
    ],
    ids=[
        "whole",
        "truncated after it",
        "unnamed",
        "another offset",
        "cut",
        "of a header",
        "shorter",
        "no messages",
        "empty",
    ],
)
def test_iggy_log_starts_with_complete_batch(tmp_path: Path, name: str, data: bytes, expected: bool) -> None:
    (tmp_path / name).write_bytes(data)
    assert is_iggy_log(tmp_path / name) is expected


def test_empty_log_is_recognized_by_path(tmp_path: Path) -> None:
    for path, expected in (("streams/1/topics/2/partitions/0", True), ("streams/1/topics/2/segments/0", False)):
        file = tmp_path / path / "00000000000000000000.log"
        file.parent.mkdir(parents=True)
        file.touch()
        assert is_iggy_log(file) is expected
