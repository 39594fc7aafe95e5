"""Base class of decoders that use a schema registry: :class:`RegistryDecoder`."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

from letterhead._optional_dependencies import install_hint
from letterhead.conventions.schema_group import BoundDecoder, DecodedGroup, SchemaGroup
from letterhead.errors import ErrorDetail
from letterhead.schemas.registered import RegisteredSchema
from letterhead.schemas.registry import Registry

__all__ = ["RegistryDecoder"]


class RegistryDecoder(ABC):
    """Finds the schemas of values, and the schema of the columns: the caller's, or the latest one of a subject."""

    _schema_type: ClassVar[str]
    _format: ClassVar[str]

    def __init__(
        self, registry: Registry, schema: str | Mapping[str, Any] | None = None, *, subject: str | None = None
    ) -> None:
        if schema is not None and subject is not None:
            raise ValueError("schema and subject exclude each other")
        self._registry, self._subject = registry, subject
        self._target: RegisteredSchema | None = None
        self._written: dict[int | str, RegisteredSchema] = {}
        if schema is not None:
            text = schema if isinstance(schema, str) else json.dumps(schema)
            self._target = RegisteredSchema(self._schema_type, text, {})
            self._check_columns(self._target)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._registry!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        # All executors of a job use the schema that the driver has fetched.
        return type(self)._unpickle, (self._registry, self._target, self._subject)

    @classmethod
    def _unpickle(cls, registry: Registry, schema: RegisteredSchema | None, subject: str | None) -> Self:
        decoder = cls(registry, subject=subject)
        decoder._target = schema
        return decoder

    def bind(self, schema_ids: Sequence[int | str]) -> BoundDecoder:
        """Return the output columns for values of these schemas, and their decoder.

        Raises
        ------
        ValueError
            If the subject does not exist, or no columns can hold the values of all schemas.
        ConnectionError, PermissionError
            If the registry does not respond, or rejects the request.
        """
        with install_hint(f"letterhead.schemas.{type(self).__name__}", "letterhead[arrow]"):
            import pyarrow  # noqa: F401

        return self._bind(schema_ids, self._find_target())

    @abstractmethod
    def _check_columns(self, schema: RegisteredSchema) -> None:
        """Raise ValueError if a schema has no columns."""

    @abstractmethod
    def _bind(self, schema_ids: Sequence[int | str], target: RegisteredSchema | None) -> BoundDecoder:
        """Bind to the columns of the target schema, or by default to the columns of all schemas of values."""

    def _refuse(self, group: SchemaGroup, error: ErrorDetail) -> DecodedGroup:
        """Return a group in which all rows have the error of their schema."""
        error = error._replace(message=f"schema {group.schema_id}: {error.message}")
        return DecodedGroup(self._format, [], dict.fromkeys(range(len(group.values)), error))

    def _find_target(self) -> RegisteredSchema | None:
        """Return the schema of the columns; None if the schemas of the values determine them."""
        if self._target is None and self._subject is not None:
            found = self._registry.latest(self._subject)
            if found is None:
                raise ValueError(f"the registry has no subject {self._subject!r}: pass subject= or schema=")
            self._target = self._check_type(found)
        return self._target

    def _find(self, schema_id: int | str) -> RegisteredSchema | ErrorDetail | None:
        """Return the schema of an id; None if it is unknown, an error if it is unusable."""
        if schema_id not in self._written:
            try:
                found = self._registry.schema(schema_id)
                if found is None:
                    return None
                self._written[schema_id] = self._check_type(found)
            except ValueError as error:
                return ErrorDetail("wrong_type", str(error))
        return self._written[schema_id]

    def _check_type(self, schema: RegisteredSchema) -> RegisteredSchema:
        if schema.type != self._schema_type:
            raise ValueError(f"its type is {schema.type}, not {self._schema_type}")
        return schema
