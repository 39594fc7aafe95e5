"""The data source ``letterhead-segments``: log segments of Kafka and Iggy as tables."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from letterhead.spark.schemas import check_schema, spark_schema
from letterhead.spark.sources.base import BatchOnly
from letterhead.spark.sources.options import COMMON, Option, number, one_of, parse_options, path, read_arguments
from letterhead.spark.sources.pushdown import push, reader_class

if TYPE_CHECKING:
    import pyarrow as pa

    from letterhead.iggy.segments import IggySegment, IggySegmentRows
    from letterhead.kafka.log_directory import Segment
    from letterhead.kafka.segments_reader import Bounds
    from letterhead.kafka.transactions import Transactions

__all__ = ["SegmentsSource"]

OPTIONS = {
    "path": Option(path, "The directory of a partition, a broker's directory of these, or a `.log` file."),
    "format": Option(
        one_of("record-batch", "iggy-batch"), "Segments of Kafka (default) or Iggy, as in `letterhead.read.segments`."
    ),
    "start": Option(number(), "First offset of each partition."),
    "end": Option(number(), "Offset before which to stop."),
    "since": Option(number(), "First timestamp, in milliseconds since 1970."),
    "until": Option(number(), "Timestamp before which to stop, in milliseconds since 1970."),
    "isolationLevel": Option(
        one_of("read_uncommitted", "read_committed"), "`isolation_level` of `letterhead.read.segments`."
    ),
    **COMMON,
}

_SPLIT_LEN = 128 << 20
"""Approximate size in bytes of the parts into which a segment with an index is split."""


class SegmentsSource(BatchOnly, DataSource):  # type: ignore[misc]
    """Read log segments without their broker: ``spark.read.format("letterhead-segments")``.

    The files have to exist on the driver and on every worker. Each segment is a partition; a large one with an index is
    split into several. :data:`OPTIONS` lists the options.

    Examples
    --------
    >>> from letterhead import spark as lhs
    >>> lhs.register(spark)
    >>> source = spark.read.format("letterhead-segments").option("columns", '["offset"]')
    >>> orders = source.option("headerColumns", '{"tenant": "string"}').load("tests/samples/orders-0")
    >>> orders
    DataFrame[offset: bigint, tenant: string]
    >>> orders.count()
    10000
    """

    instead = "only brokers write segments; write to a topic, by Spark's format kafka or by letterhead-iggy"

    @classmethod
    def name(cls) -> str:
        """Return the name of the source."""
        return "letterhead-segments"

    def schema(self) -> StructType:
        """Return the columns that the options select."""
        return spark_schema(self.arrow_schema())

    def arrow_schema(self) -> pa.Schema:
        """Return the same in Arrow's types."""
        return self._reader().wanted.schema

    def reader(self, schema: StructType) -> SegmentsSourceReader:
        """Return the reader of a batch query."""
        reader = self._reader()
        if "path" not in self.options:
            raise ValueError('pass the directory: .option("path", directory), or .load(directory)')
        check_schema(self.name(), reader.wanted.schema, schema)
        return reader

    def _reader(self) -> SegmentsSourceReader:
        values = parse_options(self.options, OPTIONS)
        plain = IggySegmentsSourceReader if values.get("format") == "iggy-batch" else SegmentsSourceReader
        return reader_class(plain)(values)


@dataclass
class Part(InputPartition):  # type: ignore[misc]
    """A segment, or a range of its offsets."""

    segment: Segment
    bounds: Bounds
    known: Transactions


class SegmentsSourceReader(DataSourceReader):  # type: ignore[misc]
    """Read the segments of a path, with the values of its options."""

    def __init__(self, values: dict[str, Any]) -> None:
        from letterhead.kafka.segments_reader import Bounds

        self._path = values.get("path", "")
        self._bounds = Bounds.of(*map(values.get, ("start", "end", "since", "until")))
        self._committed = values.get("isolationLevel") == "read_committed"
        self._values = values
        self.wanted = self._rows(values.get("where"))

    def _rows(self, where: Any) -> Any:
        from letterhead.kafka.segments_reader import COLUMNS, SegmentRows

        columns, arguments = self._values.get("columns", COLUMNS), read_arguments(self._values) | {"where": where}
        return SegmentRows(columns, self._values.get("headerColumns"), self._bounds, **arguments)

    def push(self, filters: list[Any]) -> list[Any]:
        """Apply the filters that can be evaluated on segments."""
        headers, where = self._values.get("headerColumns"), self._values.get("where")
        keeps_errors = self._values.get("errors") == "column"
        where, left = push(filters, where, headers, self._rows, keeps_errors=keeps_errors)
        self.wanted = self._rows(where)
        return left

    def partitions(self) -> list[InputPartition]:
        """Return the parts; the driver reads transactions, as their markers may be in other parts."""
        from letterhead.errors import TornTailWarning
        from letterhead.kafka.log_directory import partitions
        from letterhead.kafka.segments_reader import torn_tail
        from letterhead.kafka.transactions import Transactions, transactions

        parts = []
        for segments in partitions(self._path):
            known, bounds = Transactions([], []), self.wanted.narrowed(segments[0], self._bounds)
            if self._committed:
                known = transactions(segments, bounds.start, strict=self.wanted.errors == "raise")
            for one in known.open:
                warnings.warn(
                    f"a transaction is open, and {segments[0].path.parent} is read up to it: {one}", stacklevel=2
                )
            torn = torn_tail(segments[-1], bounds, known)
            if torn is not None:
                warnings.warn(str(torn), TornTailWarning, stacklevel=2)
            parts += [part for segment in segments for part in _parts(segment, bounds, known)]
        return parts

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """Read a part."""
        from letterhead.errors import TornTailWarning
        from letterhead.kafka.segments_reader import SegmentsReader

        reader = SegmentsReader(
            [[partition.segment]], self.wanted, partition.bounds, known=partition.known, torn_rows=True
        )
        with reader, warnings.catch_warnings():
            # The driver has warned of it.
            warnings.simplefilter("ignore", TornTailWarning)
            yield from reader


@dataclass
class IggyPart(InputPartition):  # type: ignore[misc]
    """A segment of Iggy."""

    segment: IggySegment


class IggySegmentsSourceReader(SegmentsSourceReader):
    """The same for segments of Iggy: a task reads a file."""

    def _rows(self, where: Any) -> IggySegmentRows:
        from letterhead.iggy.segments import IggySegmentRows

        if self._committed:
            raise ValueError("isolationLevel read_committed needs segments of Kafka: Iggy has no transactions")
        arguments = read_arguments(self._values) | {"where": where}
        columns, headers = self._values.get("columns"), self._values.get("headerColumns")
        return IggySegmentRows.of(columns, headers, self._bounds, **arguments)

    def partitions(self) -> list[InputPartition]:
        """Return the files."""
        from letterhead.errors import TornTailWarning
        from letterhead.iggy.segments import iggy_partitions, torn_tail

        partitions = iggy_partitions(self._path)
        for segments in partitions:
            torn = torn_tail(segments[-1], self._bounds, self.wanted.message_bytes)
            if torn is not None:
                warnings.warn(str(torn), TornTailWarning, stacklevel=2)
        return [IggyPart(segment) for segments in partitions for segment in segments]

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """Read a file."""
        from letterhead.errors import TornTailWarning
        from letterhead.iggy.segments import IggySegmentsReader

        reader = IggySegmentsReader([[partition.segment]], self.wanted, torn_rows=True)
        with reader, warnings.catch_warnings():
            # The driver has warned of it.
            warnings.simplefilter("ignore", TornTailWarning)
            yield from reader


def _parts(segment: Segment, bounds: Bounds, known: Transactions) -> Iterator[Part]:
    from letterhead.kafka.indexes import offsets_every
    from letterhead.kafka.record_sets import LAST_OFFSET

    after = LAST_OFFSET if segment.next_offset is None else segment.next_offset
    for first, end in pairwise([segment.base_offset, *offsets_every(segment, _SPLIT_LEN), after]):
        start, end = max(first, bounds.start), min(end, bounds.end)
        if start < end:
            # An open transaction ends the reading, wherever it began.
            aborted = [one for one in known.aborted if one.first_offset < end and one.last_offset >= start]
            yield Part(segment, bounds._replace(start=start, end=end), known._replace(aborted=aborted))
