"""Values grouped and decoded by schema, compared with Confluent's serializers and deserializers."""

from __future__ import annotations

import contextlib
import doctest
import io
import json
import uuid
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from confluent_kafka.schema_registry import (
    SchemaRegistryClient,
    dual_schema_id_deserializer,
    header_schema_id_serializer,
    prefix_schema_id_serializer,
)
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.serde import SchemaId
from confluent_kafka.serialization import MessageField, SerializationContext
from hypothesis import given
from hypothesis import strategies as st

import letterhead as lh
from letterhead import arrow as lha
from letterhead.conventions import schemas as conventions_schemas
from tests.helpers.memory_registry import MemoryRegistry
from tests.helpers.pages import run

GUID = uuid.UUID("89791762-2336-4186-9674-299b90a802e2")
HEADER = "__value_schema_id"
V1 = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
V2 = {**V1, "fields": [*V1["fields"], {"name": "city", "type": ["null", "string"], "default": None}]}
COLUMNS = pa.schema([("id", pa.int64()), ("city", pa.string())])


def prefixed(id: int, body: bytes = b"") -> bytes:
    return b"\0" + id.to_bytes(4, "big") + body


def encoded(*messages: list[tuple[str, Any]]) -> pa.Array:
    return pa.array([lh.encode(headers, "kafka") for headers in messages])


def described(groups: list[lha.SchemaGroup]) -> list[Any]:
    return [
        (group.schema_id, group.message_indexes, group.rows.to_pylist(), group.values.to_pylist()) for group in groups
    ]


def test_examples_run() -> None:
    result = doctest.testmod(conventions_schemas)
    assert (result.failed, result.attempted > 0) == (0, True)


def topic(count: int = 40) -> tuple[MemoryRegistry, pa.Array, pa.Array, list[dict[str, Any]]]:
    """Write orders by two versions of a schema, with the id in front of the value or in a header."""
    registry = SchemaRegistryClient.new_client({"url": "mock://orders"})
    orders, values, headers = [], [], []
    serializers = {}
    for in_header, place in enumerate((prefix_schema_id_serializer, header_schema_id_serializer)):
        for version, schema in enumerate((V1, V2)):
            conf = {"schema.id.serializer": place}
            serializers[in_header, version] = AvroSerializer(registry, json.dumps(schema), conf=conf)
    for n in range(count):
        in_header, version = n % 2, n // 2 % 2
        order = {"id": n, "city": f"city {n}" if version else None}
        context = SerializationContext("orders", MessageField.VALUE, [])
        values.append(serializers[in_header, version](order, context))
        headers.append(lh.encode(context.headers, "kafka"))
        orders.append(order)
    versions = [registry.get_version("orders-value", version) for version in registry.get_versions("orders-value")]
    known = {key: json.loads(each.schema.schema_str) for each in versions for key in (each.schema_id, each.guid)}
    return MemoryRegistry({**known, "orders-value": V2}), pa.array(values), pa.array(headers), orders


def test_how_to_decodes_values_of_confluent_serializers(tmp_path: Any) -> None:
    registry, values, headers, orders = topic()
    names: dict[str, Any] = {"registry": registry, "table": pa.table({"value": values, "headers": headers})}
    names["contextlib"] = contextlib
    read = 'lh.read.topic("orders", bootstrap_servers="localhost:9092")'
    written: list[Any] = []
    names["write"] = lambda table, *topic: written.append(table)
    there = {
        read: "contextlib.nullcontext(table)",
        'lh.write.topic(encoded, "orders", bootstrap_servers="localhost:9092")': "write(encoded)",
    }
    run("docs/how-to/decode-avro.md", names, "python", there)
    [table] = written
    decoded = lha.decode_by_schema(table["value"], names["decoder"], headers=table["headers"])
    assert decoded.to_pylist() == [{"id": 7, "city": "Berlin"}]
    assert names["decoded"].to_pylist() == [{**order, "error": None} for order in orders]
    assert names["orders"]["value"].to_pylist() == orders
    assert [row["fields"] for row in names["sizes"].to_pylist()] == [
        1 + (order["city"] is not None) for order in orders
    ]
    groups = lha.by_schema_id(values, headers)
    ids = {type(group.schema_id) for group in groups}
    assert (len(groups), ids) == (4, {int, str})


@given(st.lists(st.tuples(st.sampled_from(["id", "guid", "header id", "header guid"]), st.integers(1, 4)), max_size=30))
def test_groups_match_confluent_deserializer(rows: list[tuple[str, int]]) -> None:
    values, headers, expected = [], [], []
    for n, (place, id) in enumerate(rows):
        schema_id = SchemaId("AVRO", id, str(uuid.UUID(int=id)))
        prefix = schema_id.guid_to_bytes() if "guid" in place else schema_id.id_to_bytes()
        body = b"%d" % n
        context = SerializationContext("t", MessageField.VALUE, [(HEADER, prefix)] if "header" in place else [])
        value = body if "header" in place else prefix + body
        read = SchemaId("AVRO")
        rest = dual_schema_id_deserializer(value, context, read).read()
        expected.append((n, str(read.guid) if "guid" in place else read.id, rest))
        values.append(value)
        headers.append(lh.encode(context.headers, "kafka"))
    groups = lha.by_schema_id(pa.array(values, pa.binary()), pa.array(headers, pa.binary()))
    rows = [
        (row, group.schema_id, value)
        for group in groups
        for row, value in zip(group.rows.to_pylist(), group.values.to_pylist(), strict=True)
    ]
    assert sorted(rows) == expected
    assert len({group.schema_id for group in groups}) == len(groups)
    assert [group.rows[0].as_py() for group in groups] == sorted(group.rows[0].as_py() for group in groups)
    assert all(group.rows.to_pylist() == sorted(group.rows.to_pylist()) for group in groups)


def test_protobuf_message_indexes_form_own_groups() -> None:
    ids = [SchemaId("PROTOBUF", 7, str(GUID), path).id_to_bytes() for path in ([1], [0], [1])]
    groups = lha.by_schema_id(pa.array([b"a", b"b", b"c"]), encoded(*([(HEADER, id)] for id in ids)))
    assert described(groups) == [(7, [1], [0, 2], [b"a", b"c"]), (7, [0], [1], [b"b"])]


def test_keys_lists_of_headers_and_other_libraries_are_accepted() -> None:
    headers = lha.decode(encoded([("__key_schema_id", prefixed(1))], [(HEADER, prefixed(2))]), "kafka")
    values = pa.chunked_array([[prefixed(3, b"a")], [prefixed(4, b"b")]])
    groups = lha.by_schema_id(values, pa.chunked_array([headers]), header="__key_schema_id")
    assert described(groups) == [(1, None, [0], [prefixed(3, b"a")]), (4, None, [1], [b"b"])]
    polars = pytest.importorskip("polars")
    assert described(lha.by_schema_id(polars.Series([prefixed(3, b"a")]))) == [(3, None, [0], [b"a"])]


def test_null_header_is_absent_and_null_value_is_in_no_group() -> None:
    headers = encoded([(HEADER, None)], [(HEADER, prefixed(7))], [])
    assert described(lha.by_schema_id(pa.array([prefixed(1, b"a"), None, None]), headers)) == [(1, None, [0], [b"a"])]
    assert lha.by_schema_id(pa.array([], pa.binary())) == []


BAD = [
    (b"", None, "truncated", 0, "the value is empty"),
    (b"{}", None, "bad_magic", 0, "the value begins with 123, neither 0 (an id) nor 1 (a guid)"),
    (b"\0\0\0", None, "truncated", 1, "the value has 3 bytes, and a schema id needs 5"),
    (b"\1\0\0", None, "truncated", 1, "the value has 3 bytes, and a schema id needs 17"),
    (b"{}", [(HEADER, b"\2")], "bad_magic", 0, "the magic byte is 2, neither 0 (an id) nor 1 (a guid)"),
    (b"{}", [(HEADER, b"")], "truncated", 0, "the value is empty, and an id has at least 5 bytes"),
    (b"\0" + (7).to_bytes(8, "big"), None, "out_of_range", 1, "the id is 0, and registries count from 1: 8 bytes of Apicurio are int64 in a header, and need id_bytes=8 in front of a value"),
    (b"{}", [(HEADER, (7).to_bytes(8, "big"))], "out_of_range", 1, "the id is 0, and registries count from 1: 8 bytes of Apicurio are int64 in a header, and need id_bytes=8 in front of a value"),
    (b"\0\xff\xff\xff\xffx", None, "out_of_range", 1, "the id is -1, and registries count from 1: 8 bytes of Apicurio are int64 in a header, and need id_bytes=8 in front of a value"),
    (b"{}", [("x", b"")], "bad_magic", 0, f"no header {HEADER}, and the value begins with 123, neither 0 (an id) nor 1 (a guid)"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "header", "code", "byte", "message"), BAD)
def test_value_without_id_is_rejected(value: bytes, header: Any, code: str, byte: int, message: str) -> None:
    values = pa.array([prefixed(1, b"a"), value, None])
    headers = None if header is None else encoded([], header, header)
    with pytest.raises(lh.DecodeError) as raised:
        lha.by_schema_id(values, headers)
    assert (raised.value.code, raised.value.row, raised.value.byte_offset) == (code, 1, byte)
    assert raised.value.message == message
    assert described(lha.by_schema_id(values, headers, errors="null")) == [(1, None, [0], [b"a"])]
    first, second, third = lha.decode_by_schema(values, lengths, LENGTHS, headers=headers, errors="column").to_pylist()
    assert (first, third) == ({"length": 1, "error": None}, {"length": None, "error": None})
    (error,) = second["error"]
    assert (second["length"], error["code"], error["message"]) == (None, code, message)


APICURIO = "apicurio.value.globalId"


def long(id: int) -> bytes:
    """An id as the serializers of Apicurio write it, behind the magic byte of a value or alone in a header."""
    return id.to_bytes(8, "big", signed=True)


def test_apicurio_ids_have_eight_bytes() -> None:
    values = pa.array([b"\0" + long(7) + b"a", b"\0" + long(1 << 40) + b"b", b"\0" + long(7) + b"c"])
    expected = [(7, None, [0, 2], [b"a", b"c"]), (1 << 40, None, [1], [b"b"])]
    assert described(lha.by_schema_id(values, id_bytes=8)) == expected
    # A value without the header has the id in front of it, with 8 bytes or 4.
    headers = encoded([(APICURIO, long(7))], [], [(APICURIO, long(9))])
    mixed = pa.array([b"a", values[1].as_py(), b"\0c"])
    expected = [(7, None, [0], [b"a"]), (1 << 40, None, [1], [b"b"]), (9, None, [2], [b"\0c"])]
    assert described(lha.by_schema_id(mixed, headers, header=APICURIO)) == expected
    mixed = pa.array([b"a", prefixed(3, b"b"), b"\0c"])
    expected[1] = (3, None, [1], [b"b"])
    assert described(lha.by_schema_id(mixed, headers, header=APICURIO, id_bytes=4)) == expected
    decoded = lha.decode_by_schema(mixed, lengths, LENGTHS, headers=headers, header=APICURIO, id_bytes=4)
    assert decoded.field("length").to_pylist() == [1, 1, 2]


@pytest.mark.parametrize(
    ("value", "id", "code", "message"),
    [
        (b"a", b"\0" * 7, "wrong_size", "the id has 7 bytes, and one of Apicurio has 8"),
        (b"a", long(0), "out_of_range", "the id is 0, and registries count from 1"),
        (b"a", long(-1), "out_of_range", "the id is -1, and registries count from 1"),
        (b"\0" + long(0), None, "out_of_range", "the id is 0, and registries count from 1"),
        (b"\1" * 17, None, "bad_magic", f"no header {APICURIO}, and the value begins with 1, not 0"),
        (b"\0" * 8, None, "truncated", f"no header {APICURIO}, and the value has 8 bytes, and a schema id needs 9"),
    ],
)
def test_malformed_apicurio_id_is_rejected(value: bytes, id: bytes | None, code: str, message: str) -> None:
    headers = encoded([] if id is None else [(APICURIO, id)])
    with pytest.raises(lh.DecodeError) as raised:
        lha.by_schema_id(pa.array([value]), headers, header=APICURIO)
    assert (raised.value.code, raised.value.message, raised.value.row) == (code, message, 0)
    assert lha.by_schema_id(pa.array([value]), headers, header=APICURIO, errors="null") == []


def test_id_size_must_match_header() -> None:
    values, headers = pa.array([b"\0" + long(7)]), encoded([])
    with pytest.raises(ValueError, match="id_bytes must be 4 or 8, not 5"):
        lha.by_schema_id(values, id_bytes=5)  # type: ignore[arg-type]
    with pytest.raises(
        ValueError, match=r"header '__value_schema_id' has one of Confluent: .* 'apicurio.value.globalId'"
    ):
        lha.by_schema_id(values, headers, id_bytes=8)
    assert described(lha.by_schema_id(values, headers, id_bytes=8, header=APICURIO)) == [(7, None, [0], [b""])]


LENGTHS = pa.schema([("length", pa.int32())])


def lengths(group: lha.SchemaGroup) -> Any:
    return pa.record_batch({"length": pa.compute.binary_length(group.values)})


def test_damaged_headers_are_errors_not_absent_ids() -> None:
    values, headers = pa.array([prefixed(1, b"a"), prefixed(1, b"b")]), pa.array([b"\x05", b"\0"])
    with pytest.raises(lh.DecodeError, match=r"header count -3 is negative \(byte 0, row 0\)"):
        lha.by_schema_id(values, headers)
    assert described(lha.by_schema_id(values, headers, errors="null")) == [(1, None, [1], [b"b"])]


def test_bad_value_leaves_rest_of_group_decoded() -> None:
    calls = []

    def decode(group: lha.SchemaGroup) -> Any:
        calls.append(len(group.values))
        return [
            fastavro.schemaless_reader(io.BytesIO(value), fastavro.parse_schema(V1))
            for value in group.values.to_pylist()
        ]

    values = [prefixed(1, b"\x02")] * 64
    values[37] = prefixed(1, b"\x80")
    decoded = lha.decode_by_schema(pa.array(values), decode, COLUMNS, errors="column")
    assert [row["id"] for row in decoded.to_pylist()] == [1] * 37 + [None] + [1] * 26
    (error,) = decoded[37]["error"].as_py()
    assert (error["code"], error["message"]) == (
        "wrong_type",
        "the decoder cannot read the value by schema 1 (IndexError)",
    )
    assert decoded.field("error").null_count == 63
    assert len(calls) == 13  # 64, 32, 16, 8, 4, 2 and 1, and the other half of each
    with pytest.raises(IndexError) as raised:
        lha.decode_by_schema(pa.array(values), decode, COLUMNS)
    assert raised.value.__notes__ == ["schema 1: 64 values, the first of them in row 0"]


def test_unknown_schema_is_set_aside() -> None:
    values = pa.array([prefixed(1, b"a"), prefixed(2, b"b"), prefixed(1, b"c")])

    def decode(group: lha.SchemaGroup) -> Any:
        return lengths(group) if group.schema_id == 1 else None

    assert lha.decode_by_schema(values, decode, LENGTHS, errors="null").field("length").to_pylist() == [1, None, 1]
    decoded = lha.decode_by_schema(values, decode, LENGTHS, errors="column", error_column="problem")
    (error,) = decoded[1]["problem"].as_py()
    assert (error["code"], error["message"]) == ("unknown_type", "the decoder does not know schema 2")
    with pytest.raises(lh.DecodeError, match=r"the decoder does not know schema 2 \(row 1\)"):
        lha.decode_by_schema(values, decode, LENGTHS)


@pytest.mark.parametrize("error", [ConnectionError("no registry"), ModuleNotFoundError("fastavro"), MemoryError()])
def test_errors_unrelated_to_values_are_raised(error: Exception) -> None:
    def decode(group: lha.SchemaGroup) -> Any:
        raise error

    with pytest.raises(type(error)):
        lha.decode_by_schema(pa.array([prefixed(1)]), decode, LENGTHS, errors="column")


@pytest.mark.parametrize(
    "decoder_rows",
    [
        pa.table({"length": [1, 2]}), pa.record_batch({"length": pa.array([1, 2], pa.int64())}),
        pa.array([{"length": 1}, {"length": 2}]), [{"length": 1, "more": 0}, {"length": 2}], [None, {}],
        pa.chunked_array([[{"length": 1}], [{"length": 2}]]),
    ],
    ids=lambda decoder_rows: type(decoder_rows).__name__,
)  # fmt: skip
def test_decoder_may_return_rows_in_any_form(decoder_rows: Any) -> None:
    decoded = lha.decode_by_schema(pa.array([prefixed(1), prefixed(1)]), lambda group: decoder_rows, LENGTHS)
    expected = [None, None] if decoder_rows == [None, {}] else [1, 2]
    assert (decoded.type, decoded.field("length").to_pylist()) == (pa.struct(list(LENGTHS)), expected)


def test_wrong_arguments_and_results_are_rejected() -> None:
    values = pa.array([prefixed(1), prefixed(1)])
    with pytest.raises(ValueError, match="the decoder returned 1 row for 2 values of schema 1"):
        lha.decode_by_schema(values, lambda group: [{"length": 1}], LENGTHS, errors="column")
    with pytest.raises(TypeError, match="decode must be a function"):
        lha.decode_by_schema(values, "decode", LENGTHS)
    with pytest.raises(TypeError, match="values are string, and serialized values are binary"):
        lha.by_schema_id(pa.array(["text"]))
    with pytest.raises(TypeError, match="a column is any Arrow array or stream"):
        lha.by_schema_id([b"text"])
    with pytest.raises(ValueError, match="2 values and 1 message in headers="):
        lha.by_schema_id(values, encoded([]))
    with pytest.raises(ValueError, match="unknown errors value 'column'"):
        lha.by_schema_id(values, errors="column")
    with pytest.raises(ValueError, match="error"):
        lha.decode_by_schema(values, lengths, pa.schema([("error", pa.string())]), errors="column")


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        ([{"length": "jane.doe"}], "the decoder returned values of column 'length' that are not int64"),
        (pa.table({"length": ["jane.doe"]}), "the decoder returned values of column 'length' that are not int64"),
        ([{"length": 1 << 77}], "the decoder returned values of column 'length' that are not int64"),
        (["jane.doe"], "the decoder returned rows that are not struct<length: int64>"),
    ],
)
def test_wrong_type_error_names_column_and_hides_value(returned: Any, message: str) -> None:
    schema = pa.schema([("length", pa.int64())])
    with pytest.raises(TypeError, match=message) as raised:
        lha.decode_by_schema(pa.array([prefixed(1)]), lambda group: returned, schema)
    assert "jane" not in str(raised.value) + "".join(raised.value.__notes__)
    assert raised.value.__suppress_context__
