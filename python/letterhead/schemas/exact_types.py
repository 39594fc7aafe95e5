"""Columns in the types that a format writes, if every value is the same in them: :func:`exact_array`."""

from __future__ import annotations

import json
from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from letterhead._formatting import count_noun
from letterhead.errors import EncodeError, ErrorDetail, as_error

__all__ = ["entries_of", "exact_array", "offsets_of"]

_SYMBOLS = b"avro.enum.symbols"

_is = pa.types
_FAMILIES: tuple[Callable[[pa.DataType], bool], ...] = (
    lambda type: _is.is_string(type) or _is.is_large_string(type) or _is.is_string_view(type),
    lambda type: (
        _is.is_binary(type) or _is.is_large_binary(type) or _is.is_binary_view(type) or _is.is_fixed_size_binary(type)
    ),
    _is.is_boolean,
    _is.is_integer,
    _is.is_decimal,
    _is.is_date,
    _is.is_time,
    lambda type: _is.is_timestamp(type) and type.tz is None,
    lambda type: _is.is_timestamp(type) and type.tz is not None,
    _is.is_interval,
    _is.is_null,
)
"""Types that are cast to each other if no value changes."""


def exact_array(array: pa.Array, type: pa.DataType, path: str, rows: pa.Array) -> pa.Array:
    """Return an array of a type; ``rows`` has the row of each element for errors, and ``path`` is the name of its field.

    Raises
    ------
    TypeError
        If the array has another type, or its structs other fields.
    EncodeError
        If the type cannot hold a value.
    """
    return _exact(array, pa.field(path, type), path, rows)


def _exact(array: pa.Array, field: pa.Field, path: str, rows: pa.Array) -> pa.Array:
    type = field.type
    if _is.is_union(type):
        raise TypeError(f"{_named(path)} is a union of several types, which is not written")
    if _is.is_dictionary(array.type):
        array = array.dictionary_decode()
    if _is.is_null(array.type):
        return pa.nulls(len(array), type)
    if _is.is_struct(type) and _is.is_struct(array.type):
        return _struct(array, type, path, rows)
    is_list = _is.is_list(array.type) or _is.is_large_list(array.type) or _is.is_fixed_size_list(array.type)
    if _is.is_list(type) and is_list:
        return _list(array, type, path, rows)
    if _is.is_map(type) and _is.is_map(array.type):
        return _map(array, type, path, rows)
    if _is.is_dictionary(type) and _FAMILIES[0](array.type):
        return _enum(array, field, path, rows)
    is_number = _is.is_integer(array.type) or _is.is_floating(array.type)
    if (_is.is_floating(type) and is_number) or any(family(type) and family(array.type) for family in _FAMILIES):
        return _cast(array, type, path, rows)
    raise TypeError(f"{_named(path)} is {array.type}, and the schema needs {type}")


def _named(path: str) -> str:
    return f"field {path}" if path else "the column"


def _struct(array: pa.Array, type: pa.StructType, path: str, rows: pa.Array) -> pa.Array:
    names, needed = [field.name for field in array.type], [field.name for field in type]
    of_path = f" of {path}" if path else ""
    for name in needed:
        if names.count(name) != 1:
            raise TypeError(f"field {name}{of_path} is missing: the schema needs {', '.join(needed)}")
    for name in names:
        if name not in needed:
            raise TypeError(f"the schema has no field {name}{of_path}: its fields are {', '.join(needed)}")
    if not needed:
        raise TypeError(f"{_named(path)} is a record without fields, which is not written")
    columns = dict(zip(names, array.flatten(), strict=True))
    children = [
        _exact(columns[field.name], field, f"{path}.{field.name}" if path else field.name, rows) for field in type
    ]
    return pa.StructArray.from_arrays(children, fields=list(type), mask=array.is_null())


def _list(array: pa.Array, type: pa.ListType, path: str, rows: pa.Array) -> pa.Array:
    items = _exact(array.flatten(), type.value_field, f"{path}[]", rows.take(pc.list_parent_indices(array)))
    return pa.ListArray.from_arrays(offsets_of(array), items, type=type, mask=array.is_null())


def _map(array: pa.Array, type: pa.MapType, path: str, rows: pa.Array) -> pa.Array:
    entries = entries_of(array)
    rows = rows.take(pc.list_parent_indices(entries))
    keys, items = entries.flatten().flatten()
    keys = _exact(keys, type.key_field, f"{path}[]", rows)
    items = _exact(items, type.item_field, f"{path}[]", rows)
    return pa.MapArray.from_arrays(offsets_of(entries), keys, items, type, mask=array.is_null())


def entries_of(array: pa.MapArray) -> pa.ListArray:
    """Return maps as lists of structs of a key and a value."""
    return array.cast(pa.list_(pa.struct([("key", array.type.key_type), ("value", array.type.item_type)])))


def offsets_of(lists: pa.ListArray) -> pa.Array:
    """Return the offsets of list elements, without elements of null lists and of rows outside the slice."""
    lengths = pc.fill_null(pc.list_value_length(lists), 0).cast(pa.int32())
    return pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths)])


def _enum(array: pa.Array, field: pa.Field, path: str, rows: pa.Array) -> pa.Array:
    symbols = pa.array(json.loads((field.metadata or {})[_SYMBOLS]), pa.string())
    texts = array.cast(pa.string())
    indices = pc.index_in(texts, symbols)
    unknown = pc.and_(indices.is_null(), texts.is_valid())
    if pc.any(unknown).as_py():
        raise _unfit(
            path, f"is none of the {count_noun(len(symbols), 'symbol')} of the enum", rows, pc.index(unknown, True)
        )
    return pa.DictionaryArray.from_arrays(indices, symbols)


def _cast(array: pa.Array, type: pa.DataType, path: str, rows: pa.Array) -> pa.Array:
    try:
        result = array.cast(type)
    except pa.ArrowInvalid:
        raise _unfit(path, f"is not a value of {type}", rows, _first_failing(array, type)) from None
    if _is.is_floating(array.type) and result.type != array.type:
        differs = pc.and_(pc.not_equal(result.cast(array.type), array), pc.invert(pc.is_nan(array)))
        if pc.any(differs).as_py():
            raise _unfit(path, f"is not a value of {type}", rows, pc.index(differs, True))
    return result


def _first_failing(array: pa.Array, type: pa.DataType) -> int:
    first, end = 0, len(array)
    while end - first > 1:
        middle = (first + end) // 2
        try:
            array.slice(first, middle - first).cast(type)
            first = middle
        except pa.ArrowInvalid:
            end = middle
    return first


def _unfit(path: str, reason: str, rows: pa.Array, index: int | pa.Scalar) -> EncodeError:
    number = index if isinstance(index, int) else index.as_py()
    return as_error(
        ErrorDetail("out_of_range", f"{_named(path)} {reason}"), EncodeError, "avro", row=rows[number].as_py()
    )
