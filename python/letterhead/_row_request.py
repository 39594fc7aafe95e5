"""Rows and columns to read from a source: :class:`RowRequest`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from letterhead._arrow_types import OnError
from letterhead._error_policies import NULL_COLUMN
from letterhead._names import check_name, names_of

if TYPE_CHECKING:
    from letterhead.fields import Columns
    from letterhead.limits import Limits
    from letterhead.offsets.specs import OffsetSpec
    from letterhead.state.reading.key_bounds import KeyBounds
    from letterhead.where.conditions import Where

__all__ = ["RowRequest", "StoreOptions", "columns_asked", "is_committed"]


class StoreOptions(NamedTuple):
    """Stores of a directory to read, and a range of their keys."""

    name: str | None = None
    store_type: str | None = None
    value_format: str | None = None
    keys: KeyBounds | None = None
    backward: bool = False


@dataclass(frozen=True)
class RowRequest:
    """Rows and columns to read from any source, and how to reach it.

    ``on_screen`` selects fewer columns by default; ``among_others`` adds the columns that identify the source of a row.
    """

    columns: tuple[str, ...] | None = None
    headers: Columns | None = None
    where: Where | None = None
    start: OffsetSpec = "earliest"
    end: OffsetSpec = "latest"
    last: int | None = None
    follow: bool = False
    partitions: frozenset[int] | None = None
    committed: bool | None = None  # by default as the settings of Kafka say
    commit_group: str | None = None
    errors: OnError = "raise"
    error_column: str = "error"
    ignore_crc: bool = False
    on_screen: bool = False
    among_others: bool = False
    limits: Limits | None = None
    timeout_ms: int | None = None  # by default as the settings say, or a minute
    servers: str | None = None  # brokers of a topic of Kafka whose address names none
    settings: Mapping[str, Any] | None = None
    stores: StoreOptions | None = None
    view: Literal["records", "batches", "control"] = "records"

    def __post_init__(self) -> None:
        if self.errors != NULL_COLUMN:
            check_name("errors value", self.errors, get_args(OnError))
        if self.last is not None and not (isinstance(self.last, int) and not isinstance(self.last, bool)):
            raise TypeError(f"last must be a whole number, not {type(self.last).__name__}")
        if self.last is not None and self.last < 0:
            raise ValueError(f"last must be at least 0, not {self.last}")

    @property
    def error_options(self) -> dict[str, Any]:
        """The options of a reader for rows that cannot be read."""
        return {"errors": self.errors, "error_column": self.error_column}

    def without_headers(self, names: Iterable[str]) -> tuple[str, ...]:
        """Drop the column ``headers`` if the request has typed header columns."""
        return tuple(name for name in names if not (self.headers and name == "headers"))

    def chosen_columns(self, default: Iterable[str]) -> tuple[str, ...]:
        """Return the columns of the request, or the default columns of a reader."""
        return self.without_headers(default) if self.columns is None else self.columns


def columns_asked(columns: Sequence[str] | None, headers: Columns | None) -> tuple[str, ...] | None:
    """Return the names of columns that a caller lists; refuse an empty list without typed headers: rows would be lost."""
    names = names_of(columns)
    if names == () and not headers:
        raise ValueError("no columns were asked for")
    return names


def is_committed(isolation_level: str | None) -> bool | None:
    """Return whether only committed records are read; None leaves it to the settings of Kafka."""
    if isolation_level is None:
        return None
    check_name("isolation_level", isolation_level, ("read_uncommitted", "read_committed"))
    return isolation_level == "read_committed"
