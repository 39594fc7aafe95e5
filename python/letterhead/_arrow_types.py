"""Types of the arguments and results of column functions, for any Arrow library, and the conversion of results to pyarrow."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypeVar

from letterhead import _native

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "UNUSED_NAME", "ArrowArray", "ArrowStream", "Column", "ColumnT", "Dialect", "OnError", "is_binary", "is_list", "to_pyarrow",
]  # fmt: skip


class ArrowArray(Protocol):
    """An Arrow array of any library."""

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...


class ArrowStream(Protocol):
    """An Arrow stream of any library: a chunked array, a series, a reader."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


Column: TypeAlias = ArrowArray | ArrowStream
ColumnT = TypeVar("ColumnT", "pa.Array[Any]", "pa.ChunkedArray[Any]", ArrowArray, ArrowStream, Column)
"""A column and the result of a function on it. Type checkers choose the first type that fits, so pyarrow's come first."""

OnError: TypeAlias = Literal["raise", "null", "column"]

UNUSED_NAME = "letterhead: errors"
"""Name of a column of errors that no column of a caller has."""

Dialect: TypeAlias = Literal["arrow", "spark"]
"""The types of columns of headers and times: the ones that users of Arrow expect, or the ones that Spark has."""


def to_pyarrow(exported: _native.Column | _native.Stream) -> Any:
    """Return a result of the compiled core as a pyarrow Array or ChunkedArray."""
    pa = importlib.import_module("pyarrow")  # typed as Any, because its stubs lack capsules
    if isinstance(exported, _native.Column):
        return pa.array(exported)
    # Read chunk by chunk and not as a C stream, so that an error keeps its class and attributes.
    return pa.chunked_array([pa.array(chunk) for chunk in exported], type=pa.field(exported).type)


def is_binary(type: pa.DataType) -> bool:
    """Return whether a column has bytes, in any of Arrow's layouts."""
    return str(type) in ("binary", "large_binary", "binary_view")


def is_list(type: pa.DataType) -> bool:
    """Return whether a column has lists of any length."""
    return str(type).startswith(("list<", "large_list<"))
