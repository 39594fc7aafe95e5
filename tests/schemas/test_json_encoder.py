"""Rows as values of JSON by a JSON Schema of a registry."""

from __future__ import annotations

import doctest
import json
import math
import pickle
from typing import Any

import pyarrow as pa
import pytest

import letterhead as lh
from letterhead import arrow as lha
from letterhead.schemas import JsonDecoder, JsonEncoder, RegisteredSchema, encode_values, json_encoder
from tests.helpers.memory_registry import MemoryRegistry

pytest.importorskip("jsonschema_rs")

INTEGER, TEXT, NUMBER = ({"type": each} for each in ("integer", "string", "number"))


def objects(*required: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required)}


SCHEMA = objects(
    "id", "state", id=INTEGER, city=objects("name", name=TEXT, zip=TEXT), tags={"type": "array", "items": {"type": ["string", "null"]}},
    counts={"type": "object", "additionalProperties": INTEGER}, any={}, ratio=NUMBER, state={"type": ["string", "null"]}, ok={"type": "boolean"},
)  # fmt: skip
ROW = {
    "id": 1 << 60, "city": {"name": "Ü", "zip": None}, "tags": ["a", None], "counts": [("k", 1)], "any": '{"x":[1,null]}', "ratio": 0.5,
    "state": None, "ok": True,
}  # fmt: skip
EMPTY = {**dict.fromkeys(ROW), "id": 0, "tags": [], "counts": []}


def registry(schema: Any = SCHEMA) -> MemoryRegistry:
    registered = RegisteredSchema("JSON", json.dumps(schema), {})
    return MemoryRegistry({7: registered, "orders-value": registered})


def encoder(schema: Any = SCHEMA, **options: Any) -> JsonEncoder:
    return JsonEncoder(registry(schema), "orders-value", **options)


def array(*rows: Any, schema: Any = SCHEMA) -> pa.Array:
    """Rows in the types that the decoder returns."""
    return pa.array(rows, pa.struct(list(JsonDecoder(registry(), schema).bind([]).schema)))


def refused(value: pa.Array, schema: Any) -> tuple[str, str]:
    with pytest.raises(lh.EncodeError) as caught:
        encoder(schema).encode(pa.concat_arrays([pa.nulls(1, value.type), value]))
    assert caught.value.row == 1
    return caught.value.code, str(caught.value)


def test_examples_run() -> None:
    assert doctest.testmod(json_encoder).failed == 0


def test_nulls_are_omitted_unless_schema_requires_them() -> None:
    values = encoder().encode(array(ROW, None, EMPTY)).to_pylist()
    assert values[1] is None
    assert values[0].decode() == (
        f'{{"id":{1 << 60},"city":{{"name":"Ü"}},"tags":["a",null],"counts":{{"k":1}},"any":{{"x":[1,null]}},"ratio":0.5,"state":null,"ok":true}}'
    )
    assert json.loads(values[2]) == {"id": 0, "tags": [], "counts": {}, "state": None}


@pytest.mark.parametrize("place", ["header", "prefix"])
def test_encoded_values_round_trip(place: Any) -> None:
    rows = pa.table({"value": array(ROW, EMPTY, None)})
    table = encode_values(rows, encoder(schema_id=place)).read_all()
    headers = table["headers"] if place == "header" else None
    decoded = lha.decode_by_schema(table["value"], JsonDecoder(registry()), headers=headers)
    assert decoded.to_pylist()[:2] == rows["value"].to_pylist()[:2]


def test_optional_properties_may_be_missing() -> None:
    rows = pa.array([{"id": 7, "state": "new", "city": {"name": "B"}}])
    assert json.loads(encoder().encode(rows)[0].as_py()) == {"id": 7, "state": "new", "city": {"name": "B"}}
    assert (
        "field city.name is missing" in refused(pa.array([{"id": 7, "state": "new", "city": {"zip": "1"}}]), SCHEMA)[1]
    )
    with pytest.raises(TypeError, match="the schema has no field other: its fields are id, city"):
        encoder().encode(pa.array([{"id": 7, "other": 1}]))


def test_non_object_schema_writes_plain_column() -> None:
    assert encoder(INTEGER).encode(pa.array([7, None])).to_pylist() == [b"7", None]
    only = objects(value=INTEGER)
    assert encoder(only).encode(pa.array([{"value": 7}])).to_pylist() == [b'{"value":7}']


@pytest.mark.parametrize(
    ("schema", "value", "code", "reason"),
    [
        ({"type": "integer", "minimum": 3}, pa.array([2]), "wrong_type", "properties/a/minimum"),
        ({"type": "string", "maxLength": 1}, pa.array(["secret"]), "wrong_type", "properties/a/maxLength"),
        (NUMBER, pa.array([math.nan]), "out_of_range", "field a is not a number of JSON"),
        (NUMBER, pa.array([(1 << 53) + 1]), "out_of_range", "field a is not a value of double"),
        (INTEGER, pa.array([1 << 63], pa.uint64()), "out_of_range", "field a is not a value of int64"),
        ({}, pa.array(["secret"]), "bad_text", "field a: the value cannot be read as JSON: expecting value"),
        ({}, pa.array(["1e999"]), "out_of_range", "a number is too large for a double"),
        ({}, pa.array(['"\\ud800"']), "value_not_utf8", "half of a character"),
        (
            {"type": "object", "additionalProperties": INTEGER}, pa.array([[("k", 1), ("k", 2)]], pa.map_(pa.string(), pa.int64())),
            "repeated_key", "field a has a key twice",
        ),
    ],
)  # fmt: skip
def test_unwritable_value_raises(schema: Any, value: pa.Array, code: str, reason: str) -> None:
    found, message = refused(pa.StructArray.from_arrays([value], names=["a"]), objects(a=schema))
    assert (found, reason in message, "secret" in message) == (code, True, False)


def test_unusable_types_and_schemas_are_rejected() -> None:
    with pytest.raises(TypeError, match="field a is string, and the schema needs int64"):
        encoder(objects(a=INTEGER)).encode(pa.array([{"a": "7"}]))
    with pytest.raises(ValueError, match="cannot be used"):
        JsonEncoder(registry(), "orders-value", {"type": "nothing"})
    with pytest.raises(ValueError, match="the type of the schema is AVRO, not JSON"):
        JsonEncoder(MemoryRegistry({7: '"int"', "a": '"int"'}), "a").encode(pa.array([1]))


def test_encoder_can_be_pickled() -> None:
    copy = pickle.loads(pickle.dumps(encoder(schema=SCHEMA, schema_id="prefix")))
    assert (copy.id_prefix, copy.encode(array(ROW))) == (b"\0\0\0\0\7", encoder().encode(array(ROW)))
