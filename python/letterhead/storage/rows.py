"""The rows of one column family, and batches of writes to several."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import Any, Protocol

from letterhead.errors import ProcessorStateError, of_parent

__all__ = ["Batch", "FamilyRows", "OpenDatabase", "Rows", "failed", "read_rows"]


class Rows(Protocol):
    """Rows by key: those of one family, or those of two while a store is upgraded."""

    def get(self, key: bytes) -> bytes | None:
        """Read a row."""

    def peek(self, key: bytes) -> bytes | None:
        """Read a row, and leave it where it is."""

    def put(self, key: bytes, value: bytes | None) -> None:
        """Write a row; ``None`` removes it."""

    def write(self, changes: Iterable[tuple[bytes, bytes | None]]) -> None:
        """Write several rows, all of them or none."""

    def scan(
        self, first: bytes | None = None, last: bytes | None = None, *, backward: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        """Read the rows from one key to another, both included, as they are at this moment."""

    def key_from(self, key: bytes) -> bytes | None:
        """Give the first key that is not smaller than one."""

    def delete_range(self, first: bytes, end: bytes) -> None:
        """Remove the rows from one key up to, and without, another."""

    def estimate(self) -> int:
        """Estimate how many rows there are."""


class Batch:
    """Writes that are made together, or not at all.

    Parameters
    ----------
    rocksdict : module
        What writes.
    database : rocksdict.Rdict
        Where to.
    options : rocksdict.WriteOptions
        How.
    name : str
        Name of the store, for errors.
    """

    def __init__(self, rocksdict: ModuleType, database: Any, options: Any, name: str) -> None:
        self._batch = rocksdict.WriteBatch(raw_mode=True)
        self._database = database
        self._options = options
        self._name = name

    def put(self, key: bytes, value: bytes | None, family: Any) -> None:
        """Write a row of a family; ``None`` removes it."""
        if value is None:
            self._batch.delete(key, family)
        else:
            self._batch.put(key, value, family)

    def delete_range(self, first: bytes, end: bytes, family: Any) -> None:
        """Remove the rows of a family from one key up to, and without, another."""
        self._batch.delete_range(first, end, family)

    def write(self) -> None:
        """Make the writes.

        Raises
        ------
        ProcessorStateError
            If they cannot be made.
        """
        try:
            self._database.write(self._batch, self._options)
        except Exception as error:
            raise failed(f"Error while batch writing to store {self._name}", error) from error


class OpenDatabase(Protocol):
    """What rows ask of the database that they are in.

    Attributes
    ----------
    name : str
        Name of the store or the segment, for errors.
    usable : bool
        Whether :meth:`check_open` would let pass.
    """

    name: str
    usable: bool

    def check_open(self) -> None:
        """Refuse to work on a closed database, or on one of another process."""

    def batch(self) -> Batch:
        """Begin a batch of writes to any of the families."""


class FamilyRows:
    """The rows of one column family.

    Parameters
    ----------
    database : OpenDatabase
        The database.
    family : rocksdict.Rdict
        The family, opened.
    handles : dict of str to rocksdict.ColumnFamily
        The families of the database by name, for batches; emptied when it is closed.
    name : str
        Name of the family.
    """

    def __init__(self, database: OpenDatabase, family: Any, handles: dict[str, Any], name: str) -> None:
        self._database = database
        self._family = family
        self._handles = handles
        self._name = name

    @property
    def handle(self) -> Any:
        """The family, for batches."""
        # Not kept here: the files stay locked for as long as somebody has it, be it the traceback of an error.
        return self._handles[self._name]

    def get(self, key: bytes) -> bytes | None:
        """Read a row.

        Raises
        ------
        ProcessorStateError
            If it cannot be read.
        """
        if not self._database.usable:
            self._database.check_open()
        try:
            value: bytes | None = self._family.get(key)
        except Exception as error:
            raise failed(f"Error while getting value for key from store {self._database.name}", error) from error
        return value

    peek = get

    def put(self, key: bytes, value: bytes | None) -> None:
        """Write a row; ``None`` removes it.

        Raises
        ------
        ProcessorStateError
            If it cannot be written.
        """
        if not self._database.usable:
            self._database.check_open()
        try:
            if value is None:
                self._family.delete(key)
            else:
                self._family.put(key, value)
        except Exception as error:
            verb = "removing key from" if value is None else "putting key/value into"
            raise failed(f"Error while {verb} store {self._database.name}", error) from error

    def write(self, changes: Iterable[tuple[bytes, bytes | None]]) -> None:
        """Write several rows, all of them or none."""
        batch = self._database.batch()
        for key, value in changes:
            batch.put(key, value, self.handle)
        batch.write()

    def scan(
        self, first: bytes | None = None, last: bytes | None = None, *, backward: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        """Read the rows from one key to another, both included, as they are at this moment.

        Raises
        ------
        ProcessorStateError
            When the rows are read, if a file is damaged.
        """
        self._database.check_open()
        return read_rows(self._family, self._database.name, first, last, backward=backward)

    def first(self) -> bytes | None:
        """Give the first key."""
        return self.key_from(b"")

    def key_from(self, key: bytes) -> bytes | None:
        """Give the first key that is not smaller than one."""
        row = next(self.scan(key), None)
        return None if row is None else row[0]

    def delete_range(self, first: bytes, end: bytes) -> None:
        """Remove the rows from one key up to, and without, another."""
        batch = self._database.batch()
        batch.delete_range(first, end, self.handle)
        batch.write()

    def estimate(self) -> int:
        """Estimate how many rows there are."""
        self._database.check_open()
        return self._family.property_int_value("rocksdb.estimate-num-keys") or 0


def read_rows(
    family: Any, store: str, first: bytes | None = None, last: bytes | None = None, *, backward: bool = False
) -> Iterator[tuple[bytes, bytes]]:
    """Read the rows of a family from one key to another, both included, as they are at this moment.

    Parameters
    ----------
    family : rocksdict.Rdict
        The family, opened.
    store : str
        Name of the store, for errors.
    first, last : bytes, optional
        The keys; ``None`` is no bound.
    backward : bool, default False
        From the last to the first.

    Returns
    -------
    iterator of (key, value)
        The rows.

    Raises
    ------
    ProcessorStateError
        When the rows are read, if a file is damaged.
    """
    # The iterator is made here and not in the generator, which does nothing before it is asked for a row.
    rows = family.items(backwards=backward, from_key=last if backward else first)
    return _until(rows, first if backward else last, backward, family, store, os.getpid())


def _until(
    rows: Iterator[tuple[bytes, bytes]], bound: bytes | None, backward: bool, family: Any, store: str, process: int
) -> Iterator[tuple[bytes, bytes]]:
    key = None
    _check_process(store, process)
    for row in rows:
        key = row[0]
        if bound is not None and (key < bound if backward else key > bound):
            return
        yield row
        if os.getpid() != process:
            _check_process(store, process)
    _check_end(family, store, key, backward)


def _check_process(store: str, process: int) -> None:
    if os.getpid() != process:
        raise of_parent(store)


def _check_end(family: Any, store: str, last: bytes | None, backward: bool) -> None:
    """Make sure that the rows ended because there are no others: the fast iterator ends at a damaged block too."""
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
            raise failed(f"Error while iterating over store {store}", error) from error


def failed(message: str, error: Exception) -> ProcessorStateError:
    """Make the error for something that a database could not do, with the reason, and with what helps if that is known.

    Parameters
    ----------
    message : str
        What could not be done, to which store.
    error : Exception
        What RocksDB, or the system, said.
    """
    reason = _LINKS.sub("", str(error))
    help = next((help for sign, help in _HELP.items() if sign in reason), "")
    return ProcessorStateError(f"{message}: {reason}{help}")


# A database that is only looked at is opened through links: what is wrong is wrong with the files that they lead to.
_LINKS = re.compile(r"\S*/letterhead-store-[^/\s]*/")
_FULL = " (make room, close the store and open it again)"
_HELP = {
    "No space left on device": _FULL,
    "Disk quota exceeded": _FULL,
    "File too large": _FULL,
    "ermission denied": " (this process may not write there)",
    "Read-only file system": " (this process may not write there)",
}
