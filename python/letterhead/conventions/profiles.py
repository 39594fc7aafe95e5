"""Tables of the headers of each convention, with the types of their values: :data:`PROFILES`, by name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

from letterhead.fields import Field, field

__all__ = ["PROFILES", "Profile", "ProfileHeader", "profiles_of"]


class ProfileHeader(NamedTuple):
    """Header of a convention.

    Attributes
    ----------
    column, header : str
        Name of the output column, and key of the header.
    type : str
        Type of its value, as :func:`letterhead.field` accepts it.
    note : str
        A short description of the value, and the function that parses it further.
    """

    column: str
    header: str
    type: str
    note: str


class Profile(NamedTuple):
    """A convention.

    Attributes
    ----------
    name, title : str
        Name of the convention for :func:`letterhead.profile`, and its title.
    source : str
        The document or program that defines the headers and their bytes.
    headers : tuple of ProfileHeader
        Headers of the convention, in the order of the columns.
    """

    name: str
    title: str
    source: str
    headers: tuple[ProfileHeader, ...]

    def columns(self) -> dict[str, Field]:
        """Return the columns for ``select``."""
        return {header.column: field(header.type, key=header.header) for header in self.headers}


_Row: TypeAlias = tuple[str, str, str, str]
"""Fields of a :class:`ProfileHeader`."""


def _profile(name: str, title: str, source: str, *headers: _Row) -> Profile:
    return Profile(name, title, source, tuple(ProfileHeader(*header) for header in headers))


def _origin(prefix: str, suffix: str = "") -> tuple[_Row, ...]:
    """Return the headers that identify the failed record; ``suffix`` is the type suffix of their numbers."""
    return (
        ("original_topic", f"{prefix}topic", "string", "topic of the record"),
        ("original_partition", f"{prefix}partition", f"int32{suffix}", "its partition"),
        ("original_offset", f"{prefix}offset", f"int64{suffix}", "its offset"),
    )


def _origin_time(prefix: str) -> tuple[_Row, ...]:
    return (
        ("original_timestamp", f"{prefix}timestamp", "timestamp_ms", "its timestamp"),
        ("original_timestamp_type", f"{prefix}timestamp-type", "string", "`CreateTime`, `LogAppendTime`"),
    )


def _exception(prefix: str) -> tuple[_Row, ...]:
    """Return the headers that describe an exception, by Spring Kafka's names."""
    return (
        ("exception_class", f"{prefix}fqcn", "string", "class of the exception"),
        ("exception_cause_class", f"{prefix}cause-fqcn", "string", "class of its cause"),
        ("exception_message", f"{prefix}message", "string", "its message"),
        ("exception_stacktrace", f"{prefix}stacktrace", "string", "its stack trace"),
    )


# W3C trace context and baggage.
_OPENTELEMETRY = _profile(
    "opentelemetry",
    "OpenTelemetry: W3C trace context and baggage",
    "W3C Trace Context, W3C Baggage; OpenTelemetry's propagators write the same text as over HTTP",
    ("traceparent", "traceparent", "string", "version, trace, parent and flags, parsed by `lha.traceparent`"),
    ("tracestate", "tracestate", "string", "`key=value` pairs of vendors, joined by commas"),
    ("baggage", "baggage", "string", "`key=value` pairs, percent-encoded, joined by commas"),
)

# Binary content mode: attributes in headers, data in the value.
_CLOUDEVENTS = _profile(
    "cloudevents",
    "CloudEvents 1.0, binary content mode",
    "CloudEvents, Kafka Protocol Binding 1.0.2, section 3.2; extensions are text headers named `ce_` and their name",
    ("ce_specversion", "ce_specversion", "string", "version of the specification, `1.0`"),
    ("ce_id", "ce_id", "string", "id of the event, unique within its source"),
    ("ce_source", "ce_source", "string", "source of the event, a URI reference"),
    ("ce_type", "ce_type", "string", "type of the event"),
    ("ce_subject", "ce_subject", "string", "subject of the event within its source"),
    ("ce_time", "ce_time", "string", "RFC 3339, parsed by `lha.rfc3339`"),
    ("ce_dataschema", "ce_dataschema", "string", "schema of the data, a URI"),
    ("content_type", "content-type", "string", "`datacontenttype`: media type of the value"),
)

_CONFLUENT = _profile(
    "confluent",
    "Confluent Schema Registry: ids in headers",
    "`SchemaId` and `HeaderSchemaIdSerializer` of Confluent's schema-registry and confluent-kafka-python",
    ("key_schema_id", "__key_schema_id", "binary", "magic byte, id or guid, parsed by `lha.schema_id`"),
    ("value_schema_id", "__value_schema_id", "binary", "the same for the value"),
)

_APICURIO = _profile(
    "apicurio",
    "Apicurio Registry: ids in headers",
    "`SerdeHeaders`, `DefaultHeadersHandler` and `AvroSerdeHeaders` of Apicurio's serializers, version 2.6; a message has one "
    "of the ids, or the name and version of the schema",
    *(
        (f"{part}_{column}", f"apicurio.{part}.{name}", type, note.format(part=part))
        for part in ("key", "value")
        for column, name, type, note in (
            ("global_id", "globalId", "int64", "id of the {part}'s schema"),
            ("content_id", "contentId", "int64", "id of its content"),
            ("content_hash", "contentHash", "string", "hash of its content"),
            ("group_id", "groupId", "string", "its group"),
            ("artifact_id", "artifactId", "string", "its name"),
            ("version", "version", "string", "its version"),
            ("message_type", "msgType", "string", "Protobuf: type of the {part}"),
            ("encoding", "encoding", "string", "Avro: encoding of the {part}, `BINARY` or `JSON`"),
        )
    ),
)

_STREAMS_DLQ = _profile(
    "streams-dlq",
    "Kafka Streams: dead letter queue",
    "KIP-1034, written by `ExceptionHandlerUtils` of Kafka Streams 4.4.0; numbers are text",
    *_origin("__streams.errors.", ":text"),
    ("exception_class", "__streams.errors.exception", "string", "class of the exception"),
    ("exception_message", "__streams.errors.message", "string", "its message; a null header if it has none"),
    ("exception_stacktrace", "__streams.errors.stacktrace", "string", "its stack trace"),
)

_CONNECT_DLQ = _profile(
    "connect-dlq",
    "Kafka Connect: dead letter queue",
    "KIP-298, written by `DeadLetterQueueReporter` of Kafka Connect 4.4.0 with "
    "`errors.deadletterqueue.context.headers.enable`; numbers are text",
    *_origin("__connect.errors.", ":text"),
    ("connector", "__connect.errors.connector.name", "string", "name of the connector"),
    ("task", "__connect.errors.task.id", "int32:text", "number of its task"),
    ("stage", "__connect.errors.stage", "string", "`VALUE_CONVERTER`, `TRANSFORMATION`, `TASK_PUT`, …"),
    ("failing_class", "__connect.errors.class.name", "string", "class in which the error occurred"),
    ("exception_class", "__connect.errors.exception.class.name", "string", "class of the exception"),
    ("exception_message", "__connect.errors.exception.message", "string", "its message"),
    ("exception_stacktrace", "__connect.errors.exception.stacktrace", "string", "its stack trace"),
)

_SMALLRYE_DLQ = _profile(
    "smallrye-dlq",
    "SmallRye Reactive Messaging (Quarkus): dead letter queue",
    "`KafkaDeadLetterQueue` of SmallRye Reactive Messaging 4.27.0; numbers are text",
    *_origin("dead-letter-", ":text"),
    ("exception_class", "dead-letter-exception-class-name", "string", "class of the exception"),
    ("exception_message", "dead-letter-reason", "string", "its message, or the exception as text"),
    ("exception_cause_class", "dead-letter-cause-class-name", "string", "class of its cause"),
    ("exception_cause_message", "dead-letter-cause", "string", "message of its cause"),
)

_SPRING = _profile(
    "spring",
    "Spring Kafka: types of headers and of JSON",
    "`DefaultKafkaHeaderMapper` and `DefaultJackson2JavaTypeMapper` of Spring Kafka 3.3",
    ("json_header_types", "spring_json_header_types", "string", "JSON: Java classes, for `spring_columns`"),
    ("type_id", "__TypeId__", "string", "Java class of the value"),
    ("content_type_id", "__ContentTypeId__", "string", "class of its elements, for a collection"),
    ("map_key_type_id", "__KeyTypeId__", "string", "class of its keys, for a map"),
    ("key_type_id", "__Key_TypeId__", "string", "Java class of the record's key"),
    ("key_content_type_id", "__Key_ContentTypeId__", "string", "class of its elements"),
    ("key_map_key_type_id", "__Key_KeyTypeId__", "string", "class of its keys"),
)

_SPRING_DLT = _profile(
    "spring-dlt",
    "Spring Kafka: dead letter topic",
    "`DeadLetterPublishingRecoverer` and `KafkaHeaders` of Spring Kafka 3.3; numbers are big-endian, not text",
    *_origin("kafka_dlt-original-"),
    *_origin_time("kafka_dlt-original-"),
    ("original_consumer_group", "kafka_dlt-original-consumer-group", "string", "consumer group that failed"),
    *_exception("kafka_dlt-exception-"),
    ("key_exception_class", "kafka_dlt-key-exception-fqcn", "string", "the same, for an error of the key"),
    ("key_exception_message", "kafka_dlt-key-exception-message", "string", "its message"),
    ("key_exception_stacktrace", "kafka_dlt-key-exception-stacktrace", "string", "its stack trace"),
)

_SPRING_RETRY = _profile(
    "spring-retry",
    "Spring Kafka: retry topics",
    "`DeadLetterPublishingRecovererFactory` and `KafkaHeaders` of Spring Kafka 3.3 and 4.0; times of `retry_topic` are as "
    "long as `BigInteger` writes them, and attempts were one byte before 2.8",
    ("attempts", "retry_topic-attempts", "int32:varlen", "attempts, with the next one"),
    ("first_timestamp", "retry_topic-original-timestamp", "timestamp_ms:varlen", "timestamp of the first record"),
    ("next_attempt", "retry_topic-backoff-timestamp", "timestamp_ms:varlen", "when the record is processed again"),
    *_origin("kafka_original-"),
    *_origin_time("kafka_original-"),
    *_exception("kafka_exception-"),
)

# Connect's default header converter, `SimpleHeaderConverter`, writes text.
_DEBEZIUM = _profile(
    "debezium",
    "Debezium: context of the connector, and added headers",
    "`DebeziumHeaderProducer` of Debezium 3 (`extended.headers.enabled`), and `ExtractNewRecordState` with "
    "`add.headers=op,source.ts_ms`, each through `SimpleHeaderConverter`",
    ("connector_logical_name", "__debezium.context.connectorLogicalName", "string", "`topic.prefix`"),
    ("connector_name", "__debezium.context.connectorName", "string", "type of the connector, `postgresql`"),
    ("task_id", "__debezium.context.taskId", "string", "task of the connector, a number as text"),
    ("run_id", "__debezium.context.runId", "string", "a UUID for each start; only in later releases"),
    ("op", "__op", "string", "`c`, `u`, `d`, `r`, `t`"),
    ("source_ts", "__source_ts_ms", "timestamp_ms:text", "time of the change in the database"),
)

_DEBEZIUM_OUTBOX = _profile(
    "debezium-outbox",
    "Debezium: outbox event router",
    "`EventRouter` of Debezium 3: the id; the type with `table.fields.additional.placement=type:header:eventType`",
    ("event_id", "id", "string", "id of the event, which identifies duplicates"),
    ("event_type", "eventType", "string", "its type, under the name in Debezium's documentation"),
)

_EVENTHUBS = _profile(
    "eventhubs",
    "Azure IoT Hub and Event Hubs: properties of AMQP messages",
    "Microsoft, IoT Hub message format, system properties of device-to-cloud messages; AMQP 1.0 Part 1 for the bytes. "
    "Properties of an application have their own names, and values of the same form",
    ("device_id", "iothub-connection-device-id", "string:amqp", "device that sent the message"),
    ("module_id", "iothub-connection-module-id", "string:amqp", "its module"),
    ("auth_method", "iothub-connection-auth-method", "string:amqp", "JSON: how the device was authenticated"),
    ("auth_generation_id", "iothub-connection-auth-generation-id", "string:amqp", "generation of the device id"),
    ("enqueued_time", "iothub-enqueuedtime", "timestamp_ms:amqp", "when IoT Hub received the message"),
    ("message_source", "iothub-message-source", "string:amqp", "`Telemetry`, `twinChangeEvents`, …"),
    ("data_schema", "dt-dataschema", "string:amqp", "model of a plug and play device"),
    ("data_subject", "dt-subject", "string:amqp", "its component"),
)

PROFILES: dict[str, Profile] = {
    convention.name: convention
    for convention in (
        _OPENTELEMETRY, _CLOUDEVENTS, _CONFLUENT, _APICURIO, _STREAMS_DLQ, _CONNECT_DLQ, _SMALLRYE_DLQ, _SPRING,
        _SPRING_DLT, _SPRING_RETRY, _DEBEZIUM, _DEBEZIUM_OUTBOX, _EVENTHUBS,
    )
}  # fmt: skip
"""Conventions by name."""

_COMMON = frozenset({"id", "eventType", "content-type", "baggage"})
"""Headers whose names several conventions share."""


def profiles_of(keys: Iterable[object]) -> tuple[str, ...]:
    """Return the names of the conventions that have some of these headers, apart from shared names."""
    known = {*keys} - _COMMON
    return tuple(
        name for name, convention in PROFILES.items() if any(header.header in known for header in convention.headers)
    )
