"""Every way into this package behind one face, so that a check is written once and run over all of them.

Headers go in and come out as ``(key, value)`` with plain bytes, the other fields of a message format as a dict.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any, NamedTuple, Protocol

import letterhead as lh
from letterhead.errors import ErrorDetail, HeaderError
from letterhead.values import value_from_message
from tests.reference import ops
from tests.reference.formats import FORMATS

Pairs = list[tuple[str, bytes | None]]


class Decoded(NamedTuple):
    """What came out of one message."""

    headers: Pairs | None
    fields: dict[str, Any]


class Implementation(Protocol):
    """One way into this package, for one message at a time."""

    name: str

    def decode(self, data: bytes, format: str, *, lenient: bool = False) -> Decoded: ...

    def encode(self, message: Decoded, format: str, **options: Any) -> bytes | None: ...

    def select(self, data: bytes, format: str, columns: Any, *, lenient: bool = False) -> dict[str, Any]: ...

    def validate(self, data: bytes, format: str, *, lenient: bool = False) -> list[ErrorDetail]: ...

    def read(self, data: bytes, format: str, *, lenient: bool = False) -> Any:
        """Decode to plain values: ``(key, type, bits)`` for a header, a dict of the fields for a message format."""

    def write(self, message: Any, format: str, **options: Any) -> bytes | None:
        """Encode what `read` gives."""

    def messages(self, data: bytes, format: str, *, lenient: bool = False) -> list[Any]:
        """Read the messages of a batch, each as `read` gives one."""

    def convert(self, data: bytes, format: str, **options: Any) -> bytes | None:
        """Turn a message of one format into bytes of another."""


class Reference:
    """``reference``, the implementation in plain Python."""

    name = "reference"

    def decode(self, data: bytes, format: str, *, lenient: bool = False) -> Decoded:
        return _decoded(ops.decode(data, format, lenient=lenient), lambda triples: [(k, v) for k, _, v in triples])

    def encode(self, message: Decoded, format: str, **options: Any) -> bytes | None:
        return ops.encode(_message(message, format), format, **options)

    def select(self, data: bytes, format: str, columns: Any, *, lenient: bool = False) -> dict[str, Any]:
        return ops.select(data, format, columns, lenient=lenient)

    def validate(self, data: bytes, format: str, *, lenient: bool = False) -> list[ErrorDetail]:
        return ops.validate(data, format, lenient=lenient)

    def read(self, data: bytes, format: str, *, lenient: bool = False) -> Any:
        return ops.decode(data, format, lenient=lenient)

    def write(self, message: Any, format: str, **options: Any) -> bytes | None:
        return ops.encode(message, format, **options)

    def messages(self, data: bytes, format: str, *, lenient: bool = False) -> list[Any]:
        return list(ops.messages(data, format, lenient=lenient))

    def convert(self, data: bytes, format: str, **options: Any) -> bytes | None:
        converted = ops.convert(data, format, **options)
        assert not isinstance(converted, ops.Converted)
        return converted


class Message:
    """The operations for one message, over the native module."""

    name = "message"

    def decode(self, data: bytes, format: str, *, lenient: bool = False) -> Decoded:
        read = lh.decode(data, format, lenient=lenient)
        return _decoded(read._asdict() if isinstance(read, lh.Message) else read, lambda h: [tuple(x) for x in h])

    def encode(self, message: Decoded, format: str, **options: Any) -> bytes | None:
        source = _message(message, format)
        return lh.encode(lh.Message(**source) if isinstance(source, dict) else source, format, **options)

    def select(self, data: bytes, format: str, columns: Any, *, lenient: bool = False) -> dict[str, Any]:
        return lh.select(data, columns, format=format, lenient=lenient)

    def validate(self, data: bytes, format: str, *, lenient: bool = False) -> list[ErrorDetail]:
        return [detail_of(error) for error in lh.validate(data, format, lenient=lenient)]

    def read(self, data: bytes, format: str, *, lenient: bool = False) -> Any:
        return plain(lh.decode(data, format, lenient=lenient))

    def write(self, message: Any, format: str, **options: Any) -> bytes | None:
        return lh.encode(values(message), format, **options)

    def messages(self, data: bytes, format: str, *, lenient: bool = False) -> list[Any]:
        return [plain(message) for message in lh.messages(data, format, lenient=lenient)]

    def convert(self, data: bytes, format: str, **options: Any) -> bytes | None:
        converted: bytes | None = lh.convert(data, format, **options)
        return converted


class Columns:
    """``letterhead.arrow``, with columns of one row."""

    name = "columns"

    def decode(self, data: bytes, format: str, *, lenient: bool = False) -> Decoded:
        from letterhead import arrow as lha

        [row] = lha.decode(binary_column([data]), format, lenient=lenient).to_pylist()
        return _decoded(row, lambda headers: [(header["key"], header["value"]) for header in headers])

    def encode(self, message: Decoded, format: str, **options: Any) -> bytes | None:
        from letterhead import arrow as lha

        [value] = lha.encode(messages([_message(message, format)], format), format, **options).to_pylist()
        return value

    def select(self, data: bytes, format: str, columns: Any, *, lenient: bool = False) -> dict[str, Any]:
        from letterhead import arrow as lha

        result = columns_of(lha.select(binary_column([data]), columns, format=format, lenient=lenient))
        return {name: column[0] for name, column in result.items()}

    def validate(self, data: bytes, format: str, *, lenient: bool = False) -> list[ErrorDetail]:
        from letterhead import arrow as lha

        [details] = lha.validate(binary_column([data]), format, lenient=lenient).to_pylist()
        return [ErrorDetail(**detail) for detail in details or ()]

    def read(self, data: bytes, format: str, *, lenient: bool = False) -> Any:
        from letterhead import arrow as lha

        [row] = lha.decode(binary_column([data]), format, lenient=lenient).to_pylist()
        return from_row(row)

    def write(self, message: Any, format: str, **options: Any) -> bytes | None:
        from letterhead import arrow as lha

        [value] = lha.encode(messages([message], format), format, **options).to_pylist()
        return value

    def messages(self, data: bytes, format: str, *, lenient: bool = False) -> list[Any]:
        from letterhead import arrow as lha

        rows = lha.messages(binary_column([data]), format, lenient=lenient).to_pylist()
        return [from_row({name: value for name, value in row.items() if name != "row"}) for row in rows]

    def convert(self, data: bytes, format: str, **options: Any) -> bytes | None:
        from letterhead import arrow as lha

        [value] = lha.convert(binary_column([data]), format, **options).to_pylist()
        return value


REFERENCE: Implementation = Reference()
NATIVE: list[Implementation] = [Message(), Columns()]


def detail_of(error: HeaderError) -> ErrorDetail:
    """Return the error that an exception shows."""
    return ErrorDetail(error.code, error.message, error.byte_offset, error.header, error.key, error.column)


def place(detail: ErrorDetail) -> tuple[Any, ...]:
    """Return what implementations have to agree on: all of an error but its words."""
    return detail.code, detail.byte_offset, detail.header, detail.key, detail.column


def binary_column(rows: list[bytes | None]) -> Any:
    """Make a column of bytes."""
    import pyarrow as pa

    return pa.array(rows, pa.binary())


def messages(rows: list[Any], format: str) -> Any:
    """Make a column of what a format decodes to: lists of headers, or structs around them."""
    import pyarrow as pa

    row_type = decoded_type(format)
    return pa.array([to_row(row, format) for row in rows], row_type)


def decoded_type(format: str) -> Any:
    """Return the Arrow type of what a format decodes to."""
    from letterhead.operations import Decode

    return Decode(format).result_type()


def from_row(row: Any) -> Any:
    """Turn what pyarrow gives for a decoded message into plain values."""
    if row is None:
        return None
    if isinstance(row, list):
        return [_triple(header) for header in row]
    return {name: _field(name, value) for name, value in row.items()}


def to_row(message: Any, format: str) -> Any:
    """Turn plain values, or headers that are structs already, into what pyarrow takes for a message."""
    names = [field.name for field in _header_fields(format)]
    if message is None:
        return None
    if isinstance(message, dict):
        return {name: to_row(value, format) if name == "headers" else value for name, value in message.items()}
    return [header if header is None or isinstance(header, dict) else _struct(header, names) for header in message]


def _field(name: str, value: Any) -> Any:
    if name == "headers":
        return from_row(value)
    return int(value) if isinstance(value, Decimal) else value


def _triple(header: dict[str, Any]) -> tuple[Any, str | None, bytes | None]:
    key = header["key"]
    if "key_type" in header:
        key = _typed(header["key_type"], key)
    return key, header.get("type"), header["value"]


def _typed(type: str, bits: bytes) -> Any:
    try:
        return bits.decode() if type == "string" else (type, bits)
    except UnicodeDecodeError:
        return type, bits


def _struct(header: tuple[Any, ...], names: list[str]) -> dict[str, Any]:
    key, type, value = header if len(header) == 3 else (header[0], None, header[1])
    parts = {"key": key, "type": type, "value": value}
    if "key_type" in names:
        parts["key_type"], parts["key"] = key if isinstance(key, tuple) else ("string", key.encode())
    return {name: parts[name] for name in names}


def _header_fields(format: str) -> Any:
    row_type = decoded_type(format)
    headers = row_type.field("headers").type if hasattr(row_type, "names") else row_type
    return list(headers.value_type)


def plain(read: Any) -> Any:
    """Turn what the operations for one message give into plain values."""
    if isinstance(read, lh.Message):
        fields = read._asdict()
        return {**fields, "headers": None if fields["headers"] is None else plain(fields["headers"])}
    return [(plain_key(key), *_plain_value(value)) for key, value in read]


def plain_key(key: Any) -> Any:
    """Turn a key into its plain form."""
    return (key.type, key.bits) if isinstance(key, lh.Value) else key


def _plain_value(value: Any) -> tuple[str | None, bytes | None]:
    return (value.type, value.bits) if isinstance(value, lh.Value) else (None, value)


def values(message: Any) -> Any:
    """Turn plain values into what the operations for one message take."""
    if isinstance(message, dict):
        return lh.Message(**{**message, "headers": message["headers"] and values(message["headers"])})
    return message and [
        (
            value_from_message(*key) if isinstance(key, tuple) else key,
            value if type is None or value is None else value_from_message(type, value),
        )
        for key, type, value in message
    ]


def headers_type(*, types: bool = False) -> Any:
    """Return the Arrow type of a list of headers."""
    import pyarrow as pa

    type = [("type", pa.utf8())] if types else []
    return pa.list_(pa.field("element", pa.struct([("key", pa.utf8()), *type, ("value", pa.binary())])))


def columns_of(table: Any) -> dict[str, list[Any]]:
    """Return the columns of a struct array, a batch or a table, with times as the numbers they are."""
    import pyarrow as pa

    if isinstance(table, pa.StructArray):
        table = pa.RecordBatch.from_struct_array(table)
    return {name: _numbers(column) for name, column in zip(table.schema.names, table.columns, strict=True)}


def _numbers(column: Any) -> list[Any]:
    import pyarrow as pa

    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if pa.types.is_list(column.type) and not pa.types.is_struct(column.type.value_type):
        values, ends = _numbers(column.values), column.offsets.to_pylist()
        valid = column.is_valid().to_pylist()
        return [values[ends[row] : ends[row + 1]] if valid[row] else None for row in range(len(column))]
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    if pa.types.is_decimal(column.type) and column.type.scale == 0:
        return [None if number is None else int(number) for number in column.to_pylist()]
    return list(column.to_pylist())


def _decoded(read: Any, pairs: Any) -> Decoded:
    if not isinstance(read, dict):
        return Decoded(pairs(read), {})
    fields = {name: value for name, value in read.items() if name != "headers"}
    return Decoded(None if read["headers"] is None else pairs(read["headers"]), fields)


def _message(message: Decoded, format: str) -> Any:
    if FORMATS[format].message is None:
        return message.headers
    return {"headers": message.headers, **message.fields}
