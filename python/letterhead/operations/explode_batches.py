"""The operation that reads batches into one row for each message: :class:`ExplodeBatches`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import InitVar, dataclass, field
from typing import TYPE_CHECKING, ClassVar

from letterhead._arrow_types import Dialect
from letterhead._names import names_of
from letterhead.fields import Columns, ColumnSpec, check_distinct, normalise
from letterhead.operations.column_operation import ColumnOperation
from letterhead.operations.options import READ_DEFAULTS, ReadOptions
from letterhead.where import conditions
from letterhead.where.program import Filter, filter_of

if TYPE_CHECKING:
    from letterhead import _native

__all__ = ["ExplodeBatches"]


@dataclass(frozen=True)
class ExplodeBatches(ColumnOperation):
    """Read every batch into one row for each of its messages.

    ``columns`` are fields of the messages, and ``row`` for the input row; ``headers`` become typed columns after them, with
    types of ``dialect`` as in :class:`Select`.
    """

    native_name: ClassVar[_native._Operation] = "messages"

    format: str
    columns: Sequence[str] | None = None
    headers: InitVar[Columns | None] = None
    specs: tuple[ColumnSpec, ...] = field(init=False)
    options: ReadOptions = READ_DEFAULTS
    where: InitVar[conditions.Where | Filter | None] = None
    filter: Filter | None = field(init=False)
    dialect: Dialect = "arrow"

    def __post_init__(self, headers: Columns | None, where: conditions.Where | Filter | None) -> None:
        columns = names_of(self.columns)
        specs = () if headers is None else tuple(normalise(headers, sql=self.dialect == "spark"))
        # A field may be requested twice; then it is returned twice.
        names = [*dict.fromkeys(columns or ()), *(spec.name for spec in specs)]
        check_distinct(names, self.options.errors, self.options.error_column)
        object.__setattr__(self, "columns", columns)
        object.__setattr__(self, "specs", specs)
        object.__setattr__(self, "filter", filter_of(where, self.format, specs))

    def arguments(self) -> _native._Options:
        """Return the keyword arguments of `_native.apply`."""
        return {
            **self.options.arguments(), "record_fields": None if self.columns is None else [*self.columns],
            "header_columns": [*self.specs], "dialect": self.dialect, "where": None if self.filter is None else self.filter.program,
        }  # fmt: skip
