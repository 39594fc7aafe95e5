"""The rows of a store that is being upgraded: older ones in one family, newer ones in another.

A row moves when it is read by its key or written; scans merge both families and move nothing. A move is one batch, so
that a row is in one family or in the other whenever the process dies. (Kafka Streams makes two writes of it.)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from threading import Lock

from letterhead.errors import DamagedRowError, DecodeError
from letterhead.storage.layouts import Convert
from letterhead.storage.rows import FamilyRows, OpenDatabase

__all__ = ["UpgradingRows"]

MOVED_AT_ONCE = 1000


class UpgradingRows:
    """The rows of two families as if they were one.

    A row is moved under a lock: what another thread writes in between is not overwritten by what the row held before.

    Parameters
    ----------
    database : OpenDatabase
        The database.
    new, old : FamilyRows
        The families.
    convert : callable
        Makes a newer value of a key and its older value.

    Raises
    ------
    DamagedRowError
        From what reads an older row, if it cannot be made newer. It stays where it is.
    """

    def __init__(self, database: OpenDatabase, new: FamilyRows, old: FamilyRows, convert: Convert) -> None:
        self._database = database
        self._new = new
        self._old = old
        self._make = convert
        self._lock = Lock()

    def get(self, key: bytes) -> bytes | None:
        """Read a row; an older one moves."""
        value = self._new.get(key)
        if value is not None:
            return value
        with self._lock:
            value = self.peek(key)
            if value is not None:
                self._write([(key, value)])
        return value

    def peek(self, key: bytes) -> bytes | None:
        """Read a row, and leave it where it is."""
        # A row moves to the newer family and never back: looked for in this order, it is not missed.
        older = self._old.get(key)
        value = self._new.get(key)
        return self._convert(key, older) if value is None and older is not None else value

    def put(self, key: bytes, value: bytes | None) -> None:
        """Write a row, and remove the older one; ``None`` removes both."""
        self.write([(key, value)])

    def write(self, changes: Iterable[tuple[bytes, bytes | None]]) -> None:
        """Write several rows, all of them or none."""
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
        """Read the rows from one key to another, both included, as they are at this moment."""
        # Between the two a row may move to the newer family, never back: read in this order, none is missed.
        old = self._old.scan(first, last, backward=backward)
        new = self._new.scan(first, last, backward=backward)
        return self._merged(new, old, backward)

    def key_from(self, key: bytes) -> bytes | None:
        """Give the first key that is not smaller than one; no row is made newer for that."""
        found = [first for first in (self._old.key_from(key), self._new.key_from(key)) if first is not None]
        return min(found, default=None)

    def delete_range(self, first: bytes, end: bytes) -> None:
        """Remove the rows from one key up to, and without, another."""
        batch = self._database.batch()
        batch.delete_range(first, end, self._old.handle)
        batch.delete_range(first, end, self._new.handle)
        batch.write()

    def estimate(self) -> int:
        """Estimate how many rows there are."""
        return self._new.estimate() + self._old.estimate()

    def move_all(self) -> int:
        """Move all older rows, and say how many there were."""
        return sum(self.move())

    def move(self) -> Iterator[int]:
        """Move all older rows, some at once, and say each time how many those were.

        Each time it is all of them or none: whoever stops in between, or has to, can go on later.

        Raises
        ------
        DamagedRowError
            If a row cannot be made newer, when all others have moved: the first of those that stay where they are.
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
            return self._make(key, older)
        except DecodeError as error:
            raise DamagedRowError(self._database.name, key, error) from error

    def _merged(
        self, new: Iterator[tuple[bytes, bytes]], old: Iterator[tuple[bytes, bytes]], backward: bool
    ) -> Iterator[tuple[bytes, bytes]]:
        newer, older = next(new, None), next(old, None)
        while older is not None:
            key = older[0]
            if newer is not None and newer[0] == key:
                older = next(old, None)  # a row that was moved or written meanwhile
            elif newer is not None and (newer[0] < key) != backward:
                yield newer
                newer = next(new, None)
            else:
                yield key, self._convert(key, older[1])
                older = next(old, None)
        while newer is not None:
            yield newer
            newer = next(new, None)
