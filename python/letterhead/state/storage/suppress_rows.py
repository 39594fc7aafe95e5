"""Rows of the buffer of ``suppress()`` in its changelog: :func:`read_suppressed`, :func:`write_suppressed`.

::

    int64 timestamp ‖ int64 offset ‖ topic ‖ int32 partition ‖ int32 headers ‖ ( key ‖ value ) …    the last record
    prior value ‖ old value ‖ new value ‖ int64 buffer time
    each text and value: int32 size ‖ bytes; -1 is null, and an old size of -2 is the prior value

The header ``v`` of a changelog record is ``03``. From Kafka 4.4 on, the headers ``vh.old`` and ``vh.prior`` have the
bytes that precede the old and the prior value in a store with headers: ``varint size ‖ headers ‖ int64 timestamp``. A prior
value that equals the old one, with its headers, has no ``vh.prior``. Kafka 4.3 and older write neither.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

from letterhead._invariants import require
from letterhead.errors import DecodeError
from letterhead.headers import Headers
from letterhead.message import Message
from letterhead.one_message import decode, encode

__all__ = ["Buffered", "Suppressed", "read_suppressed", "write_suppressed"]

VERSION = b"\3"
OLD, PRIOR = "vh.old", "vh.prior"


class Buffered(NamedTuple):
    """A value in the buffer; its timestamp and headers are None if the changelog does not have them."""

    value: bytes | None
    timestamp: int | None
    headers: Headers | None


class Suppressed(NamedTuple):
    """A row of the buffer.

    Attributes
    ----------
    topic : str
        Topic of the last record that changed the row.
    partition, offset : int
        Its partition and offset.
    time : int
        The time by which the row leaves the buffer, in milliseconds.
    new, old, prior : Buffered
        The value that is emitted, the value that it replaced, and the value before the row was in the buffer.
    """

    topic: str
    partition: int
    offset: int
    time: int
    new: Buffered
    old: Buffered
    prior: Buffered


def read_suppressed(value: bytes, headers: Sequence[tuple[str, bytes | None]]) -> Suppressed:
    """Parse a changelog record of the buffer.

    Parameters
    ----------
    value : bytes
        Value of the record, which is not a tombstone.
    headers : sequence of (str, bytes or None)
        Headers of the record.

    Raises
    ------
    DecodeError
        If the version is not 3, or the bytes are not valid.
    """
    last = dict(headers)
    version = last.get("v")
    if version != VERSION:
        raise _decode_error(
            "the header v does not name version 3 of the changelog of suppress(): is the topic another one?", 0
        )
    cursor = _Cursor(value)
    timestamp, offset = cursor.integer(">q"), cursor.integer(">q")
    topic = cursor.text()
    partition, count = cursor.integer(">i"), cursor.integer(">i")
    if count > len(value):
        raise _decode_error(f"the count of headers {count} is larger than the row", cursor.at - 4)
    # Versions before 2.2 wrote -1 for no headers.
    record_headers = Headers((cursor.text(), cursor.sized()) for _ in range(max(count, 0)))
    prior = cursor.sized()
    size = cursor.integer(">i")
    old = prior if size == -2 else cursor.value(size)
    new = cursor.sized()
    time = cursor.integer(">q")
    if cursor.at != len(value):
        raise _decode_error("there are bytes after the buffer time", cursor.at, "trailing_bytes")
    old_prefix = last.get(OLD)
    prior_prefix = last.get(PRIOR, old_prefix if size == -2 else None)
    return Suppressed(
        topic,
        partition,
        offset,
        time,
        Buffered(new, timestamp, record_headers),
        _encode_buffered(old, old_prefix),
        _encode_buffered(prior, prior_prefix),
    )


def write_suppressed(row: Suppressed) -> tuple[bytes, list[tuple[str, bytes | None]]]:
    """Return value and headers of a changelog record of the buffer, as Kafka 4.4 writes them.

    Values without timestamps are written as by Kafka 4.3, which does not know their headers.
    """
    headers: list[tuple[str, bytes | None]] = [("v", VERSION)]
    if row.prior != row.old and row.prior.timestamp is not None:
        headers.append((PRIOR, _encode_prefix(row.prior)))
    if row.old.timestamp is not None:
        headers.append((OLD, _encode_prefix(row.old)))
    record_headers = row.new.headers or Headers()
    name = row.topic.encode()
    parts = [struct.pack(">qqi", row.new.timestamp or 0, row.offset, len(name)), name]
    parts.append(struct.pack(">ii", row.partition, len(record_headers)))
    for key, value in cast("Sequence[tuple[str, bytes | None]]", record_headers):
        parts += [_with_size(key.encode()), _with_size(value)]
    same = row.old.value is not None and row.old.value == row.prior.value
    parts += [
        _with_size(row.prior.value),
        struct.pack(">i", -2) if same else _with_size(row.old.value),
        _with_size(row.new.value),
    ]
    parts.append(struct.pack(">q", row.time))
    return b"".join(parts), headers


def _encode_prefix(buffered: Buffered) -> bytes:
    """Return headers and timestamp of a value, which a store with headers writes before the value."""
    message = Message(headers=buffered.headers or Headers(), timestamp=buffered.timestamp, payload=b"")
    return require(encode(message, "streams-timestamped"), "the encoded headers")


def _with_size(data: bytes | None) -> bytes:
    return struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + data


def _encode_buffered(value: bytes | None, prefix: bytes | None) -> Buffered:
    if value is None or prefix is None:
        return Buffered(value, None, None)
    message: Any = decode(prefix + value, "streams-timestamped")
    return Buffered(value, message.timestamp, message.headers)


class _Cursor:
    """Reads a row from its beginning."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.at = 0

    def integer(self, format: str) -> int:
        """Read an integer."""
        number: int = struct.unpack(format, self._take(struct.calcsize(format)))[0]
        return number

    def sized(self) -> bytes | None:
        """Read a size and the bytes; None for a size of -1."""
        return self.value(self.integer(">i"))

    def value(self, size: int) -> bytes | None:
        """Read bytes of a size; None for a size of -1."""
        if size < -1:
            raise _decode_error(f"the size {size} is negative", self.at - 4, "negative_length")
        return None if size == -1 else self._take(size)

    def text(self) -> str:
        """Read a size and text."""
        data = self.sized()
        if data is None:
            raise _decode_error("a name is null", self.at - 4, "negative_length")
        return data.decode(errors="replace")

    def _take(self, size: int) -> bytes:
        end = self.at + size
        if end > len(self._data):
            raise _decode_error(f"the bytes end inside a field of {size} bytes", self.at, "truncated")
        taken, self.at = self._data[self.at : end], end
        return taken


def _decode_error(message: str, at: int, code: str = "out_of_range") -> DecodeError:
    return DecodeError(message, format=None, code=code, byte_offset=at)
