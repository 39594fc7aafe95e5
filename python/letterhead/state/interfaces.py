"""Rows, records and iterators of byte stores, below the layers that serialize objects.

Keys and values are bytes, times are milliseconds since 1970. The bytes of a value depend on the format of the store::

    plain         payload
    timestamped   int64 timestamp ‖ payload
    headers       varint size ‖ headers ‖ int64 timestamp ‖ payload    key-value and window stores
                  varint size ‖ headers ‖ payload                      session and versioned stores
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, NamedTuple, Protocol, Self, TypeVar

from letterhead._context_managers import Closing
from letterhead._read_once import ENDED, FAILED
from letterhead.errors import DamagedRowError, InvalidStateStoreError, NoSuchElementError
from letterhead.headers import Headers
from letterhead.state.processor import RecordContext

__all__ = ["PUT_NOT_VALID", "VALID_TO_UNDEFINED", "ChangelogRecord", "Context", "StoreIterator", "VersionedBytes"]

K = TypeVar("K")
V = TypeVar("V")

VALID_TO_UNDEFINED = -1
"""Result of a put of the latest version: the end of its validity is undefined."""

PUT_NOT_VALID = -(1 << 63)
"""Result of a put of a version that was dropped, because it is older than the history retention."""


class VersionedBytes(NamedTuple):
    """Version of a row in a versioned store, valid from ``timestamp`` to ``valid_to``.

    ``valid_to`` is ``None`` for the latest version.
    """

    value: bytes
    timestamp: int
    valid_to: int | None = None


class ChangelogRecord(NamedTuple):
    """A record of a changelog topic.

    The timestamp is in milliseconds since 1970; a value of ``None`` is a tombstone.
    """

    key: bytes
    value: bytes | None
    timestamp: int
    headers: Headers


class Context(Protocol):
    """Context of a byte store in its task."""

    @property
    def record(self) -> RecordContext | None:
        """The record being processed."""


class StoreIterator(Closing, Generic[K, V]):
    """Iterator over the rows of a store, in order. Close it, or use it in ``with``; closing the store also closes it.

    For a row that cannot be read, :class:`~letterhead.errors.DamagedRowError` is raised; the next call continues with
    the row after it. After closing, or after another error, every method raises
    :class:`~letterhead.errors.InvalidStateStoreError`; so does a second ``for`` after the last row.

    Parameters
    ----------
    rows : iterator of (key, value) or DamagedRowError
        The rows, with an error in place of each unreadable row.
    store : str
        Name of the store for the error after closing.
    noun : str, default "Iterator"
        Name of the iterator in that error.
    on_close : callable, optional
        Called once when the iterator is closed.

    Examples
    --------
    >>> with StoreIterator(iter([(b"a", b"1"), (b"b", b"2")]), "latest") as rows:
    ...     rows.peek_next_key(), next(rows), list(rows)
    (b'a', (b'a', b'1'), [(b'b', b'2')])
    >>> next(rows)
    Traceback (most recent call last):
        ...
    letterhead.errors.InvalidStateStoreError: Iterator for store latest has closed
    """

    __slots__ = ("__weakref__", "_noun", "_on_close", "_peeked", "_rows", "_store", "_unreadable")

    def __init__(
        self,
        rows: Iterator[tuple[K, V] | DamagedRowError],
        store: str,
        *,
        noun: str = "Iterator",
        on_close: Callable[[], object] | None = None,
    ) -> None:
        self._rows: Iterator[tuple[K, V] | DamagedRowError] | None = rows
        self._store = store
        self._noun = noun
        self._on_close = on_close
        self._peeked: tuple[K, V] | DamagedRowError | None = None
        self._unreadable: str | None = None  # reason why there is no next row

    def __iter__(self) -> Self:
        if self._unreadable is not None:
            raise self._error(self._unreadable)
        return self

    def __next__(self) -> tuple[K, V]:
        row = self._peeked
        if row is None:
            row = self._advance()
            if row is None:
                raise StopIteration
        else:
            self._peeked = None
        if row.__class__ is DamagedRowError:
            raise row
        return row  # type: ignore[return-value]

    def has_next(self) -> bool:
        """Return whether there is another row, readable or not."""
        if self._peeked is None:
            self._peeked = self._advance()
        return self._peeked is not None

    def peek_next_key(self) -> K:
        """Return the key of the next row without advancing.

        Raises
        ------
        NoSuchElementError
            If there are no more rows.
        DamagedRowError
            If the next row cannot be read; the iterator then skips it.
        """
        row = self._peeked if self.has_next() else None
        if row is None:
            raise NoSuchElementError(f"store {self._store}: there is no next row")
        if isinstance(row, DamagedRowError):
            self._peeked = None
            raise row
        return row[0]

    @property
    def _is_closed(self) -> bool:
        """Whether the iterator has been closed."""
        return self._rows is None

    def close(self) -> None:
        """Release all resources. Closing twice has no effect."""
        if self._rows is None:
            return
        rows, self._rows, self._peeked, self._unreadable = self._rows, None, None, "has closed"
        close = getattr(rows, "close", None)
        if close is not None:
            close()
        if self._on_close is not None:
            self._on_close()

    def _advance(self) -> tuple[K, V] | DamagedRowError | None:
        """Return the next row, or None after the last one."""
        if self._rows is None:
            raise self._error("has closed")
        try:
            return next(self._rows)
        except StopIteration:
            # After an exception, a generator behaves as if it were exhausted.
            if self._unreadable is FAILED:
                raise self._error(FAILED) from None
            self._unreadable = ENDED
            return None
        except BaseException:
            self._unreadable = FAILED
            raise

    def _error(self, why: str) -> InvalidStateStoreError:
        return InvalidStateStoreError(f"{self._noun} for store {self._store} {why}")
