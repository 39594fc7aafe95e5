"""Every way into this package behind one face, so that a check is written once and run over all of them.

Headers go in and come out as ``(key, value)`` with plain bytes, the other fields of an envelope as a dict.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import letterhead as lh
from letterhead.errors import Fault, HeaderError
from letterhead.reference import ops
from letterhead.reference.formats import FORMATS

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

    def validate(self, data: bytes, format: str) -> list[Fault]: ...


class Reference:
    """``letterhead.reference``, the twin."""

    name = "reference"

    def decode(self, data: bytes, format: str, *, lenient: bool = False) -> Decoded:
        return _decoded(ops.decode(data, format, lenient=lenient), lambda triples: [(k, v) for k, _, v in triples])

    def encode(self, message: Decoded, format: str, **options: Any) -> bytes | None:
        return ops.encode(_message(message, format), format, **options)

    def select(self, data: bytes, format: str, columns: Any, *, lenient: bool = False) -> dict[str, Any]:
        return ops.select(data, format, columns, lenient=lenient)

    def validate(self, data: bytes, format: str) -> list[Fault]:
        return ops.validate(data, format)


class Message:
    """The verbs for one message, over the native module."""

    name = "message"

    def decode(self, data: bytes, format: str, *, lenient: bool = False) -> Decoded:
        read = lh.decode(data, format, lenient=lenient)
        return _decoded(read._asdict() if isinstance(read, lh.Envelope) else read, lambda h: [tuple(x) for x in h])

    def encode(self, message: Decoded, format: str, **options: Any) -> bytes | None:
        given = _message(message, format)
        return lh.encode(lh.Envelope(**given) if isinstance(given, dict) else given, format, **options)

    def select(self, data: bytes, format: str, columns: Any, *, lenient: bool = False) -> dict[str, Any]:
        return lh.select(data, format, columns, lenient=lenient)

    def validate(self, data: bytes, format: str) -> list[Fault]:
        return [fault_of(error) for error in lh.validate(data, format)]


class Columns:
    """``letterhead.arrow``, with columns of one row."""

    name = "columns"

    def decode(self, data: bytes, format: str, *, lenient: bool = False) -> Decoded:
        from letterhead import arrow as lha

        [row] = lha.decode(cells([data]), format, lenient=lenient).to_pylist()
        return _decoded(row, lambda headers: [(header["key"], header["value"]) for header in headers])

    def encode(self, message: Decoded, format: str, **options: Any) -> bytes | None:
        from letterhead import arrow as lha

        [cell] = lha.encode(messages([_message(message, format)], format), format, **options).to_pylist()
        return cell

    def select(self, data: bytes, format: str, columns: Any, *, lenient: bool = False) -> dict[str, Any]:
        from letterhead import arrow as lha

        made = columns_of(lha.select(cells([data]), format, columns, lenient=lenient))
        return {name: column[0] for name, column in made.items()}

    def validate(self, data: bytes, format: str) -> list[Fault]:
        from letterhead import arrow as lha

        [faults] = lha.validate(cells([data]), format).to_pylist()
        return [Fault(**fault) for fault in faults or ()]


REFERENCE: Implementation = Reference()
NATIVE: list[Implementation] = [Message(), Columns()]


def fault_of(error: HeaderError) -> Fault:
    """Give the fault that an exception shows."""
    return Fault(error.code, error.message, error.offset, error.header, error.key, error.column)


def place(fault: Fault) -> tuple[Any, ...]:
    """Give what implementations have to agree on: all of a fault but its words."""
    return fault.code, fault.byte, fault.header, fault.key, fault.column


def cells(rows: list[bytes | None]) -> Any:
    """Make a column of bytes."""
    import pyarrow as pa

    return pa.array(rows, pa.binary())


def messages(rows: list[Any], format: str) -> Any:
    """Make a column of what a format decodes to: lists of headers, or structs around them."""
    import pyarrow as pa

    arrow_types = {"int64": pa.int64(), "binary": pa.binary()}
    fields = [(name, arrow_types.get(of) or headers_type()) for name, of in FORMATS[format].fields]
    if FORMATS[format].envelope is None:
        return pa.array([_structs(row) for row in rows], headers_type())
    filled = [row if row is None else {**row, "headers": _structs(row["headers"])} for row in rows]
    return pa.array(filled, pa.struct(fields))


def headers_type(*, kinds: bool = False) -> Any:
    """Give the Arrow type of a list of headers."""
    import pyarrow as pa

    kind = [("kind", pa.utf8())] if kinds else []
    return pa.list_(pa.field("element", pa.struct([("key", pa.utf8()), *kind, ("value", pa.binary())])))


def columns_of(table: Any) -> dict[str, list[Any]]:
    """Give the columns of a struct array, a batch or a table, with times as the numbers they are."""
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
    if pa.types.is_decimal(column.type):
        return [None if number is None else int(number) for number in column.to_pylist()]
    return list(column.to_pylist())


def _decoded(read: Any, pairs: Any) -> Decoded:
    if not isinstance(read, dict):
        return Decoded(pairs(read), {})
    fields = {name: value for name, value in read.items() if name != "headers"}
    return Decoded(None if read["headers"] is None else pairs(read["headers"]), fields)


def _message(message: Decoded, format: str) -> Any:
    if FORMATS[format].envelope is None:
        return message.headers
    return {"headers": message.headers, **message.fields}


def _structs(headers: Any) -> Any:
    if headers is None:
        return None
    return [dict(zip(_NAMES[len(header)], header, strict=True)) for header in headers]


_NAMES = {2: ("key", "value"), 3: ("key", "kind", "value")}
