"""Parse the fields of Kafka's own messages, as brokers write them into internal topics: :class:`FieldReader`.

Integers are big-endian. A flexible message has lengths as varints, offset by 1 so that 0 is null, and ends with tagged
fields, which are skipped.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TypeVar

__all__ = ["FieldReader", "read_assignment", "read_subscription"]

T = TypeVar("T")
_INT16, _INT32, _INT64 = struct.Struct(">h"), struct.Struct(">i"), struct.Struct(">q")


class FieldReader:
    """Cursor over the fields of a message, in order; each method reads the next one.

    Raises
    ------
    ValueError
        If the message ends within a field, or a field is invalid.
    """

    def __init__(self, data: bytes, *, flexible: bool = False) -> None:
        self.flexible = flexible
        self._data = data
        self._position = 0

    def int8(self) -> int:
        """Read a signed 8-bit integer."""
        return int.from_bytes(self._take(1), "big", signed=True)

    def int16(self) -> int:
        """Read a signed 16-bit integer."""
        return int(_INT16.unpack(self._take(2))[0])

    def int32(self) -> int:
        """Read a signed 32-bit integer."""
        return int(_INT32.unpack(self._take(4))[0])

    def int64(self) -> int:
        """Read a signed 64-bit integer."""
        return int(_INT64.unpack(self._take(8))[0])

    def string(self) -> str:
        """Read a non-null string."""
        text = self.nullable_string()
        if text is None:
            raise ValueError("a text is null")
        return text

    def nullable_string(self) -> str | None:
        """Read a string; null becomes None."""
        length = self._varint() - 1 if self.flexible else self.int16()
        return None if length < 0 else self._take(length).decode()

    def data(self) -> bytes:
        """Read bytes; null becomes empty bytes."""
        length = self._varint() - 1 if self.flexible else self.int32()
        return b"" if length < 0 else self._take(length)

    def array(self, element: Callable[[], T]) -> list[T]:
        """Read an array; null becomes an empty list."""
        count = self._varint() - 1 if self.flexible else self.int32()
        # Each element takes at least one byte, so with a wrong count, reading fails at the end of the message.
        return [element() for _ in range(count)]

    def tags(self) -> None:
        """Skip the tagged fields at the end of a flexible message or of an element."""
        if self.flexible:
            for _ in range(self._varint()):
                self._varint()
                self._take(self._varint())

    def _varint(self) -> int:
        number = shift = 0
        while True:
            [byte] = self._take(1)
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return number
            shift += 7
            if shift > 28:
                raise ValueError("a varint has more than 5 bytes")

    def _take(self, length: int) -> bytes:
        part = self._data[self._position : self._position + length]
        if len(part) < length:
            raise ValueError(f"it ends within a field at byte {self._position}")
        self._position += length
        return part


def read_subscription(subscription: bytes) -> list[str]:
    """Return the topics in the subscription that a consumer sends to the leader of its group."""
    fields = FieldReader(subscription)
    fields.int16()
    return fields.array(fields.string)


def read_assignment(assignment: bytes) -> list[tuple[str, int]]:
    """Return the topics and partitions that the leader of a group assigned to a consumer; empty if there are none."""
    if not assignment:
        return []
    fields = FieldReader(assignment)
    fields.int16()
    topics = fields.array(lambda: (fields.string(), fields.array(fields.int32)))
    return [(topic, partition) for topic, partitions in topics for partition in partitions]
