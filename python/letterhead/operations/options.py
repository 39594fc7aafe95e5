"""Options that several operations share: :class:`ReadOptions` and :class:`WriteOptions`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from letterhead._arrow_types import OnError
from letterhead._names import check_name
from letterhead.fields import PlainKey
from letterhead.limits import Limits
from letterhead.results import Types, plain_types

if TYPE_CHECKING:
    from letterhead import _native

__all__ = ["READ_DEFAULTS", "WRITE_DEFAULTS", "Nulls", "OnLoss", "ReadOptions", "WriteOptions"]

OnLoss: TypeAlias = Literal["raise", "drop", "report"]
Nulls: TypeAlias = Literal["empty", "raise"]


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """Options of operations that read messages; :mod:`letterhead.arrow` documents them."""

    errors: OnError = "raise"
    error_column: str = "error"
    lenient: bool = False
    strict_types: bool = False
    text_keys: bool = False
    limits: Limits | None = None

    def __post_init__(self) -> None:
        check_name("errors value", self.errors, ("raise", "null", "column"))
        _check_type("error_column", self.error_column, str)
        if self.error_column != "error" and self.errors != "column":
            raise ValueError("error_column= names the column of errors='column'")
        for flag in ("lenient", "strict_types", "text_keys"):
            _check_type(flag, getattr(self, flag), bool)
        if self.limits is not None and not isinstance(self.limits, Limits):
            raise TypeError(f"limits must be letterhead.Limits, not {type(self.limits).__name__}")

    def arguments(self) -> _native._Options:
        """Return the keyword arguments of `_native.apply`."""
        return {
            "errors": self.errors, "error_column": self.error_column, "lenient": self.lenient,
            "strict_types": self.strict_types, "text_keys": self.text_keys, "limits": self.limits,
        }  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class WriteOptions:
    """Options of operations that write messages; :mod:`letterhead.arrow` documents them."""

    on_loss: OnLoss = "raise"
    types: Types | None = None
    nulls: Nulls = "empty"
    canonical: bool = False
    plain_types: str | list[tuple[PlainKey, str | list[str]]] | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_name("on_loss", self.on_loss, ("raise", "drop", "report"))
        check_name("nulls value", self.nulls, ("empty", "raise"))
        _check_type("canonical", self.canonical, bool)
        object.__setattr__(self, "plain_types", plain_types(self.types))
        if isinstance(self.types, Mapping):
            # The mapping belongs to the caller, who may change it.
            object.__setattr__(self, "types", dict(self.types))

    def arguments(self) -> _native._Options:
        """Return the keyword arguments of `_native.apply`."""
        return {
            "on_loss": self.on_loss, "types": self.plain_types, "nulls": self.nulls, "canonical": self.canonical
        }  # fmt: skip


def _check_type(option: str, value: object, type: type) -> None:
    if not isinstance(value, type):
        raise TypeError(f"{option} must be {type.__name__}, not {value.__class__.__name__}")


READ_DEFAULTS = ReadOptions()
WRITE_DEFAULTS = WriteOptions()
