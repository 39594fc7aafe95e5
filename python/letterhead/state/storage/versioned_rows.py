"""Rows of versioned stores: the versions of one key whose validity ends in the same segment.

::

    int64 next ‖ int64 min ‖ ( int64 valid from ‖ int32 size ) … ‖ values
    the list begins with the newest version, the values with the oldest; a size of -1 is a tombstone

The newest version is valid until ``next``. The oldest version, which is the last in the list, is valid from ``min`` on. If
both times are equal, the row has no version, and is written with one tombstone: the key was deleted when it had no value.

The latest version of a key is in a separate row: ``int64 valid from ‖ value``. Values may have headers; they are not
parsed here.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from letterhead.state.storage.rows import row_error

__all__ = ["Latest", "SegmentRow", "Version", "bounds", "segment_number", "with_headers"]

LATEST = b"\xff" * 8
"""Key prefix of the rows of latest versions: segment -1."""


class Latest(NamedTuple):
    """Latest version of a key.

    Attributes
    ----------
    timestamp : int
        Start of the validity.
    value : bytes
        Value of the version.
    """

    timestamp: int
    value: bytes

    @classmethod
    def read(cls, row: bytes) -> Latest:
        """Parse the row of a latest version; raise DecodeError if it is too short."""
        if len(row) < 8:
            raise row_error("truncated", "the bytes end inside the timestamp of the latest version", 0)
        return cls(_INT64.unpack_from(row)[0], row[8:])

    def write(self) -> bytes:
        """Return the row."""
        return _INT64.pack(self.timestamp) + self.value


class Version(NamedTuple):
    """Version in a row.

    Attributes
    ----------
    valid_from : int
        Start of the validity.
    value : bytes or None
        Value of the version; ``None`` if the key is deleted.
    """

    valid_from: int
    value: bytes | None


class SegmentRow:
    """Versions of one key in one segment.

    Parameters
    ----------
    next : int
        End of the newest version's validity.
    versions : list of Version
        The versions, newest first.

    Examples
    --------
    >>> row = SegmentRow(20, [Version(10, b"v")])
    >>> row.insert_as_latest(20, 30, b"w")
    >>> row.next, row.min, row.versions
    (30, 10, [Version(valid_from=20, value=b'w'), Version(valid_from=10, value=b'v')])
    >>> SegmentRow.read(row.write()).find(15)
    1
    """

    __slots__ = ("next", "versions")

    def __init__(self, next_time: int, versions: list[Version]) -> None:
        self.next = next_time
        self.versions = versions

    @classmethod
    def of_version(cls, valid_from: int, valid_to: int, value: bytes | None) -> SegmentRow:
        """Create a row with one version, or without a version if ``valid_from`` equals ``valid_to``."""
        return cls(valid_to, [] if valid_from == valid_to else [Version(valid_from, value)])

    @classmethod
    def read(cls, row: bytes) -> SegmentRow:
        """Parse a row; raise DecodeError if it is invalid."""
        next_time, min_time = bounds(row)
        entries: list[tuple[int, int]] = []
        at, last = 16, next_time
        while True:
            if at + 12 > len(row):
                raise row_error("truncated", "the bytes end inside the list of versions", at)
            valid_from, size = _ENTRY.unpack_from(row, at)
            if size < -1:
                raise row_error("negative_length", f"the size {size} of a version is negative", at + 8)
            if valid_from < min_time or (entries and valid_from >= last):
                raise row_error("out_of_range", "the versions are not in the order of time", at)
            entries.append((valid_from, size))
            at, last = at + 12, valid_from
            if valid_from == min_time:
                break
        if next_time == min_time:
            if len(row) != at or entries[0][1] != -1:
                raise row_error("trailing_bytes", "a row without versions has a value", at)
            return cls(next_time, [])
        if entries[0][0] >= next_time:
            raise row_error("out_of_range", "the newest version ends before it begins", 0)
        end, versions = len(row), []
        for valid_from, size in entries:
            start = end - max(size, 0)
            if start < at:
                raise row_error("truncated", "the sizes of the versions are together larger than the row", at)
            versions.append(Version(valid_from, None if size < 0 else row[start:end]))
            end = start
        if end != at:
            raise row_error("trailing_bytes", "there are bytes before the value of the oldest version", at)
        return cls(next_time, versions)

    def write(self) -> bytes:
        """Return the row."""
        entries = self.versions or [Version(self.next, None)]
        parts = [_BOUNDS.pack(self.next, self.min)]
        parts += [_ENTRY.pack(valid_from, -1 if value is None else len(value)) for valid_from, value in entries]
        parts += [value for _, value in reversed(entries) if value is not None]
        return b"".join(parts)

    @property
    def min(self) -> int:
        """Start of the oldest version's validity."""
        return self.versions[-1].valid_from if self.versions else self.next

    def find(self, time: int) -> int:
        """Return the index of the version that is valid at a time; raise ValueError if there is none."""
        if not self.min <= time < self.next:
            raise ValueError(f"no version of the row is valid at {time}")
        return next(index for index, version in enumerate(self.versions) if version.valid_from <= time)

    def valid_to(self, index: int) -> int:
        """Return the end of a version's validity, which is the start of the next version."""
        return self.next if index == 0 else self.versions[index - 1].valid_from

    def insert_as_latest(self, valid_from: int, valid_to: int, value: bytes | None) -> None:
        """Insert a version after all others.

        Later versions in the row are remains of an unfinished move, and are removed. A gap after the newest version
        becomes a tombstone.
        """
        if valid_from < self.next:
            self.versions = [version for version in self.versions if version.valid_from < valid_from]
        elif valid_from > self.next:
            self.versions.insert(0, Version(self.next, None))
        if valid_from < valid_to:
            self.versions.insert(0, Version(valid_from, value))
        self.next = valid_to

    def insert_as_earliest(self, valid_from: int, value: bytes | None) -> None:
        """Insert a version before all others; it is valid until the start of the oldest existing version."""
        self.versions.append(Version(valid_from, value))

    def insert(self, index: int, valid_from: int, value: bytes | None) -> None:
        """Insert a version at an index; the previous version is then valid until the start of the new version."""
        self.versions.insert(index, Version(valid_from, value))

    def update(self, index: int, valid_from: int, value: bytes | None) -> None:
        """Replace the version at an index."""
        self.versions[index] = Version(valid_from, value)


def bounds(row: bytes) -> tuple[int, int]:
    """Return ``next`` and ``min`` of a row without parsing its versions; raise DecodeError if they are invalid."""
    if len(row) < 28:
        raise row_error("truncated", "the bytes end inside the times of a row of versions", 0)
    next_time, min_time = _BOUNDS.unpack_from(row)
    if min_time > next_time:
        raise row_error("out_of_range", "the newest version ends before the oldest begins", 0)
    return next_time, min_time


def segment_number(key: bytes) -> int:
    """Return the segment number in a stored key, even if it is truncated; negative for a latest version."""
    number: int = _INT64.unpack(key[:8].ljust(8, b"\0"))[0]
    return number


def with_headers(key: bytes, row: bytes) -> bytes:
    """Convert a row of a store without headers to a store with headers, with empty headers in every value.

    Parameters
    ----------
    key : bytes
        Key of the row, which determines whether it is a latest version.
    row : bytes
        The row; tombstones are kept.

    Raises
    ------
    DecodeError
        If the row is invalid.
    """
    if key.startswith(LATEST):
        timestamp, value = Latest.read(row)
        return Latest(timestamp, b"\0" + value).write()
    old = SegmentRow.read(row)
    return SegmentRow(
        old.next, [Version(valid_from, None if value is None else b"\0" + value) for valid_from, value in old.versions]
    ).write()


_INT64 = struct.Struct(">q")
_BOUNDS = struct.Struct(">qq")
_ENTRY = struct.Struct(">qi")
