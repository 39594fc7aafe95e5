"""Log segments of Kafka as tables of Spark."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from letterhead.errors import check_name
from letterhead.spark.sources.options import LIMITS, check_options, header_columns, integer, limits, names
from letterhead.spark.sources.schema import spark_schema

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from letterhead.read.log_directory import Segment
    from letterhead.read.segments_reader import Bounds, SegmentRows
    from letterhead.read.transactions import Transactions

__all__ = ["SegmentsSource"]

OPTIONS = ("path", "columns", "headerColumns", "start", "end", "since", "until", "isolationLevel", "errors", *LIMITS)

_LEVELS = ("read_uncommitted", "read_committed")
_SPLIT_LEN = 128 << 20
"""Bytes of a segment that one task reads, about, where its index says how to cut it."""


class SegmentsSource(DataSource):  # type: ignore[misc]
    """Log segments, without their broker: ``spark.read.format("letterhead-segments")``.

    The files have to be there on the driver and on every worker. Each segment is a partition; a large one that has its
    index beside it is several.

    Options
    -------
    path
        The folder of a partition, a broker's folder of such folders, or a ``.log`` file.
    columns
        A JSON list of the columns, in order. Spark does not tell a source which ones a query needs.
    headerColumns
        Headers as typed columns: a JSON object of output columns, to a type, or to an object with ``type``, ``key``,
        ``repeat`` and ``required``.
    start, end, since, until, isolationLevel, errors
        As ``start``, ``end``, ``since``, ``until``, ``isolation_level`` and ``errors`` of
        :func:`letterhead.read.segments`; times are milliseconds since 1970.
    maxMessageBytes, maxHeaders, maxDecompressedBytes, maxRecords, maxOutputBytes
        The most to read, as :class:`letterhead.Limits`; where nothing is said, what each worker has.

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

    @classmethod
    def name(cls) -> str:
        """Name the format."""
        return "letterhead-segments"

    def schema(self) -> StructType:
        """Say which columns there are."""
        return spark_schema(self._wanted().schema)

    def reader(self, schema: StructType) -> SegmentsSourceReader:
        """Make what reads."""
        if "path" not in self.options:
            raise ValueError('give the folder: .option("path", folder), or .load(folder)')
        level = self.options.get("isolationLevel", "read_uncommitted")
        check_name("isolationLevel", level, _LEVELS)
        path = self.options["path"].removeprefix("file:")
        return SegmentsSourceReader(path, self._wanted(), self._bounds(), committed=level == "read_committed")

    def _bounds(self) -> Bounds:
        from letterhead.read.segments_reader import Bounds

        return Bounds.of(*(integer(self.options, name) for name in ("start", "end", "since", "until")))

    def _wanted(self) -> SegmentRows:
        from letterhead.read.segments_reader import COLUMNS, SegmentRows

        options: Any = self.options
        check_options(options, OPTIONS)
        columns = names(options)
        errors = options.get("errors", "raise")
        return SegmentRows(
            COLUMNS if columns is None else columns,
            header_columns(options),
            self._bounds(),
            errors,
            dialect="spark",
            limits=limits(options),
        )


@dataclass
class Part(InputPartition):  # type: ignore[misc]
    """A segment, or a part of it by its offsets."""

    segment: Segment
    bounds: Bounds
    known: Transactions


class SegmentsSourceReader(DataSourceReader):  # type: ignore[misc]
    """Reads segments, each on some worker.

    Parameters
    ----------
    path : str
        Where they are.
    wanted : SegmentRows
        What becomes of them.
    bounds : Bounds
        What of every partition is read.
    committed : bool
        Leave out what was aborted, and end where a transaction is open.
    """

    def __init__(self, path: str, wanted: SegmentRows, bounds: Bounds, *, committed: bool) -> None:
        self._path = path
        self._wanted = wanted
        self._bounds = bounds
        self._committed = committed

    def partitions(self) -> list[InputPartition]:
        """Give the parts; of transactions the driver reads, as their marks may be in another part."""
        from letterhead.read.log_directory import partitions
        from letterhead.read.transactions import Transactions, transactions

        parts = []
        for segments in partitions(self._path):
            known = Transactions([], [])
            if self._committed:
                known = transactions(segments, self._bounds.start, strict=self._wanted.errors == "raise")
            for one in known.open:
                warnings.warn(
                    f"a transaction is open, and {segments[0].path.parent} is read up to it: {one}", stacklevel=2
                )
            parts += [part for segment in segments for part in _parts(segment, self._bounds, known)]
        return parts

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """Read a part."""
        from letterhead.read.segments_reader import SegmentsReader

        with SegmentsReader([[partition.segment]], self._wanted, partition.bounds, known=partition.known) as reader:
            yield from reader


def _parts(segment: Segment, bounds: Bounds, known: Transactions) -> Iterator[Part]:
    from letterhead.read.indexes import offsets_every
    from letterhead.read.record_sets import LAST_OFFSET

    after = LAST_OFFSET if segment.next_offset is None else segment.next_offset
    for first, end in pairwise([segment.base_offset, *offsets_every(segment, _SPLIT_LEN), after]):
        start, end = max(first, bounds.start), min(end, bounds.end)
        if start < end:
            # An open transaction ends the reading, wherever it began.
            aborted = [one for one in known.aborted if one.first_offset < end and one.last_offset >= start]
            yield Part(segment, bounds._replace(start=start, end=end), known._replace(aborted=aborted))
