"""Values of JSON as columns by the JSON Schemas of a registry."""

from __future__ import annotations

import doctest
import json
import pickle
from typing import Any

import pyarrow as pa
import pytest

import letterhead as lh
from letterhead import arrow as lha
from letterhead.schemas import JsonDecoder, RegisteredSchema, json_decoder
from tests.helpers.memory_registry import MemoryRegistry

pytest.importorskip("jsonschema_rs")

DRAFT = {"$schema": "http://json-schema.org/draft-07/schema#"}


def registered(schema: Any, **references: Any) -> RegisteredSchema:
    text = schema if isinstance(schema, str) else json.dumps({**DRAFT, **schema})
    return RegisteredSchema("JSON", text, {name: registered(each) for name, each in references.items()})


def objects(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def decode(
    schema: Any, *texts: str | bytes, columns: Any = None, errors: Any = "raise", **references: Any
) -> pa.StructArray:
    registry = MemoryRegistry({1: registered(schema, **references)})
    values = [b"\0\0\0\0\1" + (text if isinstance(text, bytes) else text.encode()) for text in texts]
    return lha.decode_by_schema(pa.array(values, pa.binary()), JsonDecoder(registry, columns), errors=errors)


def error(schema: Any, text: str | bytes, **options: Any) -> tuple[str, str]:
    [row] = decode(schema, text, errors="column", **options).field("error").to_pylist()
    return row[0]["code"], row[0]["message"]


def test_examples_run() -> None:
    assert doctest.testmod(json_decoder).failed == 0


@pytest.mark.parametrize(
    ("schema", "type", "text", "value"),
    [
        ({"type": "string"}, pa.string(), '"a"', "a"),
        ({"type": "integer"}, pa.int64(), "9223372036854775807", (1 << 63) - 1),
        ({"type": "integer"}, pa.int64(), "3.0", 3),
        ({"type": "number"}, pa.float64(), "1", 1.0),
        ({"type": ["null", "number", "integer"]}, pa.float64(), "null", None),
        ({"type": "boolean"}, pa.bool_(), "true", True),
        ({"enum": ["a", "b", None]}, pa.string(), '"b"', "b"),
        ({"const": 1}, pa.string(), "1", "1"),
        ({"oneOf": [{"type": "null"}, {"type": "integer"}]}, pa.int64(), "1", 1),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, pa.string(), "1", "1"),
        ({}, pa.string(), '{"x": [1, null]}', '{"x":[1,null]}'),
        ({"type": "array", "items": {"type": "integer"}}, pa.list_(pa.int64()), "[1, 2]", [1, 2]),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, pa.map_(pa.string(), pa.int64()), '{"k": 1}', [("k", 1)]),
        (objects(x={"type": "integer"}), pa.struct([("x", pa.int64())]), '{"x": 1, "other": 2}', {"x": 1}),
        (
            {"allOf": [objects(x={"type": "integer"}), objects(y={"type": "string"})]},
            pa.struct([("x", pa.int64()), ("y", pa.string())]), '{"x": 1}', {"x": 1, "y": None},
        ),
    ],
)  # fmt: skip
def test_schema_types_map_to_arrow_types(schema: Any, type: pa.DataType, text: str, value: Any) -> None:
    rows = decode(objects(a=schema), f'{{"a": {text}}}')
    assert (rows.type.field("a").type, rows.to_pylist()) == (type, [{"a": value}])


def test_non_object_schema_has_column_value() -> None:
    assert decode({"type": "integer"}, "7").to_pylist() == [{"value": 7}]
    assert decode(objects(value={"type": "integer"}), '{"value": 7}').to_pylist() == [{"value": 7}]


def test_references_are_resolved_inside_and_between_schemas() -> None:
    city = {**objects(name={"$ref": "#/definitions/Name"}), "definitions": {"Name": {"type": "string", "minLength": 2}}}
    order = {
        **objects(id={"$ref": "#/definitions/Name"}, city={"$ref": "city"}),
        "definitions": {"Name": {"type": "integer"}},
    }
    rows = decode(order, '{"id": 1, "city": {"name": "ab"}}', city=city)
    assert rows.to_pylist() == [{"id": 1, "city": {"name": "ab"}}]
    code, message = error(order, '{"city": {"name": "a"}}', city=city)
    assert (code, message) == (
        "wrong_type",
        "schema 1: the schema does not allow the value, by definitions/Name/minLength",
    )


def test_recursive_schema_becomes_json_text() -> None:
    tree = {
        **objects(root={"$ref": "#/definitions/T"}),
        "definitions": {"T": objects(kids={"type": "array", "items": {"$ref": "#/definitions/T"}})},
    }
    rows = decode(tree, '{"root": {"kids": [{"kids": []}]}}')
    assert rows.to_pylist() == [{"root": {"kids": ['{"kids":[]}']}}]


def test_remote_references_are_not_fetched() -> None:
    with pytest.raises(ValueError, match="cannot be used"):
        decode(objects(a={"$ref": "http://127.0.0.1:1/a.json"}), "{}")


@pytest.mark.parametrize(
    ("schema", "text", "expected"),
    [
        (objects(a={"type": "integer"}), '{"a": "x"}', "wrong_type"),
        (objects(a={"type": "integer"}), '{"a": 9223372036854775808}', "out_of_range"),
        (objects(a={"type": "number"}), '{"a": 9007199254740993}', "out_of_range"),
        (objects(a={}), '{"a": 1, "a": 2}', "bad_text"),
        (objects(a={}), '{"a": NaN}', "bad_text"),
        (objects(a={}), '{"a": [0.12345678901234567891]}', "out_of_range"),
        (objects(a={}), '{"a": 1e400}', "out_of_range"),
        (objects(a={}), '{"a": 1e-400}', "out_of_range"),
        (objects(a={}), '{"a": 1', "bad_text"),
        (objects(a={"type": "string"}), b'{"a": "\xff"}', "value_not_utf8"),
        (objects(a={"type": "string"}), '{"a": "\\ud800"}', "value_not_utf8"),
        (objects(a={"type": "string"}), "[" * 100_000, "bad_text"),
    ],
)
def test_unreadable_value_is_error(schema: Any, text: str | bytes, expected: str) -> None:
    code, message = error(schema, text)
    assert (code, "schema 1: " in message) == (expected, True)
    rows = decode(schema, '{"a": null}' if schema == objects(a={}) else "{}", text, errors="null")
    assert rows.field("a").null_count >= 1
    with pytest.raises(lh.DecodeError, match="row 1") as caught:
        decode(schema, "{}", text)
    assert caught.value.code == expected


def test_values_of_older_schemas_have_latest_columns() -> None:
    old, new = (
        objects(id={"type": "integer"}, gone={"type": "string"}),
        objects(id={"type": "number"}, more={"type": "string"}),
    )
    registry = MemoryRegistry({1: registered(old), 2: registered(new), "orders-value": registered(new)})
    values = pa.array([b'\0\0\0\0\1{"id": 1, "gone": "g"}', b'\0\0\0\0\2{"id": 1.5, "more": "m"}'])
    decoder = pickle.loads(pickle.dumps(JsonDecoder(registry, subject="orders-value")))
    assert lha.decode_by_schema(values, decoder).to_pylist() == [{"id": 1.0, "more": None}, {"id": 1.5, "more": "m"}]
    with pytest.raises(ValueError, match="field 'id' that no column can hold"):
        lha.decode_by_schema(values, JsonDecoder(registry))
    own = JsonDecoder(registry, objects(gone={"type": "string"}))
    assert lha.decode_by_schema(values, own).to_pylist() == [{"gone": "g"}, {"gone": None}]


def test_unusable_schema_is_row_error() -> None:
    good, bad = registered(objects(a={"type": "integer"})), registered(objects(a={"$ref": "#/nothing"}))
    values = pa.array([b'\0\0\0\0\1{"a": 1}', b'\0\0\0\0\2{"a": 1}'])
    rows = lha.decode_by_schema(values, JsonDecoder(MemoryRegistry({1: good, 2: bad})), errors="column").to_pylist()
    assert [row["a"] for row in rows] == [1, None]
    assert rows[1]["error"][0]["message"].startswith("schema 2: the JSON schema cannot be used")


def test_unusable_schemas_are_rejected() -> None:
    with pytest.raises(ValueError, match="it is not JSON"):
        JsonDecoder(MemoryRegistry({}), "{")
    with pytest.raises(ValueError, match="cannot be used"):
        JsonDecoder(MemoryRegistry({}), {"type": "nothing"})
    with pytest.raises(ValueError, match="exclude each other"):
        JsonDecoder(MemoryRegistry({}), {}, subject="a")
    rows = lha.decode_by_schema(
        pa.array([b"\0\0\0\0\1{}"]), JsonDecoder(MemoryRegistry({1: '"int"'}), objects(a={})), errors="column"
    )
    assert rows.field("error")[0].as_py()[0]["message"] == "schema 1: its type is AVRO, not JSON"
