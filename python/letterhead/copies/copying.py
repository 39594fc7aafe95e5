"""Copy the records of a source to a directory, a file or a topic: :class:`Copying`, which :func:`letterhead.copy` and the command run."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from letterhead._object_paths import ObjectPath, is_object_url, path_of
from letterhead._row_request import RowRequest
from letterhead._table_batches import rows_by_partition
from letterhead._table_writers import COMPRESSION, FORMS
from letterhead.copies.file_target import FileTarget
from letterhead.copies.offset_map import OffsetMap
from letterhead.copies.part_directory import PART_ROWS, PartDirectory, StagedPart, describe_topic, write_part
from letterhead.copies.target import CopyTarget
from letterhead.copies.topic_target import TopicTarget, after_last
from letterhead.errors import TopicNotFoundError
from letterhead.offsets.partition_log import OffsetRange
from letterhead.offsets.ranges import divide_ranges
from letterhead.offsets.specs import OffsetBounds, check_follow, group_of
from letterhead.reader import Reader
from letterhead.sources.base import Logins, LogSource, Source
from letterhead.sources.comparison import Comparison, compare
from letterhead.sources.iggy import FORM, is_iggy_address
from letterhead.sources.kafka import SCHEME, KafkaTopicSource, is_kafka_address
from letterhead.sources.recognition import open_sources
from letterhead.sources.segments import LogSegments
from letterhead.sources.tables import ArrowTable, TableFile, TableSource
from letterhead.where.parsing import as_condition

if TYPE_CHECKING:
    import pyarrow as pa

    from letterhead.offsets.specs import OffsetSpec

__all__ = ["BatchEdit", "Copied", "CopyTask", "Copying", "TargetOptions"]

_FILE_SECONDS = 30.0
"""Interval in seconds between rounds of a copy that follows a topic."""

_FILES = {*FORMS, *COMPRESSION, ".csv"}
"""File extensions of targets that are files rather than directories."""


class Copied(NamedTuple):
    """Result of a copy.

    Attributes
    ----------
    rows : int
        Number of records written by this call.
    ends : dict of int to int
        The next offset of each partition of a log.
    remarks : list of str
        Remarks about an earlier run that was killed.
    """

    rows: int
    ends: dict[int, int]
    remarks: list[str]


class BatchEdit(NamedTuple):
    """Function that changes the headers of batches, and its description."""

    apply: Callable[[pa.RecordBatch], pa.RecordBatch]
    text: Sequence[str]


class TargetOptions(NamedTuple):
    """Options of a topic to which records are copied."""

    mapping: str | None = None
    settings: Mapping[str, Any] | None = None
    timeout_ms: int | None = None


class CopyTask(NamedTuple):
    """Part of a copy to a directory, run by one task."""

    source: str
    request: RowRequest
    part: OffsetRange
    target: str

    def run(self) -> StagedPart | None:
        """Write the records to a file; return None if there are none."""
        number = self.part.partition.partition
        request = replace(
            self.request, partitions=frozenset({number}), start={number: self.part.start}, end={number: self.part.end}
        )
        [source] = open_sources([self.source])
        with source.read_rows(request) as reader:
            return write_part(path_of(self.target), (batch for batch in reader if len(batch)))


class Copying:
    """Copy of the rows that a request selects from a source.

    ``target`` is a directory or the address of a topic. With ``append``, records follow existing ones of a topic.
    ``target_options`` apply to topics as targets. ``offsets`` is a file that maps offsets of the
    source to offsets in the topic.
    """

    def __init__(
        self,
        source: Source,
        request: RowRequest,
        target: str,
        *,
        edit: BatchEdit | None = None,
        append: bool = False,
        target_options: TargetOptions | None = None,
        offsets: str | os.PathLike[str] | None = None,
        logins: Logins | None = None,
    ) -> None:
        if request.last is not None:
            raise ValueError("a copy is of all records: leave out last=")
        if request.errors != "raise" and (not request.headers or request.where is not None):
            raise ValueError(
                "errors= is for the columns of headers= without where=: a record that cannot be read, or that leaves a "
                "condition undecided, ends a copy"
            )
        if request.follow:
            check_follow(OffsetBounds.parse(request.start, request.end), follow=True)
        if isinstance(source, LogSegments):
            source.check_one_topic(request)
        self._source = source
        self._edit = edit
        self._append = append
        self._offsets = None if offsets is None else Path(offsets)
        if append and offsets is not None:
            raise ValueError("append= and offsets= exclude each other: where such a copy began is not known again")
        self._location = target
        self._target: CopyTarget[Any] | FileTarget | Path | ObjectPath
        # Records of internal topics are copied without decoding.
        if isinstance(source, LogSource) and source.internal is not None:
            whole = source.record_columns
        else:
            whole = source.default_columns(replace(request, headers=None))
        is_iggy = is_iggy_address(target)
        target_options = target_options or TargetOptions()
        if target_options.mapping is not None and is_iggy == (request.mapping is not None):
            raise ValueError("mapping= is for copies between Kafka and Iggy")
        if is_iggy or is_kafka_address(target):
            if request.headers:
                raise ValueError("headers= adds columns to a directory: a topic has none")
            self._target = _topic(target, target_options, logins or Logins(), has_messages="payload" in whole)
        else:
            self._target = _files(target, source, append=append)
        columns = tuple(whole)
        if isinstance(self._target, CopyTarget):
            columns = tuple(name for name in whole if name in (*self._target.written, "offset"))
        elif offsets is not None:
            raise ValueError("offsets= is for topics: a directory has the offsets as a column")
        if not {"key", "value", "headers", "payload"} & {*columns}:
            raise ValueError(f"{source.name} has no records: it has neither a column key, nor value or headers")
        self._request = replace(request, columns=columns)

    @property
    def target_name(self) -> str:
        """Name of the target, without credentials."""
        if isinstance(self._target, FileTarget):
            return str(self._target.path)
        return self._target.name if isinstance(self._target, CopyTarget) else str(self._target)

    @property
    def target_has_password(self) -> bool:
        """Whether the address of the target contains a password."""
        return isinstance(self._target, CopyTarget) and self._target.has_password

    def create(self, partitions: int | None) -> None:
        """Create the topic, by default with the number of partitions of the source."""
        if not isinstance(self._target, CopyTarget):
            raise ValueError("create= is for topics: a directory is made")
        known = self._described_topic()
        if partitions is None:
            partitions = known.get("partitions") or self._source_partitions()
        self._target.create(partitions, known.get("settings", {}))

    def _described_topic(self) -> dict[str, Any]:
        """Return the partitions and settings of the original topic, as far as they are known."""
        if isinstance(self._source, KafkaTopicSource):
            with self._source.admin(self._request) as admin:
                partitions = len(admin.partitions([self._source.topic]))
                try:
                    return {"partitions": partitions, "settings": admin.own_settings(self._source.topic)}
                except PermissionError:  # the user may lack permission to describe the settings
                    return {"partitions": partitions}
        if isinstance(self._source, TableFile):
            return describe_topic(path_of(self._source.location))
        return {}

    def run(self, advance: Callable[[int], None] = lambda rows: None) -> Copied:
        """Copy missing records; with ``follow``, also copy new records until an exception such as Ctrl-C."""
        if isinstance(self._target, CopyTarget):
            return self._run_to_topic(self._target, advance)
        if isinstance(self._target, FileTarget):
            return self._run_to_file(self._target, advance)
        while True:
            copied = self._run_to_directory(self._target, advance)
            if not self._request.follow:
                return copied
            time.sleep(_FILE_SECONDS)

    def _run_to_file(self, target: FileTarget, advance: Callable[[int], None]) -> Copied:
        if self._request.follow:
            raise ValueError("follow= is for directories and topics: a file appears when it is complete")
        copied = _Counted(advance)
        with self._source.reader(self._request) as reader:
            target.write(reader.schema, copied.count(self._edited(reader)))
        return Copied(copied.rows, copied.ends, [])

    def _run_to_directory(self, path: Path | ObjectPath, advance: Callable[[int], None]) -> Copied:
        with PartDirectory(path, self._description(), self._described_topic) as directory:
            # Records of a later round may lack headers that earlier records have.
            read = self._source.read_rows if directory.ends or self._request.follow else self._source.reader
            with read(self._after(directory.ends)) as reader:
                for batch in self._edited(reader):
                    directory.write(batch)
                    advance(len(batch))
            directory.finish(reader.schema)
            return Copied(directory.rows, directory.ends, directory.remarks)

    def run_in_tasks(self, run: Callable[[Sequence[CopyTask]], Iterable[StagedPart]], tasks: int) -> Copied:
        """Copy to a directory in rounds of ``tasks`` tasks, run by ``run``; after each round the files are renamed."""
        if self._request.follow:
            raise ValueError("a job ends: leave out follow=")
        source, path = self._source, self._target
        if not isinstance(source, KafkaTopicSource) or isinstance(path, CopyTarget | FileTarget):
            raise ValueError("a job copies a topic of Kafka to a directory: call letterhead.copy")
        with PartDirectory(path, self._description(), self._described_topic) as directory:
            request = self._after(directory.ends)
            ranges = divide_ranges(source.ranges(request), 0, PART_ROWS)
            left = [CopyTask(source.name, request, part, self._location) for part in ranges]
            while left:
                directory.publish(run(left[:tasks]))
                left = left[tasks:]
            directory.finish(source.schema(request))
            return Copied(directory.rows, directory.ends, directory.remarks)

    def _run_to_topic(self, target: CopyTarget[Any], advance: Callable[[int], None]) -> Copied:
        try:
            partitions = target.partitions()
        except TopicNotFoundError as error:
            raise TopicNotFoundError(f"{error}; or pass create= to create it") from None
        last = {} if self._append else target.last_records()
        with ExitStack() as closing:
            offset_map = None if self._offsets is None else closing.enter_context(OffsetMap(self._offsets))
            return self._append_to_topic(target, partitions, last, offset_map, advance)

    def _append_to_topic(
        self,
        target: CopyTarget[Any],
        partitions: int,
        last: dict[int, dict[str, Any]],
        offset_map: OffsetMap | None,
        advance: Callable[[int], None],
    ) -> Copied:
        first: dict[int, int] = {}
        request = self._request
        if offset_map is not None:
            _check_map(offset_map, last, target.name)
            if isinstance(self._source, LogSource) and offset_map.runs:
                # The last record in the offset map is read again and compared.
                first = {number: offset_map.target_end(number) - 1 for number in offset_map.runs}
                starts = {number: own[-1].end - 1 for number, own in offset_map.runs.items()}
                request = replace(request, start=self._start(self._source, starts))
        copied = _Counted(advance)
        with self._source.reader(request) as reader:
            if offset_map is not None and not {"partition", "offset"} <= {*reader.schema.names}:
                raise ValueError("offsets= needs a source with the columns partition and offset")
            if last and "partition" not in reader.schema.names:
                raise ValueError(
                    f"{target.name} has records already, and the source has no column partition by which a copy "
                    "continues: name an empty topic, or pass append= to write after them"
                )
            records = self._checked(copied.note_ends(self._edited(reader)), partitions, target.required)
            target.write(
                copied.count_rows(after_last(records, last, offset_map, first)),
                None if self._append else last,
                at_once=self._request.follow,
                **({} if offset_map is None else {"note": offset_map.note_rows}),
            )
        return Copied(copied.rows, copied.ends, [])

    def verify(self, copied: Copied) -> tuple[Comparison, pa.Schema, Iterator[pa.RecordBatch]]:
        """Compare target and source up to the copied offsets (:func:`letterhead.sources.comparison.compare`)."""
        if self._request.follow:
            raise ValueError("follow= and verify= exclude each other: such a copy has no end")
        if self._append:
            raise ValueError("append= and verify= exclude each other: the target has other records, too")
        reader = self._reopened().read_rows(self._request)
        first = Reader(reader.schema, lambda: _read_until(self._edited(reader), copied.ends))
        if not isinstance(self._target, CopyTarget):
            request = RowRequest(limits=self._request.limits)
            return compare(first, TableFile(self._location).reader(request), order="offset")
        second = self._target.reader()
        columns = [name for name in self._target.written[1:] if name in reader.schema.names]
        return compare(first, second, columns=columns, order="position")

    def _reopened(self) -> Source:
        """Return the source for a second reader: an open table can be read only once."""
        return self._source.reopened() if isinstance(self._source, TableSource) else self._source

    def _edited(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if len(batch):
                yield batch if self._edit is None else self._edit.apply(batch)

    def _checked(
        self, batches: Iterable[pa.RecordBatch], partitions: int, required: Sequence[str]
    ) -> Iterator[pa.RecordBatch]:
        """Raise ValueError for a record without a timestamp, or with a partition that the topic does not have."""
        import pyarrow.compute as pc

        for batch in batches:
            for name in required:
                if name in batch.schema.names and batch.column(name).null_count:
                    raise ValueError(
                        f"a record has no {name}, and would get one of the copy, such as its time: write a table with what such "
                        "records should have, and copy that"
                    )
            if "partition" in batch.schema.names:
                most = pc.max(batch.column("partition")).as_py()
                if most is not None and most >= partitions:
                    raise ValueError(
                        f"the source has a partition {most}, and the topic has {partitions}: create a topic with "
                        f"{most + 1} partitions or more"
                    )
            yield batch

    def _after(self, ends: Mapping[int, int]) -> RowRequest:
        """Return the request for records that follow the records in a directory."""
        request = replace(self._request, follow=False)
        if not ends or not isinstance(self._source, LogSource):
            return request
        return replace(request, start=self._start(self._source, ends))

    def _start(self, source: LogSource, ends: Mapping[int, int]) -> OffsetSpec:
        """Return the start of each partition: after its copied records, or the start of the request."""
        start = self._request.start
        if isinstance(start, Mapping):
            return {**start, **ends}
        return {number: ends.get(number, start) for number in source.partition_numbers(self._request)}

    def _source_partitions(self) -> int:
        if isinstance(self._source, LogSource):
            return max(self._source.partition_numbers(self._request)) + 1
        if "partition" not in (self._request.columns or ()):
            raise ValueError("how many partitions the source had is not known: pass create= with their number")
        import pyarrow.compute as pc

        most = 0
        with self._reopened().read_rows(replace(self._request, columns=("partition",), where=None)) as reader:
            for batch in reader:
                most = max(most, pc.max(batch.column("partition")).as_py() or 0)
        return most + 1

    def _description(self) -> dict[str, Any]:
        """Describe the source and the options. The cluster id distinguishes topics of the same name."""
        request, source = self._request, self._source
        if isinstance(source, KafkaTopicSource):
            with source.admin(request) as admin:
                origin = {"source": source.topic, "cluster": admin.cluster_id()}
        else:
            origin = {"source": source.name if "://" in source.name else os.path.abspath(source.name)}
        committed = request.committed
        if committed is None:
            committed = (request.settings or {}).get("isolation.level") == "read_committed"
        return {
            **origin,
            "start": None if request.start == "earliest" else _start_text(request.start),
            "isolation_level": "read_committed" if committed else None,
            "headers": None if not request.headers else str(request.headers),
            "where": None if request.where is None else str(as_condition(request.where)),
            "edit": None if self._edit is None else [*self._edit.text],
        }


def _start_text(start: OffsetSpec) -> str:
    """Describe a start in a form that does not depend on whether Python code or the command specified it."""
    if group_of("start", start) is not None:
        return str(start)
    points = OffsetBounds.parse(start, "latest").start
    if not isinstance(points, Mapping):
        return str(points)
    return ",".join(f"{partition}={points[partition]}" for partition in sorted(points))


def _check_map(offset_map: OffsetMap, last: Mapping[int, Mapping[str, Any]], name: str) -> None:
    """Raise ValueError if the file maps offsets that the topic does not have."""
    for number in offset_map.runs:
        end = last[number]["offset"] + 1 if number in last else 0
        if end < offset_map.target_end(number):
            raise ValueError(
                f"{offset_map.path} is of another copy: partition {number} of {name} ends at offset {end}, and not after "
                f"{offset_map.target_end(number) - 1}"
            )


class _Counted:
    """Counter of rows accepted by a target, with the offset after the last record of each partition."""

    def __init__(self, advance: Callable[[int], None]) -> None:
        self.rows = 0
        self.ends: dict[int, int] = {}
        self._advance = advance

    def count(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Count the rows of batches, and note their offsets."""
        return self.count_rows(self.note_ends(batches))

    def count_rows(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Count the rows of a batch once the next one is requested."""
        for batch in batches:
            yield batch
            self.rows += len(batch)
            self._advance(len(batch))

    def note_ends(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Note the last offsets of batches."""
        for batch in batches:
            if {"partition", "offset"} <= {*batch.schema.names}:
                ends = {number: rows.column("offset")[-1].as_py() for number, rows in rows_by_partition(batch)}
                self.ends.update({number: end + 1 for number, end in ends.items()})
            yield batch


def _topic(target: str, options: TargetOptions, logins: Logins, *, has_messages: bool) -> CopyTarget[Any]:
    mapping = options.mapping
    if is_iggy_address(target):
        from letterhead.copies.iggy_target import LOSSLESS, IggyTarget

        if mapping is not None and has_messages:
            raise ValueError("mapping= is for records of Kafka: the source has messages of Iggy")
        return IggyTarget(target, logins, options.timeout_ms, None if has_messages else mapping or LOSSLESS)
    if has_messages:
        raise ValueError(
            "the source has messages of Iggy, and Kafka has no types of headers: pass mapping= for a topic of records that "
            "were copied from Kafka (kafka-gateway-lossless)"
        )
    return TopicTarget(target, options.settings or {}, logins, options.timeout_ms)


def _files(target: str, source: Source, *, append: bool) -> Path | ObjectPath | FileTarget:
    if "://" in target and not is_object_url(target):
        raise ValueError(
            f"a copy is written to a directory, also of an object store (s3://bucket/path), or to a topic of Kafka "
            f"({SCHEME}host:port/topic) or Iggy ({FORM}), not to {target.partition('://')[0]}://"
        )
    path = path_of(target)
    if append:
        raise ValueError("append= is for topics: a directory continues where its copy stopped")
    if not isinstance(source, LogSource):
        remedy = "pyarrow" if isinstance(source, ArrowTable) else "`letterhead read --out`"
        raise ValueError(f"{source.name} is no log, and cannot be copied to a file or directory: write it by {remedy}")
    return FileTarget(path) if path.suffix.lower() in _FILES or path.is_file() else path


def _read_until(batches: Iterable[pa.RecordBatch], ends: Mapping[int, int]) -> Iterator[pa.RecordBatch]:
    """Drop records that were written after the copy."""
    import pyarrow.compute as pc

    for batch in batches:
        if not ends or "offset" not in batch.schema.names:
            yield batch
            continue
        for number, rows in rows_by_partition(batch):
            yield rows.filter(pc.less(rows.column("offset"), ends.get(number, 0)))
