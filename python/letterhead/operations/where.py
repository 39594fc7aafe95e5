"""The operation that tests a condition on each message: :class:`Where`."""

from __future__ import annotations

from dataclasses import InitVar, dataclass, field
from typing import TYPE_CHECKING, ClassVar

from letterhead.operations.column_operation import ColumnOperation
from letterhead.operations.options import READ_DEFAULTS, ReadOptions
from letterhead.where import conditions
from letterhead.where.program import Filter, filter_of

if TYPE_CHECKING:
    from letterhead import _native

__all__ = ["Where"]


@dataclass(frozen=True)
class Where(ColumnOperation):
    """Return whether a condition selects each message: a struct of the field ``selected`` and, if requested, errors."""

    native_name: ClassVar[_native._Operation] = "where"

    format: str
    where: InitVar[conditions.Where | Filter]
    filter: Filter = field(init=False)
    options: ReadOptions = READ_DEFAULTS

    def __post_init__(self, where: conditions.Where | Filter) -> None:
        resolved = filter_of(where, self.format)
        if resolved is None:
            raise TypeError("where must be a condition, not None")
        object.__setattr__(self, "filter", resolved)

    def arguments(self) -> _native._Options:
        """Return the keyword arguments of `_native.apply`."""
        return {**self.options.arguments(), "where": self.filter.program}
