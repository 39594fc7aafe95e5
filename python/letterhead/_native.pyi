"""The compiled core. Private: its functions are what the public modules call."""

from collections.abc import Iterator
from typing import Any, Literal, TypeAlias

__version__: str

_Spec: TypeAlias = tuple[str, str, str, str, bool]
_Header: TypeAlias = tuple[str, str | None, bytes | None]
_Fault: TypeAlias = tuple[str, str, int | None, int | None, str | None, str | None]
_OnError: TypeAlias = Literal["raise", "null", "column"]
_OnLoss: TypeAlias = Literal["raise", "drop", "report"]
_Kinds: TypeAlias = Literal["be", "le", "text"]
_NullHeaders: TypeAlias = Literal["empty", "raise"]

class Column:
    """An Arrow array."""

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...
    def __arrow_c_schema__(self) -> object: ...
    def __len__(self) -> int: ...

class Stream:
    """Arrow arrays made one by one: by iteration, or once as an Arrow stream."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __arrow_c_schema__(self) -> object: ...
    def __iter__(self) -> Iterator[Column]: ...
    def __next__(self) -> Column: ...

class Schema:
    """The type that a verb would give."""

    @property
    def ddl(self) -> str: ...
    def __arrow_c_schema__(self) -> object: ...

def formats() -> list[dict[str, Any]]: ...
def kinds() -> list[dict[str, Any]]: ...
def codes() -> list[tuple[str, str]]: ...
def select_types() -> list[str]: ...
def schema(
    verb: Literal["decode", "encode", "select", "validate"],
    format: str,
    *,
    columns: list[_Spec] | None = None,
    errors: _OnError = "raise",
    dialect: Literal["arrow", "spark"] = "arrow",
    on_loss: _OnLoss = "raise",
) -> Schema: ...
def decode(data: bytes, format: str, *, lenient: bool = False) -> list[_Header] | dict[str, Any]: ...
def encode(
    message: list[_Header] | dict[str, Any] | None,
    format: str,
    *,
    on_loss: _OnLoss = "raise",
    kinds: _Kinds | None = None,
    null_headers: _NullHeaders = "empty",
) -> bytes | None: ...
def select(data: bytes, format: str, columns: list[_Spec], *, lenient: bool = False) -> dict[str, Any]: ...
def validate(data: bytes, format: str, *, lenient: bool = False) -> list[_Fault]: ...
def inspect(data: bytes, format: str, *, lenient: bool = False) -> dict[str, Any]: ...
def decode_column(
    column: object, format: str, *, errors: _OnError = "raise", lenient: bool = False, max_offset: int | None = None
) -> Column | Stream: ...
def encode_column(
    column: object,
    format: str,
    *,
    on_loss: _OnLoss = "raise",
    kinds: _Kinds | None = None,
    null_headers: _NullHeaders = "empty",
    max_offset: int | None = None,
) -> Column | Stream: ...
def select_column(
    column: object,
    format: str,
    columns: list[_Spec],
    *,
    errors: _OnError = "raise",
    lenient: bool = False,
    dialect: Literal["arrow", "spark"] = "arrow",
    max_offset: int | None = None,
) -> Column | Stream: ...
def validate_column(
    column: object, format: str, *, lenient: bool = False, max_offset: int | None = None
) -> Column | Stream: ...
def buffer_addresses(column: object) -> list[int]: ...
