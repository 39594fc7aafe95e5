"""Log segments of Kafka and Iggy as a source: a file, files of partitions, or a directory."""

from __future__ import annotations

import os
from abc import abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING, Any

from letterhead._formatting import count_noun
from letterhead._row_request import LOG_OPTIONS, RowRequest
from letterhead.offsets.specs import OffsetBounds, describe_partitions
from letterhead.sources.base import Findings, LogSource
from letterhead.sources.iggy import IggyLog
from letterhead.sources.kafka import KafkaLog, internal_topic_of

if TYPE_CHECKING:
    from letterhead.kafka.internal_topics import InternalTopic
    from letterhead.kafka.log_directory import Paths
    from letterhead.offsets.segments import SegmentLog, SegmentsReader

# Further damaged batches are only counted; --errors column has a row for each.
MAX_DAMAGED_LINES = 20


class LogSegments(LogSource):
    """Log segments, read one partition after the other."""

    partition_columns: tuple[str, ...] = ("topic", "partition")

    def __init__(self, paths: Paths) -> None:
        self.partitions = self.find_partitions(paths)
        names = [paths] if isinstance(paths, str | os.PathLike) else [*paths]
        super().__init__(os.fspath(names[0]) if len(names) == 1 else f"{names[0]} and others")
        self._opened: SegmentsReader | None = None
        self._is_view_of_batches = False

    @staticmethod
    @abstractmethod
    def find_partitions(paths: Paths) -> list[Any]:
        """Return the segment files of each partition."""

    @staticmethod
    @abstractmethod
    def log(request: RowRequest, **options: Any) -> SegmentLog[Any, Any]:
        """Return the reader of log files. Spark passes additional options."""

    def open_records(self, request: RowRequest) -> SegmentsReader:
        """Return a stream of the records."""
        from letterhead.offsets.segments import SegmentsReader

        partitions = self._chosen(request)
        bounds = OffsetBounds.parse(request.start, request.end)
        bounds.check_partitions((segments[0].partition for segments in self.partitions), self.name)
        reader = SegmentsReader(self.log(request), partitions, bounds, last=request.last)
        self._opened = self._progress = reader
        self._is_view_of_batches = request.view == "batches"
        return reader

    def partition_numbers(self, request: RowRequest) -> list[int]:
        """Return the partitions with files."""
        return sorted({segments[0].partition for segments in self._chosen(request)})

    def has_several(self, request: RowRequest) -> bool:
        """Return whether the request covers several partitions."""
        return len(self._chosen(request)) > 1

    def check_one_topic(self, request: RowRequest) -> None:
        """Raise ValueError if the files are of several topics, because positions are specified by partition number."""
        topics = [
            {name: value for name, value in segments[0].partition_values.items() if name != "partition"}
            for segments in self._chosen(request)
        ]
        if any(topic != topics[0] for topic in topics):
            raise ValueError(f"{self.name} has several topics: copy the directories of one topic at a time")

    def _chosen(self, request: RowRequest) -> list[Any]:
        if request.partitions is None:
            return self.partitions
        chosen = [segments for segments in self.partitions if segments[0].partition in request.partitions]
        missing = request.partitions - {segments[0].partition for segments in chosen}
        if missing:
            existing = [segments[0].partition for segments in self.partitions if segments[0].partition is not None]
            known = f"it has {describe_partitions(existing)}" if existing else "leave out partitions="
            raise ValueError(f"{self.name} has no partition {min(missing)}: {known}")
        return chosen

    def findings(self) -> Findings:
        """Return findings about open transactions, damaged batches and truncated ends, also beyond the rows that were read."""
        reader = self._opened
        if reader is None:
            return Findings()
        reader.check_ends()
        remarks = reader.deleted_offsets()
        for topic, partition, producer_id, first_offset in reader.open_transactions:
            prefix = "" if topic is None else f"{topic}-{partition}: "
            remarks.append(
                f"{prefix}read up to offset {first_offset}, where a transaction of producer {producer_id} is open"
            )
        remarks += map(str, reader.damaged[:MAX_DAMAGED_LINES])
        if len(reader.damaged) > MAX_DAMAGED_LINES:
            remarks.append(count_noun(len(reader.damaged) - MAX_DAMAGED_LINES, "more damaged range"))
        remarks += map(str, reader.truncated)
        return Findings(remarks, bool(reader.truncated or (reader.damaged and self._is_view_of_batches)))


class KafkaSegmentsSource(LogSegments, KafkaLog):
    """Log segments of Kafka."""

    options = LOG_OPTIONS | {"committed", "view", "ignore_crc"}

    @cached_property
    def internal(self) -> InternalTopic | None:  # type: ignore[override]
        """Decoder of records, for an internal topic of Kafka."""
        # A directory of several topics also contains other records.
        return internal_topic_of(self.topic_name)

    @property
    def topic_name(self) -> str | None:
        """Name of the topic, from the directories of its partitions."""
        names = {segments[0].topic for segments in self.partitions}
        return names.pop() if len(names) == 1 else None

    @staticmethod
    def find_partitions(paths: Paths) -> list[Any]:
        """Return the segment files of each partition."""
        from letterhead.kafka.log_directory import partitions

        return partitions(paths)

    @staticmethod
    def log(request: RowRequest, **options: Any) -> SegmentLog[Any, Any]:
        """Return the reader of files."""
        from letterhead.kafka.segments import KafkaSegments

        return KafkaSegments(request, **options)


class IggySegmentsSource(LogSegments, IggyLog):
    """Log files of an Iggy server."""

    def __init__(self, paths: Paths) -> None:
        from letterhead.iggy.segments import is_iggy_log
        from letterhead.kafka.log_directory import has_kafka_batch

        super().__init__(paths)
        for segments in self.partitions[:1]:
            path = segments[0].path
            if has_kafka_batch(path) and not is_iggy_log(path):
                raise ValueError(f"{path} is a log segment of Kafka: leave out format=")

    options = LOG_OPTIONS
    partition_columns = ("stream", "topic", "partition")

    @property
    def topic_name(self) -> None:
        """None, because directories contain the number of the topic, not its name."""
        return

    @staticmethod
    def find_partitions(paths: Paths) -> list[Any]:
        """Return the segment files of each partition."""
        from letterhead.iggy.segments import iggy_partitions

        return iggy_partitions(paths)

    @staticmethod
    def log(request: RowRequest, **options: Any) -> SegmentLog[Any, Any]:
        """Return the reader of files."""
        from letterhead.iggy.segments import IggySegments

        return IggySegments(request, **options)
