"""Copy a topic to a directory of Parquet files, with a range of offsets in each task: :func:`copy_topic`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

import pyarrow as pa
from pyspark.sql import SparkSession

from letterhead.copies.copy import copy_of
from letterhead.copies.copying import Copied, CopyTask
from letterhead.copies.part_directory import Part, StagedPart
from letterhead.spark.sail import not_on_sail
from letterhead.spark.schemas import spark_schema

if TYPE_CHECKING:
    from letterhead._arrow_types import OnError
    from letterhead._read_options import ReadOptions
    from letterhead.fields import Columns
    from letterhead.kafka.settings import SettingsLike
    from letterhead.offsets.specs import OffsetSpec
    from letterhead.where.conditions import Where

__all__ = ["copy_topic"]

_SCHEMA = pa.schema(
    {"partition": pa.int32(), "start": pa.int64(), "end": pa.int64(), "rows": pa.int64(), "file": pa.string()}
)


def copy_topic(
    spark: SparkSession,
    source: str,
    target: str | os.PathLike[str],
    *,
    headers: Columns | None = None,
    where: Where | None = None,
    start: OffsetSpec = "earliest",
    end: OffsetSpec = "latest",
    errors: OnError = "raise",
    settings: SettingsLike | None = None,
    tasks: int = 32,
    **options: Unpack[ReadOptions],
) -> Copied:
    """Copy a topic of Kafka to a directory of Parquet files, with ranges of offsets in parallel.

    Use it for a topic that is too large for one process. It writes the same directory as :func:`letterhead.copy`, and
    either function continues the copy of the other. Each task writes up to 1,000,000 offsets of a partition to a file.
    Files are renamed when all tasks of a round have ended: a killed job continues after its last complete round, and
    the directory contains every record once.

    Parameters
    ----------
    spark : SparkSession
        The session. Executors need letterhead and kafka-python.
    source : str
        Address of the topic: ``kafka://host:port/topic``.
    target : str or path
        A directory that the driver and all executors share, also in an object store (``s3://bucket/path``).
    headers : mapping of str to str or Field, or a schema, optional
        Headers to return as typed columns after the others, as in :func:`letterhead.open`.
        The column ``headers`` is kept.
    where : Condition or str, optional
        Condition that selects the records to copy.
    start, end : int, str, datetime or mapping, default "earliest" and "latest"
        Where to start and to stop, as in :func:`letterhead.read.topic`.
    errors : {"raise", "null", "column"}, default "raise"
        What to do with a record whose headers do not fit the types in ``headers``, as in :func:`letterhead.copy`.
    settings : mapping of str to str, or path, optional
        Connection settings, as in :func:`letterhead.read.topic`. They are sent to the executors.
    tasks : int, default 32
        Number of tasks of a round.
    options : items of ReadOptions
        Other options by name, such as ``last=100``, ``follow=True`` or ``timeout_ms=5000``, see
        :class:`letterhead.ReadOptions`.

    Returns
    -------
    Copied
        The number of written records, and the next offset of each partition.

    Raises
    ------
    ValueError
        If the directory contains another copy, or a copy with other options, or an option is invalid.
    FileNotFoundError
        If the driver does not find the files that tasks wrote.
    PythonException
        If a task fails; the directory keeps the files of earlier rounds.

    Examples
    --------
    >>> lhs.copy_topic(spark, "kafka://broker:9092/orders", "s3://bucket/orders")  # doctest: +SKIP
    Copied(rows=120000000, ends={0: 60000000, 1: 60000000}, remarks=[])
    """
    not_on_sail(spark, "copy_topic", "its tasks were not tested there; call letterhead.copy")
    if tasks < 1:
        raise ValueError("tasks must be at least 1")
    copying = copy_of(
        source, target, headers=headers, where=where, start=start, end=end, errors=errors, settings=settings,
        options=options,
    )  # fmt: skip
    return copying.run_in_tasks(partial(_run, spark), tasks)


def _run(spark: SparkSession, tasks: Sequence[CopyTask]) -> list[StagedPart]:
    """Run a round of tasks."""
    numbers = spark.range(0, len(tasks), 1, len(tasks))
    rows = numbers.mapInArrow(partial(_write_parts, tasks), spark_schema(_SCHEMA)).collect()
    return [StagedPart(Part(row.partition, row.start, row.end), row.rows, row.file) for row in rows]


def _write_parts(tasks: Sequence[CopyTask], batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Run the tasks whose numbers are in the rows."""
    for batch in batches:
        written: list[dict[str, Any]] = []
        for number in batch.column("id").to_pylist():
            staged = tasks[number].run()
            if staged is not None:
                written.append({**staged.part._asdict(), "rows": staged.rows, "file": staged.file})
        if written:
            yield pa.RecordBatch.from_pylist(written, _SCHEMA)
