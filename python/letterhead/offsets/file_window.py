"""Read a file piece by piece, without mapping it into memory: :class:`FileWindow`."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import BinaryIO

from letterhead._context_managers import Closing

__all__ = ["FileWindow", "check_regular", "open_regular"]


def check_regular(path: Path) -> os.stat_result:
    """Raise OSError if a path is a device, a pipe or a directory: reading it could block or never end."""
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise OSError(f"{path}: not a regular file")
    return status


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file for reading without a buffer."""
    check_regular(path)
    # Use O_NONBLOCK, so that opening does not block even if a pipe has replaced the file.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
    file = open(os.open(path, flags), "rb", buffering=0)  # noqa: SIM115
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(f"{path}: not a regular file")
    return file


class FileWindow(Closing):
    """File with one range of bytes in memory at a time.

    A process that maps a file is killed if another process truncates the file. This class instead reads up to the new end,
    and updates :attr:`size`. It does not read bytes that are appended after the file was opened.
    """

    def __init__(self, path: Path) -> None:
        self._file = open_regular(path)
        self.size = os.fstat(self._file.fileno()).st_size
        self._buffer = bytearray()
        self._begin = self._end = 0

    def view(self, begin: int, end: int) -> memoryview:
        """Return the bytes in [``begin``, ``end``), up to the end of the file; the next call overwrites them."""
        if not self._begin <= begin <= min(end, self.size) <= self._end:
            length = max(min(end, self.size) - begin, 0)
            if length > len(self._buffer):
                self._buffer = bytearray(length)
            self._begin = self._end = begin
            self._end += self._read(begin, memoryview(self._buffer)[:length])
        return memoryview(self._buffer)[begin - self._begin : min(end, self._end) - self._begin]

    def peek(self, begin: int, end: int) -> bytes:
        """Return a copy of the bytes in [``begin``, ``end``), without changing the view."""
        if self._begin <= begin and end <= self._end:
            return bytes(memoryview(self._buffer)[begin - self._begin : end - self._begin])
        length = max(min(end, self.size) - begin, 0)
        self._file.seek(begin)
        data = self._file.read(length)
        if len(data) < length:  # an interrupted read, or the end of the file
            rest = bytearray(length - len(data))
            data += memoryview(rest)[: self._read(begin + len(data), memoryview(rest))]
        return data

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _read(self, begin: int, target: memoryview) -> int:
        """Read until ``target`` is full or the file ends; return the number of bytes read."""
        self._file.seek(begin)
        count = 0
        while count < len(target):
            read = self._file.readinto(target[count:])  # type: ignore[attr-defined]
            if not read:
                self.size = min(self.size, begin + count)
                break
            count += read
        return count
