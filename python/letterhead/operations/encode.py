"""The operation that encodes messages: :class:`Encode`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from letterhead.operations.column_operation import ColumnOperation
from letterhead.operations.options import WRITE_DEFAULTS, WriteOptions

if TYPE_CHECKING:
    from letterhead import _native

__all__ = ["Encode"]


@dataclass(frozen=True)
class Encode(ColumnOperation):
    """Encode lists of headers, or structs of the fields of a message format."""

    native_name: ClassVar[_native._Operation] = "encode"

    format: str
    options: WriteOptions = WRITE_DEFAULTS

    def arguments(self) -> _native._Options:
        """Return the keyword arguments of `_native.apply`."""
        return self.options.arguments()
