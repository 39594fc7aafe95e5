"""Values of Protobuf as columns by the schemas of a registry."""

from __future__ import annotations

import base64
import decimal
import doctest
import pickle
from typing import Any

import pyarrow as pa
import pytest

import letterhead as lh
from letterhead import arrow as lha
from letterhead.schemas import ProtobufDecoder, RegisteredSchema, protobuf_decoder
from tests.helpers.memory_registry import MemoryRegistry, headers

pytest.importorskip("grpc_tools")

CITY = 'syntax = "proto3"; package c; message City { string name = 1; }'
ORDER = """
syntax = "proto3"; package o;
import "c/city.proto"; import "google/protobuf/timestamp.proto"; import "google/protobuf/wrappers.proto";
message Order {
  int64 id = 1; c.City city = 2; google.protobuf.Timestamp at = 3; repeated string tags = 4; map<string, int32> counts = 5;
  enum State { NEW = 0; PAID = 1; } State state = 6;
  oneof choice { string text = 7; int32 number = 8; }
  message Line { bool free = 1; } Line line = 9; optional int32 extra = 10;
  google.protobuf.StringValue note = 11; uint64 big = 12; bytes raw = 13; float ratio = 14; uint32 small = 15;
}
message Other { int32 x = 1; }
"""


def registered(text: str, **references: RegisteredSchema) -> RegisteredSchema:
    return RegisteredSchema(
        "PROTOBUF", text, {name.replace("__", "/") + ".proto": each for name, each in references.items()}
    )


SCHEMA = registered(ORDER, c__city=registered(CITY))
FULL = {
    "id": 1 << 40, "city": {"name": "B"}, "at": {"seconds": 5, "nanos": 7}, "tags": ["x"], "counts": [("k", 1)], "state": "PAID", "text": None,
    "number": 3, "line": {"free": True}, "extra": 0, "note": "n", "big": decimal.Decimal((1 << 64) - 1), "raw": b"\0", "ratio": 0.5, "small": (1 << 32) - 1,
}  # fmt: skip
EMPTY = {
    **dict.fromkeys(FULL), "id": 0, "tags": [], "counts": [], "state": "NEW", "big": decimal.Decimal(0), "raw": b"", "ratio": 0.0, "small": 0
}  # fmt: skip


def message() -> Any:
    """Return a message of all fields, by the classes of Protobuf."""
    from google.protobuf.message_factory import GetMessageClass

    from letterhead.schemas.protobuf_schemas import message_type

    order = GetMessageClass(message_type(SCHEMA, [0]))(
        id=1 << 40, tags=["x"], counts={"k": 1}, state=1, number=3, extra=0, big=(1 << 64) - 1, raw=b"\0", ratio=0.5, small=(1 << 32) - 1
    )  # fmt: skip
    order.city.name, order.at.seconds, order.at.nanos, order.line.free, order.note.value = "B", 5, 7, True, "n"
    return order


def decode(*values: bytes, schema: RegisteredSchema = SCHEMA, errors: Any = "raise") -> pa.StructArray:
    registry = MemoryRegistry({1: schema, "orders-value": schema})
    column = pa.array([b"\0\0\0\0\1" + value for value in values], pa.binary())
    return lha.decode_by_schema(column, ProtobufDecoder(registry, subject="orders-value"), errors=errors)


def errors_of(*values: bytes) -> list[tuple[str, str] | None]:
    rows = decode(*values, errors="column").field("error").to_pylist()
    return [row and (row[0]["code"], row[0]["message"]) for row in rows]


def test_examples_run() -> None:
    assert doctest.testmod(protobuf_decoder).failed == 0


def test_fields_are_columns() -> None:
    whole = message().SerializeToString()
    # A count of 0 stands for the first message type, and so does its path.
    assert decode(b"\0" + whole, b"\0", b"\2\0" + whole).to_pylist() == [FULL, EMPTY, FULL]


def test_type_path_in_header_is_read() -> None:
    values = pa.array([message().SerializeToString()])
    registry = MemoryRegistry({1: SCHEMA})
    for path in (b"\2\0", b"\0"):
        rows = lha.decode_by_schema(values, ProtobufDecoder(registry), headers=headers(b"\0\0\0\0\1" + path))
        assert rows.to_pylist() == [FULL]


def test_serialized_schema_is_read() -> None:
    from letterhead.schemas.protobuf_schemas import message_type

    def serialized(schema: RegisteredSchema, references: dict[str, RegisteredSchema]) -> RegisteredSchema:
        from google.protobuf import descriptor_pb2

        file = descriptor_pb2.FileDescriptorProto()
        message_type(schema, [0]).file.CopyToProto(file)
        return RegisteredSchema("PROTOBUF", base64.b64encode(file.SerializeToString()).decode(), references)

    city = serialized(registered(CITY), {})
    schema = serialized(SCHEMA, {"c/city.proto": city})
    assert decode(b"\0" + message().SerializeToString(), schema=schema).to_pylist() == [FULL]


def test_unreadable_values_are_errors() -> None:
    expected = {
        b"\0": None,
        b"\0\xff": ("wrong_type", "the value is not a message of its type"),
        b"\2\2\x08\1": ("unknown_type", "the value is a o.Other, and the columns are those of o.Order"),
        b"\2\4": ("wrong_type", "the Protobuf schema cannot be used: it has no message type with the indexes 2"),
        b"\2\x80": ("truncated", "the bytes end inside a message index"),
        b"\0\x30\x09": ("out_of_range", "state is 9, for which the enum has no name"),
        b"": ("truncated", "the bytes end inside a message index"),
        b"\1": ("negative_count", "the number of message indexes is -1"),
        b"\2\xff\xff\xff\xff\xff": ("varint_too_long", "a message index goes on after its fifth byte"),
    }
    located = [error and (error[0], f"schema 1: {error[1]}") for error in expected.values()]
    assert errors_of(*expected) == located
    assert decode(*expected, errors="null").field("id").null_count == len(expected) - 1
    with pytest.raises(lh.DecodeError, match=r"^protobuf: schema 1: .*row 1"):
        decode(b"\0", b"\0\xff")


def test_older_values_have_latest_columns() -> None:
    old = registered('syntax = "proto3"; message A { int32 id = 1; string gone = 2; }')
    new = registered('syntax = "proto3"; message A { int64 id = 1; float x = 3; }')
    other = registered('syntax = "proto3"; message A { string id = 1; }')
    registry = MemoryRegistry({1: old, 2: new, 3: other, "a": new})
    values = pa.array([b"\0\0\0\0\1\0\x08\x05", b"\0\0\0\0\2\0\x08\x06", b"\0\0\0\0\3\0\x0a\x01x"])
    decoder = pickle.loads(pickle.dumps(ProtobufDecoder(registry, subject="a")))
    rows = lha.decode_by_schema(values, decoder, errors="column").to_pylist()
    assert [row["id"] for row in rows] == [5, 6, None]
    assert rows[2]["error"][0]["message"] == "schema 3: field id is not int64, which its column is"


@pytest.mark.parametrize(
    ("schema", "error"),
    [
        (registered("message {"), "cannot be used"),
        (registered('syntax = "proto3"; message A { A a = 1; }'), "A contains itself"),
        (registered('syntax = "proto3"; import "b.proto"; message A { }'), "cannot be used"),
        (registered('syntax = "proto3";'), "no message type"),
        (RegisteredSchema("PROTOBUF", CITY, {"../x.proto": registered(CITY)}), "no path of a file"),
        (RegisteredSchema("PROTOBUF", CITY, {"/x.proto": registered(CITY)}), "no path of a file"),
        (RegisteredSchema("AVRO", '"int"', {}), "its type is AVRO"),
    ],
)
def test_unusable_schemas_are_rejected(schema: RegisteredSchema, error: str) -> None:
    with pytest.raises(ValueError, match=error):
        decode(b"\0", schema=schema)
