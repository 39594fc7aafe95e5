"""Directory of Parquet files, local or in an object store, as the target of a copy: :class:`PartDirectory`.

Each file contains a range of offsets of one partition, and is named after this range::

    part-00003-00000000000000001000-00000000000000002000.parquet   partition 3, offsets 1000 to 1999

A file is renamed once it is complete and durable. A killed copy therefore continues at the last offset in these names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from letterhead._background import Background
from letterhead._context_managers import Closing
from letterhead._object_paths import ObjectPath
from letterhead._parquet_files import THREADS, read_footer
from letterhead._row_groups import RowGroups
from letterhead._table_batches import rows_by_partition
from letterhead.copies.part_files import UNFINISHED, Files, ObjectFiles, StagedFile, files_of
from letterhead.errors import DamagedTableError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["DESCRIPTION", "PART_ROWS", "PartDirectory", "StagedPart", "describe_topic", "write_part"]

DESCRIPTION = "_copy.json"
"""Name of the description of a copy. Spark, DuckDB and others ignore files whose names begin with an underscore."""

_PART = re.compile(r"part-(\d{5,})-(\d{20})-(\d{20})\.parquet")

_HELD_BYTES = 192 << 20
"""Limit of bytes held in memory for row groups of all partitions."""

PART_ROWS = 1_000_000
"""Number of records at which a file is completed."""

_PART_BYTES = 1 << 30
"""Number of uncompressed bytes at which a file is completed."""


def describe_topic(directory: Path | ObjectPath) -> dict[str, Any]:
    """Return partitions and settings of the topic that a copy describes; an empty dict for other directories."""
    try:
        topic = json.loads((directory / DESCRIPTION).read_bytes())["topic"]
    except (OSError, ValueError, KeyError):
        return {}
    return topic if isinstance(topic, dict) else {}


class Part(NamedTuple):
    """Complete file with its range of offsets; ``end`` is exclusive."""

    partition: int
    start: int
    end: int

    @property
    def name(self) -> str:
        """Name of the file."""
        return f"part-{self.partition:05}-{self.start:020}-{self.end:020}.parquet"


_NO_RECORDS = Part(0, 0, 0)


class StagedPart(NamedTuple):
    """Complete file that is not yet renamed."""

    part: Part
    rows: int
    file: str  # temporary name


def write_part(path: Path | ObjectPath, batches: Iterable[pa.RecordBatch]) -> StagedPart | None:
    """Write consecutive records of one partition to a file that :meth:`PartDirectory.publish` renames; None without records."""
    staged = StagedFile(path)
    writer: _PartWriter | None = None
    with Background[None]() as encoder:
        try:
            for batch in batches:
                if writer is None:
                    writer = _PartWriter(staged, batch.column("partition")[0].as_py(), encoder)
                writer.add(_checked(batch))
            return None if writer is None else StagedPart(writer.finish(), writer.rows, staged.name)
        except BaseException:
            if writer is not None:
                encoder.close()
                writer.abort()
            raise


def _checked(batch: pa.RecordBatch) -> pa.RecordBatch:
    if batch.column("offset").null_count:
        raise ValueError("a record could not be read: its offset is unknown")
    if batch.column("partition").null_count:
        raise ValueError("the partition of a file is unknown: move it to a directory such as orders-0, and copy that")
    return batch


class PartDirectory(Closing):
    """Writes records into files, and continues after the last offsets in the directory.

    Parameters
    ----------
    path : Path or ObjectPath
        A directory, which need not exist.
    description : mapping
        Source and options of the copy as JSON. A directory with another description is rejected.
    topic : callable
        Returns the description of the topic, which a new directory stores for restoring the topic.

    Attributes
    ----------
    ends : dict of int to int
        By partition, the offset after the last record.
    rows : int
        Records that were written.
    remarks : list of str
        Remarks about files of an earlier run.
    """

    def __init__(
        self, path: Path | ObjectPath, description: Mapping[str, Any], topic: Callable[[], Mapping[str, Any]] = dict
    ) -> None:
        self._path = path
        self.remarks: list[str] = []
        self.ends: dict[int, int] = {}
        self.rows = 0
        self._writers: dict[int, _PartWriter] = {}
        self._encoder: Background[None] = Background()  # one row group at a time bounds the memory
        if isinstance(path, Path) and path.is_dir():
            self._refuse_other_files()  # before a lock file is created there
        self._files = files_of(path)
        try:
            self._describe(description, topic)
            self._known = self._continue()
        except BaseException:
            self._files.close()
            raise

    def _describe(self, description: Mapping[str, Any], topic: Callable[[], Mapping[str, Any]]) -> None:
        """Write the description of a new directory, or compare it with the existing one."""
        file = self._path / DESCRIPTION
        exists = file.exists()
        # The description is replaced as long as no records have been copied, because an earlier call may have had a
        # misspelt option.
        if not (exists and any(_PART.fullmatch(name) and name != _NO_RECORDS.name for name in self._names())):
            if not exists:
                self._refuse_other_files()
            content = json.dumps({"version": 1, **description, "topic": topic()}, indent=2) + "\n"
            self._files.write(DESCRIPTION, content.encode())
            return
        try:
            before = json.loads(file.read_bytes())
        except ValueError:
            raise ValueError(f"{file} is no description of a copy: name a new directory") from None
        for name, value in json.loads(json.dumps(description)).items():
            if before.get(name) != value:
                known = before.get(name)
                # A time relative to now is different in each call.
                is_time = name == "start" and str(known).startswith("@")
                same = f"start={known!r}" if is_time else "the same options"
                raise ValueError(
                    f"{self._path} is a copy with {name} {json.dumps(known)}, not {json.dumps(value)}: pass {same} to continue it, "
                    "or name a new directory"
                )

    def _refuse_other_files(self) -> None:
        """Raise ValueError if the directory contains files, but is not a copy."""
        others = [name for name in self._names() if not name.startswith((".", "_"))]
        if others and not (self._path / DESCRIPTION).exists():
            raise ValueError(f"{self._path} is not empty, and no copy: it has {min(others)!r}; name a new directory")

    def _names(self) -> list[str]:
        return [path.name for path in self._path.iterdir()]

    def _continue(self) -> set[str]:
        """Find the end of each partition, set a truncated last file aside, and return the names of the files."""
        parts: dict[int, list[Part]] = {}
        for name in self._names():
            if name.endswith(UNFINISHED) or name == _NO_RECORDS.name:
                (self._path / name).unlink()
            elif match := _PART.fullmatch(name):
                part = Part(*map(int, match.groups()))
                parts.setdefault(part.partition, []).append(part)
        for own in parts.values():
            own.sort()
            for part, following in pairwise(own):
                if following.start < part.end:
                    raise ValueError(f"{self._path}: {following.name} overlaps {part.name}: remove one of them")
        known = [part for own in parts.values() for part in own]
        with ThreadPoolExecutor(THREADS) as threads:
            whole_parts = {part for part, whole in zip(known, threads.map(self._is_whole, known), strict=True) if whole}
        for partition, own in parts.items():
            whole = [part for part in own if part in whole_parts]
            if own[: len(whole)] != whole or len(own) - len(whole) > 1:
                damaged = next(part for part in own if part not in whole)
                raise ValueError(f"{self._path / damaged.name} is damaged: remove it, and copy its offsets again")
            for part in own[len(whole) :]:
                aside = f"_damaged-{part.name}"
                self._files.rename(part.name, aside)
                self.remarks.append(f"{part.name} was damaged: it is {aside} now, and its offsets are copied again")
            self.ends[partition] = whole[-1].end if whole else own[0].start
        return {part.name for part in whole_parts}

    def _is_whole(self, part: Part) -> bool:
        import pyarrow as pa

        try:
            return bool(read_footer(self._path / part.name).num_rows > 0)
        except (pa.ArrowException, DamagedTableError):
            return False

    def write(self, batch: pa.RecordBatch) -> None:
        """Add records, which must follow the previous records of their partitions."""
        self.rows += len(batch)
        for number, rows in rows_by_partition(_checked(batch)):
            writer = self._writers.get(number)
            if writer is None:
                writer = self._writers[number] = _PartWriter(self._files, number, self._encoder)
            writer.add(rows)
            if writer.rows >= PART_ROWS or writer.groups.size >= _PART_BYTES:
                self._finish(number)
        groups = [writer.groups for writer in self._writers.values()]
        while sum(own.held for own in groups) > _HELD_BYTES:
            max(groups, key=lambda own: own.held).flush()

    def publish(self, staged: Iterable[StagedPart]) -> None:
        """Rename the files of tasks, in order of their offsets."""
        for part, rows, file in sorted(staged):
            if not (self._path / file).exists():
                raise FileNotFoundError(
                    f"{self._path} lacks a file that a task wrote there: name a directory that the driver and all executors share, "
                    "or an object store"
                )
            self._files.rename(file, part.name)
            self._note(part)
            self.rows += rows

    def finish(self, schema: pa.Schema) -> None:
        """Complete all files. A copy without records gets a file without rows, which readers accept as a table.

        Raises
        ------
        ValueError
            If another process wrote files of the same copy at the same time, which is possible only in an object store.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        for number in [*self._writers]:
            self._finish(number)
        if not self.ends:
            content = pa.BufferOutputStream()
            pq.write_table(schema.empty_table(), content)
            self._files.write(_NO_RECORDS.name, content.getvalue().to_pybytes())
        names = self._names()
        for name in names:
            if name.endswith(UNFINISHED):  # left by a failed attempt of a task
                (self._path / name).unlink()
        if isinstance(self._files, ObjectFiles):
            others = {name for name in names if _PART.fullmatch(name)} - self._known - {_NO_RECORDS.name}
            if others:
                raise ValueError(
                    f"another process wrote {min(others)} to {self._path} during the copy: remove it if it overlaps others"
                )

    def _finish(self, partition: int) -> None:
        self._note(self._writers.pop(partition).finish())

    def _note(self, part: Part) -> None:
        self.ends[part.partition] = part.end
        self._known.add(part.name)

    def close(self) -> None:
        """Remove unfinished files, and release the lock."""
        self._encoder.close()
        for writer in self._writers.values():
            writer.abort()
        self._writers.clear()
        self._files.close()


class _PartWriter:
    """Writes the records of one file."""

    def __init__(self, files: Files, partition: int, encoder: Background[None]) -> None:
        self._files = files
        self._partition = partition
        self._file = files.create(partition)
        self.groups = RowGroups(self._file, encoder)
        self._first = self._last = -1
        self.rows = 0

    def add(self, rows: pa.RecordBatch) -> None:
        """Add records."""
        offsets = rows.column("offset")
        if self._first < 0:
            self._first = offsets[0].as_py()
        self._last = offsets[-1].as_py()
        self.rows += len(rows)
        self.groups.add(rows)

    def finish(self) -> Part:
        """Complete the file."""
        self.groups.finish()
        part = Part(self._partition, self._first, self._last + 1)
        try:
            self._files.publish(self._file, part.name)
        except BaseException:
            self._files.discard(self._file)
            raise
        return part

    def abort(self) -> None:
        """Remove the file."""
        self.groups.close()
        self._files.discard(self._file)
