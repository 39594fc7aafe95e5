"""The dead letter queues of Kafka Connect and Kafka Streams."""

from letterhead.conventions.profile import Profile, Row

__all__ = ["CONNECT_DLQ", "STREAMS_DLQ"]

CONNECT_DLQ = Profile(
    "connect-dlq",
    "Kafka Connect: dead letter queue",
    "KIP-298, as `DeadLetterQueueReporter` of Kafka Connect 4.3.1 writes it with "
    "`errors.deadletterqueue.context.headers.enable`; numbers are text",
    (
        Row("original_topic", "__connect.errors.topic", "string", "where the record was read"),
        Row("original_partition", "__connect.errors.partition", "int32:text", "its partition"),
        Row("original_offset", "__connect.errors.offset", "int64:text", "its offset"),
        Row("connector", "__connect.errors.connector.name", "string", "name of the connector"),
        Row("task", "__connect.errors.task.id", "int32:text", "number of its task"),
        Row(
            "stage",
            "__connect.errors.stage",
            "string",
            "what was done: `VALUE_CONVERTER`, `TRANSFORMATION`, `TASK_PUT`",
        ),
        Row("failing_class", "__connect.errors.class.name", "string", "class that was running"),
        Row("exception_class", "__connect.errors.exception.class.name", "string", "class of the exception"),
        Row("exception_message", "__connect.errors.exception.message", "string", "what it says"),
        Row("exception_stacktrace", "__connect.errors.exception.stacktrace", "string", "as Java prints it"),
    ),
)

STREAMS_DLQ = Profile(
    "streams-dlq",
    "Kafka Streams: dead letter queue",
    "KIP-1034, as `ExceptionHandlerUtils` of Kafka Streams 4.3.1 writes it; numbers are text",
    (
        Row("original_topic", "__streams.errors.topic", "string", "where the record was read"),
        Row("original_partition", "__streams.errors.partition", "int32:text", "its partition"),
        Row("original_offset", "__streams.errors.offset", "int64:text", "its offset"),
        Row("exception_class", "__streams.errors.exception", "string", "class of the exception"),
        Row("exception_message", "__streams.errors.message", "string", "a null header where it had none"),
        Row("exception_stacktrace", "__streams.errors.stacktrace", "string", "as Java prints it"),
    ),
)
