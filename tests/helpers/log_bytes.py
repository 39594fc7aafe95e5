"""Logs made by hand: record batches, the marks of transactions, and the files beside a segment."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from pathlib import Path

from tests.reference import varint
from tests.reference.crc32c import crc32c

TRANSACTIONAL, CONTROL = 0x10, 0x20


def record(
    offset: int = 0, key: bytes | None = b"k", value: bytes | None = b"v", block: bytes = b"\0", time: int = 0
) -> bytes:
    def run(data: bytes | None) -> bytes:
        return varint.write(-1) if data is None else varint.write(len(data)) + data

    body = b"\0" + varint.write(time, 64) + varint.write(offset) + run(key) + run(value) + block
    return varint.write(len(body)) + body


def batch(
    *records: bytes,
    base_offset: int = 100,
    attributes: int = 0,
    times: tuple[int, int] = (1000, 2000),
    producer: tuple[int, int, int] = (-1, -1, -1),
    count: int | None = None,
    magic: int = 2,
) -> bytes:
    covered = struct.pack(">hi2q", attributes, max(len(records) - 1, 0), *times)
    covered += struct.pack(">qhii", *producer, len(records) if count is None else count) + b"".join(records)
    return struct.pack(">qiibI", base_offset, len(covered) + 9, 7, magic, crc32c(covered)) + covered


def mark(offset: int, producer_id: int, *, commit: bool) -> bytes:
    """Write what ends a transaction."""
    key, value = struct.pack(">hh", 0, int(commit)), struct.pack(">hi", 0, 0)
    return batch(
        record(key=key, value=value),
        base_offset=offset,
        attributes=TRANSACTIONAL | CONTROL,
        producer=(producer_id, 0, -1),
    )


def write_index(log: Path, entries: list[tuple[int, int]], *, room: int = 0) -> None:
    """Write relative offsets and positions, and zeros as a broker leaves them while it writes."""
    log.with_suffix(".index").write_bytes(b"".join(struct.pack(">ii", *entry) for entry in entries) + bytes(8 * room))


def write_time_index(log: Path, entries: list[tuple[int, int]], *, room: int = 0) -> None:
    """Write times and relative offsets."""
    data = b"".join(struct.pack(">qi", *entry) for entry in entries)
    log.with_suffix(".timeindex").write_bytes(data + bytes(12 * room))


def write_transaction_index(log: Path, entries: list[tuple[int, int, int]]) -> None:
    """Write producers of aborted transactions, their first offsets and those of their marks."""
    data = b"".join(struct.pack(">hqqqq", 0, *entry, entry[2] + 1) for entry in entries)
    log.with_suffix(".txnindex").write_bytes(data)


def write_segments(directory: Path, files: Iterable[bytes], bases: Iterable[int]) -> Path:
    """Write the directory of a partition, a file for each base offset, and return it."""
    directory.mkdir(parents=True, exist_ok=True)
    for base, data in zip(bases, files, strict=True):
        (directory / f"{base:020}.log").write_bytes(data)
    return directory
