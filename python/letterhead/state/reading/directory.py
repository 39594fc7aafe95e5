"""Find the stores in a directory, and the process that currently has a store open.

::

    <state>/<application>/<task>/rocksdb/<store>                     one database
    <state>/<application>/<task>/<store>/<store>.<first millisecond> a database for each segment

Callers can pass any of these directories. A directory with any database file counts as a database, even if other files
are missing. Kafka Streams before 1.0 named a segment `<store>-yyyyMMddHHmm`.
"""

from __future__ import annotations

import errno
import os
import re
import struct
import sys
from dataclasses import dataclass
from pathlib import Path

from letterhead.errors import StoreChoiceError, StoreNotFoundError
from letterhead.state.storage.files import has_database_files
from letterhead.state.storage.segments import segment_start

__all__ = ["StoreFiles", "StoreSegment", "find_one_store", "find_stores", "holder", "task_partition"]

TASK = re.compile(r"(?:.+__)?\d+_(\d+)")
# Maximum depth, from the directory of all applications to a segment.
DEEPEST = 4


@dataclass(frozen=True)
class StoreSegment:
    """Database of a whole store, or of a segment with its first millisecond."""

    directory: Path
    start: int | None = None


@dataclass(frozen=True)
class StoreFiles:
    """Store in a directory."""

    name: str
    task: str  # empty if the search began in the task directory
    directory: Path  # absolute
    path: Path  # relative to the directory as passed by the user
    segments: tuple[StoreSegment, ...]  # oldest first

    @property
    def segmented(self) -> bool:
        """Whether the store has time segments."""
        return self.segments[0].start is not None

    @property
    def label(self) -> str:
        """Name of the store for messages."""
        return self._labelled(self.name)

    def database(self, segment: StoreSegment) -> str:
        """Return the name of one of the databases for messages."""
        return self._labelled(segment.directory.name)

    def _labelled(self, name: str) -> str:
        return f"{self.task}/{name}" if self.task else name


def find_stores(directory: Path, name: str | None = None) -> list[StoreFiles]:
    """Return the stores in a directory, or only those with a given name, sorted by task and name.

    Raises StoreNotFoundError if there are none, FileNotFoundError or NotADirectoryError if there is no such directory.
    """
    top = directory.resolve()
    if not top.is_dir():
        if top.exists():
            raise NotADirectoryError(errno.ENOTDIR, "not a directory", str(directory))
        raise FileNotFoundError(errno.ENOENT, "no such file or directory", str(directory))
    databases: dict[tuple[Path, bool], list[StoreSegment]] = {}
    for path in _databases(top):
        start = _segment_start(path)
        store_path = path if start is None else path.parent
        databases.setdefault((store_path, start is not None), []).append(StoreSegment(path, start))
    stores = [
        StoreFiles(
            store_path.name,
            _task(store_path, top),
            store_path,
            directory / store_path.relative_to(top) if store_path.is_relative_to(top) else store_path,
            tuple(sorted(segments, key=lambda segment: segment.start or 0)),
        )
        for (store_path, _), segments in databases.items()
    ]
    if not stores:
        raise StoreNotFoundError(
            f"there is no store in {directory}: no directory in it has a file CURRENT, as RocksDB's have"
        )
    names = sorted({store.name for store in stores})
    if name is not None and name not in names:
        existing = f"is {names[0]}" if len(names) == 1 else f"are {', '.join(names)}"
        raise StoreNotFoundError(f"there is no store {name} in {directory}: there {existing}")
    return sorted((store for store in stores if name in (None, store.name)), key=lambda store: (store.task, store.name))


def find_one_store(directory: Path, name: str | None = None) -> list[StoreFiles]:
    """Return the parts of a store in all tasks of a directory; without ``name``, the directory must have one store name.

    Raises StoreChoiceError if there are several names, StoreNotFoundError if there is no store.
    """
    stores = find_stores(directory, name)
    names = sorted({store.name for store in stores})
    if len(names) > 1:
        raise StoreChoiceError(f"there are several stores in {directory}: choose one with store=: {', '.join(names)}")
    return stores


def task_partition(name: str) -> int | None:
    """Return the partition from the name of a task directory, or None for other names."""
    task = TASK.fullmatch(name)
    return None if task is None else int(task[1])


def holder(directory: Path) -> int | None:
    """Return the id of the process that has a database open; None if there is none, or if the system cannot tell."""
    if sys.platform != "linux":
        return None
    import fcntl

    try:
        with (directory / "LOCK").open("rb") as lock:
            query = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
            type, *_, process = struct.unpack(_FLOCK, fcntl.fcntl(lock, fcntl.F_GETLK, query))
    except OSError:
        return None
    return None if type == fcntl.F_UNLCK else process


# struct flock of fcntl(2) on Linux: type, whence, start, length, process.
_FLOCK = "hhqqi4x"


def _databases(top: Path) -> list[Path]:
    def fail(error: OSError) -> None:
        raise error

    databases = []
    for directory, directories, files in os.walk(top, onerror=fail):
        path = Path(directory)
        # Skip hidden directories: stores being restored, or segments being removed.
        directories[:] = [name for name in directories if not name.startswith(".")]
        if has_database_files(files):
            databases.append(path)
            directories.clear()
        elif len(path.relative_to(top).parts) == DEEPEST:
            directories.clear()
    return sorted(databases)


def _segment_start(path: Path) -> int | None:
    # In the directory `rocksdb`, a name that looks like a segment is the name of a store.
    return None if path.parent.name == "rocksdb" else segment_start(path.parent.name, path.name)


def _task(store: Path, top: Path) -> str:
    task = store.parent.parent if store.parent.name == "rocksdb" else store.parent
    if task.is_relative_to(top) and task != top:
        return str(task.relative_to(top))
    return task.name if TASK.fullmatch(task.name) else ""
