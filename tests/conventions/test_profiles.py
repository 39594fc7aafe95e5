"""Conventions: compared with the programs that write them, or with headers that those programs wrote."""

import datetime
import doctest
import json
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from cloudevents.core.bindings.kafka import to_binary
from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent
from confluent_kafka.schema_registry import header_schema_id_serializer
from confluent_kafka.schema_registry.serde import SchemaId
from confluent_kafka.serialization import MessageField, SerializationContext
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry import baggage, trace
from opentelemetry.baggage.propagation import W3CBaggagePropagator
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

import letterhead as lh
from letterhead import arrow as lha
from letterhead.conventions.profiles import PROFILES
from letterhead.conventions.readers.rfc3339 import Rfc3339Reader
from letterhead.conventions.readers.schema_id import SchemaIdReader
from letterhead.conventions.readers.traceparent import TraceparentReader
from letterhead.fields import normalise
from tests.versions import KAFKA, built

ROOT = Path(__file__).parents[2]


def recorded(name):
    """Return recorded headers of a real program, one list per message."""
    lines = map(json.loads, (ROOT / "tests/samples/conventions.jsonl").read_text().splitlines())
    return [
        [(key, None if value is None else bytes.fromhex(value)) for key, value in line["headers"]]
        for line in lines
        if line["profile"] == name
    ]


def select(headers, name):
    """Read one message by a profile, as a message and as a column, which must agree."""
    block = lh.encode(headers, "kafka")
    row = lha.select(pa.array([block]), lh.profile(name)).to_pylist()[0]
    single = lh.select(block, lh.profile(name))
    for column, value in row.items():
        if isinstance(value, datetime.datetime):
            assert single[column] == value.timestamp() * 1000
        else:
            assert single[column] == value
    return row


@pytest.mark.parametrize("name", PROFILES)
def test_select_accepts_the_columns_of_every_profile(name):
    columns = lh.profile(name)
    assert normalise(columns)
    assert len({column.key for column in columns.values()}) == len(columns)
    assert "error" not in columns
    headers = pa.array([None, []], pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])))
    for row in lha.select(headers, columns).to_pylist():
        assert row == dict.fromkeys(columns)


def test_returned_profile_is_a_copy():
    lh.profile("opentelemetry").clear()
    assert list(lh.profile("opentelemetry")) == ["traceparent", "tracestate", "baggage"]


def test_unknown_profile_is_rejected_with_a_suggestion():
    with pytest.raises(TypeError, match=r"profile must be str, not list: .* letterhead.arrow.scan\(column\) lists"):
        lh.profile([])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="unknown profile 'opentelemtry': did you mean 'opentelemetry'"):
        lh.profile("opentelemtry")


def test_profile_reads_headers_of_opentelemetry():
    context = trace.SpanContext(
        0x0AF7651916CD43DD8448EB211C80319C, 0xB7AD6B7169203331, is_remote=False, trace_flags=trace.TraceFlags(1),
        trace_state=trace.TraceState([("congo", "t61rcWkgMzE"), ("rojo", "00f067aa0ba902b7")]),
    )  # fmt: skip
    current = trace.set_span_in_context(trace.NonRecordingSpan(context))
    carrier = {}
    TraceContextTextMapPropagator().inject(carrier, current)
    W3CBaggagePropagator().inject(carrier, baggage.set_baggage("user", "ä b", current))
    row = select(list(carrier.items()), "opentelemetry")
    assert row == {
        "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "tracestate": "congo=t61rcWkgMzE,rojo=00f067aa0ba902b7",
        "baggage": "user=%C3%A4+b",
    }
    parts = lha.traceparent(pa.array([row["traceparent"]])).to_pylist()[0]
    assert parts["trace_id"] == trace.format_trace_id(context.trace_id)
    assert parts["parent_id"] == trace.format_span_id(context.span_id)
    assert (parts["version"], parts["flags"], parts["sampled"]) == ("00", "01", True)


TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
TRACEPARENTS = [
    (f"00-{TRACE}-{SPAN}-00", None),
    (f"00-{TRACE}-{SPAN}-03", None),
    (f"cc-{TRACE}-{SPAN}-01-what-the-future-holds", None),
    (f"00-{TRACE}-{SPAN}-01-more", (55, "version 00 ends after the flags")),
    (f"cc-{TRACE}-{SPAN}-01more", (0, "the text is not of the form version-traceid-parentid-flags")),
    (f"ff-{TRACE}-{SPAN}-01", (0, "version ff is invalid")),
    (f"00-{'0' * 32}-{SPAN}-01", (3, "the trace id has only zeros")),
    (f"00-{TRACE}-{'0' * 16}-01", (36, "the parent id has only zeros")),
    (f"00-{TRACE.upper()}-{SPAN}-01", (0, "the text is not of the form version-traceid-parentid-flags")),
    (f"00-{TRACE}-{SPAN}-01\n", (0, "the text is not of the form version-traceid-parentid-flags")),
    ("", (0, "the text is not of the form version-traceid-parentid-flags")),
]


@pytest.mark.parametrize(("text", "wrong"), TRACEPARENTS)
def test_traceparent_agrees_with_opentelemetry(text, wrong):
    context = TraceContextTextMapPropagator().extract({"traceparent": text})
    known = trace.get_current_span(context).get_span_context()
    row = lha.traceparent(pa.array([None, text]), errors="column").to_pylist()[1]
    if wrong is None:
        assert row["error"] is None
        assert int(row["value"]["trace_id"], 16) == known.trace_id
        assert int(row["value"]["parent_id"], 16) == known.span_id
        assert row["value"]["sampled"] == known.trace_flags.sampled
        return
    assert not known.is_valid or text.endswith(("more", "\n"))
    byte, message = wrong
    assert row["value"] is None
    assert [(error["code"], error["byte_offset"], error["message"]) for error in row["error"]] == [
        ("bad_text", byte, message)
    ]
    with pytest.raises(lh.DecodeError, match="row 1"):
        lha.traceparent(pa.array([None, text]))


def test_non_utf8_traceparent_is_rejected():
    rows = pa.array([b"\xff", f"01-{TRACE}-{SPAN}-01-".encode() + b"\xff", None])
    assert lha.traceparent(rows, errors="null").to_pylist()[0] is None
    assert lha.traceparent(rows[2:]).to_pylist() == [None]


def test_profile_reads_headers_of_cloudevents():
    moment = datetime.datetime(2026, 1, 31, 9, 0, 0, 123456, datetime.UTC)
    event = CloudEvent(
        {"id": "e-1", "source": "/orders", "type": "org.acme.order", "specversion": "1.0", "time": moment,
         "subject": "ä", "dataschema": "http://acme.org/s", "datacontenttype": "application/json", "partitionkey": "k"},
        {"qty": 1},
    )  # fmt: skip
    row = select(list(to_binary(event, JSONFormat()).headers.items()), "cloudevents")
    assert row == {
        "ce_specversion": "1.0", "ce_id": "e-1", "ce_source": "/orders", "ce_type": "org.acme.order", "ce_subject": "ä",
        "ce_time": "2026-01-31T09:00:00.123456Z", "ce_dataschema": "http://acme.org/s",
        "content_type": "application/json",
    }  # fmt: skip
    assert lha.rfc3339(pa.array([row["ce_time"]]), unit="us").to_pylist() == [moment]


def test_cloudevents_sdk_booleans_are_read():
    attributes = {"id": "e-1", "source": "/orders", "type": "org.acme.order", "specversion": "1.0"}
    message = to_binary(CloudEvent({**attributes, "replay": True, "final": False}, {}), JSONFormat())
    headers = lh.encode(list(message.headers.items()), "kafka")
    columns = {"ce_replay": "bool:text", "ce_final": "boolean:text"}
    assert lh.select(headers, columns) == {"ce_replay": True, "ce_final": False}
    assert lha.scan(pa.array([headers]), "kafka")["ce_replay"].statistics.readings["bool:text"].fits == 1
    typed = lh.convert(
        headers, "kafka", target="iggy", types={"ce_replay": "bool:text", "ce_final": "bool:text"}, on_loss="drop"
    )
    assert lh.select(typed, {"ce_replay": "bool"}, format="iggy") == {"ce_replay": True}


def test_boolean_error_names_valid_words_and_hides_value():
    headers = lh.encode([("flag", b"secret")], "kafka")
    with pytest.raises(lh.DecodeError, match="true, True, TRUE, false, False or FALSE") as raised:
        lh.select(headers, {"flag": "bool:text"})
    assert "secret" not in str(raised.value)


TIMES = [
    ("2026-01-31T09:00:00Z", 1769850000_000000000),
    ("2026-01-31t09:00:00z", 1769850000_000000000),
    ("2026-01-31 09:00:00Z", 1769850000_000000000),
    ("2026-01-31T09:00:00+01:30", 1769844600_000000000),
    ("2026-01-31T09:00:00.5-00:30", 1769851800_500000000),
    ("1969-12-31T23:59:59.000000001Z", -999999999),
    ("2024-02-29T00:00:00.1234567899Z", 1709164800_123456789),
    ("2262-04-11T23:47:16.854775807Z", (1 << 63) - 1),
    ("2262-04-11T23:47:15.999999999Z", 9223372035_999999999),
    ("2262-04-11T23:47:16.854775808Z", "the time does not fit 64 bits of ns"),
    ("2262-04-11T23:47:17Z", "the time does not fit 64 bits of ns"),
    ("1677-09-21T00:12:43.145224192Z", -1 << 63),
    ("1677-09-21T00:12:43.145224191Z", "the time does not fit 64 bits of ns"),
    ("1677-09-21T01:42:43.145224192+01:30", -1 << 63),
    ("1677-09-21T01:42:43.145224191+01:30", "the time does not fit 64 bits of ns"),
    ("2262-04-11T22:17:16.854775807-01:30", (1 << 63) - 1),
    ("2262-04-11T22:17:16.854775808-01:30", "the time does not fit 64 bits of ns"),
    ("2026-02-29T00:00:00Z", "the date does not exist"),
    ("2026-04-31T00:00:00Z", "the date does not exist"),
    ("9999-12-31T23:59:59Z", "the time does not fit 64 bits of ns"),
    ("0000-01-01T00:00:00Z", "the date is not in the years 1 to 9999"),
    ("2026-01-31T09:00Z", 1769850000_000000000),
    ("2026-01-31T09:00-00:30", 1769851800_000000000),
    ("2016-12-31T23:59:60Z", 1483228800_000000000),
    ("2017-01-01T05:29:60.000+05:30", 1483228800_000000000),
    ("2016-12-31T23:59:60.5Z", "a fraction of a leap second has no number of its own"),
    ("2016-12-31T23:59:60+01:00", "a leap second is at 23:59:60 in UTC"),
    ("2026-01-31T09:00:60Z", "a leap second is at 23:59:60 in UTC"),
    ("2026-01-31T09:00:00", "the time has no offset, such as Z or +01:00: read it as string"),
    ("2026-01-31T09:00", "the time has no offset, such as Z or +01:00: read it as string"),
    ("2026-01-31T09:00:61Z", None),
    ("2026-01-31T09:00.5Z", None),
    ("2026-01-31", None),
    ("2026-01-31T24:00:00Z", None),
    ("٢026-01-31T09:00:00Z", None),
    ("", None),
]


@pytest.mark.parametrize(("text", "expected"), TIMES)
def test_rfc3339_reads_a_time_or_reports_its_error(text, expected):
    row = lha.rfc3339(pa.array([None, text]), errors="column")
    value, error = row.field("value").cast(pa.int64())[1].as_py(), row.field("error")[1].as_py()
    if isinstance(expected, int):
        assert (value, error) == (expected, None)
        return
    message = expected or "the text is not a time with an offset, such as 2026-01-31T09:00:00Z"
    assert (value, error[0]["message"]) == (None, message)
    assert row.field("error")[0].as_py() is None


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_rfc3339_cuts_digits_past_the_unit(unit):
    times = pa.array(
        ["1969-12-31T23:59:59.9999999999Z", "1970-01-01T00:00:00.0000000009Z", "1969-12-31T23:59:58Z", None]
    )
    scale = 10 ** {"s": 0, "ms": 3, "us": 6, "ns": 9}[unit]
    assert lha.rfc3339(times, unit=unit).cast(pa.int64()).to_pylist() == [-1, 0, -2 * scale, None]


@pytest.mark.parametrize("field", [MessageField.KEY, MessageField.VALUE])
@pytest.mark.parametrize("indexes", [None, [0], [1, 0, 3]])
def test_schema_id_reads_confluent_serializer_headers(field, indexes):
    guid = "89791762-2336-4186-9674-299b90a802e2"
    headers = []
    schema = SchemaId("PROTOBUF" if indexes else "AVRO", 42, guid, indexes)
    header_schema_id_serializer(b"payload", SerializationContext("orders", field, headers), schema)
    row = select(headers, "confluent")
    value = row["key_schema_id" if field == MessageField.KEY else "value_schema_id"]
    by_id = schema.id_to_bytes()
    assert lha.schema_id(pa.array([value, None, by_id])).to_pylist() == [
        {"id": None, "guid": guid, "message_indexes": indexes},
        None,
        {"id": 42, "guid": None, "message_indexes": indexes},
    ]


def test_message_index_has_32_bits():
    rows = pa.array([bytes.fromhex("000000002a02ffffffff0f"), bytes.fromhex("000000002a02feffffff0f")])
    assert [row["message_indexes"] for row in lha.schema_id(rows).to_pylist()] == [[-(1 << 31)], [(1 << 31) - 1]]


SCHEMA_IDS = [
    ("", "truncated", 0, "the value is empty, and an id has at least 5 bytes"),
    ("02000000", "bad_magic", 0, "the magic byte is 2, neither 0 (an id) nor 1 (a guid)"),
    ("0000002a", "truncated", 1, "the value has 4 bytes, and the id needs 5"),
    ("01" + "ab" * 15, "truncated", 1, "the value has 16 bytes, and the id needs 17"),
    ("000000002a0402", "truncated", 7, "the number of message indexes is 2, and 1 follow"),
    ("000000002a80", "truncated", 5, "the bytes end inside a message index"),
    ("000000002a808080808000", "varint_too_long", 5, "a message index goes on after its fifth byte"),
    ("000000002affffffff7f", "varint_lost_bits", 5, "a message index has more than 32 bits"),
    ("000000002a02ffffffff1f", "varint_lost_bits", 6, "a message index has more than 32 bits"),
    ("000000002a01", "negative_count", 5, "the number of message indexes is -1"),
    ("000000002a0000", "trailing_bytes", 6, "1 byte after the message indexes"),
]


@pytest.mark.parametrize(("data", "code", "byte", "message"), SCHEMA_IDS)
def test_errors_of_schema_ids_name_code_byte_and_reason(data, code, byte, message):
    good = bytes.fromhex("000000000704020a")
    rows = pa.array([good[:5], bytes.fromhex(data), None, good], pa.binary())
    row = lha.schema_id(rows, errors="column")
    values = row.field("value").to_pylist()
    assert [value and value["id"] for value in values] == [7, None, None, 7]
    [error] = row.field("error")[1].as_py()
    assert (error["code"], error["byte_offset"], error["message"]) == (code, byte, message)
    assert row.field("error").null_count == 3


def test_conventions_of_a_whole_topic_are_parsed():
    headers = pq.read_table(ROOT / "tests/samples/orders-0.parquet")["headers"].combine_chunks()
    selected = lha.select(headers, {**lh.profile("opentelemetry"), **lh.profile("confluent")})
    traces = lha.traceparent(selected.field("traceparent"))
    assert (traces.null_count, pc.count_distinct(pc.utf8_length(traces.field("trace_id"))).as_py()) == (300, 1)
    assert pc.sum(pc.cast(traces.field("sampled"), pa.int64())).as_py() == 4_805
    ids = lha.schema_id(selected.field("value_schema_id"))
    assert [len(ids) - ids.field(part).null_count for part in ("id", "guid", "message_indexes")] == [4_934, 4_766, 0]
    spelt = lha.select(headers, {"id": lh.field("binary", key="__value_schema_id")}).field("id").to_pylist()
    for row, data in zip(ids.to_pylist(), spelt, strict=True):
        if data is None:
            assert row is None
        elif data[0] == 0:
            assert row["id"] == int.from_bytes(data[1:], "big")
        else:
            assert row["guid"].replace("-", "") == data[1:].hex()


SEEDS = {
    "traceparent": [f"00-{TRACE}-{SPAN}-01", f"01-{TRACE}-{SPAN}-01-x", f"00-{'0' * 32}-{SPAN}-01"],
    "rfc3339": [
        "2026-02-28T23:59:59.999Z",
        "0000-01-01T00:00:00+23:59",
        "2262-04-11T23:47:16.9-00:00",
        "1677-09-21T01:42:43.2+01:30",
        "2262-04-11T22:17:16.8-01:30",
        "2262-04-11T22:17:16.9-01:30",
    ],
    "schema_id": ["\x00\x00\x00\x00\x2a", "\x00\x00\x00\x00\x2a\x04\x02\x06", "\x01" + "g" * 16 + "\x00"],
}


@st.composite
def nearly_right(draw, name):
    """Return a valid value with up to two changed bytes, or without its end."""
    data = bytearray(draw(st.sampled_from(SEEDS[name])).encode("latin-1"))
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, len(data) - 1))
        data[at : at + draw(st.integers(0, 1))] = draw(st.sampled_from([b"0", b"1", b"3", b"-", b"\x80", b"\x04", b""]))
    return bytes(data[: draw(st.integers(0, len(data)) | st.just(len(data)))])


@pytest.mark.parametrize("part", ["key", "value"])
def test_apicurio_serializer_headers_are_read(part: str) -> None:
    # Written by DefaultHeadersHandler and AvroSerdeHeaders of Apicurio 2.6.13.
    by_id = [(f"apicurio.{part}.globalId", "0000000000000007"), (f"apicurio.{part}.encoding", "42494e415259")]
    by_content = [(f"apicurio.{part}.contentId", "0000000000000005")]
    by_name = [
        (f"apicurio.{part}.contentHash", "616263"), (f"apicurio.{part}.groupId", "6f7264657273"),
        (f"apicurio.{part}.artifactId", "6f726465722d76616c7565"), (f"apicurio.{part}.version", "33"),
    ]  # fmt: skip
    expected = [
        {"global_id": 7, "encoding": "BINARY"},
        {"content_id": 5},
        {"content_hash": "abc", "group_id": "orders", "artifact_id": "order-value", "version": "3"},
    ]
    for written, values in zip((by_id, by_content, by_name), expected, strict=True):
        headers = lh.Headers([(key, bytes.fromhex(value)) for key, value in written])
        row = lh.select(lh.encode(headers, "kafka"), lh.profile("apicurio"))
        assert {name: value for name, value in row.items() if value is not None} == {
            f"{part}_{name}": value for name, value in values.items()
        }


@pytest.mark.parametrize("reader", [TraceparentReader(), Rfc3339Reader("ns"), Rfc3339Reader("us"), SchemaIdReader()],
                         ids=lambda reader: reader.name)  # fmt: skip
@given(data=st.data())
def test_column_reader_marks_the_rows_that_find_error_rejects(reader, data):
    rows = data.draw(st.lists(st.none() | nearly_right(reader.name.replace("-", "_")), max_size=8))
    invalid = [data is not None and reader.find_error(data) is not None for data in rows]
    values, bad = reader.read(pa.array(rows, pa.binary()))
    values.validate(full=True)
    assert bad.tolist() == invalid
    nulls = [data is None or wrong for data, wrong in zip(rows, invalid, strict=True)]
    assert values.is_null().to_pylist() == nulls


def test_profile_reads_the_dead_letter_queue_of_kafka_streams():
    with_message, without = (select(headers, "streams-dlq") for headers in recorded("streams-dlq"))
    assert with_message["exception_stacktrace"].startswith("java.lang.IllegalStateException: qty\n\tat ")
    del with_message["exception_stacktrace"]
    assert with_message == {
        "original_topic": "orders", "original_partition": 2, "original_offset": 5_000_000_000,
        "exception_class": "java.lang.IllegalStateException", "exception_message": "qty",
    }  # fmt: skip
    assert without["exception_message"] is None


def test_profile_keys_occur_in_kafka_streams_class():
    jars = list((built("jvm-tests") / "lib").glob(f"kafka-streams-{KAFKA}.jar"))
    if not jars:
        pytest.skip("`tools/test python` brings the jar of Kafka Streams")
    with zipfile.ZipFile(jars[0]) as jar:
        written = jar.read("org/apache/kafka/streams/errors/internals/ExceptionHandlerUtils.class")
    for row in PROFILES["streams-dlq"].headers:
        assert row.header.encode() in written


def test_profile_reads_the_dead_letter_queue_of_kafka_connect():
    [headers] = recorded("connect-dlq")
    row = select(headers, "connect-dlq")
    assert row.pop("exception_stacktrace").startswith("java.lang.IllegalStateException: qty\n\tat ")
    assert row == {
        "original_topic": "orders", "original_partition": 2, "original_offset": 5_000_000_000,
        "connector": "sink-orders", "task": 1, "stage": "VALUE_CONVERTER",
        "failing_class": "org.apache.kafka.connect.storage.SimpleHeaderConverter",
        "exception_class": "java.lang.IllegalStateException", "exception_message": "qty",
    }  # fmt: skip


def test_profile_reads_the_dead_letter_topic_of_spring():
    [of_value], [of_key] = recorded("spring-dlt"), recorded("spring-dlt-key")
    row = select(of_value, "spring-dlt")
    assert row.pop("exception_stacktrace").startswith("org.springframework.kafka.listener.ListenerExecutionFailed")
    original = {
        "original_topic": "orders", "original_partition": 2, "original_offset": 5_000_000_000,
        "original_timestamp": datetime.datetime(2023, 11, 14, 22, 13, 20, 123000, datetime.UTC),
        "original_timestamp_type": "CreateTime", "original_consumer_group": "billing",
    }  # fmt: skip
    assert row == {
        **original, "exception_class": "org.springframework.kafka.listener.ListenerExecutionFailedException",
        "exception_cause_class": "java.lang.IllegalArgumentException", "exception_message": "listener failed; qty",
        "key_exception_class": None, "key_exception_message": None, "key_exception_stacktrace": None,
    }  # fmt: skip
    row = select(of_key, "spring-dlt")
    deserialization = "org.springframework.kafka.support.serializer.DeserializationException"
    assert row.pop("key_exception_stacktrace").startswith(f"{deserialization}: failed to deserialize")
    assert row == {
        **original, "exception_class": None, "exception_cause_class": deserialization, "exception_message": None,
        "exception_stacktrace": None, "key_exception_class": deserialization,
        "key_exception_message": "failed to deserialize",
    }  # fmt: skip


def test_profile_reads_the_types_of_spring():
    [headers] = recorded("spring-types")
    row = select(headers, "spring")
    assert row == {
        "json_header_types": None, "type_id": "Record$Order", "content_type_id": None, "map_key_type_id": None,
        "key_type_id": "java.util.HashMap", "key_content_type_id": "java.lang.Object",
        "key_map_key_type_id": "java.lang.Object",
    }  # fmt: skip


def test_spring_columns_have_types_from_json_header():
    [headers] = recorded("spring")
    block = lh.encode(headers, "kafka")
    types = lh.select(block, lh.profile("spring"))["json_header_types"]
    assert lh.select(block, {**lh.spring_columns(types), "raw": "binary"}) == {
        "tenant": 'acme "north"', "retry": 3, "offset": 1 << 40, "ratio": 0.25, "paid": True, "raw": b"\x00\x01",
        "ref": "89791762-2336-4186-9674-299b90a802e2", "contentType": "application/json",
    }  # fmt: skip


def test_spring_columns_rejects_json_that_is_not_a_map_of_types():
    with pytest.raises(ValueError, match="spring_json_header_types is not JSON"):
        lh.spring_columns("")
    with pytest.raises(ValueError, match="must be a JSON object of header to Java class"):
        lh.spring_columns('["java.lang.Long"]')


def test_profile_reads_debezium_headers_from_connect_converter():
    [headers] = recorded("debezium")
    assert select(headers, "debezium") == {
        "connector_logical_name": "inventory", "connector_name": "postgresql", "task_id": "0", "run_id": None, "op": "u",
        "source_ts": datetime.datetime(2023, 11, 14, 22, 13, 20, 123000, datetime.UTC),
    }  # fmt: skip
    event_id = "89791762-2336-4186-9674-299b90a802e2"
    assert select(headers, "debezium-outbox") == {"event_id": event_id, "event_type": None}


def test_profile_reads_amqp_properties_of_iot_hub():
    headers = [
        ("iothub-connection-device-id", bytes.fromhex("a10764657669636531")),
        ("iothub-enqueuedtime", bytes.fromhex("830000018bcfe5687b")),
        ("plain", b"text"),
    ]
    read = select(headers, "eventhubs")
    assert read.pop("device_id") == "device1"
    assert read.pop("enqueued_time") == datetime.datetime(2023, 11, 14, 22, 13, 20, 123000, datetime.UTC)
    assert set(read.values()) == {None}


def test_profile_page_runs():
    done = doctest.testfile(str(ROOT / "docs/reference/conventions.md"), module_relative=False)
    assert done.failed == 0
    assert done.attempted > 5


def test_profile_reads_the_dead_letters_of_smallrye():
    headers = [
        ("dead-letter-exception-class-name", "java.lang.IllegalArgumentException"), ("dead-letter-reason", "boom"),
        ("dead-letter-topic", "orders"), ("dead-letter-partition", "3"), ("dead-letter-offset", "1234567890123"),
    ]  # fmt: skip
    row = select(headers, "smallrye-dlq")
    assert (row["original_topic"], row["original_partition"], row["original_offset"]) == ("orders", 3, 1234567890123)
    assert (row["exception_class"], row["exception_message"]) == ("java.lang.IllegalArgumentException", "boom")
    assert (row["exception_cause_class"], row["exception_cause_message"]) == (None, None)


def test_scan_names_matching_profiles():
    def scanned(*names):
        return lha.scan(pa.array([lh.encode([(name, b"x") for name in names], "kafka")]), "kafka")

    assert scanned("traceparent", "ce_id", "tenant").profiles == ("opentelemetry", "cloudevents")
    assert scanned("id", "eventType", "content-type", "baggage").profiles == ()
    assert scanned("dead-letter-reason").profiles == ("smallrye-dlq",)
    assert repr(scanned("__value_schema_id")).splitlines()[-1].endswith(": confluent")
    assert scanned("traceparent").to_dict()["profiles"] == ["opentelemetry"]
