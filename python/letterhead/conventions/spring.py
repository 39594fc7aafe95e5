"""Headers of Spring Kafka: types of JSON, and its dead letters.

Source: ``DefaultKafkaHeaderMapper``, ``DefaultJackson2JavaTypeMapper``, ``DeadLetterPublishingRecoverer`` and
``KafkaHeaders`` of Spring Kafka 3.3.
"""

from __future__ import annotations

from letterhead.conventions.profile import Profile, Row
from letterhead.fields import Field, field

__all__ = ["SPRING", "SPRING_DLT", "spring_columns"]

SPRING = Profile(
    "spring",
    "Spring Kafka: types of headers and of JSON",
    "`DefaultKafkaHeaderMapper` and `DefaultJackson2JavaTypeMapper` of Spring Kafka 3.3",
    (
        Row(
            "json_header_types",
            "spring_json_header_types",
            "string",
            "JSON: header to Java class; see `spring_columns`",
        ),
        Row("type_id", "__TypeId__", "string", "Java class of the value"),
        Row("content_type_id", "__ContentTypeId__", "string", "class of its elements, of a collection"),
        Row("map_key_type_id", "__KeyTypeId__", "string", "class of its keys, of a map"),
        Row("key_type_id", "__Key_TypeId__", "string", "Java class of the record's key"),
        Row("key_content_type_id", "__Key_ContentTypeId__", "string", "class of its elements"),
        Row("key_map_key_type_id", "__Key_KeyTypeId__", "string", "class of its keys"),
    ),
)

SPRING_DLT = Profile(
    "spring-dlt",
    "Spring Kafka: dead letter topic",
    "`DeadLetterPublishingRecoverer` of Spring Kafka 3.3; numbers are big-endian, unlike Connect's and Streams'",
    (
        Row("original_topic", "kafka_dlt-original-topic", "string", "where the record was read"),
        Row("original_partition", "kafka_dlt-original-partition", "int32", "its partition"),
        Row("original_offset", "kafka_dlt-original-offset", "int64", "its offset"),
        Row("original_timestamp", "kafka_dlt-original-timestamp", "timestamp_ms", "its timestamp"),
        Row(
            "original_timestamp_type", "kafka_dlt-original-timestamp-type", "string", "`CreateTime` or `LogAppendTime`"
        ),
        Row("original_consumer_group", "kafka_dlt-original-consumer-group", "string", "who failed"),
        Row("exception_class", "kafka_dlt-exception-fqcn", "string", "class of the exception"),
        Row("exception_cause_class", "kafka_dlt-exception-cause-fqcn", "string", "class of what caused it"),
        Row("exception_message", "kafka_dlt-exception-message", "string", "what it says"),
        Row("exception_stacktrace", "kafka_dlt-exception-stacktrace", "string", "as Java prints it"),
        Row(
            "key_exception_class",
            "kafka_dlt-key-exception-fqcn",
            "string",
            "the same, where the key did not deserialize",
        ),
        Row("key_exception_message", "kafka_dlt-key-exception-message", "string", "what it says"),
        Row("key_exception_stacktrace", "kafka_dlt-key-exception-stacktrace", "string", "as Java prints it"),
    ),
)

_OF_JAVA = {
    "java.lang.Boolean": "bool:text",
    "java.lang.Byte": "int8:text",
    "java.lang.Short": "int16:text",
    "java.lang.Integer": "int32:text",
    "java.lang.Long": "int64:text",
    "java.lang.Float": "float32:text",
    "java.lang.Double": "float64:text",
}
"""Classes whose JSON is the text that a type reads; what others are is left as text."""


def spring_columns(header_types: str | bytes) -> dict[str, Field]:
    """Turn the value of one ``spring_json_header_types`` into columns.

    Spring writes every header but byte arrays as JSON and keeps its Java class beside it. Numbers and booleans become
    columns of their own types. Everything else is text as it was written: a ``String`` is the text itself, of other
    classes (``UUID``, ``MimeType``) it is JSON, in quotes. Byte arrays are not in the map, and so not in the columns.

    Parameters
    ----------
    header_types : str or bytes
        The JSON of one message. Later ones are read by the same types, and a value that is not of its type is an error.

    Returns
    -------
    dict of str to Field
        A column for each header, for ``select``.

    Raises
    ------
    ValueError
        If it is not a JSON object of names of classes.

    Examples
    --------
    >>> import letterhead as lh
    >>> lh.spring_columns('{"retry": "java.lang.Integer", "ref": "java.util.UUID"}')
    ... # doctest: +NORMALIZE_WHITESPACE
    {'retry': Field(type='int32:text', key='retry', repeat='last', required=False),
     'ref': Field(type='string', key='ref', repeat='last', required=False)}
    """
    import json  # nothing else here needs it, and an import of this package should be fast

    try:
        types = json.loads(header_types)
    except ValueError as error:
        raise ValueError(f"spring_json_header_types is not JSON: {error}") from None
    if not isinstance(types, dict) or not all(isinstance(name, str) for name in types.values()):
        raise ValueError("spring_json_header_types must be a JSON object of header to Java class")
    return {header: field(_OF_JAVA.get(java, "string"), key=header) for header, java in types.items()}
