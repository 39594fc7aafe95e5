"""Encode columns as Avro values, by a schema of a registry: :class:`AvroEncoder`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from letterhead._native import AvroWriter
from letterhead.errors import EncodeError, ErrorDetail, as_error
from letterhead.schemas.avro_schemas import inline_references, is_record, parse_schema
from letterhead.schemas.registered import VALUE, RegisteredSchema
from letterhead.schemas.registry_encoder import RegistryEncoder

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["AvroEncoder"]


class AvroEncoder(RegistryEncoder):
    """Encodes rows as values of Avro by a schema of a registry; an encoder for :func:`encode_values`.

    A row has the fields of the schema. A field has the type that :class:`AvroDecoder` returns, or another type whose
    values convert exactly: an ``int64`` becomes a ``long``, or an ``int`` if it is in range. The schema is requested
    from the registry when the first value is encoded.

    Parameters
    ----------
    registry : Registry
        The registry of the schemas.
    subject : str
        Subject of the schema, such as ``orders-value``.
    schema : str or mapping, optional
        The schema: JSON, or Protobuf text, whose first message type is written; by default the latest schema of the
        subject.
    schema_id : {"header", "prefix"}, default "header"
        Position of the schema id: in a header, as a GUID if the registry has one, or before each value, which older
        deserializers need.
    register : bool, default False
        Register ``schema`` if the subject does not have it. The registry rejects an incompatible schema.

    Raises
    ------
    ValueError
        If the schema is invalid or has a union of several types. When values are encoded, if the registry does not have
        the subject or the schema, or rejects it.

    Examples
    --------
    >>> from letterhead import schemas
    >>> registry = schemas.Registry("http://registry:8081")
    >>> schemas.AvroEncoder(registry, "orders-value", schema_id="prefix")
    AvroEncoder(Registry('http://registry:8081'), 'orders-value')
    """

    _schema_type = "AVRO"

    def _schema_text(self, schema: str | Mapping[str, Any]) -> str:
        return json.dumps(parse_schema(schema))

    def _open(self, schema: RegisteredSchema) -> tuple[AvroWriter, bool]:
        """Return a writer, and whether the schema is a record."""
        return AvroWriter(json.dumps(inline_references(schema))), is_record(parse_schema(schema.text))

    def _encode(self, writer: tuple[AvroWriter, bool], values: pa.Array, rows: pa.Array) -> pa.BinaryArray:
        import pyarrow as pa

        from letterhead.schemas.exact_types import exact_array

        core, has_fields = writer
        type = pa.DataType._import_from_c_capsule(core.schema.__arrow_c_schema__())
        if not has_fields:
            values = pa.StructArray.from_arrays([values], names=[VALUE])
        encoded, errors = core.encode(exact_array(values, type, rows, "avro"))
        if errors:
            row, error = errors[0]
            raise as_error(ErrorDetail(*error), EncodeError, "avro", row=rows[row].as_py())
        return pa.array(encoded)
