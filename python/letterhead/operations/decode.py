"""The operation that decodes whole messages: :class:`Decode`."""

from __future__ import annotations

from dataclasses import InitVar, dataclass, field
from typing import TYPE_CHECKING, ClassVar

from letterhead.operations.column_operation import ColumnOperation
from letterhead.operations.options import READ_DEFAULTS, ReadOptions
from letterhead.where import conditions
from letterhead.where.program import Filter, filter_of

if TYPE_CHECKING:
    from letterhead import _native

__all__ = ["Decode"]


@dataclass(frozen=True)
class Decode(ColumnOperation):
    """Decode every message: a headers format into a list of headers, a message format into a struct of its fields."""

    native_name: ClassVar[_native._Operation] = "decode"

    format: str
    options: ReadOptions = READ_DEFAULTS
    where: InitVar[conditions.Where | Filter | None] = None
    filter: Filter | None = field(init=False)
    views: bool = False

    def __post_init__(self, where: conditions.Where | Filter | None) -> None:
        object.__setattr__(self, "filter", filter_of(where, self.format))

    def arguments(self) -> _native._Options:
        """Return the keyword arguments of `_native.apply`."""
        return {
            **self.options.arguments(),
            "where": None if self.filter is None else self.filter.program,
            "views": self.views,
        }
