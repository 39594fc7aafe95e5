"""The compiled core. Private: the public modules call its functions."""

import builtins
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, Literal, Self, TypeAlias, TypeVar, final, overload

from _typeshed import ReadableBuffer
from typing_extensions import disjoint_base

from letterhead._arrow_types import ArrowStream, ColumnT
from letterhead.fields import Columns, ColumnSpec
from letterhead.headers import Header, HeaderKey, Headers, HeaderValue
from letterhead.limits import Limits
from letterhead.operations.edit import EditEntries
from letterhead.results import Types
from letterhead.values import Value
from letterhead.where.conditions import Where as Where_
from letterhead.where.program import Filter, Program

__all__ = [
    "Arguments",
    "AvroReader",
    "AvroWriter",
    "Column",
    "ColumnOperation",
    "Convert",
    "Decode",
    "Edit",
    "EditedKeys",
    "Encode",
    "ExplodeBatches",
    "MessageReader",
    "Pack",
    "Packed",
    "DecodeOptions",
    "Schema",
    "Select",
    "Stream",
    "Validate",
    "Where",
    "WriteOptions",
    "__version__",
    "amqp_column",
    "batch",
    "buffer_addresses",
    "check_default",
    "check_pattern",
    "check_type",
    "checked",
    "codes",
    "convert",
    "decode",
    "encode",
    "formats",
    "header_lists",
    "inspect",
    "join_value",
    "json_lines",
    "limits",
    "messages",
    "partition_batches",
    "record_batches",
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
    "with_producer",
    "xxh3_64",
]

__version__: str

_Default = TypeVar("_Default")

_Key: TypeAlias = str | int | tuple[str, bytes]
_Pair: TypeAlias = tuple[str | int | Value, bytes | Value | None]
_Fault: TypeAlias = tuple[str, str, int | None, int | None, str | None, str | None]
_Loss: TypeAlias = tuple[str, str, int | None, str | None, str | None, str | None]
_OnError: TypeAlias = Literal["raise", "null", "column"]
_OnLoss: TypeAlias = Literal["raise", "drop", "report"]
_Types: TypeAlias = str | list[tuple[_Key, str | list[str]]]
_NullHeaders: TypeAlias = Literal["skip", "raise"]
_Dialect: TypeAlias = Literal["arrow", "spark"]
_Read: TypeAlias = tuple[bool, bool, Limits | None]  # lenient, strict_types, limits
_Write: TypeAlias = tuple[_OnLoss, _Types | None, _NullHeaders, bool]  # on_loss, types, nulls, canonical

@disjoint_base
class Arguments:
    """An object that is compared, hashed, printed and pickled by its arguments."""

    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, Any]]: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class DecodeOptions(Arguments):
    """Strictness of reading, and the policy for messages that cannot be read; :mod:`letterhead.arrow` documents the options."""

    def __new__(
        cls,
        *,
        errors: _OnError = "raise",
        error_column: str = "error",
        lenient: bool = False,
        strict_types: bool = False,
        text_keys: bool = False,
        limits: Limits | None = None,
    ) -> DecodeOptions: ...
    @property
    def errors(self) -> _OnError: ...
    @property
    def error_column(self) -> str: ...
    @property
    def strict_types(self) -> bool: ...
    @property
    def limits(self) -> Limits | None: ...

@final
class WriteOptions(Arguments):
    """Types of values that are written, and the policy for losses; :mod:`letterhead.arrow` documents the options."""

    def __new__(
        cls,
        *,
        on_loss: _OnLoss = "raise",
        types: Types | None = None,
        nulls: _NullHeaders = "skip",
        canonical: bool = False,
    ) -> WriteOptions: ...
    @property
    def on_loss(self) -> _OnLoss: ...

@disjoint_base
class ColumnOperation(Arguments):
    """A function from a column of messages to a column of results."""

    @property
    def format(self) -> str: ...
    @property
    def limits(self) -> Limits | None: ...
    @property
    def schema(self) -> Schema:
        """Type of the result, which any Arrow library can import."""
    def __call__(self, column: ColumnT, *, threads: int = 1) -> ColumnT:
        """Apply the operation to a column. The result is a pyarrow object if the column is, otherwise an object of the core."""
    def apply(self, column: object, *, threads: int = 1, max_offset: int | None = None) -> Column | Stream:
        """Apply the operation to a column, and return an object of the core. Errors suggest no option to keep other rows."""
    def chunks(self, stream: ArrowStream) -> Iterator[Any]:
        """Yield a pyarrow array for each chunk of a stream; a chunk is split where an Arrow column would overflow."""
    def result_type(self) -> Any:
        """Return the type of the result, as a type of pyarrow."""

@final
class Decode(ColumnOperation):
    """Decode every message: a headers format into a list of headers, a message format into a struct of its fields."""

    def __new__(
        cls,
        format: str,
        options: DecodeOptions | None = None,
        where: Where_ | Filter | None = None,
        views: bool = False,
    ) -> Decode: ...

@final
class Select(ColumnOperation):
    """Read selected headers of every message into columns with the Arrow types of pyarrow, or of Spark."""

    def __new__(
        cls,
        format: str,
        columns: Columns | tuple[ColumnSpec, ...],
        options: DecodeOptions | None = None,
        where: Where_ | Filter | None = None,
        views: bool = False,
        dialect: _Dialect = "arrow",
    ) -> Select: ...

@final
class Encode(ColumnOperation):
    """Encode lists of headers, or structs of the fields of a message format."""

    def __new__(cls, format: str, options: WriteOptions | None = None) -> Encode: ...

@final
class Convert(ColumnOperation):
    """Convert every message from ``format`` to ``target``."""

    def __new__(
        cls, format: str, target: str, reading: DecodeOptions | None = None, writing: WriteOptions | None = None
    ) -> Convert: ...

@final
class ExplodeBatches(ColumnOperation):
    """Read every batch into one row for each of its messages.

    ``columns`` are fields of the messages, and ``row`` for the input row; ``headers`` become typed columns after them.
    """

    def __new__(
        cls,
        format: str,
        columns: Sequence[str] | None = None,
        headers: Columns | tuple[ColumnSpec, ...] | None = None,
        options: DecodeOptions | None = None,
        where: Where_ | Filter | None = None,
        dialect: _Dialect = "arrow",
    ) -> ExplodeBatches: ...
    @property
    def headers(self) -> tuple[ColumnSpec, ...]: ...

@final
class Validate(ColumnOperation):
    """List all errors of every message; null for a valid message."""

    def __new__(cls, format: str, options: DecodeOptions | None = None) -> Validate: ...

@final
class Where(ColumnOperation):
    """Return whether a condition selects each message: a struct of the field ``selected`` and, if requested, errors."""

    def __new__(cls, format: str, where: Where_ | Filter | None, options: DecodeOptions | None = None) -> Where: ...

@final
class Edit(ColumnOperation):
    """Change headers of every message: the part of :class:`letterhead.operations.Edit` that needs no function in Python."""

    def __new__(
        cls, format: str, edit: EditEntries, options: DecodeOptions | None = None, edited: EditedKeys | None = None
    ) -> Edit: ...

@final
class Pack(ColumnOperation):
    """Make lists of headers from the columns of structs, whose fields are numbered."""

    def __new__(
        cls, format: str, columns: Sequence[ColumnSpec | None], skips_nulls: bool = True, truncates: bool = False
    ) -> Pack: ...

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
    """Record of the entries of an edit that had a header; ``report`` is called with all other entries after the last row."""

    def __new__(cls, entries: int, report: Callable[[list[int]], None] | None = None) -> EditedKeys: ...
    def unmatched_keys(self) -> list[int]: ...

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

@final
class AvroReader:
    """Reads values that were written with one Avro schema into the columns of another."""

    schema: Final[Schema]

    def __new__(cls, writer: str, reader: str | None = None) -> Self: ...
    def decode(
        self, values: object
    ) -> tuple[list[Column], list[tuple[int, tuple[str, str, int | None, int | None, str | None, str | None]]]]: ...

@final
class AvroWriter:
    """Writes rows of columns as Avro values of one schema."""

    schema: Final[Schema]

    def __new__(cls, schema: str) -> Self: ...
    def encode(
        self, rows: object
    ) -> tuple[Column | None, list[tuple[int, tuple[str, str, int | None, int | None, str | None, str | None]]]]: ...

def formats() -> list[dict[str, Any]]: ...
def types() -> list[dict[str, Any]]: ...
def codes() -> list[tuple[str, str]]: ...
def limits(limits: Limits | None = None) -> list[int]: ...
def select_types() -> list[str]: ...
def check_default(type_name: str, text: str) -> None: ...
def check_type(text: str) -> tuple[str, str]: ...  # name, Spark's name
def xxh3_64(data: bytes) -> int: ...
def json_lines(rows: object, *, epoch_ms: bool = False, ascii_only: bool = False) -> bytes: ...
def amqp_column(
    column: object,
    type_name: str,
    *,
    errors: _OnError = "raise",
    dialect: _Dialect = "arrow",
    max_offset: int | None = None,
) -> Column | Stream: ...
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
    nulls: _NullHeaders = "skip",
    canonical: bool = False,
) -> bytes | None: ...
def convert(
    data: bytes, format: str, target: str, read: _Read | None = None, write: _Write | None = None
) -> tuple[bytes | None, list[_Loss], list[tuple[_Key, str, bool]]]: ...
def select(data: bytes, format: str, columns: Sequence[ColumnSpec], read: _Read | None = None) -> dict[str, Any]: ...
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
def partition_batches(
    rows: object,
    partitions: int,
    *,
    partitioner: str,
    keyless: int,
    codec: str,
    level: int | None,
    batch_bytes: int,
    batch_rows: int,
    record_bytes: int,
) -> list[tuple[int, bytes, bytes | None]]: ...
def check_pattern(text: str) -> None: ...
def truths(condition: Program, columns: Sequence[object | None], rows: int) -> Column: ...
def value_hashes(column: object) -> bytes: ...
def value_matches(column: object, expressions: list[str]) -> list[bytes]: ...
def with_checksum(data: ReadableBuffer) -> bytes: ...
def with_producer(data: ReadableBuffer, producer_id: int, producer_epoch: int, sequence: int) -> bytes: ...
def uncompressed(data: ReadableBuffer, read: _Read | None = None) -> bytes: ...
def buffer_addresses(column: object) -> list[int]: ...
def checked(column: object) -> Column | Stream: ...
def header_lists(column: object, drops_fields: bool = False) -> Column: ...
