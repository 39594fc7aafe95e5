"""Write the directories of a store from its changelog, with a partition in each task: :func:`restore_stores`."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from letterhead.spark.frame import KAFKA_COLUMNS, Input, check_frame, check_types, fields_of
from letterhead.spark.sail import not_on_sail
from letterhead.state.durations import Milliseconds
from letterhead.state.restoring.restore import PersistentStoreType, Restored, StoreLayout, plan_of, restore

__all__ = ["restore_stores"]


def restore_stores(
    df: DataFrame,
    directory: str | Path,
    store: str,
    *,
    store_type: PersistentStoreType = "key-value",
    layout: StoreLayout = "headers",
    retention: Milliseconds | None = None,
    segment_interval: Milliseconds | None = None,
    topic: str | None = None,
    end: int | datetime | None = None,
    force: bool = False,
) -> Restored:
    """Rebuild the directories of a store from its changelog, with the partitions in parallel.

    Use it for a changelog of many partitions, or one that is no longer on a broker. It runs a job: each task sorts the
    records of its partitions by their offsets and writes them as :func:`letterhead.state.restore` does, from the first
    record on, as with its ``start="earliest"``. If Spark repeats a failed task on the same machine, the task continues
    where it stopped.

    Parameters
    ----------
    df : DataFrame
        The columns of Spark's Kafka source: ``partition``, ``offset``, ``timestamp``, ``key``, ``value`` and ``headers``.
    directory : path
        Directory of each task, a path that contains ``{partition}``, such as ``/mnt/state/orders-app/0_{partition}``.
        Executors write to it: on a cluster it must be on a volume that they share.
    store : str
        Name of the store.
    store_type, layout, retention, segment_interval, end, force
        As in :func:`letterhead.state.restore`.
    topic : str, optional
        Name of the changelog; required if the DataFrame has no column ``topic``.

    Returns
    -------
    Restored
        Directories and offsets by partition, and the number of records.

    Raises
    ------
    TypeError, ValueError
        If an option is invalid, or the DataFrame lacks a column or is a stream.
    PythonException
        If a task fails, for example because a directory already contains the store.

    Examples
    --------
    >>> import tempfile
    >>> from letterhead import spark as lhs
    >>> changelog = orders.sparkSession.read.parquet("tests/samples/orders-app-latest-changelog-0.parquet")
    >>> done = lhs.restore_stores(changelog, tempfile.mkdtemp() + "/0_{partition}", "latest")
    >>> done.records == changelog.count(), done.directories[0].name
    (True, 'latest')
    """
    check_frame(df, restore_stores)
    not_on_sail(df.sparkSession, "restore_stores", "its tasks were not tested there; run it on Spark")
    if df.isStreaming:
        raise ValueError("the DataFrame is a stream: read the changelog as a batch")
    if "{partition}" not in str(directory):
        raise ValueError(f"{directory} is one directory: put {{partition}} into it, as in state/app/0_{{partition}}")
    plan_of(store, store_type, layout, retention, segment_interval)
    required = {name: type for name, type in KAFKA_COLUMNS.items() if name != "topic"}
    if layout != "headers":
        del required["headers"]
    check_types(fields_of(df), [Input(name, "a changelog needs", (type,)) for name, type in required.items()])
    if topic is None and "topic" not in df.columns:
        raise ValueError("the DataFrame has no column 'topic': pass topic=")
    options = {
        "store_type": store_type,
        "layout": layout,
        "retention": retention,
        "segment_interval": segment_interval,
        "topic": topic,
        "end": end,
        "force": force,
    }
    columns = [*required, *(["topic"] if "topic" in df.columns else [])]
    records = df.select(*columns).repartition("partition").sortWithinPartitions("partition", "offset")
    schema = "partition int, directory string, offset bigint, records bigint"
    done = Restored()
    for row in records.mapInArrow(partial(_restore, str(directory), store, options), schema).collect():
        done.directories[row.partition] = Path(row.directory)
        done.offsets[row.partition] = row.offset
        done.records += row.records
    return done


def _restore(
    directory: str, store: str, options: dict[str, Any], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Restore the partitions of a task."""
    filled = (batch for batch in batches if batch.num_rows)
    first = next(filled, None)
    if first is None:
        return
    source = pa.RecordBatchReader.from_batches(first.schema, itertools.chain([first], filled))
    done = restore(source, directory, store, **options)
    numbers = list(done.directories)
    yield pa.record_batch(
        {
            "partition": pa.array(numbers, pa.int32()),
            "directory": pa.array([str(done.directories[number]) for number in numbers]),
            "offset": pa.array([done.offsets[number] for number in numbers], pa.int64()),
            "records": pa.array([done.records, *[0] * (len(numbers) - 1)], pa.int64()),
        }
    )
