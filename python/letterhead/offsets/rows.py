"""Convert stored batches of records to Arrow record batches: :class:`RowReader`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any, ClassVar, Self

import pyarrow as pa

from letterhead._arrow_types import UNUSED_NAME
from letterhead._error_policies import has_error_column
from letterhead._row_request import RowRequest
from letterhead.errors import ErrorDetail
from letterhead.fields import columns_of
from letterhead.limits import Limits
from letterhead.offsets.output_columns import Dialect, check_columns, first_offset_in_error
from letterhead.offsets.partition_log import LAST_OFFSET
from letterhead.operations import DecodeOptions, ExplodeBatches
from letterhead.where.program import Filter, resolve, within_offsets

__all__ = ["POSITION", "RowReader"]

POSITION = ("letterhead: partition", "letterhead: offset")
"""Columns for the position of a row, optionally added to the requested columns."""


class RowReader:
    """Converter from stored batches of one format to record batches with :attr:`schema`.

    Parameters
    ----------
    request : RowRequest
        The requested columns, by default :attr:`columns`, are names in :attr:`fields` and :attr:`partition_columns`. The
        result has them in this order, followed by the columns of ``headers`` and the error column.
    dialect : {"arrow", "spark"}, default "arrow"
        Dialect that determines the types of timestamps and of header columns.
    where_fields : mapping of str to str, optional
        Fields that a condition can use, if they differ from :attr:`where_fields`.
    has_positions : bool, default False
        Whether the columns :data:`POSITION` are added after all others.
    """

    format: ClassVar[str]
    columns: ClassVar[tuple[str, ...]]
    """Default columns."""

    fields: ClassVar[tuple[str, ...]]
    """Columns of a record."""

    partition_columns: ClassVar[Mapping[str, pa.DataType]]
    """Columns that are constant within a partition, and their types."""

    where_fields: ClassVar[Mapping[str, str]]
    """Fields of a record that a condition can use, and their types."""

    def __init__(
        self,
        request: RowRequest,
        *,
        dialect: Dialect = "arrow",
        where_fields: Mapping[str, str] | None = None,
        has_positions: bool = False,
    ) -> None:
        columns, headers = request.chosen_columns(self.columns), request.headers
        errors, error_column, limits = request.errors, request.error_column, request.limits
        check_columns(columns, (*self.partition_columns, *self.fields), headers, errors, error_column)
        self.where = resolve(request.where, where_fields or self.where_fields, headers)
        # Always read the offset, which is needed to select the requested rows.
        fields = [*dict.fromkeys(["offset", *(name for name in columns if name in self.fields)])]
        self._fields, self._headers = fields, headers
        self._options = DecodeOptions(errors=errors, error_column=error_column, limits=limits)
        self._columns = frozenset(columns)
        self._dialect = dialect
        self.errors = errors
        self._error_column = error_column
        self.message_bytes: int = (limits or Limits()).filled().message_bytes  # type: ignore[assignment]
        self._times = self.time_types(dialect)
        empty = self._decode(
            pa.array([], pa.binary()), self.where and self.where.bind(dict.fromkeys(self.partition_columns))
        )
        types = {field.name: field.type for field in empty.type}
        # A header column may have the name of a column that was not requested.
        types |= {name: type for name, type in {**self.partition_columns, **self._times}.items() if name in columns}
        names = [*columns, *columns_of(headers or {}), *([error_column] if has_error_column(errors) else [])]
        positions = zip(POSITION, (pa.int32(), pa.int64()), strict=True) if has_positions else ()
        self.schema = pa.schema([*((name, types[name]) for name in names), *positions])

    @property
    def limits(self) -> Limits | None:
        """Limits on records and headers that are read."""
        return self._options.limits

    def strict(self) -> Self:
        """Return a reader of the same rows that raises the first error and has no error column."""
        reader = copy(self)
        reader.errors = "raise"
        reader._options = DecodeOptions(errors="raise", limits=self.limits)
        if has_error_column(self.errors):
            reader.schema = self.schema.remove(self.schema.get_field_index(self._error_column))
        return reader

    def with_no_errors(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Convert rows of a strict reader to the schema of this reader, with no errors."""
        if not has_error_column(self.errors):
            return rows
        index = self.schema.get_field_index(self._error_column)
        no_errors = pa.nulls(len(rows), self.schema.field(index).type)
        columns = [*rows.columns[:index], no_errors, *rows.columns[index:]]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def time_types(self, dialect: Dialect) -> Mapping[str, pa.DataType]:
        """Return the types of the timestamp columns."""
        raise NotImplementedError

    def as_times(self, column: pa.Array) -> pa.Array:
        """Convert a column of integers to timestamps."""
        raise NotImplementedError

    def keeps_error_rows(self, partition_values: Mapping[str, Any]) -> bool:
        """Return whether the result includes unreadable rows: no, if a condition rejects null and there is no error column."""
        where = self.where and self.where.bind(partition_values)
        return where is None or has_error_column(self.errors) or where.accepts_null

    def error_row(
        self, partition_values: Mapping[str, Any], code: str, message: str, byte_offset: int
    ) -> pa.RecordBatch:
        """Return the row that reports unreadable records."""
        row: dict[str, Any] = {name: value for name, value in partition_values.items() if name in self._columns}
        if has_error_column(self.errors):
            where = self.where and self.where.bind(partition_values)
            column = None if where is None or where.accepts_null else "where"
            error = ErrorDetail(code, message, byte_offset, column=column)
            row[self._error_column] = [error._asdict()]
        return pa.RecordBatch.from_pylist([{name: row.get(name) for name in self.schema.names}], schema=self.schema)

    def _rows(
        self, batches: pa.Array, where: Filter | None, start: int = 0, end: int = LAST_OFFSET
    ) -> pa.RecordBatch | None:
        """Decode a column of batches, and return the rows with offsets in [``start``, ``end``), or None if there are none.

        For other rows, only the offset is read. Rows with an unreadable offset are included.
        """
        rows = pa.RecordBatch.from_struct_array(self._decode(batches, _within(where, start, end)))
        return rows if len(rows) else None

    def _in_schema(self, rows: pa.RecordBatch, partition_values: Mapping[str, Any]) -> pa.RecordBatch:
        """Return rows with the columns of the schema."""
        columns = [self._column(rows, field, partition_values) for field in self.schema]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _column(self, rows: pa.RecordBatch, field: pa.Field, partition_values: Mapping[str, Any]) -> pa.Array:
        if field.name in POSITION:
            offsets = rows.column("offset")
            is_offset = field.type == offsets.type
            return offsets if is_offset else pa.repeat(pa.scalar(partition_values["partition"], field.type), len(rows))
        is_requested = field.name in self._columns
        if is_requested and field.name in self.partition_columns:
            return pa.repeat(pa.scalar(partition_values[field.name], field.type), len(rows))
        column = rows.column(field.name)
        return self.as_times(column) if is_requested and field.name in self._times else column

    def _offset_in_error(
        self, batches: pa.Array, partition_values: Mapping[str, Any], first: int | None, start: int, end: int
    ) -> int | None:
        """Return the offset of the first unreadable record, or ``first``, its smallest possible offset."""
        where = _within(self.where and self.where.bind(partition_values), start, end)
        options = DecodeOptions(errors="column", error_column=UNUSED_NAME, limits=self._options.limits)
        rows = self._decode(batches, where, ["offset"], options)
        return first_offset_in_error(rows.field("offset"), rows.field(UNUSED_NAME), first)

    def _decode(
        self,
        batches: pa.Array,
        where: Filter | None,
        fields: Sequence[str] | None = None,
        options: DecodeOptions | None = None,
    ) -> pa.StructArray:
        if where is not None and where.constant:
            where = None
        operation = ExplodeBatches(
            self.format, fields or self._fields, self._headers, options or self._options, where, self._dialect
        )
        return operation(batches)


def _within(where: Filter | None, start: int, end: int) -> Filter | None:
    return where if start <= 0 and end >= LAST_OFFSET else within_offsets(where, start, end)
