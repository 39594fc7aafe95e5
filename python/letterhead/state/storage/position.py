"""Position of a store in its inputs: for each partition, the offset of the last record that changed the store.

::

    version 00 ‖ int32 topics ‖ ( int32 length ‖ topic ‖ int32 partitions ‖ ( int32 partition ‖ int64 offset ) … ) …

Kafka Streams computes the size of its buffer in bits instead of bytes, and stores the whole buffer. To make files
identical, this package writes the same trailing zeros, but ignores them on reading.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

__all__ = ["Position"]


class Position:
    """Offsets by topic and partition.

    Parameters
    ----------
    offsets : mapping of str to mapping of int to int, optional
        The initial offsets.

    Examples
    --------
    >>> position = Position().update("in", 0, 5).update("in", 0, 3)
    >>> position.offsets
    {'in': {0: 5}}
    >>> Position.deserialize(position.serialize()) == position
    True
    """

    __slots__ = ("offsets",)

    def __init__(self, offsets: Mapping[str, Mapping[int, int]] | None = None) -> None:
        self.offsets: dict[str, dict[int, int]] = {
            topic: dict(partitions) for topic, partitions in (offsets or {}).items()
        }

    def update(self, topic: str, partition: int, offset: int) -> Position:
        """Advance a partition to an offset unless the offset is smaller; return this position."""
        partitions = self.offsets.get(topic)
        if partitions is None:
            partitions = self.offsets[topic] = {}
        if offset > partitions.get(partition, -(1 << 63)):
            partitions[partition] = offset
        return self

    def merge(self, other: Position) -> Position:
        """Advance every partition to the larger offset of both positions; return this position."""
        for topic, partitions in other.offsets.items():
            for partition, offset in partitions.items():
                self.update(topic, partition, offset)
        return self

    def copy(self) -> Position:
        """Return a copy."""
        return Position(self.offsets)

    def serialize(self) -> bytes:
        """Return the bytes in a store's files and changelog records, with Kafka Streams' trailing zeros."""
        out = bytearray(struct.pack(">bi", 0, len(self.offsets)))
        size = 40
        for topic, partitions in self.offsets.items():
            name = topic.encode()
            size += 64 + len(name) + 96 * len(partitions)
            out += struct.pack(">i", len(name)) + name + struct.pack(">i", len(partitions))
            for partition, offset in partitions.items():
                out += struct.pack(">iq", partition, offset)
        return bytes(out.ljust(size, b"\0"))

    @classmethod
    def deserialize(cls, data: bytes | None) -> Position:
        """Parse a position; empty bytes or ``None`` are an empty position.

        Raises
        ------
        ValueError
            If the version is unknown, or the bytes are truncated.
        """
        position = cls()
        if not data:
            return position
        if data[0] != 0:
            raise ValueError(f"Unknown version {data[0]} when deserializing Position")
        try:
            (topics,), at = struct.unpack_from(">i", data, 1), 5
            for _ in range(topics):
                (length,) = struct.unpack_from(">i", data, at)
                if length < 0:
                    raise ValueError(f"the name of a topic in a position has {length} bytes (byte {at})")
                topic = data[at + 4 : at + 4 + length].decode()
                at += 4 + length
                (partitions,), at = struct.unpack_from(">i", data, at), at + 4
                for _ in range(partitions):
                    partition, offset = struct.unpack_from(">iq", data, at)
                    position.update(topic, partition, offset)
                    at += 12
        except struct.error:
            raise ValueError("a position ends early") from None
        return position

    @classmethod
    def from_checkpoint(cls, text: str) -> Position:
        """Read the position file of older versions of Kafka Streams.

        Parameters
        ----------
        text : str
            Content of the file: lines with a version, the number of partitions, and ``topic partition offset`` of each.

        Raises
        ------
        ValueError
            If the file is not a checkpoint.
        """
        lines = text.split("\n")
        while lines and not lines[-1]:
            lines.pop()
        if lines[:1] != ["0"]:
            raise ValueError("a position file has an unknown version")
        position = cls()
        rows = [line.split(" ") for line in lines[2:]]
        if len(lines) < 2 or lines[1] != str(len(rows)) or any(len(row) != 3 for row in rows):
            raise ValueError("a position file does not contain the number of partitions that it announces")
        for topic, partition, offset in rows:
            position.update(topic, int(partition), int(offset))
        return position

    def __eq__(self, other: object) -> bool:
        return self.offsets == other.offsets if isinstance(other, Position) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Position({self.offsets!r})"
