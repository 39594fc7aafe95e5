"""Types of the arguments and results of column functions, for any Arrow library, and the conversion of results to pyarrow."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypeVar

from letterhead import _native

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "HEADER_FIELDS", "UNUSED_NAME", "ArrowArray", "ArrowStream", "Column", "ColumnT", "Dialect", "OnError", "as_header_lists",
    "check_column", "convert_children", "has_headers", "header_lists_type", "import_column", "is_arrow_data", "is_binary", "is_list", "is_pyarrow", "is_text", "package_of", "read_table", "to_pyarrow", "typed_headers",
]  # fmt: skip


class ArrowArray(Protocol):
    """An Arrow array of any library."""

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...


class ArrowStream(Protocol):
    """Arrow stream of any library, such as a chunked array, a series or a reader."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


Column: TypeAlias = ArrowArray | ArrowStream
ColumnT = TypeVar("ColumnT", "pa.Array[Any]", "pa.ChunkedArray[Any]", ArrowArray, ArrowStream, Column)
"""A column and the result of a function on it. Type checkers choose the first type that fits: pyarrow's types come first."""

OnError: TypeAlias = Literal["raise", "null", "column"]

UNUSED_NAME = "letterhead: errors"
"""Name of an error column that does not collide with a caller's columns."""

HEADER_FIELDS = (("key", "value"), ("name", "value"), ("k", "v"))
"""Field names of keys and values in header structs, in the order in which the core tries them."""

Dialect: TypeAlias = Literal["arrow", "spark"]
"""Types of header and time columns: Arrow's usual types, or the types for Spark."""


def to_pyarrow(exported: _native.Column | _native.Stream) -> Any:
    """Return a result of the compiled core as a pyarrow Array or ChunkedArray."""
    pa = importlib.import_module("pyarrow")  # typed as Any, because its stubs lack capsules
    if isinstance(exported, _native.Column):
        return pa.array(exported)
    # Reading chunk by chunk, rather than as a C stream, preserves the class and attributes of an error.
    return pa.chunked_array([pa.array(chunk) for chunk in exported], type=pa.field(exported).type)


def import_column(column: Column) -> Any:
    """Return a column of any library as a validated pyarrow Array or ChunkedArray.

    pyarrow does not validate what another library exports before its functions read it.
    """
    import pyarrow as pa

    check_column(column)
    imported = to_pyarrow(_native.checked(column))
    types = pa.types
    if types.is_nested(imported.type) or types.is_dictionary(imported.type):
        imported.validate(full=True)  # the core validates only the types that it reads
    return imported


def check_column(column: object) -> None:
    """Raise ``TypeError`` unless the object is an Arrow array, or an Arrow stream of a single column."""
    name = type(column).__name__
    if package_of(column) == "pyspark":
        # Exporting a DataFrame yields all its columns, and exporting a streaming DataFrame fails an assertion in Spark.
        raise TypeError(
            f"a {name} of Spark is no column of Arrow data: pass it to a function of letterhead.spark, as in "
            "lhs.select_headers(df, ...), or pass df.toArrow()['headers']"
        )
    if not is_arrow_data(column):
        raise no_column_error(column)


def no_column_error(column: object) -> TypeError:
    """Return the error for an object that does not implement an Arrow interface."""
    # pyarrow can convert NumPy arrays, pandas Series and lists.
    has_values = hasattr(column, "__array__") or isinstance(column, list | tuple)
    hint = ": pyarrow.array(...) of it makes one" if has_values else ""
    return TypeError(
        "a column is any Arrow array or stream (__arrow_c_array__ or __arrow_c_stream__), and this is "
        f"{type(column).__name__}{hint}"
    )


def read_table(table: Any) -> pa.RecordBatchReader:
    """Return a reader of the batches of a table or stream of any Arrow library; it validates each batch."""
    import pyarrow as pa

    is_frame = package_of(table) == "pyspark"
    # For a streaming DataFrame, and for time columns, pyspark raises an AssertionError without a message.
    if is_frame and getattr(table, "isStreaming", None) is True:
        raise TypeError(
            "a streaming DataFrame of Spark is no table: pass it to a function of letterhead.spark such as "
            "lhs.pack_headers, or use foreachBatch"
        )
    try:
        schema: Any = getattr(table, "schema", None)
        if hasattr(table, "__next__") and isinstance(schema, pa.Schema):
            # Errors of a reader of this package keep their class.
            return pa.RecordBatchReader.from_batches(schema, map(_validate, table))
        # polars exports a column of nulls with a buffer that Arrow's specification does not allow and pyarrow ignores.
        imported = table if is_pyarrow(table) or package_of(table) == "polars" else _native.checked(table)
        if isinstance(imported, _native.Column):
            imported = pa.Table.from_batches([pa.RecordBatch.from_struct_array(to_pyarrow(imported))])
        try:
            reader = pa.RecordBatchReader.from_stream(imported)
        except pa.ArrowInvalid as error:
            if "format string" in str(error):
                raise TypeError(
                    "a column has a type that Arrow lacks, such as Int128 of polars: cast it to another type"
                ) from None
            if "non-struct" not in str(error):
                raise
            raise TypeError("this is a column, and no table: pass a table that has it") from None
        return pa.RecordBatchReader.from_batches(reader.schema, map(_validate, reader))
    except AssertionError:
        if not is_frame:
            raise
        raise TypeError("pyspark exports no times of a DataFrame as Arrow data: pass df.toArrow()") from None


def _validate(batch: pa.RecordBatch) -> pa.RecordBatch:
    batch.validate(full=True)
    return batch


def is_arrow_data(value: object) -> bool:
    """Return whether a value is an Arrow array or stream of any library."""
    return hasattr(value, "__arrow_c_array__") or hasattr(value, "__arrow_c_stream__")


def is_pyarrow(column: object) -> bool:
    """Return whether an object belongs to pyarrow."""
    return package_of(column) == "pyarrow"


def package_of(value: object) -> str:
    """Return the name of the package of an object's class."""
    return type(value).__module__.partition(".")[0]


def is_text(type: pa.DataType) -> bool:
    """Return whether a type is text, in any of Arrow's layouts."""
    return str(type) in ("string", "large_string", "string_view")


def is_binary(type: pa.DataType) -> bool:
    """Return whether a type is binary, in any of Arrow's layouts."""
    return str(type) in ("binary", "large_binary", "binary_view")


def as_header_lists(column: Any, *, drops_fields: bool = False) -> Any:
    """Return header columns of any supported shape as a pyarrow column of lists of key-value structs.

    With ``drops_fields``, header structs may have more fields, which are dropped. A column of the right type is
    returned unchanged.
    """
    import pyarrow as pa

    if header_lists_type(column.type, drops_fields=drops_fields) == column.type:
        return column
    if isinstance(column, pa.ChunkedArray):
        chunks = [
            as_header_lists(chunk, drops_fields=drops_fields) for chunk in column.chunks or [pa.array([], column.type)]
        ]
        return pa.chunked_array(chunks, chunks[0].type)
    return to_pyarrow(_native.header_lists(column, drops_fields))


def header_lists_type(type: pa.DataType, *, drops_fields: bool = False) -> pa.DataType:
    """Return the type of the result of :func:`as_header_lists`; unsupported types are returned unchanged."""
    pa = importlib.import_module("pyarrow")  # typed as Any, because its stubs know few types of nulls
    return to_pyarrow(_native.header_lists(pa.nulls(0, type), drops_fields)).type


def has_headers(type: pa.DataType, *, drops_fields: bool = False) -> bool:
    """Return whether a type is the type of a header column, in any supported shape."""
    import pyarrow as pa

    lists: Any = header_lists_type(type, drops_fields=drops_fields)
    if not (is_list(lists) and pa.types.is_struct(lists.value_type)):
        return False
    names = {field.name for field in lists.value_type}
    return "key" in names and names <= {"key_type", "key", "type", "value"}


def typed_headers(type: pa.DataType) -> pa.DataType:
    """Return the type of a header column whose keys or values were inferred as null, because no row has any.

    Other types are returned unchanged.
    """
    import pyarrow as pa

    types = pa.types
    header: pa.DataType = pa.struct([("key", pa.string()), ("value", pa.binary())])
    if types.is_null(type):
        return pa.list_(header)
    if types.is_map(type) and (types.is_null(type.key_type) or types.is_null(type.item_type)):
        key, item = (
            default if types.is_null(inferred) else inferred
            for inferred, default in ((type.key_type, pa.string()), (type.item_type, pa.binary()))
        )
        return pa.map_(key, item, type.keys_sorted)
    if types.is_list(type) or types.is_large_list(type) or types.is_fixed_size_list(type):
        element = type.value_type
        if types.is_null(element):
            return convert_children(type, lambda _: header)
        if types.is_struct(element) and {field.name for field in element} in map(set, HEADER_FIELDS):
            keys = {key for key, _ in HEADER_FIELDS}
            fields = [
                field.with_type(pa.string() if field.name in keys else pa.binary())
                if types.is_null(field.type)
                else field
                for field in element
            ]
            return convert_children(type, lambda _: pa.struct(fields))
    return type


def is_list(type: pa.DataType) -> bool:
    """Return whether a type is a list of any layout."""
    return str(type).startswith(("list<", "large_list<"))


def convert_children(type: pa.DataType, convert: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    """Return a struct, list or map with converted types of its children, and other types unchanged."""
    import pyarrow as pa

    types = pa.types
    if types.is_struct(type):
        return pa.struct([field.with_type(convert(field.type)) for field in type])
    if types.is_map(type):
        items: Any = type.item_field.with_type(convert(type.item_type))
        return pa.map_(convert(type.key_type), items, type.keys_sorted)
    if types.is_fixed_size_list(type):
        return pa.list_(type.value_field.with_type(convert(type.value_type)), type.list_size)
    if types.is_list(type):
        return pa.list_(type.value_field.with_type(convert(type.value_type)))
    if types.is_large_list(type):
        return pa.large_list(type.value_field.with_type(convert(type.value_type)))
    return type
