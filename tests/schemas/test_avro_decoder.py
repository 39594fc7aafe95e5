"""Values of Avro as columns by the schemas of a registry."""

from __future__ import annotations

import doctest
import pickle
import uuid
from typing import Any

import pyarrow as pa
import pytest

import letterhead as lh
from letterhead import arrow as lha
from letterhead.schemas import AvroDecoder, RegisteredSchema, Registry
from letterhead.schemas import avro as avro_module
from tests.helpers.memory_registry import MemoryRegistry, avro, headers, prefixed


def record(*fields: Any, **more: Any) -> dict[str, Any]:
    named = [
        field if isinstance(field, dict) else dict(zip(("name", "type", "default"), field, strict=False))
        for field in fields
    ]
    return {"type": "record", "name": "Order", "fields": named, **more}


V1 = record(("id", "int"), ("old", "string"))
V2 = record(("id", "long"), ("city", ["null", "string"], None))
V3 = record({"name": "number", "type": "double", "aliases": ["id"]}, ("city", "string", "?"))
REGISTRY = MemoryRegistry({1: V1, 2: V2, 3: V3, "orders-value": V3})
VALUES = pa.array(
    [
        prefixed(1, V1, {"id": 1, "old": "a"}),
        prefixed(2, V2, {"id": 2, "city": "x"}),
        None,
        prefixed(3, V3, {"number": 2.5, "city": "y"}),
    ]
)


def test_examples_run() -> None:
    result = doctest.testmod(avro_module)
    assert (result.failed, result.attempted > 0) == (0, True)


def test_values_of_all_versions_have_latest_columns() -> None:
    rows = lha.decode_by_schema(VALUES, AvroDecoder(REGISTRY, subject="orders-value"))
    assert rows.type == pa.struct([("number", pa.float64()), ("city", pa.string())])
    assert rows.to_pylist() == [
        {"number": 1.0, "city": "?"},
        {"number": 2.0, "city": "x"},
        {"number": None, "city": None},
        {"number": 2.5, "city": "y"},
    ]


def test_old_schema_reads_new_values() -> None:
    rows = lha.decode_by_schema(VALUES[1:2], AvroDecoder(REGISTRY, record(("id", "long"), ("old", "string", "-"))))
    assert rows.to_pylist() == [{"id": 2, "old": "-"}]


def test_columns_without_schema_merge_all_schemas() -> None:
    rows = lha.decode_by_schema(VALUES, AvroDecoder(REGISTRY))
    names = [("id", pa.int64()), ("old", pa.string()), ("city", pa.string()), ("number", pa.float64())]
    assert rows.type == pa.struct(names)
    assert [tuple(row.values()) for row in rows.to_pylist()] == [
        (1, "a", None, None), (2, None, "x", None), (None,) * 4, (None, None, "y", 2.5)
    ]  # fmt: skip


def test_types_without_common_one_raise() -> None:
    schemas = {1: record(("a", "int")), 2: record(("a", "string"))}
    values = pa.array([prefixed(1, schemas[1], {"a": 1}), prefixed(2, schemas[2], {"a": "x"})])
    with pytest.raises(ValueError, match="field 'a' that no column can hold"):
        lha.decode_by_schema(values, AvroDecoder(MemoryRegistry(schemas)))


def test_ids_and_guids_come_from_headers() -> None:
    guid = uuid.UUID("89791762-2336-4186-9674-299b90a802e2")
    registry = MemoryRegistry({1: V1, str(guid): V2})
    values = [avro(V1, {"id": 1, "old": "a"}), avro(V2, {"id": 2, "city": "x"}), prefixed(1, V1, {"id": 3, "old": "c"})]
    ids = headers(b"\0\0\0\0\1", b"\1" + guid.bytes, None)
    rows = lha.decode_by_schema(pa.array(values), AvroDecoder(registry), headers=ids)
    assert rows.field("id").to_pylist() == [1, 2, 3]


def test_each_schema_is_requested_once() -> None:
    registry = MemoryRegistry({1: V1, 2: V2})
    decoder = AvroDecoder(registry)
    for _ in range(3):
        lha.decode_by_schema(VALUES[:3], decoder)
    assert sorted(registry.requests) == [1, 2]


def test_bad_values_are_row_errors() -> None:
    good = prefixed(1, V1, {"id": 7, "old": "a"})
    values = pa.array([good, good[:-1], good, good + b"\0", b"\0\0\0\0\x09", b"\x07", good, None])
    rows = lha.decode_by_schema(values, AvroDecoder(REGISTRY, V1), errors="column")
    assert rows.field("id").to_pylist() == [7, None, 7, None, None, None, 7, None]
    codes = [error and error[0]["code"] for error in rows.field("error").to_pylist()]
    assert codes == [None, "truncated", None, "trailing_bytes", "unknown_type", "bad_magic", None, None]
    assert lha.decode_by_schema(values, AvroDecoder(REGISTRY, V1), errors="null").field("id").null_count == 5
    with pytest.raises(lh.DecodeError, match=r"^avro: .* \(byte 2, row 1\)") as caught:
        lha.decode_by_schema(values[:4], AvroDecoder(REGISTRY, V1))
    assert (caught.value.code, caught.value.row, caught.value.format) == ("truncated", 1, "avro")


def test_many_bad_values_lose_no_good_one() -> None:
    good = prefixed(2, V2, {"id": 7, "city": "a"})
    without = prefixed(2, V2, {"id": 7, "city": None})
    # The columns do not allow null; the third value is damaged.
    values = pa.array([good, without, good[:-1]] * 50_000)
    rows = lha.decode_by_schema(
        values, AvroDecoder(REGISTRY, record(("id", "long"), ("city", "string"))), errors="column"
    )
    assert rows.field("city").to_pylist() == ["a", None, None] * 50_000
    codes = [error and error[0]["code"] for error in rows.field("error")[:3].to_pylist()]
    assert codes == [None, "wrong_type", "truncated"]


def test_non_utf8_bytes_for_text_column_are_row_errors() -> None:
    schema = record(("a", "bytes"))
    values = pa.array([prefixed(1, schema, {"a": each}) for each in (b"x", b"\xff", b"y")])
    decoder = AvroDecoder(MemoryRegistry({1: schema}), record(("a", "string")))
    assert lha.decode_by_schema(values, decoder, errors="null").field("a").to_pylist() == ["x", None, "y"]


def test_unresolvable_schema_is_row_error() -> None:
    rows = lha.decode_by_schema(VALUES, AvroDecoder(REGISTRY, V1), errors="column")
    assert rows.field("id").to_pylist() == [1, None, None, None]
    messages = [error and error[0]["message"] for error in rows.field("error").to_pylist()]
    assert messages[0] is None
    assert str(messages[1]).startswith("schema 2: the Avro schema cannot be used: ")
    with pytest.raises(lh.DecodeError, match="schema 2: "):
        lha.decode_by_schema(VALUES, AvroDecoder(REGISTRY, V1))


@pytest.mark.parametrize(
    ("schema", "error"),
    [
        (RegisteredSchema("JSON", "{}", {}), "its type is JSON, not AVRO"),
        (RegisteredSchema("AVRO", "{", {}), "it is not JSON"),
        (RegisteredSchema("AVRO", "[" * 2000 + "]" * 2000, {}), "schema cannot be used"),
        (RegisteredSchema("AVRO", '{"type": "record", "name": "N", "fields": [{"name": "n", "type": "N"}]}', {}), "contains itself"),
        (RegisteredSchema("AVRO", '{"type": "array", "items": "null"}', {}), "no bytes"),
    ],
)  # fmt: skip
def test_unusable_schema_is_row_error(schema: RegisteredSchema, error: str) -> None:
    decoder = AvroDecoder(MemoryRegistry({1: schema}), V1)
    rows = lha.decode_by_schema(pa.array([b"\0\0\0\0\1\0"]), decoder, errors="column")
    assert error in rows.field("error")[0].as_py()[0]["message"]


def test_schema_with_missing_reference_is_row_error() -> None:
    class Missing(MemoryRegistry):
        def schema(self, schema_id: int | str) -> RegisteredSchema | None:
            self.requests.append(schema_id)
            raise ValueError("schema schemas/ids/1 refers to a.City, which the registry does not have")

    registry = Missing({})
    values = pa.array([prefixed(1, V1, {"id": 1, "old": "a"})] * 100)
    rows = lha.decode_by_schema(values, AvroDecoder(registry, V1), errors="column")
    assert {error[0]["message"] for error in rows.field("error").to_pylist()} == {
        "schema 1: schema schemas/ids/1 refers to a.City, which the registry does not have"
    }
    assert registry.requests == [1]


def test_unresponsive_registry_ends_call() -> None:
    class Silent(MemoryRegistry):
        def schema(self, schema_id: int | str) -> RegisteredSchema | None:
            raise ConnectionError("no schema from http://memory")

    for errors in ("raise", "null", "column"):
        with pytest.raises(ConnectionError):
            lha.decode_by_schema(VALUES, AvroDecoder(Silent({}), V1), errors=errors)


def test_references_are_part_of_schema() -> None:
    city = {"type": "record", "name": "City", "namespace": "a", "fields": [{"name": "name", "type": "string"}]}
    person = record(("home", "a.City"), ("work", ["null", "a.City"]), namespace="b")
    registry = MemoryRegistry({1: person}, {1: {"a.City": city}})
    whole = record(("home", city), ("work", ["null", "a.City"]), namespace="b")
    value = prefixed(1, whole, {"home": {"name": "x"}, "work": {"name": "y"}})
    for decoder in (AvroDecoder(registry), AvroDecoder(registry, whole)):
        rows = lha.decode_by_schema(pa.array([value]), decoder)
        assert rows.to_pylist() == [{"home": {"name": "x"}, "work": {"name": "y"}}]


@pytest.mark.parametrize(
    ("schema", "value"), [("string", "key"), ("long", 7), ({"type": "enum", "name": "E", "symbols": ["A"]}, "A")]
)
def test_non_record_schema_has_column_value(schema: Any, value: Any) -> None:
    decoder = AvroDecoder(MemoryRegistry({1: schema}))
    rows = lha.decode_by_schema(pa.array([prefixed(1, schema, value)]), decoder)
    assert rows.to_pylist() == [{"value": value}]


def test_logical_types_are_types_of_arrow() -> None:
    def logical(type: str, meaning: str, **more: Any) -> dict[str, Any]:
        return {"type": type, "logicalType": meaning, **more}

    fields = {
        "decimal": (logical("bytes", "decimal", precision=20, scale=2), pa.decimal128(20, 2)),
        "wide": (logical("bytes", "decimal", precision=50, scale=2), pa.decimal256(50, 2)),
        "date": (logical("int", "date"), pa.date32()),
        "time_millis": (logical("int", "time-millis"), pa.time32("ms")),
        "time_micros": (logical("long", "time-micros"), pa.time64("us")),
        "millis": (logical("long", "timestamp-millis"), pa.timestamp("ms", "UTC")),
        "micros": (logical("long", "timestamp-micros"), pa.timestamp("us", "UTC")),
        "nanos": (logical("long", "timestamp-nanos"), pa.timestamp("ns", "UTC")),
        "local": (logical("long", "local-timestamp-micros"), pa.timestamp("us")),
        "uuid": (logical("string", "uuid"), pa.string()),
        "duration": (logical("fixed", "duration", name="D", size=12), pa.month_day_nano_interval()),
        "enum": ({"type": "enum", "name": "E", "symbols": ["A"]}, pa.string()),
        "unknown": (logical("int", "other"), pa.int32()),
    }
    decoder = AvroDecoder(REGISTRY, record(*((name, type) for name, (type, _) in fields.items())))
    result = lha.decode_by_schema(pa.array([], pa.binary()), decoder)
    assert {field.name: field.type for field in result.type} == {name: type for name, (_, type) in fields.items()}


def test_requested_schema_casts_columns() -> None:
    columns = pa.schema([("city", pa.large_string()), ("number", pa.float32())])
    decoder = AvroDecoder(REGISTRY, subject="orders-value")
    rows = lha.decode_by_schema(VALUES[3:], decoder, columns)
    assert rows.type == pa.struct(list(columns))
    assert rows.to_pylist() == [{"city": "y", "number": 2.5}]


def test_pickled_decoder_keeps_fetched_columns() -> None:
    decoder = AvroDecoder(REGISTRY, subject="orders-value")
    columns = lha.decode_by_schema(VALUES, decoder).type
    copied = pickle.loads(pickle.dumps(decoder))
    copied._registry.schemas.pop("orders-value")
    assert lha.decode_by_schema(VALUES, copied).type == columns


def test_wrong_arguments_are_rejected() -> None:
    with pytest.raises(ValueError, match="exclude each other"):
        AvroDecoder(REGISTRY, V1, subject="orders-value")
    with pytest.raises(ValueError, match="not JSON"):
        AvroDecoder(REGISTRY, "{")
    with pytest.raises(ValueError, match="contains itself"):
        AvroDecoder(REGISTRY, record(("a", "Order")))
    with pytest.raises(ValueError, match="no subject 'other'"):
        lha.decode_by_schema(VALUES, AvroDecoder(REGISTRY, subject="other"))
    with pytest.raises(TypeError, match="schema= is missing"):
        lha.decode_by_schema(VALUES, lambda group: None)
    with pytest.raises(ValueError, match="error"):
        lha.decode_by_schema(VALUES, AvroDecoder(REGISTRY, record(("error", "int"))), errors="column")


def test_decoder_repr_hides_secrets() -> None:
    registry = Registry("http://registry:8081", {"bearer.auth.token": "never-to-be-seen"})
    assert repr(AvroDecoder(registry, V1)) == "AvroDecoder(Registry('http://registry:8081'))"
