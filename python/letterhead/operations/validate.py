"""The operation that lists the errors of each message: :class:`Validate`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from letterhead.operations.column_operation import ColumnOperation
from letterhead.operations.options import READ_DEFAULTS, ReadOptions

if TYPE_CHECKING:
    from letterhead import _native

__all__ = ["Validate"]


@dataclass(frozen=True)
class Validate(ColumnOperation):
    """List all errors of every message; null for a valid message."""

    native_name: ClassVar[_native._Operation] = "validate"

    format: str
    options: ReadOptions = READ_DEFAULTS

    def arguments(self) -> _native._Options:
        """Return the keyword arguments of `_native.apply`."""
        return self.options.arguments()
