"""RocksDB database with its column families and offsets, opened for writing or read-only."""

from __future__ import annotations

import ctypes
import os
import re
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from types import ModuleType
from typing import Any
from weakref import WeakSet, finalize

from letterhead._context_managers import Closing
from letterhead._optional_dependencies import install_hint
from letterhead.errors import (
    InvalidStateStoreError,
    ProcessorStateError,
    StoreLockedError,
    StoreNotFoundError,
    forked_store_error,
)
from letterhead.state.storage.files import CONFIG, check_files, has_database_files, missing_current_error
from letterhead.state.storage.layouts import OFFSETS, Layout, Legacy, mixed_formats_error
from letterhead.state.storage.position import Position
from letterhead.state.storage.rows import FamilyRows, StoredRows, WriteBatch, operation_error, read_rows
from letterhead.state.storage.temporary import TemporaryDirectory
from letterhead.state.storage.upgrade import UpgradingRows

__all__ = ["Database", "RocksDBOptions", "StoredFamilies"]

STATUS = b"status"
POSITION = b"position"
FORMAT = b"letterhead-format"
OPEN = struct.pack(">q", 1)
CLOSED = struct.pack(">q", 0)
UNKNOWN_OFFSET = -4


@dataclass(frozen=True, slots=True)
class RocksDBOptions:
    """Options for opening the databases of a store; they do not affect the format of the files.

    Parameters
    ----------
    write_ahead_log : bool, default False
        Whether to log every write first, so that no writes are lost if the process dies. Without the log, a store must
        be restored from its changelog, as in Kafka Streams.
    sync : bool, default False
        Whether every write waits for the disk; requires the write-ahead log.
    block_cache_bytes : int, default 50 MiB
        Size of the block cache of each database.
    write_buffer_bytes : int, default 16 MiB
        Size of the write buffer of each column family.
    configure : callable, optional
        Called with the name of the store and the ``rocksdict.Options`` of each family of rows, which it can modify.
    """

    write_ahead_log: bool = False
    sync: bool = False
    block_cache_bytes: int = 50 << 20
    write_buffer_bytes: int = 16 << 20
    configure: Callable[[str, Any], None] | None = None


class Database:
    """An open database of a store, or of one segment of a store.

    Parameters
    ----------
    name : str
        Name of the store or the segment, for errors.
    directory : Path
        Directory of the database, created if it does not exist.
    layout : Layout
        The families of the store.
    options : RocksDBOptions
        Options of RocksDB.

    Attributes
    ----------
    rows : StoredRows
        The rows.
    dirty : bool
        Whether the database was not closed properly after its last use.
    usable : bool
        Whether the database is open and was opened by this process; a fast alternative to :meth:`check_open`.

    Raises
    ------
    UnexpectedColumnFamilyError
        If the database belongs to another type of store.
    StoreLockedError
        If the database is in use.
    ProcessorStateError
        If the database cannot be opened for another reason.
    """

    def __init__(self, name: str, directory: Path, layout: Layout, options: RocksDBOptions) -> None:
        self.name = name
        self.directory = directory
        self._process = os.getpid()
        self._rocksdict = rocksdict = load_rocksdict()
        _check_threads(name)
        existing = list_families(name, directory)
        families = layout.check(name, existing)
        self._newest_first = [layout.family, *(legacy.family for legacy in layout.legacy), OFFSETS]
        self._write_options = _write_options(rocksdict, options)
        # Create the options of a column family only once, because they own its cache.
        self._options_of = cache(partial(_family_options, rocksdict, name, options=options))
        try:
            self._database = rocksdict.Rdict(
                str(directory),
                options=_database_options(rocksdict),
                column_families={family: self._options_of(family) for family in existing or families},
            )
        except Exception as error:
            raise _open_error(name, directory, error) from error
        self._families: dict[str, Any] = {}
        self._handles: dict[str, Any] = {}
        self._finalizer = finalize(self, _release, self._families, self._newest_first, self._process)
        self.is_open = self.usable = True
        _open_databases.add(self)
        try:
            for family in existing or families:
                self._use(family)
            legacy = self._legacy_with_rows(layout)
            # Create new families last, once the store is open: older stores cannot open a database with a new family.
            for family in families:
                if family not in self._families:
                    self._create(family)
            self._offsets = self._rows_of(OFFSETS)
            if layout.version is not None:
                layout.check_version(name, self._get_offset(FORMAT))
                self._offsets.put(FORMAT, struct.pack(">q", layout.version))
            self.rows: StoredRows = self._rows_of(layout.family)
            if legacy is not None:
                self.rows = UpgradingRows(self, self.rows, self._rows_of(legacy.family), legacy.convert)
            else:
                self._drop_empty(layout)
            self.dirty = self._get_offset(STATUS) == 1
            self._offsets.put(STATUS, OPEN)
        except BaseException as error:
            with suppress(ProcessorStateError):
                self.close(clean=False)
            if isinstance(error, Exception) and not isinstance(error, ProcessorStateError):
                raise _open_error(name, directory, error) from error
            raise

    @property
    def upgrading(self) -> bool:
        """Whether the database has rows of an older version of the store."""
        return isinstance(self.rows, UpgradingRows)

    def position(self) -> Position:
        """Read the position of the last commit; raise ProcessorStateError if it is invalid."""
        try:
            return Position.deserialize(self._offsets.get(POSITION))
        except ValueError as error:
            raise operation_error(f"Error reading the position of store {self.name}", error) from error

    def offsets(self) -> dict[str, int]:
        """Read the offsets of the last commits, by ``topic-partition``."""
        return _offsets(self._offsets.scan())

    def commit(self, offsets: Mapping[tuple[str, int], int | None], position: Position) -> None:
        """Store the changelog offsets and the position in the inputs; without a changelog there are no offsets.

        Raises
        ------
        ProcessorStateError
            If they cannot be written, or if the directory was deleted and writes to its open files would be lost.
        """
        self.check_open()
        if not self.directory.is_dir():
            raise ProcessorStateError(
                f"Error while committing store {self.name}: its directory {self.directory} is gone"
            )
        changes: list[tuple[bytes, bytes | None]] = [
            (f"{topic}-{partition}".encode(), struct.pack(">q", UNKNOWN_OFFSET if offset is None else offset))
            for (topic, partition), offset in offsets.items()
        ]
        if not offsets:
            changes = [(key, None) for key, _ in self._offsets.scan() if key not in (STATUS, FORMAT)]
        self._offsets.write([*changes, (POSITION, position.serialize())])

    def batch(self) -> WriteBatch:
        """Create a batch of writes to any of the families."""
        self.check_open()
        return WriteBatch(self._rocksdict, self._database, self._write_options, self.name)

    def write(
        self,
        rows: Iterable[tuple[bytes, bytes | None]],
        offsets: Iterable[tuple[bytes, bytes | None]],
        dropped: Iterable[tuple[bytes, bytes]] = (),
    ) -> None:
        """Delete ranges of rows, and then write rows and entries of the offsets family, all atomically."""
        batch = self.batch()
        family = self._handles[self._newest_first[0]]
        for first, end in dropped:
            batch.delete_range(first, end, family)
        batch.put_all(rows, family)
        batch.put_all(offsets, self._handles[OFFSETS])
        batch.write()

    def add_file(self, file: Path, rows: Iterable[Iterable[tuple[bytes, bytes | None]]]) -> None:
        """Write rows to a separate file, and add it to the database.

        ``rows`` yields chunks of rows; keys must be unique and in order.

        Raises
        ------
        ProcessorStateError
            If the file cannot be written or added.
        """
        self.check_open()
        family = self._newest_first[0]
        with self._file_errors():
            # Do not overwrite an existing file: after a process was killed, it can be a second link to a file of the
            # database.
            file.unlink(missing_ok=True)
            writer = self._rocksdict.SstFileWriter(self._options_of(family))
            writer.open(str(file))
        for chunk in rows:  # outside of the context: errors of the iterator are not errors of the store
            with self._file_errors():
                for key, value in chunk:
                    if value is None:
                        del writer[key]
                    else:
                        writer[key] = value
        with self._file_errors():
            writer.finish()
            options = self._rocksdict.IngestExternalFileOptions()
            options.set_move_files(True)
            self._families[family].ingest_external_file([str(file)], options)

    @contextmanager
    def _file_errors(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            raise operation_error(f"Error while adding a file to store {self.name}", error) from error

    def flush(self) -> None:
        """Flush all data in memory to files.

        Newer families are flushed first: if the process dies in between, a moved row exists twice rather than not at all,
        and the offsets are not ahead of the rows. Closing and garbage collection use the same order.
        """
        self.check_open()
        try:
            for family in self._newest_first:
                if family in self._families:
                    self._families[family].flush()
        except Exception as error:
            raise operation_error(f"Error while executing flush from store {self.name}", error) from error

    def close(self, *, clean: bool = True) -> None:
        """Flush all data to files, and close the database; do nothing if it is closed.

        Raises
        ------
        ProcessorStateError
            If some data could not be written. The database is closed nevertheless.
        """
        if not self.is_open:
            return
        self.is_open = self.usable = False
        if os.getpid() != self._process:
            return  # the parent process closes it
        # Release all family handles even after an error, because each of them keeps the database open and locked.
        steps = [partial(self._families[OFFSETS].put, STATUS, CLOSED)] if clean else []
        steps += [family.close for family in _order_families(self._families, self._newest_first)]
        steps.append(self._database.close)
        for attribute in ("rows", "_offsets", "_database", "_options_of"):
            self.__dict__.pop(attribute, None)
        self._handles.clear()
        self._families.clear()
        first: Exception | None = None
        while steps:
            try:
                steps.pop(0)()
            except Exception as error:
                first = first or error
        if first is not None:
            raise operation_error(f"Error while closing store {self.name}", first) from first

    def check_open(self) -> None:
        """Raise InvalidStateStoreError if the database is closed, or was opened by another process."""
        if not self.is_open:
            raise InvalidStateStoreError(f"Store {self.name} is currently closed")
        if os.getpid() != self._process:
            raise forked_store_error(self.name)

    def _use(self, family: str) -> None:
        self._families[family] = opened = self._database.get_column_family(family)
        opened.set_write_options(self._write_options)
        self._handles[family] = self._database.get_column_family_handle(family)

    def _create(self, family: str) -> None:
        try:
            self._database.create_column_family(family, self._options_of(family))
        except Exception as error:
            raise _open_error(self.name, self.directory, error) from error
        self._use(family)

    def _legacy_with_rows(self, layout: Layout) -> Legacy | None:
        """Return the family with rows of an older version of the store, if any."""
        old = [legacy for legacy in layout.legacy if legacy.family in self._families]
        filled = [legacy for legacy in old if self._rows_of(legacy.family).first() is not None]
        if len(old) > 1 and old[-1] in filled:
            raise mixed_formats_error(self.name)
        return filled[0] if filled else None

    def _drop_empty(self, layout: Layout) -> None:
        for legacy in layout.legacy:
            if legacy.dropped and legacy.family in self._families:
                del self._handles[legacy.family]
                self._families.pop(legacy.family).close()
                self._database.drop_column_family(legacy.family)

    def _rows_of(self, family: str) -> FamilyRows:
        return FamilyRows(self, self._families[family], self._handles, family)

    def _get_offset(self, key: bytes) -> int | None:
        value = self._offsets.get(key)
        return None if value is None or len(value) != 8 else struct.unpack(">q", value)[0]


_open_databases: WeakSet[Database] = WeakSet()
_process_of_threads: int | None = None


def _keep_references_in_child() -> None:
    for database in _open_databases:
        database.usable = False
        # Closing would wait for threads that exist only in the parent, so keep references in the child until it ends.
        for reference in (
            database.__dict__.get("_database"),
            *database._families.values(),
            *database._handles.values(),
        ):
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(reference))


def _check_threads(name: str) -> None:
    """Raise in a forked process, in which a database would wait forever for background threads."""
    if _process_of_threads not in (None, os.getpid()):
        raise InvalidStateStoreError(
            f"Store {name} cannot be opened here: this process was forked from one that had used RocksDB, and has none "
            "of its threads; start it with spawn or forkserver"
        )
    _remember_process()


def _remember_process() -> None:
    global _process_of_threads
    _process_of_threads = os.getpid() if _process_of_threads is None else _process_of_threads


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_keep_references_in_child)


class StoredFamilies(Closing):
    """A database opened read-only, with any column families; its directory is not modified.

    Another process may have the database open; rows that this process has not written to files yet are missing.

    Parameters
    ----------
    directory : Path
        Directory of the database.

    Attributes
    ----------
    names : list of str
        Names of the families.

    Raises
    ------
    StoreNotFoundError
        If there is no database in the directory.
    ProcessorStateError
        If the database cannot be opened.
    """

    def __init__(self, directory: Path) -> None:
        rocksdict = load_rocksdict()
        _remember_process()
        self._process = os.getpid()
        self._name = name = directory.name
        if not directory.is_dir() or not has_database_files(os.listdir(directory)):
            raise StoreNotFoundError(f"there is no store in {directory}")
        if not (directory / "CURRENT").exists():
            raise missing_current_error(name, directory)
        check_files(name, directory)
        # Open links to the files, because rocksdict writes a file even into the directory of a read-only database.
        self._links = TemporaryDirectory("store")
        try:
            links = _link(directory, self._links.path)
            self.names = _families_of(name, links)
            self._database = rocksdict.Rdict(
                str(links),
                options=rocksdict.Options(raw_mode=True),
                column_families={family: rocksdict.Options(raw_mode=True) for family in self.names},
                access_type=rocksdict.AccessType.read_only(False),
            )
        except Exception as error:
            self._links.close()
            if isinstance(error, ProcessorStateError):
                raise
            raise _open_error(name, directory, error) from error
        self._families = {family: self._database.get_column_family(family) for family in self.names}

    def get(self, family: str, key: bytes) -> bytes | None:
        """Read a row of a family; raise ProcessorStateError if it cannot be read."""
        self._check_process()
        try:
            value: bytes | None = self._families[family].get(key)
        except Exception as error:
            raise operation_error(f"Error while getting value for key from store {self._name}", error) from error
        return value

    def rows(
        self, family: str, first: bytes | None = None, last: bytes | None = None, *, backward: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        """Read the rows of a family, as :func:`~letterhead.state.storage.rows.read_rows` does."""
        self._check_process()
        return read_rows(self._families[family], self._name, first, last, backward=backward)

    def estimate(self, family: str) -> int:
        """Estimate the number of rows of a family."""
        return self._families[family].property_int_value("rocksdb.estimate-num-keys") or 0

    @property
    def dirty(self) -> bool:
        """Whether the database is open elsewhere, or was not closed properly after its last use."""
        return OFFSETS in self.names and self.get(OFFSETS, STATUS) == OPEN

    def version(self) -> int | None:
        """Read the format version, or return None if the database has none."""
        value = self.get(OFFSETS, FORMAT) if OFFSETS in self.names else None
        return None if value is None else int.from_bytes(value, "big", signed=True)

    def position(self) -> Position:
        """Read the position of the last commit; raise ValueError if it is invalid."""
        return Position.deserialize(self.get(OFFSETS, POSITION) if OFFSETS in self.names else None)

    def offsets(self) -> dict[str, int]:
        """Read the offsets of the last commits, by ``topic-partition``."""
        return _offsets(self.rows(OFFSETS)) if OFFSETS in self.names else {}

    def close(self) -> None:
        """Close the database, except in a forked child; do nothing if it is closed."""
        if os.getpid() != self._process:
            return
        for family in self._families.values():
            family.close()
        self._families.clear()
        self._database.close()
        self._links.close()

    def _check_process(self) -> None:
        if os.getpid() != self._process:
            raise forked_store_error(self._name)


def list_families(name: str, directory: Path) -> list[str]:
    """Return the names of the families in a directory, or none without a database; ``name`` is the store for errors."""
    try:
        if not directory.is_dir():
            return []
        check_files(name, directory)
    except OSError as error:
        raise operation_error(f"Error listing column families for store {name}", error) from error
    return _families_of(name, directory) if (directory / "CURRENT").exists() else []


def _families_of(name: str, directory: Path) -> list[str]:
    try:
        families: list[str] = load_rocksdict().Rdict.list_cf(str(directory))
    except ModuleNotFoundError:
        raise
    except Exception as error:
        raise operation_error(f"Error listing column families for store {name}", error) from error
    return families


def load_rocksdict() -> ModuleType:
    """Import rocksdict, an optional dependency."""
    with install_hint("a persistent store", "letterhead[state]"):
        import rocksdict
    module: ModuleType = rocksdict
    return module


def _order_families(families: dict[str, Any], newest_first: list[str]) -> list[Any]:
    """Return families in the order in which they must be closed, because closing flushes them to files."""
    return [families[name] for name in dict.fromkeys([*newest_first, *families]) if name in families]


def _release(families: dict[str, Any], newest_first: list[str], process: int) -> None:
    """Close the families of a garbage-collected database in the order in which they must be flushed."""
    if os.getpid() != process:
        return  # the parent process closes it
    for family in _order_families(families, newest_first):
        with suppress(Exception):
            family.close()


def _link(directory: Path, links: Path) -> Path:
    """Link each file of a database, and return the directory of the links."""
    for path in directory.iterdir():
        if path.is_file() and path.name != CONFIG:
            (links / path.name).symlink_to(path.resolve())
    return links


def _offsets(rows: Iterable[tuple[bytes, bytes]]) -> dict[str, int]:
    return {
        key.decode(): struct.unpack(">q", value)[0]
        for key, value in rows
        if key not in (STATUS, POSITION, FORMAT) and len(value) == 8
    }


def _open_error(name: str, directory: Path, error: Exception) -> ProcessorStateError:
    message = f"Error opening store {name} at location {directory}"
    # Search for the word "lock" only: the path may contain "lock", and messages may contain "blocks".
    if re.search(r"\block\b", str(error).replace(str(directory), "").lower()) and "denied" not in str(error):
        return StoreLockedError(f"{message}: it is in use by another process, or open in this one")
    return operation_error(message, error)


def _write_options(rocksdict: ModuleType, options: RocksDBOptions) -> Any:
    write = rocksdict.WriteOptions()
    write.disable_wal = not options.write_ahead_log
    write.sync = options.sync
    return write


def _database_options(rocksdict: ModuleType) -> Any:
    database = rocksdict.Options(raw_mode=True)
    database.create_if_missing(True)
    database.create_missing_column_families(True)  # needed when a database is created
    database.set_atomic_flush(True)  # rows and offsets are flushed together
    database.increase_parallelism(max(os.cpu_count() or 1, 2))
    database.set_keep_log_file_num(2)
    return database


def _family_options(rocksdict: ModuleType, name: str, family: str, options: RocksDBOptions) -> Any:
    result = rocksdict.Options(raw_mode=True)
    result.set_compression_type(rocksdict.DBCompressionType.none())
    if family == OFFSETS:
        result.set_write_buffer_size(1 << 20)
        return result
    blocks = rocksdict.BlockBasedOptions()
    blocks.set_block_size(4096)
    blocks.set_bloom_filter(10, False)
    blocks.set_block_cache(rocksdict.Cache(options.block_cache_bytes))
    result.set_block_based_table_factory(blocks)
    result.set_optimize_filters_for_hits(True)
    result.set_write_buffer_size(options.write_buffer_bytes)
    result.set_max_write_buffer_number(3)
    result.set_compaction_style(rocksdict.DBCompactionStyle.universal())
    if options.configure is not None:
        options.configure(name, result)
    return result
