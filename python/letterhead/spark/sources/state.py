"""The data source ``letterhead-state``: state directories of Kafka Streams as tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from letterhead._row_request import RowRequest
from letterhead._warnings import warn
from letterhead.spark.schemas import check_schema
from letterhead.spark.sources.base import BatchOnly
from letterhead.spark.sources.options import COMMON, Option, number, parse_options, path, request_from_options, text
from letterhead.spark.sources.pushdown import FilterPushdown, push

if TYPE_CHECKING:
    import pyarrow as pa

    from letterhead.state.reading.columns import StoreColumns
    from letterhead.state.reading.directory import StoreSegment
    from letterhead.state.reading.rows import StoreReader

__all__ = ["StateSource"]

OPTIONS = {
    "path": Option(path, "A state, application, task or store directory."),
    "store": Option(text, "Read only the stores of this name, of all tasks."),
    "storeType": Option(text, "`store_type` of `letterhead.read.state`."),
    "values": Option(text, "`values` of `letterhead.read.state`."),
    "windowSize": Option(number(), "`window_size` of `letterhead.read.state`, in milliseconds."),
    **COMMON,
}


class StateSource(BatchOnly):
    """Read RocksDB stores of Kafka Streams or letterhead: ``spark.read.format("letterhead-state")``.

    The directory must exist on the driver and on every worker. Each store of a task is a partition; for window and
    session stores, each segment is a partition. :data:`OPTIONS` lists the options.

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

    format_name = "letterhead-state"
    instead = "lhs.restore_stores writes stores from their changelogs"

    def arrow_schema(self) -> pa.Schema:
        """Return the columns in Arrow's types."""
        return self._opened().columns.schema

    def reader(self, schema: StructType) -> StateReader:
        """Return the reader of a batch query."""
        reader = self._opened()
        check_schema(self.name(), reader.columns.schema, schema)
        return reader

    def _opened(self) -> StateReader:
        from letterhead.state.reading.stores import open_stores

        values = parse_options(self.options, OPTIONS)
        if "path" not in values:
            raise ValueError('pass the state directory: .option("path", directory), or .load(directory)')
        stores = open_stores(Path(values["path"]), values.get("store"), values.get("storeType"), values.get("values"))
        return StateReader(stores, request_from_options(values), values.get("windowSize"))


@dataclass
class StorePartition(InputPartition):  # type: ignore[misc]
    """Database: a store of a task, or a segment of it."""

    store: StoreReader
    segment: StoreSegment


class StateReader(FilterPushdown, DataSourceReader):  # type: ignore[misc]
    """Reads the databases of stores, one per task."""

    def __init__(self, stores: list[StoreReader], request: RowRequest, window_size: int | None) -> None:
        self._stores = stores
        self._request = request
        self._window_size = window_size
        self.columns = self._columns(request)

    def push(self, filters: list[Any]) -> list[Any]:
        """Apply the filters that can be evaluated on rows of stores."""
        self._request, left = push(filters, self._request, self._columns)
        self.columns = self._columns(self._request)
        return left

    def _columns(self, request: RowRequest) -> StoreColumns:
        from letterhead.state.reading.columns import StoreColumns

        return StoreColumns(self._stores, request, window_size=self._window_size, dialect="spark")

    def partitions(self) -> list[InputPartition]:
        """Return a partition for each database."""
        from letterhead.state.reading.stores import remarks

        for remark in remarks(self._stores):
            warn(remark)
        return [StorePartition(store, segment) for store in self._stores for segment in store.files.segments]

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """Read a database."""
        return self.columns.batches(partition.store, partition.segment)
