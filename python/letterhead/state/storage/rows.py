"""Rows of one column family, and batches of writes to several families."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import Any, Protocol

from letterhead.errors import DecodeError, ProcessorStateError, forked_store_error

__all__ = ["FamilyRows", "OpenDatabase", "StoredRows", "WriteBatch", "operation_error", "read_rows", "row_error"]


class StoredRows(Protocol):
    """Rows of a column family (during an upgrade, of two families) by key.

    Methods raise :class:`~letterhead.errors.ProcessorStateError` if the files cannot be read or written, and
    :class:`~letterhead.errors.InvalidStateStoreError` if the database is closed.
    """

    def get(self, key: bytes) -> bytes | None:
        """Read a row."""

    def peek(self, key: bytes) -> bytes | None:
        """Read a row without moving it to the newer family."""

    def put(self, key: bytes, value: bytes | None) -> None:
        """Write a row; ``None`` deletes it."""

    def write(self, changes: Iterable[tuple[bytes, bytes | None]]) -> None:
        """Write several rows atomically."""

    def scan(
        self, first: bytes | None = None, last: bytes | None = None, *, backward: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        """Read a snapshot of the rows with keys in [``first``, ``last``]; ``None`` means no bound."""

    def key_from(self, key: bytes) -> bytes | None:
        """Return the first key at or after ``key``, or None."""

    def delete_range(self, first: bytes, end: bytes) -> None:
        """Delete the rows with keys in [``first``, ``end``)."""

    def estimate(self) -> int:
        """Estimate the number of rows."""


class WriteBatch:
    """Batch of writes that are applied atomically; see :meth:`letterhead.state.storage.database.Database.batch`."""

    def __init__(self, rocksdict: ModuleType, database: Any, options: Any, name: str) -> None:
        self._batch = rocksdict.WriteBatch(raw_mode=True)
        self._database = database
        self._options = options
        self._name = name

    def put(self, key: bytes, value: bytes | None, family: Any) -> None:
        """Add a write of a row to a family; ``None`` deletes it."""
        if value is None:
            self._batch.delete(key, family)
        else:
            self._batch.put(key, value, family)

    def put_all(self, changes: Iterable[tuple[bytes, bytes | None]], family: Any) -> None:
        """Add writes of several rows to a family."""
        put, delete = self._batch.put, self._batch.delete
        for key, value in changes:
            if value is None:
                delete(key, family)
            else:
                put(key, value, family)

    def delete_range(self, first: bytes, end: bytes, family: Any) -> None:
        """Add a deletion of the rows of a family with keys in [``first``, ``end``)."""
        self._batch.delete_range(first, end, family)

    def write(self) -> None:
        """Apply the writes.

        Raises
        ------
        ProcessorStateError
            If the writes cannot be applied.
        """
        try:
            self._database.write(self._batch, self._options)
        except Exception as error:
            raise operation_error(f"Error while batch writing to store {self._name}", error) from error


class OpenDatabase(Protocol):
    """Interface of a database for its rows.

    Attributes
    ----------
    name : str
        Name of the store or the segment, for errors.
    usable : bool
        Whether the database is usable, so that :meth:`check_open` would not raise.
    """

    name: str
    usable: bool

    def check_open(self) -> None:
        """Raise if the database is closed, or was opened by another process."""

    def batch(self) -> WriteBatch:
        """Create a batch of writes to any of the families."""


class FamilyRows:
    """Implementation of :class:`StoredRows` for one column family, an open ``rocksdict.Rdict``.

    ``handles`` contains the families of the database by name, for batches; it is emptied when the database is closed.
    """

    def __init__(self, database: OpenDatabase, family: Any, handles: dict[str, Any], name: str) -> None:
        self._database = database
        self._family = family
        self._handles = handles
        self._name = name

    @property
    def handle(self) -> Any:
        """Handle of the family for batches."""
        # Not stored as an attribute, because any reference keeps the files locked, for example in a traceback.
        return self._handles[self._name]

    def get(self, key: bytes) -> bytes | None:
        """Read a row."""
        if not self._database.usable:
            self._database.check_open()
        try:
            value: bytes | None = self._family.get(key)
        except Exception as error:
            raise operation_error(
                f"Error while getting value for key from store {self._database.name}", error
            ) from error
        return value

    peek = get

    def put(self, key: bytes, value: bytes | None) -> None:
        """Write a row; ``None`` deletes it."""
        if not self._database.usable:
            self._database.check_open()
        try:
            if value is None:
                self._family.delete(key)
            else:
                self._family.put(key, value)
        except Exception as error:
            action = "removing key from" if value is None else "putting key/value into"
            raise operation_error(f"Error while {action} store {self._database.name}", error) from error

    def write(self, changes: Iterable[tuple[bytes, bytes | None]]) -> None:
        """Write several rows atomically."""
        batch = self._database.batch()
        batch.put_all(changes, self.handle)
        batch.write()

    def scan(
        self, first: bytes | None = None, last: bytes | None = None, *, backward: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        """Read a snapshot of the rows with keys in [``first``, ``last``]."""
        self._database.check_open()
        return read_rows(self._family, self._database.name, first, last, backward=backward)

    def first(self) -> bytes | None:
        """Return the first key, or None."""
        return self.key_from(b"")

    def key_from(self, key: bytes) -> bytes | None:
        """Return the first key at or after ``key``, or None."""
        row = next(self.scan(key), None)
        return None if row is None else row[0]

    def delete_range(self, first: bytes, end: bytes) -> None:
        """Delete the rows with keys in [``first``, ``end``)."""
        batch = self._database.batch()
        batch.delete_range(first, end, self.handle)
        batch.write()

    def estimate(self) -> int:
        """Estimate the number of rows."""
        self._database.check_open()
        return self._family.property_int_value("rocksdb.estimate-num-keys") or 0


def read_rows(
    family: Any, store: str, first: bytes | None = None, last: bytes | None = None, *, backward: bool = False
) -> Iterator[tuple[bytes, bytes]]:
    """Read a snapshot of the rows of an open ``rocksdict.Rdict`` with keys in [``first``, ``last``].

    ``None`` means no bound; with ``backward``, rows are in reverse order. Errors contain the name of the store.
    ProcessorStateError is raised during iteration if a file is damaged.
    """
    # Take the snapshot here, because a generator would take it only at its first row.
    rows = family.items(backwards=backward, from_key=last if backward else first)
    return _yield_until(rows, first if backward else last, backward, family, store, os.getpid())


def _yield_until(
    rows: Iterator[tuple[bytes, bytes]], bound: bytes | None, backward: bool, family: Any, store: str, process: int
) -> Iterator[tuple[bytes, bytes]]:
    key = None
    if os.getpid() != process:
        raise forked_store_error(store)
    for row in rows:
        key = row[0]
        if bound is not None and (key < bound if backward else key > bound):
            return
        yield row
        if os.getpid() != process:
            raise forked_store_error(store)
    _check_end(family, store, key, backward)


def _check_end(family: Any, store: str, last: bytes | None, backward: bool) -> None:
    """Raise if the rows ended at a damaged block: the fast iterator stops there without an error."""
    cursor = family.iter()
    if last is None:
        cursor.seek_to_last() if backward else cursor.seek_to_first()
    else:
        cursor.seek_for_prev(last) if backward else cursor.seek(last)
        if cursor.valid():
            cursor.prev() if backward else cursor.next()
    if not cursor.valid():
        try:
            cursor.status()
        except Exception as error:
            raise operation_error(f"Error while iterating over store {store}", error) from error


def operation_error(message: str, error: Exception) -> ProcessorStateError:
    """Return the error for a failed operation, with the operation, the store, RocksDB's reason and any known remedy."""
    reason = _LINKS.sub("", str(error))
    remedy = next((remedy for sign, remedy in _REMEDIES.items() if sign in reason), "")
    return ProcessorStateError(f"{message}: {reason}{remedy}")


# Directory of the links through which a database is read, to be removed from paths in errors.
_LINKS = re.compile(r"\S*/letterhead-store-[^/\s]*/")
_FULL = " (make room, close the store and open it again)"
_REMEDIES = {
    "No space left on device": _FULL,
    "Disk quota exceeded": _FULL,
    "File too large": _FULL,
    "ermission denied": " (this process may not write there)",
    "Read-only file system": " (this process may not write there)",
}


def row_error(code: str, message: str, byte: int | None = None) -> DecodeError:
    """Return an error for malformed bytes of a stored row."""
    return DecodeError(message, format=None, code=code, byte_offset=byte)
