"""The writers of the data source ``letterhead-iggy``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import WriterCommitMessage

try:
    from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter
except ImportError as error:
    raise ImportError("writing to letterhead-iggy needs Spark 4.1 or later, which passes rows as Arrow") from error

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["BatchWriter", "StreamWriter"]


class _Writer:
    def __init__(self, values: Mapping[str, Any]) -> None:
        partition = values.get("partition")
        self._arguments: dict[str, Any] = {
            "address": values["address"], "stream": values["stream"], "topic": values["topic"],
            "partition": int(partition) if partition is not None and partition.isdecimal() else partition,
            "partition_key": values.get("partitionKey"), "mapping": values.get("mapping"), "timeout_ms": values.get("timeoutMs", 60_000),
        }  # fmt: skip

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Append the rows of a task."""
        from letterhead.iggy.topic_writer import IggySink

        arguments = dict(self._arguments)
        address = arguments.pop("address")
        sink = None
        try:
            for batch in iterator:
                sink = sink or IggySink(address, batch.schema, **arguments)
                sink.write(batch)
        finally:
            if sink is not None:
                sink.__exit__()
        return WriterCommitMessage()


class BatchWriter(_Writer, DataSourceArrowWriter):  # type: ignore[misc]
    """Append the rows of a batch query."""


class StreamWriter(_Writer, DataSourceStreamArrowWriter):  # type: ignore[misc]
    """Append the rows of a streaming query."""
