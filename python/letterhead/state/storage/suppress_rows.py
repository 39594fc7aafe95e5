"""Parse changelog records of the ``suppress()`` buffer: :func:`read_suppressed`.

::

    int64 timestamp ‖ int64 offset ‖ topic ‖ int32 partition ‖ int32 headers ‖ ( key ‖ value ) …    the last record
    prior value ‖ old value ‖ new value ‖ int64 buffer time
    each text and value: int32 size ‖ bytes; -1 is null, and an old size of -2 is the prior value

The header ``v`` of a changelog record is ``03``. From Kafka 4.4 on, the headers ``vh.old`` and ``vh.prior`` contain the
headers and timestamps of the old and the prior value: ``varint size ‖ headers ‖ int64 timestamp``, as in a store with
headers. ``vh.prior`` is omitted if the prior value and its headers equal the old ones. Kafka 4.3 and older write neither.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

from letterhead.headers import Headers
from letterhead.one_message import decode
from letterhead.state.storage.rows import row_error

__all__ = ["Buffered", "Suppressed", "read_suppressed"]

VERSION = b"\3"
OLD, PRIOR = "vh.old", "vh.prior"


class Buffered(NamedTuple):
    """Value in the buffer; timestamp and headers are None if the changelog does not contain them."""

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
        Partition and offset of this record.
    time : int
        Buffer time in milliseconds, which determines when the row leaves the buffer.
    new, old, prior : Buffered
        The value to be emitted, the value that it replaced, and the value before the row entered the buffer.
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
        Value of the record, which must not be a tombstone.
    headers : sequence of (str, bytes or None)
        Headers of the record.

    Raises
    ------
    DecodeError
        If the version is not 3, or the bytes are invalid.
    """
    last = dict(headers)
    version = last.get("v")
    if version != VERSION:
        raise row_error(
            "out_of_range",
            "the header v does not name version 3 of the changelog of suppress(): is the topic another one?",
            0,
        )
    cursor = _Cursor(value)
    timestamp, offset = cursor.integer(">q"), cursor.integer(">q")
    topic = cursor.text()
    partition, count = cursor.integer(">i"), cursor.integer(">i")
    if count > len(value):
        raise row_error("out_of_range", f"the count of headers {count} is larger than the row", cursor.at - 4)
    # Versions before 2.2 wrote -1 for no headers.
    record_headers = Headers((cursor.text(), cursor.sized()) for _ in range(max(count, 0)))
    prior = cursor.sized()
    size = cursor.integer(">i")
    old = prior if size == -2 else cursor.value(size)
    new = cursor.sized()
    time = cursor.integer(">q")
    if cursor.at != len(value):
        raise row_error("trailing_bytes", "there are bytes after the buffer time", cursor.at)
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


def _encode_buffered(value: bytes | None, prefix: bytes | None) -> Buffered:
    if value is None or prefix is None:
        return Buffered(value, None, None)
    message: Any = decode(prefix + value, "streams-timestamped")
    return Buffered(value, message.timestamp, message.headers)


class _Cursor:
    """Cursor over a row."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.at = 0

    def integer(self, format: str) -> int:
        """Read an integer."""
        number: int = struct.unpack(format, self._take(struct.calcsize(format)))[0]
        return number

    def sized(self) -> bytes | None:
        """Read a size and as many bytes; return None for a size of -1."""
        return self.value(self.integer(">i"))

    def value(self, size: int) -> bytes | None:
        """Read bytes of the given size; return None for a size of -1."""
        if size < -1:
            raise row_error("negative_length", f"the size {size} is negative", self.at - 4)
        return None if size == -1 else self._take(size)

    def text(self) -> str:
        """Read a size and text."""
        data = self.sized()
        if data is None:
            raise row_error("negative_length", "a name is null", self.at - 4)
        return data.decode(errors="replace")

    def _take(self, size: int) -> bytes:
        end = self.at + size
        if end > len(self._data):
            raise row_error("truncated", f"the bytes end inside a field of {size} bytes", self.at)
        taken, self.at = self._data[self.at : end], end
        return taken
