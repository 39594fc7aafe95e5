"""The map of header types that Spring Kafka writes, for :func:`spring_columns`.

Sources: ``DefaultKafkaHeaderMapper`` of Spring Kafka 3.3, ``JsonKafkaHeaderMapper`` of 4.0.
"""

from __future__ import annotations

from letterhead.fields import Field, field

__all__ = ["spring_columns"]

_JAVA_TYPES = {
    "java.lang.Boolean": "bool:json",
    "java.lang.Byte": "int8:json",
    "java.lang.Character": "char:json",
    "java.lang.Double": "float64:json",
    "java.lang.Float": "float32:json",
    "java.lang.Integer": "int32:json",
    "java.lang.Long": "int64:json",
    "java.lang.Short": "int16:json",
    "java.util.UUID": "uuid:json",
    **dict.fromkeys(
        (
            "java.lang.String",
            "java.net.URI",
            "java.net.URL",
            "java.util.Currency",
            "java.util.Locale",
            # MIME types were objects in the map before they became strings.
            "org.springframework.http.MediaType",
            "org.springframework.util.MimeType",
        ),
        "string:json",
    ),
}
"""Java classes whose JSON a type can parse. Values of other classes remain JSON text."""


def spring_columns(header_types: str | bytes) -> dict[str, Field]:
    """Turn the value of one ``spring_json_header_types`` into columns for ``select``, one for each header.

    Spring writes values as JSON, and the Java class of every header. Numbers, booleans, characters and UUIDs become
    columns of their types. A ``String`` is text, quoted if it was a MIME type or the mapper encodes strings: quotes are
    removed, as Spring removes them. Values of other classes, such as ``Date`` and lists, are JSON as it was written.
    The map does not contain byte arrays, so there are no columns for them; ``profile("spring-retry")`` has the byte
    arrays of retry topics.

    Parameters
    ----------
    header_types : str or bytes
        The JSON of one message. The types apply to all rows: a value of another type is an error.

    Raises
    ------
    ValueError
        If it is not a JSON object of class names.

    Examples
    --------
    >>> import letterhead as lh
    >>> lh.spring_columns('{"retry": "java.lang.Integer", "ref": "java.util.UUID"}')
    ... # doctest: +NORMALIZE_WHITESPACE
    {'retry': Field(type='int32:json', key='retry'),
     'ref': Field(type='uuid:json', key='ref')}
    """
    from letterhead._strict_json import parse_json  # imported here to keep the import of this package fast

    try:
        types = parse_json(header_types)
    except ValueError as error:
        raise ValueError(f"spring_json_header_types is not JSON: {error}") from None
    if not isinstance(types, dict) or not all(isinstance(name, str) for name in types.values()):
        raise ValueError("spring_json_header_types must be a JSON object of header to Java class")
    return {header: field(_JAVA_TYPES.get(java, "string"), key=header) for header, java in types.items()}
