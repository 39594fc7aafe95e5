"""Unions and durations as structs."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from letterhead import arrow as lha
from letterhead.schemas import AvroDecoder
from letterhead.schemas.portable_types import portable_array, portable_type
from tests.helpers.memory_registry import MemoryRegistry, prefixed

UNION = ["null", "int", {"type": "record", "name": "P", "fields": [{"name": "x", "type": ["string", "long"]}]}]
VALUES = [None, 1, {"x": "a"}, {"x": 7}]
PLAIN = [
    None,
    {"int": 1, "P": None},
    {"int": None, "P": {"x": {"string": "a", "long": None}}},
    {"int": None, "P": {"x": {"string": None, "long": 7}}},
]


def decoded(type: Any, *values: Any) -> pa.Array:
    schema = {"type": "record", "name": "R", "fields": [{"name": "a", "type": type}]}
    column = pa.array([prefixed(1, schema, {"a": value}) for value in values])
    return lha.decode_by_schema(column, AvroDecoder(MemoryRegistry({1: schema}))).field("a")


def test_union_has_field_for_each_type() -> None:
    array = decoded(UNION, *VALUES)
    assert [*map(_shape, portable_array(array).to_pylist())] == [*map(_shape, PLAIN)]
    assert portable_array(array).type == portable_type(array.type)
    assert [*map(_shape, portable_array(array.slice(1, 2)).to_pylist())] == [*map(_shape, PLAIN[1:3])]


@pytest.mark.parametrize(
    ("type", "make"),
    [
        ({"type": "array", "items": UNION}, lambda values: [*values]),
        ({"type": "map", "values": UNION}, lambda values: {str(n): value for n, value in enumerate(values)}),
    ],
)
def test_unions_inside_lists_and_maps_become_plain(type: Any, make: Any) -> None:
    array = decoded(["null", type], make(VALUES), None, make(VALUES[2:]), make([]))
    rows = portable_array(array.slice(1)).to_pylist()
    items = [row and [item[1] if isinstance(item, tuple) else item for item in row] for row in rows]
    assert [row and [*map(_shape, row)] for row in items] == [None, [*map(_shape, PLAIN[2:])], []]


def test_duration_becomes_its_parts() -> None:
    array = decoded(
        {"type": "fixed", "name": "D", "size": 12, "logicalType": "duration"},
        bytes([1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0]),
    )
    assert portable_array(array).to_pylist() == [{"months": 1, "days": 2, "nanoseconds": 3_000_000}]


def test_other_arrays_are_not_copied() -> None:
    array = pa.array([{"a": [1]}])
    assert portable_array(array) is array


def _shape(value: Any) -> Any:
    """Return the values of nested structs, without the names of fields."""
    return [*map(_shape, value.values())] if isinstance(value, dict) else value
