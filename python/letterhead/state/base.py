"""Base class of stores of bytes, and a marker of stores with headers."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from time import monotonic
from typing import Any, ClassVar, Literal, TypeAlias, TypeVar, get_args, overload
from weakref import WeakSet

from letterhead.errors import DamagedRowError, InvalidStateStoreError, InvalidTimestampError, ProcessorStateError
from letterhead.state.interfaces import Context, StoreIterator
from letterhead.state.storage.position import Position
from letterhead.state.storage.raw import NO_TIMESTAMP

__all__ = [
    "FORMATS",
    "BytesStore",
    "HeadersBytesStore",
    "KeyValueWrites",
    "StoreType",
    "ValueFormat",
    "check_session_format",
    "check_time",
]

K = TypeVar("K")
V = TypeVar("V")

ValueFormat: TypeAlias = Literal["plain", "timestamped", "headers"]
"""Format of a store's values; :mod:`letterhead.state.interfaces` documents the bytes."""

StoreType: TypeAlias = Literal["key-value", "window", "session", "versioned"]

FORMATS: tuple[ValueFormat, ...] = get_args(ValueFormat)

WARN_EVERY = 60.0
"""Minimum seconds between two warnings of a store about expired records."""

_log = logging.getLogger("letterhead.state")


class BytesStore:
    """A store of bytes; ``expired_records`` counts records dropped because they were older than the retention."""

    persistent: ClassVar[bool]
    _times_in_keys: ClassVar[bool] = False
    """Whether values have no timestamps in any format, because the keys have times."""
    _iterator_name: ClassVar[str] = "Iterator"

    def __init__(self, name: str, format: ValueFormat) -> None:
        if format not in FORMATS:
            raise ValueError(f"store {name}: unknown format {format!r}: there are {', '.join(FORMATS)}")
        self.name = name
        self.format = format
        self.is_open = False
        self.position = Position()
        self.expired_records = 0
        self._silent_until = 0.0
        self._context: Context | None = None
        self._iterators: WeakSet[StoreIterator[Any, Any]] = WeakSet()

    @property
    def timestamped(self) -> bool:
        """Whether the values have timestamps."""
        return self.format != "plain" and not self._times_in_keys

    @property
    def headers(self) -> bool:
        """Whether the values have headers."""
        return self.format == "headers"

    @property
    def opened_by_parent(self) -> bool:
        """Whether the store was opened by a parent process."""
        return False

    def _opened(self, context: Context | None) -> None:
        self._context = context
        self.is_open = True

    def _closed(self) -> None:
        self.is_open = False
        for iterator in list(self._iterators):
            iterator.close()
        self._iterators.clear()

    def _check_closed(self) -> None:
        if self.is_open:
            raise ProcessorStateError(f"store {self.name} is open already")

    def _check_open(self) -> None:
        if not self.is_open:
            raise InvalidStateStoreError(f"Store {self.name} is currently closed")

    def _update_position(self) -> None:
        if self._context is None:
            return
        record = self._context.record
        if record is not None and record.topic is not None:
            self.position.update(record.topic, record.partition, record.offset)

    def _count_expired(self, part: str) -> None:
        """Count an expired record, and log a warning at most once in :data:`WARN_EVERY` seconds."""
        self.expired_records += 1
        now = monotonic()
        if now >= self._silent_until:
            self._silent_until = now + WARN_EVERY
            _log.warning("store %s: Skipping record for expired %s (%d so far)", self.name, part, self.expired_records)

    def _iterate(self, rows: Iterator[tuple[K, V] | DamagedRowError]) -> StoreIterator[K, V]:
        iterator = StoreIterator(rows, self.name, noun=self._iterator_name)
        self._iterators.add(iterator)
        return iterator


class KeyValueWrites(ABC):
    """Write operations of key-value stores of bytes that are built from others."""

    @abstractmethod
    def get(self, key: bytes) -> bytes | None:
        """Read a row."""

    @abstractmethod
    def put(self, key: bytes, value: bytes | None) -> None:
        """Write a row; ``None`` deletes it."""

    def put_if_absent(self, key: bytes, value: bytes | None) -> bytes | None:
        """Write a row if the key has none; return the existing value."""
        old = self.get(key)
        if old is None:
            self.put(key, value)
        return old

    def put_all(self, rows: Iterable[tuple[bytes, bytes | None]]) -> None:
        """Write several rows."""
        for key, value in rows:
            self.put(key, value)


def check_time(time: int) -> None:
    """Raise an :class:`InvalidTimestampError` for a negative time, which would sort after all others."""
    if time < 0:
        raise InvalidTimestampError(time)


def check_session_format(format: ValueFormat) -> None:
    """Raise ValueError for a format that sessions do not support."""
    if format == "timestamped":
        raise ValueError("a session store is plain or has headers: a session's times are in its key")


class HeadersBytesStore:
    """Marks your own stores of bytes whose values have headers, and converts older values.

    A builder of a store with headers puts an adapter around a store that does not subclass the marker. Stores of this
    package have one class for all formats, and their attribute ``format`` instead.

    Examples
    --------
    >>> HeadersBytesStore.convert_to_header_format(b"v")
    b'\\x00v'
    >>> HeadersBytesStore.convert_from_plain_to_header_format(b"v").hex()
    '00ffffffffffffffff76'
    """

    @staticmethod
    @overload
    def convert_to_header_format(value: bytes) -> bytes: ...
    @staticmethod
    @overload
    def convert_to_header_format(value: None) -> None: ...
    @staticmethod
    def convert_to_header_format(value: bytes | None) -> bytes | None:
        """Put empty headers before a timestamp and payload, or before an aggregation."""
        return None if value is None else b"\0" + value

    @staticmethod
    @overload
    def convert_from_plain_to_header_format(value: bytes) -> bytes: ...
    @staticmethod
    @overload
    def convert_from_plain_to_header_format(value: None) -> None: ...
    @staticmethod
    def convert_from_plain_to_header_format(value: bytes | None) -> bytes | None:
        """Put empty headers and the timestamp -1 before a payload."""
        return None if value is None else b"\0" + NO_TIMESTAMP + value
