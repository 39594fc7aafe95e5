"""Keys of windows and sessions as bytes.

::

    window                 key ‖ int64 start ‖ int32 sequence
    session                key ‖ int64 end ‖ int64 start
    time-ordered window    00 ‖ int64 start ‖ key ‖ int32 sequence        the row
                           01 ‖ key ‖ int64 start ‖ int32 sequence        its index entry, with an empty value
    time-ordered session   00 ‖ int64 end ‖ int64 start ‖ key             the row
                           01 ‖ key ‖ int64 end ‖ int64 start             its index entry, with an empty value

Changelogs always use the forms that are not time-ordered. The *time* of a key is the start of a window or the end of a
session, and determines the segment of the row.
"""

from __future__ import annotations

import struct
from typing import NamedTuple, TypeAlias

from letterhead.errors import PrefixError

__all__ = [
    "AFTER_INDEX", "INDEX", "MAX_SEQUENCE", "MAX_TIME", "KeySchema", "RowKey", "SessionKey", "SessionKeys", "StoredRange",
    "TimeOrderedKeys", "TimeOrderedSessionKeys", "TimeOrderedWindowKeys", "WindowKeys", "WindowedKey", "increment",
    "segment_of", "session_end", "session_key", "session_parts", "encode_key", "window_key", "window_parts", "window_start",
    "make_windowed", "within",
]  # fmt: skip

MAX_TIME = (1 << 63) - 1
"""Largest time in milliseconds."""

MAX_SEQUENCE = 0x7FFFFFFF

INDEX, AFTER_INDEX = b"\1", b"\2"
"""First byte of index entries in time-ordered stores, and the smallest key after all index entries."""


class WindowedKey(NamedTuple):
    """Key of a row in a window store.

    Attributes
    ----------
    key : bytes
        The key.
    start, end : int
        First millisecond of the window, and first millisecond after the window.
    """

    key: bytes
    start: int
    end: int


class SessionKey(NamedTuple):
    """Key of a row in a session store.

    Attributes
    ----------
    key : bytes
        The key.
    start, end : int
        Timestamps of the first and the last record in the session.
    """

    key: bytes
    start: int
    end: int


RowKey: TypeAlias = bytes | WindowedKey | SessionKey
"""Key of a row in a store of bytes."""


class StoredRange(NamedTuple):
    """Range of stored keys with inclusive bounds; ``None`` means no bound."""

    first: bytes | None
    last: bytes | None


def window_key(key: bytes, start: int, sequence: int = 0) -> bytes:
    """Return the stored key of a window.

    Examples
    --------
    >>> window_key(b"k", 5).hex()
    '6b000000000000000500000000'
    """
    return key + _WINDOW.pack(start, sequence)


def window_parts(stored_key: bytes) -> tuple[bytes, int, int]:
    """Parse the stored key of a window into key, start and sequence."""
    return stored_key[:-12], *_WINDOW.unpack_from(stored_key, _tail(stored_key, 12))


def window_start(stored_key: bytes) -> int:
    """Return the start of a window from its stored key."""
    start: int = _WINDOW.unpack_from(stored_key, _tail(stored_key, 12))[0]
    return start


def session_key(key: bytes, start: int, end: int) -> bytes:
    """Return the stored key of a session.

    Examples
    --------
    >>> session_key(b"k", 5, 9).hex()
    '6b00000000000000090000000000000005'
    """
    return key + _SESSION.pack(end, start)


def session_parts(stored_key: bytes) -> SessionKey:
    """Parse the stored key of a session."""
    end, start = _SESSION.unpack_from(stored_key, _tail(stored_key, 16))
    return SessionKey(stored_key[:-16], start, end)


def session_end(stored_key: bytes) -> int:
    """Return the end of a session from its stored key."""
    end: int = _SESSION.unpack_from(stored_key, _tail(stored_key, 16))[0]
    return end


def encode_key(row: RowKey) -> bytes:
    """Return the stored key of a row of any store; the sequence number of a windowed key is 0.

    Examples
    --------
    >>> encode_key(b"k").hex(), encode_key(SessionKey(b"k", 5, 9)).hex()
    ('6b', '6b00000000000000090000000000000005')
    """
    if isinstance(row, WindowedKey):
        return window_key(row.key, row.start)
    return session_key(*row) if isinstance(row, SessionKey) else row


def increment(prefix: bytes) -> bytes:
    """Return the smallest key of the same length that is larger than all keys with this prefix.

    Raises
    ------
    PrefixError
        If there is no such key, because the prefix is all ``ff`` or empty.
    """
    if prefix == b"\xff" * len(prefix):
        raise PrefixError("a prefix that is empty or all ff has no end: use a range")
    return (int.from_bytes(prefix, "big") + 1).to_bytes(len(prefix), "big")


def within(key: bytes, first: bytes | None, last: bytes | None) -> bool:
    """Return whether a key is in [``first``, ``last``]; ``None`` means no bound."""
    return (first is None or key >= first) and (last is None or key <= last)


def segment_of(time: int, interval: int) -> int:
    """Return the number of the segment that contains a time, rounded towards zero as in Kafka Streams."""
    return time // interval if time >= 0 else -(-time // interval)


def make_windowed(key: bytes, start: int, window_size: int) -> WindowedKey:
    """Return the windowed key of a row, with its end computed from the window size."""
    return WindowedKey(key, start, min(start + window_size, MAX_TIME))


class KeySchema:
    """Encoding of the keys of a segmented store, and bounds for searches.

    ``bounds_of_key`` and ``bounds_of_range`` return bounds of stored keys in a segment. Other keys may lie between these
    bounds, so ``contains`` decides whether a stored key belongs to the result.
    """

    suffix: int
    """Number of bytes after the key in changelog form, which is the minimum length of a stored key."""

    bounded_by_start: bool
    """Whether the upper time bound limits the segments: true for windows, which have one time; false for sessions."""

    @staticmethod
    def time(stored_key: bytes) -> int:
        """Return the time of a key in changelog form."""
        raise NotImplementedError

    @staticmethod
    def bounds_of_key(key: bytes, time_from: int, time_to: int) -> StoredRange:
        """Return bounds for the stored keys of one key."""
        raise NotImplementedError

    @staticmethod
    def bounds_of_range(key_from: bytes | None, key_to: bytes | None, time_from: int, time_to: int) -> StoredRange:
        """Return bounds for the stored keys of a range of keys."""
        raise NotImplementedError

    @staticmethod
    def contains(stored_key: bytes, key_from: bytes | None, key_to: bytes | None, time_from: int, time_to: int) -> bool:
        """Return whether a stored key is in a range of keys and times."""
        raise NotImplementedError


class WindowKeys(KeySchema):
    """Encoding of window keys; both times are bounds for the start of a window."""

    suffix = 12
    bounded_by_start = True
    time = staticmethod(window_start)

    @staticmethod
    def bounds_of_key(key: bytes, time_from: int, time_to: int) -> StoredRange:
        """Return bounds for the stored keys of one key."""
        return StoredRange(key + _WINDOW.pack(max(0, time_from), 0), key + _WINDOW.pack(time_to, MAX_SEQUENCE))

    @staticmethod
    def bounds_of_range(key_from: bytes | None, key_to: bytes | None, time_from: int, time_to: int) -> StoredRange:
        """Return bounds for the stored keys of a range of keys."""
        return _enclosing_bounds(key_from, key_to, _WINDOW.pack(time_to, MAX_SEQUENCE))

    @staticmethod
    def contains(stored_key: bytes, key_from: bytes | None, key_to: bytes | None, time_from: int, time_to: int) -> bool:
        """Return whether a key is in the range, and its window starts between the two times."""
        return time_from <= window_start(stored_key) <= time_to and within(stored_key[:-12], key_from, key_to)


class SessionKeys(KeySchema):
    """Encoding of session keys; the first time is the earliest end, and the second time the latest start."""

    suffix = 16
    bounded_by_start = False
    time = staticmethod(session_end)

    @staticmethod
    def bounds_of_key(key: bytes, time_from: int, time_to: int) -> StoredRange:
        """Return bounds for the stored keys of one key."""
        return StoredRange(key + _SESSION.pack(max(0, time_from), 0), key + _SESSION.pack(MAX_TIME, time_to))

    @staticmethod
    def bounds_of_range(key_from: bytes | None, key_to: bytes | None, time_from: int, time_to: int) -> StoredRange:
        """Return bounds for the stored keys of a range of keys."""
        return _enclosing_bounds(key_from, key_to, _SESSION.pack(MAX_TIME, time_to))

    @staticmethod
    def contains(stored_key: bytes, key_from: bytes | None, key_to: bytes | None, time_from: int, time_to: int) -> bool:
        """Return whether a key is in the range, and its session ends at or after the first time and starts by the second."""
        session = session_parts(stored_key)
        return session.end >= time_from and session.start <= time_to and within(session.key, key_from, key_to)


class TimeOrderedKeys:
    """Conversions between changelog keys and the keys of a time-ordered store."""

    @staticmethod
    def row(stored_key: bytes) -> bytes:
        """Convert a changelog key to the key of a time-ordered row."""
        raise NotImplementedError

    @staticmethod
    def changelog_key(row: bytes) -> bytes:
        """Convert the key of a time-ordered row to its changelog key."""
        raise NotImplementedError

    @staticmethod
    def index(stored_key: bytes) -> bytes:
        """Convert a changelog key to the key of an index entry."""
        return INDEX + stored_key

    @staticmethod
    def rows_from(time: int) -> bytes:
        """Return a lower bound for the keys of rows at or after a time."""
        return b"\0" + struct.pack(">q", max(0, time))


class TimeOrderedWindowKeys(TimeOrderedKeys):
    """Key conversions of time-ordered window stores."""

    @staticmethod
    def row(stored_key: bytes) -> bytes:
        """Convert a changelog key to the key of a time-ordered row."""
        return b"\0" + stored_key[-12:-4] + stored_key[:-12] + stored_key[-4:]

    @staticmethod
    def changelog_key(row: bytes) -> bytes:
        """Convert the key of a time-ordered row to its changelog key."""
        return row[9:-4] + row[1:9] + row[-4:]


class TimeOrderedSessionKeys(TimeOrderedKeys):
    """Key conversions of time-ordered session stores."""

    @staticmethod
    def row(stored_key: bytes) -> bytes:
        """Convert a changelog key to the key of a time-ordered row."""
        return b"\0" + stored_key[-16:] + stored_key[:-16]

    @staticmethod
    def changelog_key(row: bytes) -> bytes:
        """Convert the key of a time-ordered row to its changelog key."""
        return row[17:] + row[1:17]


_WINDOW = struct.Struct(">qi")
_SESSION = struct.Struct(">qq")


def _tail(stored_key: bytes, size: int) -> int:
    at = len(stored_key) - size
    if at < 0:
        raise ValueError(f"a stored key of {len(stored_key)} bytes is too short: {size} of it are the time")
    return at


def _enclosing_bounds(key_from: bytes | None, key_to: bytes | None, largest: bytes) -> StoredRange:
    """Return bounds that enclose the stored keys in a range of keys; ``largest`` is the largest suffix of a stored key.

    The stored key of a prefix of ``key_to`` can be larger than the stored key of ``key_to``, because its suffix is compared
    with the rest of ``key_to``. So the upper bound is the largest stored key of all prefixes. (Kafka Streams compares only the
    first byte of a suffix, and misses rows of prefixes of a key that continues with 00.)
    """
    return StoredRange(
        None if key_from is None else key_from + bytes(len(largest)),
        None if key_to is None else max(key_to[:kept] + largest for kept in range(len(key_to) + 1)),
    )
