"""Batch and streaming queries over partitions with offsets, for the sources of Kafka and Iggy: :class:`OffsetQuery`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeAlias, TypeVar

from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition

from letterhead.errors import OffsetsGone
from letterhead.offsets.partition_log import OffsetRange, PartitionLog, TopicPartition
from letterhead.offsets.ranges import divide_ranges, limit_ends, narrow_ranges, resolve_offsets
from letterhead.offsets.reading import read_ranges
from letterhead.offsets.specs import EARLIEST, LATEST, OffsetPoint
from letterhead.spark.sources.options import json_of, request_from_options

try:
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, SupportsTriggerAvailableNow
except ImportError:  # before Spark 4.2 there are no limits, and a trigger reads all available records
    ReadAllAvailable = ReadMaxRows = None
    SupportsTriggerAvailableNow = object

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "OffsetBatchReader", "OffsetQuery", "OffsetStreamReader", "Side", "offset_point", "offsets_option",
    "partition_number",
]  # fmt: skip

LogT = TypeVar("LogT", bound=PartitionLog[Any])

Side: TypeAlias = Literal["start", "end"]

CheckpointOffsets: TypeAlias = dict[str, dict[str, int]]
"""Offsets by topic and partition, as Spark's own source writes them into a checkpoint."""

_NUMBERS = {-2: EARLIEST, -1: LATEST}
_WORDS = {"earliest": EARLIEST, "latest": LATEST}


def offsets_option(example: str, elements: type) -> Any:
    """Return a parser of earliest, latest, or JSON with offsets such as the example."""

    def parse(name: str, text: str) -> Any:
        if text.strip().lower() in _WORDS:
            return text.strip().lower()
        return json_of(f"earliest, latest or {example}", dict, elements)(name, text)

    return parse


def partition_number(option: str, text: str) -> int:
    """Parse the number of a partition in JSON."""
    if not (text.isascii() and text.isdecimal()):
        raise ValueError(f"{option} must name partitions by their numbers, not {text!r}")
    return int(text)


def offset_point(offset: str | int) -> OffsetPoint:
    """Return the offset or position in an option: -2 also means earliest, and -1 latest."""
    if isinstance(offset, str):
        return _WORDS[offset]
    return _NUMBERS.get(offset, OffsetPoint("offset", offset))


class OffsetQuery(ABC, Generic[LogT]):
    """Query with the values of its options, for the driver and for tasks."""

    remedies: ClassVar[str]
    """Remedies for a deleted or truncated partition of the checkpoint; remedies without data loss come first."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.values = values
        self.request = request_from_options(values)
        self.skips_lost = not values.get("failOnDataLoss", True)
        self.limit = values.get("maxOffsetsPerTrigger")

    @abstractmethod
    def reader(self) -> Any:
        """Return the :class:`~letterhead.offsets.rows.RowReader` of the options."""

    @property
    def schema(self) -> pa.Schema:
        """Schema of the record batches."""
        return self.reader().schema

    @abstractmethod
    def open_log(self) -> LogT:
        """Return the partitions of the cluster or server, without connecting yet."""

    @abstractmethod
    def partitions(self, log: LogT) -> list[TopicPartition]:
        """Return the partitions to read."""

    @abstractmethod
    def points(
        self, log: LogT, partitions: Sequence[TopicPartition], side: Side, *, is_batch: bool
    ) -> dict[TopicPartition, OffsetPoint]:
        """Return the start or the end of a query from the options."""

    @abstractmethod
    def topic_named(self, name: str) -> Any:
        """Return a topic of the checkpoint; raise ValueError if it does not belong to the query."""

    def commit(self, log: LogT, offsets: Mapping[TopicPartition, int]) -> None:
        """Store the offsets up to which a stream has read; by default only its checkpoint contains them."""

    def as_rows(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return a batch of the schema."""
        return batch

    def latest(self, log: LogT) -> dict[TopicPartition, int]:
        """Return the current end offsets of partitions."""
        return log.end_offsets(self.partitions(log))

    def offsets(
        self, log: LogT, partitions: Sequence[TopicPartition], side: Side, *, is_batch: bool
    ) -> dict[TopicPartition, int]:
        """Return the start or end offsets."""
        points = self.points(log, partitions, side, is_batch=is_batch)
        kinds = {partition: point.kind for partition, point in points.items()}
        first = log.first_offsets([partition for partition, kind in kinds.items() if kind == "earliest"])
        last = log.end_offsets([partition for partition, kind in kinds.items() if kind in ("latest", "time")])
        return resolve_offsets(log, points, first, last)

    def batch_ranges(self, log: LogT) -> list[OffsetRange]:
        """Return the offset ranges of a batch query."""
        partitions = self.partitions(log)
        starts, ends = (self.offsets(log, partitions, side, is_batch=True) for side in ("start", "end"))
        last = log.end_offsets(partitions)
        for partition in partitions:
            if ends[partition] > last[partition] and not self.skips_lost:
                raise ValueError(
                    f"{partition}: endingOffsets is {ends[partition]}, and the partition ends at {last[partition]}"
                )
        ranges = [
            OffsetRange(partition, starts[partition], min(ends[partition], last[partition])) for partition in partitions
        ]
        return narrow_ranges(log, ranges, self.reader().where)

    def parts(self, ranges: Sequence[OffsetRange]) -> list[InputPartition]:
        """Divide ranges among tasks: one each, or more if the options request it."""
        minimum, max_offsets = self.values.get("minPartitions", 0), self.values.get("maxRecordsPerPartition")
        return [_RangePartition(part) for part in divide_ranges(ranges, minimum, max_offsets)]

    def read(self, part: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read the ranges of one task."""
        if not isinstance(part, _RangePartition):  # if there are no partitions, Spark creates one itself
            return
        with self.open_log() as log:
            ranges = narrow_ranges(log, [part.offsets], self.reader().where)
            for batch in read_ranges(log, ranges, skip_lost=self.skips_lost):
                yield self.as_rows(batch)

    def points_by_partition(
        self, option: str, offsets: Mapping[TopicPartition, Any], partitions: Sequence[TopicPartition]
    ) -> Mapping[TopicPartition, Any]:
        """Check that an option names exactly the partitions of the query."""
        for required, present, problem in (
            (partitions, offsets, "names no offset for"),
            (offsets, partitions, "names partitions not read:"),
        ):
            missing = [str(partition) for partition in required if partition not in present]
            if missing:
                raise ValueError(f"option {option} {problem} {', '.join(missing)}")
        for partition, offset in offsets.items():
            if not isinstance(offset, int):
                raise ValueError(f"option {option} has no whole number for {partition}")
        return offsets


@dataclass
class _RangePartition(InputPartition):  # type: ignore[misc]
    """Range of offsets that a task reads."""

    offsets: OffsetRange


class OffsetBatchReader(DataSourceReader):  # type: ignore[misc]
    """Reads a batch query up to the end offsets at its start."""

    def __init__(self, query: OffsetQuery[Any]) -> None:
        self._query = query

    def partitions(self) -> Sequence[InputPartition]:
        """Return the offset ranges for tasks."""
        with self._query.open_log() as log:
            return self._query.parts(self._query.batch_ranges(log))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read the range of a task."""
        return self._query.read(partition)


class OffsetStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
    """Reads a streaming query, whose only state is offsets: a restart continues after the offsets in its checkpoint."""

    def __init__(self, query: OffsetQuery[Any]) -> None:
        if query.limit is not None and ReadMaxRows is None:
            raise ValueError("maxOffsetsPerTrigger needs Spark 4.2: before it a trigger reads all available records")
        self._query = query
        self._log: PartitionLog[Any] | None = None
        self._target: dict[TopicPartition, int] | None = None
        self._committed: CheckpointOffsets | None = None

    def initialOffset(self) -> CheckpointOffsets:
        """Return the start offsets of a query without a checkpoint."""
        log = self._connected()
        return _group_for_checkpoint(self._query.offsets(log, self._query.partitions(log), "start", is_batch=False))

    def getDefaultReadLimit(self) -> Any:
        """Return the limit from the options."""
        return ReadAllAvailable() if self._query.limit is None else ReadMaxRows(self._query.limit)

    def prepareForTriggerAvailableNow(self) -> None:
        """Store the current end offsets."""
        self._target = self._query.latest(self._connected())

    def latestOffset(self, start: CheckpointOffsets | None = None, limit: Any = None) -> CheckpointOffsets:
        """Return the end offsets of the next batch."""
        ends = self._query.latest(self._connected()) if self._target is None else dict(self._target)
        starts = self._from_checkpoint(start)
        self._check(starts, ends)
        if start is not None:
            # Spark calls commit() for a batch when it plans the next one, which does not happen for the last batch of a
            # run.
            self.commit(start)
        if ReadMaxRows is not None and isinstance(limit, ReadMaxRows):
            ends = limit_ends(limit.max_rows, self._with_new_partitions(starts, ends), ends)
        return _group_for_checkpoint(ends)

    def reportLatestOffset(self) -> CheckpointOffsets:
        """Return the current end offsets, for metrics."""
        return _group_for_checkpoint(self._query.latest(self._connected()))

    def partitions(self, start: CheckpointOffsets, end: CheckpointOffsets) -> Sequence[InputPartition]:
        """Return the offset ranges for the tasks of a batch."""
        ends = self._from_checkpoint(end)
        starts = self._with_new_partitions(self._from_checkpoint(start), ends)
        return self._query.parts([OffsetRange(partition, starts[partition], last) for partition, last in ends.items()])

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read the range of a task."""
        return self._query.read(partition)

    def commit(self, end: CheckpointOffsets) -> None:
        """Store the offsets of a batch that Spark has committed."""
        if end != self._committed:
            self._query.commit(self._connected(), self._from_checkpoint(end))
            self._committed = end

    def stop(self) -> None:
        """Close the connections."""
        if self._log is not None:
            self._log.close()
            self._log = None

    def __getstate__(self) -> dict[str, Any]:
        # Each task opens its own connection.
        return self.__dict__ | {"_log": None}

    def _connected(self) -> PartitionLog[Any]:
        if self._log is None:
            self._log = self._query.open_log()
        return self._log

    def _with_new_partitions(
        self, starts: dict[TopicPartition, int], ends: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, int]:
        """Add new partitions, which are read from their beginning."""
        new = [partition for partition in ends if partition not in starts]
        return starts | self._connected().first_offsets(new) if new else starts

    def _check(self, starts: Mapping[TopicPartition, int], ends: dict[TopicPartition, int]) -> None:
        """Reject deleted or truncated partitions, because records written to them since then would be skipped."""
        for partition, start in starts.items():
            if ends.get(partition, -1) >= start:
                continue
            if not self._query.skips_lost:
                end = ends.get(partition)
                why = "the partition does not exist any more" if end is None else f"the partition ends at {end}"
                raise OffsetsGone(partition, start, f"{why}; {self._query.remedies}")
            if partition in ends:
                ends[partition] = start

    def _from_checkpoint(self, offsets: CheckpointOffsets | None) -> dict[TopicPartition, int]:
        return {
            TopicPartition(self._query.topic_named(name), partition_number("the checkpoint", number)): offset
            for name, partitions in (offsets or {}).items()
            for number, offset in partitions.items()
        }


def _group_for_checkpoint(offsets: Mapping[TopicPartition, int]) -> CheckpointOffsets:
    by_topic: CheckpointOffsets = {}
    for partition, offset in sorted(offsets.items()):
        by_topic.setdefault(str(partition.topic), {})[str(partition.partition)] = offset
    return by_topic
