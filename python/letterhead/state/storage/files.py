"""Check database files before RocksDB opens them, because it reads some files as a whole and blocks on pipes."""

from __future__ import annotations

import errno
import os
import re
import shutil
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from letterhead.errors import ProcessorStateError

__all__ = ["CONFIG", "check_files", "copy_database", "has_database_files", "missing_current_error", "read_text"]

CONFIG = "rocksdict-config.json"
MANIFEST_BYTES = 4 << 30
"""Size limit of a MANIFEST file in bytes; RocksDB begins a new file at 1 GiB."""

MAX_TEXT_BYTES = 1 << 20
"""Size limit in bytes of text files written by Kafka Streams or this package; they have only a few lines."""

# Size limits of files that RocksDB and rocksdict read into memory.
_MAX_BYTES = {"CURRENT": 1 << 10, "IDENTITY": 1 << 10, CONFIG: 1 << 20}
_OF_DATABASE = re.compile(r"CURRENT|IDENTITY|MANIFEST-[0-9]+|OPTIONS-[0-9]+|[0-9]+\.(sst|blob)")
_WITH_ROWS = re.compile(r"[0-9]+\.(sst|blob|log)")


def has_database_files(names: Iterable[str]) -> bool:
    """Return whether any of the names belongs to a database file."""
    return any(_OF_DATABASE.fullmatch(name) for name in names)


def check_files(store: str, directory: Path) -> None:
    """Check the files in a directory that may contain a database; ``store`` is the name for errors.

    Raises
    ------
    ProcessorStateError
        If an entry is neither a regular file nor a directory, a file is larger than is possible for its name, or there are
        rows but no file `CURRENT`, in which case RocksDB would replace the rows by an empty database.
    OSError
        If the directory cannot be read.
    """
    sizes: dict[str, int] = {}
    with os.scandir(directory) as entries:
        for entry in entries:
            with suppress(FileNotFoundError):  # deleted by another process that has the database open
                sizes[entry.name] = _size(store, entry)
    for name, size in sizes.items():
        max_bytes = MANIFEST_BYTES if name.startswith("MANIFEST-") else _MAX_BYTES.get(name)
        if max_bytes is not None and size > max_bytes:
            raise ProcessorStateError(
                f"Error opening store {store}: {directory / name} has {size} bytes, and can have {max_bytes} at most: {_REMEDY}"
            )
    if "CURRENT" not in sizes and any(_WITH_ROWS.fullmatch(name) for name in sizes):
        raise missing_current_error(store, directory)


def copy_database(store: str, source: Path, target: Path) -> None:
    """Copy the files of a database to a new directory; skip other files, and links, which could point anywhere.

    Raises
    ------
    ProcessorStateError
        As for :func:`check_files`, and if a file of the database is a link.
    """
    check_files(store, source)
    target.mkdir(parents=True)
    for name in os.listdir(source):
        if _OF_DATABASE.fullmatch(name) or _WITH_ROWS.fullmatch(name) or name == CONFIG:
            if (source / name).is_symlink():
                raise ProcessorStateError(f"Error opening store {store}: {source / name} is a link: {_REMEDY}")
            with suppress(FileNotFoundError):  # deleted by another process that has the database open
                shutil.copy2(source / name, target / name, follow_symlinks=False)


def missing_current_error(store: str, directory: Path) -> ProcessorStateError:
    """Return the error for a database without its file `CURRENT`."""
    return ProcessorStateError(f"Error opening store {store}: {directory} has no file CURRENT: {_REMEDY}")


def read_text(path: Path) -> str:
    """Read a small regular file; raise OSError for other and larger files."""
    with open(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        if status.st_size > MAX_TEXT_BYTES:
            raise OSError(
                errno.EFBIG, f"{status.st_size} bytes, where there can be {MAX_TEXT_BYTES} at most", str(path)
            )
        return file.read(MAX_TEXT_BYTES).decode()


def _size(store: str, entry: os.DirEntry[str]) -> int:
    status = entry.stat()
    if stat.S_ISREG(status.st_mode):
        return status.st_size
    if stat.S_ISDIR(status.st_mode):
        return 0
    raise ProcessorStateError(
        f"Error opening store {store}: {entry.path} is neither a regular file nor a directory: {_REMEDY}"
    )


_REMEDY = "restore the directory from a copy, or move it away and restore the store from its changelog"
