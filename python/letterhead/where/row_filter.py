"""Evaluate conditions on the rows of tables, stores and mapped records: :class:`RowFilter`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from letterhead import _native
from letterhead._arrow_types import is_list, to_pyarrow
from letterhead._invariants import require
from letterhead.errors import DecodeError, copy_error
from letterhead.fields import ColumnSpec
from letterhead.where.conditions import EVERY
from letterhead.where.program import resolve

if TYPE_CHECKING:
    import pyarrow as pa

    from letterhead._arrow_types import OnError
    from letterhead.fields import Columns, NativeKey
    from letterhead.limits import Limits
    from letterhead.where.conditions import Where

__all__ = ["Examined", "RowFilter", "field_type"]


class Examined(NamedTuple):
    """Value of a condition for each row, null if unknown, and the errors of each row, null if there are none.

    ``errors`` is None if the condition tests no headers, or if errors are not returned in a column.
    """

    truths: pa.BooleanArray
    errors: pa.Array | None

    @property
    def selected(self) -> pa.BooleanArray:
        """Mask of the rows selected by the condition."""
        import pyarrow.compute as pc

        return pc.fill_null(self.truths, False)


class RowFilter:
    """Filter for rows by a condition on columns and on the headers of messages.

    Parameters
    ----------
    where : Where
        The condition.
    fields : mapping of str to str
        Types of the columns by name, as returned by :func:`field_type`.
    headers : Columns or None
        Typed header columns; the condition can use their names.
    format : str
        The format of the messages, or of the lists of headers.
    errors : {"raise", "null", "column"}, default "raise"
        What to do with unreadable headers. With "null" and "column", a header that cannot be read is null.
    limits : Limits, optional
        Limits on the headers that are read.
    """

    def __init__(
        self,
        where: Where,
        fields: Mapping[str, str],
        headers: Columns | None,
        format: str,
        *,
        errors: OnError = "raise",
        limits: Limits | None = None,
    ) -> None:
        known = {name: type for name, type in fields.items() if name != "headers"}
        self._filter = require(resolve(where, known, headers), "the condition")
        self._operands = self._filter.headers
        # Name output columns by the index of the header, because a condition can read one key with several types.
        self._specs = [spec._replace(name=str(index)) for index, spec in enumerate(self._operands)]
        self.fields = frozenset(self._filter.fields)
        """Names of the columns in the condition."""
        self._unseen_keys = {spec.name: spec.key for spec in self._specs if spec.type != EVERY}
        self._tested = False
        self._format = format
        self._errors = errors
        self._limits = limits

    @property
    def has_headers(self) -> bool:
        """Whether the condition tests headers."""
        return bool(self._specs)

    @property
    def header_keys(self) -> list[NativeKey]:
        """Keys of the headers in the condition."""
        return [spec.key for spec in self._operands]

    @property
    def unseen_headers(self) -> list[NativeKey]:
        """Keys of headers in the condition that occur in no examined row."""
        return [*self._unseen_keys.values()] if self._tested else []

    def __call__(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.Array | None]:
        """Return the selected rows of a table with headers in column ``headers``, and the errors of these rows.

        With ``errors="column"``, the result includes rows for which errors leave the condition undecided.
        """
        import pyarrow.compute as pc

        columns = {name: batch.column(name) for name in self.fields}
        examined = self.examine(columns, batch.column("headers") if self.has_headers else None, len(batch))
        selected, errors = examined.selected, examined.errors
        if errors is not None:
            selected = pc.or_(selected, errors.is_valid())
            errors = errors.filter(selected)
        return batch.filter(selected), errors

    def examine(self, columns: Mapping[str, pa.Array], messages: pa.Array | None, rows: int) -> Examined:
        """Evaluate the condition on rows with headers in ``messages``.

        Headers are read only in rows that are not excluded by conditions on columns. Their errors are raised, or returned
        with ``errors="column"``; errors with column "where" leave the condition undecided.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        known: dict[Any, pa.Array] = {**columns}
        by_columns = self._filter.truths(known, rows)
        if messages is None:
            return Examined(by_columns, None)
        is_read = pc.fill_null(by_columns, True)
        messages = messages.filter(is_read)
        try:
            values = self._header_values(messages, self._specs, self._errors)
        except DecodeError as error:
            row = None if error.row is None else pc.indices_nonzero(is_read)[error.row].as_py()
            raise copy_error(error, column=error.column and "where", row=row) from None
        errors = values.get("error")
        self._note_seen(messages, {spec.name: values[spec.name] for spec in self._specs})
        if len(messages) < rows:
            # Rows excluded by columns get null headers, which do not change the result.
            indexes = pc.subtract(pc.cumulative_sum(is_read.cast(pa.int64())), 1)
            values = {name: column.take(pc.if_else(is_read, indexes, None)) for name, column in values.items()}
        known |= {operand: values[spec.name] for operand, spec in zip(self._operands, self._specs, strict=True)}
        truths = self._filter.truths(known, rows)
        if errors is None:
            return Examined(truths, None)
        errors, selected = values["error"], pc.fill_null(truths, False)
        is_certain = pc.fill_null(by_columns, False) if self._errors == "column" else selected
        if errors.null_count == len(errors):
            return Examined(truths, errors)
        attributed = [
            found
            and [
                # After the code "incomplete", an unread header could still override the tested value.
                detail | {"column": None if is_true and (certain or detail["code"] != "incomplete") else "where"}
                for detail in found
            ]
            for found, is_true, certain in zip(
                errors.to_pylist(), selected.to_pylist(), is_certain.to_pylist(), strict=True
            )
        ]
        return Examined(truths, pa.array(attributed, errors.type))

    def _note_seen(self, messages: pa.Array, values: Mapping[str, pa.Array]) -> None:
        """Record which headers of the condition occur in any row, including headers with a null value."""
        if not len(messages):
            return
        self._tested = True
        self._forget_seen(values)
        unseen = [ColumnSpec(name, key, "binary:exists") for name, key in self._unseen_keys.items()]
        if unseen:
            self._forget_seen(self._header_values(messages, unseen, "null"))

    def _forget_seen(self, values: Mapping[str, pa.Array]) -> None:
        for name, column in values.items():
            if _has_value(column):
                self._unseen_keys.pop(name, None)

    def _header_values(self, messages: pa.Array, specs: list[ColumnSpec], errors: OnError) -> dict[str, pa.Array]:
        options = _native.DecodeOptions(limits=self._limits, errors=errors)
        column = to_pyarrow(_native.Select(self._format, tuple(specs), options).apply(messages))
        return dict(zip(column.type.names, column.flatten(), strict=True))


def _has_value(column: pa.Array) -> bool:
    return len(column.flatten() if is_list(column.type) else column.drop_null()) > 0


def field_type(type: pa.DataType) -> str:
    """Return the type of a column for conditions; empty if the column can be tested only for null."""
    import pyarrow as pa

    types = pa.types
    if types.is_dictionary(type):
        return field_type(type.value_type)
    if types.is_timestamp(type):
        return "timestamp" if type.unit in ("us", "ns") else "timestamp_ms"
    if types.is_decimal(type):
        # The core compares decimals as 128-bit integers, and literals have no negative scale.
        return f"decimal({type.precision},{type.scale})" if type.precision <= _MAX_DIGITS and type.scale >= 0 else ""
    for name, matches in (
        ("int64", types.is_integer), ("float64", types.is_floating), ("bool", types.is_boolean), ("date", types.is_date),
        ("string", types.is_string), ("string", types.is_large_string), ("string", types.is_string_view),
        ("binary", types.is_binary), ("binary", types.is_large_binary), ("binary", types.is_binary_view),
        ("binary", types.is_fixed_size_binary),
    ):  # fmt: skip
        if matches(type):
            return name
    return ""


_MAX_DIGITS = 38
"""Maximum number of decimal digits in 128 bits."""
