"""Where the segments of a log are: in the folder of a partition, in the folders of a broker, or in files by themselves."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple, TypeAlias

__all__ = ["Paths", "Segment", "partitions"]

Paths: TypeAlias = "str | os.PathLike[str] | Sequence[str | os.PathLike[str]]"

_LOG = re.compile(r"(\d{20})(?:[-.].+)?\.log")
"""What a broker calls a segment, and tiered storage, which puts an id behind the offset."""

_FOLDER = re.compile(r"(?P<topic>[a-zA-Z0-9._-]{1,249})-(?P<partition>\d+)")


class Segment(NamedTuple):
    """One file of a log.

    Attributes
    ----------
    path : Path
        The file.
    topic, partition : str or None, int or None
        By the name of its folder.
    base_offset : int
        No record in it is before this one, by the name of the file, or by its first batch where the name says nothing.
    next_offset : int or None
        Where the next segment of the partition begins; ``None`` for the last one, the only one that may be torn.
    """

    path: Path
    topic: str | None
    partition: int | None
    base_offset: int
    next_offset: int | None

    @property
    def size(self) -> int:
        """Bytes that the file has now."""
        return self.path.stat().st_size


def partitions(path: Paths) -> list[list[Segment]]:
    """Find the segments of one partition or of several, each in the order of its offsets.

    Parameters
    ----------
    path : path or sequence of paths
        The folder of a partition, a folder of such folders, a file, or files. Files of one folder whose names begin with
        their offsets belong together; another file stands for itself.

    Returns
    -------
    list of list of Segment
        A list for every partition.

    Raises
    ------
    FileNotFoundError
        If there is nothing of that name, or no segment in it.
    ValueError
        If a broker stopped in the middle of a compaction.
    """
    if isinstance(path, str | os.PathLike):
        only = Path(path)
        if not only.exists():
            raise FileNotFoundError(f"{only}: there is no such file or folder")
        return _in_folder(only) if only.is_dir() else [_in_order([only])]
    files = [Path(each) for each in path]
    for file in files:
        if not file.is_file():
            raise FileNotFoundError(f"{file}: there is no such file; a list names files, not folders")
    together: dict[Path, list[Path]] = {}
    for file in files:
        together.setdefault(file.parent if _LOG.fullmatch(file.name) else file, []).append(file)
    return [_in_order(group) for group in together.values()]


def _in_folder(folder: Path) -> list[list[Segment]]:
    segments = _segments(folder)
    if segments:
        return [segments]
    # Folders that a broker is about to delete, or has not taken over yet, have more behind the number.
    children = [child for child in folder.iterdir() if child.is_dir() and _FOLDER.fullmatch(child.name)]
    found = sorted(
        (segments for segments in map(_segments, children) if segments),
        key=lambda segments: (segments[0].topic, segments[0].partition),
    )
    if not found:
        raise FileNotFoundError(
            f"{folder}: no segments are there (00000000000000000000.log and the like), nor in folders such as orders-0"
        )
    return found


def _segments(folder: Path) -> list[Segment]:
    files = [file for file in folder.iterdir() if _LOG.fullmatch(file.name) and file.is_file()]
    for swap in folder.glob("*.log.swap"):
        # It takes the place of segments, of which some may be gone by now and some not.
        if not swap.with_suffix("").exists():
            raise ValueError(f"{swap}: a compaction was not finished; start the broker once, which finishes it")
    return _in_order(files)


def _in_order(files: Iterable[Path]) -> list[Segment]:
    ordered = sorted(map(_alone, files), key=lambda segment: (segment.base_offset, segment.path))
    return [
        *(one._replace(next_offset=following.base_offset) for one, following in pairwise(ordered)),
        *(last._replace(next_offset=_next_offset(last)) for last in ordered[-1:]),
    ]


def _next_offset(last: Segment) -> int | None:
    """Find the base offset of the next segment in the folder of a partition, be it read or not."""
    if last.topic is None or not _LOG.fullmatch(last.path.name):
        return None
    names = (_LOG.fullmatch(name) for name in os.listdir(last.path.parent))
    return min((after for name in names if name and (after := int(name[1])) > last.base_offset), default=None)


def _alone(file: Path) -> Segment:
    folder, name = _FOLDER.fullmatch(file.absolute().parent.name), _LOG.fullmatch(file.name)
    topic, partition = (folder["topic"], int(folder["partition"])) if folder else (None, None)
    return Segment(file, topic, partition, int(name[1]) if name else _first_offset(file), None)


def _first_offset(file: Path) -> int:
    with file.open("rb") as data:
        return max(int.from_bytes(data.read(8), "big", signed=True), 0)
