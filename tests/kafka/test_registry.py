"""Schemas of a real registry."""

from __future__ import annotations

import json
import pickle
import urllib.request
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

import letterhead as lh
from letterhead import arrow as lha
from letterhead import spark as lhs
from letterhead.schemas import AvroDecoder, RegisteredSchema, Registry, decode_values
from memory_registry import avro
from registry import Apicurio
from written import create_with

pytestmark = pytest.mark.broker

CITY = {"type": "record", "name": "City", "namespace": "a", "fields": [{"name": "name", "type": "string"}]}
PERSON = {"type": "record", "name": "Person", "namespace": "a", "fields": [{"name": "home", "type": "a.City"}]}


def test_a_schema_is_fetched_by_id_with_the_schemas_that_it_refers_to(apicurio: Apicurio) -> None:
    apicurio.register("city", CITY)
    number = apicurio.register("person", PERSON, references={"city": "a.City"})
    person = Registry(apicurio.url).schema(number)
    assert person is not None
    assert (person.type, json.loads(person.text)) == ("AVRO", PERSON)
    [(name, city)] = person.references.items()
    assert (name, json.loads(city.text), city.references) == ("a.City", CITY, {})


def test_the_latest_schema_of_a_subject_is_fetched_anew(apicurio: Apicurio) -> None:
    registry = Registry(apicurio.url)
    assert registry.latest("evolving") is None
    apicurio.register("evolving", '"int"')
    assert registry.latest("evolving") == RegisteredSchema("AVRO", '"int"', {})
    apicurio.register("evolving", '"long"')
    assert registry.latest("evolving") == RegisteredSchema("AVRO", '"long"', {})


def test_other_types_of_schemas_are_named(apicurio: Apicurio) -> None:
    schema = {"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"}
    number = apicurio.register("document", schema, kind="JSON")
    assert Registry(apicurio.url).schema(number) == RegisteredSchema("JSON", json.dumps(schema), {})


def test_an_unknown_id_is_none(apicurio: Apicurio) -> None:
    assert Registry(apicurio.url).schema(987_654) is None
    assert Registry(apicurio.url).schema("89791762-2336-4186-9674-299b90a802e2") is None


def test_ids_of_apicurio_are_read_by_its_own_api(apicurio: Apicurio) -> None:
    for subject in ("same", "again"):
        apicurio.register(subject, CITY)
    apicurio.register("owner", PERSON, references={"same": "a.City"})

    def ids(subject: str) -> tuple[int, int]:
        with urllib.request.urlopen(f"{apicurio.own_url}/groups/default/artifacts/{subject}/meta", timeout=60) as reply:
            meta = json.load(reply)
        return meta["globalId"], meta["contentId"]

    registry = Registry(apicurio.own_url)
    by_content = Registry(apicurio.own_url, {"apicurio.registry.use-id": "contentId"})
    # The same content has one id of contents, and several global ones.
    assert ids("same")[0] < ids("again")[0]
    assert ids("same")[1] == ids("again")[1]
    for subject in ("same", "again"):
        global_id, content_id = ids(subject)
        for found in (registry.schema(global_id), by_content.schema(content_id), registry.latest(subject)):
            assert found is not None
            assert (found.type, json.loads(found.text), found.references) == ("AVRO", CITY, {})
    owner = registry.latest("owner")
    assert owner is not None
    assert json.loads(owner.text)["fields"][0]["type"]["fields"] == CITY["fields"]
    assert (registry.schema(987_654), registry.latest("nothing")) == (None, None)

    value = avro({**PERSON, "fields": [{"name": "home", "type": CITY}]}, {"home": {"name": "x"}})
    headers = pa.array([lh.encode([("apicurio.value.globalId", ids("owner")[0].to_bytes(8, "big"))], "kafka")])
    rows = lha.decode_by_schema(
        pa.array([value]), AvroDecoder(registry), headers=headers, header="apicurio.value.globalId"
    )
    assert rows.to_pylist() == [{"home": {"name": "x"}}]


def test_a_registry_is_reached_over_tls(apicurio: Apicurio) -> None:
    number = apicurio.register("city", CITY)
    settings = {"ssl.ca.location": str(apicurio.authority)}
    trusting = pickle.loads(pickle.dumps(Registry(apicurio.tls_url, settings)))
    assert trusting.schema(number) == Registry(apicurio.url).schema(number)
    with pytest.raises(ConnectionError, match=r"not trusted.*ssl\.ca\.location"):
        Registry(apicurio.tls_url).schema(number)


V1 = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "int"}, {"name": "old", "type": "string", "default": ""}],
}
V2 = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "long"}, {"name": "city", "type": "string", "default": "?"}],
}
V3 = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "number", "type": "double", "aliases": ["id"]},
        {"name": "city", "type": "string", "default": "?"},
    ],
}
ROWS: list[tuple[Any, dict[str, Any]]] = [
    (V1, {"id": 1, "old": "a"}),
    (V2, {"id": 2, "city": "b"}),
    (V3, {"number": 3.5, "city": "c"}),
]


def write(apicurio: Apicurio, broker: str, topic: str, rows: list[tuple[Any, dict[str, Any]]]) -> None:
    """Write values as Confluent's serializer does, whose versions are of one subject; with the last one also by its header."""
    client = SchemaRegistryClient({"url": apicurio.url})
    context = SerializationContext(topic, MessageField.VALUE)
    values, headers = [], []
    for schema, row in rows:
        value = AvroSerializer(client, json.dumps(schema))(row, context)
        values += [value, value[5:]]
        headers += [[], [{"key": "__value_schema_id", "value": value[:5]}]]
    type = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    table = pa.table({"value": pa.array(values, pa.binary()), "headers": pa.array(headers, type)})
    lh.write.topic(table, topic, bootstrap_servers=broker)


def test_three_versions_of_a_topic_are_read_by_one_schema(apicurio: Apicurio, broker: str) -> None:
    create_with(broker, "evolved", 1)
    write(apicurio, broker, "evolved", ROWS)
    with lh.read.topic("evolved", bootstrap_servers=broker) as reader:
        table = reader.read_all()

    def read(decoder: AvroDecoder) -> list[Any]:
        return lha.decode_by_schema(table["value"], decoder, headers=table["headers"], errors="null").to_pylist()[::2]

    registry = Registry(apicurio.url)
    latest = read(AvroDecoder(registry, subject="evolved-value"))
    assert latest == [{"number": 1.0, "city": "?"}, {"number": 2.0, "city": "b"}, {"number": 3.5, "city": "c"}]
    # A number cannot become narrower.
    assert read(AvroDecoder(registry, V1)) == [{"id": 1, "old": "a"}, *[{"id": None, "old": None}] * 2]
    assert [row["id"] for row in read(AvroDecoder(registry))] == [1, 2, None]
    with_header = lha.decode_by_schema(table["value"], AvroDecoder(registry), headers=table["headers"]).to_pylist()
    assert with_header[::2] == with_header[1::2]
    with lh.read.topic("evolved", bootstrap_servers=broker) as reader:
        streamed = decode_values(reader, AvroDecoder(registry, subject="evolved-value")).read_all()
    assert streamed["value"].to_pylist()[::2] == latest


def test_a_stream_meets_a_new_version_while_it_runs(apicurio: Apicurio, broker: str, spark: Any) -> None:
    create_with(broker, "streamed", 1)
    write(apicurio, broker, "streamed", [ROWS[1]])
    options = {"kafka.bootstrap.servers": broker, "subscribe": "streamed", "startingOffsets": "earliest"}
    topic = spark.readStream.format("kafka").options(**options, includeHeaders=True).load()
    decoder = AvroDecoder(Registry(apicurio.url), subject="streamed-value")
    read = lhs.decode_by_schema("value", decoder, headers="headers", keep=["offset"])
    query = topic.transform(read).writeStream.format("memory").queryName("streamed").start()
    try:
        query.processAllAvailable()
        newer = {**V2, "fields": [*V2["fields"], {"name": "state", "type": "string", "default": "new"}]}
        write(apicurio, broker, "streamed", [(newer, {"id": 5, "city": "e", "state": "sent"}), ROWS[0]])
        query.processAllAvailable()
        rows = spark.table("streamed").orderBy("offset").collect()
    finally:
        query.stop()
    assert [tuple(row)[1:] for row in rows] == [each for row in [(2, "b"), (5, "e"), (1, "?")] for each in [row] * 2]
