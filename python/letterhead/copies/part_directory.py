"""A directory of Parquet files as the target of a copy: :class:`PartDirectory`.

Each file has the records of a range of offsets of one partition, and its name tells which::

    part-00003-00000000000000001000-00000000000000002000.parquet   partition 3, offsets 1000 to 1999

A file gets its name when it is complete and on disk, so that a copy that was killed continues at the last offset of these names.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from letterhead._context_managers import Closing
from letterhead._durable_files import make_directory, replace_file, sync_directory
from letterhead._table_batches import rows_by_partition

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

__all__ = ["DESCRIPTION", "PartDirectory", "describe_topic"]

DESCRIPTION = "_copy.json"
"""Name of the description of a copy. Spark, DuckDB and others ignore files whose names begin with an underscore."""

_PART = re.compile(r"part-(\d{5,})-(\d{20})-(\d{20})\.parquet")
_UNFINISHED = ".unfinished"

_GROUP_BYTES = 32 << 20
"""Bytes of a row group of a file."""

_HELD_BYTES = 192 << 20
"""Bytes of all partitions that wait for their row group."""

_PART_ROWS = 1_000_000
"""Records of a file, at which it is completed."""


def describe_topic(directory: Path) -> dict[str, Any]:
    """Return the partitions and settings of the original topic, which a copy describes; an empty dict for another directory."""
    try:
        topic = json.loads((directory / DESCRIPTION).read_bytes())["topic"]
    except (OSError, ValueError, KeyError):
        return {}
    return topic if isinstance(topic, dict) else {}


class Part(NamedTuple):
    """A complete file, and the offsets that it covers: ``end`` is not in it."""

    partition: int
    start: int
    end: int

    @property
    def name(self) -> str:
        """The name of the file."""
        return f"part-{self.partition:05}-{self.start:020}-{self.end:020}.parquet"


_NO_RECORDS = Part(0, 0, 0)


class PartDirectory(Closing):
    """Writes records into files, and continues after the offsets that the directory has.

    Parameters
    ----------
    path : Path
        A directory, which need not exist.
    description : mapping
        Source and options of the copy as JSON. A directory that has another description is refused.
    topic : callable
        Returns what a new directory tells of the topic, for its restoration.

    Attributes
    ----------
    ends : dict of int to int
        By partition, the offset after the last record.
    rows : int
        Records that were written.
    remarks : list of str
        What was noticed about files of an earlier run.
    """

    def __init__(
        self, path: Path, description: Mapping[str, Any], topic: Callable[[], Mapping[str, Any]] = dict
    ) -> None:
        self._path = path
        self.remarks: list[str] = []
        self.ends: dict[int, int] = {}
        self.rows = 0
        self._writers: dict[int, _PartWriter] = {}
        if fcntl is None:
            raise OSError(
                "copying to a directory needs locks of files, which this system lacks: copy on Linux, or to a topic"
            )
        make_directory(path)
        self._lock = os.open(path / "_copy.lock", os.O_CREAT | os.O_RDWR, 0o600)
        try:
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ValueError(f"another process is copying to {path}: wait until it ends") from None
            self._describe(description, topic)
            self._continue()
        except BaseException:
            os.close(self._lock)
            raise

    def _describe(self, description: Mapping[str, Any], topic: Callable[[], Mapping[str, Any]]) -> None:
        """Write the description of a new directory, or compare it with the existing one."""
        file = self._path / DESCRIPTION
        if not file.exists():
            others = [path.name for path in self._path.iterdir() if not path.name.startswith((".", "_"))]
            if others:
                raise ValueError(
                    f"{self._path} is not empty, and no copy: it has {min(others)!r}; name a new directory"
                )
            replace_file(file, json.dumps({"version": 1, **description, "topic": topic()}, indent=2) + "\n")
            return
        try:
            before = json.loads(file.read_bytes())
        except ValueError:
            raise ValueError(f"{file} is no description of a copy: name a new directory") from None
        for name, value in json.loads(json.dumps(description)).items():
            if before.get(name) != value:
                raise ValueError(
                    f"{self._path} is a copy with {name} {json.dumps(before.get(name))}, not {json.dumps(value)}: pass the same "
                    "options to continue it, or name a new directory"
                )

    def _continue(self) -> None:
        """Find where each partition continues; set a truncated last file aside."""
        parts: dict[int, list[Part]] = {}
        for path in self._path.iterdir():
            if path.name.endswith(_UNFINISHED) or path.name == _NO_RECORDS.name:
                path.unlink()
            elif match := _PART.fullmatch(path.name):
                part = Part(*map(int, match.groups()))
                parts.setdefault(part.partition, []).append(part)
        for partition, own in parts.items():
            own.sort()
            for part, following in pairwise(own):
                if following.start < part.end:
                    raise ValueError(f"{self._path}: {following.name} overlaps {part.name}: remove one of them")
            whole = [part for part in own if self._is_whole(part)]
            if own[: len(whole)] != whole or len(own) - len(whole) > 1:
                damaged = next(part for part in own if part not in whole)
                raise ValueError(f"{self._path / damaged.name} is damaged: remove it, and copy its offsets again")
            for part in own[len(whole) :]:
                aside = f"_damaged-{part.name}"
                os.replace(self._path / part.name, self._path / aside)
                self.remarks.append(f"{part.name} was damaged: it is {aside} now, and its offsets are copied again")
            self.ends[partition] = whole[-1].end if whole else own[0].start
        sync_directory(self._path)

    def _is_whole(self, part: Part) -> bool:
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            return bool(pq.read_metadata(self._path / part.name).num_rows > 0)
        except (pa.ArrowInvalid, OSError):
            return False

    def write(self, batch: pa.RecordBatch) -> None:
        """Add records, which follow the earlier ones of their partitions."""
        if batch.column("offset").null_count:
            raise ValueError("a record could not be read: its offset is unknown")
        self.rows += len(batch)
        for number, rows in rows_by_partition(batch):
            writer = self._writers.get(number)
            if writer is None:
                writer = self._writers[number] = _PartWriter(self._path, number)
            writer.add(rows)
            if writer.rows >= _PART_ROWS:
                self._finish(number)
        while sum(writer.held for writer in self._writers.values()) > _HELD_BYTES:
            max(self._writers.values(), key=lambda writer: writer.held).flush()

    def finish(self, schema: pa.Schema) -> None:
        """Complete all files. A copy without records has a file without rows, so that it is a table."""
        import pyarrow.parquet as pq

        for number in [*self._writers]:
            self._finish(number)
        if not self.ends:
            pq.write_table(schema.empty_table(), self._path / _NO_RECORDS.name)

    def _finish(self, partition: int) -> None:
        self.ends[partition] = self._writers.pop(partition).finish()

    def close(self) -> None:
        """Remove unfinished files, and release the lock."""
        for writer in self._writers.values():
            writer.abort()
        self._writers.clear()
        os.close(self._lock)


class _PartWriter:
    """Writes the records of one file."""

    def __init__(self, directory: Path, partition: int) -> None:
        self._directory = directory
        self._partition = partition
        self._temporary = directory / f"part-{partition:05}{_UNFINISHED}"
        self._writer: pq.ParquetWriter | None = None
        self._batches: list[pa.RecordBatch] = []
        self._first = self._last = -1
        self.held = 0
        self.rows = 0

    def add(self, rows: pa.RecordBatch) -> None:
        """Add records."""
        offsets = rows.column("offset")
        if self._first < 0:
            self._first = offsets[0].as_py()
        self._last = offsets[-1].as_py()
        self.rows += len(rows)
        self._batches.append(rows)
        self.held += rows.nbytes
        if self.held >= _GROUP_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write the records in memory as a row group."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        if not self._batches:
            return
        if self._writer is None:
            self._writer = pq.ParquetWriter(self._temporary, self._batches[0].schema, compression="zstd")
        self._writer.write_table(pa.Table.from_batches(self._batches), row_group_size=1 << 30)
        self._batches.clear()
        self.held = 0

    def finish(self) -> int:
        """Complete the file, and return the offset after its last record."""
        self.flush()
        if self._writer is not None:
            self._writer.close()
        with self._temporary.open("rb") as file:
            os.fsync(file.fileno())
        end = self._last + 1
        os.replace(self._temporary, self._directory / Part(self._partition, self._first, end).name)
        sync_directory(self._directory)
        return end

    def abort(self) -> None:
        """Remove the file."""
        if self._writer is not None:
            self._writer.close()
        self._temporary.unlink(missing_ok=True)
