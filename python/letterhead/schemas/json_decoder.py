"""Decode JSON values into columns, by the JSON Schemas of a registry: :class:`JsonDecoder`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from letterhead.schemas.refused_values import RefusedValue
from letterhead.schemas.registered import VALUE, RegisteredSchema
from letterhead.schemas.row_decoders import ReadRow, RowDecoder

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["JsonDecoder"]


class JsonDecoder(RowDecoder):
    """Decodes values of JSON by the JSON Schemas of a registry; a decoder for :func:`letterhead.arrow.decode_by_schema`.

    Each value is validated by the schema that it was written with. Its properties are columns: integers are ``int64``,
    numbers ``double``, objects structs, or maps if they have no properties, arrays lists, and text of any ``format`` is
    text. Values whose type the schema does not determine, such as a choice of several types, are JSON text. A property
    that a value lacks is null. A property that the schema of the columns lacks is omitted.

    Parameters
    ----------
    registry, schema, subject
        As in :class:`letterhead.schemas.AvroDecoder`.

    Raises
    ------
    ValueError
        If ``schema`` and ``subject`` are both passed, or the schema is invalid; when columns are needed, if the subject
        does not exist.
    ImportError
        If jsonschema-rs, which validates values, is not installed.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from letterhead import arrow as lha, schemas
    >>> registry = schemas.Registry("http://registry:8081")
    >>> decoder = schemas.JsonDecoder(registry, {"type": "object", "properties": {"id": {"type": "integer"}}})
    >>> lha.decode_by_schema(pa.array([None], pa.binary()), decoder).to_pylist()
    [{'id': None}]
    """

    _schema_type = "JSON"
    _format = "json"

    def _columns(self, schema: RegisteredSchema) -> pa.Schema:
        """Return the columns of a schema."""
        import pyarrow as pa

        from letterhead.schemas.json_schemas import open_schema

        opened = open_schema(schema)
        return pa.schema(list(opened.column.type) if opened.is_object else [opened.column.field(VALUE)])

    def _open_reader(
        self, schema: RegisteredSchema, message_indexes: list[int] | None
    ) -> Callable[[pa.Schema], ReadRow]:
        """Return a function that opens a reader of values for columns."""
        import pyarrow as pa

        from letterhead.schemas.json_schemas import converter, keeps_json, open_schema, parse_document, validate

        opened = open_schema(schema)

        def make(columns: pa.Schema) -> ReadRow:
            members = [(field.name, converter(field, field.name)) for field in columns]
            exact = keeps_json(pa.struct(columns))

            def read(value: bytes) -> dict[str, Any]:
                document = parse_document(value, exact=exact)
                validate(opened.validator, document)
                if not opened.is_object:
                    document = {VALUE: document}
                elif not isinstance(document, dict):
                    raise RefusedValue("wrong_type", "the value is not an object, which its columns need")
                return {name: convert(document.get(name)) for name, convert in members}

            return read

        return make
