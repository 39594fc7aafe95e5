"""Find the segments of a log: in the directory of a partition, in the directories of a broker, or in single files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from letterhead._formatting import printable
from letterhead.kafka.topic_names import TOPIC_NAME
from letterhead.offsets.file_window import check_regular, open_regular

__all__ = ["LogSegment", "Paths", "has_kafka_batch", "has_segment_name", "partitions"]

Paths: TypeAlias = "str | os.PathLike[str] | Sequence[str | os.PathLike[str]]"

_LOG = re.compile(r"(\d{20})(?:[-.].+)?\.log")
"""Name of a segment, including names in tiered storage, which appends an id to the offset."""

_DIRECTORY = re.compile(rf"(?P<topic>{TOPIC_NAME})-(?P<partition>\d+)")


class LogSegment(NamedTuple):
    """Segment file of a log."""

    path: Path
    topic: str | None  # topic and partition come from the directory name
    partition: int | None
    base_offset: int  # smallest offset, from the file name, otherwise from the first batch
    next_offset: int | None  # start of the next segment; None for the last segment, the only one that may be truncated

    @property
    def partition_values(self) -> dict[str, Any]:
        """Topic and partition."""
        return {"topic": self.topic, "partition": self.partition}

    @property
    def size(self) -> int:
        """Current size of the file in bytes."""
        return self.path.stat().st_size


def has_segment_name(path: Path) -> bool:
    """Return whether a file has the name of a segment, which is its first offset."""
    return _LOG.fullmatch(path.name) is not None


def has_kafka_batch(path: Path) -> bool:
    """Return whether a file begins with a Kafka record batch."""
    with path.open("rb") as file:
        head = file.read(17)
    # Offset and length, big-endian, and the magic byte of a Kafka batch.
    length = int.from_bytes(head[8:12], "big", signed=True)
    return len(head) == 17 and head[16] <= 2 and head[:2] == b"\0\0" and 14 <= length <= path.stat().st_size


def partitions(path: Paths) -> list[list[LogSegment]]:
    """Return the segments of each partition, in the order of their offsets.

    ``path`` is the directory of a partition, a directory of such directories, a file, or files. Files in one directory
    with offsets as names belong to one partition; any other file is its own partition.
    """
    if isinstance(path, str | os.PathLike):
        root = Path(path)
        if not root.exists():
            raise FileNotFoundError(f"{printable(str(root))}: there is no such file or directory")
        if root.is_dir():
            return _partitions_in(root)
        check_regular(root)
        return [_order_segments([root])]
    groups: dict[Path, list[Path]] = {}
    for file in map(Path, path):
        if file.is_dir():
            raise IsADirectoryError(f"{printable(str(file))} is a directory: pass it alone, or the files in it")
        if not file.exists():
            raise FileNotFoundError(f"{printable(str(file))}: there is no such file")
        check_regular(file)
        groups.setdefault(file.parent if _LOG.fullmatch(file.name) else file, []).append(file)
    if not groups:
        raise ValueError("no log segment is named: pass a directory, or .log files")
    return [_order_segments(group) for group in groups.values()]


def _partitions_in(directory: Path) -> list[list[LogSegment]]:
    segments = _segments(directory)
    if segments:
        return [segments]
    # Directories that a broker is deleting or moving have a suffix after the partition, and do not match.
    children = [child for child in directory.iterdir() if child.is_dir() and _DIRECTORY.fullmatch(child.name)]
    partitions = sorted(
        (segments for segments in map(_segments, children) if segments),
        key=lambda segments: (segments[0].topic, segments[0].partition),
    )
    if not partitions:
        raise FileNotFoundError(
            f"{printable(str(directory))} has no log segments (00000000000000000000.log and the like), and no partitions "
            "(directories such as orders-0)"
        )
    return partitions


def _segments(directory: Path) -> list[LogSegment]:
    files = [file for file in directory.iterdir() if _LOG.fullmatch(file.name) and not file.is_dir()]
    for file in files:
        check_regular(file)
    for swap in directory.glob("*.log.swap"):
        # A swap file replaces several segments, some of which may already be deleted.
        if not swap.with_suffix("").exists():
            raise ValueError(
                f"{printable(str(swap))}: a compaction was not finished: start the broker once, which finishes it"
            )
    return _order_segments(files)


def _order_segments(files: Iterable[Path]) -> list[LogSegment]:
    ordered = sorted(map(_segment, files), key=lambda segment: (segment.base_offset, segment.path))
    return [
        *(segment._replace(next_offset=following.base_offset) for segment, following in pairwise(ordered)),
        *(last._replace(next_offset=_next_offset(last)) for last in ordered[-1:]),
    ]


def _next_offset(last: LogSegment) -> int | None:
    """Return the base offset of the next segment in a partition's directory, even if it will not be read."""
    if last.topic is None or not _LOG.fullmatch(last.path.name):
        return None
    names = (_LOG.fullmatch(name) for name in os.listdir(last.path.parent))
    return min((after for name in names if name and (after := int(name[1])) > last.base_offset), default=None)


def _segment(file: Path) -> LogSegment:
    directory, name = _DIRECTORY.fullmatch(file.absolute().parent.name), _LOG.fullmatch(file.name)
    topic, partition = (directory["topic"], int(directory["partition"])) if directory else (None, None)
    return LogSegment(file, topic, partition, int(name[1]) if name else _first_offset(file), None)


def _first_offset(file: Path) -> int:
    with open_regular(file) as data:
        return max(int.from_bytes(data.read(8), "big", signed=True), 0)
