"""Decode Avro values into columns, by the schemas of a registry: :class:`AvroDecoder`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from letterhead._native import AvroReader
from letterhead.conventions.schema_group import BoundDecoder, DecodedGroup, SchemaGroup
from letterhead.errors import ErrorDetail
from letterhead.schemas.avro_schemas import common_schema, inline_references
from letterhead.schemas.registered import RegisteredSchema
from letterhead.schemas.registry import Registry
from letterhead.schemas.registry_decoder import RegistryDecoder

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["AvroDecoder"]

_AVRO = "AVRO"
_MAX_READERS = 256


class AvroDecoder(RegistryDecoder):
    """Decodes values of Avro by the schemas of a registry; a decoder for :func:`letterhead.arrow.decode_by_schema`.

    The columns are the fields of one schema. Values of other schemas are resolved to it by Avro's rules: fields are
    found by name or alias, numbers are promoted, and a field that is missing in a value gets its default. Without such
    a schema, the columns are the fields of all schemas in the data, and fields that some of these schemas lack are
    nullable.

    Logical types become Arrow types: decimals, dates, times, timestamps; ``uuid`` becomes text. Enums become text, too,
    and unions of several types become Arrow unions. A schema that is not a record has the column ``value``.

    Parameters
    ----------
    registry : Registry
        The registry of the schemas.
    schema : str or mapping, optional
        Schema of the columns: JSON, or Protobuf text, whose first message type defines the columns.
    subject : str, optional
        Subject whose latest schema defines the columns. It is fetched once, when the columns are needed. Without
        ``schema`` and ``subject``, the result has the columns of all schemas in the data.

    Raises
    ------
    ValueError
        If ``schema`` and ``subject`` are both passed, or the schema is invalid; when columns are needed, if the subject
        does not exist.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from letterhead import arrow as lha, schemas
    >>> registry = schemas.Registry("http://registry:8081")
    >>> decoder = schemas.AvroDecoder(registry, {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]})
    >>> lha.decode_by_schema(pa.array([None], pa.binary()), decoder).to_pylist()
    [{'id': None}]
    """

    _schema_type = _AVRO
    _format = "avro"

    def __init__(
        self, registry: Registry, schema: str | Mapping[str, Any] | None = None, *, subject: str | None = None
    ) -> None:
        super().__init__(registry, schema, subject=subject)
        self._texts: dict[int | str, str] = {}

    def _check_columns(self, schema: RegisteredSchema) -> None:
        AvroReader(_column_text(schema))

    def _bind(self, schema_ids: Sequence[int | str], target: RegisteredSchema | None) -> BoundDecoder:
        import pyarrow as pa

        text = None if target is None else _column_text(target)
        if text is None:
            written = [own for own in map(self._written_text, schema_ids) if isinstance(own, str)]
            text = json.dumps(common_schema([json.loads(own) for own in written])) if written else None
        if text is None:
            return BoundDecoder(pa.schema([]), lambda group: self._decode(group, None))
        reader = _reader(text, None)
        if isinstance(reader, ErrorDetail):
            raise ValueError(reader.message)
        fields = pa.DataType._import_from_c_capsule(reader.schema.__arrow_c_schema__())
        columns = pa.schema([pa.field(field.name, _column_type(field.type)) for field in fields])
        return BoundDecoder(columns, lambda group: self._decode(group, text))

    def _decode(self, group: SchemaGroup, target: str | None) -> DecodedGroup | None:
        import pyarrow as pa

        written = self._written_text(group.schema_id)
        if written is None:
            return None
        reader = written if isinstance(written, ErrorDetail) else _reader(written, target)
        if isinstance(reader, ErrorDetail):
            return self._refuse(group, reader)
        arrays, errors = reader.decode(group.values)
        return DecodedGroup(
            self._format, [pa.array(array) for array in arrays], {index: ErrorDetail(*error) for index, error in errors}
        )

    def _written_text(self, schema_id: int | str) -> str | ErrorDetail | None:
        """Return the schema of an id as one text; None if it is unknown, an error if it is not usable Avro."""
        if schema_id not in self._texts:
            found = self._find(schema_id)
            if not isinstance(found, RegisteredSchema):
                return found
            try:
                self._texts[schema_id] = json.dumps(inline_references(found))
            except ValueError as error:
                return ErrorDetail("wrong_type", str(error))
        return self._texts[schema_id]


def _column_text(schema: RegisteredSchema) -> str:
    return json.dumps(inline_references(schema, aliases=True))


@lru_cache(_MAX_READERS)
def _reader(written: str, target: str | None) -> AvroReader | ErrorDetail:
    try:
        return AvroReader(written, target)
    except ValueError as error:
        return ErrorDetail("wrong_type", str(error))


def _column_type(type: pa.DataType) -> pa.DataType:
    """Return the type of a column: text for an enum, and times with the zone name UTC."""
    import pyarrow as pa

    if pa.types.is_dictionary(type):
        return type.value_type
    if pa.types.is_timestamp(type) and type.tz is not None:
        return pa.timestamp(type.unit, "UTC")
    if pa.types.is_list(type):
        return pa.list_(pa.field(type.value_field.name, _column_type(type.value_type), type.value_field.nullable))
    if pa.types.is_map(type):
        return pa.map_(
            _column_type(type.key_type),
            pa.field(type.item_field.name, _column_type(type.item_type), type.item_field.nullable),
        )
    if pa.types.is_struct(type):
        return pa.struct([pa.field(field.name, _column_type(field.type), field.nullable) for field in type])
    return type
