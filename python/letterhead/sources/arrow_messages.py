"""Check messages of Arrow's IPC format before Arrow decompresses them: :class:`CheckedMessages`.

::

    ffffffff  metadata length (int32)  metadata (flatbuffer, padded)  body      repeated; a length of 0 ends the stream

A compressed buffer begins with its decompressed length (int64, or -1 if it is not compressed). Arrow allocates that
many bytes, even if fewer bytes follow.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from letterhead.errors import DamagedTableError
from letterhead.limits import Limits, how_to_raise

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["CheckedMessages", "checked_file_batches", "most_decompressed"]

_CONTINUATION = b"\xff\xff\xff\xff"
_PIECE = 1 << 20
# Field numbers of the tables Message, RecordBatch and DictionaryBatch in Arrow's Flatbuffers schema.
_HEADER_TYPE, _HEADER, _BODY_LENGTH = 1, 2, 3
_BUFFERS, _COMPRESSION = 2, 3
_DATA = 1
_IS_DICTIONARY, _IS_BATCH = 2, 3
# Field numbers of the table Footer.
_DICTIONARIES, _BATCHES = 2, 3
_FOOTER_END = b"\0\0\0\0ARROW1"
"""End of a file: the size of the footer, and the magic bytes."""

FACTOR = 20
"""Expansion factor that is always allowed for compressed data, regardless of the limit."""


def most_decompressed(compressed: int, limits: Limits | None) -> int:
    """Return the maximum decompressed size of compressed bytes."""
    limit = (limits or Limits()).filled().decompressed_bytes or 0
    return max(limit, FACTOR * compressed)


class CheckedMessages:
    """File for Arrow's stream reader that passes only messages of bounded decompressed size.

    Parameters
    ----------
    file : binary file
        The stream, at the beginning of a message.
    label : str
        Name of the file in errors.
    limits : Limits or None
        ``decompressed_bytes`` is the limit of a batch.
    """

    closed = False

    def __init__(self, file: BinaryIO, label: str, limits: Limits | None) -> None:
        self._file = file
        self._label = label
        self._limits = limits
        self._parts = self._checked()
        self._part = memoryview(b"")

    def read(self, size: int = -1) -> memoryview | bytes:
        """Read ``size`` bytes, or the rest of the file."""
        if 0 < size <= len(self._part):
            taken, self._part = self._part[:size], self._part[size:]
            return taken
        taken_parts = []
        while size != 0:
            if not self._part:
                self._part = memoryview(next(self._parts, b""))
            taken = self._part if size < 0 else self._part[:size]
            if not taken:
                break
            self._part = self._part[len(taken) :]
            taken_parts.append(taken)
            size -= len(taken) if size > 0 else 0
        return b"".join(taken_parts)

    def _checked(self) -> Iterator[bytes]:
        """Yield the parts of each message after checking its sizes against the limit."""
        while True:
            prefix = self._take(4)
            if prefix == _CONTINUATION:
                prefix += self._take(4)
            length = int.from_bytes(prefix[-4:], "little", signed=True)
            if length <= 0:
                yield prefix
                return
            metadata = self._take(length)
            body_length, buffers = _checked_sizes(metadata, self._label)
            body = self._take(body_length)
            _check(body, buffers, self._label, self._limits)
            yield prefix + metadata
            if body:
                yield body

    def _take(self, size: int) -> bytes:
        """Read bytes in pieces, which bounds memory by the actual file size."""
        pieces = []
        while size > 0 and (piece := self._file.read(min(size, _PIECE))):
            pieces.append(piece)
            size -= len(piece)
        return b"".join(pieces)


def checked_file_batches(
    file: BinaryIO, label: str, limits: Limits | None
) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Return the schema and batches of a file, located by its footer, with the same checks as for a stream.

    Files that Polars writes have their schema in the footer only.
    """
    import pyarrow as pa

    try:
        dictionaries, batches = _file_blocks(file)
    except (struct.error, IndexError):
        raise DamagedTableError(f"cannot read {label}: it is damaged: its footer is invalid") from None
    for block in dictionaries:
        _check_block(file, block, label, limits)
    reader = pa.ipc.open_file(pa.PythonFile(file, "r"))

    def read() -> Iterator[pa.RecordBatch]:
        for index, block in enumerate(batches):
            _check_block(file, block, label, limits)
            yield reader.get_batch(index)

    return reader.schema, read()


class _Block(NamedTuple):
    """Position of a message in a file."""

    offset: int
    metadata_length: int
    body_length: int


def _file_blocks(file: BinaryIO) -> tuple[list[_Block], list[_Block]]:
    """Return the blocks of dictionaries and of batches in the footer."""
    end = file.seek(-len(_FOOTER_END), os.SEEK_END)
    size = int.from_bytes(file.read(4), "little", signed=True)
    if not 0 < size <= end:
        raise IndexError
    file.seek(end - size)
    data = file.read(size)
    footer = _Table(data, struct.unpack_from("<I", data)[0])
    return tuple([_Block(*block) for block in footer.structs(field, "<qi4xq")] for field in (_DICTIONARIES, _BATCHES))  # type: ignore[return-value]


def _check_block(file: BinaryIO, block: _Block, label: str, limits: Limits | None) -> None:
    file.seek(block.offset)
    metadata = file.read(block.metadata_length).removeprefix(_CONTINUATION)[4:]
    body_length, buffers = _checked_sizes(metadata, label)
    if buffers:
        _check(file.read(body_length), buffers, label, limits)


def _check(body: bytes, buffers: list[tuple[int, int]], label: str, limits: Limits | None) -> None:
    """Raise DamagedTableError if the stated decompressed size of buffers exceeds the limit."""
    total = sum(
        max(0, int.from_bytes(body[offset : offset + 8], "little", signed=True))
        for offset, length in buffers
        if length >= 8
    )
    most = most_decompressed(len(body), limits)
    if total > most:
        raise DamagedTableError(
            f"cannot read {label}: a batch of {len(body):,} bytes decompresses to {total:,}, over the limit of "
            f"{most:,}: {how_to_raise('decompressed_bytes')}"
        )


def _checked_sizes(metadata: bytes, label: str) -> tuple[int, list[tuple[int, int]]]:
    try:
        return _sizes(metadata)
    except (struct.error, IndexError):
        raise DamagedTableError(f"cannot read {label}: it is damaged: a message has invalid metadata") from None


def _sizes(metadata: bytes) -> tuple[int, list[tuple[int, int]]]:
    """Return the body length of a message, and the offset and length of each buffer if the body is compressed."""
    message = _Table(metadata, struct.unpack_from("<I", metadata)[0])
    body_length = message.number(_BODY_LENGTH, "<q")
    kind = message.number(_HEADER_TYPE, "<B")
    if kind not in (_IS_DICTIONARY, _IS_BATCH):
        return body_length, []
    batch = message.table(_HEADER)
    if batch is not None and kind == _IS_DICTIONARY:
        batch = batch.table(_DATA)
    if batch is None or batch.position(_COMPRESSION) is None:
        return body_length, []
    return body_length, batch.structs(_BUFFERS, "<qq")


class _Table:
    """Table of a flatbuffer, whose fields are located by its vtable."""

    def __init__(self, data: bytes, start: int) -> None:
        self._data = data
        self._start = start
        self._vtable = start - struct.unpack_from("<i", data, start)[0]
        if self._vtable < 0:
            raise IndexError
        self._size: int = struct.unpack_from("<H", data, self._vtable)[0]

    def position(self, field: int) -> int | None:
        """Return the position of a field; None if the table lacks the field."""
        entry = 4 + 2 * field
        if entry + 2 > self._size:
            return None
        offset: int = struct.unpack_from("<H", self._data, self._vtable + entry)[0]
        return self._start + offset if offset else None

    def number(self, field: int, form: str) -> int:
        """Return the number in a field; 0 if the field is missing."""
        at = self.position(field)
        return 0 if at is None else int(struct.unpack_from(form, self._data, at)[0])

    def table(self, field: int) -> _Table | None:
        """Return the table that a field refers to; None if the field is missing."""
        at = self.position(field)
        return None if at is None else _Table(self._data, at + struct.unpack_from("<I", self._data, at)[0])

    def structs(self, field: int, form: str) -> list[tuple[Any, ...]]:
        """Return the vector of structs of numbers in a field."""
        at = self.position(field)
        if at is None:
            return []
        at += struct.unpack_from("<I", self._data, at)[0]
        count: int = struct.unpack_from("<I", self._data, at)[0]
        end = at + 4 + struct.calcsize(form) * count
        if end > len(self._data):
            raise IndexError
        return list(struct.iter_unpack(form, self._data[at + 4 : end]))
