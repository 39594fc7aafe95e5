"""Conditions on rows of stores and on mapped records, which are evaluated row by row: :class:`RowFilter`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from letterhead import _native
from letterhead._invariants import present
from letterhead.errors import DecodeError, replaced
from letterhead.fields import Columns, PlainKey
from letterhead.where.conditions import Where
from letterhead.where.program import RecordField, ResolvedTest, resolve, truth

if TYPE_CHECKING:
    from letterhead._arrow_types import OnError
    from letterhead.limits import Limits

__all__ = ["RowFilter"]

_TYPES = {
    "key": "bytes", "value": "bytes", "task": "text", "store": "text", "sequence": "int", "stream": "text",
    "topic": "text", "partition": "int", "offset": "int",
}  # fmt: skip


class RowFilter:
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
        known = {name: types.get(name) or RecordField(_TYPES.get(name, "ms")) for name in fields if name != "headers"}
        where_filter = present(resolve(where, known, headers), "the condition")
        self._filter = where_filter
        self._format = format
        self._errors = errors
        self._limits = limits
        operands = where_filter.headers
        # Output columns have the number of their header as name: a condition can read a key as several types.
        self._specs = [(str(at), *spec[1:]) for at, spec in enumerate(operands)]
        self._names = {operand: str(at) for at, operand in enumerate(operands)}
        self.fields = frozenset(test.operand for test in where_filter.tests() if isinstance(test.operand, str))
        """Names of the fields that the condition tests."""
        self._unseen_keys = {name: key for name, key, *_ in self._specs}
        self._tested = False

    @property
    def has_headers(self) -> bool:
        """Whether the condition tests headers."""
        return bool(self._specs)

    @property
    def unseen_headers(self) -> list[PlainKey]:
        """Keys of headers of which no row that was tested for headers had a value."""
        return [*self._unseen_keys.values()] if self._tested else []

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

        self._tested = True
        unseen = self._unseen_keys.items()
        self._unseen_keys = {name: key for name, key in unseen if values.get(name) in (None, [])}

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
            "select", pa.array([data]), self._format, columns=self._specs, errors="null", limits=self._limits
        )
        values: Mapping[str, Any] = pa.array(selected)[0].as_py()
        return values
