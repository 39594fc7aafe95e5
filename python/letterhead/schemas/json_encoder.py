"""Encode rows as JSON values, by a JSON Schema of a registry: :class:`JsonEncoder`."""

from __future__ import annotations

import json
from typing import Any

from letterhead.schemas.refused_values import RefusedValue
from letterhead.schemas.registered import VALUE, RegisteredSchema
from letterhead.schemas.row_encoders import RowEncoder, ValueWriter

__all__ = ["JsonEncoder"]


class JsonEncoder(RowEncoder):
    """Encodes rows as values of JSON by a JSON Schema of a registry; an encoder for :func:`encode_values`.

    A row has properties of the schema, each of the type that :class:`JsonDecoder` returns. Values whose type the schema
    does not determine are JSON text. A null property is omitted, unless the schema requires it. Each value is validated
    by the schema.

    Parameters
    ----------
    registry, subject, schema, schema_id, register
        As in :class:`letterhead.schemas.AvroEncoder`.

    Raises
    ------
    ValueError
        If the schema is invalid. When values are encoded, if the registry does not have the subject or the schema, or
        rejects it.
    ImportError
        If jsonschema-rs, which validates values, is not installed.

    Examples
    --------
    >>> from letterhead import schemas
    >>> registry = schemas.Registry("http://registry:8081")
    >>> schemas.JsonEncoder(registry, "orders-value", {"type": "object", "properties": {"id": {"type": "integer"}}})
    JsonEncoder(Registry('http://registry:8081'), 'orders-value')
    """

    _schema_type = "JSON"
    _format = "json"

    def _open(self, schema: RegisteredSchema) -> ValueWriter:
        from letterhead.schemas.json_schemas import document_maker, open_schema, validate

        opened = open_schema(schema)
        make = document_maker(opened.column.field(VALUE), "" if opened.is_object else VALUE)

        def write(value: Any) -> bytes:
            document = make(value)
            validate(opened.validator, document)
            try:
                return json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
            except UnicodeEncodeError:
                raise RefusedValue("value_not_utf8", "the value has half of a character of UTF-16") from None
            except ValueError:
                raise RefusedValue("out_of_range", "the value has a number that a double cannot hold") from None

        return ValueWriter(opened.column.type, write)
