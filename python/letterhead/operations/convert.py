"""The operation that converts messages from one format to another: :class:`Convert`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from letterhead.operations.column_operation import ColumnOperation
from letterhead.operations.options import READ_DEFAULTS, WRITE_DEFAULTS, ReadOptions, WriteOptions

if TYPE_CHECKING:
    from letterhead import _native

__all__ = ["Convert"]


@dataclass(frozen=True)
class Convert(ColumnOperation):
    """Convert every message from ``format`` to ``target``."""

    native_name: ClassVar[_native._Operation] = "convert"

    format: str
    target: str
    reading: ReadOptions = READ_DEFAULTS
    writing: WriteOptions = WRITE_DEFAULTS

    @property
    def reads(self) -> ReadOptions:
        """The options that say what happens to a row that cannot be read."""
        return self.reading

    def arguments(self) -> _native._Options:
        """Return the keyword arguments of `_native.apply`."""
        return {**self.reading.arguments(), **self.writing.arguments(), "target": self.target}
