"""Columns as values of Avro, by a schema of a registry: :class:`AvroEncoder`."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from letterhead._names import check_name
from letterhead._native import AvroWriter
from letterhead._optional_dependencies import install_hint
from letterhead.errors import EncodeError, ErrorDetail, as_error
from letterhead.schemas.avro_schemas import inline_references, is_record, parse_schema
from letterhead.schemas.registered import VALUE, RegisteredSchema, SchemaVersion
from letterhead.schemas.registry import Registry

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["AvroEncoder"]

_AVRO = "AVRO"


class AvroEncoder:
    """Encodes rows as values of Avro by a schema of a registry; an encoder for :func:`encode_values`.

    A row has the fields of the schema, each of the type that :class:`AvroDecoder` returns, or of another from which every value
    is exact: an ``int64`` may be a ``long``, or an ``int`` if it is in its range. The registry is asked when the first
    value is encoded.

    Parameters
    ----------
    registry : Registry
        The registry of the schema, by Confluent's API.
    subject : str
        Subject of the schema, such as ``orders-value``.
    schema : str or mapping, optional
        The schema, as JSON; by default the latest one of the subject.
    schema_id : {"header", "prefix"}, default "header"
        Where the id of the schema is: in a header, as GUID if the registry has one, or as 5 bytes in front of each value, which older
        deserializers need.
    register : bool, default False
        Register ``schema`` if the subject does not have it. The registry refuses one that is not compatible.

    Raises
    ------
    ValueError
        If the schema is invalid or has a union of several types. When values are encoded, if the registry does not have
        the subject or the schema, or refuses to register it.

    Examples
    --------
    >>> from letterhead import schemas
    >>> registry = schemas.Registry("http://registry:8081")
    >>> schemas.AvroEncoder(registry, "orders-value", schema_id="prefix")
    AvroEncoder(Registry('http://registry:8081'), 'orders-value')
    """

    def __init__(
        self,
        registry: Registry,
        subject: str,
        schema: str | Mapping[str, Any] | None = None,
        *,
        schema_id: Literal["header", "prefix"] = "header",
        register: bool = False,
    ) -> None:
        check_name("schema_id value", schema_id, ("header", "prefix"))
        if register and schema is None:
            raise ValueError("register=True needs a schema")
        self._registry, self._subject, self._register = registry, subject, register
        self.schema_id = schema_id
        self._schema = None if schema is None else json.dumps(parse_schema(schema))
        self._version: SchemaVersion | None = None
        self._writer: tuple[AvroWriter, pa.StructType, bool] | None = None
        if self._schema is not None:
            AvroWriter(json.dumps(inline_references(RegisteredSchema(_AVRO, self._schema, {}))))

    def __repr__(self) -> str:
        return f"AvroEncoder({self._registry!r}, {self._subject!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickle, (self._registry, self._subject, self._schema, self.schema_id, self._register)

    @property
    def id_prefix(self) -> bytes:
        """The id of the schema after its magic byte: a GUID in a header, if the registry has one."""
        version = self._find_version()
        if self.schema_id == "header" and version.guid is not None:
            return b"\1" + uuid.UUID(version.guid).bytes
        return b"\0" + version.id.to_bytes(4, "big")

    def encode(self, rows: pa.Array) -> pa.BinaryArray:
        """Encode structs with the fields of the schema, or the values of a schema that is not a record.

        Returns
        -------
        pyarrow.BinaryArray
            The values, without an id; null for a null row.

        Raises
        ------
        TypeError, ValueError
            If a field is missing, is not in the schema, or has another type.
        EncodeError
            If a row cannot be written: its ``row`` names it.
        ConnectionError, PermissionError
            If the registry does not answer, or rejects the request.
        """
        with install_hint("letterhead.schemas.AvroEncoder", "letterhead[arrow]"):
            import pyarrow as pa
            import pyarrow.compute as pc

            from letterhead.schemas.exact_types import exact_array

        writer, type, is_record = self._open_writer()
        present = pc.indices_nonzero(rows.is_valid())
        values = rows.take(present) if rows.null_count else rows
        if not is_record:
            values = pa.StructArray.from_arrays([values], names=[VALUE])
        encoded, errors = writer.encode(exact_array(values, type, "", present))
        if errors:
            row, error = errors[0]
            raise as_error(ErrorDetail(*error), EncodeError, "avro", row=present[row].as_py())
        values = pa.array(encoded)
        if not rows.null_count:
            return values
        places = pc.subtract(pc.cumulative_sum(rows.is_valid().cast(pa.int64())), 1)
        return values.take(pc.if_else(rows.is_valid(), places, None))

    def _find_version(self) -> SchemaVersion:
        if self._version is None:
            self._version = self._registry.find_version(self._subject, self._schema, register=self._register)
            if self._version is None and self._schema is not None:
                raise ValueError(
                    f"subject {self._subject!r} of the registry does not have the schema: pass register=True"
                )
            if self._version is None:
                raise ValueError(f"the registry has no subject {self._subject!r}: pass a schema and register=True")
        return self._version

    def _open_writer(self) -> tuple[AvroWriter, pa.StructType, bool]:
        """Return the writer, the types of its fields, and whether the schema is a record."""
        if self._writer is None:
            schema = self._find_version().schema if self._schema is None else RegisteredSchema(_AVRO, self._schema, {})
            self._writer = _writer(schema)
        return self._writer


def _writer(schema: RegisteredSchema) -> tuple[AvroWriter, pa.StructType, bool]:
    import pyarrow as pa

    if schema.type != _AVRO:
        raise ValueError(f"the type of the schema is {schema.type}, not {_AVRO}")
    writer = AvroWriter(json.dumps(inline_references(schema)))
    type = pa.DataType._import_from_c_capsule(writer.schema.__arrow_c_schema__())
    return writer, type, is_record(parse_schema(schema.text))


def _unpickle(
    registry: Registry, subject: str, schema: str | None, schema_id: Literal["header", "prefix"], register: bool
) -> AvroEncoder:
    return AvroEncoder(registry, subject, schema, schema_id=schema_id, register=register)
