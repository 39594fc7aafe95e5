"""Warn of a name in --where that no record had: it is probably misspelt, and a condition on it selects nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import letterhead as lh
from letterhead._formatting import printable, quoted
from letterhead.cli.render import warn
from letterhead.errors import HeaderError
from letterhead.fields import ColumnSpec, Field, PlainKey
from letterhead.values import of_message

if TYPE_CHECKING:
    from letterhead.reader import Reader
    from letterhead.where import Condition

__all__ = ["unseen_headers", "warn_of_unseen"]


def warn_of_unseen(keys: Iterable[PlainKey], fields: Iterable[str]) -> None:
    """Name the headers that no record had, and the names that are fields."""
    for key in keys:
        name = quoted(key) if isinstance(key, str) else printable(str(key))
        warn(f"--where: no record had a header {name}; names of fields are {', '.join(fields)}")


def unseen_headers(specs: Sequence[ColumnSpec], open_reader: Callable[[Condition], Reader]) -> list[PlainKey]:
    """Return the keys of headers that no record has: reading stops at the first record that has one."""
    unseen = []
    for _, key, type, repeat, _ in specs:
        field = Field(type, of_message(*key) if isinstance(key, tuple) else key, repeat)  # type: ignore[arg-type]
        operand = lh.col("header", field._replace(repeat="last"))
        try:
            with open_reader(~operand.is_null()) as reader:
                if not any(len(batch) for batch in reader):
                    unseen.append(key)
        except HeaderError:
            pass  # a record has it, and it is of another type
    return unseen
