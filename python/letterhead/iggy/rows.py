"""Convert replies to polls, and stored batches, of Apache Iggy to Arrow record batches."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from letterhead import arrow as lha
from letterhead.errors import HeaderError, replaced
from letterhead.output_columns import UNUSED_NAME, Dialect, check_columns, first_offset_in_error
from letterhead.where.program import Filter, RecordField, fields_of_format, resolve

if TYPE_CHECKING:
    from letterhead._arrow_types import OnError
    from letterhead.fields import Columns
    from letterhead.limits import Limits
    from letterhead.where.conditions import Where

__all__ = ["COLUMNS", "FIELDS", "IggyRows"]

FIELDS = ("offset", "timestamp", "origin_timestamp", "id", "headers", "payload", "checksum")
"""Columns of a message."""

CONSTANTS = {"stream": pa.string(), "topic": pa.string(), "partition": pa.int64()}
"""Columns with the same value in all rows of a partition, and their types."""

COLUMNS = (*CONSTANTS, *FIELDS[:-1])
"""The default columns."""

WHERE_FIELDS: dict[str, RecordField] = {
    "stream": RecordField("text"),
    "topic": RecordField("text"),
    "partition": RecordField("int"),
    **fields_of_format("iggy-batch"),
}
"""Fields of a message in a condition."""

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
    where : Where, optional
        Which messages to return.
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
        where: Where | None = None,
    ) -> None:
        check_columns(columns, (*CONSTANTS, *FIELDS), headers, errors, error_column)
        self.where = resolve(where, WHERE_FIELDS, headers)
        read = ["offset", *(name for name in columns if name in FIELDS and name != "offset")]
        self._options: dict[str, Any] = {
            "columns": read, "headers": headers, "errors": errors, "error_column": error_column, "_dialect": dialect,
            "limits": limits,
        }  # fmt: skip
        self._columns = frozenset(columns)
        none = self.where and self.where.bind(dict.fromkeys(CONSTANTS))
        types = {field.name: field.type for field in self._messages(pa.array([], pa.binary()), none).type}
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
        # Streams and topics can be given by their numbers.
        texts = {name: str(constants[name]) for name in ("stream", "topic") if constants[name] is not None}
        constants = {**constants, **texts}
        where = self.where and self.where.bind(constants)
        if where is not None and where.known is False:
            return None
        messages = self._messages(_one_row(data), where)
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

    def located(self, error: HeaderError, data: Any, *, constants: Mapping[str, Any]) -> HeaderError:
        """Return an error that a call for these bytes raised, with topic, partition and offset of its message."""
        where = self.where and self.where.bind(constants)
        rows = self._messages(
            _one_row(data), where, columns=["offset"], errors="column", error_column=UNUSED_NAME
        )  # fmt: skip
        offset = first_offset_in_error(rows.field("offset"), rows.field(UNUSED_NAME), None)
        topic = None if constants["topic"] is None else f"{constants['stream']}/{constants['topic']}"
        # The number of a message in a reply or a file says nothing that the offset does not.
        message = re.sub(r"^message \d+: ", "", error.message)
        return replaced(error, message, topic=topic, partition=constants["partition"], offset=offset, row=None)

    def _messages(self, batches: pa.Array, where: Filter | None, **options: Any) -> pa.StructArray:
        if where is not None and where.known:
            where = None
        return lha.messages(batches, "iggy-batch", where=where, **self._options | options)

    def _column(self, rows: pa.RecordBatch, field: pa.Field, constants: Mapping[str, Any]) -> pa.Array:
        wanted = field.name in self._columns
        if wanted and field.name in CONSTANTS:
            return pa.repeat(pa.scalar(constants[field.name], field.type), len(rows))
        column = rows.column(field.name)
        return column.cast(_TIME) if wanted and field.name in _TIMES else column


def _one_row(data: Any) -> pa.BinaryArray:
    bounds = pa.array([0, memoryview(data).nbytes], pa.int32()).buffers()[1]
    return pa.BinaryArray.from_buffers(pa.binary(), 1, [None, bounds, pa.py_buffer(data)])
