"""File systems of copies: :class:`LocalFiles` and :class:`ObjectFiles`, in which a file appears when it is complete.

A :class:`StagedFile` is written by a copy to one file, or by a task of a job, whose files are renamed by the process
that holds the lock.
"""

from __future__ import annotations

import mmap
import os
import tempfile
import uuid
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from letterhead._durable_files import make_directory, replace_file, sync_directory
from letterhead._object_paths import ObjectPath

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

__all__ = ["Files", "LocalFiles", "ObjectFiles", "StagedFile", "files_of"]

LOCK = "_copy.lock"
UNFINISHED = ".unfinished"


def files_of(path: Path | ObjectPath) -> LocalFiles | ObjectFiles:
    """Lock a directory for a copy."""
    return LocalFiles(path) if isinstance(path, Path) else ObjectFiles(path)


class Files(Protocol):
    """File system that record files are written to."""

    def create(self, partition: int) -> BinaryIO:
        """Create an unfinished file."""

    def publish(self, file: BinaryIO, name: str) -> None:
        """Complete a file under its final name."""

    def discard(self, file: BinaryIO) -> None:
        """Remove an unfinished file."""


class LocalFiles:
    """Local directory with one writing process at a time. Files are renamed once they are on disk."""

    def __init__(self, path: Path) -> None:
        if fcntl is None:
            raise OSError(
                "copying to a directory needs locks of files, which this system lacks: copy on Linux, to an object store, "
                "or to a topic"
            )
        self._path = path
        make_directory(path)
        self._lock = os.open(path / LOCK, os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._lock)
            raise ValueError(f"another process is copying to {path}: wait until it ends") from None

    def write(self, name: str, content: bytes) -> None:
        """Write a small file."""
        replace_file(self._path / name, content)

    def rename(self, name: str, to: str) -> None:
        """Move a file."""
        os.replace(self._path / name, self._path / to)
        sync_directory(self._path)

    def create(self, partition: int) -> BinaryIO:
        """Create an unfinished file, which readers of tables ignore."""
        return (self._path / f"_part-{partition:05}{UNFINISHED}").open("wb")

    def publish(self, file: BinaryIO, name: str) -> None:
        """Rename a complete file."""
        _sync(file)
        os.replace(file.name, self._path / name)
        sync_directory(self._path)

    def discard(self, file: BinaryIO) -> None:
        """Remove an unfinished file."""
        file.close()
        Path(file.name).unlink(missing_ok=True)

    def close(self) -> None:
        """Release the lock."""
        os.close(self._lock)


class ObjectFiles:
    """Directory in an object store. A file is written locally, and uploaded once it is complete.

    Object stores have no locks. Only the process that last wrote the object ``_copy.lock`` may write: a killed process
    therefore blocks no other, and an older process that still runs stops before its next file.
    """

    def __init__(self, path: ObjectPath) -> None:
        self._path = path
        self._token = uuid.uuid4().bytes
        (path / LOCK).write_bytes(self._token)

    def _check_lock(self) -> None:
        if (self._path / LOCK).read_bytes() != self._token:
            raise ValueError(f"another process copies to {self._path} now, and this one stopped: run one at a time")

    def write(self, name: str, content: bytes) -> None:
        """Write a small object."""
        self._check_lock()
        (self._path / name).write_bytes(content)

    def rename(self, name: str, to: str) -> None:
        """Move an object."""
        self._check_lock()
        (self._path / name).rename(to)

    def create(self, partition: int) -> Any:
        """Create a local file without a name, which disappears with the process."""
        return tempfile.TemporaryFile()

    def publish(self, file: BinaryIO, name: str) -> None:
        """Upload a complete file."""
        self._check_lock()
        _upload(file, self._path / name)

    def discard(self, file: BinaryIO) -> None:
        """Remove a local file."""
        file.close()

    def close(self) -> None:
        """Do nothing: the next process takes the lock."""


class StagedFile:
    """File in a directory that is renamed once it is complete; until then readers of tables ignore it.

    Parameters
    ----------
    directory : Path or ObjectPath
        The directory.
    name : str, optional
        Part of the temporary name, which one process at a time can use; by default a unique one.
    """

    def __init__(self, directory: Path | ObjectPath, name: str | None = None) -> None:
        self._path = directory / f"_{uuid.uuid4().hex if name is None else name}{UNFINISHED}"

    @property
    def name(self) -> str:
        """Temporary name of the file."""
        return self._path.name

    def create(self, partition: int) -> BinaryIO:
        """Create the file, or a local one that is uploaded when it is complete."""
        if not isinstance(self._path, Path):
            return tempfile.TemporaryFile()
        file = self._path.open("ab")  # another process may have it open
        if fcntl is not None:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                file.close()
                raise ValueError(f"another process writes {self._path}: wait until it ends") from None
        file.truncate(0)
        return file

    def publish(self, file: BinaryIO, name: str) -> None:
        """Flush the file to disk, or upload it."""
        if isinstance(self._path, Path):
            _sync(file)
        else:
            _upload(file, self._path)

    def rename(self, name: str) -> None:
        """Rename the file."""
        if isinstance(self._path, Path):
            os.replace(self._path, self._path.with_name(name))
            sync_directory(self._path.parent)
        else:
            self._path.rename(name)

    def discard(self, file: BinaryIO) -> None:
        """Remove the file."""
        file.close()
        if isinstance(self._path, Path):
            self._path.unlink(missing_ok=True)


def _sync(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())
    file.close()


def _upload(file: BinaryIO, path: ObjectPath) -> None:
    file.flush()
    with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        path.write_bytes(content)
    file.close()
