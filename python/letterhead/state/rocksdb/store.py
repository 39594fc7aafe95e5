"""Base classes of stores in RocksDB, with one or more databases."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from letterhead.errors import forked_store_error
from letterhead.state.base import BytesStore, ValueFormat
from letterhead.state.interfaces import Context
from letterhead.state.storage.database import Database, RocksDBOptions
from letterhead.state.storage.files import read_text
from letterhead.state.storage.layouts import Layout
from letterhead.state.storage.position import Position
from letterhead.state.storage.rows import StoredRows, operation_error
from letterhead.state.storage.upgrade import UpgradingRows

__all__ = ["OneDatabaseStore", "PersistentStore"]


class PersistentStore(BytesStore):
    """Base class of byte stores in RocksDB."""

    persistent: ClassVar[bool] = True
    _iterator_name: ClassVar[str] = "RocksDB iterator"

    def __init__(self, name: str, format: ValueFormat, options: RocksDBOptions | None = None) -> None:
        super().__init__(name, format)
        self._options = options or RocksDBOptions()

    def open(self, directory: Path | None, context: Context | None = None) -> None:
        """Open the store.

        Parameters
        ----------
        directory : Path
            The directory of the task, which contains the directory of the store.
        context : Context, optional
            Context of the store in its task, with the record being processed.

        Raises
        ------
        UnexpectedColumnFamilyError
            If the files belong to another type of store.
        StoreLockedError
            If the files are in use.
        ProcessorStateError
            If the files cannot be opened for another reason.
        ModuleNotFoundError
            If ``rocksdict`` is not installed.
        """
        self._check_closed()
        if directory is None:
            raise TypeError(f"store {self.name} is persistent: it needs a directory")
        self._process = os.getpid()
        self.position = _older_position(Path(directory) / f"{self.name}.position")
        try:
            self._open_files(Path(directory))
            for database in self._databases():
                self.position.merge(database.position())
        except BaseException:
            self._close_files()
            raise
        self._opened(context)

    @property
    def opened_by_parent(self) -> bool:
        """Whether the store was opened by a parent process."""
        return self.is_open and os.getpid() != self._process

    def _check_open(self) -> None:
        super()._check_open()
        if os.getpid() != self._process:
            raise forked_store_error(self.name)

    def close(self) -> None:
        """Flush the store to files, and close it with its iterators. Closing twice has no effect."""
        self._closed()
        self._close_files()

    def commit(self, offsets: Mapping[tuple[str, int], int | None]) -> None:
        """Store the offset of the last changelog record (``None`` if unknown), and the position in the inputs."""
        self._check_open()
        position = self._kept_position()
        for database in self._databases():
            database.commit(offsets, position)

    def flush(self) -> None:
        """Flush the memory of the databases to files."""
        self._check_open()
        for database in self._databases():
            database.flush()

    def committed_offsets(self) -> dict[str, int]:
        """Return the offsets of the last commit by ``topic-partition``; the store contains the records up to these offsets.

        After a process died, one of several databases may be behind the others or have no offset. The result contains the
        smallest offset of each topic and partition for which all databases have an offset.
        """
        self._check_open()
        all_offsets = [database.offsets() for database in self._databases()]
        if not all_offsets:
            return {}
        return {
            partition: min(offsets[partition] for offsets in all_offsets)
            for partition in all_offsets[0]
            if all(partition in offsets for offsets in all_offsets)
        }

    @property
    def upgrading(self) -> bool:
        """Whether the store has rows of an older format, or had some when it was opened."""
        self._check_open()
        return any(database.upgrading for database in self._databases())

    def upgrade(self) -> int:
        """Convert all rows of an older format at once, rather than when they are read or written; return their number.

        Raises
        ------
        DamagedRowError
            If a row cannot be converted. This row is not changed; all other rows of its database are converted.
        """
        self._check_open()
        return sum(
            database.rows.move_all() for database in self._databases() if isinstance(database.rows, UpgradingRows)
        )

    def _kept_position(self) -> Position:
        return self.position

    def _open_files(self, directory: Path) -> None:
        """Open the databases in the directory of a task."""
        raise NotImplementedError

    def _close_files(self) -> None:
        """Close the databases that are open."""
        raise NotImplementedError

    def _databases(self) -> list[Database]:
        """Return the open databases."""
        raise NotImplementedError


class OneDatabaseStore(PersistentStore):
    """A store with one database, in the directory ``rocksdb/<store>``."""

    _database: Database | None = None
    _rows: StoredRows

    def _layout(self) -> Layout:
        """Return the column families of the store."""
        raise NotImplementedError

    def _open_files(self, directory: Path) -> None:
        path = directory / "rocksdb" / self.name
        self._database = Database(self.name, path, self._layout(), self._options)
        self._rows = self._database.rows

    def _close_files(self) -> None:
        if self._database is not None:
            database, self._database = self._database, None
            self.__dict__.pop("_rows", None)
            database.close()

    def _databases(self) -> list[Database]:
        return [] if self._database is None else [self._database]


def _older_position(path: Path) -> Position:
    """Read the position from the file that older versions of Kafka Streams wrote."""
    try:
        text = read_text(path)
    except FileNotFoundError:
        return Position()
    except OSError as error:
        raise operation_error(f"Error reading {path}", error) from error
    try:
        return Position.from_checkpoint(text)
    except ValueError as error:
        raise operation_error(f"Error reading {path}", error) from error
