"""Cast columns to the types that a format writes, if no value changes: :func:`exact_array`."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from letterhead._arrow_types import is_binary, is_text
from letterhead._formatting import count_noun
from letterhead.errors import EncodeError, ErrorDetail, as_error

__all__ = ["entries_of", "exact_array", "offsets_of"]

_SYMBOLS = b"avro.enum.symbols"
_UINT64 = pa.decimal128(20, 0)
"""Type of Protobuf's `uint64`."""

_is = pa.types
_FAMILIES: tuple[Callable[[pa.DataType], bool], ...] = (
    is_text,
    lambda type: is_binary(type) or _is.is_fixed_size_binary(type),
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
"""Groups of types that are cast to each other if no value changes."""


class _Location(NamedTuple):
    """Location of an array in the rows and in the schema, for error messages."""

    rows: pa.Array
    """Row of each element."""

    format: str
    is_partial: bool
    path: str = ""

    @property
    def name(self) -> str:
        return f"field {self.path}" if self.path else "the column"

    def below(self, name: str, rows: pa.Array | None = None) -> _Location:
        """Return the location of a field, or of the elements of lists; ``rows`` is then the row of each list element."""
        path = f"{self.path}{name}" if name == "[]" or not self.path else f"{self.path}.{name}"
        return self._replace(path=path, rows=self.rows if rows is None else rows)


def exact_array(
    array: pa.Array, type: pa.DataType, rows: pa.Array, format: str, *, is_partial: bool = False
) -> pa.Array:
    """Return an array cast to a type; errors use ``rows``, the row of each element.

    With ``is_partial``, structs may lack fields of the type.

    Raises
    ------
    TypeError
        If the array has another type, or its structs other fields.
    EncodeError
        If the type cannot hold a value.
    """
    return _exact(array, pa.field("", type), _Location(rows, format, is_partial))


def _exact(array: pa.Array, field: pa.Field, location: _Location) -> pa.Array:
    type = field.type
    if _is.is_union(type):
        raise TypeError(f"{location.name} is a union of several types, which is not written")
    if _is.is_dictionary(array.type):
        array = array.dictionary_decode()
    if _is.is_null(array.type):
        return pa.nulls(len(array), type)
    if _is.is_struct(type) and _is.is_struct(array.type):
        return _struct(array, type, location)
    is_list = _is.is_list(array.type) or _is.is_large_list(array.type) or _is.is_fixed_size_list(array.type)
    if _is.is_list(type) and is_list:
        return _list(array, type, location)
    if _is.is_map(type) and _is.is_map(array.type):
        return _map(array, type, location)
    if _is.is_dictionary(type) and is_text(array.type):
        return _enum(array, field, location)
    is_number = _is.is_integer(array.type) or _is.is_floating(array.type)
    holds_integers = type == _UINT64 and _is.is_integer(array.type)
    if holds_integers or (_is.is_floating(type) and is_number):
        return _cast(array, type, location)
    if any(family(type) and family(array.type) for family in _FAMILIES):
        return _cast(array, type, location)
    raise TypeError(f"{location.name} is {array.type}, and the schema needs {type}")


def _struct(array: pa.Array, type: pa.StructType, location: _Location) -> pa.Array:
    names, known = [field.name for field in array.type], [field.name for field in type]
    of_path = f" of {location.path}" if location.path else ""
    fields = [field for field in type if field.name in names or not location.is_partial]
    for field in fields:
        if names.count(field.name) != 1:
            raise TypeError(f"field {field.name}{of_path} is missing: the schema needs {', '.join(known)}")
    for name in names:
        if name not in known:
            raise TypeError(f"the schema has no field {name}{of_path}: its fields are {', '.join(known)}")
    if not fields:
        raise TypeError(f"{location.name} is a record without fields, which is not written")
    columns = dict(zip(names, array.flatten(), strict=True))
    children = [_exact(columns[field.name], field, location.below(field.name)) for field in fields]
    fields = [field.with_type(child.type) for field, child in zip(fields, children, strict=True)]
    return pa.StructArray.from_arrays(children, fields=fields, mask=array.is_null())


def _list(array: pa.Array, type: pa.ListType, location: _Location) -> pa.Array:
    location = location.below("[]", location.rows.take(pc.list_parent_indices(array)))
    items = _exact(array.flatten(), type.value_field, location)
    type = pa.list_(type.value_field.with_type(items.type))
    return pa.ListArray.from_arrays(offsets_of(array), items, type=type, mask=array.is_null())


def _map(array: pa.Array, type: pa.MapType, location: _Location) -> pa.Array:
    entries = entries_of(array)
    location = location.below("[]", location.rows.take(pc.list_parent_indices(entries)))
    keys, items = entries.flatten().flatten()
    keys, items = _exact(keys, type.key_field, location), _exact(items, type.item_field, location)
    type = pa.map_(type.key_field, type.item_field.with_type(items.type))
    return pa.MapArray.from_arrays(offsets_of(entries), keys, items, type, mask=array.is_null())


def entries_of(array: pa.MapArray) -> pa.ListArray:
    """Return maps as lists of structs of a key and a value."""
    return array.cast(pa.list_(pa.struct([("key", array.type.key_type), ("value", array.type.item_type)])))


def offsets_of(lists: pa.ListArray) -> pa.Array:
    """Return the offsets of list elements, without elements of null lists and of rows outside the slice."""
    lengths = pc.fill_null(pc.list_value_length(lists), 0).cast(pa.int32())
    return pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths)])


def _enum(array: pa.Array, field: pa.Field, location: _Location) -> pa.Array:
    symbols = pa.array(json.loads((field.metadata or {})[_SYMBOLS]), pa.string())
    texts = array.cast(pa.string())
    indices = pc.index_in(texts, symbols)
    unknown = pc.and_(indices.is_null(), texts.is_valid())
    if pc.any(unknown).as_py():
        reason = f"is none of the {count_noun(len(symbols), 'symbol')} of the enum"
        raise _unfit(location, reason, pc.index(unknown, True))
    return pa.DictionaryArray.from_arrays(indices, symbols)


def _cast(array: pa.Array, type: pa.DataType, location: _Location) -> pa.Array:
    try:
        result = array.cast(type)
    except pa.ArrowInvalid:
        raise _unfit(location, f"is not a value of {type}", _first_failing(array, type)) from None
    if _is.is_floating(array.type) and result.type != array.type:
        differs = pc.and_(pc.not_equal(result.cast(array.type), array), pc.invert(pc.is_nan(array)))
        if pc.any(differs).as_py():
            raise _unfit(location, f"is not a value of {type}", pc.index(differs, True))
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


def _unfit(location: _Location, reason: str, index: int | pa.Scalar) -> EncodeError:
    number = index if isinstance(index, int) else index.as_py()
    detail = ErrorDetail("out_of_range", f"{location.name} {reason}")
    return as_error(detail, EncodeError, location.format, row=location.rows[number].as_py())
