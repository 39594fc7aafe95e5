"""Conditions on rows of stores and on mapped records, which are evaluated row by row: :class:`RowFilter`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from letterhead import _native
from letterhead.errors import DecodeError, replaced
from letterhead.where.condition_filter import ConditionFilter
from letterhead.where.program import RecordField, ResolvedTest, truth

if TYPE_CHECKING:
    from letterhead._arrow_types import OnError
    from letterhead.fields import Columns
    from letterhead.limits import Limits
    from letterhead.where.conditions import Where

__all__ = ["RowFilter"]

_TYPES = {
    "key": "binary", "value": "binary", "task": "string", "store": "string", "sequence": "int64", "stream": "string",
    "topic": "string", "partition": "int64", "offset": "int64",
}  # fmt: skip


class RowFilter(ConditionFilter):
    """Evaluates a condition for rows whose headers are in a format.

    ``fields`` are the fields of a row with their types, or only their names: then all but those in :data:`_TYPES` are
    milliseconds since 1970.
    """

    def __init__(
        self,
        where: Where,
        fields: Iterable[str] | Mapping[str, RecordField],
        headers: Columns | None,
        format: str,
        *,
        errors: OnError = "raise",
        limits: Limits | None = None,
    ) -> None:
        types = fields if isinstance(fields, Mapping) else {}
        known = {
            name: types.get(name) or RecordField(_TYPES.get(name, "timestamp_ms"))
            for name in fields
            if name != "headers"
        }
        super().__init__(where, known, headers)
        self._format = format
        self._errors = errors
        self._limits = limits

    def selects(self, fields: Mapping[str, Any], data: bytes | None) -> bool:
        """Return whether a row is selected; raise DecodeError if its headers cannot be read.

        ``data`` is the message with the headers, or None if there is none. With ``errors="null"``, nothing is raised.
        """

        def by_fields(test: ResolvedTest) -> bool | None:
            return truth(test, fields[test.operand]) if isinstance(test.operand, str) else None

        excluded = self._filter.decide(by_fields)
        if excluded is False or not self._specs:
            return bool(excluded)
        values: Mapping[str, Any] = {}
        if data is not None:
            try:
                values = _native.select(data, self._format, self._specs, (False, False, self._limits))
            except DecodeError as error:
                if self._errors != "null":
                    raise replaced(error, column=error.column and "where") from None
                values = self._readable_values(data)

        self._note_seen([name for name in self._unseen_keys if values.get(name) not in (None, [])])

        def by_everything(test: ResolvedTest) -> bool | None:
            if isinstance(test.operand, str):
                return by_fields(test)
            return truth(test, values.get(self._names[test.operand]))

        return self._filter.decide(by_everything) is True

    def _readable_values(self, data: bytes) -> Mapping[str, Any]:
        """Return the values of the headers, null for those that cannot be read."""
        import pyarrow as pa

        # The specs may have types that only conditions have.
        selected: Any = _native.apply(
            "select", pa.array([data]), self._format, header_columns=self._specs, errors="null", limits=self._limits
        )
        values: Mapping[str, Any] = pa.array(selected)[0].as_py()
        return values
