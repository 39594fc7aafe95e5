"""Rows as values of Avro by a schema of a registry."""

from __future__ import annotations

import datetime
import decimal
import doctest
import io
import json
import pickle
from typing import Any

import fastavro
import pyarrow as pa
import pytest

import letterhead as lh
from letterhead import arrow as lha
from letterhead.schemas import AvroDecoder, AvroEncoder, avro_encoder, encode_values, encoded_streams
from tests.helpers.memory_registry import MemoryRegistry

GUID = "89791762-2336-4186-9674-299b90a802e2"


def record(*fields: tuple[str, Any], name: str = "Order") -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": name, "type": type} for name, type in fields]}


PLACE = record(("x", "int"), ("y", ["null", "double"]), name="Place")
SCHEMA = record(
    ("id", "long"),
    ("city", ["null", "string"]),
    ("note", ["string", "null"]),
    ("amount", {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}),
    ("at", {"type": "long", "logicalType": "timestamp-micros"}),
    ("day", {"type": "int", "logicalType": "date"}),
    ("state", {"type": "enum", "name": "State", "symbols": ["NEW", "PAID"]}),
    ("uid", {"type": "string", "logicalType": "uuid"}),
    ("tags", {"type": "array", "items": ["null", "string"]}),
    ("counts", {"type": "map", "values": "int"}),
    ("places", {"type": "array", "items": PLACE}),
    ("home", ["null", "Place"]),
    ("hash", {"type": "fixed", "name": "Hash", "size": 4}),
    ("ok", "boolean"),
)
ROW = {
    "id": 1 << 40, "city": None, "note": "n", "amount": decimal.Decimal("1.50"), "day": datetime.date(2026, 1, 2),
    "at": datetime.datetime(2026, 1, 1, 0, 0, 0, 7, tzinfo=datetime.UTC), "state": "PAID", "uid": GUID, "tags": ["a", None],
    "counts": {"k": 1}, "places": [{"x": 1, "y": None}, {"x": -1, "y": 0.5}], "home": {"x": 3, "y": 2.0}, "hash": b"abcd", "ok": True,
}  # fmt: skip
OTHER = {**ROW, "city": "c", "note": None, "tags": [], "counts": {}, "places": [], "home": None, "ok": False}


def registry(schema: Any = SCHEMA) -> MemoryRegistry:
    return MemoryRegistry({7: schema, "orders-value": schema})


def encoder(schema: Any = SCHEMA, **options: Any) -> AvroEncoder:
    return AvroEncoder(registry(schema), "orders-value", **options)


def array(*rows: Any, schema: Any = SCHEMA) -> pa.Array:
    """Rows in the types that the decoder returns."""
    type = pa.struct(list(AvroDecoder(registry(), schema).bind([]).schema))
    maps = [
        row
        and {
            name: [*each.items()] if isinstance(each, dict) and name == "counts" else each for name, each in row.items()
        }
        for row in rows
    ]
    return pa.array(maps, type)


def read(value: bytes, schema: Any = SCHEMA) -> Any:
    return fastavro.schemaless_reader(io.BytesIO(value), fastavro.parse_schema(schema), None)


@pytest.mark.parametrize("module", [avro_encoder, encoded_streams])
def test_examples_run(module: Any) -> None:
    assert doctest.testmod(module).failed == 0


def test_values_match_fastavro() -> None:
    values = encoder().encode(array(ROW, None, OTHER))
    assert values[1].as_py() is None
    for value, row in zip(values.to_pylist()[::2], (ROW, OTHER), strict=True):
        out = io.BytesIO()
        fastavro.schemaless_writer(out, fastavro.parse_schema(SCHEMA), row)
        assert value == out.getvalue()


def test_column_slice_is_encoded() -> None:
    rows = array(OTHER, ROW, ROW, OTHER, ROW)
    assert encoder().encode(rows.slice(2, 2)).equals(encoder().encode(array(ROW, OTHER)))


def test_encoded_values_round_trip() -> None:
    rows = pa.table({"value": array(ROW, OTHER, None), "key": ["a", "b", "c"]})
    for place in ("header", "prefix"):
        table = encode_values(rows, encoder(schema_id=place)).read_all()
        headers = table["headers"] if place == "header" else None
        decoded = lha.decode_by_schema(table["value"], AvroDecoder(registry()), headers=headers)
        assert decoded.to_pylist()[:2] == rows["value"].to_pylist()[:2]
        assert table["key"].to_pylist() == ["a", "b", "c"]


def test_ids_are_written_in_headers_or_prefix() -> None:
    simple = record(("id", "int"))
    table = pa.table({"value": [{"id": 1}, None]})
    assert encode_values(table, encoder(simple, schema_id="prefix")).read_all().to_pydict() == {
        "value": [b"\0\0\0\0\x07\x02", None]
    }
    result = encode_values(table, encoder(simple)).read_all()
    assert result["headers"].to_pylist() == [[{"key": "__value_schema_id", "value": b"\0\0\0\0\x07"}], []]
    # pyarrow infers these types for messages without headers.
    for type in (pa.null(), pa.list_(pa.null())):
        assert encode_values(table.append_column("headers", pa.nulls(2, type)), encoder(simple)).read_all() == result
    by_guid = AvroEncoder(MemoryRegistry({7: simple, GUID: simple, "orders-value": simple}), "orders-value")
    result = encode_values(table, by_guid, header="__key_schema_id").read_all()
    assert result["headers"].to_pylist()[0] == [
        {"key": "__key_schema_id", "value": b"\1" + bytes.fromhex(GUID.replace("-", ""))}
    ]


def test_other_headers_stay_and_old_id_is_replaced() -> None:
    type = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    headers = [[{"key": "__value_schema_id", "value": b"old"}, {"key": "a", "value": None}], None]
    table = pa.table({"value": [{"id": 1}, {"id": 2}], "headers": pa.array(headers, type)})
    result = encode_values(table, encoder(record(("id", "int")))).read_all()
    own = {"key": "__value_schema_id", "value": b"\0\0\0\0\x07"}
    assert result["headers"].to_pylist() == [[own, {"key": "a", "value": None}], [own]]


def test_non_record_schema_encodes_plain_column() -> None:
    for schema, values in (("string", ["a", None]), ("long", [7, None]), ({"type": "array", "items": "int"}, [[1, 2]])):
        assert [
            read(each, schema) if each else None for each in encoder(schema).encode(pa.array(values)).to_pylist()
        ] == values


@pytest.mark.parametrize(
    ("type", "values", "written"),
    [
        ("int", pa.array([1 << 31]), None),
        ("int", pa.array([7], pa.uint64()), 7),
        ("int", pa.array(["7"]), TypeError),
        ("int", pa.array([7.0]), TypeError),
        ("boolean", pa.array([1]), TypeError),
        ("float", pa.array([0.1]), None),
        ("float", pa.array([0.5]), 0.5),
        ("double", pa.array([1 << 53], pa.int64()), float(1 << 53)),
        ("double", pa.array([(1 << 53) + 1]), None),
        ("string", pa.array([b"a"]), TypeError),
        ("string", pa.array(["a"]).dictionary_encode(), "a"),
        ("bytes", pa.array(["a"]), TypeError),
        ({"type": "int", "logicalType": "time-millis"}, pa.array([1001], pa.time64("us")), None),
        ({"type": "long", "logicalType": "timestamp-millis"}, pa.array([1], pa.timestamp("us")), TypeError),
        ({"type": "long", "logicalType": "timestamp-millis"}, pa.array([1], pa.timestamp("us", "UTC")), None),
        ({"type": "bytes", "logicalType": "decimal", "precision": 3, "scale": 1}, pa.array([decimal.Decimal("1.55")]), None),
        ({"type": "bytes", "logicalType": "decimal", "precision": 3, "scale": 1}, pa.array([decimal.Decimal("100.0")]), None),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, pa.array(["B"]), None),
        ({"type": "string", "logicalType": "uuid"}, pa.array(["x"]), None),
        ({"type": "fixed", "name": "F", "size": 2}, pa.array([b"abc"]), None),
        (["int", "string"], pa.array([1]), TypeError),
    ],
)  # fmt: skip
def test_value_is_exact_or_raises(type: Any, values: pa.Array, written: Any) -> None:
    of_type = encoder(type)
    if written is TypeError:
        with pytest.raises(TypeError):
            of_type.encode(values)
    elif written is None:
        with pytest.raises(lh.EncodeError) as caught:
            of_type.encode(pa.concat_arrays([pa.nulls(2, values.type), values]))
        assert caught.value.row == 2
    else:
        assert [read(each, type) for each in of_type.encode(values).to_pylist()] == [written]


@pytest.mark.parametrize("field", ["id", "tags", "counts", "places", "state", "hash", "ok", "amount"])
def test_null_raises_where_schema_requires_value(field: str) -> None:
    with pytest.raises(lh.EncodeError, match=f"field {field} is null") as caught:
        encoder().encode(array(None, ROW, {**OTHER, field: None}))
    assert caught.value.row == 2


def test_nulls_inside_lists_and_structs_name_their_row() -> None:
    damaged = {**ROW, "places": [{"x": 1, "y": 1.0}, {"x": None, "y": None}]}
    with pytest.raises(lh.EncodeError, match="field x is null") as caught:
        encoder().encode(array(OTHER, ROW, damaged))
    assert caught.value.row == 2
    with pytest.raises(lh.EncodeError, match="field x is null") as caught:
        encoder().encode(array(OTHER, {**ROW, "home": {"x": None, "y": None}}))
    assert caught.value.row == 1


def test_error_counts_rows_of_earlier_batches() -> None:
    schema = record(("id", "int"))
    batches = pa.Table.from_batches(pa.table({"value": [{"id": 1}, {"id": 2}, {"id": 1 << 40}]}).to_batches(2))
    with pytest.raises(lh.EncodeError, match="row 2"):
        encode_values(batches, encoder(schema)).read_all()


def test_missing_and_unknown_fields_are_rejected() -> None:
    schema = record(("id", "int"), ("city", ["null", "string"]))
    with pytest.raises(TypeError, match="field city is missing"):
        encoder(schema).encode(pa.array([{"id": 1}]))
    with pytest.raises(TypeError, match="the schema has no field other"):
        encoder(schema).encode(pa.array([{"id": 1, "city": "", "other": 1}]))
    with pytest.raises(TypeError, match="the column is int64"):
        encoder(schema).encode(pa.array([1]))


def test_unusable_arguments_are_rejected() -> None:
    with pytest.raises(ValueError, match="schema_id value"):
        encoder(schema_id="body")
    with pytest.raises(ValueError, match="needs a schema"):
        encoder(register=True)
    with pytest.raises(ValueError, match="it is not JSON"):
        AvroEncoder(registry(), "orders-value", "{")
    with pytest.raises(ValueError, match="no subject 'nothing'"):
        AvroEncoder(registry(), "nothing").encode(pa.array([1]))
    with pytest.raises(ValueError, match="pass register=True"):
        AvroEncoder(registry(), "orders-value", '"int"').id_prefix  # noqa: B018
    with pytest.raises(ValueError, match="0 columns 'value'"):
        encode_values(pa.table({"key": [1]}), encoder())
    with pytest.raises(TypeError, match="ids need lists of headers"):
        encode_values(pa.table({"value": array(ROW), "headers": [b""]}), encoder())


def test_encoder_can_be_pickled() -> None:
    own = AvroEncoder(registry(), "orders-value", json.dumps(SCHEMA), schema_id="prefix")
    copy = pickle.loads(pickle.dumps(own))
    assert (copy.id_prefix, copy.encode(array(ROW))) == (own.id_prefix, own.encode(array(ROW)))
