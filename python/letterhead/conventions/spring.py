"""The map of header types that Spring Kafka writes, for :func:`spring_columns`.

Source: ``DefaultKafkaHeaderMapper`` of Spring Kafka 3.3.
"""

from __future__ import annotations

from letterhead.fields import Field, field

__all__ = ["spring_columns"]

_JAVA_TYPES = {
    "java.lang.Boolean": "bool:text",
    "java.lang.Byte": "int8:text",
    "java.lang.Short": "int16:text",
    "java.lang.Integer": "int32:text",
    "java.lang.Long": "int64:text",
    "java.lang.Float": "float32:text",
    "java.lang.Double": "float64:text",
}
"""Java classes whose JSON a type can read. Values of other classes stay text."""


def spring_columns(header_types: str | bytes) -> dict[str, Field]:
    """Turn the value of one ``spring_json_header_types`` into columns for ``select``, one for each header.

    Spring writes the Java class of every header beside it, and the value as JSON. Numbers and booleans become columns
    of their types. Other values are text as written: a ``String`` is the text itself, other classes (``UUID``,
    ``MimeType``) are quoted JSON. Byte arrays are not in the map, and so not in the columns.

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
    {'retry': Field(type='int32:text', key='retry', repeat='last', required=False),
     'ref': Field(type='string', key='ref', repeat='last', required=False)}
    """
    import json  # imported here to keep the import of this package fast

    try:
        types = json.loads(header_types)
    except ValueError as error:
        raise ValueError(f"spring_json_header_types is not JSON: {error}") from None
    if not isinstance(types, dict) or not all(isinstance(name, str) for name in types.values()):
        raise ValueError("spring_json_header_types must be a JSON object of header to Java class")
    return {header: field(_JAVA_TYPES.get(java, "string"), key=header) for header, java in types.items()}
