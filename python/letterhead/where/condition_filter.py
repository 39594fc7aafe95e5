"""The base class of row and column filters. It lists the headers that a condition tests, and those that no row had."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from letterhead._invariants import present
from letterhead.fields import Columns, ColumnSpec, PlainKey
from letterhead.where.conditions import EVERY, Where
from letterhead.where.program import RecordField, resolve

__all__ = ["ConditionFilter"]


class ConditionFilter:
    """A condition whose names are resolved, and the headers that it tests as output columns of ``select``."""

    def __init__(self, where: Where, fields: Mapping[str, RecordField], headers: Columns | None) -> None:
        self._filter = present(resolve(where, fields, headers), "the condition")
        operands = self._filter.headers
        # Output columns have the number of their header as name: a condition can read a key as several types.
        self._specs: list[ColumnSpec] = [spec._replace(name=str(at)) for at, spec in enumerate(operands)]
        self._names = {operand: str(at) for at, operand in enumerate(operands)}
        self.fields = frozenset(test.operand for test in self._filter.tests() if isinstance(test.operand, str))
        """Names of the fields that the condition tests."""
        self._unseen_keys = {spec.name: spec.key for spec in self._specs if spec.type != EVERY}
        self._tested = False

    @property
    def has_headers(self) -> bool:
        """Whether the condition tests headers."""
        return bool(self._specs)

    @property
    def unseen_headers(self) -> list[PlainKey]:
        """Keys of headers that no row had which was tested for headers."""
        return [*self._unseen_keys.values()] if self._tested else []

    def _note_seen(self, names: Iterable[str]) -> list[ColumnSpec]:
        """Note the headers of which a tested row had a value; return what finds the others, also with null values."""
        self._tested = True
        for name in names:
            self._unseen_keys.pop(name, None)
        return [ColumnSpec(name, key, "binary:exists") for name, key in self._unseen_keys.items()]
