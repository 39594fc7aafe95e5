"""Rows as values of Protobuf by a schema of a registry."""

from __future__ import annotations

import doctest
import pickle
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import letterhead as lh
from letterhead import arrow as lha
from letterhead.schemas import ProtobufDecoder, ProtobufEncoder, RegisteredSchema, encode_values, protobuf_encoder
from tests.helpers.memory_registry import MemoryRegistry

pytest.importorskip("grpc_tools")

from tests.schemas.test_protobuf_decoder import EMPTY, FULL, SCHEMA, message, registered

GUID = "89791762-2336-4186-9674-299b90a802e2"
# Fields without presence, which a row needs if it is not null.
DEFAULTS = {name: value for name, value in EMPTY.items() if value is not None}


def registry(schema: RegisteredSchema = SCHEMA) -> MemoryRegistry:
    return MemoryRegistry({7: schema, "orders-value": schema})


def encoder(schema: RegisteredSchema | str = SCHEMA, **options: Any) -> ProtobufEncoder:
    found = registered(f'syntax = "proto3"; message A {{ {schema} }}') if isinstance(schema, str) else schema
    return ProtobufEncoder(registry(found), "orders-value", **options)


def array(*rows: Any) -> pa.Array:
    """Rows in the types that the decoder returns."""
    return pa.array(rows, pa.struct(list(ProtobufDecoder(registry(), subject="orders-value").bind([]).schema)))


def test_examples_run() -> None:
    assert doctest.testmod(protobuf_encoder).failed == 0


def test_values_match_protobuf_classes() -> None:
    values = encoder().encode(array(FULL, None, EMPTY)).to_pylist()
    assert values == [message().SerializeToString(deterministic=True), None, b""]


@pytest.mark.parametrize("place", ["header", "prefix"])
def test_encoded_values_round_trip(place: Any) -> None:
    rows = pa.table({"value": array(FULL, EMPTY, None)})
    table = encode_values(rows, encoder(schema_id=place)).read_all()
    headers = table["headers"] if place == "header" else None
    decoded = lha.decode_by_schema(table["value"], ProtobufDecoder(registry()), headers=headers)
    assert decoded.to_pylist()[:2] == [FULL, EMPTY]


def test_type_path_follows_id() -> None:
    table = pa.table({"value": [{"id": 1}]})
    assert (
        encode_values(table, encoder("int32 id = 1;", schema_id="prefix")).read_all()["value"][0].as_py()
        == b"\0\0\0\0\7\0\x08\1"
    )
    by_guid = MemoryRegistry({7: SCHEMA, GUID: SCHEMA, "orders-value": SCHEMA})
    [[header]] = encode_values(table, ProtobufEncoder(by_guid, "orders-value")).read_all()["headers"].to_pylist()
    assert header == {"key": "__value_schema_id", "value": b"\1" + bytes.fromhex(GUID.replace("-", "")) + b"\0"}


def test_fields_missing_from_rows_are_not_written() -> None:
    rows = pa.array([{"id": 7, "city": {}}, {"id": 8, "city": {"name": "B"}}])
    assert encoder().encode(pa.array([{"id": 7}])).to_pylist() == [b"\x08\7"]
    with pytest.raises(lh.EncodeError, match=r"field city\.name is null.*row 0"):
        encoder().encode(rows)


def test_maps_and_lists_of_messages_are_written() -> None:
    text = "message B { int32 x = 1; } repeated B items = 1; map<string, B> by = 2; map<int32, bytes> raw = 3; repeated int64 n = 4;"
    row = {"items": [{"x": 1}, {"x": 0}], "by": [("k", {"x": 2})], "raw": [(5, b"\0")], "n": [1, 2]}
    own = registry(encoder(text)._registry.latest("orders-value"))  # type: ignore[arg-type]
    decoder = ProtobufDecoder(own, subject="orders-value")
    rows = pa.table({"value": pa.array([row], pa.struct(list(decoder.bind([]).schema)))})
    table = encode_values(rows, encoder(text, schema_id="prefix")).read_all()
    assert lha.decode_by_schema(table["value"], decoder).to_pylist() == [row]


@pytest.mark.parametrize(
    ("field", "value", "code", "reason"),
    [
        ("id", None, "null_field", "field id is null"),
        ("tags", ["x", None], "null_field", r"field tags\[\] is null"),
        ("counts", [("k", 1), ("k", 2)], "repeated_key", "field counts has a key twice"),
        ("counts", [("k", None)], "null_field", r"field counts\[\] is null"),
        ("state", "secret", "out_of_range", "field state is none of the names of the enum"),
        ("small", 1 << 32, "out_of_range", "field small is not a value of uint32"),
        ("big", Decimal(-1), "out_of_range", "field big is not a value of uint64"),
        ("text", "secret", "field_not_carried", "fields text and number exclude each other"),
        ("at", {"seconds": None, "nanos": 1}, "null_field", r"field at\.seconds is null"),
    ],
)
def test_unwritable_value_raises(field: str, value: Any, code: str, reason: str) -> None:
    with pytest.raises(lh.EncodeError, match=reason) as caught:
        encoder().encode(array(None, FULL, {**FULL, field: value}))
    assert (caught.value.code, caught.value.row, "secret" in str(caught.value)) == (code, 2, False)


@pytest.mark.parametrize(
    ("text", "values", "written"),
    [
        ("int32", pa.array([1 << 31]), None),
        ("int32", pa.array(["1"]), TypeError),
        ("uint64", pa.array([(1 << 64) - 1], pa.uint64()), Decimal((1 << 64) - 1)),
        ("uint64", pa.array([7]), Decimal(7)),
        ("uint64", pa.array([-1]), None),
        ("uint64", pa.array([Decimal("0.5")]), None),
        ("float", pa.array([0.1]), None),
        ("float", pa.array([0.5]), 0.5),
        ("google.protobuf.UInt32Value", pa.array([1 << 32]), None),
        ("google.protobuf.UInt32Value", pa.array([0]), 0),
    ],
)
def test_value_is_exact_or_raises(text: str, values: pa.Array, written: Any) -> None:
    schema = registered(f'syntax = "proto3"; import "google/protobuf/wrappers.proto"; message A {{ {text} a = 1; }}')
    rows = pa.StructArray.from_arrays([values], names=["a"])
    if written is None:
        with pytest.raises(lh.EncodeError, match="field a is not a value of") as caught:
            encoder(schema).encode(pa.concat_arrays([pa.nulls(2, rows.type), rows]))
        assert caught.value.row == 2
    elif written is TypeError:
        with pytest.raises(TypeError):
            encoder(schema).encode(rows)
    else:
        table = encode_values(pa.table({"value": rows}), encoder(schema, schema_id="prefix")).read_all()
        decoded = lha.decode_by_schema(table["value"], ProtobufDecoder(registry(schema)))
        assert decoded.to_pylist() == [{"a": written}]


def test_required_proto2_fields_are_needed() -> None:
    schema = registered('syntax = "proto2"; message A { required int32 a = 1; optional int32 b = 2; }')
    assert encoder(schema).encode(pa.array([{"a": 1}])).to_pylist() == [b"\x08\1"]
    with pytest.raises(lh.EncodeError, match="the schema requires a"):
        encoder(schema).encode(pa.array([{"b": 1}]))


def test_unusable_schemas_are_rejected() -> None:
    with pytest.raises(ValueError, match="contains itself"):
        encoder("A a = 1;").encode(pa.array([{}]))
    with pytest.raises(ValueError, match="cannot be used"):
        ProtobufEncoder(registry(), "orders-value", "message {")


def test_encoder_can_be_pickled() -> None:
    copy = pickle.loads(pickle.dumps(encoder(schema_id="prefix")))
    assert (copy.id_prefix, copy.encode(array(FULL))) == (b"\0\0\0\0\7\0", encoder().encode(array(FULL)))
