"""Convert Avro's unions and durations to types that every output supports: :func:`portable_array`."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from letterhead.schemas.exact_types import entries_of, offsets_of

__all__ = ["portable_array", "portable_type"]

_DURATION = pa.struct([("months", pa.int32()), ("days", pa.int32()), ("nanoseconds", pa.int64())])


def portable_type(type: pa.DataType) -> pa.DataType:
    """Return a type with a struct for each duration, and for each union, with a field for each of its types."""
    if pa.types.is_union(type):
        return pa.struct([field.with_type(portable_type(field.type)).with_nullable(True) for field in _branches(type)])
    if pa.types.is_interval(type):
        return _DURATION
    if pa.types.is_struct(type):
        return pa.struct([field.with_type(portable_type(field.type)) for field in type])
    if pa.types.is_list(type):
        return pa.list_(type.value_field.with_type(portable_type(type.value_type)))
    if pa.types.is_map(type):
        return pa.map_(type.key_type, type.item_field.with_type(portable_type(type.item_type)))
    return type


def _branches(type: pa.UnionType) -> list[pa.Field]:
    fields = [type.field(index) for index in range(type.num_fields)]
    return [field for field in fields if not pa.types.is_null(field.type)]


def portable_array(array: pa.Array) -> pa.Array:
    """Return an array in its portable type; for a union, one of the fields contains the value."""
    type = portable_type(array.type)
    if type == array.type:
        return array
    if pa.types.is_union(array.type):
        return _union(array, type)
    if pa.types.is_interval(array.type):
        parts = array.to_pylist()
        return pa.array(
            [part and dict(zip(("months", "days", "nanoseconds"), part, strict=True)) for part in parts], type
        )
    if pa.types.is_struct(array.type):
        children = [portable_array(array.field(index)) for index in range(array.type.num_fields)]
        return pa.StructArray.from_arrays(children, fields=list(type), mask=array.is_null())
    if pa.types.is_map(array.type):
        entries = entries_of(array)
        keys, values = entries.flatten().flatten()
        return pa.MapArray.from_arrays(offsets_of(entries), keys, portable_array(values), type, mask=array.is_null())
    return pa.ListArray.from_arrays(offsets_of(array), portable_array(array.flatten()), type=type, mask=array.is_null())


def _union(array: pa.UnionArray, type: pa.StructType) -> pa.StructArray:
    # The buffers of a slice are those of the whole array.
    end, (_, codes_buffer, offsets_buffer, *_) = array.offset + len(array), array.buffers()
    codes = pa.Array.from_buffers(pa.int8(), end, [None, codes_buffer]).slice(array.offset)
    offsets = pa.Array.from_buffers(pa.int32(), end, [None, offsets_buffer]).slice(array.offset)
    is_null, children = pa.array([True] * len(array)), []
    for index, code in enumerate(array.type.type_codes):
        if pa.types.is_null(array.type.field(index).type):
            continue
        is_chosen = pc.equal(codes, code)
        child = array.field(index).take(pc.if_else(is_chosen, offsets, None))
        is_null = pc.and_(is_null, child.is_null())
        children.append(portable_array(child))
    return pa.StructArray.from_arrays(children, fields=list(type), mask=is_null)
