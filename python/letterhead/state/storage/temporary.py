"""Temporary directories for copies of stores, removed even after a process was killed: :class:`TemporaryDirectory`.

A process locks a file in each of its directories, and the system releases the lock when the process ends for any
reason. When a process creates its first directory, it removes all directories that no process has locked. Without
``fcntl``, locks cannot be checked, and directories of killed processes remain.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from weakref import finalize

from letterhead._context_managers import Closing

try:
    import fcntl
except ImportError:  # Windows, where an open file cannot be deleted
    fcntl = None  # type: ignore[assignment]

__all__ = ["TemporaryDirectory"]

PREFIX = "letterhead-"
LOCK = "letterhead.lock"

_swept: set[str] = set()


class TemporaryDirectory(Closing):
    """Temporary directory, removed when it is closed or garbage-collected, at exit, or by a later process.

    Parameters
    ----------
    purpose : str
        Word to include in the name of the directory.

    Attributes
    ----------
    path : Path
        The directory.
    """

    def __init__(self, purpose: str) -> None:
        directory = tempfile.gettempdir()
        if directory not in _swept:
            _swept.add(directory)
            _sweep(Path(directory))
        self.path, lock = _lock(purpose)
        self._remove = finalize(self, _remove, self.path, lock, os.getpid())

    def close(self) -> None:
        """Remove the directory; in a forked child, do nothing, because the directory belongs to the parent."""
        self._remove()


def _lock(purpose: str) -> tuple[Path, int]:
    while True:
        path = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{purpose}-"))
        with suppress(FileNotFoundError):
            lock = os.open(path / LOCK, os.O_CREAT | os.O_RDWR, 0o600)
            if fcntl is None:
                return path, lock
            fcntl.flock(lock, fcntl.LOCK_EX)
            # Another process may have removed the directory between its creation and the lock.
            if (path / LOCK).exists():
                return path, lock
            os.close(lock)


def _remove(path: Path, lock: int, process: int) -> None:
    if os.getpid() != process:
        return
    if fcntl is None:
        os.close(lock)
    shutil.rmtree(path, ignore_errors=True)
    if fcntl is not None:
        os.close(lock)


def _sweep(directory: Path) -> None:
    """Remove the directories of processes that have ended, if the system can identify them."""
    if fcntl is None:
        return
    for path in directory.glob(f"{PREFIX}*/{LOCK}"):
        # Ignore errors: the directory may belong to another user, or be removed by another process.
        with suppress(OSError):
            if not path.parent.is_symlink() and _is_abandoned(path):
                shutil.rmtree(path.parent, ignore_errors=True)


def _is_abandoned(lock: Path) -> bool:
    """Return whether no process holds a lock; raise OSError if locking fails."""
    if lock.is_symlink() or not lock.is_file() or lock.stat().st_uid != os.geteuid():
        return False
    file = os.open(lock, os.O_RDWR)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(file)
    return True
