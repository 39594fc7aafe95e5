"""After damage a log is read on in a time that grows with its size, not with its square."""

from __future__ import annotations

import os
import random
import struct
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from letterhead.kip82 import segment as segments
from letterhead.kip82.checksums import Checksums
from letterhead.kip82.segment import SegmentFile, StoredMessages
from tests.helpers.strategies import few


def message(offset: int, value: bytes = b"", *, good: bool = True, size: int | None = None) -> bytes:
    """Write a message of magic 0."""
    body = struct.pack(">bbii", 0, 0, -1, len(value)) + value
    crc = zlib.crc32(body) ^ (0 if good else 1)
    return struct.pack(">qiI", offset, len(body) + 4 if size is None else size, crc) + body


def undecodable(offset: int) -> bytes:
    """Write a message with a right checksum whose key length is wrong."""
    body = struct.pack(">bbii", 0, 0, -5, -7)
    return struct.pack(">qiI", offset, len(body) + 4, zlib.crc32(body)) + body


def overlapping(size: int) -> bytes:
    """Write beginnings of messages, each of which would take nearly all that follows."""
    return b"".join(struct.pack(">qiI", 5, size - at - 12 - at % 7, 0) + b"\0\0" for at in range(0, size - 100, 18))


ATTACKS = {
    "overlapping": overlapping,
    "wrong checksums": lambda size: b"".join(message(n, good=False) for n in range(size // 26)),
    "every second checksum": lambda size: b"".join(message(n, good=n % 2 == 0) for n in range(size // 26)),
    "undecodable": lambda size: b"".join(undecodable(n) for n in range(size // 26)),
    "zeros": bytes,
    "random": random.Random(82).randbytes,
}


class Counted:
    """Counts the bytes that are read, and those whose checksum is computed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.bytes = 0
        read, crc = os.pread, zlib.crc32

        def pread(descriptor: int, size: int, position: int) -> bytes:
            data = read(descriptor, size, position)
            self.bytes += len(data)
            return data

        def crc32(data: bytes, value: int = 0) -> int:
            self.bytes += len(data)
            return crc(data, value)

        monkeypatch.setattr(os, "pread", pread)
        monkeypatch.setattr(zlib, "crc32", crc32)


def work(directory: Path, data: bytes, gaps: bool, monkeypatch: pytest.MonkeyPatch) -> int:
    """Read a file, and return how many bytes were looked at."""
    directory.mkdir()
    (directory / segments.segment_name(0)).write_bytes(data)
    with monkeypatch.context() as patched:
        counted = Counted(patched)
        for _ in SegmentFile(directory, 0, "typed", None, gaps).read():
            pass
        return counted.bytes


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("attack", ATTACKS)
def test_work_after_damage_grows_with_the_size(
    attack: str, gaps: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = 1 << 16
    once, four = (work(tmp_path / str(times), ATTACKS[attack](times * size), gaps, monkeypatch) for times in (1, 4))
    # Sizes that pass the end of the smaller file add some; the square would be 16 times.
    assert four < 10 * once + (1 << 21)


@pytest.mark.parametrize("gaps", [False, True])
def test_messages_found_after_damage_are_complete(gaps: bool, tmp_path: Path) -> None:
    large = message(2, bytes(300_000))
    data = message(0) + message(1, b"x" * 9000, good=False) + overlapping(5000) + large + message(3)
    (tmp_path / segments.segment_name(0)).write_bytes(data)
    read = list(SegmentFile(tmp_path, 0, "typed", None, gaps).read())
    assert [part.offset for part in read if isinstance(part, StoredMessages)] == [0, 2, 3]
    [damage] = [part for part in read if not isinstance(part, StoredMessages)]
    assert (damage.position, damage.end) == (26, data.index(large))


@few
@given(st.binary(max_size=200), st.integers(0, 20_000), st.data())
def test_checksums_of_parts_match_their_bytes(
    tmp_path_factory: pytest.TempPathFactory, seed: bytes, size: int, data: st.DataObject
) -> None:
    content = random.Random(seed).randbytes(size)
    path = tmp_path_factory.getbasetemp() / "content"
    path.write_bytes(content)
    begin = data.draw(st.integers(0, size))
    with path.open("rb") as file:
        checksums = Checksums(file.fileno(), begin)
        for _ in range(5):
            start = data.draw(st.integers(begin, size))
            end = data.draw(st.integers(start, size))
            assert checksums.part(start, end) == zlib.crc32(content[start:end])
