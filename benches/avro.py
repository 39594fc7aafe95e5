"""Values of Avro as columns and as rows: `AvroDecoder` and `AvroEncoder`, fastavro, and Confluent's (de)serializer.

    python -m benches.avro             1,000,000 records
    python -m benches.avro 100000      another number

All sides decode the same values, of one schema whose id is in front of them, then encode them, and their results are
compared. The schema is in memory. fastavro makes rows; with `columns` they become Arrow's, too.
"""

from __future__ import annotations

import datetime
import io
import json
import sys
import time
from collections.abc import Callable
from typing import Any

import fastavro
import pyarrow as pa
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from benches.data import QUICK
from letterhead import arrow as lha
from letterhead.schemas import AvroDecoder, AvroEncoder, RegisteredSchema, Registry, SchemaVersion, encode_values

ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "customer", "type": "string"},
        {"name": "amount", "type": "double"},
        {"name": "city", "type": ["null", "string"], "default": None},
        {"name": "created", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["NEW", "PAID", "SENT"]}},
        {"name": "count", "type": "int"},
    ],
}
PREFIX_BYTES = 5
RUNS = 3
"""Runs of the columns, of which the fastest counts; the others take long enough for one."""


class OneSchema(Registry):
    """A registry with one schema."""

    def schema(self, schema_id: int | str) -> RegisteredSchema | None:
        """Return it for every id."""
        return RegisteredSchema("AVRO", json.dumps(ORDER), {})

    def find_version(self, *arguments: object, **options: object) -> SchemaVersion:
        """Return it for every subject."""
        return SchemaVersion(RegisteredSchema("AVRO", json.dumps(ORDER), {}), 1, None)


def written(rows: int, schema_id: int) -> list[bytes]:
    """Return values with the id in front."""
    schema = fastavro.parse_schema(ORDER)
    first = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    values = []
    for n in range(rows):
        order = {
            "id": n * 1000,
            "customer": f"customer-{n % 977}",
            "amount": n / 7,
            "city": None if n % 5 == 0 else "Berlin",
            "created": first + datetime.timedelta(microseconds=n),
            "state": "PAID",
            "count": n % 100,
        }
        values.append(_encode(order, schema, schema_id))
    return values


def _encode(row: Any, schema: Any, schema_id: int) -> bytes:
    out = io.BytesIO()
    out.write(b"\0" + schema_id.to_bytes(4, "big"))
    fastavro.schemaless_writer(out, schema, row)
    return out.getvalue()


def timed(run: Callable[[], Any], runs: int = 1) -> tuple[float, Any]:
    """Return the shortest time and a result."""
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        result = run()
        times.append(time.perf_counter() - start)
    return min(times), result


def main(rows: int) -> None:
    """Measure all sides, and print times and ratios."""
    client = SchemaRegistryClient.new_client({"url": "mock://orders"})
    schema_id = client.register_schema("orders-value", Schema(json.dumps(ORDER), "AVRO"))
    values = written(rows, schema_id)
    column, schema = pa.array(values, pa.binary()), fastavro.parse_schema(ORDER)
    decoder = AvroDecoder(OneSchema("http://localhost"), ORDER)
    confluent, context = AvroDeserializer(client), SerializationContext("orders", MessageField.VALUE)

    def fastavro_rows() -> list[Any]:
        return [fastavro.schemaless_reader(io.BytesIO(value[PREFIX_BYTES:]), schema, schema) for value in values]

    own, decoded = timed(lambda: lha.decode_by_schema(column, decoder), RUNS)
    by_rows, expected = timed(fastavro_rows)
    by_columns, array = timed(lambda: pa.array(fastavro_rows(), decoded.type))
    by_confluent, deserialized = timed(lambda: [confluent(value, context) for value in values])
    if not (decoded.equals(array) and decoded.to_pylist() == expected == deserialized):
        raise AssertionError("the sides decode different values")
    print(f"{rows:,} records; lha.decode_by_schema: {own:.2f} s")
    compare(own, [
        ("fastavro, rows", by_rows),
        ("fastavro, columns", by_columns),
        ("AvroDeserializer, rows", by_confluent),
    ])  # fmt: skip
    encoder = AvroEncoder(OneSchema("http://localhost"), "orders-value", ORDER, schema_id="prefix")
    source = pa.table({"value": decoded})
    own, encoded = timed(lambda: encode_values(source, encoder).read_all(), RUNS)
    by_fastavro, of_fastavro = timed(lambda: [_encode(row, schema, schema_id) for row in expected])
    serializer = AvroSerializer(client, json.dumps(ORDER))
    by_serializer, of_serializer = timed(lambda: [serializer(row, context) for row in expected])
    if not encoded["value"].to_pylist() == values == of_fastavro == of_serializer:
        raise AssertionError("the sides encode different values")
    print(f"{rows:,} records; encode_values: {own:.2f} s")
    compare(own, [("fastavro, rows", by_fastavro), ("AvroSerializer, rows", by_serializer)])


def compare(own: float, others: list[tuple[str, float]]) -> None:
    """Print how many times as long the others took."""
    for name, seconds in others:
        print(f"{name}: {seconds:.2f} s, {seconds / own:.1f} times as long")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 300 if QUICK else 1_000_000)
