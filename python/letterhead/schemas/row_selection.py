"""Select rows of decoded values by a condition: :class:`RowSelection`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from letterhead.fields import columns_of
from letterhead.where.nested_columns import append_nested_columns, find_nested_columns, with_nested_columns
from letterhead.where.row_filter import RowFilter, field_type

if TYPE_CHECKING:
    from letterhead._arrow_types import OnError
    from letterhead.fields import Columns
    from letterhead.limits import Limits
    from letterhead.schemas.streams import SerializedColumn
    from letterhead.where.conditions import Where

__all__ = ["RowSelection"]


class RowSelection:
    """Selects the rows for which a condition on columns, on fields of their structs, and on headers is true.

    Rows for which errors in ``error_column`` leave the condition undecided are also returned.
    """

    def __init__(
        self,
        where: Where,
        schema: pa.Schema,
        column: SerializedColumn,
        typed_headers: Columns | None,
        errors: OnError,
        error_column: str | None,
        limits: Limits | None,
    ) -> None:
        nested = {name: path for name, path in find_nested_columns(schema).items() if "." in name}
        # A condition finds the headers of typed columns by the names of the columns.
        others = {error_column, *columns_of(typed_headers or {})}
        fields = {
            field.name: field_type(field.type)
            for field in with_nested_columns(schema, nested)
            if field.name not in others
        }
        self._filter = RowFilter(where, fields, typed_headers, column.format, errors=errors, limits=limits)
        if self._filter.has_headers and column.headers is None:
            raise ValueError("where= names a header, and headers=None: the rows have no column of headers")
        self._headers, self._error_column = column.headers, error_column
        self._nested = {name: nested[name] for name in self._filter.fields if name in nested}

    def __call__(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.Array]:
        """Return the selected rows, and the index of each in the batch."""
        whole = append_nested_columns(batch, self._nested)
        columns = {name: whole.column(name) for name in self._filter.fields}
        messages = batch.column(self._headers) if self._filter.has_headers else None
        examined = self._filter.examine(columns, messages, len(batch))
        selected = examined.selected
        if self._error_column is not None:
            index = batch.schema.get_field_index(self._error_column)
            own, of_condition = batch.column(index), examined.errors
            undecided = pc.and_(own.is_valid(), examined.truths.is_null())
            selected = pc.or_(selected, undecided)
            if of_condition is not None:
                selected = pc.or_(selected, of_condition.is_valid())
            batch = batch.set_column(index, batch.schema.field(index), _join_errors(own, undecided, of_condition))
        rows = pc.indices_nonzero(selected)
        return batch.take(rows), rows


def _join_errors(own: pa.Array, undecided: pa.BooleanArray, of_condition: pa.Array | None) -> pa.Array:
    """Merge errors of rows with errors of the condition; errors that leave it undecided are attributed to the condition."""
    if not pc.any(undecided).as_py() and (of_condition is None or of_condition.null_count == len(of_condition)):
        return own
    others: list[Any] = [None] * len(own) if of_condition is None else of_condition.to_pylist()
    rows = zip(own.to_pylist(), others, undecided.to_pylist(), strict=True)
    joined = [
        [*({**detail, "column": "where"} if is_undecided else detail for detail in errors or ()), *(other or ())]
        or None
        for errors, other, is_undecided in rows
    ]
    return pa.array(joined, own.type)
