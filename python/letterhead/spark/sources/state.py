"""State directories of Kafka Streams as tables of Spark."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from letterhead.spark.sources.options import LIMITS, check_options, header_columns, integer, limits, names
from letterhead.spark.sources.schema import check_schema, spark_schema

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from letterhead.read.state_columns import StoreColumns
    from letterhead.read.state_directory import Segment
    from letterhead.read.state_rows import Store

__all__ = ["StateSource"]

OPTIONS = ("path", "store", "columns", "headerColumns", "storeType", "values", "windowSize", "errors", *LIMITS)


class StateSource(DataSource):  # type: ignore[misc]
    """Stores in RocksDB, made by Kafka Streams or by letterhead: ``spark.read.format("letterhead-state")``.

    The directory has to be there on the driver and on every worker. Each store of a task is a partition, and of window
    and session stores each segment.

    Options
    -------
    path
        A state, application, task or store directory.
    store
        The stores of this name only, of all tasks.
    columns
        A JSON list of the columns, in order. Spark does not tell a source which ones a query needs.
    headerColumns
        Headers as typed columns: a JSON object of output columns, to a type, or to an object with ``type``, ``key``,
        ``repeat`` and ``required``.
    storeType, values, windowSize, errors
        As ``store_type``, ``values``, ``window_size`` and ``errors`` of :func:`letterhead.read.state`.
    maxMessageBytes, maxHeaders, maxDecompressedBytes, maxRecords, maxOutputBytes
        The most to read, as :class:`letterhead.Limits`; where nothing is said, what each worker has.

    Examples
    --------
    >>> from letterhead import spark as lhs
    >>> lhs.register(spark)
    >>> latest = spark.read.format("letterhead-state").option("store", "latest").load("tests/samples/streams-state-0_0")
    >>> latest.drop("headers")
    DataFrame[key: binary, timestamp: timestamp, value: binary]
    >>> latest.count()
    6643
    """

    @classmethod
    def name(cls) -> str:
        """Name the format."""
        return "letterhead-state"

    def schema(self) -> StructType:
        """Say which columns there are."""
        return spark_schema(self._opened()[1].schema)

    def reader(self, schema: StructType) -> StateReader:
        """Make what reads."""
        stores, columns = self._opened()
        check_schema(self.name(), spark_schema(columns.schema), schema)
        return StateReader(stores, columns)

    def _opened(self) -> tuple[list[Store], StoreColumns]:
        from letterhead.read.state_columns import StoreColumns
        from letterhead.read.state_stores import open_stores

        options = self.options
        check_options(options, OPTIONS)
        if "path" not in options:
            raise ValueError('give the state directory: .option("path", directory), or .load(directory)')
        stores = open_stores(
            Path(options["path"].removeprefix("file:")),
            options.get("store"),
            options.get("storeType"),
            options.get("values"),
        )
        columns = StoreColumns(
            stores,
            names(options),
            header_columns(options),
            window_size=integer(options, "windowSize"),
            errors=options.get("errors", "raise"),
            dialect="spark",
            limits=limits(options),
        )
        return stores, columns


@dataclass
class Database(InputPartition):  # type: ignore[misc]
    """One database: a store of a task, or a segment of it."""

    store: Store
    segment: Segment


class StateReader(DataSourceReader):  # type: ignore[misc]
    """Reads databases, each on some worker.

    Parameters
    ----------
    stores : list of Store
        The stores.
    columns : StoreColumns
        What becomes of their rows.
    """

    def __init__(self, stores: list[Store], columns: StoreColumns) -> None:
        self._stores = stores
        self._columns = columns

    def partitions(self) -> list[InputPartition]:
        """Give a partition for each database."""
        from letterhead.read.state_stores import remarks

        for remark in remarks(self._stores):
            warnings.warn(remark, stacklevel=2)
        return [Database(store, segment) for store in self._stores for segment in store.found.segments]

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """Read a database."""
        return self._columns.batches(partition.store, partition.segment)
