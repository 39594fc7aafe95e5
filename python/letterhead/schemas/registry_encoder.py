"""Base class of encoders that use a schema registry: :class:`RegistryEncoder`."""

from __future__ import annotations

import json
import uuid
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from letterhead._names import check_name
from letterhead._optional_dependencies import install_hint
from letterhead.schemas.registered import RegisteredSchema, SchemaVersion
from letterhead.schemas.registry import Registry

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["RegistryEncoder"]


class RegistryEncoder(ABC):
    """Finds or registers the schema of values, and writes its id. A subclass encodes the values."""

    _schema_type: ClassVar[str]
    _type_suffix: ClassVar[bytes] = b""
    """Bytes after an id that identify the type of a value in its schema."""

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
        self._schema = None if schema is None else self._schema_text(schema)
        self._version: SchemaVersion | None = None
        self._writer: Any = None
        if self._schema is not None:
            self._writer = self._open(RegisteredSchema(self._schema_type, self._schema, {}))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._registry!r}, {self._subject!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self)._unpickle, (self._registry, self._subject, self._schema, self.schema_id, self._register)

    @classmethod
    def _unpickle(
        cls,
        registry: Registry,
        subject: str,
        schema: str | None,
        schema_id: Literal["header", "prefix"],
        register: bool,
    ) -> Self:
        return cls(registry, subject, schema, schema_id=schema_id, register=register)

    @property
    def id_prefix(self) -> bytes:
        """Id of the schema after its magic byte: a GUID in a header, if the registry provides one."""
        version = self._find_version()
        if self.schema_id == "header" and version.guid is not None:
            return b"\1" + uuid.UUID(version.guid).bytes + self._type_suffix
        return b"\0" + version.id.to_bytes(4, "big") + self._type_suffix

    def encode(self, rows: pa.Array) -> pa.BinaryArray:
        """Encode a column: structs with the fields of the schema, or plain values if the schema has no fields.

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
            If the registry does not respond, or rejects the request.
        """
        with install_hint(f"letterhead.schemas.{type(self).__name__}", "letterhead[arrow]"):
            import pyarrow as pa
            import pyarrow.compute as pc

        if self._writer is None:
            schema = self._find_version().schema
            if schema.type != self._schema_type:
                raise ValueError(f"the type of the schema is {schema.type}, not {self._schema_type}")
            self._writer = self._open(schema)
        is_valid = rows.is_valid()
        valid = pc.indices_nonzero(is_valid)
        if not rows.null_count:
            return self._encode(self._writer, rows, valid)
        values = self._encode(self._writer, rows.take(valid), valid)
        indexes = pc.subtract(pc.cumulative_sum(is_valid.cast(pa.int64())), 1)
        return values.take(pc.if_else(is_valid, indexes, None))

    def _schema_text(self, schema: str | Mapping[str, Any]) -> str:
        return schema if isinstance(schema, str) else json.dumps(schema)

    @abstractmethod
    def _open(self, schema: RegisteredSchema) -> Any:
        """Return a writer for a schema; raise ValueError if the schema is unusable."""

    @abstractmethod
    def _encode(self, writer: Any, values: pa.Array, rows: pa.Array) -> pa.BinaryArray:
        """Encode non-null values with a writer of :meth:`_open`; errors use ``rows``, the row of each value."""

    def _find_version(self) -> SchemaVersion:
        if self._version is None:
            self._version = self._registry.find_version(
                self._subject, self._schema, schema_type=self._schema_type, register=self._register
            )
            if self._version is None and self._schema is not None:
                raise ValueError(
                    f"subject {self._subject!r} of the registry does not have the schema: pass register=True"
                )
            if self._version is None:
                raise ValueError(f"the registry has no subject {self._subject!r}: pass a schema and register=True")
        return self._version
