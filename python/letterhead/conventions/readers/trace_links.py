"""Span links of a column of headers, by the rules in :mod:`letterhead.conventions.trace_links`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from letterhead._formats import format_info
from letterhead.conventions.readers.traceparent import TraceparentReader
from letterhead.conventions.trace_links import B3_FORM, B3_SAMPLED, KNOWN_FLAGS, parse_baggage, parse_state
from letterhead.errors import DecodeError, ErrorDetail, as_error
from letterhead.fields import Field

__all__ = ["ATTRIBUTES", "LINK", "columns_of_links", "read_links"]

ATTRIBUTES = pa.list_(pa.field("element", pa.struct([("key", pa.string()), ("value", pa.string())])))

LINK = pa.struct([
    ("trace_id", pa.string()), ("span_id", pa.string()), ("trace_flags", pa.int32()), ("trace_state", pa.string()),
    ("attributes", ATTRIBUTES),
])  # fmt: skip
"""Type of a link."""

_KEYS = ("traceparent", "tracestate", "baggage", "b3")


def columns_of_links(format: str) -> dict[str, Field]:
    """Return the columns to select: all values of each header, as binary, and also as text for typed values."""
    info = format_info(format)
    types = ("binary", "string") if info is not None and info.types else ("binary",)
    return {f"{key}:{type}": Field(type, key, "all") for key in _KEYS for type in types}


def read_links(
    selected: pa.StructArray, format: str, baggage: Sequence[str] | None, errors: str, row: int
) -> pa.StructArray:
    """Return the links of selected headers; errors count rows from ``row``."""
    damaged = _find_damaged(selected, format, errors, row)
    parents, states, baggages, b3 = (_values(selected, key) for key in _KEYS)
    trace, _ = TraceparentReader().read(_trim(_last(parents)))
    has_state = pc.is_valid(trace)
    if len(b3.flatten()):
        of_b3, _ = TraceparentReader().read(_parents_of_b3(_last(b3)))
        trace = pc.if_else(has_state, trace, of_b3)
    valid = pc.and_(pc.is_valid(trace), pa.array(~damaged))
    version, trace_id, span_id, flags, _ = trace.flatten()
    columns = [
        trace_id,
        span_id,
        _flags(version, flags),
        _parse_distinct(_join_values(states, pc.and_(valid, has_state)), parse_state, pa.string()),
        _parse_distinct(
            _join_values(baggages, valid), lambda data: list(parse_baggage(data, baggage).items()), ATTRIBUTES
        ),
    ]
    columns = [pc.if_else(valid, column, pa.scalar(None, column.type)) for column in columns]
    return pa.StructArray.from_arrays(columns, fields=list(LINK), mask=pc.invert(valid))


def _find_damaged(selected: pa.StructArray, format: str, errors: str, row: int) -> Any:
    """Return a mask of unreadable messages, or raise the first error; values of other types are ignored."""
    row_errors = selected.field("error")
    damaged = np.zeros(len(selected), np.bool_)
    for index in np.flatnonzero(row_errors.is_valid().to_numpy(zero_copy_only=False)):
        for error in row_errors[int(index)].as_py():
            if error["column"] is None:
                if errors == "raise":
                    raise as_error(ErrorDetail(**error), DecodeError, format, row=row + int(index))
                damaged[index] = True
    return damaged


def _values(selected: pa.StructArray, key: str) -> pa.ListArray:
    """Return all values of a header as lists of bytes, regardless of their type."""
    result = None
    for field in selected.type:
        if field.name.startswith(f"{key}:"):
            values = selected.field(field.name).cast(pa.list_(pa.binary()))
            # A list is null if a value has another type.
            some = pc.greater(pc.fill_null(pc.list_value_length(values), 0), 0)
            result = values if result is None else pc.if_else(some, values, result)
    return result


def _last(lists: pa.ListArray) -> pa.BinaryArray:
    """Return the last value of each list; null for an empty list."""
    offsets = lists.offsets.to_numpy()
    ends, empty = offsets[1:] - 1, offsets[1:] == offsets[:-1]
    return lists.values.take(pa.array(ends, mask=empty))


def _trim(values: pa.BinaryArray) -> pa.BinaryArray:
    """Trim spaces and tabs around the values, as in HTTP headers."""
    if not pc.any(pc.greater(pc.binary_length(values), 55)).as_py():
        return values
    return pc.replace_substring_regex(values, r"\A[ \t]+|[ \t]+\z", "")


def _parents_of_b3(values: pa.BinaryArray) -> pa.BinaryArray:
    """Return ``b3`` as ``traceparent``; null for other forms, such as a decision without ids."""
    matches = pc.extract_regex(values, rf"\A[ \t]*{B3_FORM}[ \t]*\z")
    trace_id, span_id, sampled, parent = (
        pc.struct_field(matches, name).cast(pa.string()) for name in ("trace_id", "span_id", "sampled", "parent")
    )
    flags = pc.if_else(pc.is_in(sampled, pa.array(B3_SAMPLED)), "01", "00")
    parents = pc.binary_join_element_wise("00", pc.utf8_lpad(trace_id, 32, "0"), span_id, flags, "-")
    is_whole = pc.or_(pc.not_equal(sampled, ""), pc.equal(parent, ""))
    return pc.if_else(is_whole, parents, None).cast(pa.binary())


def _flags(version: pa.StringArray, flags: pa.StringArray) -> pa.Int32Array:
    """Return the flag bits that the version defines; for later versions, only the first is known."""
    known = pc.if_else(pc.equal(version, "00"), KNOWN_FLAGS["00"], 1)
    low = pc.index_in(pc.utf8_slice_codeunits(flags, 1, 2), pa.array(list("0123456789abcdef")))
    return pc.bit_wise_and(low, known.cast(pa.int32()))


def _join_values(lists: pa.ListArray, valid: pa.BooleanArray) -> pa.BinaryArray:
    """Join the non-null values of each valid message with commas."""
    if lists.flatten().null_count:
        rows = [row and b",".join(value for value in row if value is not None) for row in lists.to_pylist()]
        joined = pa.array([row or None for row in rows], pa.binary())
    else:
        joined = pc.binary_join(lists, b",")
    return pc.if_else(valid, joined, pa.scalar(None, pa.binary()))


def _parse_distinct(values: pa.BinaryArray, parse: Callable[[bytes | None], Any], type: pa.DataType) -> pa.Array:
    """Parse each distinct value once."""
    distinct = values.dictionary_encode()
    parsed = pa.array([*map(parse, distinct.dictionary.to_pylist()), parse(None)], type)
    return parsed.take(pc.fill_null(distinct.indices, len(distinct.dictionary)))
