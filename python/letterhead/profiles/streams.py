"""The dead letter queue of Kafka Streams."""

from letterhead.profiles.table import Profile, Row

__all__ = ["STREAMS_DLQ"]

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
