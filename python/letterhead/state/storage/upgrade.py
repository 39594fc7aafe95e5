"""Rows of a store during an upgrade: older rows in one column family, newer rows in another.

A row moves when it is read by key or written; scans merge both families without moving rows. A move is one batch, so each
row is in exactly one family even if the process dies. (Kafka Streams uses two writes.)
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from operator import itemgetter
from threading import Lock

from letterhead.errors import DamagedRowError, DecodeError
from letterhead.state.storage.layouts import Convert
from letterhead.state.storage.rows import FamilyRows, OpenDatabase

__all__ = ["UpgradingRows"]

MOVED_AT_ONCE = 1000


class UpgradingRows:
    """Implementation of :class:`~letterhead.state.storage.rows.StoredRows` that combines two families.

    Rows move under a lock, so that a move does not overwrite a concurrent write by another thread. ``convert`` returns the
    newer value for a key and its older value. If the conversion fails, reading the row raises
    :class:`~letterhead.errors.DamagedRowError`, and the row does not move.
    """

    def __init__(self, database: OpenDatabase, new: FamilyRows, old: FamilyRows, convert: Convert) -> None:
        self._database = database
        self._new = new
        self._old = old
        self._convert_value = convert
        self._lock = Lock()

    def get(self, key: bytes) -> bytes | None:
        """Read a row, and move it if it is in the older family."""
        value = self._new.get(key)
        if value is not None:
            return value
        with self._lock:
            value = self.peek(key)
            if value is not None:
                self._write([(key, value)])
        return value

    def peek(self, key: bytes) -> bytes | None:
        """Read a row without moving it."""
        # Read the older family first: rows only move to the newer family, so no row is missed.
        older = self._old.get(key)
        value = self._new.get(key)
        return self._convert(key, older) if value is None and older is not None else value

    def put(self, key: bytes, value: bytes | None) -> None:
        """Write a row, and delete its older version; ``None`` deletes both."""
        self.write([(key, value)])

    def write(self, changes: Iterable[tuple[bytes, bytes | None]]) -> None:
        """Write several rows atomically."""
        with self._lock:
            self._write(changes)

    def _write(self, changes: Iterable[tuple[bytes, bytes | None]]) -> None:
        batch = self._database.batch()
        for key, value in changes:
            batch.put(key, None, self._old.handle)
            batch.put(key, value, self._new.handle)
        batch.write()

    def scan(
        self, first: bytes | None = None, last: bytes | None = None, *, backward: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        """Read a snapshot of the rows with keys in [``first``, ``last``]."""
        # Read the older family first: rows only move to the newer family, so no row is missed.
        old = self._old.scan(first, last, backward=backward)
        new = self._new.scan(first, last, backward=backward)
        return self._merged(new, old, backward)

    def key_from(self, key: bytes) -> bytes | None:
        """Return the first key at or after ``key``, or None, without converting rows."""
        keys = [first for first in (self._old.key_from(key), self._new.key_from(key)) if first is not None]
        return min(keys, default=None)

    def delete_range(self, first: bytes, end: bytes) -> None:
        """Delete the rows with keys in [``first``, ``end``)."""
        batch = self._database.batch()
        batch.delete_range(first, end, self._old.handle)
        batch.delete_range(first, end, self._new.handle)
        batch.write()

    def estimate(self) -> int:
        """Estimate the number of rows."""
        return self._new.estimate() + self._old.estimate()

    def move_all(self) -> int:
        """Move all older rows, and return their number."""
        return sum(self.move())

    def move(self) -> Iterator[int]:
        """Move all older rows in atomic batches, and yield the size of each batch; an interrupted move can be continued.

        Raises
        ------
        DamagedRowError
            For the first row that cannot be converted, and therefore does not move; raised after all other rows have moved.
        """
        damaged: DamagedRowError | None = None
        start: bytes | None = b""
        while start is not None:
            changes: list[tuple[bytes, bytes | None]] = []
            with self._lock:
                for seen, (key, older) in enumerate(self._old.scan(start)):
                    if seen == MOVED_AT_ONCE:
                        start = key
                        break
                    newer = self._new.get(key)
                    try:
                        changes.append((key, self._convert(key, older) if newer is None else newer))
                    except DamagedRowError as error:
                        damaged = damaged or error
                else:
                    start = None
                self._write(changes)
            if changes:
                yield len(changes)
        if damaged is not None:
            raise damaged

    def _convert(self, key: bytes, older: bytes) -> bytes:
        try:
            return self._convert_value(key, older)
        except DecodeError as error:
            raise DamagedRowError(self._database.name, key, error) from error

    def _merged(
        self, new: Iterator[tuple[bytes, bytes]], old: Iterator[tuple[bytes, bytes]], backward: bool
    ) -> Iterator[tuple[bytes, bytes]]:
        previous = None
        tagged = ((key, value, False) for key, value in new), ((key, value, True) for key, value in old)
        # If both families have a key, the newer row comes first: the row was moved or written in the meantime.
        for key, value, is_older in heapq.merge(*tagged, key=itemgetter(0), reverse=backward):
            if key != previous:
                yield key, self._convert(key, value) if is_older else value
            previous = key
