"""The data source ``letterhead-segments``: log segments of Kafka and Iggy as tables."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from letterhead._row_request import RowRequest, is_committed
from letterhead._warnings import warn
from letterhead.errors import TruncatedTailWarning
from letterhead.offsets.partition_log import LAST_OFFSET, OffsetRange
from letterhead.offsets.segments import SegmentLog, SegmentsReader
from letterhead.offsets.specs import OffsetBounds
from letterhead.sources.segments import IggySegmentsSource, KafkaSegmentsSource, LogSegments
from letterhead.spark.schemas import check_schema
from letterhead.spark.sources.base import BatchOnly
from letterhead.spark.sources.options import COMMON, Option, one_of, parse_options, path, request_from_options, text
from letterhead.spark.sources.pushdown import FilterPushdown, push

if TYPE_CHECKING:
    import pyarrow as pa

    from letterhead.kafka.log_directory import LogSegment
    from letterhead.kafka.transactions import Transactions

__all__ = ["SegmentsSource"]

OPTIONS = {
    "path": Option(path, "The directory of a partition, a broker's directory of these, or a `.log` file."),
    "format": Option(
        one_of("record-batch", "iggy-batch"), "Segments of Kafka (default) or Iggy, as in `letterhead.read.segments`."
    ),
    "start": Option(
        text,
        "Where to begin in every partition: an offset, a time such as `2026-01-01T08:30:00Z`, or a negative number of "
        "offsets before the end.",
    ),
    "end": Option(text, "Where to stop, as `start`."),
    "isolationLevel": Option(
        one_of("read_uncommitted", "read_committed"), "`isolation_level` of `letterhead.read.segments`."
    ),
    **COMMON,
}

_SPLIT_LEN = 128 << 20
"""Approximate size in bytes of the parts of a segment with an index."""


class SegmentsSource(BatchOnly):
    """Read log segments without their broker: ``spark.read.format("letterhead-segments")``.

    The files must exist on the driver and on every worker. Each segment is a partition; a large one with an index is
    split into several. :data:`OPTIONS` lists the options.

    Examples
    --------
    >>> from letterhead import spark as lhs
    >>> lhs.register(spark)
    >>> source = spark.read.format("letterhead-segments").option("columns", "offset")
    >>> orders = source.option("headers", '{"tenant": "string"}').load("tests/samples/orders-0")
    >>> orders
    DataFrame[offset: bigint, tenant: string]
    >>> orders.count()
    10000
    """

    format_name = "letterhead-segments"
    instead = "only brokers write segments; write to a topic, by Spark's format kafka or by letterhead-iggy"

    def arrow_schema(self) -> pa.Schema:
        """Return the columns in Arrow's types."""
        return self._reader().schema

    def reader(self, schema: StructType) -> SegmentsSourceReader:
        """Return the reader of a batch query."""
        reader = self._reader()
        if "path" not in self.options:
            raise ValueError('pass the directory: .option("path", directory), or .load(directory)')
        check_schema(self.name(), reader.schema, schema)
        return reader

    def _reader(self) -> SegmentsSourceReader:
        values = parse_options(self.options, OPTIONS)
        is_iggy = values.get("format") == "iggy-batch"
        return IggySegmentsSourceReader(values) if is_iggy else SegmentsSourceReader(values)


@dataclass
class SegmentPart(InputPartition):  # type: ignore[misc]
    """Segment, or a range of its offsets."""

    segment: Any
    offsets: OffsetRange
    options: Mapping[str, Any] = field(default_factory=dict)


class SegmentsSourceReader(FilterPushdown, DataSourceReader):  # type: ignore[misc]
    """Reads the segments of a path, with the values of its options."""

    _source: ClassVar[type[LogSegments]] = KafkaSegmentsSource

    def __init__(self, values: dict[str, Any]) -> None:
        self._path = values.get("path", "")
        self._bounds = OffsetBounds.parse(
            values.get("start", "earliest"), values.get("end", "latest"), ("option start", "option end")
        )
        self._request = replace(request_from_options(values), committed=is_committed(values.get("isolationLevel")))
        self.schema = self._log(self._request).schema

    def push(self, filters: list[Any]) -> list[Any]:
        """Apply the filters that can be evaluated on segments."""
        self._request, left = push(filters, self._request, self._log)
        return left

    def partitions(self) -> list[InputPartition]:
        """Return the parts; the driver reads transactions, because their markers may be in other parts."""
        log = self._log(self._request)
        parts: list[InputPartition] = []
        for segments, requested in log.ranges(self._source.find_partitions(self._path), self._bounds):
            truncated = log.end_of(segments[-1]).truncated
            if truncated is not None:
                warn(str(truncated), TruncatedTailWarning)
            parts += self._parts(log, segments, requested)
        return parts

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """Read a part."""
        bounds = OffsetBounds.parse(partition.offsets.start, partition.offsets.end)
        log = self._log(self._request, truncated_rows=True, **partition.options)
        reader = SegmentsReader(log, [[partition.segment]], bounds)
        with reader, warnings.catch_warnings():
            # The driver has already warned.
            warnings.simplefilter("ignore", TruncatedTailWarning)
            yield from reader

    def _log(self, request: RowRequest, **options: Any) -> SegmentLog[Any, Any]:
        return self._source.log(request, dialect="spark", **options)

    def _parts(self, log: Any, segments: Sequence[Any], requested: OffsetRange) -> Iterator[SegmentPart]:
        from letterhead.kafka.transactions import Transactions

        transactions = log.transactions(segments, requested.start) if self._request.committed else Transactions([], [])
        for transaction in transactions.open:
            warn(f"a transaction is open, and {segments[0].path.parent} is read up to it: {transaction}")
        for segment in segments:
            yield from _parts(segment, requested, transactions)


class IggySegmentsSourceReader(SegmentsSourceReader):
    """Reads segments of Iggy, one file per task."""

    _source = IggySegmentsSource

    def _log(self, request: RowRequest, **options: Any) -> SegmentLog[Any, Any]:
        if request.committed:
            raise ValueError("isolationLevel read_committed needs segments of Kafka: Iggy has no transactions")
        return super()._log(request, **options)

    def _parts(self, log: Any, segments: Sequence[Any], requested: OffsetRange) -> Iterator[SegmentPart]:
        if requested.start < requested.end:
            yield from (SegmentPart(segment, requested) for segment in segments)


def _parts(segment: LogSegment, requested: OffsetRange, transactions: Transactions) -> Iterator[SegmentPart]:
    from letterhead.kafka.indexes import offsets_every

    after = LAST_OFFSET if segment.next_offset is None else segment.next_offset
    for first, end in pairwise([segment.base_offset, *offsets_every(segment, _SPLIT_LEN), after]):
        start, end = max(first, requested.start), min(end, requested.end)
        if start < end:
            # Reading stops at an open transaction, even if it began in an earlier part.
            aborted = [
                transaction
                for transaction in transactions.aborted
                if transaction.first_offset < end and transaction.last_offset >= start
            ]
            options = {"transactions": transactions._replace(aborted=aborted)}
            yield SegmentPart(segment, requested._replace(start=start, end=end), options)
