"""Random schemas and values of Avro, decoded by fastavro and into columns."""

from __future__ import annotations

import datetime
import decimal
import io
import itertools
import json
from typing import Any

import fastavro
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from letterhead import arrow as lha
from letterhead.schemas import AvroDecoder
from tests.helpers.memory_registry import MemoryRegistry, avro

UTC = datetime.UTC
TIMES = st.datetimes(datetime.datetime(1900, 1, 1), datetime.datetime(2200, 1, 1))
DIGITS = st.integers(-99_999, 99_999).map(lambda number: decimal.Decimal(number).scaleb(-2))
INTS, LONGS = st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1)
FLOATS = st.floats(width=32, allow_nan=False)


def milliseconds(time: datetime.datetime) -> datetime.datetime:
    return time.replace(microsecond=time.microsecond // 1000 * 1000)


def logical(type: str, name: str, **more: Any) -> dict[str, Any]:
    return {"type": type, "logicalType": name, **more}


LEAVES: list[tuple[Any, st.SearchStrategy[Any]]] = [
    ("boolean", st.booleans()),
    ("int", INTS),
    ("long", LONGS),
    ("float", FLOATS),
    ("double", st.floats(allow_nan=False)),
    ("bytes", st.binary(max_size=5)),
    ("string", st.text(max_size=5)),
    (logical("bytes", "decimal", precision=5, scale=2), DIGITS),
    (logical("int", "date"), st.dates()),
    (logical("int", "time-millis"), TIMES.map(lambda time: milliseconds(time).time())),
    (logical("long", "time-micros"), st.times()),
    (logical("long", "timestamp-millis"), TIMES.map(lambda time: milliseconds(time).replace(tzinfo=UTC))),
    (logical("long", "timestamp-micros"), TIMES.map(lambda time: time.replace(tzinfo=UTC))),
    (logical("long", "local-timestamp-micros"), TIMES),
    (logical("string", "uuid"), st.uuids().map(str)),
]


def types(names: itertools.count[int], depth: int = 2) -> st.SearchStrategy[tuple[Any, st.SearchStrategy[Any]]]:
    """Draw a schema with a strategy for its values."""
    leaves = st.sampled_from(LEAVES)
    named = st.builds(
        lambda: ({"type": "enum", "name": f"E{next(names)}", "symbols": ["A", "B", "C"]}, st.sampled_from("ABC"))
    ) | st.builds(lambda: ({"type": "fixed", "name": f"F{next(names)}", "size": 3}, st.binary(min_size=3, max_size=3)))
    if depth == 0:
        return leaves | named
    inner = types(names, depth - 1)
    return st.one_of(
        leaves,
        named,
        inner.map(lambda item: ({"type": "array", "items": item[0]}, st.lists(item[1], max_size=3))),
        inner.map(
            lambda item: ({"type": "map", "values": item[0]}, st.dictionaries(st.text(max_size=3), item[1], max_size=3))
        ),
        inner.filter(lambda item: not isinstance(item[0], list)).map(
            lambda item: (["null", item[0]], st.none() | item[1])
        ),
        inner.filter(lambda item: not isinstance(item[0], list)).map(
            lambda item: ([item[0], "null"], st.none() | item[1])
        ),
        st.lists(inner, min_size=1, max_size=3).map(lambda fields: record(fields, next(names))),
    )


def record(fields: list[tuple[Any, st.SearchStrategy[Any]]], number: int = 0) -> tuple[Any, st.SearchStrategy[Any]]:
    schema = {
        "type": "record",
        "name": f"R{number}",
        "fields": [{"name": f"f{index}", "type": type} for index, (type, _) in enumerate(fields)],
    }
    return schema, st.fixed_dictionaries({f"f{index}": values for index, (_, values) in enumerate(fields)})


@st.composite
def records(draw: st.DrawFn) -> tuple[Any, list[Any]]:
    fields = draw(st.lists(types(itertools.count(1)), min_size=1, max_size=4))
    schema, values = record(fields)
    return schema, draw(st.lists(values, max_size=5))


def plain(value: Any) -> Any:
    """Write maps as pyarrow does, in an order of their own."""
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, list) and value and all(isinstance(each, tuple) for each in value):
        return {key: plain(each) for key, each in value}
    return [plain(each) for each in value] if isinstance(value, list) else value


def decoded(schema: Any, bodies: list[bytes], reader: Any = None) -> list[Any]:
    """Return a record for each body, or the code of its error."""
    values = pa.array([b"\0\0\0\0\1" + body for body in bodies], pa.binary())
    decoder = AvroDecoder(MemoryRegistry({1: schema}), reader or schema)
    rows = lha.decode_by_schema(values, decoder, errors="column").to_pylist()
    return [row["error"][0]["code"] if row["error"] else {**row, "error": None} for row in rows]


def expected(schema: Any, body: bytes, reader: Any = None) -> Any:
    parsed = fastavro.parse_schema(reader or schema)
    value: Any = fastavro.schemaless_reader(io.BytesIO(body), fastavro.parse_schema(schema), parsed)
    return {**value, "error": None}


def same(left: Any, right: Any) -> bool:
    """Compare values: empty maps are empty lists, and UUIDs are text."""
    text = (json.dumps(plain(each), default=str, sort_keys=True).replace("[]", "{}") for each in (left, right))
    return next(text) == next(text)


@given(records())
def test_values_match_fastavro(written: tuple[Any, list[Any]]) -> None:
    schema, values = written
    bodies = [avro(schema, value) for value in values]
    rows = decoded(schema, bodies)
    assert len(rows) == len(bodies)
    for row, body in zip(rows, bodies, strict=True):
        assert same(row, expected(schema, body)), (row, expected(schema, body))


@given(records(), st.data())
def test_damaged_value_raises_or_matches_fastavro(written: tuple[Any, list[Any]], data: st.DataObject) -> None:
    schema, values = written
    bodies = [avro(schema, value) for value in values]
    damaged = []
    for body in bodies:
        index = data.draw(st.integers(0, len(body)))
        damaged.append(
            body[:index] + data.draw(st.binary(max_size=3)) + body[data.draw(st.integers(index, len(body))) :]
        )
    rows = decoded(schema, [each for pair in zip(bodies, damaged, strict=True) for each in pair])
    for undamaged, body in zip(rows[::2], bodies, strict=True):
        assert same(undamaged, expected(schema, body))
    for row, body in zip(rows[1::2], damaged, strict=True):
        if isinstance(row, dict):
            assert same(row, expected(schema, body)), (row, expected(schema, body))


PROMOTED = {"int": ["long", "float", "double"], "long": ["float", "double"], "float": ["double"], "string": ["bytes"]}
ADDED = [
    ("int", 7),
    ("string", "new"),
    (["null", "string"], None),
    ({"type": "array", "items": "int"}, [1, 2]),
    ({"type": "map", "values": "long"}, {"a": 1}),
    ({"type": "enum", "name": "Added", "symbols": ["X", "Y"]}, "Y"),
]


@st.composite
def evolved(draw: st.DrawFn, writer: Any) -> Any:
    """Draw a schema that reads what a record was written by."""
    fields = []
    for index, field in enumerate(writer["fields"]):
        type = field["type"]
        change = draw(st.sampled_from(["same", "drop", "promote", "nullable", "rename"]))
        if change == "drop":
            continue
        reader = {"name": field["name"], "type": type}
        if change == "promote" and isinstance(type, str) and type in PROMOTED:
            reader["type"] = draw(st.sampled_from(PROMOTED[type]))
        elif change == "nullable" and not isinstance(type, list):
            reader |= {"type": ["null", type], "default": None}
        elif change == "rename":
            reader |= {"name": f"renamed{index}", "aliases": [field["name"]]}
        fields.append(reader)
    for type, default in draw(st.lists(st.sampled_from(ADDED), max_size=2, unique_by=str)):
        fields.append({"name": f"added{len(fields)}", "type": type, "default": default})
    return {**writer, "fields": draw(st.permutations(fields))}


@given(records(), st.data())
def test_schemas_resolve_like_fastavro(written: tuple[Any, list[Any]], data: st.DataObject) -> None:
    schema, values = written
    reader = data.draw(evolved(schema).filter(lambda reader: reader["fields"]))
    bodies = [avro(schema, value) for value in values]
    for row, body in zip(decoded(schema, bodies, reader), bodies, strict=True):
        assert same(row, expected(schema, body, reader)), (row, expected(schema, body, reader), reader)
