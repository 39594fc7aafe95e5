"""The compiled core. Private: the public modules call its functions."""

import builtins
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, TypeAlias, TypedDict, TypeVar, Unpack, final, overload

from _typeshed import ReadableBuffer

from letterhead.headers import Header, HeaderKey, Headers, HeaderValue
from letterhead.limits import Limits
from letterhead.values import Value

__all__ = [
    "Column",
    "EditedKeys",
    "MessageReader",
    "Packed",
    "Schema",
    "Stream",
    "__version__",
    "amqp_column",
    "apply",
    "batch",
    "buffer_addresses",
    "check_pattern",
    "check_type",
    "checked",
    "codes",
    "convert",
    "decode",
    "encode",
    "formats",
    "inspect",
    "join_value",
    "json_lines",
    "limits",
    "messages",
    "record_batches",
    "schema",
    "select",
    "select_types",
    "split_value",
    "truths",
    "types",
    "uncompressed",
    "validate",
    "value_hashes",
    "value_matches",
    "with_checksum",
    "xxh3_64",
]

__version__: str

_Default = TypeVar("_Default")

_Key: TypeAlias = str | int | tuple[str, bytes]
_Spec: TypeAlias = tuple[str, _Key, str, str, bool, tuple[str, str] | None, str | None]
_Pair: TypeAlias = tuple[str | int | Value, bytes | Value | None]
_Fault: TypeAlias = tuple[str, str, int | None, int | None, str | None, str | None]
_Loss: TypeAlias = tuple[str, str, int | None, str | None, str | None, str | None]
_OnError: TypeAlias = Literal["raise", "null", "column"]
_OnLoss: TypeAlias = Literal["raise", "drop", "report"]
_Types: TypeAlias = str | list[tuple[_Key, str | list[str]]]
_NullHeaders: TypeAlias = Literal["empty", "raise"]
_Dialect: TypeAlias = Literal["arrow", "spark"]
_Step: TypeAlias = tuple[str, int, str, list[Any]]
_Where: TypeAlias = tuple[Sequence[_Spec], list[str], list[_Step]]
_NewValue: TypeAlias = tuple[str, str | None, bytes | None, int]  # source, type, bits, column
_Edit: TypeAlias = tuple[list[Any], bool, list[tuple[_Key, _NewValue]], bool]
_Pack: TypeAlias = tuple[
    list[tuple[_Key | None, str | None, bool, str | None]], bool, bool
]  # key, type, is_list, split; skips_nulls, truncates
_Read: TypeAlias = tuple[bool, bool, Limits | None]  # lenient, strict_types, limits
_Write: TypeAlias = tuple[_OnLoss, _Types | None, _NullHeaders, bool]  # on_loss, types, nulls, canonical
_Operation: TypeAlias = Literal[
    "decode", "encode", "convert", "edit", "messages", "pack", "select", "validate", "where"
]

@final
class Column:
    """An Arrow array."""

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...
    def __arrow_c_schema__(self) -> object: ...
    def __len__(self) -> int: ...

@final
class Stream:
    """Arrow arrays computed one by one: by iteration, or once as an Arrow stream."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __arrow_c_schema__(self) -> object: ...
    def __iter__(self) -> Iterator[Column]: ...
    def __next__(self) -> Column: ...

@final
class EditedKeys:
    """Which entries of an edit had a header; the function is called with the places of the others after the last row."""

    def __new__(cls, entries: int, report: Callable[[list[int]], None] | None = None) -> EditedKeys: ...
    def unseen(self) -> list[int]: ...

@final
class Packed:
    """Validated headers that are still encoded; keys to look up are str."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Header]: ...
    def __contains__(self, key: str, /) -> bool: ...
    def last(self, key: str, /) -> HeaderValue: ...
    def get(self, key: str, default: _Default, /) -> HeaderValue | _Default: ...
    def all(self, key: str, /) -> builtins.list[HeaderValue]: ...
    def keys(self) -> builtins.list[HeaderKey]: ...
    def pairs(self) -> builtins.list[tuple[HeaderKey, HeaderValue]]: ...
    def list(self) -> builtins.list[Header]: ...

@final
class Schema:
    """The type that an operation returns."""

    @property
    def ddl(self) -> str: ...
    def __arrow_c_schema__(self) -> object: ...

def formats() -> list[dict[str, Any]]: ...
def types() -> list[dict[str, Any]]: ...
def codes() -> list[tuple[str, str]]: ...
def limits(limits: Limits | None = None) -> list[int]: ...
def select_types() -> list[str]: ...
def check_type(text: str) -> tuple[str, str]: ...  # name, Spark's name
def xxh3_64(data: bytes) -> int: ...

class _Options(TypedDict, total=False):
    """The options of the operations on columns."""

    errors: _OnError
    error_column: str
    lenient: bool
    strict_types: bool
    text_keys: bool
    limits: Limits | None
    on_loss: _OnLoss
    types: _Types | None
    nulls: _NullHeaders
    canonical: bool
    dialect: _Dialect
    threads: int
    views: bool
    header_columns: Sequence[_Spec]
    record_fields: list[str] | None
    target: str
    max_offset: int
    where: _Where | None
    edit: _Edit
    edited: EditedKeys | None
    pack: _Pack

def schema(operation: _Operation, format: str, **options: Unpack[_Options]) -> Schema: ...
def apply(operation: _Operation, column: object, format: str, **options: Unpack[_Options]) -> Column | Stream: ...
def json_lines(rows: object, *, epoch_ms: bool = False, ascii: bool = False) -> bytes: ...
def amqp_column(column: object, of: str, **options: Unpack[_Options]) -> Column | Stream: ...
def decode(
    data: bytes, format: str, lenient: bool = False, strict_types: bool = False, limits: Limits | None = None
) -> Headers | dict[str, Any]: ...
def messages(data: bytes, format: str, read: _Read | None = None, *, parse_headers: bool = True) -> MessageReader: ...

@final
class MessageReader:
    def __iter__(self) -> Iterator[tuple[list[dict[str, Any]], Exception | None]]: ...
    def __next__(self) -> tuple[list[dict[str, Any]], Exception | None]: ...

def encode(
    message: Sequence[_Pair] | dict[Any, Any] | None,
    format: str,
    on_loss: _OnLoss = "raise",
    types: _Types | None = None,
    nulls: _NullHeaders = "empty",
    canonical: bool = False,
) -> bytes | None: ...
def convert(
    data: bytes, format: str, target: str, read: _Read | None = None, write: _Write | None = None
) -> tuple[bytes | None, list[_Loss], list[tuple[_Key, str, bool]]]: ...
def select(data: bytes, format: str, columns: Sequence[_Spec], read: _Read | None = None) -> dict[str, Any]: ...
def validate(data: bytes, format: str, read: _Read | None = None) -> list[_Fault]: ...
def inspect(data: bytes, format: str, read: _Read | None = None) -> dict[str, Any]: ...
def join_value(headers: Sequence[_Pair], timestamp: int | None, payload: bytes, /) -> bytes: ...
@overload
def split_value(
    value: bytes, timestamped: Literal[True], message_bytes: int | None = None, /
) -> tuple[bytes, int, int, int]: ...
@overload
def split_value(
    value: bytes, timestamped: Literal[False], message_bytes: int | None = None, /
) -> tuple[bytes, None, int, int]: ...
def batch(messages: list[dict[str, Any]], format: str, codec: str, options: _Write | None = None) -> bytes: ...
def record_batches(
    data: ReadableBuffer, start: int = 0, most: int | None = None, beyond: int = 0
) -> tuple[list[tuple[int, int, int, int, int, int, int, int, int]], int]: ...
def check_pattern(text: str) -> None: ...
def truths(condition: _Where, columns: Sequence[object | None], rows: int) -> Column: ...
def value_hashes(column: object) -> bytes: ...
def value_matches(column: object, expressions: list[str]) -> list[bytes]: ...
def with_checksum(data: ReadableBuffer) -> bytes: ...
def uncompressed(data: ReadableBuffer, read: _Read | None = None) -> bytes: ...
def buffer_addresses(column: object) -> list[int]: ...
def checked(column: object) -> Column | Stream: ...
