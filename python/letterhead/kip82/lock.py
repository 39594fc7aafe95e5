"""Lock on a directory; the operating system releases it when the process ends."""

from __future__ import annotations

import os
from pathlib import Path

from letterhead.errors import LogLockedError

__all__ = ["Lock"]


class Lock:
    """Exclusive lock on a file. The file remains after the release, and contains the process id of the last owner."""

    def __init__(self, path: Path) -> None:
        try:
            import fcntl
        except ImportError:  # on Windows, where the rest of the package works
            raise NotImplementedError(
                f"{path.parent} cannot be locked on this system, which has no fcntl: open it with readonly=True"
            ) from None
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(self._descriptor, 32, 0).decode("ascii", "replace").strip() or "another process"
            os.close(self._descriptor)
            who = "another object of this process" if holder == str(os.getpid()) else f"process {holder}"
            raise LogLockedError(
                f"{path.parent} is being written by {who}: close it there, or open it here with readonly=True"
            ) from None
        self._process = os.getpid()
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        """Release the lock. A second call does nothing."""
        import fcntl

        if self._descriptor >= 0:
            if self._process == os.getpid():
                # Unlock explicitly: a forked child may have the descriptor open, so closing it here is not enough.
                fcntl.flock(self._descriptor, fcntl.LOCK_UN)
            os.close(self._descriptor)
            self._descriptor = -1
