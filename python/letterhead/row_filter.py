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
        """Return whether a row is selected, as :meth:`examine` does."""
        return self.examine(fields, data)[0]

    def examine(self, fields: Mapping[str, Any], data: bytes | None) -> tuple[bool, DecodeError | None]:
        """Return whether a row is selected, and its error in reading the condition's headers, unless that is raised.

        ``data`` is the message with the headers, or None if there is none. With ``errors="null"`` and ``"column"``, a header
        that cannot be read is null.
        """

        def by_fields(test: ResolvedTest) -> bool | None:
            return truth(test, fields[test.operand]) if isinstance(test.operand, str) else None

        excluded = self._filter.decide(by_fields)
        if excluded is False or not self._specs:
            return bool(excluded), None
        values: Mapping[str, Any] = {}
        failed = None
        if data is not None:
            try:
                values = _native.select(data, self._format, self._specs, (False, False, self._limits))
            except DecodeError as error:
                failed = replaced(error, column=error.column and "where")
                if self._errors == "raise":
                    raise failed from None
                values = self._readable_values(data)

        unseen = self._note_seen([name for name in self._unseen_keys if values.get(name) not in (None, [])])
        if unseen and data is not None and failed is None:
            found = _native.select(data, self._format, unseen, (False, False, self._limits))
            self._note_seen([name for name, value in found.items() if value is not None])

        def by_everything(test: ResolvedTest) -> bool | None:
            if isinstance(test.operand, str):
                return by_fields(test)
            return truth(test, values.get(self._names[test.operand]))

        return self._filter.decide(by_everything) is True, failed

    def _readable_values(self, data: bytes) -> Mapping[str, Any]:
        """Return the values of the headers, null for those that cannot be read."""
        import pyarrow as pa

        # The specs may have types that only conditions have.
        selected: Any = _native.apply(
            "select", pa.array([data]), self._format, header_columns=self._specs, errors="null", limits=self._limits
        )
        values: Mapping[str, Any] = pa.array(selected)[0].as_py()
        return values
