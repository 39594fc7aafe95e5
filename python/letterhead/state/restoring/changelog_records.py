"""Read changelog records from any source as Arrow batches, each of one partition: :func:`changelog_records`."""

from __future__ import annotations

import errno
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from letterhead._optional_dependencies import install_hint

with install_hint("the records of a changelog", "letterhead[arrow,state]"):
    import numpy as np
    import pyarrow as pa

from letterhead._arrow_types import read_table
from letterhead._parquet_files import parquet_table, tables_of
from letterhead._row_request import RowRequest
from letterhead._table_batches import rows_by_partition
from letterhead.offsets.segments import SegmentsReader
from letterhead.offsets.specs import OffsetBounds
from letterhead.reader import Reader

if TYPE_CHECKING:
    from letterhead._arrow_types import ArrowStream

__all__ = [
    "EndTracker",
    "Integers",
    "Records",
    "Source",
    "changelog_records",
    "check_end",
    "milliseconds_of",
    "read_batches",
    "read_path",
    "records_by_partition",
]

Source: TypeAlias = "ArrowStream | str | Path"
"""Arrow stream, a Parquet file, a directory of Parquet files, or an argument of ``letterhead.read.segments``."""

Integers: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"

ROWS, BYTES = 65_536, 32 << 20
"""Maximum number of rows and approximate bytes in a batch; small batches limit the rows that wait to be written."""


class Records(NamedTuple):
    """Records of one partition, in order of offset.

    Attributes
    ----------
    topic : str or None
        Name of the changelog topic.
    partition : int
        Number of the partition.
    offsets, timestamps : numpy.ndarray of int64
        Offsets, and timestamps in milliseconds since 1970.
    keys, values : pyarrow.BinaryArray
        Keys and values; a null value is a tombstone.
    headers : pyarrow.ListArray or None
        Headers; None if the source has none.
    """

    topic: str | None
    partition: int
    offsets: Integers
    timestamps: Integers
    keys: pa.BinaryArray
    values: pa.BinaryArray
    headers: pa.ListArray | None

    def slice(self, start: int, stop: int | None = None) -> Records:
        """Return the records with indexes in [``start``, ``stop``)."""
        indexes = slice(start, stop)
        columns: list[Any] = [None if column is None else column[indexes] for column in self[2:]]
        return Records(self.topic, self.partition, *columns)


def changelog_records(
    source: Source, *, partition: int | None = None, end: int | datetime | None = None
) -> Iterator[Records]:
    """Read the records of a changelog up to an optional end.

    Parameters
    ----------
    source : Arrow stream or path
        Source with the columns ``key``, ``value``, ``offset`` and ``timestamp``, and optionally ``partition``, ``topic`` and
        ``headers``, with the names of :func:`letterhead.read.topic`, :func:`letterhead.read.segments` and Spark's Kafka
        source.
    partition : int, optional
        The partition to read; all by default. For a source without a column ``partition``, the partition of all records.
    end : int or datetime, optional
        End of every partition; see :func:`check_end`.

    Raises
    ------
    ValueError
        If a column is missing, a record has no key, the records belong to several topics, or the offsets of a partition
        do not increase.
    """
    topics: set[str | None] = set()
    last: dict[int, int] = {}
    tracker = EndTracker(end)
    for batch in read_batches(source, (*REQUIRED, *OPTIONAL)):
        for records in _group_by_partition(batch, partition):
            topics.add(records.topic)
            if len(topics) > 1:
                raise _several_topics(topics)
            before = last.get(records.partition, -1)
            if records.offsets[0] <= before or (np.diff(records.offsets) <= 0).any():
                raise ValueError(
                    f"the offsets of partition {records.partition} do not increase after {before}: sort the records by "
                    "partition and offset"
                )
            last[records.partition] = int(records.offsets[-1])
            stop = tracker.count(records.partition, records.offsets, records.timestamps)
            if stop:
                yield records.slice(0, stop)


def check_end(end: object) -> None:
    """Validate an end: an offset, or the time of the first record to exclude.

    Raises
    ------
    TypeError
        If the end is neither an offset nor a datetime.
    ValueError
        If the offset is negative, or the datetime has no time zone.
    """
    if isinstance(end, datetime):
        if end.tzinfo is None:
            raise ValueError(f"{end} has no time zone: pass datetime(..., tzinfo=UTC)")
    elif end is not None:
        if not isinstance(end, int) or isinstance(end, bool):
            raise TypeError(f"end must be an offset or a datetime, not {type(end).__name__}")
        if end < 0:
            raise ValueError(f"end is {end}: an offset is not negative")


class EndTracker:
    """Counter that cuts off the records of each partition at an end; all later records of the partition are ignored."""

    def __init__(self, end: int | datetime | None) -> None:
        self._end = end
        self._ended: set[int] = set()

    def count(self, partition: int, offsets: Integers, timestamps: Integers) -> int:
        """Return the number of records in the next batch of a partition that are before the end."""
        if partition in self._ended:
            return 0
        stop = _stop_index(offsets, timestamps, self._end)
        if stop < len(offsets):
            self._ended.add(partition)
        return stop


def _stop_index(offsets: Integers, timestamps: Integers, end: int | datetime | None) -> int:
    """Return the index of the first record at or after the end, or the number of records if there is none."""
    if isinstance(end, datetime):
        late = np.flatnonzero(timestamps >= round(end.timestamp() * 1000))
        return int(late[0]) if len(late) else len(offsets)
    return len(offsets) if end is None else int(np.searchsorted(offsets, end))


def read_batches(source: Source, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Read the batches of a source; of a file, read only the given columns."""
    stream: Iterable[pa.RecordBatch]
    if isinstance(source, str | Path):
        stream = read_path(Path(source), columns)
    elif isinstance(source, Reader):
        stream = source  # not imported as an Arrow stream, which would lose the exception types
    else:
        stream = read_table(source)
    for batch in stream:
        step = max(1, min(ROWS, batch.num_rows * BYTES // max(batch.nbytes, 1)))
        for start in range(0, batch.num_rows, step):
            yield batch.slice(start, step)


def read_path(path: Path, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Read the records of a Parquet file or a directory of such files, or the committed records of log segments.

    Columns missing in a Parquet file are omitted. Kafka Streams also reads only committed records of changelogs under
    exactly-once; otherwise, changelogs contain no transactions.
    """
    if not path.exists():
        raise FileNotFoundError(errno.ENOENT, "no such file or directory", str(path))
    if not (path.is_dir() or path.is_file()):  # opening a named pipe would wait for a writer
        raise ValueError(f"{path} is not a regular file: pass Parquet files or log segments")
    if path.suffix == ".parquet" or (path.is_dir() and tables_of(path)):
        table = parquet_table(path, ROWS)
        yield from table.read([name for name in table.schema.names if name in columns], None)
    else:
        from letterhead.kafka.log_directory import partitions
        from letterhead.kafka.segments import KafkaSegments

        log = KafkaSegments(RowRequest(tuple(columns), committed=True))
        with SegmentsReader(log, partitions(path), OffsetBounds.parse("earliest", "latest")) as reader:
            yield from reader


REQUIRED = ("key", "value", "offset", "timestamp")
OPTIONAL = ("topic", "partition", "headers")


def _group_by_partition(batch: pa.RecordBatch, requested: int | None) -> Iterator[Records]:
    names = batch.schema.names
    for name in REQUIRED:
        if name not in names:
            raise ValueError(f"the source has no column {name!r}: a changelog has {', '.join(REQUIRED + OPTIONAL)}")
    if "partition" not in names and requested is None:
        raise ValueError("the source has no column 'partition': pass partition=")
    topics = batch.column("topic").unique().to_pylist() if "topic" in names else [None]
    if len(topics) > 1:
        raise _several_topics(topics)
    for number, records in records_by_partition(batch, requested):
        keys = records.column("key").cast(pa.binary())
        offsets = records.column("offset").cast(pa.int64()).to_numpy()
        if keys.null_count:
            offset = offsets[keys.is_null().to_numpy(zero_copy_only=False)][0]
            raise ValueError(f"the record at offset {offset} of partition {number} has no key: is it from a changelog?")
        headers = records.column("headers") if "headers" in names else None
        values = records.column("value").cast(pa.binary())
        times = milliseconds_of(records.column("timestamp"))
        yield Records(topics[0], number, offsets, times, keys, values, headers)


def records_by_partition(batch: pa.RecordBatch, requested: int | None) -> Iterator[tuple[Any, pa.RecordBatch]]:
    """Split a batch by its column ``partition``; without one, all records are of the requested partition."""
    if "partition" not in batch.schema.names:
        yield requested, batch
        return
    for number, records in rows_by_partition(batch):
        if requested in (None, number):
            yield number, records


def _several_topics(topics: Iterable[str | None]) -> ValueError:
    names = " and ".join(sorted(str(topic) for topic in topics))
    return ValueError(f"the source has records of topics {names}: select those of the changelog")


def milliseconds_of(column: pa.Array) -> Integers:
    """Convert a column of timestamps to milliseconds since 1970; nulls become -1."""
    if pa.types.is_timestamp(column.type):
        # Spark writes nanoseconds or microseconds, but timestamps of records are whole milliseconds.
        column = column.cast(pa.timestamp("ms", column.type.tz), safe=False)
    times: Integers = column.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
    return times
