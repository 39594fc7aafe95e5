"""The headers of each convention and the types of their values, as tables. :data:`PROFILES` has them by name."""

from __future__ import annotations

from typing import NamedTuple

from letterhead.fields import Field, field

__all__ = ["PROFILES", "Profile", "Row"]


class Row(NamedTuple):
    """One header of a convention.

    Attributes
    ----------
    column, header : str
        Name of the output column, and key of the header.
    type : str
        Type of its value, as :func:`letterhead.field` takes it.
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
        Its name for :func:`letterhead.profile`, and its title.
    source : str
        The document or program that defines the headers and their bytes.
    rows : tuple of Row
        Its headers, in the order of the columns.
    """

    name: str
    title: str
    source: str
    rows: tuple[Row, ...]

    def columns(self) -> dict[str, Field]:
        """Return the columns for ``select``."""
        return {row.column: field(row.type, key=row.header) for row in self.rows}


# W3C trace context and baggage.
_OTEL = Profile(
    "otel",
    "OpenTelemetry: W3C trace context and baggage",
    "W3C Trace Context, W3C Baggage; OpenTelemetry's propagators write the same text as over HTTP",
    (
        Row("traceparent", "traceparent", "string", "version, trace, parent and flags, parsed by `lha.traceparent`"),
        Row("tracestate", "tracestate", "string", "`key=value` pairs of vendors, joined by commas"),
        Row("baggage", "baggage", "string", "`key=value` pairs, percent-encoded, joined by commas"),
    ),
)

# The binary content mode: attributes in headers, data in the value.
_CLOUDEVENTS = Profile(
    "cloudevents",
    "CloudEvents 1.0, binary content mode",
    "CloudEvents, Kafka Protocol Binding 1.0.2, section 3.2; extensions are text headers named `ce_` and their name",
    (
        Row("ce_specversion", "ce_specversion", "string", "version of the specification, `1.0`"),
        Row("ce_id", "ce_id", "string", "id of the event, unique within its source"),
        Row("ce_source", "ce_source", "string", "source of the event, a URI reference"),
        Row("ce_type", "ce_type", "string", "type of the event"),
        Row("ce_subject", "ce_subject", "string", "subject of the event within its source"),
        Row("ce_time", "ce_time", "string", "RFC 3339, parsed by `lha.rfc3339`"),
        Row("ce_dataschema", "ce_dataschema", "string", "schema of the data, a URI"),
        Row("content_type", "content-type", "string", "`datacontenttype`: media type of the value"),
    ),
)

_SCHEMA_ID = Profile(
    "schema-id",
    "Confluent Schema Registry: ids in headers",
    "`SchemaId` and `HeaderSchemaIdSerializer` of Confluent's schema-registry and confluent-kafka-python",
    (
        Row("key_schema_id", "__key_schema_id", "binary", "magic byte, id or guid, parsed by `lha.schema_id`"),
        Row("value_schema_id", "__value_schema_id", "binary", "the same for the value"),
    ),
)

_STREAMS_DLQ = Profile(
    "streams-dlq",
    "Kafka Streams: dead letter queue",
    "KIP-1034, written by `ExceptionHandlerUtils` of Kafka Streams 4.3.1; numbers are text",
    (
        Row("original_topic", "__streams.errors.topic", "string", "topic of the record"),
        Row("original_partition", "__streams.errors.partition", "int32:text", "its partition"),
        Row("original_offset", "__streams.errors.offset", "int64:text", "its offset"),
        Row("exception_class", "__streams.errors.exception", "string", "class of the exception"),
        Row("exception_message", "__streams.errors.message", "string", "its message; a null header if it has none"),
        Row("exception_stacktrace", "__streams.errors.stacktrace", "string", "its stack trace"),
    ),
)

_CONNECT_DLQ = Profile(
    "connect-dlq",
    "Kafka Connect: dead letter queue",
    "KIP-298, written by `DeadLetterQueueReporter` of Kafka Connect 4.3.1 with "
    "`errors.deadletterqueue.context.headers.enable`; numbers are text",
    (
        Row("original_topic", "__connect.errors.topic", "string", "topic of the record"),
        Row("original_partition", "__connect.errors.partition", "int32:text", "its partition"),
        Row("original_offset", "__connect.errors.offset", "int64:text", "its offset"),
        Row("connector", "__connect.errors.connector.name", "string", "name of the connector"),
        Row("task", "__connect.errors.task.id", "int32:text", "number of its task"),
        Row("stage", "__connect.errors.stage", "string", "`VALUE_CONVERTER`, `TRANSFORMATION`, `TASK_PUT`, …"),
        Row("failing_class", "__connect.errors.class.name", "string", "class in which the error occurred"),
        Row("exception_class", "__connect.errors.exception.class.name", "string", "class of the exception"),
        Row("exception_message", "__connect.errors.exception.message", "string", "its message"),
        Row("exception_stacktrace", "__connect.errors.exception.stacktrace", "string", "its stack trace"),
    ),
)

_SPRING = Profile(
    "spring",
    "Spring Kafka: types of headers and of JSON",
    "`DefaultKafkaHeaderMapper` and `DefaultJackson2JavaTypeMapper` of Spring Kafka 3.3",
    (
        Row("json_header_types", "spring_json_header_types", "string", "JSON: Java classes, for `spring_columns`"),
        Row("type_id", "__TypeId__", "string", "Java class of the value"),
        Row("content_type_id", "__ContentTypeId__", "string", "class of its elements, for a collection"),
        Row("map_key_type_id", "__KeyTypeId__", "string", "class of its keys, for a map"),
        Row("key_type_id", "__Key_TypeId__", "string", "Java class of the record's key"),
        Row("key_content_type_id", "__Key_ContentTypeId__", "string", "class of its elements"),
        Row("key_map_key_type_id", "__Key_KeyTypeId__", "string", "class of its keys"),
    ),
)

_SPRING_DLT = Profile(
    "spring-dlt",
    "Spring Kafka: dead letter topic",
    "`DeadLetterPublishingRecoverer` and `KafkaHeaders` of Spring Kafka 3.3; numbers are big-endian, not text",
    (
        Row("original_topic", "kafka_dlt-original-topic", "string", "topic of the record"),
        Row("original_partition", "kafka_dlt-original-partition", "int32", "its partition"),
        Row("original_offset", "kafka_dlt-original-offset", "int64", "its offset"),
        Row("original_timestamp", "kafka_dlt-original-timestamp", "timestamp_ms", "its timestamp"),
        Row("original_timestamp_type", "kafka_dlt-original-timestamp-type", "string", "`CreateTime`, `LogAppendTime`"),
        Row("original_consumer_group", "kafka_dlt-original-consumer-group", "string", "consumer group that failed"),
        Row("exception_class", "kafka_dlt-exception-fqcn", "string", "class of the exception"),
        Row("exception_cause_class", "kafka_dlt-exception-cause-fqcn", "string", "class of its cause"),
        Row("exception_message", "kafka_dlt-exception-message", "string", "its message"),
        Row("exception_stacktrace", "kafka_dlt-exception-stacktrace", "string", "its stack trace"),
        Row("key_exception_class", "kafka_dlt-key-exception-fqcn", "string", "the same, for an error of the key"),
        Row("key_exception_message", "kafka_dlt-key-exception-message", "string", "its message"),
        Row("key_exception_stacktrace", "kafka_dlt-key-exception-stacktrace", "string", "its stack trace"),
    ),
)

_SPRING_RETRY = Profile(
    "spring-retry",
    "Spring Kafka: retry topics",
    "`DeadLetterPublishingRecovererFactory` and `KafkaHeaders` of Spring Kafka 3.3 and 4.0; times of `retry_topic` are as "
    "long as `BigInteger` writes them, and attempts were one byte before 2.8",
    (
        Row("attempts", "retry_topic-attempts", "int32:varlen", "attempts, with the next one"),
        Row(
            "first_timestamp", "retry_topic-original-timestamp", "timestamp_ms:varlen", "timestamp of the first record"
        ),
        Row(
            "next_attempt", "retry_topic-backoff-timestamp", "timestamp_ms:varlen", "when the record is processed again"
        ),
        Row("original_topic", "kafka_original-topic", "string", "topic of the record that failed"),
        Row("original_partition", "kafka_original-partition", "int32", "its partition"),
        Row("original_offset", "kafka_original-offset", "int64", "its offset"),
        Row("original_timestamp", "kafka_original-timestamp", "timestamp_ms", "its timestamp"),
        Row("original_timestamp_type", "kafka_original-timestamp-type", "string", "`CreateTime`, `LogAppendTime`"),
        Row("exception_class", "kafka_exception-fqcn", "string", "class of the exception"),
        Row("exception_cause_class", "kafka_exception-cause-fqcn", "string", "class of its cause"),
        Row("exception_message", "kafka_exception-message", "string", "its message"),
        Row("exception_stacktrace", "kafka_exception-stacktrace", "string", "its stack trace"),
    ),
)

# The types are those of Connect's default header converter, `SimpleHeaderConverter`, which writes text.
_DEBEZIUM = Profile(
    "debezium",
    "Debezium: context of the connector, and added headers",
    "`DebeziumHeaderProducer` of Debezium 3 (`extended.headers.enabled`), and `ExtractNewRecordState` with "
    "`add.headers=op,source.ts_ms`, each through `SimpleHeaderConverter`",
    (
        Row("connector_logical_name", "__debezium.context.connectorLogicalName", "string", "`topic.prefix`"),
        Row("connector_name", "__debezium.context.connectorName", "string", "type of the connector, `postgresql`"),
        Row("task_id", "__debezium.context.taskId", "string", "task of the connector, a number as text"),
        Row("run_id", "__debezium.context.runId", "string", "a UUID for each start; only in later releases"),
        Row("op", "__op", "string", "`c`, `u`, `d`, `r`, `t`"),
        Row("source_ts", "__source_ts_ms", "timestamp_ms:text", "time of the change in the database"),
    ),
)

_DEBEZIUM_OUTBOX = Profile(
    "debezium-outbox",
    "Debezium: outbox event router",
    "`EventRouter` of Debezium 3: the id; the type with `table.fields.additional.placement=type:header:eventType`",
    (
        Row("event_id", "id", "string", "id of the event, which identifies duplicates"),
        Row("event_type", "eventType", "string", "its type, under the name in Debezium's documentation"),
    ),
)

_EVENTHUBS = Profile(
    "eventhubs",
    "Azure IoT Hub and Event Hubs: properties of AMQP messages",
    "Microsoft, IoT Hub message format, system properties of device-to-cloud messages; AMQP 1.0 Part 1 for the bytes. "
    "Properties of an application have their own names, and values of the same form",
    (
        Row("device_id", "iothub-connection-device-id", "string:amqp", "device that sent the message"),
        Row("module_id", "iothub-connection-module-id", "string:amqp", "its module"),
        Row("auth_method", "iothub-connection-auth-method", "string:amqp", "JSON: how it was authenticated"),
        Row("auth_generation_id", "iothub-connection-auth-generation-id", "string:amqp", "generation of the device id"),
        Row("enqueued_time", "iothub-enqueuedtime", "timestamp_ms:amqp", "when IoT Hub received the message"),
        Row("message_source", "iothub-message-source", "string:amqp", "`Telemetry`, `twinChangeEvents`, …"),
        Row("data_schema", "dt-dataschema", "string:amqp", "model of a plug and play device"),
        Row("data_subject", "dt-subject", "string:amqp", "its component"),
    ),
)

PROFILES: dict[str, Profile] = {
    made.name: made
    for made in (
        _OTEL, _CLOUDEVENTS, _SCHEMA_ID, _STREAMS_DLQ, _CONNECT_DLQ, _SPRING, _SPRING_DLT, _SPRING_RETRY,
        _DEBEZIUM, _DEBEZIUM_OUTBOX,
        _EVENTHUBS,
    )
}  # fmt: skip
"""Every convention, by name."""
