"""Schemas of a real registry."""

from __future__ import annotations

import json
import pickle
import shlex
import shutil
import subprocess
import urllib.request
from functools import partial
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

import letterhead as lh
from letterhead import arrow as lha
from letterhead import schemas
from letterhead import spark as lhs
from letterhead.schemas import (
    AvroDecoder,
    AvroEncoder,
    JsonDecoder,
    JsonEncoder,
    ProtobufDecoder,
    ProtobufEncoder,
    RegisteredSchema,
    Registry,
    decode_values,
    encode_values,
)
from tests.helpers import pages
from tests.helpers.memory_registry import avro
from tests.kafka.registry import Apicurio
from tests.kafka.written import create_with
from tests.versions import ROOT

pytestmark = pytest.mark.broker

CITY = {"type": "record", "name": "City", "namespace": "a", "fields": [{"name": "name", "type": "string"}]}
PERSON = {"type": "record", "name": "Person", "namespace": "a", "fields": [{"name": "home", "type": "a.City"}]}


def test_schema_is_fetched_by_id_with_its_references(apicurio: Apicurio) -> None:
    apicurio.register("city", CITY)
    number = apicurio.register("person", PERSON, references={"city": "a.City"})
    person = Registry(apicurio.url).schema(number)
    assert person is not None
    assert (person.type, json.loads(person.text)) == ("AVRO", PERSON)
    [(name, city)] = person.references.items()
    assert (name, json.loads(city.text), city.references) == ("a.City", CITY, {})


def test_latest_schema_of_subject_is_fetched_anew(apicurio: Apicurio) -> None:
    registry = Registry(apicurio.url)
    assert registry.latest("evolving") is None
    apicurio.register("evolving", '"int"')
    assert registry.latest("evolving") == RegisteredSchema("AVRO", '"int"', {})
    apicurio.register("evolving", '"long"')
    assert registry.latest("evolving") == RegisteredSchema("AVRO", '"long"', {})


def test_json_schema_has_type_json(apicurio: Apicurio) -> None:
    schema = {"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"}
    number = apicurio.register("document", schema, kind="JSON")
    assert Registry(apicurio.url).schema(number) == RegisteredSchema("JSON", json.dumps(schema), {})


def test_unknown_id_returns_none(apicurio: Apicurio) -> None:
    assert Registry(apicurio.url).schema(987_654) is None
    assert Registry(apicurio.url).schema("89791762-2336-4186-9674-299b90a802e2") is None


def test_apicurio_ids_are_read_through_its_own_api(apicurio: Apicurio) -> None:
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


def test_registry_is_reachable_over_tls(apicurio: Apicurio) -> None:
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


def test_three_topic_versions_are_read_with_one_schema(apicurio: Apicurio, broker: str) -> None:
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


@pytest.mark.parametrize("source", ["kafka", "letterhead-kafka"])
def test_running_stream_picks_up_new_schema_version(apicurio: Apicurio, broker: str, spark: Any, source: str) -> None:
    lhs.register(spark)
    name = f"streamed-by-{source}"
    create_with(broker, name, 1)
    write(apicurio, broker, name, [ROWS[1]])
    options = {"kafka.bootstrap.servers": broker, "subscribe": name, "startingOffsets": "earliest"}
    topic = spark.readStream.format(source).options(**options, includeHeaders=True).load()
    decoder = AvroDecoder(Registry(apicurio.url), subject=f"{name}-value")
    read = partial(lhs.decode_by_schema, decode=decoder, headers="headers", keep=["offset"])
    query = topic.transform(read).writeStream.format("memory").queryName("streamed").start()
    try:
        query.processAllAvailable()
        newer = {**V2, "fields": [*V2["fields"], {"name": "state", "type": "string", "default": "new"}]}
        write(apicurio, broker, name, [(newer, {"id": 5, "city": "e", "state": "sent"}), ROWS[0]])
        query.processAllAvailable()
        rows = spark.table("streamed").orderBy("offset").collect()
    finally:
        query.stop()
    assert [tuple(row)[1:] for row in rows] == [each for row in [(2, "b"), (5, "e"), (1, "?")] for each in [row] * 2]


def loaded(spark: Any, broker: str, topic: str) -> Any:
    lhs.register(spark)
    reader = spark.read.format("letterhead-kafka").option("kafka.bootstrap.servers", broker)
    return reader.option("subscribe", topic).option("includeHeaders", "true").load()


@pytest.mark.parametrize("errors", ["raise", "null", "column"])
def test_spark_batch_decodes_topic(apicurio: Apicurio, broker: str, sent: str, spark: Any, errors: Any) -> None:
    decoder = AvroDecoder(Registry(apicurio.url), subject="sent-value")
    read = partial(lhs.decode_by_schema, decode=decoder, headers="headers", keep=["offset"], errors=errors)
    orders = loaded(spark, broker, "damaged").transform(read)
    if errors == "raise":
        with pytest.raises(Exception, match="1 byte left after the value in the row with offset=4"):
            orders.collect()
        orders = loaded(spark, broker, "damaged").where("offset != 4").transform(read)
    rows = [row.asDict() for row in orders.orderBy("offset").collect()]
    expected = [{"offset": offset, **row} for offset, row in enumerate(EXPECTED)]
    if errors == "raise":
        del expected[4]
    else:
        expected[4] = {"offset": 4, "number": None, "city": None}
    codes = [row.pop("error") for row in rows] if errors == "column" else []
    assert (rows, [each[0].code for each in codes if each]) == (expected, ["trailing_bytes"] * (errors == "column"))


def test_page_example_decodes_spark_stream(
    apicurio: Apicurio, broker: str, sent: str, spark: Any, tmp_path: Any
) -> None:
    decoder = AvroDecoder(Registry(apicurio.url), subject="sent-value")
    names = {"spark": spark, "decoder": decoder}
    there = {'"orders"': '"damaged"', "localhost:9092": broker}
    pages.run("docs/how-to/decode-avro.md", names, "python spark topic", there)
    pages.run("docs/how-to/decode-avro.md", names, "python spark")
    query = names["orders"].writeStream.format("memory").queryName("page").trigger(availableNow=True).start()
    assert query.awaitTermination(120)
    rows = spark.table("page").orderBy("offset").collect()
    assert [row.number for row in rows] == [1.0, 1.0, 2.0, 2.0, None, 3.5]
    assert [row.offset for row in rows if row.error] == [4]


def test_unresponsive_registry_ends_query_and_loses_nothing(
    apicurio: Apicurio, broker: str, sent: str, spark: Any, tmp_path: Any
) -> None:
    lhs.register(spark)
    schema = json.dumps(V3)
    topic = (
        spark.readStream.format("letterhead-kafka")
        .option("kafka.bootstrap.servers", broker)
        .option("subscribe", "damaged")
        .option("startingOffsets", "earliest")
        .option("includeHeaders", "true")
        .load()
    )

    def run(url: str) -> Any:
        decoder = AvroDecoder(Registry(url, {"request.timeout.ms": "1000"}), schema)
        read = partial(lhs.decode_by_schema, decode=decoder, headers="headers", keep=["offset"], errors="column")
        options = {"checkpointLocation": str(tmp_path / "checkpoint"), "path": str(tmp_path / "out")}
        query = (
            topic.transform(read).writeStream.format("parquet").options(**options).trigger(availableNow=True).start()
        )
        query.awaitTermination(120)

    with pytest.raises(Exception, match="no schema from http://127"):
        run("http://127.0.0.1:1/apis/ccompat/v7")
    run(apicurio.url)
    assert sorted(row.offset for row in spark.read.parquet(str(tmp_path / "out")).collect()) == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("place", ["header", "prefix"])
def test_confluent_deserializer_reads_encoded_values(apicurio: Apicurio, broker: str, place: Any) -> None:
    topic = f"encoded-{place}"
    create_with(broker, topic, 1)
    registry = Registry(apicurio.url)
    # Confluent's deserializer refuses values of fewer than six bytes, wherever their id is.
    values = [{"id": 1 << 40, "city": "a"}, None, {"id": 2, "city": "Berlin"}]
    keys_written = ["key 10", "key 11", "key 12"]
    table = pa.table({"key": keys_written, "value": values})
    with pytest.raises(ValueError, match="register=True"):
        lh.write.topic(
            encode_values(table, AvroEncoder(registry, f"{topic}-value", V2)), topic, bootstrap_servers=broker
        )
    rows = encode_values(table, AvroEncoder(registry, f"{topic}-value", V2, schema_id=place, register=True))
    keys = AvroEncoder(registry, f"{topic}-key", "string", schema_id=place, register=True)
    rows = encode_values(rows, keys, column="key", header="__key_schema_id")
    assert lh.write.topic(rows, topic, bootstrap_servers=broker).rows == 3
    with lh.read.topic(topic, bootstrap_servers=broker) as reader:
        written = reader.read_all().to_pylist()
    client = SchemaRegistryClient({"url": apicurio.url})
    for row, value, key in zip(written, values, keys_written, strict=True):
        headers = [(header["key"], header["value"]) for header in row["headers"]]
        for field, expected in (("key", key), ("value", value)):
            context = SerializationContext(topic, MessageField.KEY if field == "key" else MessageField.VALUE, headers)
            assert AvroDeserializer(client)(row[field], context) == expected
    # The subject has the schema now, so that it needs none.
    again = encode_values(table, AvroEncoder(registry, f"{topic}-value", schema_id=place)).read_all()
    assert again["value"].to_pylist() == [row["value"] for row in written]


CONFLUENT_JSON = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "title": "Order",
    "type": "object",
    "properties": {"id": {"type": "integer"}, "city": {"type": "string"}},
    "required": ["id"],
}


def context_of(topic: str, row: dict[str, Any]) -> SerializationContext:
    headers = [(header["key"], header["value"]) for header in row["headers"]]
    return SerializationContext(topic, MessageField.VALUE, headers)


@pytest.mark.parametrize("place", ["header", "prefix"])
def test_confluent_json_classes_and_ours_read_each_other(apicurio: Apicurio, broker: str, place: Any) -> None:
    pytest.importorskip("jsonschema", reason="jsonschema, which Confluent's classes for JSON use, is not installed")
    from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer

    topic, client, registry = f"json-{place}", SchemaRegistryClient({"url": apicurio.url}), Registry(apicurio.url)
    create_with(broker, topic, 1)
    values = [{"id": 1 << 40, "city": "Berlin"}, {"id": 2}]
    encoder = JsonEncoder(registry, f"{topic}-value", CONFLUENT_JSON, schema_id=place, register=True)
    lh.write.topic(encode_values(pa.table({"value": values}), encoder), topic, bootstrap_servers=broker)
    serializer = JSONSerializer(json.dumps(CONFLUENT_JSON), client)
    written = [serializer(value, SerializationContext(topic, MessageField.VALUE)) for value in values]
    lh.write.topic(pa.table({"value": written}), topic, bootstrap_servers=broker)
    with lh.read.topic(topic, bootstrap_servers=broker) as reader:
        rows = reader.read_all()
    deserializer = JSONDeserializer(None, schema_registry_client=client)
    assert [deserializer(row["value"], context_of(topic, row)) for row in rows.to_pylist()] == values * 2
    decoded = decode_values(rows, JsonDecoder(registry, subject=f"{topic}-value")).read_all()
    assert decoded["value"].to_pylist() == [{"id": 1 << 40, "city": "Berlin"}, {"id": 2, "city": None}] * 2


def test_page_example_writes_and_reads_json(apicurio: Apicurio, broker: str) -> None:
    create_with(broker, "json-page", 1)
    names = {"lh": lh, "pa": pa, "schemas": schemas, "registry": Registry(apicurio.url), "schema": CONFLUENT_JSON}
    there = {'"orders"': '"json-page"', "orders-value": "json-page-value", "localhost:9092": broker}
    pages.run("docs/how-to/decode-avro.md", names, "python json", there)
    assert names["orders"]["value"].to_pylist() == [{"id": 7, "city": "Berlin"}]


@pytest.mark.parametrize("place", ["header", "prefix"])
def test_confluent_protobuf_classes_and_ours_read_each_other(apicurio: Apicurio, broker: str, place: Any) -> None:
    from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
    from google.protobuf.message_factory import GetMessageClass

    from letterhead.schemas.protobuf_schemas import FIRST, message_type

    topic, client, registry = f"proto-{place}", SchemaRegistryClient({"url": apicurio.url}), Registry(apicurio.url)
    create_with(broker, topic, 1)
    rows = [
        {"name": "Orders", "methods": [{"name": "get", "request_streaming": True}, {"name": "put"}]},
        {"version": "1"},
    ]
    text = """
        syntax = "proto3";
        message Api { string name = 1; repeated Method methods = 2; optional string version = 3; }
        message Method { string name = 1; bool request_streaming = 2; }
    """
    cls = GetMessageClass(message_type(RegisteredSchema("PROTOBUF", text, {}), FIRST))
    messages = [cls(**row) for row in rows]
    serializer = ProtobufSerializer(cls, client)
    written = [serializer(message, SerializationContext(topic, MessageField.VALUE)) for message in messages]
    lh.write.topic(pa.table({"value": written}), topic, bootstrap_servers=broker)
    decoder = ProtobufDecoder(registry, subject=f"{topic}-value")
    with lh.read.topic(topic, bootstrap_servers=broker, columns=["value", "headers"]) as reader:
        decoded = decode_values(reader, decoder).read_all()
    assert [[method["name"] for method in row["methods"]] for row in decoded["value"].to_pylist()] == [
        ["get", "put"],
        [],
    ]
    # By the schema that Confluent's class has registered.
    encoded = encode_values(decoded, ProtobufEncoder(registry, f"{topic}-value", schema_id=place))
    lh.write.topic(encoded, topic, bootstrap_servers=broker)
    with lh.read.topic(topic, bootstrap_servers=broker) as reader:
        stored = reader.read_all()
    deserializer = ProtobufDeserializer(cls, {}, client)
    assert [deserializer(row["value"], context_of(topic, row)) for row in stored.to_pylist()] == messages * 2
    again = decode_values(stored, decoder).read_all()["value"].to_pylist()
    assert again == decoded["value"].to_pylist() * 2


def test_apicurio_java_deserializer_reads_encoded_values(apicurio: Apicurio) -> None:
    jars = ROOT / "target" / "serdes"
    if not (jars / ".built").exists():
        pytest.skip("Apicurio's deserializers for Java are missing: run `make target/serdes/.built`")
    encoder = AvroEncoder(Registry(apicurio.url), "java-value", V2, schema_id="prefix", register=True)
    table = pa.table({"value": [{"id": 1 << 40, "city": "Berlin"}, {"id": 2, "city": "Ü"}]})
    values = encode_values(table, encoder).read_all()["value"].to_pylist()
    program = [shutil.which("java") or "java", "-cp", f"{jars}/*", str(ROOT / "tests/jvm/serdes/ReadAvro.java")]
    lines = "".join(f"{value.hex()}\n" for value in values)
    done = subprocess.run([*program, apicurio.own_url, "java"], input=lines.encode(), capture_output=True, timeout=300)
    assert done.returncode == 0, done.stderr.decode()
    assert [json.loads(line) for line in done.stdout.splitlines()] == table["value"].to_pylist()


def test_unwritable_value_ends_write_before_it(apicurio: Apicurio, broker: str) -> None:
    create_with(broker, "unwritable", 1)
    table = pa.table({"value": [{"id": 1}, {"id": 1 << 40}]})
    schema = {"type": "record", "name": "R", "fields": [{"name": "id", "type": "int"}]}
    rows = encode_values(table, AvroEncoder(Registry(apicurio.url), "unwritable-value", schema, register=True))
    with pytest.raises(lh.EncodeError, match=r"field id is not a value of int32.*row 1"):
        lh.write.topic(rows, "unwritable", bootstrap_servers=broker)


def test_schema_rejected_by_registry_raises(apicurio: Apicurio) -> None:
    request = urllib.request.Request(
        f"{apicurio.url}/config/strict-value",
        data=b'{"compatibility": "BACKWARD"}',
        method="PUT",
        headers={"Content-Type": "application/vnd.schemaregistry.v1+json"},
    )
    registry = Registry(apicurio.url)
    apicurio.register("strict-value", V1)
    urllib.request.urlopen(request, timeout=60).close()
    other = {**V1, "fields": [{"name": "new", "type": "string"}]}
    with pytest.raises(ValueError, match=r"refuses the schema of subjects/strict-value/versions.*409"):
        registry.find_version("strict-value", json.dumps(other), register=True)


@pytest.fixture(scope="module")
def sent(apicurio: Apicurio, broker: str) -> str:
    """A topic of six values with the id in front or in the header, of which the fifth has a byte too many."""
    create_with(broker, "sent", 1)
    write(apicurio, broker, "sent", ROWS)
    with lh.read.topic("sent", bootstrap_servers=broker, columns=["value", "headers"]) as reader:
        table = reader.read_all()
    values = [value + b"x" * (row == 4) for row, value in enumerate(table["value"].to_pylist())]
    create_with(broker, "damaged", 1)
    lh.write.topic(table.set_column(0, "value", pa.array(values, pa.binary())), "damaged", bootstrap_servers=broker)
    return f"kafka://{broker}/damaged"


Run = Any
LATEST = [{"number": 1.0, "city": "?"}, {"number": 2.0, "city": "b"}, {"number": 3.5, "city": "c"}]
EXPECTED = [row for row in LATEST for _ in range(2)]


def by(apicurio: Apicurio, subject: str = "sent-value") -> tuple[str, ...]:
    return "--value", "avro", "--registry", apicurio.url, "--value-subject", subject, "--json"


def printed(result: Any) -> list[Any]:
    return [json.loads(line)["value"] for line in result.lines]


def test_command_reads_values_by_topic_subject(run: Run, apicurio: Apicurio, broker: str, sent: str) -> None:
    topic = f"kafka://{broker}/sent"
    result = run("read", topic, "--value", "avro", "--registry", apicurio.url, "--json", "--columns", "value")
    assert (result.code, printed(result)) == (0, EXPECTED)
    result = run("read", topic, *by(apicurio)[:4], "--where", "offset > 3", "--json")
    assert printed(result) == EXPECTED[4:]
    assert json.loads(result.lines[0])["headers"] == []


@pytest.mark.parametrize(
    ("errors", "expected", "code"),
    [
        ("raise", EXPECTED[:4], 1),
        ("null", [*EXPECTED[:4], None, EXPECTED[5]], 1),
        ("column", [*EXPECTED[:4], None, EXPECTED[5]], 1),
        ("skip", [*EXPECTED[:4], EXPECTED[5]], 1),
        ("only", [None], 1),
    ],
)
def test_value_errors_are_row_errors(
    run: Run, apicurio: Apicurio, sent: str, errors: str, expected: list[Any], code: int
) -> None:
    result = run("read", sent, *by(apicurio), "--errors", errors, "--columns", "value")
    assert (printed(result), result.code) == (expected, code)
    if errors == "raise":
        assert "topic damaged, partition 0, offset 4" in result.err
    if errors in ("column", "only"):
        codes = [(row["error"] or [{"code": None}])[0]["code"] for row in map(json.loads, result.lines)]
        assert codes == ([None] * 4 + ["trailing_bytes", None] if errors == "column" else ["trailing_bytes"])


WHERE_NUMBER = ("--where", '"value.number" > 1')


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ((), EXPECTED[2:4]),
        (("--errors", "skip"), [*EXPECTED[2:4], EXPECTED[5]]),
        (("--errors", "null"), [*EXPECTED[2:4], EXPECTED[5]]),
        (("--errors", "column"), [*EXPECTED[2:4], None, EXPECTED[5]]),
        (("--errors", "only"), [None]),
        (("--errors", "skip", "--last", "2"), [EXPECTED[3], EXPECTED[5]]),
        (("--errors", "column", "--last", "2"), [None, EXPECTED[5]]),
        (("--start", "5"), EXPECTED[5:]),
        (("--end", "4", "-n", "1"), EXPECTED[2:3]),
        (("--end", "4", "--last", "1"), EXPECTED[3:4]),
        (("--errors", "skip", "--start", "group:fields", "--commit-group", "fields", "-n", "1"), EXPECTED[2:3]),
        (("--errors", "skip", "--start", "group:fields", "--commit-group", "fields"), [EXPECTED[3], EXPECTED[5]]),
        (("--end", "4", "--headers", "__value_schema_id:binary"), EXPECTED[2:4]),
        (("--end", "4", "--edit", "drop __value_schema_id"), EXPECTED[2:4]),
    ],
)
def test_condition_tests_value_fields(
    run: Run, apicurio: Apicurio, sent: str, options: Any, expected: list[Any]
) -> None:
    result = run("read", sent, *by(apicurio), *WHERE_NUMBER, *options, "--columns", "headers,value")
    if "--headers" in options:
        result = run("read", sent, *by(apicurio), *WHERE_NUMBER, *options, "--columns", "value")
    assert printed(result) == expected
    if options == ("--errors", "column"):
        assert [row["error"] and row["error"][0]["column"] for row in map(json.loads, result.lines)] == [
            None,
            None,
            "where",
            None,
        ]
    if options == ("--errors", "null"):
        assert "1 record left out" in result.err


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ('"value.number" = 2 and offset > 2', EXPECTED[3:4]),
        ('"value.number" = 2 or offset = 5', [*EXPECTED[2:4], EXPECTED[5]]),
        ("\"value.city\" = 'b' and headers['__value_schema_id']::binary is null", EXPECTED[2:3]),
        ("\"value.city\" = 'b' or headers['__value_schema_id']::binary is null", [EXPECTED[0], *EXPECTED[2:4]]),
        ("value is null", []),
    ],
)
def test_value_and_record_fields_are_tested_together(
    run: Run, apicurio: Apicurio, sent: str, where: str, expected: list[Any]
) -> None:
    result = run("read", sent, *by(apicurio), "--where", where, "--errors", "skip", "--columns", "value")
    assert (printed(result), "no record had a header" in result.err) == (expected, False)


def test_field_missing_from_values_is_rejected(run: Run, apicurio: Apicurio, sent: str) -> None:
    result = run("read", sent, *by(apicurio), "--where", '"value.nothing" = 1')
    assert (result.code, "whose fields are value.number, value.city" in result.err) == (2, True)


def test_last_rows_with_errors_are_found(run: Run, apicurio: Apicurio, sent: str) -> None:
    assert printed(run("read", sent, *by(apicurio), "--errors", "only", "--last", "1")) == [None]
    assert printed(run("read", sent, *by(apicurio), "--errors", "skip", "--last", "2")) == [EXPECTED[3], EXPECTED[5]]


def test_headers_error_is_reported_beside_value_error(run: Run, apicurio: Apicurio, sent: str) -> None:
    result = run("read", sent, *by(apicurio), "--errors", "only", "--headers", "__value_schema_id:int64")
    errors = {row["offset"]: row["error"] for row in map(json.loads, result.lines)}
    # Each second row has a header, which is no int64.
    assert {offset: [error["column"] for error in each] for offset, each in errors.items()} == {
        1: ["__value_schema_id"],
        3: ["__value_schema_id"],
        4: [None],
        5: ["__value_schema_id"],
    }


def test_offsets_of_decoded_records_are_committed(run: Run, apicurio: Apicurio, broker: str, sent: str) -> None:
    group = ("--start", "group:decoded", "--commit-group", "decoded", "--columns", "value")
    assert printed(run("read", sent, *by(apicurio), *group, "-n", "3")) == EXPECTED[:3]
    # The value that cannot be decoded stays uncommitted.
    assert printed(run("read", sent, *by(apicurio), *group)) == EXPECTED[3:4]
    assert printed(run("read", sent, *by(apicurio), *group)) == []
    assert printed(run("read", sent, *by(apicurio), *group, "--errors", "skip")) == EXPECTED[5:]


def test_value_reader_commits_used_rows(apicurio: Apicurio, broker: str, sent: str) -> None:
    def opened() -> Any:
        source = lh.read.topic("sent", broker, start="group:used-values", commit_group="used-values", limits=None)
        return decode_values(source, AvroDecoder(Registry(apicurio.url), subject="sent-value"))

    reader = opened()
    next(reader)
    reader.close_after(2)
    with opened() as reader:
        assert reader.read_all()["offset"].to_pylist() == [2, 3, 4, 5]
    with opened() as reader:
        assert len(reader.read_all()) == 0


def test_keys_and_values_are_decoded_together(run: Run, apicurio: Apicurio, broker: str) -> None:
    create_with(broker, "keyed", 1)
    registry = Registry(apicurio.url)
    rows = pa.table({"key": ["a", "b", "c"], "value": [{"id": 1, "old": "x"}] * 3})
    for column, schema, place in (("value", V1, "prefix"), ("key", "string", "header")):
        encoder = AvroEncoder(registry, f"keyed-{column}", schema, schema_id=place, register=True)  # type: ignore[arg-type]
        rows = encode_values(rows, encoder, column=column, header=f"__{column}_schema_id").read_all()
    rows = rows.set_column(0, "key", pa.array([rows["key"][0].as_py(), b"\xff", rows["key"][2].as_py()], pa.binary()))
    lh.write.topic(rows, "keyed", bootstrap_servers=broker)
    topic, key = f"kafka://{broker}/keyed", ("--key", "avro", "--registry", apicurio.url, "--json")
    result = run("read", topic, *key, "--value", "avro", "--columns", "key,value", "--errors", "null")
    value = {"id": 1, "old": "x"}
    assert [json.loads(line) for line in result.lines] == [
        {"key": {"value": "a"}, "value": value}, {"key": None, "value": value}, {"key": {"value": "c"}, "value": value}
    ]  # fmt: skip
    where = '"key.value" = \'c\' or "value.id" = 2'
    result = run(
        "read", topic, *key, "--value", "avro", "--columns", "offset,key", "--errors", "skip", "--where", where
    )
    assert [json.loads(line) for line in result.lines] == [{"offset": 2, "key": {"value": "c"}}]
    group = ("--start", "group:keyed", "--commit-group", "keyed", "--columns", "key")
    # The key that cannot be decoded stays uncommitted.
    for expected in (["a"], []):
        result = run("read", topic, *key, *group)
        assert ([json.loads(line)["key"]["value"] for line in result.lines], result.code) == (expected, 1)
    assert "topic keyed, partition 0, offset 1" in result.err
    result = run("read", topic, *key, "--value", "avro", *group, "--errors", "skip")
    assert [json.loads(line)["key"]["value"] for line in result.lines] == ["c"]


def test_segments_are_read_by_subject_of_their_directory(
    run: Run, apicurio: Apicurio, running_broker: Any, sent: str
) -> None:
    [directory] = running_broker.directory.rglob("sent-0")
    result = run("read", directory, *by(apicurio)[:4], "--json")
    assert printed(result) == EXPECTED
    assert (
        printed(run("read", directory, *by(apicurio)[:4], "--json", "--where", "\"value.city\" = 'c'")) == EXPECTED[4:]
    )


def test_registry_settings_are_options(run: Run, apicurio: Apicurio, sent: str, tmp_path: Any) -> None:
    file = tmp_path / "registry.properties"
    file.write_text(f"ssl.ca.location={apicurio.authority}\n")
    secure = ("--value", "avro", "--registry", apicurio.tls_url, "--value-subject", "sent-value", "--json", "-n", "1")
    for setting in (f"ssl.ca.location={apicurio.authority}", str(file)):
        assert printed(run("read", sent, *secure, "--registry-settings", setting)) == EXPECTED[:1]
    result = run("read", sent, *secure)
    assert (result.code, "ssl.ca.location" in result.err) == (3, True)
    result = run("read", sent, *secure, "--registry-settings", "basic.auth.user.info=a:b")
    assert "is visible to other users" in result.err


def test_page_commands_run(run: Run, apicurio: Apicurio, broker: str, sent: str) -> None:
    block = "".join(pages.blocks("docs/how-to/decode-avro.md", mark)[0] for mark in ("sh", "sh where"))
    lines = block.replace("\\\n", "").replace("http://registry:8081", apicurio.url).splitlines()
    results = [
        run(*shlex.split(line)[1:])
        for line in (each.replace("localhost:9092/orders", f"{broker}/sent") for each in lines)
    ]
    assert [result.code for result in results] == [0, 0, 0]
    assert "c" in results[2].out
    assert "?" not in results[2].out
    assert '{"number":3.5' in results[0].out
    assert results[1].lines == []  # no value of the tenant is damaged


def test_missing_subject_is_wrong_usage(run: Run, apicurio: Apicurio, sent: str) -> None:
    result = run("read", sent, *by(apicurio, "nothing-value"))
    assert (result.code, "--value-subject" in result.err) == (2, True)


def test_command_reads_json_and_protobuf_values(run: Run, apicurio: Apicurio, broker: str) -> None:
    city = {"type": "object", "properties": {"name": {"type": "string"}}}
    order = {"type": "object", "properties": {"id": {"type": "integer"}, "city": {"$ref": "city.json"}}}
    apicurio.register("city-json", city, kind="JSON")
    number = apicurio.register("json-value", order, kind="JSON", references={"city-json": "city.json"})
    client = SchemaRegistryClient({"url": apicurio.url})
    text = 'syntax = "proto3"; import "city.proto"; message Order { int64 id = 1; City city = 2; }'
    apicurio.register("city-proto", 'syntax = "proto3"; message City { string name = 1; }', kind="PROTOBUF")
    compiled = apicurio.register("proto-value", text, kind="PROTOBUF", references={"city-proto": "city.proto"})
    assert client.get_schema(number).schema_type == "JSON"
    values = {
        "json": [(number, b'{"id": 7, "city": {"name": "B"}}'), (number, b'{"id": "x"}')],
        "proto": [(compiled, b"\0\x08\x07\x12\x03\x0a\x01B"), (compiled, b"\0\xff")],
    }
    for topic, format in (("json", "json"), ("proto", "protobuf")):
        create_with(broker, topic, 1)
        column = [b"\0" + schema_id.to_bytes(4, "big") + value for schema_id, value in values[topic]]
        lh.write.topic(pa.table({"value": column}), topic, bootstrap_servers=broker)
        options = ("--value", format, "--registry", apicurio.url, "--json", "--columns", "offset,value")
        result = run("read", f"kafka://{broker}/{topic}", *options, "--errors", "null")
        assert printed(result) == [{"id": 7, "city": {"name": "B"}}, None]
        result = run("read", f"kafka://{broker}/{topic}", *options)
        place = f"topic {topic}, partition 0, offset 1"
        assert (printed(result), result.code, place in result.err) == ([{"id": 7, "city": {"name": "B"}}], 1, True)


def test_protobuf_schema_of_confluent_serializer_is_read(apicurio: Apicurio, broker: str) -> None:
    from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
    from google.protobuf.timestamp_pb2 import Timestamp

    create_with(broker, "well-known", 1)
    serializer = ProtobufSerializer(
        Timestamp, SchemaRegistryClient({"url": apicurio.url}), {"use.deprecated.format": False}
    )
    value = serializer(Timestamp(seconds=5, nanos=7), SerializationContext("well-known", MessageField.VALUE))
    lh.write.topic(pa.table({"value": [value]}), "well-known", bootstrap_servers=broker)
    decoder = ProtobufDecoder(Registry(apicurio.url), subject="well-known-value")
    with lh.read.topic("well-known", bootstrap_servers=broker) as reader:
        rows = decode_values(reader, decoder).read_all()
    assert rows["value"].to_pylist() == [{"seconds": 5, "nanos": 7}]
