"""Results and exceptions of calls in a form in which equal means the same, to compare the core with the reference."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable
from typing import Any

import letterhead as lh
from letterhead import _native
from letterhead.errors import ErrorDetail, HeaderError
from tests.helpers.implementations import columns_of, detail_of, from_row

# Which of the things that are wrong with compressed data is seen first depends on who looks.
_CORRUPT = re.compile(r"(the \w+ data is corrupt): .*")


def outcome(call: Callable[[], Any]) -> Any:
    """Return the result of a call, or all fields of its exception."""
    try:
        return same(call())
    except HeaderError as error:
        return type(error), error.format, error.row, same(detail_of(error))


def same(value: Any) -> Any:
    """Return a value in a form in which equal means the same: floats by bits, all NaNs one, tuples as lists."""
    if isinstance(value, ErrorDetail):
        return list(value._replace(message=_CORRUPT.sub(r"\1", value.message)))
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else struct.pack(">d", value)
    if isinstance(value, dict):
        if set(value) == set(ErrorDetail._fields):
            return same(ErrorDetail(**value))
        return {name: same(part) for name, part in value.items()}
    if isinstance(value, tuple | list):
        return [same(part) for part in value]
    return value


def decoded(column: Any) -> list[Any]:
    """Return decoded messages as plain values."""
    return [from_row(row) for row in column.to_pylist()]


def selected(column: Any) -> dict[str, list[Any]]:
    """Return the columns of a struct array, of one chunk or several."""
    import pyarrow as pa

    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    return columns_of(column)


def decoded_alike(message: bytes, format: str, **read: bool) -> Any:
    """Decode one message, as the reference gives it."""
    return read_alike(_native.decode(message, format, **read))


def read_tuple(lenient: bool = False, strict_types: bool = False) -> tuple[bool, bool, None]:
    """Return the options of a reader as the core takes them."""
    return lenient, strict_types, None


def read_alike(read: Any) -> Any:
    """Return what was decoded as the reference has it: headers as triples, here and in dicts of fields."""
    if isinstance(read, lh.Headers):
        return [(_typed(key) if isinstance(key, lh.Value) else key, *_type_and_bytes(value)) for key, value in read]
    if isinstance(read, dict):
        return {name: read_alike(part) for name, part in read.items()}
    return read


def _type_and_bytes(value: Any) -> tuple[str | None, bytes | None]:
    return _typed(value) if isinstance(value, lh.Value) else (None, value)


def _typed(value: lh.Value) -> tuple[str, bytes]:
    return value.type, value.bits
