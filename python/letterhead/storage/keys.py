"""Keys of windows and sessions as bytes.

::

    window             key ‖ int64 start ‖ int32 sequence
    session            key ‖ int64 end ‖ int64 start
    window, by time    00 ‖ int64 start ‖ key ‖ int32 sequence        the row
                       01 ‖ key ‖ int64 start ‖ int32 sequence        its entry in the index, with an empty value
    session, by time   00 ‖ int64 end ‖ int64 start ‖ key             the row
                       01 ‖ key ‖ int64 end ‖ int64 start             its entry in the index, with an empty value

A changelog has the first form of the two, whatever the store has. The *time* of a key is the start of a window and the
end of a session: it says in which segment the row is.
"""

from __future__ import annotations

import struct
from typing import NamedTuple, TypeAlias

from letterhead.errors import PrefixError

__all__ = [
    "MAX_TIME",
    "KeySchema",
    "Range",
    "RowKey",
    "SessionKey",
    "SessionKeys",
    "TimeOrderedKeys",
    "TimeOrderedSessionKeys",
    "TimeOrderedWindowKeys",
    "WindowKeys",
    "WindowedKey",
    "increment",
    "session_end",
    "session_key",
    "session_parts",
    "stored_key",
    "window_key",
    "window_parts",
    "window_start",
    "windowed",
]

MAX_TIME = (1 << 63) - 1
"""The last millisecond that there is."""

MAX_SEQUENCE = 0x7FFFFFFF


class WindowedKey(NamedTuple):
    """Key of a row in a window store.

    Attributes
    ----------
    key : bytes
        The key.
    start, end : int
        The window: its first millisecond, and the one after its last.
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
        Timestamps of the first and of the last record of the session.
    """

    key: bytes
    start: int
    end: int


RowKey: TypeAlias = bytes | WindowedKey | SessionKey
"""The key of a row as a store of bytes gives it."""


class Range(NamedTuple):
    """Stored keys from one to another, both included; ``None`` is no bound."""

    first: bytes | None
    last: bytes | None


def window_key(key: bytes, start: int, sequence: int = 0) -> bytes:
    """Make the stored key of a window.

    Examples
    --------
    >>> window_key(b"k", 5).hex()
    '6b000000000000000500000000'
    """
    return key + _WINDOW.pack(start, sequence)


def window_parts(stored: bytes) -> tuple[bytes, int, int]:
    """Take the stored key of a window apart: the key, the start, the sequence."""
    return stored[:-12], *_WINDOW.unpack_from(stored, _tail(stored, 12))


def window_start(stored: bytes) -> int:
    """Give the start in the stored key of a window."""
    start: int = _WINDOW.unpack_from(stored, _tail(stored, 12))[0]
    return start


def session_key(key: bytes, start: int, end: int) -> bytes:
    """Make the stored key of a session.

    Examples
    --------
    >>> session_key(b"k", 5, 9).hex()
    '6b00000000000000090000000000000005'
    """
    return key + _SESSION.pack(end, start)


def session_parts(stored: bytes) -> SessionKey:
    """Take the stored key of a session apart."""
    end, start = _SESSION.unpack_from(stored, _tail(stored, 16))
    return SessionKey(stored[:-16], start, end)


def session_end(stored: bytes) -> int:
    """Give the end in the stored key of a session."""
    end: int = _SESSION.unpack_from(stored, _tail(stored, 16))[0]
    return end


def stored_key(row: RowKey) -> bytes:
    """Make the stored key of a row of any store; the sequence of a window is not in its key, and taken for 0.

    Examples
    --------
    >>> stored_key(b"k").hex(), stored_key(SessionKey(b"k", 5, 9)).hex()
    ('6b', '6b00000000000000090000000000000005')
    """
    if isinstance(row, WindowedKey):
        return window_key(row.key, row.start)
    return session_key(*row) if isinstance(row, SessionKey) else row


def increment(prefix: bytes) -> bytes:
    """Give the smallest bytes of the same length that are larger than all that begin with some bytes.

    Raises
    ------
    PrefixError
        If there are none, because the prefix is all ``ff`` or empty.
    """
    if prefix == b"\xff" * len(prefix):
        raise PrefixError("a prefix that is empty or all ff has no end: use a range")
    return (int.from_bytes(prefix, "big") + 1).to_bytes(len(prefix), "big")


def windowed(key: bytes, start: int, window_size: int) -> WindowedKey:
    """Make the key of a row from what is stored: the end of a window is not."""
    return WindowedKey(key, start, min(start + window_size, MAX_TIME))


class KeySchema:
    """How a segmented store lays out its keys, and where it must look for some of them.

    ``fixed`` and ``between`` give the stored keys among which those of one key, or of a range of keys, are in a segment.
    Other keys may stand among them: ``holds`` says whether one belongs there.
    """

    suffix: int
    """Bytes after the key in the form that changelogs have: a stored key has as many at least."""

    bounded_by_start: bool
    """Whether no row is in a later segment than the upper bound: windows, but not sessions, have but one time."""

    @staticmethod
    def time(stored: bytes) -> int:
        """Give the time of a key as changelogs have it."""
        raise NotImplementedError

    @staticmethod
    def fixed(key: bytes, time_from: int, time_to: int) -> Range:
        """Find the stored keys of one key."""
        raise NotImplementedError

    @staticmethod
    def between(key_from: bytes | None, key_to: bytes | None, time_from: int, time_to: int) -> Range:
        """Find the stored keys of a range of keys."""
        raise NotImplementedError

    @staticmethod
    def holds(stored: bytes, key_from: bytes | None, key_to: bytes | None, time_from: int, time_to: int) -> bool:
        """Say whether a key as changelogs have it is one that was asked for."""
        raise NotImplementedError


class WindowKeys(KeySchema):
    """Windows; the two times are bounds of the start."""

    suffix = 12
    bounded_by_start = True
    time = staticmethod(window_start)

    @staticmethod
    def fixed(key: bytes, time_from: int, time_to: int) -> Range:
        """Find the stored keys of one key."""
        return Range(key + _WINDOW.pack(max(0, time_from), 0), key + _WINDOW.pack(time_to, MAX_SEQUENCE))

    @staticmethod
    def between(key_from: bytes | None, key_to: bytes | None, time_from: int, time_to: int) -> Range:
        """Find the stored keys of a range of keys."""
        return Range(
            None if key_from is None else key_from + bytes(12),
            None if key_to is None else _upper(key_to, _WINDOW.pack(time_to, MAX_SEQUENCE)),
        )

    @staticmethod
    def holds(stored: bytes, key_from: bytes | None, key_to: bytes | None, time_from: int, time_to: int) -> bool:
        """Say whether a key is in the range and its window starts between the two times."""
        return time_from <= window_start(stored) <= time_to and _within(stored[:-12], key_from, key_to)


class SessionKeys(KeySchema):
    """Sessions; the first time is the earliest end, the second one the latest start."""

    suffix = 16
    bounded_by_start = False
    time = staticmethod(session_end)

    @staticmethod
    def fixed(key: bytes, time_from: int, time_to: int) -> Range:
        """Find the stored keys of one key."""
        return Range(key + _SESSION.pack(max(0, time_from), 0), key + _SESSION.pack(MAX_TIME, time_to))

    @staticmethod
    def between(key_from: bytes | None, key_to: bytes | None, time_from: int, time_to: int) -> Range:
        """Find the stored keys of a range of keys."""
        return Range(
            None if key_from is None else key_from + bytes(16),
            None if key_to is None else _upper(key_to, _SESSION.pack(MAX_TIME, time_to)),
        )

    @staticmethod
    def holds(stored: bytes, key_from: bytes | None, key_to: bytes | None, time_from: int, time_to: int) -> bool:
        """Say whether a key is in the range and its session ends no earlier, and starts no later."""
        session = session_parts(stored)
        return session.end >= time_from and session.start <= time_to and _within(session.key, key_from, key_to)


class TimeOrderedKeys:
    """Rows by time and entries of the index, from and to the form that changelogs have."""

    @staticmethod
    def row(stored: bytes) -> bytes:
        """Make the key of a row."""
        raise NotImplementedError

    @staticmethod
    def of_row(row: bytes) -> bytes:
        """Undo :meth:`row`."""
        raise NotImplementedError

    @staticmethod
    def index(stored: bytes) -> bytes:
        """Make the key of an entry of the index."""
        return b"\1" + stored

    @staticmethod
    def rows_from(time: int) -> bytes:
        """Give a key before all rows of a time and later ones."""
        return b"\0" + struct.pack(">q", max(0, time))


class TimeOrderedWindowKeys(TimeOrderedKeys):
    """Windows by time."""

    @staticmethod
    def row(stored: bytes) -> bytes:
        """Make the key of a row."""
        return b"\0" + stored[-12:-4] + stored[:-12] + stored[-4:]

    @staticmethod
    def of_row(row: bytes) -> bytes:
        """Undo :meth:`row`."""
        return row[9:-4] + row[1:9] + row[-4:]


class TimeOrderedSessionKeys(TimeOrderedKeys):
    """Sessions by time."""

    @staticmethod
    def row(stored: bytes) -> bytes:
        """Make the key of a row."""
        return b"\0" + stored[-16:] + stored[:-16]

    @staticmethod
    def of_row(row: bytes) -> bytes:
        """Undo :meth:`row`."""
        return row[17:] + row[1:17]


_WINDOW = struct.Struct(">qi")
_SESSION = struct.Struct(">qq")


def _tail(stored: bytes, size: int) -> int:
    at = len(stored) - size
    if at < 0:
        raise ValueError(f"a stored key of {len(stored)} bytes is too short: {size} of it say the time")
    return at


def _within(key: bytes, first: bytes | None, last: bytes | None) -> bool:
    return (first is None or key >= first) and (last is None or key <= last)


def _upper(key: bytes, largest: bytes) -> bytes:
    """Give a key that no stored key of a key up to this one is larger than.

    A key that is a prefix of this one has its suffix where this one goes on: the largest of all such keys is the bound.
    (Kafka Streams looks at the first byte of a suffix only, and so misses rows of prefixes of a key that goes on with ``00``.)
    """
    return max(key[:kept] + largest for kept in range(len(key) + 1))
