"""Convert replies to polls and stored batches of Apache Iggy to Arrow record batches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from letterhead.errors import HeaderError, copy_error, without_message_number
from letterhead.offsets.output_columns import Dialect
from letterhead.offsets.partition_log import LAST_OFFSET
from letterhead.offsets.rows import RowReader
from letterhead.offsets.stored_batches import StoredBatches, batch_column
from letterhead.where.program import fields_of_format

__all__ = ["COLUMNS", "PARTITION_COLUMNS", "FIELDS", "WHERE_FIELDS", "IggyRowReader", "topic_in_errors"]

FIELDS = ("offset", "timestamp", "origin_timestamp", "id", "headers", "payload", "checksum")
"""Columns of a message."""

PARTITION_COLUMNS = {"stream": pa.string(), "topic": pa.string(), "partition": pa.int64()}
"""Columns that are constant within a partition, and their types."""

COLUMNS = (*PARTITION_COLUMNS, *FIELDS[:-1])
"""Default columns."""

WHERE_FIELDS: dict[str, str] = {
    "stream": "string",
    "topic": "string",
    "partition": "int64",
    **fields_of_format("iggy-batch"),
}
"""Fields of a message that a condition can use."""

_TIME = pa.timestamp("us", "UTC")


class IggyRowReader(RowReader):
    """Converter from stored batches to Arrow record batches."""

    format = "iggy-batch"
    columns = COLUMNS
    fields = FIELDS
    partition_columns = PARTITION_COLUMNS
    where_fields = WHERE_FIELDS

    def time_types(self, dialect: Dialect) -> Mapping[str, pa.DataType]:
        """Return the types of both timestamp columns."""
        return {"timestamp": _TIME, "origin_timestamp": _TIME}

    def as_times(self, column: pa.Array) -> pa.Array:
        """Return a column of microseconds as timestamps."""
        return column.cast(_TIME)

    def __call__(
        self, data: Any, *, start: int = 0, end: int = LAST_OFFSET, partition_values: Mapping[str, Any]
    ) -> pa.RecordBatch | None:
        """Read the messages with offsets in [``start``, ``end``); return None if there are none.

        ``data`` is a buffer of batches, a whole reply, or :class:`StoredBatches`; it is read without a copy.
        ``partition_values`` are the values of :data:`PARTITION_COLUMNS`.
        """
        where = self.where and self.where.bind(partition_values)
        if where is not None and where.constant is False:
            return None
        rows = self._rows(_column_of(data, start, end), where, start, end)
        return None if rows is None else self._in_schema(rows, partition_values)

    def located(
        self,
        error: HeaderError,
        data: Any,
        *,
        start: int = 0,
        end: int = LAST_OFFSET,
        partition_values: Mapping[str, Any],
    ) -> HeaderError:
        """Return the error of a call with these arguments, with the topic, partition and offset of the message added."""
        offset = self._offset_in_error(_column_of(data, start, end), partition_values, None, start, end)
        # The offset replaces the message number, because it identifies the message.
        message = without_message_number(error.message)
        position = {
            "topic": topic_in_errors(partition_values),
            "partition": partition_values["partition"],
            "offset": offset,
        }
        return copy_error(error, message, **position, row=None)


def topic_in_errors(partition_values: Mapping[str, Any]) -> str | None:
    """Return stream and topic for errors; None if they are unknown."""
    return None if partition_values["topic"] is None else f"{partition_values['stream']}/{partition_values['topic']}"


def _column_of(data: Any, start: int, end: int) -> pa.BinaryArray:
    """Return a column with one batch in each row (null if out of range), or all batches of a buffer in one row."""
    if isinstance(data, StoredBatches):
        ranges = zip(data.batches, data.last_offsets, strict=True)
        return batch_column(data, [last >= start and batch.base_offset < end for batch, last in ranges])
    bounds = pa.array([0, memoryview(data).nbytes], pa.int32()).buffers()[1]
    return pa.BinaryArray.from_buffers(pa.binary(), 1, [None, bounds, pa.py_buffer(data)])
