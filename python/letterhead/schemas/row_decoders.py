"""Decoders that read one value at a time: :class:`RowDecoder`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from letterhead.conventions.schema_group import BoundDecoder, DecodedGroup, SchemaGroup
from letterhead.errors import ErrorDetail
from letterhead.schemas.refused_values import RefusedValue
from letterhead.schemas.registered import RegisteredSchema
from letterhead.schemas.registry import Registry
from letterhead.schemas.registry_decoder import RegistryDecoder

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["RowDecoder", "common_columns"]


ReadRow = Callable[[bytes], "dict[str, Any]"]
"""Function that returns the columns of a value; raises :class:`RefusedValue`."""


class RowDecoder(RegistryDecoder):
    """Decodes values by the schemas of a registry, one value at a time.

    A subclass reads the schemas of its type.
    """

    def __init__(
        self, registry: Registry, schema: str | Mapping[str, Any] | None = None, *, subject: str | None = None
    ) -> None:
        super().__init__(registry, schema, subject=subject)
        self._readers: dict[Any, Callable[[pa.Schema], ReadRow] | ErrorDetail] = {}

    @abstractmethod
    def _columns(self, schema: RegisteredSchema) -> pa.Schema:
        """Return the columns of a schema; raise ValueError if it has none."""

    @abstractmethod
    def _open_reader(
        self, schema: RegisteredSchema, message_indexes: list[int] | None
    ) -> Callable[[pa.Schema], ReadRow]:
        """Return a function that opens a reader of values for columns; raise ValueError if the schema is unusable."""

    def _check_columns(self, schema: RegisteredSchema) -> None:
        self._columns(schema)

    def _bind(self, schema_ids: Sequence[int | str], target: RegisteredSchema | None) -> BoundDecoder:
        if target is not None:
            columns = self._columns(target)
        else:
            columns = common_columns([*self._columns_of_values(schema_ids)])
        return BoundDecoder(columns, lambda group: self._decode(group, columns))

    def _columns_of_values(self, schema_ids: Sequence[int | str]) -> Iterator[pa.Schema]:
        for found in map(self._find, schema_ids):
            # An unusable schema is an error of its rows.
            with suppress(ValueError):
                if isinstance(found, RegisteredSchema):
                    yield self._columns(found)

    def _decode(self, group: SchemaGroup, columns: pa.Schema) -> DecodedGroup | None:
        import pyarrow as pa

        found = self._find(group.schema_id)
        if found is None:
            return None
        make = found if isinstance(found, ErrorDetail) else self._reader(group, found)
        if isinstance(make, ErrorDetail):
            return self._refuse(group, make)
        read = make(columns)
        rows, errors = [], {}
        for index, value in enumerate(group.values.to_pylist()):
            try:
                rows.append(read(value))
            except RefusedValue as refused:
                detail = refused.detail
                errors[index] = detail._replace(message=f"schema {group.schema_id}: {detail.message}")
        return DecodedGroup(self._format, [pa.array(rows, pa.struct(list(columns)))], errors)

    def _reader(self, group: SchemaGroup, schema: RegisteredSchema) -> Callable[[pa.Schema], ReadRow] | ErrorDetail:
        key = group.schema_id, tuple(group.message_indexes or ())
        if key not in self._readers:
            try:
                self._readers[key] = self._open_reader(schema, group.message_indexes)
            except ValueError as error:
                self._readers[key] = ErrorDetail("wrong_type", str(error))
        return self._readers[key]


def common_columns(schemas: Sequence[pa.Schema]) -> pa.Schema:
    """Return the columns of all schemas, in order of first occurrence; raise ValueError if types differ."""
    import pyarrow as pa

    fields: dict[str, pa.Field] = {}
    for schema in schemas:
        for field in schema:
            if fields.setdefault(field.name, field).type != field.type:
                raise ValueError(
                    f"the schemas have types of field {field.name!r} that no column can hold: pass a schema to read them by, "
                    "or a subject"
                )
    return pa.schema(list(fields.values()))
