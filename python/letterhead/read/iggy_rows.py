"""Convert replies to polls, and stored batches, of Apache Iggy to Arrow record batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from letterhead import arrow as lha
from letterhead.read.columns import Dialect, check_columns

if TYPE_CHECKING:
    from letterhead._arrow_types import OnError
    from letterhead.fields import Columns
    from letterhead.limits import Limits

__all__ = ["COLUMNS", "FIELDS", "IggyRows"]

FIELDS = ("offset", "timestamp", "origin_timestamp", "id", "headers", "payload", "checksum")
"""Columns of a message."""

CONSTANTS = {"stream": pa.string(), "topic": pa.string(), "partition": pa.int64()}
"""Columns with the same value in all rows of a partition, and their types."""

COLUMNS = (*CONSTANTS, *FIELDS[:-1])
"""The default columns."""

_TIME = pa.timestamp("us", "UTC")
_TIMES = ("timestamp", "origin_timestamp")


class IggyRows:
    """Converts bytes of batches to record batches of :attr:`schema`.

    Parameters
    ----------
    columns : sequence of str
        Names of :data:`FIELDS` and :data:`CONSTANTS`, in the order of the result.
    headers, errors, error_column, limits
        As in :func:`letterhead.arrow.messages`; the columns of ``headers`` come last but for the column of errors.
    dialect : {"arrow", "spark"}, default "arrow"
        Types of the columns of ``headers``.
    """

    def __init__(
        self,
        columns: Sequence[str],
        headers: Columns | None = None,
        *,
        errors: OnError = "raise",
        error_column: str = "error",
        dialect: Dialect = "arrow",
        limits: Limits | None = None,
    ) -> None:
        check_columns(columns, (*CONSTANTS, *FIELDS), headers, errors, error_column)
        read = ["offset", *(name for name in columns if name in FIELDS and name != "offset")]
        self._options: dict[str, Any] = {
            "columns": read, "headers": headers, "errors": errors, "error_column": error_column, "_dialect": dialect,
            "limits": limits,
        }  # fmt: skip
        self._columns = frozenset(columns)
        types = {field.name: field.type for field in self._messages(pa.array([], pa.binary())).type}
        types |= {name: type for name, type in {**CONSTANTS, **dict.fromkeys(_TIMES, _TIME)}.items() if name in columns}
        names = [*columns, *(headers or ()), *([error_column] if errors == "column" else [])]
        self.schema = pa.schema([(name, types[name]) for name in names])

    def __call__(
        self, data: Any, *, start: int = 0, end: int | None = None, constants: Mapping[str, Any]
    ) -> pa.RecordBatch | None:
        """Read the messages with offsets from ``start`` to before ``end``; return None if there are none.

        ``data`` is a buffer of batches, or a whole reply, and is read in place. ``constants`` are the values of
        :data:`CONSTANTS`.
        """
        size = memoryview(data).nbytes
        bounds = pa.array([0, size], pa.int32()).buffers()[1]
        messages = self._messages(pa.BinaryArray.from_buffers(pa.binary(), 1, [None, bounds, pa.py_buffer(data)]))
        rows = pa.RecordBatch.from_struct_array(messages)
        offsets = rows.column("offset")
        found = pc.min_max(offsets).as_py()
        if found["min"] is not None and (found["min"] < start or (end is not None and found["max"] >= end)):
            inside = pc.greater_equal(offsets, start)
            if end is not None:
                inside = pc.and_(inside, pc.less(offsets, end))
            rows = rows.filter(pc.fill_null(inside, True))  # a row without an offset could not be read and stays
        if not len(rows):
            return None
        columns = [self._column(rows, field, constants) for field in self.schema]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _messages(self, batches: pa.Array) -> pa.StructArray:
        return lha.messages(batches, "iggy-batch", **self._options)

    def _column(self, rows: pa.RecordBatch, field: pa.Field, constants: Mapping[str, Any]) -> pa.Array:
        wanted = field.name in self._columns
        if wanted and field.name in CONSTANTS:
            value = constants[field.name]
            value = str(value) if value is not None and field.type == pa.string() else value
            return pa.repeat(pa.scalar(value, field.type), len(rows))
        column = rows.column(field.name)
        return column.cast(_TIME) if wanted and field.name in _TIMES else column
