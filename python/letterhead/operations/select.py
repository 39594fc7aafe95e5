"""The operation that reads some headers into typed columns: :class:`Select`."""

from __future__ import annotations

from dataclasses import InitVar, dataclass, field
from typing import TYPE_CHECKING, ClassVar

from letterhead._arrow_types import Dialect
from letterhead.fields import Columns, ColumnSpec, check_distinct, normalise
from letterhead.operations.column_operation import ColumnOperation
from letterhead.operations.options import READ_DEFAULTS, ReadOptions
from letterhead.where import conditions
from letterhead.where.program import Filter, filter_of

if TYPE_CHECKING:
    from letterhead import _native

__all__ = ["Select"]


@dataclass(frozen=True)
class Select(ColumnOperation):
    """Read some headers of every message into typed columns.

    ``dialect`` chooses the Arrow types of the columns: those that pyarrow users expect, or those that Spark has.
    """

    native_name: ClassVar[_native._Operation] = "select"

    format: str
    columns: InitVar[Columns]
    specs: tuple[ColumnSpec, ...] = field(init=False)
    options: ReadOptions = READ_DEFAULTS
    where: InitVar[conditions.Where | Filter | None] = None
    filter: Filter | None = field(init=False)
    views: bool = False
    dialect: Dialect = "arrow"

    def __post_init__(self, columns: Columns, where: conditions.Where | Filter | None) -> None:
        specs = tuple(normalise(columns, sql=self.dialect == "spark"))
        check_distinct([spec.name for spec in specs], self.options.errors, self.options.error_column)
        object.__setattr__(self, "specs", specs)
        object.__setattr__(self, "filter", filter_of(where, self.format, specs, columns_name="columns="))

    def arguments(self) -> _native._Options:
        """Return the keyword arguments of `_native.apply`."""
        return {
            **self.options.arguments(), "header_columns": [*self.specs], "dialect": self.dialect,
            "where": None if self.filter is None else self.filter.program, "views": self.views,
        }  # fmt: skip
