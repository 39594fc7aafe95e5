"""Which stores there are in a directory, and who has them open.

::

    <state>/<application>/<task>/rocksdb/<store>                     one database
    <state>/<application>/<task>/<store>/<store>.<first millisecond> a database for each segment

Any of these directories can be given. A database is told by its file `CURRENT`.
"""

from __future__ import annotations

import os
import re
import struct
import sys
from dataclasses import dataclass
from pathlib import Path

from letterhead.storage.errors import StateStoreError, StoreNotFoundError

__all__ = ["Found", "Segment", "StoreChoiceError", "find_stores", "holder"]

TASK = re.compile(r"(.+__)?\d+_\d+")
# From the directory of all applications to a segment.
DEEPEST = 4


class StoreChoiceError(StateStoreError, ValueError):
    """What was said of the stores in a directory does not fit them, or does not say which are meant."""


@dataclass(frozen=True)
class Segment:
    """A database: a segment of a store, or a whole store.

    Attributes
    ----------
    directory : Path
        Where it is.
    start : int or None
        The first millisecond of the segment; None for a whole store.
    """

    directory: Path
    start: int | None = None


@dataclass(frozen=True)
class Found:
    """A store in a directory.

    Attributes
    ----------
    name : str
        Its name.
    task : str
        The task that it belongs to, as far as the directory that was given does not say it; may be empty.
    directory : Path
        Where it is.
    shown : Path
        The same, as the user would say it.
    segments : tuple of Segment
        Its databases, the oldest first.
    """

    name: str
    task: str
    directory: Path
    shown: Path
    segments: tuple[Segment, ...]

    @property
    def segmented(self) -> bool:
        """Whether the store is in segments of time."""
        return self.segments[0].start is not None

    @property
    def label(self) -> str:
        """What to call it."""
        return f"{self.task}/{self.name}" if self.task else self.name

    def database(self, segment: Segment) -> str:
        """What to call one of its databases."""
        return f"{self.task}/{segment.directory.name}" if self.task else segment.directory.name


def find_stores(given: Path, name: str | None = None) -> list[Found]:
    """Find the stores in a directory, or those of a name.

    Raises
    ------
    StoreNotFoundError
        If there are none.
    OSError
        If a directory cannot be read.
    """
    top = given.resolve()
    if not top.exists():
        raise StoreNotFoundError(f"there is no directory {given}: give a state, task or store directory")
    if not top.is_dir():
        raise StoreNotFoundError(f"{given} is no directory: give a state, task or store directory")
    stores: dict[tuple[Path, bool], list[Segment]] = {}
    for path in _databases(top):
        start = _segment_start(path)
        place = path if start is None else path.parent
        stores.setdefault((place, start is not None), []).append(Segment(path, start))
    found = [
        Found(
            place.name,
            _task(place, top),
            place,
            given / place.relative_to(top) if place.is_relative_to(top) else place,
            tuple(sorted(segments, key=lambda segment: segment.start or 0)),
        )
        for (place, _), segments in stores.items()
    ]
    if not found:
        raise StoreNotFoundError(
            f"there is no store in {given}: no directory in it holds a file CURRENT, as RocksDB's do"
        )
    if name is not None and name not in {store.name for store in found}:
        names = sorted({store.name for store in found})
        raise StoreNotFoundError(f"there is no store {name} in {given}: there {_are(names)}")
    return sorted((store for store in found if name in (None, store.name)), key=lambda store: (store.task, store.name))


def holder(directory: Path) -> int | None:
    """Give the number of the process that has a database open; None if none has, or the system does not say."""
    if sys.platform != "linux":
        return None
    import fcntl

    try:
        with (directory / "LOCK").open("rb") as lock:
            asked = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
            kind, *_, process = struct.unpack(_FLOCK, fcntl.fcntl(lock, fcntl.F_GETLK, asked))
    except OSError:
        return None
    return None if kind == fcntl.F_UNLCK else process


# What fcntl(2) takes on Linux: type, whence, start, length, process.
_FLOCK = "hhqqi4x"


def _databases(top: Path) -> list[Path]:
    def fail(error: OSError) -> None:
        raise error

    found = []
    for place, directories, files in os.walk(top, onerror=fail):
        path = Path(place)
        if "CURRENT" in files:
            found.append(path)
            directories.clear()
        elif len(path.relative_to(top).parts) == DEEPEST:
            directories.clear()
    return sorted(found)


def _segment_start(path: Path) -> int | None:
    """Read the first millisecond of a segment off its name; older versions wrote a colon before it."""
    store, name = path.parent.name, path.name
    number = name[len(store) + 1 :]
    if name[: len(store) + 1] in (f"{store}.", f"{store}:") and re.fullmatch(r"-?\d+", number):
        return int(number)
    return None


def _task(store: Path, top: Path) -> str:
    task = store.parent.parent if store.parent.name == "rocksdb" else store.parent
    if task.is_relative_to(top) and task != top:
        return str(task.relative_to(top))
    return task.name if TASK.fullmatch(task.name) else ""


def _are(names: list[str]) -> str:
    return f"is {names[0]}" if len(names) == 1 else f"are {', '.join(names)}"
