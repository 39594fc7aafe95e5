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
    """Rows of a column family by key; during an upgrade, of two families.

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
        """Read a snapshot of the rows from one key to another, both included; ``None`` means no bound."""

    def key_from(self, key: bytes) -> bytes | None:
        """Return the first key that is not smaller than ``key``."""

    def delete_range(self, first: bytes, end: bytes) -> None:
        """Delete the rows from ``first`` to before ``end``."""

    def estimate(self) -> int:
        """Estimate the number of rows."""


class WriteBatch:
    """Writes that are applied atomically, see :meth:`letterhead.state.storage.database.Database.batch`."""

    def __init__(self, rocksdict: ModuleType, database: Any, options: Any, name: str) -> None:
        self._batch = rocksdict.WriteBatch(raw_mode=True)
        self._database = database
        self._options = options
        self._name = name

    def put(self, key: bytes, value: bytes | None, family: Any) -> None:
        """Add a write of a row of a family; ``None`` deletes it."""
        if value is None:
            self._batch.delete(key, family)
        else:
            self._batch.put(key, value, family)

    def put_all(self, changes: Iterable[tuple[bytes, bytes | None]], family: Any) -> None:
        """Add writes of several rows of a family."""
        put, delete = self._batch.put, self._batch.delete
        for key, value in changes:
            if value is None:
                delete(key, family)
            else:
                put(key, value, family)

    def delete_range(self, first: bytes, end: bytes, family: Any) -> None:
        """Add a deletion of the rows of a family from ``first`` to before ``end``."""
        self._batch.delete_range(first, end, family)

    def write(self) -> None:
        """Apply the writes.

        Raises
        ------
        ProcessorStateError
            If they cannot be written.
        """
        try:
            self._database.write(self._batch, self._options)
        except Exception as error:
            raise operation_error(f"Error while batch writing to store {self._name}", error) from error


class OpenDatabase(Protocol):
    """Methods of a database that its rows use.

    Attributes
    ----------
    name : str
        Name of the store or the segment, for errors.
    usable : bool
        Whether :meth:`check_open` would not raise.
    """

    name: str
    usable: bool

    def check_open(self) -> None:
        """Raise if the database is closed, or was opened by another process."""

    def batch(self) -> WriteBatch:
        """Return a new batch of writes to any of the families."""


class FamilyRows:
    """The :class:`StoredRows` of one column family, an open ``rocksdict.Rdict``.

    ``handles`` has the families of the database by name, for batches; it is emptied when the database is closed.
    """

    def __init__(self, database: OpenDatabase, family: Any, handles: dict[str, Any], name: str) -> None:
        self._database = database
        self._family = family
        self._handles = handles
        self._name = name

    @property
    def handle(self) -> Any:
        """Family handle for batches."""
        # Not stored as an attribute: the files stay locked as long as any reference exists, for example in a traceback.
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
        """Read a snapshot of the rows from one key to another, both included."""
        self._database.check_open()
        return read_rows(self._family, self._database.name, first, last, backward=backward)

    def first(self) -> bytes | None:
        """Return the first key."""
        return self.key_from(b"")

    def key_from(self, key: bytes) -> bytes | None:
        """Return the first key that is not smaller than ``key``."""
        row = next(self.scan(key), None)
        return None if row is None else row[0]

    def delete_range(self, first: bytes, end: bytes) -> None:
        """Delete the rows from ``first`` to before ``end``."""
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
    """Read a snapshot of the rows of an open ``rocksdict.Rdict`` from one key to another, both included.

    ``None`` means no bound; with ``backward`` the last row comes first. The name of the store is for errors, such as
    ProcessorStateError, which is raised when the rows are read if a file is damaged.
    """
    # The snapshot is taken here, because a generator would take it at its first row.
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
    """Raise if the rows ended at a damaged block, where the fast iterator stops without an error."""
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
    """Return the error for a failed operation: the operation and store, RocksDB's reason, and a remedy if one is known."""
    reason = _LINKS.sub("", str(error))
    remedy = next((remedy for sign, remedy in _REMEDIES.items() if sign in reason), "")
    return ProcessorStateError(f"{message}: {reason}{remedy}")


# Directory of links through which a database is read; errors name the original files instead.
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
